//! Stores rows that are read again strip by strip.
//!
//! What is stored of a row that lies in shared memory can be made of any part of it alone. Of the whole row at once, assemblers
//! load all that stands beside it, weights of each column among them, before they store anything, and spill. So a loop makes a
//! few elements of each lane, stores them, and goes on: first over the strips that are full, for which no mask is asked, then
//! over what is left.

use std::collections::{BTreeMap, BTreeSet};

use super::origin::{Origin, origins};
use super::read_back::insert_before;
use super::reread::has_reread;
use super::runs::{Firsts, Runs};
use super::{MayEnd, PlacedFunc, is_tile};
use crate::builder::Builder;
use crate::diagnostic::Diagnostics;
use crate::ir::{
    Access, BinaryOp, DType, Func, Inst, Layout, Literal, Op, Shape, Trait, Type, Value, op,
};
use crate::layout::LinearLayout;
use crate::passes::dce::dce;
use crate::passes::indices::Indices;
use crate::target::Target;

/// Log2 of the fewest elements of a strip that a lane has.
const HELD: usize = 3;

/// Log2 of the fewest vectors of a strip that a lane has.
const VECTORS: usize = 1;

/// Makes loops over strips of the stores of what is read again in rows, and made of other loads too.
///
/// # Errors
/// None that the function did not have before.
pub(super) fn strips(
    func: PlacedFunc,
    target: &Target,
    may_end: MayEnd<'_>,
) -> Result<PlacedFunc, Diagnostics> {
    if !has_reread(&func) {
        return Ok(func);
    }
    let found = {
        let indices = Indices::of(&func);
        let runs = Runs::of(&func, &indices, target);
        let finder = Finder::new(&func, may_end);
        let insts = func.all_insts().into_iter();
        let found = insts.filter_map(|inst| finder.find(inst, &runs));
        found.collect::<Vec<Strips>>()
    };
    if found.is_empty() {
        return Ok(func);
    }
    let mut func = func.into_inner();
    func.keep_sites();
    for strips in found {
        func = strips.roll(func)?;
    }
    dce(&mut func);
    PlacedFunc::new(func)
}

/// A store, and what makes its tile.
struct Strips {
    store: Inst,
    /// What it takes, in program order.
    chain: Vec<Inst>,
    /// Of all these what nothing else needs.
    own: BTreeSet<Inst>,
    mask: Option<Value>,
    /// Where the mask holds.
    first: Firsts,
    /// The shape of a strip.
    shape: Shape,
}

struct Finder<'a> {
    func: &'a Func,
    may_end: MayEnd<'a>,
    /// The instructions in program order, each with its number.
    order: BTreeMap<Inst, usize>,
    made: BTreeMap<Value, Inst>,
    users: BTreeMap<Value, BTreeSet<Inst>>,
    /// What is made of constants, indices and scalars alone.
    cheap: BTreeSet<Value>,
}

impl<'a> Finder<'a> {
    fn new(func: &'a Func, may_end: MayEnd<'a>) -> Self {
        let insts = func.all_insts();
        let origins = origins(func, &insts).of;
        let cheap = func.values().filter(|&it| origins[it] == Origin::Cheap);
        let mut finder = Self {
            func,
            may_end,
            order: insts.iter().copied().zip(0..).collect(),
            made: BTreeMap::new(),
            users: BTreeMap::new(),
            cheap: cheap.collect(),
        };
        for inst in insts {
            let results = func.inst(inst).results.iter();
            finder.made.extend(results.map(|&result| (result, inst)));
            for operand in func.op(inst).operands() {
                finder.users.entry(operand).or_default().insert(inst);
            }
        }
        finder
    }

    fn find(&self, inst: Inst, runs: &Runs<'_>) -> Option<Strips> {
        let Op::Store(store) = self.func.op(inst) else {
            return None;
        };
        let shape = self.func.ty(store.offsets).shape;
        if shape.rank() != 1 || (self.may_end)(self.func.op(inst)) {
            return None;
        }
        // Elements are stored apart, also where the launch knows nothing of it.
        runs.counts(store.offsets)?;
        let chain = self.chain(inst, shape)?;
        let reads_beside = |&it: &Inst| matches!(self.func.op(it), Op::Load(_));
        if !chain.iter().any(reads_beside) || !self.reads_again(&chain) {
            return None;
        }
        let layout = self.func.layout(store.offsets)?;
        let strip = strip_of(self.func.linear(layout))?;
        let is_cheap = |inst: Inst| {
            let mut results = self.func.inst(inst).results.iter();
            results.all(|it| self.cheap.contains(it))
        };
        let own = chain.iter().copied().filter(|&it| !is_cheap(it));
        Some(Strips {
            store: inst,
            own: own.chain([inst]).collect(),
            mask: store.mask,
            first: runs.firsts(store.offsets, store.mask)?,
            shape: Shape::new(&[1 << strip.dim_bits()[0]]).ok()?,
            chain,
        })
    }

