//! Block kernels lowered to registers of lanes and warps: what their machine code looks like.

use exactile_core::facts::Facts;
use exactile_core::target::{Bounds, Determinism, Options, Schedule, Target};
use exactile_core::text::parse;
use exactile_core::{pipeline, verify};
use exactile_nvptx::{Assembled, Ptx, emit};

use crate::{assemble, count};

fn compile(source: &str, name: &str, warps: u32, bounds: Bounds) -> Ptx {
    compile_on(source, name, bounds, Schedule::AUTO.warps(warps))
}

fn compile_on(source: &str, name: &str, bounds: Bounds, schedule: Schedule) -> Ptx {
    let func = verify::block(parse(source, "kernel.bir").expect("parses")).expect("is valid");
    let options = Options {
        determinism: Determinism::Exact,
        bounds,
        schedule,
    };
    let facts = Facts {
        apart: true,
        inside: true,
        ..Facts::default()
    };
    let observe = &mut pipeline::unobserved;
    let lane = pipeline::compile(func, &Target::SM_90A, &options, &facts, observe);
    let lane = lane.expect("compiles");
    let kept: String = lane
        .schedule
        .chosen()
        .map(|(field, value)| format!("{}{value}_", field.row().name))
        .collect();
    let name = format!("{name}_{}_{kept}{bounds:?}", lane.warps);
    emit(&lane, &Target::SM_90A, &name).unwrap_or_else(|error| panic!("{error}\n{}", *lane))
}

/// The machine code for some numbers of warps, with and without checks.
fn assembled(source: &str, name: &str) -> Vec<(Bounds, Assembled)> {
    let mut all = Vec::new();
    for (warps, bounds) in [
        (1, Bounds::Unchecked),
        (4, Bounds::Unchecked),
        (4, Bounds::Checked),
        (8, Bounds::Unchecked),
    ] {
        let ptx = compile(source, name, warps, bounds);
        if let Some(assembled) = assemble(&ptx) {
            assert!(
                assembled.report.contains("0 bytes spill stores"),
                "{}",
                assembled.report
            );
            assert_eq!(count(&assembled, "LDL") + count(&assembled, "STL"), 0);
            all.push((bounds, assembled));
        }
    }
    all
}

#[test]
fn every_gpu_has_code() {
    let rows = format!(
        "func @rows block (%x: ptr<bf16> divisor=16, %y: ptr<f32> write divisor=16, %n: i64) {{
        %zero = constant value=i64(0) : i64
        %size = constant value=i64(1024) : i64
        %i = arange start=0, end=1024 : tile<1024xi64>
        %none = constant value=f32(0) : tile<1024xf32>
        %s = for %zero, %n, [%none], step=1, stages=3 (%k: i64, %c: tile<1024xf32>) {{
          %r = mul %k, %size : i64
          %t = splat %r : tile<1024xi64>
          %o = add %t, %i : tile<1024xi64>
          %v = load %x, %o : tile<1024xbf16>
          %w = cast %v : tile<1024xf32>
          %p = exp %w : tile<1024xf32>
          %e = maximum %c, %p : tile<1024xf32>
          yield [%e]
        }} : tile<1024xf32>
        %m = reduce [%s], axis=0, order=tree {SUM} : f32
        store %y, %zero, %m
        %h = cast %s : tile<1024xbf16>
        %q = cast %h : tile<1024xf32>
        store %y, %i, %q
      }}"
    );
    for target in Target::GPUS {
        for bounds in [Bounds::Checked, Bounds::Unchecked] {
            let func = verify::block(parse(&rows, "kernel.bir").expect("parses"));
            let options = Options {
                bounds,
                ..Options::default()
            };
            let (facts, observe) = (Facts::default(), &mut pipeline::unobserved);
            let func = func.expect("is valid");
            let lane = pipeline::compile(func, target, &options, &facts, observe);
            let name = format!("rows_{}_{bounds:?}", target.name);
            let ptx = emit(&lane.expect("compiles"), target, &name).expect("the function compiles");
            assert!(ptx.text().contains(&format!(".target {}", target.name)));
            if let Some(assembled) = assemble(&ptx) {
                assert!(count(&assembled, "LDGSTS") > 0, "{}", assembled.sass);
            }
        }
    }
}

