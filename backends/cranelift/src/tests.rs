//! Every elementwise op and conversion against its one definition, as scalars and as vectors.

use exactile_core::builder::Builder;
use exactile_core::ir::{
    Access, BinaryOp, CompareOp, DType, Op, Stage, TernaryOp, Type, UnaryOp, Value, op,
};
use exactile_core::launch::{Argument, LaunchError};
use exactile_core::random::Random;
use exactile_core::target::Target;
use exactile_core::verify::{self, LaneFunc};
use exactile_core::{pipeline, semantics};

use crate::{Executable, Threads, compile};

mod reread;
mod stack;

const LANES: &[usize] = &[1, 2, 4, 8];

/// Edge cases of a type, then random bits, then small numbers; `count` in all.
fn samples(dtype: DType, count: usize, random: &mut Random) -> Vec<u64> {
    let edges: &[f64] = &[
        0.0,
        -0.0,
        1.0,
        -1.0,
        2.0,
        0.5,
        1.5,
        2.5,
        -2.5,
        127.0,
        128.0,
        -128.5,
        255.0,
        256.0,
        65504.0,
        65520.0,
        1e10,
        -1e10,
        3e38,
        1e300,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        6e-8,
        3e-8,
        1e-40,
        2_147_483_648.0,
        4_294_967_295.0,
        9.3e18,
        1.9e19,
    ];
    let mut samples: Vec<u64> = edges
        .iter()
        .map(|&x| exactile_core::ir::Literal::from_f64(dtype, x).bits)
        .collect();
    samples.extend([
        0,
        1,
        dtype.mask(),
        dtype.mask() >> 1,
        (dtype.mask() >> 1) + 1,
    ]);
    samples.extend([0x7f80_0001, 0x7c01, 0x7f81].map(|bits| bits & dtype.mask()));
    while samples.len() < count {
        let bits = random.bits();
        let small = bits >> 60 == 0;
        samples.push(if small { bits & 0x3f } else { bits } & dtype.mask());
    }
    samples
}

fn to_memory(dtype: DType, values: &[u64]) -> Vec<u64> {
    let bytes = dtype.bytes() as usize;
    let mut memory = vec![0u64; (values.len() * bytes).div_ceil(8)];
    for (index, value) in values.iter().enumerate() {
        for byte in 0..bytes {
            let at = index * bytes + byte;
            memory[at / 8] |= (value >> (8 * byte) & 0xff) << (8 * (at % 8));
        }
    }
    memory
}

