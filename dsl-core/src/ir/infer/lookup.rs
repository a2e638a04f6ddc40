//! Type rules of ops that look elements up: counts and gathers.

use super::expect::Rules;
use crate::ir::{DType, Shape, Type, op};

/// The most bins: several copies of their counters still make a tile.
pub const MAX_BINS: i64 = 1 << 20;

impl Rules<'_> {
    fn integers(self, what: &str, ty: Type) -> Result<(), String> {
        if self.number(ty)?.is_integer() {
            return Ok(());
        }
        Err(format!(
            "{what} of `{}` are `{ty}`, expected integers",
            self.name()
        ))
    }

    /// The counts of `0..bins`.
    pub(super) fn histogram(self, op: &op::Histogram) -> Result<Type, String> {
        let (ty, bins) = (self.ty(op.x), op.bins);
        self.integers("elements", ty)?;
        self.mask(ty, op.mask)?;
        if bins > MAX_BINS {
            return Err(format!(
                "`histogram` with {bins} bins, expected at most {MAX_BINS}: count parts of them"
            ));
        }
        let extent = usize::try_from(bins).unwrap_or(0);
        let shape = Shape::new(&[extent]);
        let shape = shape.map_err(|reason| format!("`histogram` with {bins} bins: {reason}"))?;
        Ok(Type::tile(DType::I32, shape))
    }

    /// The number type of `x` in the shape of the indices.
    pub(super) fn gather(self, op: &op::Gather) -> Result<Type, String> {
        let (x, indices, axis) = (self.ty(op.x), self.ty(op.indices), op.axis);
        self.number(x)?;
        self.integers("indices", indices)?;
        if axis.index() >= x.shape.rank() {
            return Err(format!("axis {} is out of range for `{x}`", axis.0));
        }
        let fits = x.shape.rank() == indices.shape.rank()
            && x.shape.without(axis.index()) == indices.shape.without(axis.index());
        if !fits {
            return Err(format!(
                "indices of `gather` are `{indices}`, expected the shape of `{x}` but for axis {}",
                axis.0
            ));
        }
        Ok(x.with_shape(indices.shape))
    }
}
