//! The product of code generation: PTX with what a launch needs to know.

use exactile_core::ir::{Parameter, Type};
use exactile_core::launch::{ArrayMap, Input, Signature};

use crate::grid::GridMapping;

/// A compiled kernel.
#[derive(Clone, Debug)]
pub struct Ptx {
    pub(crate) name: String,
    pub(crate) text: String,
    /// What an assembler made of the text; the driver loads it in place of the text.
    pub(crate) machine_code: Option<Vec<u8>>,
    pub(crate) llvm_before: String,
    pub(crate) llvm_after: String,
    pub(crate) parameters: Vec<(Parameter, Type)>,
    pub(crate) hidden: Vec<Input>,
    pub(crate) maps: Vec<ArrayMap>,
    /// Of a program.
    pub(crate) threads: u32,
    pub(crate) programs: u32,
    /// Of a program.
    pub(crate) shared_bytes: u32,
    pub(crate) grid: GridMapping,
    /// Whether it waits for the launch before, which may still run when it begins.
    pub(crate) begins_early: bool,
    /// Whether a product reads an operand from registers, of text that was just made.
    #[cfg(feature = "llvm")]
    pub(crate) reads_registers: bool,
}

impl Ptx {
    /// The name of the entry point.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The PTX text; empty for machine code that was kept.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The LLVM IR as code generation made it; empty unless `EmitOptions` ask
    /// for it.
    pub fn llvm_ir(&self) -> &str {
        &self.llvm_before
    }

    /// The LLVM IR after the optimiser; empty unless it was asked for.
    pub fn optimized_llvm_ir(&self) -> &str {
        &self.llvm_after
    }

    /// What there is of the LLVM IR and the PTX, with names for files.
    pub fn texts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let texts = [
            ("code.ll", self.llvm_ir()),
            ("code-optimized.ll", self.optimized_llvm_ir()),
            ("code.ptx", self.text()),
        ];
        texts.into_iter().filter(|(_, text)| !text.is_empty())
    }

    /// The machine code, where an assembler or the driver made it.
    pub fn machine_code(&self) -> Option<&[u8]> {
        self.machine_code.as_deref()
    }

    /// The parameters of the kernel with their types.
    pub fn parameters(&self) -> &[(Parameter, Type)] {
        &self.parameters
    }

    /// The parameters, for launches to be compared with.
    pub(crate) fn signature(&self) -> Signature {
        let parameters = self.parameters.iter();
        Signature::new(&self.name, parameters.map(|(it, ty)| (it, *ty)))
    }

    /// What the parameters that follow them take: `i64` for the length of an array that is checked, `i32` for an extent
    /// of a grid that thread blocks do not tell.
    pub fn hidden(&self) -> &[Input] {
        &self.hidden
    }

    /// Whether the kernel checks and so takes an error record.
    pub fn has_bounds_checks(&self) -> bool {
        self.hidden.contains(&Input::ErrorRecord)
    }

    /// Threads of a thread block, at most.
    pub fn threads(&self) -> u32 {
        self.threads * self.programs
    }

    /// Programs that share a thread block, at most.
    pub fn programs(&self) -> u32 {
        self.programs
    }

    /// Bytes of dynamic shared memory of a thread block, at most.
    pub fn shared_bytes(&self) -> u32 {
        self.shared_bytes * self.programs
    }

    /// How programs map to the launch grid.
    pub fn grid(&self) -> GridMapping {
        self.grid
    }
}

/// Whether PTX takes it for a name.
pub(crate) fn is_identifier(name: &str) -> bool {
    let mut characters = name.chars();
    characters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|next| next.is_ascii_alphanumeric() || next == '_')
}

/// Whether machine code has a table of lines: where the text names them.
pub(crate) fn names_lines(ptx: &str) -> bool {
    ptx.contains("\n\t.loc\t")
}
