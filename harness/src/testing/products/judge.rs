//! Runs a problem in many ways and compares each with the golden run.

use std::collections::BTreeMap;

use exactile::internals::{Job, compile_all, record, threads};
use exactile::{Array, Device, DeviceKind, Error, Result, Tolerance, compare_within};
use exactile_core::launch::LaunchError;
use exactile_kernels::Setting;
use serde::Serialize;

use super::Drawn;
use crate::bench::{Sampling, draw};
use crate::demo::Problem;
use crate::testing::programs::guarded;

/// Multiply-adds up to which the interpreter runs a problem.
const MOST_INTERPRETED: u64 = 1 << 18;

/// The same for the interpreter of a GPU's lanes, which runs all settings.
const MOST_OF_LANES: u64 = 1 << 15;

/// The same for a CPU, where the golden run is on one too.
const MOST_OF_CPU: u64 = 1 << 26;

/// Settings that a CPU runs, of which no schedule matters.
const OF_CPU: usize = 3;

/// What became of the runs on a device.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Tally {
    /// Problems that ran.
    pub problems: usize,
    /// Problems that are too large for an interpreter, or for a CPU beside the golden run.
    pub too_large: usize,
    /// Results that were compared with those of the CPU.
    pub compared: usize,
    /// Settings that were to run, each checked and unchecked.
    pub settings: usize,
    /// Settings that were refused, by the reason, in which numbers are left out.
    pub refused: BTreeMap<String, usize>,
}

impl Tally {
    /// How many settings were refused.
    pub fn refusals(&self) -> usize {
        self.refused.values().sum()
    }

    fn refuse(&mut self, error: &str) {
        *self.refused.entry(reason(error)).or_default() += 1;
    }
}

/// A run whose bits are others, or that failed.
#[derive(Clone, Debug)]
pub(super) struct Wrong {
    /// The device, the setting, and whether it was checked.
    pub(super) way: String,
    pub(super) message: String,
}

/// What the golden run gives, in memory as the problem has it: the CPU by the kernel's own choices.
pub(super) fn golden(drawn: &Drawn) -> Result<Vec<Array>> {
    let mut problem = (drawn.golden)(&Device::cpu())?;
    problem.spoil()?;
    problem.launch(&Setting::default())?;
    (drawn.expected)(problem.outputs()?)
}

/// The settings that a device runs of a problem; nothing where it is too large for it.
fn settings(drawn: &Drawn, device: &Device, sampling: Sampling) -> Option<Vec<Setting>> {
    let drawn_for = |settings| {
        let sampling = Sampling {
            settings,
            ..sampling
        };
        let others = draw(sampling, &drawn.family, &drawn.candidates, device);
        let others = others.into_iter().filter(|it| *it != Setting::default());
        [Setting::default()]
            .into_iter()
            .chain(others)
            .take(settings)
            .collect()
    };
    match device.kind() {
        DeviceKind::Interpreter => (drawn.work <= MOST_INTERPRETED).then(|| vec![drawn.small]),
        DeviceKind::Lanes => (drawn.work <= MOST_OF_LANES).then(|| drawn_for(sampling.settings)),
        DeviceKind::Cpu => {
            (drawn.work <= MOST_OF_CPU).then(|| drawn_for(sampling.settings.min(OF_CPU)))
        }
        DeviceKind::Cuda(_) => Some(drawn_for(sampling.settings)),
    }
}

/// All ways on a device.
pub(super) fn judge(
    (drawn, golden): (&Drawn, &[Array]),
    device: &Device,
    sampling: Sampling,
    tally: &mut Tally,
) -> Vec<Wrong> {
    let Some(settings) = settings(drawn, device, sampling) else {
        tally.too_large += 1;
        return Vec::new();
    };
    tally.problems += 1;
    tally.settings += settings.len();
    let mut problem = match (drawn.setup)(device) {
        Ok(problem) => problem,
        Err(error) => {
            let way = format!("{device}: its arrays");
            let message = error.to_string();
            return vec![Wrong { way, message }];
        }
    };
    let mut wrong = Vec::new();
    for setting in compiled(device, &mut problem, &settings, tally) {
        for trusts in [false, true] {
            device.trust_proofs(trusts);
            let found = guarded(|| Ok(run(device, (&mut problem, &setting), trusts)));
            device.trust_proofs(true);
            let message = match found {
                Ok(Ok(found)) => compared(&found, golden),
                Ok(Err(error)) if is_refusal(&error) => {
                    tally.refuse(&error.to_string());
                    break;
                }
                Ok(Err(error)) => Some(error.to_string()),
                Err(panic) => Some(panic),
            };
            tally.compared += 1;
            let checks = if trusts { "unchecked" } else { "checked" };
            let way = || format!("{device}, {checks}, {}", shown(&setting));
            wrong.extend(message.map(|message| Wrong {
                way: way(),
                message,
            }));
        }
    }
    wrong
}

