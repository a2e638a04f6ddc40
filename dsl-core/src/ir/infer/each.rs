//! The rule of each op; those of the lane stage's own ops on numbers, with which most new ops stand.

use super::expect::Rules;
use crate::ir::op::{Control, ElementOp, OrderOp, ShapeOp, WarpOp, WorkerOp};
use crate::ir::{DType, Op, Shape, Type, op};

/// The one list of all ops outside of the table: each names its rule.
pub(super) fn types(rules: Rules<'_>, declared: &[Type]) -> Result<Vec<Type>, String> {
    let stated = |check: &dyn Fn(Type) -> Result<(), String>| rules.stated(declared, check);
    match rules.op {
        Op::Unary(_) | Op::Binary(_) | Op::Ternary(_) => one(rules.family()),
        Op::Raw(_) | Op::Function(_) | Op::Approximate(_) => one(rules.family()),
        Op::Compare(_) => one(rules.family().map(|x| x.with_dtype(DType::Bool))),
        Op::Select(it) => one(rules.select(it)),
        Op::InlinePtx(it) => one(rules.inline_ptx(it)),
        Op::Constant(it) => stated(&|to| rules.expect("result", to, to.with_dtype(it.value.dtype))),
        Op::Cast(it) => stated(&|to| rules.cast(it, to)),
        Op::RawCast(it) => stated(&|to| rules.raw_cast(it, to)),
        Op::Bitcast(it) => stated(&|to| rules.bitcast(it, to)),
        Op::Splat(it) => stated(&|to| rules.splat(it, to)),
        Op::ExpandDims(_) | Op::Reshape(_) | Op::View(_) | Op::Flip(_) => rules.shape(declared),
        Op::Broadcast(_) | Op::Transpose(_) => rules.shape(declared),
        Op::Slice(_) | Op::Split(_) | Op::Convert(_) => rules.shape(declared),
        Op::Buffer(_) | Op::CopyLanes(_) | Op::CopyBox(_) | Op::WaitBox(_) => rules.slots(declared),
        Op::ReleaseSlot(_) | Op::CopySlot(_) | Op::WaitSlots(_) => rules.slots(declared),
        Op::SlotLoad(_) | Op::SlotStore(_) | Op::DotSlots(_) => rules.slots(declared),
        Op::CopyRow(_) | Op::WaitRow(_) | Op::RowLoad(_) => rules.slots(declared),
        Op::WaitWritten(_) | Op::CopyRun(_) => rules.slots(declared),
        Op::LoadBox(it) => stated(&|to| rules.load_box(it, to)),
        Op::StoreBox(it) => none(rules.store_box(it)),
        Op::LaneLoad(it) => stated(&|to| rules.lane_load(it, to)),
        Op::Alloc(it) => stated(&|to| rules.alloc(it, to)),
        Op::Join(it) => one(rules.join(it)),
        Op::Arange(it) => one(rules.arange(it)),
        Op::ProgramId(_) | Op::NumPrograms(_) => one(rules.grid()),
        Op::Load(it) => one(rules.load(it)),
        Op::Dot(_) | Op::DotPromoted(_) => one(rules.products()),
        Op::Histogram(it) => one(rules.histogram(it)),
        Op::Gather(it) => one(rules.gather(it)),
        Op::Store(it) => none(rules.store(it)),
        Op::AtomicReduce(_) | Op::AtomicFetch(_) => rules.atomics(),
        Op::LaneAtomic(_) | Op::LaneFetch(_) => rules.atomics(),
        Op::Assert(_) | Op::Print(_) => rules.debugging(),
        Op::Map(_) | Op::Reduce(_) | Op::Scan(_) => rules.by_region(),
        Op::Tensor(_) | Op::TileLoad(_) | Op::TileStore(_) => rules.of_tensor(declared),
        Op::TileAtomic(_) | Op::TileFetch(_) => rules.of_tensor(declared),
        Op::Accumulator(_) | Op::Accumulate(_) => rules.of_accumulator(declared),
        Op::Total(_) | Op::Prefixes(_) => rules.of_accumulator(declared),
        Op::Sort(it) => rules.sort(it),
        Op::For(_) | Op::While(_) | Op::If(_) => rules.flow(),
        Op::Yield(_) => Ok(Vec::new()),
        Op::Barrier(_) | Op::GroupCopies(_) | Op::ProxyFence(_) | Op::Pend(_) => ordered(rules),
        Op::WaitCopies(_) | Op::WaitProducts(_) | Op::Settle(_) => ordered(rules),
        Op::LaneStore(it) => none(rules.lane_store(it)),
        Op::InBounds(it) => one(rules.in_bounds(it)),
        Op::CheckBounds(_) | Op::CheckIndex(_) | Op::CheckAssertion(_) => rules.of_workers(),
        Op::LaneId(_) | Op::WarpId(_) | Op::Places(_) | Op::Mma(_) => rules.of_warps(declared),
        Op::GroupMma(_) | Op::StartCopy(_) => rules.of_warps(declared),
        Op::ShuffleXor(_) | Op::ShuffleIndex(_) | Op::WarpReduce(_) => rules.of_warps(declared),
        Op::StopOutside(_) | Op::StopIndex(_) | Op::StopAssertion(_) => rules.of_warps(declared),
        Op::MbarrierExpect(_) | Op::MbarrierArrive(_) | Op::MbarrierWait(_) => rules.warps(),
        Op::MbarrierInit(_) | Op::NamedSync(_) | Op::NamedArrive(_) | Op::Roles(_) => rules.warps(),
        Op::CopyIn(_) | Op::CopyOut(_) | Op::TensorMap(_) => rules.warps(),
        Op::CopySpan(_) | Op::WaitCopiesRead(_) | Op::WaitCopiesOut(_) => rules.warps(),
        Op::Extract(_) | Op::Vector(_) | Op::ShuffleVector(_) => one(rules.of_vectors()),
    }
}

