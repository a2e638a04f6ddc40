//! What another library has given.

use exactile_core::ir::{DType, Number};

use super::{
    CPU, CUDA, CUDA_HOST, ManagedTensor, ManagedTensorVersioned, READ_ONLY, Tensor, VERSION,
    dtype_of,
};
use crate::buffer::Storage;
use crate::device::{Device, DeviceKind};
use crate::error::{Error, Result};
use crate::foreign::Foreign;
use crate::part::{Part, PartMut};
use crate::slices::{BufferSlice, BufferSliceMut};
use crate::stream::Stream;
use crate::tensor::{Layout, TensorView, TensorViewMut};

/// An array that another library has given by DLPack: kernels take [views](Self::view) of it, without copies. Dropping it
/// gives it back, once: on a GPU after the work on it.
#[derive(Debug)]
pub struct Imported {
    device: Device,
    storage: Storage,
    dtype: DType,
    extents: Vec<usize>,
    strides: Vec<isize>,
    /// Where the first element is, in elements from the lowest one.
    start: usize,
    read_only: bool,
}

/// A structure by which a library gives an array: [`ManagedTensor`] or, with a version, [`ManagedTensorVersioned`].
pub trait Managed: sealed::Managed {}

mod sealed {
    use super::Tensor;
    use crate::error::Result;

    pub trait Managed: 'static {
        /// What gives the array back.
        ///
        /// # Safety
        /// `this` is such a structure, of any version.
        unsafe fn deleter(this: *mut Self) -> Option<unsafe extern "C" fn(*mut Self)>;

        /// The array, and whether it must not be written.
        ///
        /// # Safety
        /// As for [`deleter`](Self::deleter).
        unsafe fn array(this: *mut Self) -> Result<(Tensor, bool)>;
    }
}

impl Managed for ManagedTensor {}
impl sealed::Managed for ManagedTensor {
    unsafe fn deleter(this: *mut Self) -> Option<unsafe extern "C" fn(*mut Self)> {
        // SAFETY: handed on to the caller.
        unsafe { (*this).deleter }
    }

    unsafe fn array(this: *mut Self) -> Result<(Tensor, bool)> {
        // SAFETY: handed on to the caller.
        Ok((unsafe { (*this).tensor }, false))
    }
}

impl Managed for ManagedTensorVersioned {}
impl sealed::Managed for ManagedTensorVersioned {
    unsafe fn deleter(this: *mut Self) -> Option<unsafe extern "C" fn(*mut Self)> {
        // SAFETY: handed on to the caller: all versions begin alike.
        unsafe { (*this).deleter }
    }

    unsafe fn array(this: *mut Self) -> Result<(Tensor, bool)> {
        // SAFETY: as above.
        let version = unsafe { (*this).version };
        if version.major != VERSION.major {
            return Err(Error::Invalid(format!(
                "an array of DLPack {}.{}, expected {}",
                version.major, version.minor, VERSION.major
            )));
        }
        // SAFETY: handed on to the caller.
        Ok(unsafe { ((*this).tensor, (*this).flags & READ_ONLY != 0) })
    }
}

/// Gives the array back when it goes.
struct Owned<M: Managed>(*mut M);

// SAFETY: DLPack allows any thread to call the deleter; nothing else is done with it.
unsafe impl<M: Managed> Send for Owned<M> {}
// SAFETY: a reference does nothing.
unsafe impl<M: Managed> Sync for Owned<M> {}

impl<M: Managed> Drop for Owned<M> {
    fn drop(&mut self) {
        // SAFETY: whoever made this owns the structure; a deleter takes its own address.
        unsafe {
            if let Some(deleter) = M::deleter(self.0) {
                deleter(self.0);
            }
        }
    }
}

