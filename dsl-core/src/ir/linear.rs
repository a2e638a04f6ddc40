//! `LinearLayout`: which element of a tile each (register, lane, warp) holds.

use super::index_map::dim_offset;
use super::layout_error::LayoutError;
use super::matrix::{BitMatrix, Span, apply};

/// The largest log2 of an element count that a layout accepts.
const MAX_TILE_BITS: u32 = 40;

/// A place of the block: one register of one lane of one warp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Point {
    /// The register.
    pub register: u32,
    /// The lane within its warp.
    pub lane: u32,
    /// The warp within the block.
    pub warp: u32,
}

/// What holds one bit of the tile index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// This bit of the register number.
    Register(u32),
    /// This bit of the lane number.
    Lane(u32),
    /// This bit of the warp number.
    Warp(u32),
    /// No single bit: the columns that reach it mix several index bits.
    Mixed,
}

/// A linear map over GF(2) from (register, lane, warp) onto the flat row-major index of a tile
/// whose extents are powers of two (the last dimension is fastest).
///
/// Every element has a place. An element with several places is replicated: a zero column, or any
/// dependent column, is a free bit. A register column that depends on other register columns is
/// allowed, but wasteful; see [`LinearLayout::without_register_copies`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinearLayout {
    dim_bits: Vec<u32>,
    register: Vec<u64>,
    lane: Vec<u64>,
    warp: Vec<u64>,
}

impl LinearLayout {
    /// A layout from its columns: the flat index that each register, lane and warp bit adds (by
    /// exclusive or). `dim_bits` are the log2 of the extents.
    ///
    /// # Errors
    /// When the tile is too large, a column lies outside it, or an element has no place.
    pub fn new(
        dim_bits: Vec<u32>,
        register: Vec<u64>,
        lane: Vec<u64>,
        warp: Vec<u64>,
    ) -> Result<LinearLayout, LayoutError> {
        let bits: u32 = dim_bits.iter().sum();
        if bits > MAX_TILE_BITS {
            return Err(LayoutError::TooManyBits {
                found: bits,
                limit: MAX_TILE_BITS,
            });
        }
        let layout = LinearLayout {
            dim_bits,
            register,
            lane,
            warp,
        };
        let columns = layout.columns();
        if let Some(&column) = columns.iter().find(|&&column| column >> bits != 0) {
            return Err(LayoutError::ColumnOutOfRange { column, bits });
        }
        let found = Span::of(&columns).dimension() as u32;
        if found != bits {
            return Err(LayoutError::NotSurjective {
                found,
                expected: bits,
            });
        }
        Ok(layout)
    }

    /// All elements in the registers of every lane, in row-major order: what a scalar, or a tile
    /// that everybody needs, looks like.
    ///
    /// # Errors
    /// When the tile is too large.
    pub fn replicated(
        dim_bits: Vec<u32>,
        lane_bits: u32,
        warp_bits: u32,
    ) -> Result<LinearLayout, LayoutError> {
        let bits: u32 = dim_bits.iter().sum();
        let register = (0..bits.min(MAX_TILE_BITS)).map(|bit| 1 << bit).collect();
        LinearLayout::new(
            dim_bits,
            register,
            vec![0; lane_bits as usize],
            vec![0; warp_bits as usize],
        )
    }

    /// The usual blocked layout. Along `order` (fastest dimension first), `size_per_thread` bits of
    /// each dimension go to registers, then `threads_per_warp` to lanes, then `warps` to warps; what
    /// is left of the tile goes to further registers. All counts are log2. Lane and warp bits beyond
    /// the tile are free (the data are replicated), register bits beyond it are dropped.
    ///
    /// # Errors
    /// When a list does not have one entry per dimension, or the tile is too large.
    pub fn blocked(
        dim_bits: &[u32],
        size_per_thread: &[u32],
        threads_per_warp: &[u32],
        warps: &[u32],
        order: &[usize],
    ) -> Result<LinearLayout, LayoutError> {
        let rank = dim_bits.len();
        for list in [size_per_thread, threads_per_warp, warps] {
            if list.len() != rank {
                return Err(LayoutError::RankMismatch {
                    found: list.len(),
                    expected: rank,
                });
            }
        }
        check_permutation(order, rank)?;
        let mut taken = vec![0; rank];
        let mut deal = |counts: &[u32]| {
            let mut columns = Vec::new();
            for &dim in order {
                for _ in 0..counts[dim] {
                    let inside = taken[dim] < dim_bits[dim];
                    columns.push(inside.then(|| 1 << (dim_offset(dim_bits, dim) + taken[dim])));
                    taken[dim] += u32::from(inside);
                }
            }
            columns
        };
        let mut register: Vec<u64> = deal(size_per_thread).into_iter().flatten().collect();
        let lane = deal(threads_per_warp)
            .into_iter()
            .map(Option::unwrap_or_default)
            .collect();
        let warp = deal(warps)
            .into_iter()
            .map(Option::unwrap_or_default)
            .collect();
        register.extend(deal(dim_bits).into_iter().flatten());
        LinearLayout::new(dim_bits.to_vec(), register, lane, warp)
    }

