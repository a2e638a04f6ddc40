//! `exactile built`: what a folder of built code holds, and whether a GPU runs it.

use std::path::PathBuf;

use clap::Args;
use exactile::built::Built as Folder;
use exactile::internals::{costs, gpu};
use exactile::{Determinism, Device, Error, Result, Schedule, Target};
use exactile_harness::cases::to_compile;
use exactile_harness::compile::launch;
use exactile_harness::demo::{Case, judge_first};

use super::progress::Progress;

/// Lists code that was built ahead of time, and reads every byte of it.
#[derive(Args)]
pub(crate) struct Built {
    /// The folder
    folder: PathBuf,
    /// Run the kernels of the demonstration whose code is there on a GPU, which compiles nothing, and compare their bits with
    /// those of the CPU
    #[arg(long)]
    run: bool,
}

impl Built {
    pub(crate) fn execute(&self) -> Result<()> {
        let built = Folder::open(&self.folder)?;
        built.verify()?;
        if self.run {
            return run(&built);
        }
        let mut text = String::new();
        for record in built.records() {
            text.push_str(&format!(
                "{:7} {:5} {:9} {:24} {} {} {}\n",
                record.target,
                record.form.name(),
                record.bytes,
                record.variant,
                record.known,
                record.kernel,
                record.config
            ));
        }
        let count = built.records().len();
        super::print(&format!("{text}{count} codes are whole\n"))
    }
}

fn run(built: &Folder) -> Result<()> {
    let device = Device::cuda(0)?;
    let target = gpu(&device).map_or(Target::CPU, |gpu| gpu.target());
    device.use_disk(false);
    device.use_built(built);
    let progress = Progress::start("running");
    let (mut ran, mut wrong): (usize, Vec<String>) = Default::default();
    for case in to_compile() {
        let (kernel, shape) = (case.kernel, &case.shape);
        progress.say(format!("{kernel} {shape:?}"));
        let same = |device: &Device| launch(&case, device, Schedule::AUTO, Determinism::default());
        match built.check(&target, same) {
            Err(Error::NotBuilt { .. }) => {
                progress.print(&format!("{kernel} {shape:?}: not built\n"))?;
                continue;
            }
            found => found?,
        }
        ran += 1;
        match judged(&case, &device)? {
            None => progress.print(&format!("{kernel} {shape:?}: equal\n"))?,
            Some(report) => wrong.push(format!("{kernel} {shape:?}: {report}")),
        }
    }
    drop(progress);
    let compiled = costs(&device).codes;
    super::print(&format!("{ran} ran, {compiled} codes were compiled\n"))?;
    if !wrong.is_empty() {
        return Err(Error::Mismatch(wrong.join("\n")));
    }
    match (ran, compiled) {
        (0, _) => Err(Error::Invalid(format!(
            "nothing was built for {}",
            target.name
        ))),
        (_, 0) => Ok(()),
        (_, _) => Err(Error::Invalid("code was compiled".to_string())),
    }
}

/// What is wrong with the bits of a case, if anything.
fn judged(case: &Case, device: &Device) -> Result<Option<String>> {
    let comparisons = judge_first(case, device)?;
    let wrong = comparisons.iter().filter(|it| !it.bits_equal());
    let texts: Vec<String> = wrong.map(ToString::to_string).collect();
    Ok((!texts.is_empty()).then(|| texts.join("\n")))
}
