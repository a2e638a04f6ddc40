//! What copies and tensor cores ask of the slots of shared memory that they touch, and atomics with results of their tiles:
//! the rules of layouts that no conversion brings about.

use super::form::{Place, product_bits};
use crate::diagnostic::{Diagnostic, Loc};
use crate::ir::index_map::dim_bits;
use crate::ir::operand::{PIECE_ROW_BITS, chunk_bits, group_sum};
use crate::ir::{Axis, DType, Func, Inst, Op, Shape, Value, op};
use crate::launch::inner_axis;
use crate::layout::LinearLayout;
use crate::layout::group::{
    Groups, Multiplied, box_axis, chunked_slot, groups, operand_axis, result_slot,
};
use crate::layout::slots::{SlotPlaces, in_order};
use crate::text::layout_text;

/// What to do about a box whose strides do not say which elements are neighbours.
const NEIGHBOURS: &str = "bulk copies move elements that are neighbours in memory: state the stride of their axis as a constant 1, or let \
                          lanes copy";

/// A rule that does not hold, at the instruction that the caller knows: what is wrong, and what to do about it.
fn wrong(message: impl Into<String>, note: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Loc::none(), message).note(note)
}

/// Checks the places around an instruction, where `place` gives those of values. Errors name no place in a file.
pub(super) fn check(
    func: &Func,
    inst: Inst,
    place: &dyn Fn(Value) -> Place,
) -> Result<(), Diagnostic> {
    let op = func.op(inst);
    if let Op::CopyBox(op) = op {
        boxed(func, "copy_box", op.buffer, &op.strides)?;
        of_rows(
            (func, &op.strides),
            &op.origin,
            op.along,
            func.ty(op.buffer).shape,
        )
    } else if let Op::CopySlot(op) = op {
        boxed(func, "copy_slot", op.buffer, &op.strides)
    } else if let Op::LoadBox(op) = op {
        loaded(func, op)?;
        let ty = func.ty(func.inst(inst).results[0]);
        of_rows((func, &op.strides), &op.origin, op.along, ty.shape)
    } else if let Op::StoreBox(op) = op {
        stored(func, op)
    } else if let Op::CopyLanes(op) = op {
        copied(&place(op.buffer), &place(op.offsets), op.count)
    } else if let Op::CopyRun(op) = op {
        run(&place(op.buffer))
    } else if let Op::SlotStore(op) = op {
        filled(&place(op.buffer))
    } else if let Op::SlotLoad(op) = op {
        read(
            func,
            op.buffer,
            Some(&place(func.inst(inst).results[0])),
            place,
        )
    } else if let Op::DotSlots(op) = op {
        multiplied(func, op, place)
    } else if let Op::AtomicFetch(_) = op {
        fetched(&place(func.inst(inst).results[0]))
    } else {
        Ok(())
    }
}

fn linear(func: &Func, buffer: Value) -> Option<(&LinearLayout, DType)> {
    let (dtype, _) = func.ty(buffer).buffer()?;
    Some((func.linear(func.layout(buffer)?), dtype))
}

/// A box is copied between memory and a slot whose chunks are along the axis that is contiguous in memory.
fn boxed(func: &Func, name: &str, buffer: Value, strides: &[Value]) -> Result<(), Diagnostic> {
    let Some((layout, dtype)) = linear(func, buffer) else {
        return Ok(());
    };
    let Some(contiguous) = inner_axis(func, strides) else {
        let message = format!("no stride of `{name}` is a constant 1");
        return Err(wrong(message, NEIGHBOURS));
    };
    if box_axis(layout, dtype) == Some(contiguous) {
        return Ok(());
    }
    let message = format!(
        "the slots of `{name}` are not in chunks of 128 bytes along axis {contiguous}, whose stride is 1"
    );
    let bits = layout.dim_bits();
    let note = match result_slot(bits, contiguous, dtype) {
        Some(asked) => format!("give the buffer the layout `{}`", layout_text(&asked)),
        None => too_few(bits, contiguous, dtype),
    };
    Err(wrong(message, note))
}

