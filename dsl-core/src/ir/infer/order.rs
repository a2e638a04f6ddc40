//! Type rules of what lanes wait for.

use super::expect::Rules;
use crate::ir::{DType, Type, Value};

/// The most groups of copies that a wait may leave.
const MAX_COPIES: i64 = 31;

/// The most products that a wait may leave.
pub(crate) const MAX_PRODUCTS: i64 = 7;

impl Rules<'_> {
    pub(super) fn wait_copies(self, pending: i64) -> Result<(), String> {
        self.leaves(pending, MAX_COPIES, "groups")
    }

    pub(super) fn wait_slots(self, pending: i64) -> Result<(), String> {
        self.leaves(pending, MAX_COPIES, "copies")
    }

    pub(super) fn wait_products(self, pending: i64) -> Result<(), String> {
        self.leaves(pending, MAX_PRODUCTS, "products")
    }

    fn leaves(self, pending: i64, most: i64, what: &str) -> Result<(), String> {
        if (0..=most).contains(&pending) {
            return Ok(());
        }
        Err(format!(
            "`{}` leaves {pending} {what}, expected 0 to {most}",
            self.name()
        ))
    }

    pub(super) fn pend(self, x: Value) -> Result<Type, String> {
        let ty = self.one_of(x, &[DType::F32, DType::I32, DType::U32])?;
        if ty.is_scalar() {
            return Err(format!(
                "`pend` takes sums of several elements, found `{ty}`"
            ));
        }
        Ok(ty.with_pending(self.number(ty)?))
    }

    pub(super) fn settle(self, x: Value, pending: i64) -> Result<Type, String> {
        self.wait_products(pending)?;
        self.pending(x).map(|dtype| self.ty(x).with_dtype(dtype))
    }

    /// The data type of sums that products may add to.
    pub(super) fn pending(self, x: Value) -> Result<DType, String> {
        let ty = self.ty(x);
        ty.pending()
            .ok_or_else(|| format!("`{}` takes pending sums, found `{ty}`", self.name()))
    }
}
