//! The ready products, each as a problem of its own arrays and settings.

use std::rc::Rc;

use exactile::prelude::{Float, Numeric};
use exactile::{
    Buffer, Configure, Device, F8E4M3, F8E5M2, Number, Result, TensorView, TensorViewMut, bf16, f16,
};
use exactile_core::random::Random;
use exactile_kernels as ready;
use exactile_kernels::Setting;
use exactile_kernels::activation::Activation;

use super::arrays::{Made, Plan, of_arrays, of_views};
use super::data::{Kind, numbers};
use super::shapes::product;

/// A ready product of some types.
pub(super) struct Product {
    pub(super) name: &'static str,
    /// Its types, as a title has them.
    pub(super) types: &'static str,
    /// Whether its kernel takes views, so that matrices may lie in memory in any way.
    pub(super) takes_views: bool,
    pub(super) candidates: fn() -> Vec<Setting>,
    pub(super) make: fn(&Plan) -> Made,
}

impl Product {
    /// Of matrices that may lie in any way.
    fn of(name: &'static str, types: &'static str, make: fn(&Plan) -> Made) -> Self {
        Self {
            name,
            types,
            takes_views: true,
            candidates: ready::tensor_matmul::space,
            make,
        }
    }

    /// Of matrices as the launch has them.
    fn dense(name: &'static str, types: &'static str, make: fn(&Plan) -> Made) -> Self {
        Self {
            takes_views: false,
            ..Self::of(name, types, make)
        }
    }

    /// The product that other tiles suit.
    fn matmul(types: &'static str, make: fn(&Plan) -> Made) -> Self {
        Self {
            candidates: ready::matmul::space,
            ..Self::dense("matmul", types, make)
        }
    }
}

/// All of them.
pub(super) fn products() -> Vec<Product> {
    let (mut all, bytes) = (of_wide_numbers(), of_bytes());
    all.extend(bytes);
    all
}

fn of_wide_numbers() -> Vec<Product> {
    let (of, dense) = (Product::of, Product::dense);
    vec![
        dense("tensor_matmul", "bf16", tensor_matmul::<bf16>),
        dense("tensor_matmul", "f16", tensor_matmul::<f16>),
        Product::matmul("f32", matmul::<f32, f32>),
        Product::matmul("f16", matmul::<f16, f32>),
        Product::matmul("bf16", matmul::<bf16, f32>),
        Product::matmul("f64", matmul::<f64, f64>),
        Product::matmul("f32 to f64", matmul::<f32, f64>),
        of("addmm", "bf16", addmm::<bf16>),
        of("addmm", "f16", addmm::<f16>),
        of("addmm", "f32", addmm::<f32>),
        of("linear", "bf16", linear::<bf16>),
        of("linear", "f16", linear::<f16>),
        of("linear", "f32", linear::<f32>),
        of("persistent_matmul", "bf16", persistent_matmul::<bf16>),
        of("persistent_matmul", "f16", persistent_matmul::<f16>),
        of("rows_matmul", "f32 as TF32", rows_matmul::<f32, f32>),
        of("rows_matmul", "f16 to f32", rows_matmul::<f16, f32>),
        dense("bmm", "bf16", bmm::<bf16>),
        dense("bmm", "f16", bmm::<f16>),
        dense("bmm", "f32", bmm::<f32>),
        dense("grouped_matmul", "bf16", grouped_matmul::<bf16>),
        dense("grouped_matmul", "f16", grouped_matmul::<f16>),
    ]
}

fn of_bytes() -> Vec<Product> {
    let (of, small, blocks) = (Product::of, "float8_matmul", "block_scaled_matmul");
    vec![
        of("rows_matmul", "i8 to i32", rows_matmul::<i8, i32>),
        of("rows_matmul", "u8 to u32", rows_matmul::<u8, u32>),
        of("rows_matmul", "f8e4m3 to f32", rows_matmul::<F8E4M3, f32>),
        of(small, "f8e4m3 to bf16", float8_matmul::<F8E4M3, bf16>),
        of(small, "f8e5m2 to f16", float8_matmul::<F8E5M2, f16>),
        of("scaled_matmul", "i8 to bf16", scaled_matmul::<bf16>),
        of("scaled_matmul", "i8 to f32", scaled_matmul::<f32>),
        of(
            blocks,
            "f8e4m3 to bf16",
            block_scaled_matmul::<F8E4M3, bf16>,
        ),
        of(blocks, "f8e5m2 to f32", block_scaled_matmul::<F8E5M2, f32>),
    ]
}

/// A kernel with the tile and the schedule of a setting.
macro_rules! set {
    ($kernel:expr, $setting:expr) => {{
        let (mut kernel, setting): (_, &Setting) = ($kernel, $setting);
        if setting.block > 0 {
            kernel = kernel.bm(setting.block);
        }
        if setting.width > 0 {
            kernel = kernel.bn(setting.width);
        }
        kernel.schedule(setting.schedule)
    }};
}

