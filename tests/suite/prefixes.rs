//! Rows shorter than their tile: code for lanes knows in which part of it they end, and nobody sees it but the clock.

use exactile::internals::costs;
use exactile::prelude::*;
use exactile::{Determinism, Result, assert_bits_equal};
use exactile_core::target::Target;

const TILE: usize = 512;

/// Each row less its mean, so that elements and a sum of all count.
#[kernel]
fn centred<const BLOCK: usize>(x: Ptr<f32>, y: PtrMut<f32>, columns: i32) {
    let place = arange(0, BLOCK);
    let mask = place < columns;
    let start = program_id(0) * columns;
    let row = load(x + start + place).mask(mask).other(0.0);
    let centred = row - row.sum(0) / columns.to::<f32>();
    store(y + start + place, centred).mask(mask);
}

fn run(device: &Device, x: &[f32], columns: usize, warps: u32) -> Result<Buffer<f32>> {
    let input = Buffer::from_slice(device, x)?;
    let mut output = Buffer::zeros(device, x.len())?;
    let kernel = centred().block(TILE).warps(warps);
    let arguments = (&input, &mut output, columns as i32);
    kernel.run(device, x.len() / columns, arguments)?;
    Ok(output)
}

#[test]
fn rows_of_any_length_have_the_bits_of_a_cpu() {
    let cpu = Device::cpu();
    for warps in [1, 4] {
        let lanes = Device::lanes();
        for columns in [1, 31, 32, 33, 160, 161, 479, 480, 481, 511, 512] {
            let x: Vec<f32> = (0..2 * columns).map(|at| (at as f32).sin()).collect();
            let want = run(&cpu, &x, columns, warps).expect("runs");
            let got = run(&lanes, &x, columns, warps).expect("runs");
            assert_bits_equal(&got, &want.to_vec().expect("reads"));
        }
    }
}

#[test]
fn few_ranges_have_code_of_their_own() {
    let (lanes, cpu) = (Device::lanes(), Device::cpu());
    let mut codes = Vec::new();
    for columns in [33, 41, 63, 101, 201, 301, 401, 39, 511] {
        let x = vec![1.0; columns];
        run(&lanes, &x, columns, 1).expect("runs");
        run(&cpu, &x, columns, 1).expect("runs");
        codes.push(costs(&lanes).codes);
    }
    // After four ranges the others share code, and so do rows of whole tiles.
    assert_eq!(codes, [1, 1, 1, 2, 3, 4, 5, 5, 5]);
    assert_eq!(costs(&cpu).codes, 1);
}

/// Sums of rows, in the order of the layout.
const SUMS: &str = "func @sums block (%x: ptr<f32>, %y: ptr<f32> write, %n: i64) {
  %i = arange start=0, end=512 : tile<512xi64>
  %b = splat %n : tile<512xi64>
  %m = lt %i, %b : tile<512xbool>
  %v = load %x, %i, mask=%m : tile<512xf32>
  %s = reduce [%v], axis=0, order=any (%c: f32, %d: f32) {
    %e = add %c, %d : f32
    yield [%e]
  } : f32
  %zero = constant value=i64(0) : i64
  store %y, %zero, %s
}";

#[test]
fn no_bits_follow_what_ran_before_where_a_level_promises_them() {
    let func = exactile_core::text::parse(SUMS, "sums.bir").expect("parses");
    let prefixes =
        |level| exactile_core::passes::prefixes::Prefixes::of(&func, &Target::SM_90A, level);
    assert!(prefixes(Determinism::BatchInvariant).is_empty());
    assert!(!prefixes(Determinism::NotGuaranteed).is_empty());
}
