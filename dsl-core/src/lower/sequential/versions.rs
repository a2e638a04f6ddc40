//! Loop nests in two versions: for programs in which masks hold everywhere, as scalars show, and for the rest. Whatever a
//! nest keeps in memory is read by one and the same code.

use std::collections::BTreeSet;

use super::index::{Coordinate, Index, Scalar};
use super::lowerer::{Binding, Inline, Lowerer};
use super::pull::scalar_index;
use crate::ir::{BinaryOp, DType, Inst, Literal, Op, Value, op};
use crate::passes::indices::Indices;
use crate::target::Bounds;

impl<'a> Lowerer<'a> {
    /// The scalar with which the mask that an instruction makes is true everywhere. Where the scalar is false, the mask may still be true everywhere:
    /// authors write such masks as well, of scalars that say nothing of the other operand.
    pub(super) fn holds_with(&self, inst: Inst) -> Option<Value> {
        let Op::Binary(op::Binary { op, lhs, .. }) = *self.source.op(inst) else {
            return None;
        };
        let Binding::Inline(_, Inline::Splat(scalar)) = *self.bindings.get(&lhs)? else {
            return None;
        };
        let is_mask = op == BinaryOp::Or && self.dtype(scalar) == DType::Bool;
        is_mask.then_some(scalar)
    }

    /// Masks that these values are computed with and of which there is one version so far, and the loads.
    fn reached(&self, values: &[Value]) -> (Vec<Value>, Vec<Inst>) {
        let (mut pending, mut seen) = (values.to_vec(), BTreeSet::new());
        let (mut masks, mut loads) = (Vec::new(), Vec::new());
        while let Some(value) = pending.pop() {
            if !seen.insert(value) {
                continue;
            }
            if self.masks.contains_key(&value) {
                masks.push(value);
            } else if let Some(Binding::Inline(inst, inline)) = self.bindings.get(&value) {
                loads.extend(matches!(inline, Inline::Load(_)).then_some(*inst));
                self.source
                    .op(*inst)
                    .visit_operands(&mut |operand| pending.push(operand));
            }
        }
        (masks, loads)
    }

    /// Whether values are computed with masks of which there may be two versions.
    pub(super) fn are_masked(&self, values: &[Value]) -> bool {
        !self.reached(values).0.is_empty()
    }

    /// Whether accesses of an argument are checked.
    pub(super) fn is_checked(&self, base: Value) -> bool {
        self.bounds == Bounds::Checked && !self.source.is_tiled(base)
    }

    /// Whether a whole access lies in its array, as one scalar, where its offsets are a range.
    fn is_inside(&mut self, inst: Inst) -> Option<Value> {
        let access = self.source.op(inst).access()?;
        let checked = self.is_checked(access.base) && self.dtype(access.offsets) == DType::I64;
        let facts = checked.then(|| self.indices.get_or_init(|| Indices::of(self.source)))?;
        let span = facts.fact(access.offsets).span()?;
        let count = span.count().filter(|_| span.scalars.is_empty())?;
        let first = Coordinate {
            base: Scalar::Known(0),
            lanes: vec![0],
        };
        let first = Index {
            coordinates: vec![first; self.shape(access.offsets).rank()],
            lanes: 1,
        };
        let first = self.pull_scalar(access.offsets, &first);
        let least = self.add(first, Scalar::Known(span.low));
        let inside = Op::InBounds(op::InBounds {
            base: self.pointers[&access.base],
            offset: self.value(least),
            count,
        });
        Some(self.builder.value(inside))
    }

    /// Runs `emit`, which computes with `values` and may make an access, for where their masks hold everywhere and
    /// accesses of ranges are in bounds, and again for where they may not; it is told whether masks are left. It
    /// returns the numbers that it makes.
    pub(super) fn in_versions(
        &mut self,
        (values, access): (&[Value], Option<Inst>),
        emit: &mut dyn FnMut(&mut Self, bool) -> Vec<Value>,
    ) -> Vec<Value> {
        let (masks, loads) = self.reached(values);
        if masks.is_empty() {
            return emit(self, false);
        }
        let stated: Vec<(Value, Value)> = masks
            .iter()
            .filter_map(|mask| self.masks.remove_entry(mask))
            .collect();
        let scalars: BTreeSet<Value> = stated.iter().map(|&(_, scalar)| scalar).collect();
        let mut tests = Vec::new();
        for scalar in scalars {
            let holds = self.pull_scalar(scalar, &scalar_index());
            tests.push(self.value(holds));
        }
        let mut inside = Vec::new();
        for access in loads.into_iter().chain(access) {
            if let Some(test) = self.is_inside(access) {
                tests.push(test);
                inside.push(access);
            }
        }
        let tests = tests.into_iter();
        let condition = tests.reduce(|all, test| self.builder.and(all, test));
        let condition = condition.expect("broken invariant: a stated mask has a scalar");
        let before = self.bound(&masks);
        let always = before.iter().map(|binding| match binding {
            Binding::Inline(inst, _) => {
                let always = Literal::from_bits(DType::Bool, 1);
                Binding::Inline(*inst, Inline::Constant(always))
            }
            Binding::Scalar(_) | Binding::Buffer(_) => binding.clone(),
        });
        let always: Vec<Binding<'a>> = always.collect();
        let made = self.either(condition, &mut |this, holds| {
            this.bind(&masks, if holds { &always } else { &before });
            let unchecked = inside.iter().filter(|_| holds);
            this.unchecked.extend(unchecked);
            let made = emit(this, !holds);
            this.unchecked.retain(|access| !inside.contains(access));
            made
        });
        self.bind(&masks, &before);
        self.masks.extend(stated);
        made
    }

    fn bound(&self, values: &[Value]) -> Vec<Binding<'a>> {
        let bindings = values.iter().map(|value| self.bindings[value].clone());
        bindings.collect()
    }

    fn bind(&mut self, values: &[Value], to: &[Binding<'a>]) {
        self.bindings
            .extend(values.iter().copied().zip(to.iter().cloned()));
    }

    /// Runs `emit` with tiles that masks cut in scratch memory, so that its code is as short as without masks.
    pub(super) fn with_kept(
        &mut self,
        tiles: &[Value],
        emit: &mut dyn FnMut(&mut Self) -> Vec<Value>,
    ) -> Vec<Value> {
        let is_cut = |tile: &&Value| matches!(self.bindings[tile], Binding::Inline(..));
        let tiles: Vec<Value> = tiles.iter().filter(is_cut).copied().collect();
        let before = self.bound(&tiles);
        for &tile in &tiles {
            let buffer = self.keep(tile);
            self.bindings.insert(tile, Binding::Buffer(buffer));
        }
        let made = emit(self);
        self.bind(&tiles, &before);
        made
    }

    /// Whether a mask is known to hold everywhere.
    pub(super) fn holds_always(&self, mask: Value) -> bool {
        match self.bindings.get(&mask) {
            Some(Binding::Inline(_, Inline::Constant(literal))) => literal.bits != 0,
            Some(Binding::Inline(_, Inline::Shape(op))) => self.holds_always(op.x()),
            Some(Binding::Inline(inst, Inline::Computed)) => {
                let Op::Binary(op::Binary { op, lhs, rhs }) = *self.source.op(*inst) else {
                    return false;
                };
                op == BinaryOp::And && self.holds_always(lhs) && self.holds_always(rhs)
            }
            Some(Binding::Inline(..) | Binding::Scalar(_) | Binding::Buffer(_)) | None => false,
        }
    }
}
