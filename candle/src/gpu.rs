//! Launches on the memory of candle's tensors on a GPU, in the stream of candle.

use std::sync::Arc;

use candle_core::cuda_backend::{CudaDType, CudaDevice};
use candle_core::{CudaStorage, Error, Layout, Result, Shape, cuda_backend::cudarc};
use cudarc::driver::{CudaSlice, CudaStream, DeviceRepr, ValidAsZeroBits};
use exactile::interop::cudarc::{lend, lend_mut, stream};
use exactile::{BufferSlice, BufferSliceMut, Device, Stream};

use crate::{Number, count, range};

/// A type that candle has on GPUs.
pub trait OnGpu: CudaDType + DeviceRepr + ValidAsZeroBits {}
impl<T: CudaDType + DeviceRepr + ValidAsZeroBits> OnGpu for T {}

/// The GPU of a tensor.
pub(crate) struct Place {
    device: Device,
    candle: CudaDevice,
    theirs: Arc<CudaStream>,
    /// The stream of candle, for launches.
    pub(crate) queue: Stream,
}

impl Place {
    pub(crate) fn of(storage: &CudaStorage) -> Result<Self> {
        let candle = storage.device.clone();
        let theirs = candle.cuda_stream();
        let device = Device::cuda(theirs.context().ordinal()).map_err(Error::wrap)?;
        Ok(Self {
            queue: stream(&device, &theirs).map_err(Error::wrap)?,
            device,
            candle,
            theirs,
        })
    }

    /// A tensor for the result, which `launch` computes.
    pub(crate) fn result<T: Number>(
        &self,
        extents: Vec<usize>,
        launch: impl FnOnce(&mut CudaSlice<T>) -> exactile::Result<()>,
    ) -> Result<(CudaStorage, Shape)> {
        let mut out = self.candle.alloc_zeros::<T>(count(&extents)?)?;
        launch(&mut out).map_err(Error::wrap)?;
        let storage = CudaStorage::wrap_cuda_slice(out, self.candle.clone());
        Ok((storage, Shape::from(extents)))
    }

    /// Lends the numbers of a tensor to a launch.
    pub(crate) fn lend<T: Number>(
        &self,
        name: &str,
        storage: &CudaStorage,
        layout: &Layout,
        launch: impl FnOnce(BufferSlice<'_, T>) -> exactile::Result<()>,
    ) -> exactile::Result<()> {
        let refused = |error: Error| exactile::Error::Invalid(error.to_string());
        let range = range(name, layout).map_err(refused)?;
        let slice = storage.as_cuda_slice::<T>().map_err(refused)?;
        lend(&self.device, &self.theirs, slice, |numbers| {
            launch(numbers.slice(range)?)
        })
    }

    /// Lends the memory of the result.
    pub(crate) fn lend_result<T: Number>(
        &self,
        out: &mut CudaSlice<T>,
        launch: impl FnOnce(BufferSliceMut<'_, T>) -> exactile::Result<()>,
    ) -> exactile::Result<()> {
        lend_mut(&self.device, &self.theirs, out, launch)
    }
}
