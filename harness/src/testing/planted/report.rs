//! Who has found how many faults.

use std::collections::BTreeMap;
use std::fmt;

use super::spared::is_spared;

/// Who finds a fault.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Finder {
    /// The verifier of a stage refuses the function, or its lowering does.
    Verifier,
    /// The replay of what buffers hold.
    Placement,
    /// The interpreter of lanes reports it.
    Interpreter,
    /// The results differ.
    Bits,
}

/// A fault that nobody has found.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Survivor {
    /// What is wrong.
    pub fault: &'static str,
    /// The function.
    pub function: String,
    /// The number of warps.
    pub warps: u32,
    /// The instruction.
    pub inst: String,
}

/// How often a fault was planted, and who found it.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Functions with the fault.
    pub planted: usize,
    /// Of those, how many each has found.
    pub found: BTreeMap<Finder, usize>,
    /// Those of which no run comes to the instruction.
    pub unreached: usize,
    /// Those that change nothing, as the replay of buffers proves.
    pub allowed: usize,
}

/// What became of all faults.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What decided which of several like faults were planted.
    pub seed: u64,
    /// A row for each fault.
    pub rows: BTreeMap<&'static str, Row>,
    /// What nobody has found.
    pub survivors: Vec<Survivor>,
    /// Those among them of which it is known why.
    pub spared: Vec<Survivor>,
    /// What could not be lowered or is wrong without a fault.
    pub broken: Vec<String>,
}

impl Report {
    pub(super) fn append(&mut self, other: Self) {
        for (fault, row) in other.rows {
            let own = self.rows.entry(fault).or_default();
            own.planted += row.planted;
            own.unreached += row.unreached;
            own.allowed += row.allowed;
            for (finder, count) in row.found {
                *own.found.entry(finder).or_default() += count;
            }
        }
        self.survivors.extend(other.survivors);
        self.spared.extend(other.spared);
        self.broken.extend(other.broken);
    }

    /// Notes what nobody has found.
    pub(super) fn survived(&mut self, survivor: Survivor) {
        self.rows.entry(survivor.fault).or_default().planted += 1;
        match is_spared(survivor.fault, &survivor.function) {
            true => self.spared.push(survivor),
            false => self.survivors.push(survivor),
        }
    }

    /// Whether all faults are found but those of which it is known why not.
    pub fn passed(&self) -> bool {
        self.survivors.is_empty() && self.broken.is_empty()
    }

    /// How many faults were planted.
    pub fn planted(&self) -> usize {
        self.rows.values().map(|row| row.planted).sum()
    }

    /// Notes a fault at an instruction that no run comes to.
    pub(super) fn unreached(&mut self, fault: &'static str) {
        let row = self.rows.entry(fault).or_default();
        row.planted += 1;
        row.unreached += 1;
    }

    /// Notes a change that is no fault.
    pub(super) fn allowed(&mut self, fault: &'static str) {
        let row = self.rows.entry(fault).or_default();
        row.planted += 1;
        row.allowed += 1;
    }

    /// Notes who has found a fault.
    pub(super) fn found(&mut self, fault: &'static str, finder: Finder) {
        let row = self.rows.entry(fault).or_default();
        row.planted += 1;
        *row.found.entry(finder).or_default() += 1;
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = [
            "planted",
            "verifier",
            "placement",
            "lanes",
            "bits",
            "unreached",
            "allowed",
            "spared",
            "survived",
        ];
        writeln!(f, "seed {}", self.seed)?;
        write!(f, "{:52}", "fault")?;
        for column in columns {
            write!(f, " {column:>9}")?;
        }
        for (fault, row) in &self.rows {
            let of = |finder| row.found.get(&finder).copied().unwrap_or(0);
            let in_all = |all: &[Survivor]| all.iter().filter(|it| it.fault == *fault).count();
            write!(f, "\n{fault:52}")?;
            for number in [
                row.planted,
                of(Finder::Verifier),
                of(Finder::Placement),
                of(Finder::Interpreter),
                of(Finder::Bits),
                row.unreached,
                row.allowed,
                in_all(&self.spared),
                in_all(&self.survivors),
            ] {
                write!(f, " {number:>9}")?;
            }
        }
        for it in &self.survivors {
            let Survivor {
                fault,
                function,
                warps,
                inst,
            } = it;
            write!(
                f,
                "\nsurvived: {fault}: {function} on {warps} warps, {inst}"
            )?;
        }
        for message in &self.broken {
            write!(f, "\nbroken: {message}")?;
        }
        Ok(())
    }
}
