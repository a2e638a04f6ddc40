//! Two versions of accesses alone, where what stands between them takes much code: it is then there once.

use std::collections::{BTreeMap, BTreeSet};

use super::split::always;
use super::weight::steps;
use crate::builder::Builder;
use crate::ir::operand::is_of_tensor_cores;
use crate::ir::{Func, Inst, Op, Region, Trait, Value, op};
use crate::passes::duplicate::duplicate;

/// Lookups that take as much code as a sort.
const MANY_LOOKUPS: usize = 16;

/// Steps that a lane takes for elements between its accesses where these alone get two versions.
const MANY_STEPS: usize = 800;

/// Steps on elements beside an access that get two versions with it.
const FEW_STEPS: usize = 4;

/// Some of the instructions that follow masks.
pub(super) enum Part {
    /// These get two versions.
    Masked(Vec<Inst>),
    /// These are there once.
    Once(Vec<Inst>),
}

impl Part {
    /// What gets two versions of it.
    pub(super) fn masked(&self) -> &[Inst] {
        match self {
            Self::Masked(insts) => insts,
            Self::Once(_) => &[],
        }
    }
}

/// The parts of `tail`, in order, where more stands between its accesses than goes element by element, and is much code for
/// each of `lanes`, or a box is loaded; nothing elsewhere. Masks are `masks` and what they are made of.
pub(super) fn parts(
    func: &Func,
    tail: &[Inst],
    masks: &BTreeSet<Value>,
    lanes: Option<usize>,
) -> Option<Vec<Part>> {
    let lookups = tail
        .iter()
        .filter(|it| matches!(func.op(**it), Op::Gather(_)));
    let many = lookups.count() >= MANY_LOOKUPS;
    let takes_code = |inst: Inst| {
        let op = func.op(inst);
        matches!(op, Op::Sort(_)) || many && matches!(op, Op::Gather(_))
    };
    // Boxes are copied where every iteration loads them.
    let is_box = |inst: Inst| matches!(func.op(inst), Op::LoadBox(_));
    let ends = |inst: &&Inst| func.op(**inst).is(Trait::terminator);
    let end = tail.last().filter(ends);
    let mut finding = Finding {
        func,
        masks,
        parts: Vec::new(),
        masked: Vec::new(),
        seen: masks.clone(),
        once: Vec::new(),
        computed: BTreeSet::new(),
    };
    for &inst in &tail[..tail.len() - usize::from(end.is_some())] {
        finding.take(inst);
    }
    finding.once.extend(end);
    finding.flush();
    let parts = finding.parts;
    let once = || {
        let insts = parts.iter().filter_map(|part| match part {
            Part::Once(insts) => Some(insts),
            Part::Masked(_) => None,
        });
        insts.flatten().copied()
    };
    let joins = || {
        let (mut steps, mut products, mut sums) = (false, false, false);
        let mut look = |inst: Inst| {
            let op = func.op(inst);
            let fast = matches!(op, Op::Dot(dot) if is_of_tensor_cores(func, dot));
            steps |= fast || matches!(op, Op::Scan(_));
            products |= matches!(op, Op::Dot(_));
            sums |= matches!(op, Op::Reduce(_));
        };
        for inst in once() {
            look(inst);
            for region in func.op(inst).regions() {
                func.walk(region, &mut look);
            }
        }
        steps || products && sums
    };
    let long = lanes.is_some_and(|lanes| {
        let most = lanes.saturating_mul(MANY_STEPS);
        joins() && once().map(|inst| steps(func, inst)).sum::<usize>() > most
    });
    (long || once().any(|inst| takes_code(inst) || is_box(inst))).then_some(parts)
}

/// Parts under construction.
struct Finding<'a> {
    func: &'a Func,
    masks: &'a BTreeSet<Value>,
    parts: Vec<Part>,
    /// What gets two versions next.
    masked: Vec<Inst>,
    /// Masks, and what follows from them in `masked`.
    seen: BTreeSet<Value>,
    /// What comes after that once.
    once: Vec<Inst>,
    /// What earlier parts compute.
    computed: BTreeSet<Value>,
}

