//! From the arguments and the grid of a launch to what the driver takes.

use exactile_core::ir::Grid;
use exactile_core::launch::{ArrayMap, ArrayNumbers, Input, Launch, Passed, Signature};
use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::grid::{GridMapping, MAX_GRID};
use crate::padded::{Copy, copies_for};
use crate::ptx::Ptx;

/// So many parameters are laid out without an allocation.
pub const FEW: usize = 32;

/// The greatest divisor of an address that launches which are [`alike`](Placed::of) may be asked for.
pub const ALIKE: u64 = 256;

/// So many thread blocks a multiprocessor has at least where programs share them: else they are spread.
const BLOCKS: u64 = 4;

/// The values of all parameters but maps, each in the low bytes of a word.
pub(crate) type Words = SmallVec<[u64; FEW]>;

/// The grid of thread blocks and the programs of each.
pub(crate) struct Marshalled {
    pub(crate) grid: Grid,
    pub(crate) programs: u32,
    /// The arrays whose boxes are copied.
    pub(crate) arrays: Vec<ArrayNumbers>,
    /// What is to take the place of some of them.
    pub(crate) copies: Vec<Copy>,
}

/// What is the same for all launches with one grid and arguments that are alike.
#[derive(Clone, Debug)]
pub struct Placed {
    /// Of thread blocks.
    pub(crate) grid: Grid,
    pub(crate) programs: u32,
    arguments: usize,
    /// The words that follow those of the arguments.
    hidden: SmallVec<[u64; 3]>,
}

impl Placed {
    /// That of a launch. Others are alike whose memories have as many bytes, the same accesses and, below [`ALIKE`], the same
    /// addresses, whose integers and Booleans are the same and whose floats are of the same types; they have what this one was
    /// checked for, but that memory which is written meets no other. Nothing where the launch has an error, or the code
    /// takes more of it than that.
    pub(crate) fn of(
        ptx: &Ptx,
        signature: &Signature,
        launch: &Launch<'_>,
        multiprocessors: u32,
    ) -> Option<Self> {
        let is_shared = |input: &Input| matches!(input, Input::Length(..) | Input::Grid(_));
        let mut divisors = ptx.parameters.iter().map(|(it, _)| it.divisor.max(1));
        let arguments = launch.arguments.len();
        let all_are = arguments + ptx.hidden.len() <= FEW
            && divisors.all(|it| it.is_power_of_two() && u64::from(it) <= ALIKE)
            && ptx.hidden.iter().all(is_shared)
            && ptx.maps.is_empty();
        let mut words = Words::new();
        let placed = all_are.then(|| marshal(ptx, signature, launch, multiprocessors, &mut words));
        let placed = placed?.ok()?;
        Some(Self {
            grid: placed.grid,
            programs: placed.programs,
            arguments,
            hidden: words[arguments..].into(),
        })
    }

    /// The words of all parameters, where those of the arguments are there.
    #[inline]
    pub(crate) fn of_all<'w>(&self, words: &'w mut [u64; FEW]) -> &'w mut [u64] {
        let behind = words.iter_mut().skip(self.arguments);
        for (word, &hidden) in behind.zip(&self.hidden) {
            *word = hidden;
        }
        &mut words[..self.arguments + self.hidden.len()]
    }
}

/// Checks the arguments against the kernel's parameters, whose signature is at hand, and lays them out for a device with so
/// many multiprocessors. The empty list of words is filled where it lies: moving it takes time.
pub(crate) fn marshal(
    ptx: &Ptx,
    signature: &Signature,
    launch: &Launch<'_>,
    multiprocessors: u32,
    words: &mut Words,
) -> Result<Marshalled> {
    let checked = signature.check(launch.arguments);
    checked.map_err(|error| Error::Arguments(error.to_string()))?;
    let programs = sharing(ptx.programs, ptx.grid(), launch.grid, multiprocessors);
    words.extend(launch.arguments.iter().map(|argument| match argument {
        Passed::Memory { address, .. } => *address,
        Passed::Scalar(literal) => literal.bits,
    }));
    for &input in ptx.hidden() {
        let word = launch.input(input);
        words.push(
            word.ok_or_else(|| lacks(ptx, &format!("needs {input:?}, which the launch lacks")))?,
        );
    }
    let array = |map: &ArrayMap| {
        let array = map.evaluate(launch);
        array.ok_or_else(|| lacks(ptx, "has an array that is none here"))
    };
    let arrays = ptx.maps.iter().map(array).collect::<Result<Vec<_>>>()?;
    Ok(Marshalled {
        grid: thread_blocks(ptx.grid(), launch.grid, programs)?,
        programs,
        copies: copies_for(ptx, &arrays),
        arrays,
    })
}

fn lacks(ptx: &Ptx, what: &str) -> Error {
    Error::Arguments(format!("kernel `{}` {what}", ptx.name()))
}

