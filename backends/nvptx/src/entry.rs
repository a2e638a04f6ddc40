//! Kernels that the driver has loaded, and how launches reach it.
#![expect(unsafe_code, reason = "the driver is a C interface")]

mod maps;

use std::ffi::{CString, c_void};
use std::ptr::null_mut;
use std::sync::{Arc, OnceLock};

use cudarc::driver::sys::{
    self, CUDA_KERNEL_NODE_PARAMS, CUdevice_attribute, CUfunction_attribute, CUjit_option,
    CUlaunchAttribute, CUlaunchAttributeID, CUlaunchAttributeValue, CUlaunchConfig, CUtensorMap,
};
use exactile_core::ir::Grid;
use exactile_core::launch::{Launch, Passed, Signature};
use smallvec::SmallVec;

use crate::buffer::DeviceBuffer;
use crate::driver::{Context, call, text_of};
use crate::error::{Error, Result};
use crate::inlined::explained;
use crate::kernel::Kernel;
use crate::launch::{FEW, Marshalled, Placed, Words, marshal};
use crate::padded::WIDTHS;
use crate::ptx::Ptx;
use crate::stream::{Module, Stream};

use maps::Maps;

impl Context {
    /// Has the driver load machine code, or compile PTX.
    pub(crate) fn load_entry(&self, ptx: Arc<Ptx>) -> Result<Entry> {
        self.make_current()?;
        let module = self.load_module(&ptx)?;
        let name = CString::new(ptx.name()).map_err(|error| Error::BadImage(error.to_string()))?;
        let mut function = null_mut();
        call!(cuModuleGetFunction(
            &mut function,
            module.module,
            name.as_ptr()
        ))?;
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        call!(cuFuncSetAttribute(
            function,
            attribute,
            ptx.shared_bytes() as i32
        ))?;
        Ok(Entry {
            module,
            function,
            signature: ptx.signature(),
            ptx,
            multiprocessors: self.multiprocessors()?,
            maps: Maps::default(),
            copiers: Default::default(),
        })
    }

    fn load_module(&self, ptx: &Ptx) -> Result<Module> {
        let text = CString::new(ptx.text()).map_err(|error| Error::BadImage(error.to_string()))?;
        let source: *const c_void = match &ptx.machine_code {
            Some(code) => code.as_ptr().cast(),
            None => text.as_ptr().cast(),
        };
        let mut log = [0u8; 8192];
        let mut options = [
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        let mut values: [*mut c_void; 2] = [log.as_mut_ptr().cast(), log.len() as *mut c_void];
        let mut module = null_mut();
        let loaded = call!(cuModuleLoadDataEx(
            &mut module,
            source,
            options.len() as u32,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        ));
        if let Err(Error::BadImage(reason)) = loaded {
            let refusal = format!("{reason}\n{}", text_of(&log));
            return Err(Error::BadImage(explained(ptx.text(), refusal)));
        }
        loaded?;
        Ok(Module {
            context: self.clone(),
            module,
        })
    }
}

/// A loaded entry point.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) module: Module,
    function: sys::CUfunction,
    signature: Signature,
    pub(crate) ptx: Arc<Ptx>,
    multiprocessors: u32,
    maps: Maps,
    /// What copies rows for its launches, which is loaded as long as it is.
    copiers: [OnceLock<Arc<Kernel>>; WIDTHS],
}

// SAFETY: a function handle is a part of its module.
unsafe impl Send for Entry {}
// SAFETY: as for the module.
unsafe impl Sync for Entry {}

