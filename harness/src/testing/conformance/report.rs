//! What the checks found on which devices, as JSON that is kept: a run on a GPU is told by it.

use std::collections::BTreeMap;

use exactile::{Device, DeviceKind};
use serde::{Deserialize, Serialize};

/// What the checks found on some devices.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The commit that the program was built from.
    pub commit: String,
    /// The name of each device, by its kind.
    pub devices: BTreeMap<String, String>,
    /// The checks that ran.
    pub checks: Vec<Checked>,
}

/// What a check found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Checked {
    /// Its name.
    pub name: String,
    /// The first result that was not as expected, with the case, the device and the schedule.
    pub error: Option<String>,
    /// Its cases as far as they held.
    pub cases: Vec<Case>,
}

/// A case of a check.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Case {
    /// What it is, with its types and extents.
    pub case: String,
    /// The types of its results.
    pub types: Vec<String>,
    /// How many results had the bits of the first device, by kinds of devices.
    pub same: BTreeMap<String, usize>,
}

impl Checked {
    /// How many results were compared, those of the first device among them.
    #[must_use]
    pub fn compared(&self) -> usize {
        self.cases.iter().flat_map(|case| case.same.values()).sum()
    }
}

/// What became of a check on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnGpu {
    /// All its cases held.
    Held,
    /// One did not.
    Failed,
    /// No case ran there.
    NotYetRun,
}

impl Report {
    /// A report on these devices.
    #[must_use]
    pub fn new(commit: &str, devices: &[Device], checks: Vec<Checked>) -> Self {
        let names = devices
            .iter()
            .map(|device| (kind_name(device).to_string(), device.name().to_string()));
        Self {
            commit: commit.to_string(),
            devices: names.collect(),
            checks,
        }
    }

    /// The report as JSON, a line for each case.
    ///
    /// # Errors
    /// None but those of the writer of JSON.
    pub fn to_json(&self) -> serde_json::Result<String> {
        let checks = self.checks.iter().map(|check| {
            let cases = check.cases.iter().map(serde_json::to_string);
            let cases: Vec<String> = cases.collect::<serde_json::Result<_>>()?;
            Ok(format!(
                "{{\"name\": {}, \"error\": {}, \"cases\": [\n{}\n]}}",
                serde_json::to_string(&check.name)?,
                serde_json::to_string(&check.error)?,
                cases.join(",\n")
            ))
        });
        let checks: Vec<String> = checks.collect::<serde_json::Result<_>>()?;
        Ok(format!(
            "{{\"commit\": {}, \"devices\": {}, \"checks\": [\n{}\n]}}\n",
            serde_json::to_string(&self.commit)?,
            serde_json::to_string(&self.devices)?,
            checks.join(",\n")
        ))
    }

    /// The name of the GPU, if the checks ran on one.
    pub(super) fn gpu(&self) -> Option<&str> {
        self.devices.get(GPU).map(String::as_str)
    }

    /// What became of the check with this name on the GPU.
    pub(super) fn on_gpu(&self, name: &str) -> OnGpu {
        let check = self.checks.iter().find(|check| check.name == name);
        let check = check.filter(|_| self.gpu().is_some());
        match check {
            None => OnGpu::NotYetRun,
            Some(check) if check.error.is_some() => OnGpu::Failed,
            Some(check) if check.cases.iter().any(|case| case.same.contains_key(GPU)) => {
                OnGpu::Held
            }
            Some(_) => OnGpu::NotYetRun,
        }
    }
}

const GPU: &str = "GPU";

/// What reports call devices of this kind.
pub(super) fn kind_name(device: &Device) -> &'static str {
    match device.kind() {
        DeviceKind::Interpreter => "interpreter",
        DeviceKind::Cpu => "CPU",
        DeviceKind::Lanes => "lanes",
        DeviceKind::Cuda(_) => GPU,
    }
}
