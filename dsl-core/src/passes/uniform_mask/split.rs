//! The split of a region: two versions of all that follows its masks, or of the accesses alone.

use std::collections::{BTreeMap, BTreeSet};

use super::parts::{Part, Versions, parts};
use super::weight::elements;
use super::{Known, Side, holds, leaves, mask_leaves, sides};
use crate::builder::Builder;
use crate::ir::{BinaryOp, DType, Func, Inst, Literal, Op, Region, Stage, Trait, Value, op};
use crate::passes::duplicate::duplicate;

/// Elements that the code of a lane computes at most for two versions of it: more costs time to compile, and
/// more registers than the masks do.
const MOST_ELEMENTS: usize = 8192;

/// What is proved around a region whose accesses alone get two versions.
#[derive(Clone, Default)]
pub(super) struct Around {
    /// Whether each comparison holds.
    conditions: BTreeMap<Value, Value>,
    /// What masks are computed from them by.
    masks: Vec<Inst>,
}

/// What is left to be split.
pub(super) struct Split {
    /// What comes before the masks that are proved here: nothing new is known of it.
    pub(super) before: Vec<Inst>,
    /// Instructions that may have regions with more accesses.
    pub(super) rest: Vec<Inst>,
    pub(super) around: Around,
}

/// Splits a region: all that follows masks, or the accesses alone. All of it is none of code for more than
/// [`MOST_ELEMENTS`].
pub(super) fn split(
    func: &mut Func,
    of: Region,
    known: &Known,
    around: &Around,
    lanes: Option<usize>,
) -> Split {
    let mut found = Found::of(func, of, known, around);
    let parts = parts(func, &found.tail, &found.seen, lanes);
    let before = match parts {
        Some(_) => Vec::new(),
        None => found.without_masks(func, known),
    };
    let most = lanes.map_or(usize::MAX, |lanes| lanes.saturating_mul(MOST_ELEMENTS));
    let none = found.proven.is_empty();
    if none || parts.is_none() && elements(func, &found.tail) > most {
        return Split {
            before: Vec::new(),
            rest: func.region(of).insts.clone(),
            around: around.clone(),
        };
    }
    let owned = std::mem::replace(func, Func::new("", Stage::Block));
    let mut builder = Builder::resume(owned);
    let head = found.head.clone();
    builder.func_mut().region_mut(of).insts = head;
    builder.enter(of);
    let mut split = match parts {
        Some(parts) => found.in_parts(&mut builder, (of, known), around, parts),
        None => found.whole(&mut builder, known),
    };
    split.before = before;
    *func = builder
        .finish()
        .expect("broken invariant: ends are scalars of one type");
    split
}

/// What is known of a region.
struct Found {
    /// What comes first, masks among it.
    head: Vec<Inst>,
    /// The rest.
    tail: Vec<Inst>,
    /// The comparisons of the region itself that scalars prove.
    proofs: BTreeMap<Value, [Side; 2]>,
    /// Those around it with what is true where they hold.
    outer: Vec<(Value, Value)>,
    /// Both.
    proven: Vec<Value>,
    /// What masks are computed from them by.
    masks: Vec<Inst>,
    /// The comparisons and the masks.
    seen: BTreeSet<Value>,
}

impl Found {
    fn of(func: &Func, of: Region, known: &Known, around: &Around) -> Self {
        let (head, tail) = pure_first(func, of);
        let results = |insts: &[Inst]| -> Vec<Value> {
            let results = insts.iter().map(|&inst| &func.inst(inst).results);
            results.flatten().copied().collect()
        };
        let defined: BTreeSet<Value> = results(&head).into_iter().collect();
        let leaves = mask_leaves(func, &tail, known);
        let own = leaves.iter().filter(|leaf| defined.contains(leaf));
        let proofs: BTreeMap<Value, [Side; 2]> = own
            .filter_map(|&leaf| Some((leaf, sides(func, known, leaf)?)))
            .collect();
        let outer = around.conditions.iter();
        let outer: Vec<(Value, Value)> = outer
            .filter(|(leaf, _)| leaves.contains(leaf))
            .map(|(&leaf, &condition)| (leaf, condition))
            .collect();
        let proven = proofs.keys().chain(outer.iter().map(|(leaf, _)| leaf));
        let proven: Vec<Value> = proven.copied().collect();
        let mut masks = around.masks.clone();
        let from = [&proven[..], &results(&masks)].concat();
        masks.extend(dependents(func, &head, &from));
        let seen = proven.iter().copied().chain(results(&masks)).collect();
        Self {
            head,
            tail,
            proofs,
            outer,
            proven,
            masks,
            seen,
        }
    }