    /// The log2 of the extents, slowest dimension first.
    #[must_use]
    pub fn dim_bits(&self) -> &[u32] {
        &self.dim_bits
    }

    /// The extents, slowest dimension first.
    #[must_use]
    pub fn shape(&self) -> Vec<u64> {
        shape_of(&self.dim_bits)
    }

    /// The log2 of the number of elements.
    #[must_use]
    pub fn tile_bits(&self) -> u32 {
        self.dim_bits.iter().sum()
    }

    /// The number of registers in each lane.
    #[must_use]
    pub fn registers(&self) -> u32 {
        1 << self.register.len()
    }

    /// The log2 of the number of lanes.
    #[must_use]
    pub fn lane_bits(&self) -> u32 {
        self.lane.len() as u32
    }

    /// The log2 of the number of warps.
    #[must_use]
    pub fn warp_bits(&self) -> u32 {
        self.warp.len() as u32
    }

    /// The flat index that each register bit adds.
    #[must_use]
    pub fn register_columns(&self) -> &[u64] {
        &self.register
    }

    /// The flat index that each lane bit adds.
    #[must_use]
    pub fn lane_columns(&self) -> &[u64] {
        &self.lane
    }

    /// The flat index that each warp bit adds.
    #[must_use]
    pub fn warp_columns(&self) -> &[u64] {
        &self.warp
    }

    /// All columns: registers, then lanes, then warps.
    #[must_use]
    pub fn columns(&self) -> Vec<u64> {
        [self.register.as_slice(), &self.lane, &self.warp].concat()
    }

    /// The whole map as a matrix over the bits (registers, then lanes, then warps).
    #[must_use]
    pub fn matrix(&self) -> BitMatrix {
        BitMatrix::new(self.tile_bits(), self.columns())
            .expect("broken invariant: a layout's columns lie inside its tile")
    }

    /// The flat row-major index of the element at a place.
    #[must_use]
    pub fn apply(&self, point: Point) -> u64 {
        apply(&self.register, u64::from(point.register))
            ^ apply(&self.lane, u64::from(point.lane))
            ^ apply(&self.warp, u64::from(point.warp))
    }

    /// The index along each dimension of a flat index.
    #[must_use]
    pub fn coordinates(&self, flat: u64) -> Vec<u64> {
        coordinates(&self.dim_bits, flat)
    }

    /// One place of an element: the one that uses registers first, then lanes, then warps.
    #[must_use]
    pub fn place_of(&self, flat: u64) -> Point {
        let bits = Span::of(&self.columns())
            .solve(flat)
            .expect("broken invariant: a layout reaches every element");
        let (registers, lanes) = (self.register.len(), self.lane.len());
        Point {
            register: (bits & ((1 << registers) - 1)) as u32,
            lane: (bits >> registers & ((1 << lanes) - 1)) as u32,
            warp: (bits >> (registers + lanes)) as u32,
        }
    }

    /// The bits (register, lane, warp masks) that can be zero for every element: a place whose free
    /// bits are all zero is the one owner of its element.
    #[must_use]
    pub fn free_bits(&self) -> Point {
        let mut span = Span::default();
        let mut free = |columns: &[u64]| {
            let mut mask = 0;
            for (bit, &column) in columns.iter().enumerate() {
                mask |= u32::from(!span.insert(column, 0)) << bit;
            }
            mask
        };
        let (register, lane, warp) = (free(&self.register), free(&self.lane), free(&self.warp));
        Point {
            register,
            lane,
            warp,
        }
    }

