//! Kernels of Exactile as operations of candle: [`Op1`] and [`Op2`] run a launch on the memory of a tensor, without copies.
//!
//! On the CPU that is the golden run. On a GPU, with the feature `cuda`, the launch goes into the stream of candle and gives the same
//! bits.
//!
//! ```
//! use candle_core::{Device, Tensor};
//! use exactile::prelude::*;
//! use exactile_candle::Op1;
//!
//! #[kernel(BLOCK = 64)]
//! fn square<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
//!     let at = program_id(0) * BLOCK + arange(0, BLOCK);
//!     let inside = at < n;
//!     let x = load(x + at).mask(inside);
//!     store(out + at, x * x).mask(inside);
//! }
//!
//! let square = Op1::<f32, _>::new("square", |queue, x, extents, out| {
//!     let n: usize = extents.iter().product();
//!     square().launch(queue, n.div_ceil(64), (x, out, n as i32))
//! });
//! let x = Tensor::new(&[1f32, 2.0, 3.0], &Device::Cpu)?;
//! assert_eq!(x.apply_op1_no_bwd(&square)?.to_vec1::<f32>()?, [1.0, 4.0, 9.0]);
//! # Ok::<(), candle_core::Error>(())
//! ```

#![warn(missing_docs)]

#[cfg(feature = "cuda")]
mod gpu;

use std::marker::PhantomData;
use std::sync::OnceLock;

use candle_core::{CpuStorage, CustomOp1, CustomOp2, Error, Layout, Result, Shape, WithDType};
use exactile::{BufferSlice, BufferSliceMut, Device, Stream};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A type of numbers that both have: `u8`, `u32`, `i16`, `i32`, `i64`, `f16`, `bf16`, `f32` and `f64`.
pub trait Number: exactile::Number + WithDType + IntoBytes + FromBytes + Immutable + OnGpu {}
impl<T: exactile::Number + WithDType + IntoBytes + FromBytes + Immutable + OnGpu> Number for T {}

#[cfg(feature = "cuda")]
pub use gpu::OnGpu;

/// A type that candle has on GPUs; in a build without them any.
#[cfg(not(feature = "cuda"))]
pub trait OnGpu {}
#[cfg(not(feature = "cuda"))]
impl<T> OnGpu for T {}

/// The extents of the result.
type Extents<const COUNT: usize> = Box<dyn Fn([&[usize]; COUNT]) -> Vec<usize> + Send + Sync>;

/// An operation on one tensor, which a launch computes: a [`CustomOp1`].
///
/// The launch is given the queue to use, the numbers of the tensor in row-major order, its extents, and where the result goes. Errors of
/// programs, such as an access out of bounds, are told by the operation on the CPU, and by
/// [`Device::synchronize`] on a GPU. There is no gradient.
pub struct Op1<T, F> {
    name: &'static str,
    launch: F,
    extents: Extents<1>,
    number: PhantomData<fn(T)>,
}

/// An operation on two tensors of one type, which a launch computes: a [`CustomOp2`]. Otherwise as [`Op1`].
pub struct Op2<T, F> {
    name: &'static str,
    launch: F,
    extents: Extents<2>,
    number: PhantomData<fn(T)>,
}

impl<T, F> Op1<T, F>
where
    F: Fn(&Stream, BufferSlice<'_, T>, &[usize], BufferSliceMut<'_, T>) -> exactile::Result<()>,
{
    /// An operation whose result has the extents of its tensor.
    pub fn new(name: &'static str, launch: F) -> Self {
        Self {
            name,
            launch,
            extents: Box::new(|[x]| x.to_vec()),
            number: PhantomData,
        }
    }

    /// The same with other extents of the result.
    #[must_use]
    pub fn with_extents(
        mut self,
        extents: impl Fn(&[usize]) -> Vec<usize> + Send + Sync + 'static,
    ) -> Self {
        self.extents = Box::new(move |[x]| extents(x));
        self
    }
}

