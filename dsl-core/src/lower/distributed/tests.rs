//! Lowered functions run under the lane interpreter and must give the bits of the block interpreter.

use crate::diagnostic::Diagnostics;
use crate::facts::Facts;
use crate::interp::lane::Report;
use crate::interp::{block, lane};
use crate::ir::{Access, DType, Func, Grid, Literal, Op};
use crate::launch::Argument;
use crate::pipeline;
use crate::random::Random;
use crate::target::{Bounds, Options, Schedule, Target};
use crate::text::parse;
use crate::verify::{self, BlockFunc, LaneFunc};

/// What a launch knows whose rows do not meet.
fn facts() -> Facts {
    Facts {
        apart: true,
        inside: true,
        ..Facts::default()
    }
}

fn lower(block: &BlockFunc, options: &Options) -> Result<LaneFunc, Diagnostics> {
    pipeline::lower(
        &block.clone().into(),
        &Target::SM_90A,
        options,
        &facts(),
        &mut pipeline::unobserved,
    )
}

mod checks;
mod counts;
mod edges;
mod order;
mod reductions;
mod scans;
mod sizes;
mod stages;

/// Memory of an argument, aligned to 16 bytes.
#[derive(Clone, Debug, PartialEq)]
struct Memory {
    blocks: Vec<u128>,
    bytes: usize,
}

