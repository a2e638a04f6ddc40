//! Times launches: by the events of a GPU, in one of three regimes, by the clock of the host
//! otherwise.

use std::time::{Duration, Instant};

use exactile::internals::{self, GpuClock};
use exactile::{Device, Error, Result};
use exactile_kernels::Setting;
use serde::{Deserialize, Serialize};

use super::bursts::Bursts;
use crate::demo::Problem;

/// Bytes that a GPU writes before each timed launch: ten times its cache, and more time than a host
/// needs to put the launch in line. The peers write as many.
const FLUSH: usize = 512 << 20;

/// Least and most launches of one measurement.
const LAUNCHES: (usize, usize) = (3, 400);

/// What a GPU does before a launch that is timed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Regime {
    /// It writes more than its caches hold, before each launch. A CPU has its caches as they are.
    #[default]
    Flushed,
    /// It rests, and starts with launches that are not timed: the clock rate is not bound by the power.
    Rested,
    /// It runs bursts of launches back to back: the clock rate is what the power allows.
    Sustained,
}

impl Regime {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Flushed, Self::Rested, Self::Sustained];

    /// As it is written in a command and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flushed => "flushed",
            Self::Rested => "rested",
            Self::Sustained => "sustained",
        }
    }

    /// The regime of a name.
    ///
    /// # Errors
    ///
    /// Where there is none, one that lists all names.
    pub fn from_name(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|regime| regime.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join("`, `");
            Error::Invalid(format!("no regime `{name}`, there are `{names}`"))
        })
    }

    /// How a launch is timed, in words.
    pub(super) fn method(self) -> &'static str {
        match self {
            Self::Flushed => "CUDA events, 512 MiB written before each launch",
            Self::Rested => {
                "CUDA events about launches back to back over 2.5 ms, after 30 ms of rest and 2.5 ms of the same kernel; by graphs, but launches of several kernels by this crate as they are"
            }
            Self::Sustained => {
                "CUDA events about launches back to back over 16 ms, right after 16 ms of the same kernel; by graphs, but launches of several kernels by this crate as they are"
            }
        }
    }
}

/// The clock of a device.
pub(super) enum Clock {
    Host,
    Gpu(Device, GpuClock),
}

impl Clock {
    pub(super) fn new(device: &Device) -> Result<Self> {
        match internals::gpu(device) {
            None => Ok(Self::Host),
            Some(gpu) => Ok(Self::Gpu(device.clone(), GpuClock::new(gpu, FLUSH)?)),
        }
    }

    /// How this clock measures in a regime.
    pub(super) fn method(&self, regime: Regime) -> &'static str {
        match self {
            Self::Host => "host clock, caches as they are",
            Self::Gpu(..) => regime.method(),
        }
    }

    fn time(&mut self, launch: &mut dyn FnMut() -> Result<()>) -> Result<f64> {
        match self {
            Self::Host => {
                let begin = Instant::now();
                launch()?;
                Ok(begin.elapsed().as_secs_f64())
            }
            Self::Gpu(_, clock) => {
                clock.flush()?;
                clock.time(1, launch)
            }
        }
    }

    /// The median time of a launch in seconds, from launches over about the given time, flushed.
    pub(super) fn median(
        &mut self,
        time: Duration,
        launch: &mut dyn FnMut() -> Result<()>,
    ) -> Result<f64> {
        median_over(time, &mut || self.time(launch))
    }

    /// The median time of a launch in seconds, from launches over about the given time in a regime. Bursts replay a graph of
    /// launches where these come without memory of their own.
    ///
    /// # Errors
    /// Bursts need a GPU.
    pub(super) fn round(
        &mut self,
        regime: Regime,
        time: Duration,
        problem: &mut Problem,
        setting: &Setting,
    ) -> Result<f64> {
        match (regime.burst(), self) {
            (None, clock) => clock.median(time, &mut || problem.launch(setting)),
            (Some(burst), Self::Gpu(device, clock)) => {
                let mut bursts = Bursts::new(device, clock, problem, setting)?;
                median_over(time, &mut || bursts.time(burst))
            }
            (Some(_), Self::Host) => Err(Error::Invalid(format!(
                "the regime `{}` is of a GPU; leave it out on a CPU",
                regime.name()
            ))),
        }
    }
}

/// The median of measurements over about the given time.
fn median_over(time: Duration, measure: &mut dyn FnMut() -> Result<f64>) -> Result<f64> {
    let begin = Instant::now();
    let mut times = Vec::new();
    while times.len() < LAUNCHES.0 || (begin.elapsed() < time && times.len() < LAUNCHES.1) {
        times.push(measure()?);
    }
    Ok(median(&times))
}

/// The middle of numbers, the mean of the two when there are two; zero for none.
pub(super) fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        len if len % 2 == 1 => sorted[len / 2],
        len => (sorted[len / 2 - 1] + sorted[len / 2]) / 2.0,
    }
}
