//! Refusals of launches whose words no other test shows: of arguments, grids, and what runs and compares.

use std::collections::BTreeMap;

use exactile::internals::{Contents, write_files};
use exactile::prelude::*;
use exactile::text_kernel::{TextArgument, TextKernel};
use exactile::{Array, DType, ListingStage, Result, Target};
use exactile_core::interp::block;
use exactile_core::ir::{Access, Literal};
use exactile_core::launch::{Argument, Passed, check_arguments, parameters};
use exactile_core::target::{Bounds, Options};
use exactile_core::text::parse;
use exactile_core::verify::{self, BlockFunc};

const TEXT: &str = "func @f block (%x: ptr<f32> write divisor=16, %n: i64 least=1 most=9) {
  %at = constant value=i64(0) : i64
  %v = load %x, %at : f32
  store %x, %at, %v
}";

fn func(text: &str) -> BlockFunc {
    let func = parse(text, "words.bir").unwrap_or_else(|error| panic!("{error}"));
    verify::block(func).unwrap_or_else(|error| panic!("{error}"))
}

fn says(error: &str, message: &str) {
    assert!(error.contains(message), "{message}\nis not in\n{error}");
}

fn refuses<T>(result: Result<T>, message: &str) {
    says(&result.err().expect("is refused").to_string(), message);
}

#[test]
fn arguments_fit_their_parameters() {
    let func = func(TEXT);
    let memory = |address, bytes, access| Passed::Memory {
        address,
        bytes,
        access,
    };
    let (good, count) = (
        memory(64, 8, Access::ReadWrite),
        Passed::Scalar(Literal::from_bits(DType::I64, 3)),
    );
    let single = Passed::Scalar(Literal::from_bits(DType::F32, 0));
    let many = Passed::Scalar(Literal::from_bits(DType::I64, 10));
    for (arguments, message) in [
        (vec![good], "kernel `f` takes 2 arguments, found 1"),
        (
            vec![memory(64, 8, Access::Read), count],
            "argument `x`: found read-only memory, expected writable memory",
        ),
        (
            vec![single, count],
            "argument `x`: found a scalar `f32`, expected `ptr<f32>`",
        ),
        (
            vec![good, good],
            "argument `n`: found memory, expected a scalar `i64`",
        ),
        (
            vec![memory(64, 7, Access::ReadWrite), count],
            "argument `x`: found 7 bytes, expected whole elements of `f32`",
        ),
        (
            vec![memory(68, 8, Access::ReadWrite), count],
            "argument `x`: found an unaligned address, expected an address divisible by 16",
        ),
        (
            vec![good, single],
            "argument `n`: found a scalar `f32`, expected `i64`",
        ),
        (
            vec![good, many],
            "argument `n`: found `10`, expected an integer from 1 to 9",
        ),
    ] {
        let found = check_arguments("f", parameters(&func), &arguments);
        says(&found.expect_err("is refused").to_string(), message);
    }
}

#[test]
fn grids_have_programs() {
    let func = func("func @f block () {\n}");
    let none: &mut [Argument<'_>] = &mut [];
    let fault = block::run(&func, [2, 0, 1], none).expect_err("is refused");
    says(&fault.to_string(), "an extent is zero");
    let fault = block::run(&func, [u32::MAX, u32::MAX, 1], none).expect_err("is refused");
    says(&fault.to_string(), "it has too many programs");
    let fault = block::run_programs(&func, [2, 1, 1], none, [2]).expect_err("is refused");
    says(&fault.to_string(), "program 2 is not one of 2");
}

#[test]
fn atomics_of_programs_have_one_op() {
    let kernel = TextKernel::parse(
        "func @f block (%x: ptr<i32> write) {
           %at = constant value=i64(0) : i64
           %program = program_id axis=0 : i64
           %one = constant value=i32(1) : i32
           %first = eq %program, %at : bool
           if %first () {
             atomic_reduce %x, %at, %one, op=add
             yield []
           } () {
             atomic_reduce %x, %at, %one, op=max
             yield []
           }
         }",
        "words.bir",
        Options::default(),
    );
    let kernel = kernel.expect("is valid");
    let x = TextArgument::Array(Array::zeros(DType::I32, [1]).expect("fits"));
    let mut arguments = BTreeMap::from([("x".to_string(), x)]);
    let found = kernel.run(&Device::interpreter(), [2, 1, 1], &mut arguments);
    refuses(found, "which program 0 combined by another op");
}

#[test]
fn kernels_of_text_take_arguments_by_name() {
    let parse = |text: &str, options| TextKernel::parse(text, "words.bir", options);
    refuses(
        parse("func @f lane () {\n}", Options::default()),
        "`words.bir` holds IR of stage `lane`, expected `block`",
    );
    let run = |options, arguments: &[(&str, TextArgument)]| {
        let named = arguments
            .iter()
            .map(|(name, it)| (name.to_string(), it.clone()));
        let mut named: BTreeMap<String, TextArgument> = named.collect();
        let kernel = parse(TEXT, options).expect("is valid");
        kernel.run(&Device::cpu(), [1, 1, 1], &mut named)
    };
    let unchecked = Options {
        bounds: Bounds::Unchecked,
        ..Options::default()
    };
    let plain = Options::default();
    let count = TextArgument::Scalar(Literal::from_bits(DType::I64, 3));
    let wrong = TextArgument::Array(Array::zeros(DType::I8, [4]).expect("fits"));
    refuses(
        run(unchecked, &[]),
        "code without bounds checks needs an unchecked launch",
    );
    refuses(
        run(plain, &[("y", count.clone())]),
        "there is no parameter `y`",
    );
    refuses(
        run(plain, &[("x", wrong)]),
        "argument `x`: found an array of `i8`, expected `ptr<f32>`",
    );
    refuses(
        run(plain, &[("x", count)]),
        "argument `x`: found a scalar `i64`, expected `ptr<f32>`",
    );
}

