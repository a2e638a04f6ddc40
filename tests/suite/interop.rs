//! Arrays of other libraries, and ours for them.

#![expect(unsafe_code, reason = "DLPack is a C interface")]

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use exactile::interop::dlpack::{
    CPU, ElementType, Exported, Imported, ManagedTensor, ManagedTensorVersioned, Place, READ_ONLY,
    Tensor as Array, VERSION, Version,
};
use exactile::interop::ndarray::{tensor, tensor_mut, view, view_mut};
use exactile::prelude::*;
use exactile::{DType, Error, Number, TensorView, bf16, f16};
use ndarray::{Array2, ArrayD, array, s};

#[kernel]
fn doubled(x: Tensor<f32, 2>, out: TensorMut<f32, 2>) {
    store(
        out.tile([4, 4]).at((0, 0)),
        load(x.tile([4, 4]).at((0, 0))) * 2.0,
    );
}

fn hosts() -> [Device; 3] {
    [Device::interpreter(), Device::cpu(), Device::lanes()]
}

/// What a tensor holds, doubled by a kernel, in rows of so many.
fn double(device: &Device, x: TensorView<'_, f32, 2>) -> Vec<f32> {
    let extents = x.extents();
    let mut out = Buffer::zeros(device, extents[0] * extents[1]).expect("fits");
    let arguments = (x, out.view_mut(extents).expect("fits"));
    let kernel = doubled();
    kernel.run(device, 1, arguments).expect("runs");
    out.to_vec().expect("is read")
}

/// An array that another library might make: twelve numbers in a vector, and how often it was given back.
struct Foreign {
    numbers: Vec<f32>,
    shape: Vec<i64>,
    strides: Option<Vec<i64>>,
    given_back: &'static AtomicUsize,
}

impl Foreign {
    fn new(shape: &[i64], strides: Option<&[i64]>, given_back: &'static AtomicUsize) -> Box<Self> {
        Box::new(Self {
            numbers: (0..12).map(|i| i as f32).collect(),
            shape: shape.to_vec(),
            strides: strides.map(<[i64]>::to_vec),
            given_back,
        })
    }

    /// Its first element is so many numbers from the beginning.
    fn tensor(&mut self, first: u64) -> Array {
        let strides = self.strides.as_mut();
        Array {
            data: self.numbers.as_mut_ptr().cast(),
            place: Place {
                kind: CPU,
                ordinal: 0,
            },
            rank: self.shape.len() as i32,
            element: ElementType {
                code: 2,
                bits: 32,
                lanes: 1,
            },
            shape: self.shape.as_mut_ptr(),
            strides: strides.map_or(std::ptr::null_mut(), |it| it.as_mut_ptr()),
            byte_offset: 4 * first,
        }
    }

    fn plain(mut self: Box<Self>, change: impl FnOnce(&mut Array)) -> *mut ManagedTensor {
        let mut tensor = self.tensor(0);
        change(&mut tensor);
        Box::into_raw(Box::new(ManagedTensor {
            tensor,
            context: Box::into_raw(self).cast::<c_void>(),
            deleter: Some(give_back),
        }))
    }

    fn versioned(mut self: Box<Self>, version: Version, flags: u64) -> *mut ManagedTensorVersioned {
        let tensor = self.tensor(0);
        Box::into_raw(Box::new(ManagedTensorVersioned {
            version,
            context: Box::into_raw(self).cast::<c_void>(),
            deleter: Some(give_back_versioned),
            flags,
            tensor,
        }))
    }
}

unsafe fn drop_foreign(context: *mut c_void) {
    // SAFETY: it is that of `Foreign`, once.
    let foreign = unsafe { Box::from_raw(context.cast::<Foreign>()) };
    foreign.given_back.fetch_add(1, Ordering::Relaxed);
}

unsafe extern "C" fn give_back(tensor: *mut ManagedTensor) {
    // SAFETY: as above.
    unsafe { drop_foreign(Box::from_raw(tensor).context) };
}

unsafe extern "C" fn give_back_versioned(tensor: *mut ManagedTensorVersioned) {
    // SAFETY: as above.
    unsafe { drop_foreign(Box::from_raw(tensor).context) };
}

