//! The activations of neural networks, element by element, in `f32` and rounded once.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::setting::{Settable, Setting, check_shape, extent};
use crate::space;

/// A function of each element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Activation {
    /// `1 / (1 + e^-x)`.
    Sigmoid,
    /// `x` times its sigmoid.
    Silu,
    /// The hyperbolic tangent.
    Tanh,
    /// `x (1 + erf(x / sqrt 2)) / 2`.
    Gelu,
    /// The same by `tanh(sqrt(2 / pi) (x + 0.044715 x^3))` in the place of erf.
    GeluTanh,
    /// `log(1 + e^x)`.
    Softplus,
    /// `x`, or 0 where it is negative.
    Relu,
}

impl Activation {
    /// Every activation.
    pub const ALL: [Self; 7] = [
        Self::Sigmoid,
        Self::Silu,
        Self::Tanh,
        Self::Gelu,
        Self::GeluTanh,
        Self::Softplus,
        Self::Relu,
    ];

    /// The name of its kernel.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sigmoid => "sigmoid",
            Self::Silu => "silu",
            Self::Tanh => "tanh",
            Self::Gelu => "gelu",
            Self::GeluTanh => "gelu_tanh",
            Self::Softplus => "softplus",
            Self::Relu => "relu",
        }
    }
}

/// `BLOCK` elements a program; `FUNCTION` is the place of the activation among [`Activation::ALL`].
#[kernel(BLOCK = 1024, grid = n.div_ceil(BLOCK))]
pub fn activation<T: Float, const FUNCTION: usize, #[meta(512..=8192)] const BLOCK: usize>(
    x: Ptr<T>,
    out: PtrMut<T>,
    n: i32,
) {
    let offsets = program_id(0) * BLOCK + arange(0, BLOCK);
    let mask = offsets < n;
    let value = activated(load(x + offsets).mask(mask).to(), Activation::ALL[FUNCTION]);
    store(out + offsets, value.to::<T>()).mask(mask);
}

#[device]
pub(crate) fn activated(x: Tile<f32>, activation: Activation) -> Tile<f32> {
    match activation {
        Activation::Sigmoid => sigmoid(x),
        Activation::Silu => silu(x),
        Activation::Tanh => tanh(x),
        Activation::Gelu => gelu(x),
        Activation::GeluTanh => {
            let cubic = fma(0.044_715 * x, x * x, x);
            x * 0.5 * (1.0 + tanh(cubic * 0.797_884_560_802_865_4))
        }
        Activation::Softplus => softplus(x),
        Activation::Relu => relu(x),
    }
}

/// The gate of a network: the silu of `gate` times `x`. `BLOCK` elements a program.
#[kernel(BLOCK = 1024, grid = n.div_ceil(BLOCK))]
pub fn swiglu<T: Float, #[meta(512..=8192)] const BLOCK: usize>(
    gate: Ptr<T>,
    x: Ptr<T>,
    out: PtrMut<T>,
    n: i32,
) {
    let offsets = program_id(0) * BLOCK + arange(0, BLOCK);
    let mask = offsets < n;
    let opened = silu(load(gate + offsets).mask(mask).to::<f32>());
    let value = opened * load(x + offsets).mask(mask).to::<f32>();
    store(out + offsets, value.to::<T>()).mask(mask);
}

/// The gradients of the gate and of `x`, from that of what [`swiglu()`] gave. `BLOCK` elements a program.
#[kernel(BLOCK = 1024, grid = n.div_ceil(BLOCK))]
pub fn swiglu_backward<T: Float, #[meta(512..=8192)] const BLOCK: usize>(
    gate: Ptr<T>,
    x: Ptr<T>,
    gradient: Ptr<T>,
    gate_gradient: PtrMut<T>,
    x_gradient: PtrMut<T>,
    n: i32,
) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let mask = at < n;
    let [gate, x, gradient] = [gate, x, gradient].map(|p| load(p + at).mask(mask).to::<f32>());
    let share = sigmoid(gate);
    let slope = share * (1.0 + gate * (1.0 - share));
    store(gate_gradient + at, (gradient * x * slope).to::<T>()).mask(mask);
    store(x_gradient + at, (gradient * gate * share).to::<T>()).mask(mask);
}

