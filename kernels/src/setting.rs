//! How a kernel is run: what a tuner varies, and the checks that all kernels share.

use exactile::{Configure, Determinism, Error, Result, Schedule, ScheduleField};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// Scores of a chunk for each lane: what a chunk takes beside its scores is shared by more of them.
pub(crate) const LANE_SCORES: usize = 32;

/// How a kernel is run. The default leaves every choice to the kernel and the compiler.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Setting {
    /// The tile size that the kernel varies; 0 lets the kernel choose.
    pub block: usize,
    /// A second extent that a kernel may vary, such as rows of a tile; 0 lets the kernel choose.
    pub width: usize,
    /// How the work of a program is laid out, of which a CPU takes no notice.
    pub schedule: Schedule,
    /// The level promised.
    pub determinism: Determinism,
}

impl Setting {
    /// The same at another level.
    #[must_use]
    pub fn at(self, determinism: Determinism) -> Self {
        Self {
            determinism,
            ..self
        }
    }

    /// The tile size, or the kernel's choice.
    pub(crate) fn block_or(&self, otherwise: usize) -> usize {
        chosen(self.block, otherwise)
    }

    /// The same, whose tiles have so many columns where none are set.
    pub(crate) fn or_width(&self, width: usize) -> Self {
        let width = self.width_or(width);
        Self { width, ..*self }
    }

    /// The same with a group of warps that starts bulk copies, where `gains` holds and nothing is set that decides on registers.
    pub(crate) fn or_producer(&self, gains: bool) -> Self {
        let mut setting = *self;
        let Schedule {
            warps,
            occupancy,
            registers,
            ..
        } = setting.schedule;
        let is_free = occupancy.is_none() && registers.is_none();
        let gains = gains && is_free && warps.is_none_or(|warps| warps == 8);
        setting.schedule.producer = setting.schedule.producer.or(gains.then_some(2));
        setting
    }

    /// The two extents of a tile, with warps and stages.
    pub(crate) fn staged((block, width, warps, stages): (usize, usize, u32, u32)) -> Self {
        Self {
            block,
            width,
            schedule: Schedule::AUTO.warps(warps).stages(stages),
            ..Self::default()
        }
    }

    /// A kernel with the rows and the columns of a tile that are set; what is not is the kernel's choice.
    pub(crate) fn tiles<K>(
        &self,
        kernel: K,
        rows: impl FnOnce(K, usize) -> K,
        columns: impl FnOnce(K, usize) -> K,
    ) -> K {
        let kernel = match self.block {
            0 => kernel,
            block => rows(kernel, block),
        };
        match self.width {
            0 => kernel,
            width => columns(kernel, width),
        }
    }

    /// The same with a lane for so many elements of a tile of `block`, where nothing says how many warps there are.
    pub(crate) fn with_lanes_of(self, elements: usize, block: usize) -> Self {
        let warps = (block / (32 * elements)).clamp(1, 32) as u32;
        let warps = self.schedule.warps.unwrap_or(warps);
        Self {
            schedule: self.schedule.warps(warps),
            ..self
        }
    }

    /// The second extent, or the kernel's choice.
    pub(crate) fn width_or(&self, otherwise: usize) -> usize {
        chosen(self.width, otherwise)
    }
}

/// Kernels that run as a setting says.
pub(crate) trait Settable: Configure {
    /// The kernel with the schedule and the level of a setting.
    fn by(self, setting: &Setting) -> Self {
        self.schedule(setting.schedule)
            .determinism(setting.determinism)
    }
}

impl<K: Configure> Settable for K {}

/// One map of numbers, in which 0 stands for what is left to the kernel or the compiler. The level is
/// no part of it.
impl Serialize for Setting {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("block", &self.block)?;
        map.serialize_entry("width", &self.width)?;
        for &field in ScheduleField::ALL {
            let value = self.schedule.get(field).unwrap_or(0);
            map.serialize_entry(field.row().name, &value)?;
        }
        map.end()
    }
}

fn chosen(given: usize, otherwise: usize) -> usize {
    match given {
        0 => otherwise,
        given => given,
    }
}

/// Whether a buffer of `len` elements is exactly an array of this shape.
pub(crate) fn check_shape(len: usize, shape: &[usize]) -> Result<()> {
    let elements = shape.iter().try_fold(1usize, |n, &e| n.checked_mul(e));
    if elements == Some(len) {
        return Ok(());
    }
    Err(Error::ShapeMismatch {
        found: vec![len],
        expected: shape.to_vec(),
    })
}

/// An extent as the kernels take it.
pub(crate) fn extent(extent: usize) -> Result<i32> {
    i32::try_from(extent)
        .map_err(|_| Error::Invalid(format!("extent {extent} is over {}", i32::MAX)))
}

/// An error unless the condition holds.
pub(crate) fn ensure(condition: bool, message: impl FnOnce() -> String) -> Result<()> {
    if condition {
        return Ok(());
    }
    Err(Error::Invalid(message()))
}
