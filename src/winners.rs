//! The tuner's file of winners, which threads and processes share.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, DirEntry, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::files::{self, Place};
pub use crate::found::{Known, Provenance};
pub(crate) use crate::found::{Problem, Winner};

/// So many processes may end while they run a candidate until it is not run any more: one may have been stopped by hand.
const CRASHES: u32 = 2;

/// The name of what an entry holds besides its problem and its winner: how many processes ended while they ran a candidate.
const COUNTS: &str = "crashes";

/// What other writers left of a file or a candidate is theirs no more after this time.
const HOUR: Duration = Duration::from_secs(3600);

/// Objects by the text of their problem, each a problem, a winner if there is one, [`COUNTS`], and what others wrote
/// there, which stays.
type Entries = BTreeMap<String, Value>;

/// How many processes ended while they ran a candidate, by candidate.
fn crashes(entry: &Value) -> BTreeMap<String, u32> {
    BTreeMap::deserialize(&entry[COUNTS]).unwrap_or_default()
}

fn set_crashes(entry: &mut Value, change: impl FnOnce(&mut BTreeMap<String, u32>)) {
    let (before, mut crashes) = (crashes(entry), crashes(entry));
    change(&mut crashes);
    if crashes == before {
        return;
    }
    if let (Value::Object(fields), true) = (&mut *entry, crashes.is_empty()) {
        fields.remove(COUNTS);
    } else {
        entry[COUNTS] = json!(crashes);
    }
}

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
        let known = entries.values().filter_map(|entry| {
            let other = Problem::deserialize(entry).ok()?;
            let distance = problem.distance(&other)?;
            let known = Winner::deserialize(entry).ok()?.known(&other);
            let is_exact = distance == 0.0;
            Some((distance, Known { is_exact, ..known }))
        });
        let nearest = known.min_by(|(one, _), (other, _)| one.total_cmp(other));
        Ok(nearest.map(|(_, known)| known))
    }

    /// Adds a winner to those of other threads and processes. A damaged file is set aside.
    pub(crate) fn keep(&self, problem: Problem, winner: Winner) -> Result<()> {
        let winner = json!(winner);
        self.change(problem, |entry| {
            if let (Value::Object(fields), Value::Object(winner)) = (&mut *entry, winner) {
                fields.extend(winner);
            }
            // It is known by now.
            set_crashes(entry, |crashes| {
                crashes.remove(Trial::ALL);
            });
        })
    }

    /// Changes one entry, and leaves those of others as they are.
    fn change(&self, problem: Problem, change: impl FnOnce(&mut Value)) -> Result<()> {
        let Some(file) = &self.0 else {
            return Ok(());
        };
        if let Some(folder) = file.parent().filter(|folder| *folder != Path::new("")) {
            fs::create_dir_all(folder).map_err(Error::file(folder))?;
        }
        // The lock stands beside the file itself, whatever link leads to it.
        let name = match Place::of(file)? {
            Place::File(name) => name,
            Place::Stream(_) => return Err(no_file(file)),
        };
        let _lock = lock(&name);
        let mut entries = match read(&name)? {
            Found::Entries(entries) => entries,
            Found::Damage(reason) => {
                set_aside(&name, &reason)?;
                Entries::new()
            }
        };
        let entry = entries.entry(problem.text());
        change(entry.or_insert_with(|| json!(problem)));
        let text = serde_json::to_string_pretty(&entries)
            .map_err(|error| Error::format(file, error.to_string()))?;
        files::write(&name, text.as_bytes())
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
            set_crashes(entry, |crashes| {
                crashes.insert(config.to_string(), CRASHES);
            });
        })
    }

    /// The candidates that processes did not survive. What those left that have ended since is noted first.
    pub(crate) fn crashed(&self, problem: &Problem) -> Result<BTreeSet<String>> {
        let Some(file) = &self.0 else {
            return Ok(BTreeSet::new());
        };
        for Running { problem, config } in self.left() {
            self.change(problem, |entry| {
                set_crashes(entry, |crashes| *crashes.entry(config).or_default() += 1);
            })?;
        }
        let Found::Entries(entries) = read(file)? else {
            return Ok(BTreeSet::new());
        };
        let crashes = entries.get(&problem.text()).map(crashes);
        let often = crashes
            .unwrap_or_default()
            .into_iter()
            .filter(|(config, count)| {
                // Which one it was is to be found out at once.
                *count >= CRASHES || config == Trial::ALL
            });
        Ok(often.map(|(config, _)| config).collect())
    }

    /// What ran in processes that have ended, each once. What else they left half written is removed.
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
            if files::is_partial(&name) && is_old(&entry) {
                let _ = fs::remove_file(entry.path());
            }
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
            let running = serde_json::from_slice(&text).ok();
            if (running.is_some() || is_old(&entry)) && fs::remove_file(entry.path()).is_ok() {
                let process = name.split('-').next().unwrap_or("").to_string();
                left.extend(running.map(|running| (process, running)));
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

fn is_old(entry: &DirEntry) -> bool {
    let written = entry.metadata().and_then(|metadata| metadata.modified());
    let age = written.map(|written| SystemTime::now().duration_since(written).ok());
    age.is_ok_and(|age| age > Some(HOUR))
}

fn read(file: &Path) -> Result<Found> {
    // What is no file may never end.
    match fs::metadata(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok(Found::Entries(Entries::new()));
        }
        metadata if metadata.as_ref().is_ok_and(|it| !it.is_file()) => return Err(no_file(file)),
        _ => {}
    }
    let text = fs::read(file).map_err(Error::file(file))?;
    let parsed = serde_json::from_slice(&text).and_then(|entries: Entries| {
        let mut problems = entries.values().map(Problem::deserialize);
        problems.try_for_each(|problem| problem.map(drop))?;
        Ok(entries)
    });
    Ok(match parsed {
        Ok(entries) => Found::Entries(entries),
        Err(error) => Found::Damage(error.to_string()),
    })
}

fn no_file(file: &Path) -> Error {
    Error::format(file, "winners are kept in a regular file, and this is none")
}

/// Renames a damaged file to a name that nothing has.
fn set_aside(file: &Path, reason: &str) -> Result<()> {
    let names = (1..).map(|number| match number {
        1 => beside(file, ".damaged"),
        _ => beside(file, &format!(".damaged-{number}")),
    });
    let mut free = names.filter(|name| fs::symlink_metadata(name).is_err());
    let aside = free.next().unwrap_or_else(|| beside(file, ".damaged"));
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
