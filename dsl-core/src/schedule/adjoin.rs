//! Products of one tile that lanes hold with tiles of shared memory side by side: where one of these is stored once before a
//! loop, its slots come behind those of the other, so that one instruction has the columns of both.

use super::PlacedFunc;
use super::waits::leave_later;
use crate::diagnostic::Diagnostics;
use crate::ir::index_map::dim_bits;
use crate::ir::op::Control;
use crate::ir::operand::{chunk_bits, may_have_columns};
use crate::ir::{DType, Element, Func, Inst, Literal, Op, Region, Type, Value, op};
use crate::layout::LinearLayout;
use crate::layout::group::{chunked_slot, groups, inner_axis};
use crate::target::LANE_BITS;

/// Brings such products of loops together; `None` where there are none.
///
/// # Errors
/// None that the function did not have before.
pub fn adjoin(func: &PlacedFunc) -> Result<Option<PlacedFunc>, Diagnostics> {
    let loops = func.all_insts().into_iter();
    let bodies = loops.filter_map(|inst| match func.op(inst).control() {
        Some(Control::For(op)) => Some(op.body),
        Some(Control::While(_) | Control::If(_)) | None => None,
    });
    let found: Vec<Pair> = bodies.filter_map(|body| Pair::find(func, body)).collect();
    if found.is_empty() {
        return Ok(None);
    }
    let mut func = Func::clone(func);
    for pair in found {
        pair.apply(&mut func);
    }
    PlacedFunc::new(func).map(Some)
}

/// Two products of a loop.
struct Pair {
    body: Region,
    /// The product whose slots copies fill, and what waits for it.
    front: (Inst, Inst),
    /// The product with what is stored before the loop, and what waits for it.
    behind: (Inst, Inst),
    /// The buffer of the first.
    buffer: Value,
    stored: Stored,
}

/// What is stored once.
struct Stored {
    region: Region,
    buffer: Inst,
    store: Inst,
    value: Value,
    /// Products outside of the loop that read it too.
    others: Vec<Inst>,
}

impl Pair {
    fn find(func: &Func, body: Region) -> Option<Self> {
        let insts = &func.region(body).insts;
        let products = insts.iter().filter_map(|&inst| {
            let Op::DotSlots(op) = func.op(inst) else {
                return None;
            };
            op.a_slot.is_none().then_some((inst, op))
        });
        let products: Vec<(Inst, &op::DotSlots)> = products.collect();
        products.iter().find_map(|&(behind, op)| {
            let mut fronts = products
                .iter()
                .filter(|it| it.0 != behind && it.1.a == op.a);
            fronts.find_map(|&(front, _)| Self::new(func, body, front, behind))
        })
    }

    fn new(func: &Func, body: Region, front: Inst, behind: Inst) -> Option<Self> {
        let [Op::DotSlots(first), Op::DotSlots(second)] = [front, behind].map(|it| func.op(it))
        else {
            return None;
        };
        let waits = [front, behind].map(|it| wait_of(func, body, it));
        let pair = Self {
            body,
            front: (front, waits[0]?),
            behind: (behind, waits[1]?),
            buffer: first.b,
            stored: Stored::find(func, second.b, behind)?,
        };
        let columns = pair.columns(func, first)? + pair.columns(func, second)?;
        let (dtype, _) = func.ty(pair.buffer).buffer()?;
        let fits = pair.is_beside(func)
            && pair.may_move(func)
            && may_have_columns(dtype, columns.cast_signed());
        fits.then_some(pair)
    }

    /// The columns of a product, of which each group of warps has all.
    fn columns(&self, func: &Func, op: &op::DotSlots) -> Option<u64> {
        let shape = |value: Value| dim_bits(&func.ty(value).shape);
        let [rows, columns] = shape(op.accumulator)[..] else {
            return None;
        };
        let products = *shape(op.a).get(1)?;
        let (dtype, _) = func.ty(op.b).buffer()?;
        let bits = [rows, columns, products];
        let found = groups(bits, func.warps.trailing_zeros(), dtype)?;
        (found.column_bits == columns).then(|| 1 << columns)
    }

