//! Lets the warps of a thread block take turns, and finds those that wait for ever.

use super::control::Frame;
use super::runner::{Runner, Warp};
use super::{Machine, Moment, Report, Timing, Turns, lanes, warps};
use crate::interp::clock::Clock;
use crate::interp::fault::Waiting;
use crate::interp::{Fault, FaultKind};
use crate::ir::Inst;
use crate::random::Random;

/// What a warp waits for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wait {
    /// That all warps come to its instruction, which is the meeting of this number.
    Meeting(u64),
    /// The same, while the others come to another instruction.
    Elsewhere,
    /// That a phase of the mbarrier at byte `word` is over.
    Phase { word: usize, phase: i64 },
    /// That all have met at a barrier with a number, after they have met so often before.
    Named { id: i64, over: u64 },
    /// That its copies out up to this number are over.
    Out(u64),
}

/// Where all warps of the thread block come together, one place after the other.
pub(super) struct Meeting {
    warps: usize,
    at: Option<Inst>,
    arrived: usize,
    /// The meetings that are over.
    over: u64,
    /// What those that have arrived know.
    gathered: Clock,
    /// What everybody knows after the last barrier.
    known: Clock,
}

impl Meeting {
    pub(super) fn new(warps: usize) -> Self {
        Self {
            warps,
            at: None,
            arrived: 0,
            over: 0,
            gathered: Clock::new(warps),
            known: Clock::new(warps),
        }
    }

    /// A warp arrives: what it waits for, and whether it is the last.
    pub(super) fn arrive(&mut self, inst: Inst, clock: &Clock) -> (Wait, bool) {
        if *self.at.get_or_insert(inst) != inst {
            return (Wait::Elsewhere, false);
        }
        let wait = Wait::Meeting(self.over);
        self.gathered.learn(clock);
        self.arrived += 1;
        let last = self.arrived == self.warps;
        if last {
            self.at = None;
            self.arrived = 0;
            self.over += 1;
        }
        (wait, last)
    }

    /// The meeting that is just over is a barrier: everything before it is over for all.
    pub(super) fn order(&mut self) {
        (0..self.warps).for_each(|warp| self.gathered.advance(warp));
        self.known.learn(&self.gathered);
    }
}

/// A thread block and the order of its warps.
pub(super) struct Scheduler<'a> {
    machine: Machine<'a>,
    warps: Vec<Warp>,
    turns: Turns,
    random: Random,
    /// What decides when copies happen, if they happen at random times.
    moments: Option<Random>,
    /// The order of the next round, by the index of the warp.
    round: Vec<usize>,
}

/// The most instructions of a warp in a row in a random order.
const RANDOM_STEPS: usize = 24;

impl<'a> Scheduler<'a> {
    pub(super) fn new(machine: Machine<'a>, Timing { turns, copies }: Timing) -> Self {
        let count = warps(machine.func);
        let mut round: Vec<usize> = (0..count).collect();
        let seed = match turns {
            Turns::RoundRobin | Turns::Ascending => 0,
            Turns::Descending => {
                round.reverse();
                0
            }
            Turns::Random(seed) => seed,
        };
        Self {
            warps: (0..count).map(|index| Warp::new(&machine, index)).collect(),
            machine,
            turns,
            random: Random::new(seed),
            moments: match copies {
                Moment::Latest | Moment::Earliest => None,
                Moment::Random(seed) => Some(Random::new(seed)),
            },
            round,
        }
    }

    pub(super) fn into_report(self) -> Report {
        self.machine.report
    }

    /// Runs a program to its end.
    pub(super) fn run(&mut self, program: u64) -> Result<(), Fault> {
        self.start(program);
        while self.round()? || self.land()? {
            if std::mem::take(&mut self.machine.stopped) {
                return self.abandon();
            }
        }
        if self.warps.iter().any(|warp| warp.wait.is_some()) {
            return Err(self.deadlock());
        }
        self.machine.nothing_left()?;
        let unfinished = |warp: &Warp| warp.unfinished_copy().or_else(|| warp.unfinished());
        let unfinished = self.warps.iter().find_map(unfinished);
        if let Some((lane, inst)) = unfinished {
            return Err(self.machine.fault(inst, FaultKind::Unfinished { lane }));
        }
        self.warps.iter_mut().for_each(Warp::abandon);
        Ok(())
    }

    /// Brings all warps to the start of a program, after all that they did before.
    fn start(&mut self, program: u64) {
        let machine = &mut self.machine;
        machine.program = program;
        machine.transfer.restart(&mut machine.meeting.gathered);
        machine.shared.forget_words();
        for warp in &self.warps {
            machine.meeting.gathered.learn(&warp.clock);
        }
        machine.meeting.order();
        for warp in &mut self.warps {
            warp.clock.learn(&machine.meeting.known);
            warp.clock.fence();
            let body = Frame::body(machine.func.body(), lanes(machine.func));
            warp.frames = vec![body];
        }
    }

