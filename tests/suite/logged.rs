//! The log of this binary at level `warn`.

use std::sync::{Mutex, Once, PoisonError};

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Lines;

impl log::Log for Lines {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push(record.args().to_string());
    }

    fn flush(&self) {}
}

/// Has lines kept from now on.
pub(crate) fn begin() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| {
        log::set_logger(&Lines).expect("the only logger of this binary");
        log::set_max_level(log::LevelFilter::Warn);
    });
}

/// The lines that contain `text`.
pub(crate) fn lines(text: &str) -> Vec<String> {
    let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    let found = lines.iter().filter(|line| line.contains(text));
    found.cloned().collect()
}
