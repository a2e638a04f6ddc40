//! Device values that left the body of a loop or branch without being carried: by state of the host.

use crate::diagnostic::{Diagnostic, Loc};
use crate::entity::Entity;
use crate::ir::{Func, Region};

/// The first use of a value outside of the body that makes it.
pub(super) fn find(func: &Func) -> Option<Diagnostic> {
    let mut visible = vec![false; func.value_count()];
    for argument in func.arguments() {
        visible[argument.index()] = true;
    }
    let loc = uses(func, func.body(), &mut visible).err()?;
    let message = "a device value made in the body of a loop or branch is used outside of it";
    Some(Diagnostic::new(loc, message).note(
        "let the body change a `mut` variable of the kernel, which is carried, and no `Cell`, `RefCell` or \
         other state of the host",
    ))
}

fn uses(func: &Func, region: Region, visible: &mut [bool]) -> Result<(), Loc> {
    let region = func.region(region);
    let mut own = region.parameters.clone();
    for parameter in &region.parameters {
        visible[parameter.index()] = true;
    }
    for &inst in &region.insts {
        let data = func.inst(inst);
        if data.op.operands().iter().any(|it| !visible[it.index()]) {
            return Err(data.loc.clone());
        }
        for inner in data.op.regions() {
            uses(func, inner, visible)?;
        }
        for result in &data.results {
            visible[result.index()] = true;
        }
        own.extend(&data.results);
    }
    for value in own {
        visible[value.index()] = false;
    }
    Ok(())
}
