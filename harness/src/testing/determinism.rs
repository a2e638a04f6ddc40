//! The promise, tried: the same bits for every tile size, schedule, batch and device.

use crate::demo::linspace;
use crate::testing::first_bounded;
use exactile::DeviceKind;
use exactile::compare;
use exactile::prelude::*;
use exactile::{Result, Schedule};

/// The sum of each row, accumulated over tiles of `BLOCK` columns.
#[kernel]
fn row_sums<const BLOCK: usize>(x: Tensor<f32, 2>, out: TensorMut<f32, 1>) {
    let row = program_id(0);
    let tiles = x.tile([1, BLOCK]);
    let mut sum = sum_accumulator::<f32>([1]);
    for column in range(0, x.extent(1)).step(BLOCK) {
        sum.add(load(tiles.at_offset((row, column))), 1);
    }
    store(out.tile([1]).at((row,)), sum.finish());
}

/// The sum of each row, in one tile of at least its length.
#[kernel]
fn row_sums_at_once<const BLOCK: usize>(x: Tensor<f32, 2>, out: TensorMut<f32, 1>) {
    let row = program_id(0);
    let tile = load(x.tile([1, BLOCK]).at((row, 0)));
    store(out.tile([1]).at((row,)), tile.sum(1));
}

/// The mean over the middle axis, accumulated over tiles of `ROWS` rows.
#[kernel]
fn middle_means<const ROWS: usize>(x: Tensor<f32, 3>, out: TensorMut<f32, 2>) {
    let outer = program_id(0);
    let tiles = x.tile([1, ROWS, 16]);
    let mut sum = sum_accumulator::<f32>([1, 16]);
    for row in range(0, x.extent(1)).step(ROWS) {
        sum.add(load(tiles.at_offset((outer, row, 0))), 1);
    }
    let mean = sum.finish() / x.extent(1).to::<f32>();
    store(out.tile([1, 16]).at((outer, 0)), mean);
}

/// The prefix sums of each row, over tiles of `BLOCK` columns.
#[kernel]
fn row_prefixes<const BLOCK: usize>(x: Tensor<f32, 2>, out: TensorMut<f32, 2>) {
    let row = program_id(0);
    let tiles = x.tile([1, BLOCK]);
    let mut sum = sum_accumulator::<f32>([1]).at_most(64);
    for column in range(0, x.extent(1)).step(BLOCK) {
        let sums = sum.cumsum(load(tiles.at_offset((row, column))), 1);
        store(out.tile([1, BLOCK]).at_offset((row, column)), sums);
    }
}

/// The prefix sums of each row, in one tile of at least its length.
#[kernel]
fn row_prefixes_at_once<const BLOCK: usize>(x: Tensor<f32, 2>, out: TensorMut<f32, 2>) {
    let row = program_id(0);
    let tile = load(x.tile([1, BLOCK]).at((row, 0)));
    store(out.tile([1, BLOCK]).at((row, 0)), tile.cumsum(1));
}

/// Each row in order, and where its elements came from, in tiles of `ROWS` rows.
#[kernel]
fn sorted_rows<const ROWS: usize>(
    x: Tensor<f32, 2>,
    out: TensorMut<f32, 2>,
    order: TensorMut<f32, 2>,
) {
    let place = (program_id(0), 0);
    let rows = load(x.tile([ROWS, SORTED]).at(place));
    store(out.tile([ROWS, SORTED]).at(place), rows.sort(1));
    let order_tile = order.tile([ROWS, SORTED]).at(place);
    store(order_tile, rows.argsort_descending(1).to::<f32>());
}

const SORTED: usize = 256;
const BATCH: usize = 3;
const COLUMNS: usize = 1000;
const MIDDLE: usize = 200;

/// What was compared, and what differed.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How many outputs were compared with the golden run.
    pub compared: usize,
    /// One text for each output with other bits.
    pub failures: Vec<String>,
}

impl Report {
    fn check(&mut self, what: impl Fn() -> String, found: &[f32], golden: &[f32]) -> Result<()> {
        self.compared += 1;
        let comparison = compare(found, golden)?;
        if !comparison.bits_equal() {
            self.failures.push(format!("{}:\n{comparison}", what()));
        }
        Ok(())
    }
}

