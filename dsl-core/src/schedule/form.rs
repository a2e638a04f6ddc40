//! What each op asks of the layouts of its tiles: the one statement of it, by which conversions are placed
//! and placed functions are proven.

use std::rc::Rc;

use crate::ir::op::{Control, ScheduleOp, ShapeOp, SlotOp};
use crate::ir::operand::{group_sum, is_multiplied_in_fragments};
use crate::ir::{DType, Func, Inst, Region, Value, op};
use crate::layout::access::{Highest, access_layout};
use crate::layout::fragment::{Fragments, fragments};
use crate::layout::group::groups;
use crate::layout::reduction::{Division, ReductionSteps};
use crate::layout::scan::scan_steps;
use crate::layout::sorting::sort_steps;
use crate::layout::{LayoutError, LinearLayout};
use crate::semantics::reduction::evaluation_order;
use crate::target::LANE_BITS;

/// A layout of a tile, or that of scalars.
pub(super) type Place = Rc<LinearLayout>;

/// Gives the layouts of values.
pub(super) type Of<'a> = dyn FnMut(Value) -> Result<Place, LayoutError> + 'a;

/// The layouts around an instruction. Those of scalars, and of operands that are no numbers, say nothing.
#[derive(Debug, Default)]
pub(super) struct Form {
    /// Of the operands, in the order of the text form.
    pub(super) operands: Vec<Place>,
    pub(super) results: Vec<Place>,
    /// For each region the layouts of its parameters, and of what it yields.
    pub(super) regions: Vec<(Vec<Place>, Vec<Place>)>,
}

/// A layout for a tile that nothing constrains.
pub(super) fn plain(dim_bits: &[u32], warp_bits: u32) -> Place {
    let order: Vec<usize> = (0..dim_bits.len()).rev().collect();
    Rc::new(access_layout(
        dim_bits,
        &order,
        0,
        warp_bits,
        Highest::Warps,
    ))
}

/// The layout of scalars: every lane has the one element.
pub(super) fn of_scalars(warp_bits: u32) -> Place {
    let layout = LinearLayout::replicated(Vec::new(), LANE_BITS, warp_bits);
    Rc::new(layout.expect("broken invariant: a scalar is small enough for a layout"))
}

/// What an instruction asks, where `of` gives the layouts that its operands have for free and those stated
/// of its results.
///
/// An elementwise op, a load or a prefix of a scan has its operands where its result is; a store has them
/// where the value is. A product by tensor cores has all its tiles in
/// fragments, or its result as groups of warps deal it, and its operands anywhere. A reduction or a sort takes its first source as it lies, unless that mixes index
/// bits of the axis with others, and its steps say where the result is. What control flow hands on is
/// where its results are.
pub(super) fn form(func: &Func, inst: Inst, of: &mut Of<'_>) -> Result<Form, LayoutError> {
    let data = func.inst(inst);
    let count = data.op.operands().len();
    let scalar = || of_scalars(func.warps.trailing_zeros());
    let results = data.results.iter().map(|&result| of(result));
    let results: Vec<Place> = results.collect::<Result<_, _>>()?;
    let everywhere = |place: Place| vec![place; count];
    let Some(op) = data.op.schedule() else {
        return Ok(Form::default());
    };
    let operands = match op {
        ScheduleOp::Reduce(op) => return reduction(func, op, of).map(|it| it.of_op(func, inst)),
        ScheduleOp::Sort(op) => return sort(op, of).map(|it| it.of_op(func, inst)),
        ScheduleOp::Scan(op) => return scan(op, &results[0]).map(|it| it.of_op(func, inst)),
        ScheduleOp::ShapeOp(ShapeOp::Convert(op)) => vec![of(op.x)?],
        ScheduleOp::ShapeOp(op) => {
            let x = op.x();
            let map = op.map(&func.ty(x).shape, &func.ty(data.results[0]).shape);
            vec![Rc::new(map.push(&results[0])?.0)]
        }
        ScheduleOp::SlotOp(op) => return of_slot(func, op, results, (count, of)),
        ScheduleOp::OrderOp(_) => everywhere(results.first().map_or_else(scalar, Rc::clone)),
        ScheduleOp::Elementwise(_) | ScheduleOp::Load(_) => everywhere(Rc::clone(&results[0])),
        ScheduleOp::AtomicFetch(_) => everywhere(Rc::clone(&results[0])),
        ScheduleOp::Store(op) => everywhere(of(op.value)?),
        ScheduleOp::StoreBox(op) => everywhere(of(op.value)?),
        ScheduleOp::AtomicReduce(op) => everywhere(of(op.value)?),
        ScheduleOp::Assert(op) => everywhere(of(op.condition)?),
        ScheduleOp::Histogram(op) => everywhere(of(op.x)?),
        ScheduleOp::Dot(op) => match is_of_fragments(func, op, &results[0]) {
            true => return Ok(tensor_dot(func, op)),
            false => vec![of(op.a)?, of(op.b)?, Rc::clone(&results[0])],
        },
        ScheduleOp::Gather(op) => vec![of(op.x)?, Rc::clone(&results[0])],
        ScheduleOp::For(_) => [vec![scalar(); 2], results.clone()].concat(),
        ScheduleOp::While(_) => results.clone(),
        ScheduleOp::If(_) | ScheduleOp::Splat(_) | ScheduleOp::LoadBox(_) => everywhere(scalar()),
        // The owner of its region says where what a `yield` hands on is.
        ScheduleOp::Yield(_) | ScheduleOp::Constant(_) | ScheduleOp::Arange(_) => Vec::new(),
        ScheduleOp::ProgramId(_) | ScheduleOp::NumPrograms(_) => Vec::new(),
    };
    let first = || [vec![scalar()], results.clone()].concat();
    let same = || results.clone();
    let regions = match data.op.control() {
        Some(Control::For(_)) => vec![(first(), same())],
        Some(Control::While(_)) => vec![(same(), first()), (same(), same())],
        Some(Control::If(_)) => vec![(Vec::new(), same()); 2],
        None => Vec::new(),
    };
    Ok(Form {
        operands,
        results,
        regions,
    })
}

