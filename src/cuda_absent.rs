//! What stands for GPUs in a build without the feature `cuda`: types without values, so that the
//! rest of the crate is the same in both builds.

use std::convert::Infallible;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use exactile_core::ir::{Access, Grid};
use exactile_core::launch::Launch;
use exactile_core::target::Target;

use crate::capture::Captured;
use crate::error::{Error, Result};
use crate::failure::{Failure, Writers};
use crate::foreign::{Foreign, Owner};
use crate::inspection::Resources;
use crate::launch::Checked;
use crate::order::Uses;
use crate::profile::{Label, Span};
#[cfg(feature = "dlpack")]
use crate::stream::Stream;

/// No GPU.
#[derive(Debug)]
pub enum Gpu {}

impl Gpu {
    pub(crate) fn open(ordinal: usize) -> Result<Arc<Self>> {
        Err(Error::Device(format!(
            "device `cuda:{ordinal}` needs a build with the feature `nvptx`, or with `cuda` for code that another one has \
             made"
        )))
    }

    pub(crate) fn driver(&self) -> Option<i32> {
        match *self {}
    }

    /// The machine that its code is made for.
    pub fn target(&self) -> Target {
        match *self {}
    }

    pub(crate) fn name(&self) -> &str {
        match *self {}
    }

    pub(crate) fn multiprocessors(&self) -> u32 {
        match *self {}
    }

    pub(crate) fn stream(&self) -> Result<usize> {
        match *self {}
    }

    pub(crate) fn stream_apart(&self) -> Result<usize> {
        match *self {}
    }

    pub(crate) fn address(&self) -> usize {
        match *self {}
    }

    /// # Safety
    /// None is needed: there is no GPU.
    #[expect(unsafe_code, reason = "as where there is one")]
    pub(crate) unsafe fn adopt(&self, _handle: *mut c_void, _keeper: Owner) -> Result<usize> {
        match *self {}
    }

    pub(crate) fn give_back(&self, _number: usize) {
        match *self {}
    }

    /// # Safety
    /// None is needed: there is no GPU.
    #[expect(unsafe_code, reason = "as where there is one")]
    pub(crate) unsafe fn launch<'m>(
        &self,
        _number: usize,
        code: &GpuCode,
        _launch: (&Arc<str>, &Launch<'_>),
        _memories: impl Iterator<Item = (&'m Mutex<Uses>, Access)>,
        _checked: Option<Box<Checked>>,
    ) -> Result<()> {
        match *code {}
    }

    /// # Safety
    /// None is needed: there is no GPU.
    #[expect(unsafe_code, reason = "as where there is one")]
    pub(crate) unsafe fn launch_placed<'m>(
        &self,
        _number: usize,
        (code, _placed): (&GpuCode, &Placed),
        _words: &mut Words,
        _memories: impl Iterator<Item = (&'m Mutex<Uses>, Access)>,
        _label: impl FnOnce() -> Label,
    ) -> Result<()> {
        match *code {}
    }

    pub(crate) fn bare_launch<'a>(
        &self,
        code: &'a GpuCode,
        _launch: &Launch<'_>,
    ) -> Result<BareLaunch<'a>> {
        match *code {}
    }

    pub(crate) fn graph(&self, _launches: &Arc<[Captured]>) -> Result<GpuGraph> {
        match *self {}
    }

    /// # Safety
    /// None is needed: there is no GPU.
    #[expect(unsafe_code, reason = "as where there is one")]
    pub(crate) unsafe fn replay<'m>(
        &self,
        _number: usize,
        graph: &'m GpuGraph,
        _memories: impl Iterator<Item = (&'m Mutex<Uses>, Access)>,
    ) -> Result<(Option<Arc<Failure>>, Result<()>)> {
        match *graph {}
    }

    pub(crate) fn watch(&self) -> Result<()> {
        match *self {}
    }

    pub(crate) fn watched(&self) -> Result<Vec<Span>> {
        match *self {}
    }

    pub(crate) fn finish(&self, _number: usize) -> Result<()> {
        match *self {}
    }

    pub(crate) fn wait_for_all(&self) -> Result<()> {
        match *self {}
    }

    pub(crate) fn wait_for_stream(&self, _number: usize) -> Result<()> {
        match *self {}
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        match *self {}
    }

    pub(crate) fn trim(&self) -> Result<()> {
        match *self {}
    }

    pub(crate) fn point(&self, _number: usize) -> Result<Point> {
        match *self {}
    }

    pub(crate) fn wait_for_point(&self, _number: usize, point: &Point) -> Result<()> {
        match *point {}
    }

    pub(crate) fn link(&self, ptx: &mut Ptx) -> bool {
        match *ptx {}
    }

    pub(crate) fn load(&self, ptx: Ptx) -> Result<GpuCode> {
        match ptx {}
    }
}

/// No point.
#[derive(Debug)]
pub(crate) enum Point {}

impl Point {
    pub(crate) fn synchronize(&self) -> Result<()> {
        match *self {}
    }

    pub(crate) fn has_ended(&self) -> Result<bool> {
        match *self {}
    }

    pub(crate) fn seconds_since(&self, _earlier: &Self) -> Result<f64> {
        match *self {}
    }
}

/// No graph.
#[derive(Debug)]
pub(crate) enum GpuGraph {}

impl GpuGraph {
    pub(crate) fn replace(&mut self, _launches: &Arc<[Captured]>) -> Result<()> {
        match *self {}
    }
}

/// No launch.
#[derive(Debug)]
pub struct BareLaunch<'a> {
    none: Infallible,
    code: PhantomData<&'a GpuCode>,
}

impl BareLaunch<'_> {
    /// There is none.
    ///
    /// # Safety
    /// None is needed: there is no GPU.
    #[expect(unsafe_code, reason = "as where there is one")]
    pub unsafe fn launch(&mut self) -> Result<()> {
        match self.none {}
    }
}

