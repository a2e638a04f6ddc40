//! What a tuner knows of a problem: which one it is, and who won it, where and when.

use std::time::{Duration, SystemTime};

#[cfg(feature = "tuner-file")]
use serde::{Deserialize, Serialize};

use crate::device::Device;

/// What a winner holds for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[cfg_attr(feature = "tuner-file", derive(Serialize, Deserialize))]
pub(crate) struct Problem {
    pub(crate) kernel: String,
    pub(crate) variant: String,
    /// Rounded up to powers of two.
    pub(crate) extents: Vec<usize>,
    pub(crate) device: String,
}

#[cfg_attr(
    not(feature = "tuner-file"),
    expect(dead_code, reason = "a file needs it")
)]
impl Problem {
    /// The problem as the key of a map.
    pub(crate) fn text(&self) -> String {
        let Self {
            kernel,
            variant,
            extents,
            device,
        } = self;
        format!("{kernel} {extents:?} {variant} on {device}")
    }

    /// How many doublings of extents lie between two problems of one kernel; nothing where they are not comparable.
    pub(crate) fn distance(&self, other: &Self) -> Option<f64> {
        let name = |it: &Self| (it.kernel.clone(), it.variant.clone(), it.device.clone());
        if name(self) != name(other) || self.extents.len() != other.extents.len() {
            return None;
        }
        Some(doublings(&self.extents, &other.extents))
    }
}

/// How many doublings lie between so many extents.
fn doublings(extents: &[usize], others: &[usize]) -> f64 {
    // An extent of zero is a doubling before one.
    let logarithm =
        |&extent: &usize| (extent.max(1) as f64 * 2.0).log2() * f64::from(extent.min(1) as u32);
    let pairs = extents.iter().zip(others);
    pairs
        .map(|(one, other)| (logarithm(one) - logarithm(other)).abs())
        .sum()
}

/// The configuration that won, as its `Debug` form, and its time.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "tuner-file", derive(Serialize, Deserialize))]
pub(crate) struct Winner {
    pub(crate) config: String,
    pub(crate) seconds: f64,
    #[cfg_attr(feature = "tuner-file", serde(default))]
    pub(crate) provenance: Provenance,
}

impl Winner {
    /// The winner for `problem`, as it is on file.
    pub(crate) fn known(&self, problem: &Problem) -> Known {
        Known {
            config: self.config.clone(),
            seconds: self.seconds,
            provenance: self.provenance.clone(),
            extents: problem.extents.clone(),
            is_exact: true,
        }
    }
}

/// Where and when a winner was found.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "tuner-file", derive(Serialize, Deserialize), serde(default))]
#[non_exhaustive]
pub struct Provenance {
    /// The model of the device.
    pub device: String,
    /// The newest CUDA that its driver is for, such as `12.8`; none on the host.
    pub driver: Option<String>,
    /// The crate, its version and a hash of the sources of its compiler.
    pub sources: String,
    /// The day, in universal time, such as `2026-03-01`.
    pub date: String,
    /// How long the search took.
    pub search_seconds: f64,
}

impl Provenance {
    /// A search on `device` that ended now.
    pub(crate) fn now(device: &Device, search: Duration) -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self {
            device: device.name().to_string(),
            driver: device.driver(),
            sources: exactile_core::SOURCES.to_string(),
            date: date(since.unwrap_or_default().as_secs() / (24 * 60 * 60)),
            search_seconds: search.as_secs_f64(),
        }
    }
}

/// What is on file for a problem.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Known {
    /// The configuration that won, as its `Debug` form.
    pub config: String,
    /// Its time in seconds.
    pub seconds: f64,
    /// Where and when it was found.
    pub provenance: Provenance,
    /// The extents that it was found for, each rounded up to a power of two.
    pub extents: Vec<usize>,
    /// Whether these are the extents that were asked for; otherwise they are the nearest.
    pub is_exact: bool,
}

impl Known {
    /// How many doublings lie between what it was found for and a problem of the same kernel.
    pub(crate) fn distance(&self, problem: &Problem) -> f64 {
        doublings(&self.extents, &problem.extents)
    }
}

/// The date of a day, counted from the first one of 1970, in the Gregorian calendar.
fn date(day: u64) -> String {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let (mut year, mut left) = (1970, day);
    loop {
        let days = 365 + u64::from(is_leap(year));
        if left < days {
            break;
        }
        left -= days;
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if left < days {
            break;
        }
        left -= days;
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}", left + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        let days = [
            (0, "1970-01-01"),
            (58, "1970-02-28"),
            (59, "1970-03-01"),
            (789, "1972-02-29"),
            (11_016, "2000-02-29"),
            (11_322, "2000-12-31"),
            (20_781, "2026-11-24"),
        ];
        for (day, expected) in days {
            assert_eq!(date(day), expected);
        }
    }

    #[test]
    fn distances_count_doublings_between_problems_of_one_kernel() {
        let problem = |kernel: &str, extents: &[usize]| Problem {
            kernel: kernel.to_string(),
            variant: "f32".to_string(),
            extents: extents.to_vec(),
            device: "cpu".to_string(),
        };
        let one = problem("softmax", &[1024, 8]);
        assert_eq!(one.distance(&one), Some(0.0));
        assert_eq!(one.distance(&problem("softmax", &[256, 16])), Some(3.0));
        assert_eq!(one.distance(&problem("softmax", &[1024, 0])), Some(4.0));
        assert_eq!(one.distance(&problem("softmax", &[1024])), None);
        assert_eq!(one.distance(&problem("sort", &[1024, 8])), None);
    }
}
