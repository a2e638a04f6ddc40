//! Accesses to boxes in place of those with offsets and masks, and the other way round.

use std::collections::{BTreeMap, BTreeSet};

use super::Array;
use crate::builder::Builder;
use crate::diagnostic::Loc;
use crate::ir::{Axis, Func, Inst, Op, Region, Shape, Trait, Value, op};
use crate::passes::expand_tiles::place;

/// Appends the numbers of an array and an access to a box of it; where the box may end before the array, in a branch, beside one with
/// the access as it was, which is given back.
pub(super) fn raised(
    func: &mut Func,
    region: Region,
    access: Inst,
    array: &Array,
) -> Option<Region> {
    let ([origin, extents, strides], whole) = within(func, region, access, |builder| {
        let numbers = [&array.origin, &array.extents, &array.strides]
            .map(|sums| sums.iter().map(|sum| sum.scalar(builder)).collect());
        let mut whole = None;
        for end in &array.ends {
            let (last, below) = (end.last.scalar(builder), end.below.scalar(builder));
            let before = builder.lt(last, below);
            whole = Some(whole.map_or(before, |whole| builder.and(whole, before)));
        }
        (numbers, whole)
    });
    // What puts a tile of several parts together becomes the load of them all.
    let from = array.along.as_ref().map_or(access, |it| it.parts[0]);
    let along = array.along.as_ref().map(|it| it.axis);
    let boxed = boxed(func.op(from), [origin, extents, strides], along)?;
    let Some(whole) = whole else {
        let (site, loc) = (func.inst(from).site, func.inst(from).loc.clone());
        let data = func.inst_mut(access);
        (data.op, data.site, data.loc) = (boxed, site, loc);
        func.region_mut(region).insts.push(access);
        return None;
    };
    let mut branch = None;
    within(func, region, access, |builder| {
        let masked = |builder: &mut Builder| {
            let region = *branch.insert(builder.region());
            builder.func_mut().region_mut(region).insts.push(access);
            Vec::new()
        };
        let by_box = |builder: &mut Builder| {
            let made = builder.emit(boxed, &[]);
            let site = builder.func().inst(access).site;
            builder.func_mut().inst_mut(made).site = site;
            Vec::new()
        };
        builder.if_else(whole, by_box, masked);
    });
    branch
}

/// An access to a box in place of one with offsets and a mask.
fn boxed(
    access: &Op,
    [origin, extents, strides]: [Vec<Value>; 3],
    along: Option<Axis>,
) -> Option<Op> {
    if let &Op::Load(op::Load { base, cache, .. }) = access {
        return Some(Op::LoadBox(op::LoadBox {
            base,
            origin,
            extents,
            strides,
            along,
            cache,
        }));
    }
    let &Op::Store(op::Store {
        base, value, cache, ..
    }) = access
    else {
        return None;
    };
    Some(Op::StoreBox(op::StoreBox {
        base,
        origin,
        extents,
        strides,
        value,
        cache,
    }))
}

/// Moves what stands before an `if` and only a branch of it needs into the branch.
pub(super) fn sink(func: &mut Func, region: Region, branch: Region) {
    let mut users: BTreeMap<Value, Vec<Inst>> = BTreeMap::new();
    for inst in func.all_insts() {
        let op = func.op(inst);
        op.visit_operands(&mut |value| users.entry(value).or_default().push(inst));
    }
    let mut inside = BTreeSet::new();
    func.walk(branch, &mut |inst| {
        inside.insert(inst);
    });
    let mut kept = std::mem::take(&mut func.region_mut(region).insts);
    let owner = kept
        .iter()
        .position(|&it| func.op(it).regions().contains(&branch));
    let owner = owner.expect("broken invariant: the branch is of an `if` of the region");
    let mut moved = Vec::new();
    for at in (0..owner).rev() {
        let inst = kept[at];
        let op = func.op(inst);
        let results = func.inst(inst).results.iter();
        let mut users = results.filter_map(|it| users.get(it)).flatten().peekable();
        let is_sunk = op.is(Trait::pure)
            && op.regions().is_empty()
            && users.peek().is_some()
            && users.all(|user| inside.contains(user));
        if is_sunk {
            inside.insert(inst);
            moved.push(inst);
        }
    }
    moved.reverse();
    kept.retain(|inst| !inside.contains(inst));
    func.region_mut(region).insts = kept;
    func.region_mut(branch).insts.splice(0..0, moved);
}

/// Appends the offsets and the mask of a box, and makes it an access of them.
pub(super) fn expanded(func: &mut Func, region: Region, inst: Inst) {
    let op = func.op(inst).clone();
    let (origin, along, tensor, value, cache) = if let Op::LoadBox(op) = op {
        let array = (op.base, op.extents, op.strides);
        (op.origin, op.along, array, None, op.cache)
    } else if let Op::StoreBox(op) = op {
        let array = (op.base, op.extents, op.strides);
        (op.origin, None, array, Some(op.value), op.cache)
    } else {
        return;
    };
    let (base, extents, strides) = tensor;
    let moved = value.unwrap_or_else(|| func.inst(inst).results[0]);
    let shape = func.ty(moved).shape;
    let tensor = op::Tensor {
        base,
        extents,
        strides,
        offset: None,
    };
    let (offsets, mask) = within(func, region, inst, |builder| {
        let origin = match along {
            Some(along) => starts(builder, &origin, along.index(), shape),
            None => origin,
        };
        place(builder, &tensor, &origin, shape)
    });
    let mask = Some(mask);
    func.inst_mut(inst).op = match value {
        Some(value) => Op::Store(op::Store {
            base,
            offsets,
            value,
            mask,
            cache,
        }),
        None => Op::Load(op::Load {
            base,
            offsets,
            mask,
            other: None,
            cache,
        }),
    };
}

/// The index that a tile of several parts along an axis begins with along each axis: along that one a tile, with that from which an
/// element would have its own index.
fn starts(builder: &mut Builder, origins: &[Value], along: usize, shape: Shape) -> Vec<Value> {
    let (rank, extent) = (shape.rank(), shape.extent(along) as i64);
    let own = extent * rank as i64 / origins.len() as i64;
    let end = extent;
    let index = builder.value(Op::Arange(op::Arange { start: 0, end }));
    let mut start: Option<Value> = None;
    for (part, origin) in origins.chunks(rank).enumerate().rev() {
        let before = builder.index(part as i64 * own);
        let first = builder.sub(origin[along], before);
        let first = builder.splat(first, builder.ty(index).shape);
        start = Some(start.map_or(first, |behind| {
            let own_end = {
                let end = builder.index((part as i64 + 1) * own);
                builder.splat(end, builder.ty(index).shape)
            };
            let inside = builder.lt(index, own_end);
            builder.select(inside, first, behind)
        }));
    }
    let mut starts = origins[..rank].to_vec();
    starts[along] = start.expect("broken invariant: a tile has a part");
    starts
}

/// Appends to a region what `fill` builds, at the place of an instruction.
fn within<T>(
    func: &mut Func,
    region: Region,
    inst: Inst,
    fill: impl FnOnce(&mut Builder) -> T,
) -> T {
    let loc: Loc = func.inst(inst).loc.clone();
    let owned = std::mem::replace(func, Func::new("", func.stage));
    let mut builder = Builder::resume(owned);
    builder.set_loc(loc);
    builder.enter(region);
    let filled = fill(&mut builder);
    *func = builder
        .finish()
        .expect("broken invariant: numbers of indices are of one type");
    filled
}
