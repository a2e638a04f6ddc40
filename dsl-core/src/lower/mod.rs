//! Lowers tiles to what one worker does.
//!
//! [`sequential`] walks tiles by loop nests: a CPU thread runs a whole program. [`distributed`]
//! spreads tiles over the registers of a thread block's lanes.

mod combine;
pub mod distributed;
mod ordered;
pub mod sequential;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::ir::{Func, Inst};

/// The number of each access of a function, in program order: the `site` of its bounds checks.
/// Counts every op that is checked, nested regions in place, unless a pass that copies has done so: an
/// error is then the same whichever copy finds it.
pub fn access_sites(func: &Func) -> BTreeMap<Inst, i64> {
    let mut sites = BTreeMap::new();
    for inst in func.all_insts() {
        if func.op(inst).is_checked() {
            let site = func.inst(inst).site.map(i64::from);
            sites.insert(inst, site.unwrap_or(sites.len() as i64));
        }
    }
    sites
}
