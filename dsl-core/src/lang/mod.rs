//! The surface: handles that a kernel's body computes with, each of which appends to the trace.
//!
//! The body of a kernel runs on the host. [`Tile`], [`Scalar`] and the pointers are `Copy` and
//! compare with nothing by themselves; the `#[kernel]` macro rewrites comparisons and control flow
//! to the traits in [`operators`] and [`control`]. An error never panics: it is recorded with the
//! user's location, the result is poisoned, and all errors of a kernel come at once.

pub mod accumulator;
pub mod approximate;
pub mod atomic;
pub mod bessel;
pub mod bits;
mod block_scaled;
mod bodies;
mod branch;
pub mod carry;
mod context;
pub mod control;
pub mod debug;
pub mod dot_along;
pub mod element;
mod elementwise;
mod escape;
mod exit;
pub mod floats;
mod for_loop;
mod frame;
pub mod functions;
mod given;
pub mod grid;
pub mod hints;
pub mod identity;
mod in_out;
pub mod inline_ptx;
pub mod kernel;
pub mod lengths;
mod logic;
pub mod lookup;
pub mod map_elementwise;
pub mod math;
pub mod memory;
pub mod narrow;
pub mod normal;
pub mod operands;
pub mod operators;
mod outcome;
mod overflow;
mod parameter;
mod plain;
pub mod ptr;
pub mod random;
pub mod reduce;
mod repeat;
pub mod rounded;
pub mod scan;
pub mod shapes;
pub mod sort;
pub mod tensor;
pub mod tile;
mod tuples;
mod while_loop;
mod wide;

pub use carry::Carry;
pub use context::{Handle, is_tracing};
pub use control::range;
pub use element::{Bits, Element, Float, Int, LiteralOf, Numeric, SingleFloat};
pub use identity::KernelIdentity;
pub use in_out::{InOut, TensorInOut};
pub use kernel::{KernelHeader, KernelSource, LoopOrder};
pub use memory::{load, store};
pub use parameter::{KernelArguments, KernelParameter, OptionalParameter};
pub use ptr::{Ptr, PtrMut, PtrMutTile, PtrTile};
pub use tensor::{Tensor, TensorMut};
pub use tile::{
    DeviceValue, IntoTile, Scalar, Tile, arange, full, num_programs, program_id, require, scalar,
    zeros,
};

/// What the output of the macros names.
pub mod generated {
    pub use super::kernel::{KernelHeader, KernelSource, LoopOrder};
    pub use super::parameter::{KernelArguments, KernelParameter};
    pub use super::{Scalar, control, hints, operators};
}

/// What a kernel's body names.
pub mod prelude {
    pub use super::accumulator::{
        Accumulator, ExtremeAccumulator, LogSumExpAccumulator, SumAccumulator, accumulator,
        log_sum_exp_accumulator, max_accumulator, min_accumulator, sum_accumulator,
    };
    pub use super::approximate::{
        approx_cos, approx_divide, approx_exp, approx_exp2, approx_exp10, approx_log, approx_log2,
        approx_log10, approx_pow, approx_reciprocal, approx_rsqrt, approx_sigmoid, approx_sin,
        approx_tan, approx_tanh,
    };
    pub use super::atomic::{
        AtomicAdd, AtomicExchange, AtomicInt, AtomicNumber, atomic_add, atomic_and,
        atomic_compare_exchange, atomic_exchange, atomic_fetch_add, atomic_fetch_and,
        atomic_fetch_max, atomic_fetch_min, atomic_fetch_or, atomic_fetch_xor, atomic_load,
        atomic_max, atomic_min, atomic_or, atomic_store, atomic_xor,
    };
    pub use super::bessel::{bessel_jn, bessel_yn};
    pub use super::bits::{
        absolute_difference, average_ceiling, average_floor, byte_permute, count_ones,
        find_first_set, leading_zeros, mulhi, reverse_bits, rotate_left, rotate_right,
        trailing_zeros,
    };
    pub use super::debug::{device_assert, device_print};
    pub use super::dot_along::dot_along;
    pub use super::floats::{
        fdim, ilogb, is_finite, is_infinite, is_nan, ldexp, logb, round_to_tf32, saturate, sign_bit,
    };
    pub use super::functions::{
        atan2, clamp, copysign, fmod, gelu, gelu_tanh, hypot, nextafter, pow, relu, remainder,
        silu, softmax, softplus,
    };
    pub use super::grid::{swizzle_2d, tile_origin};
    pub use super::lengths::{cos_pi, norm, rcbrt, rhypot, rnorm, sin_pi};
    pub use super::lookup::{gather, histogram, histogram_masked};
    pub use super::map_elementwise::map_elementwise;
    pub use super::math::*;
    pub use super::narrow::{
        pack_bytes, pack_e2m1, pack_int4, unpack_bytes, unpack_e2m1, unpack_int4,
    };
    pub use super::normal::{erfc_inv, erfcx, normal_cdf, normal_cdf_inverse};
    pub use super::random::{
        philox4x32, philox4x32_rounds, philox4x64, rand, rand4x, randint, randint4x, randint64,
        randn, randn4x, uniforms_to_normals, word_to_uniform,
    };
    pub use super::reduce::{reduce, reduce_masked};
    pub use super::rounded::{
        add_rounded, div_rounded, fma_rounded, mul_rounded, sqrt_rounded, sub_rounded,
    };
    pub use super::scan::{reverse_scan, scan};
    pub use super::shapes::{cat, reduce_keep};
    pub use super::tensor::{Tensor, TensorMut};
    pub use super::{
        Bits, Carry, Element, Float, InOut, Int, Numeric, Ptr, PtrMut, PtrMutTile, PtrTile, Scalar,
        SingleFloat, TensorInOut, Tile, arange, full, load, num_programs, program_id, range,
        require, scalar, store, zeros,
    };
    pub use crate::ir::{Cache, MemoryOrder, Precision, Scope};
    pub use crate::semantics::derived::directed::Rounding;
}
