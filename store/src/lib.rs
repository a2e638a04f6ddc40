//! Bytes on disk by the text of their keys: what one process made, the next one finds.
//!
//! An entry is a file named by the SHA-256 of its key. It holds the whole text of the key, so that no
//! collision and no file in the wrong place is taken for another, and a checksum of everything. Files appear
//! by a rename, so readers need no lock. Whatever is wrong with a file or a folder costs the work that would
//! have been saved, and nothing else.

#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod entry;
mod folder;
mod owner;
mod shipped;
mod sweep;

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tempfile::Builder;

pub use entry::sum;
pub use folder::{FOLDER, SWITCH};
pub use shipped::Shipped;

/// The least time between two notes that an entry was used.
const USED_AGAIN: Duration = Duration::from_secs(24 * 3600);

/// The most bytes of a file that is taken for an entry.
const LARGEST: u64 = 256 << 20;

/// What opening a file says where there is none.
const NONE: [ErrorKind; 2] = [ErrorKind::NotFound, ErrorKind::NotADirectory];

/// What a folder may hold before the entries used longest ago leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of all entries.
    pub bytes: u64,
    /// Entries.
    pub entries: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 512 << 20,
            entries: 1 << 16,
        }
    }
}

/// A folder of entries, for any number of threads and processes at once.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    limits: Limits,
    /// Bytes written by this process since its last sweep.
    written: AtomicU64,
    complained: AtomicBool,
}

/// An entry as it lies on disk.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The file.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was last used, to a day.
    pub used: SystemTime,
    /// Its key, or why it is no entry.
    pub key: Result<String, String>,
}

impl Store {
    /// The entries in `folder`, which is made when the first one is kept.
    pub fn at(folder: impl Into<PathBuf>, limits: Limits) -> Self {
        Self {
            folder: folder.into(),
            limits,
            written: AtomicU64::new(0),
            complained: AtomicBool::new(false),
        }
    }

    /// The entries in the folder that `EXACTILE_CACHE_DIR` names, else in that of the platform for caches; nothing
    /// where `EXACTILE_CACHE` is `off`, or where there is no such folder.
    pub fn of_environment() -> Option<Self> {
        let folder = folder::of_environment(|name| std::env::var_os(name))?;
        Some(Self::at(folder, Limits::default()))
    }

