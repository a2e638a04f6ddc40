//! Bounds: what checks report, what they leave alone, and that nothing else is touched.

use super::*;
use crate::ir::Effect;
use crate::passes::{tidy, uniform_mask};
use crate::target::BoundsError;

fn lowered(source: &str, warps: u32, bounds: Bounds) -> verify::LaneFunc {
    let func = verify::block(parse(source, "test.bir").expect("parses")).expect("verifies");
    let schedule = Schedule {
        warps: Some(warps),
        ..Schedule::default()
    };
    let options = Options {
        bounds,
        schedule,
        ..Options::default()
    };
    lower(&func, &options).expect("lowers")
}

/// What a checked launch reports.
fn error(source: &str, warps: u32, grid: Grid, given: &[Given]) -> Option<BoundsError> {
    let lowered = lowered(source, warps, Bounds::Checked);
    let (report, _) = with_arguments(&lowered, given, |arguments| {
        lane::run(&lowered, grid, arguments)
    });
    report.expect("runs").out_of_bounds
}

#[test]
fn an_access_out_of_bounds_is_reported_with_its_element() {
    let source = "func @f block (%x: ptr<f32> divisor=16, %y: ptr<f32> write divisor=16) {
        %i = arange start=0, end=256 : tile<256xi64>
        %v = load %x, %i : tile<256xf32>
        store %y, %i, %v
      }";
    for warps in [1, 4] {
        let given = [Given::Random(256, 0), Given::Random(250, 0)];
        let error = error(source, warps, [1, 1, 1], &given).expect("an error");
        assert_eq!((error.site, error.element, error.offset), (1, 250, 250));
    }
}

/// Rows of `n` with a stride, in tiles of rows and columns that reach beyond both ends.
const ROWS: &str = "func @rows block (%x: ptr<f16> divisor=16, %y: ptr<f16> write divisor=16, %m: i64, %n: i64, %stride: i64) {
    %p = program_id axis=0 : i64
    %four = constant value=i64(4) : i64
    %top = mul %p, %four : i64
    %r = arange start=0, end=4 : tile<4xi64>
    %c = arange start=0, end=64 : tile<64xi64>
    %t = splat %top : tile<4xi64>
    %row = add %r, %t : tile<4xi64>
    %rows = expand_dims %row, axis=1 : tile<4x1xi64>
    %all = broadcast %rows : tile<4x64xi64>
    %columns = expand_dims %c, axis=0 : tile<1x64xi64>
    %every = broadcast %columns : tile<4x64xi64>
    %s = splat %stride : tile<4x64xi64>
    %far = mul %all, %s : tile<4x64xi64>
    %at = add %far, %every : tile<4x64xi64>
    %rn = splat %n : tile<4x64xi64>
    %rm = splat %m : tile<4x64xi64>
    %inside = lt %every, %rn : tile<4x64xbool>
    %above = lt %all, %rm : tile<4x64xbool>
    %mask = and %inside, %above : tile<4x64xbool>
    %other = constant value=f16(-inf) : tile<4x64xf16>
    %v = load %x, %at, mask=%mask, other=%other : tile<4x64xf16>
    store %y, %at, %v, mask=%mask
  }";

/// The kernel of rows as a launch with these numbers specialises it.
fn rows_for(n: i64, stride: i64) -> String {
    let divisor = |number: i64| 1 << number.trailing_zeros().min(4);
    let (n, stride) = (divisor(n), divisor(stride));
    ROWS.replace("%n: i64", &format!("%n: i64 divisor={n}"))
        .replace("%stride: i64", &format!("%stride: i64 divisor={stride}"))
}

#[test]
fn masked_tails_of_every_length_touch_only_what_is_there() {
    for n in (1..=65).chain([72, 80, 96]) {
        for stride in [n, (n as u64).next_multiple_of(8) as i64] {
            let (m, count) = (6, (5 * stride + n.min(64)) as usize);
            let given = [
                Given::Random(count, 0),
                Given::Random(count, 0),
                Given::Scalar(m),
                Given::Scalar(n),
                Given::Scalar(stride),
            ];
            check(&rows_for(n, stride), [2, 1, 1], &given);
        }
    }
}

#[test]
fn a_tail_that_no_vector_divides_is_loaded_in_vectors() {
    for (n, stride, widest) in [
        (5001, 5008, 8),
        (5000, 5000, 8),
        (5001, 5001, 1),
        (5002, 5004, 4),
    ] {
        let lowered = lowered(&rows_for(n, stride), 1, Bounds::Unchecked);
        let widths = |loads: bool| {
            let insts = lowered.all_insts().into_iter();
            let accesses = insts.filter_map(|inst| Some((inst, lowered.op(inst).access()?)));
            let chosen = accesses.filter(|(_, access)| (access.effect == Effect::Reads) == loads);
            let elements = |value| lowered.ty(value).shape.elements();
            let runs = chosen.map(|(inst, access)| {
                let results = &lowered.inst(inst).results;
                let moved = access.value.unwrap_or_else(|| results[0]);
                elements(moved) / elements(access.offsets)
            });
            runs.max()
        };
        for loads in [true, false] {
            assert_eq!(widths(loads), Some(widest), "{n} of {stride}");
        }
    }
}

