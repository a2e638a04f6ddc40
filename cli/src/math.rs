//! `exactile selftest math`: the math functions over all their inputs.

use clap::Args;
use exactile::{DType, Device, Error, Result};
use exactile_harness::testing::exhaustive::{MathFunction, MathOptions, MathRow, math};

use super::progress::Progress;

/// Runs the math functions over all inputs: the CPU against an oracle, other devices against the CPU
#[derive(Args)]
pub(crate) struct Math {
    /// Only these functions; all when absent
    #[arg(long, value_delimiter = ',', value_parser = function)]
    function: Vec<MathFunction>,
    /// Data types
    #[arg(long, value_delimiter = ',', default_value = "f16,bf16,f32", value_parser = dtype)]
    dtype: Vec<DType>,
    /// Devices that must agree with the CPU; the first GPU, if there is one, when absent
    #[arg(long, value_delimiter = ',')]
    device: Vec<String>,
    /// Of the 256 parts of all 32-bit inputs, run every N-th; 1 runs all
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=256))]
    stride: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Math {
    pub(crate) fn execute(&self) -> Result<()> {
        let options = MathOptions {
            functions: self.function.clone(),
            dtypes: self.dtype.clone(),
            devices: self.devices()?,
            stride: self.stride as usize,
        };
        let progress = Progress::start("selftest math");
        let mut printed = Ok(());
        let rows = math(&options, &mut |row| {
            if !self.json && printed.is_ok() {
                printed = progress.print(&format!("{}\n", line(row)));
            }
        })?;
        printed?;
        drop(progress);
        if self.json {
            super::print_json(&rows)?;
        }
        let wrong = rows.iter().filter(|row| !row.passes()).count();
        if wrong == 0 {
            return Ok(());
        }
        Err(Error::Mismatch(format!(
            "{wrong} of {} functions are not as promised",
            rows.len()
        )))
    }

    fn devices(&self) -> Result<Vec<Device>> {
        if self.device.is_empty() {
            return Ok(Device::cuda(0).into_iter().collect());
        }
        self.device
            .iter()
            .map(|name| Device::from_name(name))
            .collect()
    }
}

fn line(row: &MathRow) -> String {
    let verdict = if row.passes() { "ok" } else { "WRONG" };
    let devices: String = row
        .mismatches
        .iter()
        .map(|(device, count)| format!(", {count} differ on {device}"))
        .collect();
    format!(
        "{:18} {:5} {:>10} inputs, max {:.4} ulp at 0x{:x} (stated {:.4}){devices}: {verdict}",
        row.function, row.dtype, row.inputs, row.max_ulp, row.at, row.stated_ulp
    )
}

fn function(text: &str) -> Result<MathFunction, String> {
    MathFunction::from_mnemonic(text).ok_or_else(|| "expected a function such as `exp`".to_string())
}

fn dtype(text: &str) -> Result<DType, String> {
    DType::from_name(text)
        .filter(|dtype| dtype.is_float() && dtype.bits() <= 32)
        .ok_or_else(|| "expected a float of at most 32 bits, such as `f32`".to_string())
}
