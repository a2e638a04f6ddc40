//! Faults in what the passes of the schedule say of tiles: layouts, conversions, slots, and what orders them.

use std::collections::BTreeMap;

use exactile_core::ir::{Access, DType, Func, Inst, Op, Value, op};
use exactile_core::layout::LinearLayout;
use exactile_core::random::Random;

use super::report::{Finder, Report};
use super::spared::is_spared;
use super::subject::{PLANTED_BEHIND, Subject};
use crate::testing::programs::edit::{
    added_before, constant_before, insert_before, remove, replace,
};

/// A bug at one instruction.
struct Fault {
    name: &'static str,
    /// The pass that could have it, behind which it is planted.
    stage: &'static str,
    /// The ops that it is planted in.
    at: fn(&Op) -> bool,
    /// Plants it; false where nothing changes.
    plant: fn(&mut Func, Inst) -> bool,
}

/// A fault behind a stage, planted in the ops of a pattern; the instruction is left out where nothing else is said.
macro_rules! fault {
    ($stage:literal, $name:literal, $at:pat) => {
        fault!($stage, $name, $at, |func, inst| {
            remove(func, &[inst]);
            true
        })
    };
    ($stage:literal, $name:literal, $at:pat, $plant:expr) => {
        Fault {
            name: concat!($stage, ": ", $name),
            stage: $stage,
            at: |op| matches!(op, $at),
            plant: $plant,
        }
    };
}

/// Places with one op and one layout are alike for this fault: of each kind one is taken.
const EXCHANGED: &str = "place: a layout has two bits exchanged";

const FAULTS: &[Fault] = &[
    fault!(
        "place",
        "a conversion is missing",
        Op::Convert(_),
        drop_convert
    ),
    fault!("place", "a layout has two bits exchanged", _, exchange_bits),
    fault!(
        "homes",
        "a layout has two bits exchanged",
        Op::SlotStore(_),
        exchange_homes
    ),
    fault!(
        "homes",
        "a tile is not stored to its slot",
        Op::SlotStore(_)
    ),
    fault!("results", "a copy is missing", Op::CopySlot(_)),
    fault!("results", "a wait for copies is missing", Op::WaitSlots(_)),
    fault!("homes", "a fence is missing", Op::ProxyFence(_)),
    fault!("homes", "a barrier is missing", Op::Barrier(_)),
    fault!(
        "pipeline",
        "a slot is the next one",
        Op::CopyLanes(_) | Op::SlotLoad(_) | Op::SlotStore(_) | Op::DotSlots(_),
        next_slot
    ),
    fault!("pipeline", "a copy is missing", Op::CopyLanes(_)),
    fault!(
        "pipeline",
        "a group of copies is not made",
        Op::GroupCopies(_)
    ),
    fault!(
        "pipeline",
        "a wait for copies is missing",
        Op::WaitCopies(_)
    ),
    fault!(
        "pipeline",
        "a wait leaves a group of copies too many",
        Op::WaitCopies(_),
        late_wait
    ),
    fault!("pipeline", "a barrier is missing", Op::Barrier(_)),
    fault!(
        "pipeline",
        "copies are twice as wide",
        Op::CopyLanes(_),
        wide_copies
    ),
    fault!(
        "overlap",
        "a wait for products is missing",
        Op::WaitProducts(_)
    ),
    fault!(
        "overlap",
        "a wait leaves a product too many",
        Op::WaitProducts(_),
        late_products
    ),
];

/// The stage whose function a fault is planted in: `overlap` is a part of `pipeline`.
fn stage(fault: &Fault) -> &'static str {
    match fault.stage {
        "overlap" => "pipeline",
        stage => stage,
    }
}

fn drop_convert(func: &mut Func, inst: Inst) -> bool {
    let &Op::Convert(op::Convert { x }) = func.op(inst) else {
        return false;
    };
    replace(func, inst, &[x]);
    true
}

/// Two bits of the index of the first result, of which one a lane holds, change places.
fn exchange_bits(func: &mut Func, inst: Inst) -> bool {
    let Some(&value) = func.inst(inst).results.first() else {
        return false;
    };
    let Some(layout) = func.layout(value) else {
        return false;
    };
    let linear = func.linear(layout);
    let [mut register, mut lane] =
        [linear.register_columns(), linear.lane_columns()].map(<[u64]>::to_vec);
    let warp = linear.warp_columns().to_vec();
    let Some(last) = lane.len().checked_sub(1) else {
        return false;
    };
    if register.is_empty() {
        lane.swap(0, last);
    } else {
        std::mem::swap(&mut register[0], &mut lane[0]);
    }
    if register == linear.register_columns() && lane == linear.lane_columns() {
        return false;
    }
    let changed = LinearLayout::new(linear.dim_bits().to_vec(), register, lane, warp);
    let changed = changed.expect("broken invariant: the same bits in another order");
    let changed = func.intern(changed);
    func.set_layout(value, Some(changed));
    true
}

