//! Which layouts suit memory accesses, dots and tiles that nothing constrains.

use std::collections::BTreeMap;
use std::iter;

use super::linear::{Holder, LinearLayout};
use super::slots::in_vectors;
use crate::ir::index_map::dim_offset;
use crate::ir::operand::group_sum;
use crate::ir::{DType, Func, Inst, MemoryAccess, Op, Precision, Region, Value};
use crate::passes::indices::{Along, Indices};
use crate::target::{Gpu, LANE_BITS, Target};

impl MemoryAccess {
    /// The axes, the one along which offsets count up furthest first.
    #[must_use]
    pub fn order(&self, func: &Func, indices: &Indices) -> Vec<usize> {
        let facts = indices.fact(self.offsets);
        let mut order: Vec<usize> = (0..func.ty(self.offsets).shape.rank()).rev().collect();
        order.sort_by_key(|&axis| std::cmp::Reverse(facts.axis(axis).counting()));
        order
    }

    /// Log2 of the number of consecutive elements along `axis` that one access may move: they are
    /// consecutive in memory, are aligned, and fit a vector of the target. Their masks hold up to one of them.
    #[must_use]
    pub fn vector_bits(&self, func: &Func, indices: &Indices, axis: usize, target: &Target) -> u32 {
        let whole = self.whole_bits(func, indices, axis, target);
        let mask = self.mask.map(|mask| indices.fact(mask).axis(axis));
        let falling = mask.map_or(0, Along::falling);
        if falling > whole && indices.remembered(|| Self::all_aligned(func, indices, target)) {
            return self.bits(func, indices, axis, falling, target);
        }
        whole
    }

    /// The same for elements that share their mask.
    #[must_use]
    pub fn whole_bits(&self, func: &Func, indices: &Indices, axis: usize, target: &Target) -> u32 {
        let mask = self.mask.map(|mask| indices.fact(mask).axis(axis));
        let masked = mask.map_or(u32::MAX, Along::equal);
        self.bits(func, indices, axis, masked, target)
    }

    /// The registers of each access in a layout: as many neighbours along the contiguous axis as registers
    /// hold and one instruction may move.
    #[must_use]
    pub fn vectors(
        &self,
        func: &Func,
        indices: &Indices,
        layout: &LinearLayout,
        target: &Target,
    ) -> Vec<Vec<u32>> {
        let bits = |axis| self.vector_bits(func, indices, axis, target);
        in_vectors(
            layout.registers(),
            &self.neighbours(func, indices, layout, &bits),
        )
    }

    /// The same for copies, of which each has one mask; the second are the bits of the register that a vector
    /// spans.
    #[must_use]
    pub fn copied_vectors(
        &self,
        func: &Func,
        indices: &Indices,
        layout: &LinearLayout,
        target: &Target,
    ) -> (Vec<Vec<u32>>, Vec<u32>) {
        let bits = |axis| self.whole_bits(func, indices, axis, target);
        let found = self.neighbours(func, indices, layout, &bits);
        let numbers = found.iter().map(|bit| bit.trailing_zeros()).collect();
        (in_vectors(layout.registers(), &found), numbers)
    }

    /// The register bits that hold the lowest index bits of the contiguous axis, at most so many.
    fn neighbours(
        &self,
        func: &Func,
        indices: &Indices,
        layout: &LinearLayout,
        most: &dyn Fn(usize) -> u32,
    ) -> Vec<u32> {
        let Some(&axis) = self.order(func, indices).first() else {
            return Vec::new();
        };
        let lowest = layout.dim_mask(axis).map_or(0, u64::trailing_zeros);
        let held = (lowest..lowest + most(axis)).map_while(|bit| match layout.holder(bit) {
            Holder::Register(register) => Some(1_u32 << register),
            Holder::Lane(_) | Holder::Warp(_) | Holder::Mixed => None,
        });
        held.collect()
    }

    /// Whether every masked access of runs would do with vectors but for its mask. One that goes
    /// element by element is best off in a layout that the others should share.
    fn all_aligned(func: &Func, indices: &Indices, target: &Target) -> bool {
        let insts = func.all_insts();
        let mut tiles = insts.iter().filter_map(|&inst| func.op(inst).access());
        tiles.all(|tile| {
            let order = tile.order(func, indices);
            order.first().is_none_or(|&axis| {
                let runs = indices.fact(tile.offsets).axis(axis).counting() > 0;
                let masked = tile.mask.is_some() && runs;
                !masked || tile.bits(func, indices, axis, u32::MAX, target) > 0
            })
        })
    }

