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
use crate::record::{WORDS, error_in};
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
}

/// The records in which the launches of a graph that check bounds keep their errors, one each.
#[derive(Debug)]
pub struct GraphRecords {
    on_device: DeviceBuffer,
    /// Which launches of the graph they are of, in order.
    launches: Vec<usize>,
    /// Copies that nobody looks at.
    free: Mutex<Vec<Copied>>,
}

/// The records of a replay on the host, and the end of the copy.
#[derive(Debug)]
struct Copied {
    on_host: Pinned,
    end: Event,
}

/// A replay under way, whose records are copied to the host.
#[derive(Debug)]
pub struct Replay {
    records: Arc<GraphRecords>,
    copied: Copied,
    /// Whether the copy was put into the stream, with the event behind it.
    is_copied: bool,
}

impl Context {
    /// A graph of launches with their grids and arguments, which are checked against the parameters.
    pub fn graph<'k>(
        &self,
        launches: impl Iterator<Item = (&'k Kernel, Grid, &'k [Passed])> + Clone,
    ) -> Result<Graph> {
        let (draft, records) = self.draft(launches)?;
        let mut graph = null_mut();
        call!(cuGraphInstantiateWithFlags(&mut graph, draft.graph, 0))?;
        let executable = Executable {
            context: self.clone(),
            graph,
        };
        Ok(Graph {
            executable,
            records,
        })
    }

    fn draft<'k>(
        &self,
        launches: impl Iterator<Item = (&'k Kernel, Grid, &'k [Passed])> + Clone,
    ) -> Result<(Draft, Option<Arc<GraphRecords>>)> {
        self.make_current()?;
        let checked = launches.clone().enumerate();
        let checked = checked.filter(|(_, (kernel, ..))| kernel.ptx().has_bounds_checks());
        let checked: Vec<usize> = checked.map(|(index, _)| index).collect();
        let records = match checked.is_empty() {
            true => None,
            false => Some(Arc::new(GraphRecords {
                on_device: self.allocate(checked.len() * WORDS * 8)?,
                launches: checked,
                free: Mutex::default(),
            })),
        };
        let mut graph = null_mut();
        call!(cuGraphCreate(&mut graph, 0))?;
        let draft = Draft {
            context: self.clone(),
            graph,
        };
        let mut last: CUgraphNode = null_mut();
        for (index, (kernel, grid, arguments)) in launches.enumerate() {
            let record = records.as_ref().and_then(|it| it.address(index));
            let mut laid_out = kernel.laid_out(grid, arguments, record)?;
            let parameters = laid_out.node();
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
        Ok((draft, records))
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
        let (draft, records) = context.draft(launches.clone())?;
        // SAFETY: all fields may be zero: a number, a list of none, null.
        let mut why: CUgraphExecUpdateResultInfo = unsafe { std::mem::zeroed() };
        let graph = self.executable.graph;
        let code = ask!(cuGraphExecUpdate_v2(graph, draft.graph, &mut why))?;
        if code == CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE {
            *self = context.graph(launches)?;
            return Ok(());
        }
        check("cuGraphExecUpdate_v2", code)?;
        self.records = records;
        Ok(())
    }

    /// Where its launches keep errors, if any of them checks bounds.
    pub fn records(&self) -> Option<&Arc<GraphRecords>> {
        self.records.as_ref()
    }

    /// Puts a replay into `stream`. Where launches check bounds, [`Replay::end`] follows.
    ///
    /// # Safety
    /// For each launch as for [`Kernel::launch`]; the kernels are loaded. No other replay of the graph that is not ordered
    /// by `stream` is under way, and none is put into a stream meanwhile.
    pub unsafe fn launch(&self, stream: &Stream) -> Result<()> {
        self.executable.context.make_current()?;
        call!(cuGraphLaunch(self.executable.graph, stream.stream))
    }
}

impl GraphRecords {
    fn free(&self) -> MutexGuard<'_, Vec<Copied>> {
        // Nothing panics while it holds the lock.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The address of the record of a launch, if it has one.
    fn address(&self, launch: usize) -> Option<u64> {
        let index = self.launches.binary_search(&launch).ok()?;
        Some(self.on_device.address() + (index * WORDS * 8) as u64)
    }

    /// What a replay needs at its end, made before it begins.
    pub fn replay(self: &Arc<Self>, context: &Context) -> Result<Replay> {
        let free = self.free().pop();
        let copied = match free {
            Some(copied) => copied,
            None => Copied {
                on_host: context.pinned(self.launches.len() * WORDS * 8)?,
                end: context.mark()?,
            },
        };
        Ok(Replay {
            records: Arc::clone(self),
            copied,
            is_copied: false,
        })
    }
}

impl Replay {
    /// Ends the replay in the stream that it was put into: its errors are copied, and the records are as new. After an error
    /// here, who asks whether it has ended tries again.
    pub fn end(&mut self, stream: &Stream) -> Result<()> {
        if self.is_copied {
            return Ok(());
        }
        stream.make_current()?;
        let address = self.records.on_device.address();
        let (bytes, target) = (
            self.copied.on_host.len(),
            self.copied.on_host.word_address(0),
        );
        call!(cuMemcpyDtoHAsync_v2(target, address, bytes, stream.stream))?;
        call!(cuMemsetD8Async(address, 0, bytes, stream.stream))?;
        self.copied.end.record(stream)?;
        self.is_copied = true;
        Ok(())
    }

    /// Whether it has ended; `waits`: after waiting for it.
    pub fn has_ended(&mut self, stream: &Stream, waits: bool) -> Result<bool> {
        self.end(stream)?;
        match waits {
            true => self.copied.end.synchronize().map(|()| true),
            false => self.copied.end.has_ended(),
        }
    }

    /// Of a replay that has ended: the first of its launches with an access out of bounds, and the least of its accesses.
    pub fn error(mut self, stream: &Stream) -> Result<Option<(usize, BoundsError)>> {
        self.has_ended(stream, true)?;
        let mut launches = self.records.launches.iter().enumerate();
        let found = launches.find_map(|(index, &launch)| {
            // SAFETY: there is a record for each, and the copy has ended.
            let error = unsafe { error_in(&self.copied.on_host, index) }?;
            Some((launch, error))
        });
        self.records.free().push(self.copied);
        Ok(found)
    }
}
