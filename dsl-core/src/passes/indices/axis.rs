//! What is known along one axis of a tile.

use super::ENDLESS;
use crate::passes::linear::Linear;
use crate::passes::ranges::Range;

/// Facts along one axis. All counts are log2; runs start at multiples of their length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Along {
    /// How many positions there are.
    bits: u32,
    /// In runs of this length each position adds `step`.
    run: u32,
    /// Zero where the runs are single numbers.
    step: Linear,
    /// The first number of each run is a multiple of this.
    divisor: u32,
    /// Runs of this length hold true and then false, or one of them. Equal runs need not be told.
    falling: u32,
}

impl Along {
    /// An axis of `bits` of which nothing is known.
    pub(super) fn unknown(bits: u32) -> Self {
        Self {
            bits,
            ..Self::default()
        }
    }

    /// An axis of which these runs are known.
    pub(super) fn new(bits: u32, (run, step): (u32, Linear), divisor: u32) -> Self {
        Self {
            bits,
            run,
            step: if run == 0 { Linear::default() } else { step },
            divisor: divisor.min(ENDLESS),
            falling: 0,
        }
    }

    /// An axis of equal numbers.
    pub(super) fn still(bits: u32, divisor: u32) -> Self {
        Self::new(bits, (bits, Linear::default()), divisor)
    }

    pub(super) fn falls(mut self, falling: u32) -> Self {
        self.falling = falling;
        self
    }

    pub(super) fn bits(&self) -> u32 {
        self.bits
    }

    pub(super) fn run(&self) -> u32 {
        self.run
    }

    pub(super) fn step(&self) -> &Linear {
        &self.step
    }

    /// The last position.
    #[must_use]
    pub fn last(&self) -> i64 {
        (1 << self.bits) - 1
    }

    /// Runs of this length count up by one.
    #[must_use]
    pub fn counting(&self) -> u32 {
        if self.step.constant() == Some(1) {
            self.run
        } else {
            0
        }
    }

    /// Runs of this length are equal.
    #[must_use]
    pub fn equal(&self) -> u32 {
        if self.step.is_zero() { self.run } else { 0 }
    }

    /// Whether all numbers along it are equal.
    #[must_use]
    pub fn is_still(&self) -> bool {
        self.equal() == self.bits
    }

    /// Runs of this length of a mask hold true and then false, or one of them.
    #[must_use]
    pub fn falling(&self) -> u32 {
        self.falling.max(self.equal())
    }

    /// What each position adds, everywhere.
    #[must_use]
    pub fn whole_step(&self) -> Option<&Linear> {
        (self.run == self.bits).then_some(&self.step)
    }

    /// What divides the first number of each run of `2^run`, not longer than the known one.
    #[must_use]
    pub fn divisor_of_runs(&self, run: u32) -> u32 {
        if run < self.run {
            self.divisor.min(run + self.step.divisor())
        } else {
            self.divisor
        }
    }

    /// The longest runs, up to `2^run`, of which all numbers lie between two neighbouring multiples of
    /// `2^limit`, and the first is such a multiple or one of a lower power that the run does not pass.
    pub(super) fn within(&self, run: u32, limit: u32) -> u32 {
        let Some(step) = self
            .step
            .constant()
            .and_then(|step| u128::try_from(step).ok())
        else {
            return 0;
        };
        let passes = |&run: &u32| {
            let room = self.divisor_of_runs(run).min(limit);
            ((1 << run) - 1) * step < 1 << room
        };
        let runs = (1..=run.min(self.run)).rev();
        runs.into_iter().find(passes).unwrap_or(0)
    }

    /// Whether numbers, which are in `range`, differ by steps as integers of `width` bits: none wraps.
    pub(super) fn is_exact(&self, range: Range, width: u32) -> bool {
        let runs = (1_i128 << self.run) - 1;
        self.step.constant().is_some_and(|step| {
            let reach = i128::from(step).abs() * runs;
            range.high - range.low + reach < 1 << width
        })
    }

    /// What holds where either does.
    pub(super) fn join(&self, other: &Self) -> Self {
        let equal = self.step == other.step;
        let run = u32::from(equal) * self.run.min(other.run);
        let divisor = self.divisor_of_runs(run).min(other.divisor_of_runs(run));
        Self::new(self.bits, (run, self.step.clone()), divisor)
            .falls(self.falling().min(other.falling()))
    }

    /// The same without what scalars add.
    pub(super) fn constant(self) -> Self {
        if self.step.constant().is_some() {
            return self;
        }
        let divisor = self.divisor_of_runs(0);
        Self::new(self.bits, (0, Linear::default()), divisor).falls(self.falling)
    }
}
