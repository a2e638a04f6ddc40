//! The IR that kernels trace, and the errors of a trace: all at once, each with its place.
#![expect(
    clippy::assign_op_pattern,
    reason = "kernels may be written either way"
)]

use exactile::Kernel;
use exactile::prelude::*;

#[kernel]
fn carried(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let mut acc = zeros::<f32>([4]);
    let mut p = x + arange(0, 4);
    let mut untouched = program_id(0);
    for i in 0..n {
        bump(&mut acc, load(p));
        p += 4;
        if i > 3 && untouched < n {
            acc = acc * 2.0;
        }
    }
    untouched += 1;
    store(out + untouched + arange(0, 4), acc);
}

fn bump(acc: &mut Tile<f32>, by: Tile<f32>) {
    *acc += by;
}

/// What changes behind a `&mut` is carried; what a loop only mentions is not.
#[test]
fn loops_carry_what_changes() {
    let want = "\
func @carried block (%0 x: ptr<f32>, %1 out: ptr<f32> write, %2 n: i32) {
  %3 = constant value=f32(0x0p0) : tile<4xf32>
  %4 = arange start=0, end=4 : tile<4xi64>
  %5 = program_id axis=0 : i64
  %6 = constant value=i64(0) : i64
  %7 = cast %2 : i64
  %8, %9 = for %6, %7, [%3, %4], step=1, stages=1 (%10: i64, %11: tile<4xf32>, %12: tile<4xi64>) {
    %13 = load %0, %12 : tile<4xf32>
    %14 = add %11, %13 : tile<4xf32>
    %15 = constant value=i64(4) : i64
    %16 = splat %15 : tile<4xi64>
    %17 = add %12, %16 : tile<4xi64>
    %18 = constant value=i64(3) : i64
    %19 = gt %10, %18 : bool
    %20 = cast %2 : i64
    %21 = lt %5, %20 : bool
    %22 = and %19, %21 : bool
    %23 = if %22 () {
      %24 = constant value=f32(0x1p1) : f32
      %25 = splat %24 : tile<4xf32>
      %26 = mul %14, %25 : tile<4xf32>
      yield [%26]
    } () {
      yield [%14]
    } : tile<4xf32>
    yield [%23, %17]
  } : tile<4xf32>, tile<4xi64>
  %27 = constant value=i64(1) : i64
  %28 = add %5, %27 : i64
  %29 = arange start=0, end=4 : tile<4xi64>
  %30 = splat %28 : tile<4xi64>
  %31 = add %30, %29 : tile<4xi64>
  store %1, %31, %8
}
";
    let kernel = carried();
    assert_eq!(kernel.ir().expect("traces"), want);
}

#[kernel(CAUSAL = true, BLOCK = 8)]
fn host_decisions<const CAUSAL: bool, const BLOCK: usize>(out: PtrMut<i32>) {
    let mut value = 0;
    if CAUSAL && BLOCK > 4 {
        value = 2 * BLOCK + 1;
    }
    for step in 0..3 {
        value += step;
    }
    while value < 25 {
        value *= 2;
    }
    store(out, value);
}

/// Conditions, loops and arithmetic on host values leave no trace but their result.
#[test]
fn host_values_fold() {
    let want = "\
func @host_decisions block (%0 out: ptr<i32> write) {
  %1 = constant value=i32(40) : i32
  %2 = constant value=i64(0) : i64
  store %0, %2, %1
}
";
    let kernel = host_decisions();
    assert_eq!(kernel.ir().expect("traces"), want);
    let other = host_decisions().causal(false);
    let ir = other.ir().expect("traces");
    assert!(ir.contains("i32(48)"), "{ir}");
}

#[device]
fn spread<const N: usize>(x: Scalar<f32>, limits: &[usize]) -> [Scalar<f32>; N] {
    let mut parts: [Scalar<f32>; N] = [x; N];
    let odd = [1.0; 2 * 4];
    for (at, part) in parts.iter_mut().enumerate() {
        if limits.iter().any(|limit| limit == &at) && Some(at) != None {
            *part = x * odd[2 * at];
        }
    }
    parts
}

#[kernel]
fn constants(x: Ptr<f32>, out: PtrMut<f32>) {
    let [a, b] = spread::<2>(load(x), &[1]);
    store(out, 1.0 - a + 2.0 * b);
    match BoundsOf::of(3) {
        BoundsOf { low: 0..=2, .. } => store(out + 1, 1.0),
        BoundsOf { low, .. } if low > 2 => store(out + 2, 1.0),
        _ => store(out + 3, 1.0),
    };
}

struct BoundsOf {
    low: usize,
}

impl BoundsOf {
    fn of(low: usize) -> Self {
        Self { low }
    }
}

