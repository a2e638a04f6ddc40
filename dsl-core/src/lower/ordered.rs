//! Comparisons of what sorts move: keys, and sources that move along.

use crate::builder::Builder;
use crate::ir::{DType, Value};

/// Whether the keys of `a` come before those of `b`, the first key first.
pub(super) fn less(builder: &mut Builder, keys: usize, a: &[Value], b: &[Value]) -> Value {
    let mut less = None;
    for (&a, &b) in a[..keys].iter().zip(b).rev() {
        let own = builder.lt(a, b);
        less = Some(match less {
            Some(later) => {
                let equal = builder.eq(a, b);
                let later = builder.and(equal, later);
                builder.or(own, later)
            }
            None => own,
        });
    }
    less.expect("broken invariant: a sort has a key")
}

/// All of `on_true` where the condition holds, else all of `on_false`.
pub(super) fn pick(
    builder: &mut Builder,
    condition: Value,
    on_true: &[Value],
    on_false: &[Value],
) -> Vec<Value> {
    let pairs = on_true.iter().zip(on_false);
    let picked = pairs.map(|(&a, &b)| builder.select(condition, a, b));
    picked.collect()
}

/// The one number of an element if devices have its minimum as one instruction.
fn one(builder: &Builder, element: &[Value]) -> Option<Value> {
    let &[value] = element else {
        return None;
    };
    let bits = builder.ty(value).dtype().map(DType::bits);
    bits.is_some_and(|bits| bits <= 32).then_some(value)
}

/// The element that comes first.
pub(super) fn lesser(builder: &mut Builder, keys: usize, a: &[Value], b: &[Value]) -> Vec<Value> {
    if let (Some(a), Some(b)) = (one(builder, a), one(builder, b)) {
        return vec![builder.minimum(a, b)];
    }
    let less = less(builder, keys, a, b);
    pick(builder, less, a, b)
}

/// The element that comes first, and the other one.
pub(super) fn ordered(
    builder: &mut Builder,
    keys: usize,
    a: &[Value],
    b: &[Value],
) -> (Vec<Value>, Vec<Value>) {
    if let (Some(a), Some(b)) = (one(builder, a), one(builder, b)) {
        return (vec![builder.minimum(a, b)], vec![builder.maximum(a, b)]);
    }
    let less = less(builder, keys, a, b);
    (pick(builder, less, a, b), pick(builder, less, b, a))
}
