//! What single ops take: slots of a scheduler for each element, and cycles until their results are there.

use super::{Ready, Walk};
use crate::ir::operand::is_of_tensor_cores;
use crate::ir::{BinaryOp, DType, Func, Inst, Op, Region, Trait, Type, UnaryOp, Value, op};
use crate::schedule::origin::Origin;

/// Schedulers of a multiprocessor, each of which issues an instruction in a cycle.
pub(super) const SCHEDULERS: u32 = 4;
/// How far the parts of a cost overlap: with a greater number the longest counts alone.
pub(super) const OVERLAP: f64 = 4.0;
/// What a lane holds beside its elements.
pub(super) const BESIDE: u32 = 24;
/// Slots for each word that is spilled.
pub(super) const SPILL: f64 = 16.0;
/// Iterations that loads run ahead where nothing is said.
pub(super) const AHEAD: f64 = 2.0;
/// Slots of an access by a warp: all schedulers share what does it.
const ACCESS: f64 = 6.0;
/// Cycles of an exchange between the lanes of a warp, and of one between warps with its barriers.
const SHUFFLE: f64 = 30.0;
const MEETING: f64 = 150.0;

/// Bytes of an element.
pub(super) fn bytes(func: &Func, value: Value) -> f64 {
    let ty: Type = func.ty(value);
    let dtype = ty.dtype().or_else(|| ty.pending());
    dtype.map_or(0.0, |dtype| match dtype == DType::Bool {
        true => 0.125,
        false => f64::from(dtype.bytes()),
    })
}

/// Slots for one element.
fn element(func: &Func, inst: Inst) -> f64 {
    let op = func.op(inst);
    let operand = op.operands().first().copied();
    let dtype = operand.and_then(|it| func.ty(it).dtype());
    let words = dtype.map_or(1.0, |dtype| (f64::from(dtype.bytes()) / 4.0).max(1.0));
    let integer = dtype.is_some_and(DType::is_integer);
    let slots = if let Op::Binary(op::Binary { op, .. }) = op {
        match (matches!(op, BinaryOp::Div | BinaryOp::Rem), integer) {
            (true, true) => 24.0,
            (true, false) => 10.0,
            (false, true) => 2.0,
            (false, false) => 1.0,
        }
    } else if let Op::Unary(op::Unary { op, .. }) = op {
        match *op == UnaryOp::Sqrt {
            true => 10.0,
            false => 1.0,
        }
    } else if matches!(op, Op::Approximate(_)) {
        4.0
    } else if matches!(op, Op::Cast(_)) {
        2.0
    } else if matches!(op, Op::Function(_)) {
        20.0
    } else {
        1.0
    };
    words * slots
}