    /// Where the entries are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(entry::file_name(key))
    }

    /// What was kept under `key`. A file that is damaged, or that others may have written, is removed and counts
    /// as none. In a folder of another user, or in which others may write, nothing is found and nothing is removed.
    pub fn find(&self, key: &str) -> Option<Vec<u8>> {
        match folder::check(&self.folder) {
            Ok(()) => {}
            Err(error) if NONE.contains(&error.kind()) => return None,
            Err(error) => {
                self.complain("found", &error);
                return None;
            }
        }
        let path = self.path(key);
        let found = self.read(&path).and_then(|read| {
            let Some((file, bytes)) = read else {
                return Ok(None);
            };
            let (found, payload) = entry::decode(&bytes)?;
            if found != key {
                return Err("it has another key".to_string());
            }
            note_use(&file);
            Ok(Some(payload.to_vec()))
        });
        found.unwrap_or_else(|reason| {
            log::warn!("`{}` is removed from the cache: {reason}", path.display());
            self.remove(&path);
            None
        })
    }

    /// Keeps `payload` under `key`, in place of what was there. Where the folder cannot be written, nothing is
    /// kept, and the log says so once.
    pub fn keep(&self, key: &str, payload: &[u8]) {
        match self.write(key, payload) {
            Ok(bytes) => self.wrote(bytes),
            Err(error) => self.complain("kept", &error),
        }
    }

    /// Says once that the folder is of no use.
    fn complain(&self, what: &str, error: &io::Error) {
        if !self.complained.swap(true, Ordering::Relaxed) {
            let folder = self.folder.display();
            log::warn!("nothing is {what} in the cache `{folder}`: {error}");
        }
    }

    /// Removes what was kept under `key`, unless the folder is another user's.
    pub fn discard(&self, key: &str) {
        if folder::check(&self.folder).is_ok() {
            self.remove(&self.path(key));
        }
    }

    /// Removes all entries and what unfinished writers left. Returns how many entries there were, and their bytes.
    ///
    /// # Errors
    /// When the folder cannot be read, when it is another user's, or when a file cannot be removed.
    pub fn clear(&self) -> io::Result<(usize, u64)> {
        let (mut count, mut bytes) = (0, 0);
        match folder::check(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok((0, 0)),
            checked => checked?,
        }
        for file in sweep::files(&self.folder)? {
            remove_file(&file.path)?;
            if file.is_entry {
                count += 1;
                bytes += file.bytes;
            }
        }
        Ok((count, bytes))
    }

    /// All entries, those used last in front, each checked from the first byte to the last.
    ///
    /// # Errors
    /// When the folder cannot be read, or is one in which nothing is found.
    pub fn entries(&self) -> io::Result<Vec<Entry>> {
        match folder::check(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            checked => checked?,
        }
        let mut files = sweep::files(&self.folder)?;
        files.retain(|file| file.is_entry);
        files.sort_by(|one, other| (other.used, &other.path).cmp(&(one.used, &one.path)));
        let entry = |file: sweep::Listed| {
            let read = self.read(&file.path);
            let key = read.and_then(|read| {
                let (_, bytes) = read.ok_or("it was removed meanwhile")?;
                entry::decode(&bytes).map(|(key, _)| key.to_string())
            });
            let key = key.and_then(|key| match file.path == self.path(&key) {
                true => Ok(key),
                false => Err("it has the name of another key".to_string()),
            });
            Entry {
                path: file.path,
                bytes: file.bytes,
                used: file.used,
                key,
            }
        };
        Ok(files.into_iter().map(entry).collect())
    }

    /// The file and its bytes, unless there is none.
    fn read(&self, path: &Path) -> Result<Option<(File, Vec<u8>)>, String> {
        let failed = |error: io::Error| error.to_string();
        let mut file = match owner::open(path) {
            Err(error) if NONE.contains(&error.kind()) => return Ok(None),
            file => file.map_err(failed)?,
        };
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err("it is no file".to_string());
        }
        owner::check(&metadata)?;
        let bytes = whole(&mut file, &metadata)?;
        Ok(Some((file, bytes)))
    }

    fn write(&self, key: &str, payload: &[u8]) -> io::Result<u64> {
        folder::make(&self.folder)?;
        let bytes = entry::encode(key, payload);
        // Its name is new in the folder, and others may neither read nor write it.
        let mut builder = Builder::new();
        builder.prefix(sweep::UNFINISHED);
        let mut file = builder.tempfile_in(&self.folder)?;
        file.write_all(&bytes)?;
        file.persist(self.path(key)).map_err(|error| error.error)?;
        Ok(bytes.len() as u64)
    }

    fn wrote(&self, bytes: u64) {
        let written = self.written.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if written > self.limits.bytes / 16 || sweep::is_due(&self.folder) {
            self.written.store(0, Ordering::Relaxed);
            sweep::sweep(&self.folder, self.limits);
        }
    }

    fn remove(&self, path: &Path) {
        if let Err(error) = remove_file(path) {
            log::warn!("`{}` stays in the cache: {error}", path.display());
        }
    }
}

/// The bytes of a file that is not too long for an entry.
fn whole(file: &mut File, metadata: &Metadata) -> Result<Vec<u8>, String> {
    if metadata.len() > LARGEST {
        return Err(format!("it has {} bytes", metadata.len()));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// That another one removed it first is no failure.
fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Notes the use of an entry; one in a folder that cannot be written just looks older.
fn note_use(file: &File) {
    let now = SystemTime::now();
    let used = file.metadata().and_then(|metadata| metadata.modified());
    let recent = used.is_ok_and(|used| now.duration_since(used).is_ok_and(|age| age < USED_AGAIN));
    if !recent {
        let _ = file.set_modified(now);
    }
}

#[cfg(test)]
mod tests;
