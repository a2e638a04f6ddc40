//! The list of all ops, for the command line and for the page `OPS.md`.

use std::fmt::Write;

use exactile_core::ir::op::STRUCTURAL;
use exactile_core::ir::{
    Accepts, Approximate, BinaryOp, CompareOp, Function, RawOp, Stage, TernaryOp, UnaryOp,
};
use exactile_core::semantics::derived::accuracy;
use serde::Serialize;

/// One op of the IR.
#[derive(Clone, Debug, Serialize)]
pub struct OpRow {
    /// The name in the text form.
    pub name: &'static str,
    /// The stages in which it is legal.
    pub stages: Vec<&'static str>,
    /// The data types that an elementwise op takes; nothing for ops with their own shape.
    pub types: Option<&'static str>,
    /// What lowers an elementwise op: `primitive`, `derived` or `approximate`.
    pub kind: Option<&'static str>,
    /// What it means.
    pub meaning: &'static str,
}

/// Every op, elementwise families first.
pub fn rows() -> Vec<OpRow> {
    let [block, schedule, lane] = [Stage::Block, Stage::Schedule, Stage::Lane].map(Stage::word);
    let mut rows = Vec::new();
    macro_rules! family {
        ($($Family:ident $kind:literal [$($stage:ident)*];)*) => { $(
            for op in $Family::ALL {
                let accepts: Accepts = op.accepts();
                rows.push(OpRow {
                    name: op.mnemonic(),
                    stages: vec![$($stage),*],
                    types: Some(accepts.words()),
                    kind: Some($kind),
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
            kind: None,
            meaning: meaning.trim(),
        }));
    }
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
         ## Elementwise\n\nScalars, tiles and short vectors; all operands of one type.\n\n\
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
    text.push_str("\n## With their own shape\n\n| op | stages | meaning |\n|---|---|---|\n");
    for row in rows.iter().filter(|row| row.kind.is_none()) {
        line(
            &mut text,
            &[
                &format!("`{}`", row.name),
                &row.stages.join(", "),
                row.meaning,
            ],
        );
    }
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
    text
}

fn line(text: &mut String, cells: &[&str]) {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    writeln!(text, "| {} |", cells.join(" | "))
        .expect("broken invariant: writing to a string succeeds");
}
