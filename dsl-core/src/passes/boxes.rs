//! Accesses to boxes of arrays: loads of operands of products by tensor cores, which bulk copies then bring to shared
//! memory without a lane that computes an address, and stores of what follows from the sums, which they take from there.
//!
//! An access is one of a box if its offsets are a sum of an index times a stride along each axis, and its mask says of
//! each index that it is in an extent. What the copies ask of a launch beside, [`Boxes`](crate::launch::Boxes) says.

mod made;
mod parts;
mod stores;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use parts::Along;

use super::dce::{dce, drop_unused};
use super::indices::Indices;
use super::linear::Linear;
use super::mask_axes::MaskAxes;
use super::ranges::Range;
use crate::entity::EntityMap;
use crate::facts::Boxed;
use crate::ir::index_map::dim_bits;
use crate::ir::numbers::filling;
use crate::ir::op::Control;
use crate::ir::operand::group_sum;
use crate::ir::{
    Access, Cache, CompareOp, Func, Inst, Literal, Op, Precision, Region, Shape, Type, Value, op,
};
use crate::launch::{BOX_NUMBERS, LaunchExpression, inner_axis};
use crate::layout::group::{Groups, Multiplied, groups, operand_slot};
use crate::target::Target;

/// An array of which an access touches a box: numbers for each axis, outermost first.
struct Array {
    origin: Vec<Linear>,
    extents: Vec<Linear>,
    strides: Vec<Linear>,
    ends: Vec<End>,
    /// Where the tile has several parts, each with an origin.
    along: Option<Along>,
}

/// What a mask says beside the extents: the box is touched up to an index along one of its axes.
struct End {
    /// The last index that the box has there.
    last: Linear,
    /// What touched indices are below.
    below: Linear,
}

impl Array {
    /// The axis along which elements are contiguous.
    fn inner(&self) -> Option<usize> {
        let mut axes = (0..self.strides.len()).rev();
        axes.find(|&axis| self.strides[axis].constant() == Some(1))
    }
}

/// What is known of a function.
struct Known<'a> {
    func: &'a Func,
    definitions: EntityMap<Value, Option<Inst>>,
    indices: Indices,
}

/// Whether a machine may copy boxes of arrays for a function, since its tensor cores multiply tiles of memory.
#[must_use]
pub fn may_copy_boxes(func: &Func, target: &Target) -> bool {
    let mut insts = func.all_insts().into_iter();
    let multiplied = |inst: Inst| {
        let (values, precision) = if let Op::Dot(op) = func.op(inst) {
            ([op.a, op.accumulator], op.precision)
        } else if let Op::DotPromoted(op) = func.op(inst) {
            ([op.a, op.accumulator], op.precision)
        } else {
            return false;
        };
        let [operand, sum] = values.map(|value| func.ty(value).dtype());
        // Tensor cores multiply bytes whatever the precision.
        let asked = precision != Precision::Ieee || sum.is_some_and(|sum| !sum.is_float());
        let mut known = target.gpu.mma.iter();
        let added = operand.and_then(|operand| known.find_map(|&it| group_sum(it, operand)));
        asked && added.is_some() && added == sum
    };
    target.gpu.copies_boxes && insts.any(multiplied)
}

/// Whether an instruction accesses a box of an array.
fn is_of_box(func: &Func, inst: Inst) -> bool {
    matches!(func.op(inst), Op::LoadBox(_) | Op::StoreBox(_))
}

/// Which boxes of arrays a function accesses.
#[must_use]
pub fn boxes_of(func: &Func) -> Boxed {
    let has = |is: fn(&Op) -> bool| func.all_insts().into_iter().any(|inst| is(func.op(inst)));
    match (
        has(|op| matches!(op, Op::StoreBox(_))),
        has(|op| matches!(op, Op::LoadBox(_))),
    ) {
        (true, _) => Boxed::All,
        (false, true) => Boxed::Loads,
        (false, false) => Boxed::Nothing,
    }
}

/// Who shares a product: so many warps, with so much shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// The warps of a thread block.
    pub warps: u32,
    /// Its shared memory.
    pub shared_bytes: u32,
}

