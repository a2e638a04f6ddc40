//! The type rule of `sort`.

use super::expect::Rules;
use crate::ir::{Shape, Type, op};

impl Rules<'_> {
    /// The sources with a shorter axis.
    pub(super) fn sort(self, op: &op::Sort) -> Result<Vec<Type>, String> {
        let (keys, axis, count) = (op.keys, op.axis, op.count);
        let sources = self.types(&op.sources);
        let Some(first) = sources.first() else {
            return Err("`sort` needs a source".to_string());
        };
        if keys < 1 || keys > sources.len() as i64 {
            let found = sources.len();
            return Err(format!(
                "`sort` by {keys} keys, expected 1 to {found}, the number of sources"
            ));
        }
        if axis.index() >= first.shape.rank() {
            return Err(format!("axis {} is out of range for `{first}`", axis.0));
        }
        let mut dims = first.shape.dims();
        let extent = dims[axis.index()];
        let kept = usize::try_from(count).unwrap_or(0);
        if !kept.is_power_of_two() || kept > extent {
            return Err(format!(
                "`sort` keeps {count} of {extent} elements, expected a power of two up to {extent}"
            ));
        }
        dims[axis.index()] = kept;
        let shape = Shape::new(&dims)?;
        let mut results = Vec::new();
        for &ty in &sources {
            self.number(ty)?;
            self.expect("a source", ty, ty.with_shape(first.shape))?;
            results.push(ty.with_shape(shape));
        }
        Ok(results)
    }
}