/// Parts of a box are along the axis that is not contiguous in memory, and have the rows among which pieces are exchanged.
fn of_rows(
    (func, strides): (&Func, &[Value]),
    origin: &[Value],
    along: Option<Axis>,
    shape: Shape,
) -> Result<(), Diagnostic> {
    let Some(along) = along.map(Axis::index) else {
        return Ok(());
    };
    let rows = shape.extent(along) * shape.rank() / origin.len();
    if inner_axis(func, strides) != Some(along) && rows >= 1 << PIECE_ROW_BITS {
        return Ok(());
    }
    let least = 1 << PIECE_ROW_BITS;
    let message = format!("a box has parts of {rows} elements along axis {along}");
    let note = format!(
        "bulk copies bring parts of {least} elements or more along the axis whose stride is no constant 1: take fewer parts, or let lanes copy"
    );
    Err(wrong(message, note))
}

/// Why no layout of such a shape has chunks along an axis.
fn too_few(bits: &[u32], inner: usize, dtype: DType) -> String {
    let shape: Vec<u64> = bits.iter().map(|&bits| 1 << bits).collect();
    format!(
        "a chunk has {} elements along axis {inner}, and 8 or more lie beside each other along the other of two axes, found {shape:?}: \
         take a larger tile, or let lanes copy",
        1 << chunk_bits(dtype)
    )
}

/// A bulk copy brings what is loaded as a box.
fn loaded(func: &Func, op: &op::LoadBox) -> Result<(), Diagnostic> {
    if let Some(name) = func.written(op.base) {
        let message = format!("`load_box` reads `{name}`, which the kernel may write");
        return Err(wrong(
            message,
            "use `load`, or leave out `write` at the parameter",
        ));
    }
    match inner_axis(func, &op.strides) {
        Some(_) => Ok(()),
        None => Err(wrong("no stride of `load_box` is a constant 1", NEIGHBOURS)),
    }
}

/// A tile that is stored as a box goes through a slot that has chunks.
fn stored(func: &Func, op: &op::StoreBox) -> Result<(), Diagnostic> {
    let ty = func.ty(op.value);
    let Some(inner) = inner_axis(func, &op.strides) else {
        return Err(wrong(
            "no stride of `store_box` is a constant 1",
            NEIGHBOURS,
        ));
    };
    let bits = dim_bits(&ty.shape);
    let dtype = ty
        .dtype()
        .expect("broken invariant: a verified box is of numbers");
    if result_slot(&bits, inner, dtype).is_some() {
        return Ok(());
    }
    let message =
        format!("`store_box` of `{ty}`, which fills no chunks of 128 bytes along axis {inner}");
    Err(wrong(message, too_few(&bits, inner, dtype)))
}

/// What a lane copies at once is together in the slot.
fn copied(slot: &LinearLayout, tile: &LinearLayout, count: i64) -> Result<(), Diagnostic> {
    if SlotPlaces::copied(slot, tile, count).is_some() {
        return Ok(());
    }
    let message =
        format!("the {count} elements that a lane copies at once are not together in the slot");
    let note = format!(
        "begin `register=` of the buffer's layout with {} indices of `register=` of that of the offsets, or take a smaller `count`",
        count.ilog2()
    );
    Err(wrong(message, note))
}

/// A run lies in its slot as in memory.
fn run(slot: &LinearLayout) -> Result<(), Diagnostic> {
    let asked = in_order(slot.dim_bits());
    if *slot == asked {
        return Ok(());
    }
    let message = "the slots of `copy_run` do not have elements in their order";
    let note = format!("give the buffer the layout `{}`", layout_text(&asked));
    Err(wrong(message, note))
}

