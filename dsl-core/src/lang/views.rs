//! Which memory a traced kernel reaches through tiles of its tensor alone.
//!
//! A trace is made by code of the user, so what a tensor parameter promises is read off the finished trace.

use crate::ir::{Func, Op, Value};

/// Takes the promise from each tensor parameter that is used in another way than as the pointer of the tensor
/// with the extents and strides behind it: accesses to it are then checked like those through pointers.
pub(super) fn keep_promised(func: &mut Func) {
    for inst in func.all_insts() {
        for base in func.op(inst).operands() {
            let parameter = func.parameter_index(base);
            let kept = parameter.is_none_or(|parameter| keeps(func, func.op(inst), parameter));
            if let (false, Some(parameter)) = (kept, parameter) {
                func.parameters[parameter].view = 0;
            }
        }
    }
}

fn keeps(func: &Func, op: &Op, parameter: usize) -> bool {
    let rank = func.parameters[parameter].view as usize;
    let Op::Tensor(op) = op else {
        return rank == 0;
    };
    let scalars = op.extents.iter().chain(&op.strides);
    let scalars: Vec<Value> = scalars.copied().collect();
    let behind = func.arguments().get(parameter + 1..=parameter + 2 * rank);
    rank == 0 || op.extents.len() == rank && behind == Some(&scalars)
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
      %t = tensor %x, [%extent], [%stride] : tensor<f32, 1>
      %v = tile_load %t, [%stride] : tile<8xf32>
      store %y, %index, %v
    }";

    fn promised(text: &str) -> u32 {
        let mut func = parse(text, "view.bir").expect("parses");
        super::keep_promised(&mut func);
        func.parameters[0].view
    }

    #[test]
    fn only_the_tensor_with_the_extents_and_strides_behind_it_is_promised() {
        assert_eq!(promised(TILE), 1);
        for (kept, lost) in [
            ("[%extent], [%stride]", "[%stride], [%stride]"),
            ("[%extent], [%stride]", "[%extent], [%extent]"),
            ("[%extent], [%stride]", "[%extent, %stride], []"),
            ("store %y, %index", "store %x, %index"),
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