/// No PTX.
#[derive(Debug)]
pub(crate) enum Ptx {}

impl Ptx {
    pub(crate) fn name(&self) -> &str {
        match *self {}
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        match *self {}
    }

    pub(crate) fn texts(&self) -> std::iter::Empty<(&'static str, &str)> {
        match *self {}
    }

    pub(crate) fn machine_code(&self) -> Option<&[u8]> {
        match *self {}
    }

    pub(crate) fn from_bytes(_bytes: &[u8]) -> Option<Self> {
        None
    }
}

/// Nothing is laid out.
#[derive(Debug)]
pub(crate) enum Placed {}

/// There is none to lay out.
pub(crate) type Words = [u64; 0];

/// Addresses are of no interest.
pub(crate) const ALIKE: u64 = 256;

/// Nothing splits a grid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GridMapping {
    Direct,
}

impl GridMapping {
    pub(crate) fn of(_grid: Grid) -> Self {
        Self::Direct
    }

    pub(crate) fn name(self) -> &'static str {
        "direct"
    }
}

/// Nothing reads or makes code of a GPU.
pub(crate) fn sources() -> Option<String> {
    None
}

/// No clock.
#[derive(Debug)]
pub enum Clock {}

impl Clock {
    /// There is no GPU to time.
    pub fn new(gpu: &Arc<Gpu>, _flush: usize) -> Result<Self> {
        match **gpu {}
    }

    /// There are no caches to flush.
    pub fn flush(&mut self) -> Result<()> {
        match *self {}
    }

    /// There is no clock to ask.
    pub fn time(
        &mut self,
        _launches: usize,
        _launch: &mut dyn FnMut() -> Result<()>,
    ) -> Result<f64> {
        match *self {}
    }
}

/// No code.
#[derive(Debug)]
pub(crate) enum GpuCode {}

impl GpuCode {
    pub(crate) fn ptx(&self) -> &Ptx {
        match *self {}
    }

    pub(crate) fn resources(&self) -> Result<Resources> {
        match *self {}
    }

    pub(crate) fn placed(&self, _launch: &Launch<'_>) -> Option<Placed> {
        match *self {}
    }

    pub(crate) fn has_bounds_checks(&self) -> bool {
        match *self {}
    }
}

/// No memory.
#[derive(Debug)]
pub(crate) struct GpuMemory {
    none: Infallible,
    pub(crate) shared: Shared,
}

/// Nothing is known of it.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) uses: Mutex<Uses>,
    pub(crate) writers: Writers,
}

impl GpuMemory {
    pub(crate) fn zeroed(gpu: &Arc<Gpu>, _len: usize) -> Result<Self> {
        match **gpu {}
    }

    /// # Safety
    /// None is needed: there is no GPU.
    #[expect(unsafe_code, reason = "as where there is one")]
    pub(crate) unsafe fn of_others(
        gpu: &Arc<Gpu>,
        _address: u64,
        _len: usize,
        _foreign: Foreign,
    ) -> Result<Self> {
        match **gpu {}
    }

    #[cfg(feature = "dlpack")]
    pub(crate) fn note_all_in(&self, _stream: &Stream) -> Result<()> {
        match self.none {}
    }

    #[cfg(feature = "dlpack")]
    pub(crate) fn leave_to(&self, _stream: Option<&Stream>) -> Result<()> {
        match self.none {}
    }

    #[cfg(feature = "dlpack")]
    pub(crate) fn wait_for_all(&self) -> Result<()> {
        match self.none {}
    }

    pub(crate) fn take_foreign(&mut self) -> Result<Option<Foreign>> {
        match self.none {}
    }

    pub(crate) fn own_writers(&self) -> Option<&Writers> {
        match self.none {}
    }

    pub(crate) fn from_bytes(gpu: &Arc<Gpu>, _bytes: &[u8]) -> Result<Self> {
        match **gpu {}
    }

    pub(crate) fn try_clone(&self) -> Result<Self> {
        match self.none {}
    }

    pub(crate) fn len(&self) -> usize {
        match self.none {}
    }

    pub(crate) fn address(&self) -> u64 {
        match self.none {}
    }

    pub(crate) fn read(&self, _start: usize, _len: usize) -> Result<Vec<u8>> {
        match self.none {}
    }

    pub(crate) fn read_to(&self, _start: usize, _bytes: &mut [u8]) -> Result<()> {
        match self.none {}
    }

    pub(crate) fn write(&self, _start: usize, _bytes: &[u8]) -> Result<()> {
        match self.none {}
    }

    pub(crate) fn fill(&self, _start: usize, _len: usize, _number: &[u8]) -> Result<()> {
        match self.none {}
    }

    pub(crate) fn copy(&self, _start: usize, _source: (&Self, usize), _len: usize) -> Result<()> {
        match self.none {}
    }
}

/// No memory of the host that a GPU knows.
#[derive(Debug)]
pub(crate) enum GpuPinned {}

impl GpuPinned {
    pub(crate) fn zeroed(gpu: &Arc<Gpu>, _len: usize) -> Result<Self> {
        match **gpu {}
    }

    pub(crate) fn bytes(&self) -> Result<&[u8]> {
        match *self {}
    }

    pub(crate) fn bytes_mut(&mut self) -> Result<&mut [u8]> {
        match *self {}
    }

    pub(crate) fn copy_from(
        &mut self,
        _number: usize,
        _source: &GpuMemory,
        _start: usize,
    ) -> Result<()> {
        match *self {}
    }

    pub(crate) fn copy_to(&self, _number: usize, _target: &GpuMemory, _start: usize) -> Result<()> {
        match *self {}
    }
}
