//! A kernel tuned over the numbers of its const generics and over the schedule.

use std::fmt;
use std::ops::Deref;
use std::time::{Duration, Instant};

use exactile_core::ir::{DType, Grid};
use exactile_core::target::{Determinism, Schedule};
use exactile_core::verify::BlockFunc;

use super::copies::Copies;
use super::judge::waited;
use super::space::{Sketch, at, combinations, schedule_of, with_schedule};
use super::{Search, TuneKey, Tuned, Tuner, Workload};
use crate::arguments::{Arguments, BoundArguments, Parameters};
use crate::array::Array;
use crate::bound::Bound;
use crate::buffer::Buffer;
use crate::configure::Configure;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::launch::{Told, check_places};
use crate::memory::HostMemory;
use crate::panics::guarded;
use crate::part::{Part, PartMut};
use crate::placement::{LaunchGrid, Stated};
use crate::stream::sealed::Queue;

/// How long [`Tune::tune`] searches.
const BUDGET: Duration = Duration::from_secs(20);
/// A tile that takes so many times the registers of a thread is hopeless.
const HOPELESS: usize = 4;

/// A kernel with the configuration that a tuner found; used as that kernel.
#[derive(Clone, Debug)]
pub struct TunedKernel<K: Configure> {
    /// The kernel, of which everything is set.
    pub kernel: K,
    /// How it was found; prints as a ranked table.
    pub tuned: Tuned<K::Config>,
}

impl<K: Configure> Deref for TunedKernel<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.kernel
    }
}

impl<K: Configure> fmt::Display for TunedKernel<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tuned.fmt(f)
    }
}

/// Tuning of kernels: what nobody has set is the tuner's to choose.
///
/// The candidates are all combinations of what `#[meta(..)]` says of const generics that are not set, with the compiler's
/// own schedule and with others of its fields' rows, by what they are estimated to cost. Those for which the kernel's constraint does not hold,
/// or whose tiles no thread has registers for, are rejected.
pub trait Tune: Configure {
    /// Searches for up to 20 seconds for the configuration that is fastest for launches with these arguments, and remembers
    /// nothing. Afterwards what the kernel writes holds the results of one launch of it.
    ///
    /// Candidates must agree with a run of the kernel on the CPU, by the kernel's level of determinism. Each gets what the
    /// arguments hold now.
    ///
    /// # Errors
    /// Those of a launch; and that no candidate is right.
    ///
    /// ```
    /// use exactile::prelude::*;
    ///
    /// #[kernel(BLOCK = 256, grid = n.div_ceil(BLOCK))]
    /// fn doubled<#[meta(64..=1024)] const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    ///     let at = program_id(0) * BLOCK + arange(0, BLOCK);
    ///     store(out + at, load(x + at).mask(at < n) * 2.0).mask(at < n);
    /// }
    ///
    /// let device = Device::cpu();
    /// let x = Buffer::from_slice(&device, &[1.5f32; 1000])?;
    /// let mut out = Buffer::zeros(&device, 1000)?;
    /// let tuned = doubled().tune(&device, (), (&x, &mut out, 1000))?;
    /// println!("{tuned}");
    /// tuned.run(&device, (), (&x, &mut out, 1000))?;
    /// assert_eq!(out.to_vec()?, [3.0; 1000]);
    /// # Ok::<(), exactile::Error>(())
    /// ```
    fn tune<'a, const COUNT: usize>(
        &self,
        device: &Device,
        grid: impl LaunchGrid,
        arguments: impl Arguments<'a, Self::Parameters, COUNT>,
    ) -> Result<TunedKernel<Self>>
    where
        Self::Parameters: Parameters<COUNT>,
    {
        let tuner = Tuner::forgetful().budget(BUDGET);
        self.tune_by(&tuner, device, grid, arguments)
    }

    /// [`tune`](Self::tune) by a tuner, with its file and its budget.
    fn tune_by<'a, const COUNT: usize>(
        &self,
        tuner: &Tuner,
        device: &Device,
        grid: impl LaunchGrid,
        arguments: impl Arguments<'a, Self::Parameters, COUNT>,
    ) -> Result<TunedKernel<Self>>
    where
        Self::Parameters: Parameters<COUNT>,
    {
        Runs::new(self, device, grid.stated()?, BoundArguments::of(arguments))?.tune(tuner)
    }

    /// The kernel as the tuner's file knows it for launches with these arguments, or for the nearest ones; as it is where
    /// the file knows nothing of it. Nothing runs.
    ///
    /// By a tuner that searches [in the background](Tuner::in_background), this also begins a search on copies of the arguments,
    /// where nobody has tuned the kernel for such launches and no other search is under way.
    ///
    /// # Errors
    /// Those of a launch; and that the file cannot be read.
    fn tuned<'a, const COUNT: usize>(
        self,
        tuner: &Tuner,
        device: &Device,
        grid: impl LaunchGrid,
        arguments: impl Arguments<'a, Self::Parameters, COUNT>,
    ) -> Result<Self>
    where
        Self::Parameters: Parameters<COUNT>,
    {
        let runs = Runs::new(&self, device, grid.stated()?, BoundArguments::of(arguments))?;
        let key = runs.key()?;
        let found = tuner.find(device, &key, &runs.space, || runs.behind())?;
        Ok(match found.filter(|config| runs.placed(config).is_ok()) {
            Some(config) => at(&self, config),
            None => self,
        })
    }
}

