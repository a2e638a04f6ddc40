//! Judges a case: the interpreter on a sample of programs, then the golden run, then the device.

use exactile_core::target::{Determinism, Schedule, ScheduleField};

use exactile_kernels::Setting;

use super::{Case, Problem, Row};
use exactile::Array;
use exactile::autotune::measure;
use exactile::internals::POISON;
use exactile::{Comparison, Tolerance, compare_within};
use exactile::{Device, DeviceKind};
use exactile::{Error, Result};

/// Programs that the interpreter runs of a large grid.
const SAMPLE: u64 = 12;

/// Operations up to which the golden run of a benchmark is that of all programs, and how many programs it has beyond.
const MOST_OPERATIONS: u64 = 1 << 39;
const GOLDEN_SAMPLE: u64 = 512;

/// Bytes up to which the interpreter runs a case in full.
const MOST_INTERPRETED: u64 = 4 << 20;

/// Warp counts that a GPU runs, where a lane then holds few enough elements.
const WARPS: [u32; 3] = [1, 4, 8];

/// The most elements of a tile that a lane is given here: code for more takes seconds to compile.
const MAX_LANE_ELEMENTS: usize = 64;

/// The schedules to run a tile of so many elements with.
fn schedules_for(elements: usize) -> Vec<Schedule> {
    let least = (elements / MAX_LANE_ELEMENTS / 32).next_power_of_two() as u32;
    let mut warps: Vec<u32> = WARPS.into_iter().filter(|&warps| warps >= least).collect();
    if warps.is_empty() {
        warps.push(least.min(*ScheduleField::Warps.range().end()));
    }
    warps
        .into_iter()
        .map(|warps| Schedule::AUTO.warps(warps))
        .collect()
}

/// Runs `case` on `device` under every setting and hands each row to `emit`.
///
/// The golden run is that of the CPU with the first tile size under `Exact`. On the CPU itself the
/// first row is compared with the interpreter, on a sample of programs; all others with the golden
/// run.
pub fn judge(
    case: &Case,
    device: &Device,
    determinism: Determinism,
    emit: &mut dyn FnMut(Row) -> Result<()>,
) -> Result<()> {
    let first = first_setting(case)?;
    let golden = golden_run(case)?;
    let mut problem = (case.setup)(device)?;
    if device.kind() == DeviceKind::Cpu && determinism == Determinism::Exact {
        let (want, reference) = sampled_run(case)?;
        emit(row(case, device, &mut problem, first, &want, reference)?)?;
    }
    for &block in &case.blocks {
        let schedules = match device.kind() {
            DeviceKind::Cpu | DeviceKind::Interpreter => vec![Schedule::AUTO],
            DeviceKind::Lanes | DeviceKind::Cuda(_) => schedules_for((case.elements)(block)),
        };
        for schedule in schedules {
            let setting = Setting {
                block,
                schedule,
                determinism,
                ..Setting::default()
            };
            let reference = "golden".to_string();
            emit(row(
                case,
                device,
                &mut problem,
                setting,
                &golden,
                reference,
            )?)?;
        }
    }
    Ok(())
}

/// The setting of the golden run.
fn first_setting(case: &Case) -> Result<Setting> {
    let block = *case
        .blocks
        .first()
        .ok_or_else(|| Error::Invalid(format!("case `{}` has no tile size", case.kernel)))?;
    Ok(Setting {
        block,
        ..Setting::default()
    })
}

/// The outputs of the golden run: the CPU with the first tile size under `Exact`.
pub(crate) fn golden_run(case: &Case) -> Result<Vec<Array>> {
    run_once(case, &Device::cpu(), first_setting(case)?)
}

/// The outputs of the golden run, of a sample of programs where all would take long, and what they are in words.
pub(crate) fn golden_sample(case: &Case) -> Result<(Vec<Array>, String)> {
    let sampled = Device::cpu().sampling(GOLDEN_SAMPLE);
    if case.flops > MOST_OPERATIONS {
        let problem = (case.setup)(&sampled)?;
        if !problem.in_phases() {
            let outputs = run_problem(problem, &sampled, first_setting(case)?)?;
            let reference = format!("golden run on the CPU, at most {GOLDEN_SAMPLE} programs");
            return Ok((outputs, reference));
        }
    }
    let reference = "golden run on the CPU, all elements".to_string();
    Ok((golden_run(case)?, reference))
}

/// How the outputs of `device` under the setting of the golden run differ from it: of a checked launch, and of one that it
/// has proved in bounds.
pub fn judge_first(case: &Case, device: &Device) -> Result<Vec<Comparison>> {
    let golden = golden_run(case)?;
    let setting = first_setting(case)?;
    let mut problem = (case.setup)(device)?;
    let mut comparisons = Vec::new();
    for _ in 0..2 {
        problem.spoil()?;
        problem.launch(&setting)?;
        device.synchronize()?;
        comparisons.extend(compare_written(&problem.outputs()?, &golden)?);
    }
    Ok(comparisons)
}

