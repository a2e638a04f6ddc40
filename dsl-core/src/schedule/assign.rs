//! Chooses a layout for every tile that is computed, and for every store.
//!
//! Loads, stores and dots state what suits them; everything else follows its operands. Two kinds of
//! tiles never get a layout of their own, because they are made where they are used, in the layout
//! that the use asks for: *cheap* tiles (made of constants, indices and scalars alone) and *views*
//! (shape ops, which only rename elements).

use std::collections::BTreeMap;
use std::rc::Rc;

use super::fetches::spread_fetches;
use super::form::{form, plain, product_fragments};
use super::origin::{Origin, origins};
use super::rows::reread_rows;
use super::vectors::{Tiles, widest_vectors};
use crate::diagnostic::{Diagnostic, Diagnostics, Loc};
use crate::entity::EntityMap;
use crate::ir::index_map::dim_bits;
use crate::ir::operand::is_multiplied_in_fragments;
use crate::ir::{DType, Func, Inst, MemoryAccess, Op, Shape, Stage, Trait, Value, op};
use crate::layout::access::{Highest, access_layout, dot_layout, is_coalesced, warp_bits_for};
use crate::layout::{LayoutError, LinearLayout};
use crate::passes::boxes::shared_by_groups;
use crate::passes::indices::Indices;
use crate::target::{Distribution, Schedule, Target, WARP_LANES};
use crate::verify::{self, BlockFunc, ScheduleFunc};

/// States a layout for each tile that is computed, and converts what stores want otherwise.
///
/// # Errors
/// When a tile is too large for layouts.
pub fn assign(
    block: BlockFunc,
    target: &Target,
    schedule: &Schedule,
) -> Result<ScheduleFunc, Diagnostics> {
    let mut func = block.into_inner();
    let outside = |message: String| Diagnostic::new(Loc::none(), message);
    schedule.check(&target.gpu).map_err(outside)?;
    func.warps = warps_of(&func, target, schedule);
    spread_fetches(&mut func);
    func.stage = Stage::Schedule;
    let chosen = choose(&func, target, schedule).map_err(|error| outside(error.to_string()))?;
    let values = func.values();
    for value in values
        .filter(|&value| !func.ty(value).is_scalar())
        .collect::<Vec<_>>()
    {
        if let Some(layout) = &chosen.layouts[value] {
            let layout = func.intern((**layout).clone());
            func.set_layout(value, Some(layout));
        }
    }
    convert_stored(&mut func, &chosen.stores);
    verify::schedule(func)
}

/// How many warps run a function. Where long rows are read again it is half of the most: lanes have registers for what else they load.
#[must_use]
pub fn warps_of(func: &Func, target: &Target, schedule: &Schedule) -> u32 {
    let most = target.gpu.most_warps;
    let suiting = || match 1 << warp_bits_for(func, &target.gpu) {
        warps if warps == most && !reread_rows(func, target).is_empty() => most / 2,
        warps => warps,
    };
    schedule.warps.unwrap_or_else(suiting)
}

/// How many lanes of a GPU run a function together; nothing where tiles are not distributed.
#[must_use]
pub fn lanes_of(func: &Func, target: &Target, schedule: &Schedule) -> Option<usize> {
    let lanes = || warps_of(func, target, schedule) as usize * WARP_LANES as usize;
    (target.distribution == Distribution::Distributed).then(lanes)
}

/// The layouts of a function.
struct Chosen {
    layouts: EntityMap<Value, Option<Rc<LinearLayout>>>,
    /// Those in which values are stored, where these have others.
    stores: BTreeMap<Inst, Rc<LinearLayout>>,
}

fn choose(func: &Func, target: &Target, schedule: &Schedule) -> Result<Chosen, LayoutError> {
    let insts = func.all_insts();
    let indices = Indices::of(func);
    let stated = schedule.stages.map(i64::from);
    let vectors = widest_vectors(func, &indices, target, stated);
    let origins = origins(func, &insts);
    let mut assigner = Assigner {
        func,
        target,
        insts,
        definitions: func.definitions(),
        indices,
        warp_bits: func.warps.trailing_zeros(),
        highest: match func.parameters.iter().any(|it| it.within.is_some()) {
            true => Highest::Registers,
            false => Highest::Warps,
        },
        origins: origins.of,
        layouts: EntityMap::filled(func.value_count(), None),
        vectors,
    };
    assigner.anchor();
    for end in origins.ends {
        assigner.layouts[end] = Some(assigner.default_layout(end));
    }
    assigner.spread()?;
    assigner.follow_broadcasts()?;
    let mut stores = BTreeMap::new();
    for &inst in &assigner.insts {
        // A fetch has its operands where its result is.
        if func.inst(inst).results.is_empty()
            && let Some(value) = func.op(inst).access().and_then(|access| access.value)
            && !func.ty(value).is_scalar()
            && let Some(layout) = assigner.store(inst, value)?
        {
            stores.insert(inst, layout);
        }
    }
    let layouts = assigner.layouts;
    Ok(Chosen { layouts, stores })
}

