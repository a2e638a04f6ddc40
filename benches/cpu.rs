//! One core of the CPU against the golden run: the kernels that `tools/bench` compares with NumPy.
//!
//! Prints one JSON object a kernel: the fastest configuration, whose bits were judged like those of
//! all others.

use exactile::demo::{Case, Row, judge};
use exactile::{Determinism, Device, Result};

#[path = "../examples/mean.rs"]
#[expect(dead_code, reason = "only its case is used")]
mod mean;
#[path = "../examples/softmax.rs"]
#[expect(dead_code, reason = "only its case is used")]
mod softmax;
#[path = "../examples/vector_add.rs"]
#[expect(dead_code, reason = "only its case is used")]
mod vector_add;

fn cases() -> Vec<Case> {
    vec![
        vector_add::case::<f32>(1 << 24),
        softmax::case::<f32>(4096, 4096),
        mean::case::<f32>(64, 4096, 64),
    ]
}

fn main() -> Result<()> {
    let device = Device::cpu_single_thread();
    for case in cases() {
        let mut best: Option<Row> = None;
        judge(&case, &device, Determinism::Exact, &mut |row| {
            if let Some(report) = &row.report {
                return Err(exactile::Error::Mismatch(report.clone()));
            }
            if best.as_ref().is_none_or(|best| row.run_ms < best.run_ms) {
                best = Some(row);
            }
            Ok(())
        })?;
        if let Some(row) = best {
            let text = serde_json::to_string(&row)
                .map_err(|error| exactile::Error::Invalid(error.to_string()))?;
            println!("{text}");
        }
    }
    Ok(())
}
