//! Facts about the numbers of a tile along its axes.

/// Facts along one axis. All counts are log2; runs start at multiples of their length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AxisFacts {
    /// Runs of this length count up by one.
    pub contiguous: u32,
    /// Runs of this length are equal.
    pub constant: u32,
    /// Runs of this length hold true and then false, or one of them. Equal runs need not be told.
    pub(super) falling: u32,
    /// The first number of every counting run is a multiple of this.
    pub divisor: u32,
}

impl AxisFacts {
    /// What divides the first number of each run of `2^run`, not longer than the counting run.
    #[must_use]
    pub fn divisor_of_runs(&self, run: u32) -> u32 {
        if run < self.contiguous {
            self.divisor.min(run)
        } else {
            self.divisor
        }
    }

    /// Runs of this length of a mask hold true and then false, or one of them.
    #[must_use]
    pub fn falling(&self) -> u32 {
        self.falling.max(self.constant)
    }

    fn join(self, other: Self) -> Self {
        let contiguous = self.contiguous.min(other.contiguous);
        Self {
            contiguous,
            constant: self.constant.min(other.constant),
            falling: self.falling().min(other.falling()),
            divisor: self
                .divisor_of_runs(contiguous)
                .min(other.divisor_of_runs(contiguous)),
        }
    }
}

/// Facts about a value: one entry for each axis, and for a scalar one entry that only has a divisor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    pub(super) axes: Vec<AxisFacts>,
    pub(super) scalar_divisor: u32,
}

impl Facts {
    /// The facts along an axis.
    #[must_use]
    pub fn axis(&self, axis: usize) -> AxisFacts {
        self.axes.get(axis).copied().unwrap_or_default()
    }

    /// The log2 of the known divisor of a scalar.
    #[must_use]
    pub fn scalar_divisor(&self) -> u32 {
        self.scalar_divisor
    }

    pub(super) fn unknown(rank: usize) -> Self {
        Self {
            axes: vec![AxisFacts::default(); rank],
            scalar_divisor: 0,
        }
    }

    pub(super) fn join(&self, other: &Self) -> Self {
        let axes = self
            .axes
            .iter()
            .zip(&other.axes)
            .map(|(a, b)| a.join(*b))
            .collect();
        Self {
            axes,
            scalar_divisor: self.scalar_divisor.min(other.scalar_divisor),
        }
    }
}
