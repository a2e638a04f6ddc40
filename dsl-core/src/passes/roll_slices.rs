//! Makes a loop of what is computed of one slice of a vector after the other, as functions of sums are.
//!
//! Such code runs once for each tile, from first to last, and a few thousand instructions come from memory each time: a warp
//! waits longer for them than it computes. The loop takes its slices from the front of the vector and puts results at its end, so
//! that they come to lie where their slices lay.

use std::collections::{BTreeMap, BTreeSet};

use super::dce::dce;
use super::rewrite::replace_uses;
use crate::builder::Builder;
use crate::entity::EntityMap;
use crate::ir::{CompareOp, Func, Inst, Op, Region, Stage, Trait, Value, op};

/// How often a loop runs: a lane moves all of the vector each time.
const RUNS: usize = 4;

/// The fewest instructions of a slice: the loop moves a number [`RUNS`] times for these.
const LEAST_INSTS: usize = 6 * RUNS;

/// The fewest instructions of a lane that are worth a loop.
const LEAST_CODE: usize = 2048;

/// Rolls all computations of equal slices.
pub fn roll_slices(func: &mut Func) {
    for region in func.all_regions() {
        while let Some(slices) = Slices::find(func, region) {
            slices.roll(func, region);
        }
    }
}

/// The slices of a vector, of all of which the same is computed.
struct Slices {
    source: Value,
    /// Where in the region the first one is taken.
    first: usize,
    /// For each slice the elements that it is.
    indices: Vec<Vec<u32>>,
    /// For each slice its value, and its result.
    taken: Vec<(Value, Value)>,
    /// What is computed of the first slice.
    insts: Vec<Inst>,
    /// What all slices compute, and constants that stand among it.
    moved: BTreeSet<Inst>,
    constants: Vec<Inst>,
}

impl Slices {
    fn find(func: &Func, region: Region) -> Option<Self> {
        let insts = &func.region(region).insts;
        let mut sources: BTreeMap<Value, Vec<usize>> = BTreeMap::new();
        for (at, &inst) in insts.iter().enumerate() {
            if let Op::ShuffleVector(op) = func.op(inst)
                && op.a == op.b
            {
                sources.entry(op.a).or_default().push(at);
            }
        }
        let mut sources = sources.into_iter();
        sources.find_map(|(source, places)| Self::of(func, insts, source, &places))
    }

    fn of(func: &Func, insts: &[Inst], source: Value, places: &[usize]) -> Option<Self> {
        let elements = func.ty(source).shape.elements();
        let mut indices = Vec::new();
        for &at in places {
            let Op::ShuffleVector(op) = func.op(insts[at]) else {
                return None;
            };
            indices.push(op.indices.to_vec());
        }
        let all: BTreeSet<u32> = indices.iter().flatten().copied().collect();
        let count = places.len();
        let length = elements / count.max(1);
        let divides =
            indices.iter().all(|slice| slice.len() == length) && length * count == elements;
        let fits = count > RUNS && count.is_multiple_of(RUNS) && divides;
        if !fits || all != (0..elements as u32).collect() {
            return None;
        }
        let mut found = Self {
            source,
            first: places[0],
            indices,
            taken: Vec::new(),
            insts: Vec::new(),
            moved: BTreeSet::new(),
            constants: Vec::new(),
        };
        found.compute(func, insts)?;
        let pays = found.insts.len() >= LEAST_INSTS && found.insts.len() * elements >= LEAST_CODE;
        let uses = users(func);
        let computed = found.insts.clone();
        let result = outcome(func, &uses, &computed)?;
        if func.ty(result).dtype() != func.ty(source).dtype() {
            return None;
        }
        for &at in places {
            let (values, own) = found.matching(func, (insts, at), &computed)?;
            let own_result = *values.get(&result)?;
            if outcome(func, &uses, &own)? != own_result {
                return None;
            }
            let slice = func.inst(insts[at]).results[0];
            found.taken.push((slice, own_result));
            found.moved.extend(own);
        }
        pays.then_some(found)
    }

    /// Finds what is computed of the first slice.
    fn compute(&mut self, func: &Func, insts: &[Inst]) -> Option<()> {
        let slice = insts[self.first];
        let mut made = BTreeSet::from([func.inst(slice).results[0]]);
        let mut later = BTreeMap::new();
        for &inst in &insts[self.first..] {
            later.extend(func.inst(inst).results.iter().map(|&value| (value, inst)));
        }
        let mut constants = BTreeSet::new();
        for &inst in &insts[self.first + 1..] {
            let op = func.op(inst);
            let operands = op.operands();
            if !op.is(Trait::elementwise) || !operands.iter().any(|it| made.contains(it)) {
                continue;
            }
            let others = operands.iter().filter(|it| !made.contains(it));
            let others = others.filter_map(|it| later.get(it));
            let others: Vec<Inst> = others.copied().collect();
            let is_constant = |&inst: &Inst| matches!(func.op(inst), Op::Constant(_));
            if others.iter().all(is_constant) {
                constants.extend(others);
                made.extend(&func.inst(inst).results);
                self.insts.push(inst);
            }
        }
        self.constants = constants.into_iter().collect();
        (!self.insts.is_empty()).then_some(())
    }