fn ordered(rules: Rules<'_>) -> Result<Vec<Type>, String> {
    match rules
        .op
        .order()
        .expect("broken invariant: the op is one of order")
    {
        OrderOp::Barrier(_) | OrderOp::GroupCopies(_) | OrderOp::ProxyFence(_) => Ok(Vec::new()),
        OrderOp::WaitCopies(it) => none(rules.wait_copies(it.pending)),
        OrderOp::WaitProducts(it) => none(rules.wait_products(it.pending)),
        OrderOp::Pend(it) => one(rules.pend(it.x)),
        OrderOp::Settle(it) => one(rules.settle(it.x, it.pending)),
    }
}

fn one(ty: Result<Type, String>) -> Result<Vec<Type>, String> {
    ty.map(|ty| vec![ty])
}

fn none(checked: Result<(), String>) -> Result<Vec<Type>, String> {
    checked.map(|()| Vec::new())
}

impl Rules<'_> {
    fn atomics(self) -> Result<Vec<Type>, String> {
        if let Op::AtomicReduce(op) = self.op {
            return none(self.atomic_reduce(op));
        }
        if let Op::LaneAtomic(op) = self.op {
            return none(self.lane_atomic(op));
        }
        if let Op::AtomicFetch(op) = self.op {
            return one(self.atomic_fetch(op));
        }
        if let Op::LaneFetch(op) = self.op {
            return one(self.lane_fetch(op));
        }
        unreachable!("broken invariant: the op is an atomic")
    }

    fn products(self) -> Result<Type, String> {
        if let Op::Dot(op) = self.op {
            return self.dot(op);
        }
        if let Op::DotPromoted(op) = self.op {
            return self.dot_promoted(op);
        }
        unreachable!("broken invariant: the op is a product of matrices")
    }

    fn of_vectors(self) -> Result<Type, String> {
        if let Op::Extract(op) = self.op {
            return self.extract(op);
        }
        if let Op::Vector(op) = self.op {
            return self.vector(op);
        }
        if let Op::ShuffleVector(op) = self.op {
            return self.shuffle_vector(op);
        }
        unreachable!("broken invariant: the op is one of elements of vectors")
    }

    fn debugging(self) -> Result<Vec<Type>, String> {
        if let Op::Print(op) = self.op {
            return none(self.print(op));
        }
        if let Op::Assert(op) = self.op {
            return none(self.assert(op));
        }
        unreachable!("broken invariant: the op is for debugging")
    }

    fn by_region(self) -> Result<Vec<Type>, String> {
        let op = self.op.element();
        match op.expect("broken invariant: the op is one of elements by a region") {
            ElementOp::Map(op) => self.map(op),
            ElementOp::Reduce(op) => self.reduce(op),
            ElementOp::Scan(op) => self.scan(op),
        }
    }

    fn of_warps(self, declared: &[Type]) -> Result<Vec<Type>, String> {
        match self
            .op
            .warp()
            .expect("broken invariant: the op is one of warps")
        {
            WarpOp::LaneId(_) | WarpOp::WarpId(_) => Ok(vec![Type::scalar(DType::I32)]),
            WarpOp::Places(op) => self.stated(declared, &|to| self.places(op, to)),
            WarpOp::ShuffleXor(op) => one(self.shuffle_xor(op)),
            WarpOp::ShuffleIndex(op) => one(self.shuffle_index(op)),
            WarpOp::WarpReduce(op) => one(self.warp_reduce(op)),
            WarpOp::Mma(op) => one(self.mma(op)),
            WarpOp::GroupMma(op) => one(self.group_mma(op)),
            WarpOp::StopOutside(op) => none(self.stop_outside(op)),
            WarpOp::StopIndex(op) => none(self.stop_index(op)),
            WarpOp::StopAssertion(op) => none(self.assertion([op.failed, op.element], op.site)),
            WarpOp::StartCopy(op) => none(self.start_copy(op)),
            WarpOp::OrderOp(_) => Ok(Vec::new()),
        }
    }

    fn flow(self) -> Result<Vec<Type>, String> {
        let op = self.op.control();
        match op.expect("broken invariant: the op is control flow") {
            Control::For(op) => self.counted_loop(op),
            Control::While(op) => self.while_loop(op),
            Control::If(op) => self.branch(op),
        }
    }

    fn of_workers(self) -> Result<Vec<Type>, String> {
        let op = self.op.worker();
        match op.expect("broken invariant: the op is one of workers") {
            WorkerOp::CheckBounds(op) => one(self.check_bounds(op)),
            WorkerOp::CheckIndex(op) => {
                none(self.index([op.index, op.element], [op.extent, op.site]))
            }
            WorkerOp::CheckAssertion(op) => none(self.assertion([op.failed, op.element], op.site)),
        }
    }

    fn shape(self, declared: &[Type]) -> Result<Vec<Type>, String> {
        let op = self.op.shape();
        let ty = match op.expect("broken invariant: the op is a shape op") {
            ShapeOp::Broadcast(it) => return self.stated(declared, &|to| self.broadcast(it, to)),
            ShapeOp::Reshape(it) => return self.stated(declared, &|to| self.reshape(it, to)),
            ShapeOp::View(it) => return self.stated(declared, &|to| self.view(it, to)),
            ShapeOp::ExpandDims(it) => self.expand_dims(it),
            ShapeOp::Transpose(it) => self.transpose(it),
            ShapeOp::Flip(it) => self.flip(it),
            ShapeOp::Slice(it) => self.slice(it),
            ShapeOp::Split(it) => self.split(it),
            ShapeOp::Convert(it) => self.convert(it),
        };
        ty.map(|ty| vec![ty])
    }

    fn warp_reduce(self, op: &op::WarpReduce) -> Result<Type, String> {
        self.reduces(op.op)?;
        let admitted = [DType::I32, DType::U32, DType::Bool];
        self.one_of(op.x, &admitted[..2 + usize::from(op.op.votes())])
    }

    pub(super) fn shuffle_xor(self, op: &op::ShuffleXor) -> Result<Type, String> {
        let lane_mask = op.lane_mask;
        if (1..32).contains(&lane_mask) {
            Ok(self.ty(op.x))
        } else {
            Err(format!(
                "`shuffle_xor` lane mask `{lane_mask}` is not in 1..32"
            ))
        }
    }

    pub(super) fn shuffle_index(self, op: &op::ShuffleIndex) -> Result<Type, String> {
        let lane = Type::scalar(DType::I32);
        self.expect("source lane", self.ty(op.source_lane), lane)?;
        Ok(self.ty(op.x))
    }

    /// One more axis, the last.
    pub(super) fn join(self, op: &op::Join) -> Result<Type, String> {
        let a = self.ty(op.a);
        self.number(a)?;
        self.expect("the second tile", self.ty(op.b), a)?;
        let dims = [a.shape.dims(), vec![2]].concat();
        Ok(a.with_shape(Shape::new(&dims)?))
    }

    /// The last axis goes.
    pub(super) fn split(self, op: &op::Split) -> Result<Type, String> {
        let (x, part) = (self.ty(op.x), op.part);
        if x.shape.extents().last() != Some(&2) || !(0..2).contains(&part) {
            return Err(format!(
                "`split` cannot take part {part} of the last axis of `{x}`"
            ));
        }
        Ok(x.with_shape(x.shape.without(x.shape.rank() - 1)))
    }

    /// The operand's type.
    pub(super) fn flip(self, op: &op::Flip) -> Result<Type, String> {
        let (x, axis) = (self.ty(op.x), op.axis);
        if axis.index() < x.shape.rank() {
            return Ok(x);
        }
        Err(format!("`flip` cannot turn axis {} of `{x}` round", axis.0))
    }

    /// The operand's type.
    pub(super) fn convert(self, op: &op::Convert) -> Result<Type, String> {
        let x = self.ty(op.x);
        self.number(x)?;
        match x.shape.rank() {
            0 => Err(format!("`convert` takes a tile, found `{x}`")),
            _ => Ok(x),
        }
    }

    /// An aligned part of an axis.
    pub(super) fn slice(self, op: &op::Slice) -> Result<Type, String> {
        let op::Slice {
            axis, start, count, ..
        } = *op;
        let x = self.ty(op.x);
        let mut dims = x.shape.dims();
        let part = usize::try_from(count).unwrap_or(0);
        let extent = dims.get_mut(axis.index()).filter(|extent| {
            let last = **extent as i64 - count;
            part.is_power_of_two() && (0..=last).contains(&start) && start % count == 0
        });
        let Some(extent) = extent else {
            let axis = axis.0;
            return Err(format!(
                "`slice` cannot take {count} elements from {start} on along axis {axis} of `{x}`"
            ));
        };
        *extent = part;
        Ok(x.with_shape(Shape::new(&dims)?))
    }

    /// The element of a vector.
    pub(super) fn extract(self, op: &op::Extract) -> Result<Type, String> {
        let (vector, index) = (self.ty(op.vector), op.index);
        let shape = vector.shape;
        if shape.rank() != 1 || !(0..shape.elements() as i64).contains(&index) {
            return Err(format!("`extract` cannot take element {index} of {vector}"));
        }
        Ok(vector.with_shape(Shape::SCALAR))
    }

    /// A vector of the elements.
    pub(super) fn vector(self, op: &op::Vector) -> Result<Type, String> {
        let elements = self.types(&op.elements);
        let Some(&first) = elements.first() else {
            return Err("`vector` needs elements".to_string());
        };
        self.number(first)?;
        for &element in &elements {
            self.expect("an element", element, first)?;
        }
        Ok(first.with_shape(Shape::new(&[elements.len()])?))
    }

    /// As many elements as indices.
    pub(super) fn shuffle_vector(self, op: &op::ShuffleVector) -> Result<Type, String> {
        let op::ShuffleVector { a, b, indices } = op;
        let a = self.ty(*a);
        self.expect("the second vector", self.ty(*b), a)?;
        let lanes = 2 * a.shape.elements() as u32;
        match indices.iter().find(|&&index| index >= lanes) {
            Some(index) => Err(format!(
                "`shuffle_vector` index {index} is not below {lanes}"
            )),
            None => Ok(a.with_shape(Shape::new(&[indices.len()])?)),
        }
    }
}
