//! `exactile tune`: the fastest settings of the ready kernels.

use clap::Args;
use exactile::command::{Report, TuneOptions, supervised};
use exactile::{DeviceKind, Error, Result};
use exactile_harness::bench::Subject;
use exactile_harness::cases::subjects::{Size, subjects};
use exactile_harness::tune::tune;

/// Finds the fastest setting of each ready kernel on a device, among those with the bits of the golden run.
///
/// The winners are kept in a file, which many processes may share. A crate gets the same command for its own kernels by
/// `exactile::main!`.
#[derive(Args)]
pub(crate) struct Tune {
    #[command(flatten)]
    options: TuneOptions,
    /// Small inputs: a test of the tuner
    #[arg(long)]
    quick: bool,
}

impl Tune {
    pub(crate) fn execute(&self) -> Result<()> {
        let options = &self.options;
        supervised(|| {
            let (device, tuner) = (options.device()?, options.tuner());
            let size = match device.kind() {
                _ if self.quick => Size::Quick,
                DeviceKind::Cpu => Size::Cpu,
                DeviceKind::Cuda(_) => Size::Gpu,
                DeviceKind::Interpreter | DeviceKind::Lanes => Size::Quick,
            };
            let (mut reports, mut failed) = (Vec::new(), Vec::new());
            for subject in self.subjects(size)? {
                let case = &subject.case;
                let title = format!("{} {} {:?}", case.kernel, case.dtype, case.shape);
                match tune(&device, &tuner, &subject) {
                    Ok(tuned) => reports.push(Report::new(title, &tuned)),
                    Err(error) => failed.push(format!("{title}: {error}")),
                }
            }
            options.finish(&reports, &failed)
        })
    }

    fn subjects(&self, size: Size) -> Result<Vec<Subject>> {
        let mut subjects = subjects(size);
        let asked = &self.options.kernel;
        let unknown = |name: &&String| !subjects.iter().any(|it| it.case.kernel == name.as_str());
        if let Some(name) = asked.iter().find(unknown) {
            let mut known: Vec<&str> = subjects.iter().map(|it| it.case.kernel).collect();
            known.dedup();
            return Err(Error::Invalid(format!(
                "there is no kernel `{name}`, expected `{}`",
                known.join("`, `")
            )));
        }
        subjects.retain(|it| asked.is_empty() || asked.iter().any(|name| name == it.case.kernel));
        Ok(subjects)
    }
}