    /// Whether some element has more than one place.
    #[must_use]
    pub fn is_replicated(&self) -> bool {
        self.free_bits() != Point::default()
    }

    /// What holds bit `bit` of the flat index.
    #[must_use]
    pub fn holder(&self, bit: u32) -> Holder {
        let only = |columns: &[u64]| {
            let touching: Vec<usize> = (0..columns.len())
                .filter(|&column| columns[column] >> bit & 1 == 1)
                .collect();
            (
                touching.len(),
                touching
                    .first()
                    .map(|&column| (column as u32, columns[column])),
            )
        };
        let found = [only(&self.register), only(&self.lane), only(&self.warp)];
        if found.iter().map(|(count, _)| count).sum::<usize>() != 1 {
            return Holder::Mixed;
        }
        match found.map(|(_, first)| first.filter(|&(_, column)| column == 1 << bit)) {
            [Some((column, _)), _, _] => Holder::Register(column),
            [None, Some((column, _)), _] => Holder::Lane(column),
            [None, None, Some((column, _))] => Holder::Warp(column),
            [None, None, None] => Holder::Mixed,
        }
    }

    /// The mask of flat index bits that belong to a dimension.
    ///
    /// # Errors
    /// When the axis is out of range.
    pub fn dim_mask(&self, axis: usize) -> Result<u64, LayoutError> {
        check_axis(axis, self.dim_bits.len())?;
        Ok(((1 << self.dim_bits[axis]) - 1) << dim_offset(&self.dim_bits, axis))
    }

    /// The log2 of the number of consecutive registers, starting at any aligned register, that hold
    /// consecutive elements along `axis`.
    ///
    /// # Errors
    /// When the axis is out of range.
    pub fn contiguous_register_bits(&self, axis: usize) -> Result<u32, LayoutError> {
        check_axis(axis, self.dim_bits.len())?;
        let offset = dim_offset(&self.dim_bits, axis);
        let aligned = |bits: u32| {
            let low = ((1_u64 << bits) - 1) << offset;
            self.register[..bits as usize]
                .iter()
                .enumerate()
                .all(|(bit, &column)| column == 1 << (offset + bit as u32))
                && self.columns()[bits as usize..]
                    .iter()
                    .all(|column| column & low == 0)
        };
        let most = self.dim_bits[axis].min(self.register.len() as u32);
        Ok((1..=most).take_while(|&bits| aligned(bits)).count() as u32)
    }

    /// The same layout with every register column dropped that depends on earlier register columns,
    /// and for each register of `self` the register of the result that holds the same element.
    #[must_use]
    pub fn without_register_copies(&self) -> (LinearLayout, Vec<u32>) {
        let register = Span::extension(&[], &self.register);
        let span = Span::of(&register);
        let images: Vec<u64> = self
            .register
            .iter()
            .map(|&column| {
                span.solve(column)
                    .expect("broken invariant: dropped columns were dependent")
            })
            .collect();
        let source = (0..self.registers())
            .map(|number| apply(&images, u64::from(number)) as u32)
            .collect();
        let layout = LinearLayout {
            dim_bits: self.dim_bits.clone(),
            register,
            lane: self.lane.clone(),
            warp: self.warp.clone(),
        };
        (layout, source)
    }

    /// The layout of tiles made of `self` repeated by `outer`: along each dimension the index bits of
    /// `self` are the low ones, and the columns of `self` come first in each place.
    ///
    /// # Errors
    /// When the number of dimensions differs, or the tile is too large.
    pub fn product(&self, outer: &LinearLayout) -> Result<LinearLayout, LayoutError> {
        same_rank(outer.dim_bits.len(), self.dim_bits.len())?;
        let dim_bits: Vec<u32> = self
            .dim_bits
            .iter()
            .zip(&outer.dim_bits)
            .map(|(inner, outer)| inner + outer)
            .collect();
        let low = |column: &u64| embed(*column, &self.dim_bits, &dim_bits, &[]);
        let high = |column: &u64| embed(*column, &outer.dim_bits, &dim_bits, &self.dim_bits);
        let join = |inner: &[u64], outer: &[u64]| {
            inner
                .iter()
                .map(low)
                .chain(outer.iter().map(high))
                .collect::<Vec<u64>>()
        };
        LinearLayout::new(
            dim_bits.clone(),
            join(&self.register, &outer.register),
            join(&self.lane, &outer.lane),
            join(&self.warp, &outer.warp),
        )
    }

