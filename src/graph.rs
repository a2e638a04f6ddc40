//! Graphs: launches that are captured once and replayed many times.

#![expect(
    unsafe_code,
    reason = "code without bounds checks runs as it was promised or proved when it was captured"
)]

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use exactile_core::ir::Access;
use exactile_core::launch::{Argument, Passed};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::bound::{Bound, FEW};
use crate::capture::{Captured, capture, refuse};
use crate::cuda::GpuGraph;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::failure::Failure;
use crate::launch::{arguments_error, check_places, host_bytes, note_writer, run_captured};
use crate::profile::Label;
use crate::replay_arrays::{ArrayList, ReplayArrays};
use crate::stream::{Queue, Stream, sealed};

/// Launches that were captured, to be replayed in their order: on a GPU all by one call of the driver, without the host's
/// work for each.
///
/// A replay is handed the arrays that the graph uses, as a launch is: what it writes is borrowed mutably, so nobody looks at
/// it meanwhile, and each array must be where it was when the launches were captured. Numbers and grids are those of the
/// capture; [`update`](Self::update) captures anew. What a replay does with arrays has the order of launches: two replays in
/// different streams wait for each other on the device, and for all else that uses those arrays.
///
/// A launch that an earlier one has proved in bounds is captured without checks; any other one checks in each replay. So
/// launch once and wait before the capture, which also compiles.
///
/// ```
/// # use exactile::prelude::*;
/// #[kernel]
/// fn double(x: PtrMut<f32>) {
///     let at = x + arange(0, 4);
///     store(at, load(at) * 2.0);
/// }
///
/// let device = Device::cpu();
/// let stream = device.stream()?;
/// let mut x = Buffer::from_slice(&device, &[1.0f32, 2.0, 3.0, 4.0])?;
/// let graph = stream.capture(|stream| {
///     double().launch(stream, 1, (&mut x,))?;
///     double().launch(stream, 1, (&mut x,))
/// })?;
/// assert_eq!(x.to_vec()?, [1.0, 2.0, 3.0, 4.0]);
/// graph.replay(&stream, &mut x)?;
/// graph.replay(&stream, &mut x)?;
/// assert_eq!(x.to_vec()?, [16.0, 32.0, 48.0, 64.0]);
/// # Ok::<(), exactile::Error>(())
/// ```
#[must_use = "a graph does nothing until it is replayed"]
pub struct Graph {
    device: Device,
    /// Before the launches, whose code it uses.
    gpu: Option<GpuGraph>,
    launches: Arc<[Captured]>,
    needs: Needs,
}

/// The memory that launches use, each once, and which of it each argument that is memory stands for, launch by launch.
struct Needs {
    list: Vec<Need>,
    arguments: Vec<usize>,
}

/// Memory that a graph uses.
struct Need {
    address: u64,
    bytes: u64,
    access: Access,
    /// The launch and the argument that use it first like this.
    launch: usize,
    argument: usize,
}

impl Stream {
    /// Captures the launches that `work` puts into this stream, on this thread: none of them runs, and each replay of the
    /// graph runs all in order. Nothing is put into the stream.
    ///
    /// # Errors
    /// Those of `work`. A graph holds launches alone: where `work` runs a kernel and waits, launches one that prints, launches
    /// into another stream, waits, records events, or has the host read or write an array, that is an error there. So is a
    /// capture where launches are only listed for compilation, as a tuner lists those of its candidates.
    #[track_caller]
    pub fn capture(&self, work: impl FnOnce(&Self) -> Result<()>) -> Result<Graph> {
        let place = Location::caller();
        Graph::of(sealed::Queue::place(self), place, || work(self))
    }
}

