//! In which order a reduction combines, as data: the interpreter and the lowering read it.

use crate::ir::Order;

/// The levels of a reduction along one axis.
///
/// Every level halves the axis: it combines the elements whose indices differ in one bit alone, the
/// lower index on the left. Each aligned power-of-two range of the axis is a complete subtree, so
/// an axis may be cut at such places without changing a bit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReductionPlan {
    /// The bit of the index that each level combines, first level first.
    pub bits: Vec<u32>,
    /// Whether the levels may be taken in another order.
    pub freedom: Freedom,
}

/// What a schedule may change about a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Freedom {
    /// Nothing: the result depends on the order.
    None,
    /// The order of the levels: the combine is associative and commutative on bits.
    AnyOrder,
}

impl ReductionPlan {
    /// The plan for an axis of `extent` elements, a power of two: bit 0 first.
    pub fn new(order: Order, extent: usize) -> Self {
        Self {
            bits: (0..extent.ilog2()).collect(),
            freedom: match order {
                Order::Tree => Freedom::None,
                Order::Any => Freedom::AnyOrder,
            },
        }
    }
}