type Factors<'a, T> = [TensorView<'a, T, 2>; 2];

/// Arrays beside the two factors.
fn beside<T: Number>(device: &Device, given: &Option<Rc<Vec<T>>>) -> Result<Option<Buffer<T>>> {
    given
        .as_ref()
        .map(|it| Buffer::from_slice(device, it))
        .transpose()
}

/// Factors of results, of everyday size.
fn scales(seed: u64, len: usize) -> Rc<Vec<f32>> {
    Rc::new(numbers(Kind::Ordinary, seed, (len, 1)))
}

fn tensor_matmul<T: Float + Number>(plan: &Plan) -> Made {
    let shape @ [m, n, k] = plan.shape;
    of_arrays::<T, T>(plan, [m * k, k * n, m * n], move |[a, b], out, setting| {
        ready::tensor_matmul(a, b, out, shape, setting)
    })
}

fn matmul<T: Float + Number, A: Float + Number>(plan: &Plan) -> Made {
    let shape @ [m, n, k] = plan.shape;
    of_arrays::<T, A>(plan, [m * k, k * n, m * n], move |[a, b], out, setting| {
        ready::matmul(a, b, out, shape, setting)
    })
}

fn bmm<T: Float + Number>(plan: &Plan) -> Made {
    let ([m, n, k], mut random) = (plan.shape, plan.random.clone());
    let room = plan.most / product(&plan.shape).max(1);
    let batch = random.pick(&[1, 2, 3, 5]).min(room.max(1) as usize);
    let lens = [m * k, k * n, m * n].map(|len| batch * len);
    let mut made = of_arrays::<T, T>(plan, lens, move |factors, out, setting| {
        ready::bmm(factors, out, [batch, m, n, k], setting)
    });
    made.note = format!("a batch of {batch}");
    made.times = batch as u64;
    made
}

fn grouped_matmul<T: Float + Number>(plan: &Plan) -> Made {
    let ([rows, n, k], mut random) = (plan.shape, plan.random.clone());
    let groups = 1 + random.below(6);
    let mut starts: Vec<i32> = (0..=groups)
        .map(|_| random.below(rows + 1) as i32)
        .collect();
    starts.sort_unstable();
    let note = format!("rows in groups from {starts:?}");
    let lens = [rows * k, groups * k * n, rows * n];
    let mut made = of_arrays::<T, T>(plan, lens, move |[x, weights], out, setting| {
        let starts = Buffer::from_slice(out.device(), &starts)?;
        ready::grouped_matmul([x, weights], &starts, out, [rows, n, k], setting)
    });
    made.note = note;
    made
}

fn addmm<T: Float + Number>(plan: &Plan) -> Made {
    let (shape @ [m, n, _], mut random) = (plan.shape, plan.of_family.clone());
    let factors = [
        random.pick(&[1.0, -0.5, 3.0]),
        random.pick(&[0.0, 1.0, 0.3]),
    ];
    let len = random.pick(&[0, n, m * n]);
    let addend =
        (len > 0).then(|| Rc::new(numbers::<T>(plan.kind, plan.seed + 2, (len, 2 * n + 1))));
    let read = addend.is_some() && factors[1] != 0.0;
    let mut made = of_views::<T, T, _>(
        (plan, false),
        move |device| beside(device, &addend),
        move |addend, inputs, out, setting| {
            ready::addmm(inputs, addend.as_ref(), factors, out, shape, setting)
        },
        move |addend, [a, b]: Factors<'_, T>, out: TensorViewMut<'_, T, 2>, device, setting| {
            let apart = if len == n { 0 } else { n };
            let addend = addend.as_ref().filter(|_| read);
            let addend = addend.map(|it| it.view_strided([m, n], [apart, 1]));
            let kernel = set!(ready::addmm::addmm::<T>(), setting);
            kernel.launch(
                device,
                (),
                (a, b, addend.transpose()?, out, factors[0], factors[1]),
            )
        },
    );
    made.note = format!("{factors:?} times it and {len} addends");
    made
}

fn linear<T: Float + Number>(plan: &Plan) -> Made {
    let (shape @ [_, n, _], mut random) = (plan.shape, plan.of_family.clone());
    let bias = random
        .one_in(2)
        .then(|| Rc::new(numbers::<T>(plan.kind, plan.seed + 2, (n, 2 * n + 1))));
    let activation = random.one_in(2).then(|| random.pick(&Activation::ALL));
    let place = activation.map_or(Activation::ALL.len(), |it| it as usize);
    let biased = if bias.is_some() { "a bias" } else { "no bias" };
    let mut made = of_views::<T, T, _>(
        (plan, true),
        move |device| beside(device, &bias),
        move |bias, inputs, out, setting| {
            ready::linear(inputs, bias.as_ref(), activation, out, shape, setting)
        },
        move |bias, [x, weight]: Factors<'_, T>, out: TensorViewMut<'_, T, 2>, device, setting| {
            let bias = bias.as_ref().map(|it| it.view([n])).transpose()?;
            let kernel = ready::linear::linear::<T>().function(place).turned(false);
            set!(kernel, setting).launch(device, (), (x, weight, bias, out))
        },
    );
    made.note = format!(
        "{biased}, {}",
        activation.map_or("no activation", Activation::name)
    );
    made
}

