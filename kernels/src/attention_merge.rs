//! What attention by parts of the keys comes to, and how rows end.

use exactile::prelude::*;

/// What rows are of the parts of their keys: `PARTS` parts of `ROWS` rows at a time, which are all where they are `WHOLE`. Parts are
/// scaled to the greatest power of two of their row, which is exact, and added by the balanced tree.
#[kernel(ROWS = 1, PARTS = 8, WHOLE = false, grid = out.extent(0).div_ceil(ROWS))]
pub fn merge_parts<
    T: Float,
    const D: usize,
    #[meta(1..=16)] const ROWS: usize,
    #[meta(4..=32)] const PARTS: usize,
    const WHOLE: bool,
>(
    totals: Tensor<f32, 3>,
    sums: Tensor<f32, 2>,
    powers: Tensor<f32, 2>,
    out: TensorMut<T, 2>,
    log_sums: Option<TensorMut<f32, 1>>,
) {
    let row = program_id(0) * ROWS;
    let of = |array: Tensor<f32, 2>, part: Scalar<i64>| {
        array.tile([PARTS, ROWS]).at_offset((part, row)).load()
    };
    let all = |part: Scalar<i64>| {
        let totals = totals.tile([PARTS, ROWS, D]);
        let totals = totals.at_offset((part, row, 0)).load();
        (totals, of(sums, part), of(powers, part).other(LOWEST))
    };
    let mut most = full::<f32>([ROWS], LOWEST);
    let (sum, total) = match WHOLE {
        true => {
            let fits = sums.extent(0) <= PARTS;
            device_assert(fits, "a tile of all parts has as many as there are");
            let (totals, sums, powers) = all(scalar(0));
            most = powers.max(0);
            let kept = power_of_two(powers - most.expand(0));
            ((sums * kept).sum(0), (totals * kept.expand(2)).sum(0))
        }
        false => {
            for part in range(0, sums.extent(0)).step(PARTS) {
                most = maximum(most, of(powers, part).other(LOWEST).max(0));
            }
            let mut sum = sum_accumulator::<f32>([ROWS]);
            let mut total = sum_accumulator::<f32>([ROWS, D]);
            for part in range(0, sums.extent(0)).step(PARTS).stages(2) {
                let (totals, sums, powers) = all(part);
                let kept = power_of_two(powers - most.expand(0));
                sum.add(sums * kept, 0);
                total.add(totals * kept.expand(2), 0);
            }
            (sum.finish(), total.finish())
        }
    };
    store(
        out.tile([ROWS, D]).at_offset((row, 0)),
        (total * inverse(sum).expand(1)).to::<T>(),
    );
    if let Some(log_sums) = log_sums {
        store(log_sums.tile([ROWS]).at_offset([row]), logarithm(sum, most));
    }
}

/// What sums of products are multiplied by; zero where no key was seen.
#[device]
pub(crate) fn inverse(sum: Tile<f32>) -> Tile<f32> {
    select(sum > 0.0, 1.0 / sum, 0.0)
}

/// The natural logarithm of `sum * 2^power`, by the exponent and the fraction of the product, so that it does not follow how
/// the two share it.
#[device]
pub(crate) fn logarithm(sum: Tile<f32>, power: Tile<f32>) -> Tile<f32> {
    let bits = sum.bitcast::<u32>();
    let exponent = (bits >> 23).to::<i32>() - 127;
    let fraction = ((bits & 0x7f_ffff) | 0x3f80_0000).bitcast::<f32>();
    let logarithm = log2(fraction) + (exponent.to::<f32>() + power);
    let finite = select(
        sum > 0.0,
        logarithm * std::f64::consts::LN_2,
        f64::NEG_INFINITY,
    );
    select((sum >= 0.0) & (sum < f64::INFINITY), finite, sum)
}

/// Below the logits of every row that attention is defined for.
pub(crate) const LOWEST: f64 = -4_194_304.0;
