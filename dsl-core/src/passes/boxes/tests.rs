//! Which loads are those of boxes, and for which launches.

use crate::facts::{Boxed, Facts};
use crate::interp::{block, lane};
use crate::ir::{Access, DType, Func, Literal};
use crate::launch::{Argument, Boxes, Launch, Passed};
use crate::pipeline::{PreparedFunc, lower, prepare, prepare_boxed, unobserved};
use crate::target::{Options, Schedule, Target};
use crate::text::parse;
use crate::verify::{self, BlockFunc};

/// The product of `[64, k]` and `[k, 64]`, masked as kernels are, from these rows on.
fn product(row: &str, mask_a: &str, at_b: &str) -> BlockFunc {
    valid(&text(row, mask_a, at_b))
}

fn valid(text: &str) -> BlockFunc {
    verify::block(parse(text, "boxes.bir").expect("parses")).expect("is valid")
}

fn text(row: &str, mask_a: &str, at_b: &str) -> String {
    format!(
        "func @f block (%a: ptr<bf16>, %b: ptr<bf16>, %c: ptr<f32> write, %m: i64, %k: i64, %ld: i64) {{
      %zero = constant value=i64(0) : i64
      %p = program_id axis=0 : i64
      %height = constant value=i64(64) : i64
      %down = mul %p, %height : i64
      %up = sub %zero, %down : i64
      %i = arange start=0, end=64 : tile<64xi64>
      %first = splat {row} : tile<64xi64>
      %rows = add %first, %i : tile<64xi64>
      %r1 = expand_dims %rows, axis=1 : tile<64x1xi64>
      %r = broadcast %r1 : tile<64x64xi64>
      %c1 = expand_dims %i, axis=0 : tile<1x64xi64>
      %columns = broadcast %c1 : tile<64x64xi64>
      %ms = splat %m : tile<64x64xi64>
      %ks = splat %k : tile<64x64xi64>
      %lds = splat %ld : tile<64x64xi64>
      %zeros = constant value=i64(0) : tile<64x64xi64>
      %in_rows = lt %r, %ms : tile<64x64xbool>
      %from_zero = ge %r, %zeros : tile<64x64xbool>
      %both = and %in_rows, %from_zero : tile<64x64xbool>
      %in_columns = gt %ks, %columns : tile<64x64xbool>
      %none = constant value=f32(0) : tile<64x64xf32>
      %at_row = mul %r, %lds : tile<64x64xi64>
      %sum = for %zero, %k, [%none], step=64, stages=3 (%k0: i64, %acc: tile<64x64xf32>) {{
        %at = splat %k0 : tile<64xi64>
        %inner = add %at, %i : tile<64xi64>
        %n1 = expand_dims %inner, axis=0 : tile<1x64xi64>
        %n = broadcast %n1 : tile<64x64xi64>
        %kmask = lt %n, %ks : tile<64x64xbool>
        %all = and %both, %kmask : tile<64x64xbool>
        %some = and %in_rows, %kmask : tile<64x64xbool>
        %at_a = add %at_row, %n : tile<64x64xi64>
        %va = load %a, %at_a, mask={mask_a} : tile<64x64xbf16>
        %d1 = expand_dims %inner, axis=1 : tile<64x1xi64>
        %d = broadcast %d1 : tile<64x64xi64>
        %dmask = lt %d, %ks : tile<64x64xbool>
        %bmask = and %dmask, %in_columns : tile<64x64xbool>
        %down_b = mul %d, %lds : tile<64x64xi64>
        %plain = add %down_b, %columns : tile<64x64xi64>
        %across = mul %columns, %lds : tile<64x64xi64>
        %turned = add %across, %d : tile<64x64xi64>
        %twice = add %columns, %columns : tile<64x64xi64>
        %spread = add %down_b, %twice : tile<64x64xi64>
        %vb = load %b, {at_b}, mask=%bmask : tile<64x64xbf16>
        %next = dot %va, %vb, %acc, precision=hopper : tile<64x64xf32>
        yield [%next]
      }} : tile<64x64xf32>
      store %c, %at_row, %sum
    }}"
    )
}

/// Four warps are a group that shares a product.
fn by_four() -> Options {
    Options {
        schedule: Schedule::AUTO.warps(4),
        ..Options::default()
    }
}