/// `out = activation(x)`, element by element. A setting's `block` is the elements of a program.
pub fn launch<T: Float + Number>(
    activation: Activation,
    x: &Buffer<T>,
    out: &mut Buffer<T>,
    setting: &Setting,
) -> Result<()> {
    let n = out.len();
    check_shape(x.len(), &[n])?;
    let kernel = self::activation::<T>()
        .function(activation as usize)
        .block(setting.block_or(1024))
        .by(setting);
    let device = out.device().clone();
    kernel.launch(&device, (), (x, out, extent(n)?))
}

/// `out = silu(gate) x`, element by element. A setting's `block` is the elements of a program.
pub fn launch_swiglu<T: Float + Number>(
    gate: &Buffer<T>,
    x: &Buffer<T>,
    out: &mut Buffer<T>,
    setting: &Setting,
) -> Result<()> {
    let n = out.len();
    check_shape(gate.len(), &[n])?;
    check_shape(x.len(), &[n])?;
    let kernel = swiglu::<T>().block(setting.block_or(1024)).by(setting);
    let device = out.device().clone();
    kernel.launch(&device, (), (gate, x, out, extent(n)?))
}

/// The gradients of the gate and of `x`. A setting's `block` is the elements of a program.
pub fn launch_swiglu_backward<T: Float + Number>(
    [gate, x, gradient]: [&Buffer<T>; 3],
    [gate_gradient, x_gradient]: [&mut Buffer<T>; 2],
    setting: &Setting,
) -> Result<()> {
    let n = gradient.len();
    for len in [gate.len(), x.len(), gate_gradient.len(), x_gradient.len()] {
        check_shape(len, &[n])?;
    }
    let kernel = swiglu_backward::<T>()
        .block(setting.block_or(1024))
        .by(setting);
    let device = gradient.device().clone();
    let arguments = (gate, x, gradient, gate_gradient, x_gradient, extent(n)?);
    kernel.launch(&device, (), arguments)
}

/// What an activation computes, in `f64`.
pub fn reference(activation: Activation, x: &[f32]) -> Vec<f32> {
    let value = |x: f64| match activation {
        Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::Tanh => x.tanh(),
        Activation::Gelu => x * 0.5 * (1.0 + erf_of(x * std::f64::consts::FRAC_1_SQRT_2)),
        Activation::GeluTanh => {
            let cubic = x + 0.044_715 * x * x * x;
            x * 0.5 * (1.0 + (cubic * (2.0 / std::f64::consts::PI).sqrt()).tanh())
        }
        Activation::Softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
        Activation::Relu => x.max(0.0),
    };
    x.iter().map(|&x| value(f64::from(x)) as f32).collect()
}

/// Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26; off by at most 1.5e-7.
fn erf_of(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.327_591_1 * x.abs());
    let coefficients = [
        1.061_405_429,
        -1.453_152_027,
        1.421_413_741,
        -0.284_496_736,
        0.254_829_592,
    ];
    let sum = coefficients.iter().fold(0.0, |sum, c| sum * t + c);
    (1.0 - sum * t * (-x * x).exp()).copysign(x)
}

/// What the gate computes.
pub fn swiglu_reference(gate: &[f32], x: &[f32]) -> Vec<f32> {
    let opened = reference(Activation::Silu, gate);
    opened.iter().zip(x).map(|(opened, x)| opened * x).collect()
}

/// The gradients of a gate and of `x`.
pub fn swiglu_backward_reference(gate: f32, x: f32, gradient: f32) -> [f32; 2] {
    let [gate, x, gradient] = [gate, x, gradient].map(f64::from);
    let share = 1.0 / (1.0 + (-gate).exp());
    let slope = share * (1.0 + gate * (1.0 - share));
    [
        (gradient * x * slope) as f32,
        (gradient * gate * share) as f32,
    ]
}

/// The settings worth trying.
pub fn space() -> Vec<Setting> {
    let blocks = activation::<f32>().range_of("BLOCK");
    space::space(&blocks, &[0], &[None], |block, _| block)
}
