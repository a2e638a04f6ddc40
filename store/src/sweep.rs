//! What leaves a folder: the entries used longest ago where there are too many, and what unfinished writers left.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::{Limits, entry};

/// How the names of files begin that are being written.
pub(crate) const UNFINISHED: &str = ".unfinished-";

/// Held by the one who sweeps; written when that was done.
const LOCK: &str = "sweep.lock";

/// The time between two sweeps, and the age at which nobody writes a file any more.
const HOUR: Duration = Duration::from_secs(3600);

/// A file of a folder.
pub(crate) struct Listed {
    pub(crate) path: PathBuf,
    /// Or an unfinished one.
    pub(crate) is_entry: bool,
    pub(crate) bytes: u64,
    pub(crate) used: SystemTime,
}

/// The entries and the unfinished files of a folder; none where there is no folder.
pub(crate) fn files(folder: &Path) -> io::Result<Vec<Listed>> {
    let read = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        read => read?,
    };
    let mut files = Vec::new();
    for file in read {
        let file = file?;
        let name = file.file_name();
        let name = name.to_string_lossy();
        let is_entry = name.ends_with(entry::ENDING);
        // Another process may have removed it.
        let Some(metadata) = file.metadata().ok().filter(fs::Metadata::is_file) else {
            continue;
        };
        if is_entry || name.starts_with(UNFINISHED) {
            files.push(Listed {
                path: file.path(),
                is_entry,
                bytes: metadata.len(),
                used: metadata.modified()?,
            });
        }
    }
    Ok(files)
}

/// Whether the last sweep was long ago.
pub(crate) fn is_due(folder: &Path) -> bool {
    let swept = fs::metadata(folder.join(LOCK)).and_then(|metadata| metadata.modified());
    swept.map_or(true, is_old)
}

fn is_old(time: SystemTime) -> bool {
    SystemTime::now()
        .duration_since(time)
        .is_ok_and(|age| age > HOUR)
}

/// Brings the folder below seven tenths of its limits where it is beyond them, unless another one is at it.
pub(crate) fn sweep(folder: &Path, limits: Limits) {
    let Some(lock) = lock(folder) else {
        return;
    };
    if let Err(error) = remove_oldest(folder, limits, &crate::remove_file) {
        let folder = folder.display();
        log::warn!("something stays in the cache `{folder}`: {error}");
    }
    // Where the time stays old, the next one sweeps again.
    let _ = lock.set_modified(SystemTime::now());
}

fn lock(folder: &Path) -> Option<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let lock = options.open(folder.join(LOCK)).ok()?;
    lock.try_lock().ok()?;
    Some(lock)
}

/// What cannot be removed stays, and others leave in its place.
///
/// # Errors
/// When the folder cannot be read; else the first reason why something stays.
pub(crate) fn remove_oldest(
    folder: &Path,
    limits: Limits,
    remove: &dyn Fn(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let (mut entries, unfinished): (Vec<_>, Vec<_>) =
        files(folder)?.into_iter().partition(|file| file.is_entry);
    let mut swept = Ok(());
    for file in unfinished.iter().filter(|file| is_old(file.used)) {
        swept = swept.and(remove(&file.path));
    }
    let mut bytes: u64 = entries.iter().map(|file| file.bytes).sum();
    let mut count = entries.len();
    if bytes <= limits.bytes && count <= limits.entries {
        return swept;
    }
    entries.sort_by_key(|file| file.used);
    for file in &entries {
        if bytes <= limits.bytes * 7 / 10 && count <= limits.entries * 7 / 10 {
            break;
        }
        match remove(&file.path) {
            Ok(()) => {
                bytes -= file.bytes;
                count -= 1;
            }
            Err(error) => swept = swept.and(Err(error)),
        }
    }
    swept
}
