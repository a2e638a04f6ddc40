//! Writes the filetests of the elementwise families from the op tables: every op on every data
//! type that it takes, over pairs of edge values, and a wrong use that must be refused.

use std::collections::BTreeMap;
use std::fmt::Write;

use exactile_core::ir::{
    Accepts, Approximate, BinaryOp, Class, CompareOp, DType, Function, TernaryOp, UnaryOp,
};

const COMMANDS: &str = "test roundtrip
test verify
test interp
test run cpu
test run lanes warps=1,4,8
test run cuda warps=1,4,8
";

const LANE_COMMANDS: &str = "test roundtrip
test verify
test interp
test run lanes warps=1
test run cuda warps=1
";

/// A device's own instruction gives other bits than the functions that it approximates.
const APPROXIMATE_COMMANDS: &str = "test roundtrip
test verify
test interp
test run cpu
options determinism=schedule_invariant
";

/// An elementwise kernel over `count` elements.
struct Kernel<'a> {
    name: String,
    comment: String,
    inputs: &'a [DType],
    result: DType,
    count: usize,
    /// The line that defines `%r` from `%a`, `%b` and `%c`.
    body: String,
    /// The arguments `x`, `y` and `z` of each run.
    runs: Vec<String>,
}

impl Kernel<'_> {
    fn write(&self, text: &mut String) {
        let count = self.count;
        let mut put = |line: String| {
            text.push_str(&line);
            text.push('\n');
        };
        let pointers = ["x", "y", "z"];
        let inputs = || self.inputs.iter().zip(pointers);
        let parameters: String = inputs()
            .map(|(dtype, name)| format!("%{name}: ptr<{dtype}>, "))
            .collect();
        put(format!("\n; {}", self.comment));
        put(format!(
            "func @{} block ({parameters}%o: ptr<{}> write) {{",
            self.name, self.result
        ));
        put(format!(
            "  %i = arange start=0, end={count} : tile<{count}xi64>"
        ));
        for ((dtype, pointer), value) in inputs().zip(["a", "b", "c"]) {
            put(format!(
                "  %{value} = load %{pointer}, %i : tile<{count}x{dtype}>"
            ));
        }
        put(format!("  {}", self.body));
        put("  store %o, %i, %r".to_string());
        put("}".to_string());
        for run in &self.runs {
            put(format!(
                "; run: @{}({run}, o=zeros({count})) grid=1",
                self.name
            ));
        }
    }
}

fn accepted(accepts: Accepts) -> impl Iterator<Item = DType> {
    DType::ALL
        .iter()
        .copied()
        .filter(move |&dtype| accepts.admits(dtype))
}

/// A data type that is refused, if there is one.
fn refused(accepts: Accepts) -> Option<DType> {
    [DType::F32, DType::I32, DType::Bool, DType::F64]
        .into_iter()
        .find(|&dtype| !accepts.admits(dtype))
}

fn wrong_type(text: &mut String, mnemonic: &str, accepts: Accepts, operands: usize) {
    let Some(dtype) = refused(accepts) else {
        return;
    };
    let list = vec!["%x"; operands].join(", ");
    let words = accepts.words();
    let _ = write!(
        text,
        "\n; Takes {words} alone.\nfunc @{mnemonic}_of_{dtype} block (%x: {dtype}) {{
  %r = {mnemonic} {list} : {dtype} ; error: `{mnemonic}` takes {words}, found `{dtype}`\n}}\n"
    );
}

fn mismatch(text: &mut String, mnemonic: &str, accepts: Accepts, operands: usize) {
    let (first, second) = match accepts {
        Accepts::Float | Accepts::F32 => (DType::F32, DType::F64),
        Accepts::SingleFloat => (DType::F32, DType::F16),
        Accepts::Numeric | Accepts::Integer | Accepts::Bits | Accepts::Any => {
            (DType::I32, DType::U32)
        }
    };
    let mut list = vec!["%x"; operands - 1];
    list.push("%y");
    let list = list.join(", ");
    let _ = write!(
        text,
        "\n; Operands have one type.\nfunc @{mnemonic}_of_two_types block (%x: {first}, %y: {second}) {{
  %r = {mnemonic} {list} : {first} ; error: operands of `{mnemonic}` differ: `{first}` and `{second}`\n}}\n"
    );
}

