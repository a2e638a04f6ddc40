//! Puts the operands of products that groups of warps compute into slots of shared memory.

mod before;
mod copied;

use std::collections::BTreeMap;

use self::copied::{buffer_of, copy_of};
use super::append::Appender;
use super::form::{held_operand, is_of_groups};
use super::nest::{is_counted, loops_around, runs_before};
use super::{MayEnd, PlacedFunc};
use crate::diagnostic::Diagnostics;
use crate::ir::op::Control;
use crate::ir::{BinaryOp, DType, Func, Inst, Literal, Op, Region, Type, Value, op};
use crate::layout::LinearLayout;
use crate::layout::group::Multiplied;
use crate::passes::dce::drop_unused;
use crate::target::Gpu;

/// Makes `dot_slots` of each `dot` whose result lies as groups of warps have it. An operand that lanes have as a product takes it
/// stays with them if the machine holds operands.
///
/// # Errors
/// None that the function did not have before.
pub fn homes(func: PlacedFunc, gpu: &Gpu, may_end: MayEnd<'_>) -> Result<PlacedFunc, Diagnostics> {
    let dots = |func: &Func| {
        let insts = func.all_insts().into_iter();
        insts.filter(|&inst| is_grouped(func, inst)).collect()
    };
    let found: Vec<Inst> = dots(&func);
    if found.is_empty() {
        return Ok(func);
    }
    let mut func = func.into_inner();
    let turns = runs_of_boxed(&mut func, &found);
    let mut homes = Homes {
        dots: found,
        stored: Vec::new(),
        turns,
        holds_operands: gpu.holds_operands,
        may_end,
    };
    let body = func.body();
    homes.region(&mut func, body);
    drop_unused(&mut func, &|func, inst| {
        matches!(func.op(inst), Op::LoadBox(_))
    });
    PlacedFunc::new(func)
}

/// What is known of the operands of a function.
struct Homes<'a> {
    dots: Vec<Inst>,
    stored: Vec<Stored>,
    /// How often the bodies of loops in loops have run before.
    turns: BTreeMap<Region, Value>,
    holds_operands: bool,
    may_end: MayEnd<'a>,
}

impl Homes<'_> {
    /// Makes the dots of a region, and of those in it, ones of slots, in the order in which they run.
    fn region(&mut self, func: &mut Func, region: Region) {
        for inst in std::mem::take(&mut func.region_mut(region).insts) {
            if self.dots.contains(&inst)
                && let Op::Dot(op) = func.op(inst).clone()
            {
                let mut housing = Housing {
                    at: Appender { func, region, inst },
                    homes: self,
                };
                housing.whole(&op);
            }
            func.region_mut(region).insts.push(inst);
            for inner in func.op(inst).regions() {
                self.region(func, inner);
            }
        }
    }
}

/// How often each body of a loop in loops has run before that has products of boxes.
fn runs_of_boxed(func: &mut Func, dots: &[Inst]) -> BTreeMap<Region, Value> {
    let definitions = func.definitions();
    let is_box = |func: &Func, value: Value| {
        let load = definitions.get(value).copied().flatten();
        load.is_some_and(|load| matches!(func.op(load), Op::LoadBox(_)))
    };
    let mut turns = BTreeMap::new();
    for &dot in dots {
        let mut operands = func.op(dot).operands().into_iter();
        let loops = loops_around(func, dot);
        let counted = loops.len() > 1 && is_counted(func, dot);
        if !counted || !operands.any(|value| is_box(func, value)) {
            continue;
        }
        let regions = func.all_regions().into_iter();
        let mut own = regions.filter(|&region| func.region(region).insts.contains(&dot));
        if let Some(region) = own.next().filter(|region| !turns.contains_key(region)) {
            turns.extend(runs_before(func, &loops).map(|turn| (region, turn)));
        }
    }
    turns
}

/// An operand that lanes have stored or a bulk copy has brought, in a region and in no loop of it.
struct Stored {
    value: Value,
    of: Multiplied,
    buffer: Value,
    region: Region,
    /// What shows it to tensor cores: a barrier, or the wait for its copy.
    barrier: Inst,
}

/// Whether an instruction is a product that groups of warps compute.
pub(super) fn is_grouped(func: &Func, inst: Inst) -> bool {
    let Op::Dot(op) = func.op(inst) else {
        return false;
    };
    let layout = func.layout(func.inst(inst).results[0]);
    layout.is_some_and(|layout| is_of_groups(func, op, func.linear(layout)))
}

/// Where a product finds an operand.
enum Source {
    /// Lanes hold it as tensor cores take it.
    Held(Value),
    /// Lanes store what they hold to shared memory, once before the loop around or in each iteration.
    Lanes(Value, When),
    /// A bulk copy brings what this instruction loads.
    Box(Inst, Value, op::LoadBox),
    /// A bulk copy brings what this instruction loads, in no loop, once before all loops around.
    BoxBefore(Inst, Value, op::LoadBox),
    /// It, or what is made alike, is in this buffer: an earlier product of the region, or of a loop in it, had it stored.
    Stored(Value),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Before,
    Here,
}