fn persistent_matmul<T: Float + Number>(plan: &Plan) -> Made {
    let (shape, mut random) = (plan.shape, plan.random.clone());
    let programs = random.pick(&[1, 3, 16, 132, 500]);
    let mut made = of_views::<T, T, _>(
        (plan, false),
        |_| Ok(()),
        move |(), inputs, out, setting| ready::persistent_matmul(inputs, out, shape, setting),
        move |(), [a, b]: Factors<'_, T>, out: TensorViewMut<'_, T, 2>, device, setting| {
            let kernel = ready::persistent_matmul::persistent_matmul::<T>();
            set!(kernel, setting).launch(device, programs, (a, b, out))
        },
    );
    if plan.layouts.is_some() {
        made.note = format!("{programs} programs");
    }
    made
}

fn rows_matmul<T: Numeric + Number, A: Numeric + Number>(plan: &Plan) -> Made {
    let shape = plan.shape;
    of_views::<T, A, _>(
        (plan, true),
        |_| Ok(()),
        move |(), inputs, out, setting| ready::rows_matmul(inputs, out, shape, setting),
        move |(), [a, b]: Factors<'_, T>, out: TensorViewMut<'_, A, 2>, device, setting| {
            let kernel = set!(ready::scaled_matmul::rows_matmul::<T, A>(), setting);
            kernel.launch(device, (), (a, b, out))
        },
    )
}

fn float8_matmul<Q: Float + Number, T: Float + Number>(plan: &Plan) -> Made {
    let (shape, mut random) = (plan.shape, plan.of_family.clone());
    let (scale, promoted) = (random.pick(&[1.0, 0.5, 1e-3]), random.one_in(2));
    let mut made = of_views::<Q, T, _>(
        (plan, true),
        |_| Ok(()),
        move |(), inputs, out, setting| {
            ready::float8_matmul(inputs, (scale, promoted), out, shape, setting)
        },
        move |(), [a, b]: Factors<'_, Q>, out: TensorViewMut<'_, T, 2>, device, setting| {
            let kernel = ready::scaled_matmul::float8_matmul::<Q, T>().promoted(promoted);
            set!(kernel, setting).launch(device, (), (a, b, out, scale))
        },
    );
    let promotion = if promoted { ", promoted" } else { "" };
    made.note = format!("{scale} times it{promotion}");
    made
}

fn scaled_matmul<T: Float + Number>(plan: &Plan) -> Made {
    let shape @ [m, n, _] = plan.shape;
    let given = [m, n].map(|len| scales(plan.seed + 2, len));
    of_views::<i8, T, _>(
        (plan, true),
        move |device| on(device, &given),
        move |[rows, columns], inputs, out, setting| {
            ready::scaled_matmul(inputs, [rows, columns], out, shape, setting)
        },
        move |scales, [a, b]: Factors<'_, i8>, out: TensorViewMut<'_, T, 2>, device, setting| {
            let kernel = set!(ready::scaled_matmul::scaled_matmul::<T>(), setting);
            let [rows, columns] = scales;
            kernel.launch(device, (), (a, b, rows.view([m])?, columns.view([n])?, out))
        },
    )
}

fn block_scaled_matmul<Q: Float + Number, T: Float + Number>(plan: &Plan) -> Made {
    let shape @ [m, n, k] = plan.shape;
    let block = ready::scaled_matmul::BLOCK;
    let blocks = k.div_ceil(block);
    let given = [m, n.div_ceil(block)].map(|rows| scales(plan.seed + 2, rows * blocks));
    of_views::<Q, T, _>(
        (plan, true),
        move |device| on(device, &given),
        move |[rows, scales], inputs, out, setting| {
            ready::block_scaled_matmul(inputs, [rows, scales], out, shape, setting)
        },
        move |given, [a, b]: Factors<'_, Q>, out: TensorViewMut<'_, T, 2>, device, setting| {
            let kernel = set!(ready::scaled_matmul::block_scaled_matmul::<Q, T>(), setting);
            let rows = given[0].view([m, blocks])?;
            let scales = given[1].view([n.div_ceil(block), blocks])?;
            kernel.launch(device, (), (a, b, rows, scales, out))
        },
    )
}

/// Scales on a device.
fn on(device: &Device, given: &[Rc<Vec<f32>>; 2]) -> Result<[Buffer<f32>; 2]> {
    let [rows, columns] = given.each_ref().map(|it| Buffer::from_slice(device, it));
    Ok([rows?, columns?])
}

/// A number of its own for each plan.
pub(super) fn seed(random: &mut Random) -> u64 {
    random.bits() >> 8
}
