//! Reads long rows in shared memory again, in place of holding them over a reduction.
//!
//! Lanes that hold a long row, or what they make of each element, have registers for little else, and their thread block has a
//! multiprocessor for itself: it loads, computes and stores one after the other. A row lies in shared memory and is only read, so
//! what follows from it element by element is made anew behind each reduction, and two thread blocks have room.

use std::collections::{BTreeMap, BTreeSet};

use super::PlacedFunc;
use super::origin::{Origin, origins};
use crate::diagnostic::Diagnostics;
use crate::ir::{BinaryOp, Func, Inst, Op, Region, Trait, UnaryOp, Value, op};

/// Thread blocks that share a multiprocessor where rows are read again: one moves a row while the other computes.
pub(crate) const BLOCKS: u32 = 2;

/// The most steps that are repeated: an exponential is some twenty of them. Longer ways are worth the registers.
const MOST_STEPS: usize = 64;

/// The function with its rows read again where what follows from them is used behind a reduction; nothing where that is nowhere, or
/// takes many steps.
///
/// # Errors
/// None that the function did not have before.
pub(super) fn reread(func: &PlacedFunc) -> Result<Option<PlacedFunc>, Diagnostics> {
    let mut func = func.clone().into_inner();
    let steps = repeat(&mut func, &|func, inst| {
        matches!(func.op(inst), Op::RowLoad(_))
    });
    let few = (1..=MOST_STEPS).contains(&steps);
    few.then(|| PlacedFunc::new(func)).transpose()
}

/// Whether what a load gives would be read again if it were a row.
pub(super) fn is_used_again(func: &Func, load: Inst) -> bool {
    let steps = repeat(&mut func.clone(), &|_, inst| inst == load);
    (1..=MOST_STEPS).contains(&steps)
}

/// Whether a row is read more than once.
pub(crate) fn has_reread(func: &Func) -> bool {
    let mut read = BTreeSet::new();
    let mut insts = func.all_insts().into_iter();
    insts.any(|inst| matches!(func.op(inst), Op::RowLoad(op) if !read.insert(op.row)))
}

/// Whether lanes branch for single elements of a tile as long as a row: over the branches of some they hold what the others are
/// made of, however often they can read it.
fn branches(func: &Func, row: Value) -> bool {
    let elements = func.ty(row).shape.elements();
    let mut insts = func.all_insts().into_iter();
    insts.any(|inst| {
        let slow = matches!(
            func.op(inst),
            Op::Binary(op::Binary {
                op: BinaryOp::Div | BinaryOp::Rem,
                ..
            }) | Op::Unary(op::Unary {
                op: UnaryOp::Sqrt,
                ..
            })
        );
        let mut results = func.inst(inst).results.iter();
        slow && results.any(|&it| func.ty(it).shape.elements() >= elements)
    })
}

/// Repeats loads, and what follows from them element by element, where it is used behind an op that lanes meet in; how many steps.
fn repeat(func: &mut Func, is_load: &dyn Fn(&Func, Inst) -> bool) -> usize {
    let origins = origins(func, &func.all_insts()).of;
    let values = func.values();
    let cheap: BTreeSet<Value> = values
        .filter(|&value| origins[value] == Origin::Cheap)
        .collect();
    let mut steps = 0;
    for region in func.all_regions() {
        let insts = func.region(region).insts.clone();
        let loads: BTreeSet<Inst> = insts
            .iter()
            .copied()
            .filter(|&inst| is_load(func, inst) && !branches(func, func.inst(inst).results[0]))
            .collect();
        if !loads.is_empty() {
            let repeater = Repeater {
                func: &mut *func,
                region,
                loads,
                cheap: &cheap,
                known: BTreeMap::new(),
                held: BTreeMap::new(),
                insts: Vec::new(),
                steps: 0,
            };
            steps += repeater.run(insts);
        }
    }
    steps
}

