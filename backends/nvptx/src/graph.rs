//! Graphs: launches in a row that the driver knows beforehand and starts at once.
#![expect(unsafe_code, reason = "the driver is a C interface")]

use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys::{self, CUgraphExecUpdateResultInfo, CUgraphNode, CUresult};
use exactile_core::ir::Grid;
use exactile_core::launch::Passed;
use exactile_core::target::BoundsError;

use crate::buffer::DeviceBuffer;
use crate::driver::{Context, ask, call, check};
use crate::error::Result;
use crate::kernel::Kernel;
use crate::record::{HOST, List, TURN, TURN_WORDS, WORDS, clear, error_in, host_list};
use crate::stream::{Event, Pinned, Stream, handle};

handle!(
    /// A list of launches.
    Draft graph: CUgraph => cuGraphDestroy
);
handle!(
    /// The same as the driver runs it; what is under way when it goes runs to its end.
    Executable graph: CUgraphExec => cuGraphExecDestroy
);

/// Launches in a row, each after the end of the one before it. Replays must not be put into streams by several threads at
/// once.
#[derive(Debug)]
pub struct Graph {
    executable: Executable,
    records: Option<Arc<GraphRecords>>,
    /// Where each replay makes the copies that launches read in place of arrays. Freeing it waits for what is under way.
    _copies: Vec<DeviceBuffer>,
}

/// A list of launches with what they use beside their arguments.
struct Drafted {
    draft: Draft,
    records: Option<Arc<GraphRecords>>,
    copies: Vec<DeviceBuffer>,
}

/// The records in which the launches of a graph that check bounds keep their errors, one each.
#[derive(Debug)]
pub struct GraphRecords {
    on_device: List,
    /// Which launches of the graph they are of, in order.
    launches: Vec<usize>,
    kept: Mutex<Kept>,
}

/// What replays of a graph take and give back.
#[derive(Debug)]
struct Kept {
    /// Lists that no replay has.
    free: Vec<HostList>,
    /// The turn of the next replay.
    turn: u64,
}

/// The records of a replay on the host, behind them the turn of those on the device during the replay.
#[derive(Debug)]
struct HostList {
    memory: Pinned,
    /// As the device sees it.
    address: u64,
    /// The end of the replay.
    end: Event,
}

/// A replay that may write errors to a list of its own.
#[derive(Debug)]
pub struct Replay {
    records: Arc<GraphRecords>,
    list: HostList,
    /// Whether the event behind it was put into the stream.
    is_marked: bool,
}

impl Context {
    /// A graph of launches with their grids and arguments, which are checked against the parameters.
    pub fn graph<'k>(
        &self,
        launches: impl Iterator<Item = (&'k Kernel, Grid, &'k [Passed])> + Clone,
    ) -> Result<Graph> {
        let drafted = self.draft(launches)?;
        let mut graph = null_mut();
        call!(cuGraphInstantiateWithFlags(
            &mut graph,
            drafted.draft.graph,
            0
        ))?;
        let executable = Executable {
            context: self.clone(),
            graph,
        };
        Ok(Graph {
            executable,
            records: drafted.records,
            _copies: drafted.copies,
        })
    }

    fn draft<'k>(
        &self,
        launches: impl Iterator<Item = (&'k Kernel, Grid, &'k [Passed])> + Clone,
    ) -> Result<Drafted> {
        self.make_current()?;
        let checked = launches.clone().enumerate();
        let checked = checked.filter(|(_, (kernel, ..))| kernel.ptx().has_bounds_checks());
        let checked: Vec<usize> = checked.map(|(index, _)| index).collect();
        let records = match checked.is_empty() {
            true => None,
            false => Some(Arc::new(GraphRecords {
                // Each replay says first whose turn it is.
                on_device: List::new(self, checked.len(), None)?,
                launches: checked,
                kept: Mutex::new(Kept {
                    free: Vec::new(),
                    turn: 1,
                }),
            })),
        };
        let mut graph = null_mut();
        call!(cuGraphCreate(&mut graph, 0))?;
        let draft = Draft {
            context: self.clone(),
            graph,
        };
        let (mut last, mut copies): (CUgraphNode, _) = (null_mut(), Vec::new());
        for (index, (kernel, grid, arguments)) in launches.enumerate() {
            let record = records.as_ref().and_then(|it| it.address(index));
            let mut laid_out = kernel.laid_out(grid, arguments, record)?;
            for parameters in laid_out.nodes() {
                let before = [last];
                let count = usize::from(!last.is_null());
                let mut node = null_mut();
                // The driver copies the values of the parameters.
                call!(cuGraphAddKernelNode_v2(
                    &mut node,
                    draft.graph,
                    before.as_ptr(),
                    count,
                    &parameters
                ))?;
                last = node;
            }
            copies.extend(laid_out.into_memory());
        }
        Ok(Drafted {
            draft,
            records,
            copies,
        })
    }
}

