//! What the lanes of a GPU do together: shuffles, sums and barriers. Also packing of elements into 32-bit words.

use exactile_core::ir::op::{OrderOp, WarpOp};
use exactile_core::ir::{AtomicOp, Class, DType, Inst, Value, op};
use exactile_core::target::WARP_LANES;
use inkwell::values::{BasicValueEnum, IntValue};

use super::Emitter;
use super::value::Elements;
use crate::error::Result;

impl<'c> Emitter<'_, 'c> {
    pub(super) fn warp(&mut self, inst: Inst, op: WarpOp<'_>) -> Result<()> {
        let elements = match op {
            WarpOp::LaneId(op::LaneId {}) => vec![self.lane_id()?.into()],
            WarpOp::WarpId(op::WarpId {}) => vec![self.warp_id()?.into()],
            WarpOp::Places(op) => {
                let bits = self.dtype(self.func.inst(inst).results[0])?.bits();
                let values = op.values.iter();
                values
                    .map(|&value| self.int(bits, value.into()).into())
                    .collect()
            }
            WarpOp::ShuffleXor(op) => {
                let lane_mask = self.int(32, op.lane_mask).into();
                self.shuffle("bfly", op.x, lane_mask)?
            }
            WarpOp::ShuffleIndex(op) => {
                self.shuffle("idx", op.x, self.values[op.source_lane][0])?
            }
            WarpOp::WarpReduce(op) => self.warp_reduce(op)?,
            WarpOp::Mma(op) => self.mma(op)?,
            WarpOp::GroupMma(op) => return self.group_mma(inst, op),
            WarpOp::StopOutside(op) => return self.stop_outside(&[op]),
            WarpOp::StopIndex(op) => return self.stop_index(op),
            WarpOp::StopAssertion(op) => return self.stop_assertion(op),
            WarpOp::StartCopy(op) => return self.start_copy(op),
            WarpOp::OrderOp(op) => return self.order(inst, op),
        };
        self.define(inst, elements);
        Ok(())
    }

    fn order(&mut self, inst: Inst, op: OrderOp<'_>) -> Result<()> {
        let sums = match op {
            OrderOp::Barrier(op::Barrier {}) => return self.barrier(),
            OrderOp::GroupCopies(op::GroupCopies {}) => return self.group_copies(),
            OrderOp::WaitCopies(op) => return self.wait_copies(op.pending),
            OrderOp::ProxyFence(op::ProxyFence {}) => return self.proxy_fence(),
            OrderOp::WaitProducts(op) => return self.wait_products(inst, op.pending),
            OrderOp::Pend(op::Pend { x }) => self.get(*x),
            OrderOp::Settle(op::Settle { x, pending }) => self.settle(inst, *x, *pending)?,
        };
        self.define(inst, sums);
        Ok(())
    }

    /// The elements of `x` that other lanes hold, one instruction for each 32 bits.
    fn shuffle(&self, mode: &str, x: Value, selector: BasicValueEnum<'c>) -> Result<Elements<'c>> {
        let name = format!("llvm.nvvm.shfl.sync.{mode}.i32");
        let dtype = self.dtype(x)?;
        // Every lane takes part, and the segment goes up to the last one.
        let (warp, last) = (self.int(32, -1), self.int(32, i64::from(WARP_LANES) - 1));
        let elements = self.get(x);
        let mut words = Vec::new();
        for word in self.words_of(dtype, &elements)? {
            let arguments = [warp.into(), word.into(), selector.into(), last.into()];
            words.push(
                self.intrinsic_value(&name, &[], &arguments)?
                    .into_int_value(),
            );
        }
        self.elements_of(dtype, elements.len(), &words)
    }

    /// One instruction for each element.
    fn warp_reduce(&self, op::WarpReduce { x, op }: &op::WarpReduce) -> Result<Elements<'c>> {
        let dtype = self.dtype(*x)?;
        let by_sign = matches!(op, AtomicOp::Min | AtomicOp::Max);
        let unsigned = by_sign && dtype.class() != Class::Signed;
        let warp = self.int(32, -1).into();
        let votes = dtype == DType::Bool;
        let name = if votes && *op == AtomicOp::And {
            "vote.all.sync".to_string()
        } else if votes {
            "vote.any.sync".to_string()
        } else {
            format!(
                "redux.sync.{}{}",
                if unsigned { "u" } else { "" },
                op.word()
            )
        };
        let name = format!("llvm.nvvm.{name}");
        let elements = self.get(*x).into_iter();
        let combined = elements.map(|x| {
            let mut arguments = [x.into(), warp];
            if votes {
                arguments.reverse();
            }
            self.intrinsic_value(&name, &[], &arguments)
        });
        combined.collect()
    }

    /// Emits `proxy_fence`.
    fn proxy_fence(&self) -> Result<()> {
        self.intrinsic("llvm.nvvm.fence.proxy.async.shared_cta", &[], &[])?;
        Ok(())
    }

    /// The bits of one element as in memory.
    pub(super) fn bits_of(
        &self,
        dtype: DType,
        element: BasicValueEnum<'c>,
    ) -> Result<IntValue<'c>> {
        if dtype == DType::Bool {
            let (bit, byte) = (element.into_int_value(), self.context.i8_type());
            return Ok(self.builder.build_int_z_extend(bit, byte, "")?);
        }
        let bits = self
            .builder
            .build_bit_cast(element, self.int_type(dtype.bits()), "")?;
        Ok(bits.into_int_value())
    }

    /// One element from its bits in memory.
    pub(super) fn element_of_bits(
        &self,
        dtype: DType,
        bits: BasicValueEnum<'c>,
    ) -> Result<BasicValueEnum<'c>> {
        if dtype == DType::Bool {
            return self.byte_to_bool(bits);
        }
        let element = self.element_type(dtype);
        Ok(self.builder.build_bit_cast(bits, element, "")?)
    }

    /// The elements in 32-bit words, lowest first; the last word is filled with zero bits.
    pub(super) fn words_of(
        &self,
        dtype: DType,
        elements: &[BasicValueEnum<'c>],
    ) -> Result<Vec<IntValue<'c>>> {
        let word = self.context.i32_type();
        let mut bits = Vec::with_capacity(elements.len());
        for &element in elements {
            bits.push(self.bits_of(dtype, element)?.into());
        }
        let total = dtype.bytes() * elements.len() as u32;
        if total < 4 {
            let packed = self.pack(&bits)?;
            let narrow = self.int_type(total * 8);
            let packed = self
                .builder
                .build_bit_cast(packed, narrow, "")?
                .into_int_value();
            return Ok(vec![self.builder.build_int_z_extend(packed, word, "")?]);
        }
        let packed = self.pack(&bits)?;
        let words = self
            .builder
            .build_bit_cast(packed, word.vec_type(total / 4), "")?;
        let words = self.unpack(words.into_vector_value())?;
        Ok(words
            .into_iter()
            .map(BasicValueEnum::into_int_value)
            .collect())
    }

    /// `count` elements from their words.
    fn elements_of(
        &self,
        dtype: DType,
        count: usize,
        words: &[IntValue<'c>],
    ) -> Result<Elements<'c>> {
        let total = dtype.bytes() * count as u32;
        let target = self.int_type(dtype.bytes() * 8).vec_type(count as u32);
        let packed = if total < 4 {
            let narrow = self.int_type(total * 8);
            let cut = self.builder.build_int_truncate(words[0], narrow, "")?;
            self.builder.build_bit_cast(cut, target, "")?
        } else {
            let words: Elements<'c> = words.iter().map(|&word| word.into()).collect();
            let vector = self.pack(&words)?;
            self.builder.build_bit_cast(vector, target, "")?
        };
        self.unpack(packed.into_vector_value())?
            .into_iter()
            .map(|bits| self.element_of_bits(dtype, bits))
            .collect()
    }
}
