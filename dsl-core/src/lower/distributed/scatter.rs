//! Stores with equal offsets: the highest element index wins, whatever lane holds it.
//!
//! Offsets that are linear in the index are distinct, except along axes where the step is zero; there
//! only the last element stores. Steps that only the launch knows are taken to keep rows apart. Where
//! offsets come from memory or from other arithmetic, every element looks for a higher one with its
//! offset before it stores.

use std::rc::Rc;

use super::affine::{Step, are_distinct};
use super::memory::Access;
use super::tile::Scope;
use super::{Lowering, Result, SCRATCH_BYTES};
use crate::ir::{CompareOp, DType, Op, Space, Type, Value};
use crate::layout::LinearLayout;

impl Lowering<'_> {
    /// Masks off every element of a store that a higher element with its offset overwrites.
    pub(super) fn keep_highest(
        &mut self,
        access: &mut Access,
        offsets: Value,
        mask: Option<Value>,
        layout: &Rc<LinearLayout>,
    ) -> Result<()> {
        let shape = self.block.ty(offsets).shape;
        let steps = self
            .steps_of(offsets)
            .filter(|steps| are_distinct(&shape, steps));
        let Some(steps) = steps else {
            return self.search_higher(access, layout);
        };
        let repeated: Vec<usize> = (0..shape.rank())
            .filter(|&axis| shape.extent(axis) > 1 && steps[axis] == Step::Known(0))
            .collect();
        let facts = mask.map(|mask| self.assignment.contiguity.of(mask));
        let settled = repeated.iter().all(|&axis| {
            let bits = shape.extent(axis).trailing_zeros();
            facts
                .as_ref()
                .is_none_or(|facts| facts.axis(axis).constant == bits)
        });
        if !settled {
            return self.search_higher(access, layout);
        }
        for axis in repeated {
            let mask = layout
                .dim_mask(axis)
                .map_err(|error| self.layout_error(&error))?;
            let indices = self.indices(layout, mask);
            let last = self.builder.index(shape.extent(axis) as i64 - 1);
            self.restrict(access, |lowering, register| {
                lowering
                    .builder
                    .compare(CompareOp::Eq, indices[register], last)
            });
        }
        Ok(())
    }

    /// Adds a condition for each register to the masks of an access.
    fn restrict(
        &mut self,
        access: &mut Access,
        mut condition: impl FnMut(&mut Self, usize) -> Value,
    ) {
        let count = access.offsets().len();
        let masks = access.masks_mut().clone();
        let restricted: Vec<Value> = (0..count)
            .map(|register| {
                let condition = condition(self, register);
                self.both(masks.as_ref().map(|masks| masks[register]), condition)
            })
            .collect();
        *access.masks_mut() = Some(Rc::from(restricted));
        access.split();
    }

    /// Every element looks through the offsets of the tile, in shared memory, for its own offset
    /// at a higher element that is not masked off.
    fn search_higher(&mut self, access: &mut Access, layout: &Rc<LinearLayout>) -> Result<()> {
        let count = 1_i64 << layout.tile_bits();
        if count * 9 > i64::from(SCRATCH_BYTES) * 4 {
            let message = format!("a store of {count} elements with computed offsets is too large");
            return Err(self.error(message).note("store smaller tiles"));
        }
        let start = self.begin_shared(count * 9);
        let table = self.scratch(DType::I64, start, count);
        let valid = self.scratch(DType::Bool, start + count * 8, count);
        let elements = self.indices(layout, (1_u64 << layout.tile_bits()) - 1);
        let owner = self.all_zero(layout.free_bits());
        let masks = access.masks_mut().clone();
        let always = self.builder.boolean(true);
        for (register, &element) in elements.iter().enumerate() {
            let shown = masks.as_ref().map_or(always, |masks| masks[register]);
            for (base, value, align) in [(table, access.offsets()[register], 8), (valid, shown, 1)]
            {
                let op = Op::LaneStore {
                    base,
                    offset: element,
                    value,
                    mask: owner,
                    align,
                };
                self.builder.emit(op, &[]);
            }
        }
        self.publish_shared(start, count * 9);
        let alive = vec![always; elements.len()];
        let bounds = (self.builder.index(0), self.builder.index(count));
        let types: Vec<Type> = std::iter::once(Type::INDEX)
            .chain(alive.iter().map(|_| Type::BOOL))
            .collect();
        let body = self.builder.new_region(&types);
        let outer = self.builder.enter(body);
        self.scopes.push(Scope::default());
        let parameters = self.builder.parameters(body);
        let other = parameters[0];
        let load = |base, align| Op::LaneLoad {
            base,
            offset: other,
            mask: None,
            other: None,
            align,
        };
        let offset = self.builder.declared(load(table, 8), Type::INDEX);
        let counts = self.builder.declared(load(valid, 1), Type::BOOL);
        let mut values = Vec::new();
        for (register, &element) in elements.iter().enumerate() {
            let higher = self.builder.compare(CompareOp::Gt, other, element);
            let same = self
                .builder
                .compare(CompareOp::Eq, offset, access.offsets()[register]);
            let both = self.builder.and(higher, same);
            let covered = self.builder.and(both, counts);
            let stays = self.builder.not(covered);
            values.push(self.builder.and(parameters[register + 1], stays));
        }
        self.builder.emit(Op::Yield { values }, &[]);
        self.scopes.pop();
        self.builder.enter(outer);
        let (lower, upper) = bounds;
        let op = Op::For {
            lower,
            upper,
            init: alive,
            step: 1,
            stages: 1,
            body,
        };
        let inst = self.builder.emit(op, &[]);
        let alive = self.builder.results(inst).to_vec();
        self.restrict(access, |_, register| alive[register]);
        Ok(())
    }

    /// A buffer in the scratch area of shared memory.
    pub(super) fn scratch(&mut self, dtype: DType, offset: i64, count: i64) -> Value {
        let ty = Type::pointer(dtype, Space::Shared);
        self.builder.declared(Op::Alloc { offset, count }, ty)
    }
}
