//! What judges a case: the same bits wherever it runs, and those that plain Rust expects.

use std::collections::BTreeMap;

use exactile::prelude::*;
use exactile::{
    Array, DType, DeviceKind, Error, Number, Result, Schedule, Tolerance, compare, compare_within,
};

use super::report::{Case, kind_name};
use crate::testing::first_bounded;

/// One way to run a case.
pub(super) struct Way {
    /// Where.
    pub(super) device: Device,
    /// How the work of a program is laid out.
    pub(super) schedule: Schedule,
    /// The size that the case varies.
    pub(super) block: usize,
}

impl Way {
    /// A copy of numbers there.
    pub(super) fn given<T: Number>(&self, numbers: &[T]) -> Result<Buffer<T>> {
        Buffer::from_slice(&self.device, numbers)
    }

    /// Room for results, full of what no kernel writes.
    pub(super) fn room<T: Number>(&self, len: usize) -> Result<Buffer<T>> {
        let mut buffer = Buffer::zeros(&self.device, len)?;
        buffer.spoil()?;
        Ok(buffer)
    }
}

/// Runs cases on some devices.
pub(super) struct Judge<'d> {
    devices: &'d [Device],
    /// The cases that held so far.
    pub(super) cases: Vec<Case>,
}

impl<'d> Judge<'d> {
    pub(super) fn new(devices: &'d [Device]) -> Self {
        Self {
            devices,
            cases: Vec::new(),
        }
    }

    /// The first size on the first device, then every device: a GPU's code by two schedules, other
    /// devices with the last size.
    fn ways(&self, blocks: &[usize]) -> Vec<Way> {
        let way = |device: &Device, schedule, block: Option<&usize>| Way {
            device: device.clone(),
            schedule,
            block: block.copied().unwrap_or_default(),
        };
        let mut ways = Vec::new();
        for device in self.devices {
            match device.kind() {
                DeviceKind::Interpreter => {
                    ways.push(way(device, Schedule::AUTO, blocks.first()));
                }
                DeviceKind::Cpu => ways.push(way(device, Schedule::AUTO, blocks.last())),
                DeviceKind::Lanes | DeviceKind::Cuda(_) => {
                    ways.push(way(device, Schedule::AUTO.warps(1), blocks.last()));
                    ways.push(way(device, Schedule::AUTO.warps(4), blocks.first()));
                }
            }
        }
        ways
    }

    /// Runs a case in every way and compares the bits. What it gave on the first device.
    ///
    /// # Errors
    /// The first way that has other bits, or whose launch failed.
    pub(super) fn same(
        &mut self,
        what: &str,
        blocks: &[usize],
        run: impl Fn(&Way) -> Result<Vec<Array>>,
    ) -> Result<Vec<Array>> {
        let mut golden: Option<Vec<Array>> = None;
        let mut same = BTreeMap::<String, usize>::new();
        for way in self.ways(blocks) {
            let name = format!(
                "{what} on {}, {:?}, {}",
                way.device, way.schedule, way.block
            );
            // What is too much code for the lanes of one warp runs on as many as it takes.
            let found = first_bounded(&[way.schedule, Schedule::AUTO], |schedule| {
                run(&Way {
                    device: way.device.clone(),
                    schedule,
                    block: way.block,
                })
            });
            let found = match found {
                // Of the products of tensor cores each machine has its own, or says that it has none.
                Err(error) if error.to_string().contains("has no tensor cores") => continue,
                found => found.map_err(|error| Error::Mismatch(format!("{name}: {error}")))?,
            };
            let golden = golden.get_or_insert_with(|| found.clone());
            if found.len() != golden.len() {
                return Err(Error::Mismatch(format!("{name}: other results")));
            }
            for (found, want) in found.iter().zip(golden.iter()) {
                exact(&name, found, want)?;
                *same.entry(kind_name(&way.device).to_string()).or_default() += 1;
            }
        }
        let golden = golden.unwrap_or_default();
        let mut types: Vec<String> = golden.iter().map(|it| it.dtype().to_string()).collect();
        types.dedup();
        self.cases.push(Case {
            case: what.to_string(),
            types,
            same,
        });
        Ok(golden)
    }
}

fn exact(what: &str, found: &Array, want: &Array) -> Result<()> {
    compare(found, want)?
        .exact()
        .map_err(|error| Error::Mismatch(format!("{what}: {error}")))
}

/// Whether results have the bits that are expected; any NaN is like any other.
pub(super) fn expect<T: Number>(what: &str, found: &Array, want: &[T]) -> Result<()> {
    exact(
        &format!("{what} beside plain Rust"),
        found,
        &Array::from_slice([want.len()], want)?,
    )
}

/// Whether results are as near as `relative` to what is expected.
pub(super) fn expect_near<T: Number>(
    what: &str,
    found: &Array,
    want: &[T],
    relative: f64,
) -> Result<()> {
    let tolerance = Tolerance {
        absolute: relative,
        relative,
        ..Tolerance::standard(DType::F32)
    };
    let comparison = compare_within(found, &Array::from_slice([want.len()], want)?, tolerance)?;
    match comparison.within_tolerance() {
        true => Ok(()),
        false => Err(Error::Mismatch(format!(
            "{what} beside plain Rust: {comparison}"
        ))),
    }
}

/// An error unless the condition holds.
pub(super) fn ensure(condition: bool, what: &str) -> Result<()> {
    match condition {
        true => Ok(()),
        false => Err(Error::Mismatch(what.to_string())),
    }
}
