//! Brings long rows to shared memory, each by one bulk copy.
//!
//! Where no vector divides the rows of an array, they begin at any element, and lanes load them element by element. What
//! waits then is the queue of loads. Bulk copies move pieces of 16 bytes, which a row has whole wherever it begins. Rows that are
//! to be read again come the same way.

use super::nest::run_once;
use super::reread::{BLOCKS, is_used_again, reread};
use super::runs::{Run, Runs};
use super::{MayEnd, PlacedFunc};
use crate::builder::Builder;
use crate::diagnostic::Diagnostics;
use crate::ir::{Element, Func, Inst, Op, Region, Stage, Type, Value, op};
use crate::passes::indices::Indices;
use crate::target::{Gpu, Target};

/// Whether two thread blocks of a multiprocessor have room for such a row in shared memory, beside what lanes exchange, and
/// have fewer registers than elements of it.
fn is_long(row: &Run, gpu: &Gpu) -> bool {
    let shared = i64::from(gpu.shared_bytes_of(BLOCKS)) - gpu.apart_bytes;
    row.bytes <= shared && 2 * row.room() > gpu.registers.into()
}

/// Makes `copy_row` and `row_load` of loads of long rows as long as what comes of it `fits` as many thread blocks of a
/// multiprocessor: `blocks`, or more where rows are read again.
///
/// # Errors
/// None that the function did not have before.
pub fn rows(
    func: PlacedFunc,
    target: &Target,
    may_end: MayEnd<'_>,
    blocks: u32,
    fits: &dyn Fn(&PlacedFunc, u32) -> bool,
) -> Result<PlacedFunc, Diagnostics> {
    let Some(least) = target.gpu.row_bytes else {
        return Ok(func);
    };
    let found = loads(&func, target, least);
    let mut func = func;
    for (region, load, row) in found {
        let is_long = is_long(&row, &target.gpu);
        if !is_long && !row.is_slow {
            continue;
        }
        let mut copied = func.clone().into_inner();
        bring(&mut copied, region, (load, &row), may_end);
        let copied = PlacedFunc::new(copied)?;
        let again = match is_long {
            true => reread(&copied)?.filter(|it| fits(it, blocks.max(BLOCKS))),
            false => None,
        };
        if let Some(again) = again {
            func = again;
        } else if row.is_slow && fits(&copied, blocks) {
            func = copied;
        }
    }
    Ok(func)
}

/// The loads of long rows that are to be read again, by thread blocks that share a multiprocessor.
pub(super) fn reread_rows(func: &Func, target: &Target) -> Vec<(Inst, Run)> {
    let Some(least) = target.gpu.row_bytes else {
        return Vec::new();
    };
    let found = loads(func, target, least).into_iter();
    let mut found: Vec<(Inst, Run)> = found.map(|(_, load, row)| (load, row)).collect();
    found.retain(|(load, row)| is_long(row, &target.gpu) && is_used_again(func, *load));
    found
}

/// The loads of rows of at least so many bytes, those among them that vectors divide too, in regions that run once at most.
fn loads(func: &Func, target: &Target, least: i64) -> Vec<(Region, Inst, Run)> {
    let indices = Indices::of(func);
    let runs = Runs::of(func, &indices, target);
    let insts = run_once(func, func.body()).into_iter();
    let found = insts.filter_map(|(region, inst)| Some((region, inst, runs.run(inst)?)));
    found.filter(|(.., row)| row.bytes >= least).collect()
}

/// Copies a row where it is loaded, and reads it where it is used first, or where the program may end before that.
fn bring(func: &mut Func, region: Region, (load, row): (Inst, &Run), may_end: MayEnd<'_>) {
    func.keep_sites();
    let mut insts = std::mem::take(&mut func.region_mut(region).insts);
    let at = insts.iter().position(|&inst| inst == load);
    let rest = insts.split_off(at.unwrap_or(insts.len()));
    func.region_mut(region).insts = insts;
    let Op::Load(loads) = func.op(load).clone() else {
        return;
    };
    let (row, copy) = copied(func, region, (load, row), &loads);
    func.inst_mut(copy).site = func.inst_mut(load).site.take();
    let loaded = func.inst(load).results[0];
    let waits = rest[1..].iter().position(|&inst| {
        let mut stops = false;
        let mut look = |inst: Inst| {
            let op = func.op(inst);
            stops |= may_end(op) || op.operands().contains(&loaded);
        };
        look(inst);
        for inner in func.op(inst).regions() {
            func.walk(inner, &mut look);
        }
        stops
    });
    let (before, behind) = rest[1..].split_at(waits.unwrap_or(rest.len() - 1));
    let loc = func.inst(load).loc.clone();
    let wait = func.add_inst(Op::WaitRow(op::WaitRow { row }), &[], loc);
    func.inst_mut(load).op = Op::RowLoad(op::RowLoad {
        row,
        at: None,
        mask: loads.mask,
        other: loads.other,
    });
    let insts = &mut func.region_mut(region).insts;
    insts.extend(before);
    insts.extend([wait, load]);
    insts.extend(behind);
}

/// Appends the copy of a row to a region; the row, and what starts to copy it.
fn copied(
    func: &mut Func,
    region: Region,
    (inst, row): (Inst, &Run),
    load: &op::Load,
) -> (Value, Inst) {
    let loc = func.inst(inst).loc.clone();
    let loaded = func.ty(func.inst(inst).results[0]);
    let element = loaded.dtype().map_or(loaded.element, Element::Row);
    let owned = std::mem::replace(func, Func::new("", Stage::Schedule));
    let mut builder = Builder::resume(owned);
    builder.set_loc(loc);
    builder.enter(region);
    let [start, count] = row.numbers(&mut builder);
    let copy = Op::CopyRow(op::CopyRow {
        base: load.base,
        offsets: load.offsets,
        mask: load.mask,
        start,
        count,
        room: row.room(),
    });
    let copy = builder.emit(copy, &[Type { element, ..loaded }]);
    let row = builder.results(copy)[0];
    *func = builder
        .finish()
        .expect("broken invariant: numbers of indices are of one type");
    (row, copy)
}
