//! Functions of one element with branches and loops of their own, applied to tiles.

use std::panic::Location;

use super::operands::{Operands, Results, failed, in_common_shape};
use super::{bodies, context};
use crate::ir::{Op, Type, Value, op};

/// What `function` gives for each element of one or several tiles: a closure over scalars, which may branch and
/// repeat by what an element is, each element as often as it needs.
///
/// The function takes a scalar of each source, a tuple of them for a tuple, and gives a scalar or a tuple of scalars;
/// the result is a tile of each. Shapes broadcast as those of arithmetic do. The function reads and writes no memory
/// and works on no tile. Bits are those of the function of each element, on all devices. Warps go on until their last
/// element has ended.
///
/// # Errors
/// Loads, stores and tiles in the function, and more than half the elements that a tile may have.
#[track_caller]
pub fn map_elementwise<S: Operands, R: Results>(
    sources: S,
    mut function: impl FnMut(S::Scalars) -> R,
) -> R::Tiles {
    let location = Location::caller();
    let opened = context::with(location, |context| {
        let (values, shape) = in_common_shape("map_elementwise", context, &sources.handles())?;
        let elements = values.iter().map(|&value| context.ty(value).dtype());
        let elements: Option<Vec<Type>> = elements.map(|it| it.map(Type::scalar)).collect();
        let region = context.builder.new_region(&elements?);
        let parameters = context.builder.parameters(region).into_iter();
        let parameters: Vec<_> = parameters.map(|it| context.handle(it)).collect();
        let outer = context.builder.enter(region);
        Some((values, shape, region, outer, parameters))
    });
    let Some((values, shape, region, outer, parameters)) = opened.flatten() else {
        return failed::<R>(location);
    };
    let yielded = bodies::function(location, || function(S::scalars(&parameters)).handles());
    let results = context::with(location, |context| {
        let yielded: Vec<Value> = yielded.iter().map(|&it| context.value(it)).collect();
        let op = Op::Yield(op::Yield { values: yielded });
        context.builder.emit(op, &[]);
        context.builder.enter(outer);
        let declared = R::dtypes().into_iter();
        let declared: Vec<Type> = declared.map(|dtype| Type::tile(dtype, shape)).collect();
        let map = Op::Map(op::Map {
            sources: values,
            body: region,
        });
        let inst = context.builder.emit(map, &declared);
        let results = context.builder.results(inst).to_vec().into_iter();
        results.map(|it| context.handle(it)).collect::<Vec<_>>()
    });
    results.map_or_else(|| failed::<R>(location), |results| R::tiles(&results))
}
