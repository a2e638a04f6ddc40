//! Lanes of vectors that were loaded. An integer goes from a vector to a scalar register by two instructions of the one
//! port that also joins lanes, and from memory by a load: what was not written since is loaded once more.
//!
//! That holds for arrays that are only read and for the program's own memory. Where another program may write, a race
//! would make two numbers of one that was checked: a race gives unspecified numbers and nothing worse.

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::InstBuilder;
use exactile_core::ir::{Class, DType, Effect, Op, Value};

use super::Codegen;
use super::lanes::{Repr, lane_type};

/// Where a vector was loaded.
#[derive(Clone, Copy)]
pub(super) struct Loaded {
    address: clif::Value,
    /// How much code that may write came before.
    writes: u32,
}

impl Codegen<'_> {
    /// Counts what may write. A loop does before what stands in it: it is done again.
    pub(super) fn count_writes(&mut self, op: &Op) {
        let writes = op.access().is_some_and(|it| it.effect != Effect::Reads);
        self.writes += u32::from(writes || matches!(op, Op::For(_) | Op::While(_)));
    }

    /// Remembers where a vector was loaded, if nobody else writes there.
    pub(super) fn note_load(&mut self, vector: Value, base: Value, address: clif::Value) {
        let writes = self.writes;
        if self.func.written(base).is_none() {
            self.loaded.insert(vector, Loaded { address, writes });
        }
    }

    /// A lane of an integer vector that is in memory as it was loaded.
    pub(super) fn reread(&mut self, vector: Value, lane: usize) -> Option<Repr> {
        let loaded = *self.loaded.get(&vector)?;
        let dtype: DType = self.dtype(vector);
        if loaded.writes != self.writes || !matches!(dtype.class(), Class::Signed | Class::Unsigned)
        {
            return None;
        }
        let bytes = lane as i64 * i64::from(lane_type(dtype).bytes());
        let address = self.builder.ins().iadd_imm_s(loaded.address, bytes);
        Some(self.load_from(address, dtype, 1))
    }
}
