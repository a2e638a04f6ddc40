//! One pass over the vectors of a line: steps of a sort that groups of vectors do in registers.
//!
//! Vectors that meet differ by the exclusive or with a mask. The numbers that are exclusive ors of the masks of
//! some steps are those of a group: which bits are in its place of memory, and which are flipped there.

use super::index::Scalar;
use super::lowerer::Lowerer;
use super::sort::Line;
use crate::ir::{DType, Value};
use crate::layout::Holder;
use crate::layout::sorting::{Meeting, SortStep};
use crate::lower::ordered::{lesser, ordered};

/// A group of a pass has two to this power of vectors.
const PASS_BITS: usize = 3;

/// Of so many comparisons one has its greater element by operations on bits: processors have two units for minima and
/// maxima, and a third one for bits.
const BY_BITS: usize = 3;

/// The meetings of a sort of eight vectors by themselves, and pairs that sort them, too, and are fewer.
const EIGHT: [u32; 6] = [1, 3, 1, 7, 2, 1];
const SHORTER: [(usize, usize); 19] = [
    (0, 2),
    (1, 3),
    (4, 6),
    (5, 7),
    (0, 4),
    (1, 5),
    (2, 6),
    (3, 7),
    (0, 1),
    (2, 3),
    (4, 5),
    (6, 7),
    (2, 4),
    (3, 5),
    (1, 4),
    (3, 6),
    (1, 2),
    (3, 4),
    (5, 6),
];

/// The steps that one pass does.
pub(super) struct Pass<'a> {
    pub meetings: Vec<&'a Meeting>,
    /// Numbers whose exclusive ors are those of a group, each with a highest bit that no other one has.
    basis: Vec<u32>,
}

impl<'a> Pass<'a> {
    /// The next steps, as many as groups have vectors for. It must be known which vector of a group has the lesser
    /// elements.
    pub(super) fn of(steps: &'a [SortStep]) -> Self {
        let mut pass = Self {
            meetings: Vec::new(),
            basis: Vec::new(),
        };
        for step in steps {
            let SortStep::Exchange(meeting) = step else {
                break;
            };
            let masks = pass.meetings.iter().copied().chain([meeting]);
            let basis = basis(masks.map(|it| it.registers));
            let pivots = pivots(&basis);
            let mut holders = pass.meetings.iter().copied().chain([meeting]);
            let is_known = |meeting: &Meeting| match meeting.holder {
                Holder::Register(bit) => pivots >> bit & 1 == 1,
                Holder::Lane(_) | Holder::Warp(_) | Holder::Mixed => true,
            };
            if basis.len() > PASS_BITS || !holders.all(is_known) {
                break;
            }
            pass.meetings.push(meeting);
            pass.basis = basis;
        }
        debug_assert!(
            !pass.meetings.is_empty(),
            "broken invariant: a meeting is one of a group"
        );
        pass
    }

    /// The numbers of a group, in the order of the bits that are their place.
    fn members(&self) -> Vec<u32> {
        let mut members = vec![0];
        for base in &self.basis {
            let with: Vec<u32> = members.iter().map(|member| member ^ base).collect();
            members.extend(with);
        }
        members
    }

    /// Which vectors of a group meet and in what, in order, the one with the lesser elements first.
    fn pairs(&self) -> Vec<(usize, usize, &'a Meeting)> {
        let masks = self.meetings.iter().map(|it| (it.lanes, it.registers));
        if masks.eq(EIGHT.map(|registers| (0, registers))) {
            let pairs = SHORTER.map(|(lower, upper)| (lower, upper, self.meetings[0]));
            return pairs.into();
        }
        let members = self.members();
        let mut pairs = Vec::new();
        for &meeting in &self.meetings {
            for (number, member) in members.iter().enumerate() {
                let met = member ^ meeting.registers;
                let other = members.iter().position(|&member| member == met);
                let other = other.expect("broken invariant: a group has all that its vectors meet");
                let is_lower = match meeting.holder {
                    Holder::Register(bit) => member >> bit & 1 == 0,
                    Holder::Lane(_) | Holder::Warp(_) | Holder::Mixed => number <= other,
                };
                if is_lower {
                    pairs.push((number, other, meeting));
                }
            }
        }
        pairs
    }
}

/// The bits that tell the numbers of a group apart.
fn pivots(basis: &[u32]) -> u32 {
    basis.iter().map(|base| 1 << base.ilog2()).sum()
}

/// A basis of masks, the lowest first, in which the highest bit of each is in no other one.
fn basis(masks: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut basis: Vec<u32> = Vec::new();
    for mask in masks {
        let has = |number: u32, base: u32| number >> base.ilog2() & 1 == 1;
        let reduced = basis
            .iter()
            .fold(mask, |number, &base| match has(number, base) {
                true => number ^ base,
                false => number,
            });
        if reduced == 0 {
            continue;
        }
        for base in &mut basis {
            *base ^= if has(*base, reduced) { reduced } else { 0 };
        }
        basis.push(reduced);
    }
    basis.sort_unstable();
    basis
}

