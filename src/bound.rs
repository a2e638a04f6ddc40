//! Arguments bound to parameters, and what the compiler may assume of them.

use exactile_core::diagnostic::Loc;
use exactile_core::ir::{Class, Func, Literal, Op};
use exactile_core::verify::{self, BlockFunc};

use crate::buffer::Storage;
use crate::device::Device;
use crate::error::{Error, Result};

/// The greatest divisor of addresses and integers that the compiler is told about: bytes of the
/// widest access. Smaller powers of two count too: a row of 1000 floats starts at a multiple of 16
/// bytes.
const DIVISOR: u32 = 16;

/// An argument bound to a parameter.
pub(crate) enum Bound<'a> {
    /// Memory that the kernel reads.
    Read(&'a Device, &'a Storage),
    /// Memory that the kernel may write.
    ReadWrite(&'a Device, &'a mut Storage),
    /// A number.
    Scalar(Literal),
}

impl Bound<'_> {
    /// Where its memory is.
    pub(crate) fn device(&self) -> Option<&Device> {
        match self {
            Self::Read(device, _) | Self::ReadWrite(device, _) => Some(device),
            Self::Scalar(_) => None,
        }
    }

    /// Bytes of its memory.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Read(_, storage) => storage.len(),
            Self::ReadWrite(_, storage) => storage.len(),
            Self::Scalar(_) => 0,
        }
    }

    /// What the compiler may know of the argument: launches that agree in it share their code.
    pub(crate) fn known(&self) -> Known {
        let address = |storage: &Storage| divisor(i128::from(storage.address()));
        Known::Divisor(match self {
            Self::Read(_, storage) => address(storage),
            Self::ReadWrite(_, storage) => address(storage),
            Self::Scalar(literal) => match integer(*literal) {
                Some(1) => return Known::One,
                Some(value) => divisor(value),
                None => 1,
            },
        })
    }
}

/// What is known of an argument when its launch is compiled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Known {
    /// What divides the address or the integer.
    Divisor(u32),
    /// It is the integer 1, as the stride of a contiguous axis is.
    One,
}

/// The greatest power of two up to [`DIVISOR`] that divides `value`.
fn divisor(value: i128) -> u32 {
    1 << value.trailing_zeros().min(DIVISOR.trailing_zeros())
}

/// The value of an integer that is no `bool`.
fn integer(literal: Literal) -> Option<i128> {
    match literal.dtype.class() {
        Class::Signed | Class::Unsigned => literal.integer(),
        Class::Bool | Class::Float => None,
    }
}

/// Writes what is known of the arguments into the function: divisors into the parameters, a constant
/// for the uses of a parameter that is 1.
pub(crate) fn specialise(func: BlockFunc, known: &[Known]) -> Result<BlockFunc> {
    let mut func: Func = func.into_inner();
    for (index, &known) in known.iter().enumerate().take(func.parameters.len()) {
        match known {
            Known::Divisor(divisor) => {
                let parameter = &mut func.parameters[index];
                parameter.divisor = parameter.divisor.max(divisor);
            }
            Known::One => replace_by_one(&mut func, index),
        }
    }
    let name = func.name.clone();
    verify::block(func).map_err(|diagnostics| Error::Compile {
        kernel: name,
        diagnostics,
    })
}

fn replace_by_one(func: &mut Func, parameter: usize) {
    let value = func.arguments()[parameter];
    let Some(literal) = func
        .ty(value)
        .dtype()
        .and_then(|dtype| Literal::from_integer(dtype, 1))
    else {
        return;
    };
    let uses = func.all_insts();
    let ty = func.ty(value);
    let constant = func.add_inst(Op::Constant { value: literal }, &[ty], Loc::none());
    let one = func.inst(constant).results[0];
    for inst in uses {
        let op = &mut func.inst_mut(inst).op;
        op.map_operands(&mut |operand| if operand == value { one } else { operand });
    }
    let body = func.body();
    func.region_mut(body).insts.insert(0, constant);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_known_by_their_power_of_two() {
        let known = |value: i128| {
            let literal = Literal::from_integer(exactile_core::ir::DType::I64, value);
            Bound::Scalar(literal.expect("fits")).known()
        };
        let found = [0, 1, 7, 1000, 4096, -6].map(known);
        let divisors = [16, 0, 1, 8, 16, 2];
        for (found, divisor) in found.into_iter().zip(divisors) {
            let expected = if divisor == 0 {
                Known::One
            } else {
                Known::Divisor(divisor)
            };
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_parameter_that_is_one_becomes_a_constant() {
        let source = "func @f block (%x: ptr<f32> write, %stride: i64, %n: i64) {
            %i = arange start=0, end=4 : tile<4xi64>
            %s = splat %stride : tile<4xi64>
            %o = mul %i, %s : tile<4xi64>
            %v = load %x, %o : tile<4xf32>
            store %x, %o, %v
          }";
        let func = exactile_core::text::parse(source, "test.bir").expect("parses");
        let func = verify::block(func).expect("verifies");
        let known = [Known::Divisor(16), Known::One, Known::Divisor(1)];
        let mut func = specialise(func, &known).expect("verifies").into_inner();
        assert_eq!(func.parameters[0].divisor, 16);
        exactile_core::passes::tidy(&mut func);
        assert!(!func.to_string().contains("mul"), "{func}");
    }
}
