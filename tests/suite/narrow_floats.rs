//! Conversions from and to narrow floats: of every pattern of 8 and 16 bits, and of wider numbers halfway
//! between neighbours, against a search among all numbers of the type.

use std::collections::BTreeMap;

use exactile::text_kernel::{TextArgument, TextKernel};
use exactile::{Array, DType, Device, Options};
use exactile_core::ir::Literal;
use exactile_core::random::Random;
use exactile_core::semantics::{canonical, cast};

const BLOCK: usize = 256;

fn narrow_floats() -> impl Iterator<Item = DType> {
    DType::ALL.iter().copied().filter(|it| it.is_narrow_float())
}

/// The value of a number, from the definition of its format.
fn value(dtype: DType, bits: u64) -> f64 {
    let format = dtype.format().expect("a float");
    let sign = match bits >> (dtype.bits() - 1) {
        0 => 1.0,
        _ => -1.0,
    };
    let magnitude = bits & (dtype.mask() >> 1);
    let (field, fraction) = (
        magnitude >> format.mantissa,
        magnitude % (1 << format.mantissa),
    );
    let fraction = fraction as f64 / f64::from(1 << format.mantissa);
    let least = 2 - (1 << (format.exponent - 1));
    let last = field == (1 << format.exponent) - 1;
    let all = magnitude == dtype.mask() >> 1;
    match (format.has_infinity, last) {
        (true, true) if fraction == 0.0 => sign * f64::INFINITY,
        (true, true) => f64::NAN,
        (false, true) if all => f64::NAN,
        _ if field == 0 => sign * fraction * 2f64.powi(least),
        _ => sign * (1.0 + fraction) * 2f64.powi(field as i32 - 1 + least),
    }
}

/// The numbers of a type that are not negative, in order, with their bits. Infinity stands at the power of
/// two that it rounds like.
fn numbers(dtype: DType) -> Vec<(f64, u64)> {
    let all = (0..=dtype.mask() >> 1).map(|bits| (value(dtype, bits), bits));
    let mut all: Vec<(f64, u64)> = all.filter(|(value, _)| !value.is_nan()).collect();
    if let Some(last) = all.last_mut().filter(|(value, _)| value.is_infinite()) {
        let format = dtype.format().expect("a float");
        last.0 = 2f64.powi(1 << (format.exponent - 1));
    }
    assert!(all.is_sorted_by(|a, b| a.0 < b.0), "{dtype}");
    all
}

/// The bits of the number nearest to `x`, even bits where two are.
fn nearest(dtype: DType, numbers: &[(f64, u64)], x: f64) -> u64 {
    if x.is_nan() {
        return dtype.canonical_nan();
    }
    let sign = u64::from(x.is_sign_negative()) << (dtype.bits() - 1);
    let above = numbers.partition_point(|&(number, _)| number < x.abs());
    let Some(&(high, high_bits)) = numbers.get(above) else {
        return sign | numbers[numbers.len() - 1].1;
    };
    if above == 0 {
        return sign | high_bits;
    }
    let (low, low_bits) = numbers[above - 1];
    // Both distances are exact: the numbers have few bits, and `x` lies between them.
    let (down, up) = (x.abs() - low, high - x.abs());
    let to_low = down < up || (down == up && low_bits.is_multiple_of(2));
    sign | if to_low { low_bits } else { high_bits }
}

/// Every pattern of a narrow type; of a wide one what lies between two numbers of `to`, and random bits.
fn inputs(from: DType, to: DType) -> Vec<u64> {
    if from.is_narrow_float() {
        return (0..=from.mask()).collect();
    }
    let mut random = Random::new(5);
    let numbers = numbers(to);
    let mut inputs = Vec::new();
    for pair in numbers.windows(2) {
        let middle = Literal::from_f64(from, pair[0].0 + (pair[1].0 - pair[0].0) / 2.0).bits;
        let sign = random.bits() << (from.bits() - 1) & from.mask();
        inputs.extend([middle - 1, middle, middle + 1].map(|bits| bits | sign));
    }
    inputs.extend((0..1 << 14).map(|_| random.bits() & from.mask()));
    let infinity = Literal::from_f64(from, f64::INFINITY).bits;
    let negative = Literal::from_f64(from, f64::NEG_INFINITY).bits;
    inputs.extend([infinity - 1, infinity, infinity + 1, negative - 1, negative]);
    inputs.resize(inputs.len().next_multiple_of(BLOCK), 0);
    inputs
}

