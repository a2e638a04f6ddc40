//! Views of views against lists of elements: random slices, steps, flips, orders and selections.

use exactile_core::random::Random;

use super::Layout;

/// The places of all elements, by their indices in row-major order.
fn places<const RANK: usize>(layout: &Layout<RANK>) -> Vec<usize> {
    let count: usize = layout.extents.iter().product();
    let place = |number: usize| {
        let (mut rest, mut place) = (number, layout.start.cast_signed());
        for axis in (0..RANK).rev() {
            place += (rest % layout.extents[axis]).cast_signed() * layout.strides[axis];
            rest /= layout.extents[axis];
        }
        usize::try_from(place).expect("an element is in memory")
    };
    (0..count).map(place).collect()
}

fn check<const RANK: usize>(layout: &Layout<RANK>, len: usize) {
    let places = places(layout);
    let window = layout.window();
    let (low, high) = (places.iter().min(), places.iter().max());
    assert_eq!(low.map_or(0, |&low| low), window.start);
    assert_eq!(high.map_or(0, |&high| high + 1), window.end);
    assert!(window.end <= len, "{layout:?} in {len}");
    let moved = layout.rebased();
    let lowest = self::places(&moved).into_iter();
    assert!(lowest.map(|place| place + window.start).eq(places));
    for (stride, extent) in moved.strides.into_iter().zip(moved.extents) {
        assert!(stride >= 0 || extent > 1);
    }
    let runs_back = moved.strides.iter().any(|&stride| stride < 0);
    assert!(moved.start == 0 || runs_back);
}

/// The elements at some indices of an axis: what a view of a view must have.
fn taken<const RANK: usize>(
    layout: &Layout<RANK>,
    axis: usize,
    indices: impl Iterator<Item = usize>,
) -> Vec<usize> {
    let inner: usize = layout.extents[axis + 1..].iter().product();
    let (extent, all) = (layout.extents[axis], places(layout));
    let indices: Vec<usize> = indices.collect();
    let outer = all.chunks((extent * inner).max(1)).filter(|_| inner > 0);
    outer
        .flat_map(|block| {
            let runs = indices.iter();
            runs.flat_map(move |index| block[index * inner..][..inner].to_vec())
        })
        .collect()
}

/// The elements in row-major order of the axes `axes`.
fn permuted(layout: &Layout<3>, axes: [usize; 3]) -> Vec<usize> {
    let (all, extents) = (places(layout), layout.extents);
    let [outer, middle, inner] = axes.map(|axis| extents[axis]);
    let mut found = Vec::new();
    for i in 0..outer {
        for j in 0..middle {
            for k in 0..inner {
                let mut index = [0; 3];
                for (axis, at) in axes.into_iter().zip([i, j, k]) {
                    index[axis] = at;
                }
                let [i, j, k] = index;
                found.push(all[(i * extents[1] + j) * extents[2] + k]);
            }
        }
    }
    found
}

#[test]
fn views_of_views_have_the_elements_of_a_list() {
    for seed in 0..400 {
        let mut random = Random::stream(seed, 0);
        let extents = [(); 3].map(|()| random.below(5));
        let len = extents.iter().product::<usize>() + random.below(3);
        let mut layout = Layout::contiguous(extents, len).expect("fits");
        for _ in 0..6 {
            check(&layout, len);
            let axis = random.below(3);
            let extent = layout.extents[axis];
            let (next, expected) = match random.below(5) {
                0 => {
                    let first = random.below(extent + 1);
                    let count = random.below(extent - first + 1);
                    let next = layout.slice(axis, first, count);
                    (next, taken(&layout, axis, first..first + count))
                }
                1 => {
                    let step = 1 + random.below(3);
                    let next = layout.step(axis, step).expect("steps");
                    (next, taken(&layout, axis, (0..extent).step_by(step)))
                }
                2 => {
                    let next = layout.flip(axis).expect("flips");
                    (next, taken(&layout, axis, (0..extent).rev()))
                }
                3 if extent > 0 => {
                    let index = random.below(extent);
                    let next = layout.select::<2>(axis, index).expect("is one");
                    check(&next, len);
                    assert_eq!(places(&next), taken(&layout, axis, index..=index));
                    continue;
                }
                _ => {
                    let mut axes = [0, 1, 2];
                    axes.swap(random.below(3), random.below(3));
                    let next = layout.permute(axes).expect("is an order");
                    (next, permuted(&layout, axes))
                }
            };
            assert_eq!(places(&next), expected, "{layout:?}");
            layout = next;
        }
    }
}

#[test]
fn two_parts_share_no_window() {
    let mut refused = 0;
    for seed in 0..400 {
        let mut random = Random::stream(seed, 1);
        let extents = [(); 2].map(|()| random.below(5));
        let len = extents.iter().product::<usize>();
        let mut layout = Layout::contiguous(extents, len).expect("fits");
        for axis in 0..2 {
            if random.below(2) == 0 {
                layout = layout.flip(axis).expect("flips");
            }
        }
        let axis = random.below(2);
        let count = random.below(extents[axis] + 1);
        let Ok((parts, cut, in_order)) = layout.split_at(axis, count) else {
            assert_eq!(axis, 1, "rows are apart");
            refused += 1;
            continue;
        };
        let [low, high] = match in_order {
            true => parts,
            false => [parts[1], parts[0]],
        };
        let [low, high] = [low, high].map(|part| part.window());
        assert!(low.end <= cut && cut <= len);
        assert!(high.is_empty() || high.start >= cut, "{layout:?} {count}");
        let both: usize = parts.iter().map(|part| places(part).len()).sum();
        assert_eq!(both, len);
    }
    assert!(refused > 20, "{refused}");
}

#[test]
fn what_is_no_view_is_an_error() {
    let layout = Layout::contiguous([2, 3], 6).expect("fits");
    assert!(Layout::contiguous([2, 3], 5).is_err());
    assert!(Layout::contiguous([2, usize::MAX, usize::MAX], 5).is_err());
    assert!(Layout::strided([2, 2], [usize::MAX, usize::MAX], 5).is_err());
    assert!(layout.step(0, 0).is_err() && layout.step(2, 1).is_err());
    assert!(layout.flip(2).is_err() && layout.extent(2).is_err());
    assert!(layout.permute([0, 0]).is_err() && layout.permute([0, 2]).is_err());
    assert!(layout.select::<1>(0, 2).is_err() && layout.select::<1>(2, 0).is_err());
    assert!(layout.split_at(0, 3).is_err() && layout.split_at(2, 0).is_err());
    // Strides that never count may be of any length.
    let lone = Layout::strided([1, 0], [usize::MAX, usize::MAX], 0).expect("is empty");
    let far = lone.step(0, usize::MAX).expect("steps");
    check(&far.flip(1).expect("flips").slice(0, 1, 0), 0);
}
