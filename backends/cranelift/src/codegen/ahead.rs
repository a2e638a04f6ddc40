//! Prefetches: what loops read and write of arguments is asked for ahead of time.
//!
//! A processor without a prefetcher of its own waits for the few lines of a stream that fit the
//! window of instructions under way; loads of 128 bits fill it soon. A prefetch leaves the window at
//! once.

use std::collections::{BTreeMap, BTreeSet};

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::InstBuilder;
use exactile_core::ir::{BinaryOp, DType, Op, Space, Value, op};
use exactile_core::target::Target;

use super::Codegen;

/// Bytes between an access and what is asked for: what arrives while so much is worked on.
const AHEAD: i64 = 4096;

/// Bytes of a loop along consecutive addresses after which more of them are likely.
const LONG: i64 = 8192;

/// The most values that an offset is followed through.
const MOST_VALUES: usize = 256;

/// A loop around the code being generated.
#[derive(Clone, Copy)]
pub(super) struct Loop {
    pub(super) index: Value,
    pub(super) step: i64,
    /// What it counts through, where that is known.
    pub(super) extent: Option<i64>,
}

/// The loop that asks for the lines of an argument: later loops find them in the cache.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    index: Value,
    write: bool,
}

/// How a number changes with the index of a loop.
#[derive(Clone, Copy)]
enum Slope {
    Known(i64),
    Emitted(clif::Value),
}

/// Slopes found for one access.
type Slopes = BTreeMap<(Value, Value), Option<Slope>>;

impl Codegen<'_> {
    /// Asks for what a later iteration accesses: further along consecutive addresses, or, where the
    /// loop along them is short, what the loop around it accesses next.
    pub(super) fn prefetch(
        &mut self,
        access: (Value, Value),
        dtype: DType,
        lanes: usize,
        write: bool,
    ) {
        let (base, offset) = access;
        let size = i64::from(dtype.bytes());
        let global = matches!(self.ty(base).pointee(), Some((_, Space::Global)));
        let begins_line =
            self.added(offset).wrapping_mul(size) % i64::from(Target::CPU.line_bytes) == 0;
        // A stream is one of whole vectors.
        let whole = lanes as i64 * size >= i64::from(Target::CPU.vector_bytes);
        let stream = whole && self.dtype(offset) == DType::I64;
        let (Some(helper), Some(innermost)) = (self.helpers.prefetch, self.loops.last()) else {
            return;
        };
        let asked = Asked {
            index: innermost.index,
            write,
        };
        let known = *self.asked.get(&base).unwrap_or(&asked);
        if !global || !begins_line || !stream || known != asked || !self.is_fresh(offset) {
            return;
        }
        let Some(ahead) = self.ahead(offset, size) else {
            return;
        };
        self.asked.insert(base, asked);
        let address = self.address(base, offset, dtype);
        let address = self.builder.ins().iadd(address, ahead);
        self.builder
            .ins()
            .call(helper[usize::from(write)], &[address]);
    }

    /// Bytes from an offset, of elements of `size` bytes, to what a later iteration accesses.
    fn ahead(&mut self, offset: Value, size: i64) -> Option<clif::Value> {
        let mut found = None;
        let mut slopes = Slopes::new();
        for around in self.loops.clone().into_iter().rev() {
            let bytes = around.step.wrapping_mul(size);
            match self.slope(offset, around.index, &mut slopes)? {
                Slope::Known(0) => {}
                Slope::Known(1) if found.is_none() => {
                    found = Some(self.bits(clif::types::I64, AHEAD as u64));
                    if around
                        .extent
                        .is_none_or(|extent| extent.saturating_mul(size) > LONG)
                    {
                        return found;
                    }
                }
                Slope::Known(slope) => {
                    let bytes = slope.wrapping_mul(bytes);
                    return Some(self.bits(clif::types::I64, bytes as u64));
                }
                Slope::Emitted(slope) => return Some(self.builder.ins().imul_imm_s(slope, bytes)),
            }
        }
        found
    }

    /// Whether an offset differs between programs, or between iterations of more than one loop: what
    /// only one loop goes through is there from the time before.
    fn is_fresh(&self, offset: Value) -> bool {
        let mut left = vec![offset];
        let mut seen = BTreeSet::new();
        let mut loops = 0;
        while let Some(value) = left.pop() {
            if !seen.insert(value) {
                continue;
            }
            if seen.len() > MOST_VALUES {
                return false;
            }
            loops += usize::from(self.loops.iter().any(|around| around.index == value));
            let op = self.definitions[value].map(|inst| self.func.op(inst));
            if loops > 1 || matches!(op, Some(Op::ProgramId(_))) {
                return true;
            }
            left.extend(op.map(Op::operands).unwrap_or_default());
        }
        false
    }

    /// The constant that a sum adds last.
    fn added(&self, sum: Value) -> i64 {
        let op = self.definitions[sum].map(|inst| self.func.op(inst));
        let Some(Op::Binary(op::Binary {
            op: BinaryOp::Add,
            rhs,
            ..
        })) = op
        else {
            return 0;
        };
        self.constant(*rhs).map_or(0, |literal| literal.bits as i64)
    }

    /// By how much `value` grows with `index`, where that is the same everywhere.
    fn slope(&mut self, value: Value, index: Value, known: &mut Slopes) -> Option<Slope> {
        if let Some(&slope) = known.get(&(value, index)) {
            return slope;
        }
        if known.len() > MOST_VALUES {
            return None;
        }
        known.insert((value, index), None);
        let slope = self.new_slope(value, index, known);
        known.insert((value, index), slope);
        slope
    }

    fn new_slope(&mut self, value: Value, index: Value, known: &mut Slopes) -> Option<Slope> {
        if value == index {
            return Some(Slope::Known(1));
        }
        let op = self.definitions[value].map(|inst| self.func.op(inst));
        let Some(&Op::Binary(op::Binary { op, lhs, rhs })) = op else {
            return Some(Slope::Known(0));
        };
        let left = self.slope(lhs, index, known)?;
        let right = self.slope(rhs, index, known)?;
        match (op, left, right) {
            (_, Slope::Known(0), Slope::Known(0)) => Some(Slope::Known(0)),
            (BinaryOp::Add, Slope::Known(0), slope)
            | (BinaryOp::Add | BinaryOp::Sub, slope, Slope::Known(0)) => Some(slope),
            (BinaryOp::Mul, Slope::Known(0), slope) => Some(self.scaled(slope, lhs)),
            (BinaryOp::Mul, slope, Slope::Known(0)) => Some(self.scaled(slope, rhs)),
            _ => None,
        }
    }

    fn scaled(&mut self, slope: Slope, factor: Value) -> Slope {
        // A constant is no operand of the access, so none need be there.
        let known = self.constant(factor).map(|literal| literal.bits as i64);
        Slope::Emitted(match (slope, known) {
            (Slope::Known(slope), Some(factor)) => return Slope::Known(slope.wrapping_mul(factor)),
            (Slope::Emitted(slope), Some(factor)) => self.builder.ins().imul_imm_s(slope, factor),
            (Slope::Known(slope), None) => {
                let factor = self.single(factor);
                self.builder.ins().imul_imm_s(factor, slope)
            }
            (Slope::Emitted(slope), None) => {
                let factor = self.single(factor);
                self.builder.ins().imul(slope, factor)
            }
        })
    }
}
