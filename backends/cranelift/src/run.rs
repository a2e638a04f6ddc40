//! Runs compiled code over a grid: arguments, threads, scratch memory, errors.

#![expect(unsafe_code, reason = "compiled code takes addresses")]

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use exactile_core::ir::Grid;
use exactile_core::launch::{Argument, Input, Launch, LaunchError, Passed, Programs};
use exactile_core::target::{BoundsError, Target};
use smallvec::SmallVec;

use crate::environment::StandardFloats;
use crate::jit::Executable;

/// On how many threads the programs of a grid run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Threads {
    /// The calling thread alone.
    One,
    /// All of the machine.
    #[default]
    All,
}

/// What compiled code reads through its first parameter.
#[repr(C)]
pub(crate) struct LaunchContext {
    /// For each argument an address, or the bits of a scalar.
    pub(crate) arguments: *const u64,
    /// For each argument the number of elements behind it.
    pub(crate) lengths: *const i64,
    /// The grid.
    pub(crate) grid: [i64; 3],
    errors: *const Mutex<Option<BoundsError>>,
}

/// Byte offset of `arguments` in [`LaunchContext`].
pub(crate) const ARGUMENTS_OFFSET: i32 = std::mem::offset_of!(LaunchContext, arguments) as i32;
/// Byte offset of `lengths` in [`LaunchContext`].
pub(crate) const LENGTHS_OFFSET: i32 = std::mem::offset_of!(LaunchContext, lengths) as i32;
/// Byte offset of `grid` in [`LaunchContext`].
pub(crate) const GRID_OFFSET: i32 = std::mem::offset_of!(LaunchContext, grid) as i32;

/// Compiled code: context, linear program, its three coordinates, scratch memory.
pub(crate) type Entry = unsafe extern "C" fn(*const LaunchContext, u64, i64, i64, i64, *mut u8);

// SAFETY: the pointers lead to arrays and a mutex that outlive the launch, which only reads the
// arrays; what the arguments' addresses lead to is the launch's contract.
unsafe impl Sync for LaunchContext {}

/// Records an access out of bounds: the first of `count` consecutive elements from `offset` on that
/// does not lie in an argument of `length` elements.
pub(crate) extern "C" fn out_of_bounds(
    context: *const LaunchContext,
    program: u64,
    site: u64,
    element: u64,
    offset: i64,
    length: i64,
) {
    let before_end = length.saturating_sub(offset).max(0);
    let skipped = if offset < 0 { 0 } else { before_end };
    let error = BoundsError {
        program,
        site,
        element: element.wrapping_add(skipped as u64),
        offset: offset.wrapping_add(skipped),
    };
    // SAFETY: compiled code hands on the context of its launch, which is alive.
    let errors = unsafe { &*(*context).errors };
    let mut least = errors
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if least.is_none_or(|known| error < known) {
        *least = Some(error);
    }
}

/// So many arguments are laid out without an allocation.
const FEW: usize = 24;

/// Scratch memory starts at a line.
const fn line() -> usize {
    Target::CPU.line_bytes as usize
}

/// Scratch memory of one worker.
struct Scratch {
    bytes: Vec<u8>,
}

impl Scratch {
    /// Without an allocation where the code needs none.
    fn new(size: usize) -> Self {
        let bytes = match size {
            0 => Vec::new(),
            _ => vec![0; size + line()],
        };
        Self { bytes }
    }

    fn start(&mut self) -> *mut u8 {
        let address = self.bytes.as_mut_ptr();
        let padding = address
            .align_offset(line())
            .min(line())
            .min(self.bytes.len());
        self.bytes[padding..].as_mut_ptr()
    }
}

