//! A profile as a table, and as a timeline in the format of Chrome's tracing.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::path::Path;

use super::{Profile, Span, SpanKind};
use crate::error::Result;
use crate::files;

/// What has one name.
#[derive(Default)]
struct Sum {
    count: usize,
    seconds: f64,
    bytes: Option<u64>,
}

/// A line for each name, the longest first: how often, milliseconds in all, microseconds of one, the share of all, and gigabytes a second
/// if each array was touched once.
impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sums: BTreeMap<(&str, SpanKind), Sum> = BTreeMap::new();
        for span in &self.spans {
            let sum = sums.entry((&span.name, span.kind)).or_default();
            sum.count += 1;
            sum.seconds += span.seconds;
            sum.bytes = span.bytes.map(|bytes| bytes + sum.bytes.unwrap_or(0));
        }
        let all: f64 = sums.values().map(|sum| sum.seconds).sum();
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by(|(_, one), (_, other)| other.seconds.total_cmp(&one.seconds));
        writeln!(
            f,
            "{:32} {:6} {:>8} {:>12} {:>12} {:>7} {:>8}",
            self.device, "", "count", "total ms", "mean us", "share", "GB/s"
        )?;
        for ((name, kind), sum) in sums {
            let rate = sum.bytes.filter(|_| sum.seconds > 0.0);
            let rate = rate.map(|bytes| format!("{:.1}", bytes as f64 / sum.seconds / 1e9));
            writeln!(
                f,
                "{name:32} {:6} {:8} {:12.3} {:12.2} {:5.1} % {:>8}",
                kind.name(),
                sum.count,
                sum.seconds * 1e3,
                sum.seconds * 1e6 / sum.count as f64,
                if all > 0.0 {
                    sum.seconds / all * 100.0
                } else {
                    0.0
                },
                rate.unwrap_or_default()
            )?;
        }
        Ok(())
    }
}

impl Profile {
    /// The timeline as JSON that `chrome://tracing` and Perfetto open: a row for each stream.
    #[must_use]
    pub fn chrome_trace(&self) -> String {
        let mut text = String::from("{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n");
        let device = quoted(&self.device);
        // Nothing fails to be appended to a text.
        let _ = write!(
            text,
            "{{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 0, \"args\": {{\"name\": {device}}}}}"
        );
        for span in &self.spans {
            text.push_str(",\n");
            let _ = write_event(&mut text, span);
        }
        text.push_str("\n]}\n");
        text
    }

    /// Writes [`chrome_trace`](Self::chrome_trace) to a file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_chrome_trace(&self, path: &Path) -> Result<()> {
        files::write(path, self.chrome_trace().as_bytes())
    }
}

/// A complete event: microseconds, a thread for each stream.
fn write_event(text: &mut String, span: &Span) -> fmt::Result {
    write!(
        text,
        "{{\"name\": {}, \"cat\": \"{}\", \"ph\": \"X\", \"pid\": 0, \"tid\": {}, \"ts\": {:.3}, \"dur\": {:.3}, \"args\": {{",
        quoted(&span.name),
        span.kind.name(),
        span.stream,
        span.start * 1e6,
        span.seconds * 1e6
    )?;
    let grid = span.grid.map(|grid| format!("\"grid\": \"{grid:?}\""));
    let bytes = span.bytes.map(|bytes| format!("\"bytes\": {bytes}"));
    let known: Vec<String> = grid.into_iter().chain(bytes).collect();
    write!(text, "{}}}}}", known.join(", "))
}

/// A text of JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c < ' ' => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
