//! The elements of a value, and the elementwise ops on them.

use std::rc::Rc;

use crate::entity::EntityMap;
use crate::ir::op::Elementwise;
use crate::ir::{DType, Func, Value, op};
use crate::semantics;

/// The bits of each element: one entry for each, or a single entry when all are equal.
///
/// A pointer is the index of its parameter, or of the `alloc` that made it.
#[derive(Clone, Debug)]
pub(super) enum Elements {
    /// All are equal, or there is one only.
    Uniform(u64),
    /// One entry for each.
    Each(Rc<Vec<u64>>),
}

impl Elements {
    /// Elements that all have these bits.
    pub(super) fn uniform(bits: u64) -> Self {
        Self::Uniform(bits)
    }

    /// One entry for each element.
    pub(super) fn new(elements: Vec<u64>) -> Self {
        match elements[..] {
            [bits] => Self::Uniform(bits),
            _ => Self::Each(Rc::new(elements)),
        }
    }

    /// The bits of an element.
    pub(super) fn get(&self, index: usize) -> u64 {
        match self {
            Self::Uniform(bits) => *bits,
            Self::Each(elements) => elements[index],
        }
    }

    /// The bits of the only element of a scalar.
    pub(super) fn scalar(&self) -> u64 {
        self.get(0)
    }

    /// Whether one entry stands for all elements.
    pub(super) fn is_uniform(&self) -> bool {
        matches!(self, Self::Uniform(_))
    }

    fn len(&self) -> usize {
        match self {
            Self::Uniform(_) => 1,
            Self::Each(elements) => elements.len(),
        }
    }

    /// The elements at these places.
    pub(super) fn gather(&self, places: impl Iterator<Item = usize>) -> Self {
        match self {
            Self::Uniform(bits) => Self::Uniform(*bits),
            Self::Each(elements) => Self::new(places.map(|place| elements[place]).collect()),
        }
    }
}

/// Applies a function to each element.
pub(super) fn map<const N: usize>(
    operands: [&Elements; N],
    apply: impl Fn([u64; N]) -> u64,
) -> Elements {
    let count = operands.iter().map(|x| x.len()).max().unwrap_or(1);
    if count == 1 {
        return Elements::uniform(apply(operands.map(Elements::scalar)));
    }
    let entries = operands.map(|x| match x {
        Elements::Uniform(bits) => (std::slice::from_ref(bits), 0),
        Elements::Each(elements) => (&elements[..], 1),
    });
    let elements = (0..count).map(|index| apply(entries.map(|(bits, step)| bits[index * step])));
    Elements::new(elements.collect())
}

/// The data type of a value of numbers.
pub(super) fn dtype(func: &Func, value: Value) -> DType {
    func.ty(value)
        .dtype()
        .expect("broken invariant: a verified operand is a number")
}

/// The result of an elementwise op.
pub(super) fn elementwise(
    func: &Func,
    op: Elementwise<'_>,
    result: Value,
    values: &EntityMap<Value, Elements>,
) -> Elements {
    match op {
        Elementwise::Unary(op::Unary { op, x }) => {
            let dtype = dtype(func, *x);
            map([&values[*x]], |[x]| semantics::unary(*op, dtype, x))
        }
        Elementwise::Approximate(op::Approximate { op, x }) => {
            let dtype = dtype(func, *x);
            map([&values[*x]], |[x]| semantics::approximate(*op, dtype, x))
        }
        Elementwise::Binary(op::Binary { op, lhs, rhs }) => {
            let dtype = dtype(func, *lhs);
            map([&values[*lhs], &values[*rhs]], |[lhs, rhs]| {
                semantics::binary(*op, dtype, lhs, rhs)
            })
        }
        Elementwise::Ternary(op::Ternary { op, a, b, c }) => {
            let dtype = dtype(func, *a);
            let operands = [&values[*a], &values[*b], &values[*c]];
            map(operands, |[a, b, c]| {
                semantics::ternary(*op, dtype, a, b, c)
            })
        }
        Elementwise::Compare(op::Compare { op, lhs, rhs }) => {
            let dtype = dtype(func, *lhs);
            map([&values[*lhs], &values[*rhs]], |[lhs, rhs]| {
                u64::from(semantics::compare(*op, dtype, lhs, rhs))
            })
        }
        Elementwise::Cast(op::Cast { x }) => {
            let (from, to) = (dtype(func, *x), dtype(func, result));
            map([&values[*x]], |[x]| semantics::cast(from, to, x))
        }
        Elementwise::Bitcast(op::Bitcast { x }) => {
            let (from, to) = (dtype(func, *x), dtype(func, result));
            map([&values[*x]], |[x]| semantics::bitcast(from, to, x))
        }
        Elementwise::Select(op::Select {
            condition,
            on_true,
            on_false,
        }) => map(
            [&values[*condition], &values[*on_true], &values[*on_false]],
            |[condition, on_true, on_false]| if condition != 0 { on_true } else { on_false },
        ),
        Elementwise::InlinePtx(op) => values[op.meant()].clone(),
    }
}
