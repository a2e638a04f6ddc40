//! Words of command lines.

use exactile_core::target::Target;

/// The machine with this name.
///
/// # Errors
/// The names that there are.
pub fn target(text: &str) -> Result<Target, String> {
    Target::from_name(text).ok_or_else(|| {
        let names: Vec<&str> = Target::all().map(|target| target.name).collect();
        format!("expected `{}`", names.join("`, `"))
    })
}
