//! Kernels given as text: what the command line runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use exactile_core::diagnostic::Diagnostics;
use exactile_core::facts::Facts;
use exactile_core::ir::prints::WORDS;
use exactile_core::ir::{Access, Func, Grid, Literal, Op, Parameter, Stage};
use exactile_core::launch::{Launch, Passed};
use exactile_core::target::{Bounds, Options, Target};
use exactile_core::text;
use exactile_core::verify::{self, BlockFunc};
use exactile_cranelift::StandardFloats;

use crate::ahead::{Needed, Request};
use crate::array::Array;
use crate::bound::Bound;
use crate::buffer::Storage;
use crate::cache::Identity;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::launch::{Told, arguments_error, refuse_in_trace, run_checked};
use crate::listing::{self, ListingStage};
use crate::part::{Part, PartMut};

/// A kernel in the text form of block IR.
#[derive(Clone, Debug)]
pub struct TextKernel {
    func: BlockFunc,
    options: Options,
    identity: Identity,
}

/// An argument by value.
#[derive(Clone, Debug)]
pub enum TextArgument {
    /// Memory, written back when the kernel may write it.
    Array(Array),
    /// A number.
    Scalar(Literal),
}

impl TextKernel {
    /// Parses and verifies a kernel; `file` names the source in messages.
    pub fn parse(source: &str, file: &str, options: Options) -> Result<Self> {
        let _floats = StandardFloats::new();
        let refused = |diagnostics: Diagnostics| {
            let source_of = |name: &str| (name == file).then(|| source.to_string());
            Error::Invalid(text::render(&diagnostics, &source_of))
        };
        let func = text::parse(source, file).map_err(refused)?;
        if func.stage != Stage::Block {
            return Err(Error::Invalid(format!(
                "`{file}` holds IR of stage `{}`, expected `block`",
                func.stage.word()
            )));
        }
        let func = verify::block(func).map_err(refused)?;
        let identity = Identity::Text {
            file: file.into(),
            source: source.into(),
        };
        Ok(Self {
            func,
            options,
            identity,
        })
    }

    /// Reads a kernel from a file.
    pub fn read(path: &Path, options: Options) -> Result<Self> {
        let source = fs::read_to_string(path).map_err(Error::file(path))?;
        Self::parse(&source, &path.to_string_lossy(), options)
    }

    /// The kernel.
    pub fn func(&self) -> &Func {
        &self.func
    }

    /// The text of any stage.
    pub fn listing(&self, stage: ListingStage) -> Result<String> {
        listing::listing(self.func.clone(), &self.options, stage)
    }

    /// The text after a stage of the pipeline, as [`exactile_core::pipeline::stages`] names it.
    pub fn after(&self, stage: &str, target: &Target) -> Result<String> {
        listing::after(
            self.func.clone(),
            target,
            &self.options,
            &Facts::default(),
            stage,
        )
    }

    /// Runs the kernel with arguments by name. Arrays that it may write hold the results after. The parameter that
    /// prints write to is the launch's own and takes no argument.
    pub fn run(
        &self,
        device: &Device,
        grid: Grid,
        arguments: &mut BTreeMap<String, TextArgument>,
    ) -> Result<()> {
        if self.options.bounds == Bounds::Unchecked {
            return Err(Error::Invalid(
                "code without bounds checks needs an unchecked launch".to_string(),
            ));
        }
        refuse_in_trace(&self.func.name)?;
        let parameters = self.parameters()?;
        let mut storages = self.upload(device, parameters, arguments)?;
        let mut bound = Vec::new();
        for (parameter, storage) in parameters.iter().zip(&mut storages) {
            bound.push(match storage {
                Uploaded::Scalar(literal) => Bound::Scalar(*literal),
                Uploaded::Memory(storage) => match parameter.access {
                    Access::Read => Bound::Read(Part::of(device, storage)),
                    Access::ReadWrite => Bound::ReadWrite(PartMut::of(device, storage)),
                },
            });
        }
        let passed: Vec<Passed> = bound.iter().map(Bound::passed).collect();
        let launch = Launch::new(grid, &passed);
        let request = Request::new(self.identity.clone(), self.options, &launch);
        if device.is_recording() {
            let func = self.func.clone();
            device.note(request.job(&launch, move || Ok(func.clone()), Needed::Checked));
            return Ok(());
        }
        let place = request.place(device, None);
        let prepared = place.prepared(|| Ok(self.func.clone()))?;
        let stream = device.default_stream();
        let place = (stream, Told::Runner);
        let failure = run_checked(device, place, prepared, &launch, &mut bound, None)?;
        drop(bound);
        device.finish(stream)?;
        failure.map_or(Ok(()), |failure| failure.tell())?;
        for (parameter, storage) in parameters.iter().zip(&storages) {
            if let (Uploaded::Memory(storage), Access::ReadWrite) = (storage, parameter.access)
                && let Some(TextArgument::Array(array)) = arguments.get_mut(&parameter.name)
            {
                array
                    .bytes_mut()
                    .copy_from_slice(&Part::of(device, storage).read()?);
            }
        }
        Ok(())
    }

    /// The parameters that take arguments: all but the last where prints write to that.
    fn parameters(&self) -> Result<&[Parameter]> {
        let (all, last) = (&self.func.parameters[..], self.func.arguments().last());
        let mut taken = all;
        for inst in self.func.all_insts() {
            let Op::Print(print) = self.func.op(inst) else {
                continue;
            };
            if last != Some(&print.record) || print.words != WORDS {
                return Err(Error::Invalid(format!(
                    "{}: `print` of a kernel that is run writes to the last parameter, `words={WORDS}`",
                    self.func.inst(inst).loc
                )));
            }
            taken = &all[..all.len() - 1];
        }
        Ok(taken)
    }

    fn upload(
        &self,
        device: &Device,
        parameters: &[Parameter],
        arguments: &BTreeMap<String, TextArgument>,
    ) -> Result<Vec<Uploaded>> {
        let fail = |message: String| arguments_error(&self.func.name, message);
        for name in arguments.keys() {
            if !parameters.iter().any(|known| known.name == *name) {
                return Err(fail(format!("there is no parameter `{name}`")));
            }
        }
        let mut uploaded = Vec::new();
        for (parameter, &value) in parameters.iter().zip(self.func.arguments()) {
            let (name, ty) = (&parameter.name, self.func.ty(value));
            uploaded.push(match (arguments.get(name), ty.pointee()) {
                (None, _) => return Err(fail(format!("parameter `{name}` has no argument"))),
                (Some(TextArgument::Scalar(literal)), None) => Uploaded::Scalar(*literal),
                (Some(TextArgument::Array(array)), Some((dtype, _))) if array.dtype() == dtype => {
                    Uploaded::Memory(Storage::from_bytes(device, array.bytes())?)
                }
                (Some(TextArgument::Array(array)), _) => {
                    let found = array.dtype();
                    return Err(fail(format!(
                        "argument `{name}`: found an array of `{found}`, expected `{ty}`"
                    )));
                }
                (Some(TextArgument::Scalar(literal)), Some(_)) => {
                    let found = literal.dtype;
                    return Err(fail(format!(
                        "argument `{name}`: found a scalar `{found}`, expected `{ty}`"
                    )));
                }
            });
        }
        Ok(uploaded)
    }
}

enum Uploaded {
    Memory(Storage),
    Scalar(Literal),
}