    /// What stands for the values of the first slice in one that is taken there, and what computes it.
    fn matching(
        &self,
        func: &Func,
        (insts, at): (&[Inst], usize),
        first: &[Inst],
    ) -> Option<(BTreeMap<Value, Value>, Vec<Inst>)> {
        let result = |inst: Inst| func.inst(inst).results[0];
        let mut values = BTreeMap::from([(result(insts[self.first]), result(insts[at]))]);
        let mut own = vec![insts[at]];
        let mut place = at;
        for &inst in first {
            let mut wanted = func.op(inst).clone();
            wanted.map_operands(&mut |value| values.get(&value).copied().unwrap_or(value));
            let rest = insts.iter().enumerate().skip(place + 1);
            let (next, &found) = rest
                .filter(|&(_, &it)| func.inst(it).results.len() == 1)
                .find(|&(_, &it)| {
                    *func.op(it) == wanted && func.ty(result(it)) == func.ty(result(inst))
                })?;
            place = next;
            values.insert(result(inst), result(found));
            own.push(found);
        }
        Some((values, own))
    }

    /// Puts the loop in the place of the first slice.
    fn roll(self, func: &mut Func, region: Region) {
        let insts = func.region(region).insts.clone();
        let (before, rest) = insts.split_at(self.first);
        let rest = rest.iter().copied();
        let rest = rest.filter(|it| !self.moved.contains(it) && !self.constants.contains(it));
        let rest: Vec<Inst> = rest.collect();
        let owned = std::mem::replace(func, Func::new("", Stage::Lane));
        let mut builder = Builder::resume(owned);
        let begun = [before, &self.constants].concat();
        builder.func_mut().region_mut(region).insts = begun;
        let outer = builder.enter(region);
        builder.set_loc(builder.func().inst(insts[self.first]).loc.clone());
        let rolled = self.rolled(&mut builder);
        let mut now = BTreeMap::new();
        for (indices, &(_, result)) in self.indices.iter().zip(&self.taken) {
            now.insert(result, picked(&mut builder, rolled, indices));
        }
        builder.enter(outer);
        builder.func_mut().region_mut(region).insts.extend(rest);
        *func = builder
            .finish()
            .expect("broken invariant: a loop computes what its slices did");
        replace_uses(func, &|value| now.get(&value).copied().unwrap_or(value));
        dce(func);
    }

    /// Appends the loop; returns the vector of all results.
    fn rolled(&self, builder: &mut Builder) -> Value {
        let init = vec![builder.index(0), self.source];
        let types: Vec<_> = init.iter().map(|&value| builder.ty(value)).collect();
        let before = builder.region_with(&types, |builder, parameters| {
            let bound = builder.index(RUNS as i64);
            let runs = builder.compare(CompareOp::Lt, parameters[0], bound);
            [&[runs], parameters].concat()
        });
        let body = builder.region_with(&types, |builder, parameters| {
            let one = builder.index(1);
            let next = builder.add(parameters[0], one);
            vec![next, self.run(builder, parameters[1])]
        });
        let rolled = builder.emit(Op::While(op::While { init, before, body }), &[]);
        builder.results(rolled)[1]
    }

    /// Appends what is computed of the first slices of a vector; returns the vector with the others first.
    fn run(&self, builder: &mut Builder, vector: Value) -> Value {
        let count = self.indices.len();
        let at_once = count / RUNS;
        let mut results = Vec::new();
        for indices in &self.indices[..at_once] {
            let slice = picked(builder, vector, indices);
            let mut values = BTreeMap::from([(self.taken[0].0, slice)]);
            for &inst in &self.insts {
                let data = builder.func().inst(inst).clone();
                let ty = builder.ty(data.results[0]);
                let mut op = data.op;
                op.map_operands(&mut |value| values.get(&value).copied().unwrap_or(value));
                builder.set_loc(data.loc);
                let copied = builder.emit_unchecked(op, &[ty]);
                values.insert(data.results[0], builder.results(copied)[0]);
            }
            results.push(values[&self.taken[0].1]);
        }
        let mut elements = vec![vector; count * self.indices[0].len()];
        for (slice, indices) in self.indices.iter().enumerate() {
            for (at, &index) in indices.iter().enumerate() {
                let from = slice + at_once;
                let (from, index_there) = match from.checked_sub(count) {
                    Some(result) => (results[result], at as i64),
                    None => (vector, i64::from(self.indices[from][at])),
                };
                elements[index as usize] = builder.value(Op::Extract(op::Extract {
                    vector: from,
                    index: index_there,
                }));
            }
        }
        builder.value(Op::Vector(op::Vector { elements }))
    }
}

/// For each value what takes it.
type Users = EntityMap<Value, Vec<Inst>>;

fn users(func: &Func) -> Users {
    let mut users = EntityMap::filled(func.value_count(), Vec::new());
    for inst in func.all_insts() {
        func.op(inst)
            .visit_operands(&mut |value| users[value].push(inst));
    }
    users
}

/// The one value of instructions that others take.
fn outcome(func: &Func, users: &Users, own: &[Inst]) -> Option<Value> {
    let values = own.iter().flat_map(|&inst| &func.inst(inst).results);
    let mut taken = values.filter(|&&value| users[value].iter().any(|it| !own.contains(it)));
    let &value = taken.next()?;
    taken.next().is_none().then_some(value)
}

/// Elements of a vector.
fn picked(builder: &mut Builder, vector: Value, indices: &[u32]) -> Value {
    builder.value(Op::ShuffleVector(op::ShuffleVector {
        a: vector,
        b: vector,
        indices: indices.to_vec(),
    }))
}