/// What brings the operands of a dot to shared memory, as it is appended to a region.
struct Housing<'a, 'b> {
    /// Appends at the place of the dot.
    at: Appender<'a>,
    homes: &'a mut Homes<'b>,
}

impl Housing<'_, '_> {
    /// Makes the dot one of slots.
    fn whole(&mut self, op: &op::Dot) {
        let slot = self.at.int32(0);
        let dtype = self.at.func.ty(op.a).dtype().unwrap_or(DType::F16);
        let of = [1, 0].map(|products| Multiplied { dtype, products });
        self.hoist(op.a);
        self.hoist(op.b);
        let sources = [
            self.source(op, (op.a, of[0])),
            self.source(op, (op.b, of[1])),
        ];
        let boxed = |source: &Source| matches!(source, Source::Box(..));
        let turn = sources.iter().any(boxed).then(|| match self.iteration() {
            Some(turn) => {
                // The products of the iteration before have read the slots.
                self.at.append(Op::Barrier(op::Barrier {}), &[]);
                turn
            }
            None => slot,
        });
        let buffers = [0, 1].map(|at| self.housed(&sources[at], of[at], slot));
        let boxes = sources
            .iter()
            .zip(&buffers)
            .filter(|(source, _)| boxed(source));
        for ((_, &buffer), turn) in boxes.zip(turn.into_iter().cycle()) {
            let wait = op::WaitBox { buffer, slot, turn };
            self.at.append(Op::WaitBox(wait), &[]);
        }
        let here = sources.iter().zip(of).zip(buffers);
        let here = here.filter_map(|((source, of), buffer)| match *source {
            Source::Lanes(value, When::Here) => Some((value, of, buffer)),
            Source::Lanes(_, When::Before)
            | Source::Held(_)
            | Source::Box(..)
            | Source::BoxBefore(..)
            | Source::Stored(_) => None,
        });
        let here: Vec<(Value, Multiplied, Value)> = here.collect();
        if !here.is_empty() {
            self.show(here);
        }
        let is_held = matches!(sources[0], Source::Held(_));
        self.product(op, buffers, (slot, is_held));
    }

    /// Makes the dot one of what is in these slots, of which lanes may hold the first.
    fn product(&mut self, op: &op::Dot, [a, b]: [Value; 2], (slot, is_held): (Value, bool)) {
        let layout = self.at.func.layout(op.accumulator);
        let sums = self.at.func.ty(op.accumulator);
        let sums = sums.with_pending(sums.dtype().unwrap_or(DType::F32));
        let accumulator = self
            .at
            .value(Op::Pend(op::Pend { x: op.accumulator }), sums);
        self.at.func.set_layout(accumulator, layout);
        let product = Op::DotSlots(op::DotSlots {
            a,
            a_slot: Some(slot).filter(|_| !is_held),
            b,
            b_slot: slot,
            accumulator,
            precision: op.precision,
        });
        let x = self.at.value(product, sums);
        self.at.func.set_layout(x, layout);
        self.at.func.inst_mut(self.at.inst).op = Op::Settle(op::Settle { x, pending: 0 });
    }

    /// Shows tensor cores what lanes have stored.
    fn show(&mut self, stored: Vec<(Value, Multiplied, Value)>) {
        self.at.append(Op::ProxyFence(op::ProxyFence {}), &[]);
        self.at.append(Op::Barrier(op::Barrier {}), &[]);
        let region = self.at.region;
        let insts = &self.at.func.region(region).insts;
        let barrier = insts[insts.len() - 1];
        self.homes
            .stored
            .extend(stored.into_iter().map(|(value, of, buffer)| Stored {
                value,
                of,
                buffer,
                region,
                barrier,
            }));
    }

    /// Appends what brings an operand to a slot; returns its buffer, or the operand where lanes hold it.
    fn housed(&mut self, source: &Source, of: Multiplied, slot: Value) -> Value {
        match source {
            &Source::Held(value) | &Source::Stored(value) => value,
            &Source::Lanes(value, When::Before) => self.housed_before(value, of),
            &Source::Lanes(value, When::Here) => {
                let made = buffer_of(self.at.func, value, of);
                let buffer = self.buffer(made, self.at.region, usize::MAX);
                let store = op::SlotStore {
                    value,
                    buffer,
                    slot,
                };
                self.at.append(Op::SlotStore(store), &[]);
                buffer
            }
            Source::Box(load, value, boxed) => {
                let made = buffer_of(self.at.func, *value, of);
                let insts = &mut self.at.func.region_mut(self.at.region).insts;
                let at = insts.iter().position(|inst| inst == load);
                let behind = insts.split_off(at.map_or(insts.len(), |at| at + 1));
                // What is copied once starts where it is loaded, unless the program may end before the product.
                let (slot, behind) = if self.may_end_in(&behind) || self.around().is_some() {
                    self.at.func.region_mut(self.at.region).insts.extend(behind);
                    (slot, Vec::new())
                } else {
                    (self.at.int32(0), behind)
                };
                let (region, at) = self.outside(true);
                let buffer = self.buffer(made, region, at);
                self.at.append(copy_of(boxed, buffer, slot), &[]);
                self.at.func.region_mut(self.at.region).insts.extend(behind);
                buffer
            }
            Source::BoxBefore(load, value, boxed) => self.boxed_before((*load, *value), boxed, of),
        }
    }

