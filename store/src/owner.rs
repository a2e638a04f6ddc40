//! Who may have written a file: entries hold code that is run.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::Path;

/// Opens a file to read it: no link is followed, and what is no file does not block.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let flags = flags.bits().cast_signed();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags);
    }
    options.open(path)
}

/// Refuses a file that another user owns, or that others may write or read.
#[cfg(unix)]
pub(crate) fn check(metadata: &Metadata) -> Result<(), String> {
    refuse(metadata, 0o077)
}

/// Refuses a folder that another user owns, or in which others may write.
#[cfg(unix)]
pub(crate) fn check_folder(metadata: &Metadata) -> Result<(), String> {
    refuse(metadata, 0o022)
}

/// Refuses a file that everybody may write.
#[cfg(unix)]
pub(crate) fn check_shipped(metadata: &Metadata) -> Result<(), String> {
    refuse_mode(metadata, 0o002)
}

#[cfg(unix)]
fn refuse(metadata: &Metadata, others: u32) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err("another user owns it".to_string());
    }
    refuse_mode(metadata, others)
}

#[cfg(unix)]
fn refuse_mode(metadata: &Metadata, others: u32) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt;
    match metadata.mode() & others {
        0 => Ok(()),
        _ => Err(format!(
            "its mode {:o} lets others in",
            metadata.mode() & 0o777
        )),
    }
}

/// The folders of a user are that user's own.
#[cfg(not(unix))]
pub(crate) fn check(_metadata: &Metadata) -> Result<(), String> {
    Ok(())
}

/// The folders of a user are that user's own.
#[cfg(not(unix))]
pub(crate) fn check_folder(_metadata: &Metadata) -> Result<(), String> {
    Ok(())
}

/// The folders of a user are that user's own.
#[cfg(not(unix))]
pub(crate) fn check_shipped(_metadata: &Metadata) -> Result<(), String> {
    Ok(())
}
