//! The rules of structure: stage, dominance, ownership, terminators, parameters, types.

use std::collections::{BTreeMap, BTreeSet};

use super::{bulk, pending};
use crate::diagnostic::{Diagnostic, Diagnostics, Loc};
use crate::entity::{Entity, EntityMap};
use crate::ir::index_map::dim_bits;
use crate::ir::infer::infer;
use crate::ir::{
    Access, Effect, Func, Inst, Op, Region, Space, Stage, Trait, Type, Value, most_depth, op,
};
use crate::target::{LANE_BITS, ScheduleField};

/// The most parameters of a function.
pub const MAX_PARAMETERS: usize = 1024;

/// The most elements of a vector of the lane stage.
const MAX_VECTOR: usize = 4096;

/// All violations of the rules of `stage`.
pub(super) fn check(func: &Func, stage: Stage) -> Diagnostics {
    let mut checker = Checker {
        func,
        stage,
        visible: EntityMap::filled(func.value_count(), false),
        tensors: BTreeMap::new(),
        diagnostics: Diagnostics::new(),
    };
    checker.function();
    // What follows takes regions to be a tree of bounded depth.
    if checker.tree() {
        checker.region(func.body(), None);
        pending::check(func, &mut checker.diagnostics);
        if stage == Stage::Schedule {
            bulk::check(func, &mut checker.diagnostics);
        }
    }
    checker.diagnostics
}

struct Checker<'a> {
    func: &'a Func,
    stage: Stage,
    visible: EntityMap<Value, bool>,
    /// The pointer of each tensor.
    tensors: BTreeMap<Value, Value>,
    diagnostics: Diagnostics,
}

