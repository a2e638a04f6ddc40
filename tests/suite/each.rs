//! Functions of elements: scalar functions with branches over tiles, and inline PTX with its meaning.

#![expect(unsafe_code, reason = "inline PTX is the word of who wrote it")]

use exactile::prelude::*;

use super::language::{devices, upload};

/// Newton's square root of each element, until it stands still: as many steps as each element needs.
#[kernel]
fn roots<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, steps: PtrMut<i32>) {
    let at = arange(0, BLOCK);
    let (root, taken) = map_elementwise(load(x + at), |x| {
        let mut root = x;
        let mut taken = scalar::<i32>(0);
        if x > 0.0 {
            let mut last = x + 1.0;
            while root < last {
                last = root;
                root = (root + x / root) * 0.5;
                taken += 1;
            }
        } else {
            root = x * 0.0;
        }
        (root, taken)
    });
    store(out + at, root);
    store(steps + at, taken);
}

fn root_of(x: f32) -> (f32, i32) {
    if x <= 0.0 {
        return (x * 0.0, 0);
    }
    let (mut root, mut last, mut taken) = (x, x + 1.0, 0);
    while root < last {
        last = root;
        root = (root + x / root) * 0.5;
        taken += 1;
    }
    (root, taken)
}

#[test]
fn each_element_takes_its_own_steps() {
    for device in devices() {
        for block in [1, 8, 64, 256] {
            let x: Vec<f32> = (0..block).map(|at| (at * at) as f32 * 0.75 - 8.0).collect();
            let input = upload(&device, &x);
            let mut out = upload(&device, &vec![0.0_f32; block]);
            let mut steps = upload(&device, &vec![0_i32; block]);
            roots()
                .block(block)
                .run(&device, 1, (&input, &mut out, &mut steps))
                .expect("runs");
            let (out, steps) = (out.to_vec().expect("reads"), steps.to_vec().expect("reads"));
            for (at, &x) in x.iter().enumerate() {
                let (root, taken) = root_of(x);
                assert_eq!(out[at].to_bits(), root.to_bits(), "the root of {x}");
                assert_eq!(steps[at], taken, "the steps of {x}");
            }
        }
    }
}

/// The greatest common divisor of a column and a row, by a function that broadcasts and captures a scalar.
#[kernel]
fn divisors(out: PtrMut<i32>, offset: i32) {
    let (row, column) = (arange(0, 8).to::<i32>(), arange(0, 16).to::<i32>());
    let pairs = (row.expand(1) + offset, column.expand(0) + offset);
    let divisor = map_elementwise(pairs, |(a, b)| {
        let (mut a, mut b) = (a, b);
        while b != 0 {
            let rest = a % b;
            a = b;
            b = rest;
        }
        a - offset
    });
    store(
        out + arange(0, 8).expand(1) * 16 + arange(0, 16).expand(0),
        divisor,
    );
}

#[test]
fn sources_broadcast_and_scalars_are_captured() {
    fn divisor(a: i32, b: i32) -> i32 {
        if b == 0 { a } else { divisor(b, a % b) }
    }
    for device in devices() {
        let mut out = upload(&device, &[0_i32; 128]);
        divisors().run(&device, 1, (&mut out, 3)).expect("runs");
        let want: Vec<i32> = (0..128)
            .map(|at| divisor(at / 16 + 3, at % 16 + 3) - 3)
            .collect();
        assert_eq!(out.to_vec().expect("reads"), want);
    }
}

#[test]
fn what_a_map_does_knows_its_lines() {
    let func = roots().block(8).trace().expect("traces");
    let source: Vec<&str> = include_str!("each.rs").lines().collect();
    let text = |mnemonic: &str| {
        let insts = func.all_insts().into_iter();
        let mut insts = insts.filter(|&inst| func.op(inst).mnemonic() == mnemonic);
        let loc = insts.next().map(|inst| func.inst(inst).loc.clone());
        let loc = loc.unwrap_or_else(|| panic!("no `{mnemonic}`"));
        assert!(loc.file.ends_with("each.rs"), "{mnemonic}: {loc:?}");
        source[loc.line as usize - 1].trim()
    };
    assert_eq!(text("if"), "if x > 0.0 {");
    assert_eq!(text("while"), "while root < last {");
    assert_eq!(text("div"), "root = (root + x / root) * 0.5;");
    assert!(text("map").contains("map_elementwise"));
}

