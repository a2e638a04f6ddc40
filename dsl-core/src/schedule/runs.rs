//! Loads of elements that lie side by side from anywhere on: where they begin, and how many there are.

use std::collections::{BTreeMap, BTreeSet};

use super::nest::{run_once, stages_of};
use super::read_back::insert_before;
use crate::builder::Builder;
use crate::diagnostic::Diagnostics;
use crate::entity::EntityMap;
use crate::ir::operand::{PIECE, piece_bits};
use crate::ir::{Access, BinaryOp, CompareOp, DType, Func, Inst, Op, Type, Value, op};
use crate::passes::indices::Indices;
use crate::passes::linear::Linear;
use crate::target::{Target, WARP_LANES};

/// Bytes that a bank of shared memory delivers: lanes that load no more of a run each are not made slower by reading it there.
pub(super) const WORD: u32 = 4;

/// What a load reads: elements side by side.
pub(super) struct Run {
    start: Linear,
    first: Firsts,
    /// The bytes of so many elements.
    pub(super) bytes: i64,
    /// Whether lanes load it in words or less, and it begins anywhere in a piece of 16 bytes.
    pub(super) is_slow: bool,
}

impl Run {
    /// The offset of its first element, and the number of elements.
    pub(super) fn numbers(&self, builder: &mut Builder) -> [Value; 2] {
        [self.start.scalar(builder), self.first.count(builder)]
    }

    /// The most elements.
    pub(super) fn room(&self) -> i64 {
        self.first.most
    }
}

/// The first elements of a tile, of which alone a mask holds.
pub(super) struct Firsts {
    limits: Vec<Limit>,
    conditions: Vec<Condition>,
    /// The most of them.
    most: i64,
}

impl Firsts {
    /// Their number.
    pub(super) fn count(&self, builder: &mut Builder) -> Value {
        let mut count = builder.index(self.most);
        for limit in &self.limits {
            let [origin, bound] = [&limit.origin, &limit.bound].map(|sum| sum.scalar(builder));
            let bound = builder.maximum(bound, origin);
            let below = builder.sub(bound, origin);
            count = builder.minimum(count, below);
        }
        for condition in &self.conditions {
            let [lhs, rhs] = [&condition.lhs, &condition.rhs].map(|sum| sum.scalar(builder));
            let holds = builder.compare(condition.op, lhs, rhs);
            let none = builder.index(0);
            count = builder.select(holds, count, none);
        }
        count
    }
}

/// What a mask says: the numbers from `origin` on are below `bound`.
struct Limit {
    origin: Linear,
    bound: Linear,
    /// How many of them may be.
    most: i64,
}

/// What a mask says of all elements at once.
struct Condition {
    op: CompareOp,
    lhs: Linear,
    rhs: Linear,
}

/// Whether the first element of a run with these offsets begins a piece of 16 bytes, as its array does.
pub(crate) fn begins_a_piece(func: &Func, indices: &Indices, offsets: Value, dtype: DType) -> bool {
    let (shape, piece) = (func.ty(offsets).shape, piece_bits(dtype));
    let mut axes = (0..shape.rank()).filter(|&axis| shape.extent(axis) > 1);
    axes.all(|axis| indices.fact(offsets).axis(axis).divisor_of_runs(piece) >= piece)
}

/// What is known of the runs of a function.
pub(super) struct Runs<'a> {
    func: &'a Func,
    target: &'a Target,
    definitions: EntityMap<Value, Option<Inst>>,
    indices: &'a Indices,
}

impl<'a> Runs<'a> {
    pub(super) fn of(func: &'a Func, indices: &'a Indices, target: &'a Target) -> Self {
        Self {
            func,
            target,
            definitions: func.definitions(),
            indices,
        }
    }