/// Makes `load_box` of loads that only a product by groups of warps reads, also of several that are put together along an axis, and
/// `store_box` of stores of what follows from the sums of one: where a mask ends rows before the array does, only of programs whose
/// whole tile lies before that end.
pub fn raise_boxes(func: &mut Func, share: Share) {
    let found = {
        let [low, high] = BOX_NUMBERS;
        let known = Known {
            func,
            definitions: func.definitions(),
            indices: Indices::given(func, Some(Range { low, high })),
        };
        let operands = operands(func, share).into_iter();
        let arrays = operands.filter_map(|(load, of)| {
            let array = known.array(load, of);
            Some((load, array.or_else(|| known.in_parts(load, of))?))
        });
        let stores = stores::results(func, share).into_iter();
        let stores = stores.filter_map(|store| Some((store, known.stored(store, share)?)));
        arrays.chain(stores).collect::<BTreeMap<Inst, Array>>()
    };
    if found.is_empty() {
        return;
    }
    func.keep_sites();
    let along = found.values().filter_map(|it| it.along.as_ref());
    let parts: BTreeSet<Inst> = along.flat_map(|it| it.parts.clone()).collect();
    let mut branches = Vec::new();
    for region in func.all_regions() {
        for inst in std::mem::take(&mut func.region_mut(region).insts) {
            if let Some(array) = found.get(&inst) {
                let masked = made::raised(func, region, inst, array);
                branches.extend(masked.map(|masked| (region, masked)));
            } else {
                func.region_mut(region).insts.push(inst);
            }
        }
    }
    if !parts.is_empty() {
        dce(func);
        drop_unused(func, &|_, inst| parts.contains(&inst));
    }
    if !branches.is_empty() || !parts.is_empty() {
        // What boxes need no more keeps nothing out of a branch.
        dce(func);
    }
    for (region, masked) in branches {
        made::sink(func, region, masked);
    }
}

/// Makes loads and stores with masks of each access to a box that no bulk copy can move: `keep` tells those that one can.
pub fn expand_boxes(func: &mut Func, keep: &dyn Fn(&Func, Inst) -> bool) {
    let boxes = func.all_insts().into_iter();
    let boxes = boxes.filter(|&inst| is_of_box(func, inst));
    let found: Vec<Inst> = boxes.filter(|&inst| !keep(func, inst)).collect();
    if found.is_empty() {
        return;
    }
    func.keep_sites();
    for region in func.all_regions() {
        for inst in std::mem::take(&mut func.region_mut(region).insts) {
            if found.contains(&inst) {
                made::expanded(func, region, inst);
            }
            func.region_mut(region).insts.push(inst);
        }
    }
}

/// What makes the tiles that are operands of products by groups of so many warps, and nothing else, where a number counts how
/// often they run: with the product, or once before it.
fn operands(
    func: &Func,
    Share {
        warps,
        shared_bytes,
    }: Share,
) -> Vec<(Inst, Multiplied)> {
    let definitions = func.definitions();
    let mut uses: BTreeMap<Value, usize> = BTreeMap::new();
    let insts = func.all_insts();
    for &inst in &insts {
        func.op(inst)
            .visit_operands(&mut |value| *uses.entry(value).or_default() += 1);
    }
    let mut found = Vec::new();
    let once = insts_run_once(func);
    for (region, _) in counted_regions(func) {
        let own = &func.region(region).insts;
        for &inst in own {
            let Op::Dot(dot) = func.op(inst) else {
                continue;
            };
            let shared = shared_by_groups(func, dot, warps.trailing_zeros(), shared_bytes);
            let dtype = func.ty(dot.a).dtype();
            let Some(dtype) = dtype.filter(|_| shared.is_some()) else {
                continue;
            };
            for (value, products) in [(dot.a, 1), (dot.b, 0)] {
                let load = definitions[value];
                let load = load.filter(|load| own.contains(load) || once.contains(load));
                let load = load.filter(|_| uses[&value] == 1);
                found.extend(load.map(|load| (load, Multiplied { dtype, products })));
            }
        }
    }
    found
}

/// How groups of so many warps share a product, if they multiply its operands and shared memory has room for them.
#[must_use]
pub fn shared_by_groups(
    func: &Func,
    dot: &op::Dot,
    warp_bits: u32,
    shared_bytes: u32,
) -> Option<Groups> {
    if func.ty(dot.a).shape.rank() > 2 {
        return None;
    }
    let extent = |value: Value, axis: usize| func.ty(value).shape.extent(axis).ilog2();
    let [rows, columns, products] = [extent(dot.a, 0), extent(dot.b, 1), extent(dot.a, 1)];
    let operand = func.ty(dot.a).dtype()?;
    let taken =
        u64::from(operand.bytes()) * ((1 << (rows + products)) + (1 << (products + columns)));
    let adds = group_sum(dot.precision, operand).is_some();
    let room = adds && taken <= u64::from(shared_bytes);
    groups([rows, columns, products], warp_bits, operand).filter(|_| room)
}

