//! The result of inline PTX without a GPU.

use super::{Value, op};

impl op::InlinePtx {
    /// The meaning of the result.
    ///
    /// # Panics
    /// If no verifier or builder has taken the op.
    #[must_use]
    pub fn meant(&self) -> Value {
        let result = usize::try_from(self.result).ok();
        let meant = result.and_then(|result| self.meaning.get(result));
        *meant.expect("broken invariant: a verified result has a meaning")
    }
}