#[test]
fn arrays_of_dlpack_are_views_and_are_given_back_once() {
    static GIVEN_BACK: AtomicUsize = AtomicUsize::new(0);
    // Rows of four, its columns, every other number backwards, one number for all, a part in the middle.
    let layouts: [(&[i64], Option<&[i64]>, u64); 5] = [
        (&[3, 4], None, 0),
        (&[4, 3], Some(&[1, 4]), 0),
        (&[2, 3], Some(&[6, -2]), 5),
        (&[2, 2], Some(&[0, 0]), 7),
        (&[2, 2], Some(&[4, 1]), 5),
    ];
    for (round, device) in hosts().into_iter().enumerate() {
        for (index, (shape, strides, first)) in layouts.into_iter().enumerate() {
            let foreign = Foreign::new(shape, strides, &GIVEN_BACK);
            let tensor = foreign.plain(|tensor| tensor.byte_offset = 4 * first);
            // SAFETY: it was made just now.
            let x = unsafe { Imported::from_raw(&device, tensor, None) }.expect("is taken");
            assert_eq!((x.dtype(), x.is_read_only()), (DType::F32, false));
            let rows = strides.map_or([4, 1], |it| [it[0], it[1]]);
            let place = |row: i64, column: i64| first as i64 + row * rows[0] + column * rows[1];
            let places = (0..shape[0]).flat_map(|row| (0..shape[1]).map(move |it| place(row, it)));
            let wanted: Vec<f32> = places.map(|place| place as f32 * 2.0).collect();
            let found = double(&device, x.view().expect("of rank 2"));
            assert_eq!(found, wanted, "{shape:?} {strides:?} on {device}");
            drop(x);
            let before = round * layouts.len() + index;
            assert_eq!(GIVEN_BACK.load(Ordering::Relaxed), before + 1);
        }
    }
}

#[test]
fn arrays_of_dlpack_are_written_unless_they_must_not_be() {
    static GIVEN_BACK: AtomicUsize = AtomicUsize::new(0);
    let device = Device::cpu();
    let kernel = doubled();
    let x = [1.0_f32; 12];
    for flags in [0, READ_ONLY] {
        let tensor = Foreign::new(&[3, 4], None, &GIVEN_BACK).versioned(VERSION, flags);
        // SAFETY: it was made just now.
        let y = unsafe { Imported::from_raw(&device, tensor, None) };
        let mut y = y.expect("is taken");
        let x = TensorView::of_slice(&x, [3, 4]).expect("fits");
        match y.view_mut() {
            Ok(out) => kernel.run(&device, 1, (x, out)).expect("runs"),
            Err(error) => {
                assert_eq!(flags, READ_ONLY);
                let message = "the array was given to be read only: copy it, and write the copy";
                assert_eq!(error.to_string(), message);
                continue;
            }
        }
        assert_eq!(double(&device, y.view().expect("of rank 2")), [4.0; 12]);
    }
    assert_eq!(GIVEN_BACK.load(Ordering::Relaxed), 2);
}

/// What is wrong with an array, and what is said of it.
const CASES: [(fn(&mut Array), &str); 10] = [
    (
        |it| it.place.kind = 2,
        "the array is on cuda:0, expected cpu",
    ),
    (
        |it| it.place.kind = 8,
        "the array is on the device 8:0 of DLPack, expected cpu",
    ),
    (
        |it| it.element.code = 5,
        "an array of complex numbers of 32 bits (DLPack code 5, 1 lanes) has no type here",
    ),
    (
        |it| it.element.lanes = 4,
        "an array of floats of 32 bits (DLPack code 2, 4 lanes) has no type here",
    ),
    (
        |it| it.element.code = 17,
        "an array of numbers of another format of 32 bits (DLPack code 17, 1 lanes) has no type here",
    ),
    (|it| it.byte_offset = 2, ", which is not a multiple of 4"),
    (|it| it.rank = -1, "an array of rank -1"),
    (
        |it| it.shape = std::ptr::null_mut(),
        "an array without extents",
    ),
    (
        |it| it.data = std::ptr::null_mut(),
        "an array of 48 bytes at null",
    ),
    (
        |it| it.byte_offset = u64::MAX,
        "an array whose elements cannot be addressed",
    ),
];