impl Entry {
    /// An attribute of the function.
    pub(crate) fn attribute(&self, attribute: CUfunction_attribute) -> Result<u32> {
        self.module.context.make_current()?;
        let mut value = 0;
        call!(cuFuncGetAttribute(&mut value, attribute, self.function))?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    /// An attribute of the device that it is loaded on.
    pub(crate) fn device_attribute(&self, attribute: CUdevice_attribute) -> Result<u32> {
        self.module.context.attribute(attribute)
    }

    /// The kernel that copies rows of words of this width.
    fn copier(&self, width: usize) -> Result<&Kernel> {
        let copier = &self.copiers[width];
        if let Some(known) = copier.get() {
            return Ok(known);
        }
        let loaded = self.module.context.copier(width)?;
        Ok(copier.get_or_init(|| loaded))
    }

    /// How many thread blocks fit a multiprocessor at once.
    pub(crate) fn blocks_per_multiprocessor(&self) -> Result<u32> {
        self.module.context.make_current()?;
        let (mut count, threads) = (0, self.ptx.threads() as i32);
        let shared = self.ptx.shared_bytes() as usize;
        call!(cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &mut count,
            self.function,
            threads,
            shared
        ))?;
        Ok(u32::try_from(count).unwrap_or(0))
    }
}

impl Entry {
    /// Has the driver put thread blocks of so many programs each into `stream`.
    ///
    /// # Safety
    /// As for [`Kernel::launch`]; behind the pointers are the parameters of the kernel in their order.
    unsafe fn put(
        &self,
        stream: &Stream,
        [x, y, z]: Grid,
        programs: u32,
        pointers: &mut [*mut c_void],
    ) -> Result<()> {
        self.module.context.make_current()?;
        if self.ptx.begins_early {
            // SAFETY: handed on to the caller.
            return unsafe { self.put_early(stream, [x, y, z], programs, pointers) };
        }
        call!(cuLaunchKernel(
            self.function,
            x,
            y,
            z,
            self.ptx.threads,
            programs,
            1,
            self.ptx.shared_bytes * programs,
            stream.stream,
            pointers.as_mut_ptr(),
            null_mut(),
        ))
    }

    /// Puts the copies that a launch reads in place of arrays into `stream`, in memory that is to be freed in it.
    ///
    /// # Safety
    /// As for [`Kernel::launch`].
    unsafe fn copied(&self, stream: &Stream, launch: &mut Marshalled) -> Result<Vec<DeviceBuffer>> {
        let mut made = Vec::new();
        for copy in &launch.copies {
            let memory = self.module.context.allocate_in(copy.len()?, stream)?;
            let (copier, arguments) = (self.copier(copy.width())?, copy.arguments(&memory));
            // SAFETY: handed on to the caller; the array ends in memory that the launch reads, and the copy in its own.
            unsafe { copier.queue(stream, copy.grid(), &arguments, None) }?;
            copy.replace(&mut launch.arrays, &memory);
            made.push(memory);
        }
        Ok(made)
    }

    /// The same laid out, with memory that stays.
    fn laid_out_before(
        &self,
        launch: &mut Marshalled,
    ) -> Result<(Vec<LaidOut<'_>>, Vec<DeviceBuffer>)> {
        let (mut before, mut all) = (Vec::new(), Vec::new());
        for copy in &launch.copies {
            let memory = self.module.context.driver_memory(copy.len()?)?;
            let (copier, arguments) = (self.copier(copy.width())?, copy.arguments(&memory));
            before.push(copier.laid_out(copy.grid(), &arguments, None)?);
            copy.replace(&mut launch.arrays, &memory);
            all.push(memory);
        }
        Ok((before, all))
    }

    /// # Safety
    /// As for [`put`](Self::put).
    unsafe fn put_early(
        &self,
        stream: &Stream,
        [x, y, z]: Grid,
        programs: u32,
        pointers: &mut [*mut c_void],
    ) -> Result<()> {
        let mut early = early();
        let config = CUlaunchConfig {
            gridDimX: x,
            gridDimY: y,
            gridDimZ: z,
            blockDimX: self.ptx.threads,
            blockDimY: programs,
            blockDimZ: 1,
            sharedMemBytes: self.ptx.shared_bytes * programs,
            hStream: stream.stream,
            attrs: &mut early,
            numAttrs: 1,
        };
        call!(cuLaunchKernelEx(
            &config,
            self.function,
            pointers.as_mut_ptr(),
            null_mut()
        ))
    }
}

