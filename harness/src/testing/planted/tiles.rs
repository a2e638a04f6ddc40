//! Faults in what the passes of the schedule say of tiles: layouts, conversions, slots, and what orders them.

use std::collections::BTreeMap;

use exactile_core::ir::{Access, BinaryOp, DType, Func, Inst, Op, Value, op};
use exactile_core::random::Random;

use super::changes::*;
use super::report::{Finder, Report};
use super::spared::is_spared;
use super::subject::{PLANTED_BEHIND, Subject};
use crate::testing::programs::edit::{constant_before, insert_before};

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
        fault!($stage, $name, $at, drop_inst)
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

/// Places with one op and one layout are alike for these faults: of each kind one is taken.
const OF_LAYOUTS: &[&str] = &[
    "assign: a conversion is of another tile",
    "assign: a layout is of another shape",
    "place: a layout has two bits exchanged",
];

const FAULTS: &[Fault] = &[
    fault!(
        "boxes",
        "a box begins a row further",
        Op::LoadBox(_) | Op::StoreBox(_),
        |func, inst| other_box(func, inst, BoxPart::Origin, 0)
    ),
    fault!(
        "boxes",
        "a box begins a column further",
        Op::LoadBox(_) | Op::StoreBox(_),
        |func, inst| other_box(func, inst, BoxPart::Origin, 1)
    ),
    fault!(
        "boxes",
        "the last part of a box begins a row further",
        Op::LoadBox(_),
        |func, inst| other_box(func, inst, BoxPart::LastOrigin, 0)
    ),
    fault!(
        "boxes",
        "the last part of a box begins a column further",
        Op::LoadBox(_),
        |func, inst| other_box(func, inst, BoxPart::LastOrigin, 1)
    ),
    fault!(
        "boxes",
        "an array has a row less",
        Op::LoadBox(_) | Op::StoreBox(_),
        |func, inst| other_box(func, inst, BoxPart::Extent, 0)
    ),
    fault!(
        "boxes",
        "an array has a column less",
        Op::LoadBox(_) | Op::StoreBox(_),
        |func, inst| other_box(func, inst, BoxPart::Extent, 1)
    ),
    fault!(
        "assign",
        "a conversion is of another tile",
        Op::Convert(_),
        convert_other
    ),
    fault!(
        "assign",
        "a layout is of another shape",
        Op::Load(_) | Op::Convert(_) | Op::Dot(_),
        other_shape
    ),
    fault!(
        "place",
        "a conversion is missing",
        Op::Convert(_),
        drop_convert
    ),
    fault!("place", "a layout has two bits exchanged", _, exchange_bits),
    fault!(
        "rotate",
        "the first carried value is not advanced",
        Op::For(_),
        |func, inst| keep_carried(func, inst, 0)
    ),
    fault!(
        "rotate",
        "the second carried value is not advanced",
        Op::For(_),
        |func, inst| keep_carried(func, inst, 1)
    ),
    fault!(
        "rotate",
        "the last carried value is not advanced",
        Op::For(_),
        |func, inst| keep_carried(func, inst, usize::MAX)
    ),
    fault!(
        "rotate",
        "the first iteration runs whether there is one or not",
        Op::If(_),
        always
    ),
    fault!(
        "rotate",
        "the last iteration is the one behind it",
        Op::Binary(op::Binary {
            op: BinaryOp::Sub,
            ..
        }),
        later_index
    ),
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
    fault!(
        "results",
        "a wait for what copies write is missing",
        Op::WaitWritten(_)
    ),
    fault!("homes", "a fence is missing", Op::ProxyFence(_)),
    fault!("homes", "a barrier is missing", Op::Barrier(_)),
    fault!(
        "pipeline",
        "a slot is the next one",
        Op::CopyLanes(_) | Op::CopyRun(_) | Op::SlotLoad(_) | Op::SlotStore(_) | Op::DotSlots(_),
        next_slot
    ),
    fault!(
        "pipeline",
        "a copy is missing",
        Op::CopyLanes(_) | Op::CopyRun(_)
    ),
    fault!(
        "pipeline",
        "a run begins an element further",
        Op::CopyRun(_),
        |func, inst| other_row(func, inst, [1, 0])
    ),
    fault!(
        "pipeline",
        "a run has an element less",
        Op::CopyRun(_),
        |func, inst| other_row(func, inst, [0, -1])
    ),
    fault!(
        "pipeline",
        "a run is read from an element further",
        Op::SlotLoad(_),
        other_begin
    ),
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
    fault!(
        "waits",
        "a wait leaves a product too many",
        Op::Settle(_),
        late_products
    ),
    fault!(
        "adjoin",
        "a slot has no columns behind its own",
        Op::SlotStore(_),
        |func, inst| is_behind(func, inst) && drop_inst(func, inst)
    ),
    fault!(
        "adjoin",
        "columns lie behind the next slot",
        Op::SlotStore(_) | Op::DotSlots(_),
        |func, inst| is_behind(func, inst) && next_slot(func, inst)
    ),
    fault!(
        "adjoin",
        "columns have two bits exchanged",
        Op::SlotStore(_),
        |func, inst| is_behind(func, inst) && exchange_homes(func, inst)
    ),
    fault!(
        "adjoin",
        "a wait leaves a product too many",
        Op::Settle(_),
        late_products
    ),
    fault!("rows", "a wait is missing", Op::WaitRow(_)),
    fault!(
        "rows",
        "a row begins an element further",
        Op::CopyRow(_),
        |func, inst| other_row(func, inst, [1, 0])
    ),
    fault!(
        "rows",
        "a row has an element less",
        Op::CopyRow(_),
        |func, inst| other_row(func, inst, [0, -1])
    ),
    fault!(
        "strips",
        "a strip begins an element further",
        Op::RowLoad(_),
        other_begin
    ),
    fault!("strips", "strips are missing", Op::For(_)),
];

/// The stage whose function a fault is planted in: `overlap` is a part of `pipeline`.
fn stage(fault: &Fault) -> &'static str {
    match fault.stage {
        "overlap" => "pipeline",
        stage => stage,
    }
}

/// The instructions that a fault is planted in.
fn places(subject: &Subject<'_>, fault: &Fault, func: &Func) -> Vec<Inst> {
    let insts = func.all_insts().into_iter();
    let insts: Vec<Inst> = insts.filter(|&inst| (fault.at)(func.op(inst))).collect();
    if !OF_LAYOUTS.contains(&fault.name) || is_spared(fault.name, subject.name()) {
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
            continue;
        };
        let mut reached = BTreeMap::new();
        for fault in FAULTS.iter().filter(|fault| stage(fault) == name) {
            for inst in places(subject, fault, placed) {
                let mut func = placed.clone();
                if !(fault.plant)(&mut func, inst) {
                    continue;
                }
                let lane = subject.lowered(name, func).map_err(|_| Finder::Verifier);
                let reach = || is_reached(subject, name, placed, inst);
                let reached = &mut || *reached.entry(inst).or_insert_with(reach);
                subject.judge(report, (fault.name, lane), (placed, inst), reached);
            }
        }
    }
}

/// Whether a run comes to an instruction: whether it finds an access out of bounds there.
fn is_reached(subject: &Subject<'_>, stage: &str, placed: &Func, inst: Inst) -> bool {
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
        .lowered(stage, func)
        .map_or(true, |lane| subject.comes_to_fault(&lane))
}