/// How many programs share a thread block: as many as may, if enough blocks remain and few are not full.
fn sharing(most: u32, mapping: GridMapping, grid: Grid, multiprocessors: u32) -> u32 {
    let all = grid
        .iter()
        .fold(1u64, |all, &it| all.saturating_mul(it.into()));
    let row = match mapping {
        GridMapping::Direct => u64::from(grid[0]),
        GridMapping::Linear => all,
    };
    let fits = |&programs: &u32| {
        let spare = row.next_multiple_of(programs.into()) - row;
        let enough = BLOCKS * u64::from(multiprocessors) * u64::from(programs);
        programs == 1 || (spare <= row / 8 && enough <= all)
    };
    let mut fewer = std::iter::successors(Some(most), |programs| Some(programs / 2));
    fewer.find(fits).unwrap_or(1)
}

fn thread_blocks(mapping: GridMapping, grid: Grid, programs: u32) -> Result<Grid> {
    if grid.contains(&0) {
        return Err(Error::Limit(format!(
            "grid {grid:?} is empty along an axis"
        )));
    }
    match mapping {
        GridMapping::Direct if GridMapping::of(grid) == mapping => {
            Ok([grid[0].div_ceil(programs), grid[1], grid[2]])
        }
        GridMapping::Direct => Err(Error::Limit(format!(
            "grid {grid:?} exceeds {MAX_GRID:?} and is not linearised"
        ))),
        GridMapping::Linear => {
            let all = grid.iter().try_fold(1u64, |product, &extent| {
                product.checked_mul(u64::from(extent))
            });
            let blocks = all.map(|all| all.div_ceil(u64::from(programs)));
            let width = blocks.map(|blocks| blocks.min(u64::from(MAX_GRID[0])));
            let rows = blocks
                .zip(width)
                .map(|(blocks, width)| blocks.div_ceil(width));
            match (width, rows) {
                (Some(width), Some(rows)) if rows <= u64::from(MAX_GRID[1]) => {
                    Ok([width as u32, rows as u32, 1])
                }
                _ => Err(Error::Limit(format!("grid {grid:?} has too many programs"))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_share_blocks_where_enough_remain() {
        let sharing = |most, grid, x| sharing(most, grid, x, 132);
        // Four blocks a multiprocessor remain.
        for (programs, expected) in [(4224, 8), (4223, 4), (2112, 4), (1056, 2), (528, 1), (1, 1)] {
            for mapping in [GridMapping::Direct, GridMapping::Linear] {
                assert_eq!(
                    sharing(8, mapping, [programs, 1, 1]),
                    expected,
                    "{programs}"
                );
            }
        }
        assert_eq!(sharing(1, GridMapping::Direct, [1 << 20, 1, 1]), 1);
        // At most one place of eight may be left over along the axis that programs are counted by.
        for (x, expected) in [
            (1, 1),
            (2, 2),
            (3, 1),
            (7, 1),
            (8, 8),
            (9, 2),
            (15, 8),
            (65, 8),
        ] {
            assert_eq!(
                sharing(8, GridMapping::Direct, [x, 1 << 14, 1]),
                expected,
                "{x}"
            );
            assert_eq!(sharing(8, GridMapping::Linear, [x, 1 << 14, 1]), 8, "{x}");
        }
    }

    #[test]
    fn every_program_has_a_place_in_a_block() {
        for (mapping, grid, expected) in [
            (GridMapping::Direct, [17, 3, 2], [3, 3, 2]),
            (GridMapping::Direct, [16, 3, 2], [2, 3, 2]),
            (GridMapping::Linear, [17, 3, 2], [13, 1, 1]),
        ] {
            assert_eq!(thread_blocks(mapping, grid, 8).expect("fits"), expected);
        }
    }

    #[test]
    fn grids_are_split_within_the_limits() {
        let linear = |grid| thread_blocks(GridMapping::Linear, grid, 1);
        assert_eq!(linear([2, 70000, 3]).expect("fits"), [420_000, 1, 1]);
        let [width, rows, 1] = linear([u32::MAX, 5, 1]).expect("fits") else {
            panic!("a third axis");
        };
        assert!(width <= MAX_GRID[0] && rows <= MAX_GRID[1]);
        assert!(u64::from(width) * u64::from(rows) >= 5 * u64::from(u32::MAX));
        assert!(linear([u32::MAX, u32::MAX, u32::MAX]).is_err());
        let message = linear([1, 0, 1]).expect_err("is empty").to_string();
        assert!(
            message.contains("grid [1, 0, 1] is empty along an axis"),
            "{message}"
        );
        let direct = |grid| thread_blocks(GridMapping::Direct, grid, 1);
        assert_eq!(direct([7, 65535, 1]).expect("fits"), [7, 65535, 1]);
        let message = direct([1, 65536, 1]).expect_err("too tall").to_string();
        assert!(message.contains("[1, 65536, 1]"), "{message}");
        assert!(message.contains("and is not linearised"), "{message}");
    }
}
