//! `exactile bench` on the CPU: `cargo bench --bench cpu -- ARGUMENTS`.

use std::env;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    // Cargo adds `--bench` to the arguments of a benchmark.
    let arguments = env::args().skip(1).filter(|argument| argument != "--bench");
    let status = Command::new(env!("CARGO_BIN_EXE_exactile"))
        .args(["bench", "--device", "cpu"])
        .args(arguments)
        .status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {}: {error}", env!("CARGO_BIN_EXE_exactile"));
            ExitCode::FAILURE
        }
    }
}
