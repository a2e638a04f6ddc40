//! The list of what a folder of built code holds, as text: a line for each record.

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use exactile_core::ir::{quote, unquote};

use crate::error::{Error, Result};

/// What the list begins with; another format has another mark.
const MARK: &str = "exactile build 1";
/// What lists of all formats begin with.
const MARKS: &str = "exactile build ";

/// What a record holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Machine code of its machine.
    Cubin,
    /// PTX, which the driver assembles when it loads it.
    Ptx,
}

impl Form {
    const ALL: [Self; 2] = [Self::Cubin, Self::Ptx];

    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cubin => "cubin",
            Self::Ptx => "ptx",
        }
    }
}

/// One code of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// The name of its file.
    pub(crate) file: String,
    /// The kernel's name.
    pub kernel: String,
    /// Its configuration, printed.
    pub config: String,
    /// The machine's name.
    pub target: String,
    /// Which code of the kernel it is: whether it checks bounds, what it relies on, how it takes the grid.
    pub variant: String,
    /// What it knows of each argument of a launch: the power of two up to 16 that divides the address or the integer, or
    /// `one` for the integer 1; `ends` where it also knows in which part of its tile a row ends.
    pub known: String,
    /// What it holds.
    pub form: Form,
    /// The length of its file.
    pub bytes: u64,
}

impl Record {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(8, ' ');
        let mut word = || words.next().filter(|word| !word.is_empty());
        let file = word()?.to_string();
        // A name and no path.
        let is_plain = |character: char| character.is_ascii_alphanumeric() || character == '.';
        if !file.chars().all(is_plain) || !file.ends_with(".entry") {
            return None;
        }
        let bytes = word()?.parse().ok()?;
        let form = word()?;
        Some(Self {
            file,
            bytes,
            form: Form::ALL.into_iter().find(|it| it.name() == form)?,
            target: word()?.to_string(),
            variant: word()?.to_string(),
            known: word()?.to_string(),
            kernel: word()?.to_string(),
            config: unquote(word()?)?,
        })
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            bytes,
            target,
            variant,
            known,
            kernel,
            ..
        } = self;
        let (form, config) = (self.form.name(), quote(&self.config));
        write!(
            f,
            "{file} {bytes} {form} {target} {variant} {known} {kernel} {config}"
        )
    }
}

/// The list of a folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Manifest {
    /// The sources of Exactile that built it.
    pub(super) compiler: String,
    /// What made the code.
    pub(super) maker: String,
    pub(super) records: Vec<Record>,
}

impl Manifest {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).map_err(Error::file(path))?;
        let parsed = std::str::from_utf8(&bytes).ok().and_then(Self::parse);
        parsed.ok_or_else(|| Error::format(path, "it is no whole list of a build"))
    }

    /// The list that is to be replaced; none where there is no whole one.
    ///
    /// # Errors
    /// The file is something else.
    pub(super) fn before(path: &Path) -> Result<Option<Self>> {
        let bytes = match fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            bytes => bytes.map_err(Error::file(path))?,
        };
        if !bytes.starts_with(MARKS.as_bytes()) {
            let message = "it is no list of a build and would be overwritten: name another folder";
            return Err(Error::format(path, message));
        }
        Ok(std::str::from_utf8(&bytes).ok().and_then(Self::parse))
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix('\n')?.lines();
        (lines.next()? == MARK).then_some(())?;
        let compiler = lines.next()?.strip_prefix("compiler ")?.to_string();
        let maker = lines.next()?.strip_prefix("made by ")?.to_string();
        let mut lines: Vec<&str> = lines.collect();
        let count: usize = lines.pop()?.strip_prefix("records ")?.parse().ok()?;
        let records: Option<Vec<Record>> = lines.into_iter().map(Record::parse).collect();
        let records = records.filter(|records| records.len() == count)?;
        Some(Self {
            compiler,
            maker,
            records,
        })
    }
}

impl fmt::Display for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{MARK}")?;
        writeln!(f, "compiler {}", self.compiler)?;
        writeln!(f, "made by {}", self.maker)?;
        for record in &self.records {
            writeln!(f, "{record}")?;
        }
        writeln!(f, "records {}", self.records.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Manifest {
        let record = |file: &str, form| Record {
            file: format!("{file}.entry"),
            kernel: "softmax".to_string(),
            config: "Config { block: 8 }\n\u{e4}".to_string(),
            target: "sm_90a".to_string(),
            variant: "checked-direct".to_string(),
            known: "16,one".to_string(),
            form,
            bytes: 4096,
        };
        Manifest {
            compiler: "exactile 0.1.0 0123, exactile-core 0.1.0 4567".to_string(),
            maker: "LLVM 22.1.0".to_string(),
            records: vec![record("0a", Form::Cubin), record("0b", Form::Ptx)],
        }
    }

    #[test]
    fn a_list_comes_back_whole_or_not_at_all() {
        let text = sample().to_string();
        assert_eq!(Manifest::parse(&text), Some(sample()));
        for length in 0..text.len() {
            assert_eq!(Manifest::parse(&text[..length]), None, "{length}");
        }
        for (part, other) in [
            ("exactile build 1", "exactile build 2"),
            ("records 2", "records 3"),
            ("4096", "-1"),
            ("ptx", "elf"),
            ("0a.entry", "../0a.entry"),
            ("0a.entry", "0a"),
            ("\"Config", "Config"),
        ] {
            assert_ne!(text.replace(part, other), text);
            assert_eq!(Manifest::parse(&text.replace(part, other)), None, "{other}");
        }
    }
}