/// Puts a conversion of the value before each of these stores.
fn convert_stored(func: &mut Func, stores: &BTreeMap<Inst, Rc<LinearLayout>>) {
    for region in func.all_regions() {
        for inst in std::mem::take(&mut func.region_mut(region).insts) {
            if let Some(layout) = stores.get(&inst) {
                let converted = convert_value(func, inst, layout);
                func.region_mut(region).insts.extend(converted);
            }
            func.region_mut(region).insts.push(inst);
        }
    }
}

/// Makes a store write a conversion of its value; returns it.
fn convert_value(func: &mut Func, store: Inst, layout: &LinearLayout) -> Option<Inst> {
    let x = func.op(store).access()?.value?;
    let (ty, loc) = (func.ty(x), func.inst(store).loc.clone());
    let inst = func.add_inst(Op::Convert(op::Convert { x }), &[ty], loc);
    let converted = func.inst(inst).results[0];
    let layout = func.intern(layout.clone());
    func.set_layout(converted, Some(layout));
    let access = &mut func.inst_mut(store).op;
    if let Op::Store(op::Store { value, .. }) | Op::AtomicReduce(op::AtomicReduce { value, .. }) =
        access
    {
        *value = converted;
    }
    Some(inst)
}

struct Assigner<'a> {
    func: &'a Func,
    target: &'a Target,
    insts: Vec<Inst>,
    definitions: EntityMap<Value, Option<Inst>>,
    indices: Indices,
    warp_bits: u32,
    highest: Highest,
    origins: EntityMap<Value, Origin>,
    layouts: EntityMap<Value, Option<Rc<LinearLayout>>>,
    /// The widest vectors of accesses to tiles.
    vectors: BTreeMap<Tiles, u32>,
}