    /// Moves what comes before the first access whose mask vanishes where comparisons hold to the head, if there is a loop or a branch:
    /// it would be the same in both versions.
    fn without_masks(&mut self, func: &Func, known: &Known) -> Vec<Inst> {
        let vanishes = |inst: &Inst| {
            let mut vanishes = false;
            let mut look = |inst: Inst| {
                let mask = func.op(inst).access().and_then(|access| access.mask);
                vanishes |= mask.is_some_and(|mask| self.vanishes(func, known, mask));
            };
            look(*inst);
            for nested in func.op(*inst).regions() {
                func.walk(nested, &mut look);
            }
            vanishes
        };
        let first = self.tail.iter().position(vanishes);
        let common = &self.tail[..first.unwrap_or(0)];
        if common
            .iter()
            .all(|&inst| func.op(inst).regions().is_empty())
        {
            return Vec::new();
        }
        let rest = self.tail.split_off(common.len());
        let before = std::mem::replace(&mut self.tail, rest);
        self.head.extend(&before);
        before
    }

    /// Whether a mask is true for all elements of a tile, or none, where comparisons hold that scalars prove, some of them here.
    fn vanishes(&self, func: &Func, known: &Known, mask: Value) -> bool {
        let (mut pending, mut here) = (vec![mask], false);
        while let Some(value) = pending.pop() {
            if func.ty(value).is_scalar() {
                continue;
            }
            match known.op(func, value) {
                Some(&Op::Binary(op::Binary {
                    op: BinaryOp::And,
                    lhs,
                    rhs,
                })) => pending.extend([lhs, rhs]),
                Some(Op::Constant(_)) => {}
                Some(Op::Compare(_)) if self.proven.contains(&value) => here = true,
                Some(Op::Compare(_)) if sides(func, known, value).is_some() => {}
                Some(op) => match op.shape() {
                    Some(shape) => pending.push(shape.x()),
                    None => return false,
                },
                None => return false,
            }
        }
        here
    }

    /// Appends two versions of the accesses alone.
    fn in_parts(
        self,
        builder: &mut Builder,
        (of, known): (Region, &Known),
        around: &Around,
        parts: Vec<Part>,
    ) -> Split {
        let own = self.proofs.iter().map(|(&comparison, sides)| {
            let holds = holds(builder, known, comparison, sides);
            (comparison, holds)
        });
        let conditions: BTreeMap<Value, Value> = self.outer.into_iter().chain(own).collect();
        let direct = parts.iter().flat_map(Part::masked);
        let direct = direct.flat_map(|&inst| builder.func().op(inst).operands());
        let direct = direct.filter(|value| self.seen.contains(value)).collect();
        let reached = leaves(builder.func(), direct, known);
        let (proven, hold): (Vec<Value>, Vec<Value>) = conditions
            .iter()
            .filter(|(leaf, _)| reached.contains(leaf))
            .unzip();
        let versions = Versions {
            proven: &proven,
            masks: &self.masks,
            condition: all(builder, hold),
        };
        versions.of_parts(builder, of, parts);
        let mut around = around.clone();
        around.conditions.extend(conditions);
        around.masks = self.masks;
        Split {
            before: Vec::new(),
            rest: self.tail,
            around,
        }
    }

