//! Sorting: places in a total order, and the elements that they hold.

use std::cmp::Ordering;

use super::Machine;
use crate::interp::elements::{Elements, dtype};
use crate::interp::tile;
use crate::ir::{DType, SortOrder, op};
use crate::semantics::canonical;
use crate::semantics::order::total_order;

impl Machine<'_> {
    /// Sorts the places along the axis, stably, and takes the elements of the first of them.
    pub(super) fn sort(&self, op: &op::Sort) -> Vec<Elements> {
        let op::Sort {
            sources,
            keys,
            axis,
            direction,
            count,
        } = op;
        let columns: Vec<(Elements, DType)> = sources
            .iter()
            .map(|&source| (self.read(source), dtype(self.func, source)))
            .collect();
        let (keys, count) = (&columns[..*keys as usize], *count as usize);
        let order = |&a: &usize, &b: &usize| {
            let decides = keys
                .iter()
                .map(|(x, dtype)| total_order(*dtype, x.get(a), x.get(b)));
            let order = decides.fold(Ordering::Equal, Ordering::then);
            match direction {
                SortOrder::Ascending => order,
                SortOrder::Descending => order.reverse(),
            }
        };
        let places = tile::first_places(self.shape(sources[0]), axis.index(), count, &order);
        let sorted = columns.iter().enumerate().map(|(index, (x, dtype))| {
            let kept = places.iter().map(|&place| match index < keys.len() {
                true => canonical(*dtype, x.get(place)),
                false => x.get(place),
            });
            Elements::new(kept.collect())
        });
        sorted.collect()
    }
}
