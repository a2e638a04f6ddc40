//! The streams of a GPU: what is put into them, in which order, and what became of it.

#![expect(unsafe_code, reason = "launches of the backend are unsafe")]

mod adopted;
mod apart;
mod point;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use exactile_core::ir::Access;
use exactile_core::launch::Launch;
use exactile_nvptx::{DeviceBuffer, Event, Records, Stream};

pub(crate) use point::Point;

use super::graphs::{MOST_REPLAYS, Replayed};
use super::watch::Watched;
use super::{Gpu, GpuCode, Placed, Words, failed};
use crate::apart::APART;
use crate::error::{Error, Result};
use crate::failure::Failure;
use crate::launch::Checked;
use crate::order::{EVENTS, Order, Use, Uses};
use crate::profile::Label;
use crate::stream::DEFAULT;

/// All streams of a GPU. There is one until another is asked for, and as long nothing of the order is written down.
#[derive(Default, Debug)]
pub(super) struct Queues {
    order: Order,
    list: Vec<Line>,
    /// Numbers of streams that nobody has any more. What is in them still runs.
    free: Vec<usize>,
    /// The same of streams that others have made, and that are kept for another one.
    vacant: Vec<usize>,
    /// How often a stream was handed out.
    handed_out: usize,
    /// What somebody watches.
    pub(super) watched: Option<Watched>,
}

/// The checked launches of a stream.
pub(super) type Ends = Records<Pending<Box<Checked>>>;

/// What may fail in a stream and has not ended, as far as anybody knows.
#[derive(Debug)]
pub(super) struct Pending<T> {
    /// The number under which its error is kept.
    owner: usize,
    /// Its place among what may fail in the stream.
    turn: u64,
    what: T,
}

/// A stream.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) stream: Arc<Stream>,
    /// Under which number its errors are kept, another one for each who has it.
    owner: usize,
    /// Recorded after all work, in turns; none while there is one stream.
    ends: Vec<Arc<Event>>,
    /// Of checked launches.
    records: Ends,
    /// Of graphs that check bounds.
    replays: VecDeque<Pending<Replayed>>,
    /// How much was put here that may fail.
    turns: u64,
}

impl Line {
    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }

    fn pending<T>(&mut self, what: T) -> Pending<T> {
        self.turns += 1;
        Pending {
            owner: self.owner,
            turn: self.turns,
            what,
        }
    }

    /// Ends a replay that may fail, and notes it.
    pub(super) fn add_replay(&mut self, replayed: Option<Replayed>) -> Result<()> {
        let Some(mut replayed) = replayed else {
            return Ok(());
        };
        let ended = replayed.end(&self.stream);
        let pending = self.pending(replayed);
        self.replays.push_back(pending);
        ended
    }

    /// A capture of a stream that others have made would take what is put there.
    #[inline]
    fn refuse_capture(&self) -> Result<()> {
        match self.stream.is_captured().map_err(failed)? {
            false => Ok(()),
            true => Err(Error::Invalid(
                "a stream of others is being captured: launch after its capture, or capture by `Stream::capture`".to_string(),
            )),
        }
    }

    /// The first of what may fail here, if it has ended; `waits`: after waiting for it. Under which number its error is kept,
    /// and what became of it if that is an error. While others capture the stream nothing is seen, because an event that could not be placed
    /// before would be placed in it now.
    fn first_end(&mut self, waits: bool) -> Result<Option<(usize, Option<Arc<Failure>>)>> {
        match self.refuse_capture() {
            Ok(()) => {}
            Err(error) if waits => return Err(error),
            Err(_) => return Ok(None),
        }
        let launch = self.records.first().map(|it| it.turn);
        let replay = self.replays.front().map(|it| it.turn);
        if let Some(turn) = replay
            && launch.is_none_or(|launch| turn < launch)
        {
            let (stream, first) = (&self.stream, self.replays.front_mut());
            let ended = first.map_or(Ok(false), |it| it.what.has_ended(stream, waits))?;
            let ended = ended.then(|| self.replays.pop_front()).flatten();
            return match ended {
                None => Ok(None),
                Some(it) => Ok(Some((it.owner, it.what.ended(stream)?))),
            };
        }
        let ended = self.records.take_first(&self.stream, waits);
        Ok(ended
            .map_err(failed)?
            .map(|(it, error)| (it.owner, it.what.ended(error))))
    }
}

