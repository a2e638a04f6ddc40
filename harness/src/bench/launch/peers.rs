//! The peers' launches, which a Python script measures.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use super::LaunchRow;

/// What the script prints.
#[derive(Deserialize)]
struct Answer {
    libraries: BTreeMap<String, String>,
    rows: Vec<LaunchRow>,
    notes: Vec<String>,
}

type Found = (BTreeMap<String, String>, Vec<LaunchRow>, Vec<String>);

/// Libraries, rows and notes. A script that fails costs its rows alone.
pub(super) fn ask(python: &str, folder: &Path) -> Found {
    let failed = |reason: String| {
        let note = format!("peers: {reason}");
        (BTreeMap::new(), Vec::new(), vec![note])
    };
    let output = Command::new(python).arg(folder.join("launch.py")).output();
    let output = match output {
        Ok(output) => output,
        Err(error) => return failed(format!("`{python}`: {error}")),
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().last().unwrap_or_default();
        return failed(format!("{}: {last}", output.status));
    }
    match serde_json::from_slice::<Answer>(&output.stdout) {
        Ok(answer) => (answer.libraries, answer.rows, answer.notes),
        Err(error) => failed(error.to_string()),
    }
}
