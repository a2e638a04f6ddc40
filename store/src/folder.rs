//! Where entries are kept.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::path::{Path, PathBuf};

use crate::owner;

/// Names the folder of entries.
pub const FOLDER: &str = "EXACTILE_CACHE_DIR";

/// `off` keeps nothing.
pub const SWITCH: &str = "EXACTILE_CACHE";

/// The part of a folder that entries of this format have for themselves.
const FORMAT: &str = "v1";

/// The folder that the variables of the environment name.
pub(crate) fn of_environment(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let named = |name| variable(name).filter(|value| !value.is_empty());
    match named(SWITCH) {
        Some(switch) if switch == "off" => return None,
        Some(switch) if switch != "on" => {
            let switch = switch.to_string_lossy();
            log::warn!("{SWITCH} is `{switch}`, expected `on` or `off`");
        }
        Some(_) | None => {}
    }
    if let Some(folder) = named(FOLDER) {
        return Some(PathBuf::from(folder).join(FORMAT));
    }
    let absolute = |name| {
        named(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let caches = if cfg!(windows) {
        absolute("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        absolute("HOME").map(|home| home.join("Library/Caches"))
    } else {
        absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))
    };
    Some(caches?.join("exactile").join(FORMAT))
}

/// Makes the folder, for its owner alone.
pub(crate) fn make(folder: &Path) -> io::Result<()> {
    if !folder.is_dir() {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
    }
    check(folder)
}

/// Refuses a folder that is not its user's alone to write in.
pub(crate) fn check(folder: &Path) -> io::Result<()> {
    owner::check_folder(&fs::metadata(folder)?).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Option<PathBuf> {
        of_environment(|name| {
            let variable = variables.iter().find(|(known, _)| *known == name)?;
            Some(variable.1.into())
        })
    }

    #[test]
    fn the_environment_names_the_folder() {
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[("HOME", ""), (FOLDER, "")]), None);
        assert_eq!(found(&[(FOLDER, "x"), (SWITCH, "off")]), None);
        assert_eq!(found(&[(FOLDER, "x"), (SWITCH, "on")]), Some("x/v1".into()));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_platform_has_a_folder_for_caches() {
        let home = ("HOME", "/home/me");
        assert_eq!(found(&[home]), Some("/home/me/.cache/exactile/v1".into()));
        let caches = |name| [home, ("XDG_CACHE_HOME", name)];
        assert_eq!(found(&caches("/c")), Some("/c/exactile/v1".into()));
        // The specification says to ignore relative ones.
        assert_eq!(found(&caches("c")), found(&[home]));
    }
}