impl Queues {
    pub(super) fn new(stream: Arc<Stream>, records: Ends) -> Self {
        let mut queues = Self::default();
        queues.add(stream, Vec::new(), records);
        queues
    }

    fn add(&mut self, stream: Arc<Stream>, ends: Vec<Arc<Event>>, records: Ends) -> usize {
        self.list.push(Line {
            stream,
            owner: DEFAULT,
            ends,
            records,
            replays: VecDeque::new(),
            turns: 0,
        });
        self.order.add()
    }

    pub(super) fn line(&self, number: usize) -> &Line {
        &self.list[number]
    }

    /// Nobody has this stream any more.
    fn give_back(&mut self, number: usize) {
        match self.list[number].stream.adopted() {
            None => self.free.push(number),
            Some(_) => self.vacant.push(number),
        }
    }

    /// Whether the order of work is written down.
    pub(super) fn are_several(&self) -> bool {
        self.list.len() > 1
    }

    /// Has a stream wait for `used` before what is put into it next.
    fn wait(&mut self, number: usize, used: Use) -> Result<()> {
        if !self.order.has_seen(number, used) {
            let event = &self.list[used.stream].ends[Order::event(used)];
            self.list[number].stream.wait(event).map_err(failed)?;
            self.order.waits(number, used);
        }
        Ok(())
    }

    /// A capture of a stream that others have made would take what is put there, with memory that may be gone when its graph
    /// runs.
    #[inline]
    pub(super) fn refuse_capture(&self, number: usize) -> Result<()> {
        self.list[number].refuse_capture()
    }

    /// Has a stream wait for what used this memory before.
    pub(super) fn wait_for(
        &mut self,
        number: usize,
        uses: &Mutex<Uses>,
        access: Access,
    ) -> Result<()> {
        if self.are_several() {
            for used in self.order.missing(number, &locked(uses), access) {
                self.wait(number, used)?;
            }
        }
        Ok(())
    }

    /// The events that end what used this memory before.
    pub(super) fn ends_of(&self, uses: &Mutex<Uses>, access: Access) -> Vec<Arc<Event>> {
        let end = |used: Use| Arc::clone(&self.list[used.stream].ends[Order::event(used)]);
        locked(uses).before(access).map(end).collect()
    }

    /// Puts work into a stream that uses these memories; `label`: of what it is.
    pub(super) fn put<'m>(
        &mut self,
        number: usize,
        memories: impl Iterator<Item = (&'m Mutex<Uses>, Access)> + Clone,
        label: impl FnOnce() -> Label,
        work: impl FnOnce(&mut Line) -> Result<()>,
    ) -> Result<()> {
        self.refuse_capture(number)?;
        if !self.are_several() && self.watched.is_none() {
            self.order.next(number);
            return work(&mut self.list[number]);
        }
        self.put_in_order(number, memories, label, work)
    }

    /// The same where there are several streams, or somebody watches.
    #[cold]
    fn put_in_order<'m>(
        &mut self,
        number: usize,
        memories: impl Iterator<Item = (&'m Mutex<Uses>, Access)> + Clone,
        label: impl FnOnce() -> Label,
        work: impl FnOnce(&mut Line) -> Result<()>,
    ) -> Result<()> {
        let work = |queues: &mut Self| {
            let start = queues.begin_span(number)?;
            work(&mut queues.list[number])?;
            queues.end_span(number, start, label)
        };
        if !self.are_several() {
            self.order.next(number);
            return work(self);
        }
        for (uses, access) in memories.clone() {
            self.wait_for(number, uses, access)?;
        }
        let used = self.order.next(number);
        // A part of the work may be queued even where it fails.
        let done = work(self);
        let recorded = self.record(used);
        for (uses, access) in memories {
            locked(uses).note(access, used);
        }
        done.and(recorded)
    }

