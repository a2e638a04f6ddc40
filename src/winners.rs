//! The tuner's file of winners, which threads and processes share.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::files::{self, Place};
pub use crate::found::{Known, Provenance};
pub(crate) use crate::found::{Problem, Winner};

/// So many processes may end while they run a candidate until it is not run any more: one may have been stopped by hand.
const CRASHES: u32 = 2;

/// What is known of a problem.
#[derive(Serialize, Deserialize)]
struct Entry {
    #[serde(flatten)]
    problem: Problem,
    #[serde(flatten)]
    winner: Option<Winner>,
    /// How many processes ended while they ran a candidate.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    crashes: BTreeMap<String, u32>,
}

impl Entry {
    fn new(problem: Problem) -> Self {
        Self {
            problem,
            winner: None,
            crashes: BTreeMap::new(),
        }
    }
}

/// Entries by the text of their problem.
type Entries = BTreeMap<String, Entry>;

/// What a file holds.
enum Found {
    Entries(Entries),
    /// Something else, and why.
    Damage(String),
}

/// A file of winners, or none.
#[derive(Clone, Debug)]
pub(crate) struct WinnersFile(Option<PathBuf>);

/// A file that says what runs, until this is dropped.
#[derive(Debug)]
pub(crate) struct Trial(Option<(PathBuf, File)>);

impl Trial {
    /// What stands for all candidates.
    pub(crate) const ALL: &str = "all candidates";
}

impl Drop for Trial {
    fn drop(&mut self) {
        if let Some((path, _)) = &self.0 {
            // One that stays names nothing that crashed: it is cleared by who finds it.
            let _ = fs::remove_file(path);
        }
    }
}

/// What a file beside the winners says.
#[derive(Serialize, Deserialize)]
struct Running {
    problem: Problem,
    config: String,
}

impl WinnersFile {
    /// The winners in `file`.
    pub(crate) fn new(file: PathBuf) -> Self {
        Self(Some(file))
    }

