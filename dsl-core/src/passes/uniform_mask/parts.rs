//! Two versions of accesses alone, where what stands between them takes much code and sees no mask: a sort is then there once.

use std::collections::{BTreeMap, BTreeSet};

use crate::builder::Builder;
use crate::ir::{Func, Inst, Op, Region, Trait, Value, op};
use crate::passes::duplicate::duplicate;

/// Lookups that take as much code as a sort.
const MANY_LOOKUPS: usize = 16;

/// Some of the instructions that follow masks.
pub(super) enum Part {
    /// These get two versions.
    Masked(Vec<Inst>),
    /// These are there once.
    Once(Vec<Inst>),
}

/// The parts of `tail`, in order, where it sorts or looks up much; nothing where that follows from `proven`, which `masks`
/// follow from, or where there is nothing like it.
pub(super) fn parts(
    func: &Func,
    tail: &[Inst],
    proven: &[Value],
    masks: &[Inst],
) -> Option<Vec<Part>> {
    let lookups = tail
        .iter()
        .filter(|it| matches!(func.op(**it), Op::Gather(_)));
    let many = lookups.count() >= MANY_LOOKUPS;
    let takes_code = |inst: Inst| {
        let op = func.op(inst);
        matches!(op, Op::Sort(_)) || many && matches!(op, Op::Gather(_))
    };
    if !tail.iter().any(|&inst| takes_code(inst)) {
        return None;
    }
    let ends = |inst: &&Inst| func.op(**inst).is(Trait::terminator);
    let end = tail.last().filter(ends);
    let tail = &tail[..tail.len() - usize::from(end.is_some())];
    let made = masks.iter().flat_map(|&it| &func.inst(it).results);
    let mut seen: BTreeSet<Value> = proven.iter().chain(made).copied().collect();
    let (mut parts, mut masked, mut pending) = (Vec::new(), Vec::new(), Vec::new());
    for &inst in tail {
        let (op, mut sees) = (func.op(inst), false);
        if !op.regions().is_empty() && op.control().is_some() {
            return None;
        }
        op.visit_operands(&mut |value| sees |= seen.contains(&value));
        if takes_code(inst) {
            if sees {
                return None;
            }
            parts.push(Part::Masked(std::mem::take(&mut masked)));
            pending.push(inst);
            parts.push(Part::Once(std::mem::take(&mut pending)));
        } else if sees {
            if op.is(Trait::pure) {
                seen.extend(&func.inst(inst).results);
            }
            masked.append(&mut pending);
            masked.push(inst);
        } else {
            pending.push(inst);
        }
    }
    pending.extend(end);
    parts.extend([Part::Masked(masked), Part::Once(pending)]);
    Some(parts)
}

/// What tells the versions of a masked part.
pub(super) struct Versions<'a> {
    /// The comparisons that hold in the first version.
    pub(super) proven: &'a [Value],
    /// What masks are computed from them by.
    pub(super) masks: &'a [Inst],
    /// Whether they hold.
    pub(super) condition: Value,
}

impl Versions<'_> {
    /// Appends the parts to a region.
    pub(super) fn of_parts(&self, builder: &mut Builder, of: Region, parts: Vec<Part>) {
        let mut replaced = BTreeMap::new();
        let mut parts = parts.into_iter();
        while let Some(part) = parts.next() {
            let insts = match &part {
                Part::Masked(insts) | Part::Once(insts) => insts.clone(),
            };
            let mut all = Vec::new();
            for &inst in &insts {
                all.push(inst);
                for nested in builder.func().op(inst).regions() {
                    builder.func().walk(nested, &mut |inner| all.push(inner));
                }
            }
            for inst in all {
                let op = &mut builder.func_mut().inst_mut(inst).op;
                op.map_operands(&mut |value| replaced.get(&value).copied().unwrap_or(value));
            }
            match part {
                Part::Masked(insts) if !insts.is_empty() => {
                    let later = parts.as_slice();
                    let given = used_later(builder.func(), &insts, later);
                    let results = self.branch(builder, &insts, &given);
                    replaced.extend(given.into_iter().zip(results));
                }
                Part::Masked(_) | Part::Once(_) => {
                    builder.func_mut().region_mut(of).insts.extend(insts)
                }
            }
        }
    }

    /// Two versions of `insts`, which give `given`; the results.
    fn branch(&self, builder: &mut Builder, insts: &[Inst], given: &[Value]) -> Vec<Value> {
        let (on_true, on_false) = (builder.new_region(&[]), builder.new_region(&[]));
        let outer = builder.enter(on_true);
        let whole = super::always(builder, self.proven);
        for (region, mut map) in [(on_true, whole), (on_false, BTreeMap::new())] {
            builder.enter(region);
            let func = builder.func_mut();
            let masks = match region == on_true {
                true => duplicate(func, self.masks, &mut map),
                false => Vec::new(),
            };
            let copies = duplicate(func, insts, &mut map);
            func.region_mut(region)
                .insts
                .extend(masks.into_iter().chain(copies));
            let values = given.iter().map(|value| map[value]).collect();
            builder.emit(Op::Yield(op::Yield { values }), &[]);
        }
        builder.enter(outer);
        let inst = builder.emit(
            Op::If(op::If {
                condition: self.condition,
                on_true,
                on_false,
            }),
            &[],
        );
        builder.results(inst).to_vec()
    }
}

/// What instructions give to later ones.
fn used_later(func: &Func, insts: &[Inst], later: &[Part]) -> Vec<Value> {
    let mut used = BTreeSet::new();
    for part in later {
        let (Part::Masked(insts) | Part::Once(insts)) = part;
        for &inst in insts {
            let mut visit = |inner: Inst| {
                func.op(inner).visit_operands(&mut |value| {
                    used.insert(value);
                });
            };
            visit(inst);
            for nested in func.op(inst).regions() {
                func.walk(nested, &mut visit);
            }
        }
    }
    let made = insts.iter().flat_map(|&it| &func.inst(it).results);
    made.copied().filter(|value| used.contains(value)).collect()
}