impl Memory {
    fn new(bytes: &[u8]) -> Memory {
        let blocks = bytes.chunks(16).map(|chunk| {
            let mut block = [0; 16];
            block[..chunk.len()].copy_from_slice(chunk);
            u128::from_ne_bytes(block)
        });
        Memory {
            blocks: blocks.collect(),
            bytes: bytes.len(),
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self
            .blocks
            .iter()
            .flat_map(|block| block.to_ne_bytes())
            .collect();
        bytes.truncate(self.bytes);
        bytes
    }
}

/// The value of one parameter.
enum Given {
    Scalar(i64),
    /// This many random elements; integers are below the limit.
    Random(usize, u64),
}

fn random_bytes(dtype: DType, count: usize, limit: u64, random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..count {
        let number = random.bits() >> 33;
        let literal = if dtype.is_float() {
            Literal::from_f64(dtype, (number as f64 / f64::from(1_u32 << 30) - 1.0) * 4.0)
        } else {
            Literal::from_bits(dtype, number % limit)
        };
        bytes.extend_from_slice(&literal.bits.to_le_bytes()[..dtype.bytes() as usize]);
    }
    bytes
}

/// Makes the arguments of `func`, calls `launch`, and gives back the memory afterwards.
fn with_arguments<T>(
    func: &Func,
    given: &[Given],
    launch: impl FnOnce(&mut [Argument<'_>]) -> T,
) -> (T, Vec<Vec<u8>>) {
    let mut random = Random::new(42);
    let mut aligned: Vec<Vec<u128>> = Vec::new();
    let mut lengths = Vec::new();
    for (&value, given) in func.arguments().iter().zip(given) {
        let bytes = match (func.ty(value).pointee(), given) {
            (Some((dtype, _)), Given::Random(count, limit)) => {
                random_bytes(dtype, *count, *limit, &mut random)
            }
            _ => Vec::new(),
        };
        let memory = Memory::new(&bytes);
        lengths.push(memory.bytes);
        aligned.push(memory.blocks);
    }
    let mut copies: Vec<Vec<u8>> = aligned
        .iter()
        .zip(&lengths)
        .map(|(blocks, &bytes)| {
            Memory {
                blocks: blocks.clone(),
                bytes,
            }
            .to_bytes()
        })
        .collect();
    let mut arguments = Vec::new();
    for (((parameter, &value), given), memory) in func
        .parameters
        .iter()
        .zip(func.arguments())
        .zip(given)
        .zip(&mut copies)
    {
        arguments.push(match (given, parameter.access) {
            (Given::Scalar(number), _) => {
                let dtype = func.ty(value).dtype().expect("a scalar");
                Argument::Scalar(Literal::from_integer(dtype, i128::from(*number)).expect("fits"))
            }
            (Given::Random(..), Access::Read) => Argument::Read(memory),
            (Given::Random(..), Access::ReadWrite) => Argument::ReadWrite(memory),
        });
    }
    let result = launch(&mut arguments);
    drop(arguments);
    (result, copies)
}

fn compiled(func: BlockFunc, options: &Options) -> LaneFunc {
    let observe = &mut pipeline::unobserved;
    pipeline::compile(func, &Target::SM_90A, options, &facts(), observe).expect("compiles")
}

/// Runs a kernel on both interpreters, for several numbers of warps, with and without checks.
fn check(source: &str, grid: Grid, given: &[Given]) -> Vec<Report> {
    check_on(1, source, grid, given)
}

/// As [`check`], on so many warps at least.
fn check_on(least: u32, source: &str, grid: Grid, given: &[Given]) -> Vec<Report> {
    let func = parse(source, "test.bir").expect("parses");
    let func = verify::block(func).expect("verifies");
    let (expected, golden) =
        with_arguments(&func, given, |arguments| block::run(&func, grid, arguments));
    expected.expect("the specification runs");
    let mut reports = Vec::new();
    for (warps, bounds) in [
        (1, Bounds::Unchecked),
        (4, Bounds::Unchecked),
        (8, Bounds::Checked),
        (32, Bounds::Unchecked),
    ] {
        let schedule = Schedule {
            warps: Some(sizes::least_warps(&func).max(least).max(warps)),
            ..Schedule::default()
        };
        let options = Options {
            bounds,
            schedule,
            ..Options::default()
        };
        let lowered = compiled(func.clone(), &options);
        let (report, found) = with_arguments(&lowered, given, |arguments| {
            lane::run(&lowered, grid, arguments)
        });
        let report = match report {
            Ok(report) => report,
            Err(fault) => panic!("{warps} warps: {fault}\n{}", &*lowered),
        };
        assert_eq!(report.out_of_bounds, None);
        assert_eq!(found, golden, "{warps} warps differ\n{}", &*lowered);
        reports.push(report);
    }
    reports
}

const SUM: &str = "(%lower: f32, %upper: f32) {
          %total = add %lower, %upper : f32
          yield [%total]
        }";

#[test]
fn a_masked_sum_of_vectors() {
    let source =
        "func @add block (%x: ptr<f32> divisor=16, %y: ptr<f32> write divisor=16, %n: i64) {
        %p = program_id axis=0 : i64
        %b = constant value=i64(512) : i64
        %s = mul %p, %b : i64
        %ss = splat %s : tile<512xi64>
        %i = arange start=0, end=512 : tile<512xi64>
        %o = add %ss, %i : tile<512xi64>
        %ns = splat %n : tile<512xi64>
        %m = lt %o, %ns : tile<512xbool>
        %v = load %x, %o, mask=%m : tile<512xf32>
        %w = mul %v, %v : tile<512xf32>
        store %y, %o, %w, mask=%m
      }";
    let given = [
        Given::Random(1300, 0),
        Given::Random(1300, 0),
        Given::Scalar(1300),
    ];
    let reports = check(source, [3, 1, 1], &given);
    // One warp: 512 elements are 4 vectors of 4 for each lane, so two whole programs take 4 loads
    // and 4 stores each; the last one goes by element.
    assert!(
        reports[0].total().requests <= 2 * 8 + 2 * 16,
        "{:?}",
        reports[0].total()
    );
}

#[test]
fn a_transposed_copy_goes_through_shared_memory_without_conflicts() {
    for (dtype, extent) in [
        ("f32", 64),
        ("f64", 32),
        ("u8", 64),
        ("f16", 32),
        ("bool", 32),
    ] {
        let (count, shape) = (extent * extent, format!("{extent}x{extent}"));
        let source = format!(
            "func @transpose block (%x: ptr<{dtype}> divisor=16, %y: ptr<{dtype}> write divisor=16) {{
            %i = arange start=0, end={count} : tile<{count}xi64>
            %v = load %x, %i : tile<{count}x{dtype}>
            %w = reshape %v : tile<{shape}x{dtype}>
            %t = transpose %w, permutation=[1, 0] : tile<{shape}x{dtype}>
            %o = reshape %i : tile<{shape}xi64>
            store %y, %o, %t
          }}"
        );
        let given = [Given::Random(count, 200), Given::Random(count, 200)];
        for report in check(&source, [1, 1, 1], &given) {
            assert_eq!(report.total().bank_conflicts, 0, "{dtype}");
        }
    }
}