fn bytes_of(memory: &[u64]) -> Vec<u8> {
    memory.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn from_bytes(dtype: DType, bytes: &[u8], index: usize) -> u64 {
    let size = dtype.bytes() as usize;
    let own = &bytes[index * size..][..size];
    own.iter()
        .rev()
        .fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// A function that applies `body` to `lanes` elements at a time of its inputs.
fn elementwise(
    inputs: &[DType],
    output: DType,
    lanes: usize,
    count: usize,
    body: &dyn Fn(&mut Builder, &[Value]) -> Value,
) -> Executable {
    let mut builder = Builder::new("op", Stage::Lane);
    let bases: Vec<Value> = inputs
        .iter()
        .enumerate()
        .map(|(index, &dtype)| builder.pointer_parameter(&format!("x{index}"), dtype, Access::Read))
        .collect();
    let out = builder.pointer_parameter("y", output, Access::ReadWrite);
    let (lower, upper) = (builder.index(0), builder.index(count as i64));
    builder.for_loop((lower, upper), lanes as i64, &[], |builder, offset, _| {
        let mut operands = Vec::new();
        for (&base, &dtype) in bases.iter().zip(inputs) {
            let align = i64::from(dtype.bytes());
            let op = Op::LaneLoad(op::LaneLoad {
                base,
                offset,
                mask: None,
                other: None,
                align,
                cache: None,
            });
            operands.push(builder.declared(op, Type::vector(dtype, lanes)));
        }
        let value = body(builder, &operands);
        let align = i64::from(output.bytes());
        builder.emit(
            Op::LaneStore(op::LaneStore {
                base: out,
                offset,
                value,
                mask: None,
                align,
                cache: None,
            }),
            &[],
        );
        Vec::new()
    });
    let func = verify::lane(builder.finish().expect("is well typed")).expect("is valid");
    let func = pipeline::finish(func, &Target::CPU).expect("stays valid");
    compile(&func).unwrap_or_else(|error| panic!("{error}\n{}", *func))
}

fn check(
    name: &str,
    inputs: &[DType],
    output: DType,
    body: &dyn Fn(&mut Builder, &[Value]) -> Value,
    meaning: &dyn Fn(&[u64]) -> u64,
) {
    let count = 512;
    let mut random = Random::new(7);
    let values: Vec<Vec<u64>> = inputs
        .iter()
        .map(|&dtype| samples(dtype, count, &mut random))
        .collect();
    let mut shuffled = values.clone();
    for (index, values) in shuffled.iter_mut().enumerate().skip(1) {
        values.rotate_left(index * 37);
    }
    for &lanes in LANES {
        let code = elementwise(inputs, output, lanes, count, body);
        let mut memories: Vec<Vec<u8>> = inputs
            .iter()
            .zip(&shuffled)
            .map(|(&dtype, values)| bytes_of(&to_memory(dtype, values)))
            .collect();
        let mut result = vec![0u8; count * output.bytes() as usize];
        let mut arguments: Vec<Argument<'_>> = memories
            .iter_mut()
            .map(|memory| Argument::Read(memory))
            .collect();
        arguments.push(Argument::ReadWrite(&mut result));
        run(&code, &mut arguments).expect("runs");
        for index in 0..count {
            let operands: Vec<u64> = shuffled.iter().map(|values| values[index]).collect();
            let expected = semantics::canonical(output, meaning(&operands));
            let found = semantics::canonical(output, from_bytes(output, &result, index));
            assert_eq!(
                found, expected,
                "{name}, {lanes} lanes, {inputs:?} -> {output}: {operands:x?} gives {found:#x}, expected {expected:#x}"
            );
        }
    }
}

fn run(code: &Executable, arguments: &mut [Argument<'_>]) -> Result<(), LaunchError> {
    run_on(code, arguments, Threads::One)
}

#[expect(unsafe_code, reason = "tests launch what they built to stay in bounds")]
fn run_on(
    code: &Executable,
    arguments: &mut [Argument<'_>],
    threads: Threads,
) -> Result<(), LaunchError> {
    // SAFETY: the tests' functions access only elements that their buffers hold, or check bounds.
    unsafe { code.launch([1, 1, 1], arguments, threads, None) }
}

#[test]
fn unary_ops_follow_their_meaning() {
    for &op in UnaryOp::ALL {
        for &dtype in DType::ALL
            .iter()
            .filter(|&&dtype| op.accepts().admits(dtype))
        {
            check(
                op.mnemonic(),
                &[dtype],
                dtype,
                &|b, x| b.unary(op, x[0]),
                &|x| semantics::unary(op, dtype, x[0]),
            );
        }
    }
}

#[test]
fn binary_ops_follow_their_meaning() {
    for &op in BinaryOp::ALL {
        for &dtype in DType::ALL
            .iter()
            .filter(|&&dtype| op.accepts().admits(dtype))
        {
            check(
                op.mnemonic(),
                &[dtype; 2],
                dtype,
                &|b, x| b.binary(op, x[0], x[1]),
                &|x| semantics::binary(op, dtype, x[0], x[1]),
            );
        }
    }
}

#[test]
fn shifts_by_constants_follow_their_meaning() {
    for op in [BinaryOp::Shl, BinaryOp::Shr] {
        for &dtype in DType::ALL.iter().filter(|dtype| dtype.is_integer()) {
            for amount in [0, 1, u64::from(dtype.bits()) - 1, u64::from(dtype.bits())] {
                let body = |b: &mut Builder, x: &[Value]| {
                    let amount = b.bits_like(x[0], dtype, amount);
                    b.binary(op, x[0], amount)
                };
                check(op.mnemonic(), &[dtype], dtype, &body, &|x| {
                    semantics::binary(op, dtype, x[0], amount)
                });
            }
        }
    }
}

#[test]
fn fused_multiply_add_follows_its_meaning() {
    let op = TernaryOp::Fma;
    for &dtype in DType::ALL
        .iter()
        .filter(|&&dtype| op.accepts().admits(dtype))
    {
        check(
            "fma",
            &[dtype; 3],
            dtype,
            &|b, x| b.ternary(op, x[0], x[1], x[2]),
            &|x| semantics::ternary(op, dtype, x[0], x[1], x[2]),
        );
    }
}

#[test]
fn comparisons_and_selections_follow_their_meaning() {
    for &op in CompareOp::ALL {
        for &dtype in DType::ALL
            .iter()
            .filter(|&&dtype| op.accepts().admits(dtype))
        {
            let meaning = |x: &[u64]| semantics::compare(op, dtype, x[0], x[1]);
            let compare = |b: &mut Builder, x: &[Value]| b.compare(op, x[0], x[1]);
            check(op.mnemonic(), &[dtype; 2], DType::Bool, &compare, &|x| {
                u64::from(meaning(x))
            });
            for other in [DType::I8, DType::F32, DType::I64] {
                let select = |b: &mut Builder, x: &[Value]| {
                    let condition = b.compare(op, x[0], x[1]);
                    b.select(condition, x[2], x[3])
                };
                check(
                    "select",
                    &[dtype, dtype, other, other],
                    other,
                    &select,
                    &|x| {
                        if meaning(x) { x[2] } else { x[3] }
                    },
                );
            }
        }
    }
}

#[test]
fn conversions_follow_their_meaning() {
    for &from in DType::ALL {
        for &to in DType::ALL {
            check("cast", &[from], to, &|b, x| b.cast(x[0], to), &|x| {
                semantics::cast(from, to, x[0])
            });
            if from.bits() == to.bits() {
                check("bitcast", &[from], to, &|b, x| b.bitcast(x[0], to), &|x| {
                    semantics::bitcast(from, to, x[0])
                });
            }
        }
    }
}

fn lane_function(text: &str) -> LaneFunc {
    let func =
        exactile_core::text::parse(text, "test.bir").unwrap_or_else(|error| panic!("{error}"));
    verify::lane(func).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn functions_of_warps_are_refused() {
    let func = lane_function(
        "func @f lane warps=3 (%x: ptr<f32>, %at: i64) {
           %s = splat %at : tile<2xi64>
           %v = lane_load %x, %s, align=4 : tile<2xf32>
         }",
    );
    let refused = crate::compile(&func).map(|_| ());
    assert_eq!(refused, Err(crate::Error::Lanes(3)));
}

#[test]
fn control_flow_carries_values_and_masks() {
    let func = lane_function(
        "func @f lane warps=0 (%x: ptr<f32>, %y: ptr<f32> write, %n: i64) {
           %zero = constant value=i64(0) : i64
           %one = constant value=i64(1) : i64
           %start = constant value=f32(0.0) : tile<4xf32>
           %no = constant value=bool(false) : tile<4xbool>
           %sum, %seen = for %zero, %n, [%start, %no], step=4, stages=1 (%i: i64, %s: tile<4xf32>, %m: tile<4xbool>) {
             %v = lane_load %x, %i, align=4 : tile<4xf32>
             %t = add %s, %v : tile<4xf32>
             %c = lt %v, %start : tile<4xbool>
             %o = or %m, %c : tile<4xbool>
             yield [%t, %o]
           } : tile<4xf32>, tile<4xbool>
           %k, %w = while [%zero, %sum] (%a: i64, %b: tile<4xf32>) {
             %less = lt %a, %n : bool
             yield [%less, %a, %b]
           } (%d: i64, %e: tile<4xf32>) {
             %f = add %d, %n : i64
             %g = add %e, %e : tile<4xf32>
             yield [%f, %g]
           } : i64, tile<4xf32>
           %h = select %seen, %w, %sum : tile<4xf32>
           %q = lt %zero, %n : bool
           %r = if %q () {
             yield [%h]
           } () {
             yield [%start]
           } : tile<4xf32>
           %last = shuffle_vector %r, %start, indices=[3, 2, 1, 4] : tile<4xf32>
           lane_store %y, %zero, %last, align=4
         }",
    );
    let code = compile(&func).expect("compiles");
    let x: Vec<u8> = [1f32, 2.0, -3.0, 4.0, 10.0, -20.0, 30.0, 40.0]
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    let mut y = vec![0u8; 16];
    let n = exactile_core::ir::Literal::from_bits(DType::I64, 8);
    let mut arguments = [
        Argument::Read(&x),
        Argument::ReadWrite(&mut y),
        Argument::Scalar(n),
    ];
    run(&code, &mut arguments).expect("runs");
    let y: Vec<f32> = (0..4)
        .map(|index| f32::from_bits(from_bytes(DType::F32, &y, index) as u32))
        .collect();
    assert_eq!(y, [44.0, 54.0, -36.0, 0.0]);
    assert!(crate::clif(&func).expect("prints").contains("brif"));
}

#[test]
fn the_least_access_out_of_bounds_is_reported_and_none_is_made() {
    let func = lane_function(
        "func @f lane warps=0 (%x: ptr<f32>, %y: ptr<f32> write) {
           %p = program_id axis=0 : i64
           %four = constant value=i64(4) : i64
           %o = mul %p, %four : i64
           %zero = constant value=i64(0) : i64
           %in = check_bounds %x, %o, %zero, count=4, site=0 : bool
           %v = lane_load %x, %o, mask=%in, align=4 : tile<4xf32>
           %out = check_bounds %y, %o, %zero, mask=%in, count=4, site=1 : bool
           lane_store %y, %o, %v, mask=%out, align=4
         }",
    );
    let code = compile(&func).expect("compiles");
    let x = vec![1u8; 16 * 4];
    let mut y = vec![0u8; 10 * 4];
    let mut arguments = [Argument::Read(&x), Argument::ReadWrite(&mut y)];
    #[expect(unsafe_code, reason = "every access is checked")]
    // SAFETY: every access of the function is checked.
    let result = unsafe { code.launch([6, 1, 1], &mut arguments, Threads::All, None) };
    let Err(LaunchError::OutOfBounds(error)) = result else {
        panic!("{result:?}")
    };
    assert_eq!(
        (error.program, error.site, error.element, error.offset),
        (2, 1, 2, 10)
    );
    assert_eq!(y[..32], [1u8; 32]);
    assert_eq!(y[32..], [0u8; 8]);
}

/// How often the code asks for lines ahead.
fn prefetches(body: &str) -> usize {
    let func = lane_function(&format!(
        "func @f lane warps=0 (%0 x: ptr<f32>, %1 y: ptr<f32> write, %2 n: i64) {{
           %3 = constant value=i64(0) : i64
           %4 = constant value=i64(4096) : i64
           %5 = program_id axis=0 : i64
           %6 = mul %5, %4 : i64
           {body}
         }}"
    ));
    let text = crate::clif(&func).expect("prints");
    let (text, _) = text.split_once("block0:\n").expect("machine code");
    text.lines()
        .filter(|line| line.trim_start().starts_with("call "))
        .count()
}

