//! Launches on a GPU that are like one before them in all that was found out for it: which code it runs, that its arguments
//! fit, and that no access misses. One pass compares them with it and fills the words that the driver takes.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use exactile_core::ir::{Access, DType, Grid, Literal};
use exactile_core::launch::{Launch, Numbers, Passed};
use exactile_core::target::{Bounds, Determinism};
use rustc_hash::FxHasher;

use crate::arguments::BoundArguments;
use crate::bound::{Bound, Choices};
use crate::code::{Code, Runs};
use crate::cuda::{ALIKE, Gpu, GpuCode, GpuMemory, Placed, Words};
use crate::device::Device;
use crate::part::{Part, PartMut};

/// So many launches of a kernel are kept.
const MOST: usize = 8;

/// What a kernel is asked for, beside its arguments.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Asked {
    pub(crate) bounds: Bounds,
    pub(crate) determinism: Determinism,
    pub(crate) grid: Grid,
}

/// What a launch hands over, and to what.
pub(crate) struct Handed<'l, 'a> {
    pub(crate) bound: &'l BoundArguments<'a>,
    pub(crate) gpu: &'l Arc<Gpu>,
    /// Whether what an earlier launch has proved counts.
    pub(crate) trusts_proofs: bool,
}

/// A launch that was put into a stream, of code that checks no access and prints nothing.
pub(crate) struct Warm {
    asked: Asked,
    choices: Choices,
    arguments: Box<[Like]>,
    /// The last number that is the same: where launches differ in one, it mostly is that.
    last_number: Option<(usize, u64)>,
    apart: Box<[Apart]>,
    /// Whether it follows from a proof that no access misses.
    is_proved: bool,
    code: Code,
    placed: Placed,
}

/// What an argument is like.
#[derive(Clone, Copy)]
enum Like {
    /// Memory of the device: so many bytes, from an address on whose low bits are these.
    Memory {
        access: Access,
        bytes: u64,
        low: u64,
    },
    /// A number of a type, with these bits where `counts` is set.
    Number {
        dtype: DType,
        bits: u64,
        counts: u64,
    },
}

/// Two arguments that must not meet, since the code writes one of them.
struct Apart {
    arguments: [usize; 2],
    /// Of each.
    bytes: [u64; 2],
}

impl Like {
    /// `counts`: whether it follows from the number that no access misses. Which code is run and whether the argument fits
    /// follows from the type of a float alone.
    fn of(argument: Passed, counts: bool) -> Self {
        match argument {
            Passed::Memory {
                address,
                bytes,
                access,
            } => Self::Memory {
                access,
                bytes,
                low: address % ALIKE,
            },
            Passed::Scalar(Literal { dtype, bits }) => Self::Number {
                dtype,
                bits,
                counts: match dtype.is_float() && !counts {
                    true => 0,
                    false => u64::MAX,
                },
            },
        }
    }

    /// The bits of a number that is the same.
    fn number(&self) -> Option<u64> {
        match *self {
            Self::Number { bits, counts, .. } => (counts != 0).then_some(bits),
            Self::Memory { .. } => None,
        }
    }

    /// The word of an argument that is like this.
    #[inline]
    fn word(&self, argument: &Bound<'_>, gpu: &Arc<Gpu>) -> Option<u64> {
        match (self, argument) {
            (
                Self::Number {
                    dtype,
                    bits,
                    counts,
                },
                Bound::Scalar(found),
            ) => {
                let is_same = *dtype == found.dtype && (bits ^ found.bits) & counts == 0;
                is_same.then_some(found.bits)
            }
            (Self::Memory { .. }, Bound::Read(Part::Gpu(device, memory, range))) => {
                self.address(Access::Read, (device, memory, *range), gpu)
            }
            (Self::Memory { .. }, Bound::ReadWrite(PartMut::Gpu(device, memory, range))) => {
                self.address(Access::ReadWrite, (device, memory, *range), gpu)
            }
            _ => None,
        }
    }

    /// Where memory is that is like this.
    #[inline]
    fn address(
        &self,
        found: Access,
        (device, memory, [start, len]): (&Device, &GpuMemory, [usize; 2]),
        gpu: &Arc<Gpu>,
    ) -> Option<u64> {
        let Self::Memory { access, bytes, low } = *self else {
            return None;
        };
        let address = memory.address() + start as u64;
        let is_like = access == found && bytes == len as u64 && low == address % ALIKE;
        let is_there = device.gpu().is_some_and(|it| Arc::ptr_eq(it, gpu));
        (is_like && is_there).then_some(address)
    }
}

impl Apart {
    /// Those of a launch.
    fn of(arguments: &[Passed]) -> Box<[Self]> {
        let memories = arguments.iter().enumerate();
        let memories: Vec<_> = memories
            .filter_map(|(index, argument)| match *argument {
                Passed::Memory { bytes, access, .. } if bytes > 0 => Some((index, bytes, access)),
                Passed::Memory { .. } | Passed::Scalar(_) => None,
            })
            .collect();
        let mut all = Vec::new();
        for (place, &(one, bytes, access)) in memories.iter().enumerate() {
            let others = memories[place + 1..].iter();
            let others = others.filter(|(.., it)| [access, *it].contains(&Access::ReadWrite));
            all.extend(others.map(|&(other, others_bytes, _)| Self {
                arguments: [one, other],
                bytes: [bytes, others_bytes],
            }));
        }
        all.into()
    }