    /// Appends two versions of the rest; what is left is the one without masks.
    fn whole(self, builder: &mut Builder, known: &Known) -> Split {
        let outer = self.outer.into_iter().map(|(_, condition)| condition);
        let mut condition = all(builder, outer);
        for (&comparison, sides) in &self.proofs {
            let holds = holds(builder, known, comparison, sides);
            condition = all(builder, condition.into_iter().chain([holds]));
        }
        let parts = (&self.masks[..], &self.tail[..]);
        let whole = condition.map(|it| branch(builder, &self.proven, it, parts));
        Split {
            before: Vec::new(),
            rest: whole.map_or(Vec::new(), |it| builder.func().region(it).insts.clone()),
            around: Around::default(),
        }
    }
}

/// Whether all conditions hold.
fn all(builder: &mut Builder, conditions: impl IntoIterator<Item = Value>) -> Option<Value> {
    let conditions = conditions.into_iter();
    conditions.reduce(|all, it| builder.and(all, it))
}

/// The instructions of a region in two lists: pure ones that depend on no effect of the region, and
/// the rest.
fn pure_first(func: &Func, of: Region) -> (Vec<Inst>, Vec<Inst>) {
    let mut late: BTreeSet<Value> = BTreeSet::new();
    func.region(of).insts.iter().partition(|&&inst| {
        let op = func.op(inst);
        let mut depends = false;
        op.visit_operands(&mut |value| depends |= late.contains(&value));
        let early = op.is(Trait::pure) && op.regions().is_empty() && !depends;
        if !early {
            late.extend(&func.inst(inst).results);
        }
        early
    })
}

/// Those of `insts`, in order, that follow from `values`, such as a mask of two comparisons.
fn dependents(func: &Func, insts: &[Inst], values: &[Value]) -> Vec<Inst> {
    let mut affected: BTreeSet<Value> = values.iter().copied().collect();
    let mut found = Vec::new();
    for &inst in insts {
        let data = func.inst(inst);
        let mut depends = false;
        data.op
            .visit_operands(&mut |operand| depends |= affected.contains(&operand));
        if depends {
            affected.extend(&data.results);
            found.push(inst);
        }
    }
    found
}

/// Masks that hold for every element, for each of these comparisons.
pub(super) fn always(builder: &mut Builder, proven: &[Value]) -> BTreeMap<Value, Value> {
    let holds = |&comparison: &Value| {
        let shape = builder.ty(comparison).shape;
        let holds = builder.filled(Literal::from_bits(DType::Bool, 1), shape);
        (comparison, holds)
    };
    proven.iter().map(holds).collect()
}

/// Ends the region with `if condition { whole } else { tail }`, where `whole` is the tail with comparisons that
/// are true, which `masks` follow from; returns the region of these. What is known stays so there: the other
/// branch has the copies.
fn branch(
    builder: &mut Builder,
    proven: &[Value],
    condition: Value,
    (masks, tail): (&[Inst], &[Inst]),
) -> Region {
    let func = builder.func();
    let terminator = tail
        .last()
        .copied()
        .filter(|&inst| func.op(inst).is(Trait::terminator));
    let unchecked = builder.new_region(&[]);
    let outer = builder.enter(unchecked);
    let mut map = always(builder, proven);
    let checked = builder.new_region(&[]);
    let func = builder.func_mut();
    let masks = duplicate(func, masks, &mut map);
    func.region_mut(checked).insts = duplicate(func, tail, &mut BTreeMap::new());
    func.region_mut(unchecked).insts.extend(masks);
    func.region_mut(unchecked).insts.extend(tail);
    let mut whole = Vec::new();
    func.walk(unchecked, &mut |inst| whole.push(inst));
    for inst in whole {
        let op = &mut func.inst_mut(inst).op;
        op.map_operands(&mut |value| map.get(&value).copied().unwrap_or(value));
    }
    if terminator.is_none() {
        for region in [unchecked, checked] {
            builder.enter(region);
            builder.emit(Op::Yield(op::Yield { values: Vec::new() }), &[]);
        }
    }
    builder.enter(outer);
    let op = Op::If(op::If {
        condition,
        on_true: unchecked,
        on_false: checked,
    });
    let inst = builder.emit(op, &[]);
    if terminator.is_some() {
        let values = builder.results(inst).to_vec();
        builder.emit(Op::Yield(op::Yield { values }), &[]);
    }
    unchecked
}
