//! Checks of types that are stated where the op is made.

use super::expect::Rules;
use crate::ir::{DType, Shape, Space, Type, op};

/// The most bytes of shared memory: more than any machine has.
const MAX_SHARED: i64 = 1 << 24;

/// The most bytes of a worker's scratch memory.
const MAX_SCRATCH: i64 = 1 << 30;

impl Rules<'_> {
    /// The one stated type, where it passes `check`.
    pub(super) fn stated(
        self,
        declared: &[Type],
        check: &dyn Fn(Type) -> Result<(), String>,
    ) -> Result<Vec<Type>, String> {
        let [ty] = declared else {
            return Err(format!(
                "`{}` has one result, found {}",
                self.name(),
                declared.len()
            ));
        };
        check(*ty).map(|()| vec![*ty])
    }

    fn makes(self, fits: bool, x: Type, to: Type) -> Result<(), String> {
        if fits {
            return Ok(());
        }
        Err(format!("`{}` cannot make `{to}` from `{x}`", self.name()))
    }

    pub(super) fn cast(self, op: &op::Cast, to: Type) -> Result<(), String> {
        self.number(self.ty(op.x))?;
        self.number(to)?;
        self.expect("result", to, to.with_shape(self.ty(op.x).shape))
    }

    pub(super) fn raw_cast(self, op: &op::RawCast, to: Type) -> Result<(), String> {
        let x = self.ty(op.x);
        let (source, target) = (self.number(x)?, self.number(to)?);
        let is_float = source.is_float() && !source.is_narrow_float();
        let is_integer = target.is_integer() && target.bits() >= 32;
        self.makes(is_float && is_integer && x.shape == to.shape, x, to)
    }

    pub(super) fn bitcast(self, op: &op::Bitcast, to: Type) -> Result<(), String> {
        let x = self.ty(op.x);
        let same = self.number(x)?.bits() == self.number(to)?.bits();
        self.makes(same && x.shape == to.shape, x, to)
    }

    pub(super) fn splat(self, op: &op::Splat, to: Type) -> Result<(), String> {
        let x = self.ty(op.x);
        let fits = x.is_scalar() && self.number(x)? == self.number(to)?;
        self.makes(fits, x, to)
    }

    pub(super) fn broadcast(self, op: &op::Broadcast, to: Type) -> Result<(), String> {
        let x = self.ty(op.x);
        self.number(x)?;
        let mut extents = x.shape.extents().iter().zip(to.shape.extents());
        let fits = x.shape.rank() == to.shape.rank()
            && extents.all(|(&from, &to)| from == to || from == 1);
        self.makes(fits && x.element == to.element, x, to)
    }

    pub(super) fn reshape(self, op: &op::Reshape, to: Type) -> Result<(), String> {
        let x = self.ty(op.x);
        self.number(x)?;
        let fits = x.shape.elements() == to.shape.elements();
        self.makes(fits && x.element == to.element, x, to)
    }

    /// Elements of the operand, each place of the result showing one.
    pub(super) fn view(self, op: &op::View, to: Type) -> Result<(), String> {
        let x = self.ty(op.x);
        self.number(x)?;
        let inside = 0..x.shape.elements() as i64;
        let mut named: Vec<u8> = op.bits.iter().flatten().copied().collect();
        named.sort_unstable();
        let distinct = named.windows(2).all(|pair| pair[0] < pair[1]);
        let reached = named
            .last()
            .is_none_or(|&bit| inside.contains(&(1 << bit.min(62))));
        if !distinct || !reached || !inside.contains(&op.offset) {
            return Err(format!(
                "`view` of `{x}` leads out of it or to one bit twice"
            ));
        }
        let fits = 1 << op.bits.len().min(62) == to.shape.elements();
        self.makes(fits && x.element == to.element, x, to)
    }

    pub(super) fn lane_load(self, op: &op::LaneLoad, to: Type) -> Result<(), String> {
        self.lane_access(&op.access(), to, op.align)?;
        self.loads(op.cache)?;
        self.of_caches(op.base, op.cache)?;
        op.other
            .map_or(Ok(()), |other| self.expect("`other`", self.ty(other), to))
    }

    /// A vector with an element for each number.
    pub(super) fn places(self, op: &op::Places, to: Type) -> Result<(), String> {
        let shape = Shape::new(&[op.values.len()])?;
        let fits = matches!(to.dtype(), Some(DType::I32 | DType::I64)) && to.shape == shape;
        if fits {
            return Ok(());
        }
        Err(format!(
            "`places` makes `i32` or `i64` of shape {shape}, found `{to}`"
        ))
    }

    pub(super) fn alloc(self, op: &op::Alloc, to: Type) -> Result<(), String> {
        let (offset, count) = (op.offset, op.count);
        let (dtype, most) = match to.pointee() {
            Some((dtype, Space::Shared)) => (dtype, MAX_SHARED),
            Some((dtype, Space::Scratch)) => (dtype, MAX_SCRATCH),
            Some((_, Space::Global)) | None => {
                return Err(format!(
                    "`alloc` makes a shared or scratch pointer, found `{to}`"
                ));
            }
        };
        let bytes = i64::from(dtype.bytes());
        let size = count.checked_mul(bytes);
        let end = size.and_then(|size| size.checked_add(offset));
        let placed = count >= 1 && offset >= 0 && offset % bytes == 0;
        if placed && end.is_some_and(|end| end <= most) {
            return Ok(());
        }
        Err(format!(
            "`alloc` of {count} `{dtype}` at byte {offset} is misplaced: there are {most} bytes"
        ))
    }
}