fn sentence(summary: &str) -> &str {
    summary
        .trim()
        .split_once(". ")
        .map_or(summary.trim().trim_end_matches('.'), |(first, _)| first)
}

/// An op of one operand.
fn unary(commands: &str, mnemonic: &str, accepts: Accepts, summary: &str) -> String {
    let mut text = commands.to_string();
    for dtype in accepted(accepts) {
        Kernel {
            name: format!("{mnemonic}_{dtype}"),
            comment: format!("{}: edge values, then others.", sentence(summary)),
            inputs: &[dtype],
            result: dtype,
            count: 8,
            body: format!("%r = {mnemonic} %a : tile<8x{dtype}>"),
            runs: vec!["x=edges(8, 1)".to_string(), "x=random(8, 1)".to_string()],
        }
        .write(&mut text);
    }
    wrong_type(&mut text, mnemonic, accepts, 1);
    text
}

fn binary(op: BinaryOp) -> String {
    let mut text = COMMANDS.to_string();
    let mnemonic = op.mnemonic();
    for dtype in accepted(op.accepts()) {
        // `bool` has four pairs; every other type has 64 pairs of edge values.
        let count = if dtype == DType::Bool { 4 } else { 64 };
        let stride = if dtype == DType::Bool { 2 } else { 8 };
        let mut runs = vec![format!("x=edges({count}, 1), y=edges({count}, {stride})")];
        if dtype.is_float() {
            runs.push(format!("x=random({count}, 1), y=random({count}, 2)"));
        }
        Kernel {
            name: format!("{mnemonic}_{dtype}"),
            comment: format!("{}: every pair of edge values.", sentence(op.summary())),
            inputs: &[dtype, dtype],
            result: dtype,
            count,
            body: format!("%r = {mnemonic} %a, %b : tile<{count}x{dtype}>"),
            runs,
        }
        .write(&mut text);
    }
    wrong_type(&mut text, mnemonic, op.accepts(), 2);
    mismatch(&mut text, mnemonic, op.accepts(), 2);
    text
}

fn ternary(op: TernaryOp) -> String {
    let mut text = COMMANDS.to_string();
    let mnemonic = op.mnemonic();
    for dtype in accepted(op.accepts()) {
        Kernel {
            name: format!("{mnemonic}_{dtype}"),
            comment: format!("{}: edge values, then others.", sentence(op.summary())),
            inputs: &[dtype, dtype, dtype],
            result: dtype,
            count: 64,
            body: format!("%r = {mnemonic} %a, %b, %c : tile<64x{dtype}>"),
            runs: vec![
                "x=edges(64, 1), y=edges(64, 8), z=edges(64, 3)".to_string(),
                "x=random(64, 1), y=random(64, 2), z=random(64, 3)".to_string(),
            ],
        }
        .write(&mut text);
    }
    wrong_type(&mut text, mnemonic, op.accepts(), 3);
    mismatch(&mut text, mnemonic, op.accepts(), 3);
    text
}

fn compare(op: CompareOp) -> String {
    let mut text = COMMANDS.to_string();
    let mnemonic = op.mnemonic();
    for dtype in accepted(op.accepts()) {
        let count = if dtype == DType::Bool { 4 } else { 64 };
        let stride = if dtype == DType::Bool { 2 } else { 8 };
        Kernel {
            name: format!("{mnemonic}_{dtype}"),
            comment: format!("{}: every pair of edge values.", sentence(op.summary())),
            inputs: &[dtype, dtype],
            result: DType::Bool,
            count,
            body: format!("%r = {mnemonic} %a, %b : tile<{count}xbool>"),
            runs: vec![format!("x=edges({count}, 1), y=edges({count}, {stride})")],
        }
        .write(&mut text);
    }
    wrong_type(&mut text, mnemonic, op.accepts(), 2);
    mismatch(&mut text, mnemonic, op.accepts(), 2);
    text
}

