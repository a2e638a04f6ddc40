//! Attention of many queries over the keys and values of their heads, by tensor cores, in one pass.

use exactile::prelude::*;
use exactile::{Result, Schedule, bf16};

use crate::setting::{Setting, check_shape, ensure, extent};

/// `M` queries of a head a program, `N` keys at a time, in base 2: `scale` is that of the logits times the logarithm of e.
///
/// A logit times `scale` is rounded to a multiple of 2^-13, and a weight is the nearest `bf16` of two to that power. Rows
/// are kept in range by powers of two, which change no rounding, so that the bits do not follow `N`: docs/numerics.md says
/// where. The check of tile orders cannot know it, which `order` tells.
#[kernel(M = 128, N = 128, order = "tile")]
pub fn attention<
    const D: usize,
    const M: usize,
    const N: usize,
    const CAUSAL: bool,
    const WHOLE: bool,
>(
    q: Ptr<bf16>,
    k: Ptr<bf16>,
    v: Ptr<bf16>,
    out: PtrMut<bf16>,
    log_sums: Option<PtrMut<f32>>,
    tokens: i32,
    rows: i32,
    scale: f32,
) {
    let (head, first_row) = (program_id(1) * tokens, program_id(0) * M);
    let row = first_row + arange(0, M);
    let places = (head + row).expand(1) * D + arange(0, D).expand(0);
    let queries = load(q + places).mask((row < tokens).expand(1)).other(0.0);
    let mut most = full::<f32>([M], LOWEST);
    let mut sum = zeros::<f32>([M, 8]);
    let mut total = zeros::<f32>([M, D]);
    let keys_seen = if CAUSAL {
        minimum(first_row + M, tokens)
    } else {
        tokens.to::<i64>()
    };
    for first in range(0, keys_seen).step(N).stages(2) {
        let column = first + arange(0, N);
        let key = head + column;
        let inside = (key >= 0)
            & (key
                < if WHOLE {
                    rows.to::<i64>()
                } else {
                    head + tokens
                });
        let (of_keys, of_values) = (inside.expand(0), inside.expand(1));
        let keys = load(k + key.expand(0) * D + arange(0, D).expand(1))
            .mask(of_keys)
            .other(0.0);
        let values = load(v + key.expand(1) * D + arange(0, D).expand(0))
            .mask(of_values)
            .other(0.0);
        let mut logits = dot(queries, keys, zeros::<f32>([M, N]));
        if CAUSAL {
            // Only tiles on the diagonal hold keys that a query does not see.
            if first + N > first_row + 1 {
                logits = select(column.expand(0) <= row.expand(1), logits, f64::NEG_INFINITY);
            }
        }
        if !WHOLE {
            logits = select((column < tokens).expand(0), logits, f64::NEG_INFINITY);
        }
        let power = floor(logits.max(1) * scale);
        let next = select(power > most + SLACK, power, most);
        let weights = exp2_weight(fma(logits, scale, (1536.0 - next).expand(1))).to::<bf16>();
        let kept = power_of_two(most - next).expand(1);
        sum = dot(weights, full::<bf16>([N, 8], 1.0), sum * kept);
        total = dot(weights, values, total * kept);
        most = next;
    }
    let sum = sum.pick(1, 0);
    let mean = total * select(sum > 0.0, 1.0 / sum, 0.0).expand(1);
    store(out + places, mean.to::<bf16>()).mask((row < tokens).expand(1));
    if let Some(log_sums) = log_sums {
        store(log_sums + head + row, logarithm(sum, most)).mask(row < tokens);
    }
}