/// How many boxes the compiler makes for a GPU.
fn boxes(func: &BlockFunc, target: &Target) -> usize {
    let facts = Facts {
        boxes: Boxed::All,
        ..Facts::default()
    };
    let mut found = None;
    let observe = &mut |stage: &'static str, func: &Func| {
        if stage == "boxes" {
            found = Some(func.to_string().matches("load_box").count());
        }
    };
    prepare(func.clone(), target, &by_four(), &facts, observe).expect("compiles");
    found.expect("there is such a stage")
}

#[test]
fn loads_of_products_are_boxes_where_masks_say_so() {
    for (row, mask_a, at_b, expected) in [
        ("%down", "%some", "%plain", 2),
        ("%down", "%all", "%turned", 2),
        ("%up", "%all", "%plain", 2),
        // Rows below zero would not be masked.
        ("%up", "%some", "%plain", 1),
        // Nothing says where the columns end.
        ("%down", "%both", "%plain", 1),
        // No axis is contiguous.
        ("%down", "%some", "%spread", 1),
    ] {
        let func = product(row, mask_a, at_b);
        assert_eq!(
            boxes(&func, &Target::SM_90A),
            expected,
            "{row} {mask_a} {at_b}"
        );
        assert_eq!(boxes(&func, &Target::SM_100), 0);
    }
}

/// Also where a kernel says how many products are added at a time, of which the compiler makes products later.
#[test]
fn loads_of_promoted_products_are_boxes() {
    let text = text("%down", "%some", "%plain");
    let promoted = "dot_promoted %va, %vb, %acc, precision=hopper, count=64";
    let func = valid(&text.replace("dot %va, %vb, %acc, precision=hopper", promoted));
    let (options, facts) = (by_four(), Facts::default());
    let boxed = prepare_boxed(&func, &Target::SM_90A, &options, &facts, &mut unobserved);
    let boxed = boxed.expect("compiles").expect("has boxes");
    assert_eq!(super::boxes_of(&boxed), Boxed::Loads);
}

/// A backend has another form of a division, which the host would not find.
#[test]
fn extents_are_sums_and_products() {
    let text = text("%down", "%some", "%plain");
    for (op, expected) in [("add", 2), ("div", 0)] {
        let half = format!("%half = {op} %k, %height : i64\n %ks = splat %half");
        let func = valid(&text.replacen("%ks = splat %k", &half, 1));
        assert_eq!(boxes(&func, &Target::SM_90A), expected, "{op}");
    }
}

fn number(number: i64) -> Passed {
    Passed::Scalar(Literal::from_bits(DType::I64, number.cast_unsigned()))
}

fn memory(address: u64, bytes: u64, access: Access) -> Passed {
    Passed::Memory {
        address,
        bytes,
        access,
    }
}

#[test]
fn a_launch_must_have_shown_what_copies_ask() {
    let func = product("%down", "%some", "%plain");
    let (options, facts) = (by_four(), Facts::default());
    let boxed = prepare_boxed(&func, &Target::SM_90A, &options, &facts, &mut unobserved);
    let boxed = boxed.expect("compiles").expect("has boxes");
    let plain = prepare(func, &Target::SM_90A, &options, &facts, &mut unobserved);
    assert_eq!(super::boxes_of(&plain.expect("compiles")), Boxed::Nothing);
    let conditions = Boxes::of(&boxed);
    let holds = |address: u64, bytes: u64, [m, k, ld]: [i64; 3]| {
        let memory = |access| memory(address, bytes, access);
        let arguments = [
            memory(Access::Read),
            memory(Access::Read),
            memory(Access::ReadWrite),
            number(m),
            number(k),
            number(ld),
        ];
        conditions.hold(&Launch::new([1, 1, 1], &arguments)) == Boxed::All
    };
    assert!(holds(4096, 2 * 96 * 96, [96, 96, 96]));
    // The last row need not be as long as the others.
    assert!(holds(4096, 2 * (95 * 104 + 96), [96, 96, 104]));
    for (address, bytes, numbers) in [
        (4100, 1 << 30, [96, 96, 96]),
        (4096, 2 * 96 * 96 - 2, [96, 96, 96]),
        (4096, 1 << 30, [96, 96, 100]),
        (4096, 1 << 30, [96, 96, 88]),
        (4096, 1 << 30, [96, 96, -96]),
        (4096, 1 << 30, [0, 96, 96]),
        (4096, 1 << 30, [96, -8, 96]),
        (4096, u64::MAX, [1 << 31, 8, 8]),
        (4096, u64::MAX, [96, 96, 1 << 62]),
    ] {
        assert!(
            !holds(address, bytes, numbers),
            "{address} {bytes} {numbers:?}"
        );
    }
}