    /// A tuner's memory that holds nothing.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.0.as_deref()
    }

    /// The winner on file for this problem or, where there is none, for the nearest one. A rename makes files, so reading
    /// needs no lock.
    pub(crate) fn nearest(&self, problem: &Problem) -> Result<Option<Known>> {
        let Some(file) = &self.0 else {
            return Ok(None);
        };
        let Found::Entries(entries) = read(file)? else {
            return Ok(None);
        };
        let known = entries.into_values().filter_map(|entry| {
            let distance = problem.distance(&entry.problem)?;
            let known = entry.winner?.known(&entry.problem);
            let is_exact = distance == 0.0;
            Some((distance, Known { is_exact, ..known }))
        });
        let nearest = known.min_by(|(one, _), (other, _)| one.total_cmp(other));
        Ok(nearest.map(|(_, known)| known))
    }

    /// Adds a winner to those of other threads and processes. A damaged file is set aside.
    pub(crate) fn keep(&self, problem: Problem, winner: Winner) -> Result<()> {
        self.change(problem, |entry| {
            entry.winner = Some(winner);
            // It is known by now.
            entry.crashes.remove(Trial::ALL);
        })
    }

    /// Changes one entry, and leaves those of others as they are.
    fn change(&self, problem: Problem, change: impl FnOnce(&mut Entry)) -> Result<()> {
        let Some(file) = &self.0 else {
            return Ok(());
        };
        if let Some(folder) = file.parent().filter(|folder| *folder != Path::new("")) {
            fs::create_dir_all(folder).map_err(Error::file(folder))?;
        }
        // The lock stands beside the file itself, whatever link leads to it.
        let _lock = match Place::of(file)? {
            Place::File(name) => lock(&name),
            Place::Stream(_) => None,
        };
        let mut entries = match read(file)? {
            Found::Entries(entries) => entries,
            Found::Damage(reason) => {
                set_aside(file, &reason)?;
                Entries::new()
            }
        };
        let entry = entries
            .entry(problem.text())
            .or_insert_with(|| Entry::new(problem));
        change(entry);
        let text = serde_json::to_string_pretty(&entries)
            .map_err(|error| Error::format(file, error.to_string()))?;
        files::write(file, text.as_bytes())
    }

    /// Says that a candidate runs, for as long as the result is there.
    pub(crate) fn begin(&self, problem: &Problem, config: &str) -> Result<Trial> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let Some(Place::File(name)) = self.place() else {
            return Ok(Trial(None));
        };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = beside(&name, &format!(".{}-{number}.trial", process::id()));
        let running = Running {
            problem: problem.clone(),
            config: config.to_string(),
        };
        let text = serde_json::to_string(&running)
            .map_err(|error| Error::format(&path, error.to_string()))?;
        let written = File::create(&path).and_then(|mut file| {
            // Held until the process ends, however that happens.
            file.lock()?;
            file.write_all(text.as_bytes())?;
            Ok(file)
        });
        if written.is_err() {
            // Nobody would remove it as long as this process lives.
            let _ = fs::remove_file(&path);
        }
        // Where nothing can be written the winner cannot be kept either, and that is told then.
        Ok(Trial(written.ok().map(|file| (path, file))))
    }

    /// Notes that a candidate took the device with it.
    pub(crate) fn note_crash(&self, problem: &Problem, config: &str) -> Result<()> {
        self.change(problem.clone(), |entry| {
            entry.crashes.insert(config.to_string(), CRASHES);
        })
    }

    /// The candidates that processes did not survive. What those left that have ended since is noted first.
    pub(crate) fn crashed(&self, problem: &Problem) -> Result<BTreeSet<String>> {
        let Some(file) = &self.0 else {
            return Ok(BTreeSet::new());
        };
        for Running { problem, config } in self.left() {
            self.change(problem, |entry| {
                *entry.crashes.entry(config).or_default() += 1;
            })?;
        }
        let Found::Entries(mut entries) = read(file)? else {
            return Ok(BTreeSet::new());
        };
        let crashes = entries.remove(&problem.text()).map(|entry| entry.crashes);
        let often = crashes
            .unwrap_or_default()
            .into_iter()
            .filter(|(config, count)| {
                // Which one it was is to be found out at once.
                *count >= CRASHES || config == Trial::ALL
            });
        Ok(often.map(|(config, _)| config).collect())
    }

    /// What ran in processes that have ended, each once.
    fn left(&self) -> Vec<Running> {
        let Some(Place::File(name)) = self.place() else {
            return Vec::new();
        };
        let folder = name.parent().and_then(|folder| fs::read_dir(folder).ok());
        let Some((folder, stem)) = folder.zip(name.file_name()) else {
            return Vec::new();
        };
        let stem = format!("{}.", stem.to_string_lossy());
        let mut left: Vec<(String, Running)> = Vec::new();
        for entry in folder.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(name) = name.strip_prefix(&stem).filter(|it| it.ends_with(".trial")) else {
                continue;
            };
            let Ok(file) = File::open(entry.path()) else {
                continue;
            };
            // The lock of a process that lives is held. Of several who find one, that which removes it counts it.
            if file.try_lock().is_err() {
                continue;
            }
            let text = fs::read(entry.path()).unwrap_or_default();
            // A file that has just been made is empty, and not locked yet.
            if let Ok(running) = serde_json::from_slice(&text)
                && fs::remove_file(entry.path()).is_ok()
            {
                let process = name.split('-').next().unwrap_or("");
                left.push((process.to_string(), running));
            }
        }
        // What ran has ended its process, and not what was compiled meanwhile.
        let ran: BTreeSet<String> = left
            .iter()
            .filter(|(_, it)| it.config != Trial::ALL)
            .map(|(process, _)| process.clone())
            .collect();
        left.retain(|(process, it)| it.config != Trial::ALL || !ran.contains(process));
        left.into_iter().map(|(_, running)| running).collect()
    }

    fn place(&self) -> Option<Place> {
        let file = self.0.as_ref()?;
        Place::of(file).ok()
    }
}

fn read(file: &Path) -> Result<Found> {
    match fs::read(file) {
        Ok(text) => Ok(match serde_json::from_slice(&text) {
            Ok(entries) => Found::Entries(entries),
            Err(error) => Found::Damage(error.to_string()),
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Found::Entries(Entries::new())),
        Err(error) => Err(Error::file(file)(error)),
    }
}

fn set_aside(file: &Path, reason: &str) -> Result<()> {
    let aside = beside(file, ".damaged");
    fs::rename(file, &aside).map_err(Error::file(file))?;
    log::warn!(
        "`{}` is no file of winners and was renamed to `{}`: {reason}",
        file.display(),
        aside.display()
    );
    Ok(())
}

/// Waits for the lock of the file `name`, which lasts as long as the result. The lock is a file of its
/// own that stays. Where the system has no locks, there is none.
fn lock(name: &Path) -> Option<File> {
    let lock = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(beside(name, ".lock"))
        .ok()?;
    lock.lock().ok()?;
    Some(lock)
}

/// The same name with an ending.
fn beside(name: &Path, ending: &str) -> PathBuf {
    let mut longer: OsString = name.as_os_str().to_os_string();
    longer.push(ending);
    PathBuf::from(longer)
}