#[test]
fn arrays_of_dlpack_that_have_no_place_here_are_refused_by_name_and_given_back() {
    static GIVEN_BACK: AtomicUsize = AtomicUsize::new(0);
    let device = Device::cpu();
    for (index, (change, expected)) in CASES.into_iter().enumerate() {
        let tensor = Foreign::new(&[3, 4], None, &GIVEN_BACK).plain(change);
        // SAFETY: it was made just now.
        let refused = unsafe { Imported::from_raw(&device, tensor, None) };
        let message = refused.map(drop).expect_err(expected).to_string();
        assert!(message.contains(expected), "{message}");
        assert_eq!(GIVEN_BACK.load(Ordering::Relaxed), index + 1, "{message}");
    }
    let far: [(&[i64], Option<&[i64]>); 3] = [
        (&[3, -4], None),
        (&[i64::MAX, i64::MAX], None),
        (&[2, 2], Some(&[i64::MIN, 1])),
    ];
    for (shape, strides) in far {
        let tensor = Foreign::new(shape, strides, &GIVEN_BACK).plain(|_| ());
        // SAFETY: it was made just now.
        let refused = unsafe { Imported::from_raw(&device, tensor, None) };
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    }
    let version = Version { major: 2, minor: 0 };
    let tensor = Foreign::new(&[3, 4], None, &GIVEN_BACK).versioned(version, 0);
    // SAFETY: it was made just now.
    let refused = unsafe { Imported::from_raw(&device, tensor, None) };
    let message = refused.map(drop).expect_err("is refused").to_string();
    assert_eq!(message, "an array of DLPack 2.0, expected 1");
    // SAFETY: there is none.
    let null = unsafe { Imported::from_raw::<ManagedTensor>(&device, std::ptr::null_mut(), None) };
    assert_eq!(
        null.map(drop).expect_err("is refused").to_string(),
        "a DLPack array at null"
    );
    assert_eq!(
        GIVEN_BACK.load(Ordering::Relaxed),
        CASES.len() + far.len() + 1
    );
}

fn round_trip<T: Number>(numbers: &[T]) {
    let device = Device::cpu();
    for extents in [&[2, 3][..], &[6], &[1, 6, 1]] {
        let x = Buffer::from_slice(&device, numbers).expect("fits");
        let exported = Exported::new(x, extents, None).expect("is given");
        let tensor = exported.into_versioned();
        // SAFETY: it was made just now.
        let x = unsafe {
            assert_eq!((*tensor).version, VERSION);
            Imported::from_raw(&device, tensor, None)
        };
        let x = x.expect("is taken");
        assert_eq!((x.extents(), x.dtype()), (extents, T::DTYPE));
        assert!(x.view::<T, 4>().is_err());
    }
    let short = Exported::new(
        Buffer::from_slice(&device, numbers).expect("fits"),
        &[5],
        None,
    );
    assert!(matches!(short, Err(Error::ShapeMismatch { .. })));
}

#[test]
fn buffers_go_through_dlpack_whatever_their_type() {
    round_trip(&[true, false, true, true, false, false]);
    round_trip(&[1_i8, 2, 3, 4, 5, 6]);
    round_trip(&[1_u16, 2, 3, 4, 5, 6]);
    round_trip(&[1_i64, 2, 3, 4, 5, 6]);
    round_trip(&[1.0_f64, 2.0, 3.0, 4.0, 5.0, 6.0]);
    round_trip(&[f16::ONE; 6]);
    round_trip(&[bf16::ONE; 6]);
    let x = Buffer::from_slice(&Device::cpu(), &[1.0_f32, 2.0, 3.0, 4.0]).expect("fits");
    let tensor = Exported::new(x, &[2, 2], None).expect("is given");
    let tensor = tensor.into_raw();
    // SAFETY: it was made just now.
    let x = unsafe { Imported::from_raw(&Device::cpu(), tensor, None) }.expect("is taken");
    let found = double(&Device::cpu(), x.view().expect("of rank 2"));
    assert_eq!(found, [2.0, 4.0, 6.0, 8.0]);
    let error = x.view::<i32, 2>().expect_err("of another type");
    assert!(matches!(error, Error::DTypeMismatch { .. }), "{error}");
    // Never taken: it goes without a deleter.
    let x = Buffer::from_slice(&Device::cpu(), &[1.0_f32]).expect("fits");
    drop(Exported::new(x, &[], None).expect("is given"));
}

