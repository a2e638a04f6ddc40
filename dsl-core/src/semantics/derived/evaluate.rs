//! Runs a definition on one number.

use std::sync::LazyLock;

use super::{Domain, define};
use crate::builder::Builder;
use crate::entity::Entity;
use crate::ir::{DType, Func, Inst, Kind, Literal, Op, Stage, UnaryOp, Value};
use crate::semantics::{binary, bitcast, cast, compare, ternary, unary};

/// The definition of a derived function of a data type, ready to run on numbers.
#[derive(Debug)]
pub struct Definition {
    func: Func,
    result: Value,
    /// What the result depends on, constants aside, in order.
    steps: Vec<Inst>,
    /// For each value its bits, as far as they are known before the run.
    start: Vec<u64>,
}

impl Definition {
    /// The definition of `op` for the float type `dtype`.
    pub fn new(op: UnaryOp, dtype: DType) -> Self {
        Self::within(op, dtype, Domain::Anything)
    }

    /// The definition for arguments of a domain.
    pub fn within(op: UnaryOp, dtype: DType, domain: Domain) -> Self {
        let mut builder = Builder::new(op.mnemonic(), Stage::Block);
        let x = builder.scalar_parameter("x", dtype);
        let result = define(&mut builder, op, x, domain);
        let func = builder
            .finish()
            .expect("broken invariant: definitions of float types are well typed");
        let mut live = vec![false; func.value_count()];
        live[result.index()] = true;
        let mut steps = Vec::new();
        let mut start = vec![0; func.value_count()];
        for &inst in func.region(func.body()).insts.iter().rev() {
            let data = func.inst(inst);
            let defined = data.results[0].index();
            match &data.op {
                Op::Constant { value } => start[defined] = value.bits,
                op if live[defined] => {
                    op.visit_operands(&mut |operand| live[operand.index()] = true);
                    steps.push(inst);
                }
                _ => {}
            }
        }
        steps.reverse();
        Self {
            func,
            result,
            steps,
            start,
        }
    }

    /// The function of one parameter; its last value is the result.
    pub fn func(&self) -> &Func {
        &self.func
    }

    /// The function at `x`.
    pub fn evaluate(&self, x: u64) -> u64 {
        let func = &self.func;
        let mut values = self.start.clone();
        values[func.arguments()[0].index()] = x;
        for &inst in &self.steps {
            let data = func.inst(inst);
            let result = data.results[0];
            let at = |value: &Value| {
                let dtype = func.ty(*value).dtype();
                let dtype = dtype.expect("broken invariant: definitions hold numbers");
                Literal::from_bits(dtype, values[value.index()])
            };
            values[result.index()] = apply(&data.op, at(&result).dtype, &at);
        }
        values[self.result.index()]
    }
}

/// An elementwise op.
fn apply(op: &Op, to: DType, at: &dyn Fn(&Value) -> Literal) -> u64 {
    let dtype = |value| at(value).dtype;
    let bits = |value| at(value).bits;
    match op {
        Op::Unary { op, x } => unary(*op, dtype(x), bits(x)),
        Op::Binary { op, lhs, rhs } => binary(*op, dtype(lhs), bits(lhs), bits(rhs)),
        Op::Ternary { op, a, b, c } => ternary(*op, dtype(a), bits(a), bits(b), bits(c)),
        Op::Compare { op, lhs, rhs } => u64::from(compare(*op, dtype(lhs), bits(lhs), bits(rhs))),
        Op::Cast { x } => cast(dtype(x), to, bits(x)),
        Op::Bitcast { x } => bitcast(dtype(x), to, bits(x)),
        Op::Select {
            condition,
            on_true,
            on_false,
        } => bits(if bits(condition) != 0 {
            on_true
        } else {
            on_false
        }),
        op => unreachable!("broken invariant: `{}` is in no definition", op.mnemonic()),
    }
}

/// `op`, derived or approximate, at one number of a float type.
pub fn evaluate(op: UnaryOp, dtype: DType, x: u64) -> u64 {
    let compute = dtype.compute();
    let found = DEFINITIONS
        .iter()
        .find(|(name, computed, _)| (*name, *computed) == (op, compute));
    let (_, _, definition) = found.expect("broken invariant: a derived op of a float type");
    cast(compute, dtype, definition.evaluate(cast(dtype, compute, x)))
}

/// The definitions that need no cast.
static DEFINITIONS: LazyLock<Vec<(UnaryOp, DType, Definition)>> = LazyLock::new(|| {
    let mut definitions = Vec::new();
    for &op in UnaryOp::ALL {
        for dtype in [DType::F32, DType::F64] {
            if op.kind() != Kind::Primitive && op.accepts().admits(dtype) {
                definitions.push((op, dtype, Definition::new(op, dtype)));
            }
        }
    }
    definitions
});