#[kernel]
fn through_references(out: PtrMut<f32>, n: i32) {
    let mut parts = [zeros::<f32>([4]), zeros::<f32>([4])];
    for (at, part) in parts.iter_mut().enumerate() {
        if n > 3 {
            *part += 1.0 + at as f64;
        }
    }
    store(out + arange(0, 4), parts[0] + parts[1]);
}

/// A binding that is assigned through is carried, whatever its pattern was.
#[test]
fn references_of_patterns_are_carried() {
    let ir = through_references().ir().expect("traces");
    assert_eq!(ir.matches(" = if ").count(), 2, "{ir}");
}

/// Constants, patterns and host closures keep their Rust meaning.
#[test]
fn rust_stays_rust() {
    let ir = constants().ir().expect("traces");
    assert_eq!(ir.matches("store").count(), 2, "{ir}");
    assert!(ir.contains("i64(2)"), "{ir}");
}

#[kernel]
fn returns_early(x: PtrMut<f32>, n: i32) {
    let pid = program_id(0);
    if pid >= n {
        return;
    }
    store(x + pid, 1.0);
}

#[test]
fn an_early_return_becomes_a_branch() {
    let want = "\
func @returns_early block (%0 x: ptr<f32> write, %1 n: i32) {
  %2 = program_id axis=0 : i64
  %3 = cast %1 : i64
  %4 = ge %2, %3 : bool
  if %4 () {
    yield []
  } () {
    %5 = constant value=f32(0x1p0) : f32
    store %0, %2, %5
    yield []
  }
}
";
    let kernel = returns_early();
    assert_eq!(kernel.ir().expect("traces"), want);
}

#[kernel]
fn accesses(x: Ptr<f32>, out: PtrMut<f32>) {
    let offsets = arange(0, 4);
    let value = load(x + offsets)
        .mask(load(x + offsets + 4) > 0.0)
        .other(-1.0);
    store(out + offsets, value).mask(offsets < 3);
}

/// A mask may itself load; the access moves behind what makes its mask.
#[test]
fn masks_move_the_access() {
    let want = "\
func @accesses block (%0 x: ptr<f32>, %1 out: ptr<f32> write) {
  %2 = arange start=0, end=4 : tile<4xi64>
  %3 = constant value=i64(4) : i64
  %4 = splat %3 : tile<4xi64>
  %5 = add %2, %4 : tile<4xi64>
  %6 = load %0, %5 : tile<4xf32>
  %7 = constant value=f32(0x0p0) : f32
  %8 = splat %7 : tile<4xf32>
  %9 = gt %6, %8 : tile<4xbool>
  %10 = constant value=f32(-0x1p0) : f32
  %11 = splat %10 : tile<4xf32>
  %12 = load %0, %2, mask=%9, other=%11 : tile<4xf32>
  %13 = constant value=i64(3) : i64
  %14 = splat %13 : tile<4xi64>
  %15 = lt %2, %14 : tile<4xbool>
  store %1, %2, %12, mask=%15
}
";
    let kernel = accesses();
    assert_eq!(kernel.ir().expect("traces"), want);
}

/// The errors of a kernel as `line relative to its first: message`.
fn errors<P>(kernel: &Kernel<P>, first: u32) -> Vec<String> {
    let errors = kernel.trace().expect_err("is wrong").to_string();
    let mut lines = errors.lines().peekable();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        let Some(message) = line.strip_prefix("error: ") else {
            continue;
        };
        let place = lines.peek().and_then(|next| next.rsplit(':').nth(1));
        let line = place.and_then(|place| place.parse::<u32>().ok());
        found.push(format!(
            "+{}: {message}",
            line.unwrap_or(0).wrapping_sub(first)
        ));
    }
    found
}

const SHAPES: u32 = line!();
#[kernel]
fn shapes(x: Ptr<f32>, out: PtrMut<f32>) {
    let a = load(x + arange(0, 128));
    let b = load(x + arange(0, 64));
    let wrong = a + b;
    let _quiet = wrong * 2.0;
    let _odd = arange(0, 100);
    let _far = a.sum(1);
    let rank = a.expand(1) + b;
    store(out + arange(0, 32), a);
    let _literal = arange(0, 4).to::<i8>() + 300;
    let _rank = dot(a, rank, zeros::<f32>([16, 16]));
    require(a.shape()[0] == 64, "the block is 64");
}

#[test]
fn errors_come_all_at_once() {
    let want = [
        "+5: `add`: shapes [128] and [64] do not broadcast",
        "+7: `arange` from 0 to 100: extent `100` is not a power of two",
        "+8: axis 1 is out of range for `tile<128xf32>`",
        "+9: `add`: shapes [128, 1] and [64] do not broadcast",
        "+10: `store`: shape [128] does not broadcast to [32]",
        "+11: `300` does not fit `i8`, whose numbers are -128..=127",
        "+13: the block is 64",
    ];
    assert_eq!(errors(&shapes(), SHAPES), want);
}