#[kernel]
fn copies(x: Ptr<f32>, out: PtrMut<f32>) {
    store(out, load(x));
}

#[test]
fn stages_and_machines_are_those_that_there_are() -> Result<()> {
    let device = Device::cpu();
    let x = Buffer::<f32>::zeros(&device, 1)?;
    let mut out = Buffer::<f32>::zeros(&device, 1)?;
    let inspection = copies().inspect(&device, 1, (&x, &mut out))?;
    refuses(inspection.text(ListingStage::Lane), "` has no stage `");
    refuses(
        inspection.after("nowhere"),
        "`nowhere` is no stage of the pipeline for `",
    );
    refuses(
        inspection.resources(),
        "is on no GPU that could tell its resources",
    );
    let unknown = Target {
        name: "unknown",
        ..Target::SM_80
    };
    refuses(
        copies().compile_times(&unknown),
        "with these properties, expected one of `Target::all()`",
    );
    let folder = std::env::temp_dir();
    refuses(
        exactile::built::Build::new(folder, &Target::CPU),
        "is made where it runs, and never built ahead of time",
    );
    Ok(())
}

#[test]
fn comparisons_say_how_much_differs() -> Result<()> {
    let equal = exactile::compare(&[1.0f32, f32::NAN], &[1.0f32, f32::NAN])?;
    says(
        &equal.to_string(),
        "all 2 elements of `f32` are equal in bits",
    );
    let apart = exactile::compare(&[1.0f32, f32::NAN], &[1.5f32, 2.0])?;
    let text = apart.to_string();
    says(&text, "2 of 2 elements of `f32`");
    says(&text, "` differ in bits: max ");
    says(&text, ", 1 NaN on one side only");
    Ok(())
}

#[kernel(SIZE = 1)]
fn fills<const SIZE: usize>(out: PtrMut<f32>) {
    let at = arange(0, SIZE);
    let x = load(out + at);
    store(out + at, x + 1.0);
}

#[kernel]
fn multiplies<T: Float>(a: Ptr<T>, out: PtrMut<f32>) {
    let at = arange(0, 1024).reshape([32, 32]);
    let sum = zeros::<f32>([32, 32]);
    store(
        out + at,
        dot_with(Precision::Hopper, load(a + at), load(a + at), sum),
    );
}

#[kernel]
fn counts(counter: PtrMut<i32>, out: PtrMut<i32>) {
    store(out + program_id(0), atomic_fetch_add(counter, 1));
}

/// What a GPU cannot compute, and what no exact kernel may, with what to write instead.
#[test]
fn compilations_name_the_remedy() -> Result<()> {
    let device = Device::lanes();
    let large = fills().size(1 << 20).listing(ListingStage::Lane);
    refuses(large, "elements at most");
    let bytes = multiplies::<F8E4M3>().listing(ListingStage::Lane);
    let message = bytes.expect_err("is refused").to_string();
    says(
        &message,
        "a GPU computes `dot` with precision `hopper` of 8-bit floats by groups of four warps",
    );
    says(
        &message,
        "take such tiles and warps; or precision `ieee`, or `f16` operands, which have other bits",
    );
    let a = Buffer::<half::f16>::zeros(&device, 1024)?;
    let mut out = Buffer::<f32>::zeros(&device, 1024)?;
    let ampere = multiplies::<half::f16>().inspect(&device, 1, (&a, &mut out))?;
    let ampere = ampere.on(Target::SM_80).text(ListingStage::Lane);
    refuses(
        ampere,
        "take precision `ieee`, `dot_with(Precision::Ieee, ..)`, which every machine computes",
    );
    refuses(
        counts().check(),
        "combine without a result (`atomic_add` and its like), count in one launch",
    );
    Ok(())
}

#[kernel]
fn prints(x: Ptr<f32>) {
    device_print("x", load(x));
}

#[test]
fn captures_hold_launches_alone() -> Result<()> {
    let device = Device::cpu();
    let stream = device.stream()?;
    let x = Buffer::<f32>::zeros(&device, 1)?;
    let mut out = Buffer::<f32>::zeros(&device, 1)?;
    let graph = stream.capture(|stream| copies().launch(stream, 1, (&x, &mut out)))?;
    let mut said = Vec::new();
    let _graph = stream.capture(|stream| {
        let replay = graph.replay(stream, (&x, &mut out));
        said.push(("a replay of a graph cannot be captured: ", replay));
        let prints = prints().launch(stream, 1, (&x,));
        said.push(("`, which prints and is waited for,", prints));
        let run = copies().run(&device, 1, (&x, &mut out));
        said.push(("a run of `copies`, which is waited for,", run));
        Ok(())
    })?;
    for (message, found) in said {
        let text = found.expect_err("is refused").to_string();
        says(&text, message);
        says(
            &text,
            "cannot be captured: a graph holds launches alone, so do it before the capture",
        );
    }
    refuses(
        graph.replay(&stream, &x),
        "which are in no array that the replay is handed for that: hand it ",
    );
    Ok(())
}

#[test]
fn files_are_written_once() {
    let fill = |_: &mut dyn std::io::Write| Ok(());
    let path = std::env::temp_dir().join("exactile-words");
    let file = || Contents {
        path: &path,
        fill: &fill,
    };
    refuses(
        write_files(&[file(), file()]),
        "two results go to this file",
    );
    let folder = Contents {
        path: std::path::Path::new("nowhere/.."),
        fill: &fill,
    };
    refuses(write_files(&[folder]), "not the name of a file");
}