impl Imported {
    /// Takes an array over. On a GPU `stream` is where whoever gave it has used it, and will: nobody waits. Without one,
    /// work on it has ended, and the host waits when the array is given back.
    ///
    /// # Safety
    /// `tensor` is null or a structure that nobody else has taken over, as DLPack describes it. While this is there,
    /// others read the array at most, and that only while no kernel writes it; on a GPU with a stream, they do nothing with it.
    ///
    /// # Errors
    /// The array is elsewhere than `device`, its type has no name here, its elements cannot be addressed, or its version is
    /// one of other structures. The deleter has been called then.
    pub unsafe fn from_raw<M: Managed>(
        device: &Device,
        tensor: *mut M,
        stream: Option<&Stream>,
    ) -> Result<Self> {
        if tensor.is_null() {
            return Err(Error::Invalid("a DLPack array at null".to_string()));
        }
        let foreign = Foreign {
            home: stream.cloned(),
            owner: Box::new(Owned(tensor)),
        };
        // SAFETY: handed on to the caller.
        unsafe {
            let (tensor, read_only) = M::array(tensor)?;
            Self::of(device, tensor, read_only, foreign)
        }
    }

    /// # Safety
    /// As for [`from_raw`](Self::from_raw).
    unsafe fn of(
        device: &Device,
        tensor: Tensor,
        read_only: bool,
        foreign: Foreign,
    ) -> Result<Self> {
        check_place(device, tensor)?;
        if let Some(home) = &foreign.home
            && !home.device().shares_memory_with(device)
        {
            let device = home.device();
            return Err(Error::Invalid(format!("the stream is one of {device}")));
        }
        let dtype = dtype_of(tensor.element)?;
        // SAFETY: handed on to the caller: there are as many numbers as axes while the owner is there.
        let (extents, strides) = unsafe { axes_of(tensor) }?;
        let size = dtype.bytes() as usize;
        let (low, len) = window(&extents, &strides, size)?;
        let first = tensor.data.cast::<u8>();
        if len > 0 && first.is_null() {
            return Err(Error::Invalid(format!("an array of {len} bytes at null")));
        }
        let by = isize::try_from(tensor.byte_offset).ok();
        let by = by.and_then(|by| by.checked_sub_unsigned(low));
        let first = first.wrapping_offset(by.ok_or_else(too_large)?);
        if len > 0 && !first.addr().is_multiple_of(size) {
            return Err(Error::Invalid(format!(
                "an array of `{dtype}` at the address {first:p}, which is not a multiple of {size}"
            )));
        }
        // SAFETY: handed on to the caller; these are the bytes from the lowest element to the highest.
        let storage = unsafe { Storage::of_others(device, first, len, foreign) }?;
        Ok(Self {
            device: device.clone(),
            storage,
            dtype,
            extents,
            strides,
            start: low / size,
            read_only,
        })
    }

    /// The data type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// How many elements there are along each axis, outermost first.
    pub fn extents(&self) -> &[usize] {
        &self.extents
    }

    /// How many elements apart neighbours along each axis are: below zero where an axis runs backwards.
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// Whether whoever gave it wants it not to be written.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    fn layout<T: Number, const RANK: usize>(&self) -> Result<Layout<RANK>> {
        if T::DTYPE != self.dtype {
            return Err(Error::DTypeMismatch {
                found: self.dtype,
                expected: T::DTYPE,
            });
        }
        let extents = <[usize; RANK]>::try_from(self.extents.as_slice()).ok();
        let strides = <[isize; RANK]>::try_from(self.strides.as_slice()).ok();
        let (extents, strides) = extents.zip(strides).ok_or_else(|| {
            let extents = &self.extents;
            Error::Invalid(format!(
                "a view of rank {RANK} of an array of extents {extents:?}"
            ))
        })?;
        let start = self.start;
        Ok(Layout {
            extents,
            strides,
            start,
        })
    }

    /// The array, for a kernel to read.
    ///
    /// # Errors
    /// It has another type or rank.
    pub fn view<T: Number, const RANK: usize>(&self) -> Result<TensorView<'_, T, RANK>> {
        let layout = self.layout::<T, RANK>()?;
        let memory = BufferSlice::of(Part::of(&self.device, &self.storage));
        Ok(TensorView::of_layout(memory, layout))
    }

    /// The array, for a kernel to write.
    ///
    /// # Errors
    /// It has another type or rank, or must not be written.
    pub fn view_mut<T: Number, const RANK: usize>(&mut self) -> Result<TensorViewMut<'_, T, RANK>> {
        let layout = self.layout::<T, RANK>()?;
        if self.read_only {
            let message = "the array was given to be read only: copy it, and write the copy";
            return Err(Error::Invalid(message.to_string()));
        }
        let memory = BufferSliceMut::of(PartMut::of(&self.device, &mut self.storage));
        Ok(TensorViewMut::of_layout(memory, layout))
    }
}

