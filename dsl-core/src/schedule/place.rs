//! Gives every tile a layout, and every op its tiles in the layouts that it asks for.
//!
//! A tile whose layout is stated is converted where a use asks for another one. A tile without one is
//! pure arithmetic on elements and their indices, or shows elements of another tile: it is made where it is
//! used, in the layout that the use asks for, once for all uses behind the first one.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::PlacedFunc;
use super::converts::ahead_of_branches;
use super::form::{Form, Of, Place, form, of_scalars, plain};
use super::is_tile;
use crate::diagnostic::{Diagnostic, Diagnostics, Loc};
use crate::entity::{Entity, EntityMap};
use crate::ir::index_map::dim_bits;
use crate::ir::{Func, Inst, Layout, Op, Region, Trait, Value, op};
use crate::layout::LayoutError;
use crate::passes::long_sums::LONGEST_CHAIN;
use crate::target::Gpu;
use crate::text::layout_text;
use crate::verify::ScheduleFunc;

/// Places all tiles of a function. One whose tiles are placed stays as it is.
///
/// # Errors
/// When a tile takes more registers of each lane than the machine allows it.
pub fn place(func: ScheduleFunc, gpu: &Gpu) -> Result<PlacedFunc, Diagnostics> {
    let mut placer = Placer::new(func.into_inner(), gpu);
    placer.end_chains();
    placer.region(placer.func.body(), &[], &[])?;
    ahead_of_branches(&mut placer.func);
    PlacedFunc::new(placer.func)
}

struct Placer {
    func: Func,
    definitions: EntityMap<Value, Option<Inst>>,
    /// Registers of a tile at most.
    most: u32,
    most_warps: u32,
    /// The layout of scalars.
    scalar: Place,
    /// What the open regions know, innermost last: tiles by what they were asked for.
    known: Vec<BTreeMap<(Value, Layout), Value>>,
    /// What stands for a value.
    aliases: BTreeMap<Value, Value>,
    /// The instruction at hand.
    inst: Option<Inst>,
    /// The instructions of the current region so far.
    insts: Vec<Inst>,
}

/// Whether an op may be repeated wherever its result is used.
fn may_repeat(func: &Func, inst: Inst) -> bool {
    let data = func.inst(inst);
    let tile = data
        .results
        .first()
        .filter(|&&result| !func.ty(result).is_scalar());
    tile.is_some() && data.op.is(Trait::pointwise)
}

impl Placer {
    fn new(func: Func, gpu: &Gpu) -> Self {
        Self {
            definitions: func.definitions(),
            most: gpu.tile_registers,
            most_warps: gpu.most_warps,
            scalar: of_scalars(func.warps.trailing_zeros()),
            func,
            known: Vec::new(),
            aliases: BTreeMap::new(),
            inst: None,
            insts: Vec::new(),
        }
    }

    /// States layouts of tiles that long chains of ops would be repeated for.
    fn end_chains(&mut self) {
        let mut lengths = vec![0; self.func.value_count()];
        for inst in self.func.all_insts() {
            let data = self.func.inst(inst);
            if !may_repeat(&self.func, inst) || self.func.layout(data.results[0]).is_some() {
                continue;
            }
            let operands = data.op.operands().into_iter();
            let length = operands.map(|operand| lengths[operand.index()]).max();
            let length: u32 = length.unwrap_or(0) + 1;
            let result = data.results[0];
            if length > LONGEST_CHAIN {
                let place = self.plain(result);
                self.state(result, &place);
            } else {
                lengths[result.index()] = length;
            }
        }
    }

    fn plain(&self, value: Value) -> Place {
        plain(
            &dim_bits(&self.func.ty(value).shape),
            self.scalar.warp_bits(),
        )
    }

    fn intern(&mut self, place: &Place) -> Layout {
        self.func.intern((**place).clone())
    }

    fn state(&mut self, value: Value, place: &Place) {
        let ty = self.func.ty(value);
        if !ty.is_scalar() && ty.row().is_none() {
            let layout = self.intern(place);
            self.func.set_layout(value, Some(layout));
        }
    }

