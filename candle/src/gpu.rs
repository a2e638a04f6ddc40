//! Launches on the memory of candle's tensors on a GPU, in the stream of candle.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use candle_core::cuda_backend::{CudaDType, CudaDevice};
use candle_core::{CudaStorage, Error, Layout, Result, Shape, cuda_backend::cudarc};
use cudarc::driver::{CudaSlice, CudaStream, DeviceRepr, ValidAsZeroBits};
use exactile::interop::cudarc::{lend, lend_mut, stream};
use exactile::{BufferSlice, BufferSliceMut, Device, Stream};

use crate::{Number, count, range};

/// A type that candle has on GPUs.
pub trait OnGpu: CudaDType + DeviceRepr + ValidAsZeroBits {}
impl<T: CudaDType + DeviceRepr + ValidAsZeroBits> OnGpu for T {}

/// The GPUs that an operation ran on. They stay open, and with them their errors, pools and compiled kernels.
static OPENED: Mutex<BTreeMap<usize, Device>> = Mutex::new(BTreeMap::new());

fn opened(ordinal: usize) -> exactile::Result<Device> {
    // A panic leaves the table whole.
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(device) = opened.get(&ordinal) {
        return Ok(device.clone());
    }
    let device = Device::cuda(ordinal)?;
    opened.insert(ordinal, device.clone());
    Ok(device)
}

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
        let device = opened(theirs.context().ordinal()).map_err(Error::wrap)?;
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

#[cfg(test)]
mod tests {
    use exactile::prelude::*;

    use super::opened;

    #[kernel]
    fn one(x: PtrMut<f32>) {
        store(x, 1.0);
    }

    #[test]
    fn a_gpu_stays_open_between_operations() -> exactile::Result<()> {
        let gpu = opened(0)?;
        let mut x = Buffer::<f32>::zeros(&gpu, 1)?;
        one().run(&gpu, 1, (&mut x,))?;
        let compiled = gpu.compiled_kernels();
        assert!(compiled > 0);
        drop((x, gpu));
        assert_eq!(opened(0)?.compiled_kernels(), compiled);
        Ok(())
    }
}
