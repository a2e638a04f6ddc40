//! The tuner's file of winners, which threads and processes share.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::files::{self, Place};

/// The configuration that won, as its `Debug` form, and its time.
#[derive(Serialize, Deserialize)]
pub(crate) struct Winner {
    pub(crate) config: String,
    pub(crate) seconds: f64,
}

type Winners = BTreeMap<String, Winner>;

/// What a file holds.
enum Found {
    Winners(Winners),
    /// Something else, and why.
    Damage(String),
}

/// A file of winners, or none.
#[derive(Clone, Debug)]
pub(crate) struct WinnersFile(Option<PathBuf>);

impl WinnersFile {
    /// The winners in `file`.
    pub(crate) fn new(file: PathBuf) -> Self {
        Self(Some(file))
    }

    /// A tuner's memory that holds nothing.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// The winner on file. A rename makes files, so reading needs no lock.
    pub(crate) fn find(&self, key: &str) -> Result<Option<Winner>> {
        let Some(file) = &self.0 else {
            return Ok(None);
        };
        Ok(match read(file)? {
            Found::Winners(mut winners) => winners.remove(key),
            Found::Damage(_) => None,
        })
    }

    /// Adds a winner to those of other threads and processes. A damaged file is set aside.
    pub(crate) fn keep(&self, key: String, winner: Winner) -> Result<()> {
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
        let mut winners = match read(file)? {
            Found::Winners(winners) => winners,
            Found::Damage(reason) => {
                set_aside(file, &reason)?;
                Winners::new()
            }
        };
        winners.insert(key, winner);
        let text = serde_json::to_string_pretty(&winners)
            .map_err(|error| Error::format(file, error.to_string()))?;
        files::write(file, text.as_bytes())
    }
}

fn read(file: &Path) -> Result<Found> {
    match fs::read(file) {
        Ok(text) => Ok(match serde_json::from_slice(&text) {
            Ok(winners) => Found::Winners(winners),
            Err(error) => Found::Damage(error.to_string()),
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Found::Winners(Winners::new())),
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