#[test]
#[cfg(target_arch = "x86_64")]
fn streams_are_asked_for_ahead_once() {
    let each =
        |lines: &str| format!("for %3, %4, [], step=8, stages=1 (%7: i64) {{ {lines} yield [] }}");
    let read = "%8 = add %6, %7 : i64  %9 = lane_load %0, %8, align=4 : tile<8xf32>";
    let write = "lane_store %1, %8, %9, align=4";
    assert_eq!(prefetches(&each(&format!("{read} {write}"))), 2);
    let again = read
        .replace("%8", "%18")
        .replace("%9", "%19")
        .replace("%7", "%17");
    let later = each(&again).replace("%7", "%17");
    assert_eq!(prefetches(&format!("{} {later}", each(read))), 1);
    let every_program = read.replace("%6", "%3");
    assert_eq!(prefetches(&each(&every_program)), 0);
    let gathered = "%8 = mul %7, %7 : i64 %10 = add %6, %8 : i64 %9 = lane_load %0, %10, align=4 : tile<8xf32>";
    assert_eq!(prefetches(&each(gathered)), 0);
    let single = read.replace("tile<8xf32>", "f32");
    assert_eq!(prefetches(&each(&single)), 0);
    assert_eq!(
        prefetches("%9 = lane_load %0, %6, align=4 : tile<8xf32>"),
        0
    );
}

#[test]
#[cfg(target_arch = "x86_64")]
fn short_rows_ask_for_the_next_rows() {
    let rows = "%20 = constant value=i64(64) : i64
        for %3, %20, [], step=1, stages=1 (%21: i64) {
          %22 = mul %21, %2 : i64
          %23 = add %6, %22 : i64
          for %3, %20, [], step=16, stages=1 (%24: i64) {
            %25 = add %23, %24 : i64
            %26 = lane_load %0, %25, align=4 : tile<16xf32>
            yield []
          }
          yield []
        }";
    assert_eq!(prefetches(rows), 1);
}
