//! Settings drawn by a seed from all that a kernel may have: what nobody chose, beside the default.

use std::collections::BTreeMap;

use exactile::{Device, DeviceKind, Schedule, ScheduleField, Target};
use exactile_core::random::Random;
use exactile_kernels::Setting;
use serde::{Deserialize, Serialize};

use super::report::Finalist;

/// What to draw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sampling {
    /// Settings of each kernel and input.
    pub settings: usize,
    /// What they follow from, beside the name of the kernel and its input.
    pub seed: u64,
}

/// What became of the settings that were drawn.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Sample {
    /// What they were drawn by.
    pub seed: u64,
    /// How many were drawn, all of them different.
    pub drawn: usize,
    /// How many ran, gave the bits of the reference, and were measured.
    pub measured: usize,
    /// How many there was no time for.
    pub not_begun: usize,
    /// How many were refused, by the reason.
    pub refused: BTreeMap<String, usize>,
    /// Those measured, in short, the fastest first.
    pub trials: Vec<Finalist>,
}

impl Sample {
    /// The sample as a line for people.
    pub(super) fn line(&self) -> String {
        let Self {
            drawn,
            measured,
            not_begun,
            ..
        } = self;
        let refused: usize = self.refused.values().sum();
        let reasons = self.refused.iter();
        let reasons = reasons.map(|(reason, count)| {
            let reason = reason.lines().next().unwrap_or_default();
            format!("; {count} refused: {reason}")
        });
        format!(
            "sample of {drawn} settings: {measured} measured, {refused} refused, {not_begun} not begun{}",
            reasons.collect::<String>()
        )
    }
}

/// Draws different settings: tile sizes of the candidates, or the kernel's own, and for each field of the schedule the
/// compiler's choice, or as often a number worth a try. There are fewer where a kernel has no more. A CPU takes no notice of a schedule.
pub(crate) fn draw(
    sampling: Sampling,
    name: &str,
    candidates: &[Setting],
    device: &Device,
) -> Vec<Setting> {
    let mut tiles = vec![(0, 0)];
    for candidate in candidates {
        let tile = (candidate.block, candidate.width);
        if !tiles.contains(&tile) {
            tiles.push(tile);
        }
    }
    let fields = match device.kind() {
        DeviceKind::Cpu | DeviceKind::Interpreter => &[],
        DeviceKind::Lanes | DeviceKind::Cuda(_) => ScheduleField::ALL,
    };
    let stream = name
        .bytes()
        .fold(0, |sum: u64, byte| sum.wrapping_mul(257) + u64::from(byte));
    let mut random = Random::stream(sampling.seed, stream);
    let mut drawn: Vec<Setting> = Vec::new();
    // Few kernels have fewer settings than are wanted, and those are soon drawn.
    for _ in 0..sampling.settings * 64 {
        if drawn.len() == sampling.settings {
            break;
        }
        let (block, width) = random.pick(&tiles);
        let mut schedule = Schedule::AUTO;
        for &field in fields {
            let tries = field.row().tries;
            if !tries.is_empty() && random.one_in(2) {
                schedule.set(field, Some(random.pick(tries)));
            }
        }
        let setting = Setting {
            block,
            width,
            schedule,
            ..Setting::default()
        };
        if is_legal(&schedule) && !drawn.contains(&setting) {
            drawn.push(setting);
        }
    }
    drawn
}

/// Whether a thread block has warps for its programs: each number alone is in its range.
fn is_legal(schedule: &Schedule) -> bool {
    let warps = schedule.warps.unwrap_or(1) * schedule.programs.unwrap_or(1);
    warps <= Target::SM_90A.gpu.most_warps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates() -> Vec<Setting> {
        let tile = |block| Setting {
            block,
            ..Setting::default()
        };
        [64, 128, 64].map(tile).to_vec()
    }

    #[test]
    fn settings_follow_from_the_seed_and_the_name_and_are_legal_and_different() {
        let device = Device::lanes();
        let drawn = |seed, name| {
            let sampling = Sampling { settings: 24, seed };
            draw(sampling, name, &candidates(), &device)
        };
        let first = drawn(1, "softmax");
        assert_eq!(first, drawn(1, "softmax"));
        assert_ne!(first, drawn(2, "softmax"));
        assert_ne!(first, drawn(1, "mean"));
        assert_eq!(first.len(), 24);
        for (place, setting) in first.iter().enumerate() {
            assert!(!first[..place].contains(setting), "{setting:?}");
            assert!([0, 64, 128].contains(&setting.block), "{setting:?}");
            setting.schedule.check(&Target::SM_90A.gpu).expect("legal");
            assert!(is_legal(&setting.schedule), "{setting:?}");
        }
        for &field in ScheduleField::ALL {
            let varied = first.iter().any(|it| it.schedule.get(field).is_some());
            assert_eq!(varied, !field.row().tries.is_empty(), "{field:?}");
        }
    }

    #[test]
    fn a_kernel_with_few_settings_has_no_more() {
        let sampling = Sampling {
            settings: 24,
            seed: 1,
        };
        let drawn = draw(sampling, "softmax", &candidates(), &Device::cpu());
        let mut blocks: Vec<usize> = drawn.iter().map(|it| it.block).collect();
        blocks.sort_unstable();
        assert_eq!(blocks, [0, 64, 128]);
    }

    #[test]
    fn what_is_refused_is_said_with_its_reason() {
        let sample = Sample {
            drawn: 24,
            measured: 20,
            not_begun: 1,
            refused: BTreeMap::from([("no room\nmore".to_string(), 3)]),
            ..Sample::default()
        };
        assert_eq!(
            sample.line(),
            "sample of 24 settings: 20 measured, 3 refused, 1 not begun; 3 refused: no room"
        );
    }
}
