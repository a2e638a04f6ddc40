//! What `#[kernel]` makes of a function: its trace, and the parameters that a launch passes.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use super::bodies::Bodies;
use super::context::Trace;
use super::identity::{Configuration, KernelIdentity};
use super::{context, escape, repeat};
use crate::diagnostic::{Diagnostic, Diagnostics, Loc};
use crate::target::Schedule;
use crate::verify::{self, BlockFunc};

/// What describes a kernel.
#[derive(Clone, Copy, Debug)]
pub struct KernelHeader {
    /// The function's name.
    pub name: &'static str,
    /// The file that it is in.
    pub file: &'static str,
    /// The line and the column there, from 1.
    pub place: [u32; 2],
    /// The schedule that its configuration asks for.
    pub schedule: Schedule,
    /// In which order its loops add up.
    pub order: LoopOrder,
}

/// What a kernel promises of the order in which its loops add up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoopOrder {
    /// The same for all tile sizes: what changes with them is an error.
    Whole,
    /// One for each tile size.
    OfTiles,
}

/// A kernel with its configuration, before it is compiled for anything.
///
/// `Parameters` is the tuple of its parameter types, such as `(Ptr<f32>, PtrMut<f32>, i32)`.
pub struct KernelSource<Parameters> {
    header: KernelHeader,
    identity: KernelIdentity,
    parameters: PhantomData<fn(Parameters)>,
}

impl<Parameters> Clone for KernelSource<Parameters> {
    fn clone(&self) -> Self {
        Self {
            header: self.header,
            identity: self.identity.clone(),
            parameters: PhantomData,
        }
    }
}

impl<Parameters> fmt::Debug for KernelSource<Parameters> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelSource")
            .field("header", &self.header)
            .field("identity", &self.identity)
            .finish()
    }
}

impl<Parameters> KernelSource<Parameters> {
    /// A kernel; `body` declares the parameters and traces. `Config` is a type that each expansion of
    /// `#[kernel]` defines anew, which the schedule is part of, and `Types` is made of all type arguments.
    pub fn new<Types: 'static, Config: Configuration>(
        header: KernelHeader,
        config: Config,
        body: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        Self {
            header,
            identity: KernelIdentity::new::<Types, Config>(config, body),
            parameters: PhantomData,
        }
    }

    /// The same kernel without the types of its parameters: enough to trace it, on any thread.
    pub fn erased(&self) -> KernelSource<()> {
        KernelSource {
            header: self.header,
            identity: self.identity.clone(),
            parameters: PhantomData,
        }
    }

    /// The function's name.
    pub fn name(&self) -> &'static str {
        self.header.name
    }

    /// Where the function is.
    pub fn loc(&self) -> Loc {
        let [line, column] = self.header.place;
        Loc::new(self.header.file, line, column)
    }

    /// What tells this kernel from every other in one process.
    pub fn identity(&self) -> &KernelIdentity {
        &self.identity
    }

    /// The schedule that the configuration asks for.
    pub fn schedule(&self) -> Schedule {
        self.header.schedule
    }

    /// In which order its loops add up.
    pub fn order(&self) -> LoopOrder {
        self.header.order
    }

    /// Traces the body and verifies the result. All errors of the kernel come at once; a panic of
    /// the body is one of them. `choices` say, in the order of the parameters, which optional ones are `None`, which
    /// tensors begin elsewhere than at their lowest element, and which arrays are written in place.
    ///
    /// The kernel is traced again, with bodies of loops run once more, and without some bodies of loops and
    /// branches: what then differs follows from state of the host, and is an error.
    pub fn trace(&self, choices: &[bool]) -> Result<BlockFunc, Diagnostics> {
        let (first, recording) = self.traced(Bodies::record(), choices)?.recorded();
        if let Some(error) = escape::find(&first) {
            return Err(error.into());
        }
        let first = verify::block(first)?;
        for bodies in Rc::new(recording).rounds() {
            let differs = match self.traced(bodies, choices) {
                Ok(again) => repeat::difference(&first, &again.func, again.bodies.left_out()),
                Err(errors) => errors.iter().next().map(|error| error.loc.clone()),
            };
            if let Some(loc) = differs {
                return Err(repeat::error(self.header.name, loc).into());
            }
        }
        Ok(first)
    }

    fn traced(&self, bodies: Bodies, choices: &[bool]) -> Result<Trace, Diagnostics> {
        let mut panicked = None;
        let traced = context::trace(self.header.name, bodies, || {
            context::set_choices(choices);
            panicked = catch_unwind(AssertUnwindSafe(|| self.identity.run())).err();
        });
        let Some(payload) = panicked else {
            return traced;
        };
        let mut diagnostics = traced.err().unwrap_or_default();
        diagnostics.push(self.panic_diagnostic(payload.as_ref(), &diagnostics));
        Err(diagnostics)
    }

    fn panic_diagnostic(&self, payload: &(dyn Any + Send), earlier: &Diagnostics) -> Diagnostic {
        let text = payload
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| payload.downcast_ref::<&str>().copied())
            .unwrap_or("a value that is no text");
        let name = self.name();
        let diagnostic = Diagnostic::new(
            self.loc(),
            format!("the body of kernel `{name}` panicked while it was traced: {text}"),
        );
        match earlier.is_empty() {
            true => diagnostic,
            false => diagnostic.note("an earlier error may be the cause"),
        }
    }
}
