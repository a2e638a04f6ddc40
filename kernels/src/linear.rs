//! A layer of a network: rows times a weight, with a bias and an activation, in one pass.

use exactile::prelude::*;
use exactile::{Number, Result, TensorView};

use crate::activation::{Activation, activated};
use crate::product::{self, GROUP, TERMS, each_tile, grid, stages_of};
use crate::setting::{Settable, Setting, check_shape};

/// A tile `[BM, BN]` a program; `FUNCTION` is the place of the activation among
/// [`Activation::ALL`], or a number beyond them for none. The bias is of columns, or of rows where all is `TURNED`.
#[kernel(BM = ..=128, BN = ..=256, BK = TERMS, grid = grid(&out, [BM, BN]))]
pub fn linear<
    T: Float,
    const FUNCTION: usize,
    const TURNED: bool,
    #[meta(64..=256)] const BM: usize,
    #[meta(128..=256)] const BN: usize,
    const BK: usize,
>(
    x: Tensor<T, 2>,
    weight: Tensor<T, 2>,
    bias: Option<Tensor<T, 1>>,
    out: TensorMut<T, 2>,
) {
    let [row, column] = tile_origin([BM, BN], GROUP);
    let left = x.tile([BM, BK]).at_offset((row, 0));
    let right = weight.tile([BK, BN]).at_offset((0, column));
    let function = Activation::ALL.get(FUNCTION);
    let stages = stages_of([BM, BN], BK);
    let mut sum = dot_along(left, right, x.extent(1), stages, zeros::<f32>([BM, BN]));
    if let Some(bias) = bias {
        let (extent, place, axis) = [(BN, column, 0), (BM, row, 1)][usize::from(TURNED)];
        let bias = bias.tile([extent]).at_offset([place]).load();
        sum += bias.to::<f32>().expand(axis);
    }
    if let Some(&function) = function {
        sum = sum.map_slices(1, 16, |part| activated(part, function));
    }
    store(out.tile([BM, BN]).at_offset([row, column]), sum.to::<T>());
}

/// The same by programs that take tiles in turns, with a bias of columns.
#[kernel(BM = 128, BN = 256, BK = TERMS)]
pub fn persistent_linear<
    T: Float,
    const FUNCTION: usize,
    #[meta(64..=256)] const BM: usize,
    #[meta(128..=256)] const BN: usize,
    const BK: usize,
>(
    x: Tensor<T, 2>,
    weight: Tensor<T, 2>,
    bias: Option<Tensor<T, 1>>,
    out: TensorMut<T, 2>,
) {
    let extents = [out.extent(0), out.extent(1)];
    each_tile(extents, [BM, BN], true, |[row, column]| {
        let left = x.tile([BM, BK]).at_offset((row, 0));
        let right = weight.tile([BK, BN]).at_offset((0, column));
        let stages = stages_of([BM, BN], BK);
        let mut sum = dot_along(left, right, x.extent(1), stages, zeros::<f32>([BM, BN]));
        if let Some(bias) = bias {
            let bias = bias.tile([BN]).at_offset([column]).load();
            sum += bias.to::<f32>().expand(0);
        }
        if let Some(&function) = Activation::ALL.get(FUNCTION) {
            sum = sum.map_slices(1, 16, |part| activated(part, function));
        }
        store(out.tile([BM, BN]).at_offset([row, column]), sum.to::<T>());
    });
}