/// The schedules worth trying on a device.
fn schedules(device: &Device) -> Vec<Schedule> {
    let auto = Schedule::AUTO;
    match device.kind() {
        DeviceKind::Cpu | DeviceKind::Interpreter => vec![auto],
        DeviceKind::Lanes | DeviceKind::Cuda(_) => {
            vec![auto, auto.warps(1), auto.warps(4), auto.warps(8)]
        }
    }
}

/// Inputs whose sums betray their order, and inputs whose sums are zeros of either sign.
fn inputs() -> Vec<(&'static str, Vec<f32>)> {
    let count = BATCH * MIDDLE * 16;
    let random = |index: usize| {
        let bits = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (bits >> 40) as f32 / (1u32 << 23) as f32 - 1.0
    };
    let every = |make: &dyn Fn(usize) -> f32| (0..count).map(make).collect::<Vec<f32>>();
    let alternate = |index: usize| {
        if index.is_multiple_of(2) {
            1e8
        } else {
            -1e8 + 3.0
        }
    };
    vec![
        ("random", every(&random)),
        (
            "wide range",
            every(&|index| random(index) * 2f32.powi((index * 37 % 61) as i32 - 30)),
        ),
        ("cancelling", every(&alternate)),
        ("linspace(-100, 100)", linspace(-100.0, 100.0, count)),
        ("all +0", vec![0.0; count]),
        ("all -0", vec![-0.0; count]),
        ("subnormal", every(&|index| f32::from_bits(index as u32))),
    ]
}

/// Sums of the first `rows` rows with tiles of `block` columns.
fn sums(
    device: &Device,
    setting: (usize, Schedule, bool),
    rows: usize,
    x: &[f32],
) -> Result<Vec<f32>> {
    let (block, schedule, at_once) = setting;
    let x = Buffer::from_slice(device, &x[..rows * COLUMNS])?;
    let mut out = Buffer::<f32>::zeros(device, rows)?;
    let view = x.view([rows, COLUMNS])?;
    let out_view = out.view_mut([rows])?;
    if at_once {
        let kernel = row_sums_at_once().block(block).schedule(schedule);
        kernel.launch(device, rows, (view, out_view))?;
    } else {
        let kernel = row_sums().block(block).schedule(schedule);
        kernel.launch(device, rows, (view, out_view))?;
    }
    out.to_vec()
}

/// Prefix sums of the first `rows` rows, with tiles of `block` columns or at once.
fn prefixes(
    device: &Device,
    (block, schedule, at_once): (usize, Schedule, bool),
    rows: usize,
    x: &[f32],
) -> Result<Vec<f32>> {
    let x = Buffer::from_slice(device, &x[..rows * COLUMNS])?;
    let mut out = Buffer::<f32>::zeros(device, rows * COLUMNS)?;
    let view = x.view([rows, COLUMNS])?;
    let out_view = out.view_mut([rows, COLUMNS])?;
    if at_once {
        let kernel = row_prefixes_at_once().block(block).schedule(schedule);
        kernel.launch(device, rows, (view, out_view))?;
    } else {
        let kernel = row_prefixes().block(block).schedule(schedule);
        kernel.launch(device, rows, (view, out_view))?;
    }
    out.to_vec()
}

/// Means over the middle axis of the first `outer` matrices with tiles of `block` rows.
fn means(
    device: &Device,
    block: usize,
    schedule: Schedule,
    outer: usize,
    x: &[f32],
) -> Result<Vec<f32>> {
    let x = Buffer::from_slice(device, &x[..outer * MIDDLE * 16])?;
    let mut out = Buffer::<f32>::zeros(device, outer * 16)?;
    let view = x.view([outer, MIDDLE, 16])?;
    let out_view = out.view_mut([outer, 16])?;
    let kernel = middle_means().rows(block).schedule(schedule);
    kernel.launch(device, outer, (view, out_view))?;
    out.to_vec()
}

