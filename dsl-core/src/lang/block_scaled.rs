//! Block-scaled numbers: narrow floats of which some along an axis share a scale, as the OCP Microscaling formats have
//! them.

use super::element::{Float, SingleFloat};
use super::math::select;
use super::operators::{Compare, Comparison};
use super::tile::Tile;
use crate::lang::context;

impl<T: SingleFloat> Tile<T> {
    /// The numbers that these and the scales of their blocks stand for, as `U`: `x[.., i, ..] 2^(scale[.., i / n, ..] -
    /// 127)` along `axis`, with `n` from the extents, 32 in the OCP formats. A scale is a byte of the format E8M0: the
    /// exponent with a bias of 127, and NaN for 255.
    ///
    /// ```text
    /// let a = a.block_scaled::<bf16>(a_scales, 1);    // [m, k] and [m, k / 32]
    /// let b = b.block_scaled::<bf16>(b_scales, 0);    // [k, n] and [k / 32, n]
    /// sum = dot(a, b, sum);
    /// ```
    ///
    /// Each number is multiplied by its scale in `f32`, then rounded to `U`. Of `F8E4M3` and `F8E5M2` the product is
    /// exact, but for magnitudes from 2^128 on, which are infinite; and so is the result in `f32`. In `bf16` it is
    /// exact where the magnitude is at least 2^-126 or a multiple of 2^-133. A product of matrices by
    /// [`Precision::Ieee`](crate::ir::Precision::Ieee) of `f32` then is the chain over the exact numbers. This is not
    /// the function of tensor cores that apply scales to sums.
    ///
    /// # Errors
    /// Scales whose shape is not that of the tile with the extent along `axis` divided.
    #[track_caller]
    pub fn block_scaled<U: Float>(self, scales: Tile<u8>, axis: usize) -> Tile<U> {
        let (shape, blocks) = (self.shape(), scales.shape());
        let fits = shape.len() == blocks.len()
            && axis < shape.len()
            && (0..shape.len()).all(|at| at == axis || shape[at] == blocks[at])
            && shape[axis] >= blocks[axis];
        if !fits {
            if !shape.is_empty() && !blocks.is_empty() {
                context::report(
                    std::panic::Location::caller(),
                    format!(
                        "`block_scaled` along axis {axis}: scales of shape {blocks:?} for numbers of shape {shape:?}"
                    ),
                );
            }
            return self.to::<f32>().to::<U>();
        }
        let exponent = scales.to::<u32>();
        // Of 0 the number is subnormal.
        let least = exponent.compare(0, Comparison::Equal);
        let bits = select(least, 0x0040_0000, exponent << 23);
        let is_nan = exponent.compare(255, Comparison::Equal);
        let factor = select(is_nan, 0x7fc0_0000, bits).bitcast::<f32>();
        let mut each = shape.clone();
        each[axis] = blocks[axis];
        each.insert(axis + 1, shape[axis] / blocks[axis]);
        let factors = factor.expand(axis + 1).broadcast_to(each).reshape(&shape);
        (self.to::<f32>() * factors).to::<U>()
    }
}
