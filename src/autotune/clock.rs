//! How long a launch takes.

use std::time::{Duration, Instant};

use super::judge::waited;
use super::trials::Times;
use crate::buffer::Buffer;
use crate::device::{Device, DeviceKind};
use crate::error::Result;

/// Least time spent on measuring what may win.
pub(super) const LEAST_TIME: Duration = Duration::from_millis(20);
/// Time of the launches that a GPU gets in line.
const LINE_TIME: Duration = Duration::from_millis(5);
/// Least and most measurements of one candidate.
const MEASUREMENTS: std::ops::Range<usize> = 3..100;
/// Bytes that a GPU writes before a launch from cold caches: ten times what they hold, and more time than a host needs
/// to put the launch in line.
const FLUSH: usize = 512 << 20;

/// Measures launches on a device: by its events where it is a GPU, by the host's clock otherwise.
pub(super) struct Clock<'a> {
    device: &'a Device,
    /// What is written to leave nothing in the caches; none on the host, and where a GPU has no room for it.
    flush: Option<Buffer<u32>>,
}

impl<'a> Clock<'a> {
    pub(super) fn new(device: &'a Device) -> Self {
        let flush = match device.kind() {
            DeviceKind::Cpu | DeviceKind::Interpreter | DeviceKind::Lanes => None,
            DeviceKind::Cuda(_) => Buffer::zeros(device, FLUSH / size_of::<u32>()).ok(),
        };
        Self { device, flush }
    }

    /// The medians of launches over about this time, or longer where launches are; the rounds are for a race to count. Those with warm caches are measured
    /// where the time is [`LEAST_TIME`] or more.
    pub(super) fn times(
        &mut self,
        least: Duration,
        mut launch: impl FnMut() -> Result<()>,
    ) -> Result<Times> {
        warm_up(self.device, &mut launch)?;
        let device = self.device;
        let Some(flush) = &mut self.flush else {
            let seconds = in_line(device, least, &mut launch)?;
            return Ok(Times {
                cold: seconds,
                warm: Some(seconds),
                rounds: 0,
            });
        };
        let cold = median(least, || {
            flush.spoil()?;
            timed(device, 1, &mut launch)
        })?;
        let warm = match least < LEAST_TIME {
            true => None,
            false => Some(in_line(device, least, &mut launch)?),
        };
        Ok(Times {
            cold,
            warm,
            rounds: 0,
        })
    }
}

/// The median time of a launch in the device's default stream, in seconds, after two launches to warm up.
///
/// On a GPU launches are put in line and waited for together, so that the figure is the time of the
/// kernel and not the latency of a launch.
///
/// # Errors
/// Those of `launch`, and of the launches that it makes; a panic of it is one too. Errors of other launches stay for who
/// waits for them.
pub fn measure(device: &Device, mut launch: impl FnMut() -> Result<()>) -> Result<f64> {
    warm_up(device, &mut launch)?;
    in_line(device, LEAST_TIME, &mut launch)
}

/// The second launch may use other code than the first: that of launches proved in bounds.
fn warm_up(device: &Device, launch: &mut impl FnMut() -> Result<()>) -> Result<()> {
    (0..2).try_for_each(|_| waited(device, &mut *launch))
}

fn in_line(
    device: &Device,
    least: Duration,
    launch: &mut impl FnMut() -> Result<()>,
) -> Result<f64> {
    let line = match device.kind() {
        DeviceKind::Cpu | DeviceKind::Interpreter | DeviceKind::Lanes => 1,
        DeviceKind::Cuda(_) => {
            let one = timed(device, 1, launch)?;
            (LINE_TIME.as_secs_f64() / one).clamp(1.0, 1000.0) as usize
        }
    };
    median(least, || timed(device, line, launch))
}

/// Seconds of one of `count` launches, by events of the device. They have ended when this returns.
fn timed(device: &Device, count: usize, launch: &mut impl FnMut() -> Result<()>) -> Result<f64> {
    let (start, end) = waited(device, || {
        let start = device.event()?;
        (0..count).try_for_each(|_| launch())?;
        Ok((start, device.event()?))
    })?;
    Ok(end.seconds_since(&start)? / count as f64)
}

fn median(least: Duration, mut measure: impl FnMut() -> Result<f64>) -> Result<f64> {
    let start = Instant::now();
    let mut times = Vec::new();
    while times.len() < MEASUREMENTS.start
        || (start.elapsed() < least && times.len() < MEASUREMENTS.end)
    {
        times.push(measure()?);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}
