//! Regions, loops and branches: a carried tile is one lane value.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::registers::{Registers, owners};
use super::tile::{Scope, Tile};
use super::{Lowering, Result};
use crate::ir::op::BlockOp;
use crate::ir::{Inst, Op, Region, Type, Value, op};
use crate::layout::LinearLayout;
use crate::layout::assign::Origin;

/// The layouts of a list of values.
pub(super) type Layouts = Vec<Rc<LinearLayout>>;

impl Lowering<'_> {
    /// Lowers the instructions of a region into the current lane region, up to its `yield`.
    pub(super) fn insts(&mut self, region: Region) -> Result<()> {
        if self.scopes.len() == 1 {
            self.emit_thread();
        }
        let insts = &self.block.region(region).insts;
        let mut checked = BTreeSet::new();
        for (position, &inst) in insts.iter().enumerate() {
            self.builder.set_loc(self.block.inst(inst).loc.clone());
            self.check(&insts[position..], &mut checked)?;
            self.inst(inst)?;
        }
        Ok(())
    }

    pub(super) fn inst(&mut self, inst: Inst) -> Result<()> {
        let block = self.block;
        let data = block.inst(inst);
        let lazy = |value: &Value| self.is_lazy(&data.op, *value);
        if !data.results.is_empty() && data.results.iter().all(lazy) {
            return Ok(());
        }
        let results = &data.results;
        match block.block_op(inst) {
            BlockOp::Load(op) => self.load(inst, op),
            BlockOp::Store(op) => self.store(inst, op),
            BlockOp::AtomicReduce(op) => self.atomic_reduce(inst, op),
            BlockOp::Reduce(op) => self.reduce(results, op),
            BlockOp::Scan(op) => self.scan(results, op),
            BlockOp::Sort(op) => self.sort(results, op),
            BlockOp::Dot(op) => self.dot(results[0], op),
            BlockOp::Histogram(op) => self.histogram(results[0], op),
            BlockOp::Gather(op) => self.gather_along(inst, op),
            BlockOp::For(op) => self.for_loop(inst, op),
            BlockOp::While(op) => self.while_loop(results, op),
            BlockOp::If(op) => self.branch(results, op),
            BlockOp::Yield(_) => Ok(()),
            BlockOp::Constant(_) | BlockOp::ProgramId(_) | BlockOp::NumPrograms(_) => {
                self.scalar_op(&data.op, results[0]);
                Ok(())
            }
            // No derived op is left, or the verifier finds it among the ops of the lane.
            BlockOp::Elementwise(_) | BlockOp::Derived(_) => self.computed(&data.op, results[0]),
            BlockOp::ShapeOp(_) | BlockOp::Splat(_) | BlockOp::Arange(_) => {
                self.placed_view(results[0])
            }
        }
    }

    /// An op without operands that gives a scalar.
    fn scalar_op(&mut self, op: &Op, result: Value) {
        let ty = self.block.ty(result);
        let emitted = self.builder.emit_unchecked(op.clone(), &[ty]);
        let register = self.builder.results(emitted)[0];
        let layout = self.scalar_layout();
        let registers = Registers::uniform(register, 1);
        self.bind(result, Tile { layout, registers });
    }

    /// Whether the op that defines a value emits nothing where it stands: the value is made where it
    /// is used, or counters stand for it.
    fn is_lazy(&self, op: &Op, value: Value) -> bool {
        let in_place = matches!(op, Op::Binary(_)) && self.residents.root(value).is_some();
        in_place || self.assignment.origin(value) != Origin::Computed
    }

    /// A shape op that gives a scalar, or a tile that ends a long chain of shape ops.
    fn placed_view(&mut self, result: Value) -> Result<()> {
        let layout = self.assigned(result);
        let registers = self.cheap(result, &layout)?;
        self.bind(result, Tile { layout, registers });
        Ok(())
    }

    pub(super) fn layouts(&self, values: &[Value]) -> Layouts {
        values.iter().map(|&value| self.assigned(value)).collect()
    }

    /// Several values, each as one lane value that holds its distinct registers.
    pub(super) fn flatten(&mut self, values: &[Value], layouts: &Layouts) -> Result<Vec<Value>> {
        let mut flat = Vec::new();
        for (&value, layout) in values.iter().zip(layouts) {
            let registers = self.get(value, layout)?;
            flat.push(self.distinct(&registers, layout));
        }
        Ok(flat)
    }

    fn flat_types(&self, values: &[Value], layouts: &Layouts) -> Vec<Type> {
        let pairs = values.iter().zip(layouts);
        pairs
            .map(|(&value, layout)| match self.block.ty(value).dtype() {
                Some(dtype) => Type::vector(dtype, owners(layout).len()),
                None => self.block.ty(value),
            })
            .collect()
    }

    /// Binds values to what [`Self::flatten`] makes of such values.
    pub(super) fn unflatten(&mut self, values: &[Value], layouts: &Layouts, flat: &[Value]) {
        for ((&value, layout), &own) in values.iter().zip(layouts).zip(flat) {
            let registers = Registers::of(own, layout);
            let layout = Rc::clone(layout);
            self.bind(value, Tile { layout, registers });
        }
    }

    /// The values that are not counters in place.
    pub(super) fn in_registers(&self, values: &[Value]) -> Vec<Value> {
        let kept = values.iter().copied();
        kept.filter(|&value| self.residents.root(value).is_none())
            .collect()
    }

    /// Lowers a region into a new lane region. `parameters` are bound to `types`; the region yields
    /// its values in `layouts`.
    fn region(
        &mut self,
        region: Region,
        types: &[Type],
        parameters: &Layouts,
        yielded: &Layouts,
    ) -> Result<Region> {
        let lane = self.builder.new_region(types);
        let outer = self.builder.enter(lane);
        self.scopes.push(Scope::default());
        let values = self.builder.parameters(lane);
        let block = self.block;
        let own = self.in_registers(&block.region(region).parameters);
        self.unflatten(&own, parameters, &values);
        self.insts(region)?;
        let ends = self.in_registers(block.yielded(region));
        let values = self.flatten(&ends, yielded)?;
        self.builder.emit(Op::Yield(op::Yield { values }), &[]);
        self.scopes.pop();
        self.builder.enter(outer);
        Ok(lane)
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
        match self.pipeline(inst, op)? {
            Some(pipeline) => self.pipelined_loop(inst, op, &pipeline)?,
            None => self.plain_loop(inst, op)?,
        }
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
        let layouts = self.layouts(&results);
        let bounds = (self.scalar(op.lower)?, self.scalar(op.upper)?);
        let first = self.flatten(&self.carried(body, &op.init), &layouts)?;
        let mut inner = vec![self.scalar_layout()];
        inner.extend(layouts.iter().cloned());
        let parameters = self.in_registers(&block.region(body).parameters);
        let types = self.flat_types(&parameters, &inner);
        let entered = self.enter_loop(&[body]);
        let region = self.region(body, &types, &inner, &layouts)?;
        self.leave_loop(&entered);
        let op = Op::For(op::For {
            lower: bounds.0,
            upper: bounds.1,
            init: first,
            step,
            stages,
            body: region,
        });
        self.finish(op, &results, &layouts);
        Ok(())
    }

    fn while_loop(&mut self, results: &[Value], op: &op::While) -> Result<()> {
        let layouts = self.layouts(results);
        let first = self.flatten(&op.init, &layouts)?;
        let types = self.flat_types(results, &layouts);
        let mut tested = vec![self.scalar_layout()];
        tested.extend(layouts.iter().cloned());
        let entered = self.enter_loop(&[op.before, op.body]);
        let before = self.region(op.before, &types, &layouts, &tested)?;
        let body = self.region(op.body, &types, &layouts, &layouts)?;
        self.leave_loop(&entered);
        self.finish(
            Op::While(op::While {
                init: first,
                before,
                body,
            }),
            results,
            &layouts,
        );
        Ok(())
    }

    fn branch(&mut self, results: &[Value], op: &op::If) -> Result<()> {
        let results = &self.in_registers(results);
        let layouts = self.layouts(results);
        let condition = self.scalar(op.condition)?;
        let before = self.pending.clone();
        let on_true = self.region(op.on_true, &[], &Vec::new(), &layouts)?;
        let after_true = std::mem::replace(&mut self.pending, before);
        let on_false = self.region(op.on_false, &[], &Vec::new(), &layouts)?;
        self.pending.merge(&after_true);
        self.finish(
            Op::If(op::If {
                condition,
                on_true,
                on_false,
            }),
            results,
            &layouts,
        );
        Ok(())
    }

    fn finish(&mut self, op: Op, results: &[Value], layouts: &Layouts) {
        let types = self.flat_types(results, layouts);
        let inst = self.builder.emit_unchecked(op, &types);
        let flat = self.builder.results(inst).to_vec();
        self.unflatten(results, layouts, &flat);
    }

    /// Lowers a region of scalars in place, with `arguments` as its parameters.
    pub(super) fn inline(&mut self, region: Region, arguments: &[Value]) -> Result<Vec<Value>> {
        self.scopes.push(Scope::default());
        let block = self.block;
        let layout = self.scalar_layout();
        let parameters = &block.region(region).parameters;
        let layouts = vec![layout; parameters.len()];
        self.unflatten(parameters, &layouts, arguments);
        let loc = self.builder.loc().clone();
        self.insts(region)?;
        let yielded = block.yielded(region);
        let values = self.flatten(yielded, &vec![self.scalar_layout(); yielded.len()])?;
        self.builder.set_loc(loc);
        self.scopes.pop();
        Ok(values)
    }
}
