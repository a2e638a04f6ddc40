//! Some of the numbers that a launch hands to a kernel, by their parameters.

/// A set of parameters. Those from number 127 on are in it together or not at all.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Numbers(u128);

impl Numbers {
    /// Those behind all parameters.
    pub const ALL: Self = Self(u128::MAX);

    /// The one behind this parameter.
    // Launches ask it of each argument.
    #[inline]
    #[must_use]
    pub fn of(parameter: usize) -> Self {
        Self(1 << parameter.min(127))
    }

    /// Those of either set.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the one behind this parameter is among them.
    #[inline]
    #[must_use]
    pub fn has(self, parameter: usize) -> bool {
        self.0 & Self::of(parameter).0 != 0
    }
}

impl FromIterator<usize> for Numbers {
    fn from_iter<I: IntoIterator<Item = usize>>(parameters: I) -> Self {
        let each = parameters.into_iter().map(Self::of);
        each.fold(Self::default(), Self::and)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_beyond_the_last_stand_together() {
        let some = Numbers::from_iter([0, 126]);
        assert!(some.has(0) && some.has(126) && !some.has(1) && !some.has(127));
        let last = Numbers::of(5000);
        assert!(last.has(127) && last.has(128) && !last.has(126));
        assert_eq!(some.and(Numbers::ALL), Numbers::ALL);
    }
}