    #[inline]
    fn holds(&self, words: &Words) -> bool {
        let [one, other] = self.arguments.map(|it| words.get(it).copied());
        let Some((one, other)) = one.zip(other) else {
            return false;
        };
        one.saturating_add(self.bytes[0]) <= other || other.saturating_add(self.bytes[1]) <= one
    }
}

impl Warm {
    /// A launch that was put there with this code; `counts`: the numbers from which it follows that no access misses, if
    /// that was proved. Nothing where there is more to find out of the next one than this compares.
    pub(crate) fn of(
        asked: Asked,
        choices: &Choices,
        launch: &Launch<'_>,
        code: &Code,
        counts: Option<Numbers>,
    ) -> Option<Self> {
        let Runs::Gpu(gpu_code) = &*code.runs else {
            return None;
        };
        let placed = gpu_code.placed(launch)?;
        let numbers = counts.unwrap_or_default();
        let arguments = launch.arguments.iter().enumerate();
        let arguments: Box<[Like]> = arguments
            .map(|(index, &argument)| Like::of(argument, numbers.has(index)))
            .collect();
        let mut from_last = arguments.iter().enumerate().rev();
        Some(Self {
            asked,
            choices: choices.clone(),
            last_number: from_last.find_map(|(index, like)| Some((index, like.number()?))),
            arguments,
            apart: Apart::of(launch.arguments),
            is_proved: counts.is_some(),
            code: code.clone(),
            placed,
        })
    }

    /// Whether launches with this code are kept at all.
    pub(crate) fn can_be_of(launch: &Launch<'_>, code: &Code) -> bool {
        match &*code.runs {
            Runs::Gpu(gpu_code) => {
                let is_plain = code.prints.is_empty() && !code.asks_addresses;
                is_plain && !gpu_code.has_bounds_checks() && !launch.grid.contains(&0)
            }
            Runs::Interpreter(_) | Runs::Lanes(_) | Runs::Cpu(_) => false,
        }
    }

    /// Whether a launch is like this one, on this device; then `words` are those of its arguments.
    pub(crate) fn is_like(&self, asked: Asked, handed: &Handed<'_, '_>, words: &mut Words) -> bool {
        let BoundArguments { list, choices } = handed.bound;
        if self.asked != asked
            || self.is_proved && !handed.trusts_proofs
            || self.arguments.len() != list.len()
            || self.last_number.is_some_and(|(index, bits)| {
                matches!(list.get(index), Some(Bound::Scalar(found)) if found.bits != bits)
            })
            || self.choices != *choices
        {
            return false;
        }
        let pairs = self.arguments.iter().zip(list);
        for ((like, argument), place) in pairs.zip(words.iter_mut()) {
            match like.word(argument, handed.gpu) {
                Some(word) => *place = word,
                None => return false,
            }
        }
        self.apart.iter().all(|it| it.holds(words))
    }

    pub(crate) fn code(&self) -> &Code {
        &self.code
    }

    /// What a GPU is handed for it.
    pub(crate) fn on_gpu(&self) -> Option<(&GpuCode, &Placed)> {
        match &*self.code.runs {
            Runs::Gpu(gpu_code) => Some((gpu_code, &self.placed)),
            Runs::Interpreter(_) | Runs::Lanes(_) | Runs::Cpu(_) => None,
        }
    }
}

/// Launches of a kernel.
#[derive(Default)]
pub(crate) struct Warms {
    list: Vec<Arc<Warm>>,
    /// Sums of the last launches that were not kept.
    passed_by: [u64; MOST],
    /// How many were not kept, and how many took the place of another one.
    turns: [usize; 2],
}

impl Warms {
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// One that a launch is like; then `words` are those of its arguments.
    pub(crate) fn find(
        &self,
        asked: Asked,
        handed: &Handed<'_, '_>,
        words: &mut Words,
    ) -> Option<Arc<Warm>> {
        let mut list = self.list.iter();
        list.find(|it| it.is_like(asked, handed, words)).cloned()
    }

    /// Keeps what `make` makes of a launch. Where there is no more room, only of one that came not long ago too: to keep
    /// launches that never come again would cost more than it saves.
    pub(crate) fn keep(&mut self, launch: &Launch<'_>, make: impl FnOnce() -> Option<Warm>) {
        let [others, replaced] = &mut self.turns;
        let is_full = self.list.len() == MOST;
        let sum = is_full.then(|| sum_of(launch));
        if let Some(sum) = sum.filter(|it| !self.passed_by.contains(it)) {
            self.passed_by[*others % MOST] = sum;
            *others += 1;
        } else if let Some(warm) = make() {
            if is_full {
                self.list[*replaced % MOST] = Arc::new(warm);
                *replaced += 1;
            } else {
                self.list.push(Arc::new(warm));
            }
        }
    }
}

/// Mostly the same for two launches only if they are alike.
fn sum_of(launch: &Launch<'_>) -> u64 {
    let mut hasher = FxHasher::default();
    launch.grid.hash(&mut hasher);
    for argument in launch.arguments {
        hasher.write_u64(match *argument {
            Passed::Memory { bytes, .. } => bytes,
            Passed::Scalar(literal) if literal.dtype.is_float() => 0,
            Passed::Scalar(literal) => literal.bits,
        });
    }
    hasher.finish()
}

#[cfg(all(test, feature = "cuda"))]
mod tests;
