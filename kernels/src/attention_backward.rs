//! The gradients of attention: of queries by a loop over keys, of keys and values by a loop over queries. Each sum is a chain
//! in ascending order, so the bits follow no tile size, and nothing is added by atomics.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::attention::Shape;
use crate::setting::{Settable, Setting, check_shape, ensure};
use crate::space;

/// What the gradient of each output adds to each logit of its row: `ROWS` rows a program.
#[kernel(ROWS = 16, grid = out.extent(0).div_ceil(ROWS))]
pub fn attention_deltas<T: Float, const D: usize, #[meta(8..=64)] const ROWS: usize>(
    out: Tensor<T, 2>,
    gradient: Tensor<T, 2>,
    deltas: TensorMut<f32, 1>,
) {
    let row = program_id(0) * ROWS;
    let rows = |of: Tensor<T, 2>| of.tile([ROWS, D]).at_offset((row, 0)).load().to::<f32>();
    store(
        deltas.tile([ROWS]).at_offset([row]),
        (rows(out) * rows(gradient)).sum(1),
    );
}

/// Of `M` queries of a head a program, `N` keys at a time.
#[kernel(M = 64, N = 64, grid = (q.extent(1).div_ceil(M), q.extent(0)))]
pub fn attention_queries<
    T: Float,
    const D: usize,
    #[meta(32..=128)] const M: usize,
    #[meta(32..=128)] const N: usize,
    const CAUSAL: bool,
>(
    q: Tensor<T, 3>,
    k: Tensor<T, 3>,
    v: Tensor<T, 3>,
    gradient: Tensor<T, 3>,
    log_sums: Tensor<f32, 2>,
    deltas: Tensor<f32, 2>,
    out: TensorMut<T, 3>,
    scale: f32,
) {
    let (row, head) = (program_id(0) * M, program_id(1));
    let [query, above] =
        [q, gradient].map(|it| it.select(0, head).tile([M, D]).at_offset((row, 0)).load());
    let of_rows = |of: Tensor<f32, 2>| {
        of.select(0, head)
            .tile([M])
            .at_offset([row])
            .load()
            .expand(1)
    };
    let [log_sum, delta] = [log_sums, deltas].map(of_rows);
    let end = if CAUSAL {
        minimum(row + M, q.extent(1))
    } else {
        q.extent(1)
    };
    let mut sum = zeros::<f32>([M, D]);
    for first in range(0, end).step(N).stages(2) {
        let [key, value] =
            [k, v].map(|it| it.select(0, head).tile([N, D]).at_offset((first, 0)).load());
        let logits = dot(query, key.transpose(), zeros::<f32>([M, N])) * scale;
        let mut share = exp(logits - log_sum);
        // Keys beyond the last are zeros, of which a share may be infinite.
        let column = first + arange(0, N);
        let is_seen = match CAUSAL {
            true => column.expand(0) <= (row + arange(0, M)).expand(1),
            false => (column < k.extent(1)).expand(0),
        };
        share = select(is_seen, share, 0.0);
        let slope = share * (dot(above, value.transpose(), zeros::<f32>([M, N])) - delta);
        sum = dot(slope.to::<T>(), key, sum);
    }
    store(
        out.select(0, head).tile([M, D]).at_offset((row, 0)),
        (sum * scale).to::<T>(),
    );
}

/// Of `N` keys and values of a head a program, `M` queries at a time.
#[kernel(M = 64, N = 64, grid = (q.extent(1).div_ceil(N), q.extent(0)))]
pub fn attention_keys<
    T: Float,
    const D: usize,
    #[meta(32..=128)] const M: usize,
    #[meta(32..=128)] const N: usize,
    const CAUSAL: bool,
>(
    q: Tensor<T, 3>,
    k: Tensor<T, 3>,
    v: Tensor<T, 3>,
    gradient: Tensor<T, 3>,
    log_sums: Tensor<f32, 2>,
    deltas: Tensor<f32, 2>,
    key_gradient: TensorMut<T, 3>,
    value_gradient: TensorMut<T, 3>,
    scale: f32,
) {
    let (column, head) = (program_id(0) * N, program_id(1));
    let [key, value] = [k, v].map(|it| {
        it.select(0, head)
            .tile([N, D])
            .at_offset((column, 0))
            .load()
    });
    let (mut of_keys, mut of_values) = (zeros::<f32>([N, D]), zeros::<f32>([N, D]));
    // Queries before the tile that holds the first key do not see it.
    let start = if CAUSAL { column / M * M } else { scalar(0) };
    for first in range(start, q.extent(1)).step(M).stages(2) {
        let [query, above] =
            [q, gradient].map(|it| it.select(0, head).tile([M, D]).at_offset((first, 0)).load());
        let of_rows = |of: Tensor<f32, 2>| {
            of.select(0, head)
                .tile([M])
                .at_offset([first])
                .load()
                .expand(0)
        };
        let logits = dot(key, query.transpose(), zeros::<f32>([N, M])) * scale;
        let mut share = exp(logits - of_rows(log_sums));
        if CAUSAL {
            let (row, column) = (first + arange(0, M), column + arange(0, N));
            share = select(column.expand(1) <= row.expand(0), share, 0.0);
        }
        of_values = dot(share.to::<T>(), above, of_values);
        let slope = share * (dot(value, above.transpose(), zeros::<f32>([N, M])) - of_rows(deltas));
        of_keys = dot(slope.to::<T>(), query, of_keys);
    }
    let place = |of: TensorMut<T, 3>| of.select(0, head).tile([N, D]).at_offset((column, 0));
    store(place(key_gradient), (of_keys * scale).to::<T>());
    store(place(value_gradient), of_values.to::<T>());
}

