//! How many instructions lanes have: a tile is a vector, however many registers it takes.

use super::*;
use crate::target::WARP_LANES;

/// The fewest warps whose lanes have registers for every tile.
pub(super) fn least_warps(func: &Func) -> u32 {
    let sizes = func.values().map(|value| match func.ty(value).pointee() {
        Some(_) => 1,
        None => func.ty(value).shape.elements(),
    });
    let of_warp = (Target::SM_90A.gpu.tile_registers * WARP_LANES) as usize;
    let warps = sizes.max().unwrap_or(1).div_ceil(of_warp);
    warps.try_into().expect("few")
}

/// The instructions of a lane, without bounds checks.
fn size(text: &str, warps: u32) -> usize {
    let func = parse(text, "test.bir").expect("parses");
    let func = verify::block(func).expect("verifies");
    let schedule = Schedule {
        warps: Some(warps),
        ..Schedule::default()
    };
    let options = Options {
        schedule,
        bounds: Bounds::Unchecked,
        ..Options::default()
    };
    let observe = &mut pipeline::unobserved;
    let lane = pipeline::compile(func, &Target::SM_90A, &options, &facts(), observe);
    lane.expect("lowers").all_insts().len()
}

/// A function of `count` numbers.
fn of_numbers(count: usize, body: &str) -> String {
    format!(
        "func @f block (%x: ptr<f32>, %o: ptr<f32> write) {{
          %i = arange start=0, end={count} : tile<{count}xi64>
          %v = load %x, %i : tile<{count}xf32>
          {body} : tile<{count}xf32>
          store %o, %i, %r
        }}"
    )
}

#[test]
fn a_step_is_a_few_instructions_however_many_registers_there_are() {
    let sort = "%r = sort [%v], keys=1, axis=0, direction=ascending, count";
    let scan = "%r = scan [%v], axis=0, order=tree, direction=forward (%a: f32, %b: f32) {
        %s = add %a, %b : f32
        yield [%s]
      }";
    for (count, warps, most) in [(1024, 1, 400), (2048, 1, 520), (4096, 2, 700)] {
        let found = size(&of_numbers(count, &format!("{sort}={count}")), warps);
        assert!(found <= most, "a sort of {count} takes {found}");
        let found = size(&of_numbers(count, scan), 1);
        assert!(found <= 120, "a scan of {count} takes {found}");
    }
}

#[test]
fn a_dot_reads_two_steps_at_once() {
    let text = "func @d block (%x: ptr<f32>, %y: ptr<f32>, %o: ptr<f32> write) {
      %i = arange start=0, end=4096 : tile<4096xi64>
      %a = load %x, %i : tile<4096xf32>
      %b = load %y, %i : tile<4096xf32>
      %c = constant value=f32(0.0) : tile<128x128xf32>
      %p = reshape %a : tile<128x32xf32>
      %q = reshape %b : tile<32x128xf32>
      %d = dot %p, %q, %c, precision=ieee : tile<128x128xf32>
      %j = arange start=0, end=16384 : tile<16384xi64>
      %r = reshape %d : tile<16384xf32>
      store %o, %j, %r
    }";
    let found = size(text, 8);
    assert!(found <= 280, "{found}");
}

#[test]
fn more_warps_run_what_loads_more() {
    let warps = |count: usize, loads: usize| {
        let more = (1..loads).map(|at| {
            let before = if at == 1 {
                "v".to_string()
            } else {
                format!("s{}", at - 1)
            };
            format!(
                "%l{at} = load %x, %i : tile<{count}xf32>
                 %s{at} = add %{before}, %l{at} : tile<{count}xf32>\n"
            )
        });
        let more: String = more.collect();
        let last = format!("{more} %r = add %v, %v");
        let func = parse(&of_numbers(count, &last), "test.bir").expect("parses");
        let func = verify::block(func).expect("verifies");
        crate::schedule::assign::warps_of(&func, &Target::SM_90A, &Schedule::default())
    };
    // A lane loads 256 bytes: 64 numbers of one array, 16 of each of three.
    assert_eq!([1, 2, 3].map(|loads| warps(8192, loads)), [4, 8, 16]);
    // It loads 64 bytes while there are fewer than four warps: 16 numbers of one array, 8 of each of two.
    assert_eq!([1, 2, 3].map(|loads| warps(1024, loads)), [2, 4, 4]);
}
