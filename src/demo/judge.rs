//! Judges a case: the interpreter on a sample of programs, then the golden run, then the device.

use exactile_core::target::{Determinism, MAX_WARPS};

use super::{Case, Problem, Row, Setting};
use crate::array::Array;
use crate::autotune::measure;
use crate::buffer::POISON;
use crate::compare::{Comparison, Tolerance, compare_within};
use crate::device::{Device, DeviceKind};
use crate::error::{Error, Result};

/// Programs that the interpreter runs of a large grid.
const SAMPLE: u64 = 12;

/// Warp counts that a GPU runs, where a lane then holds few enough elements.
const WARPS: [u32; 3] = [1, 4, 8];

/// The most elements of a tile that a lane is given here: code for more takes seconds to compile.
const MAX_LANE_ELEMENTS: usize = 64;

/// The warp counts to run a tile of so many elements with.
fn warps_for(elements: usize) -> Vec<u32> {
    let least = (elements / MAX_LANE_ELEMENTS / 32).next_power_of_two() as u32;
    let mut warps: Vec<u32> = WARPS.into_iter().filter(|&warps| warps >= least).collect();
    if warps.is_empty() {
        warps.push(least.min(MAX_WARPS));
    }
    warps
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
    let block = *case
        .blocks
        .first()
        .ok_or_else(|| Error::Invalid(format!("case `{}` has no tile size", case.kernel)))?;
    let first = Setting {
        block,
        warps: 0,
        determinism: Determinism::Exact,
    };
    let golden = run_once(case, &Device::cpu(), first)?;
    let mut problem = (case.setup)(device)?;
    if device.kind() == DeviceKind::Cpu && determinism == Determinism::Exact {
        let sampled = Device::interpreter().sampling(SAMPLE);
        let want = run_once(case, &sampled, first)?;
        let reference = format!("interpreter, {SAMPLE} programs");
        emit(row(case, device, &mut problem, first, &want, reference)?)?;
    }
    for &block in &case.blocks {
        let warps = match device.kind() {
            DeviceKind::Cpu | DeviceKind::Interpreter => vec![0],
            DeviceKind::Lanes | DeviceKind::Cuda(_) => warps_for((case.elements)(block)),
        };
        for warps in warps {
            let setting = Setting {
                block,
                warps,
                determinism,
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

fn run_once(case: &Case, device: &Device, setting: Setting) -> Result<Vec<Array>> {
    let mut problem = (case.setup)(device)?;
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
    let comparison = compare_written(&got, want)?;
    let seconds = measure(device, &mut || problem.launch(&setting))?;
    let passed = match setting.determinism {
        Determinism::NotGuaranteed => comparison.within_tolerance(),
        Determinism::RunToRun
        | Determinism::BatchInvariant
        | Determinism::ScheduleInvariant
        | Determinism::Exact => comparison.bits_equal(),
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
        bits_equal: comparison.bits_equal(),
        max_ulp: comparison.max_ulp,
        passed,
        reference,
        report: (!passed).then(|| comparison.to_string()),
    })
}

/// Compares the elements that the reference wrote; an interpreter on a sample leaves poison in the
/// others. It is an error when it wrote none.
fn compare_written(got: &[Array], want: &[Array]) -> Result<Comparison> {
    let [got] = got else {
        return Err(Error::Invalid(format!(
            "found {} outputs, expected 1",
            got.len()
        )));
    };
    let [want] = want else {
        return Err(Error::Invalid(format!(
            "found {} outputs, expected 1",
            want.len()
        )));
    };
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
    let got = Array::from_bytes(got.dtype(), &shape, &got_bytes)?;
    let want = Array::from_bytes(want.dtype(), &shape, &want_bytes)?;
    compare_within(&got, &want, Tolerance::standard(want.dtype()))
}
