//! Times launches: by the events of a GPU after a flush of its caches, by the clock of the host
//! otherwise.

use std::time::{Duration, Instant};

use exactile::Device;
use exactile::Result;
use exactile::internals::{self, GpuClock};

/// Bytes that a GPU writes before each timed launch: ten times its cache, and more time than a host
/// needs to put the launch in line. The peers write as many.
const FLUSH: usize = 512 << 20;

/// Least and most launches of one measurement.
const LAUNCHES: (usize, usize) = (3, 400);

/// The clock of a device.
pub(super) enum Clock {
    Host,
    Gpu(GpuClock),
}

impl Clock {
    pub(super) fn new(device: &Device) -> Result<Self> {
        match internals::gpu(device) {
            None => Ok(Self::Host),
            Some(gpu) => GpuClock::new(gpu, FLUSH).map(Self::Gpu),
        }
    }

    /// How this clock measures.
    pub(super) fn method(&self) -> &'static str {
        match self {
            Self::Host => "host clock, caches as they are",
            Self::Gpu(_) => "CUDA events, 512 MiB written before each launch",
        }
    }

    fn time(&mut self, launch: &mut dyn FnMut() -> Result<()>) -> Result<f64> {
        match self {
            Self::Host => {
                let begin = Instant::now();
                launch()?;
                Ok(begin.elapsed().as_secs_f64())
            }
            Self::Gpu(clock) => clock.time(launch),
        }
    }

    /// The median time of a launch in seconds, from launches over about the given time.
    pub(super) fn median(
        &mut self,
        time: Duration,
        launch: &mut dyn FnMut() -> Result<()>,
    ) -> Result<f64> {
        let begin = Instant::now();
        let mut times = Vec::new();
        while times.len() < LAUNCHES.0 || (begin.elapsed() < time && times.len() < LAUNCHES.1) {
            times.push(self.time(launch)?);
        }
        Ok(median(&times))
    }
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
