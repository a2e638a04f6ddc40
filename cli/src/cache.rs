//! `exactile cache`: the code of GPUs that is kept on disk.

use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use exactile::internals::{CACHE_FOLDER, CACHE_SWITCH, Entry, Store};
use exactile::{Error, Result};
use serde::Serialize;

/// Lists, removes or checks the code of GPUs that is kept on disk.
///
/// It lies in the folder that `EXACTILE_CACHE_DIR` names, else in that of the platform for caches.
/// `EXACTILE_CACHE=off` keeps nothing.
#[derive(Args)]
pub(crate) struct Cache {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Lists what is kept, used last in front
    Ls(Output),
    /// Removes all that is kept
    Clear(Output),
    /// Reads every byte; fails where an entry is damaged or not its user's alone
    Verify(Output),
}

#[derive(Args)]
struct Output {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// An entry as it is listed.
#[derive(Serialize)]
struct Row {
    file: String,
    kernel: String,
    target: String,
    bytes: u64,
    /// Seconds since 1970, to a day.
    used: u64,
    /// Why it will not be taken.
    problem: Option<String>,
}

#[derive(Serialize)]
struct Listing {
    folder: String,
    bytes: u64,
    entries: Vec<Row>,
}

#[derive(Serialize)]
struct Cleared {
    folder: String,
    bytes: u64,
    entries: usize,
}

impl Cache {
    pub(crate) fn execute(&self) -> Result<()> {
        let store = Store::of_environment().ok_or_else(|| {
            Error::Invalid(format!(
                "nothing is kept on disk: {CACHE_SWITCH} is `off`, or there is no folder for caches, which {CACHE_FOLDER} \
                 may name"
            ))
        })?;
        match &self.action {
            Action::Ls(output) => output.list(&listing(&store)?),
            Action::Clear(output) => output.clear(&store),
            Action::Verify(output) => output.verify(listing(&store)?),
        }
    }
}

impl Output {
    fn list(&self, listing: &Listing) -> Result<()> {
        if self.json {
            return super::print_json(listing);
        }
        let mut text = String::new();
        for row in &listing.entries {
            let digits = row.file.get(..12).unwrap_or(&row.file);
            let (kernel, target, bytes) = (&row.kernel, &row.target, row.bytes);
            text.push_str(&format!("{digits} {target:7} {bytes:9} {kernel}"));
            if let Some(problem) = &row.problem {
                text.push_str(&format!("  damaged: {problem}"));
            }
            text.push('\n');
        }
        let (count, bytes) = (listing.entries.len(), listing.bytes);
        let folder = &listing.folder;
        super::print(&format!(
            "{text}{count} entries, {bytes} bytes in {folder}\n"
        ))
    }

    fn clear(&self, store: &Store) -> Result<()> {
        let (entries, bytes) = store.clear().map_err(Error::file(store.folder()))?;
        let folder = store.folder().display().to_string();
        if self.json {
            return super::print_json(&Cleared {
                folder,
                bytes,
                entries,
            });
        }
        super::print(&format!(
            "removed {entries} entries, {bytes} bytes in {folder}\n"
        ))
    }

    fn verify(&self, mut listing: Listing) -> Result<()> {
        let count = listing.entries.len();
        listing.entries.retain(|row| row.problem.is_some());
        let damaged = listing.entries.len();
        if self.json {
            super::print_json(&listing)?;
        } else {
            let good = count - damaged;
            super::print(&format!("{good} of {count} entries are whole\n"))?;
        }
        if damaged == 0 {
            return Ok(());
        }
        let problems = listing.entries.iter().map(|row| {
            let problem = row.problem.as_deref().unwrap_or_default();
            format!("`{}/{}`: {problem}", listing.folder, row.file)
        });
        let problems: Vec<String> = problems.collect();
        Err(Error::Invalid(problems.join("\n")))
    }
}

fn listing(store: &Store) -> Result<Listing> {
    let entries = store.entries().map_err(Error::file(store.folder()))?;
    Ok(Listing {
        folder: store.folder().display().to_string(),
        bytes: entries.iter().map(|entry| entry.bytes).sum(),
        entries: entries.into_iter().map(Row::of).collect(),
    })
}

impl Row {
    fn of(entry: Entry) -> Self {
        let (key, problem) = match entry.key {
            Ok(key) => (key, None),
            Err(problem) => (String::new(), Some(problem)),
        };
        let field = |name: &str| {
            let mut lines = key.lines();
            let found = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            found.unwrap_or("?").to_string()
        };
        let file = entry.path.file_name().unwrap_or_default();
        Self {
            file: file.to_string_lossy().into_owned(),
            kernel: field("kernel"),
            target: field("target"),
            bytes: entry.bytes,
            used: seconds(entry.used),
            problem,
        }
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
