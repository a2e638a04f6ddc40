//! Bounds checks of accesses. A check comes before its access, which then needs none.
//!
//! Where offsets are linear in the index, scalars decide for the whole tile, so that all lanes branch
//! alike. Where that fails, because an element is outside or because masked ones would be, the lanes
//! look for an element that is outside and not masked off. If there is one the program ends, so that
//! nothing stays alive for what comes after; if there is none the access goes on as it is.

use std::collections::BTreeSet;

use super::point::Known;
use super::registers::{Registers, owners};
use super::search::Due;
use super::tile::Scope;
use super::{Lowering, Result};
use crate::ir::MemoryAccess;
use crate::ir::{CompareOp, DType, Inst, Literal, Op, Shape, Trait, Type, Value, op};
use crate::layout::LinearLayout;
use crate::passes::indices::Span;
use crate::passes::long_sums::LONGEST_CHAIN;
use crate::target::Bounds;

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

impl Lowering<'_> {
    /// Before the first of some instructions, which follow each other: ends the program where it
    /// accesses an element out of bounds that is not masked off. Those after it for which scalars
    /// decide are checked with it, up to one that has to wait, so that their own places stay free.
    pub(super) fn check(&mut self, insts: &[Inst]) -> Result<()> {
        let first = insts[0];
        let op = self.block.op(first);
        let due = self.block.may_end_at(op) || matches!(op, Op::If(_)) && self.has_checks(first);
        if !due || self.checked.contains(&first) {
            return Ok(());
        }
        let mut shown: Vec<Due> = Vec::new();
        let mut condition = None;
        for due in self.due(insts) {
            let tile = &due.tile;
            let mask = tile.mask.filter(|_| due.insts != [first]);
            let mut scalars = due.whole.iter();
            if !self.is_ready(tile.offsets)
                || mask.is_some_and(|mask| !self.is_ready(mask))
                || !scalars.all(|&whole| self.is_bound(whole))
            {
                break;
            }
            let Some(inside) = self.inside(&due)? else {
                break;
            };
            self.checked.extend(&due.insts);
            condition = Some(match condition {
                Some(all) => self.builder.and(all, inside),
                None => inside,
            });
            shown.push(due);
        }
        let Some(condition) = condition else {
            return match self.to_check(first) {
                Some(tile) => {
                    self.wait_to_end();
                    self.stop_by_registers(first, &tile)
                }
                None => Ok(()),
            };
        };
        self.unless(condition, |this| {
            if shown.iter().all(|due| due.whole.is_none()) {
                return this.search(&shown);
            }
            match this.all_at_edge(&shown)? {
                Some(condition) => this.unless(condition, |this| this.search(&shown)),
                None => this.search(&shown),
            }
        })
    }

    /// Does something where a condition does not hold.
    fn unless(
        &mut self,
        condition: Value,
        fill: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let on_true = self.nested(|_| Ok(()))?;
        let on_false = self.nested(fill)?;
        let op = Op::If(op::If {
            condition,
            on_true,
            on_false,
        });
        self.builder.emit(op, &[]);
        Ok(())
    }

    /// Whether scalars show all these accesses of a program at an edge to be in bounds.
    fn all_at_edge(&mut self, shown: &[Due]) -> Result<Option<Value>> {
        let mut all = None;
        for due in shown {
            let Some(inside) = self.inside_at_edge(due)? else {
                return Ok(None);
            };
            all = Some(match all {
                Some(all) => self.builder.and(all, inside),
                None => inside,
            });
        }
        Ok(all)
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
    pub(super) fn to_check(&self, inst: Inst) -> Option<MemoryAccess> {
        let tile = self.block.op(inst).access()?;
        let is_argument = self.block.parameter_index(tile.base).is_some();
        let due = is_argument && !self.block.is_tiled(tile.base);
        (due && self.bounds == Bounds::Checked).then_some(tile)
    }

    /// Whether an instruction checks anything where it stands.
    pub(super) fn has_checks(&self, inst: Inst) -> bool {
        let mut found = matches!(self.block.op(inst), Op::Gather(_) | Op::Assert(_));
        for region in self.block.op(inst).regions() {
            self.block.walk(region, &mut |inner| {
                found |= self.block.may_end_at(self.block.op(inner));
            });
        }
        found
    }

    /// Whether a value is arithmetic on positions and on scalars that are known here, and not on many.
    pub(super) fn is_ready(&self, value: Value) -> bool {
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
    fn inside(&mut self, due: &Due) -> Result<Option<Value>> {
        let tile = &due.tile;
        let (base, offsets) = (self.scalar(tile.base), tile.offsets);
        let Some(reach) = self.reach(offsets) else {
            return Ok(None);
        };
        if due.whole.is_none()
            && let Some(inside) = self.inside_below(tile)?
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
        let mut last = offset;
        for (step, times) in reach.scalars {
            let step = self.scalar(step);
            let small = self.is_short(step);
            inside = self.builder.and(inside, small);
            let times = self.builder.index(times);
            let far = self.builder.mul(step, times);
            last = self.builder.add(last, far);
        }
        let last = self.builder.value(within(last));
        Ok(Some(self.builder.and(inside, last)))
    }

    /// Whether a step is none that could make offsets wrap.
    pub(super) fn is_short(&mut self, step: Value) -> Value {
        let limit = Literal::from_bits(DType::U64, STEP_LIMIT);
        let limit = self.builder.filled(limit, Shape::SCALAR);
        let unsigned = self.builder.bitcast(step, DType::U64);
        self.builder.compare(CompareOp::Lt, unsigned, limit)
    }

    /// Whether scalars show the elements that a program at an edge accesses to be in bounds, where they do not for whole
    /// tiles; the elements that `inside` tells for the others.
    fn inside_at_edge(&mut self, due: &Due) -> Result<Option<Value>> {
        let Some(whole) = due.whole else {
            return self.inside(due);
        };
        let Some(inside) = self.inside_below(&due.tile)? else {
            return Ok(None);
        };
        let whole = self.scalar(whole);
        let edge = self.builder.not(whole);
        Ok(Some(self.builder.and(edge, inside)))
    }

    /// What the offsets reach, if it takes few steps along scalars.
    pub(super) fn reach(&self, offsets: Value) -> Option<Span> {
        let span = self.indices.fact(offsets).span()?;
        let fits = |&(step, times): &(Value, i64)| {
            self.block.ty(step) == Type::INDEX && (0..=MOST_STEPS).contains(&times)
        };
        span.scalars.iter().all(fits).then_some(span)
    }

    /// Ends the program where `wrong` holds, with the error of `count` elements from one on.
    pub(super) fn stop(
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
    pub(super) fn stop_by_registers(&mut self, inst: Inst, tile: &MemoryAccess) -> Result<()> {
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