/// What the CPU makes of numbers given by their bits.
fn on_the_cpu(from: DType, to: DType, inputs: &[u64]) -> Vec<u64> {
    let source = format!(
        "func @f block (%x: ptr<{from}>, %o: ptr<{to}> write) {{
           %p = program_id axis=0 : i64
           %n = constant value=i64({BLOCK}) : i64
           %s = mul %p, %n : i64
           %t = splat %s : tile<{BLOCK}xi64>
           %u = arange start=0, end={BLOCK} : tile<{BLOCK}xi64>
           %i = add %t, %u : tile<{BLOCK}xi64>
           %a = load %x, %i : tile<{BLOCK}x{from}>
           %r = cast %a : tile<{BLOCK}x{to}>
           store %o, %i, %r
         }}"
    );
    let kernel = TextKernel::parse(&source, "cast.bir", Options::default()).expect("parses");
    let count = inputs.len();
    let size = from.bytes() as usize;
    let bytes: Vec<u8> = inputs
        .iter()
        .flat_map(|bits| bits.to_le_bytes().into_iter().take(size))
        .collect();
    let x = Array::from_bytes(from, [count], &bytes).expect("small");
    let o = Array::zeros(to, [count]).expect("small");
    let mut arguments = BTreeMap::from([
        ("x".to_string(), TextArgument::Array(x)),
        ("o".to_string(), TextArgument::Array(o)),
    ]);
    let grid = [(count / BLOCK) as u32, 1, 1];
    kernel
        .run(&Device::cpu(), grid, &mut arguments)
        .expect("runs");
    let Some(TextArgument::Array(o)) = arguments.remove("o") else {
        panic!("the results are missing");
    };
    let read = |bytes: &[u8]| {
        bytes
            .iter()
            .rev()
            .fold(0, |all, &it| all << 8 | u64::from(it))
    };
    o.bytes().chunks(to.bytes() as usize).map(read).collect()
}

#[test]
fn conversions_give_the_nearest_number() {
    for to in narrow_floats() {
        let numbers = numbers(to);
        let floats = DType::ALL.iter().filter(|it| it.is_float() && **it != to);
        for &from in floats {
            let inputs = inputs(from, to);
            let found = on_the_cpu(from, to, &inputs);
            for (&input, found) in inputs.iter().zip(found) {
                let x = Literal::from_bits(from, input).float().expect("a float");
                let expected = nearest(to, &numbers, x);
                let meant = canonical(to, cast(from, to, input));
                assert_eq!(meant, expected, "{from} {input:#x} {to}: {x:e}");
                assert_eq!(
                    canonical(to, found),
                    expected,
                    "{from} {input:#x} {to}: {x:e}"
                );
            }
        }
    }
}

#[test]
fn narrow_floats_widen_to_their_values() {
    for from in narrow_floats() {
        for to in [DType::F32, DType::F64] {
            let inputs: Vec<u64> = (0..=from.mask()).collect();
            let found = on_the_cpu(from, to, &inputs);
            for (input, found) in inputs.into_iter().zip(found) {
                let expected = canonical(to, Literal::from_f64(to, value(from, input)).bits);
                assert_eq!(
                    canonical(to, cast(from, to, input)),
                    expected,
                    "{from} {input:#x}"
                );
                assert_eq!(canonical(to, found), expected, "{from} {input:#x} {to}");
            }
        }
    }
}
