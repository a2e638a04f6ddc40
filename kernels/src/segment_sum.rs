//! Sums of rows by segments: what a sparse matrix, an embedding's gradient and a graph need. Each segment is one tree
//! over its members in their order, so the bits follow no grid, and no atomics are needed.

use exactile::prelude::*;
use exactile::{Number, Result};

use crate::places::places;
use crate::setting::{Settable, Setting, check_shape, extent};
use crate::space;

/// A segment and `COLUMNS` columns a program, `MEMBERS` members at a time: the sum of the rows `members` of `x`, each
/// times its weight where there are weights.
#[kernel(MEMBERS = 16, COLUMNS = 64, grid = (starts.len().saturating_sub(1), columns.div_ceil(COLUMNS)))]
pub fn segment_sum<
    T: Float,
    #[meta(16, 8, 32)] const MEMBERS: usize,
    #[meta(64..=128)] const COLUMNS: usize,
>(
    x: Ptr<T>,
    starts: Ptr<i32>,
    members: Ptr<i32>,
    weights: Option<Ptr<T>>,
    out: PtrMut<T>,
    columns: i32,
) {
    let column = program_id(1) * COLUMNS + arange(0, COLUMNS).expand(0);
    let (first, end) = (
        load(starts + program_id(0)),
        load(starts + program_id(0) + 1),
    );
    let mut sum = sum_accumulator::<f32>([COLUMNS]);
    for start in range(first, end).step(MEMBERS) {
        let at = (start + arange(0, MEMBERS)).expand(1);
        let mask = (at < end) & (column < columns);
        let row = load(members + at).mask(at < end).to::<i64>();
        let mut tile = load(x + row * columns + column).mask(mask).to::<f32>();
        if let Some(weights) = weights {
            tile *= load(weights + at).mask(at < end).to::<f32>();
        }
        sum.add(tile, 0);
    }
    let column = column.squeeze(0);
    let place = out + program_id(0) * columns + column;
    store(place, sum.finish().to::<T>()).mask(column < columns);
}

/// Which rows belong to which segment: segment `i` has the members `starts[i]..starts[i + 1]`.
#[derive(Clone, Copy, Debug)]
pub struct Segments<'a, T> {
    /// Where each segment starts, and the number of all members; one more than there are segments.
    pub starts: &'a Buffer<i32>,
    /// The rows.
    pub members: &'a Buffer<i32>,
    /// What each row is multiplied by: the elements of a sparse matrix by rows.
    pub weights: Option<&'a Buffer<T>>,
}

/// The sum of the rows of each segment, `[segments, columns]`, added in `f32` and rounded once. With weights it is the
/// product of a sparse matrix (CSR) and a dense one. A setting's `block` is the members that are taken at a time, `width`
/// the columns of a program.
///
/// # Errors
/// A launch tells of members that are no rows when somebody waits for it.
pub fn launch<T: Float + Number>(
    x: &Buffer<T>,
    segments: Segments<'_, T>,
    out: &mut Buffer<T>,
    columns: usize,
    setting: &Setting,
) -> Result<()> {
    let count = segments.starts.len().saturating_sub(1);
    check_shape(out.len(), &[count, columns])?;
    if let Some(weights) = segments.weights {
        check_shape(weights.len(), &[segments.members.len()])?;
    }
    let kernel = segment_sum::<T>()
        .members(setting.block_or(16))
        .columns(setting.width_or(64))
        .by(setting);
    let device = out.device().clone();
    let Segments {
        starts,
        members,
        weights,
    } = segments;
    let arguments = (x, starts, members, weights, out, extent(columns)?);
    kernel.launch(&device, (), arguments)
}

/// The gradient of a table of `rows` rows of which [`crate::gather::launch`] or an embedding took those that `indices`
/// name: for each row the sum of the gradients at its places, in their order. The places are sorted on the device, and no
/// number comes back to the host.
///
/// # Errors
/// What [`launch`] refuses. An index below zero or beyond the table is told by what waits next.
pub fn embedding_backward<T: Float + Number>(
    gradients: &Buffer<T>,
    indices: &Buffer<i32>,
    out: &mut Buffer<T>,
    [rows, columns]: [usize; 2],
    setting: &Setting,
) -> Result<()> {
    check_shape(gradients.len(), &[indices.len(), columns])?;
    check_shape(out.len(), &[rows, columns])?;
    let (device, sorting) = (
        out.device().clone(),
        Setting::default().at(setting.determinism),
    );
    let [starts, members] = places(&device, indices, rows, &sorting)?;
    let segments = Segments {
        starts: &starts,
        members: &members,
        weights: None,
    };
    launch(gradients, segments, out, columns, setting)
}

/// The places of each of `rows` numbers among `indices`, as the starts and the members of segments.
pub fn places_reference(indices: &[i32], rows: usize) -> [Vec<i32>; 2] {
    let (mut starts, mut members) = (vec![0], Vec::new());
    for row in 0..rows as i32 {
        let own = (0..).zip(indices).filter(|(_, index)| **index == row);
        members.extend(own.map(|(place, _): (i32, _)| place));
        starts.push(members.len() as i32);
    }
    [starts, members]
}

/// The sum of each segment, rounded once.
pub fn reference(
    x: &[f32],
    starts: &[i32],
    members: &[i32],
    weights: Option<&[f32]>,
    columns: usize,
) -> Vec<f32> {
    let mut out = Vec::new();
    for segment in starts.windows(2) {
        for column in 0..columns {
            let term = |at: i32| {
                let weight = weights.map_or(1.0, |weights| f64::from(weights[at as usize]));
                f64::from(x[members[at as usize] as usize * columns + column]) * weight
            };
            out.push((segment[0]..segment[1]).map(term).sum::<f64>() as f32);
        }
    }
    out
}

/// The settings worth trying.
pub fn space() -> Vec<Setting> {
    let kernel = segment_sum::<f32>();
    let [members, columns] = ["MEMBERS", "COLUMNS"].map(|it| kernel.range_of(it));
    space::space(&members, &columns, &[None], |members, columns| {
        members * columns
    })
}
