//! Scalars that a launch decides, as the host computes them: what code of a kernel takes, and what it may
//! rely on, is evaluated on the same inputs.

use std::fmt;
use std::str::SplitWhitespace;

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
    /// The number behind this parameter.
    Number(usize),
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

    /// Whether it is made of sums, differences and products alone, as code computes them too.
    #[must_use]
    pub fn has_only_sums(&self) -> bool {
        match &self.node {
            Node::Number(_) | Node::Constant(_) => true,
            Node::Cast(x) => x.has_only_sums(),
            Node::Binary(op, operands) => {
                let plain = matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul);
                plain && operands.iter().all(Self::has_only_sums)
            }
        }
    }

    /// The integer; nothing where the launch lacks an input, or has one of another type.
    #[must_use]
    pub fn evaluate(&self, launch: &Launch<'_>) -> Option<i128> {
        let bits = match self.node {
            // As most are, which a launch evaluates many of.
            Node::Number(index) => launch.number(index, self.dtype)?,
            Node::Constant(bits) => bits,
            Node::Binary(..) | Node::Cast(_) => self.bits(launch)?,
        };
        Literal::from_bits(self.dtype, bits).integer()
    }

    fn bits(&self, launch: &Launch<'_>) -> Option<u64> {
        Some(match &self.node {
            Node::Number(index) => launch.number(*index, self.dtype)?,
            Node::Constant(bits) => *bits,
            Node::Binary(op, operands) => {
                let [lhs, rhs] = &**operands;
                semantics::binary(*op, self.dtype, lhs.bits(launch)?, rhs.bits(launch)?)
            }
            Node::Cast(x) => semantics::cast(x.dtype, self.dtype, x.bits(launch)?),
        })
    }
}

impl LaunchExpression {
    /// The expression that its words say; nothing for others.
    pub(super) fn read(words: &mut SplitWhitespace<'_>) -> Option<Self> {
        Self::read_nested(words, MOST_OPS)
    }

    fn read_nested(words: &mut SplitWhitespace<'_>, depth: usize) -> Option<Self> {
        let depth = depth.checked_sub(1)?;
        let dtype = DType::from_name(words.next()?).filter(|dtype| dtype.is_integer())?;
        let node = match words.next()? {
            "number" => Node::Number(words.next()?.parse().ok()?),
            "constant" => {
                let bits = words.next()?.parse().ok()?;
                Node::Constant(Literal::from_bits(dtype, bits).bits)
            }
            "cast" => Node::Cast(Box::new(Self::read_nested(words, depth)?)),
            name => {
                let op = BinaryOp::from_mnemonic(name)?;
                let lhs = Self::read_nested(words, depth)?;
                Node::Binary(op, Box::new([lhs, Self::read_nested(words, depth)?]))
            }
        };
        Some(Self { dtype, node })
    }
}

/// As words that [`LaunchExpression::read`] takes.
impl fmt::Display for LaunchExpression {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ", self.dtype)?;
        match &self.node {
            Node::Number(index) => write!(out, "number {index}"),
            Node::Constant(bits) => write!(out, "constant {bits}"),
            Node::Cast(x) => write!(out, "cast {x}"),
            Node::Binary(op, operands) => {
                let [lhs, rhs] = &**operands;
                write!(out, "{} {lhs} {rhs}", op.mnemonic())
            }
        }
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
            let node = Node::Number(self.func.parameter_index(value)?);
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
