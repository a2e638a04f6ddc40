//! Which memory a traced kernel reaches through tiles of its tensor alone.
//!
//! A trace is made by code of the user, who may keep handles and join masks as he likes, so what a
//! tensor parameter promises is read off the finished trace.

use crate::entity::EntityMap;
use crate::ir::{BinaryOp, CompareOp, Func, Inst, MemoryAccess, Op, Value, op};

/// Takes the promise from each tensor with an access that does not keep it: its accesses are then
/// checked like those through pointers.
pub(super) fn keep_promised(func: &mut Func) {
    let definitions = func.definitions();
    let trace = Trace { func, definitions };
    let broken: Vec<usize> = func
        .all_insts()
        .into_iter()
        .filter_map(|inst| trace.breaks(inst))
        .collect();
    for parameter in broken {
        func.parameters[parameter].view = 0;
    }
}

struct Trace<'a> {
    func: &'a Func,
    definitions: EntityMap<Value, Option<Inst>>,
}

impl Trace<'_> {
    /// The tensor whose promise `inst` breaks.
    fn breaks(&self, inst: Inst) -> Option<usize> {
        let MemoryAccess {
            base,
            offsets,
            mask,
            ..
        } = self.func.op(inst).access()?;
        let parameter = self.func.parameter_index(base)?;
        let rank = self.func.parameters[parameter].view as usize;
        let kept = rank == 0 || mask.is_some_and(|mask| self.is_inside(parameter, offsets, mask));
        (!kept).then_some(parameter)
    }

    /// Whether `offsets` is the sum of an index for each axis times its stride, and `mask` holds only
    /// where each index is in its extent: such an element lies in the view, which lies in its buffer.
    fn is_inside(&self, parameter: usize, offsets: Value, mask: Value) -> bool {
        let rank = self.func.parameters[parameter].view as usize;
        let (mut terms, mut conditions) = (Vec::new(), Vec::new());
        self.split(BinaryOp::Add, offsets, &mut terms);
        self.split(BinaryOp::And, mask, &mut conditions);
        let arguments = self.func.arguments();
        terms.len() == rank
            && (0..rank).all(|axis| {
                let [extent, stride] =
                    [axis, rank + axis].map(|at| arguments.get(parameter + 1 + at));
                let (Some(&extent), Some(&stride)) = (extent, stride) else {
                    return false;
                };
                let index = terms.iter().find_map(|&term| self.index(term, stride));
                index.is_some_and(|index| self.holds(&conditions, index, extent))
            })
    }

    /// The operands of a tree of `wanted`, whatever was repeated on the way.
    fn split(&self, wanted: BinaryOp, value: Value, parts: &mut Vec<Value>) {
        match self.op(value) {
            Some(Op::Broadcast(op::Broadcast { x })) => self.split(wanted, *x, parts),
            Some(Op::Binary(op::Binary { op, lhs, rhs })) if *op == wanted => {
                self.split(wanted, *lhs, parts);
                self.split(wanted, *rhs, parts);
            }
            _ => parts.push(value),
        }
    }

    /// What is multiplied by `stride` in `term`.
    fn index(&self, term: Value, stride: Value) -> Option<Value> {
        let Some(Op::Binary(op::Binary {
            op: BinaryOp::Mul,
            lhs,
            rhs,
        })) = self.op(term)
        else {
            return None;
        };
        (self.repeated(*rhs) == stride).then_some(*lhs)
    }

    /// Whether the conditions hold only where `0 <= index < extent`.
    fn holds(&self, conditions: &[Value], index: Value, extent: Value) -> bool {
        let compares = |op: CompareOp, with: &dyn Fn(Value) -> bool| {
            conditions
                .iter()
                .any(|&condition| match self.op(condition) {
                    Some(Op::Compare(it)) => it.op == op && it.lhs == index && with(it.rhs),
                    _ => false,
                })
        };
        compares(CompareOp::Lt, &|rhs| self.repeated(rhs) == extent)
            && compares(CompareOp::Ge, &|rhs| match self.op(rhs) {
                Some(Op::Constant(it)) => it.value.bits == 0,
                _ => false,
            })
    }

    /// The scalar that fills `value`, or `value`.
    fn repeated(&self, value: Value) -> Value {
        match self.op(value) {
            Some(Op::Splat(op::Splat { x })) => *x,
            _ => value,
        }
    }

    fn op(&self, value: Value) -> Option<&Op> {
        self.definitions[value].map(|inst| self.func.op(inst))
    }
}

#[cfg(test)]
mod tests {
    use crate::lang::context;
    use crate::lang::kernel::KernelParameter;
    use crate::lang::tensor::{Tensor, TensorMut};
    use crate::text::parse;

    const TILE: &str =
        "func @f block (%x: ptr<f32> view=1, %extent: i64, %stride: i64, %y: ptr<f32> write) {
      %index = arange start=0, end=8 : tile<8xi64>
      %extents = splat %extent : tile<8xi64>
      %strides = splat %stride : tile<8xi64>
      %zero = constant value=i64(0) : tile<8xi64>
      %offsets = mul %index, %strides : tile<8xi64>
      %below = lt %index, %extents : tile<8xbool>
      %above = ge %index, %zero : tile<8xbool>
      %inside = and %above, %below : tile<8xbool>
      %more = and %inside, %above : tile<8xbool>
      %v = load %x, %offsets, mask=%inside : tile<8xf32>
      store %y, %index, %v
    }";

    fn promised(text: &str) -> u32 {
        let mut func = parse(text, "view.bir").expect("parses");
        super::keep_promised(&mut func);
        func.parameters[0].view
    }

    #[test]
    fn only_what_masks_each_axis_by_its_extent_is_promised() {
        assert_eq!(promised(TILE), 1);
        assert_eq!(promised(&TILE.replace("mask=%inside", "mask=%more")), 1);
        for (kept, lost) in [
            ("mask=%inside", "mask=%below"),
            ("mask=%inside", "mask=%above"),
            (", mask=%inside", ""),
            ("load %x, %offsets", "load %x, %index"),
            ("splat %stride", "splat %extent"),
            ("splat %extent", "splat %stride"),
            ("lt %index", "le %index"),
            ("i64(0)", "i64(-1)"),
            ("view=1", "view=2"),
        ] {
            assert_eq!(promised(&TILE.replacen(kept, lost, 1)), 0, "{lost}");
        }
    }

    #[test]
    fn tiles_of_tensors_keep_the_promise() {
        let mut func = context::trace("f", || {
            let x = <Tensor<f32, 2> as KernelParameter>::declare("x");
            let y = <TensorMut<f32, 3> as KernelParameter>::declare("y");
            let at = x.extent(0);
            let row = x.tile([4, 8]).at([at, x.stride(1)]).load();
            let row = row.reshape([4, 1, 8]);
            y.tile([4, 1, 8]).at_offset([at, at, at]).store(row);
        })
        .expect("is traced");
        super::keep_promised(&mut func);
        let views = func.parameters.iter().map(|parameter| parameter.view);
        assert_eq!(views.filter(|&view| view > 0).collect::<Vec<_>>(), [2, 3]);
    }
}
