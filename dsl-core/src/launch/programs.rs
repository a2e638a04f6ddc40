//! The programs of a launch that run.

/// The programs of a launch that run, by linear index: all of them, or some spread evenly over the grid from the first to the
/// last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Programs {
    of: u64,
    chosen: u64,
}

impl Programs {
    /// Of a grid of `of` programs at most `sample`.
    #[must_use]
    pub fn new(of: u64, sample: Option<u64>) -> Self {
        let chosen = sample.unwrap_or(of).min(of);
        Self { of, chosen }
    }

    /// How many run.
    #[must_use]
    pub fn count(self) -> u64 {
        self.chosen
    }

    /// The linear index of the one in this place among those that run.
    #[must_use]
    pub fn at(self, place: u64) -> u64 {
        if self.chosen == self.of {
            return place;
        }
        let last = u128::from(self.of.saturating_sub(1));
        let gaps = u128::from(self.chosen.max(2) - 1);
        (last * u128::from(place) / gaps) as u64
    }

    /// All that run, in ascending order.
    pub fn all(self) -> impl Iterator<Item = u64> {
        (0..self.chosen).map(move |place| self.at(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_counted_and_not_listed() {
        let all = |of, sample| Programs::new(of, sample).all().collect::<Vec<u64>>();
        assert_eq!(all(1, None), [0]);
        assert_eq!(all(3, None), [0, 1, 2]);
        assert_eq!(Programs::new(1 << 40, None).all().size_hint().0, 1 << 40);
        assert_eq!(all(2, Some(3)), [0, 1]);
        assert_eq!(all(9, Some(1)), [0]);
        assert_eq!(all(1 << 40, Some(3)), [0, (1 << 39) - 1, (1 << 40) - 1]);
        assert!(all(9, Some(0)).is_empty());
    }
}