#[test]
fn a_masked_elementwise_kernel_moves_whole_vectors() {
    let source =
        "func @triad block (%x: ptr<f32> divisor=16, %y: ptr<f32> write divisor=16, %n: i64) {
        %p = program_id axis=0 : i64
        %size = constant value=i64(1024) : i64
        %start = mul %p, %size : i64
        %ss = splat %start : tile<1024xi64>
        %i = arange start=0, end=1024 : tile<1024xi64>
        %o = add %ss, %i : tile<1024xi64>
        %ns = splat %n : tile<1024xi64>
        %m = lt %o, %ns : tile<1024xbool>
        %v = load %x, %o, mask=%m : tile<1024xf32>
        %w = mul %v, %v : tile<1024xf32>
        %z = add %w, %v : tile<1024xf32>
        store %y, %o, %z, mask=%m
      }";
    for (_, assembled) in assembled(source, "triad") {
        assert!(count(&assembled, "LDG.E.128") >= 1, "{}", assembled.sass);
        assert!(count(&assembled, "STG.E.128") >= 1, "{}", assembled.sass);
        assert_eq!(count(&assembled, "FFMA"), 0, "{}", assembled.sass);
    }
}

const SUM: &str = "(%lower: f32, %upper: f32) {
      %total = add %lower, %upper : f32
      yield [%total]
    }";

#[test]
fn a_softmax_reduces_by_shuffles() {
    let source = format!(
        "func @softmax block (%x: ptr<f32> divisor=16, %y: ptr<f32> write divisor=16) {{
        %p = program_id axis=0 : i64
        %k = constant value=i64(1024) : i64
        %first = mul %p, %k : i64
        %fs = splat %first : tile<1024xi64>
        %i = arange start=0, end=1024 : tile<1024xi64>
        %o = add %fs, %i : tile<1024xi64>
        %v = load %x, %o : tile<1024xf32>
        %m = reduce [%v], axis=0, order=tree (%ma: f32, %mb: f32) {{
          %mc = maxnum %ma, %mb : f32
          yield [%mc]
        }} : f32
        %ms = splat %m : tile<1024xf32>
        %d = sub %v, %ms : tile<1024xf32>
        %e = exp %d : tile<1024xf32>
        %s = reduce [%e], axis=0, order=tree {SUM} : f32
        %t = splat %s : tile<1024xf32>
        %q = div %e, %t : tile<1024xf32>
        store %y, %o, %q
      }}"
    );
    for (_, assembled) in assembled(&source, "softmax") {
        assert!(count(&assembled, "SHFL.BFLY") >= 10, "{}", assembled.sass);
        assert!(count(&assembled, "LDG.E.128") >= 1, "{}", assembled.sass);
    }
}

#[test]
fn a_transposed_copy_stages_in_shared_memory() {
    let source = "func @transpose block (%x: ptr<f32> divisor=16, %y: ptr<f32> write divisor=16) {
        %i = arange start=0, end=4096 : tile<4096xi64>
        %v = load %x, %i : tile<4096xf32>
        %w = reshape %v : tile<64x64xf32>
        %t = transpose %w, permutation=[1, 0] : tile<64x64xf32>
        %o = reshape %i : tile<64x64xi64>
        store %y, %o, %t
      }";
    for (_, assembled) in assembled(source, "transpose") {
        assert!(count(&assembled, "STS") >= 1, "{}", assembled.sass);
        assert!(count(&assembled, "LDS") >= 1, "{}", assembled.sass);
        assert!(count(&assembled, "STG.E.128") >= 1, "{}", assembled.sass);
    }
}

