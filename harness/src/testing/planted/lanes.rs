//! Faults in what orders lanes: each such instruction of a lane function is left out or weakened in turn.

use exactile_core::ir::{DType, Func, Inst, Op, Type, Value, op};
use exactile_core::verify;

use super::report::Report;
use super::subject::Subject;
use crate::testing::programs::edit::{added_before, constant_before, insert_before, remove};

/// A bug at one instruction.
struct Fault {
    name: &'static str,
    /// The ops that it is planted in.
    at: fn(&Op) -> bool,
    /// Plants it; false where nothing changes.
    plant: fn(&mut Func, Inst) -> bool,
}

/// An instruction that is left out.
macro_rules! dropped {
    ($name:literal, $Op:ident) => {
        Fault {
            name: $name,
            at: |op| matches!(op, Op::$Op(_)),
            plant: |func, inst| {
                remove(func, &[inst]);
                true
            },
        }
    };
}

/// An instruction with another number; nothing where it stays as it is.
macro_rules! changed {
    ($name:literal, $Op:ident, $field:ident, $change:expr) => {
        Fault {
            name: $name,
            at: |op| matches!(op, Op::$Op(_)),
            plant: |func, inst| {
                let Op::$Op(op) = &mut func.inst_mut(inst).op else {
                    return false;
                };
                let change: fn(i64) -> i64 = $change;
                let before = op.$field;
                op.$field = change(before);
                op.$field != before
            },
        }
    };
}

const FAULTS: &[Fault] = &[
    dropped!("a barrier is missing", Barrier),
    dropped!("a group of copies is not made", GroupCopies),
    dropped!("a wait for copies is missing", WaitCopies),
    changed!(
        "a wait leaves a group of copies too many",
        WaitCopies,
        pending,
        |it| it + 1
    ),
    dropped!("a wait for products is missing", WaitProducts),
    changed!(
        "a wait leaves a product too many",
        WaitProducts,
        pending,
        |it| it + 1
    ),
    dropped!("a fence is missing", ProxyFence),
    dropped!("a copy is missing", StartCopy),
    changed!("a copy has half its width", StartCopy, count, |it| (it / 2)
        .max(1)),
    dropped!("a barrier with phases is not made", MbarrierInit),
    changed!(
        "a phase waits for an arrival more",
        MbarrierInit,
        count,
        |it| it + 1
    ),
    dropped!("an arrival is missing", MbarrierArrive),
    dropped!("a wait for a phase is missing", MbarrierWait),
    Fault {
        name: "a wait is for the phase before",
        at: |op| matches!(op, Op::MbarrierWait(_)),
        plant: |func, inst| other_phase(func, inst, -1),
    },
    Fault {
        name: "a wait is for the phase behind",
        at: |op| matches!(op, Op::MbarrierWait(_)),
        plant: |func, inst| other_phase(func, inst, 1),
    },
    dropped!("bytes are not expected", MbarrierExpect),
    changed!("more bytes are expected", MbarrierExpect, bytes, |it| it
        + 16),
    changed!("fewer bytes are expected", MbarrierExpect, bytes, |it| it
        - 16),
    dropped!("a bulk copy in is missing", CopyIn),
    dropped!("a bulk copy of a row is missing", CopySpan),
    Fault {
        name: "a bulk copy of a row begins 16 bytes further",
        at: |op| matches!(op, Op::CopySpan(_)),
        plant: |func, inst| other_span(func, inst, |op| &mut op.source_offset),
    },
    Fault {
        name: "a bulk copy of a row is 16 bytes further in its slot",
        at: |op| matches!(op, Op::CopySpan(_)),
        plant: |func, inst| other_span(func, inst, |op| &mut op.offset),
    },
    Fault {
        name: "a bulk copy of a row is 16 bytes longer",
        at: |op| matches!(op, Op::CopySpan(_)),
        plant: |func, inst| other_span(func, inst, |op| &mut op.count),
    },
    dropped!("a bulk copy out is missing", CopyOut),
    Fault {
        name: "a bulk copy begins an element further",
        at: |op| matches!(op, Op::CopyIn(_) | Op::CopyOut(_)),
        plant: |func, inst| further(func, inst, false),
    },
    Fault {
        name: "a bulk copy is 16 bytes further in its slot",
        at: |op| matches!(op, Op::CopyIn(_) | Op::CopyOut(_)),
        plant: |func, inst| further(func, inst, true),
    },
    changed!(
        "bulk copies exchange other pieces",
        TensorMap,
        swizzle,
        |it| it / 2
    ),
    dropped!("a wait for what copies out read is missing", WaitCopiesRead),
    changed!(
        "a wait for what copies out read leaves one too many",
        WaitCopiesRead,
        pending,
        |it| it + 1
    ),
    dropped!("a wait for copies out is missing", WaitCopiesOut),
    changed!(
        "a wait leaves a copy out too many",
        WaitCopiesOut,
        pending,
        |it| it + 1
    ),
    dropped!("a named barrier is missing", NamedSync),
    changed!(
        "a named barrier waits for a warp more",
        NamedSync,
        warps,
        |it| it + 1
    ),
    dropped!("a named arrival is missing", NamedArrive),
];

