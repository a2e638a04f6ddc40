//! Entries that were made to be shipped.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::{NONE, entry, owner, remove_file, sweep, whole};

/// A folder of entries that somebody names: whoever reads them need not be their owner, nothing is removed from it
/// without being asked for, and what is wrong with an entry is told.
#[derive(Clone, Debug)]
pub struct Shipped {
    folder: PathBuf,
}

impl Shipped {
    /// The entries in `folder`.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// Where the entries are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The name and the bytes of the file that holds `payload` under `key`.
    pub fn file_of(key: &str, payload: &[u8]) -> (String, Vec<u8>) {
        (entry::file_name(key), entry::encode(key, payload))
    }

    /// What lies there under `key`, if there is such a file.
    ///
    /// # Errors
    /// The file, and why it is no entry with this key.
    pub fn find(&self, key: &str) -> Result<Option<Vec<u8>>, (PathBuf, String)> {
        let path = self.folder.join(entry::file_name(key));
        let read = read(&path).and_then(|bytes| {
            let Some(bytes) = bytes else {
                return Ok(None);
            };
            let (found, payload) = entry::decode(&bytes)?;
            match found == key {
                true => Ok(Some(payload.to_vec())),
                false => Err("it has another key".to_string()),
            }
        });
        read.map_err(|reason| (path, reason))
    }

    /// Reads an entry by the name of its file, from the first byte to the last.
    ///
    /// # Errors
    /// Why it is none.
    pub fn check(&self, name: &str) -> Result<(), String> {
        let bytes = read(&self.folder.join(name))?.ok_or("there is no such file")?;
        let (key, _) = entry::decode(&bytes)?;
        match entry::file_name(key) == name {
            true => Ok(()),
            false => Err("it has the name of another key".to_string()),
        }
    }

    /// The names of all files that are named as entries are, in order.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut files = sweep::files(&self.folder)?;
        files.retain(|file| file.is_entry);
        let is_sum = |name: &String| {
            let sum = name.strip_suffix(entry::ENDING).unwrap_or_default();
            sum.len() == 2 * entry::SUM && sum.bytes().all(|it| it.is_ascii_hexdigit())
        };
        let name = |file: &sweep::Listed| Some(file.path.file_name()?.to_str()?.to_string());
        let mut names: Vec<String> = files.iter().filter_map(name).filter(is_sum).collect();
        names.sort();
        Ok(names)
    }

    /// Removes the file of an entry.
    ///
    /// # Errors
    /// When there is one, and it cannot be removed.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        remove_file(&self.folder.join(name))
    }
}

/// The bytes of a file, unless there is none. Links are followed.
fn read(path: &Path) -> Result<Option<Vec<u8>>, String> {
    let failed = |error: io::Error| error.to_string();
    let metadata = match fs::metadata(path) {
        Err(error) if NONE.contains(&error.kind()) => return Ok(None),
        metadata => metadata.map_err(failed)?,
    };
    owner::check_shipped(&metadata)?;
    let mut file = match metadata.is_file() {
        true => File::open(path).map_err(failed)?,
        false => return Err("it is no file".to_string()),
    };
    whole(&mut file, &metadata).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, key: &str, payload: &[u8]) -> PathBuf {
        let (name, bytes) = Shipped::file_of(key, payload);
        fs::write(folder.join(&name), bytes).expect("is written");
        folder.join(name)
    }

    #[test]
    fn entries_are_found_and_what_is_wrong_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let shipped = Shipped::at(folder.path());
        assert_eq!(shipped.find("a"), Ok(None));
        assert_eq!(Shipped::at("/no/such").find("a"), Ok(None));
        let path = write(folder.path(), "a", b"one");
        assert_eq!(shipped.find("a"), Ok(Some(b"one".to_vec())));
        let name = &shipped.names().expect("is read")[0];
        assert_eq!(shipped.check(name), Ok(()));
        let bytes = fs::read(&path).expect("is read");
        for length in 0..bytes.len() {
            fs::write(&path, &bytes[..length]).expect("is written");
            let (wrong, reason) = shipped.find("a").expect_err("is cut off");
            assert_eq!((&wrong, reason.as_str()), (&path, "it is no whole entry"));
            assert!(shipped.check(name).is_err());
        }
        let mut flipped = bytes.clone();
        flipped[30] ^= 1;
        fs::write(&path, &flipped).expect("is written");
        let reason = shipped.find("a").expect_err("is damaged").1;
        assert_eq!(reason, "its checksum is wrong");
        // Another entry under this name.
        fs::copy(write(folder.path(), "b", b"two"), &path).expect("is copied");
        let reason = shipped.find("a").expect_err("is another").1;
        assert_eq!(reason, "it has another key");
        let told = |name: &str| shipped.check(name).expect_err("is none");
        assert_eq!(told(name), "it has the name of another key");
        assert_eq!(told("nothing"), "there is no such file");
        fs::create_dir(folder.path().join("deeper")).expect("is made");
        assert_eq!(told("deeper"), "it is no file");
        assert_eq!(shipped.names().expect("is read").len(), 2);
        shipped.remove(name).expect("is removed");
        shipped.remove(name).expect("is not there");
        assert_eq!(shipped.find("a"), Ok(None));
    }

    #[cfg(unix)]
    #[test]
    fn what_everybody_may_write_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let path = write(folder.path(), "a", b"one");
        let mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode));
        let shipped = Shipped::at(folder.path());
        mode(0o664).expect("is mine");
        assert_eq!(shipped.find("a"), Ok(Some(b"one".to_vec())));
        mode(0o666).expect("is mine");
        let reason = shipped.find("a").expect_err("is open").1;
        assert_eq!(reason, "its mode 666 lets others in");
    }
}
