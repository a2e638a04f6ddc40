//! Where a lane is: program, warp and lane indices.

use inkwell::IntPredicate;
use inkwell::values::{IntValue, PointerValue};

use super::Emitter;
use crate::error::Result;
use crate::grid::GridMapping;
use crate::memory::element_address;

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

    /// Which of the programs of its thread block this one is (`i32`).
    pub(super) fn place(&self) -> Result<IntValue<'c>> {
        self.special_register("tid.y")
    }

    /// The part of shared memory that is this program's.
    pub(super) fn own_part(
        &self,
        memory: PointerValue<'c>,
        bytes: u32,
    ) -> Result<PointerValue<'c>> {
        if self.programs == 1 {
            return Ok(memory);
        }
        let (bytes, byte) = (self.int(32, i64::from(bytes)), self.context.i8_type());
        let start = self.builder.build_int_nuw_mul(self.place()?, bytes, "")?;
        let start = self
            .builder
            .build_int_z_extend(start, self.context.i64_type(), "")?;
        Ok(element_address(&self.builder, byte, memory, start)?)
    }

    /// The index of the program along the first axis. It fits 31 bits, as such an extent does, and LLVM must know:
    /// divisions of what may be longer take twice as many instructions.
    fn first_index(&self) -> Result<IntValue<'c>> {
        let mut index = self.special_register("ctaid.x")?;
        if self.programs > 1 {
            let count = self.special_register("ntid.y")?;
            let first = self.builder.build_int_nsw_mul(index, count, "")?;
            index = self.builder.build_int_nsw_add(first, self.place()?, "")?;
        }
        let wide = self.context.i64_type();
        Ok(self.builder.build_int_z_extend(index, wide, "")?)
    }

    /// The index of the program in a linear grid.
    fn linear(&self) -> Result<IntValue<'c>> {
        let row = self.special_index("ctaid", 1)?;
        let width = self.special_index("nctaid", 0)?;
        let column = self.special_index("ctaid", 0)?;
        let start = self.builder.build_int_mul(row, width, "")?;
        let block = self.builder.build_int_add(start, column, "")?;
        if self.programs == 1 {
            return Ok(block);
        }
        let count = self.special_index("ntid", 1)?;
        let first = self.builder.build_int_mul(block, count, "")?;
        let place = self
            .builder
            .build_int_z_extend(self.place()?, self.context.i64_type(), "")?;
        Ok(self.builder.build_int_add(first, place, "")?)
    }

    /// Finds the coordinates of the program where they are not those of its thread block, and ends programs beyond
    /// the grid. They take part in nothing: those of a block never meet.
    pub(super) fn find_program(&mut self) -> Result<()> {
        if self.programs == 1 && self.grid == GridMapping::Direct {
            return Ok(());
        }
        let builder = &self.builder;
        let x = self.grid_extent(0)?;
        let (index, end) = match self.grid {
            GridMapping::Direct => (self.first_index()?, x),
            GridMapping::Linear => {
                let plane = builder.build_int_mul(x, self.grid_extent(1)?, "")?;
                let end = builder.build_int_mul(plane, self.grid_extent(2)?, "")?;
                (self.linear()?, end)
            }
        };
        let inside = builder.build_int_compare(IntPredicate::ULT, index, end, "")?;
        let body = self.context.append_basic_block(self.kernel, "body");
        let beyond = self.context.append_basic_block(self.kernel, "beyond");
        builder.build_conditional_branch(inside, body, beyond)?;
        builder.position_at_end(beyond);
        builder.build_return(None)?;
        builder.position_at_end(body);
        self.program = Some(match self.grid {
            GridMapping::Direct => [
                index,
                self.special_index("ctaid", 1)?,
                self.special_index("ctaid", 2)?,
            ],
            GridMapping::Linear => {
                let y = self.grid_extent(1)?;
                let rows = builder.build_int_unsigned_div(index, x, "")?;
                [
                    builder.build_int_unsigned_rem(index, x, "")?,
                    builder.build_int_unsigned_rem(rows, y, "")?,
                    builder.build_int_unsigned_div(rows, y, "")?,
                ]
            }
        });
        Ok(())
    }

    /// The first extent of the grid, where [`Emitter::linear_program`] takes it: not where thread blocks are programs, or
    /// where they are counted along one axis.
    pub(super) fn extent_of_report(&self) -> Option<IntValue<'c>> {
        let direct = self.grid == GridMapping::Direct;
        self.hidden.extents[0].filter(|_| direct)
    }

    /// The linear index of the program, axis 0 fastest.
    pub(super) fn linear_program(&self, first: Option<IntValue<'c>>) -> Result<IntValue<'c>> {
        if self.programs > 1 && self.grid == GridMapping::Linear {
            return self.linear();
        }
        let builder = &self.builder;
        let mut linear = self.special_index("ctaid", 2)?;
        for axis in [1, 0] {
            let extent = match first.filter(|_| axis == 0) {
                Some(extent) => extent,
                None => self.special_index("nctaid", axis)?,
            };
            let start = builder.build_int_mul(linear, extent, "")?;
            let index = match axis {
                0 => self.first_index()?,
                _ => self.special_index("ctaid", axis)?,
            };
            linear = builder.build_int_add(start, index, "")?;
        }
        Ok(linear)
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
        match self.hidden.extents[axis] {
            Some(extent) => Ok(extent),
            None => self.special_index("nctaid", axis),
        }
    }

    /// The index of the lane in its warp: the warps of a program lie along the first axis of its thread block.
    pub(super) fn lane_id(&self) -> Result<IntValue<'c>> {
        let thread = self.special_register("tid.x")?;
        if self.func.warps == 1 {
            return Ok(thread);
        }
        Ok(self.builder.build_and(thread, self.int(32, 31), "")?)
    }

    /// The index of the warp in its program.
    pub(super) fn warp_id(&self) -> Result<IntValue<'c>> {
        if self.func.warps == 1 {
            return Ok(self.int(32, 0));
        }
        let thread = self.special_register("tid.x")?;
        let distance = self.int(32, 5);
        Ok(self
            .builder
            .build_right_shift(thread, distance, false, "")?)
    }
}
