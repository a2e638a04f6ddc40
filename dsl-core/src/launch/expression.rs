//! Scalars that a launch decides, as the host computes them: what code of a kernel takes, and what it may
//! rely on, is evaluated on the same inputs.

use super::Launch;
use crate::entity::EntityMap;
use crate::ir::{BinaryOp, DType, Func, Inst, Literal, Op, Value, op};
use crate::semantics;

/// The most ops of an expression: what takes more is not worth the time of a launch.
const MOST_OPS: usize = 32;

/// A scalar that a launch holds, as it is handed to code. Parameters are counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Input {
    /// The bits of the number behind this parameter.
    Number(usize),
    /// The address of the memory behind this parameter.
    Address(usize),
    /// How many elements of this type the memory behind this parameter holds.
    Length(usize, DType),
    /// How many programs there are along this axis of the grid.
    Grid(usize),
    /// The address of the record of errors.
    ErrorRecord,
}

/// Arithmetic on the inputs of a launch, with the bits that a kernel computes: integers wrap at their width.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LaunchExpression {
    dtype: DType,
    node: Node,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Node {
    Input(Input),
    Constant(u64),
    Binary(BinaryOp, Box<[LaunchExpression; 2]>),
    Cast(Box<LaunchExpression>),
}

impl LaunchExpression {
    /// The integer that a value, or each element of a tile of equal numbers, is; nothing where more than the
    /// launch decides it.
    #[must_use]
    pub fn of(
        func: &Func,
        definitions: &EntityMap<Value, Option<Inst>>,
        value: Value,
    ) -> Option<Self> {
        Reader {
            func,
            definitions,
            left: MOST_OPS,
        }
        .read(value)
    }

    /// The integer; nothing where the launch lacks an input, or has one of another type.
    #[must_use]
    pub fn evaluate(&self, launch: &Launch<'_>) -> Option<i128> {
        Literal::from_bits(self.dtype, self.bits(launch)?).integer()
    }

    fn bits(&self, launch: &Launch<'_>) -> Option<u64> {
        Some(match &self.node {
            Node::Input(Input::Number(index)) => launch.number(*index, self.dtype)?,
            Node::Input(input) => launch.input(*input)?,
            Node::Constant(bits) => *bits,
            Node::Binary(op, operands) => {
                let [lhs, rhs] = &**operands;
                semantics::binary(*op, self.dtype, lhs.bits(launch)?, rhs.bits(launch)?)
            }
            Node::Cast(x) => semantics::cast(x.dtype, self.dtype, x.bits(launch)?),
        })
    }
}

struct Reader<'a> {
    func: &'a Func,
    definitions: &'a EntityMap<Value, Option<Inst>>,
    /// How many ops there may be yet.
    left: usize,
}

impl Reader<'_> {
    fn read(&mut self, value: Value) -> Option<LaunchExpression> {
        self.left = self.left.checked_sub(1)?;
        let dtype = self
            .func
            .ty(value)
            .dtype()
            .filter(|dtype| dtype.is_integer())?;
        let Some(inst) = self.definitions[value] else {
            let node = Node::Input(Input::Number(self.func.parameter_index(value)?));
            return Some(LaunchExpression { dtype, node });
        };
        let op = self.func.op(inst);
        if let Some(x) = op.rearranged() {
            return self.read(x);
        }
        let node = if let Op::Constant(op::Constant { value }) = op {
            Node::Constant(value.bits)
        } else if let Op::Binary(op::Binary { op, lhs, rhs }) = op {
            Node::Binary(*op, Box::new([self.read(*lhs)?, self.read(*rhs)?]))
        } else if let Op::Cast(op::Cast { x }) = op {
            Node::Cast(Box::new(self.read(*x)?))
        } else {
            return None;
        };
        Some(LaunchExpression { dtype, node })
    }
}