    /// The layout `outer` for which `self` is `inner.product(outer)`.
    ///
    /// # Errors
    /// When the number of dimensions differs, or there is no such layout.
    pub fn left_divide(&self, inner: &LinearLayout) -> Result<LinearLayout, LayoutError> {
        same_rank(inner.dim_bits.len(), self.dim_bits.len())?;
        let outer_bits: Option<Vec<u32>> = self
            .dim_bits
            .iter()
            .zip(&inner.dim_bits)
            .map(|(whole, inner)| whole.checked_sub(*inner))
            .collect();
        let outer_bits = outer_bits.ok_or(LayoutError::NotDivisible)?;
        let divide = |whole: &[u64], part: &[u64]| {
            let starts = whole.len() >= part.len()
                && whole.iter().zip(part).all(|(&whole, &part)| {
                    whole == embed(part, &inner.dim_bits, &self.dim_bits, &[])
                });
            let rest = starts.then(|| &whole[part.len()..])?;
            rest.iter()
                .map(|&column| extract(column, &self.dim_bits, &inner.dim_bits, &outer_bits))
                .collect::<Option<Vec<u64>>>()
        };
        let register = divide(&self.register, &inner.register).ok_or(LayoutError::NotDivisible)?;
        let lane = divide(&self.lane, &inner.lane).ok_or(LayoutError::NotDivisible)?;
        let warp = divide(&self.warp, &inner.warp).ok_or(LayoutError::NotDivisible)?;
        LinearLayout::new(outer_bits, register, lane, warp)
    }
}

/// The extents of a tile.
pub(crate) fn shape_of(dim_bits: &[u32]) -> Vec<u64> {
    dim_bits.iter().map(|bits| 1 << bits).collect()
}

/// The index along each dimension of a flat index.
fn coordinates(dim_bits: &[u32], flat: u64) -> Vec<u64> {
    (0..dim_bits.len())
        .map(|dim| flat >> dim_offset(dim_bits, dim) & ((1 << dim_bits[dim]) - 1))
        .collect()
}

/// The flat index in shape `to` of an element of shape `from`, moved up by `shift` bits along each
/// dimension (no shift when the list is empty).
fn embed(flat: u64, from: &[u32], to: &[u32], shift: &[u32]) -> u64 {
    coordinates(from, flat)
        .iter()
        .enumerate()
        .fold(0, |sum, (dim, index)| {
            let up = shift.get(dim).copied().unwrap_or(0);
            sum | index << (dim_offset(to, dim) + up)
        })
}

/// The inverse of [`embed`] with a shift of `low`; `None` when a low bit is set.
fn extract(flat: u64, whole: &[u32], low: &[u32], outer: &[u32]) -> Option<u64> {
    coordinates(whole, flat)
        .iter()
        .enumerate()
        .try_fold(0, |sum, (dim, &index)| {
            let inside = index & ((1 << low[dim]) - 1);
            (inside == 0).then(|| sum | index >> low[dim] << dim_offset(outer, dim))
        })
}

/// Checks that two dimension counts agree.
pub(crate) fn same_rank(found: usize, expected: usize) -> Result<(), LayoutError> {
    if found == expected {
        Ok(())
    } else {
        Err(LayoutError::RankMismatch { found, expected })
    }
}

/// Checks that an axis names a dimension.
pub(crate) fn check_axis(found: usize, rank: usize) -> Result<(), LayoutError> {
    if found < rank {
        Ok(())
    } else {
        Err(LayoutError::AxisOutOfRange { found, rank })
    }
}

/// Checks that a list names every dimension once.
pub(crate) fn check_permutation(found: &[usize], rank: usize) -> Result<(), LayoutError> {
    let mut sorted = found.to_vec();
    sorted.sort_unstable();
    if sorted.into_iter().eq(0..rank) {
        Ok(())
    } else {
        Err(LayoutError::NotAPermutation {
            found: found.to_vec(),
            rank,
        })
    }
}