#[kernel]
fn reads_in_a_map(x: Ptr<f32>, out: PtrMut<f32>) {
    let at = arange(0, 8);
    store(out + at, map_elementwise(load(x + at), |v| v + load(x)));
}

#[kernel]
fn takes_a_tile_in_a_map(x: Ptr<f32>, out: PtrMut<f32>) {
    let at = arange(0, 8);
    let row = load(x + at);
    store(
        out + at,
        map_elementwise(row, |v| v + (row * 2.0).sum(0).scalar()),
    );
}

#[kernel]
fn shapes_that_do_not_meet(x: Ptr<f32>, out: PtrMut<f32>) {
    let (a, b) = (load(x + arange(0, 8)), load(x + arange(0, 16)));
    store(out + arange(0, 8), map_elementwise((a, b), |(a, b)| a + b));
}

fn message(result: exactile::Result<()>) -> String {
    result.expect_err("is refused").to_string()
}

#[test]
fn a_map_that_is_no_function_of_elements_is_refused() {
    let device = Device::cpu();
    let x = upload(&device, &[1.0_f32; 16]);
    let mut out = upload(&device, &[0.0_f32; 16]);
    let expect = |result: exactile::Result<()>, text: &str| {
        let found = message(result);
        assert!(
            found.contains(text) && found.contains("each.rs:"),
            "{found}"
        );
    };
    let kernel = reads_in_a_map();
    let found = kernel.run(&device, 1, (&x, &mut out));
    expect(found, "region of `map` has an effect: `load`");
    let kernel = takes_a_tile_in_a_map();
    let found = kernel.run(&device, 1, (&x, &mut out));
    expect(
        found,
        "`map` works on one element at a time, and `splat` on tiles",
    );
    let kernel = shapes_that_do_not_meet();
    let found = kernel.run(&device, 1, (&x, &mut out));
    expect(
        found,
        "`map_elementwise`: shapes [8] and [16] do not broadcast",
    );
}

/// Three inputs of one instruction, two results of a text with a register of its own, and a scalar.
#[kernel]
fn by_ptx<const BLOCK: usize>(x: Ptr<u32>, by: u32, out: PtrMut<u32>) {
    let at = arange(0, BLOCK);
    let (a, b, c) = (load(x + at), load(x + BLOCK + at), load(x + 2 * BLOCK + at));
    // SAFETY: the instruction has no effect but its result, the exclusive or of all three.
    let parity = unsafe {
        inline_ptx("lop3.b32 $0, $1, $2, $3, 0x96;", (a, b, c), |(a, b, c)| {
            a ^ b ^ c
        })
    };
    // SAFETY: the text writes the halves of a product and a register that it declares.
    let (low, high) = unsafe {
        inline_ptx(
            "{\n.reg .b64 %wide;\nmul.wide.u32 %wide, $2, $3;\nmov.b64 {$0, $1}, %wide;\n}",
            (parity, by),
            |(a, b)| (a * b, mulhi(a, b)),
        )
    };
    store(out + at, low);
    store(out + BLOCK + at, high);
}

#[test]
fn inline_ptx_has_the_bits_of_its_meaning() {
    for device in devices() {
        for block in [1, 32, 256] {
            let number = |at: usize| (at as u32).wrapping_mul(0x9e37_79b9) ^ 0x5bd1;
            let x: Vec<u32> = (0..3 * block).map(number).collect();
            let by = 0xdead_beef;
            let input = upload(&device, &x);
            let mut out = upload(&device, &vec![0_u32; 2 * block]);
            by_ptx()
                .block(block)
                .run(&device, 1, (&input, by, &mut out))
                .expect("runs at the exact level");
            let parity = |at: usize| x[at] ^ x[block + at] ^ x[2 * block + at];
            let wide = |at: usize| u64::from(parity(at)) * u64::from(by);
            let low = (0..block).map(|at| wide(at) as u32);
            let high = (0..block).map(|at| (wide(at) >> 32) as u32);
            let want: Vec<u32> = low.chain(high).collect();
            assert_eq!(out.to_vec().expect("reads"), want);
        }
    }
}