#[test]
fn masked_elements_are_no_errors_and_the_least_of_the_others_is_reported() {
    for warps in [1, 4, 8] {
        for (n, stride) in [(40, 48), (33, 33), (64, 64)] {
            let (m, count) = (6, (5 * stride + n) as usize);
            let given = |lacking| {
                [
                    Given::Random(count, 0),
                    Given::Random(count - lacking, 0),
                    Given::Scalar(m),
                    Given::Scalar(n),
                    Given::Scalar(stride),
                ]
            };
            let source = rows_for(n, stride);
            assert_eq!(error(&source, warps, [2, 1, 1], &given(0)), None);
            let least = BoundsError {
                program: 1,
                site: 1,
                element: 64 + n as u64 - 3,
                offset: count as i64 - 3,
            };
            let found = error(&source, warps, [2, 1, 1], &given(3));
            assert_eq!(found, Some(least), "{warps} warps, {n} of {stride}");
        }
    }
}

#[test]
fn strides_that_wrap_are_no_way_out_of_bounds() {
    // The third row would be back at the first one.
    let source = rows_for(64, 64);
    for stride in [1 << 62, i64::MIN, -64] {
        let given = [
            Given::Random(256, 0),
            Given::Random(256, 0),
            Given::Scalar(4),
            Given::Scalar(64),
            Given::Scalar(stride),
        ];
        let found = error(&source, 4, [1, 1, 1], &given).expect("an error");
        assert_eq!((found.site, found.element, found.offset), (0, 64, stride));
    }
}

#[test]
fn the_way_to_an_error_is_not_on_the_way_of_the_others() {
    let count = |bounds| {
        let lowered = lowered(&rows_for(64, 64), 4, bounds);
        let insts = lowered.all_insts();
        let accesses = insts.iter().filter(|&&inst| {
            let op = lowered.op(inst);
            matches!(op, Op::LaneLoad(_) | Op::LaneStore(_))
        });
        let stops = insts
            .iter()
            .filter(|&&inst| matches!(lowered.op(inst), Op::StopOutside(_)));
        (accesses.count(), stops.count())
    };
    let (unchecked, none) = count(Bounds::Unchecked);
    assert_eq!(count(Bounds::Checked), (unchecked, 2));
    assert_eq!(none, 0);
}

#[test]
fn an_index_out_of_range_means_the_nearest() {
    for (dtype, below) in [("i64", 0), ("u64", 7)] {
        let source = format!(
            "func @nearest block (%o: ptr<i64> write, %n: i64) {{
              %x = arange start=0, end=8 : tile<8xi64>
              %i = arange start=0, end=16 : tile<16xi64>
              %s = splat %n : tile<16xi64>
              %t = add %i, %s : tile<16xi64>
              %j = bitcast %t : tile<16x{dtype}>
              %g = gather %x, %j, axis=0 : tile<16xi64>
              store %o, %i, %g
            }}"
        );
        let source = match dtype {
            "i64" => source.replace("bitcast %t", "minimum %t, %t"),
            _ => source,
        };
        for warps in [1, 4] {
            let lowered = lowered(&source, warps, Bounds::Unchecked);
            let given = [Given::Random(16, 1), Given::Scalar(-2)];
            let (report, memory) = with_arguments(&lowered, &given, |arguments| {
                lane::run(&lowered, [1, 1, 1], arguments)
            });
            report.expect("runs");
            let numbers: Vec<i64> = memory[0]
                .chunks(8)
                .map(|bytes| i64::from_ne_bytes(bytes.try_into().expect("8 bytes")))
                .collect();
            let inside = 0..8;
            let beyond = [7; 6];
            let want: Vec<i64> = [below, below]
                .into_iter()
                .chain(inside)
                .chain(beyond)
                .collect();
            assert_eq!(numbers, want, "{dtype}, {warps} warps");
        }
    }
}

