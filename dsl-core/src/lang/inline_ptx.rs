//! PTX for a GPU with its meaning for all others.

use std::panic::Location;

use super::bodies;
use super::context::{self, Context};
use super::operands::{Operands, Results, failed, in_common_shape};
use crate::ir::{Op, Trait, Value, op};

/// What PTX gives for each element of one or several tiles and scalars, and `meaning` where no GPU runs it.
///
/// `exactile::inline_ptx` is the function for users: it is unsafe, and a GPU runs no text that was not given to it.
/// The types are those of its documentation.
///
/// # Errors
/// A text that names other results and operands than there are, numbers of 8 bits, and a meaning that is no
/// arithmetic of elements.
#[track_caller]
pub fn inline_ptx<S: Operands, R: Results>(
    text: &str,
    operands: S,
    mut meaning: impl FnMut(S::Tiles) -> R,
) -> R::Tiles {
    let location = Location::caller();
    let opened = context::with(location, |context| {
        let (values, shape) = in_common_shape("inline_ptx", context, &operands.handles())?;
        let handles = values.iter().map(|&it| context.handle(it));
        let handles: Vec<_> = handles.collect();
        Some((values, shape, handles, place(context)))
    });
    let Some((values, shape, handles, before)) = opened.flatten() else {
        return failed::<R>(location);
    };
    let meant = bodies::repeated(location, || meaning(S::tiles(&handles)).handles());
    let results = context::with(location, |context| {
        check(context, before);
        let meant = meant.iter().map(|&it| context.value(it));
        let meant: Vec<Value> = meant.collect();
        let meaning = meant
            .iter()
            .map(|&it| context.broadcast("inline_ptx", it, shape));
        let meaning: Vec<Value> = meaning.collect();
        let result = |result| {
            let value = context.builder.value(Op::InlinePtx(op::InlinePtx {
                meaning: meaning.clone(),
                operands: values.clone(),
                result,
                text: text.to_string(),
            }));
            context.handle(value)
        };
        (0..).take(meaning.len()).map(result).collect::<Vec<_>>()
    });
    results.map_or_else(|| failed::<R>(location), |results| R::tiles(&results))
}

/// How many instructions the current region has.
fn place(context: &Context) -> usize {
    let builder = &context.builder;
    builder.func().region(builder.region()).insts.len()
}

/// Whether all instructions since then are arithmetic of elements.
fn check(context: &mut Context, before: usize) {
    let builder = &context.builder;
    let func = builder.func();
    let traced = &func.region(builder.region()).insts[before..];
    let mut ops = traced.iter().map(|&inst| func.op(inst));
    if let Some(other) = ops.find(|op| !op.is(Trait::pointwise)) {
        let name = other.mnemonic();
        context.builder.error(format!(
            "the meaning of `inline_ptx` has `{name}`, which is no arithmetic of elements"
        ));
    }
}
