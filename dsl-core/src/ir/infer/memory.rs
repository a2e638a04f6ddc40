//! Type rules of memory accesses.

use super::expect::Rules;
use crate::ir::prints::COUNTERS;
use crate::ir::{AtomicOp, Cache, DType, MemoryAccess, MemoryOrder, Space, Type, Value, op};

/// The greatest alignment in bytes: that of a launch's promises.
const MAX_ALIGN: i64 = 1 << 31;

impl Rules<'_> {
    /// The pointee in the shape of the offsets.
    pub(super) fn load(self, op: &op::Load) -> Result<Type, String> {
        let result = self.access(&op.access())?;
        self.loads(op.cache)?;
        match op.other {
            Some(_) if op.mask.is_none() => Err("`load` has `other` but no mask".to_string()),
            Some(other) => self
                .expect("`other`", self.ty(other), result)
                .map(|()| result),
            None => Ok(result),
        }
    }

    pub(super) fn store(self, op: &op::Store) -> Result<(), String> {
        self.stores(op.cache)?;
        self.access(&op.access()).map(|_| ())
    }

    pub(super) fn lane_store(self, op: &op::LaneStore) -> Result<(), String> {
        self.stores(op.cache)?;
        self.of_caches(op.base, op.cache)?;
        self.lane_access(&op.access(), self.ty(op.value), op.align)
    }

    /// That a load may have a hint for caches.
    pub(super) fn loads(self, cache: Option<Cache>) -> Result<(), String> {
        self.hint(cache, Cache::of_loads)
    }

    /// That a store may have a hint for caches.
    pub(super) fn stores(self, cache: Option<Cache>) -> Result<(), String> {
        self.hint(cache, Cache::of_stores)
    }

    fn hint(self, cache: Option<Cache>, has: fn(Cache) -> bool) -> Result<(), String> {
        match cache.filter(|&cache| !has(cache)) {
            Some(cache) => Err(format!("`{}` is never `{}`", self.name(), cache.word())),
            None => Ok(()),
        }
    }

    /// That memory with a hint for caches has caches.
    pub(super) fn of_caches(self, base: Value, cache: Option<Cache>) -> Result<(), String> {
        let (_, space) = self.pointer(base)?;
        if cache.is_some() && space != Space::Global {
            return Err(format!(
                "`{}` has a hint for caches, which global memory alone has",
                self.name()
            ));
        }
        Ok(())
    }

    pub(super) fn atomic_reduce(self, op: &op::AtomicReduce) -> Result<(), String> {
        let (dtype, _) = self.pointer(op.base)?;
        self.reduces(op.op)?;
        self.atomic(op.op, dtype)?;
        self.releases(op.order)?;
        self.access(&op.access()).map(|_| ())
    }

    pub(super) fn atomic_fetch(self, op: &op::AtomicFetch) -> Result<Type, String> {
        let (dtype, _) = self.pointer(op.base)?;
        self.atomic(op.op, dtype)?;
        self.ordered(op.op, op.order)?;
        let moved = self.access(&op.access())?;
        self.expected(op.op, op.expected, moved).map(|()| moved)
    }

    /// The order of an atomic that gives nothing, which can acquire nothing.
    pub(super) fn releases(self, order: Option<MemoryOrder>) -> Result<(), String> {
        match order.filter(|order| order.acquires()) {
            Some(order) => Err(format!(
                "`{}` reads nothing that it could `{}`",
                self.name(),
                order.word()
            )),
            None => Ok(()),
        }
    }

    /// The order of an atomic that gives what memory held: a load writes nothing that it could release.
    pub(super) fn ordered(self, op: AtomicOp, order: Option<MemoryOrder>) -> Result<(), String> {
        match order.filter(|order| op == AtomicOp::Load && order.releases()) {
            Some(order) => Err(format!(
                "`{}` with op `load` writes nothing that it could `{}`",
                self.name(),
                order.word()
            )),
            None => Ok(()),
        }
    }

    /// What an atomic compares memory with.
    pub(super) fn expected(
        self,
        op: AtomicOp,
        expected: Option<Value>,
        moved: Type,
    ) -> Result<(), String> {
        let Some(expected) = expected else {
            return Ok(());
        };
        if op != AtomicOp::Exchange {
            return Err(format!("`{}` with `expected` exchanges", self.name()));
        }
        self.expect("`expected`", self.ty(expected), moved)
    }

    /// That an op is one of several numbers, which commute.
    pub(super) fn reduces(self, op: AtomicOp) -> Result<(), String> {
        if op.combines() {
            return Ok(());
        }
        Err(format!(
            "`{}` combines numbers, which `{}` does not",
            self.name(),
            op.word()
        ))
    }

    /// What an access of tiles moves.
    pub(super) fn access(self, access: &MemoryAccess) -> Result<Type, String> {
        let (dtype, _) = self.pointer(access.base)?;
        let offsets = self.ty(access.offsets);
        if offsets.dtype() != Some(DType::I64) {
            return Err(format!(
                "offsets of `{}` are `{offsets}`, expected i64",
                self.name()
            ));
        }
        let moved = offsets.with_dtype(dtype);
        if let Some(value) = access.value {
            self.expect("value", self.ty(value), moved)?;
        }
        self.mask(moved, access.mask)?;
        Ok(moved)
    }

    /// What an access of a lane, which moves a value of type `moved`, asks of its operands.
    pub(super) fn lane_access(
        self,
        access: &MemoryAccess,
        moved: Type,
        align: i64,
    ) -> Result<(), String> {
        let (dtype, _) = self.pointer(access.base)?;
        let offsets = self.offsets("offset", access.offsets)?;
        self.expect("value", moved, moved.with_dtype(dtype))?;
        self.mask(offsets, access.mask)?;
        if !moved
            .shape
            .elements()
            .is_multiple_of(offsets.shape.elements())
        {
            return Err(format!(
                "`{}` cannot move `{moved}` at offsets `{offsets}`",
                self.name()
            ));
        }
        let is_power = (align as u64).is_power_of_two();
        if align < i64::from(dtype.bytes()) || align > MAX_ALIGN || !is_power {
            return Err(format!("`{align}` is no alignment for `{dtype}`"));
        }
        Ok(())
    }

    /// That an atomic op can combine memory of this type.
    pub(super) fn atomic(self, op: AtomicOp, dtype: DType) -> Result<(), String> {
        if op.admits(dtype) {
            return Ok(());
        }
        let numbers = match op {
            AtomicOp::Add => "32 and 64 bits, f16, bf16, f32 and f64",
            AtomicOp::Min | AtomicOp::Max => "32 and 64 bits, f32 and f64",
            AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => "32 and 64 bits",
            AtomicOp::Exchange | AtomicOp::Load => "16 to 64 bits, f16, bf16, f32 and f64",
        };
        Err(format!(
            "`{}` with op `{}` takes integers of {numbers}, found `{dtype}`",
            self.name(),
            op.word()
        ))
    }

    pub(super) fn lane_atomic(self, op: &op::LaneAtomic) -> Result<(), String> {
        let (dtype, space) = self.pointer(op.base)?;
        self.reduces(op.op)?;
        self.atomic(op.op, dtype)?;
        self.releases(op.order)?;
        if space != Space::Global && (op.order.is_some() || op.scope.is_some()) {
            return Err(
                "`lane_atomic` has an order or a scope, which global memory alone has".to_string(),
            );
        }
        if space == Space::Scratch {
            return Err("`lane_atomic` of scratch memory, which one lane has alone".to_string());
        }
        let offsets = self.offsets("offset", op.offset)?;
        self.expect("value", self.ty(op.value), offsets.with_dtype(dtype))?;
        self.mask(offsets, op.mask)
    }

    pub(super) fn lane_fetch(self, op: &op::LaneFetch) -> Result<Type, String> {
        let (dtype, space) = self.pointer(op.base)?;
        self.atomic(op.op, dtype)?;
        self.ordered(op.op, op.order)?;
        if space != Space::Global {
            return Err("`lane_fetch` of memory that is not global".to_string());
        }
        let offsets = self.offsets("offset", op.offset)?;
        let moved = offsets.with_dtype(dtype);
        self.expect("value", self.ty(op.value), moved)?;
        self.expected(op.op, op.expected, moved)?;
        self.mask(offsets, op.mask)?;
        Ok(moved)
    }

    pub(super) fn check_bounds(self, op: &op::CheckBounds) -> Result<Type, String> {
        self.outside([op.base, op.offset, op.element], op.mask)?;
        self.at_least("count", op.count, 1)?;
        self.at_least("site", op.site, 0)?;
        Ok(Type::BOOL)
    }

    pub(super) fn stop_outside(self, op: &op::StopOutside) -> Result<(), String> {
        self.at_least("count", op.count, 1)?;
        self.at_least("site", op.site, 0)?;
        self.outside([op.base, op.offset, op.element], op.mask)
    }

    /// The operands of a bounds check: base, offset and element, and the mask.
    fn outside(
        self,
        [base, offset, element]: [Value; 3],
        mask: Option<Value>,
    ) -> Result<(), String> {
        self.pointer(base)?;
        self.scalar_index("offset", offset)?;
        self.scalar_index("element", element)?;
        self.mask(Type::BOOL, mask)
    }

    pub(super) fn in_bounds(self, op: &op::InBounds) -> Result<Type, String> {
        self.pointer(op.base)?;
        self.at_least("count", op.count, 1)?;
        let offsets = self.offsets("offset", op.offset)?;
        Ok(offsets.with_dtype(DType::Bool))
    }

    pub(super) fn stop_index(self, op: &op::StopIndex) -> Result<(), String> {
        self.index([op.index, op.element], [op.extent, op.site])?;
        self.mask(Type::BOOL, op.mask)
    }

    /// The operands of a check of an index.
    pub(super) fn index(
        self,
        [index, element]: [Value; 2],
        [extent, site]: [i64; 2],
    ) -> Result<(), String> {
        self.expect("index", self.ty(index), Type::INDEX)?;
        self.at_least("extent", extent, 1)?;
        self.at_least("site", site, 0)?;
        self.scalar_index("element", element)
    }

    pub(super) fn assert(self, op: &op::Assert) -> Result<(), String> {
        let condition = self.ty(op.condition);
        self.expect("condition", condition, condition.with_dtype(DType::Bool))
    }

    pub(super) fn print(self, op: &op::Print) -> Result<(), String> {
        let record = Type::pointer(DType::U64, Space::Global);
        self.expect("record", self.ty(op.record), record)?;
        self.number(self.ty(op.x))?;
        self.at_least("number", op.number, 0)?;
        self.at_least("words", op.words, COUNTERS)?;
        self.mask(self.ty(op.x), op.mask)
    }

    /// The operands of a check of an assertion.
    pub(super) fn assertion(self, [failed, element]: [Value; 2], site: i64) -> Result<(), String> {
        self.expect("condition", self.ty(failed), Type::BOOL)?;
        self.at_least("site", site, 0)?;
        self.scalar_index("element", element)
    }

    pub(super) fn start_copy(self, op: &op::StartCopy) -> Result<(), String> {
        let (dtype, from) = self.pointer(op.source)?;
        let target = Type::pointer(dtype, Space::Shared);
        self.expect("target", self.ty(op.target), target)?;
        if from != Space::Global {
            return Err("`start_copy` copies from global memory".to_string());
        }
        let offsets = self.offsets("offset", op.offset)?;
        let sources = self.offsets("source offset", op.source_offset)?;
        self.expect("source offset", sources, sources.with_shape(offsets.shape))?;
        if let Some(read) = op.read {
            self.expect("read", self.ty(read), offsets.with_dtype(DType::I32))?;
        }
        let bytes = op.count.saturating_mul(i64::from(dtype.bytes()));
        if [4, 8, 16].contains(&bytes) {
            return Ok(());
        }
        Err(format!(
            "`start_copy` moves {} elements of `{dtype}`, expected 4, 8 or 16 bytes",
            op.count
        ))
    }
}
