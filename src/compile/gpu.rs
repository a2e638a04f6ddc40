//! Code of GPUs: built ahead of time, kept on disk, or made now.

use std::sync::Arc;

use exactile_core::facts::Facts;
use exactile_core::pipeline::PreparedFunc;
use exactile_core::target::{Options, Target};
use exactile_core::verify::LaneFunc;
use exactile_store::Store;

use super::Compilation;
use crate::built::{Form, Output, Record};
use crate::cache::{Cache, CodeKey};
use crate::code::{Code, Runs, Sites};
use crate::cuda::{Gpu, GridMapping, Ptx};
use crate::device::Device;
use crate::disk::{Kept, Place};
use crate::error::{Error, Result};
use crate::inline_ptx;
use crate::made;

/// What code of a GPU is made of, and where it lies on disk.
pub(super) struct Wanted<'a> {
    pub(super) block: &'a PreparedFunc,
    /// The configuration and which of the codes this is, for people.
    pub(super) config: &'a str,
    pub(super) variant: &'a str,
    pub(super) target: Target,
    pub(super) options: &'a Options,
    pub(super) facts: &'a Facts,
    pub(super) grid: GridMapping,
    pub(super) place: Place<'a>,
}

impl Compilation {
    /// Code of a GPU, or of what stands for one: what was built ahead of time, where it is there.
    pub(super) fn of_gpu(&mut self, device: &Device, wanted: &Wanted<'_>) -> Result<Code> {
        inline_ptx::check(wanted.block)?;
        let output = device.stand_in().and_then(|it| it.output.as_deref());
        if let Some(output) = output {
            return self.build(output, wanted);
        }
        let built = device.built().find(&wanted.place)?;
        match (device.gpu(), built) {
            (Some(gpu), Some(built)) => {
                self.note("disk");
                self.load(gpu, device.cache(), built)
            }
            (Some(gpu), None) if cfg!(feature = "nvptx") => {
                let store = device.store().filter(|_| !self.shown.has_stages());
                self.on_gpu(gpu, device.cache(), store, wanted)
            }
            (None, Some(built)) => {
                // As its launches are never run, any code will do.
                let lane = self.lane_of(wanted)?;
                Ok(self.code(built.sites, Arc::new(Runs::Lanes(lane))))
            }
            (_, None) => Err(Error::NotBuilt {
                kernel: self.kernel.clone(),
                config: wanted.config.to_string(),
                target: wanted.target.name,
                variant: format!("{} {}", wanted.variant, wanted.place.known()),
                known: device.built().known_of(&self.kernel),
            }),
        }
    }

    /// Makes code that is to be shipped.
    fn build(&mut self, output: &Output, wanted: &Wanted<'_>) -> Result<Code> {
        let lane = self.lane_of(wanted)?;
        let sites = Sites::of(&lane);
        // What is shipped names no file of this machine.
        let ptx = self.ptx(&lane, &wanted.target, wanted.grid, false)?;
        let form = match ptx.machine_code() {
            Some(_) => Form::Cubin,
            None => Form::Ptx,
        };
        let key = CodeKey::new(&lane, wanted.grid.name());
        let entry = wanted.place.shipped(&key, &sites, &ptx);
        let lines = || {
            let message = "broken invariant: a check stands on no line of the kernel".to_string();
            self.refused(wanted.target.name, &message)
        };
        output.write(entry.ok_or_else(lines)?, |file, bytes| Record {
            file,
            kernel: self.kernel.clone(),
            config: wanted.config.to_string(),
            target: wanted.target.name.to_string(),
            variant: wanted.variant.to_string(),
            known: wanted.place.known(),
            form,
            bytes,
        })?;
        self.note("disk");
        Ok(self.code(sites, Arc::new(Runs::Lanes(lane))))
    }

    /// Code that is kept in the cache on disk, where it is there and the driver takes it.
    fn on_gpu(
        &mut self,
        gpu: &Gpu,
        cache: &Cache,
        store: Option<&Store>,
        wanted: &Wanted<'_>,
    ) -> Result<Code> {
        let cached = store.and_then(|store| wanted.place.cached(store));
        if let Some(cached) = &cached
            && let Some(mut kept) = cached.find()
        {
            self.note("disk");
            // What a machine without this driver kept.
            if self.link(gpu, &mut kept.ptx) {
                cached.keep(&kept.code, &kept.sites, &kept.ptx);
                self.note("disk");
            }
            match self.load(gpu, cache, kept) {
                Err(Error::Backend { .. }) => cached.discard(),
                loaded => return loaded,
            }
        }
        let lane = self.lane_of(wanted)?;
        let key = CodeKey::new(&lane, wanted.grid.name());
        let sites = Sites::of(&lane);
        self.note("key");
        let runs = cache.code(key.clone(), || {
            cache.count();
            let lines = self.shown.writes();
            let mut ptx = self.ptx(&lane, &wanted.target, wanted.grid, lines)?;
            if cached.is_some() || self.shown.writes() {
                self.link(gpu, &mut ptx);
            }
            let loaded = gpu.load(ptx);
            self.note("driver");
            loaded.map(Runs::Gpu)
        })?;
        if let (Some(cached), Runs::Gpu(code)) = (&cached, &*runs) {
            cached.keep(&key, &sites, code.ptx());
            self.note("disk");
        }
        Ok(self.code(sites, runs))
    }

    /// Has the driver load code, unless it has.
    fn load(&mut self, gpu: &Gpu, cache: &Cache, kept: Kept) -> Result<Code> {
        let loaded = cache.code(kept.code, || gpu.load(kept.ptx).map(Runs::Gpu));
        self.note("driver");
        Ok(self.code(kept.sites, loaded?))
    }

    fn code(&self, sites: Sites, runs: Arc<Runs>) -> Code {
        Code::new(self.kernel.as_str().into(), Arc::new(sites), runs)
    }

    fn lane_of(&mut self, wanted: &Wanted<'_>) -> Result<LaneFunc> {
        self.lane(wanted.block, &wanted.target, wanted.options, wanted.facts)
    }

    pub(super) fn ptx(
        &mut self,
        lane: &LaneFunc,
        target: &Target,
        grid: GridMapping,
        lines: bool,
    ) -> Result<Ptx> {
        let generated = made::ptx(lane, target, grid, (self.shown.writes(), lines));
        let mut ptx = generated.map_err(|error| self.refused(target.name, &error))?;
        self.note("llvm");
        for (name, text) in ptx.texts() {
            self.shown.file(name, text.as_bytes());
        }
        let assembled = made::assemble(&mut ptx);
        if assembled.map_err(|error| self.refused(target.name, &error))? {
            self.note("ptxas");
        }
        Ok(ptx)
    }

    /// Has the driver make machine code to keep, unless it is there; whether it did.
    fn link(&mut self, gpu: &Gpu, ptx: &mut Ptx) -> bool {
        let linked = gpu.link(ptx);
        if linked {
            self.note("link");
        }
        linked
    }
}
