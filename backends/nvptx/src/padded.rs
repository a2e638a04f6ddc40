//! Copies of arrays with padded rows, which bulk copies read in place of arrays whose rows do not begin at multiples of 16 bytes.
//! The kernels that make them are made of `padded/rows.bir` ahead of time, so that a program without LLVM has them.

use std::sync::{Arc, Weak};

use exactile_core::ir::{Access, DType, Grid, Literal};
use exactile_core::launch::{ArrayNumbers, PaddedRows, Passed};

use crate::buffer::DeviceBuffer;
use crate::driver::Context;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::ptx::Ptx;

/// The kernels, for words of 1, 2 and 4 bytes. None needs more than the oldest machine has that code is made for.
const KERNELS: [&[u8]; WIDTHS] = [
    include_bytes!("padded/u8.kernel"),
    include_bytes!("padded/u16.kernel"),
    include_bytes!("padded/u32.kernel"),
];

/// So many widths of words there are.
pub(crate) const WIDTHS: usize = 3;

/// The kernels of a context that somebody has.
pub(crate) type Copiers = [Weak<Kernel>; WIDTHS];

/// A copy that a launch reads in place of an array.
#[derive(Debug)]
pub(crate) struct Copy {
    array: ArrayNumbers,
    rows: PaddedRows,
}

/// The copies in place of those arrays that are read and do not lie as bulk copies need it, each once: a launch for which
/// [`Boxes`](exactile_core::launch::Boxes) hold reads no such memory by two widths of elements.
pub(crate) fn copies_for(ptx: &Ptx, arrays: &[ArrayNumbers]) -> Vec<Copy> {
    let mut copies: Vec<Copy> = Vec::new();
    for (map, array) in ptx.maps.iter().zip(arrays) {
        let (parameter, _) = &ptx.parameters[map.parameter];
        if array.is_aligned() || parameter.access != Access::Read {
            continue;
        }
        let is_known = copies.iter().any(|copy| copy.array == *array);
        let rows = PaddedRows::of(array, map.dtype.bytes()).filter(|_| !is_known);
        copies.extend(rows.map(|rows| Copy {
            array: array.clone(),
            rows,
        }));
    }
    copies
}

impl Copy {
    /// The number of bytes.
    pub(crate) fn len(&self) -> Result<usize> {
        usize::try_from(self.rows.bytes()).map_err(|error| Error::Limit(error.to_string()))
    }

    /// The number of the kernel that makes it.
    pub(crate) fn width(&self) -> usize {
        self.rows.word.trailing_zeros() as usize
    }

    /// The grid of that kernel.
    pub(crate) fn grid(&self) -> Grid {
        self.rows.grid()
    }

    /// The arguments of that kernel, for a copy in this memory.
    pub(crate) fn arguments(&self, memory: &DeviceBuffer) -> [Passed; 6] {
        let PaddedRows {
            rows,
            columns,
            stride,
            pitch,
            ..
        } = self.rows;
        let source = Passed::Memory {
            address: self.array.address,
            bytes: self.rows.source_bytes(),
            access: Access::Read,
        };
        let number = |bits| Passed::Scalar(Literal::from_bits(DType::I64, bits));
        let [rows, columns, stride, pitch] = [rows, columns, stride, pitch].map(number);
        let memory = memory.passed(Access::ReadWrite);
        [source, memory, rows, columns, stride, pitch]
    }

    /// Has the copy, which is in this memory, take the place of its array.
    pub(crate) fn replace(&self, arrays: &mut [ArrayNumbers], memory: &DeviceBuffer) {
        for array in arrays.iter_mut().filter(|it| **it == self.array) {
            *array = self.rows.numbers(&self.array, memory.address());
        }
    }
}

impl Context {
    /// A kernel that copies rows, loaded while somebody has it.
    pub(crate) fn copier(&self, width: usize) -> Result<Arc<Kernel>> {
        let mut copiers = self.copiers();
        if let Some(kernel) = copiers[width].upgrade() {
            return Ok(kernel);
        }
        let ptx = Ptx::from_bytes(KERNELS[width]);
        let broken =
            || Error::BadImage("broken invariant: a kernel that copies rows is none".to_string());
        let kernel = Arc::new(self.load(Arc::new(ptx.ok_or_else(broken)?))?);
        copiers[width] = Arc::downgrade(&kernel);
        Ok(kernel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::marshal;
    use exactile_core::launch::Launch;

    /// Boxes of two arrays that are read, the first of which two maps name, and of one that is written.
    const SAMPLE: &str = "kernel product 128 1 4096 direct late text
parameter a read 2 any true pointer bf16
parameter b read 2 any true pointer bf16
parameter c write 2 any true pointer bf16
parameter n read 1 any false number i64
map 0 bf16 128 2 64 64 i64 number 3 i64 number 3 i64 number 3
map 0 bf16 128 2 32 64 i64 number 3 i64 number 3 i64 number 3
map 1 bf16 128 2 64 64 i64 number 3 i64 number 3 i64 number 3
map 2 bf16 128 2 64 64 i64 number 3 i64 number 3 i64 number 3

.version 8.6
";

    #[test]
    fn what_is_read_and_does_not_lie_for_bulk_copies_is_copied_once() {
        let ptx = Ptx::from_bytes(SAMPLE.as_bytes()).expect("is a kernel");
        for (n, b, expected) in [
            (64, 1 << 20, [false, false]),
            (63, 1 << 20, [true, true]),
            (64, (1 << 20) + 2, [false, true]),
        ] {
            let memory = |address, access| Passed::Memory {
                address,
                bytes: 2 * 64 * 64,
                access,
            };
            let arguments = [
                memory(1 << 16, Access::Read),
                memory(b, Access::Read),
                memory(1 << 24, Access::ReadWrite),
                Passed::Scalar(Literal::from_bits(DType::I64, n)),
            ];
            let launch = Launch::new([4, 4, 1], &arguments);
            let words = &mut crate::launch::Words::new();
            let found = marshal(&ptx, &ptx.signature(), &launch, 132, words).expect("fits");
            assert_eq!(found.arrays.len(), 4);
            let copied: Vec<u64> = found.copies.iter().map(|it| it.array.address).collect();
            let arrays = [(1 << 16, expected[0]), (b, expected[1])];
            let wanted = arrays.into_iter().filter(|&(_, is_copied)| is_copied);
            assert_eq!(
                copied,
                wanted.map(|(address, _)| address).collect::<Vec<_>>()
            );
            for copy in &found.copies {
                assert_eq!((copy.width(), copy.grid()), (1, [8, 1, 1]));
            }
        }
    }

    #[test]
    fn there_are_kernels_for_words_of_each_width() {
        for (code, bytes) in KERNELS.into_iter().zip([1, 2, 4]) {
            let ptx = Ptx::from_bytes(code).expect("is a kernel");
            let (parameter, ty) = &ptx.parameters[0];
            let (dtype, _) = ty.pointee().expect("is memory");
            assert_eq!((dtype.bytes(), parameter.divisor), (bytes, 1));
            assert!(ptx.hidden.is_empty() && ptx.maps.is_empty());
        }
    }
}