impl Finding<'_> {
    fn take(&mut self, inst: Inst) {
        let op = self.func.op(inst);
        let goes_along = op.is(Trait::pointwise);
        let versions = goes_along || op.access().is_some();
        if !versions || !self.sees(inst) {
            return self.once.push(inst);
        }
        match self.steps_to(inst) {
            Some(steps) => {
                self.once.retain(|it| !steps.contains(it));
                self.masked.extend(steps);
            }
            None => {
                self.flush();
                if !self.sees(inst) {
                    return self.once.push(inst);
                }
            }
        }
        self.masked.push(inst);
        if goes_along {
            self.seen.extend(&self.func.inst(inst).results);
        }
    }

    /// Whether an instruction has an operand of `seen`.
    fn sees(&self, inst: Inst) -> bool {
        let mut sees = false;
        let op = self.func.op(inst);
        op.visit_operands(&mut |value| sees |= self.seen.contains(&value));
        sees
    }

    /// Those of `once` that must come before an instruction; nothing where it cannot go before the others, where there are
    /// more than a few, or scalars among them, which what is known of later masks names.
    fn steps_to(&self, inst: Inst) -> Option<Vec<Inst>> {
        let op = |inst: &Inst| self.func.op(*inst);
        let goes_along = |inst: &Inst| op(inst).is(Trait::pointwise);
        if !self.once.iter().all(goes_along) {
            return None;
        }
        let mut wanted: BTreeSet<Value> = op(&inst).operands().into_iter().collect();
        let mut steps = Vec::new();
        for &inst in self.once.iter().rev() {
            let results = &self.func.inst(inst).results;
            if results.iter().any(|result| wanted.contains(result)) {
                wanted.extend(op(&inst).operands());
                steps.push(inst);
            }
        }
        steps.reverse();
        let results = |inst: Inst| self.func.inst(inst).results.iter();
        let mut given = steps.iter().flat_map(|&inst| results(inst));
        let of_tiles = given.all(|&it| !self.func.ty(it).is_scalar());
        (of_tiles && steps.len() <= FEW_STEPS).then_some(steps)
    }

    /// The steps, a few, by which what is loaded meets what is computed before: a lane need not hold both at once. None follows from
    /// a step that stays behind.
    fn joined(&self) -> Vec<Inst> {
        let results = |inst: Inst| self.func.inst(inst).results.iter().copied();
        let mut made: BTreeSet<Value> = self.masked.iter().flat_map(|&it| results(it)).collect();
        let mut left: BTreeSet<Value> = BTreeSet::new();
        let (mut steps, mut met) = (Vec::new(), 0);
        for &inst in &self.once {
            let op = self.func.op(inst);
            let operands = op.operands();
            if !op.is(Trait::elementwise) || steps.len() == FEW_STEPS {
                break;
            }
            if operands.iter().any(|it| left.contains(it)) {
                left.extend(results(inst));
            } else if operands.iter().any(|it| made.contains(it)) {
                steps.push(inst);
                let held = |it: &Value| self.computed.contains(it) && !made.contains(it);
                if operands.iter().any(held) {
                    met = steps.len();
                }
                made.extend(results(inst));
            } else {
                left.extend(results(inst));
            }
        }
        steps.truncate(met);
        steps
    }

    /// Ends both lists.
    fn flush(&mut self) {
        let joined = self.joined();
        self.once.retain(|it| !joined.contains(it));
        self.masked.extend(joined);
        let masked = std::mem::take(&mut self.masked);
        let once = std::mem::take(&mut self.once);
        let made = masked.iter().chain(&once).copied();
        let made = made.filter(|&it| !self.func.op(it).operands().is_empty());
        let made = made.flat_map(|it| &self.func.inst(it).results);
        self.computed.extend(made);
        self.parts.extend([Part::Masked(masked), Part::Once(once)]);
        self.seen.clone_from(self.masks);
    }
}

/// What tells the versions of a masked part.
pub(super) struct Versions<'a> {
    /// The comparisons that hold in the first version.
    pub(super) proven: &'a [Value],
    /// What masks are computed from them by.
    pub(super) masks: &'a [Inst],
    /// Whether they hold; nothing where no part has masks.
    pub(super) condition: Option<Value>,
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
            match self.condition.filter(|_| !part.masked().is_empty()) {
                Some(condition) => {
                    let later = parts.as_slice();
                    let given = used_later(builder.func(), &insts, later);
                    let results = self.branch(builder, condition, &insts, &given);
                    replaced.extend(given.into_iter().zip(results));
                }
                None => builder.func_mut().region_mut(of).insts.extend(insts),
            }
        }
    }

    /// Two versions of `insts`, which give `given`; the results.
    fn branch(
        &self,
        builder: &mut Builder,
        condition: Value,
        insts: &[Inst],
        given: &[Value],
    ) -> Vec<Value> {
        let (on_true, on_false) = (builder.new_region(&[]), builder.new_region(&[]));
        let outer = builder.enter(on_true);
        let whole = always(builder, self.proven);
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
                condition,
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
