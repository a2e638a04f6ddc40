//! Regions of elementwise ops on scalars, written out on tiles.

use std::collections::BTreeMap;

use crate::builder::Builder;
use crate::ir::{Func, Op, Region, Shape, Trait, Type, Value};

/// Whether a region has elementwise ops alone, none of which branches.
pub(super) fn is_straight(func: &Func, region: Region) -> bool {
    let insts = func.region(region).insts.iter();
    insts
        .map(|&inst| func.op(inst))
        .all(|op| op.is(Trait::elementwise) || matches!(op, Op::Constant(_) | Op::Yield(_)))
}

/// What a straight region yields for tiles of one shape in the place of its parameters.
pub(super) fn on_tiles(
    builder: &mut Builder,
    region: Region,
    shape: Shape,
    operands: &[Value],
) -> Vec<Value> {
    let loc = builder.loc().clone();
    let parameters = builder.parameters(region).into_iter();
    let mut known: BTreeMap<Value, Value> = parameters.zip(operands.iter().copied()).collect();
    let yielded = builder.func().yielded(region).to_vec();
    for inst in builder.func().region(region).insts.clone() {
        let mut data = builder.func().inst(inst).clone();
        if data.op.is(Trait::terminator) {
            continue;
        }
        for operand in data.op.operands() {
            spread(builder, shape, &mut known, operand);
        }
        data.op.map_operands(&mut |operand| known[&operand]);
        let types = data.results.iter().map(|&result| builder.ty(result));
        let types: Vec<Type> = types.map(|ty| ty.with_shape(shape)).collect();
        builder.set_loc(data.loc);
        let copied = builder.emit_unchecked(data.op, &types);
        let results = builder.results(copied).to_vec();
        known.extend(data.results.into_iter().zip(results));
    }
    builder.set_loc(loc);
    for &value in &yielded {
        spread(builder, shape, &mut known, value);
    }
    yielded.iter().map(|value| known[value]).collect()
}

/// Makes a tile of a scalar from outside.
fn spread(builder: &mut Builder, shape: Shape, known: &mut BTreeMap<Value, Value>, value: Value) {
    let spread = || builder.splat(value, shape);
    known.entry(value).or_insert_with(spread);
}
