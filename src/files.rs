//! Files that appear whole or not at all, and the lock of a file between threads and processes.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

use crate::error::{Error, Result};

/// The most symbolic links from a path to its file, as in Linux.
const MOST_LINKS: usize = 40;

/// How the names of files begin and end that are being written.
const PARTIAL: (&str, &str) = (".exactile-", ".partial");

/// Whether this is the name of a file that is being written, or that a process which was killed left.
#[cfg_attr(
    not(feature = "tuner-file"),
    expect(dead_code, reason = "a tuner's file needs it")
)]
pub(crate) fn is_partial(name: &str) -> bool {
    name.starts_with(PARTIAL.0) && name.ends_with(PARTIAL.1)
}

/// What a file is to hold.
pub struct Contents<'a> {
    /// The file's name.
    pub path: &'a Path,
    /// Writes the bytes.
    pub fill: &'a dyn Fn(&mut dyn Write) -> io::Result<()>,
}

/// What a path names once its links are followed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// A file with this name, which may not exist yet.
    File(PathBuf),
    /// A fifo, a device, or the file that a descriptor of a process stands for: only what is written
    /// there arrives.
    Stream(PathBuf),
}

impl Place {
    pub(crate) fn of(path: &Path) -> Result<Self> {
        Self::resolve(path).map_err(Error::file(path))
    }

    fn resolve(path: &Path) -> io::Result<Self> {
        let mut name = path.to_path_buf();
        for _ in 0..MOST_LINKS {
            let kind = match fs::symlink_metadata(&name) {
                Ok(metadata) => metadata.file_type(),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    return Ok(Self::File(name_of(&name)?));
                }
                Err(error) => return Err(error),
            };
            if kind.is_file() {
                return Ok(Self::File(name_of(&name)?));
            }
            if kind.is_dir() {
                return Err(io::Error::new(ErrorKind::IsADirectory, "is a directory"));
            }
            if !kind.is_symlink() {
                return Ok(Self::Stream(name));
            }
            let folder = folder_of(&name);
            // The links of descriptors look like paths, and only the system can follow them.
            if fs::canonicalize(folder)?.starts_with("/proc") {
                return Ok(Self::Stream(name));
            }
            name = folder.join(fs::read_link(&name)?);
        }
        Err(io::Error::other("too many levels of symbolic links"))
    }
}

/// The same name in the one spelling of its folder.
fn name_of(path: &Path) -> io::Result<PathBuf> {
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "not the name of a file"))?;
    Ok(fs::canonicalize(folder_of(path))?.join(name))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        Some(_) | None => Path::new("."),
    }
}

/// Writes all `contents`, so that all files appear whole, or none does. Streams are written when all
/// files are ready, and before any appears.
pub fn write_all(contents: &[Contents<'_>]) -> Result<()> {
    let mut places: Vec<Place> = Vec::new();
    for each in contents {
        let place = Place::of(each.path)?;
        if places.contains(&place) {
            return Err(Error::format(each.path, "two results go to this file"));
        }
        places.push(place);
    }
    let mut ready: Vec<(&Path, NamedTempFile, &Path)> = Vec::new();
    for (each, place) in contents.iter().zip(&places) {
        if let Place::File(name) = place {
            let file = prepare(name, each).map_err(Error::file(each.path))?;
            ready.push((each.path, file, name));
        }
    }
    for (each, place) in contents.iter().zip(&places) {
        if let Place::Stream(name) = place {
            stream(name, each).map_err(Error::file(each.path))?;
        }
    }
    for (path, file, name) in ready {
        let kept = file.persist(name).map_err(|error| error.error);
        kept.map_err(Error::file(path))?;
    }
    Ok(())
}

/// Writes one file; see [`write_all`].
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let fill = |writer: &mut dyn Write| writer.write_all(bytes);
    write_all(&[Contents { path, fill: &fill }])
}

/// A complete file beside its final place, which nothing but a rename separates from it. It has the
/// permissions of the file that it replaces.
fn prepare(name: &Path, contents: &Contents<'_>) -> io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    builder.prefix(PARTIAL.0).suffix(PARTIAL.1);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let file = builder.tempfile_in(folder_of(name))?;
    if let Ok(before) = fs::metadata(name) {
        file.as_file().set_permissions(before.permissions())?;
    }
    let mut writer = BufWriter::new(file.as_file());
    (contents.fill)(&mut writer)?;
    writer.flush()?;
    drop(writer);
    file.as_file().sync_all()?;
    Ok(file)
}

fn stream(name: &Path, contents: &Contents<'_>) -> io::Result<()> {
    // What a descriptor stands for may be a file that others write too.
    let appended = fs::metadata(name)?.is_file();
    let file = OpenOptions::new().write(true).append(appended).open(name)?;
    let mut writer = BufWriter::new(file);
    (contents.fill)(&mut writer)?;
    writer.flush()
}
