//! How an operand of 16 bits lies in shared memory for groups of warps: see `layout::group`.

/// What the address of an operand is a multiple of, in bytes: pieces are mixed as its bits say.
pub const PATTERN: i64 = 1024;

/// Elements along the contiguous axis of a chunk.
const CHUNK: usize = 64;

/// How an operand lies in shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Side {
    /// Whether the rows of `a`, or the columns of `b`, are contiguous, and not the products.
    pub transposed: bool,
    /// Elements from one chunk to the next.
    pub chunk: usize,
}

impl Side {
    /// The place of the row of `a`, or the column of `b`, that takes part in product `k`.
    #[must_use]
    pub fn place(&self, major: usize, k: usize) -> usize {
        let (inner, outer) = match self.transposed {
            true => (major, k),
            false => (k, major),
        };
        let mixed = (inner % CHUNK) ^ ((outer & 7) << 3);
        inner / CHUNK * self.chunk + outer * CHUNK + mixed
    }
}
