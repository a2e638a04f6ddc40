//! Launches of a GPU back to back, of which the later ones are timed.

#![expect(unsafe_code, reason = "graphs are replayed without their arrays")]

use std::thread;
use std::time::Duration;

use exactile::internals::{self, GpuClock};
use exactile::{Device, Graph, Result};
use exactile_kernels::Setting;

use super::clock::Regime;
use crate::demo::Problem;

/// Launches that say how many fill a burst.
const PROBES: usize = 4;

/// The time of the launches of one graph. The peers have graphs as long.
const RECORDED: Duration = Duration::from_micros(2_500);

/// Launches back to back, those that are timed behind others of the same kernel.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Burst {
    pub(super) rest: Duration,
    pub(super) untimed: Duration,
    pub(super) timed: Duration,
}

impl Regime {
    /// The burst of the regime; none where launches are timed one by one.
    pub(super) fn burst(self) -> Option<Burst> {
        let burst = |rest, each| Burst {
            rest: Duration::from_micros(rest),
            untimed: Duration::from_micros(each),
            timed: Duration::from_micros(each),
        };
        match self {
            Self::Flushed => None,
            Self::Rested => Some(burst(30_000, 2_500)),
            Self::Sustained => Some(burst(0, 16_000)),
        }
    }
}

/// A problem under a setting, to be launched in bursts.
pub(super) struct Bursts<'a> {
    clock: &'a mut GpuClock,
    problem: &'a mut Problem,
    setting: &'a Setting,
    graph: Option<Graph>,
    /// Launches of the graph, or one.
    launches: usize,
    /// Seconds of so many.
    seconds: f64,
}

impl<'a> Bursts<'a> {
    pub(super) fn new(
        device: &Device,
        clock: &'a mut GpuClock,
        problem: &'a mut Problem,
        setting: &'a Setting,
    ) -> Result<Self> {
        problem.launch(setting)?;
        let once = clock.time(PROBES, &mut || problem.launch(setting))? / PROBES as f64;
        let (mut graph, mut launches) = (None, 1);
        // What several kernels hand each other may be memory that a launch gives back.
        if !problem.in_phases() {
            launches = number(RECORDED, once);
            let all = || (0..launches).try_for_each(|_| problem.launch(setting));
            graph = Some(internals::capture(device, all)?);
        }
        Ok(Self {
            clock,
            problem,
            setting,
            graph,
            launches,
            seconds: once * launches as f64,
        })
    }

    /// Seconds of a launch.
    pub(super) fn time(&mut self, burst: Burst) -> Result<f64> {
        let Self {
            clock,
            problem,
            setting,
            graph,
            launches,
            seconds,
        } = self;
        let mut launch = || match graph {
            // SAFETY: the arrays are those of the problem, which is borrowed and launched by nobody else meanwhile; it has no
            // others, as it is not in phases.
            Some(graph) => unsafe { graph.replay_bare() },
            None => problem.launch(setting),
        };
        thread::sleep(burst.rest);
        for _ in 0..number(burst.untimed, *seconds) {
            launch()?;
        }
        let timed = number(burst.timed, *seconds);
        Ok(clock.time(timed, &mut launch)? / (timed * *launches) as f64)
    }
}

/// How often what takes so many seconds is done in at least the given time. No launch takes less than a tenth of a microsecond.
fn number(time: Duration, seconds: f64) -> usize {
    (time.as_secs_f64() / seconds.max(1e-7)).ceil().max(1.0) as usize
}
