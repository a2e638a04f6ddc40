//! Faults planted in lowered programs, to see that random programs would find such bugs.
//!
//! A fault changes a lane function between lowering and execution as a bug in one room would have
//! changed it. It counts as found when the interpreter of lanes reports it or results differ.

mod plant;

use std::fmt;

use exactile_core::ir::Func;
use exactile_core::verify::{self, LaneFunc};

use super::generate::{Program, generate};
use super::run::{ProgramsOptions, judged};
use super::subject::{Checked, Subject};
use exactile_core::random::Random;

/// A bug that a lowering could have.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// What is wrong.
    pub name: &'static str,
    /// The room that such a bug would be in.
    pub room: &'static str,
    /// Plants it; false when the function has no place for it.
    plant: fn(&mut Func, &mut Random) -> bool,
}

/// The faults that every standard run must find.
pub const FAULTS: &[Fault] = &[
    Fault {
        name: "upper lanes keep their operands after a shuffle",
        room: "distributed/reduce",
        plant: plant::keep_operands,
    },
    Fault {
        name: "a shuffle has the wrong lane mask",
        room: "distributed/reduce, convert",
        plant: plant::wrong_lane_mask,
    },
    Fault {
        name: "a barrier is missing",
        room: "distributed/order",
        plant: plant::drop_barrier,
    },
    Fault {
        name: "a wait for copies is missing",
        room: "schedule/pipeline",
        plant: plant::drop_wait,
    },
    Fault {
        name: "a wait leaves one group of copies too many",
        room: "schedule/pipeline",
        plant: plant::late_wait,
    },
    Fault {
        name: "copies beyond the end of a loop are started",
        room: "schedule/pipeline",
        plant: plant::start_too_many,
    },
    Fault {
        name: "a bounds mask lets one element more through",
        room: "memory",
        plant: plant::loose_mask,
    },
    Fault {
        name: "the final + 0.0 of dot is missing",
        room: "dot",
        plant: plant::drop_plus_zero,
    },
    Fault {
        name: "a select takes the other alternative",
        room: "element",
        plant: plant::swap_select,
    },
    Fault {
        name: "minimum and maximum ignore NaN",
        room: "element",
        plant: plant::ignore_nan,
    },
    Fault {
        name: "shifts take the amount modulo the width",
        room: "element",
        plant: plant::wrap_shifts,
    },
    Fault {
        name: "elements of a vector are out of order",
        room: "memory, sequential/pull",
        plant: plant::wrong_vector_element,
    },
    Fault {
        name: "an access is one element off",
        room: "memory",
        plant: plant::shift_offset,
    },
    Fault {
        name: "fma rounds twice",
        room: "dot, element",
        plant: plant::split_fma,
    },
    Fault {
        name: "every copy of a replicated element is stored",
        room: "distributed/memory",
        plant: plant::store_replicas,
    },
    Fault {
        name: "f64 goes to f16 through f32",
        room: "element",
        plant: plant::double_rounding,
    },
    Fault {
        name: "two carried values of a loop trade places",
        room: "control",
        plant: plant::swap_carried,
    },
    Fault {
        name: "operands of a subtraction are swapped",
        room: "reduce, element",
        plant: plant::swap_subtraction,
    },
];

/// How often a fault was planted and found.
#[derive(Clone, Debug)]
pub struct FaultRow {
    /// The fault.
    pub fault: Fault,
    /// Lowered programs that had a place for it.
    pub planted: usize,
    /// Those that found it.
    pub found: usize,
    /// The first find: program, way to run it, what was seen.
    pub first: Option<(usize, Subject, String)>,
}

/// What a run with planted faults found.
#[derive(Clone, Debug)]
pub struct FaultReport {
    /// One row for each fault.
    pub rows: Vec<FaultRow>,
}

impl FaultReport {
    /// Whether each fault was found.
    pub fn all_found(&self) -> bool {
        self.rows.iter().all(|row| row.found > 0)
    }
}

/// Finds of one fault after which the next is planted.
const ENOUGH: usize = 3;

/// The numbers of warps that programs are distributed over.
const WARPS: &[u32] = &[1, 4, 8];

/// Plants each fault in the programs of `options`, in order, until a few have found it.
pub fn run(options: &ProgramsOptions) -> FaultReport {
    let mut rows: Vec<FaultRow> = FAULTS
        .iter()
        .map(|&fault| FaultRow {
            fault,
            planted: 0,
            found: 0,
            first: None,
        })
        .collect();
    let (subjects, _) = Subject::available(WARPS);
    for index in 0..options.count {
        if rows.iter().all(|row| row.found >= ENOUGH) {
            break;
        }
        let program = generate(options.seed, index, options.limits);
        let Ok(checked) = Checked::new(&program) else {
            continue;
        };
        for &subject in &subjects {
            if let Some(Ok(lowered)) = checked.lowered(subject) {
                for row in &mut rows {
                    try_fault(
                        row,
                        options.seed,
                        index,
                        subject,
                        (&program, &checked),
                        &lowered,
                    );
                }
            }
        }
    }
    FaultReport { rows }
}

fn try_fault(
    row: &mut FaultRow,
    seed: u64,
    index: usize,
    subject: Subject,
    (program, checked): (&Program, &Checked<'_>),
    lowered: &LaneFunc,
) {
    if row.found >= ENOUGH {
        return;
    }
    let mut func = lowered.clone().into_inner();
    let mut random = Random::stream(seed, index as u64);
    if !(row.fault.plant)(&mut func, &mut random) {
        return;
    }
    row.planted += 1;
    let verdict = match verify::lane(func) {
        Ok(func) => judged(program, || checked.run_lanes(&func)),
        Err(errors) => Some(errors.to_string()),
    };
    if let Some(message) = verdict {
        row.found += 1;
        row.first.get_or_insert((index, subject, message));
    }
}

impl fmt::Display for FaultReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:48} {:28} {:>7} {:>5}  first",
            "fault", "room", "planted", "found"
        )?;
        for row in &self.rows {
            let (name, room) = (row.fault.name, row.fault.room);
            write!(
                f,
                "\n{name:48} {room:28} {:>7} {:>5}  ",
                row.planted, row.found
            )?;
            match &row.first {
                Some((index, subject, message)) => {
                    write!(f, "program {index} on {subject}: {message}")?;
                }
                None => f.write_str("not found")?,
            }
        }
        Ok(())
    }
}