    /// The stated layout of a value, or the one that it has for free as a view of such a value.
    fn rooted(&self, value: Value) -> Result<Option<Place>, LayoutError> {
        let value = self.resolved(value);
        if self.func.ty(value).is_scalar() {
            return Ok(Some(Rc::clone(&self.scalar)));
        }
        if let Some(layout) = self.func.layout(value) {
            return Ok(Some(Rc::new(self.func.linear(layout).clone())));
        }
        let viewed = self.definitions[value].and_then(|inst| self.func.view(inst));
        let Some((operand, map)) = viewed else {
            return Ok(None);
        };
        match self.rooted(operand)? {
            Some(place) => Ok(Some(Rc::new(map.pull(&place)?))),
            None => Ok(None),
        }
    }

    /// The layout that a value has for free.
    fn natural(&self, value: Value) -> Result<Place, LayoutError> {
        Ok(self.rooted(value)?.unwrap_or_else(|| self.plain(value)))
    }

    fn resolved(&self, value: Value) -> Value {
        self.aliases.get(&value).copied().unwrap_or(value)
    }

    fn error(&self, message: impl Into<String>) -> Diagnostic {
        let loc = self.inst.map(|inst| self.func.inst(inst).loc.clone());
        Diagnostic::new(loc.unwrap_or_else(Loc::none), message)
    }

    /// Places the instructions of a region whose parameters are, and which yields its values, in these
    /// layouts.
    fn region(
        &mut self,
        region: Region,
        parameters: &[Place],
        yielded: &[Place],
    ) -> Result<(), Diagnostic> {
        let insts = std::mem::take(&mut self.func.region_mut(region).insts);
        let outer = std::mem::take(&mut self.insts);
        self.known.push(BTreeMap::new());
        let values = self.func.region(region).parameters.clone();
        self.defined(&values, parameters);
        for inst in insts {
            self.inst(inst, yielded)?;
        }
        self.known.pop();
        let insts = std::mem::replace(&mut self.insts, outer);
        self.func.region_mut(region).insts = insts;
        Ok(())
    }

    /// Values that are there now, in these layouts: converted to the stated ones where these are others.
    fn defined(&mut self, values: &[Value], places: &[Place]) {
        for (&value, place) in values.iter().zip(places) {
            let stated = self.func.layout(value);
            self.state(value, place);
            let own = self.func.layout(value);
            if let (Some(own), Some(stated)) = (own, stated.filter(|_| own != stated)) {
                let converted = self.convert(value, stated);
                self.remember(converted, own, value);
                self.aliases.insert(value, converted);
            }
        }
    }

    fn inst(&mut self, inst: Inst, yielded: &[Place]) -> Result<(), Diagnostic> {
        let results = self.func.inst(inst).results.clone();
        let stated = results
            .iter()
            .any(|&result| self.func.layout(result).is_some());
        if may_repeat(&self.func, inst) && !stated {
            return Ok(());
        }
        let mut op = self.func.op(inst).clone();
        if let Op::Convert(op::Convert { x }) = op {
            return self.stated_convert(inst, x);
        }
        self.inst = Some(inst);
        let mut asked = self.form(inst, &mut |value| self.natural(value))?;
        if op.is(Trait::terminator) {
            asked.operands = yielded.to_vec();
        }
        self.ask(&mut op, &asked.operands)?;
        let regions = op.regions();
        self.func.inst_mut(inst).op = op;
        for (region, (parameters, yielded)) in regions.into_iter().zip(&asked.regions) {
            self.region(region, parameters, yielded)?;
            self.inst = Some(inst);
        }
        self.insts.push(inst);
        self.defined(&results, &asked.results);
        Ok(())
    }

    fn form(&self, inst: Inst, of: &mut Of<'_>) -> Result<Form, Diagnostic> {
        let found = form(&self.func, inst, of);
        found.map_err(|error| self.error(error.to_string()))
    }

    /// Replaces the operands of an op by what they are in these layouts.
    fn ask(&mut self, op: &mut Op, places: &[Place]) -> Result<(), Diagnostic> {
        let mut operands = op.operands();
        for (operand, place) in operands.iter_mut().zip(places) {
            *operand = self.get(*operand, place)?;
        }
        let mut operands = operands.into_iter();
        op.map_operands(&mut |value| operands.next().unwrap_or(value));
        Ok(())
    }

