//! Which lanes of a thread block take part.

use super::elements::Elements;

/// One flag for each lane.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Mask(Vec<bool>);

impl Mask {
    /// All lanes.
    pub(super) fn all(lanes: usize) -> Self {
        Self(vec![true; lanes])
    }

    /// The lanes of this mask where `condition` is `expected`.
    pub(super) fn and(&self, condition: &Elements, expected: bool) -> Self {
        self.filter(|lane| (condition.get(lane) != 0) == expected)
    }

    /// The lanes of this mask that satisfy a condition.
    pub(super) fn filter(&self, holds: impl Fn(usize) -> bool) -> Self {
        let flags = self.0.iter().enumerate();
        Self(flags.map(|(lane, &active)| active && holds(lane)).collect())
    }

    /// Whether any lane takes part.
    pub(super) fn any(&self) -> bool {
        self.0.contains(&true)
    }

    /// The lanes that take part, in order.
    pub(super) fn lanes(&self) -> impl Iterator<Item = usize> {
        self.0
            .iter()
            .enumerate()
            .filter(|(_, active)| **active)
            .map(|(lane, _)| lane)
    }

    /// A lane that does not take part, among those of every group of `group` lanes of which some
    /// take part.
    pub(super) fn missing(&self, group: usize) -> Option<usize> {
        let groups = self.0.chunks(group).enumerate();
        groups
            .filter(|(_, flags)| flags.contains(&true))
            .find_map(|(index, flags)| {
                flags
                    .iter()
                    .position(|&active| !active)
                    .map(|lane| index * group + lane)
            })
    }

    /// `on` in the lanes of this mask, `off` in the others, for values of `width` elements.
    pub(super) fn merge(&self, on: &Elements, off: &Elements, width: usize) -> Elements {
        if !self.0.contains(&false)
            || (on.is_uniform() && off.is_uniform() && on.scalar() == off.scalar())
        {
            return on.clone();
        }
        let lanes = self.0.len();
        let elements = (0..width * lanes).map(|place| {
            let source = if self.0[place % lanes] { on } else { off };
            source.get(place)
        });
        Elements::new(elements.collect())
    }
}
