//! Type rules of what warps with different roles and bulk copies do together.

use super::expect::Rules;
use crate::ir::op::TransferOp;
use crate::ir::operand::PIECE;
use crate::ir::{DType, Element, MAX_RANK, Shape, Space, Type, Value, op};

/// The most arrivals and bytes of a phase.
const MOST: i64 = (1 << 20) - 1;

/// The greatest extent of a box.
const MOST_OF_BOX: u32 = 256;

impl Rules<'_> {
    /// The rules of what warps do together.
    pub(super) fn warps(self) -> Result<Vec<Type>, String> {
        let op = self.op.transfer();
        match op.expect("broken invariant: the op is one of transfers") {
            TransferOp::Roles(op) => self.roles(op),
            TransferOp::MbarrierInit(op) => {
                self.within("count", op.count, (1, MOST))?;
                self.word(op.word, op.at)
            }
            TransferOp::MbarrierExpect(op) => {
                self.within("bytes", op.bytes, (1, MOST))?;
                self.word(op.word, op.at)
            }
            TransferOp::MbarrierArrive(op) => self.word(op.word, op.at),
            TransferOp::MbarrierWait(op) => {
                let phase = Type::scalar(DType::I32);
                self.expect("phase", self.ty(op.phase), phase)?;
                self.word(op.word, op.at)
            }
            TransferOp::NamedSync(op) => self.named(op.id, op.warps),
            TransferOp::NamedArrive(op) => self.named(op.id, op.warps),
            TransferOp::TensorMap(op) => return self.tensor_map(op).map(|ty| vec![ty]),
            TransferOp::CopyIn(op) => {
                self.word(op.word, op.at)?;
                self.bulk_copy(op.map, &op.origin, (op.target, op.offset))
            }
            TransferOp::CopySpan(op) => self.copy_span(op),
            TransferOp::CopyOut(op) => self.bulk_copy(op.map, &op.origin, (op.source, op.offset)),
            TransferOp::WaitCopiesRead(op) => self.within("pending", op.pending, (0, MOST)),
            TransferOp::WaitCopiesOut(op) => self.within("pending", op.pending, (0, MOST)),
        }
        .map(|()| Vec::new())
    }

    fn within(self, what: &str, found: i64, (least, most): (i64, i64)) -> Result<(), String> {
        if (least..=most).contains(&found) {
            return Ok(());
        }
        let name = self.name();
        Err(format!(
            "{what} of `{name}` is {found}, expected {least} to {most}"
        ))
    }

    fn roles(self, op: &op::Roles) -> Result<(), String> {
        let warps = op.warps.iter().map(|&(warps, _)| u64::from(warps));
        let (all, found) = (u64::from(self.func.warps), warps.sum::<u64>());
        if found != all || op.warps.iter().any(|&(warps, _)| warps == 0) {
            return Err(format!("`roles` has {found} warps of {all}"));
        }
        for &(_, region) in &op.warps {
            if !self.func.region(region).parameters.is_empty() {
                return Err("a region of `roles` takes no parameters".to_string());
            }
            if !self.func.yielded(region).is_empty() {
                return Err("a region of `roles` yields nothing".to_string());
            }
        }
        Ok(())
    }

    fn word(self, word: Value, at: Value) -> Result<(), String> {
        let shared = Type::pointer(DType::U64, Space::Shared);
        self.expect("word", self.ty(word), shared)?;
        self.scalar_index("place", at)
    }

    fn named(self, id: i64, warps: i64) -> Result<(), String> {
        self.within("barrier", id, (1, 15))?;
        self.within("warps", warps, (1, i64::from(self.func.warps)))
    }

    fn scalars(self, what: &str, values: &[Value], count: usize) -> Result<(), String> {
        if values.len() != count {
            let (name, found) = (self.name(), values.len());
            return Err(format!("`{name}` takes {count} {what}, found {found}"));
        }
        values
            .iter()
            .try_for_each(|&value| self.scalar_index(what, value))
    }

    fn tensor_map(self, op: &op::TensorMap) -> Result<Type, String> {
        let (dtype, space) = self.pointer(op.base)?;
        if space != Space::Global {
            return Err("`tensor_map` is of global memory".to_string());
        }
        let rank = op.extents.len();
        self.within("rank", rank as i64, (1, MAX_RANK as i64))?;
        self.scalars("extents", &op.extents, rank)?;
        self.scalars("strides", &op.strides, rank - 1)?;
        let inner = op
            .shape
            .last()
            .map_or(0, |&extent| extent.saturating_mul(dtype.bytes()));
        let fits = |&extent: &u32| (1..=MOST_OF_BOX).contains(&extent);
        let limit = match op.swizzle {
            0 => MOST_OF_BOX * dtype.bytes(),
            32 | 64 | 128 => op.swizzle as u32,
            swizzle => return Err(format!("`tensor_map` has no swizzle of {swizzle} bytes")),
        };
        let placed = op.shape.len() == rank && op.shape.iter().all(fits);
        if !placed || !inner.is_multiple_of(16) || inner > limit {
            let (shape, swizzle) = (&op.shape, op.swizzle);
            return Err(format!(
                "`tensor_map` has no boxes {shape:?} of `{dtype}` with swizzle {swizzle}"
            ));
        }
        Ok(Type {
            element: Element::Tensor(dtype, rank as u8),
            shape: Shape::SCALAR,
        })
    }

    fn copy_span(self, op: &op::CopySpan) -> Result<(), String> {
        self.word(op.word, op.at)?;
        let dtype = self.copied_in_pieces(op.source)?;
        let shared = Type::pointer(dtype, Space::Shared);
        self.expect("buffer", self.ty(op.target), shared)?;
        self.scalar_index("count", op.count)?;
        self.scalar_index("offset", op.offset)?;
        self.scalar_index("source offset", op.source_offset)
    }

    /// The type of an array that begins at a multiple of what bulk copies move at once.
    pub(super) fn copied_in_pieces(self, base: Value) -> Result<DType, String> {
        let (dtype, space) = self.pointer(base)?;
        let parameter = self.func.parameter_index(base);
        let divisor = parameter.map_or(1, |index| self.func.parameters[index].divisor);
        match space == Space::Global && divisor.is_multiple_of(PIECE) {
            true => Ok(dtype),
            false => Err(format!(
                "`{}` is of global memory that begins at a multiple of {PIECE} bytes",
                self.name()
            )),
        }
    }

    fn bulk_copy(
        self,
        map: Value,
        origin: &[Value],
        (base, offset): (Value, Value),
    ) -> Result<(), String> {
        let (name, ty) = (self.name(), self.ty(map));
        let Some((dtype, rank)) = ty.tensor() else {
            return Err(format!("`{name}` takes a tensor map, found `{ty}`"));
        };
        self.scalars("coordinates", origin, rank.into())?;
        let shared = Type::pointer(dtype, Space::Shared);
        self.expect("buffer", self.ty(base), shared)?;
        self.scalar_index("offset", offset)
    }
}