/// The natural logarithm of `sum * 2^power`, by the exponent and the fraction of the product, so that it does not follow how
/// the two share it.
#[device]
fn logarithm(sum: Tile<f32>, power: Tile<f32>) -> Tile<f32> {
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
const LOWEST: f64 = -4_194_304.0;

/// How far a logit may pass the power of two that a row is scaled by before that follows: sums grow by as much, and a loop
/// that multiplies them only where it must does so in few iterations.
const SLACK: f64 = 8.0;

/// What attention is of: `heads` of all sequences together, each with `tokens` queries, keys and values of `width` elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Heads of all sequences.
    pub heads: usize,
    /// Tokens of a head. Fastest where the keys that are taken at a time divide them.
    pub tokens: usize,
    /// Elements of a query, a key and a value: a power of two from 16.
    pub width: usize,
    /// Whether a query sees the keys up to its own place alone.
    pub causal: bool,
}

/// The attention of `q` over `k` and `v`, all `[heads, tokens, width]`, with the usual scale, the inverse root of the width.
/// `log_sums`, `[heads, tokens]`, gets the natural logarithms of the sums of exponentials. A setting's `block` is the queries
/// of a program, its `width` the keys that are taken at a time; below 128 elements iterations do not overlap unless it says so,
/// since the second product is too short to hide the weights, and causal programs take 64 keys. Rows whose logits are all below -2^21, in base 2, are zero.
///
/// # Errors
/// What a launch refuses.
pub fn launch(
    [q, k, v]: [&Buffer<bf16>; 3],
    out: &mut Buffer<bf16>,
    log_sums: Option<&mut Buffer<f32>>,
    shape: Shape,
    setting: &Setting,
) -> Result<()> {
    let Shape {
        heads,
        tokens,
        width,
        causal,
    } = shape;
    for len in [q.len(), k.len(), v.len(), out.len()] {
        check_shape(len, &[heads, tokens, width])?;
    }
    if let Some(log_sums) = &log_sums {
        check_shape(log_sums.len(), &[heads, tokens])?;
    }
    if heads * tokens == 0 {
        return Ok(());
    }
    // Fewer keys leave registers for two programs a multiprocessor.
    let short = width < 128 && causal && setting.width_or(0) == 0;
    let (m, n) = (
        setting.block_or(128),
        setting.width_or(if short { 64 } else { 128 }),
    );
    for extent in [width, m, n] {
        ensure(extent.is_power_of_two() && extent >= 16, || {
            format!(
                "{extent} is no power of two from 16, as the width and the tiles of attention are"
            )
        })?;
    }
    let whole = tokens.is_multiple_of(n);
    let kernel = attention()
        .d(width)
        .causal(causal)
        .whole(whole)
        .m(m)
        .n(n)
        .schedule(Schedule {
            overlap: setting.schedule.overlap.or((width < 128).then_some(1)),
            stages: setting.schedule.stages.or(short.then_some(3)),
            ..setting.schedule
        })
        .determinism(setting.determinism);
    let scale = std::f64::consts::LOG2_E / (width as f64).sqrt();
    let grid = (tokens.div_ceil(m), heads);
    let device = out.device().clone();
    let (tokens, rows) = (extent(tokens)?, extent(heads * tokens)?);
    let arguments = (q, k, v, out, log_sums, tokens, rows, scale as f32);
    kernel.launch(&device, grid, arguments)
}

/// The settings worth trying.
pub fn space() -> Vec<Setting> {
    let setting = |(block, width, warps, stages): (usize, usize, u32, u32)| Setting {
        block,
        width,
        schedule: Schedule {
            stages: Some(stages),
            ..Schedule::AUTO.warps(warps)
        },
        ..Setting::default()
    };
    let tiles = [
        (128, 128, 8, 2),
        (64, 128, 4, 2),
        (128, 64, 8, 3),
        (128, 128, 8, 3),
        (64, 64, 4, 2),
    ];
    let in_order = [(128, 128, 8, 2), (64, 64, 4, 2)].map(setting);
    let in_order = in_order.map(|setting| Setting {
        schedule: setting.schedule.overlap(1),
        ..setting
    });
    [&tiles.map(setting)[..], &in_order].concat()
}