/// `activation(x weight^T + bias)` of `x` `[m, k]` and `weight` `[n, k]`, rounded once from `f32`. A setting's `block` and
/// `width` are the rows and the columns of a tile. Of `f16` and `bf16` the products are those of Hopper's tensor cores, which
/// other GPUs refuse. Where there are more tiles than multiprocessors, programs take them in turns; without a setting two groups
/// of warps do, where the activation is not [`Activation::Relu`].
///
/// # Errors
/// What a launch refuses.
pub fn launch<T: Float + Number>(
    [x, weight]: [&Buffer<T>; 2],
    bias: Option<&Buffer<T>>,
    activation: Option<Activation>,
    out: &mut Buffer<T>,
    [m, n, k]: [usize; 3],
    setting: &Setting,
) -> Result<()> {
    check_shape(x.len(), &[m, k])?;
    check_shape(weight.len(), &[n, k])?;
    check_shape(out.len(), &[m, n])?;
    if let Some(bias) = bias {
        check_shape(bias.len(), &[n])?;
    }
    let device = out.device().clone();
    if product::has_few_rows(m, setting, &device) {
        let turned = [weight.view([n, k])?, x.view_strided([k, m], [1, k])?];
        return few_rows(turned, bias, activation, out, setting);
    }
    // One group of warps computes what takes many steps of its sums while the other multiplies.
    let is_long = activation.is_some_and(|function| function != Activation::Relu);
    let is_own = Setting::default().at(setting.determinism) == *setting;
    let both = Some(product::pingpong().at(setting.determinism)).filter(|_| is_long && is_own);
    let mut both = both.iter().chain([setting]);
    let turns = both.find_map(|it| product::turns_of_halves::<T>(&device, [m, n, k], it));
    let setting = &product::of_turns(turns.as_ref(), setting, 256);
    let arguments = (
        x.view([m, k])?,
        weight.view_strided([k, n], [1, k])?,
        bias.map(|bias| bias.view([n])).transpose()?,
        out.view_mut([m, n])?,
    );
    if let Some((programs, _)) = turns {
        let kernel = persistent_linear::<T>().function(place(activation));
        let kernel = setting
            .tiles(kernel, |it, bm| it.bm(bm), |it, bn| it.bn(bn))
            .by(setting);
        return kernel.launch(&device, programs, arguments);
    }
    let kernel = linear::<T>().function(place(activation)).turned(false);
    let kernel = setting
        .tiles(kernel, |it, bm| it.bm(bm), |it, bn| it.bn(bn))
        .by(setting);
    kernel.launch(&device, (), arguments)
}

/// The product of a weight `[n, k]` and the columns `[k, m]` of few rows, stored as rows: tiles are as narrow as the rows are
/// few, or narrower while that gives more multiprocessors a program.
pub(crate) fn few_rows<T: Float + Number>(
    [weight, columns]: [TensorView<'_, T, 2>; 2],
    bias: Option<&Buffer<T>>,
    activation: Option<Activation>,
    out: &mut Buffer<T>,
    setting: &Setting,
) -> Result<()> {
    let [n, m] = [weight.extents()[0], columns.extents()[1]];
    let device = out.device().clone();
    let kernel = linear::<T>().function(place(activation)).turned(true);
    let mut columns_of_tile = m.next_power_of_two().max(16);
    let programs = |columns: usize| n.div_ceil(64) * m.div_ceil(columns);
    while columns_of_tile > 16 && programs(columns_of_tile / 2) <= device.multiprocessors() {
        columns_of_tile /= 2;
    }
    // Of narrow tiles long steps keep as much under way as the memory can bring.
    let terms = if columns_of_tile > 64 {
        TERMS
    } else {
        2 * TERMS
    };
    let kernel = kernel.bm(64).bn(columns_of_tile).bk(terms).by(setting);
    let bias = bias.map(|bias| bias.view([n])).transpose()?;
    let out = out.view_strided_mut([n, m], [1, n])?;
    kernel.launch(&device, (), (weight, columns, bias, out))
}

fn place(activation: Option<Activation>) -> usize {
    activation.map_or(Activation::ALL.len(), |function| function as usize)
}

/// What it computes, in `f64` and rounded once.
pub fn reference(
    [x, weight]: [&[f32]; 2],
    bias: Option<&[f32]>,
    activation: Option<Activation>,
    [m, n, k]: [usize; 3],
) -> Vec<f32> {
    let element = |(row, column): (usize, usize)| {
        let terms = x[row * k..][..k].iter().zip(&weight[column * k..][..k]);
        let sum: f64 = terms.map(|(&x, &w)| f64::from(x) * f64::from(w)).sum();
        (sum + bias.map_or(0.0, |bias| f64::from(bias[column]))) as f32
    };
    let places = (0..m).flat_map(|row| (0..n).map(move |column| (row, column)));
    let sums: Vec<f32> = places.map(element).collect();
    match activation {
        Some(activation) => crate::activation::reference(activation, &sums),
        None => sums,
    }
}

/// The settings worth trying.
pub fn space() -> Vec<Setting> {
    product::space()
}