/// Four bytes in a register, as Triton's `pack=4` has them: a text with one result, and one with two.
#[kernel]
fn by_bytes(x: Ptr<u8>, y: Ptr<u8>, out: PtrMut<u8>) {
    let at = arange(0, 64);
    let [x, y] = [x, y].map(|it| pack_bytes(load(it + at)));
    // SAFETY: the text writes its result and a register that it declares.
    let shifted = unsafe {
        inline_ptx(
            "{\n.reg .b32 %wide;\nshl.b32 %wide, $1, 3;\nand.b32 $0, %wide, 0xf8f8f8f8;\n}",
            x,
            |x| (x << 3) & 0xf8f8_f8f8_u32,
        )
    };
    // SAFETY: the instructions have no effect but their results.
    let (both, one) = unsafe {
        inline_ptx(
            "and.b32 $0, $2, $3;\nxor.b32 $1, $2, $3;",
            (x, y),
            |(x, y)| (x & y, x ^ y),
        )
    };
    for (place, words) in [shifted, both, one].into_iter().enumerate() {
        store(out + place * 64 + at, unpack_bytes(words));
    }
}

#[test]
fn inline_ptx_takes_four_bytes_in_a_register() {
    let x: Vec<u8> = (0..64).map(|i| (i * 37 + 11) as u8).collect();
    let y: Vec<u8> = (0..64).map(|i| (i * 59 + 200) as u8).collect();
    let pairs = || x.iter().zip(&y);
    let shifted = x.iter().map(|x| x << 3);
    let both = pairs().map(|(x, y)| x & y);
    let want: Vec<u8> = shifted
        .chain(both)
        .chain(pairs().map(|(x, y)| x ^ y))
        .collect();
    for device in devices() {
        let (first, second) = (upload(&device, &x), upload(&device, &y));
        let mut out = upload(&device, &[0_u8; 192]);
        by_bytes()
            .run(&device, 1, (&first, &second, &mut out))
            .expect("runs at the exact level");
        assert_eq!(out.to_vec().expect("reads"), want, "{device}");
    }
}

#[kernel]
fn missing_operand(x: Ptr<u32>, out: PtrMut<u32>) {
    let at = arange(0, 8);
    // SAFETY: never run.
    let y = unsafe { inline_ptx("add.u32 $0, $1, $2;", load(x + at), |a| a + a) };
    store(out + at, y);
}

#[kernel]
fn bytes(x: Ptr<u8>, out: PtrMut<u8>) {
    let at = arange(0, 8);
    // SAFETY: never run.
    let y = unsafe { inline_ptx("add.u32 $0, $1, $1;", load(x + at), |a| a + a) };
    store(out + at, y);
}

#[kernel]
fn reduces(x: Ptr<u32>, out: PtrMut<u32>) {
    let at = arange(0, 8);
    // SAFETY: never run.
    let y = unsafe { inline_ptx("mov.u32 $0, $1;", load(x + at), |a| a.sum(0)) };
    store(out + at, y);
}

#[test]
fn a_text_that_does_not_fit_is_refused_with_its_line() {
    let device = Device::cpu();
    let check = |result: exactile::Result<()>, text: &str| {
        let found = message(result);
        assert!(
            found.contains(text) && found.contains("each.rs:"),
            "{found}"
        );
    };
    let x = upload(&device, &[1_u32; 8]);
    let mut out = upload(&device, &[0_u32; 8]);
    let found = missing_operand().run(&device, 1, (&x, &mut out));
    check(found, "names `$2`, with 1 results and 1 operands");
    let found = reduces().run(&device, 1, (&x, &mut out));
    check(found, "has `reduce`, which is no arithmetic of elements");
    let x = upload(&device, &[1_u8; 8]);
    let mut out = upload(&device, &[0_u8; 8]);
    let found = bytes().run(&device, 1, (&x, &mut out));
    check(
        found,
        "takes and gives numbers of 16, 32 or 64 bits, found `u8`",
    );
}
