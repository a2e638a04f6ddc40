//! Tiles as loop nests: what one CPU thread does for one program.
//!
//! Numbers are computed where they are defined. A tile is either *kept* in scratch memory, or its
//! elements are recomputed wherever they are used: pulled, through elementwise and shape ops, into
//! the loop nest of the op that needs them. Kept are results of reductions, dots and control flow,
//! loads whose memory changes before a use, and what is expensive and used often ([`plan`]).
//! Innermost loops work on short vectors along the last axes.
//!
//! Pulling never changes a bit: every element is computed by the same operations, from memory that
//! has not changed since the program order read it.

mod cost;
mod cut;
mod dot;
mod index;
mod lookup;
mod lowerer;
mod masks;
mod memory;
mod plan;
mod pull;
mod reduce;
mod scan;
mod sort;
mod sort_pass;
mod statements;
mod tensor_dot;
mod versions;

#[cfg(test)]
mod tests;

use crate::builder::Builder;
use crate::diagnostic::Diagnostics;
use crate::ir::{Stage, Type, Value};
use crate::passes::allocate::allocate;
use crate::target::{Options, Target};
use crate::verify::{self, BlockFunc, LaneFunc};

use lowerer::{Binding, Lowerer};

/// Lowers a kernel to the work of one CPU thread: a lane function with `warps` 0, whose tiles are
/// loop nests over scratch memory. Derived ops must have been replaced by their definitions.
pub(crate) fn lower(
    func: &BlockFunc,
    target: &Target,
    options: &Options,
) -> Result<LaneFunc, Diagnostics> {
    let mut builder = Builder::new(&func.name, Stage::Lane);
    let mut parameters: Vec<(Value, Value, Type)> = Vec::new();
    for (parameter, &value) in func.parameters.iter().zip(func.arguments()) {
        let ty = func.ty(value);
        let lowered = builder.parameter(parameter.clone(), ty);
        parameters.push((value, lowered, ty));
    }
    let plan = plan::Plan::new(func, target, options.bounds);
    let mut lowerer = Lowerer::new(func, target, builder, plan, options.bounds);
    for (value, lowered, ty) in parameters {
        if ty.pointee().is_some() {
            lowerer.pointers.insert(value, lowered);
        } else {
            let scalar = Binding::Scalar(index::Scalar::Emitted(lowered));
            lowerer.bindings.insert(value, scalar);
        }
    }
    lowerer.region(func.body());
    let mut func = lowerer.finish().finish()?;
    allocate(&mut func, target)?;
    verify::placement(&func)?;
    verify::lane(func)
}