#[test]
fn views_of_ndarray_are_arguments() {
    let x: Array2<f32> = array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
    for device in hosts() {
        let views = [
            x.view().into_dyn(),
            x.t().into_dyn(),
            x.slice(s![..;-1, ..]).into_dyn(),
            x.slice(s![..;-1, ..;-1]).into_dyn(),
        ];
        for x in views {
            let wanted: ArrayD<f32> = &x * 2.0;
            let x = x.into_dimensionality().expect("of rank 2");
            let found = double(&device, tensor(&x).expect("has no gaps"));
            assert!(wanted.iter().eq(&found), "{wanted} on {device}");
        }
        let mut out = Array2::<f32>::zeros((3, 2));
        let arguments = (
            tensor(&x.view()).expect("has no gaps"),
            tensor_mut(out.view_mut().reversed_axes()).expect("has no gaps"),
        );
        let kernel = doubled();
        kernel.run(&device, 1, arguments).expect("runs");
        assert_eq!(out, x.t().mapv(|x| x * 2.0));
    }
    // What is between the numbers of a view may be another one's to write.
    let refused = tensor(&x.slice(s![.., ..2]))
        .expect_err("has gaps")
        .to_string();
    assert!(
        refused.contains("other numbers lie between those of the view"),
        "{refused}"
    );
    let row = array![1.0_f32, 2.0];
    let repeated = row.broadcast((3, 2)).expect("fits");
    tensor(&repeated).expect_err("repeats numbers");
    let none = Array2::<f32>::zeros((0, 3));
    assert_eq!(tensor(&none.view()).expect("is empty").extents(), [0, 3]);
}

#[test]
fn arrays_are_views_of_ndarray() {
    let device = Device::cpu();
    let numbers = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    let mut x = Buffer::from_slice(&device, &numbers).expect("fits");
    let rows = array![[1.0_f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
    let tensor = x.view([2, 3]).expect("fits");
    assert_eq!(view(tensor).expect("on the host"), rows);
    let columns = tensor.permute([1, 0]).expect("two axes");
    assert_eq!(view(columns).expect("on the host"), rows.t());
    let back = columns.flip(0).expect("an axis");
    let back = back.slice(1, 1..).expect("two columns");
    assert_eq!(
        view(back).expect("on the host"),
        array![[6.0], [5.0], [4.0]]
    );
    let out = x.view_mut([2, 3]).expect("fits").flip(1).expect("an axis");
    let mut out = view_mut(out).expect("on the host");
    out.slice_mut(s![1, ..]).fill(0.0);
    assert_eq!(x.to_vec().expect("is read"), [1.0, 2.0, 3.0, 0.0, 0.0, 0.0]);
    // Memory of nothing may be anywhere.
    let mut none = Buffer::<f64>::zeros(&device, 0).expect("fits");
    assert_eq!(
        view(none.view([0, 3]).expect("fits"))
            .expect("on the host")
            .dim(),
        (0, 3)
    );
    let mut pinned = device.pinned::<f64>(0).expect("fits");
    assert_eq!(pinned.as_mut_slice().expect("is read").len(), 0);
    assert_eq!(pinned.as_slice().expect("is read").len(), 0);
    let nothing = none.view_mut([3, 0]).expect("fits");
    assert_eq!(view_mut(nothing).expect("on the host").dim(), (3, 0));
    let repeated = x.view_strided_mut([2, 3], [0, 1]).expect("fits");
    view_mut(repeated).expect_err("two ways to one number");
}
