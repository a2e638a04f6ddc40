//! Type rules of the lane stage's own ops on numbers.

use super::expect::Rules;
use crate::ir::{DType, Shape, Type, op};

impl Rules<'_> {
    pub(super) fn shuffle_xor(self, op: &op::ShuffleXor) -> Result<Type, String> {
        let lane_mask = op.lane_mask;
        if (1..32).contains(&lane_mask) {
            Ok(self.ty(op.x))
        } else {
            Err(format!(
                "`shuffle_xor` lane mask `{lane_mask}` is not in 1..32"
            ))
        }
    }

    pub(super) fn shuffle_index(self, op: &op::ShuffleIndex) -> Result<Type, String> {
        let lane = Type::scalar(DType::I32);
        self.expect("source lane", self.ty(op.source_lane), lane)?;
        Ok(self.ty(op.x))
    }

    /// The element of a vector.
    pub(super) fn extract(self, op: &op::Extract) -> Result<Type, String> {
        let (vector, index) = (self.ty(op.vector), op.index);
        let shape = vector.shape;
        if shape.rank() != 1 || !(0..shape.elements() as i64).contains(&index) {
            return Err(format!("`extract` cannot take element {index} of {vector}"));
        }
        Ok(vector.with_shape(Shape::SCALAR))
    }

    /// A vector of the elements.
    pub(super) fn vector(self, op: &op::Vector) -> Result<Type, String> {
        let elements = self.types(&op.elements);
        let Some(&first) = elements.first() else {
            return Err("`vector` needs elements".to_string());
        };
        self.number(first)?;
        for &element in &elements {
            self.expect("an element", element, first)?;
        }
        Ok(first.with_shape(Shape::new(&[elements.len()])?))
    }

    /// As many elements as indices.
    pub(super) fn shuffle_vector(self, op: &op::ShuffleVector) -> Result<Type, String> {
        let op::ShuffleVector { a, b, indices } = op;
        let a = self.ty(*a);
        self.expect("the second vector", self.ty(*b), a)?;
        let lanes = 2 * a.shape.elements() as u32;
        match indices.iter().find(|&&index| index >= lanes) {
            Some(index) => Err(format!(
                "`shuffle_vector` index {index} is not below {lanes}"
            )),
            None => Ok(a.with_shape(Shape::new(&[indices.len()])?)),
        }
    }
}
