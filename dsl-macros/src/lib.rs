//! The `#[kernel]` and `#[device]` attributes, `#[derive(Carry)]` and `#[derive(KernelArguments)]`.
//!
//! Four steps, one module each: [`parse`] reads the tokens into the typed [`model`], [`check`]
//! rejects what the language cannot mean, [`rewrite`] replaces comparisons and control flow by
//! calls, once [`exits`] has made conditions of what leaves a loop, [`generate`] writes the result. Errors are collected in a [`context::Context`], so all
//! mistakes of a function come at once. Everything that Rust can overload stays as the user wrote
//! it, and no output of these macros contains `unsafe` but around the calls for which the user wrote it.

#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the syntax of Rust is enums of another crate, of which a rule names a few"
)]

mod arguments;
mod carry;
mod check;
mod context;
mod early_return;
mod ends;
mod exits;
mod generate;
mod held;
mod launches;
mod meta;
mod model;
mod names;
mod outcomes;
mod parse;
mod rewrite;

use context::Context;
use proc_macro2::TokenStream;

/// Turns a function into a kernel.
///
/// Type parameters stay; each `const NAME: usize` parameter becomes a setter of the kernel, in snake case and with the
/// default that `#[kernel(NAME = 128)]` gives. The call `name::<T>()` gives the kernel, `name::<T>().block(64).warps(4)`
/// sets two numbers of it, and `#[kernel(warps = 8)]` sets a default of the schedule. What has no default must be set.
/// The kernel traces the body when it is compiled for a device.
///
/// `#[kernel(grid = n.div_ceil(BLOCK))]` states the grid of launches that pass `()` for one, and
/// `#[kernel(constraint = BLOCK >= columns)]` what must hold. Both are Rust of the host and see the const generics and the
/// parameters: integers as `usize`, tensors with `extent(axis)`, pointers with `len()`.
///
/// `#[meta(16..=256)] const BLOCK: usize` says which numbers a tuner tries: powers of two, steps of
/// `#[meta(16..=256, step = 16)]`, or those of a list, `#[meta(48, 96)]`. With `#[kernel(BLOCK = ..=256)]` that default is the
/// most: a launch takes a smaller one of these numbers where the stated grid would leave multiprocessors without a program.
///
/// A kernel is a function of its arguments and its configuration. The body runs on the host to be traced, more
/// than once: state of the host that a loop or branch changes, such as a `Cell`, is an error where the code
/// shows it, and so are clocks and random numbers of the host.
///
/// The bits of a kernel may not follow its tile sizes: a loop over the tiles of an axis that adds what each
/// tile gives to a carried float is an error, unless `#[kernel(order = "tile")]` declares that each tile
/// size has a result of its own.
///
/// Integers wrap. With `#[kernel(overflow = "checked")]` each `+`, `-` and `*` in the text of the kernel whose integers overflow
/// fails the launch as `device_assert` does, with its line. Functions that the kernel calls and combines are not its text.
#[proc_macro_attribute]
pub fn kernel(
    arguments: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    expand(arguments.into(), item.into(), |context, arguments, item| {
        let mut kernel = parse::kernel(context, arguments, item)?;
        check::kernel(context, &kernel);
        rewrite::kernel(context, &mut kernel);
        Some(generate::kernel(&kernel))
    })
}

/// Lets a function that kernels call hold comparisons and control flow over device values.
///
/// Plain Rust functions over handles need no attribute. `#[device(overflow = "checked")]` checks its sums, differences and
/// products of integers as that of `#[kernel]` does.
#[proc_macro_attribute]
pub fn device(
    arguments: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    expand(arguments.into(), item.into(), |context, arguments, item| {
        let mut device = parse::device(context, arguments, item)?;
        check::device(context, &device);
        rewrite::device(context, &mut device);
        Some(generate::device(&device))
    })
}

/// Lets loops and branches carry a structure, and device functions return one from their branches.
///
/// Every field is a tile, a scalar, a pointer, or an array, tuple, vector or option of what is carried.
/// A number of the host stays outside of it, since it could change in a body that is traced once.
#[proc_macro_derive(Carry)]
pub fn carry(item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    expand(TokenStream::new(), item.into(), |context, _, item| {
        carry::derive(context, item)
    })
}

/// Lets a kernel take a structure of pointers, tensors and scalars as one parameter.
///
/// The fields are what the body sees: `Ptr<T>`, `Tensor<T, RANK>`, `Scalar<T>`, options, tuples and arrays of
/// these, and other such structures. A launch passes the structure `NameArguments`, which is made with it: its
/// fields have the same names and take what a launch takes for parameters of these types.
#[proc_macro_derive(KernelArguments)]
pub fn kernel_arguments(item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    expand(TokenStream::new(), item.into(), |context, _, item| {
        arguments::derive(context, item)
    })
}

fn expand(
    arguments: TokenStream,
    item: TokenStream,
    steps: impl FnOnce(&Context, TokenStream, TokenStream) -> Option<TokenStream>,
) -> proc_macro::TokenStream {
    let context = Context::new();
    let output = steps(&context, arguments, item);
    match (context.check(), output) {
        (Ok(()), Some(output)) => output.into(),
        (Ok(()), None) => TokenStream::new().into(),
        (Err(errors), _) => errors.into(),
    }
}
