//! Arrays of the host, pinned memory and memory of others, of any type and size, and what is made of them.

use std::sync::Arc;

use exactile::prelude::*;
use exactile::{Array, DType, Tolerance, compare_within};

use super::{SIZES, Tried, hosts};

#[test]
fn arrays_of_any_type_and_shape() {
    let mut tried = Tried::default();
    let numbers = [f32::NAN, f32::INFINITY, -0.0, 3e38, -3e38, 0.5, -1.5, 1e-45];
    let array = Array::from_slice([2, 4], &numbers).expect("fits");
    for &dtype in DType::ALL {
        tried.call("cast", || array.cast(dtype));
        for &other in DType::ALL {
            tried.call("cast", || array.cast(dtype)?.cast(other));
        }
        let standard = (Tolerance::standard(dtype), Tolerance::pytorch(dtype));
        for tolerance in [standard.0, standard.1] {
            tried.call("tolerance", || compare_within(&array, &array, tolerance));
        }
        tried.call("to_buffer", || {
            array.cast(dtype)?.to_buffer::<f64>(&Device::cpu())
        });
    }
    for size in SIZES {
        for other in SIZES {
            // What a machine may have memory for takes long to fill.
            let count = size.checked_mul(other);
            if count.is_none_or(|count| !(64..1 << 50).contains(&count)) {
                tried.call("full", || Array::full([size, other], 1i8));
            }
            tried.call("reshape", || array.try_clone()?.reshape([size, other]));
            tried.call("permute", || array.permute([size, other]));
            tried.call("slice", || array.slice(size, 0..other));
            tried.call("slice", || array.slice(1, size..other));
            tried.call("slice", || array.slice(1, size..=other));
        }
    }
    tried.refused("permute", || array.permute([0, 0]));
    tried.refused("permute", || array.permute([0]));
    tried.refused("view", || array.view::<f64, 2>().map(drop));
    tried.refused("view", || array.view::<f32, 3>().map(drop));
    let mut other = array.try_clone().expect("fits");
    tried.refused("fill", || other.fill(1i32));
    tried.refused("view_mut", || other.view_mut::<i32, 2>().map(drop));
    tried.refused("to_buffer", || array.to_buffer::<i32>(&Device::cpu()));
    tried.end(500);
}

#[test]
fn pinned_memory_of_any_size() {
    let mut tried = Tried::default();
    for device in hosts() {
        for len in SIZES {
            tried.call("pinned", || device.pinned::<f64>(len));
        }
        let other = Device::cpu();
        let mut numbers = device.pinned::<f32>(3).expect("fits");
        let mut x = Buffer::<f32>::zeros(&device, 8).expect("fits");
        tried.refused("copy_from", || numbers.copy_from(&device, x.slice(0..4)?));
        tried.refused("copy_to", || numbers.copy_to(&device, x.slice_mut(0..2)?));
        tried.call("copy_from", || numbers.copy_from(&other, x.slice(0..3)?));
        tried.call("copy_to", || numbers.copy_to(&other, x.slice_mut(0..3)?));
        tried.call("as_slice", || numbers.as_slice().map(<[f32]>::len));
        tried.call("as_mut_slice", || numbers.as_mut_slice().map(drop));
        let mut none = device.pinned::<f32>(0).expect("fits");
        tried.call("as_mut_slice", || none.as_mut_slice().map(drop));
        tried.call("copy_from", || none.copy_from(&device, x.slice(8..8)?));
    }
    tried.end(40);
}

#[test]
fn memory_of_others_goes_back_to_who_had_it() {
    let mut tried = Tried::default();
    for device in hosts() {
        for len in [0, 1, 5] {
            let vector = || Buffer::from_vec(&device, vec![1.0f32; len]);
            tried.call("from_vec", vector);
            tried.call("into_vec", || vector()?.into_vec());
            tried.refused("into_owner", || vector()?.into_owner::<String>());
            let shared: Arc<[i64]> = vec![1; len].into();
            let lent = || Buffer::from_arc(&device, Arc::clone(&shared));
            tried.call("from_arc", lent);
            tried.call("into_vec", || lent()?.into_vec());
            tried.refused("into_owner", || lent()?.into_owner::<Vec<i64>>());
            let mut own = Buffer::<f32>::zeros(&device, len).expect("fits");
            tried.call("spoil", || own.spoil());
            tried.call("fill", || own.fill(2.0));
            tried.call("try_clone", || own.try_clone());
            for other in hosts() {
                tried.call("to_device", || own.to_device(&other));
            }
            tried.call("into_vec", || own.into_vec());
        }
        tried.call("trim_memory", || device.trim_memory());
    }
    tried.end(100);
}
