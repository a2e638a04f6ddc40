//! Arrays whose boxes bulk copies move, as a launch hands them to code.

use std::fmt;
use std::str::SplitWhitespace;

use super::{Input, Launch, LaunchExpression};
use crate::ir::{DType, Func, op};

/// What `tensor_map` says of an array, in numbers that a launch decides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArrayMap {
    /// The parameter behind which it begins.
    pub parameter: usize,
    /// The type of its elements.
    pub dtype: DType,
    extents: Vec<LaunchExpression>,
    strides: Vec<LaunchExpression>,
    /// The shape of a box.
    pub shape: Vec<u32>,
    /// In how many bytes pieces of 16 are exchanged, or 0.
    pub swizzle: i64,
}

/// What addresses and strides of arrays are multiples of, in bytes (PTX ISA, "Tensor-map").
const ALIGN: u64 = 16;

/// The numbers of an array in a launch, outermost axis first.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ArrayNumbers {
    /// Where it begins.
    pub address: u64,
    /// Elements along each axis.
    pub extents: Vec<u64>,
    /// Bytes from one index to the next, along each axis but the last.
    pub strides: Vec<u64>,
}

impl ArrayNumbers {
    /// Whether bulk copies move boxes of it as it lies.
    #[must_use]
    pub fn is_aligned(&self) -> bool {
        let mut all = self.strides.iter().chain([&self.address]);
        all.all(|it| it.is_multiple_of(ALIGN))
    }
}

impl ArrayMap {
    /// That of an op; nothing where more than the launch decides it.
    #[must_use]
    pub fn of(func: &Func, op: &op::TensorMap) -> Option<Self> {
        let definitions = func.definitions();
        let read = |value: &_| LaunchExpression::of(func, &definitions, *value);
        let (dtype, _) = func.ty(op.base).pointee()?;
        Some(Self {
            parameter: func.parameter_index(op.base)?,
            dtype,
            extents: op.extents.iter().map(read).collect::<Option<_>>()?,
            strides: op.strides.iter().map(read).collect::<Option<_>>()?,
            shape: op.shape.clone(),
            swizzle: op.swizzle,
        })
    }

    /// Its numbers; nothing where the launch lacks one, or has one below zero.
    #[must_use]
    pub fn evaluate(&self, launch: &Launch<'_>) -> Option<ArrayNumbers> {
        let number = |expression: &LaunchExpression| {
            let number = expression.evaluate(launch)?;
            u64::try_from(number).ok()
        };
        let bytes = |expression| number(expression)?.checked_mul(self.dtype.bytes().into());
        Some(ArrayNumbers {
            address: launch.input(Input::Address(self.parameter))?,
            extents: self.extents.iter().map(number).collect::<Option<_>>()?,
            strides: self.strides.iter().map(bytes).collect::<Option<_>>()?,
        })
    }

    /// The map that its words say; nothing for others.
    #[must_use]
    pub fn read(words: &mut SplitWhitespace<'_>) -> Option<Self> {
        let parameter = words.next()?.parse().ok()?;
        let dtype = DType::from_name(words.next()?)?;
        let swizzle = words.next()?.parse().ok()?;
        let rank: usize = words.next()?.parse().ok()?;
        let shape = (0..rank).map(|_| words.next()?.parse().ok());
        let shape = shape.collect::<Option<_>>()?;
        let mut numbers = |count: usize| {
            let all = (0..count).map(|_| LaunchExpression::read(words));
            all.collect::<Option<Vec<_>>>()
        };
        Some(Self {
            parameter,
            dtype,
            extents: numbers(rank)?,
            strides: numbers(rank.checked_sub(1)?)?,
            shape,
            swizzle,
        })
    }
}

/// As words that [`ArrayMap::read`] takes.
impl fmt::Display for ArrayMap {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rank = self.shape.len();
        write!(
            out,
            "{} {} {} {rank}",
            self.parameter, self.dtype, self.swizzle
        )?;
        for extent in &self.shape {
            write!(out, " {extent}")?;
        }
        for number in self.extents.iter().chain(&self.strides) {
            write!(out, " {number}")?;
        }
        Ok(())
    }
}