#[test]
fn loops_carry_tiles_and_scalars() {
    let source = format!(
        "func @loop block (%x: ptr<f32> divisor=16, %y: ptr<f32> write divisor=16, %n: i64) {{
        %zero = constant value=i64(0) : i64
        %i = arange start=0, end=128 : tile<128xi64>
        %acc = constant value=f32(0x0p0) : tile<128xf32>
        %f = constant value=f32(0x1p0) : f32
        %r, %g = for %zero, %n, [%acc, %f], step=128, stages=1 (%k: i64, %c: tile<128xf32>, %h: f32) {{
          %ks = splat %k : tile<128xi64>
          %o = add %ks, %i : tile<128xi64>
          %ns = splat %n : tile<128xi64>
          %m = lt %o, %ns : tile<128xbool>
          %v = load %x, %o, mask=%m : tile<128xf32>
          %d = add %c, %v : tile<128xf32>
          %s = reduce [%d], axis=0, order=tree {SUM} : f32
          %q = add %h, %s : f32
          yield [%d, %q]
        }} : tile<128xf32>, f32
        %gs = splat %g : tile<128xf32>
        %z = add %r, %gs : tile<128xf32>
        %p = gt %g, %f : bool
        %u = if %p () {{
          %t = add %z, %z : tile<128xf32>
          yield [%t]
        }} () {{
          yield [%r]
        }} : tile<128xf32>
        store %y, %i, %u
      }}"
    );
    for n in [0, 128, 500] {
        let given = [
            Given::Random(500, 0),
            Given::Random(128, 0),
            Given::Scalar(n),
        ];
        check(&source, [1, 1, 1], &given);
    }
}

#[test]
fn a_product_of_matrices_is_the_chain_over_k() {
    for (m, k, n, dtype) in [
        (32, 16, 32, "f32"),
        (64, 64, 32, "f32"),
        (16, 64, 16, "f64"),
    ] {
        let (a, b, c) = (m * k, k * n, m * n);
        let source = format!(
            "func @dot block (%x: ptr<{dtype}> divisor=16, %y: ptr<{dtype}> divisor=16, %z: ptr<{dtype}> write divisor=16) {{
            %i = arange start=0, end={a} : tile<{a}xi64>
            %j = arange start=0, end={b} : tile<{b}xi64>
            %l = arange start=0, end={c} : tile<{c}xi64>
            %i2 = reshape %i : tile<{m}x{k}xi64>
            %j2 = reshape %j : tile<{k}x{n}xi64>
            %l2 = reshape %l : tile<{m}x{n}xi64>
            %u = load %x, %i2 : tile<{m}x{k}x{dtype}>
            %v = load %y, %j2 : tile<{k}x{n}x{dtype}>
            %w = load %z, %l2 : tile<{m}x{n}x{dtype}>
            %d = dot %u, %v, %w, precision=ieee : tile<{m}x{n}x{dtype}>
            store %z, %l2, %d
          }}"
        );
        let given = [
            Given::Random(a, 0),
            Given::Random(b, 0),
            Given::Random(c, 0),
        ];
        check(&source, [1, 1, 1], &given);
    }
}

#[test]
fn the_highest_element_wins_a_store() {
    // Offsets from memory, offsets equal along an axis, and a scalar.
    let source =
        "func @scatter block (%x: ptr<i64>, %y: ptr<i64> write, %z: ptr<i64> write, %n: i64) {
        %i = arange start=0, end=256 : tile<256xi64>
        %o = load %x, %i : tile<256xi64>
        %ns = splat %n : tile<256xi64>
        %m = lt %o, %ns : tile<256xbool>
        store %y, %o, %i, mask=%m
        %i2 = reshape %i : tile<16x16xi64>
        %c = arange start=0, end=16 : tile<16xi64>
        %c1 = expand_dims %c, axis=1 : tile<16x1xi64>
        %c2 = broadcast %c1 : tile<16x16xi64>
        store %z, %c2, %i2
        %first = load %z, %c : tile<16xi64>
        %d = add %first, %first : tile<16xi64>
        store %z, %c, %d
      }";
    let given = [
        Given::Random(256, 40),
        Given::Random(40, 9),
        Given::Random(16, 9),
        Given::Scalar(33),
    ];
    check(source, [1, 1, 1], &given);
}

