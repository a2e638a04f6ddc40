//! Source locations and the errors that carry them.

use std::fmt;
use std::sync::Arc;

/// A place in a source file; line and column count from 1, and line 0 means "no location".
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Loc {
    /// The file as the compiler named it.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl Loc {
    /// A location.
    pub fn new(file: &str, line: u32, column: u32) -> Self {
        Self {
            file: Arc::from(file),
            line,
            column,
        }
    }

    /// The location of code that has no source text.
    pub fn none() -> Self {
        Self::new("", 0, 0)
    }

    /// The place that called the `#[track_caller]` function in which this is called.
    #[track_caller]
    pub fn caller() -> Self {
        let caller = std::panic::Location::caller();
        Self::new(caller.file(), caller.line(), caller.column())
    }

    /// Whether this names a place.
    pub fn is_known(&self) -> bool {
        self.line != 0
    }
}

impl fmt::Display for Loc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_known() {
            write!(f, "{}:{}:{}", self.file, self.line, self.column)
        } else {
            f.write_str("<unknown>")
        }
    }
}

impl fmt::Debug for Loc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One error: what is wrong, where, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Lower case, no full stop, values in backticks.
    pub message: String,
    /// Where it happened.
    pub loc: Loc,
    /// What to do, one sentence each.
    pub notes: Vec<String>,
}

impl Diagnostic {
    /// An error at `loc`.
    pub fn new(loc: Loc, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            loc,
            notes: Vec::new(),
        }
    }

    /// Adds a note.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        if self.loc.is_known() {
            write!(f, "\n  --> {}", self.loc)?;
        }
        for note in &self.notes {
            write!(f, "\n  note: {note}")?;
        }
        Ok(())
    }
}

/// The most errors that are kept; of more than that only the number is.
pub const MOST_ERRORS: usize = 100;

/// All the errors of one run of a stage, in the order found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    items: Vec<Diagnostic>,
    /// How many were found after the last that is kept.
    more: usize,
}

impl Diagnostics {
    /// No errors.
    pub const fn new() -> Self {
        Self {
            items: Vec::new(),
            more: 0,
        }
    }

    /// Adds an error, unless it is the last one: what is traced twice finds it twice.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if diagnostic.loc.is_known() && self.items.last() == Some(&diagnostic) {
            return;
        }
        if self.items.len() < MOST_ERRORS {
            self.items.push(diagnostic);
        } else {
            self.more += 1;
        }
    }

    /// Adds an error built from its parts.
    pub fn error(&mut self, loc: &Loc, message: impl Into<String>) {
        self.push(Diagnostic::new(loc.clone(), message));
    }

    /// Adds all errors of `other`.
    pub fn append(&mut self, other: Self) {
        other.items.into_iter().for_each(|item| self.push(item));
        self.more += other.more;
    }

    /// Whether there is no error.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// How many errors there are besides those of [`Diagnostics::iter`].
    pub fn more(&self) -> usize {
        self.more
    }

    /// The errors: the first hundred.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.items.iter()
    }

    /// `Ok(value)` when there is no error, else the errors.
    pub fn into_result<T>(self, value: T) -> Result<T, Self> {
        if self.is_empty() {
            Ok(value)
        } else {
            Err(self)
        }
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        Self {
            items: vec![diagnostic],
            more: 0,
        }
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, item) in self.items.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{item}")?;
        }
        match self.more {
            0 => Ok(()),
            more => write!(f, "\nerror: {more} more errors"),
        }
    }
}

impl std::error::Error for Diagnostics {}
