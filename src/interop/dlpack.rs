//! Arrays by DLPack, the C structures by which libraries hand arrays to each other: NumPy, PyTorch, JAX, CuPy and others.
//!
//! [`Imported`] is what another library has given, [`Exported`] what one is given. Neither copies. The structures are those of DLPack
//! 1.1, with a version and without one.
//!
//! ```
//! use exactile::interop::dlpack::{Exported, Imported};
//! use exactile::{Buffer, Device};
//!
//! let device = Device::cpu();
//! let x = Buffer::from_slice(&device, &[1.0f32, 2.0, 3.0, 4.0])?;
//! let tensor = Exported::new(x, &[2, 2], None)?.into_raw();
//! // Another library would take it here.
//! // SAFETY: it was made just now, and nobody else has it.
//! let x = unsafe { Imported::from_raw(&device, tensor, None) }?;
//! assert_eq!(x.view::<f32, 2>()?.extents(), [2, 2]);
//! # Ok::<(), exactile::Error>(())
//! ```

#![expect(unsafe_code, reason = "DLPack is a C interface")]

mod export;
mod import;

use std::ffi::c_void;

use exactile_core::ir::DType;

use crate::error::{Error, Result};

pub use export::Exported;
pub use import::{Imported, Managed};

/// The version that is written; others with the same first number are read.
pub const VERSION: Version = Version { major: 1, minor: 1 };

/// Memory of the host.
pub const CPU: i32 = 1;
/// Memory of an NVIDIA GPU.
pub const CUDA: i32 = 2;
/// Memory of the host that CUDA has pinned.
pub const CUDA_HOST: i32 = 3;

/// The flag of an array that must not be written.
pub const READ_ONLY: u64 = 1;

/// `DLDevice`: where the memory of an array is.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The kind: [`CPU`], [`CUDA`] or another number of DLPack.
    pub kind: i32,
    /// Which of them.
    pub ordinal: i32,
}

/// `DLDataType`: what an element is.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ElementType {
    /// The kind of number.
    pub code: u8,
    /// The bits of a lane.
    pub bits: u8,
    /// The numbers of an element.
    pub lanes: u16,
}

/// `DLTensor`: an array.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Tensor {
    /// Where the memory begins.
    pub data: *mut c_void,
    /// Where that is.
    pub place: Place,
    /// The number of axes.
    pub rank: i32,
    /// What an element is.
    pub element: ElementType,
    /// As many extents as axes.
    pub shape: *mut i64,
    /// As many strides, in elements; null: row-major without gaps.
    pub strides: *mut i64,
    /// The first element is so many bytes from `data`.
    pub byte_offset: u64,
}

/// `DLManagedTensor`: an array with what frees it.
#[repr(C)]
#[derive(Debug)]
pub struct ManagedTensor {
    /// The array.
    pub tensor: Tensor,
    /// Of who made it.
    pub context: *mut c_void,
    /// Called once, by the last one who has it.
    pub deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

/// `DLPackVersion`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Version {
    /// Another one has other structures.
    pub major: u32,
    /// Another one has other meanings for what is zero in this one.
    pub minor: u32,
}

/// `DLManagedTensorVersioned`: the same with a version and flags.
#[repr(C)]
#[derive(Debug)]
pub struct ManagedTensorVersioned {
    /// By which the rest is read.
    pub version: Version,
    /// Of who made it.
    pub context: *mut c_void,
    /// Called once, by the last one who has it, whatever the version.
    pub deleter: Option<unsafe extern "C" fn(*mut Self)>,
    /// [`READ_ONLY`] and others.
    pub flags: u64,
    /// The array.
    pub tensor: Tensor,
}

/// What DLPack calls each type.
const ELEMENTS: [(DType, u8, u8); 15] = [
    (DType::I8, 0, 8),
    (DType::I16, 0, 16),
    (DType::I32, 0, 32),
    (DType::I64, 0, 64),
    (DType::U8, 1, 8),
    (DType::U16, 1, 16),
    (DType::U32, 1, 32),
    (DType::U64, 1, 64),
    (DType::F16, 2, 16),
    (DType::F32, 2, 32),
    (DType::F64, 2, 64),
    (DType::BF16, 4, 16),
    (DType::Bool, 6, 8),
    (DType::F8E4M3, 10, 8),
    (DType::F8E5M2, 12, 8),
];

fn element_of(dtype: DType) -> Result<ElementType> {
    let known = ELEMENTS.iter().find(|(known, ..)| *known == dtype);
    let element = known.map(|&(_, code, bits)| ElementType {
        code,
        bits,
        lanes: 1,
    });
    element.ok_or_else(|| Error::Invalid(format!("DLPack has no name for `{dtype}`")))
}

fn dtype_of(element: ElementType) -> Result<DType> {
    let ElementType { code, bits, lanes } = element;
    let same = |known: &&(DType, u8, u8)| (known.1, known.2, 1) == (code, bits, lanes);
    let known = ELEMENTS.iter().find(same).map(|known| known.0);
    known.ok_or_else(|| {
        let kinds = [
            "integers",
            "integers without sign",
            "floats",
            "handles",
            "bfloats",
            "complex numbers",
            "booleans",
        ];
        let kind = kinds.get(usize::from(code)).copied();
        let kind = kind.unwrap_or("numbers of another format");
        Error::Invalid(format!(
            "an array of {kind} of {bits} bits (DLPack code {code}, {lanes} lanes) has no type here"
        ))
    })
}
