//! The schedule stage: which lane of which warp holds which element of each tile.
//!
//! [`assign`] chooses layouts for what is computed, [`place`] gives every op its tiles in the layouts that
//! `form` says it asks for. What is printed between the two states what matters. [`homes`] and
//! [`pipeline`] put operands and loads that run ahead into shared memory, [`results`] what bulk copies take from there,
//! [`rows`] what they bring there for lanes, and [`strips`] stores that in parts; what comes out is lowered as it stands.

pub mod adjoin;
mod ahead;
mod append;
pub mod assign;
mod converts;
pub mod cost;
pub mod depth;
mod fetches;
mod form;
pub mod homes;
mod in_slots;
mod nest;
mod origin;
mod overlap;
pub mod pipeline;
pub mod place;
mod read_back;
pub(crate) mod reread;
pub mod results;
mod rings;
pub(crate) mod room;
pub mod rotate;
pub mod rows;
pub(crate) mod runs;
pub mod small_views;
mod strips;
mod vectors;
pub mod waits;

pub(crate) use form::product_fragments;
pub(crate) use in_slots::groups_of;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::rc::Rc;

use crate::diagnostic::{Diagnostic, Diagnostics, Loc};
use crate::ir::op::ScheduleOp;
use crate::ir::{Func, Inst, Op, Stage, Value, op};
use crate::passes::rewrite::replace_uses;
use crate::verify::{self, BlockFunc, ScheduleFunc};
use form::{Place, form, of_scalars};

/// Whether a program may end beside an op, as it does in checked launches where it reaches outside of an array.
pub type MayEnd<'a> = &'a dyn Fn(&Op) -> bool;

/// A schedule function in which each tile has a layout, and each op its tiles where it asks for them.
#[derive(Clone, Debug)]
pub struct PlacedFunc(ScheduleFunc);

impl PlacedFunc {
    /// Verifies a function and that each op has its tiles where it asks for them.
    ///
    /// # Errors
    /// All that is wrong, each with its place.
    pub fn new(func: Func) -> Result<Self, Diagnostics> {
        let func = verify::schedule(func)?;
        let mut diagnostics = Diagnostics::new();
        for inst in func.all_insts() {
            if let Err(error) = check(&func, inst) {
                let loc = func.inst(inst).loc.clone();
                diagnostics.push(Diagnostic { loc, ..error });
            }
        }
        diagnostics.into_result(()).map(|()| Self(func))
    }

    /// The op of an instruction that the body reaches.
    pub fn schedule_op(&self, inst: Inst) -> ScheduleOp<'_> {
        self.0.schedule_op(inst)
    }

    /// Whether tiles lie in shared memory.
    pub fn has_buffers(&self) -> bool {
        let mut insts = self.all_insts().into_iter();
        insts.any(|inst| matches!(self.op(inst), Op::Buffer(_)))
    }

    /// The function.
    pub fn into_inner(self) -> Func {
        self.0.into_inner()
    }
}

impl Deref for PlacedFunc {
    type Target = Func;
    fn deref(&self) -> &Func {
        &self.0
    }
}

/// Whether a value is made of numbers that layouts say the place of.
fn is_tile(func: &Func, value: Value) -> bool {
    let ty = func.ty(value);
    !ty.is_scalar() && ty.dtype().or(ty.pending()).is_some()
}

/// Whether the tiles around an instruction are where it asks for them. Errors name no place in a file.
fn check(func: &Func, inst: Inst) -> Result<(), Diagnostic> {
    let wrong = |message: String| Diagnostic::new(Loc::none(), message);
    let scalar = of_scalars(func.warps.trailing_zeros());
    let place = |value: Value| match func.layout(value) {
        Some(layout) => Rc::new(func.linear(layout).clone()),
        None => Rc::clone(&scalar),
    };
    let asked = form(func, inst, &mut |value| Ok(place(value)));
    let asked = asked.map_err(|error| wrong(error.to_string()))?;
    let data = func.inst(inst);
    let lies = |value: Value, asked: &Place| match func.layout(value) {
        Some(layout) => func.linear(layout) == &**asked,
        None => scalar == *asked,
    };
    let fits = |values: &[Value], places: &[Place]| {
        let mut pairs = values.iter().zip(places);
        pairs.all(|(&value, asked)| !is_tile(func, value) || lies(value, asked))
    };
    let mut fine =
        fits(&data.op.operands(), &asked.operands) && fits(&data.results, &asked.results);
    for (region, (parameters, yielded)) in data.op.regions().into_iter().zip(&asked.regions) {
        fine &= fits(&func.region(region).parameters, parameters);
        fine &= fits(func.yielded(region), yielded);
    }
    if !fine {
        let name = data.op.mnemonic();
        return Err(wrong(format!(
            "broken invariant: the layouts around `{name}` do not agree"
        )));
    }
    in_slots::check(func, inst, &place)
}

/// The function without its layouts: what it computes.
pub fn forget(func: &ScheduleFunc) -> Result<BlockFunc, Diagnostics> {
    let mut func = Func::clone(func);
    func.stage = Stage::Block;
    func.warps = 0;
    for value in func.values() {
        func.set_layout(value, None);
    }
    let mut same = BTreeMap::new();
    for region in func.all_regions() {
        let insts = std::mem::take(&mut func.region_mut(region).insts);
        for inst in insts {
            if let &Op::Convert(op::Convert { x }) = func.op(inst) {
                let x = same.get(&x).copied().unwrap_or(x);
                same.insert(func.inst(inst).results[0], x);
            } else {
                func.region_mut(region).insts.push(inst);
            }
        }
    }
    replace_uses(&mut func, &|value| {
        same.get(&value).copied().unwrap_or(value)
    });
    verify::block(func)
}