impl Assigner<'_> {
    fn shape(&self, value: Value) -> Shape {
        self.func.ty(value).shape
    }

    fn preferred(&self, access: &MemoryAccess) -> Rc<LinearLayout> {
        let order = access.order(self.func, &self.indices);
        self.ordered(&self.shape(access.offsets), &order)
    }

    fn ordered(&self, shape: &Shape, order: &[usize]) -> Rc<LinearLayout> {
        let key = order.first().map(|&axis| (*shape, axis));
        let vector = key
            .and_then(|key| self.vectors.get(&key).copied())
            .unwrap_or(0);
        Rc::new(access_layout(
            &dim_bits(shape),
            order,
            vector,
            self.warp_bits,
            self.highest,
        ))
    }

    fn default_layout(&self, value: Value) -> Rc<LinearLayout> {
        let shape = self.shape(value);
        let order: Vec<usize> = (0..shape.rank()).rev().collect();
        self.ordered(&shape, &order)
    }

    /// Loads and dots, and all scalars, have their layouts from the start.
    fn anchor(&mut self) {
        for &argument in self.func.arguments() {
            self.layouts[argument] = Some(self.default_layout(argument));
        }
        for &inst in &self.insts {
            let data = self.func.inst(inst);
            for &result in &data.results {
                let scalar = self.func.ty(result).is_scalar();
                self.layouts[result] = if scalar || matches!(data.op, Op::Histogram(_)) {
                    Some(self.default_layout(result))
                } else if let Op::Load(op) = &data.op {
                    Some(self.preferred(&op.access()))
                } else if let Op::AtomicFetch(op) = &data.op {
                    // It is one of many elements: each is of one lane.
                    let dims = dim_bits(&self.shape(op.value));
                    Some(plain(&dims, self.warp_bits))
                } else if let Op::LoadBox(_) = &data.op {
                    // It comes to shared memory, where it has another.
                    Some(self.default_layout(result))
                } else if let Op::Dot(dot) = &data.op {
                    let shared = self.target.gpu.shared_bytes;
                    let groups = shared_by_groups(self.func, dot, self.warp_bits, shared);
                    let layout = groups.map(|found| found.layout);
                    let of_fragments = || {
                        let found = product_fragments(self.func, dot, self.warp_bits);
                        let [_, _, layout] = found.layouts;
                        layout
                    };
                    let shape = dim_bits(&self.func.ty(result).shape);
                    Some(Rc::new(match is_multiplied_in_fragments(self.func, dot) {
                        true => layout.unwrap_or_else(of_fragments),
                        false => layout.unwrap_or_else(|| dot_layout(&shape, self.warp_bits)),
                    }))
                } else {
                    continue;
                };
            }
        }
    }

    /// Gives every computed value a layout, following operands, until nothing is left.
    fn spread(&mut self) -> Result<(), LayoutError> {
        let mut left = Vec::new();
        for &inst in &self.insts {
            let followers = self.followers(inst).into_iter();
            left.extend(followers.map(|(value, sources)| (inst, value, sources)));
        }
        loop {
            let before = left.len();
            let mut unknown = Vec::new();
            for (inst, value, sources) in left {
                if self.layouts[value].is_some() || self.origins[value] != Origin::Computed {
                    continue;
                }
                let found = if matches!(self.func.op(inst), Op::Reduce(_) | Op::Sort(_)) {
                    self.lying(sources[0])?
                } else {
                    self.first_known(&sources)?
                };
                match found {
                    Some(layout) => self.layouts[value] = Some(self.along(inst, layout)?),
                    None => unknown.push((inst, value, sources)),
                }
            }
            let Some(&(_, first, _)) = unknown.first() else {
                return Ok(());
            };
            if unknown.len() == before {
                self.layouts[first] = Some(self.default_layout(first));
            }
            left = unknown;
        }
    }

    /// The values that an instruction or its regions define, each with the values whose layout it
    /// may take over, best first.
    fn followers(&self, inst: Inst) -> Vec<(Value, Vec<Value>)> {
        let data = self.func.inst(inst);
        let op = &data.op;
        if self.func.deciding(inst).is_none() {
            let mut sources = if let Op::Gather(op::Gather { indices, .. }) = op {
                vec![*indices]
            } else if let Op::Reduce(op::Reduce { sources, .. })
            | Op::Sort(op::Sort { sources, .. }) = op
            {
                vec![sources[0]]
            } else {
                op.operands()
            };
            sources.sort_by_key(|&source| self.distance(source));
            let results = data.results.iter();
            return results.map(|&result| (result, sources.clone())).collect();
        }
        let mut list = Vec::new();
        if let Op::For(op::For { body, .. }) = op {
            list.push((self.func.region(*body).parameters[0], Vec::new()));
        }
        for carried in self.func.carried(inst) {
            let mut parameters = carried.parameters.into_iter();
            let Some(first) = parameters.next() else {
                list.push((carried.result, carried.yielded));
                continue;
            };
            let next = carried.yielded.last().copied();
            list.push((first, next.into_iter().chain(carried.init).collect()));
            let others = parameters.chain([carried.result]);
            list.extend(others.map(|value| (value, vec![first])));
        }
        list
    }

    /// How far a value's layout is from one that was chosen for its shape: 0 for computed tiles, more
    /// through shape ops, most through those that repeat elements.
    fn distance(&self, value: Value) -> u32 {
        let viewed = self.definitions[value].and_then(|inst| self.func.view(inst));
        match (self.origins[value], viewed) {
            (Origin::Computed, _) => 0,
            (Origin::View, Some((_, map))) if map.columns().contains(&0) => 2,
            (Origin::View, _) => 1,
            (Origin::Cheap, _) => 3,
        }
    }

    fn first_known(&self, sources: &[Value]) -> Result<Option<Rc<LinearLayout>>, LayoutError> {
        for &source in sources {
            if let Some(layout) = self.known(source)? {
                return Ok(Some(layout));
            }
        }
        Ok(None)
    }

    /// The layout in which an op takes a value as it lies.
    fn lying(&self, value: Value) -> Result<Option<Rc<LinearLayout>>, LayoutError> {
        match self.origins[value] {
            Origin::Cheap => Ok(Some(plain(&dim_bits(&self.shape(value)), self.warp_bits))),
            Origin::View | Origin::Computed => self.known(value),
        }
    }

    /// The layout of a computed value, or the one that a view of it has for free.
    fn known(&self, value: Value) -> Result<Option<Rc<LinearLayout>>, LayoutError> {
        if self.origins[value] == Origin::Computed {
            return Ok(self.layouts[value].clone());
        }
        let viewed = self.definitions[value].and_then(|inst| self.func.view(inst));
        let Some((operand, map)) = viewed.filter(|_| self.origins[value] == Origin::View) else {
            return Ok(None);
        };
        let layout = self.known(operand)?;
        let pulled = layout.map(|layout| map.pull(&layout).map(Rc::new));
        pulled.transpose()
    }

    /// What an op along an axis makes of the layout of its operand; other ops leave it alone.
    fn along(&self, inst: Inst, layout: Rc<LinearLayout>) -> Result<Rc<LinearLayout>, LayoutError> {
        if !matches!(
            self.func.op(inst),
            Op::Reduce(_) | Op::Sort(_) | Op::Scan(_)
        ) {
            return Ok(layout);
        }
        let asked = form(self.func, inst, &mut |_| Ok(Rc::clone(&layout)))?;
        Ok(asked.results.into_iter().next().unwrap_or(layout))
    }

    /// A loaded tile that is only broadcast to larger tiles is loaded where those need it.
    fn follow_broadcasts(&mut self) -> Result<(), LayoutError> {
        let mut uses: EntityMap<Value, Vec<Inst>> =
            EntityMap::filled(self.func.value_count(), Vec::new());
        for &inst in &self.insts {
            for operand in self.func.op(inst).operands() {
                uses[operand].push(inst);
            }
        }
        let mut fruitless = EntityMap::filled(self.func.value_count(), false);
        for index in 0..self.insts.len() {
            for (loaded, branches) in self.loaded(self.insts[index], &uses) {
                if let Some((chain, layout)) = self.demand(loaded, &uses, &mut fruitless)? {
                    for value in chain.into_iter().chain(branches) {
                        self.layouts[value] = Some(Rc::clone(&layout));
                    }
                }
            }
        }
        Ok(())
    }

    /// The tiles that an instruction loads: its own, or what either branch loads for it alone, with that.
    fn loaded(&self, inst: Inst, uses: &EntityMap<Value, Vec<Inst>>) -> Vec<(Value, Vec<Value>)> {
        let is_load = |value: &Value| {
            let made = self.definitions[*value].map(|inst| self.func.op(inst));
            matches!(made, Some(Op::Load(_))) && uses[*value].len() == 1
        };
        let mut found = Vec::new();
        if let Op::Load(_) = self.func.op(inst) {
            found.push((self.func.inst(inst).results[0], Vec::new()));
        } else if let Op::If(_) = self.func.op(inst) {
            let carried = self.func.carried(inst).into_iter();
            let loaded = carried.filter(|it| it.yielded.iter().all(is_load));
            found.extend(loaded.map(|it| (it.result, it.yielded)));
        }
        found.retain(|&(value, _)| !self.func.ty(value).is_scalar());
        found
    }

    /// The values computed from `loaded` on the way to its only use, a broadcast into a computed
    /// tile, and the layout that this tile asks of them. `fruitless` are those that lead to none.
    fn demand(
        &self,
        loaded: Value,
        uses: &EntityMap<Value, Vec<Inst>>,
        fruitless: &mut EntityMap<Value, bool>,
    ) -> Result<Option<(Vec<Value>, Rc<LinearLayout>)>, LayoutError> {
        let (mut chain, mut maps) = (vec![loaded], Vec::new());
        let (mut value, mut grown) = (loaded, false);
        while let [user] = uses[value].as_slice()
            && !fruitless[value]
        {
            let op = self.func.op(*user);
            let &[result] = self.func.inst(*user).results.as_slice() else {
                break;
            };
            if let Some((_, map)) = self.func.view(*user) {
                grown |= self.shape(result).elements() > self.shape(value).elements();
                maps.push(map);
            } else if !op.is(Trait::elementwise) {
                break;
            } else if grown {
                let Some(layout) = self.layouts[result].clone() else {
                    break;
                };
                let mut layout = LinearLayout::clone(&layout);
                for map in maps.iter().rev() {
                    layout = map.push(&layout)?.0;
                }
                return Ok(Some((chain, Rc::new(layout))));
            } else if maps.is_empty() {
                chain.push(result);
            } else {
                break;
            }
            value = result;
        }
        for value in chain {
            fruitless[value] = true;
        }
        Ok(None)
    }

    /// A store writes in the layout of its value, or else of its offsets, unless lanes would then
    /// touch more memory.
    fn store(&self, inst: Inst, value: Value) -> Result<Option<Rc<LinearLayout>>, LayoutError> {
        let Some(access) = self.func.op(inst).access() else {
            return Ok(None);
        };
        let preferred = self.preferred(&access);
        let Some(found) = self.known(value)? else {
            return Ok(Some(self.known(access.offsets)?.unwrap_or(preferred)));
        };
        let axis = access.order(self.func, &self.indices).first().copied();
        let Some(mask) = axis.and_then(|axis| found.dim_mask(axis).ok()) else {
            return Ok(None);
        };
        let bytes = self.func.ty(value).dtype().map_or(1, DType::bytes);
        let same = is_coalesced(&found, &preferred, mask, bytes, self.target.line_bytes);
        Ok((!same).then_some(preferred))
    }
}
