//! Arrays of the host: other orders, parts, types, texts, and views of them.

use exactile::prelude::*;
use exactile::{Array, DType, Error, Number, bf16, f16};

#[kernel]
fn doubled(x: Tensor<f32, 2>, out: TensorMut<f32, 2>) {
    store(
        out.tile([4, 4]).at((0, 0)),
        load(x.tile([4, 4]).at((0, 0))) * 2.0,
    );
}

fn counted(shape: &[usize]) -> Array {
    let numbers: Vec<i32> = (0..shape.iter().product::<usize>() as i32).collect();
    Array::from_slice(shape, &numbers).expect("fits")
}

#[test]
fn axes_change_their_order() {
    let x = counted(&[2, 3, 4]);
    let places = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    for axes in places {
        let y = x.permute(axes).expect("an order");
        let shape = axes.map(|axis| x.shape()[axis]);
        assert_eq!(y.shape(), shape);
        let numbers = y.to_vec::<i32>().expect("of this type");
        for (flat, number) in numbers.into_iter().enumerate() {
            let rest = flat / shape[2];
            let index = [rest / shape[1], rest % shape[1], flat % shape[2]];
            let mut place = [0; 3];
            for (axis, index) in axes.into_iter().zip(index) {
                place[axis] = index;
            }
            let wanted = (place[0] * 3 + place[1]) * 4 + place[2];
            assert_eq!(number, wanted as i32, "{axes:?}");
        }
    }
    for axes in [&[0, 1][..], &[0, 1, 1], &[0, 1, 3]] {
        let message = x.permute(axes).expect_err("no order").to_string();
        let wanted = format!("axes {axes:?} are no order of the axes of an array of rank 3");
        assert_eq!(message, wanted);
    }
    let number = counted(&[]);
    assert_eq!(number.permute([]).expect("an order").to_string(), "0");
}

#[test]
fn parts_are_copied() {
    let x = counted(&[3, 4]);
    let part = x
        .slice(0, 1..)
        .expect("inside")
        .slice(1, 1..=2)
        .expect("inside");
    assert_eq!(part.shape(), [2, 2]);
    assert_eq!(part.to_vec::<i32>().expect("of this type"), [5, 6, 9, 10]);
    assert!(x.slice(1, 4..).expect("inside").is_empty());
    assert!(x.slice(0, 2..4).is_err());
    let message = x.slice(2, ..).expect_err("no axis").to_string();
    assert_eq!(message, "axis 2 is out of range for an array of rank 2");
    let flat = x.reshape([12]).expect("as many");
    assert_eq!(flat.shape(), [12]);
    let refused = flat.reshape([5, 2]);
    assert!(
        matches!(refused, Err(Error::ShapeMismatch { .. })),
        "{refused:?}"
    );
    // No element, and extents whose product is no number.
    let huge = Array::zeros(DType::U8, [0, 1 << 60, 1 << 60]).expect("nothing fits");
    let part = huge.slice(1, (1 << 60) - 1..).expect("inside");
    assert_eq!(part.shape(), [0, 1, 1 << 60]);
    assert_eq!(huge.permute([2, 0, 1]).expect("an order").len(), 0);
}

#[test]
fn types_change_as_in_kernels() {
    let x = Array::from_slice([6], &[1.5f32, -2.7, f32::NAN, 1e20, -0.0, 65_504.0]).expect("six");
    let cast = |dtype| x.cast(dtype).expect("fits");
    assert_eq!(
        cast(DType::I32).to_vec::<i32>().expect("this type")[..4],
        [1, -2, 0, i32::MAX]
    );
    assert_eq!(
        cast(DType::U8).to_vec::<u8>().expect("this type")[..4],
        [1, 0, 0, 255]
    );
    let bools = cast(DType::Bool).to_vec::<bool>().expect("this type");
    assert_eq!(bools, [true, true, true, true, false, true]);
    let halves = cast(DType::F16).to_vec::<f16>().expect("this type");
    assert_eq!(halves[1], f16::from_f32(-2.7));
    assert!(halves[2].is_nan() && halves[3].is_infinite());
    let back = cast(DType::BF16).cast(DType::F64).expect("fits");
    let back = back.to_vec::<f64>().expect("this type");
    assert_eq!(back[0], 1.5);
    assert_eq!(back[1], f64::from(bf16::from_f32(-2.7)));
}

#[test]
fn arrays_show_their_numbers() {
    let shown = |array: &Array| array.to_string();
    assert_eq!(shown(&counted(&[2, 3])), "[[0, 1, 2],\n [3, 4, 5]]");
    assert_eq!(shown(&counted(&[2, 1, 2])), "[[[0, 1]],\n [[2, 3]]]");
    assert_eq!(shown(&counted(&[2, 0])), "[] of extents [2, 0]");
    let floats = Array::from_slice([3], &[0.1f32, -0.0, f32::INFINITY]).expect("three");
    assert_eq!(shown(&floats), "[0.1, -0.0, inf]");
    assert_eq!(shown(&counted(&[2000])), "[0, 1, 2, .., 1997, 1998, 1999]");
    let rows = shown(&counted(&[300, 4]));
    assert!(
        rows.starts_with("[[0, 1, 2, 3],\n [4, 5, 6, 7],\n [8, 9, 10, 11],\n ..,\n [1188"),
        "{rows}"
    );
    // Of an array that nothing can hold, since it has no element.
    let none = Array::zeros(DType::U8, [1 << 60, 0]).expect("nothing fits");
    assert_eq!(shown(&none), format!("[] of extents [{}, 0]", 1_u64 << 60));
}

#[test]
fn arrays_are_arguments_without_copies() {
    let x = Array::full([2, 3], 1.5f32).expect("fits");
    for device in [Device::interpreter(), Device::cpu(), Device::lanes()] {
        let mut out = Array::zeros(f32::DTYPE, x.shape()).expect("fits");
        let arguments = (
            x.view().expect("of rank 2"),
            out.view_mut().expect("of rank 2"),
        );
        let kernel = doubled();
        kernel.run(&device, 1, arguments).expect("runs");
        assert_eq!(out.to_vec::<f32>().expect("this type"), [3.0; 6]);
        let buffer = x.to_buffer::<f32>(&device).expect("fits");
        assert_eq!(buffer.to_vec().expect("is read"), [1.5; 6]);
    }
    let mut y = x.try_clone().expect("fits");
    y.fill(2.0f32).expect("this type");
    assert_eq!(
        (x.to_string(), y.to_string()),
        (
            "[[1.5, 1.5, 1.5],\n [1.5, 1.5, 1.5]]".to_string(),
            "[[2.0, 2.0, 2.0],\n [2.0, 2.0, 2.0]]".to_string()
        )
    );
    assert!(matches!(y.fill(2_i32), Err(Error::DTypeMismatch { .. })));
    assert!(matches!(
        x.view::<f64, 2>(),
        Err(Error::DTypeMismatch { .. })
    ));
    let message = x.view::<f32, 1>().expect_err("of rank 2").to_string();
    assert_eq!(message, "a view of rank 1 of an array of extents [2, 3]");
}