impl Graph {
    /// Replaces the launches: in place where only grids, arguments and kernels are others, which costs less. Replays
    /// that are under way stay as they are.
    pub fn replace<'k>(
        &mut self,
        launches: impl Iterator<Item = (&'k Kernel, Grid, &'k [Passed])> + Clone,
    ) -> Result<()> {
        let context = self.executable.context.clone();
        let drafted = context.draft(launches.clone())?;
        // SAFETY: all fields may be zero: a number, a list of none, null.
        let mut why: CUgraphExecUpdateResultInfo = unsafe { std::mem::zeroed() };
        let graph = self.executable.graph;
        let code = ask!(cuGraphExecUpdate_v2(graph, drafted.draft.graph, &mut why))?;
        if code == CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE {
            // Its copies need not take memory beside those of the new graph.
            drop(drafted);
            *self = context.graph(launches)?;
            return Ok(());
        }
        check("cuGraphExecUpdate_v2", code)?;
        self.records = drafted.records;
        self._copies = drafted.copies;
        Ok(())
    }

    /// Where its launches keep errors, if any of them checks bounds.
    pub fn records(&self) -> Option<&Arc<GraphRecords>> {
        self.records.as_ref()
    }

    /// Puts a replay into `stream`, which [`GraphRecords::replay`] has made where launches check bounds;
    /// [`Replay::end`] follows then.
    ///
    /// # Safety
    /// For each launch as for [`Kernel::launch`]; the kernels are loaded. No other replay of the graph that is not ordered
    /// by `stream` is under way, and none is put into a stream meanwhile.
    pub unsafe fn launch(&self, stream: &Stream, replay: Option<&Replay>) -> Result<()> {
        self.executable.context.make_current()?;
        if let Some(Replay { records, list, .. }) = replay {
            let (turn, bytes) = (records.on_device.shared_turn(), TURN_WORDS * 8);
            let source = list.memory.word_address(records.launches.len() * WORDS);
            call!(cuMemcpyHtoDAsync_v2(turn, source, bytes, stream.stream))?;
        }
        call!(cuGraphLaunch(self.executable.graph, stream.stream))
    }
}

impl GraphRecords {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Nothing panics while it holds the lock.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The address of the record of a launch, if it has one.
    fn address(&self, launch: usize) -> Option<u64> {
        let index = self.launches.binary_search(&launch).ok()?;
        Some(self.on_device.address(index))
    }

    /// What a replay needs, made before it begins.
    pub fn replay(self: &Arc<Self>, context: &Context) -> Result<Replay> {
        let count = self.launches.len();
        let (free, turn) = {
            let mut kept = self.kept();
            let turn = kept.turn;
            kept.turn += 1;
            (kept.free.pop(), turn)
        };
        let list = match free {
            Some(list) => list,
            None => {
                let (memory, address) = host_list(context, count, TURN_WORDS)?;
                HostList {
                    memory,
                    address,
                    end: context.mark()?,
                }
            }
        };
        for (index, word) in [(HOST, list.address), (TURN, turn)] {
            // SAFETY: the words are behind the records, and no replay has the list.
            unsafe { list.memory.set_word(count * WORDS + index, word) };
        }
        Ok(Replay {
            records: Arc::clone(self),
            list,
            is_marked: false,
        })
    }
}

impl Replay {
    /// Ends the replay in the stream that it was put into. After an error here, who asks whether it has ended tries again.
    pub fn end(&mut self, stream: &Stream) -> Result<()> {
        if !self.is_marked {
            self.list.end.record(stream)?;
            self.is_marked = true;
        }
        Ok(())
    }

    /// Whether it has ended; `waits`: after waiting for it.
    pub fn has_ended(&mut self, stream: &Stream, waits: bool) -> Result<bool> {
        self.end(stream)?;
        match waits {
            true => self.list.end.synchronize().map(|()| true),
            false => self.list.end.has_ended(),
        }
    }

    /// Of a replay that has ended: the first of its launches with an access out of bounds, and the least of its accesses.
    pub fn error(mut self, stream: &Stream) -> Result<Option<(usize, BoundsError)>> {
        self.has_ended(stream, true)?;
        let mut found = None;
        for (index, &launch) in self.records.launches.iter().enumerate() {
            // SAFETY: there is a record for each, and the replay that has the list has ended.
            if let Some(error) = unsafe { error_in(&self.list.memory, index) } {
                found = found.or(Some((launch, error)));
                // SAFETY: as above.
                unsafe { clear(&self.list.memory, index) };
            }
        }
        self.records.kept().free.push(self.list);
        Ok(found)
    }
}
