//! The list of all ops, for the command line and for the page `OPS.md`.

use std::fmt::Write;

use exactile_core::ir::op::STRUCTURAL;
use exactile_core::ir::operand::{fragment_sum, group_sum};
use exactile_core::ir::{
    Accepts, Approximate, AtomicOp, BinaryOp, CompareOp, DType, Function, Precision, RawOp, Stage,
    TernaryOp, UnaryOp,
};
use exactile_core::semantics::derived::accuracy;
use serde::Serialize;

use crate::composed;

/// One op of the IR.
#[derive(Clone, Debug, Serialize)]
pub struct OpRow {
    /// The name in the text form.
    pub name: &'static str,
    /// The stages in which it is legal; none of what tracing makes of others.
    pub stages: Vec<&'static str>,
    /// The data types that an elementwise op takes; nothing for ops with their own shape.
    pub types: Option<&'static str>,
    /// The data types one by one: those of the numbers that it moves, combines or looks at. Nothing for ops that have
    /// none, such as barriers, and for those of positions, which are `i64` and in lanes also `i32`.
    pub dtypes: Option<Vec<&'static str>>,
    /// What lowers an elementwise op: `primitive`, `derived` or `approximate`; `composed` of a function that tracing makes
    /// of others.
    pub kind: Option<&'static str>,
    /// `exact` where all devices give the same bits and `device` where each has its own; `order` where the attribute
    /// of that name decides, of which `tree` is exact; `arrival` where the order of programs shows in the result, and
    /// `integers` where it shows in that of floats alone.
    pub exactness: Option<&'static str>,
    /// How far a derived function is from the true values.
    pub accuracy: Vec<Error>,
    /// What it means.
    pub meaning: &'static str,
}

/// The greatest error of a function of one type.
#[derive(Clone, Debug, Serialize)]
pub struct Error {
    /// The data type.
    pub dtype: &'static str,
    /// Units in the last place; 0.5 is correct rounding.
    pub max_ulp: f64,
    /// The arguments that were tried.
    pub tried: &'static str,
}

/// The errors of an op.
fn errors(name: &str) -> Vec<Error> {
    let of = accuracy().filter(|row| row.op.mnemonic() == name);
    of.map(|row| Error {
        dtype: row.dtype.name(),
        max_ulp: row.max_ulp,
        tried: row.domain,
    })
    .collect()
}

/// Whether devices agree on a kind of elementwise ops.
fn exactness(kind: &str) -> &'static str {
    match kind {
        "approximate" => "device",
        _ => "exact",
    }
}

/// The types that an op takes. A function of `f64` is one where it has a definition of its own.
fn dtypes(accepts: Accepts, kind: &str, accuracy: &[Error]) -> Vec<&'static str> {
    let defined = |dtype: &DType| {
        let double = accuracy.iter().any(|error| error.dtype == dtype.name());
        kind != "derived" || *dtype != DType::F64 || double
    };
    let all = DType::ALL.iter().filter(|&&dtype| accepts.admits(dtype));
    all.filter(|dtype| defined(dtype))
        .map(|dtype| dtype.name())
        .collect()
}