/// A wait for a phase so many behind.
fn other_phase(func: &mut Func, inst: Inst, by: i64) -> bool {
    let Op::MbarrierWait(op::MbarrierWait { phase, .. }) = *func.op(inst) else {
        return false;
    };
    let other = added_before(func, inst, phase, by);
    if let Op::MbarrierWait(op) = &mut func.inst_mut(inst).op {
        op.phase = other;
    }
    true
}

/// A bulk copy of which a number is greater by the elements of 16 bytes.
fn other_span(func: &mut Func, inst: Inst, number: fn(&mut op::CopySpan) -> &mut Value) -> bool {
    let Op::CopySpan(mut op) = func.op(inst).clone() else {
        return false;
    };
    let dtype = func.ty(op.target).pointee().map(|(dtype, _)| dtype);
    let piece = i64::from(16 / dtype.map_or(1, DType::bytes));
    let own = number(&mut op);
    *own = added_before(func, inst, *own, piece);
    func.inst_mut(inst).op = Op::CopySpan(op);
    true
}

/// A bulk copy from an element further of its array, or 16 bytes further in shared memory: the first one of a box.
fn further(func: &mut Func, inst: Inst, in_slot: bool) -> bool {
    let is_copy = |it: &&Inst| matches!(func.op(**it), Op::CopyIn(_) | Op::CopyOut(_));
    let regions = func.all_regions().into_iter();
    let mut firsts = regions.filter_map(|region| func.region(region).insts.iter().find(is_copy));
    if !firsts.any(|&first| first == inst) {
        return false;
    }
    let mut op = func.op(inst).clone();
    if let Op::CopyIn(op::CopyIn {
        origin,
        offset,
        target: memory,
        ..
    })
    | Op::CopyOut(op::CopyOut {
        origin,
        offset,
        source: memory,
        ..
    }) = &mut op
    {
        let dtype = func.ty(*memory).pointee().map(|(dtype, _)| dtype);
        let piece = i64::from(16 / dtype.map_or(1, DType::bytes));
        match origin.last_mut().filter(|_| !in_slot) {
            Some(column) => *column = added_before(func, inst, *column, 1),
            None => *offset = added_before(func, inst, *offset, piece),
        }
    }
    func.inst_mut(inst).op = op;
    true
}

/// Plants every fault in what the subject is lowered to.
pub(super) fn plant(subject: &Subject<'_>, report: &mut Report) {
    let lane = &subject.lane;
    for inst in lane.all_insts() {
        let mut reached = None;
        for fault in FAULTS.iter().filter(|it| (it.at)(lane.op(inst))) {
            let mut func = lane.clone().into_inner();
            if !(fault.plant)(&mut func, inst) {
                continue;
            }
            let planted = (fault.name, subject.verified(func));
            let reached = &mut || *reached.get_or_insert_with(|| is_reached(subject, inst));
            subject.judge(report, planted, (lane, inst), reached);
        }
    }
    if !subject.is_lane() {
        overlap(subject, report);
    }
}

/// Whether a run comes to an instruction: whether it finds an access out of bounds there.
fn is_reached(subject: &Subject<'_>, inst: Inst) -> bool {
    let mut func = subject.lane.clone().into_inner();
    let arguments = func.arguments().iter().copied();
    let pointee = |value: Value| func.ty(value).pointee().map(|(dtype, _)| (value, dtype));
    let Some((base, dtype)) = arguments.into_iter().find_map(pointee) else {
        return true;
    };
    let offset = constant_before(&mut func, inst, DType::I64, 1 << 40);
    let load = op::LaneLoad {
        base,
        offset,
        mask: None,
        other: None,
        align: i64::from(dtype.bytes()),
        cache: None,
    };
    let loc = func.inst(inst).loc.clone();
    let load = func.add_inst(Op::LaneLoad(load), &[Type::scalar(dtype)], loc);
    insert_before(&mut func, inst, &[load]);
    let lane = verify::lane(func).expect("broken invariant: a load before an instruction is valid");
    subject.comes_to_fault(&lane)
}

/// Lets each buffer begin where the one before it does. What the replay allows must be right.
fn overlap(subject: &Subject<'_>, report: &mut Report) {
    const FAULT: &str = "two buffers share bytes";
    if !subject.is_placed() {
        return;
    }
    let lane = &subject.lane;
    let allocs = lane.all_insts().into_iter();
    let allocs: Vec<(Inst, i64)> = allocs
        .filter_map(|inst| {
            let Op::Alloc(op) = lane.op(inst) else {
                return None;
            };
            Some((inst, op.offset))
        })
        .collect();
    for pair in allocs.windows(2) {
        let [(_, before), (inst, own)] = *pair else {
            continue;
        };
        if before == own {
            continue;
        }
        let mut func = lane.clone().into_inner();
        if let Op::Alloc(op) = &mut func.inst_mut(inst).op {
            op.offset = before;
        }
        match subject.verified(func) {
            Err(finder) => report.found(FAULT, finder),
            Ok(shared) => match subject.run(&shared, &mut || true) {
                None => report.allowed(FAULT),
                Some(_) => subject.survived(report, FAULT, (lane, inst)),
            },
        }
    }
}
