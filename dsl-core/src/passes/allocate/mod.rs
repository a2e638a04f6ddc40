//! Gives buffers their bytes, and says where lanes must wait for each other because of it.
//!
//! A buffer has its bytes from its `alloc` to where it is used last, so buffers that are never in use
//! at once share bytes. On a GPU lanes run ahead: some may still read a buffer while others begin the
//! next one. Such buffers lie apart if that takes little more memory, and a barrier stands before the
//! later one if not.

mod usage;

use std::collections::BTreeSet;

use crate::diagnostic::{Diagnostic, Diagnostics, Loc};
use crate::ir::{Func, Inst, Op, Region, op};
use crate::target::Target;

use usage::{Buffer, Usage};
pub(crate) use usage::{Exchanges, buffer_bytes, row_elements, run_buffers, slot_elements};

/// How many buffers an error names.
const NAMED: usize = 5;

/// Gives each buffer of a lane function its offset in the shared memory of the thread block, or in the
/// scratch memory of the worker, whatever offset it had.
///
/// # Errors
/// When a thread block takes more shared memory than there is.
pub fn allocate(func: &mut Func, target: &Target) -> Result<(), Diagnostics> {
    let usage = Usage::of(func, &Exchanges::new(), i64::MAX);
    let buffers = &usage.buffers;
    let (offsets, waiting) = if func.warps == 0 {
        let offsets = place(buffers, target.line_bytes, |_, _| false);
        (offsets, BTreeSet::new())
    } else {
        shared(&usage, target, func.schedule.occupancy.unwrap_or(1))
            .map_err(|error| too_large(func, &usage, target, error))?
    };
    for (buffer, at) in buffers.iter().zip(offsets) {
        if let Op::Alloc(op::Alloc { offset, .. }) = &mut func.inst_mut(buffer.alloc).op {
            *offset = at;
        }
    }
    let waiting: BTreeSet<Inst> = waiting.iter().map(|&it| buffers[it].alloc).collect();
    wait_before(func, func.body(), &waiting);
    Ok(())
}

/// The offsets of buffers in shared memory, and those before which lanes wait; or how many bytes are
/// needed, if there are not as many.
fn shared(usage: &Usage, target: &Target, blocks: u32) -> Result<(Vec<i64>, BTreeSet<usize>), i64> {
    let (buffers, gpu) = (&usage.buffers, &target.gpu);
    let least = least(buffers, target);
    let limit = i64::from(gpu.shared_bytes);
    if least > limit {
        return Err(least);
    }
    let most = i64::from(gpu.shared_bytes_of(blocks))
        .min(least + gpu.apart_bytes)
        .max(least);
    let mut waiting = BTreeSet::new();
    loop {
        let late = usage.late(&waiting);
        let own = (0..buffers.len()).find(|&buffer| late[buffer].contains(&buffer));
        let meet = |a: usize, b: usize| late[a].contains(&b) || late[b].contains(&a);
        let offsets = place(buffers, target.vector_bytes, meet);
        let mut ends = offsets.iter().zip(buffers).map(|(at, it)| at + it.bytes);
        let Some(over) = own.or_else(|| ends.position(|end| end > most)) else {
            return Ok((offsets, waiting));
        };
        let met = |&it: &usize| late[it].contains(&over);
        let any = |&it: &usize| !late[it].is_empty();
        let numbers = || 0..buffers.len();
        let next = Some(over).filter(any).or_else(|| numbers().find(met));
        match next.or_else(|| numbers().find(any)) {
            Some(next) => waiting.insert(next),
            // Nobody is late any more, so this is the least.
            None => return Ok((offsets, waiting)),
        };
    }
}

/// The bytes of shared memory that a function takes at least, as a schedule function says it: `exchanges` are what its ops
/// take besides buffers, each of which has at most so many slots.
pub(crate) fn least_bytes(
    func: &Func,
    target: &Target,
    exchanges: &Exchanges,
    most_slots: i64,
) -> i64 {
    least(&Usage::of(func, exchanges, most_slots).buffers, target)
}

fn least(buffers: &[Buffer], target: &Target) -> i64 {
    end(buffers, &place(buffers, target.vector_bytes, |_, _| false))
}

/// The offset of each buffer: the lowest multiple of `align`, and of its own, that leaves it apart from those before it
/// which are in use at the same time or `meet` it. First come those that last to the end, which no other can follow.
fn place(buffers: &[Buffer], align: u32, meet: impl Fn(usize, usize) -> bool) -> Vec<i64> {
    let mut order: Vec<usize> = (0..buffers.len()).collect();
    order.sort_by_key(|&number| !buffers[number].lasts);
    let mut offsets = vec![0; buffers.len()];
    for (at, &number) in order.iter().enumerate() {
        let buffer = &buffers[number];
        let apart = order[..at].iter().filter(|&&other| {
            let it = &buffers[other];
            let disjoint = it.last < buffer.first || buffer.last < it.first;
            !disjoint || meet(number, other)
        });
        let mut taken: Vec<(i64, i64)> = apart
            .map(|&other| (offsets[other], offsets[other] + buffers[other].bytes))
            .collect();
        taken.sort_unstable();
        let align = buffer.align.max(align.into()).cast_unsigned();
        let mut offset = 0;
        for (start, end) in taken {
            if offset + buffer.bytes <= start {
                break;
            }
            offset = offset.max(end.cast_unsigned().next_multiple_of(align).cast_signed());
        }
        offsets[number] = offset;
    }
    offsets
}

fn end(buffers: &[Buffer], offsets: &[i64]) -> i64 {
    let ends = buffers.iter().zip(offsets).map(|(it, at)| at + it.bytes);
    ends.max().unwrap_or(0)
}

fn too_large(func: &Func, usage: &Usage, target: &Target, bytes: i64) -> Diagnostics {
    let limit = target.gpu.shared_bytes;
    let message =
        format!("the kernel takes {bytes} bytes of shared memory, expected at most {limit}");
    let mut largest: Vec<&Buffer> = usage.buffers.iter().collect();
    largest.sort_by_key(|it| std::cmp::Reverse(it.bytes));
    let loc = |it: &Buffer| func.inst(it.alloc).loc.clone();
    let first = largest.first().map_or_else(Loc::none, |it| loc(it));
    let named = largest.iter().take(NAMED);
    let named: Vec<String> = named
        .map(|it| format!("{} at {}", it.bytes, loc(it)))
        .collect();
    Diagnostic::new(first, message)
        .note(format!("the largest buffers take {}", named.join(", ")))
        .note("use smaller tiles or fewer stages")
        .into()
}

/// Puts a barrier before each of these instructions.
fn wait_before(func: &mut Func, region: Region, waiting: &BTreeSet<Inst>) {
    let mut insts = Vec::new();
    for inst in func.region(region).insts.clone() {
        if waiting.contains(&inst) {
            let loc = func.inst(inst).loc.clone();
            insts.push(func.add_inst(Op::Barrier(op::Barrier {}), &[], loc));
        }
        insts.push(inst);
        for inner in func.op(inst).regions() {
            wait_before(func, inner, waiting);
        }
    }
    func.region_mut(region).insts = insts;
}