    fn bits(
        &self,
        func: &Func,
        indices: &Indices,
        axis: usize,
        masked: u32,
        target: &Target,
    ) -> u32 {
        let Some((dtype, _)) = func.ty(self.base).pointee() else {
            return 0;
        };
        let element = dtype.bytes().ilog2();
        let base = func
            .parameter_index(self.base)
            .map_or(0, |index| func.parameters[index].divisor.trailing_zeros());
        let facts = indices.fact(self.offsets).axis(axis);
        let most = facts.counting().min(masked);
        let most = most.min(target.vector_bytes.ilog2() - element);
        let fits = |bits: &u32| facts.divisor_of_runs(*bits) >= *bits && base >= element + bits;
        (1..=most).rev().find(fits).unwrap_or(0)
    }
}

/// What holds the highest bits of an index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Highest {
    /// Warps: a reduction along the fastest axis finds its tree levels in registers, then lanes, then registers, and
    /// only at the very end in warps.
    Warps,
    /// Registers, where the fastest axis is long enough: all lanes have a share of each part of it, so that none has
    /// more than others of a part without elements, and all leave it out.
    Registers,
}

/// The layout for memory accesses: vectors along the first axis of `order`, then lanes along the
/// axes in order, warps on the highest bits of the slowest axes or behind the lanes, and the other bits in registers.
#[must_use]
pub fn access_layout(
    dim_bits: &[u32],
    order: &[usize],
    vector_bits: u32,
    warp_bits: u32,
    highest: Highest,
) -> LinearLayout {
    let mut bits: std::collections::VecDeque<u64> = order
        .iter()
        .flat_map(|&dim| {
            let offset = dim_offset(dim_bits, dim);
            (0..dim_bits[dim]).map(move |bit| 1 << (offset + bit))
        })
        .collect();
    let spare = (bits.len() as u32).saturating_sub(LANE_BITS + warp_bits);
    let first = order.first().map_or(0, |&dim| dim_bits[dim]);
    let mut register: Vec<u64> = (0..vector_bits.min(spare).min(first))
        .filter_map(|_| bits.pop_front())
        .collect();
    let lane = (0..LANE_BITS)
        .map(|_| bits.pop_front().unwrap_or(0))
        .collect();
    let is_long = first > register.len() as u32 + LANE_BITS + warp_bits;
    let warp: Vec<u64> = if is_long && highest == Highest::Registers {
        (0..warp_bits).filter_map(|_| bits.pop_front()).collect()
    } else {
        let mut warp: Vec<u64> = (0..warp_bits)
            .map(|_| bits.pop_back().unwrap_or(0))
            .collect();
        warp.reverse();
        warp
    };
    register.extend(bits);
    LinearLayout::new(dim_bits.to_vec(), register, lane, warp)
        .expect("broken invariant: every bit of the tile is dealt once")
}

/// Log2 of the neighbours along an axis, of these index bits, that the lanes of a warp write at once.
fn run(layout: &LinearLayout, axis: u64) -> u32 {
    let lowest = axis.trailing_zeros();
    let mut lanes = false;
    let held = (lowest..64).take_while(|&bit| axis >> bit & 1 == 1);
    let together = held.take_while(|&bit| match layout.holder(bit) {
        Holder::Register(_) => !lanes,
        Holder::Lane(_) => {
            lanes = true;
            true
        }
        Holder::Warp(_) | Holder::Mixed => false,
    });
    together.count() as u32
}

/// Whether a store in layout `found` touches memory as one in `preferred` does: lanes walk the axis
/// of these index bits, in which memory is contiguous, and no farther apart than `line_bytes`; and together they
/// write whole lines where those of `preferred` do.
#[must_use]
pub fn is_coalesced(
    found: &LinearLayout,
    preferred: &LinearLayout,
    axis: u64,
    bytes: u32,
    line_bytes: u32,
) -> bool {
    let sectors =
        |layout: &LinearLayout| (u64::from(bytes) << run(layout, axis)).min(line_bytes.into());
    if sectors(found) < sectors(preferred) {
        return false;
    }
    let first = |layout: &LinearLayout| layout.lane_columns().first().copied().unwrap_or(0);
    let (found, preferred) = (first(found), first(preferred));
    if found == 0 || preferred & axis == 0 {
        return true;
    }
    let step = (found & axis) >> axis.trailing_zeros();
    step != 0 && (found <= preferred || step * u64::from(bytes) <= u64::from(line_bytes))
}