/// The data types of an op with its own shape.
fn shaped_dtypes(name: &str) -> Option<Vec<&'static str>> {
    let combined = |dtype, only: fn(AtomicOp, DType) -> bool| {
        let mut ops = AtomicOp::ALL.iter().filter(|&&op| only(op, dtype));
        ops.any(|op| op.admits(dtype))
    };
    let multiplied = |dtype| {
        let mut precisions = Precision::ALL.iter();
        precisions.any(|&precision| fragment_sum(precision, dtype).is_some())
    };
    let admits: &dyn Fn(DType) -> bool = match name {
        "dot" => &|dtype| Accepts::Numeric.admits(dtype),
        "dot_promoted" => &|dtype| Accepts::Float.admits(dtype),
        "dot_slots" | "group_mma" => &|dtype| {
            let mut precisions = Precision::ALL.iter();
            precisions.any(|&precision| group_sum(precision, dtype).is_some())
        },
        "mma" => &multiplied,
        "histogram" => &|dtype| Accepts::Integer.admits(dtype),
        "atomic_reduce" | "tile_atomic" | "lane_atomic" => {
            &|dtype| combined(dtype, |op, dtype| op.binary(dtype).is_some())
        }
        "atomic_fetch" | "tile_fetch" | "lane_fetch" => &|dtype| combined(dtype, |_, _| true),
        "warp_reduce" => &|dtype| [DType::I32, DType::U32, DType::Bool].contains(&dtype),
        "raw_cast" => &|dtype| [DType::F32, DType::F64].contains(&dtype),
        "assert" | "stop_assertion" | "check_assertion" => &|dtype| dtype == DType::Bool,
        _ if WITHOUT_NUMBERS.contains(&name) => return None,
        _ => &|_| true,
    };
    let all = DType::ALL.iter().filter(|&&dtype| admits(dtype));
    Some(all.map(|dtype| dtype.name()).collect())
}

/// Ops with their own shape that have positions, memory and control in their place, and no number of any type.
const WITHOUT_NUMBERS: &[&str] = &[
    "arange",
    "program_id",
    "num_programs",
    "lane_id",
    "warp_id",
    "places",
    "barrier",
    "group_copies",
    "wait_copies",
    "wait_products",
    "wait_box",
    "wait_copies_out",
    "release_slot",
    "wait_written",
    "proxy_fence",
    "roles",
    "mbarrier_init",
    "mbarrier_expect",
    "mbarrier_arrive",
    "mbarrier_wait",
    "named_sync",
    "named_arrive",
    "check_index",
    "stop_index",
];

/// Whether devices agree on an op with its own shape.
fn shaped_exactness(name: &str) -> &'static str {
    match name {
        "reduce" | "scan" => "order",
        "atomic_fetch" | "lane_fetch" => "arrival",
        "atomic_reduce" | "lane_atomic" => "integers",
        _ => "exact",
    }
}

/// Every op, elementwise families first; the functions that are made of them behind.
pub fn rows() -> Vec<OpRow> {
    let [block, schedule, lane] = [Stage::Block, Stage::Schedule, Stage::Lane].map(Stage::word);
    let mut rows = Vec::new();
    macro_rules! family {
        ($($Family:ident $kind:literal [$($stage:ident)*];)*) => { $(
            for op in $Family::ALL {
                let accepts: Accepts = op.accepts();
                let accuracy = errors(op.mnemonic());
                rows.push(OpRow {
                    name: op.mnemonic(),
                    stages: vec![$($stage),*],
                    types: Some(accepts.words()),
                    dtypes: Some(dtypes(accepts, $kind, &accuracy)),
                    kind: Some($kind),
                    exactness: Some(exactness($kind)),
                    accuracy,
                    meaning: op.summary().trim(),
                });
            }
        )* };
    }
    family! {
        UnaryOp "primitive" [block schedule lane];
        BinaryOp "primitive" [block schedule lane];
        TernaryOp "primitive" [block schedule lane];
        CompareOp "primitive" [block schedule lane];
        RawOp "raw" [lane];
        Function "derived" [block];
        Approximate "approximate" [block schedule lane];
    }
    for (stages, structural) in STRUCTURAL {
        rows.extend(structural.iter().map(|(name, meaning)| OpRow {
            name,
            stages: stages.iter().map(|stage| stage.word()).collect(),
            types: None,
            dtypes: shaped_dtypes(name),
            kind: None,
            exactness: Some(shaped_exactness(name)),
            accuracy: Vec::new(),
            meaning: meaning.trim(),
        }));
    }
    rows.extend(composed::rows());
    rows
}