impl Walk<'_> {
    /// Slots of a region for each element that it combines.
    fn combining(&self, region: Region) -> f64 {
        let func = self.costs.func;
        let mut slots = 0.0;
        func.walk(region, &mut |inst| {
            if !func.op(inst).is(Trait::terminator) {
                slots += element(func, inst);
            }
        });
        slots
    }

    /// What an op without regions that run by themselves takes.
    pub(super) fn plain(&mut self, inst: Inst) -> Ready {
        let func = self.costs.func;
        let op = func.op(inst);
        if op.access().is_some() {
            return self.access(inst);
        }
        let result = func.inst(inst).results.first().copied();
        if let Op::LoadBox(op::LoadBox { base, .. }) = op {
            self.box_of(*base, result);
            [f64::from(self.costs.target.gpu.latency), 0.0]
        } else if let Op::StoreBox(op::StoreBox { base, value, .. }) = op {
            self.box_of(*base, Some(*value));
            [0.0; 2]
        } else if let Op::Reduce(op) = op {
            self.reduction(&op.sources, op.axis.index(), op.combine, 1.0)
        } else if let Op::Scan(op) = op {
            self.reduction(&op.sources, op.axis.index(), op.combine, 3.0)
        } else if let Op::Sort(op) = op {
            self.sort(op)
        } else if let Op::Dot(op) = op {
            self.dot(op)
        } else if let Op::Histogram(op::Histogram { x: looked, .. })
        | Op::Gather(op::Gather {
            indices: looked, ..
        }) = op
        {
            self.exchanged(*looked)
        } else if let Some(result) = result.filter(|_| op.is(Trait::elementwise)) {
            self.elementwise(inst, result)
        } else {
            [0.0; 2]
        }
    }

    fn elementwise(&mut self, inst: Inst, result: Value) -> Ready {
        let func = self.costs.func;
        if func.ty(result).is_scalar() {
            self.issue(0.5);
        } else if self.costs.origins[result] == Origin::Computed {
            let slots = self.each(result) * element(func, inst);
            self.issue(slots);
        }
        [4.0; 2]
    }

    fn access(&mut self, inst: Inst) -> Ready {
        let (func, target) = (self.costs.func, self.costs.target);
        let op = func.op(inst);
        let Some(access) = op.access() else {
            return [0.0; 2];
        };
        let indices = &self.costs.indices;
        let order = access.order(func, indices);
        let bits = order
            .first()
            .map_or(0, |&axis| access.vector_bits(func, indices, axis, target));
        let each = self.each(access.offsets);
        let vector = f64::from(1_u32 << bits).min(each);
        let bytes = func
            .ty(access.base)
            .pointee()
            .map_or(0.0, |(dtype, _)| f64::from(dtype.bytes()));
        let elements = func.ty(access.offsets).shape.elements() as f64;
        let line = f64::from(target.line_bytes);
        // A lone element moves a sector.
        self.moved(access.base, (elements * bytes).max(line));
        let masked = access.mask.map_or(0.0, |_| each / 2.0);
        let single = matches!(op, Op::AtomicReduce(_) | Op::AtomicFetch(_));
        let count = if single { each * 4.0 } else { each / vector };
        self.issue(count * ACCESS + masked);
        match access.value {
            Some(_) if !matches!(op, Op::AtomicFetch(_)) => [0.0; 2],
            _ => [f64::from(target.gpu.latency), 0.0],
        }
    }

    /// A bulk copy, and the lanes' part of it.
    fn box_of(&mut self, base: Value, tile: Option<Value>) {
        let Some(tile) = tile else {
            return;
        };
        let func = self.costs.func;
        let elements = func.ty(tile).shape.elements() as f64;
        let all = elements * bytes(func, tile);
        self.moved(base, all);
        let stages = f64::from(self.stages.unwrap_or(2));
        self.sum.shared += if self.times > 1.0 { all * stages } else { all };
        self.issue(ACCESS);
    }

    fn exchanged(&mut self, x: Value) -> Ready {
        let each = self.each(x);
        self.issue(each * 2.0 * ACCESS);
        [MEETING; 2]
    }

    fn reduction(&mut self, sources: &[Value], axis: usize, combine: Region, by: f64) -> Ready {
        let func = self.costs.func;
        let Some(&first) = sources.first() else {
            return [0.0; 2];
        };
        let shape = func.ty(first).shape;
        let (extent, elements) = (shape.extent(axis), shape.elements());
        let combining = self.combining(combine);
        let each = self.each(first);
        let words: f64 = sources
            .iter()
            .map(|&it| (bytes(func, it) / 4.0).max(1.0))
            .sum();
        let shuffles = if extent > 1 { each / 4.0 + 5.0 } else { 0.0 };
        self.issue(by * (each * combining + shuffles * (words * 4.0 + combining)));
        let others = (elements / extent.max(1)).max(1) as f64;
        let meeting = (self.warps / others).max(1.0).log2();
        let met = if meeting > 0.0 { MEETING } else { 0.0 };
        if meeting > 0.0 {
            self.issue(by * (words * 2.0 * ACCESS + meeting * (words * 4.0 + combining)));
        }
        [by * (5.0 * SHUFFLE + met + meeting * SHUFFLE); 2]
    }

    fn sort(&mut self, op: &op::Sort) -> Ready {
        let func = self.costs.func;
        let Some(&first) = op.sources.first() else {
            return [0.0; 2];
        };
        let extent = func.ty(first).shape.extent(op.axis.index());
        let bits = f64::from(extent.max(1).ilog2());
        let steps = bits * (bits + 1.0) / 2.0;
        let each = self.each(first);
        let sources = op.sources.len() as f64;
        self.issue(steps * each * 6.0 * sources);
        [steps * SHUFFLE; 2]
    }

    fn dot(&mut self, op: &op::Dot) -> Ready {
        let func = self.costs.func;
        let (a, b) = (func.ty(op.a).shape, func.ty(op.b).shape);
        let products = a.elements() as f64 * b.extent(b.rank() - 1) as f64;
        let tensor = is_of_tensor_cores(func, op);
        let is_double = func.ty(op.accumulator).dtype() == Some(DType::F64);
        let (a_bytes, b_bytes) = (
            a.elements() as f64 * bytes(func, op.a),
            b.elements() as f64 * bytes(func, op.b),
        );
        // Each warp reads what it multiplies from shared memory.
        let rows = (a.extent(a.rank() - 2) as f64 / 64.0).max(1.0);
        let read = (a_bytes + b_bytes * rows) / f64::from(self.costs.target.gpu.bank_bytes);
        let cycles = match (tensor, is_double) {
            (true, false) => products / 4096.0,
            (true, true) => products / 128.0,
            (false, false) => products / 128.0 * 1.25,
            (false, true) => products / 64.0 * 1.25,
        };
        self.issue(cycles.max(read) * f64::from(SCHEDULERS) / self.warps);
        if !tensor {
            self.sum.shared = self.sum.shared.max(a_bytes + b_bytes);
        }
        [cycles + 64.0; 2]
    }
}