#[test]
fn a_product_of_matrices_is_fused_multiply_adds() {
    let source = "func @dot block (%x: ptr<f32> divisor=16, %y: ptr<f32> divisor=16, %z: ptr<f32> write divisor=16) {
        %i = arange start=0, end=1024 : tile<1024xi64>
        %i2 = reshape %i : tile<32x32xi64>
        %u = load %x, %i2 : tile<32x32xf32>
        %v = load %y, %i2 : tile<32x32xf32>
        %w = load %z, %i2 : tile<32x32xf32>
        %d = dot %u, %v, %w, precision=ieee : tile<32x32xf32>
        store %z, %i2, %d
      }";
    for (_, assembled) in assembled(source, "dot") {
        assert!(count(&assembled, "FFMA") >= 32, "{}", assembled.sass);
    }
}

#[test]
fn a_pipelined_loop_copies_asynchronously_without_barriers() {
    let source = "func @rows block (%x: ptr<f32> divisor=16, %y: ptr<f32> write divisor=16, %n: i64, %columns: i64) {
        %zero = constant value=i64(0) : i64
        %i = arange start=0, end=2048 : tile<2048xi64>
        %end = splat %columns : tile<2048xi64>
        %in = lt %i, %end : tile<2048xbool>
        %none = constant value=f32(0) : tile<2048xf32>
        %s = for %zero, %n, [%none], step=1, stages=3 (%k: i64, %c: tile<2048xf32>) {
          %r = mul %k, %columns : i64
          %t = splat %r : tile<2048xi64>
          %o = add %t, %i : tile<2048xi64>
          %v = load %x, %o, mask=%in : tile<2048xf32>
          %e = add %c, %v : tile<2048xf32>
          yield [%e]
        } : tile<2048xf32>
        store %y, %i, %s
      }";
    let source = source.replace("%columns: i64", "%columns: i64 divisor=16");
    for (bounds, assembled) in assembled(&source, "pipelined_rows") {
        let sass = &assembled.sass;
        assert!(sass.contains("LDGSTS.E.BYPASS.128"), "{sass}");
        assert!(
            sass.contains("LDGDEPBAR") && sass.contains("DEPBAR.LE SB0"),
            "{sass}"
        );
        assert!(sass.contains("LDS.128"), "{sass}");
        assert_eq!(count(&assembled, "BAR.SYNC"), 0, "{sass}");
        if bounds == Bounds::Unchecked {
            assert_eq!(count(&assembled, "LDG.E"), 0, "{sass}");
        }
    }
}

/// Holds 64 elements a lane of 4 warps.
const HOLD: &str = "func @hold block (%x: ptr<f32> divisor=16, %y: ptr<f32> write divisor=16) {
    %i = arange start=0, end=8192 : tile<8192xi64>
    %v = load %x, %i : tile<8192xf32>
    %s = reduce [%v], axis=0, order=tree (%a: f32, %b: f32) {
        %c = add %a, %b : f32
        yield [%c]
    } : f32
    %ss = splat %s : tile<8192xf32>
    %o = div %v, %ss : tile<8192xf32>
    store %y, %i, %o
}";

/// The registers that `HOLD` takes, where there is an assembler; its PTX must have this line, or no line
/// that begins so if the rest is empty.
fn registers(schedule: Schedule, (directive, value): (&str, &str)) -> Option<u32> {
    let ptx = compile_on(HOLD, "hold", Bounds::Unchecked, schedule);
    let stated = ptx
        .text()
        .lines()
        .find_map(|line| line.strip_prefix(directive));
    assert_eq!(stated.unwrap_or_default().trim(), value, "{}", ptx.text());
    let report = assemble(&ptx)?.report;
    let used = report.split("Used ").nth(1)?.split(' ').next()?;
    Some(used.parse::<u32>().expect("a number"))
}

#[test]
fn an_occupancy_bounds_the_registers() {
    let schedule = Schedule::AUTO.warps(4);
    // 65536 registers for 5 blocks of 128 lanes, in units of 8.
    if let Some(registers) = registers(schedule.occupancy(5), (".minnctapersm", "5")) {
        assert!(registers <= 96, "{registers}");
    }
    registers(schedule, (".minnctapersm", ""));
}

