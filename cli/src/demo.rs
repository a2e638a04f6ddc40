//! `exactile demo`: the kernels under every configuration, with their bits judged.

use clap::Args;
use exactile::{Determinism, Device, Error, Result};
use exactile_harness::cases::cases;
use exactile_harness::demo::{Case, HEADER, Row, judge};

use super::progress::Progress;

/// Runs the ready kernels under every configuration and compares their bits with the golden run.
#[derive(Args)]
pub(crate) struct Demo {
    /// Only kernels with this name
    #[arg(long)]
    kernel: Option<String>,
    /// What runs them: `cpu`, `lanes`, `cuda` or `cuda:N`; all there are when absent
    #[arg(long)]
    device: Option<String>,
    /// Large inputs, for times worth reading: takes minutes
    #[arg(long)]
    full: bool,
    /// The level of determinism
    #[arg(long, default_value = "exact", value_parser = super::settings::determinism)]
    determinism: Determinism,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Demo {
    pub(crate) fn execute(&self) -> Result<()> {
        let cases = self.cases()?;
        let devices = self.devices()?;
        let mut rows: Vec<Row> = Vec::new();
        if !self.json {
            super::print(&format!("{HEADER}\n"))?;
        }
        let progress = Progress::start("demo");
        for (index, case) in cases.iter().enumerate() {
            for device in &devices {
                let (kernel, dtype, of) = (case.kernel, case.dtype, cases.len());
                progress.say(format!(
                    "{kernel} {dtype} on {device}: {} of {of}",
                    index + 1
                ));
                judge(case, device, self.determinism, &mut |row| {
                    if !self.json {
                        progress.print(&format!("{}\n", row.line()))?;
                    }
                    rows.push(row);
                    Ok(())
                })?;
            }
        }
        drop(progress);
        if self.json {
            super::print_json(&rows)?;
        }
        let wrong: Vec<String> = rows
            .iter()
            .filter_map(|row| Some(format!("{}\n{}", row.line(), row.report.as_ref()?)))
            .collect();
        if wrong.is_empty() {
            return Ok(());
        }
        Err(Error::Mismatch(format!(
            "{} of {} rows are not as promised\n{}",
            wrong.len(),
            rows.len(),
            wrong.join("\n")
        )))
    }

    fn cases(&self) -> Result<Vec<Case>> {
        let mut cases = cases(!self.full);
        let names: Vec<&str> = cases.iter().map(|case| case.kernel).collect();
        if let Some(wanted) = &self.kernel {
            if !names.contains(&wanted.as_str()) {
                let names = std::collections::BTreeSet::from_iter(names);
                return Err(Error::Invalid(format!(
                    "no kernel `{wanted}`, found {names:?}"
                )));
            }
            cases.retain(|case| case.kernel == wanted);
        }
        Ok(cases)
    }

    fn devices(&self) -> Result<Vec<Device>> {
        if let Some(name) = &self.device {
            return Ok(vec![Device::from_name(name)?]);
        }
        let mut devices = vec![Device::cpu()];
        match Device::cuda(0) {
            Ok(device) => devices.push(device),
            Err(reason) => super::note(&format!("no GPU: {reason}")),
        }
        Ok(devices)
    }
}