/// The same product, of which lines are added before the end.
fn storing(lines: &str) -> BlockFunc {
    let text = text("%down", "%some", "%plain");
    let lines = format!(
        "%at_c = add %at_row, %columns : tile<64x64xi64>
        %cmask = and %both, %in_columns : tile<64x64xbool>
        {lines}"
    );
    valid(&text.replacen("store %c, %at_row, %sum", &lines, 1))
}

/// What is prepared for launches that show what copies ask.
fn boxed(func: &BlockFunc) -> PreparedFunc {
    let (options, facts) = (by_four(), Facts::default());
    let boxed = prepare_boxed(func, &Target::SM_90A, &options, &facts, &mut unobserved);
    boxed.expect("compiles").expect("has boxes")
}

#[test]
fn stores_of_sums_are_boxes_where_nothing_else_touches_their_array() {
    let half = "%half = constant value=f32(0.5) : tile<64x64xf32>
        %less = mul %sum, %half : tile<64x64xf32>
        store %c, %at_c, %less, mask=%cmask";
    let added = "%old = load %c, %at_c, mask=%cmask : tile<64x64xf32>
        %both_sums = add %sum, %old : tile<64x64xf32>
        store %c, %at_c, %both_sums, mask=%cmask";
    let twice = "store %c, %at_c, %sum, mask=%cmask
        store %c, %at_c, %sum, mask=%cmask";
    let branches = "%some_rows = lt %zero, %m : bool
        if %some_rows () {
          store %c, %at_c, %sum, mask=%cmask
          yield []
        } () {
          store %c, %at_c, %sum, mask=%cmask
          yield []
        }";
    let ended = "%before = lt %r, %ks : tile<64x64xbool>
        %up_to_end = and %cmask, %before : tile<64x64xbool>
        store %c, %at_c, %sum, mask=%up_to_end";
    let ended_elsewhere = "%one = constant value=i64(1) : tile<64x64xi64>
        %next_row = add %r, %one : tile<64x64xi64>
        %before = lt %next_row, %ks : tile<64x64xbool>
        %up_to_end = and %cmask, %before : tile<64x64xbool>
        store %c, %at_c, %sum, mask=%up_to_end";
    let in_turns = |lines: &str| {
        format!(
            "for %zero, %k, [], step=64, stages=1 (%again: i64) {{
               {lines}
               yield []
             }}"
        )
    };
    let looped = &in_turns("store %c, %at_c, %sum, mask=%cmask")[..];
    for (lines, expected) in [
        ("store %c, %at_c, %sum, mask=%cmask", 1),
        (half, 1),
        (branches, 2),
        ("store %c, %at_row, %sum", 0),
        // Rows end where the tile does.
        ("store %c, %at_c, %sum, mask=%both", 1),
        (ended, 1),
        (ended_elsewhere, 0),
        (added, 0),
        (twice, 0),
        (looped, 1),
        (&in_turns(ended), 0),
        (&in_turns(branches), 0),
    ] {
        let func = boxed(&storing(lines));
        let found = func.to_string().matches("store_box").count();
        assert_eq!(found, expected, "{lines}");
    }
}

/// Loads of boxes do not depend on where results go.
#[test]
fn a_launch_shows_what_stores_ask_apart() {
    let func = boxed(&storing("store %c, %at_c, %sum, mask=%cmask"));
    let conditions = Boxes::of(&func);
    let holding = |address: u64, bytes: u64| {
        let read = memory(4096, 1 << 20, Access::Read);
        let written = memory(address, bytes, Access::ReadWrite);
        let number = number(96);
        let arguments = [read, read, written, number, number, number];
        conditions.hold(&Launch::new([1, 1, 1], &arguments))
    };
    assert_eq!(holding(4096, 4 * 96 * 96), Boxed::All);
    assert_eq!(holding(4096, 4 * 96 * 96 - 4), Boxed::Loads);
    assert_eq!(holding(4100, 1 << 20), Boxed::Loads);
}

