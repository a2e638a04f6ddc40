//! The configurations of a kernel that a tuner chooses from.

use exactile_core::schedule::assign::warps_of;
use exactile_core::target::{Schedule, ScheduleField, Target};
use exactile_core::verify::BlockFunc;

use crate::configure::Configure;
use crate::device::Device;
use crate::error::{Error, Result};

/// The most combinations of numbers of const generics.
const MOST_TILES: usize = 20_000;

/// The kernel with another configuration.
pub(super) fn at<K: Configure>(kernel: &K, config: K::Config) -> K {
    let mut other = kernel.clone();
    other.configured_mut().set_all(config);
    other
}

/// What is known of a configuration before it is compiled.
pub(super) struct Sketch {
    /// Bytes of the largest tile.
    pub(super) bytes: usize,
    /// The warps that the compiler would choose.
    pub(super) warps: u32,
}

impl Sketch {
    pub(super) fn of(func: &BlockFunc, target: &Target) -> Self {
        let tiles = func.values().filter_map(|value| {
            let ty = func.ty(value);
            let dtype = ty.dtype()?;
            (!ty.is_scalar()).then(|| ty.shape.elements() * dtype.bytes() as usize)
        });
        Self {
            bytes: tiles.max().unwrap_or(1),
            warps: warps_of(func, target, &Schedule::AUTO),
        }
    }
}

pub(super) fn schedule_of<K: Configure>(kernel: &K, mut config: K::Config) -> Schedule {
    *(kernel.configured().definition.schedule)(&mut config)
}

pub(super) fn with_schedule<K: Configure>(
    kernel: &K,
    mut config: K::Config,
    schedule: Schedule,
) -> K::Config {
    *(kernel.configured().definition.schedule)(&mut config) = schedule;
    config
}

/// All combinations of what is not set, those of one tile size behind each other.
///
/// # Errors
/// There are too many.
pub(super) fn combinations<K: Configure>(kernel: &K, device: &Device) -> Result<Vec<K::Config>> {
    let configured = kernel.configured();
    let base = configured.definition.config;
    let mut tiles = vec![base];
    for (place, meta) in configured.definition.metas.iter().enumerate() {
        if let (false, Some(each)) = (configured.is_set(place), meta.each) {
            let numbers = (meta.range)().len();
            if tiles.len().saturating_mul(numbers) > MOST_TILES {
                return Err(Error::Invalid(format!(
                    "kernel `{}`: its `#[meta(..)]` make more than {MOST_TILES} combinations: set some of its \
                     const generics before it is tuned, or state fewer numbers",
                    configured.definition.name
                )));
            }
            tiles = tiles.iter().flat_map(each).collect();
        }
    }
    if !tiles.contains(&base) && configured.kernel().check_set().is_ok() {
        tiles.push(base);
    }
    let own = schedule_of(kernel, base);
    let mut schedules = vec![own];
    if device.runs_lanes() {
        let open = |field: &ScheduleField| own.get(*field).is_none();
        let tries = |from: Schedule, field: ScheduleField| {
            field.row().tries.iter().map(move |&value| {
                let mut other = from;
                other.set(field, Some(value));
                other
            })
        };
        let alone = ScheduleField::ALL.iter().copied().filter(open);
        schedules.extend(alone.flat_map(|field| tries(own, field)));
        if open(&ScheduleField::Warps) && open(&ScheduleField::Stages) {
            let warps = tries(own, ScheduleField::Warps);
            schedules.extend(warps.flat_map(|warps| tries(warps, ScheduleField::Stages)));
        }
    }
    let with = |&config: &K::Config| {
        let schedules = schedules.iter();
        schedules.map(move |&schedule| with_schedule(kernel, config, schedule))
    };
    Ok(tiles.iter().flat_map(with).collect())
}