/// The same of what `homes` makes: a tile that goes to a slot.
fn exchange_homes(func: &mut Func, inst: Inst) -> bool {
    let Op::SlotStore(op::SlotStore { value, .. }) = *func.op(inst) else {
        return false;
    };
    let definition = func.definitions()[value];
    definition.is_some_and(|inst| exchange_bits(func, inst))
}

/// The slot that an instruction reads or writes.
fn slot(op: &mut Op) -> Option<&mut Value> {
    if let Op::CopyLanes(op::CopyLanes { slot, .. })
    | Op::SlotLoad(op::SlotLoad { slot, .. })
    | Op::SlotStore(op::SlotStore { slot, .. })
    | Op::DotSlots(op::DotSlots { b_slot: slot, .. }) = op
    {
        Some(slot)
    } else {
        None
    }
}

/// A slot that is one further.
fn next_slot(func: &mut Func, inst: Inst) -> bool {
    let Some(own) = slot(&mut func.inst_mut(inst).op).copied() else {
        return false;
    };
    let next = added_before(func, inst, own, 1);
    if let Some(own) = slot(&mut func.inst_mut(inst).op) {
        *own = next;
    }
    true
}

fn late_wait(func: &mut Func, inst: Inst) -> bool {
    let Op::WaitCopies(op) = &mut func.inst_mut(inst).op else {
        return false;
    };
    op.pending += 1;
    true
}

fn late_products(func: &mut Func, inst: Inst) -> bool {
    let Op::WaitProducts(op) = &mut func.inst_mut(inst).op else {
        return false;
    };
    op.pending += 1;
    true
}

fn wide_copies(func: &mut Func, inst: Inst) -> bool {
    let Op::CopyLanes(op) = &mut func.inst_mut(inst).op else {
        return false;
    };
    op.count *= 2;
    true
}

/// The instructions that a fault is planted in.
fn places(subject: &Subject<'_>, fault: &Fault, func: &Func) -> Vec<Inst> {
    let insts = func.all_insts().into_iter();
    let insts: Vec<Inst> = insts.filter(|&inst| (fault.at)(func.op(inst))).collect();
    if fault.name != EXCHANGED || is_spared(fault.name, subject.name()) {
        return insts;
    }
    let mut alike: BTreeMap<_, Vec<Inst>> = BTreeMap::new();
    for inst in insts {
        let layout = func
            .inst(inst)
            .results
            .first()
            .and_then(|&it| func.layout(it));
        if let Some(layout) = layout {
            let kind = (func.op(inst).mnemonic(), layout);
            alike.entry(kind).or_default().push(inst);
        }
    }
    let mut random = Random::new(subject.seed);
    alike.values().map(|insts| random.pick(insts)).collect()
}

/// Plants every fault behind its pass.
pub(super) fn plant(subject: &Subject<'_>, report: &mut Report) {
    for &name in PLANTED_BEHIND {
        let Some(placed) = subject.after(name) else {
            return;
        };
        let mut reached = BTreeMap::new();
        for fault in FAULTS.iter().filter(|fault| stage(fault) == name) {
            for inst in places(subject, fault, placed) {
                let mut func = placed.clone();
                if !(fault.plant)(&mut func, inst) {
                    continue;
                }
                let found = match subject.lowered(func) {
                    Err(_) => Some(Finder::Verifier),
                    Ok(lane) => subject.run(&lane),
                };
                let reach = || is_reached(subject, placed, inst);
                if found.is_none() && !*reached.entry(inst).or_insert_with(reach) {
                    report.unreached(fault.name);
                    continue;
                }
                subject.note(report, (fault.name, found), (placed, inst));
            }
        }
    }
}

/// Whether a run comes to an instruction: whether it finds an access out of bounds there.
fn is_reached(subject: &Subject<'_>, placed: &Func, inst: Inst) -> bool {
    let mut func = placed.clone();
    let written = func.parameters.iter().zip(func.arguments().iter().copied());
    let written = written.filter(|(parameter, _)| parameter.access == Access::ReadWrite);
    let pointee = |value: Value| func.ty(value).pointee().map(|(dtype, _)| (value, dtype));
    let Some((base, dtype)) = written.map(|(_, value)| value).find_map(pointee) else {
        return true;
    };
    let offsets = constant_before(&mut func, inst, DType::I64, 1 << 40);
    let value = constant_before(&mut func, inst, dtype, 0);
    let store = op::Store {
        base,
        offsets,
        value,
        mask: None,
        cache: None,
    };
    let loc = func.inst(inst).loc.clone();
    let store = func.add_inst(Op::Store(store), &[], loc);
    insert_before(&mut func, inst, &[store]);
    subject
        .lowered(func)
        .map_or(true, |lane| subject.comes_to_fault(&lane))
}