/// The first `rows` rows in order, and their order, in tiles of `block` rows.
fn sorted(
    device: &Device,
    block: usize,
    schedule: Schedule,
    rows: usize,
    x: &[f32],
) -> Result<Vec<f32>> {
    let x = Buffer::from_slice(device, &x[..rows * SORTED])?;
    let mut out = Buffer::<f32>::zeros(device, rows * SORTED)?;
    let mut order = Buffer::<f32>::zeros(device, rows * SORTED)?;
    let kernel = sorted_rows().rows(block).schedule(schedule);
    let shape = [rows, SORTED];
    let arguments = (x.view(shape)?, out.view_mut(shape)?, order.view_mut(shape)?);
    kernel.launch(device, rows.div_ceil(block), arguments)?;
    Ok([out.to_vec()?, order.to_vec()?].concat())
}

/// The rows of one input in order, on every device, in tiles of so many rows.
fn check_sorts(report: &mut Report, devices: &[Device], (name, x): (&str, &[f32])) -> Result<()> {
    let golden = sorted(&Device::cpu(), 4, Schedule::AUTO, BATCH, x)?;
    for device in devices {
        for schedule in schedules(device) {
            for block in [1, 2, 8] {
                let what = || format!("sorts of {name} on {device}, {block} rows, {schedule:?}");
                // A long sort is too much code for one warp.
                let schedules = [schedule, Schedule::AUTO.warps(2)];
                let found = first_bounded(&schedules, |schedule| {
                    sorted(device, block, schedule, BATCH, x)
                })?;
                report.check(what, &found, &golden)?;
            }
        }
    }
    Ok(())
}

/// Sums, means and sorts of every input on every device, with every tile size and schedule, whole
/// and of the first row alone, against the golden run.
pub fn run(devices: &[Device]) -> Result<Report> {
    let mut report = Report::default();
    let cpu = Device::cpu();
    for (name, x) in inputs() {
        let golden_sums = sums(&cpu, (64, Schedule::AUTO, false), BATCH, &x)?;
        let golden_prefixes = prefixes(&cpu, (1024, Schedule::AUTO, true), BATCH, &x)?;
        let ends: Vec<f32> = golden_prefixes
            .chunks(COLUMNS)
            .map(|row| row[COLUMNS - 1])
            .collect();
        report.check(
            || format!("last prefix sums of {name}"),
            &ends,
            &golden_sums,
        )?;
        let golden_means = means(&cpu, 32, Schedule::AUTO, BATCH, &x)?;
        if x.iter().all(|value| *value == 0.0) {
            let zeros = vec![0.0; BATCH];
            report.check(|| format!("sums of {name} are +0"), &golden_sums, &zeros)?;
        }
        check_sorts(&mut report, devices, (name, &x))?;
        for device in devices {
            for schedule in schedules(device) {
                for (block, at_once) in [
                    (32, false),
                    (64, false),
                    (256, false),
                    (1024, false),
                    (1024, true),
                    (2048, true),
                ] {
                    let what = || format!("sums of {name} on {device}, tile {block}, {schedule:?}");
                    let found = sums(device, (block, schedule, at_once), BATCH, &x)?;
                    report.check(what, &found, &golden_sums)?;
                }
                for (block, at_once) in [(32, false), (256, false), (1024, true), (2048, true)] {
                    let what =
                        || format!("prefix sums of {name} on {device}, tile {block}, {schedule:?}");
                    let found = prefixes(device, (block, schedule, at_once), BATCH, &x)?;
                    report.check(what, &found, &golden_prefixes)?;
                }
                for block in [16, 32, 64, 256] {
                    let what =
                        || format!("means of {name} on {device}, tile {block}, {schedule:?}");
                    let found = means(device, block, schedule, BATCH, &x)?;
                    report.check(what, &found, &golden_means)?;
                }
            }
            let alone = || format!("the first row of {name} alone on {device}");
            let found = sums(device, (64, Schedule::AUTO, false), 1, &x)?;
            report.check(alone, &found, &golden_sums[..1])?;
            let found = means(device, 32, Schedule::AUTO, 1, &x)?;
            report.check(alone, &found, &golden_means[..16])?;
        }
    }
    Ok(report)
}