    /// The run that an instruction loads of an array that is only read and begins with a piece.
    pub(super) fn run(&self, load: Inst) -> Option<Run> {
        let Op::Load(op) = self.func.op(load) else {
            return None;
        };
        let parameter = &self.func.parameters[self.func.parameter_index(op.base)?];
        let only_read = parameter.access == Access::Read && op.cache.is_none();
        if !only_read || !parameter.divisor.is_multiple_of(PIECE) {
            return None;
        }
        let axis = self.counts(op.offsets)?;
        let (dtype, _) = self.func.ty(op.base).pointee()?;
        let vector = op
            .access()
            .vector_bits(self.func, self.indices, axis, self.target);
        let start = self.indices.origin(op.offsets)?;
        let begins_a_piece = begins_a_piece(self.func, self.indices, op.offsets, dtype);
        if !self.are_indices(&start) {
            return None;
        }
        let first = self.firsts(op.offsets, op.mask)?;
        Some(Run {
            start,
            bytes: first.most * i64::from(dtype.bytes()),
            first,
            is_slow: dtype.bytes() << vector <= WORD && !begins_a_piece,
        })
    }

    /// The elements of a tile of numbers of which a mask holds, where they are the first ones.
    pub(super) fn firsts(&self, numbers: Value, mask: Option<Value>) -> Option<Firsts> {
        let limits = mask.map(|mask| self.limits(mask));
        let (limits, conditions) = limits.unwrap_or_else(|| Some(Default::default()))?;
        let elements = self.func.ty(numbers).shape.elements() as i64;
        let most = limits.iter().map(|limit| limit.most);
        let most = most.fold(elements, i64::min).max(1);
        Some(Firsts {
            limits,
            conditions,
            most,
        })
    }

    /// The axis along which numbers count up by one, where they are more than one along no other.
    pub(super) fn counts(&self, numbers: Value) -> Option<usize> {
        let (shape, fact) = (self.func.ty(numbers).shape, self.indices.fact(numbers));
        let mut long = (0..shape.rank()).filter(|&axis| shape.extent(axis) > 1);
        let (axis, None) = (long.next()?, long.next()) else {
            return None;
        };
        let step = fact.axis(axis).whole_step()?.constant();
        (step == Some(1)).then_some(axis)
    }

    fn are_indices(&self, sum: &Linear) -> bool {
        let mut symbols = sum.symbols();
        symbols.all(|it| self.func.ty(it) == Type::INDEX)
    }

    /// What a mask says that holds of the first elements and of no others: what they are below, and what decides on all of them.
    fn limits(&self, mask: Value) -> Option<(Vec<Limit>, Vec<Condition>)> {
        let compared = self.compared(mask)?;
        let floored = |numbers: Value| {
            compared
                .iter()
                .any(|it| self.is_floor(it) && it.1 == numbers)
        };
        let (mut limits, mut conditions) = (Vec::new(), Vec::new());
        let (mut bounded, mut floors) = (BTreeSet::new(), BTreeSet::new());
        for it in &compared {
            let &(op, lhs, rhs) = it;
            if let [Some(lhs), Some(rhs)] = [lhs, rhs].map(|it| self.index(it)) {
                conditions.push(Condition { op, lhs, rhs });
            } else if op == CompareOp::Lt {
                limits.push(self.limit(lhs, rhs, floored(lhs))?);
                bounded.insert(lhs);
            } else if self.is_floor(it) {
                floors.insert(lhs);
            } else {
                return None;
            }
        }
        // A floor holds of all numbers below a limit, and says something else of others.
        floors.is_subset(&bounded).then_some((limits, conditions))
    }

    /// Whether numbers are compared to be 0 or more.
    fn is_floor(&self, &(op, _, rhs): &Compared) -> bool {
        let zero = self.indices.uniform(rhs).is_some_and(|it| it.is_zero());
        op == CompareOp::Ge && zero
    }

    /// The comparisons that a mask is true where all are, `gt` as `lt`.
    fn compared(&self, mask: Value) -> Option<Vec<Compared>> {
        let mut pending = vec![mask];
        let mut found = Vec::new();
        while let Some(mask) = pending.pop() {
            let inst = self.definitions[mask]?;
            let op = self.func.op(inst);
            if let Some((x, map)) = self.func.view(inst) {
                let elements = [x, mask].map(|it| self.func.ty(it).shape.elements());
                let same = elements[0] == elements[1] && map.is_identity();
                pending.push(Some(x).filter(|_| same || elements[0] == 1)?);
            } else if let Op::Binary(op::Binary {
                op: BinaryOp::And,
                lhs,
                rhs,
            }) = *op
            {
                pending.extend([lhs, rhs]);
            } else if let Op::Compare(op::Compare { op, lhs, rhs }) = *op {
                found.push(match op {
                    CompareOp::Gt => (CompareOp::Lt, rhs, lhs),
                    CompareOp::Lt
                    | CompareOp::Le
                    | CompareOp::Ge
                    | CompareOp::Eq
                    | CompareOp::Ne => (op, lhs, rhs),
                });
            } else {
                return None;
            }
        }
        Some(found)
    }

