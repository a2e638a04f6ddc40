//! What only a GPU refuses: memory and streams that are elsewhere, texts that nobody has vouched for, and searches on a
//! device that has no room or does not answer.

use std::collections::BTreeMap;

use exactile::autotune::{TuneKey, Tuner, Workload};
use exactile::internals::{self, GpuClock};
use exactile::interop::dlpack::{Exported, Imported};
use exactile::interop::ndarray;

use exactile::prelude::*;
use exactile::text_kernel::{TextArgument, TextKernel};
use exactile::{Array, Determinism, Result};
use exactile_core::target::Options;

use super::{adopted, doubles, outcome_of};

fn refused<T>(found: Result<T>) -> String {
    found.map(drop).expect_err("is refused").to_string()
}

#[track_caller]
fn says(text: &str, part: &str) {
    assert!(text.contains(part), "{part}\nis not in\n{text}");
}

const INLINE: &str = "func @own block (%x: ptr<u32> write) {
  %i = arange start=0, end=32 : tile<32xi64>
  %a = load %x, %i : tile<32xu32>
  %n = not %a : tile<32xu32>
  %p = inline_ptx [%n], [%a], result=0, text=\"not.b32 $0, $1\\u{3b}\" : tile<32xu32>
  store %x, %i, %p
}";

#[kernel]
fn copies(x: Tensor<f32, 2>, y: TensorMut<f32, 2>) {
    let at = (0, 0);
    store(y.tile([2, 2]).at(at), load(x.tile([2, 2]).at(at)));
}

/// Memory, streams and events of the host where those of a GPU are asked for, and the other way round.
pub(super) fn places() -> Result<()> {
    let (gpu, host) = (Device::cuda(0)?, Device::cpu());
    let mut y = Buffer::zeros(&gpu, 4)?;
    let time = gpu.event()?.seconds_since(&host.event()?);
    says(
        &refused(time),
        "the time between events of different devices is not known",
    );

    let numbers = ::ndarray::array![[1.0f32, 2.0], [3.0, 4.0]];
    let arguments = (ndarray::tensor(&numbers.view())?, y.view_mut([2, 2])?);
    let message = refused(copies().launch(&gpu, 1, arguments));
    says(&message, "the host, in a slice");
    says(
        &refused(ndarray::view(y.view([2, 2])?)),
        "a view of `ndarray` is of memory of the host: copy the array there",
    );
    let own = Buffer::<f32>::zeros(&host, 4)?;
    let copy = gpu.pinned(4)?.copy_from(&gpu, own.slice(..)?);
    says(&refused(copy), "a copy on cpu, expected cuda:0");

    let stream = gpu.stream()?;
    let given = Exported::new(own, &[4], Some(&stream));
    says(&refused(given), "the reader is a stream of cuda:0");
    let given = Exported::new(Buffer::<f32>::zeros(&host, 4)?, &[4], None)?;
    // SAFETY: it was made just now.
    let taken = unsafe { Imported::from_raw(&host, given.into_raw(), Some(&stream)) };
    says(&refused(taken), "the stream is one of cuda:0");

    let kernel = TextKernel::parse(INLINE, "own.bir", Options::default())?;
    let x = TextArgument::Array(Array::from_slice([32], &[0u32; 32])?);
    let mut arguments = BTreeMap::from([("x".to_string(), x)]);
    let found = kernel.run(&gpu, [1, 1, 1], &mut arguments);
    let message = refused(found);
    says(&message, "nobody has vouched for inline PTX of `@own`: ");
    says(
        &message,
        "a GPU runs what an `unsafe` call of `exactile::inline_ptx` in this process has given",
    );
    kernel.run(&host, [1, 1, 1], &mut arguments)?;

    let place = std::ptr::without_provenance_mut::<f32>(0x1_0000);
    let part = |first: usize, len| {
        // SAFETY: nothing is done with the numbers.
        unsafe { Buffer::from_raw_parts(&gpu, place.wrapping_add(first), len, ()) }
    };
    let _apart = (part(0, 1)?, part(2, 1)?);
    says(
        &refused(part(0, 4)),
        " overlap two arrays that are apart: take all of the memory over first, and then parts of it",
    );
    Ok(())
}

/// A clock beside another one of its device, which has ended.
pub(super) fn clocks() -> Result<()> {
    let gpu = Device::cuda(0)?;
    let clock = || GpuClock::new(internals::gpu(&gpu).expect("is one"), 1024);
    let (mut first, second) = (clock()?, clock()?);
    let mut nothing = || Ok(());
    first.time(1, &mut nothing)?;
    drop(second);
    first.time(1, &mut nothing).map(drop)
}

/// A launch into a stream that others capture.
pub(super) fn capture_of_others() -> Result<()> {
    let device = Device::cuda(0)?;
    let x = Buffer::<f32>::zeros(&device, 8)?;
    let mut y = Buffer::<f32>::zeros(&device, 8)?;
    doubles().launch(&adopted(&device, 1)?, 1, (&x, &mut y, 8))
}

/// Two candidates of a kernel on a GPU.
struct Doubles(Buffer<f32>, Buffer<f32>);

impl Workload<i32> for Doubles {
    fn launch(&mut self, n: &i32) -> Result<()> {
        let device = self.0.device().clone();
        doubles().launch(&device, 1, (&self.0, &mut self.1, *n))
    }

    fn outputs(&self) -> Result<Vec<Array>> {
        Ok(Vec::new())
    }

    fn spoil(&mut self) -> Result<()> {
        Ok(())
    }
}

pub(super) fn searches() -> Result<()> {
    let device = Device::cuda(0)?;
    let key = TuneKey {
        kernel: "doubles".to_string(),
        extents: vec![8],
        variant: "f32".to_string(),
    };
    let mut work = Doubles(Buffer::zeros(&device, 8)?, Buffer::zeros(&device, 8)?);
    let (tuner, level) = (Tuner::forgetful(), Determinism::Exact);
    let tuned = tuner.tune(&device, &key, level, &[8, 4], &[], &mut work);
    tuned.map(drop)
}

#[test]
fn what_is_elsewhere_is_refused() {
    if let Some(outcome) = outcome_of("places", "places", &[]) {
        assert_eq!(outcome, "all works");
    }
}

#[test]
fn what_a_gpu_cannot_do_now_is_refused() {
    for (work, definition, message) in [
        (
            "capture of others",
            "CAPTURED=1",
            "a stream of others is being captured: launch after its capture, or capture by `Stream::capture`",
        ),
        ("clocks", "CLOCKS=2", "another clock has ended"),
        (
            "searches",
            "BLOCKS=0",
            "no multiprocessor has room for a thread block of ",
        ),
        // Which of the two candidates runs first is that which is compiled first.
        (
            "searches",
            "WAITS=999",
            "skipped: the device does not answer since ",
        ),
    ] {
        let name = definition.split('=').next().expect("has a name");
        if let Some(outcome) = outcome_of(work, name, &[definition]) {
            says(&outcome, message);
        }
    }
}
