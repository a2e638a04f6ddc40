//! What a GPU runs, on disk between processes. What is made of a kernel for a GPU follows from its traced IR, the
//! target, the options, what is known of the arguments, and the compiler itself: all of that is the key of an entry.
//!
//! Source lines are not, so that a line more above a kernel costs nothing: entries name lines by their position among
//! those of the trace, and the key says which instructions share one.

use std::sync::OnceLock;

use exactile_core::diagnostic::Loc;
use exactile_core::facts::{Facts, Known};
use exactile_core::ir::Func;
use exactile_core::target::{Options, Target};
use exactile_store::Store;

use crate::cache::CodeKey;
use crate::code::Sites;
use crate::cuda::{self, GridMapping, Ptx};

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

    /// Where the code for this is kept; nothing where nobody can say what makes it.
    pub(crate) fn place<'a>(
        &'a self,
        store: &'a Store,
        target: &Target,
        options: &Options,
        facts: &Facts,
        grid: GridMapping,
    ) -> Option<Place<'a>> {
        let compiler = cuda::compiler()?;
        let facts = Facts {
            arguments: self.arguments.clone(),
            ..facts.clone()
        };
        let key = format!(
            "target {}\ncompiler {compiler}\nmachine {target:?}\noptions {options:?}\nfacts {facts:?}\n\
             grid {grid:?}\n{}",
            target.name, self.text
        );
        Some(Place {
            store,
            key,
            origin: self,
        })
    }
}

/// The place of an entry on disk.
pub(crate) struct Place<'a> {
    store: &'a Store,
    key: String,
    origin: &'a Origin,
}

/// What an entry holds.
pub(crate) struct Kept {
    /// Of the lane IR that it was made from.
    pub(crate) code: CodeKey,
    pub(crate) sites: Sites,
    pub(crate) ptx: Ptx,
}

/// What ends the lines before the code.
const END: &[u8] = b"\n\n";

impl Place<'_> {
    pub(crate) fn find(&self) -> Option<Kept> {
        let bytes = self.store.find(&self.key)?;
        let kept = self.decode(&bytes);
        if kept.is_none() {
            self.store.discard(&self.key);
        }
        kept
    }

    pub(crate) fn keep(&self, code: &CodeKey, sites: &Sites, ptx: &Ptx) {
        if let Some(lines) = sites.lines(&self.origin.places) {
            let lines = format!("{}\n{lines}", code.text());
            let bytes = [lines.trim_end().as_bytes(), END, &ptx.to_bytes()].concat();
            self.store.keep(&self.key, &bytes);
        }
    }

    /// Of code that the driver refuses.
    pub(crate) fn discard(&self) {
        self.store.discard(&self.key);
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