    /// A number that all elements of a tile are.
    fn index(&self, numbers: Value) -> Option<Linear> {
        let wide = self.func.ty(numbers).dtype() == Some(DType::I64);
        let sum = self.indices.uniform(numbers).filter(|_| wide)?;
        self.are_indices(&sum).then_some(sum)
    }

    /// Numbers that count up from one that is not negative are below a bound. None wraps, or those that do, which are negative, are
    /// no elements either for a `floor` of 0.
    fn limit(&self, numbers: Value, bound: Value, floor: bool) -> Option<Limit> {
        self.counts(numbers)?;
        let wide = self.func.ty(numbers).dtype() == Some(DType::I64);
        let origin = self.indices.origin(numbers).filter(|_| wide)?;
        let is_natural = |value: Value| {
            let range = self.indices.range(value);
            range.map(|it| it.low).filter(|&low| low >= 0)
        };
        let first = origin.multiple().filter(|&(_, by)| floor && by == 1);
        let least = is_natural(numbers).or_else(|| is_natural(first?.0))?;
        let most = self.indices.range(bound);
        let most = most.map_or(i128::from(i64::MAX), |range| range.high);
        let bound = self.index(bound)?;
        self.are_indices(&origin).then(|| Limit {
            origin,
            bound,
            most: i64::try_from((most - least).max(0)).unwrap_or(i64::MAX),
        })
    }
}

/// Two tiles of numbers, and how their elements compare.
type Compared = (CompareOp, Value, Value);

/// The fewest bytes of a run that lanes copy to shared memory: a piece for each lane of a warp.
const LEAST: i64 = WARP_LANES as i64 * PIECE as i64;

/// For each load of a run where it begins, and how many elements it has.
pub(super) type Numbers = BTreeMap<Inst, [Value; 2]>;

/// The loads of runs in the loops that run ahead, so many iterations or as many as each says, which lanes are slow to load.
pub(super) fn slow_runs(
    func: &Func,
    indices: &Indices,
    target: &Target,
    stated: Option<i64>,
) -> Vec<(Inst, Run)> {
    if !target.gpu.copy_bytes.contains(&PIECE.into()) {
        return Vec::new();
    }
    let mut loads = BTreeSet::new();
    for inst in func.all_insts() {
        if let Op::For(op) = func.op(inst)
            && stages_of(func, op, stated) > 1
        {
            let inner = run_once(func, op.body).into_iter().map(|(_, inner)| inner);
            loads.extend(inner.filter(|&inner| matches!(func.op(inner), Op::Load(_))));
        }
    }
    if loads.is_empty() {
        return Vec::new();
    }
    let runs = Runs::of(func, indices, target);
    let found = loads.into_iter().map(|load| Some((load, runs.run(load)?)));
    let is_slow = |run: &Run| run.is_slow && run.bytes >= LEAST;
    found.flatten().filter(|(_, run)| is_slow(run)).collect()
}

/// Puts what says where they lie before the loads of these runs.
///
/// # Errors
/// None that the function did not have before.
pub(super) fn numbered(func: Func, runs: Vec<(Inst, Run)>) -> Result<(Func, Numbers), Diagnostics> {
    let mut builder = Builder::resume(func);
    let mut numbers = Numbers::new();
    for (load, run) in runs {
        builder.set_loc(builder.func().inst(load).loc.clone());
        let region = builder.func_mut().add_region();
        let outer = builder.enter(region);
        numbers.insert(load, run.numbers(&mut builder));
        builder.enter(outer);
        let func = builder.func_mut();
        let insts = std::mem::take(&mut func.region_mut(region).insts);
        insert_before(func, load, insts);
    }
    Ok((builder.finish()?, numbers))
}