    /// Ends a program early: nothing runs and nothing is copied any more. Bulk copies cannot be abandoned: they would reach
    /// into memory that is another's by then.
    fn abandon(&mut self) -> Result<(), Fault> {
        let machine = &mut self.machine;
        machine
            .transfer
            .nothing_flies()
            .map_err(|(inst, lane)| machine.fault(inst, FaultKind::Unfinished { lane }))?;
        while !machine.transfer.flights.is_empty() {
            machine.land_one(0)?;
        }
        for warp in &mut self.warps {
            warp.frames.clear();
            warp.wait = None;
            warp.abandon();
            Runner { machine, warp }.abandon_copies();
        }
        Ok(())
    }

    /// Gives each warp a turn; whether any could go on.
    fn round(&mut self) -> Result<bool, Fault> {
        if matches!(self.turns, Turns::Random(_)) {
            self.random.shuffle(&mut self.round);
        }
        let mut any = false;
        for turn in 0..self.round.len() {
            let steps = match self.turns {
                Turns::RoundRobin => 1,
                Turns::Ascending | Turns::Descending => usize::MAX,
                Turns::Random(_) => 1 + self.random.below(RANDOM_STEPS),
            };
            any |= self.turn(self.round[turn], steps)?;
        }
        Ok(any)
    }

    /// Runs a warp until it waits or has ended, or for some instructions; whether anything happened.
    fn turn(&mut self, warp: usize, steps: usize) -> Result<bool, Fault> {
        let moved = self.move_copies()?;
        let (machine, warp) = (&mut self.machine, &mut self.warps[warp]);
        for step in 0..steps {
            if warp.frames.is_empty() || machine.stopped || !machine.lets_go(warp)? {
                return Ok(moved || step > 0);
            }
            Runner { machine, warp }.step()?;
        }
        Ok(true)
    }

    /// Lets some copies happen, if it is up to chance when they do; whether one in bulk did.
    fn move_copies(&mut self) -> Result<bool, Fault> {
        let Some(random) = self.moments.as_mut() else {
            return Ok(false);
        };
        if !random.one_in(8) {
            return Ok(false);
        }
        let warp = random.below(self.warps.len());
        for copied in self.warps[warp].copies.move_some(random) {
            self.machine.move_element(copied);
        }
        self.land()
    }

    /// Ends a bulk copy; whether there was one.
    fn land(&mut self) -> Result<bool, Fault> {
        let flights = self.machine.transfer.flights.len();
        if flights == 0 {
            return Ok(false);
        }
        let one = self.moments.as_mut().map_or(0, |it| it.below(flights));
        self.machine.land_one(one)?;
        Ok(true)
    }

    /// Says who waits for what.
    fn deadlock(&self) -> Fault {
        let mut waiting: Vec<Waiting> = Vec::new();
        let mut first = None;
        for warp in &self.warps {
            let at = warp.wait.map(|(inst, _)| {
                first.get_or_insert(inst);
                let data = self.machine.func.inst(inst);
                (data.op.mnemonic(), data.loc.clone())
            });
            let missing = warp.wait.and_then(|(_, wait)| self.machine.missing(wait));
            let alike = |known: &&mut Waiting| known.at == at && known.missing == missing;
            match waiting.iter_mut().find(alike) {
                Some(known) => known.warps.push(warp.index),
                None => waiting.push(Waiting {
                    warps: vec![warp.index],
                    at,
                    missing,
                }),
            }
        }
        let first = first.expect("broken invariant: a warp waits");
        self.machine.fault(first, FaultKind::Deadlock(waiting))
    }
}

impl Machine<'_> {
    /// Whether a warp waits for nothing, or no more.
    fn lets_go(&mut self, warp: &mut Warp) -> Result<bool, Fault> {
        let Some((inst, wait)) = warp.wait else {
            return Ok(true);
        };
        let over = match wait {
            Wait::Meeting(number) => {
                let over = number != self.meeting.over;
                if over {
                    warp.clock.learn(&self.meeting.known);
                }
                over
            }
            Wait::Elsewhere | Wait::Phase { .. } | Wait::Named { .. } | Wait::Out(_) => {
                let over = self.lets_go_on(warp, wait);
                over.map_err(|kind| self.fault(inst, kind.into()))?
            }
        };
        if over {
            warp.wait = None;
        }
        Ok(over)
    }
}