/// What an op of slots asks, of so many operands.
fn of_slot(
    func: &Func,
    op: SlotOp<'_>,
    results: Vec<Place>,
    (count, of): (usize, &mut Of<'_>),
) -> Result<Form, LayoutError> {
    let scalar = || of_scalars(func.warps.trailing_zeros());
    let place = match op {
        SlotOp::Buffer(_) | SlotOp::SlotLoad(_) => scalar(),
        SlotOp::CopyBox(_) | SlotOp::WaitBox(_) | SlotOp::ReleaseSlot(_) => scalar(),
        SlotOp::CopySlot(_) | SlotOp::WaitSlots(_) | SlotOp::WaitWritten(_) => scalar(),
        SlotOp::CopyLanes(op) => of(op.offsets)?,
        SlotOp::CopyRun(op) => of(op.offsets)?,
        SlotOp::CopyRow(op) => of(op.offsets)?,
        SlotOp::WaitRow(_) => scalar(),
        SlotOp::RowLoad(_) => Rc::clone(&results[0]),
        SlotOp::SlotStore(op) => of(op.value)?,
        SlotOp::DotSlots(op) => return Ok(product_of_slots(func, op, results, count)),
    };
    Ok(Form {
        operands: vec![place; count],
        results,
        regions: Vec::new(),
    })
}

/// Log2 of the rows, the columns and the products of a matrix product, a batch aside.
pub(super) fn product_bits(func: &Func, a: Value, b: Value) -> [u32; 3] {
    let extent = |value: Value, axis: usize| {
        let shape = func.ty(value).shape;
        shape.extent(shape.rank() - axis).ilog2()
    };
    [extent(a, 2), extent(b, 1), extent(a, 1)]
}

/// How so many warps would multiply fragments of a matrix product, or of a batch of them.
pub(crate) fn product_fragments(func: &Func, op: &op::Dot, warp_bits: u32) -> Fragments {
    let shape = func.ty(op.a).shape;
    let batch = (shape.rank() > 2).then(|| shape.extent(0).ilog2());
    let bits = product_bits(func, op.a, op.b);
    fragments(operand(func, op), batch, bits, warp_bits)
}

/// Whether warps multiply fragments of their own for a product whose result lies here.
fn is_of_fragments(func: &Func, op: &op::Dot, result: &LinearLayout) -> bool {
    is_multiplied_in_fragments(func, op) && !is_of_groups(func, op, result)
}

/// The type of the operands of a product.
fn operand(func: &Func, op: &op::Dot) -> DType {
    let dtype = func.ty(op.a).dtype();
    dtype.expect("broken invariant: a verified product is of numbers")
}

/// Whether a product whose result lies here is one of groups of warps, with operands in shared memory.
pub(super) fn is_of_groups(func: &Func, op: &op::Dot, result: &LinearLayout) -> bool {
    let bits = product_bits(func, op.a, op.b);
    let dtype = operand(func, op);
    let found = groups(bits, func.warps.trailing_zeros(), dtype);
    let adds = group_sum(op.precision, dtype).is_some();
    adds && found.is_some_and(|found| found.layout == *result)
}

/// A product by groups of warps: sums stay where they are, and what lanes hold of `a` is as instructions take it.
fn product_of_slots(func: &Func, op: &op::DotSlots, results: Vec<Place>, operands: usize) -> Form {
    let mut operands = vec![Rc::clone(&results[0]); operands];
    if let Some(held) = held_operand(func, op.a, op.b).filter(|_| op.a_slot.is_none()) {
        operands[0] = Rc::new(held);
    }
    Form {
        operands,
        results,
        regions: Vec::new(),
    }
}

/// The layout in which groups of warps take `a` of a product with `b` from their lanes.
pub(super) fn held_operand(func: &Func, a: Value, b: Value) -> Option<LinearLayout> {
    let bits = product_bits(func, a, b);
    let dtype = func.ty(a).dtype()?;
    groups(bits, func.warps.trailing_zeros(), dtype).map(|found| found.held)
}

/// Each warp has its fragments of the operands, and of the result.
fn tensor_dot(func: &Func, op: &op::Dot) -> Form {
    let found = product_fragments(func, op, func.warps.trailing_zeros());
    let operands = found.layouts.map(Rc::new).to_vec();
    Form {
        results: vec![Rc::clone(&operands[2])],
        operands,
        regions: Vec::new(),
    }
}

/// Where an op along an axis takes its sources, and where its results are.
struct Along {
    from: Place,
    to: Place,
}

impl Along {
    fn of_op(self, func: &Func, inst: Inst) -> Form {
        let data = func.inst(inst);
        let scalar = of_scalars(func.warps.trailing_zeros());
        let region = |region: Region| {
            let all = |values: &[Value]| vec![Rc::clone(&scalar); values.len()];
            (
                all(&func.region(region).parameters),
                all(func.yielded(region)),
            )
        };
        Form {
            operands: vec![self.from; data.op.operands().len()],
            results: vec![self.to; data.results.len()],
            regions: data.op.regions().into_iter().map(region).collect(),
        }
    }
}

fn sort(op: &op::Sort, of: &mut Of<'_>) -> Result<Along, LayoutError> {
    let first = of(op.sources[0])?;
    let (from, plan) = sort_steps(&first, op.axis.index(), op.count.trailing_zeros())?;
    let to = Rc::new(plan.result);
    Ok(Along { from, to })
}

fn scan(op: &op::Scan, stated: &Place) -> Result<Along, LayoutError> {
    let mut to = Rc::clone(stated);
    if scan_steps(&to, op.axis.index())?.is_none() {
        to = plain(to.dim_bits(), to.warp_bits());
    }
    let from = Rc::clone(&to);
    Ok(Along { from, to })
}

fn reduction(func: &Func, op: &op::Reduce, of: &mut Of<'_>) -> Result<Along, LayoutError> {
    let dtype = func.ty(op.sources[0]).dtype();
    let dtype = dtype.expect("broken invariant: a verified reduction is of numbers");
    let order = evaluation_order(func, op.order, op.combine, dtype);
    let mut from = of(op.sources[0])?;
    let mut plan = ReductionSteps::plan(&from, op.axis.index(), order, Division::Paying)?;
    if plan.is_none() {
        from = plain(from.dim_bits(), from.warp_bits());
        plan = ReductionSteps::plan(&from, op.axis.index(), order, Division::Paying)?;
    }
    let plan = plan.expect("broken invariant: a plain layout mixes no bits");
    let to = Rc::new(plan.result);
    Ok(Along { from, to })
}
