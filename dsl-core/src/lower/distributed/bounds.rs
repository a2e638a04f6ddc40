//! Bounds checks of accesses. A check comes before its access, which then needs none.
//!
//! Where offsets are linear in the index, scalars decide for the whole tile, so that all lanes branch
//! alike. Where that fails, because an element is outside or because masked ones would be, the lanes
//! look for an element that is outside and not masked off. If there is one the program ends, so that
//! nothing stays alive for what comes after; if there is none the access goes on as it is.

use std::collections::BTreeSet;

use super::point::Known;
use super::registers::{Registers, owners};
use super::tile::Scope;
use super::{Lowering, Result};
use crate::ir::MemoryAccess;
use crate::ir::{CompareOp, DType, Inst, Literal, Op, Shape, Trait, Type, Value, op};
use crate::layout::{LinearLayout, ThreadMap};
use crate::passes::indices::Span;
use crate::passes::long_sums::LONGEST_CHAIN;
use crate::passes::prefixes::counted;
use crate::target::{Bounds, LANE_BITS, WARP_LANES};

/// Scalar steps below this cannot make offsets wrap.
const STEP_LIMIT: u64 = 1 << 40;

/// The most values that one element is computed from for a check.
const MOST_VALUES: usize = 2 * LONGEST_CHAIN as usize;

/// The longest reach along an axis with a scalar step, in steps.
const MOST_STEPS: i64 = 1 << 20;

/// What a lane found to be wrong.
pub(super) struct Wrong {
    pub(super) any: Value,
    pub(super) element: Value,
    pub(super) offset: Value,
}

/// An access that scalars may show to be in bounds.
struct Shown {
    inst: Inst,
    tile: MemoryAccess,
    inside: Value,
}

impl Shown {
    /// Whether it reports whatever another access has out of bounds.
    fn reports(&self, other: &MemoryAccess) -> bool {
        let of = |tile: &MemoryAccess| (tile.base, tile.offsets, tile.mask);
        of(&self.tile) == of(other)
    }
}

