//! Regions, loops and branches: a carried tile is one lane value.

use super::registers::{Registers, owners};
use super::tile::Scope;
use super::{Lowering, Result};
use crate::ir::op::{OrderOp, ScheduleOp};
use crate::ir::{Inst, Op, Region, Type, Value, op};

impl Lowering<'_> {
    /// Lowers the instructions of a region into the current lane region, up to its `yield`.
    pub(super) fn insts(&mut self, region: Region) -> Result<()> {
        if self.scopes.len() == 1 {
            self.emit_thread();
        }
        let insts = &self.block.region(region).insts;
        for (position, &inst) in insts.iter().enumerate() {
            self.builder.set_loc(self.block.inst(inst).loc.clone());
            self.check(&insts[position..])?;
            self.inst(inst)?;
        }
        Ok(())
    }

    pub(super) fn inst(&mut self, inst: Inst) -> Result<()> {
        let block = self.block;
        let data = block.inst(inst);
        let results = &data.results;
        if self.is_in_place(inst) || self.asked(inst)? {
            return Ok(());
        }
        match block.schedule_op(inst) {
            ScheduleOp::Load(op) => self.load(inst, op),
            ScheduleOp::LoadBox(_) => Err(self
                .error("a box is loaded, but no product of groups of four warps reads it there")
                .note("use `load`, or bring the box to a buffer by `copy_box` and read it by `slot_load`")),
            ScheduleOp::StoreBox(_) => {
                Err(self.error("broken invariant: a box is stored from no slot"))
            }
            ScheduleOp::Store(op) => self.store(inst, op),
            ScheduleOp::AtomicReduce(op) => self.atomic_reduce(op),
            ScheduleOp::AtomicFetch(op) => self.atomic_fetch(results[0], op),
            ScheduleOp::Assert(op) => {
                self.assert(inst, op);
                Ok(())
            }
            ScheduleOp::Reduce(op) => self.reduce(inst, op),
            ScheduleOp::Scan(op) => self.scan(results, op),
            ScheduleOp::Sort(op) => self.sort(results, op),
            ScheduleOp::Dot(op) => self.dot(results[0], op),
            ScheduleOp::Histogram(op) => self.histogram(results[0], op),
            ScheduleOp::Gather(op) => self.gather_along(inst, op),
            ScheduleOp::For(op) => self.for_loop(inst, op),
            ScheduleOp::While(op) => self.while_loop(results, op),
            ScheduleOp::If(op) => self.branch(results, op),
            ScheduleOp::Yield(_) => Ok(()),
            ScheduleOp::ProgramId(_) | ScheduleOp::NumPrograms(_) => {
                self.scalar_op(&data.op, results[0]);
                Ok(())
            }
            ScheduleOp::Constant(op) => {
                self.constant(results[0], op);
                Ok(())
            }
            ScheduleOp::Splat(op) => {
                self.splat(results[0], op);
                Ok(())
            }
            ScheduleOp::Arange(op) => {
                self.arange(results[0], op.start);
                Ok(())
            }
            ScheduleOp::Elementwise(_) => self.elementwise(&data.op, results[0]),
            ScheduleOp::ShapeOp(op) => self.rearranged(results[0], op),
            ScheduleOp::SlotOp(op) => self.slot_op(results, op),
            ScheduleOp::OrderOp(op) => {
                self.order_op(&data.op, op, results);
                Ok(())
            }
        }
    }

    fn order_op(&mut self, op: &Op, which: OrderOp<'_>, results: &[Value]) {
        let made = match which {
            OrderOp::Pend(&op::Pend { x }) => Op::Pend(op::Pend { x: self.all_of(x) }),
            OrderOp::Settle(&op::Settle { x, pending }) => {
                let x = self.all_of(x);
                Op::Settle(op::Settle { x, pending })
            }
            OrderOp::Barrier(_)
            | OrderOp::GroupCopies(_)
            | OrderOp::WaitCopies(_)
            | OrderOp::WaitProducts(_)
            | OrderOp::ProxyFence(_) => op.clone(),
        };
        let inst = self.builder.emit(made, &[]);
        let flat = self.builder.results(inst).to_vec();
        self.unflatten(results, &flat);
    }

    /// The lane value that holds the distinct registers of a value.
    pub(super) fn all_of(&mut self, value: Value) -> Value {
        let (registers, layout) = (self.get(value), self.layout(value));
        self.distinct(&registers, &layout)
    }

    /// An op without operands that gives a scalar.
    fn scalar_op(&mut self, op: &Op, result: Value) {
        let ty = self.block.ty(result);
        let emitted = self.builder.emit_unchecked(op.clone(), &[ty]);
        let register = self.builder.results(emitted)[0];
        self.bind(result, Registers::uniform(register, 1));
    }

    /// Whether counters stand for what an addition gives.
    fn is_in_place(&self, inst: Inst) -> bool {
        let data = self.block.inst(inst);
        let mut results = data.results.iter();
        matches!(data.op, Op::Binary(_)) && results.any(|&it| self.residents.root(it).is_some())
    }

    /// Several values, each as one lane value that holds its distinct registers.
    pub(super) fn flatten(&mut self, values: &[Value]) -> Vec<Value> {
        values.iter().map(|&value| self.all_of(value)).collect()
    }

    fn flat_types(&self, values: &[Value]) -> Vec<Type> {
        let ty = |&value: &Value| {
            let ty = self.block.ty(value);
            let held = |dtype| Type::vector(dtype, owners(&self.layout(value)).len());
            let pending = ty.pending().map(|dtype| held(dtype).with_pending(dtype));
            pending.or_else(|| ty.dtype().map(held)).unwrap_or(ty)
        };
        values.iter().map(ty).collect()
    }

    /// Binds values to what [`Self::flatten`] makes of such values.
    pub(super) fn unflatten(&mut self, values: &[Value], flat: &[Value]) {
        for (&value, &own) in values.iter().zip(flat) {
            let registers = Registers::of(own, &self.layout(value));
            self.bind(value, registers);
        }
    }

    /// The values that are not counters in place.
    pub(super) fn in_registers(&self, values: &[Value]) -> Vec<Value> {
        let kept = values.iter().copied();
        kept.filter(|&value| self.residents.root(value).is_none())
            .collect()
    }

    /// Lowers a region into a new lane region.
    fn region(&mut self, region: Region) -> Result<Region> {
        let block = self.block;
        let own = self.in_registers(&block.region(region).parameters);
        let lane = self.builder.new_region(&self.flat_types(&own));
        let outer = self.builder.enter(lane);
        self.scopes.push(Scope::default());
        let values = self.builder.parameters(lane);
        self.unflatten(&own, &values);
        self.insts(region)?;
        let ends = self.in_registers(block.yielded(region));
        let values = self.flatten(&ends);
        self.builder.emit(Op::Yield(op::Yield { values }), &[]);
        self.scopes.pop();
        self.builder.enter(outer);
        Ok(lane)
    }

    /// A new lane region without parameters or results, which may not be taken.
    pub(super) fn nested(&mut self, fill: impl FnOnce(&mut Self) -> Result<()>) -> Result<Region> {
        let region = self.builder.new_region(&[]);
        let outer = self.builder.enter(region);
        let before = self.pending.clone();
        self.scopes.push(Scope::default());
        let filled = fill(self);
        self.pending.merge(&before);
        self.builder
            .emit(Op::Yield(op::Yield { values: Vec::new() }), &[]);
        self.scopes.pop();
        self.builder.enter(outer);
        filled.map(|()| region)
    }

    fn for_loop(&mut self, inst: Inst, op: &op::For) -> Result<()> {
        let block = self.block;
        let parameters = &block.region(op.body).parameters[1..];
        let carried = parameters.iter().enumerate();
        let roots: Vec<(usize, Value)> = carried
            .map(|(position, &parameter)| (position, parameter))
            .filter(|&(_, parameter)| self.residents.is_root(parameter))
            .collect();
        for &(_, root) in &roots {
            self.begin_resident(root);
        }
        self.plain_loop(inst, op)?;
        for (position, root) in roots {
            let result = block.inst(inst).results[position];
            self.end_resident(root, op.init[position], result)?;
        }
        Ok(())
    }

    /// Of the values that a loop begins or ends with, those that it carries in registers.
    pub(super) fn carried(&self, body: Region, values: &[Value]) -> Vec<Value> {
        let parameters = &self.block.region(body).parameters[1..];
        let pairs = values.iter().zip(parameters);
        let kept = pairs.filter(|(_, parameter)| self.residents.root(**parameter).is_none());
        kept.map(|(&value, _)| value).collect()
    }

    fn plain_loop(&mut self, inst: Inst, op: &op::For) -> Result<()> {
        let block = self.block;
        let op::For {
            step, stages, body, ..
        } = *op;
        let results = self.carried(body, &block.inst(inst).results);
        let bounds = (self.scalar(op.lower), self.scalar(op.upper));
        let first = self.flatten(&self.carried(body, &op.init));
        let entered = self.enter_loop(&[body]);
        let region = self.region(body)?;
        self.leave_loop(&entered);
        let op = Op::For(op::For {
            lower: bounds.0,
            upper: bounds.1,
            init: first,
            step,
            stages,
            body: region,
        });
        self.finish(op, &results);
        Ok(())
    }

    fn while_loop(&mut self, results: &[Value], op: &op::While) -> Result<()> {
        let init = self.flatten(&op.init);
        let entered = self.enter_loop(&[op.before, op.body]);
        let before = self.region(op.before)?;
        let body = self.region(op.body)?;
        self.leave_loop(&entered);
        self.finish(Op::While(op::While { init, before, body }), results);
        Ok(())
    }

    fn branch(&mut self, results: &[Value], op: &op::If) -> Result<()> {
        let results = &self.in_registers(results);
        let condition = self.scalar(op.condition);
        let before = self.pending.clone();
        let used = self.uses_shared;
        let on_true = self.region(op.on_true)?;
        let after_true = std::mem::replace(&mut self.pending, before);
        // In a loop either branch may follow the other.
        let begins = if self.loops == 0 {
            used
        } else {
            self.uses_shared
        };
        let used = std::mem::replace(&mut self.uses_shared, begins);
        let at_edge = self.at_edge;
        self.at_edge |= self.is_for_edges(op);
        let on_false = self.region(op.on_false);
        self.at_edge = at_edge;
        let on_false = on_false?;
        self.pending.merge(&after_true);
        self.uses_shared |= used;
        self.finish(
            Op::If(op::If {
                condition,
                on_true,
                on_false,
            }),
            results,
        );
        Ok(())
    }

    /// Whether the second branch is for programs at an edge: both multiply, and the first has fewer masks.
    fn is_for_edges(&self, op: &op::If) -> bool {
        let count = |region: Region| {
            let (mut products, mut whole) = (0_usize, 0_usize);
            self.block.walk(region, &mut |inst| {
                let op = self.block.op(inst);
                products += usize::from(matches!(op, Op::Dot(_)));
                whole += usize::from(op.access().is_some_and(|access| access.mask.is_none()));
            });
            (products, whole)
        };
        let (first, second) = (count(op.on_true), count(op.on_false));
        first.0 > 0 && second.0 > 0 && first.1 > second.1
    }

    fn finish(&mut self, op: Op, results: &[Value]) {
        let types = self.flat_types(results);
        let inst = self.builder.emit_unchecked(op, &types);
        let flat = self.builder.results(inst).to_vec();
        self.unflatten(results, &flat);
    }

    /// Lowers a region of scalars in place, with `arguments` as its parameters.
    pub(super) fn inline(&mut self, region: Region, arguments: &[Value]) -> Result<Vec<Value>> {
        self.scopes.push(Scope::default());
        let block = self.block;
        self.unflatten(&block.region(region).parameters, arguments);
        let loc = self.builder.loc().clone();
        self.insts(region)?;
        let values = self.flatten(block.yielded(region));
        self.builder.set_loc(loc);
        self.scopes.pop();
        Ok(values)
    }
}
