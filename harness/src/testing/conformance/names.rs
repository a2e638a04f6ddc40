//! The names of all cases of Triton's test suite that run kernels, look at code, or tell what a host does; and which
//! of them a row of the table is about.

use std::collections::BTreeSet;

/// A file of that suite in a line, and its cases in lines of their own below.
const NAMES: &str = include_str!("names.txt");

/// The file of rows that name none.
const USUAL_FILE: &str = "test_core";

/// All names, as `file: case`.
#[must_use]
pub fn names() -> BTreeSet<String> {
    let mut file = "";
    let mut found = BTreeSet::new();
    for line in NAMES.lines() {
        match line.strip_prefix("  ") {
            Some(case) => {
                found.insert(format!("{file}: {case}"));
            }
            None => file = line,
        }
    }
    found
}

/// The names that a row is about.
#[derive(Clone, Debug)]
pub struct RowNames {
    /// Each name; or what begins the names, without the `*` behind it.
    pub patterns: Vec<Pattern>,
    /// Whether the row says in parentheses which part of the cases it is about, so that other rows have the same names.
    pub partial: bool,
}

/// A name, or what many names begin with.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    many: bool,
}

impl Pattern {
    /// Whether this is about a name.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        match self.many {
            true => name.starts_with(&self.text),
            false => name == self.text,
        }
    }
}

impl RowNames {
    /// The names of a row: `file: case, case`, of the usual file without one; `case*` for all that begin so; what
    /// stands in parentheses is no name.
    #[must_use]
    pub fn of(case: &str) -> Self {
        let mut bare = String::new();
        let mut depth = 0;
        for letter in case.chars() {
            match letter {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ if depth == 0 => bare.push(letter),
                _ => {}
            }
        }
        let (file, cases) = bare.split_once(": ").unwrap_or((USUAL_FILE, &bare));
        let pattern = |name: &str| {
            let name = name.trim();
            let stem = name.strip_suffix('*');
            Pattern {
                text: format!("{file}: {}", stem.unwrap_or(name)),
                many: stem.is_some(),
            }
        };
        Self {
            patterns: cases.split(", ").map(pattern).collect(),
            partial: bare.len() < case.len(),
        }
    }
}
