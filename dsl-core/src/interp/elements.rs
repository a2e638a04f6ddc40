//! The elements of a value, and the elementwise ops on them.

use std::rc::Rc;

use crate::ir::op::Elementwise;
use crate::ir::{DType, Func, Value, op};
use crate::semantics;

/// The bits of each element: one entry for each, or a single entry when all are equal.
///
/// A pointer is the index of its parameter, or of the `alloc` that made it.
#[derive(Clone, Debug)]
pub(super) struct Elements(Rc<Vec<u64>>);

impl Elements {
    /// Elements that all have these bits.
    pub(super) fn uniform(bits: u64) -> Self {
        Self(Rc::new(vec![bits]))
    }

    /// One entry for each element.
    pub(super) fn new(elements: Vec<u64>) -> Self {
        Self(Rc::new(elements))
    }

    /// The bits of an element.
    pub(super) fn get(&self, index: usize) -> u64 {
        if self.0.len() == 1 {
            self.0[0]
        } else {
            self.0[index]
        }
    }

    /// The bits of the only element of a scalar.
    pub(super) fn scalar(&self) -> u64 {
        self.0[0]
    }

    /// Whether one entry stands for all elements.
    pub(super) fn is_uniform(&self) -> bool {
        self.0.len() == 1
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    /// The elements at these places.
    pub(super) fn gather(&self, places: impl Iterator<Item = usize>) -> Self {
        if self.is_uniform() {
            return self.clone();
        }
        Self::new(places.map(|place| self.0[place]).collect())
    }
}

/// Applies a function to each element.
pub(super) fn map<const N: usize>(
    operands: [Elements; N],
    apply: impl Fn([u64; N]) -> u64,
) -> Elements {
    let count = operands.iter().map(Elements::len).max().unwrap_or(1);
    let elements = (0..count).map(|index| apply(operands.each_ref().map(|x| x.get(index))));
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
    read: impl Fn(Value) -> Elements,
) -> Elements {
    match op {
        Elementwise::Unary(op::Unary { op, x }) => {
            let dtype = dtype(func, *x);
            map([read(*x)], |[x]| semantics::unary(*op, dtype, x))
        }
        Elementwise::Approximate(op::Approximate { op, x }) => {
            let dtype = dtype(func, *x);
            map([read(*x)], |[x]| semantics::approximate(*op, dtype, x))
        }
        Elementwise::Binary(op::Binary { op, lhs, rhs }) => {
            let dtype = dtype(func, *lhs);
            map([read(*lhs), read(*rhs)], |[lhs, rhs]| {
                semantics::binary(*op, dtype, lhs, rhs)
            })
        }
        Elementwise::Ternary(op::Ternary { op, a, b, c }) => {
            let dtype = dtype(func, *a);
            let operands = [read(*a), read(*b), read(*c)];
            map(operands, |[a, b, c]| {
                semantics::ternary(*op, dtype, a, b, c)
            })
        }
        Elementwise::Compare(op::Compare { op, lhs, rhs }) => {
            let dtype = dtype(func, *lhs);
            map([read(*lhs), read(*rhs)], |[lhs, rhs]| {
                u64::from(semantics::compare(*op, dtype, lhs, rhs))
            })
        }
        Elementwise::Cast(op::Cast { x }) => {
            let (from, to) = (dtype(func, *x), dtype(func, result));
            map([read(*x)], |[x]| semantics::cast(from, to, x))
        }
        Elementwise::Bitcast(op::Bitcast { x }) => {
            let (from, to) = (dtype(func, *x), dtype(func, result));
            map([read(*x)], |[x]| semantics::bitcast(from, to, x))
        }
        Elementwise::Select(op::Select {
            condition,
            on_true,
            on_false,
        }) => map(
            [read(*condition), read(*on_true), read(*on_false)],
            |[condition, on_true, on_false]| if condition != 0 { on_true } else { on_false },
        ),
    }
}