const CARRIES: u32 = line!();
#[kernel]
fn carries(x: Ptr<f32>, y: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let mut acc = zeros::<f32>([4]);
    let mut trips = 0;
    let mut p = x;
    let mut names = vec![Some("host")].into_iter();
    for i in 0..n {
        acc = acc + arange(0, 8).expand(1).to::<f32>();
        trips += 1;
        p = y + i;
        names.next();
    }
    let value = if n > 3 { acc } else { zeros::<f32>([8]) };
    store(out + arange(0, 4), value + load(p) + trips as f64);
}

#[test]
fn loops_and_branches_explain_what_they_cannot_carry() {
    let want = [
        "+7: `names` of type `alloc::vec::into_iter::IntoIter<core::option::Option<&str>>` cannot be carried through a run-time loop",
        "+8: `add`: shapes [4] and [8, 1] do not broadcast",
        "+7: the host value `trips` changes inside a run-time loop",
        "+7: `p` points into another argument after the body",
        "+13: the value of the `if` is `tile<4xf32>` in one branch and `tile<8xf32>` in the other",
    ];
    assert_eq!(errors(&carries(), CARRIES), want);
}

const SCANS: u32 = line!();
#[kernel]
fn wrong_scans(x: Ptr<f32>, out: PtrMut<f64>) {
    let tile = load(x + arange(0, 8));
    store(out, tile.cumsum(1).sum(0).to::<f64>());
    let (sums, _) = scan((tile, arange(0, 4)), 0, |a, _| a);
    store(out, sums.sum(0).to::<f64>());
    let mut sum = sum_accumulator::<f64>([]);
    store(out, sum.cumsum(tile, 0).sum(0));
}

#[test]
fn wrong_scans_are_named() {
    let want = [
        "+4: axis 1 is out of range for `tile<8xf32>`",
        "+5: `scan`: shape [4] does not broadcast to [8]",
        "+8: a sum of `f64` does not take `tile<8xf32>`",
    ];
    assert_eq!(errors(&wrong_scans(), SCANS), want);
}

const MASKS: u32 = line!();
#[kernel]
fn masks(x: Ptr<f32>, out: PtrMut<f32>) {
    let offsets = arange(0, 4);
    let value = load(x + offsets);
    let twice = value * 2.0;
    store(out + offsets, value.mask(offsets < 3));
    store(out + offsets, twice.mask(offsets < 3));
    let late = load(x + offsets);
    store(out + offsets, 0.0);
    store(out + offsets, late.mask(offsets < 3));
}

#[test]
fn a_mask_directly_follows_its_access() {
    let want = [
        "+6: `mask` does not directly follow a `load`",
        "+7: `mask` does not directly follow a `load`",
        "+10: `mask` does not directly follow a `load`",
    ];
    assert_eq!(errors(&masks(), MASKS), want);
}

#[kernel]
fn panics(x: PtrMut<f32>) {
    let shape: Vec<usize> = Vec::new();
    store(x, shape[3] as f64);
}

#[test]
fn a_panic_names_the_kernel() {
    let errors = panics().trace().expect_err("panics");
    let text = errors.to_string();
    assert!(
        text.contains("the body of kernel `panics` panicked while it was traced"),
        "{text}"
    );
    assert!(text.contains("trace.rs"), "{text}");
}

/// A handle kept from one trace cannot be used in another.
#[test]
fn handles_belong_to_their_trace() {
    thread_local! {
        static KEPT: std::cell::Cell<Option<Scalar<i64>>> = const { std::cell::Cell::new(None) };
    }
    #[kernel]
    fn keeps(x: PtrMut<f32>) {
        KEPT.set(Some(program_id(0)));
        store(x, 1.0);
    }
    #[kernel]
    fn uses(x: PtrMut<f32>) {
        if let Some(kept) = KEPT.get() {
            store(x + kept, 1.0);
        }
    }
    assert!(keeps().trace().is_ok());
    let errors = uses().trace().expect_err("is foreign").to_string();
    let message = "a device value made outside of this kernel is used in it";
    assert!(errors.contains(message), "{errors}");
}

const LATE: u32 = line!();
#[kernel]
fn late_masks(x: PtrMut<i32>, flags: Ptr<bool>, out: PtrMut<i32>) {
    let old = atomic_fetch_add(x, 1).mask(load(flags));
    store(out, old);
    let old = atomic_fetch_add(x, 1);
    let now = load(x);
    store(out, old.mask(now > 0));
}

#[test]
fn a_mask_moves_no_atomic_behind_a_load_of_its_memory() {
    let want = ["+7: `mask` does not directly follow a `atomic_fetch`"];
    assert_eq!(errors(&late_masks(), LATE), want);
}