    /// What makes the tiles of a store, if each element is made of others at its own place, and of nothing that is to be used
    /// elsewhere, or changes.
    fn chain(&self, store: Inst, shape: Shape) -> Option<Vec<Inst>> {
        let mut found = BTreeSet::new();
        let mut pending = self.tiles(store);
        while let Some(value) = pending.pop() {
            let inst = *self.made.get(&value)?;
            if !found.insert(inst) {
                continue;
            }
            if self.func.ty(value).shape != shape || !self.is_step(inst) {
                return None;
            }
            pending.extend(self.tiles(inst));
        }
        let within = |inst: &Inst| *inst == store || found.contains(inst);
        let mut results = found.iter().flat_map(|&inst| &self.func.inst(inst).results);
        results
            .all(|it| self.cheap.contains(it) || self.users[it].iter().all(within))
            .then_some(())?;
        let mut chain: Vec<Inst> = found.into_iter().collect();
        chain.sort_by_key(|inst| self.order[inst]);
        Some(chain)
    }

    /// Whether instructions read a row that others read too.
    fn reads_again(&self, chain: &[Inst]) -> bool {
        chain.iter().any(|&inst| {
            let Op::RowLoad(op::RowLoad { row, .. }) = self.func.op(inst) else {
                return false;
            };
            let mut users = self.users[row].iter();
            let is_load = |inst: Inst| matches!(self.func.op(inst), Op::RowLoad(_));
            users.any(|&inst| is_load(inst) && !chain.contains(&inst))
        })
    }

    fn tiles(&self, inst: Inst) -> Vec<Value> {
        let operands = self.func.op(inst).operands().into_iter();
        operands.filter(|&it| is_tile(self.func, it)).collect()
    }

    /// Whether an element follows from those of operands at its own place.
    fn is_step(&self, inst: Inst) -> bool {
        let op = self.func.op(inst);
        if let Op::Load(load) = op {
            let parameter = self.func.parameter_index(load.base);
            let access = parameter.map(|at| self.func.parameters[at].access);
            return access == Some(Access::Read) && !(self.may_end)(op);
        }
        let is_source = matches!(
            op,
            Op::Arange(_)
                | Op::Constant(_)
                | Op::Splat(_)
                | Op::RowLoad(op::RowLoad { at: None, .. })
        );
        let is_step = op.is(Trait::elementwise) && op.is(Trait::pure) && op.regions().is_empty();
        is_source || is_step
    }
}

/// The layout of a strip, where registers hold the highest bits of the index of a tile, and more than those of a strip.
fn strip_of(layout: &LinearLayout) -> Option<LinearLayout> {
    let &[bits] = layout.dim_bits() else {
        return None;
    };
    let registers = layout.register_columns().iter();
    let neighbours = registers
        .zip(0..)
        .take_while(|&(&column, bit)| column == 1 << bit);
    let held = HELD.max(neighbours.count() + VECTORS);
    let (kept, left) = layout.register_columns().split_at_checked(held)?;
    let highest = bits.checked_sub(left.len() as u32)?;
    let counts = left
        .iter()
        .zip(highest..)
        .all(|(&column, bit)| column == 1 << bit);
    if left.is_empty() || !counts {
        return None;
    }
    let (lane, warp) = (
        layout.lane_columns().to_vec(),
        layout.warp_columns().to_vec(),
    );
    LinearLayout::new(vec![highest], kept.to_vec(), lane, warp).ok()
}