    /// A conversion that the text asks for: what it gives may be there already.
    fn stated_convert(&mut self, inst: Inst, x: Value) -> Result<(), Diagnostic> {
        self.inst = Some(inst);
        let result = self.func.inst(inst).results[0];
        let x = self.resolved(x);
        let Some(layout) = self.func.layout(result) else {
            return Ok(());
        };
        let found = self.found(x, layout);
        if found.is_none() && self.func.layout(x).is_some() {
            self.func.inst_mut(inst).op = Op::Convert(op::Convert { x });
            self.insts.push(inst);
            self.remember(x, layout, result);
            return Ok(());
        }
        let place = Rc::new(self.func.linear(layout).clone());
        let made = self.get(x, &place)?;
        self.aliases.insert(result, made);
        Ok(())
    }

    /// A value in a layout, if it is there.
    fn found(&self, value: Value, layout: Layout) -> Option<Value> {
        if self.func.layout(value) == Some(layout) {
            return Some(value);
        }
        let mut scopes = self.known.iter().rev();
        scopes.find_map(|scope| scope.get(&(value, layout)).copied())
    }

    fn remember(&mut self, value: Value, layout: Layout, made: Value) {
        let scope = self.known.last_mut();
        let scope = scope.expect("broken invariant: a region is open");
        scope.insert((value, layout), made);
    }

    /// A value in the layout that a use asks for.
    fn get(&mut self, value: Value, place: &Place) -> Result<Value, Diagnostic> {
        let value = self.resolved(value);
        if !is_tile(&self.func, value) {
            return Ok(value);
        }
        if place.registers() > self.most {
            return Err(self.too_large(place));
        }
        let layout = self.intern(place);
        if let Some(found) = self.found(value, layout) {
            return Ok(found);
        }
        if self.func.ty(value).pending().is_some() {
            let asked = layout_text(place);
            return Err(self
                .error("pending sums stay where they are, and lie elsewhere than is asked here")
                .note(format!(
                    "give the tile that is pending the layout `{asked}`"
                )));
        }
        let definition = self.definitions.get(value).copied().flatten();
        let made = match definition.filter(|_| self.func.layout(value).is_none()) {
            Some(inst) => self.repeated(inst, value, place)?,
            None => self.convert(value, layout),
        };
        self.remember(value, layout, made);
        Ok(made)
    }

    /// The tile that an instruction makes, made here.
    fn repeated(&mut self, inst: Inst, value: Value, place: &Place) -> Result<Value, Diagnostic> {
        if let &Op::Convert(op::Convert { x }) = self.func.op(inst) {
            return self.get(x, place);
        }
        let asked = self.form(inst, &mut |other| match other == value {
            true => Ok(Rc::clone(place)),
            false => self.natural(other),
        })?;
        let mut op = self.func.op(inst).clone();
        self.ask(&mut op, &asked.operands)?;
        let layout = self.intern(place);
        Ok(self.emit(op, value, layout))
    }

    fn convert(&mut self, x: Value, layout: Layout) -> Value {
        self.emit(Op::Convert(op::Convert { x }), x, layout)
    }

    /// A new instruction that gives a tile of the type of `like`.
    fn emit(&mut self, op: Op, like: Value, layout: Layout) -> Value {
        let loc = self.inst.map(|inst| self.func.inst(inst).loc.clone());
        let ty = self.func.ty(like);
        let inst = self.func.add_inst(op, &[ty], loc.unwrap_or_else(Loc::none));
        self.insts.push(inst);
        let result = self.func.inst(inst).results[0];
        self.func.set_layout(result, Some(layout));
        result
    }

    fn too_large(&self, place: &Place) -> Diagnostic {
        let (found, shape) = (place.registers(), place.shape());
        let message = format!(
            "a tile of shape {shape:?} takes {found} elements in each lane, expected at most {}",
            self.most
        );
        let needed = self.func.warps * found.div_ceil(self.most);
        let note = if needed <= self.most_warps {
            format!("use {needed} warps or more, or a smaller tile")
        } else {
            let elements = shape.iter().product::<u64>() * u64::from(self.most_warps);
            let elements = elements / u64::from(needed);
            format!("use a tile of {elements} elements at most")
        };
        self.error(message).note(note)
    }
}
