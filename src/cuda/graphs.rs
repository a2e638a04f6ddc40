//! Graphs on a GPU: launches that were captured, and the ends of their replays.

#![expect(unsafe_code, reason = "launches of the backend are unsafe")]

use std::sync::{Arc, Mutex};

use exactile_core::ir::{Access, Grid};
use exactile_core::launch::Passed;
use exactile_nvptx::{Graph, Kernel, Replay, Stream};

use super::{Gpu, failed};
use crate::capture::Captured;
use crate::code::Runs;
use crate::error::{Error, Result};
use crate::failure::Failure;
use crate::launch::out_of_bounds;
use crate::order::Uses;
use crate::profile::Label;

/// So many replays of graphs that check bounds may be under way in a stream; one more waits for the first.
pub(super) const MOST_REPLAYS: usize = 16;

/// A graph as the driver runs it. Its code is that of the launches, which must stay loaded.
#[derive(Debug)]
pub(crate) struct GpuGraph {
    pub(super) graph: Graph,
    launches: Launches,
    /// Of the graph itself, whose replays come one after the other.
    pub(super) uses: Mutex<Uses>,
}

/// The launches of a graph.
#[derive(Clone)]
struct Launches(Arc<[Captured]>);

impl std::fmt::Debug for Launches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} launches", self.0.len())
    }
}

/// A replay of a graph that checks bounds, whose end nobody has seen.
#[derive(Debug)]
pub(super) struct Replayed {
    replay: Replay,
    launches: Launches,
    pub(super) failure: Arc<Failure>,
}

impl Replayed {
    /// Whether it has ended; `waits`: after waiting for it.
    pub(super) fn has_ended(&mut self, stream: &Stream, waits: bool) -> Result<bool> {
        self.replay.has_ended(stream, waits).map_err(failed)
    }

    /// What became of it when it has ended, if that is an error.
    pub(super) fn ended(self, stream: &Stream) -> Result<Option<Arc<Failure>>> {
        let error = self.replay.error(stream).map_err(failed)?;
        let Some((launch, error)) = error else {
            self.failure.settle(Ok(()));
            return Ok(None);
        };
        let Captured { name, sites, .. } = &self.launches.0[launch];
        let launch = self.launches.0[launch].launch();
        self.failure
            .settle(Err(out_of_bounds(name, sites, &launch, error)));
        Ok(Some(self.failure))
    }
}

type Listed<'a> = (&'a Kernel, Grid, &'a [Passed]);

/// The kernels of launches, with their grids and arguments.
fn listed(launches: &[Captured]) -> Result<Vec<Listed<'_>>> {
    launches.iter().map(one_listed).collect()
}

fn one_listed(captured: &Captured) -> Result<Listed<'_>> {
    match &*captured.runs {
        Runs::Gpu(code) => Ok((&code.kernel, captured.grid, &captured.arguments)),
        Runs::Interpreter(_) | Runs::Lanes(_) | Runs::Cpu(_) => {
            let message = "broken invariant: code of the host is in no graph of a GPU";
            Err(Error::Device(message.to_string()))
        }
    }
}

impl Replayed {
    /// Ends the replay in its stream.
    pub(super) fn end(&mut self, stream: &Stream) -> Result<()> {
        self.replay.end(stream).map_err(failed)
    }
}

impl GpuGraph {
    /// Replaces the launches.
    pub(crate) fn replace(&mut self, launches: &Arc<[Captured]>) -> Result<()> {
        let list = listed(launches)?;
        self.graph.replace(list.iter().copied()).map_err(failed)?;
        self.launches = Launches(Arc::clone(launches));
        Ok(())
    }

    /// What a replay needs at its end, where launches of it check bounds.
    fn replayed(&self, gpu: &Gpu) -> Result<Option<Replayed>> {
        let Some(records) = self.graph.records() else {
            return Ok(None);
        };
        Ok(Some(Replayed {
            replay: records.replay(&gpu.context).map_err(failed)?,
            launches: self.launches.clone(),
            failure: Arc::default(),
        }))
    }
}

impl Gpu {
    /// A graph of launches.
    pub(crate) fn graph(&self, launches: &Arc<[Captured]>) -> Result<GpuGraph> {
        let list = listed(launches)?;
        Ok(GpuGraph {
            graph: self.context.graph(list.iter().copied()).map_err(failed)?,
            launches: Launches(Arc::clone(launches)),
            uses: Mutex::default(),
        })
    }

    /// Puts a replay of a graph into a stream. What became of it, unless nothing can, and whether all that belongs to it was put
    /// there.
    ///
    /// # Safety
    /// `memories` are those of all arguments of its launches, with the access that they have, and accesses that the code
    /// does not check lie inside their arguments.
    pub(crate) unsafe fn replay<'m>(
        &self,
        number: usize,
        graph: &'m GpuGraph,
        memories: impl Iterator<Item = (&'m Mutex<Uses>, Access)> + Clone,
    ) -> Result<(Option<Arc<Failure>>, Result<()>)> {
        let mut queues = self.queues();
        queues.refuse_capture(number)?;
        if graph.graph.records().is_some() {
            self.make_room_for_replay(&mut queues, number)?;
        }
        let memories = memories.chain(std::iter::once((&graph.uses, Access::ReadWrite)));
        let replayed = graph.replayed(self)?;
        let failure = replayed.as_ref().map(|it| Arc::clone(&it.failure));
        let label = || Label::of_graph(graph.launches.0.len());
        let queued = queues.put(number, memories, label, |line| {
            let replay = replayed.as_ref().map(|it| &it.replay);
            // SAFETY: handed on to the caller; the order was kept, also that of the replays, and the lock of the streams is held.
            unsafe { graph.graph.launch(line.stream(), replay) }.map_err(failed)?;
            // It runs: its end is seen whatever fails from here on.
            let marked = self.mark_end(line.stream());
            let ended = line.add_replay(replayed);
            marked.and(ended)
        });
        // Where it runs and something behind it failed, its end is still seen.
        let is_pending = |failure: &Arc<Failure>| queued.is_ok() || Arc::strong_count(failure) > 1;
        Ok((failure.filter(is_pending), queued))
    }
}
