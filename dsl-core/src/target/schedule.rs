//! How the work of a program is laid out: one row for each choice.

use std::fmt;
use std::ops::RangeInclusive;

use super::{Gpu, Target};

/// The numbers of its range that a field takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Values {
    /// Every one.
    All,
    /// Powers of two.
    PowersOfTwo,
}

/// What is known of a field of the schedule.
#[derive(Debug)]
pub struct ScheduleRow {
    /// Its name in Rust, in the text form and, after two dashes, on the command line.
    pub name: &'static str,
    /// Its documentation.
    pub about: &'static str,
    /// The numbers of its range that it takes.
    pub values: Values,
    /// The least and the greatest number on a GPU. A CPU takes no notice of a schedule.
    pub range: fn(&Gpu) -> RangeInclusive<u32>,
    /// Whether a lane function states it, because what follows makes the choice: the backend, the assembler or the
    /// launch. The lowering makes the others.
    pub kept: bool,
    /// Numbers worth a try: of tuners and of random programs.
    pub tries: &'static [u32],
}

macro_rules! schedule {
    ($($(#[doc = $about:literal])+ $variant:ident $name:ident {
        values: $values:ident, range: $range:expr, kept: $kept:expr, tries: $tries:expr $(,)?
    })*) => {
        /// How the work of a program is laid out. No field changes a bit of a result, and each is the
        /// compiler's to choose where it is `None`.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct Schedule {
            $($(#[doc = $about])+ pub $name: Option<u32>,)*
        }

        /// A field of the [`Schedule`].
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum ScheduleField {
            $($(#[doc = $about])+ $variant,)*
        }

        impl ScheduleField {
            /// All fields, in the order of the text form.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// What is known of it.
            pub const fn row(self) -> &'static ScheduleRow {
                match self {
                    $(Self::$variant => &ScheduleRow {
                        name: stringify!($name),
                        about: concat!($($about),+),
                        values: Values::$values,
                        range: $range,
                        kept: $kept,
                        tries: &$tries,
                    },)*
                }
            }
        }

        impl Schedule {
            /// The compiler chooses everything.
            pub const AUTO: Self = Self { $($name: None),* };

            $(
                $(#[doc = $about])+
                #[must_use]
                pub const fn $name(self, $name: u32) -> Self {
                    Self { $name: Some($name), ..self }
                }
            )*

            /// The number that a field asks for; `None` leaves it to the compiler.
            pub const fn get(&self, field: ScheduleField) -> Option<u32> {
                match field {
                    $(ScheduleField::$variant => self.$name,)*
                }
            }

            /// Changes what a field asks for.
            pub const fn set(&mut self, field: ScheduleField, value: Option<u32>) {
                match field {
                    $(ScheduleField::$variant => self.$name = value,)*
                }
            }
        }
    };
}

/// Calls `$m!` with a row for each field of the schedule.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_schedule_field {
    ($m:ident) => {
        $m! {
            /// Warps of a thread block, a power of two; otherwise they follow from the tiles.
            Warps warps {
                values: PowersOfTwo,
                range: |gpu| 1..=gpu.most_warps,
                kept: false,
                tries: [1, 2, 4, 8, 16, 32],
            }
            /// Depth of all software pipelines, an error where the shared memory is too small for it; otherwise
            /// each loop states its own, which is less where that does not fit.
            Stages stages {
                values: All,
                range: |_| 1..=u32::MAX,
                kept: false,
                tries: [1, 2, 3, 4],
            }
            /// Thread blocks that a multiprocessor has registers for, at least: lanes get fewer registers, and
            /// spill what does not fit; otherwise it is left to the assembler.
            Occupancy occupancy {
                values: All,
                range: |gpu| 1..=gpu.resident_blocks,
                kept: true,
                tries: [1, 2, 4],
            }
            /// Registers that a thread may use, at most: what does not fit spills; otherwise it is left to the
            /// assembler.
            Registers registers {
                values: All,
                range: |gpu| gpu.thread_registers.0..=gpu.thread_registers.1,
                kept: true,
                tries: [32, 64, 128],
            }
            /// Iterations of a loop that are under way at once where one product follows from another: with 2 the first product of
            /// the next one begins before the second of its own, with 1 it does not; otherwise it follows from the loop.
            Overlap overlap {
                values: All,
                range: |_| 1..=2,
                kept: false,
                tries: [1, 2],
            }
            /// Groups of warps that take the iterations of a loop over tiles in turns: with 2 a thread block has twice its warps, and
            /// one half works on the results of a tile while the other multiplies for the next one, where the loop allows it and the
            /// program has four warps; with 1, and otherwise, all warps take all iterations.
            Pingpong pingpong {
                values: All,
                range: |_| 1..=2,
                kept: false,
                tries: [],
            }
            /// Who starts bulk copies: with 2 a thread block has a group of four warps more, of which one does nothing but fill the slots of
            /// rings as soon as they are free, where numbers alone decide on the copies and no tile is put together of parts; with 1, and otherwise, warps that multiply
            /// fill them between their products.
            Producer producer {
                values: All,
                range: |_| 1..=2,
                kept: false,
                tries: [],
            }
            /// Programs that share a thread block, at most, a power of two: fewer where a thread block has no room for them, or
            /// a launch too few; otherwise they follow from the program.
            Programs programs {
                values: PowersOfTwo,
                range: |gpu| 1..=gpu.most_warps,
                kept: true,
                tries: [1, 2, 4, 8],
            }
            /// Launches of a stream that begin at once: with 2 the thread blocks of a launch begin while the launch before it
            /// ends, and wait for its end before they touch memory, on GPUs that can; with 1, and otherwise, they begin after it.
            Early early {
                values: All,
                range: |_| 1..=2,
                kept: true,
                tries: [],
            }
        }
    };
}

for_each_schedule_field!(schedule);

impl ScheduleField {
    /// The field with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|field| field.row().name == name)
    }

    /// The least and the greatest number on any GPU.
    pub fn range(self) -> RangeInclusive<u32> {
        let ranges = Target::GPUS
            .iter()
            .map(|target| (self.row().range)(&target.gpu));
        ranges
            .reduce(|one, other| *one.start().min(other.start())..=*one.end().max(other.end()))
            .unwrap_or(0..=0)
    }

    /// Whether the field takes this number where its range is `range`.
    ///
    /// # Errors
    /// What it takes, when it does not take this.
    pub fn check(self, value: u32, range: &RangeInclusive<u32>) -> Result<(), String> {
        let (fits, kind) = match self.row().values {
            Values::All => (true, "a number"),
            Values::PowersOfTwo => (value.is_power_of_two(), "a power of two"),
        };
        if fits && range.contains(&value) {
            return Ok(());
        }
        let (name, least, most) = (self.row().name, range.start(), range.end());
        Err(format!(
            "`{name}` is {value}, expected {kind} from {least} to {most}"
        ))
    }
}

impl Schedule {
    /// The fields that ask for a number, and the number.
    pub fn chosen(&self) -> impl Iterator<Item = (ScheduleField, u32)> {
        let fields = ScheduleField::ALL.iter();
        fields.filter_map(|&field| Some((field, self.get(field)?)))
    }

    /// What of it a lane function states.
    #[must_use]
    pub fn kept(&self) -> Self {
        let mut kept = Self::AUTO;
        for (field, value) in self.chosen().filter(|(field, _)| field.row().kept) {
            kept.set(field, Some(value));
        }
        kept
    }

    /// Whether every number is in the range of the GPU.
    ///
    /// # Errors
    /// The first field that is not, by its name.
    pub fn check(&self, gpu: &Gpu) -> Result<(), String> {
        let mut chosen = self.chosen();
        chosen.try_for_each(|(field, value)| field.check(value, &(field.row().range)(gpu)))
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Schedule");
        for (field, value) in self.chosen() {
            fields.field(field.row().name, &value);
        }
        fields.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{Schedule, ScheduleField, Target};

    #[test]
    fn names_are_distinct_and_tries_are_taken_on_every_gpu() {
        for &field in ScheduleField::ALL {
            assert_eq!(ScheduleField::from_name(field.row().name), Some(field));
            for target in Target::GPUS {
                for &value in field.row().tries {
                    let mut schedule = Schedule::AUTO;
                    schedule.set(field, Some(value));
                    assert_eq!(schedule.check(&target.gpu), Ok(()), "{}", target.name);
                }
            }
        }
    }

    #[test]
    fn numbers_out_of_range_are_refused_by_name() {
        let error = |schedule: Schedule, target: Target| schedule.check(&target.gpu).err();
        let text = |text: &str| Some(text.to_string());
        for warps in [0, 3, 64] {
            let expected = format!("`warps` is {warps}, expected a power of two from 1 to 32");
            assert_eq!(
                error(Schedule::AUTO.warps(warps), Target::SM_80),
                Some(expected)
            );
        }
        assert_eq!(
            error(Schedule::AUTO.occupancy(20), Target::SM_86),
            text("`occupancy` is 20, expected a number from 1 to 16")
        );
        assert_eq!(error(Schedule::AUTO.occupancy(20), Target::SM_80), None);
        assert_eq!(ScheduleField::Occupancy.range(), 1..=32);
    }

    #[test]
    fn a_schedule_prints_what_it_asks_for() {
        let schedule = Schedule::AUTO.warps(4).occupancy(2);
        assert_eq!(
            format!("{schedule:?}"),
            "Schedule { warps: 4, occupancy: 2 }"
        );
        assert_eq!(schedule.kept(), Schedule::AUTO.occupancy(2));
    }
}