/// The regions whose runs a number counts, each with the region that is in no loop, or the body of the outermost loop around it:
/// bodies of counted loops, each directly in the one around it, and those in no loop.
fn counted_regions(func: &Func) -> Vec<(Region, Region)> {
    let mut found = Vec::new();
    let mut pending = vec![(func.body(), None)];
    while let Some((region, outermost)) = pending.pop() {
        found.push((region, outermost.unwrap_or(region)));
        for &inst in &func.region(region).insts {
            match func.op(inst).control() {
                Some(Control::For(op)) => {
                    pending.push((op.body, Some(outermost.unwrap_or(op.body))));
                }
                Some(Control::If(op)) if outermost.is_none() => {
                    pending.extend([(op.on_true, None), (op.on_false, None)]);
                }
                Some(Control::If(_) | Control::While(_)) | None => {}
            }
        }
    }
    found
}

/// The instructions that are in no loop.
fn insts_run_once(func: &Func) -> BTreeSet<Inst> {
    let mut found = BTreeSet::new();
    let mut pending = vec![func.body()];
    while let Some(region) = pending.pop() {
        for &inst in &func.region(region).insts {
            found.insert(inst);
            if let Some(Control::If(op)) = func.op(inst).control() {
                pending.extend([op.on_true, op.on_false]);
            }
        }
    }
    found
}

/// Whether a bulk copy can bring a box to a product that groups of so many warps share, or take one from shared memory. Where
/// accesses are checked, a program may end beside one that is checked, and no copy may be under way then, in either direction.
#[must_use]
pub fn is_copied(func: &Func, load: Inst, share: Share, may_end: &dyn Fn(&Op) -> bool) -> bool {
    if let Op::StoreBox(op) = func.op(load) {
        return stores::is_taken(func, op, share, may_end);
    }
    let mut regions = counted_regions(func).into_iter();
    let own = regions.find(|&(region, _)| func.region(region).insts.contains(&load));
    let ends = own.is_none_or(|(_, outermost)| {
        let mut ends = false;
        func.walk(outermost, &mut |inst| ends |= may_end(func.op(inst)));
        ends && outermost != func.body()
    });
    let Op::LoadBox(boxed) = func.op(load) else {
        return false;
    };
    let in_chunks = |&(_, of): &(Inst, Multiplied)| {
        let shape = func.ty(func.inst(load).results[0]).shape;
        let inner = inner_axis(func, &boxed.strides);
        inner.is_some_and(|inner| operand_slot(&dim_bits(&shape), inner, of).is_some())
    };
    let mut operands = operands(func, share).into_iter();
    let own = operands.find(|&(operand, _)| operand == load);
    !ends && own.as_ref().is_some_and(in_chunks)
}

