//! Views of views as arguments: parts, steps, orders and backward axes have the bits of copies, on every device.

use exactile::prelude::*;
use exactile::{BufferSliceMut, Error, Number, TensorView, TensorViewMut};

use super::language::{devices, noise, upload};

/// A row of tiles for each program; the tile at the end of each axis is partial.
#[kernel]
fn copied<T: Element>(x: Tensor<T, 2>, y: TensorMut<T, 2>) {
    let (row, column) = (program_id(0), program_id(1));
    store(
        y.tile([4, 8]).at((row, column)),
        load(x.tile([4, 8]).at((row, column))),
    );
}

fn copy<T: Number + Element>(device: &Device, x: TensorView<'_, T, 2>, y: TensorViewMut<'_, T, 2>) {
    assert_eq!(x.extents(), y.extents());
    let [rows, columns] = x.extents();
    let grid = (rows.div_ceil(4), columns.div_ceil(8));
    copied::<T>().run(device, grid, (x, y)).expect("runs");
}

/// Where the elements of views of a `[ROWS, COLUMNS]` array are, and the views.
type Case = fn(TensorView<'_, f32, 2>) -> exactile::Result<TensorView<'_, f32, 2>>;
type CaseMut = fn(TensorViewMut<'_, f32, 2>) -> exactile::Result<TensorViewMut<'_, f32, 2>>;

const ROWS: usize = 11;
const COLUMNS: usize = 21;

macro_rules! cases {
    ($($x:ident: $view:expr, $extents:expr, $place:expr;)*) => {
        [$((
            (|$x| $view) as Case,
            (|$x| $view) as CaseMut,
            $extents,
            $place as fn(usize, usize) -> (usize, usize),
        )),*]
    };
}

#[test]
fn views_of_views_are_read_and_written_where_they_say() {
    let numbers: Vec<f32> = (0..ROWS * COLUMNS).map(|index| index as f32).collect();
    let cases = cases! {
        x: x.flip(0), [ROWS, COLUMNS], |i, j| (ROWS - 1 - i, j);
        x: x.flip(1), [ROWS, COLUMNS], |i, j| (i, COLUMNS - 1 - j);
        x: x.flip(0)?.flip(1), [ROWS, COLUMNS], |i, j| (ROWS - 1 - i, COLUMNS - 1 - j);
        x: x.flip(0)?.flip(0), [ROWS, COLUMNS], |i, j| (i, j);
        x: x.permute([1, 0])?.flip(1), [COLUMNS, ROWS], |i, j| (ROWS - 1 - j, i);
        x: x.slice(0, 2..9)?.slice(1, 3..), [7, 18], |i, j| (i + 2, j + 3);
        x: x.step(1, 2)?.flip(1)?.slice(1, ..=4), [ROWS, 5], |i, j| (i, 20 - 2 * j);
        x: x.flip(0)?.step(0, 3), [4, COLUMNS], |i, j| (10 - 3 * i, j);
        x: x.flip(0)?.slice(0, 4..5), [1, COLUMNS], |_, j| (6, j);
        x: x.flip(1)?.slice(0, 5..5), [0, COLUMNS], |i, j| (i, j);
    };
    for device in devices() {
        let x = upload(&device, &numbers);
        for (case, (read, write, [rows, columns], place)) in cases.into_iter().enumerate() {
            let at = |i, j| {
                let (row, column) = place(i, j);
                row * COLUMNS + column
            };
            let mut y = upload(&device, &vec![-1.0f32; rows * columns]);
            let view = read(x.view([ROWS, COLUMNS]).expect("fits")).expect("is a view");
            copy(&device, view, y.view_mut([rows, columns]).expect("fits"));
            let y = y.to_vec().expect("reads");
            for (index, found) in y.iter().enumerate() {
                let (i, j) = (index / columns, index % columns);
                assert_eq!(
                    *found,
                    numbers[at(i, j)],
                    "case {case}: {i} {j} on {device}"
                );
            }
            // Back to where it came from, and nowhere else.
            let mut back = upload(&device, &vec![-1.0f32; ROWS * COLUMNS]);
            let copy_of_y = upload(&device, &y);
            let view = back.view_mut([ROWS, COLUMNS]).expect("fits");
            let view = write(view).expect("is a view");
            copy(
                &device,
                copy_of_y.view([rows, columns]).expect("fits"),
                view,
            );
            let mut expected = vec![-1.0f32; ROWS * COLUMNS];
            for i in 0..rows {
                for j in 0..columns {
                    expected[at(i, j)] = numbers[at(i, j)];
                }
            }
            let back = back.to_vec().expect("reads");
            assert_eq!(back, expected, "case {case} on {device}");
        }
    }
}

#[test]
fn backward_views_of_small_numbers_and_of_slices() {
    for device in [Device::interpreter(), Device::lanes(), Device::cpu()] {
        let bytes: Vec<u8> = (0..75).collect();
        let mut y = vec![0u8; 75];
        let x = TensorView::of_slice(&bytes, [3, 25]).expect("fits");
        let out = TensorViewMut::of_slice(&mut y, [3, 25]).expect("fits");
        copy(
            &device,
            x.flip(1).expect("flips"),
            out.flip(0).expect("flips"),
        );
        for (index, found) in y.iter().enumerate() {
            let (i, j) = (index / 25, index % 25);
            assert_eq!(*found, bytes[(2 - i) * 25 + 24 - j], "{i} {j} on {device}");
        }
    }
}

/// Sums of rows of a plane, the plane itself by an index of the device, and parts: checked accesses.
#[kernel]
fn sums(x: Tensor<f32, 3>, out: TensorMut<f32, 2>, first: i64) {
    let plane = x.select(0, program_id(0));
    let part = plane.part((0, first), [4, 32]);
    let rows = load(part.tile([4, 32]).at([0, 0])).sum(1);
    let own = out.select(0, program_id(0));
    store(own.tile([4]).at([0]), rows);
}

#[test]
fn parts_of_backward_views_have_the_bits_of_copies() {
    let numbers = noise(3 * 4 * 40);
    let mut mirrored = numbers.clone();
    mirrored.chunks_mut(40).for_each(<[f32]>::reverse);
    let mut golden: Option<Vec<u32>> = None;
    for device in devices() {
        let (x, copy) = (upload(&device, &numbers), upload(&device, &mirrored));
        let views = [
            x.view([3, 4, 40]).expect("fits").flip(2).expect("flips"),
            copy.view([3, 4, 40]).expect("fits"),
        ];
        for view in views {
            let mut out = Buffer::<f32>::zeros(&device, 12).expect("fits");
            let rows = out.view_mut([3, 4]).expect("fits");
            sums().run(&device, 3, (view, rows, 5)).expect("runs");
            let bits: Vec<u32> = out
                .to_vec()
                .expect("reads")
                .iter()
                .map(|it| it.to_bits())
                .collect();
            let golden = golden.get_or_insert_with(|| bits.clone());
            assert_eq!(&bits, golden, "{device}");
        }
    }
}

#[kernel]
fn line(x: Tensor<f32, 1>, y: TensorMut<f32, 1>, z: Option<TensorMut<f32, 1>>) {
    let numbers = load(x.tile([16]).at([program_id(0)]));
    store(y.tile([16]).at([program_id(0)]), numbers);
    if let Some(z) = z {
        store(z.tile([16]).at([program_id(0)]), numbers * 2.0);
    }
}

#[test]
fn selections_of_either_direction_are_views_of_one_axis_less() {
    let numbers: Vec<f32> = (0..5 * 30).map(|index| index as f32).collect();
    for device in devices() {
        let x = upload(&device, &numbers);
        for backwards in [false, true] {
            let mut y = upload(&device, &[0.0f32; 5 * 30]);
            let (x, out) = (
                x.view([5, 30]).expect("fits"),
                y.view_mut([5, 30]).expect("fits"),
            );
            let (x, out) = match backwards {
                true => (x.flip(0).expect("flips"), out.flip(0).expect("flips")),
                false => (x, out),
            };
            let column = x.select(1, 7).expect("is one");
            let to = out.select(1, 9).expect("is one");
            let kernel = line();
            kernel.run(&device, 1, (column, to, None)).expect("runs");
            for (index, found) in y.to_vec().expect("reads").into_iter().enumerate() {
                let expected = if index % 30 == 9 {
                    numbers[index - 2]
                } else {
                    0.0
                };
                assert_eq!(found, expected, "{index} on {device}");
            }
        }
    }
}

#[test]
fn one_launch_writes_both_parts_of_a_view() {
    let numbers: Vec<f32> = (0..30).map(|index| index as f32).collect();
    for device in devices() {
        for backwards in [false, true] {
            let x = upload(&device, &numbers);
            let mut y = upload(&device, &[-1.0f32; 61]);
            let mut rows = y.view_mut([2, 30]).expect("fits");
            if backwards {
                rows = rows.flip(0).expect("flips");
            }
            let (first, second) = rows.split_at(0, 1).expect("are apart");
            let first = first.select(0, 0).expect("is a row");
            let second = second.select(0, 0).expect("is a row");
            line()
                .run(
                    &device,
                    2,
                    (x.view([30]).expect("fits"), first, Some(second)),
                )
                .expect("runs");
            let y = y.to_vec().expect("reads");
            let (first, second) = y.split_at(30);
            let (once, twice) = match backwards {
                true => (&second[..30], first),
                false => (first, &second[..30]),
            };
            assert_eq!(once, numbers, "{device}");
            assert!(twice.iter().zip(&numbers).all(|(y, x)| *y == x * 2.0));
            assert_eq!(second[30], -1.0);
        }
    }
}

#[test]
fn what_is_outside_of_a_view_is_an_error_of_the_host() {
    let device = Device::interpreter();
    let mut x = upload(&device, &[0.0f32; 12]);
    let told = |result: exactile::Result<TensorView<'_, f32, 2>>| {
        result.expect_err("is no view").to_string()
    };
    let view = x.view([3, 4]).expect("fits");
    for (found, expected) in [
        (view.slice(0, 2..4), "is not in 0..3"),
        (view.slice(1, 5..), "is not in 0..4"),
        (view.slice(1, ..=usize::MAX), "is not in 0..4"),
        (
            view.slice(2, ..),
            "axis 2 is out of range for a view of rank 2",
        ),
        (view.step(0, 0), "a step of 0 along axis 0"),
        (view.flip(5), "axis 5 is out of range"),
        (view.permute([1, 1]), "axes [1, 1] are no order"),
        (
            x.view([4, 4]),
            "a view of extents [4, 4] does not fit 12 elements",
        ),
    ] {
        let message = told(found);
        assert!(message.contains(expected), "{message}");
    }
    let selected = view.select(1, 4).expect_err("there is none").to_string();
    assert!(selected.contains("index 4 of axis 1"), "{selected}");
    let view = x.view_mut([3, 4]).expect("fits");
    let told = view
        .split_at(1, 2)
        .expect_err("are interleaved")
        .to_string();
    assert!(
        told.contains("split the axis of the longest strides, [4, 1]"),
        "{told}"
    );
}

#[kernel]
fn doubled<T: Numeric>(x: Ptr<T>, y: PtrMut<T>, n: i32) {
    let at = program_id(0) * 16 + arange(0, 16);
    let inside = at < n;
    let numbers = load(x + at).mask(inside);
    store(y + at, numbers + numbers).mask(inside);
}

#[test]
fn parts_of_buffers_are_pointers() {
    for device in devices() {
        let numbers: Vec<i32> = (0..50).collect();
        let kernel = doubled::<i32>();
        for first in 0..5 {
            let mut x = upload(&device, &numbers);
            let (low, mut high) = x.split_at_mut(25).expect("has so many");
            let source = low.as_slice().slice(first..).expect("is in it");
            let target = high.slice_mut(first..).expect("is in it");
            let n = source.len();
            kernel
                .run(&device, 2, (source, target, n as i32))
                .expect("runs");
            let found = x.to_vec().expect("reads");
            for (index, found) in found.into_iter().enumerate() {
                let written = index >= 25 + first;
                let expected = if written { 2 * (index - 25) } else { index };
                assert_eq!(found, expected as i32, "{first} on {device}");
            }
        }
        assert!(upload(&device, &numbers).slice(10..51).is_err());
        assert!(upload(&device, &numbers).split_at_mut(51).is_err());
    }
}

#[kernel]
fn added(x: Ptr<i32>, more: Option<Ptr<i32>>, out: Option<PtrMut<i32>>, n: i32) {
    let at = arange(0, 16);
    let mut sum = load(x + at).mask(at < n);
    if let Some(more) = more {
        sum += load(more + at).mask(at < n);
    }
    if let Some(out) = out {
        store(out + at, sum).mask(at < n);
    }
}

#[test]
fn parts_of_buffers_are_optional_pointers() {
    for device in devices() {
        let mut x = upload(&device, &(0..40).collect::<Vec<i32>>());
        let (low, mut high) = x.split_at_mut(20).expect("has so many");
        let low = low.as_slice();
        for more in [None, Some(low.slice(3..13).expect("is in it"))] {
            let source = low.slice(..10).expect("is in it");
            let target = high.slice_mut(5..15).expect("is in it");
            let arguments = (source, Optional(more), Optional(Some(target)), 10);
            added().run(&device, 1, arguments).expect("runs");
        }
        let nothing: Optional<BufferSliceMut<'_, i32>> = Optional(None);
        let whole = low.slice(..10).expect("is in it");
        added()
            .run(&device, 1, (whole, None, nothing, 10))
            .expect("runs");
        let found = x.to_vec().expect("reads");
        let want = (0..40).map(|i| match i {
            25..35 => 2 * (i - 25) + 3,
            _ => i,
        });
        assert_eq!(found, want.collect::<Vec<i32>>(), "{device}");
    }
}

#[kernel]
fn counted(out: TensorMut<i32, 2>, most: TensorMut<i32, 2>, from: i32) {
    let (i, j) = (arange(0, 4).expand(1), arange(0, 4).expand(0));
    let number = (i * 10 + j).to::<i32>() + from;
    atomic_add(out.tile([4, 4]).at([0, 0]), number).mask(i + j != 3);
    atomic_max(most.tile([4, 4]).at_offset([1, -1]), number);
}

#[kernel]
fn exchanged(out: TensorMut<i32, 2>, old: TensorMut<i32, 2>) {
    let place = out.tile([4, 4]).at([0, 0]);
    let (i, j) = (arange(0, 4).expand(1), arange(0, 4).expand(0));
    let expected = (i * 4 + j).to::<i32>();
    let before = atomic_compare_exchange(place, expected, expected + 100);
    store(old.tile([4, 4]).at([0, 0]), before);
}

/// Triton's `test_atomic_rmw_accepts_non_contiguous_ndarray_views` and `test_atomic_cas_..`: transposed, with gaps, backward.
#[test]
fn atomics_reach_views_with_strides() {
    for device in devices() {
        let mut out = upload(&device, &[0i32; 40]);
        let mut most = upload(&device, &[0i32; 12]);
        // Columns that are two apart, the last row first; 3 rows and 4 columns of the tile are there.
        let view = out.view_strided_mut([3, 4], [1, 10]).expect("fits");
        let view = view.flip(0).expect("has the axis");
        let bound = most.view_strided_mut([3, 4], [4, 1]).expect("fits");
        counted().run(&device, 2, (view, bound, 7)).expect("runs");
        let sums = out.to_vec().expect("reads");
        let extremes = most.to_vec().expect("reads");
        for (row, column) in (0..3).flat_map(|row| (0..4).map(move |column| (row, column))) {
            let number = (row * 10 + column) as i32 + 7;
            let sum = if row + column == 3 { 0 } else { 2 * number };
            assert_eq!(
                sums[column * 10 + (2 - row)],
                sum,
                "{row} {column} on {device}"
            );
            let above = if row > 0 && column < 3 {
                number - 10 + 1
            } else {
                0
            };
            assert_eq!(
                extremes[row * 4 + column],
                above,
                "{row} {column} on {device}"
            );
        }
        let mut numbers: Vec<i32> = (0..16).map(|at| at % 4 * 4 + at / 4).collect();
        numbers[5] = -1;
        let mut out = upload(&device, &numbers);
        let mut old = upload(&device, &[0i32; 16]);
        let view = out.view_strided_mut([4, 4], [1, 4]).expect("fits");
        let kernel = exchanged().determinism(exactile::Determinism::NotGuaranteed);
        kernel
            .run(&device, 1, (view, old.view_mut([4, 4]).expect("fits")))
            .expect("runs");
        let before = old.to_vec().expect("reads");
        let after = out.to_vec().expect("reads");
        for (at, before) in before.into_iter().enumerate() {
            let place = at % 4 * 4 + at / 4;
            let held = numbers[place];
            assert_eq!(before, held, "{device}");
            let want = if held == at as i32 { held + 100 } else { held };
            assert_eq!(after[place], want, "{device}");
        }
    }
}

/// A part ends where it ends, not where its buffer does; who reads the buffer is told.
#[test]
fn accesses_beside_a_part_are_errors() {
    for device in devices() {
        let x = upload(&device, &[1i32; 40]);
        let mut y = upload(&device, &[7i32; 40]);
        let kernel = doubled::<i32>();
        let source = x.slice(..16).expect("is in it");
        kernel
            .run(
                &device,
                1,
                (source, y.slice_mut(8..24).expect("is in it"), 16),
            )
            .expect("runs");
        // The buffer has more; the proof of the first launch does not speak for less.
        let short = y.slice_mut(8..23).expect("is in it");
        let told = kernel.run(&device, 1, (source, short, 16));
        let Err(Error::OutOfBounds {
            argument, length, ..
        }) = told
        else {
            panic!("{device}: {told:?}");
        };
        assert_eq!((&argument[..], length), ("y", 15));
        let short = x.slice(..15).expect("is in it");
        let whole = y.slice_mut(24..).expect("is in it");
        kernel
            .launch(&device, 1, (short, whole, 16))
            .expect("is queued");
        let told = y.slice(..8).expect("is in it").to_vec();
        assert!(matches!(told, Err(Error::OutOfBounds { .. })), "{device}");
        let found = y.to_vec().expect("was told");
        assert_eq!(found[..8], [7; 8]);
        device.synchronize().expect("was told");
    }
}

#[test]
fn buffers_are_filled_and_copied() {
    for device in devices() {
        let mut x = Buffer::<f64>::zeros(&device, 5).expect("fits");
        x.fill(1.5).expect("fills");
        assert_eq!(x.to_vec().expect("reads"), [1.5; 5]);
        x.slice_mut(1..3)
            .expect("is in it")
            .fill(-0.0)
            .expect("fills");
        let mut copy = x.try_clone().expect("copies");
        let bits = |x: &Buffer<f64>| -> Vec<u64> {
            x.to_vec()
                .expect("reads")
                .into_iter()
                .map(f64::to_bits)
                .collect()
        };
        assert_eq!(bits(&copy), bits(&x));
        assert_eq!(bits(&x)[1], (-0.0f64).to_bits());
        let (mut low, high) = copy.split_at_mut(2).expect("has so many");
        let one = low.slice_mut(..1).expect("is in it");
        one.copy_from(high.as_slice().slice(..1).expect("is in it"))
            .expect("copies");
        assert_eq!(copy.to_vec().expect("reads"), [-0.0, -0.0, -0.0, 1.5, 1.5]);
        let short = Buffer::<f64>::zeros(&device, 4).expect("fits");
        assert!(matches!(
            copy.copy_from(&short),
            Err(Error::ShapeMismatch { .. })
        ));
        copy.copy_from(&x).expect("copies");
        assert_eq!(bits(&copy), bits(&x));
    }
}