#[test]
fn what_does_not_fit_is_an_error() {
    let source = "func @f block (%x: ptr<f32> write) {
        %i = arange start=0, end=65536 : tile<65536xi64>
        %v = load %x, %i : tile<65536xf32>
        store %x, %i, %v
      }";
    let func = verify::block(parse(source, "test.bir").expect("parses")).expect("verifies");
    let message = |warps| {
        let schedule = Schedule {
            warps: Some(warps),
            ..Schedule::default()
        };
        let lowered = lower(
            &func,
            &Options {
                schedule,
                ..Options::default()
            },
        );
        lowered.expect_err("too large").to_string()
    };
    assert!(
        message(1).contains("takes 2048 elements in each lane"),
        "{}",
        message(1)
    );
    let remedy = "use 8 warps or more, or a smaller tile";
    assert!(message(1).contains(remedy), "{}", message(1));
    assert!(
        message(3).contains("`warps` is 3, expected a power of two"),
        "{}",
        message(3)
    );
}

#[test]
fn rows_of_a_matrix_move_in_vectors_where_strides_and_bounds_allow() {
    // A bias is loaded where the rows that it is added to need it: no conversion, no barrier.
    for (divisor, widest) in [(16, 4), (2, 2), (1, 1)] {
        let source = format!(
            "func @rows block (%x: ptr<f32> divisor=16, %b: ptr<f32> divisor=16, %y: ptr<f32> write divisor=16, %n: i32 divisor={divisor}) {{
            %r = arange start=0, end=32 : tile<32xi64>
            %c = arange start=0, end=64 : tile<64xi64>
            %r1 = expand_dims %r, axis=1 : tile<32x1xi64>
            %w = cast %n : i64
            %ws = splat %w : tile<32x1xi64>
            %r2 = mul %r1, %ws : tile<32x1xi64>
            %r3 = broadcast %r2 : tile<32x64xi64>
            %c1 = expand_dims %c, axis=0 : tile<1x64xi64>
            %c2 = broadcast %c1 : tile<32x64xi64>
            %o = add %r3, %c2 : tile<32x64xi64>
            %wc = splat %w : tile<1x64xi64>
            %m1 = lt %c1, %wc : tile<1x64xbool>
            %m = broadcast %m1 : tile<32x64xbool>
            %v = load %x, %o, mask=%m : tile<32x64xf32>
            %wb = splat %w : tile<64xi64>
            %mb = lt %c, %wb : tile<64xbool>
            %b0 = load %b, %c, mask=%mb : tile<64xf32>
            %b1 = expand_dims %b0, axis=0 : tile<1x64xf32>
            %b2 = broadcast %b1 : tile<32x64xf32>
            %s = add %v, %b2 : tile<32x64xf32>
            store %y, %o, %s, mask=%m
          }}"
        );
        let given = [
            Given::Random(2048, 0),
            Given::Random(64, 0),
            Given::Random(2048, 0),
            Given::Scalar(48),
        ];
        for report in check(&source, [1, 1, 1], &given) {
            assert_eq!(report.barriers, 0);
        }
        let reports = check(&source, [1, 1, 1], &given);
        // Both tiles, and the part of the bias that the columns of each lane need.
        let requests = 2 * 2048 / 32 / widest + (2 / widest).max(1);
        assert_eq!(reports[0].total().requests, requests, "width {widest}");
    }
}

#[test]
fn an_occupancy_beyond_a_multiprocessor_is_refused() {
    let source = "func @f block (%x: ptr<f32> write) {
        %i = arange start=0, end=1024 : tile<1024xi64>
        %z = constant value=f32(0.0) : tile<1024xf32>
        store %x, %i, %z
    }";
    let func = verify::block(parse(source, "f.bir").expect("parses")).expect("is valid");
    let lowered = |occupancy| {
        let schedule = Schedule {
            warps: Some(8),
            occupancy: Some(occupancy),
            ..Schedule::default()
        };
        let options = Options {
            schedule,
            ..Options::default()
        };
        lower(&func, &options).map_err(|errors| errors.to_string())
    };
    assert_eq!(lowered(8).expect("fits").schedule.occupancy, Some(8));
    let error = lowered(9).expect_err("is too much");
    assert!(error.contains("at most 8 of 8 warps"), "{error}");
}