impl<K: Configure> Tune for K {}

/// The launches of a search.
struct Runs<'a, 'd, K: Configure> {
    kernel: &'d K,
    device: &'d Device,
    grid: Option<Grid>,
    bound: BoundArguments<'a>,
    begin: Instant,
    space: Vec<K::Config>,
    /// What the kernel writes, by its place among the arguments, and what that holds at first.
    written: Vec<(usize, DType, Buffer<u8>)>,
    /// The one that was launched last.
    last: Option<K>,
    /// Configurations without a schedule whose traces processes did not survive.
    deadly: Vec<K::Config>,
}

impl<'a, 'd, K: Configure> Runs<'a, 'd, K> {
    fn new(
        kernel: &'d K,
        device: &'d Device,
        grid: Option<Grid>,
        bound: BoundArguments<'a>,
    ) -> Result<Self> {
        check_places(device, &bound.list)?;
        kernel.configured().check_open()?;
        Ok(Self {
            begin: Instant::now(),
            space: combinations(kernel, device)?,
            kernel,
            device,
            grid,
            bound,
            written: Vec::new(),
            last: None,
            deadly: Vec::new(),
        })
    }

    fn tune(mut self, tuner: &Tuner) -> Result<TunedKernel<K>> {
        let searched = self.search(tuner);
        // Whatever became of it, the arguments are not left as a candidate left them.
        self.spoil()?;
        let tuned = searched?;
        waited(self.device, || self.launch(&tuned.config))?;
        Ok(TunedKernel {
            kernel: at(self.kernel, tuned.config),
            tuned,
        })
    }

    /// What does the same on copies of the arguments, and leaves them to nobody.
    fn behind(&self) -> Result<impl FnOnce(&Tuner) -> Result<()> + Send + use<K>> {
        let mut copies = Copies::of(self.device, &self.bound)?;
        let (kernel, device, grid) = (self.kernel.clone(), self.device.clone(), self.grid);
        Ok(move |tuner: &Tuner| {
            let mut runs = Runs::new(&kernel, &device, grid, copies.bound())?;
            runs.search(tuner)?.kept()
        })
    }

    fn search(&mut self, tuner: &Tuner) -> Result<Tuned<K::Config>> {
        let device = self.device;
        let problem = self.key()?.problem(device);
        let search = Search {
            tuner,
            device,
            problem: &problem,
            begin: self.begin,
        };
        self.probe(&search)?;
        let first = self.first(&search)?;
        let golden_begin = Instant::now();
        let golden = {
            let _trial = search.trial(&self.plain(&first.configured().definition.config))?;
            self.keep(&first)?;
            self.golden(&first)?
        };
        // The golden run is no part of the budget.
        let search = Search {
            begin: search.begin + golden_begin.elapsed(),
            ..search
        };
        let level = first.configured().kernel().determinism;
        let space = self.space.clone();
        // Candidates cannot panic here, and who listens may.
        let what = || "who listens to the progress of the tuner".to_string();
        guarded(what, || search.tune(level, &space, &golden, self))
    }

    /// The configuration without a schedule, on which its trace does not depend.
    fn plain(&self, config: &K::Config) -> K::Config {
        with_schedule(self.kernel, *config, Schedule::AUTO)
    }

    /// Whether processes ended while they traced it.
    fn is_deadly(&self, config: &K::Config) -> bool {
        !self.deadly.is_empty() && self.deadly.contains(&self.plain(config))
    }