impl Kernel {
    /// Puts a launch into `stream`. Arguments are checked against the parameters. Code that checks bounds is
    /// launched by [`Records::launch`](crate::Records::launch).
    ///
    /// # Safety
    /// All memory of the arguments is that of [`DeviceBuffer`](crate::DeviceBuffer)s of this device. Accesses that the
    /// kernel does not check must be in bounds of their buffers. No other work that is not ordered by `stream` may write
    /// what the kernel reads.
    pub unsafe fn launch(&self, stream: &Stream, grid: Grid, arguments: &[Passed]) -> Result<()> {
        // SAFETY: handed on to the caller.
        unsafe { self.queue(stream, grid, arguments, None) }
    }

    /// Puts a launch into `stream`, with the address of its record where the kernel checks bounds.
    ///
    /// # Safety
    /// As for [`Kernel::launch`]; a record is one of this device.
    pub(crate) unsafe fn queue(
        &self,
        stream: &Stream,
        grid: Grid,
        arguments: &[Passed],
        error_record: Option<u64>,
    ) -> Result<()> {
        let entry = &self.entry;
        let launch = Launch {
            grid,
            arguments,
            error_record,
        };
        let mut words = Words::new();
        let (ptx, count) = (&entry.ptx, entry.multiprocessors);
        let mut launch = marshal(ptx, &entry.signature, &launch, count, &mut words)?;
        // SAFETY: handed on to the caller.
        let mut copies = unsafe { entry.copied(stream, &mut launch) }?;
        let mut pointers: SmallVec<[*mut c_void; FEW]> = SmallVec::new();
        pointers.extend(words.iter_mut().map(|word| std::ptr::from_mut(word).cast()));
        let mut maps = entry.maps.of(&entry.ptx, &launch.arrays)?;
        pointers.extend(maps.iter_mut().map(|map| std::ptr::from_mut(map).cast()));
        // SAFETY: handed on to the caller; the words are those of the parameters.
        let put = unsafe { entry.put(stream, launch.grid, launch.programs, &mut pointers) };
        let freed = copies.iter_mut().try_for_each(|it| it.free_in(stream));
        put.and(freed)
    }

    /// What this launch has in common with others that are [alike](Placed::of), if it can be put and code takes no more.
    pub fn placed(&self, grid: Grid, arguments: &[Passed]) -> Option<Placed> {
        let entry = &self.entry;
        let launch = Launch::new(grid, arguments);
        Placed::of(&entry.ptx, &entry.signature, &launch, entry.multiprocessors)
    }

    /// [`launch`](Self::launch) of arguments that were checked: `words` are their addresses and the bits of their numbers.
    ///
    /// # Safety
    /// As for [`launch`](Self::launch); `placed` was made by this kernel for a launch that is [alike](Placed::of), and no memory
    /// that is written meets other memory.
    pub unsafe fn launch_placed(
        &self,
        stream: &Stream,
        placed: &Placed,
        words: &mut [u64; FEW],
    ) -> Result<()> {
        let mut pointers = [null_mut(); FEW];
        for (pointer, word) in pointers.iter_mut().zip(placed.of_all(words)) {
            *pointer = std::ptr::from_mut(word).cast::<c_void>();
        }
        let (entry, Placed { grid, programs, .. }) = (&self.entry, placed);
        // SAFETY: handed on to the caller; the driver reads a pointer for each word and none behind.
        unsafe { entry.put(stream, *grid, *programs, &mut pointers) }
    }