struct Repeater<'a> {
    func: &'a mut Func,
    region: Region,
    loads: BTreeSet<Inst>,
    /// What is made of constants, indices and scalars alone.
    cheap: &'a BTreeSet<Value>,
    /// What can be made again: by which instruction, whose op has the operands that it had at first.
    known: BTreeMap<Value, (Inst, Op)>,
    /// Of those the ones that were made since lanes met, each with the value that holds the same.
    held: BTreeMap<Value, Value>,
    /// The instructions of the region, as far as it is done.
    insts: Vec<Inst>,
    steps: usize,
}

impl Repeater<'_> {
    fn run(mut self, insts: Vec<Inst>) -> usize {
        for inst in insts {
            let mut within = vec![inst];
            for region in self.func.op(inst).regions() {
                self.func.walk(region, &mut |inst| within.push(inst));
            }
            let op = self.func.op(inst).clone();
            for &user in &within {
                for operand in self.func.op(user).operands() {
                    self.make(operand);
                }
            }
            for &user in &within {
                let held = &self.held;
                let user = &mut self.func.inst_mut(user).op;
                user.map_operands(&mut |value| held.get(&value).copied().unwrap_or(value));
            }
            self.insts.push(inst);
            let meets = !op.regions().is_empty() || matches!(op, Op::Sort(_));
            if self.is_repeatable(inst, &op)
                && let &[result] = &self.func.inst(inst).results[..]
            {
                self.known.insert(result, (inst, op));
                self.held.insert(result, result);
            }
            if meets {
                self.held.clear();
            }
        }
        self.func.region_mut(self.region).insts = self.insts;
        self.steps
    }

    fn is_repeatable(&self, inst: Inst, op: &Op) -> bool {
        let operands = op.operands();
        let known = |value: &Value| self.known.contains_key(value);
        let is_step = op.is(Trait::elementwise) && op.is(Trait::pure) && op.regions().is_empty();
        let follows = is_step
            && operands.iter().any(known)
            && operands
                .iter()
                .all(|it| known(it) || self.cheap.contains(it));
        follows || self.loads.contains(&inst)
    }

    /// Makes a value again that was made before lanes met, if it can be.
    fn make(&mut self, value: Value) {
        if self.held.contains_key(&value) {
            return;
        }
        let Some((inst, mut op)) = self.known.get(&value).cloned() else {
            return;
        };
        for operand in op.operands() {
            self.make(operand);
        }
        op.map_operands(&mut |value| self.held.get(&value).copied().unwrap_or(value));
        let (ty, loc) = (self.func.ty(value), self.func.inst(inst).loc.clone());
        let copy = self.func.add_inst(op, &[ty], loc);
        let made = self.func.inst(copy).results[0];
        self.func.set_layout(made, self.func.layout(value));
        self.insts.push(copy);
        self.held.insert(value, made);
        self.steps += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;

    /// Whether the row of a kernel that sums it, and then does `step` with its elements and their sum, is to be read again.
    fn is_again(step: &str) -> bool {
        let source = format!(
            "func @k block (%x: ptr<f16>, %o: ptr<f32> write) {{
               %i = arange start=0, end=65536 : tile<65536xi64>
               %v = load %x, %i : tile<65536xf16>
               %f = cast %v : tile<65536xf32>
               %sum = reduce [%f], axis=0, order=tree (%a: f32, %b: f32) {{
                 %c = add %a, %b : f32
                 yield [%c]
               }} : f32
               %s = splat %sum : tile<65536xf32>
               %r = {step} : tile<65536xf32>
               store %o, %i, %r
             }}"
        );
        let func = parse(&source, "test.bir").expect("parses");
        let mut insts = func.all_insts().into_iter();
        let load = insts.find(|&inst| matches!(func.op(inst), Op::Load(_)));
        is_used_again(&func, load.expect("there is a load"))
    }

    #[test]
    fn a_row_is_held_where_lanes_branch_for_single_elements() {
        assert!(is_again("mul %f, %s"));
        assert!(!is_again("div %f, %s"));
        assert!(!is_again("sqrt %f"));
    }
}