/// The layout of the accumulator of a dot: each lane owns blocks of up to 4 x 4 elements, lanes form
/// a grid over the tile, then warps, then further registers. The products of a batch, an axis before
/// those of the matrix, go to warps first.
#[must_use]
pub fn dot_layout(dim_bits: &[u32], warp_bits: u32) -> LinearLayout {
    let rank = dim_bits.len();
    let (row, column) = (rank - 2, rank - 1);
    let batch: u32 = dim_bits[..row].iter().sum();
    let all: u32 = dim_bits.iter().sum();
    let spare = all.saturating_sub(LANE_BITS + warp_bits);
    let mut taken = vec![0; rank];
    let mut take = |dim: usize| {
        let limit = dim_bits[dim];
        (taken[dim] < limit).then(|| {
            taken[dim] += 1;
            1 << (dim_offset(dim_bits, dim) + taken[dim] - 1)
        })
    };
    let mut register: Vec<u64> = [column, column, row, row]
        .iter()
        .take(spare as usize)
        .filter_map(|&dim| take(dim))
        .collect();
    let mut deal = |dims: &[usize]| -> Vec<u64> {
        dims.iter()
            .map(|&dim| {
                let mut dims = iter::once(dim).chain((0..rank).rev());
                dims.find_map(&mut take).unwrap_or(0)
            })
            .collect()
    };
    // Neighbours by the first bit of a lane read the same rows of the left factor, by the second one the same columns
    // of the right one, so that shared memory gives a vector to all lanes in two cycles.
    let lane = deal(&[column, row, row, column, column]);
    let alternating = (0..warp_bits as usize).map(|bit| row + bit % 2);
    let outer = iter::repeat_n(0, batch as usize).chain(alternating);
    let warp: Vec<usize> = outer.take(warp_bits as usize).collect();
    let warp = deal(&warp);
    register.extend(
        deal(&vec![column; all as usize])
            .into_iter()
            .filter(|&column| column != 0),
    );
    LinearLayout::new(dim_bits.to_vec(), register, lane, warp)
        .expect("broken invariant: every bit of the tile is dealt once")
}

/// Log2 of the number of warps that suits a function: about sixteen elements per lane of its largest
/// tile, up to 64 before there are more than four warps, and not more where further warps can prevent it.
///
/// Where there are no products, whose operands go to shared memory, a lane holds fewer if it would load more than
/// [`Gpu::loaded_bytes`] for its elements, or more than [`Gpu::suiting_bytes`] while there are fewer than four warps. Of sums of
/// products alone it holds twice as many: the instructions of more groups would be narrower, and lanes that multiply read each
/// number of an operand for more sums.
#[must_use]
pub fn warp_bits_for(func: &Func, gpu: &Gpu) -> u32 {
    let largest = func
        .all_insts()
        .into_iter()
        .flat_map(|inst| func.inst(inst).results.clone())
        .map(|value| func.ty(value).shape.elements().trailing_zeros())
        .max()
        .unwrap_or(0);
    let (suiting, held) = if multiplies(func) {
        (4, 6 + u32::from(adds_products_alone(func)))
    } else {
        let loaded = loaded_bytes(func, func.body(), largest).max(1);
        let bits = |bytes: usize| (bytes / loaded).max(1).ilog2();
        (
            bits(gpu.suiting_bytes).min(4),
            bits(gpu.loaded_bytes).min(6),
        )
    };
    let wanted = largest.saturating_sub(LANE_BITS + suiting).min(2);
    let needed = largest.saturating_sub(LANE_BITS + held).min(5);
    wanted.max(needed)
}

fn multiplies(func: &Func) -> bool {
    let mut insts = func.all_insts().into_iter();
    insts.any(|inst| matches!(func.op(inst), Op::Dot(_)))
}

/// The bytes of one element of each load of so large a tile, of those that one way through a region makes.
fn loaded_bytes(func: &Func, region: Region, largest: u32) -> usize {
    let of = |&inst: &Inst| {
        let op = func.op(inst);
        if !matches!(op, Op::Load(_)) {
            let inner = op.regions().into_iter();
            let inner = inner.map(|region| loaded_bytes(func, region, largest));
            return inner.max().unwrap_or(0);
        }
        let ty = func.ty(func.inst(inst).results[0]);
        let is_largest = ty.shape.elements().trailing_zeros() == largest;
        let bytes = ty.dtype().map_or(0, |dtype| dtype.bytes() as usize);
        if is_largest { bytes } else { 0 }
    };
    func.region(region).insts.iter().map(of).sum()
}

/// Whether there are products, all of them by groups of warps, or of `f32` by lanes, to sums that their loop carries, and to
/// one sum of a loop at most.
fn adds_products_alone(func: &Func) -> bool {
    let regions = func.all_regions();
    let of_loop = |value: Value| {
        let mut regions = regions.iter();
        regions.find(|&&region| func.region(region).parameters.contains(&value))
    };
    let mut sums = BTreeMap::new();
    for &region in &regions {
        let insts = func.region(region).insts.iter();
        let dots = insts.filter_map(|&inst| {
            let Op::Dot(dot) = func.op(inst) else {
                return None;
            };
            Some(dot)
        });
        for (place, dot) in dots.enumerate() {
            let operand = func.ty(dot.a).dtype();
            let adds = operand.is_some_and(|operand| match dot.precision {
                Precision::Ieee => operand == DType::F32,
                Precision::Hopper | Precision::Cut => group_sum(dot.precision, operand).is_some(),
            });
            let sum = dot.accumulator;
            let own = of_loop(sum).map(|&of_loop| *sums.entry(of_loop).or_insert(sum) == sum);
            if place > 0 || !adds || own != Some(true) {
                return false;
            }
        }
    }
    !sums.is_empty()
}
