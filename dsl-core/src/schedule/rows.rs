//! Brings long rows to shared memory, each by one bulk copy.
//!
//! Where no vector divides the rows of an array, they begin at any element, and lanes load them element by element. What
//! waits then is the queue of loads. Bulk copies move pieces of 16 bytes, which a row has whole wherever it begins. Rows that are
//! to be read again come the same way.

use super::reread::{BLOCKS, is_used_again, reread};
use super::{MayEnd, PlacedFunc};
use crate::builder::Builder;
use crate::diagnostic::Diagnostics;
use crate::entity::EntityMap;
use crate::ir::op::Control;
use crate::ir::operand::{PIECE, piece_bits};
use crate::ir::{
    Access, BinaryOp, CompareOp, DType, Element, Func, Inst, Op, Region, Stage, Type, Value, op,
};
use crate::passes::indices::Indices;
use crate::passes::linear::Linear;
use crate::target::{Gpu, Target};

/// Bytes that a bank of shared memory delivers: lanes that load no more of a row each are not made slower by reading it there.
const WORD: u32 = 4;

/// A load of a row.
struct Found {
    load: Inst,
    start: Linear,
    limits: Vec<Limit>,
    room: i64,
    /// The bytes of so many elements.
    bytes: i64,
    /// Whether lanes load it in words or less, and it begins anywhere.
    is_slow: bool,
}

impl Found {
    /// Whether two thread blocks of a multiprocessor have room for such a row in shared memory, beside what lanes exchange, and
    /// have fewer registers than elements of it.
    fn is_long(&self, gpu: &Gpu) -> bool {
        let shared = i64::from(gpu.shared_bytes_of(BLOCKS)) - gpu.apart_bytes;
        self.bytes <= shared && 2 * self.room > gpu.registers.into()
    }
}

/// What a mask says: the numbers from `origin` on are below `bound`.
struct Limit {
    origin: Linear,
    bound: Linear,
    /// How many of them may be.
    most: i64,
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
    let found = Known::of(&func, target).loads(least);
    let mut func = func;
    for (region, found) in found {
        let is_long = found.is_long(&target.gpu);
        if !is_long && !found.is_slow {
            continue;
        }
        let mut copied = func.clone().into_inner();
        bring(&mut copied, region, &found, may_end);
        let copied = PlacedFunc::new(copied)?;
        let again = match is_long {
            true => reread(&copied)?.filter(|it| fits(it, blocks.max(BLOCKS))),
            false => None,
        };
        if let Some(again) = again {
            func = again;
        } else if found.is_slow && fits(&copied, blocks) {
            func = copied;
        }
    }
    Ok(func)
}

/// Whether a function has a long row that is to be read again, by thread blocks that share a multiprocessor.
pub(super) fn rereads(func: &Func, target: &Target) -> bool {
    let Some(least) = target.gpu.row_bytes else {
        return false;
    };
    let mut found = Known::of(func, target).loads(least).into_iter();
    found.any(|(_, found)| found.is_long(&target.gpu) && is_used_again(func, found.load))
}

/// Whether the first element of a row with these offsets begins a piece of 16 bytes, as its array does.
pub(crate) fn begins_a_piece(func: &Func, indices: &Indices, offsets: Value, dtype: DType) -> bool {
    let (shape, piece) = (func.ty(offsets).shape, piece_bits(dtype));
    let mut axes = (0..shape.rank()).filter(|&axis| shape.extent(axis) > 1);
    axes.all(|axis| indices.fact(offsets).axis(axis).divisor_of_runs(piece) >= piece)
}

/// The regions that run once at most, each with its instructions.
fn once(func: &Func) -> Vec<(Region, Inst)> {
    let mut found = Vec::new();
    let mut pending = vec![func.body()];
    while let Some(region) = pending.pop() {
        for &inst in &func.region(region).insts {
            found.push((region, inst));
            if let Some(Control::If(op)) = func.op(inst).control() {
                pending.extend([op.on_true, op.on_false]);
            }
        }
    }
    found
}

/// What is known of a function.
struct Known<'a> {
    func: &'a Func,
    target: &'a Target,
    definitions: EntityMap<Value, Option<Inst>>,
    indices: Indices,
}

impl<'a> Known<'a> {
    fn of(func: &'a Func, target: &'a Target) -> Self {
        Self {
            func,
            target,
            definitions: func.definitions(),
            indices: Indices::of(func),
        }
    }

    /// The loads of rows of at least so many bytes, those among them that vectors divide too.
    fn loads(&self, least: i64) -> Vec<(Region, Found)> {
        let insts = once(self.func).into_iter();
        let found = insts.filter_map(|(region, inst)| Some((region, self.row(inst)?)));
        found.filter(|(_, found)| found.bytes >= least).collect()
    }

    /// The row that an instruction loads.
    fn row(&self, load: Inst) -> Option<Found> {
        let Op::Load(op) = self.func.op(load) else {
            return None;
        };
        let parameter = &self.func.parameters[self.func.parameter_index(op.base)?];
        let only_read = parameter.access == Access::Read && op.cache.is_none();
        if !only_read || !parameter.divisor.is_multiple_of(PIECE) {
            return None;
        }
        let axis = self.counts(op.offsets)?;
        let (dtype, _) = self.func.ty(op.base).pointee()?;
        let vector = op
            .access()
            .vector_bits(self.func, &self.indices, axis, self.target);
        let start = self.indices.origin(op.offsets)?;
        let begins_a_piece = begins_a_piece(self.func, &self.indices, op.offsets, dtype);
        if !self.are_indices(&start) {
            return None;
        }
        let limits = op
            .mask
            .map_or_else(|| Some(Vec::new()), |mask| self.limits(mask));
        let limits = limits?;
        let elements = self.func.ty(op.offsets).shape.elements() as i64;
        let most = limits.iter().map(|limit| limit.most);
        let room = most.fold(elements, i64::min).max(1);
        Some(Found {
            load,
            start,
            room,
            bytes: room * i64::from(dtype.bytes()),
            limits,
            is_slow: dtype.bytes() << vector <= WORD && !begins_a_piece,
        })
    }