#[test]
fn threads_use_no_more_registers_than_asked_for() {
    let schedule = Schedule::AUTO.warps(4);
    let free = registers(schedule, (".maxnreg", ""));
    let held = registers(schedule.registers(40), (".maxnreg", "40"));
    if let (Some(free), Some(held)) = (free, held) {
        assert!(free > 40 && held <= 40, "{free} and {held}");
    }
    // 1024 lanes have 64 each.
    registers(schedule.warps(32).registers(255), (".maxnreg", "64"));

    let func = || verify::block(parse(HOLD, "kernel.bir").expect("parses")).expect("is valid");
    let compiled = |target: &Target, schedule| {
        let options = Options {
            schedule,
            ..Options::default()
        };
        pipeline::compile(
            func(),
            target,
            &options,
            &Facts::default(),
            &mut pipeline::unobserved,
        )
        .map(|lane| lane.to_string())
        .map_err(|errors| errors.to_string())
    };
    for registers in [23, 256] {
        let schedule = schedule.registers(registers);
        let error = compiled(&Target::SM_90A, schedule).expect_err("is out of range");
        let expected = format!("`registers` is {registers}, expected a number from 24 to 255");
        assert!(error.contains(&expected), "{error}");
        let cpu = |schedule| compiled(&Target::CPU, schedule).expect("takes no notice");
        assert_eq!(cpu(schedule), cpu(Schedule::AUTO));
    }
}

/// A product of 8-bit floats, of which the second operand is contiguous along the products or along its columns.
fn product_of_bytes(dtype: &str, [along_products, along_columns]: [i64; 2]) -> String {
    format!(
        "func @bytes block (%a: ptr<{dtype}> divisor=16, %b: ptr<{dtype}> divisor=16, %o: ptr<f32> write divisor=16) {{
  %i = arange start=0, end=64 : tile<64xi64>
  %k = arange start=0, end=128 : tile<128xi64>
  %r = expand_dims %i, axis=1 : tile<64x1xi64>
  %rows = broadcast %r : tile<64x128xi64>
  %c = expand_dims %k, axis=0 : tile<1x128xi64>
  %ks = broadcast %c : tile<64x128xi64>
  %w = constant value=i64(128) : tile<64x128xi64>
  %at = mul %rows, %w : tile<64x128xi64>
  %pa = add %at, %ks : tile<64x128xi64>
  %va = load %a, %pa : tile<64x128x{dtype}>
  %kr = expand_dims %k, axis=1 : tile<128x1xi64>
  %kb = broadcast %kr : tile<128x64xi64>
  %n = expand_dims %i, axis=0 : tile<1x64xi64>
  %columns = broadcast %n : tile<128x64xi64>
  %x = constant value=i64({along_products}) : tile<128x64xi64>
  %y = constant value=i64({along_columns}) : tile<128x64xi64>
  %of_k = mul %kb, %x : tile<128x64xi64>
  %of_n = mul %columns, %y : tile<128x64xi64>
  %pb = add %of_k, %of_n : tile<128x64xi64>
  %vb = load %b, %pb : tile<128x64x{dtype}>
  %none = constant value=f32(0) : tile<64x64xf32>
  %d = dot %va, %vb, %none, precision=hopper : tile<64x64xf32>
  %r2 = broadcast %r : tile<64x64xi64>
  %n2 = broadcast %n : tile<64x64xi64>
  %w2 = constant value=i64(64) : tile<64x64xi64>
  %t = mul %r2, %w2 : tile<64x64xi64>
  %po = add %t, %n2 : tile<64x64xi64>
  store %o, %po, %d
}}"
    )
}

#[test]
fn products_of_8_bit_floats_are_of_groups_of_warps() {
    for (dtype, name) in [("f8e4m3", "e4m3"), ("f8e5m2", "e5m2")] {
        for strides in [[1, 128], [64, 1]] {
            let source = product_of_bytes(dtype, strides);
            let ptx = compile(&source, "bytes", 4, Bounds::Unchecked);
            let text = ptx.text();
            let product = format!("m64n64k32.f32.{name}.{name}");
            assert_eq!(text.matches(&product).count(), 4, "{text}");
            if let Some(assembled) = assemble(&ptx) {
                assert_eq!(count(&assembled, "QGMMA"), 4, "{}", assembled.sass);
            }
        }
    }
}