impl Strips {
    /// Puts the loops in the place of the store.
    fn roll(&self, func: Func) -> Result<Func, Diagnostics> {
        let mut builder = Builder::resume(func);
        builder.set_loc(builder.func().inst(self.store).loc.clone());
        let region = builder.func_mut().add_region();
        let outer = builder.enter(region);
        let count = self.first.count(&mut builder);
        let strips = builder.index(-self.step());
        let full = builder.and(count, strips);
        let zero = builder.index(0);
        for (bounds, is_full) in [((zero, full), true), ((full, count), false)] {
            builder.for_loop(bounds, self.step(), &[], |builder, at, _| {
                self.strip(builder, at, is_full);
                Vec::new()
            });
        }
        builder.enter(outer);
        let func = builder.func_mut();
        let insts = std::mem::take(&mut func.region_mut(region).insts);
        insert_before(func, self.store, insts);
        for region in func.all_regions() {
            func.region_mut(region)
                .insts
                .retain(|it| !self.own.contains(it));
        }
        builder.finish()
    }

    fn step(&self) -> i64 {
        self.shape.elements() as i64
    }

    /// Appends what makes and stores the strip that begins at an element.
    fn strip(&self, builder: &mut Builder, at: Value, is_full: bool) {
        let mut strip = Strip {
            builder,
            at,
            shape: self.shape,
            whole: self.mask.filter(|_| is_full),
            layouts: BTreeMap::new(),
            made: BTreeMap::new(),
        };
        for &inst in self.chain.iter().chain([&self.store]) {
            strip.append(inst);
        }
    }
}

/// A strip as it is made.
struct Strip<'a> {
    builder: &'a mut Builder,
    at: Value,
    shape: Shape,
    /// The mask that holds of all of it.
    whole: Option<Value>,
    layouts: BTreeMap<Layout, Layout>,
    /// For each value of the tile what the strip has in its place.
    made: BTreeMap<Value, Value>,
}

impl Strip<'_> {
    fn append(&mut self, inst: Inst) {
        let data = self.builder.func().inst(inst).clone();
        self.builder.set_loc(data.loc);
        let mut op = data.op;
        self.unmask(&mut op);
        op.map_operands(&mut |value| self.made.get(&value).copied().unwrap_or(value));
        let Some(&result) = data.results.first() else {
            let store = self.builder.emit(op, &[]);
            self.builder.func_mut().inst_mut(store).site = data.site;
            return;
        };
        let layout = self.layout(result);
        let ty = self.builder.ty(result).with_shape(self.shape);
        if self.whole == Some(result) {
            let value = Literal::from_bits(DType::Bool, 1);
            op = Op::Constant(op::Constant { value });
        } else if let Op::RowLoad(load) = &mut op {
            load.at = Some(self.at);
        } else if let Op::Arange(range) = &mut op {
            range.end = range.start + self.shape.elements() as i64;
        }
        let counts = matches!(op, Op::Arange(_));
        let mut made = self.emit(op, data.site, (ty, layout));
        if counts {
            let at = Op::Splat(op::Splat { x: self.at });
            let lhs = self.emit(at, None, (ty, layout));
            let (op, rhs) = (BinaryOp::Add, made);
            let sum = Op::Binary(op::Binary { op, lhs, rhs });
            made = self.emit(sum, None, (ty, layout));
        }
        self.made.insert(result, made);
    }

    fn emit(&mut self, op: Op, site: Option<u32>, (ty, layout): (Type, Option<Layout>)) -> Value {
        let inst = self.builder.emit(op, &[ty]);
        let func = self.builder.func_mut();
        func.inst_mut(inst).site = site;
        let made = func.inst(inst).results[0];
        func.set_layout(made, layout);
        made
    }

    /// Leaves a mask away that holds of all elements.
    fn unmask(&self, op: &mut Op) {
        let (Op::Load(op::Load { mask, other, .. }) | Op::RowLoad(op::RowLoad { mask, other, .. })) =
            op
        else {
            if let Op::Store(op::Store { mask, .. }) = op
                && *mask == self.whole
            {
                *mask = None;
            }
            return;
        };
        if *mask == self.whole {
            (*mask, *other) = (None, None);
        }
    }

    fn layout(&mut self, value: Value) -> Option<Layout> {
        let func = self.builder.func_mut();
        let tile = func.layout(value)?;
        if let Some(&layout) = self.layouts.get(&tile) {
            return Some(layout);
        }
        let layout = strip_of(func.linear(tile))?;
        let layout = func.intern(layout);
        self.layouts.insert(tile, layout);
        Some(layout)
    }
}
