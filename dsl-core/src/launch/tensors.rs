//! Whether the tensors of a kernel lie in the memory that a launch gives them: then no access to a tile, which
//! is masked by the extents, needs a check of its own.

use super::{Input, Launch, LaunchExpression};
use crate::ir::{Func, Op, Value};

/// A condition on the arguments of a launch: each tensor ends in the memory that it begins.
#[derive(Clone, Debug, Default)]
pub struct Inside {
    tensors: Vec<Tensor>,
}

#[derive(Clone, Debug)]
struct Tensor {
    /// Elements of the memory.
    length: Input,
    parameter: usize,
    /// Where the first element is, if not where the memory begins.
    start: Option<LaunchExpression>,
    /// The extent and the stride of each axis.
    axes: Vec<[LaunchExpression; 2]>,
}

impl Inside {
    /// The tensors of a function, of memory that is reached through tiles of them alone, and whose beginnings, extents
    /// and strides the launch decides.
    #[must_use]
    pub fn of(func: &Func) -> Self {
        let definitions = func.definitions();
        let mut tensors = Vec::new();
        let mut reached_otherwise = Vec::new();
        for inst in func.all_insts() {
            let op = func.op(inst);
            let read = |&value: &Value| LaunchExpression::of(func, &definitions, value);
            for base in op.operands() {
                let Some((parameter, (dtype, _))) =
                    func.parameter_index(base).zip(func.ty(base).pointee())
                else {
                    continue;
                };
                let tensor = if let Op::Tensor(op) = op {
                    let axes = op.extents.iter().zip(&op.strides);
                    let axes = axes.map(|(extent, stride)| Some([read(extent)?, read(stride)?]));
                    let start = op.offset.as_ref().map(read);
                    axes.collect::<Option<_>>()
                        .zip(start.map_or(Some(None), |it| it.map(Some)))
                } else {
                    None
                };
                match tensor {
                    Some((axes, start)) => tensors.push(Tensor {
                        length: Input::Length(parameter, dtype),
                        parameter,
                        start,
                        axes,
                    }),
                    None => reached_otherwise.push(parameter),
                }
            }
        }
        tensors.retain(|tensor| !reached_otherwise.contains(&tensor.parameter));
        Self { tensors }
    }

    /// Whether memory is reached through these tensors alone.
    #[must_use]
    pub fn covers(&self, parameter: usize) -> bool {
        let mut tensors = self.tensors.iter();
        tensors.any(|tensor| tensor.parameter == parameter)
    }

    /// Whether it holds for a launch.
    #[must_use]
    pub fn holds(&self, launch: &Launch<'_>) -> bool {
        let holds = |tensor: &Tensor| tensor.is_inside(launch) == Some(true);
        self.tensors.iter().all(holds)
    }
}

impl Tensor {
    /// Nothing where a number is missing or an end of the tensor is beyond all memory.
    fn is_inside(&self, launch: &Launch<'_>) -> Option<bool> {
        let start = match &self.start {
            None => 0,
            Some(start) => i64::try_from(start.evaluate(launch)?).ok()?,
        };
        let (mut low, mut high) = (start, start);
        let mut is_empty = false;
        for axis in &self.axes {
            let [extent, stride] = axis;
            let extent = i64::try_from(extent.evaluate(launch)?).ok()?;
            let stride = i64::try_from(stride.evaluate(launch)?).ok()?;
            is_empty |= extent <= 0;
            let steps = extent.saturating_sub(1).max(0);
            let reach = steps.checked_mul(stride)?;
            match reach < 0 {
                true => low = low.checked_add(reach)?,
                false => high = high.checked_add(reach)?,
            }
        }
        let length = launch.input(self.length)?;
        Some(is_empty || (low >= 0 && high.cast_unsigned() < length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Access, DType, Literal};
    use crate::launch::Passed;
    use crate::text::parse;

    const TILE: &str =
        "func @f block (%x: ptr<f32>, %extent: i64, %stride: i64, %y: ptr<f32> write) {
      %two = constant value=i64(2) : i64
      %rows = mul %extent, %two : i64
      %index = arange start=0, end=8 : tile<8xi64>
      %t = tensor %x, [%rows, %two], [%stride, %two] : tensor<f32, 2>
      %v = tile_load %t, [%stride, %two] : tile<4x8xf32>
      %z = constant value=f32(0) : tile<8xf32>
      store %y, %index, %z
    }";

    fn holds(text: &str, extent: i64, stride: i64) -> bool {
        let inside = Inside::of(&parse(text, "tensor.bir").expect("parses"));
        assert!(inside.covers(0) && !inside.covers(3));
        let memory = Passed::Memory {
            address: 0,
            bytes: 4 * 31,
            access: Access::Read,
        };
        let number =
            |number: i64| Passed::Scalar(Literal::from_bits(DType::I64, number.cast_unsigned()));
        let arguments = [memory, number(extent), number(stride), memory];
        inside.holds(&Launch::new([1, 1, 1], &arguments))
    }

    /// The last element is `(2 * extent - 1) * stride + 2`.
    #[test]
    fn the_last_element_decides() {
        for (extent, stride, expected) in [
            (4, 4, true),
            (4, 5, false),
            (1, 28, true),
            (1, 29, false),
            (0, 1 << 40, true),
            (-3, i64::MIN, true),
            (4, -1, false),
            (1, -1, false),
            (1, i64::MAX, false),
            // The kernel's own product wraps to 0: no element of the tensor is accessed.
            (i64::MIN, 7, true),
        ] {
            assert_eq!(holds(TILE, extent, stride), expected, "{extent} {stride}");
        }
    }

    /// The first element is number `extent`: where strides are below zero, the last one is the lowest.
    #[test]
    fn both_ends_decide() {
        let text = TILE.replacen("] : tensor", "], offset=%extent : tensor", 1);
        for (extent, stride, expected) in [
            (9, 1, true),
            (10, 1, false),
            (1, -1, true),
            (1, -2, false),
            (4, -1, false),
            (-1, 1, true),
            (i64::MAX, 1, false),
        ] {
            assert_eq!(holds(&text, extent, stride), expected, "{extent} {stride}");
        }
    }

    #[test]
    fn memory_that_is_reached_otherwise_is_not_covered() {
        for (before, after) in [
            ("store %y, %index", "store %x, %index"),
            ("%x, [%rows, %two]", "%x, [%rows, %loaded]"),
            (
                "[%stride, %two] : tensor",
                "[%stride, %two], offset=%loaded : tensor",
            ),
        ] {
            let loaded = "%loaded = load %x, %extent : i64\n %two = ";
            let text = TILE
                .replacen("%two = ", loaded, 1)
                .replacen("%x: ptr<f32>", "%x: ptr<i64> write", 1)
                .replacen("tensor<f32, 2>", "tensor<i64, 2>", 1);
            let text = text.replacen(before, after, 1);
            let func = parse(&text, "tensor.bir");
            let inside = Inside::of(&func.expect("parses"));
            assert!(!inside.covers(0), "{text}");
        }
    }
}