impl Executable {
    /// Runs the kernel over `grid`, or `sample` programs spread evenly over it, and waits for it. Checked accesses out of bounds
    /// are skipped and the least of them is returned as an error.
    ///
    /// # Safety
    /// Accesses that the function does not check must lie inside their arguments. Programs must not
    /// write what another program accesses.
    pub unsafe fn launch(
        &self,
        grid: Grid,
        arguments: &mut [Argument<'_>],
        threads: Threads,
        sample: Option<u64>,
    ) -> Result<(), LaunchError> {
        let passed: SmallVec<[Passed; FEW]> = arguments.iter().map(Argument::passed).collect();
        self.signature.check(&passed)?;
        let programs = Programs::new(check_grid(grid)?, sample);
        let launch = Launch::new(grid, &passed);
        let words = arguments.iter_mut().map(|argument| match argument {
            Argument::Read(memory) => memory.as_ptr() as u64,
            Argument::ReadWrite(memory) => memory.as_mut_ptr() as u64,
            Argument::Scalar(literal) => literal.bits,
        });
        let words: SmallVec<[u64; FEW]> = words.collect();
        let lengths = self.signature.parameters().iter().enumerate();
        let lengths = lengths.map(|(index, (_, ty))| {
            let length = |(dtype, _)| launch.input(Input::Length(index, dtype));
            ty.pointee().and_then(length).unwrap_or(0).cast_signed()
        });
        let lengths: SmallVec<[i64; FEW]> = lengths.collect();
        let errors = Mutex::new(None);
        let context = LaunchContext {
            arguments: words.as_ptr(),
            lengths: lengths.as_ptr(),
            grid: grid.map(i64::from),
            errors: &raw const errors,
        };
        let run = |scratch: &mut Scratch, range: Range<u64>| {
            let _floats = StandardFloats::new();
            let start = scratch.start();
            for program in range.map(|place| programs.at(place)) {
                let [x, y, z] = coordinates(grid, program);
                // SAFETY: the context and the scratch memory are alive and of the size that the
                // code was compiled for; the rest is this function's contract.
                unsafe { (self.entry())(&raw const context, program, x, y, z, start) };
            }
        };
        self.on_threads(threads, programs.count(), &run)?;
        let least = errors
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        least.map_or(Ok(()), |error| Err(LaunchError::OutOfBounds(error)))
    }

    /// Hands ranges of the programs to threads, each with scratch memory of its own. The caller is one of them, but where code
    /// needs large stacks: it begins while others wake.
    fn on_threads(
        &self,
        threads: Threads,
        programs: u64,
        run: &(impl Fn(&mut Scratch, Range<u64>) + Sync),
    ) -> Result<(), LaunchError> {
        let (workers, chunks) = match threads {
            Threads::One => (1, 1),
            Threads::All => {
                let workers = rayon::current_num_threads() as u64;
                (workers, (workers * CHUNKS).min(programs).max(1))
            }
        };
        let bound =
            |chunk: u64| (u128::from(programs) * u128::from(chunk) / u128::from(chunks)) as u64;
        let next = AtomicU64::new(0);
        let work = || {
            let mut scratch = Scratch::new(self.scratch_bytes());
            loop {
                let chunk = next.fetch_add(1, Ordering::Relaxed);
                if chunk >= chunks {
                    return;
                }
                run(&mut scratch, bound(chunk)..bound(chunk + 1));
            }
        };
        let workers = workers.min(chunks);
        if self.stack_bytes() > ANY_STACK {
            return on_large_stacks(workers, self.stack_bytes(), &work);
        }
        match workers {
            // What one thread does needs no others woken.
            1 => work(),
            _ => rayon::in_place_scope(|scope| {
                for _ in 1..workers {
                    scope.spawn(|_| work());
                }
                work();
            }),
        }
        Ok(())
    }
}

/// Ranges that the programs are cut into for each thread, so that all end at about the same time.
const CHUNKS: u64 = 32;

/// The bytes of stack that code takes from whatever thread it runs on.
const ANY_STACK: usize = 16 << 10;

/// Runs `work` on `count` threads whose stacks hold a frame of `bytes` bytes and what it calls.
fn on_large_stacks(count: u64, bytes: usize, work: &(impl Fn() + Sync)) -> Result<(), LaunchError> {
    std::thread::scope(|scope| {
        for _ in 0..count {
            let thread = std::thread::Builder::new().stack_size(bytes + (256 << 10));
            thread.spawn_scoped(scope, work).map_err(|error| {
                LaunchError::Device(format!("a thread with {bytes} bytes of stack: {error}"))
            })?;
        }
        Ok(())
    })
}

fn check_grid(grid: Grid) -> Result<u64, LaunchError> {
    let programs = grid
        .iter()
        .try_fold(1u64, |product, &n| product.checked_mul(u64::from(n)));
    programs.ok_or_else(|| LaunchError::Grid(grid, "over 2^64 programs".to_string()))
}

fn coordinates(grid: Grid, program: u64) -> [i64; 3] {
    let (x, y) = (u64::from(grid[0]), u64::from(grid[1]));
    [
        (program % x) as i64,
        (program / x % y) as i64,
        (program / x / y) as i64,
    ]
}
