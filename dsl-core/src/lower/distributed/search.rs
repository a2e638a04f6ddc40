//! The search for what is out of bounds, where scalars do not show that nothing is: one loop for the accesses that
//! are checked together.

use super::point::Known;
use super::tile::Scope;
use super::{Lowering, Result};
use crate::ir::{DType, Inst, MemoryAccess, Op, Type, Value, op};
use crate::layout::ThreadMap;
use crate::target::{LANE_BITS, WARP_LANES};

/// The most elements that a search goes through: a lane counts them in 32 bits.
const MOST_ELEMENTS: usize = 1 << 30;

/// An access that is to be checked before it is made.
#[derive(Clone)]
pub(super) struct Due {
    /// The instructions that make it: one, or one in each branch of an `if`.
    pub(super) insts: Vec<Inst>,
    pub(super) tile: MemoryAccess,
    /// The condition of that `if`: where it holds there is no mask.
    pub(super) whole: Option<Value>,
}

impl Due {
    /// What an error names.
    pub(super) fn inst(&self) -> Inst {
        self.insts[0]
    }

    /// Whether it reports whatever another access has out of bounds.
    fn reports(&self, other: &Self) -> bool {
        let of = |due: &Self| (due.tile.base, due.tile.offsets, due.tile.mask, due.whole);
        of(self) == of(other)
    }
}

/// What a lane looks at in one iteration.
struct Look {
    /// Whether it is out of bounds and not masked off.
    outside: Value,
    offset: Value,
}