fn too_large() -> Error {
    Error::Invalid("an array whose elements cannot be addressed".to_string())
}

fn check_place(device: &Device, tensor: Tensor) -> Result<()> {
    let place = tensor.place;
    let is_there = match (device.kind(), place.kind) {
        (DeviceKind::Cuda(ordinal), CUDA) => {
            usize::try_from(place.ordinal).is_ok_and(|found| found == ordinal)
        }
        (DeviceKind::Cuda(_), _) => false,
        (DeviceKind::Cpu | DeviceKind::Interpreter | DeviceKind::Lanes, kind) => {
            kind == CPU || kind == CUDA_HOST
        }
    };
    if is_there {
        return Ok(());
    }
    let found = match place.kind {
        CPU | CUDA_HOST => "the host".to_string(),
        CUDA => format!("cuda:{}", place.ordinal),
        kind => format!("the device {kind}:{} of DLPack", place.ordinal),
    };
    Err(Error::Invalid(format!(
        "the array is on {found}, expected {device}"
    )))
}

/// Extents and strides.
///
/// # Safety
/// There are as many of each as axes, or no strides.
unsafe fn axes_of(tensor: Tensor) -> Result<(Vec<usize>, Vec<isize>)> {
    let negative = |_| Error::Invalid(format!("an array of rank {}", tensor.rank));
    let rank = usize::try_from(tensor.rank).map_err(negative)?;
    if rank == 0 {
        return Ok((Vec::new(), Vec::new()));
    }
    // SAFETY: handed on to the caller.
    let numbers = |first: *const i64| unsafe { std::slice::from_raw_parts(first, rank) };
    if tensor.shape.is_null() {
        return Err(Error::Invalid("an array without extents".to_string()));
    }
    let shape = numbers(tensor.shape);
    let extents = shape.iter().map(|&extent| usize::try_from(extent));
    let negative = |_| Error::Invalid(format!("an array of extents {shape:?}"));
    let extents: Vec<usize> = extents.collect::<Result<_, _>>().map_err(negative)?;
    if !tensor.strides.is_null() {
        let strides = numbers(tensor.strides).iter();
        let strides = strides.map(|&stride| isize::try_from(stride).map_err(|_| too_large()));
        return Ok((extents, strides.collect::<Result<_>>()?));
    }
    let mut strides = vec![1_isize; rank];
    for axis in (1..rank).rev() {
        let extent = isize::try_from(extents[axis].max(1)).map_err(|_| too_large())?;
        let stride = strides[axis].checked_mul(extent);
        strides[axis - 1] = stride.ok_or_else(too_large)?;
    }
    Ok((extents, strides))
}

/// How many bytes the lowest element begins before the first one, and how many there are from it to the highest.
fn window(extents: &[usize], strides: &[isize], size: usize) -> Result<(usize, usize)> {
    if extents.contains(&0) {
        return Ok((0, 0));
    }
    let (mut low, mut high) = (0_usize, size);
    for (&extent, &stride) in extents.iter().zip(strides) {
        let by = (extent - 1).checked_mul(stride.unsigned_abs());
        let by = by.and_then(|by| by.checked_mul(size));
        let end = if stride < 0 { &mut low } else { &mut high };
        *end = by
            .and_then(|by| end.checked_add(by))
            .ok_or_else(too_large)?;
    }
    let len = low.checked_add(high);
    let len = len.filter(|&len| isize::try_from(len).is_ok());
    len.map(|len| (low, len)).ok_or_else(too_large)
}
