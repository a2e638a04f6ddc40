//! The parameters of a kernel, in a form that each launch is compared with in little time.

use super::{LaunchError, Passed, bytes_of, check_arguments};
use crate::ir::{Access, DType, Parameter, Space, Type};

/// What a kernel takes. Arguments that plainly fit are told by a few comparisons each; the others are looked at again.
#[derive(Clone, Debug)]
pub struct Signature {
    kernel: String,
    parameters: Vec<(Parameter, Type)>,
    quick: Vec<Quick>,
    /// The positions of those that are memory, with whether the kernel writes it.
    memories: Vec<(usize, bool)>,
}

/// What plainly fits a parameter.
#[derive(Clone, Copy, Debug)]
enum Quick {
    Memory {
        access: Access,
        /// The bits that are zero in the number of bytes, and in the address.
        bytes: u64,
        address: u64,
    },
    Number {
        dtype: DType,
        /// The bits that are zero in it.
        bits: u64,
    },
    /// Nobody says.
    Unknown,
}

/// The bits that are zero in a multiple of it; nothing where that is no power of two.
fn zeros(divisor: u32) -> Option<u64> {
    let divisor = u64::from(divisor.max(1));
    divisor.is_power_of_two().then(|| divisor - 1)
}

impl Quick {
    fn of(parameter: &Parameter, ty: Type) -> Self {
        let quick = match (ty.pointee(), ty.dtype()) {
            (Some((dtype, Space::Global)), _) => {
                let size = dtype.bytes();
                let zeros = zeros(size).zip(zeros(size.max(parameter.divisor)));
                zeros.map(|(bytes, address)| Self::Memory {
                    access: parameter.access,
                    bytes,
                    address,
                })
            }
            (None, Some(dtype)) if ty.is_scalar() && parameter.within.is_none() => {
                let zeros = match dtype.is_integer() {
                    true => zeros(parameter.divisor),
                    false => Some(0),
                };
                zeros.map(|bits| Self::Number { dtype, bits })
            }
            (Some(_) | None, _) => None,
        };
        quick.unwrap_or(Self::Unknown)
    }

    fn accepts(self, argument: &Passed) -> bool {
        match (self, *argument) {
            (
                Self::Memory {
                    access,
                    bytes: zeros,
                    address: zeros_of_address,
                },
                Passed::Memory {
                    address,
                    bytes,
                    access: found,
                },
            ) => {
                let writable = access == Access::Read || found == Access::ReadWrite;
                let aligned = address & zeros_of_address == 0 || bytes == 0;
                writable && aligned && bytes & zeros == 0
            }
            (Self::Number { dtype, bits }, Passed::Scalar(literal)) => {
                literal.dtype == dtype && literal.bits & bits == 0
            }
            (Self::Memory { .. }, Passed::Scalar(_))
            | (Self::Number { .. }, Passed::Memory { .. })
            | (Self::Unknown, _) => false,
        }
    }
}

impl Signature {
    /// That of a kernel with these parameters.
    pub fn new<'p>(kernel: &str, parameters: impl Iterator<Item = (&'p Parameter, Type)>) -> Self {
        let parameters: Vec<_> = parameters.map(|(it, ty)| (it.clone(), ty)).collect();
        let memory = |(index, (parameter, ty)): (usize, &(Parameter, Type))| {
            let written = parameter.access == Access::ReadWrite;
            ty.pointee().map(|_| (index, written))
        };
        Self {
            memories: parameters.iter().enumerate().filter_map(memory).collect(),
            kernel: kernel.to_string(),
            quick: parameters
                .iter()
                .map(|(it, ty)| Quick::of(it, *ty))
                .collect(),
            parameters,
        }
    }

    /// The parameters with their types.
    #[must_use]
    pub fn parameters(&self) -> &[(Parameter, Type)] {
        &self.parameters
    }

    /// As [`check_arguments`].
    ///
    /// # Errors
    /// Says which argument does not fit its parameter, and why.
    pub fn check(&self, arguments: &[Passed]) -> Result<(), LaunchError> {
        let mut pairs = self.quick.iter().zip(arguments);
        let parameters = self.parameters.iter().map(|(it, ty)| (it, *ty));
        let quickly = self.quick.len() == arguments.len()
            && pairs.all(|(it, passed)| it.accepts(passed))
            && self.are_apart(arguments);
        match quickly {
            true => Ok(()),
            false => check_arguments(&self.kernel, parameters, arguments),
        }
    }

    /// Whether no memory that is written meets other memory.
    fn are_apart(&self, arguments: &[Passed]) -> bool {
        let mut memories = self.memories.as_slice();
        while let [(index, written), others @ ..] = memories {
            memories = others;
            let Some(one) = bytes_of(&arguments[*index]) else {
                continue;
            };
            let meets = |&(index, is_written): &(usize, bool)| {
                let other = (*written || is_written).then(|| bytes_of(&arguments[index]));
                let other = other.flatten();
                other.is_some_and(|other| one.start < other.end && other.start < one.end)
            };
            if others.iter().any(meets) {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Literal;
    use crate::random::Random;
    use crate::text::parse;

    const KERNEL: &str = "\
func @f block (%x: ptr<f32>, %y: ptr<i16> write, %a: i32, %b: f32, %c: i64, %d: bool) {
}
";

    #[test]
    fn what_plainly_fits_is_what_fits() {
        let func = parse(KERNEL, "f.bir").expect("parses");
        let mut random = Random::stream(3, 0);
        let (mut fitting, mut others) = (0, 0);
        for _ in 0..20_000 {
            let changed = super::super::parameters(&func).map(|(parameter, ty)| {
                let divisor = [0, 1, 2, 16, 12][random.below(5)];
                let within = [None, Some([-3, 40])][usize::from(random.below(4) == 0)];
                let is_number = ty.pointee().is_none();
                let parameter = Parameter {
                    divisor,
                    within: within.filter(|_| is_number),
                    ..parameter.clone()
                };
                (parameter, ty)
            });
            let changed: Vec<_> = changed.collect();
            let parameters = || changed.iter().map(|(it, ty)| (it, *ty));
            let signature = Signature::new("f", parameters());
            let count = 6 - usize::from(random.below(50) == 0);
            let arguments: Vec<Passed> = changed
                .iter()
                .map(|(_, ty)| argument(&mut random, *ty))
                .take(count)
                .collect();
            let want = check_arguments("f", parameters(), &arguments);
            assert_eq!(signature.check(&arguments), want, "{arguments:?}");
            match want {
                Ok(()) => fitting += 1,
                Err(_) => others += 1,
            }
        }
        assert!(fitting > 200 && others > 200, "{fitting}, {others}");
    }

    /// Mostly one that fits.
    fn argument(random: &mut Random, ty: Type) -> Passed {
        let numbers = [0, 16, 48, 32, 12, 7, u64::from(u32::MAX - 15)];
        let pointee = ty.pointee();
        let is_memory = pointee.is_some() != (random.below(60) == 0);
        if is_memory {
            return Passed::Memory {
                address: [0, 48, 96, 4, 2][random.below(5)] + 4096,
                bytes: [0, 8, 64, 6, 3][random.below(5)],
                access: [Access::ReadWrite, Access::Read][usize::from(random.below(8) == 0)],
            };
        }
        let dtype = match random.below(40) {
            0 => DType::I32,
            _ => ty.dtype().unwrap_or(DType::F32),
        };
        let bits = numbers[random.below(numbers.len())];
        Passed::Scalar(Literal::from_bits(dtype, bits))
    }
}