impl Lowering<'_> {
    /// The accesses to check of instructions which follow each other, up to a check that has to wait.
    pub(super) fn due(&self, insts: &[Inst]) -> Vec<Due> {
        let mut found = Vec::new();
        for &inst in insts {
            if let Some(tile) = self.to_check(inst) {
                let due = Due {
                    insts: vec![inst],
                    tile,
                    whole: None,
                };
                found.extend(Some(due).filter(|_| !self.checked.contains(&inst)));
            } else if self.has_checks(inst) {
                if let Op::If(op) = self.block.op(inst) {
                    found.extend(self.due_in_both(op));
                }
                break;
            }
        }
        found
    }

    /// The first accesses of two branches that are the same, but for masks that the second has alone.
    fn due_in_both(&self, op: &op::If) -> Vec<Due> {
        let [whole, masked] =
            [op.on_true, op.on_false].map(|region| self.due(&self.block.region(region).insts));
        let alike = |(whole, masked): (Due, Due)| {
            let of = |due: &Due| {
                let offsets = self.firsts[due.tile.offsets];
                (self.sites.get(&due.inst()), due.tile.base, offsets)
            };
            let mask = |due: &Due| due.tile.mask.map(|mask| self.firsts[mask]);
            let [one, other] = [mask(&whole), mask(&masked)];
            let either = one.is_none() || one == other;
            let nested = whole.whole.or(masked.whole).is_some();
            (of(&whole) == of(&masked) && either && !nested).then(|| Due {
                insts: [whole.insts, masked.insts].concat(),
                tile: masked.tile,
                whole: (one != other).then_some(op.condition),
            })
        };
        whole.into_iter().zip(masked).map_while(alike).collect()
    }

    /// Ends the program where some of these accesses, in their order, are out of bounds and not masked off.
    pub(super) fn search(&mut self, shown: &[Due]) -> Result<()> {
        self.wait_to_end();
        let mut together = Vec::new();
        for (at, due) in shown.iter().enumerate() {
            if shown[..at].iter().any(|before| before.reports(due)) {
                continue;
            }
            // Only the first may have a mask that is no arithmetic.
            if due.tile.mask.is_none_or(|mask| self.is_ready(mask)) {
                together.push(due);
            } else {
                self.stop_by_registers(due.inst(), &due.tile)?;
            }
        }
        self.stop_by_elements(&together)
    }

    /// Each lane looks at some elements of these accesses, whose masks are arithmetic: at those of the first one after
    /// the other, then at those of the second, computing their offsets and masks anew. So it finds the first that is wrong.
    fn stop_by_elements(&mut self, dues: &[&Due]) -> Result<()> {
        let elements = |due: &&Due| self.block.ty(due.tile.offsets).shape.elements();
        let most = dues.iter().map(elements).max().unwrap_or(1);
        for dues in dues.chunks((MOST_ELEMENTS / most).max(1)) {
            self.search_elements(dues, most)?;
        }
        Ok(())
    }

    /// Places are numbers up to zero: the access, counted back from the end, times `most`, which is a power of two, plus the
    /// element. So no counter begins as the number of a lane, of which the assembler knows what a warp has in common
    /// only as long as it is not counted with.
    fn search_elements(&mut self, dues: &[&Due], most: usize) -> Result<()> {
        let places = (dues.len() * most) as i32;
        let threads = (WARP_LANES << self.warp_bits) as i32;
        let own = ThreadMap {
            lane: (0..LANE_BITS).map(|bit| 1 << bit).collect(),
            warp: (LANE_BITS..LANE_BITS + self.warp_bits)
                .map(|bit| 1 << bit)
                .collect(),
        };
        let own = self.thread_value(&own);
        let places = self.builder.int32(places);
        let first = self.builder.sub(own, places);
        let none = self.builder.index(0);
        let carried = [Type::scalar(DType::I32), Type::INDEX];
        let before = self.builder.new_region(&carried);
        let outer = self.builder.enter(before);
        self.scopes.push(Scope::default());
        let place = self.builder.parameters(before)[0];
        let look = self.look(dues, most, place)?;
        let end = self.builder.int32(0);
        let more = self.builder.lt(place, end);
        let fine = self.builder.not(look.outside);
        let on = self.builder.and(more, fine);
        let values = vec![on, place, look.offset];
        self.builder.emit(Op::Yield(op::Yield { values }), &[]);
        self.scopes.pop();
        self.builder.enter(outer);
        let body = self.builder.region_with(&carried, |builder, values| {
            let threads = builder.int32(threads);
            vec![builder.add(values[0], threads), values[1]]
        });
        let init = vec![first, none];
        let inst = self
            .builder
            .emit(Op::While(op::While { init, before, body }), &[]);
        let [place, offset] = [0, 1].map(|at| self.builder.results(inst)[at]);
        let (which, element) = self.split_place(place, most);
        let found: Vec<Value> = (0..dues.len())
            .map(|at| {
                let at = self.builder.int32(at as i32 - dues.len() as i32);
                self.builder.eq(which, at)
            })
            .collect();
        for (due, found) in dues.iter().zip(found) {
            self.stop(due.inst(), &due.tile, (element, offset, 1), found);
        }
        Ok(())
    }

    /// The access, counted back from the end, and the element of a place.
    fn split_place(&mut self, place: Value, most: usize) -> (Value, Value) {
        let bits = self.builder.int32(most.trailing_zeros() as i32);
        let last = self.builder.int32(most as i32 - 1);
        let which = self.builder.shr(place, bits);
        (which, self.builder.and(place, last))
    }

    /// What is at a place.
    fn look(&mut self, dues: &[&Due], most: usize, place: Value) -> Result<Look> {
        let (which, element) = self.split_place(place, most);
        let mut known = Known::new();
        let mut looks = Vec::new();
        for due in dues {
            looks.push(self.look_at(due, most, element, &mut known)?);
        }
        let mut looks = looks.into_iter().enumerate().rev();
        let (_, mut look) = looks
            .next()
            .expect("broken invariant: a search is for something");
        for (at, own) in looks {
            let at = self.builder.int32(at as i32 - dues.len() as i32);
            let this = self.builder.eq(which, at);
            look = Look {
                outside: self.builder.select(this, own.outside, look.outside),
                offset: self.builder.select(this, own.offset, look.offset),
            };
        }
        Ok(look)
    }

    fn look_at(
        &mut self,
        due: &Due,
        most: usize,
        element: Value,
        known: &mut Known,
    ) -> Result<Look> {
        let tile = &due.tile;
        let base = self.scalar(tile.base);
        let shape = self.block.ty(tile.offsets).shape;
        let index = self.builder.cast(element, DType::I64);
        let coordinates = self.split_index(&shape, index);
        let offset = self.element_at(tile.offsets, &coordinates, known)?;
        let count = 1;
        let inside = self.builder.value(Op::InBounds(op::InBounds {
            base,
            offset,
            count,
        }));
        let mut outside = self.builder.not(inside);
        if let Some(mask) = tile.mask {
            let mut mask = self.element_at(mask, &coordinates, known)?;
            if let Some(whole) = due.whole {
                let whole = self.scalar(whole);
                mask = self.builder.or(whole, mask);
            }
            outside = self.builder.and(outside, mask);
        }
        if shape.elements() < most {
            let end = self.builder.int32(shape.elements() as i32);
            let there = self.builder.lt(element, end);
            outside = self.builder.and(outside, there);
        }
        Ok(Look { outside, offset })
    }
}