    /// Gives memory back in the stream that used it last, after all other work that uses it. A stream of others may be captured
    /// at any time, and nobody knows when memory goes: in its place the default one waits for that work.
    pub(super) fn free(&mut self, buffer: &mut DeviceBuffer, uses: &Mutex<Uses>) -> Result<()> {
        let last = locked(uses).streams().next_back();
        let last = last.filter(|&number| self.list[number].stream.adopted().is_none());
        let number = last.unwrap_or(DEFAULT);
        self.wait_for(number, uses, Access::ReadWrite)?;
        let stream = &self.list[number].stream;
        buffer.free_in(stream).map_err(failed)
    }

    /// Notes that what is in a stream now may have written this memory.
    pub(super) fn note_all(&mut self, number: usize, uses: &Mutex<Uses>) -> Result<()> {
        self.refuse_capture(number)?;
        let used = self.order.next(number);
        self.record(used)?;
        locked(uses).note(Access::ReadWrite, used);
        Ok(())
    }

    /// Places the event of this work.
    fn record(&self, used: Use) -> Result<()> {
        let line = &self.list[used.stream];
        let end = &line.ends[Order::event(used)];
        let recorded = end.record(&line.stream);
        if recorded.is_err() {
            // Who waits for the event waits for older work: this must have ended, or the device is lost.
            let _ = line.stream.synchronize();
        }
        recorded.map_err(failed)
    }
}

