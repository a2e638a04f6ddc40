//! Which work must wait for which, where several streams of a GPU use the same memory: pure bookkeeping.
//!
//! The work of a stream has tickets, 1 and up. A memory remembers who wrote it last and who read it since; what a
//! stream has waited for is remembered too, so that nobody waits twice.

use exactile_core::ir::Access;
use smallvec::SmallVec;

/// So many events a stream has in turns: the one for a ticket stands after that ticket at the least.
pub(crate) const EVENTS: usize = 64;

/// Work that used a memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Use {
    /// The stream's number.
    pub(crate) stream: usize,
    /// Which of its work.
    pub(crate) ticket: u64,
}

/// What used a memory last.
#[derive(Clone, Default, Debug)]
pub(crate) struct Uses {
    written: Option<Use>,
    /// Since it was written, the last of each stream.
    read: SmallVec<[Use; 2]>,
}

impl Uses {
    /// What work with this access must wait for.
    pub(crate) fn before(&self, access: Access) -> impl Iterator<Item = Use> + '_ {
        let read = match access {
            Access::Read => &[][..],
            Access::ReadWrite => &self.read,
        };
        self.written.iter().chain(read).copied()
    }

    /// The streams that used it last.
    pub(crate) fn streams(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        self.written
            .iter()
            .chain(&self.read)
            .map(|used| used.stream)
    }

    /// Notes that work uses the memory.
    pub(crate) fn note(&mut self, access: Access, used: Use) {
        match access {
            Access::ReadWrite => {
                self.read.clear();
                self.written = Some(used);
            }
            Access::Read => match self.read.iter_mut().find(|it| it.stream == used.stream) {
                Some(known) => known.ticket = used.ticket,
                None => self.read.push(used),
            },
        }
    }
}

/// A stream.
#[derive(Default, Debug)]
struct Line {
    /// The last ticket.
    last: u64,
    /// For each other stream, up to which ticket this one has waited.
    seen: Vec<u64>,
}

/// The streams of a GPU by number; 0 is the default one.
#[derive(Default, Debug)]
pub(crate) struct Order {
    lines: Vec<Line>,
}

impl Order {
    /// A new stream's number.
    pub(crate) fn add(&mut self) -> usize {
        self.lines.push(Line::default());
        for line in &mut self.lines {
            line.seen.resize(line.seen.len() + 1, 0);
        }
        let count = self.lines.len();
        self.lines[count - 1].seen = vec![0; count];
        count - 1
    }

    /// The last work of a stream.
    pub(crate) fn last(&self, stream: usize) -> Use {
        Use {
            stream,
            ticket: self.lines[stream].last,
        }
    }

    /// What work in `stream` still has to wait for before it uses such a memory.
    pub(crate) fn missing(&self, stream: usize, uses: &Uses, access: Access) -> SmallVec<[Use; 2]> {
        let before = uses.before(access);
        before.filter(|&it| !self.has_seen(stream, it)).collect()
    }

    /// Whether `used` has ended when work starts that is put into `stream` now.
    pub(crate) fn has_seen(&self, stream: usize, used: Use) -> bool {
        used.stream == stream || self.lines[stream].seen[used.stream] >= used.ticket
    }

    /// Where among the events of its stream the one is that ends this work. It may stand after later work.
    pub(crate) fn event(used: Use) -> usize {
        (used.ticket % EVENTS as u64) as usize
    }

    /// Notes that `stream` waits for the event of `used`.
    pub(crate) fn waits(&mut self, stream: usize, used: Use) {
        let last = self.lines[used.stream].last;
        let after = last - (last - used.ticket) % EVENTS as u64;
        let seen = &mut self.lines[stream].seen[used.stream];
        *seen = after.max(*seen);
    }

    /// The ticket of what is put into `stream` now; its event is to be recorded.
    pub(crate) fn next(&mut self, stream: usize) -> Use {
        self.lines[stream].last += 1;
        self.last(stream)
    }
}

#[cfg(test)]
mod tests {
    use exactile_core::random::Random;

    use super::*;

    /// All work that has ended when some work starts: its stream's, and what that waited for, and so on.
    type Past = Vec<u64>;

    fn join(one: &mut Past, other: &Past) {
        for (one, other) in one.iter_mut().zip(other) {
            *one = (*one).max(*other);
        }
    }

    /// Random work of streams on memories. A model follows the events as a GPU does: one ring a stream, whose
    /// places are recorded over and over.
    #[test]
    fn no_two_uses_of_a_memory_meet_unless_both_read() {
        for seed in 0..50 {
            let mut random = Random::stream(seed, 0);
            let count = 2 + random.below(4);
            let mut order = Order::default();
            let streams: Vec<usize> = (0..count).map(|_| order.add()).collect();
            assert_eq!(streams.last(), Some(&(count - 1)));
            let mut past = vec![vec![0; count]; count];
            let mut events = vec![vec![vec![0; count]; EVENTS]; count];
            let mut memories = vec![(Uses::default(), Vec::<(Use, Access)>::new()); 3];
            let (mut waits, mut steps) = (0, 0);
            for _ in 0..400 {
                let stream = random.below(count);
                let memory = random.below(3);
                let access = [Access::Read, Access::ReadWrite][random.below(2)];
                let (uses, history) = &mut memories[memory];
                for used in order.missing(stream, uses, access) {
                    order.waits(stream, used);
                    let seen = events[used.stream][Order::event(used)].clone();
                    join(&mut past[stream], &seen);
                    waits += 1;
                }
                for (used, earlier) in &*history {
                    let both_read = access == Access::Read && *earlier == Access::Read;
                    let ended = used.stream == stream || past[stream][used.stream] >= used.ticket;
                    assert!(both_read || ended, "{used:?} meets stream {stream}");
                }
                let used = order.next(stream);
                past[stream][stream] = used.ticket;
                events[stream][Order::event(used)] = past[stream].clone();
                uses.note(access, used);
                history.push((used, access));
                steps += 1;
            }
            assert!(waits > 0 && waits < 2 * steps, "{waits} of {steps}");
        }
    }

    #[test]
    fn nobody_waits_twice() {
        let mut order = Order::default();
        let (one, other) = (order.add(), order.add());
        let mut uses = Uses::default();
        let used = order.next(one);
        uses.note(Access::ReadWrite, used);
        assert_eq!(order.missing(one, &uses, Access::ReadWrite)[..], []);
        assert_eq!(order.missing(other, &uses, Access::Read)[..], [used]);
        order.waits(other, used);
        assert_eq!(order.missing(other, &uses, Access::ReadWrite)[..], []);
        // Readers do not wait for each other, and a writer waits for all of them.
        let reads = order.next(other);
        uses.note(Access::Read, reads);
        assert_eq!(order.missing(one, &uses, Access::Read)[..], []);
        assert_eq!(order.missing(one, &uses, Access::ReadWrite)[..], [reads]);
        assert!(uses.streams().eq([one, other]));
    }
}