/// The integers and halves around which a conversion to another type changes its mind.
fn cast_inputs(from: DType) -> &'static str {
    const INPUTS: [(DType, &str); 7] = [
        (
            DType::F16,
            "[2049.0, -129.0, 127.5, 65504.0, -0.5, 255.9, -32769.0, 0.99]",
        ),
        (
            DType::I64,
            "[16777217, -129, 2049, 65520, 32768, 9007199254740993, 256, 257]",
        ),
        (
            DType::I32,
            "[16777217, -129, 2049, 65520, 32768, 33554435, 256, 257]",
        ),
        (
            DType::U64,
            "[16777217, 129, 2049, 65520, 32768, 9007199254740993, 256, 18446744073709551103]",
        ),
        (
            DType::U32,
            "[16777217, 129, 2049, 65520, 32768, 4294967167, 256, 257]",
        ),
        (
            DType::I16,
            "[2049, -2051, 255, 256, 257, 32767, -129, 4097]",
        ),
        (
            DType::U16,
            "[2049, 2051, 255, 256, 257, 65535, 65520, 4097]",
        ),
    ];
    match INPUTS.iter().find(|(dtype, _)| *dtype == from) {
        Some((_, inputs)) => inputs,
        None if from.is_float() => {
            "[2147483648.0, -129.0, 127.5, 65520.0, -0.5, 1e30, -9.3e18, 1.00390625]"
        }
        None => "edges(8, 1)",
    }
}

fn cast(from: DType) -> String {
    let mut text = COMMANDS.to_string();
    for &to in DType::ALL.iter().filter(|&&to| to != from) {
        let mut runs = vec!["x=edges(8, 1)".to_string()];
        if !cast_inputs(from).starts_with("edges") {
            runs.push(format!("x={}", cast_inputs(from)));
        }
        Kernel {
            name: format!("cast_{from}_to_{to}"),
            comment: match (from.class(), to.class()) {
                (Class::Float, Class::Float) => "Rounds once to nearest even; NaN stays NaN.",
                (Class::Float, Class::Signed | Class::Unsigned) => {
                    "Truncates and saturates; NaN gives 0."
                }
                (_, Class::Bool) => "Nonzero is true, NaN too.",
                (_, Class::Float) => "Rounds once to nearest even.",
                (_, Class::Signed | Class::Unsigned) => "Keeps the low bits; extends by its sign.",
            }
            .to_string(),
            inputs: &[from],
            result: to,
            count: 8,
            body: format!("%r = cast %a : tile<8x{to}>"),
            runs,
        }
        .write(&mut text);
    }
    let _ = write!(
        text,
        "\n; A shape stays.\nfunc @cast_to_a_tile block (%x: {from}) {{
  %r = cast %x : tile<2xf32> ; error: result of `cast` is `tile<2xf32>`, expected `f32`\n}}\n"
    );
    text
}

fn bitcast() -> String {
    let mut text = COMMANDS.to_string();
    let ordered = |from: &'static DType| DType::ALL.iter().map(move |to| (*from, *to));
    for (from, to) in DType::ALL.iter().flat_map(ordered) {
        if from == to || from.bits() != to.bits() || from == DType::Bool || to == DType::Bool {
            continue;
        }
        Kernel {
            name: format!("bitcast_{from}_to_{to}"),
            comment: if from.is_float() {
                "The bits stay; NaN reads as the positive canonical one.".to_string()
            } else {
                "The bits stay.".to_string()
            },
            inputs: &[from],
            result: to,
            count: 8,
            body: format!("%r = bitcast %a : tile<8x{to}>"),
            runs: vec!["x=edges(8, 1)".to_string()],
        }
        .write(&mut text);
    }
    text.push_str(
        "\n; The width stays.\nfunc @bitcast_to_a_wider_type block (%x: f32) {
  %r = bitcast %x : i64 ; error: `bitcast` cannot make `i64` from `f32`\n}\n",
    );
    text
}

