//! Code for GPUs that is built ahead of time and shipped: a program without LLVM loads it.
//!
//! Where the feature `nvptx` is on, [`Build`] compiles what launches run and writes it to a folder, for a program to be
//! committed or shipped with. There, [`Device::use_built`](crate::Device::use_built) names the folder, in a build that
//! needs the feature `cuda` alone. It traces each kernel, computes the same key as the one that built, and finds the
//! code; what it does not find is an error, unless it can compile.
//!
//! The code fits launches of the same kernels with the same configurations and data types, of which the same is known:
//! which powers of two up to 16 divide each integer and each address, which integers are 1, in which sixteenth of its
//! tile a row ends. Both programs are of the same sources of Exactile, dependencies and `rustc`. A folder holds
//! code that is run: it is trusted as the program is.

mod build;
mod manifest;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use exactile_core::target::{Distribution, Target};
use exactile_store::Shipped;

use crate::compile::expect_known;
use crate::cuda;
use crate::device::Device;
use crate::disk::{Kept, Place};
use crate::error::{Error, Result};

pub use build::Build;
pub(crate) use build::Output;
use manifest::Manifest;
pub use manifest::{Form, Record};

/// So many codes of a kernel are named in an error.
const MOST_SHOWN: usize = 8;

/// The list of what a folder holds.
const MANIFEST: &str = "manifest";

/// A folder of code that was built ahead of time.
#[derive(Clone, Debug)]
pub struct Built {
    shipped: Shipped,
    manifest: Arc<Manifest>,
}

impl Built {
    /// The code in a folder that [`Build`] wrote.
    ///
    /// # Errors
    /// When there is no whole list of it, when other sources of Exactile built it, or when a file is missing or not as
    /// long as it was written.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let path = folder.join(MANIFEST);
        let own = own_sources()?;
        let manifest = Manifest::read(&path)?;
        if manifest.compiler != own {
            let (by, own) = (&manifest.compiler, &own);
            return Err(Error::format(
                &path,
                format!(
                    "it was built by other sources than those of this program and is to be built anew\n  built by {by}\n  \
                     this program is of {own}"
                ),
            ));
        }
        let built = Self {
            shipped: Shipped::at(folder),
            manifest: Arc::new(manifest),
        };
        for record in built.records() {
            let path = built.path(record);
            let found = std::fs::metadata(&path).map_err(Error::file(&path))?.len();
            if found != record.bytes {
                let written = record.bytes;
                return Err(Error::format(
                    &path,
                    format!("it has {found} bytes, of {written} that were written"),
                ));
            }
        }
        Ok(built)
    }

    /// What it holds.
    pub fn records(&self) -> &[Record] {
        &self.manifest.records
    }

    /// The file of a record.
    pub fn path(&self, record: &Record) -> PathBuf {
        self.shipped.folder().join(&record.file)
    }

    /// Reads every byte.
    ///
    /// # Errors
    /// The first file that is not as it was written.
    pub fn verify(&self) -> Result<()> {
        for record in self.records() {
            let checked = self.shipped.check(&record.file);
            checked.map_err(|reason| Error::format(&self.path(record), reason))?;
        }
        Ok(())
    }

    /// Whether the launches of `work` find their code on a machine, which need not be there: `work` launches on the
    /// device that it is given, and nothing runs.
    ///
    /// # Errors
    /// Those of `work`, and [`Error::NotBuilt`] or what is wrong with a record, as the launch would have it.
    pub fn check(&self, target: &Target, work: impl FnOnce(&Device) -> Result<()>) -> Result<()> {
        refuse_cpu(target)?;
        let device = Device::standing_in(*target, None);
        device.use_built(self);
        for job in device.record(|| work(&device))? {
            job.compile(&device)?;
        }
        Ok(())
    }
}

/// The folders that launches on a device look into, first to last.
#[derive(Default, Debug)]
pub(crate) struct Folders(Mutex<Vec<Built>>);

impl Folders {
    fn list(&self) -> MutexGuard<'_, Vec<Built>> {
        // A panic elsewhere leaves the list whole: each change is one insertion.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, built: &Built) {
        self.list().push(built.clone());
    }

    /// The code for a place, if it is there.
    pub(crate) fn find(&self, place: &Place<'_>) -> Result<Option<Kept>> {
        let folders = self.list().clone();
        for built in &folders {
            if let Some(kept) = place.find_shipped(&built.shipped)? {
                return Ok(Some(kept));
            }
        }
        Ok(None)
    }

    /// What there is of a kernel, in words.
    pub(crate) fn known_of(&self, kernel: &str) -> String {
        let folders = self.list().clone();
        let records = folders.iter().flat_map(Built::records);
        let of_kernel = records.filter(|record| record.kernel == kernel);
        let codes = of_kernel.map(|it| {
            let Record {
                config,
                target,
                variant,
                known,
                ..
            } = it;
            format!("`{config}` for {target} ({variant} {known})")
        });
        let codes: Vec<String> = codes.collect();
        match (folders.len(), codes.len()) {
            (0, _) => "`Device::use_built` was given no folder".to_string(),
            (_, 0) => "of this kernel nothing was built".to_string(),
            (_, count) => {
                let shown = codes[..count.min(MOST_SHOWN)].join(", ");
                let more = if count > MOST_SHOWN { ", .." } else { "" };
                format!("of this kernel {count} codes were built: {shown}{more}")
            }
        }
    }
}

fn own_sources() -> Result<String> {
    let absent = || {
        let message = "code that was built ahead of time needs a build with the feature `cuda`";
        Error::Device(message.to_string())
    };
    cuda::sources().ok_or_else(absent)
}

fn refuse_cpu(target: &Target) -> Result<()> {
    expect_known(target)?;
    match target.distribution {
        Distribution::Distributed => Ok(()),
        Distribution::Sequential => Err(Error::Invalid(format!(
            "code for `{}` is made where it runs, and never built ahead of time",
            target.name
        ))),
    }
}
