//! Making a folder of built code.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use exactile_core::target::Target;
use exactile_store::Shipped;

use super::manifest::Manifest;
use super::{Built, MANIFEST, Record, own_sources, refuse_cpu};
use crate::ahead::{Job, compile_all, threads};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::{files, made};

/// Code for a GPU that is being built, without one.
///
/// ```
/// # use exactile::{Device, Buffer, Target, built::{Build, Built}, prelude::*};
/// #[kernel]
/// fn double<const BLOCK: usize>(x: PtrMut<f32>) {
///     let at = x + program_id(0) * BLOCK + arange(0, BLOCK);
///     store(at, load(at) * 2.0);
/// }
///
/// fn work(device: &Device) -> exactile::Result<()> {
///     let mut x = Buffer::<f32>::zeros(device, 256)?;
///     double().block(64).launch(device, 4, (&mut x,))
/// }
///
/// # if cfg!(feature = "nvptx") {
/// let folder = std::env::temp_dir().join(format!("exactile-doc-{}", std::process::id()));
/// let mut build = Build::new(&folder, &Target::SM_90A)?;
/// build.add(work)?;
/// build.finish()?;
/// // In the program that is shipped: `device.use_built(&built)`.
/// let built = Built::open(&folder)?;
/// built.check(&Target::SM_90A, work)?;
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # }
/// # Ok::<(), exactile::Error>(())
/// ```
#[derive(Debug)]
pub struct Build {
    device: Device,
    output: Arc<Output>,
    compiler: String,
    maker: String,
    /// Of the folder, where the system has locks of folders.
    _lock: Option<File>,
}

/// Where built code is written, and what was.
#[derive(Debug)]
pub(crate) struct Output {
    folder: PathBuf,
    records: Mutex<BTreeMap<String, Record>>,
}

impl Output {
    fn records(&self) -> MutexGuard<'_, BTreeMap<String, Record>> {
        // A panic elsewhere leaves the table whole: each change is one insertion.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a file of an entry; `record` says what it is, of its name and its length.
    pub(crate) fn write(
        &self,
        (file, bytes): (String, Vec<u8>),
        record: impl FnOnce(String, u64) -> Record,
    ) -> Result<()> {
        files::write(&self.folder.join(&file), &bytes)?;
        let record = record(file.clone(), bytes.len() as u64);
        self.records().insert(file, record);
        Ok(())
    }
}

impl Build {
    /// Begins to build code for `target` in a folder, which is made if it is not there.
    ///
    /// # Errors
    /// In a build without the feature `nvptx`, for a CPU, when there is no such folder, while another build into it is under
    /// way, or where its file `manifest` is something else.
    pub fn new(folder: impl AsRef<Path>, target: &Target) -> Result<Self> {
        refuse_cpu(target)?;
        let ((maker, target), folder) = (made::shipped(target)?, folder.as_ref().to_path_buf());
        let compiler = own_sources()?;
        fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
        Manifest::before(&folder.join(MANIFEST))?;
        let lock = lock(&folder)?;
        let output = Arc::new(Output {
            folder,
            records: Mutex::default(),
        });
        Ok(Self {
            device: Device::standing_in(target, Some(Arc::clone(&output))),
            output,
            compiler,
            maker,
            _lock: lock,
        })
    }

    /// Compiles, on all cores, what the launches of `work` on the device that it is given run, and returns what that
    /// made. Nothing runs: arrays of the device hold zeros and whatever `work` writes there.
    ///
    /// The code is machine code where `EXACTILE_PTXAS` names an assembler, else PTX.
    ///
    /// # Errors
    /// Those of `work`, what is wrong with a kernel, or that nothing was launched.
    pub fn add(&mut self, work: impl FnOnce(&Device) -> Result<()>) -> Result<Vec<Record>> {
        let before = self.output.records().clone();
        let jobs = self.device.record(|| work(&self.device))?;
        if jobs.is_empty() {
            let message = "nothing was launched on the device that code is built for";
            return Err(Error::Invalid(message.to_string()));
        }
        let sets: Vec<Vec<Job>> = jobs.into_iter().map(|job| vec![job]).collect();
        let mut outcome = Ok(());
        compile_all(&self.device, &sets, None, threads(), &mut |_, ended| {
            if let (Ok(()), Err(message)) = (&outcome, ended) {
                outcome = Err(Error::Invalid(message));
            }
        });
        outcome?;
        let records = self.output.records();
        let new = |record: &&Record| !before.contains_key(&record.file);
        Ok(records.values().filter(new).cloned().collect())
    }

    /// Writes the list of what the folder holds: what was built now, and what the same compiler built there before.
    /// All other files in the folder that are named as code is are removed.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn finish(self) -> Result<Built> {
        let folder = &self.output.folder;
        let path = folder.join(MANIFEST);
        let mut records = std::mem::take(&mut *self.output.records());
        let before = Manifest::before(&path)?;
        let same = |it: &Manifest| (&it.compiler, &it.maker) == (&self.compiler, &self.maker);
        for record in before.filter(same).map_or(Vec::new(), |it| it.records) {
            let length = fs::metadata(folder.join(&record.file)).map(|it| it.len());
            if length.is_ok_and(|length| length == record.bytes) {
                records.entry(record.file.clone()).or_insert(record);
            }
        }
        let shipped = Shipped::at(folder);
        let names = shipped.names().map_err(Error::file(folder))?;
        for name in names.iter().filter(|name| !records.contains_key(*name)) {
            shipped.remove(name).map_err(Error::file(folder))?;
        }
        let mut records: Vec<Record> = records.into_values().collect();
        let order = |it: &Record| {
            let Record { kernel, target, .. } = it;
            (kernel.clone(), target.clone(), it.config.clone())
        };
        records.sort_by_cached_key(order);
        let manifest = Manifest {
            compiler: self.compiler,
            maker: self.maker,
            records,
        };
        files::write(&path, manifest.to_string().as_bytes())?;
        Built::open(folder)
    }
}

/// Takes a folder for who builds into it, for as long as the result is there.
///
/// # Errors
/// Somebody else has it.
fn lock(folder: &Path) -> Result<Option<File>> {
    let Ok(lock) = File::open(folder) else {
        return Ok(None);
    };
    match lock.try_lock() {
        Ok(()) => Ok(Some(lock)),
        Err(TryLockError::WouldBlock) => {
            let message = "another build into this folder is under way: wait for its end, or name another folder";
            Err(Error::format(folder, message))
        }
        Err(TryLockError::Error(_)) => Ok(None),
    }
}