impl<T, F> Op2<T, F>
where
    F: Fn(
        &Stream,
        [BufferSlice<'_, T>; 2],
        [&[usize]; 2],
        BufferSliceMut<'_, T>,
    ) -> exactile::Result<()>,
{
    /// An operation whose result has the extents of its first tensor.
    pub fn new(name: &'static str, launch: F) -> Self {
        Self {
            name,
            launch,
            extents: Box::new(|[x, _]| x.to_vec()),
            number: PhantomData,
        }
    }

    /// The same with other extents of the result.
    #[must_use]
    pub fn with_extents(
        mut self,
        extents: impl Fn([&[usize]; 2]) -> Vec<usize> + Send + Sync + 'static,
    ) -> Self {
        self.extents = Box::new(extents);
        self
    }
}

/// The device of all golden runs, which keeps their code.
fn cpu() -> &'static Device {
    static CPU: OnceLock<Device> = OnceLock::new();
    CPU.get_or_init(Device::cpu)
}

/// How many elements there are.
fn count(extents: &[usize]) -> Result<usize> {
    let mut extents = extents.iter();
    let count = extents.try_fold(1_usize, |count, &extent| count.checked_mul(extent));
    count.ok_or_else(|| Error::Msg("the result has too many elements".to_string()))
}

/// Where the numbers of a tensor are in its storage.
fn range(name: &str, layout: &Layout) -> Result<std::ops::Range<usize>> {
    match layout.contiguous_offsets() {
        Some((start, end)) => Ok(start..end),
        None => Err(Error::Msg(format!(
            "`{name}` takes tensors in row-major order: call `contiguous` first"
        ))),
    }
}

fn on_host<'a, T: Number>(
    name: &str,
    storage: &'a CpuStorage,
    layout: &Layout,
) -> Result<BufferSlice<'a, T>> {
    let numbers = T::cpu_storage_as_slice(storage)?;
    Ok(BufferSlice::of_slice(&numbers[range(name, layout)?]))
}

/// What the launch makes of memory for the result.
fn golden<T: Number>(
    extents: Vec<usize>,
    launch: impl FnOnce(&Stream, BufferSliceMut<'_, T>) -> exactile::Result<()>,
) -> Result<(CpuStorage, Shape)> {
    let mut out = vec![T::default(); count(&extents)?];
    let run = || {
        let stream = cpu().stream()?;
        launch(&stream, BufferSliceMut::of_slice(&mut out))?;
        stream.synchronize()
    };
    run().map_err(Error::wrap)?;
    Ok((T::to_cpu_storage_owned(out), Shape::from(extents)))
}

impl<T, F> CustomOp1 for Op1<T, F>
where
    T: Number,
    F: Fn(&Stream, BufferSlice<'_, T>, &[usize], BufferSliceMut<'_, T>) -> exactile::Result<()>,
{
    fn name(&self) -> &'static str {
        self.name
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let x = on_host(self.name, storage, layout)?;
        golden((self.extents)([layout.dims()]), |queue, out| {
            (self.launch)(queue, x, layout.dims(), out)
        })
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        storage: &candle_core::CudaStorage,
        layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        let extents = (self.extents)([layout.dims()]);
        let place = gpu::Place::of(storage)?;
        let result = place.result(extents, |out| {
            place.lend(self.name, storage, layout, |x| {
                place.lend_result(out, |out| {
                    (self.launch)(&place.queue, x, layout.dims(), out)
                })
            })
        })?;
        Ok(result)
    }
}

impl<T, F> CustomOp2 for Op2<T, F>
where
    T: Number,
    F: Fn(
        &Stream,
        [BufferSlice<'_, T>; 2],
        [&[usize]; 2],
        BufferSliceMut<'_, T>,
    ) -> exactile::Result<()>,
{
    fn name(&self) -> &'static str {
        self.name
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        y: &CpuStorage,
        y_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let dims = [x_layout.dims(), y_layout.dims()];
        let x = on_host(self.name, x, x_layout)?;
        let y = on_host(self.name, y, y_layout)?;
        golden((self.extents)(dims), |queue, out| {
            (self.launch)(queue, [x, y], dims, out)
        })
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        x: &candle_core::CudaStorage,
        x_layout: &Layout,
        y: &candle_core::CudaStorage,
        y_layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        let dims = [x_layout.dims(), y_layout.dims()];
        let place = gpu::Place::of(x)?;
        place.result((self.extents)(dims), |out| {
            place.lend(self.name, x, x_layout, |x| {
                place.lend(self.name, y, y_layout, |y| {
                    place.lend_result(out, |out| (self.launch)(&place.queue, [x, y], dims, out))
                })
            })
        })
    }
}
