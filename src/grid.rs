//! The ways to write a launch grid.

use std::fmt::Display;

use exactile_core::ir::Grid;

use crate::error::{Error, Result};

/// A number of programs along up to three axes: `8`, `(8, 4)`, `(8, 4, 2)` or `[8, 4, 2]`.
pub trait IntoGrid {
    /// The extents, 1 for axes not given; too large or negative ones are an error.
    fn into_grid(self) -> Result<Grid>;
}

fn extent(value: impl TryInto<u32> + Display + Copy) -> Result<u32> {
    value.try_into().map_err(|_| {
        Error::Invalid(format!(
            "grid extent `{value}` is not between 0 and {}",
            u32::MAX
        ))
    })
}

macro_rules! grids {
    ($($Integer:ty)*) => { $(
        impl IntoGrid for $Integer {
            fn into_grid(self) -> Result<Grid> {
                Ok([extent(self)?, 1, 1])
            }
        }
        impl IntoGrid for [$Integer; 3] {
            fn into_grid(self) -> Result<Grid> {
                Ok([extent(self[0])?, extent(self[1])?, extent(self[2])?])
            }
        }
    )* };
}
grids!(i32 i64 isize u32 u64 usize);

impl<A, B> IntoGrid for (A, B)
where
    A: TryInto<u32> + Display + Copy,
    B: TryInto<u32> + Display + Copy,
{
    fn into_grid(self) -> Result<Grid> {
        Ok([extent(self.0)?, extent(self.1)?, 1])
    }
}

impl<A, B, C> IntoGrid for (A, B, C)
where
    A: TryInto<u32> + Display + Copy,
    B: TryInto<u32> + Display + Copy,
    C: TryInto<u32> + Display + Copy,
{
    fn into_grid(self) -> Result<Grid> {
        Ok([extent(self.0)?, extent(self.1)?, extent(self.2)?])
    }
}