    /// Whether slots of the second product can lie behind those of the first: chunks along the columns, all full, made where
    /// what is stored is.
    fn is_beside(&self, func: &Func) -> bool {
        let layout = func.layout(self.buffer).map(|it| func.linear(it));
        let full = layout.zip(func.ty(self.buffer).buffer());
        let full = full.is_some_and(|(layout, (dtype, _))| {
            inner_axis(layout, dtype) == Some(1) && layout.dim_bits()[1] >= chunk_bits(dtype)
        });
        let insts = &func.region(self.stored.region).insts;
        let made = func.definitions()[self.buffer];
        let here = made.is_some_and(|inst| insts.contains(&inst));
        let free = func
            .all_insts()
            .into_iter()
            .all(|inst| !matches!(func.op(inst), Op::Buffer(op) if op.behind == Some(self.buffer)));
        full && free && here
    }

    /// Whether the second product can begin right behind the first, and be waited for together: nothing but arithmetic and
    /// further products is between them, and its sums are used later.
    fn may_move(&self, func: &Func) -> bool {
        let insts = &func.region(self.body).insts;
        let at = |inst: Inst| insts.iter().position(|&it| it == inst).unwrap_or(0);
        let [front, behind] = [at(self.front.0), at(self.behind.0)];
        let between = &insts[front.min(behind)..front.max(behind)];
        let begins = |inst: Inst| {
            let op = func.op(inst);
            matches!(op, Op::DotSlots(_) | Op::Pend(_) | Op::WaitBox(_))
        };
        let waits = [self.front.1, self.behind.1];
        let begun = between
            .iter()
            .all(|it| !waits.contains(it) && (func.is_pure(*it) || begins(*it)));
        let [front, behind] = [at(self.front.1), at(self.behind.1)];
        let sums = func.inst(self.behind.1).results[0];
        let skipped = insts.get(behind + 1..front).unwrap_or_default();
        begun
            && !skipped
                .iter()
                .any(|&it| func.op(it).operands().contains(&sums))
    }

    fn apply(self, func: &mut Func) {
        let slots = func.ty(self.buffer).buffer().map_or(1, |(_, slots)| slots);
        let made = func.inst(self.stored.buffer).results[0];
        let (dtype, bits) = (func.ty(made).buffer(), dim_bits(&func.ty(made).shape));
        let dtype = dtype.map_or(DType::F16, |(dtype, _)| dtype);
        let ty = Type {
            element: Element::Buffer(dtype, slots),
            shape: func.ty(made).shape,
        };
        let layout = chunked_slot(&bits, 1, dtype).expect("broken invariant: it was looked at");
        let layout = func.intern(layout);
        let loc = func.inst(self.stored.store).loc.clone();
        let behind = Some(self.buffer);
        let buffer = func.add_inst(Op::Buffer(op::Buffer { behind }), &[ty], loc.clone());
        let value = func.inst(buffer).results[0];
        func.set_layout(value, Some(layout));
        let mut stores = vec![buffer];
        let stored = self.constant(func, &bits, &mut stores);
        for slot in 0..slots {
            let number = Literal::from_bits(DType::I32, slot.into());
            let number = Op::Constant(op::Constant { value: number });
            let number = func.add_inst(number, &[Type::scalar(DType::I32)], loc.clone());
            let store = Op::SlotStore(op::SlotStore {
                slot: func.inst(number).results[0],
                value: stored,
                buffer: value,
            });
            stores.extend([number, func.add_inst(store, &[], loc.clone())]);
        }
        let front = func.definitions()[self.buffer];
        let insts = &mut func.region_mut(self.stored.region).insts;
        let at = |inst: Inst| insts.iter().position(|&it| it == inst);
        if let Some((first, later)) = at(self.stored.buffer).zip(front.and_then(at))
            && first < later
        {
            insts[first..=later].rotate_right(1);
        }
        insts.retain(|&it| it != self.stored.buffer);
        if let Some(at) = insts.iter().position(|&it| it == self.stored.store) {
            insts.splice(at..=at, stores);
        }
        if let &Op::DotSlots(op::DotSlots { b_slot, .. }) = func.op(self.front.0)
            && let Op::DotSlots(op) = &mut func.inst_mut(self.behind.0).op
        {
            (op.b, op.b_slot) = (value, b_slot);
        }
        for &other in &self.stored.others {
            if let Op::DotSlots(op) = &mut func.inst_mut(other).op {
                op.b = value;
            }
        }
        self.together(func);
    }