/// What the interpreter makes of a sample of the programs, and words for that. Where a sample means
/// nothing and the whole is too much, the golden run with the last tile size.
pub(crate) fn sampled_run(case: &Case) -> Result<(Vec<Array>, String)> {
    let sampled = Device::interpreter().sampling(SAMPLE);
    let problem = (case.setup)(&sampled)?;
    let first = first_setting(case)?;
    if !problem.in_phases() {
        let outputs = run_problem(problem, &sampled, first)?;
        return Ok((outputs, format!("interpreter, {SAMPLE} programs")));
    }
    if case.bytes <= MOST_INTERPRETED {
        let outputs = run_once(case, &Device::interpreter(), first)?;
        return Ok((outputs, "interpreter".to_string()));
    }
    let block = case.blocks.last().copied().unwrap_or(first.block);
    let outputs = run_once(case, &Device::cpu(), Setting { block, ..first })?;
    Ok((outputs, format!("golden with tile size {block}")))
}

fn run_once(case: &Case, device: &Device, setting: Setting) -> Result<Vec<Array>> {
    run_problem((case.setup)(device)?, device, setting)
}

fn run_problem(mut problem: Problem, device: &Device, setting: Setting) -> Result<Vec<Array>> {
    problem.spoil()?;
    problem.launch(&setting)?;
    device.synchronize()?;
    problem.outputs()
}

fn row(
    case: &Case,
    device: &Device,
    problem: &mut Problem,
    setting: Setting,
    want: &[Array],
    reference: String,
) -> Result<Row> {
    problem.spoil()?;
    let compiled_before = device.compile_seconds();
    problem.launch(&setting)?;
    device.synchronize()?;
    let compile_seconds = device.compile_seconds() - compiled_before;
    let got = problem.outputs()?;
    let comparisons = compare_written(&got, want)?;
    let seconds = measure(device, &mut || problem.launch(&setting))?;
    let passed = match setting.determinism {
        Determinism::NotGuaranteed => comparisons.iter().all(Comparison::within_tolerance),
        Determinism::BatchInvariant | Determinism::ScheduleInvariant | Determinism::Exact => {
            comparisons.iter().all(Comparison::bits_equal)
        }
    };
    let report = || {
        let texts: Vec<String> = comparisons.iter().map(ToString::to_string).collect();
        texts.join("\n")
    };
    Ok(Row {
        kernel: case.kernel,
        dtype: case.dtype.name(),
        shape: case.shape.clone(),
        config: setting,
        device: device.to_string(),
        determinism: setting.determinism.name(),
        compile_ms: compile_seconds * 1e3,
        run_ms: seconds * 1e3,
        gb_s: case.bytes as f64 / seconds / 1e9,
        gflop_s: case.flops as f64 / seconds / 1e9,
        bits_equal: comparisons.iter().all(Comparison::bits_equal),
        max_ulp: comparisons
            .iter()
            .map(|each| each.max_ulp)
            .max()
            .unwrap_or(0),
        passed,
        reference,
        report: (!passed).then(report),
    })
}

/// Compares each output with its reference, element by element where the reference wrote.
pub(crate) fn compare_written(got: &[Array], want: &[Array]) -> Result<Vec<Comparison>> {
    if got.len() != want.len() {
        return Err(Error::Invalid(format!(
            "found {} outputs, expected {}",
            got.len(),
            want.len()
        )));
    }
    let pairs = got.iter().zip(want);
    pairs
        .map(|(got, want)| compare_written_to(got, want))
        .collect()
}

/// Compares the elements that the reference wrote; an interpreter on a sample leaves poison in the
/// others. It is an error when it wrote none.
fn compare_written_to(got: &Array, want: &Array) -> Result<Comparison> {
    let size = want.dtype().bytes() as usize;
    let written = |bytes: &[u8]| bytes.iter().any(|&byte| byte != POISON);
    if want.bytes().chunks_exact(size).all(written) {
        return compare_within(got, want, Tolerance::standard(want.dtype()));
    }
    let (mut got_bytes, mut want_bytes) = (Vec::new(), Vec::new());
    let pairs = got
        .bytes()
        .chunks_exact(size)
        .zip(want.bytes().chunks_exact(size));
    for (got, want) in pairs.filter(|(_, want)| written(want)) {
        got_bytes.extend_from_slice(got);
        want_bytes.extend_from_slice(want);
    }
    if want_bytes.is_empty() && !want.is_empty() {
        return Err(Error::Mismatch("the reference wrote nothing".to_string()));
    }
    let shape = [want_bytes.len() / size];
    let got = Array::from_bytes(got.dtype(), shape, &got_bytes)?;
    let want = Array::from_bytes(want.dtype(), shape, &want_bytes)?;
    compare_within(&got, &want, Tolerance::standard(want.dtype()))
}