/// The settings that compile, after all threads have compiled them.
fn compiled(
    device: &Device,
    problem: &mut Problem,
    settings: &[Setting],
    tally: &mut Tally,
) -> Vec<Setting> {
    if matches!(device.kind(), DeviceKind::Interpreter | DeviceKind::Cpu) {
        return settings.to_vec();
    }
    // Where a launch cannot be recorded, the real one says why.
    let jobs = settings.iter();
    let jobs = jobs.map(|it| record(device, || problem.launch(it)).unwrap_or_default());
    let jobs: Vec<_> = jobs.collect();
    let mut refused = BTreeMap::new();
    let compiled = guarded(|| {
        compile_all(device, &jobs, None, threads(), &mut |index, outcome| {
            let shortage = |job: &Job| job.shortage(device).unwrap_or_default();
            let reason = outcome.err();
            let reason = reason.or_else(|| jobs[index].iter().find_map(shortage));
            refused.extend(reason.map(|it| (index, it)));
        });
        Ok(())
    });
    if compiled.is_err() {
        // The launch of the setting that makes the compiler panic tells it.
        return settings.to_vec();
    }
    refused.values().for_each(|reason| tally.refuse(reason));
    let ready = settings.iter().enumerate();
    let ready = ready.filter(|(index, _)| !refused.contains_key(index));
    ready.map(|(_, setting)| *setting).collect()
}

/// One result. A launch that trusts proofs comes behind one that may prove it.
fn run(
    device: &Device,
    (problem, setting): (&mut Problem, &Setting),
    trusts: bool,
) -> Result<Vec<Array>> {
    if trusts {
        problem.launch(setting)?;
        device.synchronize()?;
    }
    problem.spoil()?;
    problem.launch(setting)?;
    device.synchronize()?;
    problem.outputs()
}

/// What differs, if anything does.
fn compared(found: &[Array], golden: &[Array]) -> Option<String> {
    if found.len() != golden.len() {
        return Some(format!(
            "{} results, expected {}",
            found.len(),
            golden.len()
        ));
    }
    let names = ["", "the second result: "];
    let pairs = found.iter().zip(golden).zip(names);
    let told = pairs.filter_map(|((found, golden), name)| {
        match compare_within(found, golden, Tolerance::standard(golden.dtype())) {
            Ok(comparison) if comparison.bits_equal() => None,
            Ok(comparison) => Some(format!("{name}{comparison}")),
            Err(error) => Some(format!("{name}{error}")),
        }
    });
    told.reduce(|all, one| format!("{all}\n{one}"))
}

/// Whether an error says that there is no code for a launch, or that its arguments are none for the kernel.
fn is_refusal(error: &Error) -> bool {
    if let Error::Launch { source, .. } = error {
        return matches!(source, LaunchError::Arguments(_) | LaunchError::Grid(..));
    }
    matches!(
        error,
        Error::Compile { .. } | Error::Backend { .. } | Error::NotBuilt { .. } | Error::Invalid(_)
    )
}

/// An error's first lines without numbers, which differ from problem to problem.
pub(super) fn reason(error: &str) -> String {
    let lines: Vec<&str> = error.lines().take(2).map(str::trim).collect();
    let mut reason = String::new();
    for character in lines.join(": ").chars() {
        match character.is_ascii_digit() {
            true if reason.ends_with('N') => {}
            true => reason.push('N'),
            false => reason.push(character),
        }
    }
    reason
}

/// What is set of a setting.
fn shown(setting: &Setting) -> String {
    let numbers = serde_json::to_value(setting).unwrap_or_default();
    let numbers = numbers.as_object().into_iter().flatten();
    let set = numbers.filter(|(_, number)| number.as_u64() != Some(0));
    let set: Vec<String> = set
        .map(|(name, number)| format!("{name} {number}"))
        .collect();
    match set.is_empty() {
        true => "nothing set".to_string(),
        false => set.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use exactile::Schedule;
    use exactile_kernels::Setting;

    use super::{reason, shown};

    #[test]
    fn reasons_are_one_without_their_numbers() {
        let told = ["12 warps\n  of 8\nmore", "8 warps\n  of 16\nother"].map(reason);
        assert_eq!(told[0], "N warps: of N");
        assert_eq!(told[0], told[1]);
    }

    #[test]
    fn settings_show_what_is_set() {
        assert_eq!(shown(&Setting::default()), "nothing set");
        let setting = Setting {
            block: 64,
            schedule: Schedule::AUTO.warps(4),
            ..Setting::default()
        };
        assert_eq!(shown(&setting), "block 64, warps 4");
    }
}