/// The page `OPS.md`, written from the op tables.
pub fn page() -> String {
    let mut text = String::from(
        "# Ops\n\nWritten from the op tables by `BLESS=1 cargo test --test suite ops`; do not edit.\n\n\
         *Primitive* ops exist in every backend. *Derived* ops are replaced by their one definition\n\
         over primitives, so their bits agree everywhere by construction. *Approximate* ops are a\n\
         device's own instructions, and only stand in a program that gave up exactness. *Raw* ops are\n\
         instructions with cases that a machine leaves undefined: one pass makes them, with guards around\n\
         them, of the primitives that define these cases.\n\n\
         ## Elementwise\n\nScalars, tiles and short vectors; all operands of one type. All but approximate ops are exact: every\n\
         device gives the same bits. Primitive and approximate ops stand in each stage (block, schedule, lane), derived ones\n\
         in the block stage and raw ones in the lane stage.\n\n\
         | op | types | kind | meaning |\n|---|---|---|---|\n",
    );
    let rows = rows();
    for row in &rows {
        if let (Some(types), Some(kind)) = (row.types, row.kind) {
            line(
                &mut text,
                &[&format!("`{}`", row.name), types, kind, row.meaning],
            );
        }
    }
    shaped_lines(&mut text, &rows);
    text.push_str(
        "\n## Accuracy of the derived functions\n\n\
         The greatest error against an oracle, in units in the last place; 0.5 is correct rounding.\n\
         `f16` and `bf16` are the `f32` function rounded once more.\n\n\
         | function | type | max ulp | tried |\n|---|---|---|---|\n",
    );
    for row in accuracy() {
        let error = format!("{:.4}", row.max_ulp);
        let name = format!("`{}`", row.op.mnemonic());
        line(&mut text, &[&name, row.dtype.name(), &error, row.domain]);
    }
    composed_lines(&mut text, &rows);
    text
}

/// The ops with their own shape.
fn shaped_lines(text: &mut String, rows: &[OpRow]) {
    text.push_str(
        "\n## With their own shape\n\n\
         Types are those of the numbers that an op moves, combines or looks at. Bits: `exact` where every device gives the\n\
         same; `order` where the attribute of that name decides, of which `tree` is exact; `arrival` where the order of\n\
         programs shows in the result, and `integers` where it shows in that of floats alone.\n\n\
         | op | types | stages | bits | meaning |\n|---|---|---|---|---|\n",
    );
    for row in rows.iter().filter(|row| row.kind.is_none()) {
        let types = match &row.dtypes {
            Some(dtypes) if dtypes.len() == DType::ALL.len() => "all types".to_string(),
            Some(dtypes) => dtypes.join(", "),
            None => String::new(),
        };
        let (name, stages) = (format!("`{}`", row.name), row.stages.join(", "));
        let bits = row.exactness.unwrap_or_default();
        line(text, &[&name, &types, &stages, bits, row.meaning]);
    }
}

/// The functions that tracing makes of ops.
fn composed_lines(text: &mut String, rows: &[OpRow]) {
    text.push_str(
        "\n## Functions made of others\n\n\
         What tracing replaces by the ops above, so that it agrees everywhere too; the list is that of their\n\
         documentation. Greatest errors are in units in the last place, where they are stated.\n\n\
         | function | types | max ulp | meaning |\n|---|---|---|---|\n",
    );
    for row in rows.iter().filter(|row| row.kind == Some("composed")) {
        let place = |tried: &'static str| match tried {
            composed::STATED => String::new(),
            place => format!(" {place}"),
        };
        let error =
            |error: &Error| format!("{} {}{}", error.dtype, error.max_ulp, place(error.tried));
        let errors: Vec<String> = row.accuracy.iter().map(error).collect();
        let dtypes = row.dtypes.as_deref().unwrap_or_default().join(", ");
        let name = format!("`{}`", row.name);
        line(text, &[&name, &dtypes, &errors.join(", "), row.meaning]);
    }
}

fn line(text: &mut String, cells: &[&str]) {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    writeln!(text, "| {} |", cells.join(" | "))
        .expect("broken invariant: writing to a string succeeds");
}
