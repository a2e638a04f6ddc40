//! Where a lane is: program, warp and lane indices.

use inkwell::IntPredicate;
use inkwell::values::IntValue;

use super::Emitter;
use crate::error::Result;

const AXES: [&str; 3] = ["x", "y", "z"];

impl<'c> Emitter<'_, 'c> {
    /// A special register; LLVM knows the range of each.
    pub(super) fn special_register(&self, name: &str) -> Result<IntValue<'c>> {
        let name = format!("llvm.nvvm.read.ptx.sreg.{name}");
        Ok(self.intrinsic_value(&name, &[], &[])?.into_int_value())
    }

    /// A special register of one axis as `i64`.
    pub(super) fn special_index(&self, name: &str, axis: usize) -> Result<IntValue<'c>> {
        let register = self.special_register(&format!("{name}.{}", AXES[axis]))?;
        let wide = self.context.i64_type();
        Ok(self.builder.build_int_z_extend(register, wide, "")?)
    }

    /// Splits a linear index into coordinates and ends thread blocks beyond the grid.
    pub(super) fn split_linear_grid(&mut self) -> Result<()> {
        let Some([x, y, z]) = self.hidden.extents else {
            return Ok(());
        };
        let builder = &self.builder;
        let row = self.special_index("ctaid", 1)?;
        let width = self.special_index("nctaid", 0)?;
        let column = self.special_index("ctaid", 0)?;
        let start = builder.build_int_mul(row, width, "")?;
        let linear = builder.build_int_add(start, column, "")?;
        let plane = builder.build_int_mul(x, y, "")?;
        let programs = builder.build_int_mul(plane, z, "")?;
        let inside = builder.build_int_compare(IntPredicate::ULT, linear, programs, "")?;
        let body = self.context.append_basic_block(self.kernel, "body");
        let beyond = self.context.append_basic_block(self.kernel, "beyond");
        builder.build_conditional_branch(inside, body, beyond)?;
        builder.position_at_end(beyond);
        builder.build_return(None)?;
        builder.position_at_end(body);
        let rows = builder.build_int_unsigned_div(linear, x, "")?;
        self.program = Some([
            builder.build_int_unsigned_rem(linear, x, "")?,
            builder.build_int_unsigned_rem(rows, y, "")?,
            builder.build_int_unsigned_div(rows, y, "")?,
        ]);
        Ok(())
    }

    /// The coordinate of this program along an axis (`i64`).
    pub(super) fn program_index(&self, axis: usize) -> Result<IntValue<'c>> {
        match self.program {
            Some(program) => Ok(program[axis]),
            None => self.special_index("ctaid", axis),
        }
    }

    /// The extent of the grid along an axis (`i64`).
    pub(super) fn grid_extent(&self, axis: usize) -> Result<IntValue<'c>> {
        match self.hidden.extents {
            Some(extents) => Ok(extents[axis]),
            None => self.special_index("nctaid", axis),
        }
    }

    /// The index of the lane in its warp: thread blocks have one axis.
    pub(super) fn lane_id(&self) -> Result<IntValue<'c>> {
        let thread = self.special_register("tid.x")?;
        Ok(self.builder.build_and(thread, self.int(32, 31), "")?)
    }

    /// The index of the warp in its thread block.
    pub(super) fn warp_id(&self) -> Result<IntValue<'c>> {
        let thread = self.special_register("tid.x")?;
        let distance = self.int(32, 5);
        Ok(self
            .builder
            .build_right_shift(thread, distance, false, "")?)
    }
}