    /// Whether the program may end in instructions, or what these hold.
    fn may_end_in(&self, insts: &[Inst]) -> bool {
        let func = &*self.at.func;
        let mut ends = false;
        for &inst in insts {
            ends |= (self.homes.may_end)(func.op(inst));
            for region in func.op(inst).regions() {
                func.walk(region, &mut |it| ends |= (self.homes.may_end)(func.op(it)));
            }
        }
        ends
    }

    /// A buffer for an operand, made at this place of a region or at its end.
    fn buffer(&mut self, (ty, layout): (Type, LinearLayout), region: Region, at: usize) -> Value {
        let loc = self.at.func.inst(self.at.inst).loc.clone();
        let made = self
            .at
            .func
            .add_inst(Op::Buffer(op::Buffer { behind: None }), &[ty], loc);
        let buffer = self.at.func.inst(made).results[0];
        let layout = self.at.func.intern(layout);
        self.at.func.set_layout(buffer, Some(layout));
        let insts = &mut self.at.func.region_mut(region).insts;
        insts.insert(at.min(insts.len()), made);
        buffer
    }

    /// The loop whose body the region is.
    fn around(&self) -> Option<(Inst, op::For)> {
        let mut loops = self.at.func.all_insts().into_iter();
        loops.find_map(|inst| match self.at.func.op(inst).control() {
            Some(Control::For(op)) if op.body == self.at.region => Some((inst, op.clone())),
            Some(Control::For(_) | Control::While(_) | Control::If(_)) | None => None,
        })
    }

    /// Before the loop around, or here if there is none; before all loops around where `all` are meant, as buffers begin there
    /// whose boxes are counted from one iteration to the next.
    fn outside(&self, all: bool) -> (Region, usize) {
        let func = &*self.at.func;
        let place = |around: Inst| {
            func.all_regions().into_iter().find_map(|region| {
                let insts = &func.region(region).insts;
                Some((region, insts.iter().position(|&inst| inst == around)?))
            })
        };
        let around = self.around().map(|(around, _)| around);
        let outermost = around.map(|around| match loops_around(func, around).first() {
            Some(&outermost) if all => outermost,
            Some(_) | None => around,
        });
        let outside = outermost.and_then(place);
        outside.unwrap_or((self.at.region, usize::MAX))
    }

    /// Where an operand of the dot comes from.
    fn source(&self, op: &op::Dot, (value, of): (Value, Multiplied)) -> Source {
        let func = &*self.at.func;
        let own = func.region(self.at.region).insts.iter().copied();
        let mut made = own.filter(|&inst| func.inst(inst).results.contains(&value));
        let own = made.next();
        if let Some(load) = own
            && let Op::LoadBox(op) = func.op(load)
        {
            return Source::Box(load, value, op.clone());
        }
        if let Some(load) = func.definitions()[value]
            && let Op::LoadBox(op) = func.op(load)
            && loops_around(func, load).is_empty()
            && is_counted(func, self.at.inst)
        {
            return Source::BoxBefore(load, value, op.clone());
        }
        let place = |value: Value| func.layout(value).map(|layout| func.linear(layout));
        let is_first = value == op.a && value != op.b;
        let held = || held_operand(func, op.a, op.b);
        if self.homes.holds_operands && is_first && place(value) == held().as_ref() {
            return Source::Held(value);
        }
        let parameters = &func.region(self.at.region).parameters;
        let changes = own.is_some() || parameters.contains(&value);
        if self.around().is_some() && !changes {
            return Source::Lanes(value, When::Before);
        }
        let stored = self.stored_before((value, of), self.at.region, usize::MAX);
        stored.map_or(Source::Lanes(value, When::Here), Source::Stored)
    }

    /// The number of the iteration of the loop around, if there is one.
    fn iteration(&mut self) -> Option<Value> {
        if let Some(&turn) = self.homes.turns.get(&self.at.region) {
            return Some(turn);
        }
        let (_, around) = self.around()?;
        let index = self.at.func.region(self.at.region).parameters[0];
        let binary = |op, lhs, rhs| Op::Binary(op::Binary { op, lhs, rhs });
        let done = self
            .at
            .value(binary(BinaryOp::Sub, index, around.lower), Type::INDEX);
        // A loop may span more than the greatest index.
        let wide = Type::scalar(DType::U64);
        let done = self.at.value(Op::Cast(op::Cast { x: done }), wide);
        let value = Literal::from_bits(DType::U64, around.step.cast_unsigned());
        let step = self.at.value(Op::Constant(op::Constant { value }), wide);
        let turn = self.at.value(binary(BinaryOp::Div, done, step), wide);
        let number = Type::scalar(DType::I32);
        Some(self.at.value(Op::Cast(op::Cast { x: turn }), number))
    }
}
