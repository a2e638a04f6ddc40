//! What the threads of a run are at, and which programs took longest.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::run::{Event, Listener};
use super::subject::Subject;

/// How long a program may take before it is spoken of, and between two words of it.
const LONG: Duration = Duration::from_secs(20);

/// How often the programs are looked at.
const TICK: Duration = Duration::from_secs(1);

/// How many programs are remembered.
const SLOWEST: usize = 3;

/// A part of the work on a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Making the program.
    Generator,
    /// The run that says what is right.
    Interpreter,
    /// One of the other ways to run it.
    Subject(Subject),
    /// Making a program that fails smaller.
    Shrinking,
}

impl Stage {
    /// Its name without a number of warps.
    pub(super) fn kind(self) -> String {
        let name = self.to_string();
        let words = name.split(' ').filter(|word| word.parse::<u32>().is_err());
        words.collect::<Vec<_>>().join(" ")
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Generator => f.write_str("generator"),
            Self::Interpreter => f.write_str("interpreter"),
            Self::Subject(subject) => write!(f, "{subject}"),
            Self::Shrinking => f.write_str("making it smaller"),
        }
    }
}

/// A program that takes long.
#[derive(Clone, Copy, Debug)]
pub struct Slow {
    /// Its index in the run.
    pub index: usize,
    /// How long it took, or has taken so far.
    pub time: Duration,
    /// The longest stage, or the present one.
    pub stage: Stage,
    /// How long that took.
    pub stage_time: Duration,
}

impl fmt::Display for Slow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [time, stage_time] = [self.time, self.stage_time].map(|it| it.as_secs_f64());
        let (index, stage) = (self.index, self.stage);
        write!(
            f,
            "program {index}: {time:.2} s, {stage_time:.2} s of them on: {stage}"
        )
    }
}

/// How long each kind of stage has taken.
pub(super) type Spent = BTreeMap<String, Duration>;

struct Running {
    start: Instant,
    stage: Stage,
    stage_start: Instant,
    longest: (Duration, Stage),
    spent: Spent,
    told: Duration,
}

impl Running {
    fn turn(&mut self, stage: Stage) {
        let now = Instant::now();
        let time = now - self.stage_start;
        if time > self.longest.0 {
            self.longest = (time, self.stage);
        }
        *self.spent.entry(self.stage.kind()).or_default() += time;
        self.stage = stage;
        self.stage_start = now;
    }
}

#[derive(Default)]
struct State {
    running: BTreeMap<usize, Running>,
    slowest: Vec<Slow>,
    spent: Spent,
    over: bool,
}

/// The programs of a run by their times.
#[derive(Default)]
pub(super) struct Watch {
    state: Mutex<State>,
    over: Condvar,
}

impl Watch {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn start(&self, index: usize) {
        let now = Instant::now();
        let running = Running {
            start: now,
            stage: Stage::Generator,
            stage_start: now,
            longest: (Duration::ZERO, Stage::Generator),
            spent: Spent::new(),
            told: Duration::ZERO,
        };
        self.state().running.insert(index, running);
    }

    /// The program begins with this stage.
    pub(super) fn turn(&self, index: usize, stage: Stage) {
        if let Some(running) = self.state().running.get_mut(&index) {
            running.turn(stage);
        }
    }

    pub(super) fn end(&self, index: usize) {
        let mut state = self.state();
        let Some(mut running) = state.running.remove(&index) else {
            return;
        };
        running.turn(running.stage);
        let (stage_time, stage) = running.longest;
        for (kind, time) in running.spent {
            *state.spent.entry(kind).or_default() += time;
        }
        state.slowest.push(Slow {
            index,
            time: running.start.elapsed(),
            stage,
            stage_time,
        });
        state
            .slowest
            .sort_by_key(|slow| std::cmp::Reverse(slow.time));
        state.slowest.truncate(SLOWEST);
    }

    /// The programs that took longest, slowest first.
    pub(super) fn slowest(&self) -> Vec<Slow> {
        self.state().slowest.clone()
    }

    /// How long each kind of stage has taken, in all threads together.
    pub(super) fn spent(&self) -> Spent {
        self.state().spent.clone()
    }

    /// Does `work`, and meanwhile speaks of programs that take long.
    pub(super) fn over<T>(&self, listener: Listener<'_>, work: impl FnOnce() -> T) -> T {
        thread::scope(|scope| {
            scope.spawn(|| self.speak(listener));
            // A panic must end the other thread as well.
            let _end = End(self);
            work()
        })
    }

    fn speak(&self, listener: Listener<'_>) {
        let mut state = self.state();
        while !state.over {
            let waited = self.over.wait_timeout(state, TICK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            let mut slow = Vec::new();
            for (&index, running) in &mut state.running {
                let time = running.start.elapsed();
                if time >= running.told + LONG {
                    running.told = time;
                    slow.push(Slow {
                        index,
                        time,
                        stage: running.stage,
                        stage_time: running.stage_start.elapsed(),
                    });
                }
            }
            drop(state);
            for slow in slow {
                listener(Event::Slow(slow));
            }
            state = self.state();
        }
    }
}

struct End<'a>(&'a Watch);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.state().over = true;
        self.0.over.notify_all();
    }
}