    /// The axis along which numbers count up by one, where they are more than one along no other.
    fn counts(&self, numbers: Value) -> Option<usize> {
        let (shape, fact) = (self.func.ty(numbers).shape, self.indices.fact(numbers));
        let mut long = (0..shape.rank()).filter(|&axis| shape.extent(axis) > 1);
        let (axis, None) = (long.next()?, long.next()) else {
            return None;
        };
        let step = fact.axis(axis).whole_step()?.constant();
        (step == Some(1)).then_some(axis)
    }

    fn are_indices(&self, sum: &Linear) -> bool {
        let mut symbols = sum.terms().flat_map(|(factors, _)| factors);
        symbols.all(|&it| self.func.ty(it) == Type::INDEX)
    }

    /// What a mask says that holds of the first elements and of no others.
    fn limits(&self, mask: Value) -> Option<Vec<Limit>> {
        let mut pending = vec![mask];
        let mut found = Vec::new();
        while let Some(mask) = pending.pop() {
            let inst = self.definitions[mask]?;
            let op = self.func.op(inst);
            if let Some((x, map)) = self.func.view(inst) {
                let same = self.func.ty(x).shape.elements() == self.func.ty(mask).shape.elements();
                pending.push(Some(x).filter(|_| same && map.is_identity())?);
            } else if let Op::Binary(op::Binary {
                op: BinaryOp::And,
                lhs,
                rhs,
            }) = *op
            {
                pending.extend([lhs, rhs]);
            } else if let Op::Compare(op::Compare { op, lhs, rhs }) = *op {
                found.push(match op {
                    CompareOp::Lt => self.limit(lhs, rhs)?,
                    CompareOp::Gt => self.limit(rhs, lhs)?,
                    CompareOp::Le | CompareOp::Ge | CompareOp::Eq | CompareOp::Ne => return None,
                });
            } else {
                return None;
            }
        }
        Some(found)
    }

    /// Numbers that count up from one that is not negative, so that none wraps, are below a bound.
    fn limit(&self, numbers: Value, bound: Value) -> Option<Limit> {
        self.counts(numbers)?;
        let wide = self.func.ty(numbers).dtype() == Some(DType::I64);
        let [least, most] = [numbers, bound].map(|it| self.indices.range(it));
        let least = least.filter(|range| wide && range.low >= 0)?.low;
        let most = most.map_or(i128::from(i64::MAX), |range| range.high);
        let origin = self.indices.origin(numbers)?;
        let bound = self.indices.uniform(bound)?;
        let told = self.are_indices(&origin) && self.are_indices(&bound);
        told.then(|| Limit {
            origin,
            bound,
            most: i64::try_from((most - least).max(0)).unwrap_or(i64::MAX),
        })
    }
}

/// Copies a row where it is loaded, and reads it where it is used first, or where the program may end before that.
fn bring(func: &mut Func, region: Region, found: &Found, may_end: MayEnd<'_>) {
    func.keep_sites();
    let mut insts = std::mem::take(&mut func.region_mut(region).insts);
    let at = insts.iter().position(|&inst| inst == found.load);
    let rest = insts.split_off(at.unwrap_or(insts.len()));
    func.region_mut(region).insts = insts;
    let Op::Load(load) = func.op(found.load).clone() else {
        return;
    };
    let (row, copy) = copied(func, region, found, &load);
    func.inst_mut(copy).site = func.inst_mut(found.load).site.take();
    let loaded = func.inst(found.load).results[0];
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
    let loc = func.inst(found.load).loc.clone();
    let wait = func.add_inst(Op::WaitRow(op::WaitRow { row }), &[], loc);
    func.inst_mut(found.load).op = Op::RowLoad(op::RowLoad {
        row,
        mask: load.mask,
        other: load.other,
    });
    let insts = &mut func.region_mut(region).insts;
    insts.extend(before);
    insts.extend([wait, found.load]);
    insts.extend(behind);
}

/// Appends the copy of a row to a region; the row, and what starts to copy it.
fn copied(func: &mut Func, region: Region, found: &Found, load: &op::Load) -> (Value, Inst) {
    let loc = func.inst(found.load).loc.clone();
    let loaded = func.ty(func.inst(found.load).results[0]);
    let element = loaded.dtype().map_or(loaded.element, Element::Row);
    let owned = std::mem::replace(func, Func::new("", Stage::Schedule));
    let mut builder = Builder::resume(owned);
    builder.set_loc(loc);
    builder.enter(region);
    let start = found.start.scalar(&mut builder);
    let mut count = builder.index(found.room);
    for limit in &found.limits {
        let [origin, bound] = [&limit.origin, &limit.bound].map(|sum| sum.scalar(&mut builder));
        let bound = builder.maximum(bound, origin);
        let below = builder.sub(bound, origin);
        count = builder.minimum(count, below);
    }
    let copy = Op::CopyRow(op::CopyRow {
        base: load.base,
        offsets: load.offsets,
        mask: load.mask,
        start,
        count,
        room: found.room,
    });
    let copy = builder.emit(copy, &[Type { element, ..loaded }]);
    let row = builder.results(copy)[0];
    *func = builder
        .finish()
        .expect("broken invariant: numbers of indices are of one type");
    (row, copy)
}
