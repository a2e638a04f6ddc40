//! What a GPU runs, on disk between processes. What is made of a kernel for a GPU follows from its traced IR, the
//! target, the options, what is known of the arguments, and the compiler itself: all of that is the key of an entry.
//!
//! Source lines are not, so that a line more above a kernel costs nothing: entries name lines by their position among
//! those of the trace, and the key says which instructions share one.
//!
//! Code that was built to be shipped lies in entries with the same keys but for the programs that made it, see
//! [`crate::built`]: whoever loads it need not have them.

use std::sync::OnceLock;

use exactile_core::diagnostic::Loc;
use exactile_core::facts::{Facts, Known};
use exactile_core::ir::Func;
use exactile_core::target::{Options, Target};
use exactile_store::{Shipped, Store};

use crate::cache::CodeKey;
use crate::code::Sites;
use crate::cuda::{self, GridMapping, Ptx};
use crate::error::{Error, Result};
use crate::made;

/// The entries of this process, where it has any.
pub(crate) fn shared() -> Option<&'static Store> {
    static STORE: OnceLock<Option<Store>> = OnceLock::new();
    STORE.get_or_init(Store::of_environment).as_ref()
}

/// What of a traced function decides what is made of it, and what is not.
pub(crate) struct Origin {
    kernel: String,
    arguments: Vec<Known>,
    text: String,
    /// The source lines, in the order in which instructions name them.
    places: Vec<Loc>,
}

impl Origin {
    /// `facts`: what is known of each argument.
    pub(crate) fn of(traced: &Func, facts: &Facts) -> Self {
        let mut places: Vec<Loc> = Vec::new();
        let mut positions = String::new();
        for inst in traced.all_insts() {
            let loc = &traced.inst(inst).loc;
            let known = places.iter().position(|place| place == loc);
            let position = known.unwrap_or_else(|| {
                places.push(loc.clone());
                places.len() - 1
            });
            positions.push_str(&format!(" {position}"));
        }
        Self {
            kernel: traced.name.clone(),
            arguments: facts.arguments.clone(),
            text: format!("kernel {}\nplaces{positions}\n\n{traced}", traced.name),
            places,
        }
    }

    /// Where the code for this is kept; nothing in a build without GPUs.
    pub(crate) fn place(
        &self,
        target: &Target,
        options: &Options,
        facts: &Facts,
        grid: GridMapping,
    ) -> Option<Place<'_>> {
        let facts = Facts {
            arguments: self.arguments.clone(),
            ..facts.clone()
        };
        Some(Place {
            begin: format!("target {}\ncompiler {}", target.name, cuda::sources()?),
            end: format!(
                "machine {:?}\noptions {options:?}\nfacts {facts:?}\ngrid {grid:?}\n{}",
                target.holding(true),
                self.text
            ),
            holds_operands: target.gpu.holds_operands,
            knows_ends: !facts.within.is_empty(),
            origin: self,
        })
    }
}

/// The place of an entry in any folder.
pub(crate) struct Place<'a> {
    begin: String,
    end: String,
    holds_operands: bool,
    knows_ends: bool,
    origin: &'a Origin,
}

/// The place of an entry in the cache of this user.
pub(crate) struct Cached<'a> {
    place: &'a Place<'a>,
    store: &'a Store,
    key: String,
}

/// What an entry holds.
pub(crate) struct Kept {
    /// Of the lane IR that it was made from.
    pub(crate) code: CodeKey,
    pub(crate) sites: Sites,
    pub(crate) ptx: Ptx,
}

/// Stands for the programs that made code, where it is to be shipped.
const ANYONE: &str = "anyone";

/// What ends the lines before the code.
const END: &[u8] = b"\n\n";

impl Cached<'_> {
    pub(crate) fn find(&self) -> Option<Kept> {
        let bytes = self.store.find(&self.key)?;
        let kept = self.place.decode(&bytes);
        if kept.is_none() {
            self.store.discard(&self.key);
        }
        kept
    }

    pub(crate) fn keep(&self, code: &CodeKey, sites: &Sites, ptx: &Ptx) {
        if let Some(bytes) = self.place.encode(code, sites, ptx) {
            self.store.keep(&self.key, &bytes);
        }
    }

    /// Of code that the driver refuses.
    pub(crate) fn discard(&self) {
        self.store.discard(&self.key);
    }
}

impl Place<'_> {
    fn key(&self, maker: &str) -> String {
        format!("{}\nmade by {maker}\n{}", self.begin, self.end)
    }

    /// In the cache; nothing where nobody can say what makes code.
    pub(crate) fn cached<'a>(&'a self, store: &'a Store) -> Option<Cached<'a>> {
        let key = self.key(&format!("{} {}", made::maker()?, self.holds_operands));
        Some(Cached {
            place: self,
            store,
            key,
        })
    }

    /// What was built to be shipped, if that is there.
    ///
    /// # Errors
    /// When the file that should hold it does not.
    pub(crate) fn find_shipped(&self, shipped: &Shipped) -> Result<Option<Kept>> {
        let key = self.key(ANYONE);
        let found = shipped.find(&key);
        let found = found.map_err(|(path, reason)| Error::format(&path, reason))?;
        let decode = |bytes: Vec<u8>| {
            let (name, _) = Shipped::file_of(&key, &[]);
            let path = shipped.folder().join(name);
            let kept = self.decode(&bytes);
            kept.ok_or_else(|| Error::format(&path, "it holds no code of this kernel"))
        };
        found.map(decode).transpose()
    }

    /// What is known of each argument, in a word: the power of two that divides it, or `one`, and `ends` where the code knows
    /// in which part of its tile a row ends.
    pub(crate) fn known(&self) -> String {
        let arguments = self.origin.arguments.iter();
        let words = arguments.map(|known| match known {
            Known::Divisor(divisor) => divisor.to_string(),
            Known::One => "one".to_string(),
        });
        let ends = self.knows_ends.then(|| "ends".to_string());
        let words: Vec<String> = words.chain(ends).collect();
        match words.is_empty() {
            true => "nothing".to_string(),
            false => words.join(","),
        }
    }

    /// The name and the bytes of a file to be shipped; nothing where a check stands on no line of the trace.
    pub(crate) fn shipped(
        &self,
        code: &CodeKey,
        sites: &Sites,
        ptx: &Ptx,
    ) -> Option<(String, Vec<u8>)> {
        let payload = self.encode(code, sites, ptx)?;
        Some(Shipped::file_of(&self.key(ANYONE), &payload))
    }

    fn encode(&self, code: &CodeKey, sites: &Sites, ptx: &Ptx) -> Option<Vec<u8>> {
        let lines = sites.lines(&self.origin.places)?;
        let lines = format!("{}\n{lines}", code.text());
        Some([lines.trim_end().as_bytes(), END, &ptx.to_bytes()].concat())
    }

    fn decode(&self, bytes: &[u8]) -> Option<Kept> {
        let end = bytes.windows(END.len()).position(|window| window == END)?;
        let lines = std::str::from_utf8(&bytes[..end]).ok()?;
        let (code, sites) = lines.split_once('\n').unwrap_or((lines, ""));
        let ptx = Ptx::from_bytes(&bytes[end + END.len()..])?;
        (ptx.name() == self.origin.kernel).then_some(())?;
        Some(Kept {
            code: CodeKey::parse(code)?,
            sites: Sites::parse(sites, &self.origin.places)?,
            ptx,
        })
    }
}
