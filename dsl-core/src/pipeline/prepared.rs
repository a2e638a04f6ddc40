//! A block function with what it was made of, so that it can be made for other numbers of warps.

use std::borrow::Cow;
use std::ops::Deref;

use super::boxed::without_boxes;
use super::{Observer, prepare};
use crate::diagnostic::Diagnostics;
use crate::facts::Facts;
use crate::ir::{Func, Inst};
use crate::launch::Boxes;
use crate::target::{Options, Target};
use crate::verify::BlockFunc;

/// What [`prepare`] makes.
#[derive(Clone, Debug)]
pub struct PreparedFunc {
    block: BlockFunc,
    /// What was traced, and what was known of it; nothing of a function that is lowered as it stands.
    made_of: Option<Box<(BlockFunc, Facts)>>,
}

impl PreparedFunc {
    pub(super) fn new(block: BlockFunc, made_of: Option<(BlockFunc, Facts)>) -> Self {
        let made_of = made_of.map(Box::new);
        Self { block, made_of }
    }

    /// The same function prepared by other options; nothing where what it was made of is not known.
    pub(super) fn again(
        &self,
        target: &Target,
        options: &Options,
        observe: &mut Observer<'_>,
    ) -> Option<Result<Self, Diagnostics>> {
        let (traced, facts) = &**self.made_of.as_ref()?;
        Some(prepare(traced.clone(), target, options, facts, observe))
    }

    /// The function without accesses to boxes of arrays of which `asked` says nothing: no launch was asked whether they can be
    /// copied.
    ///
    /// # Errors
    /// None for a valid function.
    pub(super) fn within(self, asked: &Boxes) -> Result<Self, Diagnostics> {
        let keep = |func: &Func, inst: Inst| asked.include(func, inst);
        let block = without_boxes(Cow::Owned(self.block), &keep)?.into_owned();
        Ok(Self { block, ..self })
    }
}

/// A function that is lowered as it stands, for whatever warps.
impl From<BlockFunc> for PreparedFunc {
    fn from(block: BlockFunc) -> Self {
        Self::new(block, None)
    }
}

impl Deref for PreparedFunc {
    type Target = BlockFunc;

    fn deref(&self) -> &BlockFunc {
        &self.block
    }
}
