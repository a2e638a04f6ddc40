//! Integers that the arguments of a launch decide, as the host computes them.

use crate::entity::EntityMap;
use crate::ir::{BinaryOp, DType, Func, Inst, Literal, Op, Value, op};
use crate::semantics;

/// The most ops of an expression: what takes more is not worth the time of a launch.
const MOST_OPS: usize = 32;

/// Arithmetic on the arguments of a launch, with the bits that a kernel computes.
#[derive(Clone, Debug)]
pub struct Expression {
    dtype: DType,
    node: Node,
}

#[derive(Clone, Debug)]
enum Node {
    Argument(usize),
    Constant(u64),
    Binary(BinaryOp, Box<[Expression; 2]>),
    Cast(Box<Expression>),
}

impl Expression {
    /// The integer that a value, or each element of a tile of equal numbers, is.
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

    /// The integer, given the number behind each argument.
    pub fn evaluate(&self, arguments: &impl Fn(usize) -> Option<Literal>) -> Option<i128> {
        Literal::from_bits(self.dtype, self.bits(arguments)?).integer()
    }

    fn bits(&self, arguments: &impl Fn(usize) -> Option<Literal>) -> Option<u64> {
        Some(match &self.node {
            Node::Argument(index) => {
                let literal = arguments(*index)?;
                (literal.dtype == self.dtype).then_some(literal.bits)?
            }
            Node::Constant(bits) => *bits,
            Node::Binary(op, operands) => {
                let [lhs, rhs] = &**operands;
                semantics::binary(*op, self.dtype, lhs.bits(arguments)?, rhs.bits(arguments)?)
            }
            Node::Cast(x) => semantics::cast(x.dtype, self.dtype, x.bits(arguments)?),
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
    fn read(&mut self, value: Value) -> Option<Expression> {
        self.left = self.left.checked_sub(1)?;
        let dtype = self
            .func
            .ty(value)
            .dtype()
            .filter(|dtype| dtype.is_integer())?;
        let Some(inst) = self.definitions[value] else {
            let node = Node::Argument(self.func.parameter_index(value)?);
            return Some(Expression { dtype, node });
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
        Some(Expression { dtype, node })
    }
}