pub(super) fn locked(uses: &Mutex<Uses>) -> MutexGuard<'_, Uses> {
    // Nothing panics while it holds the lock.
    uses.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Gpu {
    pub(super) fn queues(&self) -> MutexGuard<'_, Queues> {
        // A panic elsewhere leaves at worst a ticket without work.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stream beside the others: its number.
    pub(crate) fn stream(&self) -> Result<usize> {
        let free = self.queues().free.pop();
        let number = match free {
            Some(number) => number,
            None => self.add(self.context.stream().map_err(failed)?)?,
        };
        self.hand_out(number)
    }

    fn add(&self, stream: Stream) -> Result<usize> {
        let event = || self.context.mark().map(Arc::new);
        let events = || (0..EVENTS).map(|_| event().map_err(failed));
        let ends = events().collect::<Result<_>>()?;
        // Making them waits for the device, while others launch.
        let records = self.context.records().map_err(failed)?;
        let default = events().collect::<Result<_>>()?;
        let mut queues = self.queues();
        if !queues.are_several() {
            queues.list[DEFAULT].ends = default;
        }
        Ok(queues.add(Arc::new(stream), ends, records))
    }

    /// A stream is given to a new owner, or given back where that fails.
    fn hand_out(&self, number: usize) -> Result<usize> {
        let mut queues = self.queues();
        queues.handed_out += 1;
        queues.list[number].owner = queues.handed_out;
        // What ran before there were two is written down nowhere.
        let used = queues.order.next(DEFAULT);
        let waits = queues.record(used);
        let waits = waits.and_then(|()| queues.wait(number, used));
        if waits.is_err() {
            queues.give_back(number);
        }
        waits.map(|()| number)
    }

    /// Nobody has this stream any more.
    pub(crate) fn give_back(&self, number: usize) {
        self.queues().give_back(number);
    }

    /// Puts a launch into a stream; `checked` says what to do at its end where the code checks bounds.
    ///
    /// # Safety
    /// The arguments are those of the kernel, the memory behind them is noted by `memories`, with the access that the kernel has, and
    /// accesses that the code does not check lie inside them.
    pub(crate) unsafe fn launch<'m>(
        &self,
        number: usize,
        code: &GpuCode,
        launch: (&Arc<str>, &Launch<'_>),
        memories: impl Iterator<Item = (&'m Mutex<Uses>, Access)> + Clone,
        checked: Option<Box<Checked>>,
    ) -> Result<()> {
        let kernel = &code.kernel;
        let (
            name,
            &Launch {
                grid, arguments, ..
            },
        ) = launch;
        let label = || Label::of_launch(name, launch.1);
        let mut queues = self.queues();
        let Some(checked) = checked else {
            return queues.put(number, memories, label, |line| {
                // SAFETY: handed on to the caller; the order was kept.
                unsafe { kernel.launch(&line.stream, grid, arguments) }.map_err(failed)?;
                self.mark_end(&line.stream)
            });
        };
        self.see_ends(&mut queues.list[number], true)?;
        queues.put(number, memories, label, |line| {
            let records = &mut line.records;
            // SAFETY: as above.
            unsafe { records.launch(&line.stream, kernel, grid, arguments) }.map_err(failed)?;
            // It runs: its end is seen whatever fails from here on.
            let marked = self.mark_end(&line.stream);
            let pending = line.pending(checked);
            let ended = line.records.end(&line.stream, pending);
            marked.and(ended.map_err(failed))
        })
    }

    /// Puts a launch into a stream that is like the one that `placed` was made for.
    ///
    /// # Safety
    /// As for [`launch`](Self::launch) of code that checks nothing, whose arguments are these words, and as for
    /// [`Kernel::launch_placed`](exactile_nvptx::Kernel::launch_placed).
    pub(crate) unsafe fn launch_placed<'m>(
        &self,
        number: usize,
        (code, placed): (&GpuCode, &Placed),
        words: &mut Words,
        memories: impl Iterator<Item = (&'m Mutex<Uses>, Access)> + Clone,
        label: impl FnOnce() -> Label,
    ) -> Result<()> {
        self.queues().put(number, memories, label, |line| {
            // SAFETY: handed on to the caller; the order was kept.
            let put = unsafe { code.kernel.launch_placed(&line.stream, placed, words) };
            put.map_err(failed)?;
            self.mark_end(&line.stream)
        })
    }

    /// Looks at checked launches and replays that have ended; `for_another`: waits for the first ones where there is no room
    /// for one more launch.
    fn see_ends(&self, line: &mut Line, for_another: bool) -> Result<()> {
        loop {
            let waits = for_another && line.records.are_full();
            let Some((owner, failure)) = line.first_end(waits)? else {
                return Ok(());
            };
            if let Some(failure) = failure {
                self.failures.add(owner, failure);
            }
        }
    }

    /// Looks at what has ended, and waits for the first ones where there is no room for one more replay.
    pub(super) fn make_room_for_replay(&self, queues: &mut Queues, number: usize) -> Result<()> {
        let line = &mut queues.list[number];
        self.see_ends(line, false)?;
        while line.replays.len() >= MOST_REPLAYS {
            if let Some((owner, Some(failure))) = line.first_end(true)? {
                self.failures.add(owner, failure);
            }
        }
        Ok(())
    }

    /// Looks at what has ended in all streams.
    pub(super) fn see_all_ends(&self) -> Result<()> {
        let mut queues = self.queues();
        let mut lines = queues.list.iter_mut();
        lines.try_for_each(|line| self.see_ends(line, false))
    }

    /// Waits for all work in a stream.
    pub(crate) fn finish(&self, number: usize) -> Result<()> {
        // Others go on meanwhile.
        let stream = Arc::clone(&self.queues().list[number].stream);
        stream.synchronize().map_err(failed)?;
        self.see_ends(&mut self.queues().list[number], false)
    }

    /// Waits for all work in a stream, and tells an error of it.
    pub(crate) fn wait_for_stream(&self, number: usize) -> Result<()> {
        self.finish(number)?;
        let owner = self.queues().list[number].owner;
        self.failures.tell(|stream| stream == owner)
    }

    /// Waits for all work, and tells an error of it; not for that of streams that are apart.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.wait_for_all()?;
        self.failures.tell(|owner| owner < APART)
    }

    /// Waits for all work but that of streams that are apart.
    pub(crate) fn wait_for_all(&self) -> Result<()> {
        let streams: Vec<Arc<Stream>> = {
            let queues = self.queues();
            let lines = queues.list.iter().filter(|line| line.owner < APART);
            lines.map(|line| Arc::clone(&line.stream)).collect()
        };
        for stream in streams {
            stream.synchronize().map_err(failed)?;
        }
        self.see_all_ends()
    }

    /// A point after what is in a stream now.
    pub(crate) fn point(&self, number: usize) -> Result<Point> {
        let event = self.context.event().map_err(failed)?;
        let queues = self.queues();
        queues.refuse_capture(number)?;
        event.record(&queues.list[number].stream).map_err(failed)?;
        Ok(Point(event))
    }

    /// Has a stream wait for a point.
    pub(crate) fn wait_for_point(&self, number: usize, point: &Point) -> Result<()> {
        let queues = self.queues();
        queues.refuse_capture(number)?;
        let stream = &queues.list[number].stream;
        stream.wait(&point.0).map_err(failed)
    }
}