impl Graph {
    /// Of what `work` puts into a stream of a device.
    pub(crate) fn of(
        queue: (&Device, usize),
        place: &'static Location<'static>,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<Self> {
        let launches: Arc<[Captured]> = capture(queue, place, work)?.into();
        let gpu = match queue.0.gpu() {
            Some(gpu) if !launches.is_empty() => Some(gpu.graph(&launches)?),
            Some(_) | None => None,
        };
        Ok(Self {
            device: queue.0.clone(),
            gpu,
            needs: Needs::of(&launches),
            launches,
        })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The number of launches.
    pub fn len(&self) -> usize {
        self.launches.len()
    }

    /// Whether there are no launches.
    pub fn is_empty(&self) -> bool {
        self.launches.is_empty()
    }

    /// Puts all launches in their order into a stream, with the arrays that they use, and returns. More arrays than these
    /// may be handed.
    ///
    /// # Errors
    /// An array that the graph uses is not handed, is handed to be read where it is written, or is on another device. What the
    /// programs do wrong is told as that of a launch: the first error of the replay, by who waits for the stream or reads what
    /// the replay wrote.
    pub fn replay<'a>(&self, queue: &impl Queue, arrays: impl ReplayArrays<'a>) -> Result<()> {
        refuse("a replay of a graph")?;
        let (device, stream) = queue.place();
        let mut list = ArrayList::default();
        arrays.add_to(&mut list);
        let mut arrays = list.0;
        // The graph's own device and the one of the stream are compared like arrays.
        self.expect_device(device)?;
        check_places(device, &arrays)?;
        let places = self.places(&arrays)?;
        if device.is_recording() {
            // Its code is there.
            return Ok(());
        }
        let Some((graph, gpu)) = self.gpu.as_ref().zip(device.gpu()) else {
            let label = || Label::of_graph(self.len());
            return device.watch().around(stream, label, || {
                self.replay_on_host(device, stream, &places, &mut arrays)
            });
        };
        let memories = arrays.iter().filter_map(Bound::uses);
        // SAFETY: the arrays hold all memory that the launches use, with the access that they have, and their order is that of
        // `memories`; what is not checked was promised for each replay or proved when it was captured.
        let (failure, queued) = unsafe { gpu.replay(stream, graph, memories) }?;
        if let Some(failure) = failure {
            note_writer(&arrays, &failure);
        }
        queued
    }

    /// Puts all launches into the default stream of a GPU without their arrays, for measurements.
    ///
    /// # Safety
    /// The arrays are there; nothing else uses what the launches write, or writes what they read, before they have ended.
    #[doc(hidden)]
    pub unsafe fn replay_bare(&self) -> Result<()> {
        let gpu = self.gpu.as_ref().zip(self.device.gpu());
        let message = "broken invariant: no graph of a GPU".to_string();
        let (graph, gpu) = gpu.ok_or(Error::Device(message))?;
        // SAFETY: handed on to the caller; what is not checked was promised or proved when it was captured.
        unsafe { gpu.replay(self.device.default_stream(), graph, std::iter::empty()) }?.1
    }

    /// Captures anew, as [`Stream::capture`] does, and replaces the launches. A GPU takes them into the graph that it has
    /// where their number is the same. Replays that are under way stay as they are.
    ///
    /// # Errors
    /// Those of [`Stream::capture`]; the graph is as before then.
    #[track_caller]
    pub fn update(
        &mut self,
        stream: &Stream,
        work: impl FnOnce(&Stream) -> Result<()>,
    ) -> Result<()> {
        self.expect_device(stream.device())?;
        let queue = (sealed::Queue::place(stream), Location::caller());
        let launches: Arc<[Captured]> = capture(queue.0, queue.1, || work(stream))?.into();
        self.gpu = match (self.gpu.take(), self.device.gpu()) {
            (_, _) if launches.is_empty() => None,
            (Some(mut graph), Some(_)) => {
                let replaced = graph.replace(&launches);
                if let Err(error) = replaced {
                    self.gpu = Some(graph);
                    return Err(error);
                }
                Some(graph)
            }
            (None, Some(gpu)) => Some(gpu.graph(&launches)?),
            (_, None) => None,
        };
        self.needs = Needs::of(&launches);
        self.launches = launches;
        Ok(())
    }

    fn expect_device(&self, device: &Device) -> Result<()> {
        match self.device.is_same(device) {
            true => Ok(()),
            false => Err(Error::Invalid(format!(
                "a graph of {} has no replays in a stream of {device}: capture it there as well",
                self.device
            ))),
        }
    }

    /// For each need the array that holds it, and where.
    fn places(&self, arrays: &[Bound<'_>]) -> Result<SmallVec<[usize; FEW]>> {
        let mut ranges: SmallVec<[(u64, u64, Access); FEW]> = SmallVec::new();
        ranges.extend(arrays.iter().map(|array| match array.passed() {
            Passed::Memory {
                address,
                bytes,
                access,
            } => (address, bytes, access),
            Passed::Scalar(_) => (0, 0, Access::Read),
        }));
        let place = |need: &Need| {
            let holds = |&(address, bytes, access): &(u64, u64, Access)| {
                let inside = address <= need.address
                    && need.address - address <= bytes
                    && bytes - (need.address - address) >= need.bytes;
                inside && (access == Access::ReadWrite || need.access == Access::Read)
            };
            ranges
                .iter()
                .position(holds)
                .ok_or_else(|| self.missing(need))
        };
        self.needs.list.iter().map(place).collect()
    }

    fn missing(&self, need: &Need) -> Error {
        let (does, hand) = match need.access {
            Access::Read => ("reads", "`&array`"),
            Access::ReadWrite => ("writes", "`&mut array`"),
        };
        arguments_error(
            &self.launches[need.launch].name,
            format!(
                "launch {} of the graph {does} the {} bytes of its argument {}, which are in no array that the replay is handed \
                 for that: hand it {hand}, the array of the capture",
                need.launch, need.bytes, need.argument
            ),
        )
    }

    fn replay_on_host(
        &self,
        device: &Device,
        stream: usize,
        places: &[usize],
        arrays: &mut [Bound<'_>],
    ) -> Result<()> {
        let mut failed: Option<Arc<Failure>> = None;
        let mut needed = self.needs.arguments.iter();
        for captured in &*self.launches {
            let ended = {
                let places = needed.by_ref().map(|&need| places[need]);
                let mut list = arguments_of(captured, places, arrays)?;
                // SAFETY: what is not checked was promised for each replay or proved when it was captured.
                unsafe { run_captured(device, captured, &mut list) }
            };
            // As on a GPU, those after it run all the same, and the first error is told.
            if let Some(failure) = ended?
                && failed.is_none()
            {
                failed = Some(failure);
            }
        }
        if let Some(failure) = failed {
            note_writer(arrays, &failure);
            device.fail(stream, &failure);
        }
        Ok(())
    }
}

/// The arguments of a launch, cut out of the arrays; `places` says in which array the next memory is.
fn arguments_of<'b>(
    captured: &Captured,
    mut places: impl Iterator<Item = usize>,
    arrays: &'b mut [Bound<'_>],
) -> Result<SmallVec<[Argument<'b>; FEW]>> {
    let mut list: SmallVec<[Argument<'b>; FEW]> = SmallVec::new();
    let mut pieces: SmallVec<[Piece; FEW]> = SmallVec::new();
    for (argument, passed) in captured.arguments.iter().enumerate() {
        list.push(match *passed {
            Passed::Scalar(literal) => Argument::Scalar(literal),
            Passed::Memory { access, .. } => match access {
                Access::Read => Argument::Read(&[]),
                Access::ReadWrite => Argument::ReadWrite(&mut []),
            },
        });
        if let Some((address, bytes, access)) = memory(passed)
            && let Some(array) = places.next()
        {
            pieces.push(Piece {
                array,
                address,
                bytes,
                access,
                argument,
            });
        }
    }
    pieces.sort_by_key(|piece| (piece.array, piece.address));
    for (array, bound) in arrays.iter_mut().enumerate() {
        let first = pieces.partition_point(|piece| piece.array < array);
        let end = pieces.partition_point(|piece| piece.array <= array);
        let cut = cut(bound, &pieces[first..end], &mut list);
        cut.ok_or_else(|| {
            let message = "two arguments of a launch of the graph share memory that it writes";
            arguments_error(&captured.name, message)
        })?;
    }
    Ok(list)
}

/// Memory of an argument, in an array.
struct Piece {
    array: usize,
    address: u64,
    bytes: u64,
    access: Access,
    argument: usize,
}

/// Where the memory of an argument is, unless it has none.
fn memory(argument: &Passed) -> Option<(u64, u64, Access)> {
    match *argument {
        Passed::Memory {
            address,
            bytes,
            access,
        } if bytes > 0 => Some((address, bytes, access)),
        Passed::Memory { .. } | Passed::Scalar(_) => None,
    }
}

impl Needs {
    fn of(launches: &[Captured]) -> Self {
        let (mut list, mut arguments) = (Vec::new(), Vec::new());
        let mut known = FxHashMap::default();
        for (launch, captured) in launches.iter().enumerate() {
            for (argument, passed) in captured.arguments.iter().enumerate() {
                let Some((address, bytes, access)) = memory(passed) else {
                    continue;
                };
                let index = *known.entry((address, bytes, access)).or_insert(list.len());
                if index == list.len() {
                    list.push(Need {
                        address,
                        bytes,
                        access,
                        launch,
                        argument,
                    });
                }
                arguments.push(index);
            }
        }
        Self { list, arguments }
    }
}

/// Puts pieces of an array, sorted by their addresses, where their arguments are in the list; nothing where one that is
/// written meets another one.
fn cut<'b>(array: &'b mut Bound<'_>, pieces: &[Piece], list: &mut [Argument<'b>]) -> Option<()> {
    if pieces.is_empty() {
        return Some(());
    }
    let Passed::Memory { address: begin, .. } = array.passed() else {
        return None;
    };
    let place = |piece: &Piece, from: u64| {
        let start = usize::try_from(piece.address - from).ok()?;
        Some((start, usize::try_from(piece.bytes).ok()?))
    };
    let mut rest = match host_bytes(array)? {
        Argument::Read(bytes) => {
            for piece in pieces {
                let (start, len) = place(piece, begin)?;
                list[piece.argument] = Argument::Read(bytes.get(start..start + len)?);
            }
            return Some(());
        }
        Argument::ReadWrite(bytes) => bytes,
        Argument::Scalar(_) => return None,
    };
    let (mut at, mut pieces) = (begin, pieces);
    while let Some(first) = pieces.first() {
        // Those that meet it, which are all read unless it is alone.
        let mut end = first.address + first.bytes;
        let mut count = 1;
        while let Some(next) = pieces.get(count).filter(|next| next.address < end) {
            end = end.max(next.address + next.bytes);
            count += 1;
        }
        let (group, others) = pieces.split_at(count);
        let skipped = usize::try_from(first.address - at).ok()?;
        let len = usize::try_from(end - first.address).ok()?;
        let (_, from_first) = rest.split_at_mut_checked(skipped)?;
        let (region, behind) = from_first.split_at_mut_checked(len)?;
        if first.access == Access::ReadWrite && count == 1 {
            list[first.argument] = Argument::ReadWrite(region);
        } else {
            let region: &'b [u8] = region;
            for piece in group {
                if piece.access == Access::ReadWrite {
                    return None;
                }
                let (start, len) = place(piece, first.address)?;
                list[piece.argument] = Argument::Read(&region[start..start + len]);
            }
        }
        (rest, at, pieces) = (behind, end, others);
    }
    Some(())
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.launches.iter().map(|captured| &captured.name);
        f.debug_struct("Graph")
            .field("device", &self.device)
            .field("launches", &names.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
