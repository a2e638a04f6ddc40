//! What stands for an op has its bits, whatever the machine has.

use super::{is_legal, legalise};
use crate::interp::lane;
use crate::interp::memory::{read_number, write_number};
use crate::ir::{BinaryOp, DType, UnaryOp};
use crate::launch::Argument;
use crate::random::Random;
use crate::semantics::{binary, canonical, cast, unary};
use crate::target::{Native, Target};
use crate::text::parse;
use crate::verify;

const LANES: usize = 32;

/// A machine with the least that any has.
const BARE: Native = Native {
    floats: &[DType::F32, DType::F64],
    extrema: &[],
    number_extrema: &[],
    to_integers: &[],
    from_integers: &[DType::F32, DType::F64],
    reciprocals: &[],
    from_f64: &[DType::F32],
};

fn machines() -> [Native; 4] {
    let [cpu, old, new] = [Target::CPU, Target::SM_80, Target::SM_90A].map(|it| it.native);
    [cpu, old, new, BARE]
}

/// Numbers near powers of two, uniform bits, and the first and the last of the type.
fn samples(dtype: DType, random: &mut Random) -> Vec<u64> {
    let mut pattern = || {
        let (bits, kind) = (random.bits(), random.bits());
        let place = kind / 4 % 64;
        let number = match kind % 4 {
            0 => bits >> place,
            1 => (1u64 << place).wrapping_add(bits % 5).wrapping_sub(2),
            2 => (1u64 << place).wrapping_add(bits % 5).wrapping_neg(),
            _ => bits,
        };
        match dtype.is_float() && kind / 256 % 2 == 0 {
            true => cast(DType::I64, dtype, number),
            false => number & dtype.mask(),
        }
    };
    let mut samples: Vec<u64> = (0..8 * LANES - 8).map(|_| pattern()).collect();
    let sign = dtype.mask() ^ dtype.mask() >> 1;
    samples.extend([0, 1, sign, sign + 1, dtype.mask() >> 1, dtype.mask()]);
    samples.extend([dtype.canonical_nan(), canonical(dtype, sign - 1)]);
    samples.iter().map(|bits| bits & dtype.mask()).collect()
}

fn memory(dtype: DType, numbers: &[u64]) -> Vec<u8> {
    let bytes = dtype.bytes() as usize;
    let mut memory = vec![0; bytes * numbers.len()];
    for (place, &bits) in memory.chunks_mut(bytes).zip(numbers) {
        write_number(dtype, place, bits);
    }
    memory
}

/// Runs `%r` of `%a` and `%b` as every machine has it.
fn check(body: &str, (from, to): (DType, DType), meaning: &dyn Fn(u64, u64) -> u64) {
    let (size, result) = (from.bytes(), to.bytes());
    let source = format!(
        "func @f lane warps=1 (%x: ptr<{from}>, %y: ptr<{from}>, %o: ptr<{to}> write) {{
           %lane = lane_id : i32
           %a = lane_load %x, %lane, align={size} : {from}
           %b = lane_load %y, %lane, align={size} : {from}
           {body} : {to}
           lane_store %o, %lane, %r, align={result}
         }}"
    );
    let mut random = Random::new(3);
    let (xs, ys) = (samples(from, &mut random), samples(from, &mut random));
    for native in machines() {
        let mut func = parse(&source, "test.bir").expect("parses");
        legalise(&mut func, &native);
        let func = verify::lane(func).expect("stays valid");
        let legal = |inst| is_legal(&func, inst, &native);
        assert!(func.all_insts().into_iter().all(legal), "{}", *func);
        for (xs, ys) in xs.chunks(LANES).zip(ys.chunks(LANES)) {
            let (x, y) = (memory(from, xs), memory(from, ys));
            let mut o = memory(to, &[0; LANES]);
            let arguments = &mut [
                Argument::Read(&x),
                Argument::Read(&y),
                Argument::ReadWrite(&mut o),
            ];
            lane::run(&func, [1, 1, 1], arguments).expect("no op is undefined");
            for (place, found) in o.chunks(result as usize).enumerate() {
                let (x, y) = (xs[place], ys[place]);
                let expected = canonical(to, meaning(x, y));
                let found = canonical(to, read_number(to, found));
                assert_eq!(found, expected, "{x:#x} {y:#x} {native:?}\n{}", *func);
            }
        }
    }
}

#[test]
fn conversions_keep_their_meaning() {
    for &from in DType::ALL {
        for &to in DType::ALL {
            check("%r = cast %a", (from, to), &|x, _| cast(from, to, x));
        }
    }
}

#[test]
fn unary_ops_keep_their_meaning() {
    for &dtype in DType::ALL {
        for &op in UnaryOp::ALL {
            if op.accepts().admits(dtype) {
                let body = format!("%r = {} %a", op.mnemonic());
                check(&body, (dtype, dtype), &|x, _| unary(op, dtype, x));
            }
        }
    }
}

#[test]
fn binary_ops_keep_their_meaning() {
    for &dtype in DType::ALL {
        for &op in BinaryOp::ALL {
            if op.accepts().admits(dtype) {
                let body = format!("%r = {} %a, %b", op.mnemonic());
                check(&body, (dtype, dtype), &|x, y| binary(op, dtype, x, y));
            }
        }
    }
}
