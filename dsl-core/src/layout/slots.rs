//! Where the elements of a tile lie in a slot of shared memory.
//!
//! A slot has a linear layout as well, without lanes and warps: its registers are its places, in order.

use super::convert::ThreadMap;
use super::linear::LinearLayout;
use super::matrix::{Span, apply};

/// Where the registers of a tile lie in a slot: the place of one is that of the thread and its own, combined
/// by exclusive or.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotPlaces {
    /// What the lane and the warp decide.
    pub thread: ThreadMap,
    /// What each bit of the register decides.
    columns: Vec<u32>,
}

/// The layout of a slot in which every lane of `tile` has places of its own: those of the register bits
/// `vector` side by side, then lane by lane, warp by warp, and so on for the other registers.
///
/// # Panics
/// Never: each column of the tile is one of the slot.
#[must_use]
pub fn own_slot(tile: &LinearLayout, vector: &[u32]) -> LinearLayout {
    let columns = tile.register_columns();
    let own = vector.iter().map(|&bit| columns[bit as usize]);
    let others = (0..columns.len()).filter(|&bit| !vector.contains(&(bit as u32)));
    let threads = tile.lane_columns().iter().chain(tile.warp_columns());
    let all = own
        .chain(threads.copied())
        .chain(others.map(|bit| columns[bit]));
    LinearLayout::new(
        tile.dim_bits().to_vec(),
        all.collect(),
        Vec::new(),
        Vec::new(),
    )
    .expect("broken invariant: a slot holds what the tile holds")
}

/// The layout of a slot that has the elements of a tile of these extents in their order.
///
/// # Panics
/// Never: each element has one place.
#[must_use]
pub fn in_order(dim_bits: &[u32]) -> LinearLayout {
    let places = (0..dim_bits.iter().sum()).map(|bit: u32| 1 << bit);
    LinearLayout::new(dim_bits.to_vec(), places.collect(), Vec::new(), Vec::new())
        .expect("broken invariant: a slot holds what the tile holds")
}

impl SlotPlaces {
    /// The places of a tile in a slot. Copies of an element share its place, unless the slot has places for
    /// all of them.
    ///
    /// # Panics
    /// Never: a layout holds every element.
    #[must_use]
    pub fn new(slot: &LinearLayout, tile: &LinearLayout) -> Self {
        let places = slot.register_columns();
        let mut taken = vec![false; places.len()];
        let mut own = |column: u64| {
            let at = (0..places.len()).find(|&at| !taken[at] && places[at] == column)?;
            taken[at] = true;
            Some(1_u32 << at)
        };
        let mut part = |columns: &[u64]| -> Option<Vec<u32>> {
            columns.iter().map(|&column| own(column)).collect()
        };
        let [lane, warp, register] = [
            tile.lane_columns(),
            tile.warp_columns(),
            tile.register_columns(),
        ];
        let private = (part(lane), part(warp), part(register));
        if let (Some(lane), Some(warp), Some(columns)) = private {
            let thread = ThreadMap { lane, warp };
            return Self { thread, columns };
        }
        Self::of_elements(slot, tile)
    }

    /// The places of a tile in a slot, where copies of an element share the first of its places.
    ///
    /// # Panics
    /// Never: a layout holds every element.
    #[must_use]
    pub fn of_elements(slot: &LinearLayout, tile: &LinearLayout) -> Self {
        let [lane, warp, register] = [
            tile.lane_columns(),
            tile.warp_columns(),
            tile.register_columns(),
        ];
        let span = Span::of(slot.register_columns());
        let part = |columns: &[u64]| -> Vec<u32> {
            let place = |&column: &u64| span.solve(column).map(|place| place as u32);
            let places: Option<_> = columns.iter().map(place).collect();
            places.expect("broken invariant: a slot holds every element")
        };
        let thread = ThreadMap {
            lane: part(lane),
            warp: part(warp),
        };
        Self {
            thread,
            columns: part(register),
        }
    }

    /// The places of a tile of which lanes copy so many elements at once, and the registers of each copy; `None` where those
    /// of one do not lie side by side.
    #[must_use]
    pub fn copied(
        slot: &LinearLayout,
        tile: &LinearLayout,
        count: i64,
    ) -> Option<(Self, Vec<Vec<u32>>)> {
        let places = Self::new(slot, tile);
        let vectors = places.vectors(count.ilog2());
        (vectors[0].len() as i64 == count).then_some((places, vectors))
    }

    /// The place of each register, without what the thread decides.
    #[must_use]
    pub fn of(&self, register: u32) -> u32 {
        let columns: Vec<u64> = self.columns.iter().map(|&it| it.into()).collect();
        apply(&columns, register.into()) as u32
    }

    /// What is combined with the place of a register by exclusive or for each copy that the slot has of its element.
    #[must_use]
    pub fn copies(&self, slot: &LinearLayout) -> Vec<u32> {
        let own = self
            .columns
            .iter()
            .fold(self.thread.support(), |all, column| all | column);
        let places = slot.register_columns().iter().enumerate();
        let free = places.filter(|&(at, &column)| column == 0 && own >> at & 1 == 0);
        free.fold(vec![0], |copies, (at, _)| {
            let further = copies.iter().map(|copy| copy | 1 << at);
            copies.iter().copied().chain(further).collect()
        })
    }

    /// The registers in vectors of at most `2^most` that lie side by side, in the order of places.
    #[must_use]
    pub fn vectors(&self, most: u32) -> Vec<Vec<u32>> {
        let others = self.thread.support();
        let mut bits = Vec::new();
        for bit in 0..most {
            let mut holders =
                (0..self.columns.len()).filter(|&it| self.columns[it] >> bit & 1 == 1);
            match (holders.next(), holders.next()) {
                (Some(holder), None)
                    if self.columns[holder] == 1 << bit && others >> bit & 1 == 0 =>
                {
                    bits.push(1_u32 << holder);
                }
                (_, _) => break,
            }
        }
        in_vectors(1 << self.columns.len(), &bits)
    }
}

/// So many registers in vectors that these bits of the register span, lowest first.
#[must_use]
pub fn in_vectors(registers: u32, bits: &[u32]) -> Vec<Vec<u32>> {
    let taken: u32 = bits.iter().sum();
    let columns: Vec<u64> = bits.iter().map(|&bit| bit.into()).collect();
    let firsts = (0..registers).filter(|register| register & taken == 0);
    let vector = |first: u32| {
        let members = 0..1_u64 << bits.len();
        let members = members.map(|element| first | apply(&columns, element) as u32);
        members.collect()
    };
    firsts.map(vector).collect()
}
