//! Code for a device, and how it is run with arguments in host memory.

use std::fmt;

use exactile_core::backend::Argument;
use exactile_core::interp::memory::program_coordinates;
use exactile_core::interp::{self, Fault, FaultKind};
use exactile_core::ir::Grid;
use exactile_core::verify::BlockFunc;

use crate::error::{Error, Result};

/// What a device executes.
pub(crate) enum Code {
    /// Block IR as it was traced.
    Interpreter(BlockFunc),
}

impl Code {
    /// Runs all programs of the grid with arguments in host memory.
    pub(crate) fn run(&self, grid: Grid, arguments: &mut [Argument<'_>]) -> Result<()> {
        match self {
            Self::Interpreter(func) => {
                interp::block::run(func, grid, arguments).map_err(|fault| fault_error(fault, grid))
            }
        }
    }
}

/// What an interpreter found, as launches of compiled code report it.
pub(crate) fn fault_error(fault: Fault, grid: Grid) -> Error {
    match fault.kind {
        FaultKind::Launch(source) => Error::Launch {
            kernel: fault.kernel,
            source,
        },
        FaultKind::OutOfBounds {
            buffer,
            element,
            index,
            length,
        } => Error::OutOfBounds {
            kernel: fault.kernel,
            loc: fault.loc,
            argument: buffer,
            length,
            program: program_coordinates(grid, fault.program),
            element,
            offset: index,
        },
        FaultKind::SharedByPrograms { .. }
        | FaultKind::Race { .. }
        | FaultKind::Uninitialised { .. }
        | FaultKind::Unaligned { .. }
        | FaultKind::Divergent { .. }
        | FaultKind::NoSuchLane { .. }
        | FaultKind::Endless(_) => Error::Fault(fault),
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Interpreter(_) => "interpreter",
        })
    }
}
