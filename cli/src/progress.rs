//! Progress of long commands: a line on standard error, on a terminal only.

use std::time::Duration;

use exactile::Result;
use indicatif::{ProgressBar, ProgressStyle};

/// How often the line moves while nothing else happens.
const TICK: Duration = Duration::from_millis(200);

/// The line, which goes away when dropped.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    pub(crate) fn start(what: &str) -> Self {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}") {
            bar.set_style(style);
        }
        bar.set_message(what.to_string());
        if !bar.is_hidden() {
            bar.enable_steady_tick(TICK);
        }
        Self(bar)
    }

    /// What is being done now.
    pub(crate) fn say(&self, what: String) {
        self.0.set_message(what);
    }

    /// A line that stays above.
    pub(crate) fn note(&self, line: &str) {
        self.0.println(line);
    }

    /// Prints results, out of the way of the line.
    pub(crate) fn print(&self, text: &str) -> Result<()> {
        self.0.suspend(|| super::print(text))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
