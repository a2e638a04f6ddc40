//! Conversions through shared memory: a swizzle without bank conflicts, in rounds.
//!
//! The tile index is written in a basis `vector | bank | segment | round`. The vector part is held
//! in registers by both layouts, so both sides move it in one access; the segment part avoids the
//! lanes of both layouts that access memory together, so no two of them meet in a bank.

use super::LayoutError;
use super::convert::{ConversionLimits, ThreadMap, images};
use super::linear::{LinearLayout, Point};
use super::matrix::{Span, apply};

/// One access of one side: a vector of registers and where it lies in the scratch memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedAccess {
    /// The registers of the vector, in memory order.
    pub registers: Vec<u32>,
    /// The element offset of the vector, to be combined by exclusive or with the side's `thread`.
    pub offset: u32,
    /// The value that the side's `thread_round` must have for the access to happen; `None` when it
    /// happens in every lane.
    pub only_when: Option<u32>,
}

/// One side, storing or loading, of a conversion through shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedSide {
    /// The part of the element offset that depends on the lane and the warp. It never changes the
    /// position within a vector.
    pub thread: ThreadMap,
    /// The part of the round number that depends on the lane and the warp; usually zero.
    pub thread_round: ThreadMap,
    /// What each register bit adds: the element offset, and above it the round number.
    register: Vec<u32>,
    /// The registers that hold an element that no lower register holds.
    distinct: Vec<u32>,
    /// The register bits that span a vector.
    vector: Vec<u64>,
}

/// A conversion through shared memory.
///
/// In each round all lanes store, meet at a barrier, and load. Another barrier has to separate the
/// loads of one round from the stores of the next, and from other uses of the scratch memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedPlan {
    /// Log2 of the number of elements in an access.
    pub vector_bits: u32,
    /// Log2 of the number of elements that one round moves: the scratch memory needed.
    pub scratch_bits: u32,
    /// Log2 of the number of rounds.
    pub round_bits: u32,
    /// The side that stores.
    pub store: SharedSide,
    /// The side that loads.
    pub load: SharedSide,
    /// Lane bits and warp bits that must be zero for a lane to store: elements that several lanes
    /// hold are stored by one of them. The register part is already left out of the stores.
    pub owner: Point,
    /// The register, among those that loads fill, that holds the element of each destination
    /// register.
    pub loaded: Vec<u32>,
}

impl SharedPlan {
    /// The number of rounds.
    #[must_use]
    pub fn rounds(&self) -> u32 {
        1 << self.round_bits
    }

    /// The stores of a round, to be done by the lanes that own their elements.
    #[must_use]
    pub fn stores(&self, round: u32) -> Vec<SharedAccess> {
        self.accesses(&self.store, round)
    }

    /// The loads of a round.
    #[must_use]
    pub fn loads(&self, round: u32) -> Vec<SharedAccess> {
        self.accesses(&self.load, round)
    }

    fn accesses(&self, side: &SharedSide, round: u32) -> Vec<SharedAccess> {
        let vector_mask = (1 << self.vector_bits) - 1;
        let support = side.thread_round.support();
        let coordinate = |register: u32| {
            let columns = side.register.iter().enumerate();
            columns
                .filter(|(bit, _)| register >> bit & 1 == 1)
                .fold(0, |sum, (_, column)| sum ^ column)
        };
        let mut accesses = Vec::new();
        for &register in &side.distinct {
            let place = coordinate(register);
            let wanted = place >> self.scratch_bits ^ round;
            // A round bit that no lane can change must already be right.
            if place & vector_mask != 0 || wanted & !support != 0 {
                continue;
            }
            let in_vector = |element: u64| register ^ apply(&side.vector, element) as u32;
            accesses.push(SharedAccess {
                registers: (0..1 << self.vector_bits).map(in_vector).collect(),
                offset: place & ((1 << self.scratch_bits) - 1),
                only_when: (support != 0).then_some(wanted),
            });
        }
        accesses
    }