impl Checker<'_> {
    fn error(&mut self, inst: Inst, message: String) {
        let loc = self.func.inst(inst).loc.clone();
        self.diagnostics.push(Diagnostic::new(loc, message));
    }

    /// Whether a function is for as many warps as some GPU has, and a lane function asks for what it has.
    fn schedule(&self) -> Result<(), String> {
        let (warps, schedule) = (self.func.warps, self.func.schedule);
        let most = match self.stage {
            Stage::Block => 0,
            Stage::Schedule | Stage::Lane => *ScheduleField::Warps.range().end(),
        };
        if warps > most {
            return Err(format!("{warps} warps, expected at most {most}"));
        }
        if self.stage == Stage::Schedule && !warps.is_power_of_two() {
            return Err(format!("{warps} warps, expected a power of two"));
        }
        for (field, value) in schedule.chosen() {
            if self.stage != Stage::Lane || !field.row().kept {
                let (name, stage) = (field.row().name, self.stage.word());
                return Err(format!("`{name}` at the {stage} stage"));
            }
            field.check(value, &field.range())?;
        }
        let programs = schedule.programs.unwrap_or(1);
        if warps.saturating_mul(programs) > most {
            return Err(format!(
                "{programs} programs of {warps} warps in a thread block, expected at most {most} warps"
            ));
        }
        if programs > 1 && self.func.takes_thread_block() {
            return Err(format!(
                "{programs} programs in a thread block that one of them takes"
            ));
        }
        Ok(())
    }

    fn function(&mut self) {
        let func = self.func;
        let scheduled = self.schedule();
        let mut complain =
            |message: String| self.diagnostics.push(Diagnostic::new(Loc::none(), message));
        if func.stage != self.stage {
            complain(format!(
                "`@{}` is a {} function",
                func.name,
                func.stage.word()
            ));
        }
        if func.parameters.len() != func.arguments().len() {
            complain(format!("`@{}` has unnamed parameters", func.name));
        }
        let count = func.arguments().len();
        if count > MAX_PARAMETERS {
            complain(format!(
                "`@{}` has {count} parameters, expected at most {MAX_PARAMETERS}",
                func.name
            ));
        }
        if let Err(message) = scheduled {
            complain(format!("`@{}`: {message}", func.name));
        }
        let mut names = BTreeSet::new();
        for (parameter, &value) in func.parameters.iter().zip(func.arguments()) {
            let ty = func.ty(value);
            if !names.insert(&parameter.name) {
                complain(format!("two parameters are named `{}`", parameter.name));
            }
            let passed = ty.dtype().is_some() || ty.pointee().is_some();
            let argument = ty.is_scalar() && passed;
            let global = ty.pointee().is_none_or(|(_, space)| space == Space::Global);
            if !argument || !global {
                complain(format!("parameter `{}` cannot be `{ty}`", parameter.name));
            }
            if parameter.divisor == 0 {
                complain(format!("divisor of parameter `{}` is zero", parameter.name));
            } else if ty.pointee().is_some() && !parameter.divisor.is_power_of_two() {
                complain(format!(
                    "divisor `{}` of parameter `{}` is no alignment",
                    parameter.divisor, parameter.name
                ));
            }
            if let Some([least, most]) = parameter.within
                && (least > most || !ty.dtype().is_some_and(|it| it.is_integer()))
            {
                complain(format!(
                    "parameter `{}` of type `{ty}` cannot be from {least} to {most}",
                    parameter.name
                ));
            }
        }
    }

    /// Whether every region exists, has one owner and stands in few others.
    fn tree(&mut self) -> bool {
        let func = self.func;
        let mut owned = BTreeSet::from([func.body()]);
        let mut open = vec![(func.body(), 0)];
        // Passes of the block stage nest deeper too.
        let most = most_depth(Stage::Lane);
        while let Some((region, depth)) = open.pop() {
            for &inst in &func.region(region).insts {
                if inst.index() >= func.inst_count() {
                    let message = format!("a region holds `{inst}`, which does not exist");
                    self.diagnostics.error(&Loc::none(), message);
                    return false;
                }
                for nested in func.op(inst).regions() {
                    if nested.index() >= func.region_count() {
                        self.error(inst, format!("`{nested}` does not exist"));
                        return false;
                    }
                    if !owned.insert(nested) {
                        self.error(inst, "a region has two owners".to_string());
                        return false;
                    }
                    if depth == most {
                        self.error(inst, format!("regions nest more than {most} deep"));
                        return false;
                    }
                    open.push((nested, depth + 1));
                }
            }
        }
        true
    }

    fn region(&mut self, region: Region, owner: Option<Inst>) {
        let data = self.func.region(region);
        let mut defined: Vec<Value> = data.parameters.clone();
        for &parameter in &data.parameters {
            self.visible[parameter] = true;
        }
        for &parameter in owner.map_or(&[][..], |_| &data.parameters) {
            if let (Some(owner), Err(message)) = (owner, self.layout(parameter)) {
                self.error(owner, message);
            }
            let ty = self.func.ty(parameter);
            if let (Some(owner), Some(_)) = (owner, ty.pointee()) {
                self.error(owner, format!("a region takes the pointer `{parameter}`"));
            }
            if let (Some(owner), Some(_)) = (owner, ty.buffer()) {
                self.error(owner, format!("a region takes the buffer `{parameter}`"));
            }
            if let (Some(owner), Some(_)) = (owner, ty.row()) {
                self.error(owner, format!("a region takes the row `{parameter}`"));
            }
            if let (Some(owner), Some(_)) = (owner, ty.tensor()) {
                self.error(owner, format!("a region takes the tensor `{parameter}`"));
            }
        }
        let last = data.insts.len().saturating_sub(1);
        for (index, &inst) in data.insts.iter().enumerate() {
            let terminates = self.func.op(inst).is(Trait::terminator);
            if terminates && (owner.is_none() || index != last) {
                self.error(inst, "`yield` may only end a nested region".to_string());
            }
            self.inst(inst);
            let results = &self.func.inst(inst).results;
            for &result in results {
                if std::mem::replace(&mut self.visible[result], true) {
                    self.error(inst, format!("value `{result}` is defined twice"));
                }
            }
            defined.extend(results);
        }
        if let Some(owner) = owner {
            let ends = data
                .insts
                .last()
                .is_some_and(|&inst| self.func.op(inst).is(Trait::terminator));
            if !ends {
                self.error(owner, "a nested region does not end in `yield`".to_string());
            }
        }
        for value in defined {
            self.visible[value] = false;
        }
    }

    fn inst(&mut self, inst: Inst) {
        let data = self.func.inst(inst);
        let op = &data.op;
        if !op.is_legal_in(self.stage) {
            let (name, stage) = (op.mnemonic(), self.stage.word());
            self.error(inst, format!("`{name}` is not a {stage} op"));
        }
        for operand in op.operands() {
            if self.visible.get(operand) != Some(&true) {
                self.error(inst, format!("operand `{operand}` is not visible here"));
                return;
            }
        }
        for region in op.regions() {
            self.region(region, Some(inst));
        }
        self.types(inst);
        self.memory(inst);
        let combines = matches!(op, Op::Reduce(_) | Op::Scan(_) | Op::Map(_));
        let combines = combines || op.accumulator().is_some();
        if self.stage != Stage::Lane && combines {
            self.combiner(inst);
        }
    }

    fn types(&mut self, inst: Inst) {
        let data = self.func.inst(inst);
        let found: Vec<Type> = data
            .results
            .iter()
            .map(|&value| self.func.ty(value))
            .collect();
        match infer(self.func, &data.op, &found) {
            Err(message) => self.error(inst, message),
            Ok(expected) if expected != found => {
                let name = data.op.mnemonic();
                self.error(
                    inst,
                    format!("`{name}` gives {expected:?}, found {found:?}"),
                );
            }
            Ok(_) => {
                let poisoned = found.iter().any(Type::is_poison);
                if poisoned {
                    self.error(inst, "a value is poisoned".to_string());
                }
                for &ty in &found {
                    self.type_of_stage(inst, ty);
                }
                for &result in &data.results {
                    if let Err(message) = self.layout(result) {
                        self.error(inst, message);
                    }
                }
                let pointer = found.iter().any(|ty| ty.pointee().is_some());
                if pointer && !matches!(data.op, Op::Alloc(_)) {
                    let name = data.op.mnemonic();
                    self.error(inst, format!("`{name}` cannot give a pointer"));
                }
                let buffer = found.iter().any(|ty| ty.buffer().is_some());
                if buffer && !matches!(data.op, Op::Buffer(_)) {
                    let name = data.op.mnemonic();
                    self.error(inst, format!("`{name}` cannot give a buffer"));
                }
                let row = found.iter().any(|ty| ty.row().is_some());
                if row && !matches!(data.op, Op::CopyRow(_)) {
                    let name = data.op.mnemonic();
                    self.error(inst, format!("`{name}` cannot give a row"));
                }
                let pending = found.iter().any(|ty| ty.pending().is_some());
                let adds = matches!(data.op, Op::Pend(_) | Op::DotSlots(_) | Op::GroupMma(_));
                if pending && !adds && data.op.control().is_none() {
                    let name = data.op.mnemonic();
                    self.error(inst, format!("`{name}` cannot give pending sums"));
                }
                let tensor = found.iter().any(|ty| ty.tensor().is_some());
                if tensor && !matches!(data.op, Op::Tensor(_) | Op::TensorMap(_)) {
                    let name = data.op.mnemonic();
                    self.error(inst, format!("`{name}` cannot give a tensor"));
                }
            }
        }
    }

    /// Lanes have scalars and short vectors.
    fn type_of_stage(&mut self, inst: Inst, ty: Type) {
        let wrong = match self.stage {
            Stage::Block | Stage::Schedule => false,
            Stage::Lane => {
                let lengths = 2..=MAX_VECTOR;
                ty.shape.rank() > 1 || !ty.is_scalar() && !lengths.contains(&ty.shape.elements())
            }
        };
        if wrong {
            self.error(inst, format!("`{ty}` is no lane type"));
        }
    }

    /// Whether a layout, if there is one, is of the tile and of the function's lanes and warps.
    fn layout(&self, value: Value) -> Result<(), String> {
        let ty = self.func.ty(value);
        let Some(layout) = self.func.layout(value) else {
            return match ty.buffer() {
                Some(_) => Err(format!("`{ty}` has no layout")),
                None => Ok(()),
            };
        };
        let layout = self.func.linear(layout);
        let warps = 1_u64 << layout.warp_bits().min(63);
        if ty.buffer().is_some() && self.stage == Stage::Schedule {
            let bits = (layout.lane_bits(), layout.warp_bits());
            return match bits == (0, 0) && layout.dim_bits() == dim_bits(&ty.shape) {
                true => Ok(()),
                false => Err(format!(
                    "`{ty}` in a layout of {bits:?} bits of lanes and warps"
                )),
            };
        }
        if self.stage != Stage::Schedule {
            Err(format!(
                "`{ty}` has a layout at the {} stage",
                self.stage.word()
            ))
        } else if ty.is_scalar() || ty.row().is_some() || layout.dim_bits() != dim_bits(&ty.shape) {
            Err(format!("`{ty}` in a layout of shape {:?}", layout.shape()))
        } else if layout.lane_bits() != LANE_BITS || warps != u64::from(self.func.warps) {
            let (lanes, expected) = (1_u64 << layout.lane_bits().min(63), self.func.warps);
            Err(format!(
                "a layout of {lanes} lanes and {warps} warps, expected {} and {expected}",
                1 << LANE_BITS
            ))
        } else if layout.registers() as usize > MAX_VECTOR {
            let found = layout.registers();
            Err(format!(
                "a layout of {found} registers, expected at most {MAX_VECTOR}"
            ))
        } else {
            Ok(())
        }
    }

    fn memory(&mut self, inst: Inst) {
        let op = self.func.op(inst);
        let access = op.access();
        let mut writes = access.is_some_and(|access| access.effect != Effect::Reads);
        let mut bases = op.operands();
        if let Op::Tensor(op) = op {
            self.tensors
                .insert(self.func.inst(inst).results[0], op.base);
        }
        if let Op::TensorMap(op) = op {
            self.tensors
                .insert(self.func.inst(inst).results[0], op.base);
        }
        writes |= matches!(op, Op::Print(_) | Op::StoreBox(_) | Op::CopySlot(_));
        if let Op::TileStore(op::TileStore { tensor: to, .. })
        | Op::TileAtomic(op::TileAtomic { tensor: to, .. })
        | Op::TileFetch(op::TileFetch { tensor: to, .. })
        | Op::CopyOut(op::CopyOut { map: to, .. }) = op
        {
            writes = true;
            bases.extend(self.tensors.get(to));
        }
        for base in bases {
            if !matches!(self.func.ty(base).pointee(), Some((_, Space::Global))) {
                continue;
            }
            match self.func.parameter_index(base) {
                None => self.error(inst, format!("base `{base}` is not a parameter")),
                Some(index) => {
                    let parameter = self.func.parameters.get(index);
                    let parameter = parameter.filter(|it| writes && it.access == Access::Read);
                    if let Some(name) = parameter.map(|it| it.name.clone()) {
                        self.error(inst, format!("store through read-only parameter `{name}`"));
                    }
                }
            }
        }
    }

    fn combiner(&mut self, inst: Inst) {
        for region in self.func.op(inst).regions() {
            let mut impure = None;
            self.func.walk(region, &mut |nested| {
                let op = self.func.op(nested);
                let allowed =
                    op.is(Trait::pure) || op.is(Trait::terminator) || !op.regions().is_empty();
                if !allowed {
                    impure = Some(nested);
                }
            });
            if let Some(nested) = impure {
                let op = self.func.op(inst);
                let owner = op.mnemonic();
                let name = self.func.op(nested).mnemonic();
                let loc = self.func.inst(nested).loc.clone();
                let is_map = matches!(op, Op::Map(_));
                let region = if is_map { "region" } else { "combiner" };
                let message = format!("{region} of `{owner}` has an effect: `{name}`");
                let note = format!(
                    "how often a {region} runs is left to the schedule: move `{name}` before the `{owner}`, or give \
                     a `bool` beside the numbers and use it behind"
                );
                self.diagnostics
                    .push(Diagnostic::new(loc, message).note(note));
            }
        }
    }
}
