//! What a tuner chooses from: settings that give a lane a fitting part of the tile, the likeliest
//! first.

use exactile::{Schedule, ScheduleField, Target};

use crate::setting::Setting;

/// Elements of a tile that a lane may hold.
const LANE_ELEMENTS: std::ops::RangeInclusive<usize> = 1..=128;

/// What a lane holds in code that streams well.
const GOOD_LANE_ELEMENTS: usize = 16;

/// Every combination of extents and warps that gives a lane a fitting part of the tile; the
/// likeliest first: those with a good part of it.
pub(crate) fn space(
    blocks: &[usize],
    widths: &[usize],
    stages: &[Option<u32>],
    elements: impl Fn(usize, usize) -> usize,
) -> Vec<Setting> {
    let likely = |lane: usize, _: &Setting| distance(lane, GOOD_LANE_ELEMENTS);
    space_by(blocks, widths, stages, elements, likely)
}

/// The warps that a setting asks for.
pub(crate) fn warps(setting: &Setting) -> usize {
    setting.schedule.warps.map_or(1, |warps| warps as usize)
}

/// How many doublings lie between two numbers.
pub(crate) fn distance(one: usize, other: usize) -> f64 {
    (one as f64 / other as f64).log2().abs()
}

/// [`space`] in an order of the caller's choice, from what a lane holds and the setting: the least
/// first.
pub(crate) fn space_by(
    blocks: &[usize],
    widths: &[usize],
    stages: &[Option<u32>],
    elements: impl Fn(usize, usize) -> usize,
    order: impl Fn(usize, &Setting) -> f64,
) -> Vec<Setting> {
    let mut settings = Vec::new();
    for (&block, &width) in blocks
        .iter()
        .flat_map(|b| widths.iter().map(move |w| (b, w)))
    {
        let warps = ScheduleField::Warps.row().tries.iter();
        for (&warps, &stages) in warps.flat_map(|w| stages.iter().map(move |s| (w, s))) {
            let lane = elements(block, width) / (32 * warps as usize);
            if LANE_ELEMENTS.contains(&lane) {
                let setting = Setting {
                    block,
                    width,
                    schedule: Schedule {
                        stages,
                        ..Schedule::AUTO.warps(warps)
                    },
                    ..Setting::default()
                };
                settings.push((order(lane, &setting), setting));
            }
        }
    }
    settings.sort_by(|one, other| one.0.total_cmp(&other.0));
    settings.into_iter().map(|(_, setting)| setting).collect()
}

/// For a kernel with one row in one tile.
pub(crate) fn whole_rows(columns: usize) -> Vec<Setting> {
    let block = columns.next_power_of_two();
    space(&[block], &[0], &[None], |block, _| block)
}

/// Each setting with every number of programs in a thread block that is worth a try.
pub(crate) fn shared(settings: Vec<Setting>) -> Vec<Setting> {
    let tries = ScheduleField::Programs.row().tries;
    let fits = |setting: &Setting, programs: u32| {
        warps(setting) as u32 * programs <= Target::SM_90A.gpu.most_warps
    };
    let with = |setting: Setting| {
        let fitting = tries.iter().filter(move |&&it| fits(&setting, it));
        fitting.map(move |&programs| Setting {
            schedule: setting.schedule.programs(programs),
            ..setting
        })
    };
    settings.into_iter().flat_map(with).collect()
}

/// For a kernel with one row in one tile, by a program for each row or by some for each
/// multiprocessor. A lane that holds fewer than 8 elements has too little under way, one with more
/// than 64 too few neighbours.
pub(crate) fn looped_rows(columns: usize) -> Vec<Setting> {
    let block = columns.next_power_of_two();
    rows_of(block, &[block])
}

/// As [`looped_rows`], with short rows several to a tile too.
pub(crate) fn gathered_rows(columns: usize) -> Vec<Setting> {
    let block = columns.next_power_of_two();
    if block <= 4096 {
        rows_of(block, &[block, 2 * block, 4 * block, 8 * block])
    } else {
        rows_of(block, &[block])
    }
}

fn rows_of(row: usize, blocks: &[usize]) -> Vec<Setting> {
    let widths = [0, 2, 1, 4];
    let place = |width: usize| widths.iter().position(|&other| other == width);
    let candidates = space_by(
        blocks,
        &widths,
        &[None],
        |block, _| block,
        |lane, setting| {
            let kind = place(setting.width).unwrap_or_default() as f64;
            kind + 0.1 * distance(lane, 32)
        },
    );
    let lane = |setting: &Setting| setting.block / (32 * warps(setting));
    let fitting = |setting: &Setting| {
        let alone = setting.block == row || setting.width == 0;
        // Lanes hold nothing of rows so long: they read them again.
        let most = if setting.block > 32_768 && setting.width == 0 {
            128
        } else {
            64
        };
        alone && (setting.block < 256 || (8..=most).contains(&lane(setting)))
    };
    let candidates = candidates.into_iter().filter(fitting);
    candidates
        .flat_map(|setting| crowded(setting, lane(&setting)))
        .collect()
}

/// A setting as it is, and one in which a lane has few registers beside those of its elements, so that
/// a multiprocessor holds more programs.
fn crowded(setting: Setting, lane: usize) -> impl Iterator<Item = Setting> {
    const BESIDE: usize = 16;
    let gpu = Target::SM_90A.gpu;
    let most = (gpu.resident_warps as usize / warps(&setting)).min(gpu.resident_blocks as usize);
    let fitting = gpu.registers as usize / (32 * warps(&setting) * (lane + BESIDE));
    let occupancy = fitting.min(most);
    let crowded = Setting {
        schedule: setting.schedule.occupancy(occupancy as u32),
        ..setting
    };
    [setting, crowded]
        .into_iter()
        .take(1 + usize::from(occupancy > 1))
}
