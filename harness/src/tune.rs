//! `exactile tune`: a ready kernel tuned over its settings.

use exactile::autotune::{TuneKey, Tuned, Tuner};
use exactile::{Determinism, Device, Result};
use exactile_kernels::Setting;

use crate::bench::Subject;
use crate::demo::golden_run;

/// The fastest setting of a subject on a device, exactly.
///
/// # Errors
/// Those of launches; and that no setting is right.
pub fn tune(device: &Device, tuner: &Tuner, subject: &Subject) -> Result<Tuned<Setting>> {
    let case = &subject.case;
    let key = TuneKey {
        kernel: case.kernel.to_string(),
        extents: case.shape.clone(),
        variant: format!("{} of the ready kernels", case.dtype.name()),
    };
    let level = Determinism::Exact;
    let candidates: Vec<Setting> = subject.candidates.iter().map(|it| it.at(level)).collect();
    let golden = golden_run(case)?;
    let mut problem = (case.setup)(device)?;
    tuner.tune(device, &key, level, &candidates, &golden, &mut problem)
}