impl Lowering<'_> {
    /// Before the first of some instructions, which follow each other: ends the program where it
    /// accesses an element out of bounds that is not masked off. Those after it for which scalars
    /// decide are checked with it, up to one that has to wait, so that their own places stay free;
    /// they are added to `checked`.
    pub(super) fn check(&mut self, insts: &[Inst], checked: &mut BTreeSet<Inst>) -> Result<()> {
        let first = insts[0];
        if !self.block.op(first).is_checked() || checked.contains(&first) {
            return Ok(());
        }
        let mut shown: Vec<Shown> = Vec::new();
        for &inst in insts {
            let Some(tile) = self.to_check(inst) else {
                if self.has_checks(inst) {
                    break;
                }
                continue;
            };
            let mask = tile.mask.filter(|_| inst != first);
            if !self.is_ready(tile.offsets) || mask.is_some_and(|mask| !self.is_ready(mask)) {
                break;
            }
            let Some(inside) = self.inside(&tile)? else {
                break;
            };
            checked.insert(inst);
            shown.push(Shown { inst, tile, inside });
        }
        let inside = shown.iter().map(|shown| shown.inside);
        let Some(condition) = inside.reduce(|all, inside| self.builder.and(all, inside)) else {
            return match self.to_check(first) {
                Some(tile) => {
                    self.wait_to_end();
                    self.stop_by_registers(first, &tile)
                }
                None => Ok(()),
            };
        };
        let on_true = self.nested(|_| Ok(()))?;
        let on_false = self.nested(|this| {
            this.wait_to_end();
            for (at, Shown { inst, tile, .. }) in shown.iter().enumerate() {
                if shown[..at].iter().any(|before| before.reports(tile)) {
                    continue;
                }
                if tile.mask.is_none_or(|mask| this.is_ready(mask)) {
                    this.stop_by_elements(*inst, tile)?;
                } else {
                    this.stop_by_registers(*inst, tile)?;
                }
            }
            Ok(())
        })?;
        let op = Op::If(op::If {
            condition,
            on_true,
            on_false,
        });
        self.builder.emit(op, &[]);
        Ok(())
    }

    /// Waits for products before a program may end: the assembler lets none stay under way then.
    pub(super) fn wait_to_end(&mut self) {
        if self.multiplies {
            let pending = 0;
            self.builder
                .emit(Op::WaitProducts(op::WaitProducts { pending }), &[]);
        }
    }

    /// The access of an instruction that is checked.
    fn to_check(&self, inst: Inst) -> Option<MemoryAccess> {
        let tile = self.block.op(inst).access()?;
        let argument = self.block.parameter_index(tile.base)?;
        let tiled = self.block.parameters[argument].tiled;
        let wanted = self.bounds == Bounds::Checked && !tiled;
        wanted.then_some(tile)
    }

    /// Whether an instruction checks anything where it stands.
    fn has_checks(&self, inst: Inst) -> bool {
        let mut found = matches!(self.block.op(inst), Op::Gather(_) | Op::Assert(_));
        for region in self.block.op(inst).regions() {
            self.block.walk(region, &mut |inner| {
                found |= self.block.op(inner).is_checked()
            });
        }
        found
    }

    /// Whether a value is arithmetic on positions and on scalars that are known here, and not on many.
    fn is_ready(&self, value: Value) -> bool {
        let mut pending = vec![value];
        let mut seen = BTreeSet::new();
        while let Some(value) = pending.pop() {
            if !seen.insert(value) {
                continue;
            }
            if seen.len() > MOST_VALUES {
                return false;
            }
            let scalar = self.block.ty(value).is_scalar();
            if scalar && self.is_bound(value) {
                continue;
            }
            let Some(inst) = self.definitions[value] else {
                return false;
            };
            let op = self.block.op(inst);
            if scalar || !op.is(Trait::pointwise) {
                return false;
            }
            pending.extend(op.operands());
        }
        true
    }

    /// Whether scalars show a whole tile, or its elements below a bound, to be in bounds; `None` where the offsets are not
    /// linear.
    fn inside(&mut self, tile: &MemoryAccess) -> Result<Option<Value>> {
        let (base, offsets) = (self.scalar(tile.base), tile.offsets);
        let Some(reach) = self.reach(offsets) else {
            return Ok(None);
        };
        if let Some(bound) = tile.mask.and_then(|mask| self.bound(mask))
            && let Some(inside) = self.inside_below(base, offsets, &reach, bound)?
        {
            return Ok(Some(inside));
        }
        let Some(count) = reach.count() else {
            return Ok(None);
        };
        let origin = vec![self.builder.index(0); self.block.ty(offsets).shape.rank()];
        let first = self.element_at(offsets, &origin, &mut Known::new())?;
        let low = self.builder.index(reach.low);
        let offset = self.builder.add(first, low);
        let within = |offset| {
            Op::InBounds(op::InBounds {
                base,
                offset,
                count,
            })
        };
        let mut inside = self.builder.value(within(offset));
        if reach.scalars.is_empty() {
            return Ok(Some(inside));
        }
        let limit = self
            .builder
            .filled(Literal::from_bits(DType::U64, STEP_LIMIT), Shape::SCALAR);
        let mut last = offset;
        for (step, times) in reach.scalars {
            let step = self.scalar(step);
            let unsigned = self.builder.bitcast(step, DType::U64);
            let small = self.builder.compare(CompareOp::Lt, unsigned, limit);
            inside = self.builder.and(inside, small);
            let times = self.builder.index(times);
            let far = self.builder.mul(step, times);
            last = self.builder.add(last, far);
        }
        let last = self.builder.value(within(last));
        Ok(Some(self.builder.and(inside, last)))
    }

    /// The scalar that the elements of a tile with one axis count up to, where a mask says that.
    fn bound(&mut self, mask: Value) -> Option<Value> {
        let op = |value: Value| Some(self.block.op(self.definitions[value]?));
        let Some(&Op::Compare(op::Compare {
            op: CompareOp::Lt,
            lhs,
            rhs,
        })) = op(mask)
        else {
            return None;
        };
        let elements = counted(&self.indices, lhs)?;
        let shape = self.block.ty(lhs).shape;
        if shape.extents() != [elements as u32] || self.block.ty(rhs).dtype() != Some(DType::I64) {
            return None;
        }
        let rhs = op(rhs)?;
        if let &Op::Constant(op::Constant { value }) = rhs {
            let bound = i64::try_from(value.integer()?).ok()?;
            return Some(self.builder.index(bound));
        }
        let bound = rhs.operands().into_iter().next();
        let bound = bound.filter(|&x| matches!(rhs, Op::Splat(_)) && self.is_bound(x))?;
        Some(self.scalar(bound))
    }

    /// Whether scalars show the elements of a tile with one axis that are below a bound to be in bounds: the first of
    /// them is, and the last; one element is taken where there is none.
    fn inside_below(
        &mut self,
        base: Value,
        offsets: Value,
        reach: &Span,
        bound: Value,
    ) -> Result<Option<Value>> {
        let last = i64::from(self.block.ty(offsets).shape.extents()[0]) - 1;
        let steps = reach
            .high
            .checked_div(last)
            .filter(|_| reach.scalars.is_empty());
        let Some(step) = steps.filter(|_| reach.low == 0) else {
            return Ok(None);
        };
        let origin = [self.builder.index(0)];
        let first = self.element_at(offsets, &origin, &mut Known::new())?;
        let [one, none, last, step] = [1, 0, last, step].map(|it| self.builder.index(it));
        let index = self.builder.sub(bound, one);
        let index = self.builder.minimum(index, last);
        let index = self.builder.maximum(index, none);
        let distance = self.builder.mul(index, step);
        let last = self.builder.add(first, distance);
        let count = 1;
        let [first, last] = [first, last].map(|offset| {
            self.builder.value(Op::InBounds(op::InBounds {
                base,
                offset,
                count,
            }))
        });
        Ok(Some(self.builder.and(first, last)))
    }

    /// What the offsets reach, if it takes few steps along scalars.
    fn reach(&self, offsets: Value) -> Option<Span> {
        let span = self.indices.fact(offsets).span()?;
        let fits = |&(step, times): &(Value, i64)| {
            self.block.ty(step) == Type::INDEX && (0..=MOST_STEPS).contains(&times)
        };
        span.scalars.iter().all(fits).then_some(span)
    }

    /// Each lane looks at some elements of the tile, one after the other, computing their offsets and
    /// masks anew.
    fn stop_by_elements(&mut self, inst: Inst, tile: &MemoryAccess) -> Result<()> {
        let base = self.scalar(tile.base);
        let elements = self.block.ty(tile.offsets).shape.elements() as i32;
        let threads = (WARP_LANES << self.warp_bits) as i32;
        let own = ThreadMap {
            lane: (0..LANE_BITS).map(|bit| 1 << bit).collect(),
            warp: (LANE_BITS..LANE_BITS + self.warp_bits)
                .map(|bit| 1 << bit)
                .collect(),
        };
        let first = self.thread_value(&own);
        let none = self.builder.index(0);
        let carried = [Type::scalar(DType::I32), Type::INDEX];
        let before = self.builder.new_region(&carried);
        let outer = self.builder.enter(before);
        self.scopes.push(Scope::default());
        let element = self.builder.parameters(before)[0];
        let (offset, outside) = self.element_is_outside(base, tile, element)?;
        let end = self.builder.int32(elements);
        let more = self.builder.lt(element, end);
        let fine = self.builder.not(outside);
        let on = self.builder.and(more, fine);
        let values = vec![on, element, offset];
        self.builder.emit(Op::Yield(op::Yield { values }), &[]);
        self.scopes.pop();
        self.builder.enter(outer);
        let body = self.builder.region_with(&carried, |builder, values| {
            let threads = builder.int32(threads);
            vec![builder.add(values[0], threads), values[1]]
        });
        let init = vec![first, none];
        let inst_of_loop = self
            .builder
            .emit(Op::While(op::While { init, before, body }), &[]);
        let [element, offset] = [0, 1].map(|at| self.builder.results(inst_of_loop)[at]);
        let end = self.builder.int32(elements);
        let wrong = self.builder.lt(element, end);
        self.stop(inst, tile, (element, offset, 1), wrong);
        Ok(())
    }

    /// The offset of an element, and whether it is out of bounds and not masked off.
    fn element_is_outside(
        &mut self,
        base: Value,
        tile: &MemoryAccess,
        element: Value,
    ) -> Result<(Value, Value)> {
        let shape = self.block.ty(tile.offsets).shape;
        let element = self.builder.cast(element, DType::I64);
        let coordinates = self.split_index(&shape, element);
        let mut known = Known::new();
        let offset = self.element_at(tile.offsets, &coordinates, &mut known)?;
        let inside = self.builder.value(Op::InBounds(op::InBounds {
            base,
            offset,
            count: 1,
        }));
        let mut outside = self.builder.not(inside);
        if let Some(mask) = tile.mask {
            let mask = self.element_at(mask, &coordinates, &mut known)?;
            outside = self.builder.and(outside, mask);
        }
        Ok((offset, outside))
    }

    /// Ends the program where `wrong` holds, with the error of `count` elements from one on.
    fn stop(
        &mut self,
        inst: Inst,
        tile: &MemoryAccess,
        (element, offset, count): (Value, Value, i64),
        wrong: Value,
    ) {
        let stop = Op::StopOutside(op::StopOutside {
            base: self.scalar(tile.base),
            offset,
            element,
            mask: Some(wrong),
            count,
            site: self.sites.get(&inst).copied().unwrap_or_default().into(),
        });
        let here = self.builder.loc().clone();
        self.builder.set_loc(self.block.inst(inst).loc.clone());
        self.builder.emit(stop, &[]);
        self.builder.set_loc(here);
    }

    /// Each lane looks at the elements that it accesses.
    fn stop_by_registers(&mut self, inst: Inst, tile: &MemoryAccess) -> Result<()> {
        let layout = self.layout(tile.offsets);
        let mut access = self.access(tile, &layout)?;
        access.divide_ragged();
        let (base, count) = (access.base(), access.vectors()[0].len() as i64);
        let starts = access.starts();
        let inside = Op::InBounds(op::InBounds {
            base,
            offset: self.pick(access.offsets(), &starts),
            count,
        });
        let inside = self.builder.value(inside);
        let outside = self.builder.not(inside);
        let mask = access.masks().map(|masks| self.pick(masks, &starts));
        let outside = self.both(mask, outside);
        let wrong = self.least_wrong(access.offsets(), &layout, (&starts, outside));
        self.stop(inst, tile, (wrong.element, wrong.offset, count), wrong.any);
        Ok(())
    }

    /// Ends the program where an element does not hold, in checked launches.
    pub(super) fn assert(&mut self, inst: Inst, op: &op::Assert) {
        if self.bounds != Bounds::Checked {
            return;
        }
        self.wait_to_end();
        let (layout, holds) = (self.layout(op.condition), self.get(op.condition));
        let registers = owners(&layout);
        let own = self.pick(&holds, &registers);
        let failed = self.builder.not(own);
        let offsets = self.map(&[&holds], |builder, holds| {
            builder.cast(holds[0], DType::I64)
        });
        let least = self.least_wrong(&offsets, &layout, (&registers, failed));
        let stop = Op::StopAssertion(op::StopAssertion {
            failed: least.any,
            element: least.element,
            message: op.message.clone(),
            site: self.sites.get(&inst).copied().unwrap_or_default().into(),
        });
        self.builder.emit(stop, &[]);
    }

    /// Of the registers that fail a test, the one of the least element. The test is of some registers,
    /// and says for each whether it fails.
    pub(super) fn least_wrong(
        &mut self,
        offsets: &Registers,
        layout: &LinearLayout,
        (registers, wrong): (&[u32], Value),
    ) -> Wrong {
        let any = self.any(wrong);
        let on_true = self.builder.new_region(&[]);
        let outer = self.builder.enter(on_true);
        self.scopes.push(Scope::default());
        let elements = self.indices(layout, (1_u64 << layout.tile_bits()) - 1);
        let elements = self.pick(&elements, registers);
        let none = i64::MAX.cast_unsigned();
        let none = self.builder.bits_like(elements, DType::I64, none);
        let elements = self.builder.select(wrong, elements, none);
        let mut least = vec![elements, self.pick(offsets, registers)];
        while !self.builder.ty(least[0]).is_scalar() {
            let halves: Vec<[Value; 2]> = least.iter().map(|&it| self.halves_of(it)).collect();
            let upper = self.builder.lt(halves[0][1], halves[0][0]);
            let pairs = halves.into_iter();
            least = pairs
                .map(|[own, other]| self.builder.select(upper, other, own))
                .collect();
        }
        self.builder
            .emit(Op::Yield(op::Yield { values: least }), &[]);
        self.scopes.pop();
        let on_false = self.builder.new_region(&[]);
        self.builder.enter(on_false);
        let values = vec![self.builder.index(0); 2];
        self.builder.emit(Op::Yield(op::Yield { values }), &[]);
        self.builder.enter(outer);
        let op = Op::If(op::If {
            condition: any,
            on_true,
            on_false,
        });
        let inst = self.builder.emit(op, &[Type::INDEX; 2]);
        let [element, offset] = [0, 1].map(|at| self.builder.results(inst)[at]);
        Wrong {
            any,
            element,
            offset,
        }
    }
}
