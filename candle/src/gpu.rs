//! Launches on the memory of candle's tensors on a GPU, in order with the stream of candle.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use candle_core::cuda_backend::{CudaDType, CudaDevice};
use candle_core::{CudaStorage, Error, Layout, Result, Shape, cuda_backend::cudarc};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DeviceRepr, ValidAsZeroBits};
use exactile::interop::cudarc::{lend, lend_mut, stream};
use exactile::{BufferSlice, BufferSliceMut, Device, Stream};

use crate::{Number, count, range};

/// A type that candle has on GPUs.
pub trait OnGpu: CudaDType + DeviceRepr + ValidAsZeroBits {}
impl<T: CudaDType + DeviceRepr + ValidAsZeroBits> OnGpu for T {}

/// A GPU with a stream for launches: that of candle is the default one of each thread, which no other thread can wait for.
#[derive(Clone)]
struct Opened {
    device: Device,
    ours: Arc<CudaStream>,
}

/// The GPUs that an operation ran on. They stay open, and with them their errors, pools and compiled kernels.
static OPENED: Mutex<BTreeMap<usize, Opened>> = Mutex::new(BTreeMap::new());

fn opened(context: &Arc<CudaContext>) -> Result<Opened> {
    let ordinal = context.ordinal();
    // A panic leaves the table whole.
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(gpu) = opened.get(&ordinal) {
        return Ok(gpu.clone());
    }
    let gpu = Opened {
        device: Device::cuda(ordinal).map_err(Error::wrap)?,
        ours: context.new_stream().map_err(Error::wrap)?,
    };
    opened.insert(ordinal, gpu.clone());
    Ok(gpu)
}

/// The GPU of a tensor.
pub(crate) struct Place {
    gpu: Opened,
    candle: CudaDevice,
    theirs: Arc<CudaStream>,
    /// The stream for launches.
    pub(crate) queue: Stream,
}

impl Place {
    pub(crate) fn of(storage: &CudaStorage) -> Result<Self> {
        let candle = storage.device.clone();
        let theirs = candle.cuda_stream();
        let gpu = opened(theirs.context())?;
        Ok(Self {
            queue: stream(&gpu.device, &gpu.ours).map_err(Error::wrap)?,
            gpu,
            candle,
            theirs,
        })
    }

    /// A tensor for the result, which `launch` computes behind all that candle has put into its stream, and before what it
    /// puts there later.
    pub(crate) fn result<T: Number>(
        &self,
        extents: Vec<usize>,
        launch: impl FnOnce(&mut CudaSlice<T>) -> exactile::Result<()>,
    ) -> Result<(CudaStorage, Shape)> {
        let mut out = self.candle.alloc_zeros::<T>(count(&extents)?)?;
        let ours = &self.gpu.ours;
        ours.join(&self.theirs).map_err(Error::wrap)?;
        let launched = launch(&mut out);
        self.theirs.join(ours).map_err(Error::wrap)?;
        launched.map_err(Error::wrap)?;
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
        lend(&self.gpu.device, &self.gpu.ours, slice, |numbers| {
            launch(numbers.slice(range)?)
        })
    }

    /// Lends the memory of the result.
    pub(crate) fn lend_result<T: Number>(
        &self,
        out: &mut CudaSlice<T>,
        launch: impl FnOnce(BufferSliceMut<'_, T>) -> exactile::Result<()>,
    ) -> exactile::Result<()> {
        lend_mut(&self.gpu.device, &self.gpu.ours, out, launch)
    }
}

#[cfg(test)]
mod tests {
    use exactile::prelude::*;

    use super::{CudaContext, Error, Result, opened};

    #[kernel]
    fn one(x: PtrMut<f32>) {
        store(x, 1.0);
    }

    #[test]
    fn a_gpu_stays_open_between_operations() -> Result<()> {
        let context = CudaContext::new(0).map_err(Error::wrap)?;
        let gpu = opened(&context)?.device;
        let mut x = Buffer::<f32>::zeros(&gpu, 1).map_err(Error::wrap)?;
        one().run(&gpu, 1, (&mut x,)).map_err(Error::wrap)?;
        let compiled = gpu.compiled_kernels();
        assert!(compiled > 0);
        drop((x, gpu));
        assert_eq!(opened(&context)?.device.compiled_kernels(), compiled);
        Ok(())
    }
}
