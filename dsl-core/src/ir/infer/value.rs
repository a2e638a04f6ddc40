//! Type rules of ops on numbers whose one result follows from the operands.

use super::expect::Rules;
use crate::ir::operand::{
    fragment_steps, fragment_sum, group_step, group_sum, held, may_have_columns, tensor_sum,
};
use crate::ir::{Class, DType, MAX_RANK, Op, Precision, Shape, Space, Type, op};

/// Parts of the products of a tile that are added one by one, each of which is written out.
const MOST_PARTS: usize = 64;

impl Rules<'_> {
    /// The type of all operands.
    pub(super) fn family(self) -> Result<Type, String> {
        let name = self.name();
        let accepts = self.op.accepts();
        let accepts = accepts.expect("broken invariant: the op is of a family");
        let operands = self.types(&self.op.operands());
        let first = operands[0];
        if !first.dtype().is_some_and(|dtype| accepts.admits(dtype)) {
            return Err(format!(
                "`{name}` takes {}, found `{first}`",
                accepts.words()
            ));
        }
        match operands.iter().find(|&&ty| ty != first) {
            Some(other) => Err(format!(
                "operands of `{name}` differ: `{first}` and `{other}`"
            )),
            None => Ok(first),
        }
    }

    pub(super) fn select(self, op: &op::Select) -> Result<Type, String> {
        let result = self.ty(op.on_true);
        self.expect("the second alternative", self.ty(op.on_false), result)?;
        let condition = result.with_dtype(DType::Bool);
        self.expect("the condition", self.ty(op.condition), condition)?;
        self.number(result).map(|_| result)
    }

    pub(super) fn grid(self) -> Result<Type, String> {
        if let Op::ProgramId(op::ProgramId { axis }) | Op::NumPrograms(op::NumPrograms { axis }) =
            self.op
            && axis.0 > 2
        {
            return Err(format!("grid axis `{}` is not 0, 1 or 2", axis.0));
        }
        Ok(Type::INDEX)
    }

    /// `end - start` indices.
    pub(super) fn arange(self, op: &op::Arange) -> Result<Type, String> {
        let op::Arange { start, end } = op;
        let count = end
            .checked_sub(*start)
            .and_then(|count| usize::try_from(count).ok());
        let shape = Shape::new(&[count.unwrap_or(0)])
            .map_err(|reason| format!("`arange` from {start} to {end}: {reason}"))?;
        Ok(Type::tile(DType::I64, shape))
    }

    /// One more axis.
    pub(super) fn expand_dims(self, op: &op::ExpandDims) -> Result<Type, String> {
        let (x, axis) = (self.ty(op.x), op.axis);
        self.number(x)?;
        let mut dims = x.shape.dims();
        if axis.index() > dims.len() || dims.len() == MAX_RANK {
            return Err(format!(
                "`expand_dims` cannot insert axis {} into {x}",
                axis.0
            ));
        }
        dims.insert(axis.index(), 1);
        Ok(x.with_shape(Shape::new(&dims)?))
    }

    /// Permuted axes.
    pub(super) fn transpose(self, op: &op::Transpose) -> Result<Type, String> {
        let (x, permutation) = (self.ty(op.x), &op.permutation);
        self.number(x)?;
        let dims = x.shape.dims();
        let mut sorted = permutation.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..dims.len() as u32) {
            return Err(format!("{permutation:?} does not permute the axes of {x}"));
        }
        let permuted: Vec<usize> = permutation
            .iter()
            .map(|&axis| dims[axis as usize])
            .collect();
        Ok(x.with_shape(Shape::new(&permuted)?))
    }

    /// The accumulator's type.
    pub(super) fn mma(self, op: &op::Mma) -> Result<Type, String> {
        let (a, precision) = (self.ty(op.a), op.precision);
        let sum = a.dtype().and_then(|dtype| fragment_sum(precision, dtype));
        let (Some(dtype), Some(sum)) = (a.dtype(), sum) else {
            return Err(format!(
                "`mma` has no precision `{}` of `{a}`",
                precision.word()
            ));
        };
        let lens = fragment_steps(dtype).iter().map(|&step| held(step));
        let fits = |held: &[usize; 3]| a == Type::vector(dtype, held[0]);
        let found = lens.clone().find(fits);
        let held = found.or_else(|| lens.max()).unwrap_or_default();
        self.expect("the fragment of a", a, Type::vector(dtype, held[0]))?;
        let b = Type::vector(dtype, held[1]);
        self.expect("the fragment of b", self.ty(op.b), b)?;
        let accumulator = Type::vector(sum, held[2]);
        self.expect("the accumulator", self.ty(op.accumulator), accumulator)?;
        Ok(accumulator)
    }

    /// The accumulator's type.
    pub(super) fn group_mma(self, op: &op::GroupMma) -> Result<Type, String> {
        let (b, space) = self.pointer(op.b)?;
        let added = group_sum(op.precision, b).filter(|_| space == Space::Shared);
        let Some(added) = added else {
            return Err(format!(
                "`group_mma` takes numbers of 8 bits, floats of 16 and `f32` that is cut in shared memory, found `{b}` in {space:?}"
            ));
        };
        self.scalar_index("offset of b", op.b_offset)?;
        match op.a_offset {
            Some(offset) => {
                if self.pointer(op.a)? != (b, Space::Shared) {
                    let found = self.ty(op.a);
                    return Err(format!(
                        "`group_mma` takes `{b}` in shared memory, found `{found}`"
                    ));
                }
                self.scalar_index("offset of a", offset)?;
            }
            None => {
                let (a, sums) = (self.ty(op.a), self.ty(op.accumulator).shape.elements());
                let held = (sums as i64).saturating_mul(op.products);
                let all = (a.shape.elements() as i64).saturating_mul(op.columns);
                if a.dtype() != Some(b) || all != held {
                    return Err(format!(
                        "`group_mma` takes as much of `{b}` as of sums, found `{a}`"
                    ));
                }
            }
        }
        let groups = self.func.warps.is_multiple_of(4);
        let whole = op.products % group_step(b) as i64 == 0;
        let sizes = may_have_columns(b, op.columns) && whole;
        let places = [&op.transposed, &op.chunks].iter().all(|it| it.len() == 2);
        let sum = self.ty(op.accumulator);
        let held = sum.shape.elements() as i64 * 2;
        if sum.pending() != Some(added) || !groups || !sizes || !places || held % op.columns != 0 {
            return Err(format!("`group_mma` has no such parts: {op:?} of `{sum}`"));
        }
        Ok(sum)
    }

    /// The accumulator's type.
    pub(super) fn dot(self, op: &op::Dot) -> Result<Type, String> {
        let types = [op.a, op.b, op.accumulator].map(|operand| self.ty(operand));
        self.product(types, op.precision)
    }

    /// The accumulator's type.
    pub(super) fn dot_promoted(self, op: &op::DotPromoted) -> Result<Type, String> {
        let types = [op.a, op.b, op.accumulator].map(|operand| self.ty(operand));
        let ty = self.product(types, op.precision)?;
        let (dtype, products) = (self.number(types[0])?, multiplied(types)?);
        let (word, step) = (op.precision.word(), op.precision.step(dtype));
        let least = step.max(products / MOST_PARTS);
        let is_part = usize::try_from(op.count)
            .is_ok_and(|count| count.is_power_of_two() && (least..=products).contains(&count));
        if !dtype.is_float() {
            return Err(format!("`dot_promoted` adds floats, found `{ty}`"));
        }
        if !is_part {
            return Err(format!(
                "`dot_promoted` with precision `{word}` of `{}` adds parts of a power of two from {least} to {products} \
                 products, found {}",
                types[0], op.count
            ));
        }
        Ok(ty)
    }

    /// The type of a matrix product by operands of these types.
    pub(super) fn product(
        self,
        [a, b, accumulator]: [Type; 3],
        precision: Precision,
    ) -> Result<Type, String> {
        let (dtype, sum) = (self.number(a)?, self.number(accumulator)?);
        match precision {
            Precision::Ieee if sum.bits() < 32 => {
                return Err(format!(
                    "`dot` with precision `ieee` adds in f32 or f64, or integers of 32 and 64 bits, found `{accumulator}`"
                ));
            }
            Precision::Ieee if dtype.class() != sum.class() || dtype.bits() > sum.bits() => {
                let numbers = match sum.class() {
                    Class::Float => "floats",
                    Class::Signed => "signed integers",
                    Class::Unsigned | Class::Bool => "unsigned integers",
                };
                return Err(format!(
                    "`dot` with an accumulator of `{sum}` takes {numbers} no wider, found `{a}`"
                ));
            }
            Precision::Hopper if !precision.admits(dtype) => {
                return Err(format!(
                    "`dot` with precision `hopper` takes floats and integers of 8 bits, found `{a}`"
                ));
            }
            Precision::Cut if !precision.admits(dtype) => {
                return Err(format!(
                    "`dot` with precision `hopper_cut` takes `f32`, found `{a}`"
                ));
            }
            Precision::Hopper | Precision::Cut if sum != tensor_sum(dtype) => {
                return Err(format!(
                    "`dot` with precision `{}` of `{dtype}` adds in {}, found `{accumulator}`",
                    precision.word(),
                    tensor_sum(dtype)
                ));
            }
            Precision::Ieee | Precision::Hopper | Precision::Cut => {}
        }
        let k = multiplied([a, b, accumulator])?;
        if b.dtype() != Some(dtype) {
            return Err(format!("operands of `dot` differ: `{a}` and `{b}`"));
        }
        let (word, step) = (precision.word(), precision.step(dtype));
        if k < step {
            return Err(format!(
                "`dot` with precision `{word}` takes {step} or more products of each element, found {k}: \
                 with fewer the bits would depend on the tile; precision `ieee` takes any number"
            ));
        }
        Ok(accumulator)
    }
}

/// How many products each element has, of operands and an accumulator whose shapes fit.
fn multiplied([a, b, accumulator]: [Type; 3]) -> Result<usize, String> {
    let shapes = [a.shape.dims(), b.shape.dims(), accumulator.shape.dims()];
    let [[left @ .., m, k], [right @ .., k2, n], [sums @ .., m2, n2]] =
        [&shapes[0][..], &shapes[1][..], &shapes[2][..]]
    else {
        return Err(format!(
            "`dot` takes matrices, found `{a}`, `{b}` and `{accumulator}`"
        ));
    };
    if sums.len() > 1 {
        return Err(format!(
            "`dot` takes one axis of a batch, found `{accumulator}`"
        ));
    }
    if k != k2 || m != m2 || n != n2 || left != sums || right != sums {
        return Err(format!("`dot` cannot add `{a}` x `{b}` to `{accumulator}`"));
    }
    Ok(*k)
}