/// Programs read half a MiB of each array, of which copies have 8 and 33 MiB.
#[test]
fn many_programs_pay_for_copies_of_rows() {
    let conditions = Boxes::of(&boxed(&product("%down", "%some", "%plain")));
    let holding = |programs: u32, address: u64, bytes: u64, [m, k, ld]: [i64; 3]| {
        let memory = |address, access| memory(address, bytes, access);
        let arguments = [
            memory(address, Access::Read),
            memory(4096, Access::Read),
            memory(4096, Access::ReadWrite),
            number(m),
            number(k),
            number(ld),
        ];
        conditions.hold(&Launch::new([programs, 1, 1], &arguments))
    };
    let (odd, even) = ([1000, 4099, 4099], [1000, 4096, 4096]);
    let all = 2 * 4099 * 4099;
    for (programs, address, bytes, numbers, expected) in [
        (200, 4096, all, odd, Boxed::All),
        (40, 4096, all, odd, Boxed::Nothing),
        // The first alone.
        (48, 4098, all, even, Boxed::All),
        (20, 4098, all, even, Boxed::Nothing),
        // It ends beyond its memory, its rows overlap, or there are none.
        (200, 4096, all - 2, odd, Boxed::Nothing),
        (200, 4096, 1 << 40, [1000, 4099, 4097], Boxed::Nothing),
        (200, 4096, 1 << 40, [0, 4099, 4099], Boxed::Nothing),
        (200, 4096, 1 << 40, [1000, 4099, -4099], Boxed::Nothing),
    ] {
        let found = holding(programs, address, bytes, numbers);
        assert_eq!(found, expected, "{programs} {address} {bytes} {numbers:?}");
    }
}

/// As many numbers of a row, of one and of two bytes, have no copy in common.
#[test]
fn memory_that_is_read_by_two_widths_is_not_copied() {
    let func = valid(
        "func @f block (%a: ptr<u8>, %b: ptr<bf16>, %n: i64) {
           %zero = constant value=i64(0) : i64
           %one = constant value=i64(1) : i64
           %columns = constant value=i64(63) : i64
           %bytes = constant value=i64(126) : i64
           %va = load_box %a, [%zero, %zero], [%n, %columns], [%bytes, %one] : tile<64x128xu8>
           %vb = load_box %b, [%zero, %zero], [%n, %columns], [%columns, %one] : tile<64x64xbf16>
         }",
    );
    let conditions = Boxes::of(&func);
    let holding = |address: u64| {
        let [a, b] = [4096, address].map(|address| memory(address, 1 << 20, Access::Read));
        conditions.hold(&Launch::new([60_000, 1, 1], &[a, b, number(64)]))
    };
    assert_eq!(holding(1 << 24), Boxed::All);
    assert_eq!(holding(4096), Boxed::Nothing);
}

/// A launch hands over copies of rows that begin elsewhere; what their boxes hold is the same.
#[test]
fn boxes_of_rows_that_begin_anywhere_hold_the_same() {
    let lines = "store %c, %at_c, %sum, mask=%cmask";
    let func = storing(lines);
    let facts = Facts {
        boxes: Boxed::Loads,
        ..Facts::default()
    };
    let (target, options) = (Target::SM_90A, by_four());
    let lanes = lower(&boxed(&func), &target, &options, &facts, &mut unobserved);
    let lanes = lanes.expect("compiles");
    assert!(lanes.to_string().contains("copy_in"), "{}", *lanes);
    let (m, k, ld) = (40_i64, 35_i64, 37_i64);
    let numbers = |seed: i64| -> Vec<u8> {
        let number = |at: i64| (0x3f00 + (at * 7 + seed) % 300) as u16;
        (0..40 * ld)
            .flat_map(|at| number(at).to_ne_bytes())
            .collect()
    };
    let (a, b) = (numbers(1), numbers(2));
    let [mut by_blocks, mut by_lanes] = [(); 2].map(|()| vec![0_u8; 4 * 40 * 37]);
    let arguments = |out| {
        let [m, k, ld] = [m, k, ld].map(|it| Literal::from_bits(DType::I64, it.cast_unsigned()));
        [
            Argument::Read(&a),
            Argument::Read(&b),
            Argument::ReadWrite(out),
            Argument::Scalar(m),
            Argument::Scalar(k),
            Argument::Scalar(ld),
        ]
    };
    block::run(&func, [1, 1, 1], &mut arguments(&mut by_blocks)).expect("runs");
    lane::run(&lanes, [1, 1, 1], &mut arguments(&mut by_lanes)).expect("runs");
    assert_eq!(by_lanes, by_blocks);
    assert!(by_lanes.iter().any(|&it| it != 0));
}