/// Lanes store a tile to all places that a slot has of its elements.
fn filled(slot: &LinearLayout) -> Result<(), Diagnostic> {
    let mut columns = slot.register_columns().to_vec();
    columns.retain(|&column| column != 0);
    if columns.len() == slot.tile_bits() as usize {
        return Ok(());
    }
    let message = "the slot has places of elements that `slot_store` does not fill";
    let note =
        "leave out the indices in the buffer's layout that follow from others, or make them 0";
    Err(wrong(message, note))
}

/// A slot that has several places of an element is read in the layout in which lanes copy to it, so where they do.
fn read(
    func: &Func,
    buffer: Value,
    layout: Option<&LinearLayout>,
    place: &dyn Fn(Value) -> Place,
) -> Result<(), Diagnostic> {
    if !place(buffer).is_replicated() {
        return Ok(());
    }
    let mut insts = func.all_insts().into_iter();
    let elsewhere = insts.any(|inst| {
        let Op::CopyLanes(op) = func.op(inst) else {
            return false;
        };
        op.buffer == buffer && layout != Some(&*place(op.offsets))
    });
    if !elsewhere {
        return Ok(());
    }
    let message = "a slot has several places of an element, and is read in another layout than lanes copy to it";
    let note = "leave out the indices in the buffer's layout that follow from others, or read it in the layout of the copy and \
                `convert` that";
    Err(wrong(message, note))
}

/// How groups of warps share a product of slots.
pub(crate) fn groups_of(func: &Func, op: &op::DotSlots) -> Option<Groups> {
    let (dtype, _) = func.ty(op.b).buffer()?;
    group_sum(op.precision, dtype)?;
    let bits = product_bits(func, op.a, op.b);
    groups(bits, func.warps.trailing_zeros(), dtype)
}

/// Groups of warps can multiply, have the sums, and find the operands in chunks.
fn multiplied(
    func: &Func,
    op: &op::DotSlots,
    place: &dyn Fn(Value) -> Place,
) -> Result<(), Diagnostic> {
    let Some(found) = groups_of(func, op) else {
        let (a, b, warps) = (func.ty(op.a), func.ty(op.b), func.warps);
        let word = op.precision.word();
        let message = format!(
            "{warps} warps do not multiply `{a}` by `{b}` in groups of four with precision `{word}`"
        );
        let note = "take `dot`, another number of warps, or a tile of 64 rows and 8 columns or more with 128 bytes of products \
                    in each row";
        return Err(wrong(message, note));
    };
    if *place(op.accumulator) != found.layout {
        let note = format!("give them the layout `{}`", layout_text(&found.layout));
        let message = "the sums of `dot_slots` are not where groups of four warps have them";
        return Err(wrong(message, note));
    }
    let a = op.a_slot.map(|_| (op.a, "a", 1));
    for (buffer, name, products) in a.into_iter().chain([(op.b, "b", 0)]) {
        let Some((layout, dtype)) = linear(func, buffer) else {
            continue;
        };
        let of = Multiplied { dtype, products };
        if operand_axis(layout, of).is_some() {
            read(func, buffer, None, place)?;
            continue;
        }
        let bits = layout.dim_bits();
        let asked = chunked_slot(bits, products, dtype);
        let note = match asked {
            Some(asked) => format!("give the buffer the layout `{}`", layout_text(&asked)),
            None => too_few(bits, products, dtype),
        };
        let message =
            format!("operand `{name}` of `dot_slots` does not lie in chunks of 128 bytes");
        return Err(wrong(message, note));
    }
    Ok(())
}

/// Each element of an atomic with a result has one lane that combines it.
fn fetched(place: &LinearLayout) -> Result<(), Diagnostic> {
    if !place.is_replicated() {
        return Ok(());
    }
    let message = "several lanes have one element of `atomic_fetch`";
    let note = "state a layout in which each element has one place: a tile with as many elements as the program has lanes, or more, \
                has one";
    Err(wrong(message, note))
}