    /// Plans the move of a tile between two layouts on the same lanes and warps.
    pub(super) fn plan(
        source: &LinearLayout,
        destination: &LinearLayout,
        limits: &ConversionLimits,
    ) -> Result<SharedPlan, LayoutError> {
        let bytes = limits.element_bytes;
        if ![1, 2, 4, 8].contains(&bytes) {
            return Err(LayoutError::ElementSize { found: bytes });
        }
        let capacity =
            (limits.scratch_bytes / bytes)
                .checked_ilog2()
                .ok_or(LayoutError::ScratchTooSmall {
                    found: limits.scratch_bytes,
                    expected: bytes,
                })?;
        let bits = source.tile_bits();
        let scratch_bits = bits.min(capacity);
        let basis = Basis::choose(source, destination, limits, scratch_bits);
        let map = basis.coordinate_map(bits);
        let owner = source.free_bits();
        let (_, loaded) = destination.without_register_copies();
        let distinct = distinct_registers(destination);
        let loaded = loaded
            .iter()
            .map(|&merged| distinct[merged as usize])
            .collect();
        Ok(SharedPlan {
            vector_bits: basis.vector.len() as u32,
            scratch_bits,
            round_bits: bits - scratch_bits,
            store: SharedSide::new(source, &map, &basis.vector, scratch_bits),
            load: SharedSide::new(destination, &map, &basis.vector, scratch_bits),
            owner: Point {
                register: 0,
                ..owner
            },
            loaded,
        })
    }
}

impl SharedSide {
    fn new(layout: &LinearLayout, map: &[u64], vector: &[u64], scratch_bits: u32) -> SharedSide {
        let (lane, warp) = (
            images(map, layout.lane_columns()),
            images(map, layout.warp_columns()),
        );
        let low = |columns: &[u32]| {
            columns
                .iter()
                .map(|c| c & ((1 << scratch_bits) - 1))
                .collect()
        };
        let high = |columns: &[u32]| columns.iter().map(|c| c >> scratch_bits).collect();
        let registers = Span::of(layout.register_columns());
        let combination = |&element: &u64| {
            registers
                .solve(element)
                .expect("broken invariant: a vector lies in registers")
        };
        SharedSide {
            thread: ThreadMap {
                lane: low(&lane),
                warp: low(&warp),
            },
            thread_round: ThreadMap {
                lane: high(&lane),
                warp: high(&warp),
            },
            register: images(map, layout.register_columns()),
            distinct: distinct_registers(layout),
            vector: vector.iter().map(combination).collect(),
        }
    }
}

/// The registers whose free bits are zero: one for each element that a lane holds, in the order in
/// which [`LinearLayout::without_register_copies`] numbers them.
fn distinct_registers(layout: &LinearLayout) -> Vec<u32> {
    let free = layout.free_bits().register;
    (0..layout.registers())
        .filter(|register| register & free == 0)
        .collect()
}

/// The basis in which the tile index becomes an offset and a round.
struct Basis {
    vector: Vec<u64>,
    bank: Vec<u64>,
    segment: Vec<u64>,
    round: Vec<u64>,
}

impl Basis {
    fn choose(
        source: &LinearLayout,
        destination: &LinearLayout,
        limits: &ConversionLimits,
        scratch_bits: u32,
    ) -> Basis {
        let element_bits = limits.element_bytes.ilog2();
        let threads = [
            source.lane_columns(),
            destination.lane_columns(),
            source.warp_columns(),
            destination.warp_columns(),
        ]
        .concat();
        // The vector may not share a direction with any lane or warp: the position inside a vector
        // then depends on the register only.
        let shared = Span::intersection(source.register_columns(), destination.register_columns());
        let most = limits
            .vector_bytes
            .ilog2()
            .saturating_sub(element_bits)
            .min(scratch_bits) as usize;
        let mut vector = Span::extension(&threads, &shared);
        vector.truncate(most);
        // Everything else, lanes first, so that the rounds split registers where they can.
        let units: Vec<u64> = (0..source.tile_bits()).map(|bit| 1 << bit).collect();
        let rest = Span::extension(&vector, &[threads, units].concat());
        let (kept, round) = rest.split_at(scratch_bits as usize - vector.len());
        // Lanes that access memory together: as many as the banks serve at once.
        let width = vector.len() as u32;
        let bank_bits = (limits.bank_bytes.ilog2() - element_bits).saturating_sub(width);
        let together = |layout: &LinearLayout| {
            let lanes = layout.lane_columns();
            Span::intersection(&lanes[..lanes.len().min(bank_bits as usize)], kept)
        };
        let sides = [together(source), together(destination)];
        let (bank, segment) = banks(&sides, kept, bank_bits as usize);
        Basis {
            vector,
            bank,
            segment,
            round: round.to_vec(),
        }
    }

