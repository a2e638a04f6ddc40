//! Views of any extents, strides, steps and parts.

use exactile::prelude::*;
use exactile::{Result, TensorView, TensorViewMut};

use super::{SIZES, Tried, doubles};

#[test]
fn views_of_any_shape() {
    let mut tried = Tried::default();
    let device = Device::cpu();
    let x = Buffer::<f32>::zeros(&device, 8).expect("fits");
    let numbers = [0f32; 8];
    let mut views = vec![
        x.view([2, 4]).expect("fits"),
        TensorView::of_slice(&numbers, [8, 1]).expect("fits"),
    ];
    for (one, other) in pairs(SIZES) {
        tried.call("view", || x.view([one, other]));
        tried.call("of_slice", || TensorView::of_slice(&numbers, [one, other]));
        for (first, second) in pairs(SIZES) {
            let made = x.view_strided([one, other], [first, second]);
            tried.call("view_strided", || {
                TensorView::of_strided_slice(&numbers, [one, other], [first, second])
            });
            views.extend(made);
        }
    }
    assert!(views.len() > 100, "{}", views.len());
    for view in views {
        for (axis, number) in pairs([0, 1, 2, usize::MAX]) {
            let changed = [
                tried_view(&mut tried, || view.step(axis, number)),
                tried_view(&mut tried, || {
                    view.flip(axis)?.step(axis, number)?.flip(axis)
                }),
                tried_view(&mut tried, || view.slice(axis, number..)),
                tried_view(&mut tried, || view.slice(axis, ..number)?.flip(axis)),
                tried_view(&mut tried, || view.permute([axis, number])),
            ];
            tried.call("select", || view.select(axis, number));
            for view in changed.into_iter().flatten() {
                tried.call("launch", || read(&device, view));
            }
        }
    }
    tried.end(10_000);
}

#[test]
fn views_split_anywhere() {
    let mut tried = Tried::default();
    let device = Device::cpu();
    let mut x = Buffer::<f32>::zeros(&device, 8).expect("fits");
    for axis in [0, 1, 2] {
        for count in SIZES {
            let mut view = x.view_mut([2, 4]).expect("fits");
            tried.call("split_at", || {
                view.reborrow().split_at(axis, count).map(drop)
            });
            tried.call("split_at", || {
                view.reborrow().flip(axis)?.split_at(axis, count).map(drop)
            });
            tried.call("split_at", || {
                let turned = view.reborrow().permute([1, 0])?;
                turned.split_at(axis, count).map(drop)
            });
        }
    }
    let mut numbers = [0f32; 8];
    tried.refused("of_slice", || {
        TensorViewMut::of_slice(&mut numbers, [3, 3]).map(drop)
    });
    tried.end(80);
}

/// Each of `first` with each size.
fn pairs<const N: usize>(first: [usize; N]) -> impl Iterator<Item = (usize, usize)> {
    let with_all = |one| SIZES.map(|other| (one, other));
    first.into_iter().flat_map(with_all)
}

fn tried_view<'a>(
    tried: &mut Tried,
    view: impl FnOnce() -> Result<TensorView<'a, f32, 2>>,
) -> Option<TensorView<'a, f32, 2>> {
    let mut made = None;
    tried.call("a view", || view().map(|view| made = Some(view)));
    made
}

/// Launches a program that reads the view and writes elsewhere.
fn read(device: &Device, view: TensorView<'_, f32, 2>) -> Result<()> {
    let mut y = Buffer::<f32>::zeros(device, 8)?;
    doubles().run(device, 1, (view, y.view_mut([1, 8])?, 0))
}
