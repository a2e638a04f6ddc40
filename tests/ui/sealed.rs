//! What a number is is not for users to say: memory and code rely on it.

use exactile::{DType, Number};

#[derive(Clone, Copy, Default, PartialEq, Debug)]
struct Mine;

impl Number for Mine {
    const DTYPE: DType = DType::F64;
    fn to_bits(self) -> u64 {
        0
    }
    fn from_bits(_: u64) -> Self {
        Self
    }
    fn write_to(self, _: &mut [u8]) {}
    fn read_from(_: &[u8]) -> Self {
        Self
    }
}

fn main() {}
