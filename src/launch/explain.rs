//! Why launches failed, in the words of the source.

use exactile_core::diagnostic::Loc;
use exactile_core::interp::{Fault, FaultKind};
use exactile_core::ir::{Grid, program_coordinates};
use exactile_core::launch::{Input, Launch, LaunchError};
use exactile_core::target::BoundsError;

use super::launch_error;
use crate::code::{Accessed, Sites};
use crate::error::Error;

/// Why a launch failed, before it is put into the words of the source.
pub(super) enum Cause {
    /// Compiled code could not run, or found an access out of bounds.
    Launch(LaunchError),
    /// An interpreter stopped.
    Fault(Fault),
}

impl From<LaunchError> for Cause {
    fn from(error: LaunchError) -> Self {
        Self::Launch(error)
    }
}

impl From<Fault> for Cause {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl Cause {
    /// Whether a GPU could tell it only after the launch was queued.
    pub(super) fn is_found_by_programs(&self) -> bool {
        match self {
            Self::Launch(error) => matches!(error, LaunchError::OutOfBounds(_)),
            Self::Fault(fault) => !matches!(fault.kind, FaultKind::Launch(_)),
        }
    }

    pub(super) fn explain(self, name: &str, sites: &Sites, launch: &Launch<'_>) -> Error {
        match self {
            Self::Fault(fault) => fault_error(fault, launch.grid),
            Self::Launch(LaunchError::OutOfBounds(error)) => {
                out_of_bounds(name, sites, launch, error)
            }
            Self::Launch(source) => launch_error(name, source),
        }
    }
}

/// An access out of bounds or a failed assertion in the words of the source.
pub(crate) fn out_of_bounds(
    name: &str,
    sites: &Sites,
    launch: &Launch<'_>,
    error: BoundsError,
) -> Error {
    let site = sites.get(error.site);
    if let Some((loc, Accessed::Assertion(message))) = site {
        return Error::Assertion {
            kernel: name.to_string(),
            loc: loc.clone(),
            message: message.clone(),
            program: program_coordinates(launch.grid, error.program),
            element: error.element,
        };
    }
    let described = site.and_then(|(_, accessed)| match accessed {
        Accessed::Assertion(_) => None,
        Accessed::Axis(axis, extent) => {
            Some((format!("gather axis {}", axis.0), extent.cast_unsigned()))
        }
        Accessed::Memory {
            parameter,
            dtype,
            name,
        } => {
            let length = launch.input(Input::Length(*parameter, *dtype))?;
            Some((name.clone(), length))
        }
    });
    let (argument, length) = described.unwrap_or_default();
    Error::OutOfBounds {
        kernel: name.to_string(),
        loc: site.map_or_else(Loc::none, |(loc, _)| loc.clone()),
        argument,
        length,
        program: program_coordinates(launch.grid, error.program),
        element: error.element,
        offset: error.offset,
    }
}

/// What an interpreter found, as launches of compiled code report it.
fn fault_error(fault: Fault, grid: Grid) -> Error {
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
        FaultKind::Assertion { message, element } => Error::Assertion {
            kernel: fault.kernel,
            loc: fault.loc,
            message,
            program: program_coordinates(grid, fault.program),
            element,
        },
        FaultKind::SharedByPrograms { .. }
        | FaultKind::Race { .. }
        | FaultKind::Uninitialised { .. }
        | FaultKind::UnderWay { .. }
        | FaultKind::ReadsBeyond { .. }
        | FaultKind::Unfinished { .. }
        | FaultKind::Unaligned { .. }
        | FaultKind::Divergent { .. }
        | FaultKind::NoSuchLane { .. }
        | FaultKind::TooLong(_)
        | FaultKind::Undefined { .. }
        | FaultKind::Deadlock(_)
        | FaultKind::Transfer(_)
        | FaultKind::Slot(_)
        | FaultKind::Row(_)
        | FaultKind::Endless(_) => Error::Fault(fault),
    }
}
