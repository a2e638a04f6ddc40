//! Maps of arrays, by which the hardware copies boxes of them.
#![expect(unsafe_code, reason = "the driver is a C interface")]

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use cudarc::driver::sys::{
    self, CUtensorMap, CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave,
    CUtensorMapL2promotion, CUtensorMapSwizzle,
};
use exactile_core::launch::{ArrayMap, ArrayNumbers};

use crate::driver::call;
use crate::error::Result;
use crate::ptx::Ptx;

/// Of each array whose boxes a kernel copies the last map.
#[derive(Debug, Default)]
pub(super) struct Maps {
    last: Mutex<Vec<Option<(ArrayNumbers, CUtensorMap)>>>,
}

impl Maps {
    /// The maps of arrays, made anew where one is not as it was last.
    pub(super) fn of(&self, ptx: &Ptx, arrays: &[ArrayNumbers]) -> Result<Vec<CUtensorMap>> {
        if arrays.is_empty() {
            return Ok(Vec::new());
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.resize_with(arrays.len(), || None);
        let maps = ptx.maps.iter().zip(arrays).zip(last.iter_mut());
        maps.map(|((map, numbers), last)| {
            if let Some((known, made)) = last
                && known == numbers
            {
                return Ok(*made);
            }
            let made = array_map(map, numbers)?;
            *last = Some((numbers.clone(), made));
            Ok(made)
        })
        .collect()
    }
}

/// What the hardware reads of an array (CUDA driver API, "Tensor Map Object Management").
fn array_map(map: &ArrayMap, numbers: &ArrayNumbers) -> Result<CUtensorMap> {
    // Copies move bits, whatever they mean.
    let dtype = match map.dtype.bytes() {
        1 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT8,
        2 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT16,
        4 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT32,
        _ => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT64,
    };
    let swizzle = match map.swizzle {
        32 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_32B,
        64 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_64B,
        128 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
        _ => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
    };
    let inner_first = |numbers: &[u64]| numbers.iter().rev().copied().collect::<Vec<u64>>();
    let [extents, strides] = [&numbers.extents, &numbers.strides].map(|it| inner_first(it));
    let shape: Vec<u32> = map.shape.iter().rev().copied().collect();
    let steps = vec![1_u32; shape.len()];
    let mut made = CUtensorMap { opaque: [0; 16] };
    call!(cuTensorMapEncodeTiled(
        &mut made,
        dtype,
        shape.len() as u32,
        numbers.address as *mut c_void,
        extents.as_ptr(),
        strides.as_ptr(),
        shape.as_ptr(),
        steps.as_ptr(),
        CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
        swizzle,
        CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    ))?;
    Ok(made)
}