    /// A launch whose arguments are laid out once, for many times. Arguments are checked against the parameters.
    pub fn lay_out(&self, grid: Grid, arguments: &[Passed]) -> Result<LaidOut<'_>> {
        self.laid_out(grid, arguments, None)
    }

    /// [`lay_out`](Self::lay_out) with the address of its record where the kernel checks bounds.
    pub(crate) fn laid_out(
        &self,
        grid: Grid,
        arguments: &[Passed],
        error_record: Option<u64>,
    ) -> Result<LaidOut<'_>> {
        let entry = &self.entry;
        let launch = Launch {
            grid,
            arguments,
            error_record,
        };
        let mut words = Words::new();
        let (ptx, count) = (&entry.ptx, entry.multiprocessors);
        let mut launch = marshal(ptx, &entry.signature, &launch, count, &mut words)?;
        let (before, memory) = entry.laid_out_before(&mut launch)?;
        let mut words = words.to_vec();
        let mut maps = entry.maps.of(&entry.ptx, &launch.arrays)?;
        let words_at = words.iter_mut().map(|word| std::ptr::from_mut(word).cast());
        let maps_at = maps.iter_mut().map(|map| std::ptr::from_mut(map).cast());
        let pointers = words_at.chain(maps_at).collect();
        Ok(LaidOut {
            entry,
            grid: launch.grid,
            programs: launch.programs,
            pointers,
            _words: words,
            _maps: maps,
            before,
            memory,
        })
    }
}

/// Lets the launch begin before the end of the kernel before it in its stream.
fn early() -> CUlaunchAttribute {
    CUlaunchAttribute {
        id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        pad: [0; 4],
        value: CUlaunchAttributeValue {
            programmaticStreamSerializationAllowed: 1,
        },
    }
}

/// A launch as the driver takes it.
#[derive(Debug)]
pub struct LaidOut<'k> {
    entry: &'k Entry,
    /// Of thread blocks.
    grid: Grid,
    /// Of a thread block.
    programs: u32,
    /// To the numbers below, which stay where they are.
    pointers: Vec<*mut c_void>,
    _words: Vec<u64>,
    _maps: Vec<CUtensorMap>,
    /// The launches that make the copies which it reads in place of arrays.
    before: Vec<Self>,
    /// Where these copies are.
    memory: Vec<DeviceBuffer>,
}

impl LaidOut<'_> {
    /// Makes the device's context that of this thread, which a launch relies on.
    pub fn make_current(&self) -> Result<()> {
        self.entry.module.context.make_current()
    }

    /// Puts it into `stream` by one call of the driver and nothing else, but one for each copy that it reads in place of an array.
    ///
    /// # Safety
    /// As for [`Kernel::launch`], and [`make_current`](Self::make_current) was called on this thread.
    pub unsafe fn launch(&mut self, stream: &Stream) -> Result<()> {
        for copy in &mut self.before {
            // SAFETY: handed on to the caller.
            unsafe { copy.launch(stream) }?;
        }
        let (entry, [x, y, z]) = (self.entry, self.grid);
        call!(cuLaunchKernel(
            entry.function,
            x,
            y,
            z,
            entry.ptx.threads,
            self.programs,
            1,
            entry.ptx.shared_bytes * self.programs,
            stream.stream,
            self.pointers.as_mut_ptr(),
            null_mut(),
        ))
    }

    /// What the driver copies into the nodes of a graph, one after the other.
    pub(crate) fn nodes(&mut self) -> Vec<CUDA_KERNEL_NODE_PARAMS> {
        let mut nodes: Vec<_> = self.before.iter_mut().map(Self::node).collect();
        nodes.push(self.node());
        nodes
    }

    /// The memory that its nodes use beside that of the arguments.
    pub(crate) fn into_memory(self) -> Vec<DeviceBuffer> {
        self.memory
    }

    fn node(&mut self) -> CUDA_KERNEL_NODE_PARAMS {
        let (entry, [x, y, z]) = (self.entry, self.grid);
        CUDA_KERNEL_NODE_PARAMS {
            func: entry.function,
            gridDimX: x,
            gridDimY: y,
            gridDimZ: z,
            blockDimX: entry.ptx.threads,
            blockDimY: self.programs,
            blockDimZ: 1,
            sharedMemBytes: entry.ptx.shared_bytes * self.programs,
            kernelParams: self.pointers.as_mut_ptr(),
            extra: null_mut(),
            kern: null_mut(),
            ctx: null_mut(),
        }
    }
}
