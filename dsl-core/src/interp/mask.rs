//! Which lanes of a warp take part.

use super::elements::Elements;

/// One bit for each lane of a warp, lane 0 lowest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mask {
    active: u32,
    all: u32,
}

impl Mask {
    /// All of 1 to 32 lanes.
    pub(super) fn all(lanes: usize) -> Self {
        let all = u32::MAX >> (u32::BITS as usize - lanes);
        Self { active: all, all }
    }

    /// The lanes of this mask where `condition` is `expected`.
    pub(super) fn and(self, condition: &Elements, expected: bool) -> Self {
        match condition {
            Elements::Uniform(bits) if (*bits != 0) == expected => self,
            Elements::Uniform(_) => Self { active: 0, ..self },
            Elements::Each(_) => self.filter(|lane| (condition.get(lane) != 0) == expected),
        }
    }

    /// The lanes of this mask that satisfy a condition.
    pub(super) fn filter(self, holds: impl Fn(usize) -> bool) -> Self {
        let kept = self.lanes().filter(|&lane| holds(lane));
        let active = kept.fold(0, |active, lane| active | 1 << lane);
        Self { active, ..self }
    }

    /// Whether any lane takes part.
    pub(super) fn any(self) -> bool {
        self.active != 0
    }

    /// Whether this lane takes part.
    pub(super) fn has(self, lane: usize) -> bool {
        self.active >> lane & 1 != 0
    }

    /// The lanes that take part, in order.
    pub(super) fn lanes(self) -> impl Iterator<Item = usize> {
        let mut left = self.active;
        std::iter::from_fn(move || {
            let lane = left.trailing_zeros();
            left &= left.checked_sub(1)?;
            Some(lane as usize)
        })
    }

    /// A lane that does not take part.
    pub(super) fn missing(self) -> Option<usize> {
        let missing = self.all & !self.active;
        (missing != 0).then(|| missing.trailing_zeros() as usize)
    }

    /// `on` in the lanes of this mask, `off` in the others, for values of `width` elements.
    pub(super) fn merge(self, on: &Elements, off: &Elements, width: usize) -> Elements {
        if self.active == self.all
            || (on.is_uniform() && off.is_uniform() && on.scalar() == off.scalar())
        {
            return on.clone();
        }
        let lanes = self.all.count_ones() as usize;
        let elements = (0..width * lanes).map(|place| {
            let source = if self.has(place % lanes) { on } else { off };
            source.get(place)
        });
        Elements::new(elements.collect())
    }
}