    /// The coordinates of every unit vector: vector in the low bits, then bank, segment and round.
    fn coordinate_map(&self, bits: u32) -> Vec<u64> {
        let basis = [
            self.vector.as_slice(),
            &self.bank,
            &self.segment,
            &self.round,
        ]
        .concat();
        let span = Span::of(&basis);
        let coordinate = |bit: u32| {
            span.solve(1 << bit)
                .expect("broken invariant: the basis spans the tile")
        };
        (0..bits).map(coordinate).collect()
    }
}

/// The layout of a slot to which lanes copy a tile as in `source`, the registers of `vector` side by side, and from which they
/// read it as in `destination`. Elements that a warp copies together meet in no bank. Those that it reads together do not either,
/// unless they differ only in where they lie among elements that are side by side.
///
/// # Panics
/// Never: each element has one place.
#[must_use]
pub fn shared_slot(
    (source, vector): (&LinearLayout, &[u32]),
    destination: &LinearLayout,
    limits: &ConversionLimits,
) -> LinearLayout {
    let bits = (limits.bank_bytes / limits.element_bytes).ilog2() as usize;
    let registers = source.register_columns();
    let copied: Vec<u64> = vector.iter().map(|&bit| registers[bit as usize]).collect();
    let all = [source.lane_columns(), source.warp_columns(), registers].concat();
    let others = Span::extension(&copied, &all);
    let span = Span::of(&[copied.as_slice(), &others].concat());
    let without_copied = |&column: &u64| {
        let place = span.solve(column).map(|place| place >> copied.len());
        apply(&others, place.unwrap_or(0))
    };
    let read = read_together(&copied, destination).len();
    let together = |layout: &LinearLayout, held: usize| -> Vec<u64> {
        let lanes = layout.lane_columns().iter();
        let lanes = lanes.take(bits.saturating_sub(held));
        lanes.map(without_copied).collect()
    };
    let sides = [together(source, copied.len()), together(destination, read)];
    let (bank, segment) = banks(&sides, &others, bits.saturating_sub(copied.len()));
    let places = [copied, bank, segment].concat();
    LinearLayout::new(source.dim_bits().to_vec(), places, Vec::new(), Vec::new())
        .expect("broken invariant: a slot holds what the tile holds")
}

/// The first of these bits, of elements that lie side by side, for which a lane of `destination` holds all elements: it reads those
/// at once.
pub fn read_together<'a>(copied: &'a [u64], destination: &LinearLayout) -> &'a [u64] {
    let registers = destination.register_columns();
    let mut bits = copied.iter();
    let others = bits.position(|bit| !registers.contains(bit));
    &copied[..others.unwrap_or(copied.len())]
}

/// Two bases of which the first spans the place within all banks and the second the rest, for what two sides access together.
fn banks(sides: &[Vec<u64>; 2], kept: &[u64], bits: usize) -> (Vec<u64>, Vec<u64>) {
    let bits = kept.len().min(bits);
    let grow = |own: &[u64], other: &[u64]| {
        let more = Span::extension(own, &[other, kept].concat());
        let mut grown = [&Span::extension(&[], own), more.as_slice()].concat();
        grown.truncate(bits);
        grown
    };
    let [first, second] = sides;
    let (first, second) = (grow(first, second), grow(second, first));
    let segment = common_complement(&first, &second, kept);
    (first, segment)
}

/// A subspace of `whole` that completes both `first` and `second`, which have equal dimensions.
fn common_complement(first: &[u64], second: &[u64], whole: &[u64]) -> Vec<u64> {
    let common = Span::intersection(first, second);
    let only_first = Span::extension(&common, first);
    let only_second = Span::extension(&common, second);
    let mut complement: Vec<u64> = only_first
        .iter()
        .zip(&only_second)
        .map(|(first, second)| first ^ second)
        .collect();
    complement.extend(Span::extension(&[first, second].concat(), whole));
    complement
}