#[test]
fn what_is_written_where_it_was_read_is_searched_once() {
    let source = "func @f block (%x: ptr<f32> write, %y: ptr<f32>, %n: i64) {
      %i = arange start=0, end=256 : tile<256xi64>
      %l = splat %n : tile<256xi64>
      %m = lt %i, %l : tile<256xbool>
      %a = load %x, %i, mask=%m : tile<256xf32>
      %b = load %y, %i, mask=%m : tile<256xf32>
      %c = add %a, %b : tile<256xf32>
      store %x, %i, %c, mask=%m
    }";
    let text = lowered(source, 2, Bounds::Checked).to_string();
    assert_eq!(text.matches("stop_outside").count(), 2, "{text}");
    let given = [
        Given::Random(200, 0),
        Given::Random(256, 0),
        Given::Scalar(256),
    ];
    let error = error(source, 2, [1, 1, 1], &given).expect("an error");
    assert_eq!((error.site, error.element), (0, 200));
}

/// Two masked tiles and a store, in the versions of whole tiles and of programs at an edge.
fn in_versions(warps: u32) -> verify::LaneFunc {
    let source = "func @sum block (%x: ptr<f32>, %y: ptr<f32>, %o: ptr<f32> write, %n: i64) {
      %p = program_id axis=0 : i64
      %size = constant value=i64(256) : i64
      %start = mul %p, %size : i64
      %s = splat %start : tile<256xi64>
      %a = arange start=0, end=256 : tile<256xi64>
      %i = add %s, %a : tile<256xi64>
      %l = splat %n : tile<256xi64>
      %m = lt %i, %l : tile<256xbool>
      %v = load %x, %i, mask=%m : tile<256xf32>
      %w = load %y, %i, mask=%m : tile<256xf32>
      %t = add %v, %w : tile<256xf32>
      store %o, %i, %t, mask=%m
    }";
    let mut func = parse(source, "test.bir").expect("parses");
    uniform_mask::uniform_masks(&mut func, Some(32 * warps as usize));
    tidy(&mut func);
    let func = verify::block(func).expect("verifies");
    assert_eq!(func.to_string().matches("if ").count(), 1);
    let options = Options {
        schedule: Schedule {
            warps: Some(warps),
            ..Schedule::default()
        },
        ..Options::default()
    };
    lower(&func, &options).expect("lowers")
}

#[test]
fn the_versions_of_a_tile_have_one_search() {
    for warps in [1, 2, 8] {
        let lowered = in_versions(warps);
        let text = lowered.to_string();
        assert_eq!(text.matches("stop_outside").count(), 3, "{text}");
        assert_eq!(text.matches("in_bounds %0, ").count(), 4, "{text}");
        // The first access in the order of the program is reported, whatever the elements.
        for (n, lengths, expected) in [
            (512, [512, 512, 512], None),
            (512, [500, 400, 512], Some((1, 0, 244))),
            (512, [512, 400, 300], Some((1, 1, 144))),
            (512, [512, 512, 200], Some((0, 2, 200))),
            (450, [450, 450, 450], None),
            (450, [440, 300, 450], Some((1, 0, 184))),
            (450, [500, 450, 449], Some((1, 2, 193))),
            (200, [200, 200, 200], None),
            (200, [200, 199, 100], Some((0, 1, 199))),
        ] {
            let [x, y, o] = lengths.map(|length| Given::Random(length, 0));
            let given = [x, y, o, Given::Scalar(n)];
            let (report, _) = with_arguments(&lowered, &given, |arguments| {
                lane::run(&lowered, [2, 1, 1], arguments)
            });
            let found = report.expect("runs").out_of_bounds;
            let found = found.map(|it| (it.program, it.site, it.element));
            assert_eq!(found, expected, "{n} of {lengths:?}, {warps} warps");
        }
    }
}

#[test]
fn tiles_of_several_sizes_have_one_search() {
    let source =
        "func @f block (%x: ptr<f32>, %y: ptr<f32>, %o: ptr<f32> write, %p: ptr<f32> write) {
      %i = arange start=0, end=256 : tile<256xi64>
      %j = arange start=0, end=16 : tile<16xi64>
      %v = load %x, %i : tile<256xf32>
      %w = load %y, %j : tile<16xf32>
      store %o, %i, %v
      store %p, %j, %w
    }";
    for warps in [1, 4] {
        let text = lowered(source, warps, Bounds::Checked).to_string();
        assert_eq!(text.matches("while").count(), 1, "{text}");
        for (lengths, expected) in [
            ([256, 16, 256, 16], None),
            ([255, 10, 0, 0], Some((0, 255))),
            ([256, 10, 0, 0], Some((1, 10))),
            ([256, 16, 256, 15], Some((3, 15))),
        ] {
            let given = lengths.map(|length| Given::Random(length, 0));
            let found = error(source, warps, [1, 1, 1], &given);
            let found = found.map(|it| (it.site, it.element));
            assert_eq!(found, expected, "{lengths:?}, {warps} warps");
        }
    }
}