/// `select`, `load`, `store` and `constant` on every data type.
fn moves() -> String {
    let mut text = COMMANDS.to_string();
    for &dtype in DType::ALL {
        let count = 8;
        let tile = format!("tile<{count}x{dtype}>");
        Kernel {
            name: format!("select_{dtype}"),
            comment: "Where the condition holds the first, else the second; bits as they are."
                .to_string(),
            inputs: &[dtype, dtype, DType::Bool],
            result: dtype,
            count,
            body: format!("%r = select %c, %a, %b : {tile}"),
            runs: vec!["x=edges(8, 1), y=random(8, 5), z=random(8, 7)".to_string()],
        }
        .write(&mut text);
        let literal = match dtype.class() {
            Class::Bool => "true",
            Class::Signed => "-2",
            Class::Unsigned => "200",
            Class::Float => "-0.3",
        };
        Kernel {
            name: format!("masked_load_{dtype}"),
            comment: "Without the mask the other value, here a constant.".to_string(),
            inputs: &[DType::Bool],
            result: dtype,
            count,
            body: format!(
                "%k = constant value={dtype}({literal}) : {tile}
  %r = load %o, %i, mask=%a, other=%k : {tile}"
            ),
            runs: vec!["x=random(8, 7)".to_string()],
        }
        .write(&mut text);
    }
    text
}

/// A warp moves vectors of every data type: through global and shared memory and from lane to lane.
fn vector_moves() -> String {
    let mut text = LANE_COMMANDS.to_string();
    for &dtype in DType::ALL {
        let width = (16 / dtype.bytes()).min(8);
        let (align, count, last) = (width * dtype.bytes(), 32 * width, width - 1);
        let vector = format!("tile<{width}x{dtype}>");
        let _ = write!(
            text,
            "
; Vectors of {align} bytes: each lane takes those of the opposite lane, then exchanges.
func @vectors_{dtype} lane warps=1 (%x: ptr<{dtype}> divisor=16, %o: ptr<{dtype}> write divisor=16, %q: ptr<{dtype}> write) {{
  %lane = lane_id : i32
  %w = constant value=i32({width}) : i32
  %at = mul %lane, %w : i32
  %v = lane_load %x, %at, align={align} : {vector}
  %s = alloc offset=0, count={count} : ptr<{dtype}, shared>
  lane_store %s, %at, %v, align={align}
  barrier
  %mask = constant value=i32(31) : i32
  %opposite = sub %mask, %lane : i32
  %from = mul %opposite, %w : i32
  %u = lane_load %s, %from, align={align} : {vector}
  %y = shuffle_xor %u, lane_mask=3 : {vector}
  lane_store %o, %at, %y, align={align}
  %e = extract %y, index={last} : {dtype}
  %three = constant value=i32(3) : i32
  %source = and %lane, %three : i32
  %z = shuffle_index %e, %source : {dtype}
  lane_store %q, %lane, %z, align={}
}}
; run: @vectors_{dtype}(x=random({count}, 1), o=zeros({count}), q=zeros(32)) grid=1
",
            dtype.bytes()
        );
    }
    text
}

/// Path below `tests/filetests` and text of each generated file, without results.
pub fn generate() -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut put = |name: String, text: String| {
        files.insert(format!("elementwise/{name}.bir"), text);
    };
    macro_rules! unary {
        ($($Family:ident $commands:ident),*) => { $(
            for op in $Family::ALL {
                let text = unary($commands, op.mnemonic(), op.accepts(), op.summary());
                put(op.mnemonic().to_string(), text);
            }
        )* };
    }
    unary!(UnaryOp COMMANDS, Function COMMANDS, Approximate APPROXIMATE_COMMANDS);
    BinaryOp::ALL
        .iter()
        .for_each(|&op| put(op.mnemonic().to_string(), binary(op)));
    TernaryOp::ALL
        .iter()
        .for_each(|&op| put(op.mnemonic().to_string(), ternary(op)));
    CompareOp::ALL
        .iter()
        .for_each(|&op| put(op.mnemonic().to_string(), compare(op)));
    DType::ALL
        .iter()
        .for_each(|&from| put(format!("cast_{from}"), cast(from)));
    put("bitcast".to_string(), bitcast());
    put("moves".to_string(), moves());
    files.insert("lanes/vector_moves.bir".to_string(), vector_moves());
    files
}