impl Known<'_> {
    /// The array that a load reads a box of.
    fn array(&self, load: Inst, of: Multiplied) -> Option<Array> {
        let Op::Load(op) = self.func.op(load) else {
            return None;
        };
        let parameter = self.func.parameter_index(op.base)?;
        let only_read = self.func.parameters[parameter].access == Access::Read;
        if op.cache == Some(Cache::Volatile) {
            return None;
        }
        let zero = op.other.is_none_or(|other| {
            let op = |value: Value| Some(self.func.op(self.definitions[value]?));
            filling(other, op).is_some_and(Literal::is_positive_zero)
        });
        if !only_read || !zero {
            return None;
        }
        let array = self.in_box(op.offsets, op.mask?)?;
        let fits = self.fits(op.offsets, array.inner()?, of);
        (fits && array.ends.is_empty()).then_some(array)
    }

    /// Whether there is a slot for a tile of this shape, of which elements along `inner` are contiguous.
    fn fits(&self, tile: Value, inner: usize, of: Multiplied) -> bool {
        let shape = self.func.ty(tile).shape;
        operand_slot(&dim_bits(&shape), inner, of).is_some()
    }

    /// The array of which offsets with a mask are a box.
    fn in_box(&self, offsets: Value, mask: Value) -> Option<Array> {
        let shape = self.func.ty(offsets).shape;
        if shape.rank() != 2 {
            return None;
        }
        let steps = self.indices.fact(offsets).steps()?;
        let strides: Vec<Linear> = steps.into_iter().cloned().collect();
        let ([origin, extents], ends) = self.axes(mask, shape)?;
        let place = origin[0]
            .times(&strides[0])?
            .plus(&origin[1].times(&strides[1])?)?;
        let told = |sum: &Linear| {
            let mut symbols = sum.symbols();
            symbols.all(|it| self.func.ty(it) == Type::INDEX)
        };
        let all = [&origin, &extents, &strides];
        let fits = extents.iter().chain(&strides).all(|it| self.launched(it))
            && all.into_iter().flatten().all(told)
            && ends.iter().all(|end| told(&end.last) && told(&end.below))
            && self.indices.origin(offsets) == Some(place);
        fits.then_some(Array {
            origin,
            extents,
            strides,
            ends,
            along: None,
        })
    }

    /// Whether the host knows a number when it launches.
    fn launched(&self, sum: &Linear) -> bool {
        let mut symbols = sum.symbols();
        symbols.all(|it| {
            let number = LaunchExpression::of(self.func, &self.definitions, it);
            // What a backend finds as it stands.
            number.is_some_and(|number| number.has_only_sums())
        })
    }

    fn masks(&self) -> MaskAxes<'_> {
        MaskAxes {
            func: self.func,
            definitions: &self.definitions,
            indices: &self.indices,
        }
    }

    /// What a mask says of the index along each axis: where it begins, what it is below, and where it ends before that. Of an
    /// axis of which it says nothing the tile takes all.
    fn axes(&self, mask: Value, shape: Shape) -> Option<([Vec<Linear>; 2], Vec<End>)> {
        let mut below: Vec<Option<(Linear, Linear)>> = vec![None; shape.rank()];
        let mut from_zero = Vec::new();
        let mut before = Vec::new();
        let masks = self.masks();
        for (comparison, bits) in masks.leaves(mask, &shape) {
            let Op::Compare(op::Compare { op, lhs, rhs }) = *self.op(comparison)? else {
                return None;
            };
            let (op, index, bound) = match self.indices.fact(lhs).is_uniform() {
                true => (swapped(op), rhs, lhs),
                false => (op, lhs, rhs),
            };
            let axis = masks.axis_of(index, &bits, &shape)?;
            let start = self.indices.origin(index)?;
            let bound_at = self.indices.uniform(bound)?;
            match op {
                CompareOp::Lt if below[axis].is_none() && self.launched(&bound_at) => {
                    below[axis] = Some((start, bound_at));
                }
                CompareOp::Lt => before.push((axis, start, bound_at)),
                CompareOp::Ge if bound_at.is_zero() => from_zero.push((axis, start)),
                CompareOp::Le | CompareOp::Gt | CompareOp::Ge | CompareOp::Eq | CompareOp::Ne => {
                    return None;
                }
            }
            if self
                .indices
                .range(index)
                .is_some_and(|range| range.low >= 0)
            {
                from_zero.push((axis, self.indices.origin(index)?));
            }
        }
        let below = below.into_iter().enumerate().map(|(axis, below)| {
            below.unwrap_or_else(|| {
                from_zero.push((axis, Linear::known(0)));
                (Linear::known(0), Linear::known(shape.extent(axis) as i64))
            })
        });
        let below: Vec<(Linear, Linear)> = below.collect();
        let shown = |(axis, (start, _)): (usize, &(Linear, Linear))| {
            from_zero.contains(&(axis, start.clone()))
        };
        let all = below.iter().enumerate().all(shown);
        let mut starts = from_zero.iter();
        let all = all && starts.all(|(axis, start)| below[*axis].0 == *start);
        // Of an index that begins as the box does: where its last one wraps, the box has nothing inside.
        let ends = before.into_iter().map(|(axis, start, bound)| {
            let last = Linear::known(shape.extent(axis) as i64 - 1);
            Some(End {
                last: (below[axis].0 == start).then_some(start)?.plus(&last)?,
                below: bound,
            })
        });
        let ends = ends.collect::<Option<Vec<End>>>().filter(|_| all)?;
        let (origin, extents) = below.into_iter().unzip();
        Some(([origin, extents], ends))
    }

    fn op(&self, value: Value) -> Option<&Op> {
        self.definitions[value].map(|inst| self.func.op(inst))
    }
}

/// The comparison of the sides the other way round.
fn swapped(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Lt => CompareOp::Gt,
        CompareOp::Le => CompareOp::Ge,
        CompareOp::Gt => CompareOp::Lt,
        CompareOp::Ge => CompareOp::Le,
        CompareOp::Eq | CompareOp::Ne => op,
    }
}
