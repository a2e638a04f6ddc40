//! Instructions keep the file, line and column that wrote them.

use exactile::prelude::*;

#[kernel]
fn placed(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let mut sum = zeros::<f32>([8]);
    let mut left = n;
    while left > 3 {
        sum += load(x + left + arange(0, 8));
        left -= 1;
    }
    for step in 0..n {
        if step > 5 {
            sum = halved(sum) * 2.0;
        }
    }
    store(out + arange(0, 8), sum.exp());
}

#[device]
fn halved(x: Tile<f32>) -> Tile<f32> {
    x / maximum(x, 7.0)
}

/// What stands at the place of each instruction.
fn places() -> Vec<String> {
    let func = placed().trace().expect("traces");
    let source: Vec<&str> = include_str!("lines.rs").lines().collect();
    let insts = func.all_insts().into_iter();
    let places = insts.map(|inst| {
        let (op, loc) = (func.op(inst).mnemonic(), &func.inst(inst).loc);
        assert!(loc.file.ends_with("lines.rs"), "{op}: {loc:?}");
        let line = source[loc.line as usize - 1];
        format!("{op} | {}", &line[loc.column as usize - 1..])
    });
    places.collect()
}

#[test]
fn instructions_know_their_line_and_column() {
    let want = [
        "constant | zeros::<f32>([8]);",
        "while | while left > 3 {",
        "constant | > 3 {",
        "gt | > 3 {",
        "yield | while left > 3 {",
        "cast | x + left + arange(0, 8));",
        "arange | arange(0, 8));",
        "splat | x + left + arange(0, 8));",
        "add | x + left + arange(0, 8));",
        "load | load(x + left + arange(0, 8));",
        "add | sum += load(x + left + arange(0, 8));",
        "constant | left -= 1;",
        "sub | left -= 1;",
        "yield | while left > 3 {",
        "constant | 0..n {",
        "cast | 0..n {",
        "for | for step in 0..n {",
        "constant | > 5 {",
        "gt | > 5 {",
        "if | if step > 5 {",
        "constant | maximum(x, 7.0)",
        "splat | maximum(x, 7.0)",
        "maximum | maximum(x, 7.0)",
        "div | x / maximum(x, 7.0)",
        "constant | halved(sum) * 2.0;",
        "splat | halved(sum) * 2.0;",
        "mul | halved(sum) * 2.0;",
        "yield | if step > 5 {",
        "yield | if step > 5 {",
        "yield | for step in 0..n {",
        "arange | arange(0, 8), sum.exp());",
        "exp | exp());",
        "store | store(out + arange(0, 8), sum.exp());",
    ];
    assert_eq!(places(), want);
}