    /// What is stored, a constant, where each lane has rows of it: their elements lie side by side in a slot.
    fn constant(&self, func: &mut Func, bits: &[u32], insts: &mut Vec<Inst>) -> Value {
        let value = self.stored.value;
        let made = func.definitions()[value];
        let Some(Op::Constant(op)) = made.map(|inst| func.op(inst).clone()) else {
            return value;
        };
        let bit = |at: u32| {
            if at < bits[0] {
                1_u64 << (bits[1] + at)
            } else {
                0
            }
        };
        let warp_bits = func.warps.trailing_zeros();
        let taken = LANE_BITS + warp_bits;
        let registers = (0..bits[1]).map(|at| 1_u64 << at);
        let registers = registers.chain((taken..bits[0]).map(bit));
        let layout = LinearLayout::new(
            bits.to_vec(),
            registers.collect(),
            (0..LANE_BITS).map(bit).collect(),
            (LANE_BITS..taken).map(bit).collect(),
        );
        let layout = layout.expect("broken invariant: every element has a lane");
        let (layout, loc) = (
            func.intern(layout),
            func.inst(self.stored.store).loc.clone(),
        );
        let again = func.add_inst(Op::Constant(op), &[func.ty(value)], loc);
        insts.push(again);
        let again = func.inst(again).results[0];
        func.set_layout(again, Some(layout));
        again
    }

    /// Lets the products begin, and be waited for, one after the other.
    fn together(&self, func: &mut Func) {
        let mut insts = std::mem::take(&mut func.region_mut(self.body).insts);
        let at = |insts: &[Inst], inst: Inst| insts.iter().position(|&it| it == inst).unwrap_or(0);
        let [front, behind] = [self.front.0, self.behind.0].map(|it| at(&insts, it));
        if behind < front {
            insts[behind..=front].rotate_left(1);
        } else {
            insts[front..behind].rotate_left(1);
        }
        let [front, behind] = [self.front.1, self.behind.1].map(|it| at(&insts, it));
        if behind < front {
            insts[behind..=front].rotate_left(1);
        }
        leave_later(func, &insts);
        func.region_mut(self.body).insts = insts;
    }
}

impl Stored {
    /// What an instruction of a loop reads from a buffer, and what is the same everywhere and stored before that loop.
    fn find(func: &Func, buffer: Value, reader: Inst) -> Option<Self> {
        let made = func.definitions()[buffer]?;
        let one = matches!(func.ty(buffer).buffer(), Some((_, 1)));
        let insts = func.all_insts().into_iter();
        let users = insts.filter(|&it| it != reader && func.op(it).operands().contains(&buffer));
        let second = |&it: &Inst| {
            let op = func.op(it);
            matches!(op, Op::DotSlots(op) if op.b == buffer && op.a != buffer)
        };
        let (others, users): (Vec<Inst>, Vec<Inst>) = users.partition(second);
        let &[store] = &users[..] else { return None };
        let Op::SlotStore(op) = func.op(store) else {
            return None;
        };
        let region = func.all_regions().into_iter().find(|&region| {
            let insts = &func.region(region).insts;
            insts.contains(&store) && insts.contains(&made)
        })?;
        let (dtype, _) = func.ty(buffer).buffer()?;
        chunked_slot(&dim_bits(&func.ty(buffer).shape), 1, dtype)?;
        let own = &func.region(region).insts;
        let inside = own.contains(&reader) || !others.iter().all(|it| own.contains(it));
        (one && !inside).then_some(Self {
            region,
            buffer: made,
            store,
            value: op.value,
            others,
        })
    }
}

/// What waits for a product in the region that begins it, the only user of its sums.
fn wait_of(func: &Func, body: Region, product: Inst) -> Option<Inst> {
    let sums = func.inst(product).results[0];
    let mut insts = func.region(body).insts.iter().copied();
    insts.find(|&it| matches!(func.op(it), Op::Settle(op) if op.x == sums))
}