    /// The first candidate that its arguments fit.
    fn first(&self, search: &Search<'_>) -> Result<K> {
        let mut error = None;
        for config in self.space.iter().filter(|config| !self.is_deadly(config)) {
            let kernel = at(self.kernel, *config);
            let _trial = search.trial(&self.plain(config))?;
            match self.traced(&kernel) {
                Ok(_) => return Ok(kernel),
                Err(reason) => error = error.or(Some(reason)),
            }
        }
        Err(error.unwrap_or_else(|| Error::Invalid("there are no configurations".to_string())))
    }

    fn traced(&self, kernel: &K) -> Result<BlockFunc> {
        let kernel = kernel.configured().kernel();
        kernel.placed(Stated(self.grid), &self.bound)?;
        kernel.trace_with(&self.bound.choices)
    }

    /// Whether the kernel can be launched so, and the machine takes the schedule.
    fn placed(&self, config: &K::Config) -> Result<()> {
        let kernel = at(self.kernel, *config);
        let kernel = kernel.configured().kernel();
        kernel.placed(Stated(self.grid), &self.bound)?;
        if self.device.runs_lanes() {
            let schedule = schedule_of(self.kernel, *config);
            schedule
                .check(&self.device.target().gpu)
                .map_err(Error::Invalid)?;
        }
        Ok(())
    }

    /// Keeps what the kernel writes.
    fn keep(&mut self, kernel: &K) -> Result<()> {
        let func = self.traced(kernel)?;
        let arguments = func.arguments().to_vec();
        for (place, argument) in self.bound.list.iter().enumerate() {
            let pointee = arguments.get(place).and_then(|&it| func.ty(it).pointee());
            if let (Bound::ReadWrite(part), Some((dtype, _))) = (argument, pointee) {
                let part = part.shared();
                let mut kept = Buffer::zeros(self.device, part.len())?;
                kept.part_mut().copy_from(part)?;
                self.written.push((place, dtype, kept));
            }
        }
        Ok(())
    }

    fn key(&self) -> Result<TuneKey> {
        let kernel = self.kernel.configured().kernel();
        let extents = self
            .bound
            .list
            .iter()
            .filter_map(|argument| match argument {
                Bound::Read(part) => Some(part.len()),
                Bound::ReadWrite(part) => Some(part.shared().len()),
                Bound::Scalar(literal) => {
                    let integer = literal.integer()?;
                    Some(usize::try_from(integer.unsigned_abs()).unwrap_or(usize::MAX))
                }
            });
        let level = kernel.determinism.name();
        // Kernels of one name have other paths, which stay from build to build.
        let path = std::any::type_name::<K::Config>();
        let types = std::any::type_name::<K::Parameters>();
        let stated = match self.grid {
            Some(_) => ", stated grid",
            None => "",
        };
        Ok(TuneKey {
            kernel: path.strip_suffix("::Config").unwrap_or(path).to_string(),
            extents: extents.collect(),
            variant: format!("{types}, {level}, {}{stated}", kernel.config()),
        })
    }

    /// What the kernel writes on the CPU: exactly, where it can.
    fn golden(&self, kernel: &K) -> Result<Vec<Array>> {
        let exact = kernel.clone().determinism(Determinism::Exact);
        match self.run_on_cpu(exact.configured().kernel()) {
            Err(Error::Compile { .. }) => self.run_on_cpu(kernel.configured().kernel()),
            result => result,
        }
    }

