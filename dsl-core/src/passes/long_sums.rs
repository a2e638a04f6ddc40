//! Shortens long sums of indices, such as those that an unrolled loop makes of `offsets += step`.
//!
//! What is made of indices alone is made anew wherever it is used, so that the thousandth offset of such
//! a chain would take a thousand additions. Integers wrap: a tile and many numbers that are the same for
//! all elements are the tile and one number.

use std::collections::BTreeMap;

use super::rewrite::{Rewriter, rewrite};
use crate::ir::{BinaryOp, Func, Inst, Op, Shape, Value, op};

/// The most ops on the way to what is not made where it is used: walks along such ops may recurse.
pub const LONGEST_CHAIN: u32 = 128;

/// A tile that differs from another one by the same number everywhere.
#[derive(Clone, Copy)]
struct Link {
    op: BinaryOp,
    before: Value,
    /// The tile that repeats the number.
    number: Value,
    root: Value,
    length: u32,
    /// The sum of all numbers from the root on, where it was made.
    total: Option<Value>,
}

/// Adds up the numbers of sums that are longer than [`LONGEST_CHAIN`].
pub fn shorten_sums(func: &mut Func) {
    let mut links = BTreeMap::new();
    rewrite(func, &mut |rewriter, inst| {
        let (result, mut link) = link(rewriter, &links, inst)?;
        if link.length <= LONGEST_CHAIN {
            links.insert(result, link);
            return None;
        }
        let before = total(rewriter, &links, link.before);
        let number = number(rewriter, link.number);
        let builder = &mut rewriter.builder;
        let total = builder.binary(link.op, before, number);
        let repeated = builder.splat(total, builder.ty(result).shape);
        let shortened = builder.add(link.root, repeated);
        link.length = LONGEST_CHAIN;
        link.total = Some(total);
        links.insert(shortened, link);
        Some(vec![shortened])
    });
}

fn link(rewriter: &Rewriter, links: &BTreeMap<Value, Link>, inst: Inst) -> Option<(Value, Link)> {
    let data = rewriter.builder.func().inst(inst);
    let Op::Binary(op::Binary { op, lhs, rhs }) = data.op else {
        return None;
    };
    let result = data.results[0];
    let ty = rewriter.builder.ty(result);
    let integer = ty.dtype()?.is_integer();
    let adds = matches!(op, BinaryOp::Add | BinaryOp::Sub);
    let (before, number) = if adds && is_uniform(rewriter, rhs) {
        (lhs, rhs)
    } else if op == BinaryOp::Add && is_uniform(rewriter, lhs) {
        (rhs, lhs)
    } else {
        return None;
    };
    if !integer || ty.is_scalar() {
        return None;
    }
    let known = links.get(&before);
    let link = Link {
        op,
        before,
        number,
        root: known.map_or(before, |known| known.root),
        length: known.map_or(0, |known| known.length) + 1,
        total: None,
    };
    Some((result, link))
}

fn is_uniform(rewriter: &Rewriter, value: Value) -> bool {
    matches!(
        rewriter.definition(value),
        Some(Op::Constant(_) | Op::Splat(_))
    )
}

/// The number that a tile repeats.
fn number(rewriter: &mut Rewriter, repeated: Value) -> Value {
    match rewriter.definition(repeated) {
        Some(&Op::Splat(op::Splat { x })) => x,
        Some(&Op::Constant(op::Constant { value })) => {
            rewriter.builder.filled(value, Shape::SCALAR)
        }
        Some(_) | None => unreachable!("broken invariant: see `is_uniform`"),
    }
}

/// The sum of all numbers from the root of a link on.
fn total(rewriter: &mut Rewriter, links: &BTreeMap<Value, Link>, last: Value) -> Value {
    let mut way = Vec::new();
    let mut value = last;
    let mut sum = None;
    while let Some(link) = links.get(&value) {
        if link.total.is_some() {
            sum = link.total;
            break;
        }
        way.push(*link);
        value = link.before;
    }
    for link in way.into_iter().rev() {
        let number = number(rewriter, link.number);
        let builder = &mut rewriter.builder;
        sum = Some(match (sum, link.op) {
            (Some(sum), op) => builder.binary(op, sum, number),
            (None, BinaryOp::Sub) => {
                let zero = builder.constant_like(number, 0.0);
                builder.sub(zero, number)
            }
            (None, _) => number,
        });
    }
    sum.expect("broken invariant: a long sum has links")
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::{LONGEST_CHAIN, shorten_sums};
    use crate::passes::tidy;
    use crate::text::parse;
    use crate::verify;

    #[test]
    fn long_sums_are_one_sum_and_others_stay() {
        let most = i64::from(LONGEST_CHAIN);
        for length in [most - 1, 3 * most] {
            let mut source = "func @f block (%x: ptr<i32>, %y: ptr<i32> write, %n: i32) {
               %i = arange start=0, end=8 : tile<8xi64>
               %t = splat %n : tile<8xi32>
               %s0 = load %x, %i : tile<8xi32>\n"
                .to_string();
            for link in 0..length {
                let op = if link % 3 == 0 { "sub" } else { "add" };
                writeln!(source, "%s{} = {op} %s{link}, %t : tile<8xi32>", link + 1)
                    .expect("strings take it");
            }
            writeln!(source, "store %y, %i, %s{length}\n}}").expect("strings take it");
            let mut func = parse(&source, "f.bir").expect("parses");
            shorten_sums(&mut func);
            tidy(&mut func);
            let text = verify::block(func).expect("is valid").to_string();
            let links = text.matches(" : tile<8xi32>").count() as i64 - 2;
            assert_eq!(links, if length > most { 1 } else { length }, "{text}");
        }
    }
}
