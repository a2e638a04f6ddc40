//! Which tiles are made where they are used, and which are computed once.

use crate::entity::{Entity, EntityMap};
use crate::ir::{Func, Inst, Op, Trait, Value};
use crate::passes::long_sums::LONGEST_CHAIN;

/// How a tile comes into being.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// Made of constants, indices and scalars: repeated wherever it is used.
    Cheap,
    /// The elements of another tile under other indices.
    View,
    /// Computed once, in the layout of its value.
    Computed,
}

/// The origins of all values.
pub(super) struct Origins {
    pub(super) of: EntityMap<Value, Origin>,
    /// Tiles that are computed only because they end a long chain of others that are not.
    pub(super) ends: Vec<Value>,
}

/// How the values come into being that `insts`, in program order, define.
pub(super) fn origins(func: &Func, insts: &[Inst]) -> Origins {
    let mut origins = Origins {
        of: EntityMap::filled(func.value_count(), Origin::Computed),
        ends: Vec::new(),
    };
    let mut chains = vec![0; func.value_count()];
    for &inst in insts {
        let data = func.inst(inst);
        let origin = origin(&data.op, &origins.of);
        let chain = || {
            data.op
                .operands()
                .into_iter()
                .map(|operand| chains[operand.index()])
        };
        let chain: u32 = match origin {
            Origin::Cheap | Origin::View => chain().max().unwrap_or(0) + 1,
            Origin::Computed => 0,
        };
        for &result in &data.results {
            let scalar = func.ty(result).is_scalar();
            if scalar && origin == Origin::Cheap {
                continue;
            }
            if chain > LONGEST_CHAIN {
                origins.ends.push(result);
                continue;
            }
            origins.of[result] = origin;
            chains[result.index()] = chain;
        }
    }
    origins
}

fn origin(op: &Op, origins: &EntityMap<Value, Origin>) -> Origin {
    let cheap = |value: &Value| origins[*value] == Origin::Cheap;
    if matches!(op, Op::Constant(_) | Op::Arange(_) | Op::Splat(_)) {
        return Origin::Cheap;
    }
    if let Some(shape) = op.shape() {
        return if cheap(&shape.x()) {
            Origin::Cheap
        } else {
            Origin::View
        };
    }
    if op.is(Trait::elementwise) && op.operands().iter().all(cheap) {
        Origin::Cheap
    } else {
        Origin::Computed
    }
}