    fn run_on_cpu(&self, kernel: &Kernel<K::Parameters>) -> Result<Vec<Array>> {
        let copy = |argument: &Bound<'_>| match argument {
            Bound::Read(part) => HostMemory::from_bytes(&part.read()?),
            Bound::ReadWrite(part) => HostMemory::from_bytes(&part.shared().read()?),
            Bound::Scalar(_) => HostMemory::from_bytes(&[]),
        };
        let copies = self.bound.list.iter().map(copy);
        let mut copies = copies.collect::<Result<Vec<_>>>()?;
        let list = self.bound.list.iter().zip(&mut copies);
        let list = list.map(|(argument, bytes)| match argument {
            Bound::Read(_) => Bound::Read(Part::Slice(bytes.bytes())),
            Bound::ReadWrite(_) => Bound::ReadWrite(PartMut::Slice(bytes.bytes_mut())),
            Bound::Scalar(literal) => Bound::Scalar(*literal),
        });
        let mut bound = BoundArguments {
            list: list.collect(),
            choices: self.bound.choices.clone(),
        };
        let cpu = Device::cpu();
        let (place, grid) = (cpu.place(), Stated(self.grid));
        let failure = kernel.start(place, grid, &mut bound, Told::Runner)?;
        drop(bound);
        failure.map_or(Ok(()), |failure| failure.tell())?;
        let written = self.written.iter();
        written
            .map(|(place, dtype, _)| array(*dtype, copies[*place].bytes()))
            .collect()
    }

    /// Puts the configuration as it is in front, then all tiles with its schedule, and finds the traces that processes did not survive.
    fn probe(&mut self, search: &Search<'_>) -> Result<()> {
        let kernel = self.kernel;
        let base = kernel.configured().definition.config;
        let own = schedule_of(kernel, base);
        let is_other = |config: &K::Config| schedule_of(kernel, *config) != own;
        let place = |config: &K::Config| (*config != base, is_other(config));
        self.space.sort_by_key(place);
        let crashed = search.tuner.winners.crashed(search.problem)?;
        for config in self.space.iter().filter(|config| !is_other(config)) {
            let plain = self.plain(config);
            if !crashed.is_empty() && crashed.contains(&format!("{plain:?}")) {
                self.deadly.push(plain);
            } else if !search.is_over(0.125) {
                let _trial = search.trial(&plain)?;
                // Where it fails, the launch says why.
                drop(self.traced(&at(kernel, plain)));
            }
        }
        Ok(())
    }
}

fn array(dtype: DType, bytes: &[u8]) -> Result<Array> {
    Array::from_bytes(dtype, [bytes.len() / dtype.bytes() as usize], bytes)
}

impl<K: Configure> Workload<K::Config> for Runs<'_, '_, K> {
    fn launch(&mut self, config: &K::Config) -> Result<()> {
        let last = self.last.take();
        let last = last.filter(|kernel| kernel.configured().definition.config == *config);
        let kernel = last.unwrap_or_else(|| at(self.kernel, *config));
        let mut bound = BoundArguments {
            list: self.bound.list.iter_mut().map(Bound::lent).collect(),
            choices: self.bound.choices.clone(),
        };
        let ready = kernel.configured().kernel();
        let (place, grid) = (self.device.place(), Stated(self.grid));
        ready.start(place, grid, &mut bound, Told::Stream)?;
        self.last = Some(kernel);
        Ok(())
    }

    fn outputs(&self) -> Result<Vec<Array>> {
        self.outputs_again(Vec::new())
    }

    fn outputs_again(&self, earlier: Vec<Array>) -> Result<Vec<Array>> {
        let mut earlier = earlier.into_iter();
        let written = self.written.iter();
        let read = written.filter_map(|(place, dtype, _)| match &self.bound.list[*place] {
            Bound::ReadWrite(part) => {
                let part = part.shared();
                let shape = [part.len() / dtype.bytes() as usize];
                let fitting = earlier.next().filter(|it| it.shape() == shape);
                let room = fitting.map_or_else(|| Array::zeros(*dtype, shape), Ok);
                Some(room.and_then(|mut room| {
                    part.read_to(room.bytes_mut())?;
                    Ok(room)
                }))
            }
            Bound::Read(_) | Bound::Scalar(_) => None,
        });
        read.collect()
    }

    /// Restores what they held at first, which a kernel may read.
    fn spoil(&mut self) -> Result<()> {
        for (place, _, kept) in &self.written {
            if let Bound::ReadWrite(part) = &mut self.bound.list[*place] {
                part.lent().copy_from(kept.part())?;
            }
        }
        Ok(())
    }

    fn refuses(&self, config: &K::Config) -> Option<String> {
        if self.is_deadly(config) {
            return Some("the process that traced it ended, twice".to_string());
        }
        if let Err(error) = self.placed(config) {
            return Some(error.to_string());
        }
        if !self.device.runs_lanes() {
            return None;
        }
        let target = self.device.target();
        let gpu = target.gpu;
        let schedule = schedule_of(self.kernel, *config);
        let sketch = Sketch::of(&self.traced(&at(self.kernel, *config)).ok()?, &target);
        let threads = 32 * schedule.warps.unwrap_or(sketch.warps);
        let (own, room) = (
            sketch.bytes / threads as usize,
            4 * gpu.thread_registers.1 as usize,
        );
        (own > HOPELESS * room).then(|| {
            format!(
                "a thread of {threads} would hold {own} bytes of the largest tile, and has registers for {room}"
            )
        })
    }
}
