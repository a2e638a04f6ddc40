//! Makes loops of what programs at an edge do element by element: a few programs of a grid run it, and code costs time to
//! compile.
//!
//! Where a branch takes whole tiles without masks, the other one loads, computes and stores the registers of a lane
//! one after the other, each by its own mask. The loop goes through parts of these registers, in their order, so
//! elements are computed as before. Checks stand before it as they were.

mod edges;
mod plan;

use std::collections::{BTreeMap, BTreeSet};

use super::dce;
use crate::builder::Builder;
use crate::ir::{DType, Func, Inst, InstData, Literal, Op, Shape, Stage, Type, Value, op};
use edges::Edges;
use plan::Plan;

/// Rolls the streams of all branches for programs at an edge.
pub fn roll_edges(func: &mut Func) {
    let edges = Edges::of(func);
    let regions = func
        .all_insts()
        .into_iter()
        .filter_map(|inst| edges.region(inst));
    let plans: Vec<Plan> = regions
        .filter_map(|region| Plan::of(func, edges.definitions(), region))
        .collect();
    if plans.is_empty() {
        return;
    }
    let owned = std::mem::replace(func, Func::new("", Stage::Lane));
    let mut builder = Builder::resume(owned);
    for plan in &plans {
        Rolled::new(&mut builder, plan).emit();
    }
    *func = builder
        .finish()
        .expect("broken invariant: a part of a vector has the ops of the whole");
    dce::dce(func);
}

/// A loop under construction.
struct Rolled<'a> {
    builder: &'a mut Builder,
    plan: &'a Plan,
    /// For each vector its part.
    parts: BTreeMap<Value, Value>,
}

impl<'a> Rolled<'a> {
    fn new(builder: &'a mut Builder, plan: &'a Plan) -> Self {
        Self {
            builder,
            plan,
            parts: BTreeMap::new(),
        }
    }

    /// Puts the loop in the place of the stream.
    fn emit(mut self) {
        let moved: BTreeSet<Inst> = self.plan.stream.iter().copied().collect();
        let region = self.plan.region;
        let insts = std::mem::take(&mut self.builder.func_mut().region_mut(region).insts);
        let (end, before) = insts
            .split_last()
            .expect("broken invariant: a region has an end");
        let kept = before.iter().copied().filter(|inst| !moved.contains(inst));
        let kept: Vec<Inst> = kept.collect();
        self.builder.func_mut().region_mut(region).insts = kept;
        let outer = self.builder.enter(region);
        let loc = self.builder.func().inst(self.plan.stream[0]).loc.clone();
        self.builder.set_loc(loc);
        let none = self.builder.index(0);
        let parts = self.plan.parts as i64;
        let counter = [Type::INDEX];
        let head = self.builder.region_with(&counter, |builder, values| {
            let parts = builder.index(parts);
            vec![builder.lt(values[0], parts), values[0]]
        });
        let body = self.builder.new_region(&counter);
        self.builder.enter(body);
        let part = self.builder.parameters(body)[0];
        let plan = self.plan;
        for &inst in plan.needed.iter().chain(&plan.stream) {
            self.inst(inst, part);
        }
        let one = self.builder.index(1);
        let values = vec![self.builder.add(part, one)];
        self.builder.emit(Op::Yield(op::Yield { values }), &[]);
        self.builder.enter(region);
        self.builder.emit(
            Op::While(op::While {
                init: vec![none],
                before: head,
                body,
            }),
            &[],
        );
        self.builder.func_mut().region_mut(region).insts.push(*end);
        self.builder.enter(outer);
    }

    /// The part of an instruction.
    fn inst(&mut self, inst: Inst, part: Value) {
        let InstData {
            op, results, loc, ..
        } = self.builder.func().inst(inst).clone();
        self.builder.set_loc(loc);
        let Some(&result) = results.first() else {
            let op = self.of_parts(op);
            self.builder.emit_unchecked(op, &[]);
            return;
        };
        let ty = self.builder.ty(result);
        let count = ty.shape.elements() / self.plan.parts;
        let dtype = ty.dtype().unwrap_or(DType::I64);
        let ty = Type::vector(dtype, count);
        let value = if let Op::Constant(op::Constant { value }) = op {
            self.builder.filled(value, ty.shape)
        } else if let Op::Splat(op::Splat { x }) = op {
            self.builder.splat(x, ty.shape)
        } else if let Op::Places(op::Places { values }) = op {
            self.places(&values[..], ty, part)
        } else if let Op::ShuffleVector(op::ShuffleVector { a, indices, .. }) = op {
            self.picked(self.parts[&a], &indices[..count])
        } else {
            let op = self.of_parts(op);
            let inst = self.builder.emit_unchecked(op, &[ty]);
            self.builder.results(inst)[0]
        };
        self.parts.insert(result, value);
    }

    /// An op whose vectors are parts of those that it had.
    fn of_parts(&self, mut op: Op) -> Op {
        op.map_operands(&mut |value| self.parts.get(&value).copied().unwrap_or(value));
        op
    }

    /// The numbers of a part: those of the first one, and how far the part is from it.
    fn places(&mut self, values: &[u32], ty: Type, part: Value) -> Value {
        let count = ty.shape.elements();
        let dtype = ty.dtype().unwrap_or(DType::I64);
        let first = &values[..count];
        let first = match first.iter().all(|number| number == &first[0]) {
            true => {
                let literal = Literal::from_bits(dtype, first[0].into());
                self.builder.filled(literal, ty.shape)
            }
            false => {
                let values = first.to_vec();
                self.builder.declared(Op::Places(op::Places { values }), ty)
            }
        };
        let step = values[count] - values[0];
        if step == 0 {
            return first;
        }
        let step = Literal::from_bits(dtype, step.into());
        let step = self.builder.filled(step, Shape::SCALAR);
        let part = self.builder.cast(part, dtype);
        let distance = self.builder.mul(part, step);
        let distance = self.builder.splat(distance, ty.shape);
        self.builder.add(distance, first)
    }

    /// Some elements of a part.
    fn picked(&mut self, vector: Value, indices: &[u32]) -> Value {
        let scalar = self.builder.ty(vector).is_scalar();
        match *indices {
            [_] if scalar => vector,
            [index] => {
                let index = index.into();
                self.builder
                    .value(Op::Extract(op::Extract { vector, index }))
            }
            _ if scalar => {
                let dtype = self.builder.ty(vector).dtype().unwrap_or(DType::I64);
                let shape = Type::vector(dtype, indices.len()).shape;
                self.builder.splat(vector, shape)
            }
            _ => self.builder.value(Op::ShuffleVector(op::ShuffleVector {
                a: vector,
                b: vector,
                indices: indices.to_vec(),
            })),
        }
    }
}