/// What attention gave, its gradient, and the logarithms that it gave.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a, T> {
    /// What [`crate::attention()`] gave, `[heads, tokens, width]`.
    pub out: &'a Buffer<T>,
    /// The gradient of that, likewise.
    pub gradient: &'a Buffer<T>,
    /// The natural logarithms of the sums of exponentials, `[heads, tokens]`.
    pub log_sums: &'a Buffer<f32>,
}

/// The gradients of queries, keys and values, `[heads, tokens, width]`, added in `f32`. Shares and slopes are rounded to `T` before
/// products. A setting's `block` is the queries, its `width` the keys of a tile.
///
/// # Errors
/// What a launch refuses; of `f16` and `bf16` GPUs without Hopper's tensor cores.
pub fn launch<T: Float + Number>(
    [q, k, v]: [&Buffer<T>; 3],
    given: Given<'_, T>,
    gradients: [&mut Buffer<T>; 3],
    shape: Shape,
    setting: &Setting,
) -> Result<()> {
    let [heads, tokens, width] = plain(shape)?;
    let causal = shape.causal;
    let Given {
        out,
        gradient,
        log_sums,
    } = given;
    let [of_queries, of_keys, of_values] = gradients;
    let lens = [q, k, v, out, gradient].map(Buffer::len).into_iter();
    let written = [&of_queries, &of_keys, &of_values].map(|it| it.len());
    for len in lens.chain(written) {
        check_shape(len, &[heads, tokens, width])?;
    }
    check_shape(log_sums.len(), &[heads, tokens])?;
    if heads * tokens == 0 {
        return Ok(());
    }
    ensure(width.is_power_of_two() && width >= 16, || {
        format!("{width} is no power of two from 16, as the width of attention is")
    })?;
    let device = q.device().clone();
    let (rows, all) = ([heads * tokens, width], [heads, tokens, width]);
    let mut deltas = Buffer::<f32>::zeros(&device, heads * tokens)?;
    let kernel = attention_deltas::<T>()
        .d(width)
        .determinism(setting.determinism);
    let views = (
        out.view(rows)?,
        gradient.view(rows)?,
        deltas.view_mut([heads * tokens])?,
    );
    kernel.launch(&device, (), views)?;
    let (m, n) = (setting.block_or(64), setting.width_or(64));
    let scale = (1.0 / (width as f64).sqrt()) as f32;
    let [log_sums, deltas] = [log_sums, &deltas].map(|it| it.view([heads, tokens]));
    let (log_sums, deltas) = (log_sums?, deltas?);
    let (q, k, v, gradient) = (
        q.view(all)?,
        k.view(all)?,
        v.view(all)?,
        gradient.view(all)?,
    );
    let kernel = attention_queries::<T>().d(width).m(m).n(n).causal(causal);
    let target = of_queries.view_mut(all)?;
    let arguments = (q, k, v, gradient, log_sums, deltas, target, scale);
    kernel.by(setting).launch(&device, (), arguments)?;
    let kernel = attention_keys::<T>().d(width).m(m).n(n).causal(causal);
    let targets = (of_keys.view_mut(all)?, of_values.view_mut(all)?);
    let arguments = (
        q, k, v, gradient, log_sums, deltas, targets.0, targets.1, scale,
    );
    kernel.by(setting).launch(&device, (), arguments)
}

/// The extents of heads that each have their own keys, as many as queries.
fn plain(shape: Shape) -> Result<[usize; 3]> {
    let own = shape.heads == shape.key_heads && shape.queries == shape.keys;
    ensure(own && !shape.tokens_first, || {
        "gradients are those of heads with their own keys, as many as queries, and with their tokens behind each other".to_string()
    })?;
    let heads = shape.sequences.saturating_mul(shape.heads);
    Ok([heads, shape.queries, shape.width])
}

/// The settings worth trying.
pub fn space() -> Vec<Setting> {
    let kernel = attention_keys::<f32>();
    let [queries, keys] = ["M", "N"].map(|it| kernel.range_of(it));
    space::space(&queries, &keys, &[None], |queries, keys| queries * keys)
}