impl Lowerer<'_> {
    /// Does the steps of a pass on all vectors of a line.
    pub(super) fn compare(&mut self, line: &Line, pass: &Pass<'_>) {
        let (pivots, members, unit) = (pivots(&pass.basis), pass.members(), line.lanes as i64);
        let pairs = pass.pairs();
        self.each_group(line, pivots, &mut |this, start| {
            let places = members.iter().map(|member| {
                let flipped = i64::from(member & !pivots) * unit;
                (this.xor(start, flipped), i64::from(member & pivots) * unit)
            });
            let places: Vec<(Scalar, i64)> = places.collect();
            let mut group = Vec::new();
            for &(start, place) in &places {
                group.push(this.read(line, start, place));
            }
            for (count, &(number, other, meeting)) in pairs.iter().enumerate() {
                let (a, b) = (&group[number], &group[other]);
                let [first, second] = match meeting.holder {
                    Holder::Lane(bit) => this.compare_lanes(line, (meeting, bit), a, b),
                    Holder::Register(_) if count % BY_BITS == 0 => this.ordered_by_bits(line, a, b),
                    Holder::Register(_) | Holder::Warp(_) | Holder::Mixed => {
                        ordered(&mut this.builder, line.keys, a, b).into()
                    }
                };
                group[other] = second;
                group[number] = first;
            }
            for (&(start, place), element) in places.iter().zip(&group) {
                this.write(line, start, place, element);
            }
        });
    }

    /// Runs `body` with the start of each group: the numbers of vectors without any of these bits.
    fn each_group(&mut self, line: &Line, pivots: u32, body: &mut dyn FnMut(&mut Self, Scalar)) {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for bit in (0..line.vertical)
            .rev()
            .filter(|bit| pivots >> bit & 1 == 0)
        {
            match runs.last_mut() {
                Some((low, _)) if *low == bit + 1 => *low = bit,
                Some(_) | None => runs.push((bit, bit + 1)),
            }
        }
        self.each_of_runs(line.lanes as i64, &runs, Scalar::Known(0), body);
    }

    /// The same with the numbers of these runs of bits, `start` being those above.
    fn each_of_runs(
        &mut self,
        unit: i64,
        runs: &[(u32, u32)],
        start: Scalar,
        body: &mut dyn FnMut(&mut Self, Scalar),
    ) {
        let Some((&(low, high), rest)) = runs.split_first() else {
            return body(self, start);
        };
        self.each(unit << high, unit << low, &mut |this, position| {
            let start = this.add(start, position);
            this.each_of_runs(unit, rest, start, body);
        });
    }

    /// The lesser element and the greater one, which has what bits of both the lesser one has not.
    fn ordered_by_bits(&mut self, line: &Line, a: &[Value], b: &[Value]) -> [Vec<Value>; 2] {
        let narrow = matches!(line.buffers[0].dtype, DType::I8 | DType::I16 | DType::I32);
        let (&[one], &[other], true) = (a, b, narrow) else {
            return ordered(&mut self.builder, line.keys, a, b).into();
        };
        let first = lesser(&mut self.builder, line.keys, a, b);
        let both = self.builder.xor(one, other);
        let greatest = self.builder.xor(both, first[0]);
        [first, vec![greatest]]
    }

    /// Two vectors compared along a bit of the lane, or one with itself.
    fn compare_lanes(
        &mut self,
        line: &Line,
        (meeting, bit): (&Meeting, u32),
        own: &[Value],
        other: &[Value],
    ) -> [Vec<Value>; 2] {
        let turned = self.permuted(line, other, meeting.lanes);
        let (lesser, greater) = ordered(&mut self.builder, line.keys, own, &turned);
        let first = self.blended(line, &lesser, &greater, bit);
        if meeting.registers == 0 {
            return [first.clone(), first];
        }
        let second = self.blended(line, &greater, &lesser, bit);
        [first, self.permuted(line, &second, meeting.lanes)]
    }
}

#[cfg(test)]
mod tests {
    use super::super::sort::steps_of_lines;
    use super::*;

    /// The passes of a line that is sorted whole.
    fn passes(extent: usize, lanes: usize) -> usize {
        let steps = steps_of_lines(extent, lanes, extent);
        let (mut rest, mut count) = (&steps[..], 0);
        while !rest.is_empty() {
            let pass = Pass::of(rest);
            assert!(!pass.meetings.is_empty(), "{extent} in {lanes}");
            let members = pass.members();
            assert_eq!(members.len(), 1 << pass.basis.len());
            for meeting in &pass.meetings {
                let met = |member: &u32| members.contains(&(member ^ meeting.registers));
                assert!(members.iter().all(met), "{extent} in {lanes}: {meeting:?}");
            }
            rest = &rest[pass.meetings.len()..];
            count += 1;
        }
        count
    }

    #[test]
    fn fewer_pairs_sort_eight_vectors() {
        // What sorts all sequences of zeros and ones sorts everything.
        for bits in 0..256 {
            let mut ones: Vec<u32> = (0..8).map(|at| bits >> at & 1).collect();
            for (lower, upper) in SHORTER {
                if ones[lower] > ones[upper] {
                    ones.swap(lower, upper);
                }
            }
            assert!(ones.is_sorted(), "{bits:#b}");
        }
    }

    #[test]
    fn every_step_is_in_a_pass() {
        for extent in (0..14).map(|bits| 1 << bits) {
            for lanes in [1, 2, 4, 8, 16] {
                passes(extent, lanes);
            }
        }
        // 55 steps, of which the first six are among eight vectors.
        assert_eq!(passes(1024, 4), 17);
    }
}
