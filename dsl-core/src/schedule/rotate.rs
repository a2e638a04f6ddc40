//! Loops in which one product follows from another: an iteration begins the first product of the next one before it
//! goes on with its own second, so that lanes work on the sums of one while the tensor cores add to those of the other.
//!
//! What an iteration does before its second products is its front, those and what follows are its back. The loop runs
//! the back of an iteration inside the front of the next: behind its first products, and before what needs them or the
//! back. The front of the first iteration comes before the loop, the back of the last one after it.
//! Source: software pipelining, Lam, PLDI 1988.

use std::collections::{BTreeMap, BTreeSet};

use super::PlacedFunc;
use super::homes::is_grouped;
use super::nest::{loops_around, stages_of};
use super::pipeline::before_end;
use super::read_back::insert_before;
use crate::builder::Builder;
use crate::diagnostic::Diagnostics;
use crate::ir::{BinaryOp, CompareOp, DType, Func, Inst, Literal, Op, Shape, Type, Value, op};
use crate::passes::dce::dce;
use crate::passes::duplicate::duplicate;
use crate::target::{Bounds, Options};

/// Rotates each loop whose loads run ahead, and in which groups of warps compute a product of what follows from another.
/// `None` where there is no such loop, or iterations are to be one after the other.
///
/// # Errors
/// None that the function did not have before.
pub fn rotate(func: &PlacedFunc, options: &Options) -> Result<Option<PlacedFunc>, Diagnostics> {
    if options.schedule.overlap == Some(1) {
        return Ok(None);
    }
    let stated = options.schedule.stages.map(i64::from);
    let loops = func.all_insts().into_iter();
    let found = loops.filter_map(|inst| Rotation::find(func, inst, stated, options.bounds));
    let found: Vec<Rotation> = found.collect();
    if found.is_empty() {
        return Ok(None);
    }
    let mut func = func.clone().into_inner();
    func.keep_sites();
    let mut builder = Builder::resume(func);
    for rotation in found {
        rotation.apply(&mut builder);
    }
    let mut func = builder.finish()?;
    dce(&mut func);
    PlacedFunc::new(func).map(Some)
}

/// What stands for values of the body.
type Map = BTreeMap<Value, Value>;

/// How the body of a loop is divided.
struct Rotation {
    inst: Inst,
    op: op::For,
    /// The index, the carried values and what follows them.
    parameters: Vec<Value>,
    yielded: Vec<Value>,
    /// What the front does up to its last product.
    begins: Vec<Inst>,
    /// The rest of the front.
    ends: Vec<Inst>,
    back: Vec<Inst>,
    /// Of the back, the loads of boxes whose place follows from the index, with what they take.
    loads: Vec<Inst>,
    /// The positions of carried values that the front advances; the back advances the others.
    advanced: BTreeSet<usize>,
    /// What the back takes of its iteration: what the front makes, and what the loop carries.
    crossing: Vec<Value>,
}

impl Rotation {
    fn find(func: &Func, inst: Inst, stated: Option<i64>, bounds: Bounds) -> Option<Self> {
        let Op::For(op) = func.op(inst) else {
            return None;
        };
        let ahead = stages_of(func, op, stated) > 1;
        let plain = |inst: Inst| {
            let op = func.op(inst);
            let load = matches!(op, Op::Load(op) if op.cache.is_none());
            let load = load && bounds == Bounds::Unchecked;
            load || matches!(op, Op::LoadBox(_)) || func.is_pure(inst)
        };
        let body = Body::new(func, op)?;
        // What a loop in loops has counted of its boxes goes on in its next run, and in no other place than its body.
        let boxed = |&inst: &Inst| matches!(func.op(inst), Op::LoadBox(_));
        if body.insts.iter().any(boxed) && !loops_around(func, inst).is_empty() {
            return None;
        }
        let plain = body.insts.iter().all(|&inst| plain(inst));
        let front = Some(&body).filter(|_| ahead && plain)?.front()?;
        Some(body.divide(inst, op, &front))
    }

    /// Replaces the loop.
    fn apply(self, builder: &mut Builder) {
        let (inst, op) = (self.inst, &self.op);
        builder.set_loc(builder.func().inst(inst).loc.clone());
        let around = builder.new_region(&[]);
        let outer = builder.enter(around);
        let runs = builder.compare(CompareOp::Lt, op.lower, op.upper);
        let on_true = builder.region_with(&[], |builder, _| self.whole(builder));
        let on_false = builder.region_with(&[], |_, _| op.init.clone());
        builder.enter(outer);
        let func = builder.func_mut();
        let before = std::mem::take(&mut func.region_mut(around).insts);
        func.inst_mut(inst).op = Op::If(op::If {
            condition: runs,
            on_true,
            on_false,
        });
        insert_before(func, inst, before);
    }

    /// Appends what runs if there is an iteration; returns what the loop gives.
    fn whole(&self, builder: &mut Builder) -> Vec<Value> {
        let op = &self.op;
        let upper = before_end(builder, op.upper, op.step);
        let last = self.last_index(builder);
        let mut first = self.inputs(op.lower, &op.init);
        append(builder, &self.begins, &mut first);
        append(builder, &self.ends, &mut first);
        // The last loads begin before the loop where they can.
        let mut end = Map::from([(self.parameters[0], last)]);
        append(builder, &self.loads, &mut end);
        let init = self.carried(&first);
        let types = init.iter().map(|&value| builder.ty(value));
        let types: Vec<Type> = std::iter::once(Type::INDEX).chain(types).collect();
        let body = builder.new_region(&types);
        let outer = builder.enter(body);
        let parameters = builder.parameters(body);
        place_as(builder.func_mut(), &parameters[1..], &init);
        let step = builder.index(op.step);
        let later = builder.add(parameters[0], step);
        let (mut back, advanced) = self.of_back(parameters[0], &parameters[1..]);
        let mut front = self.inputs(later, &advanced);
        append(builder, &self.begins, &mut front);
        append(builder, &self.back, &mut back);
        for (at, &parameter) in self.parameters[1..].iter().enumerate() {
            if !self.advanced.contains(&at) {
                front.insert(parameter, mapped(&back, self.yielded[at]));
            }
        }
        append(builder, &self.ends, &mut front);
        let values = self.carried(&front);
        builder.emit(Op::Yield(op::Yield { values }), &[]);
        builder.enter(outer);
        let rotated = Op::For(op::For {
            upper,
            init: init.clone(),
            body,
            ..op.clone()
        });
        let rotated = builder.emit(rotated, &[]);
        let results = builder.results(rotated).to_vec();
        place_as(builder.func_mut(), &results, &init);
        let (mut back, advanced) = self.of_back(last, &results);
        back.extend(end);
        let rest = self.back.iter().filter(|it| !self.loads.contains(it));
        append(builder, &rest.copied().collect::<Vec<_>>(), &mut back);
        let all = self.yielded.iter().zip(advanced).enumerate();
        let given = all.map(
            |(at, (&value, advanced))| match self.advanced.contains(&at) {
                true => advanced,
                false => mapped(&back, value),
            },
        );
        given.collect()
    }

    /// What the parameters of the body are in an iteration.
    fn inputs(&self, index: Value, carried: &[Value]) -> Map {
        let values = std::iter::once(index).chain(carried.iter().copied());
        self.parameters.iter().copied().zip(values).collect()
    }

    /// The index of the last iteration.
    fn last_index(&self, builder: &mut Builder) -> Value {
        let op = &self.op;
        let one = builder.index(1);
        let most = builder.binary(BinaryOp::Sub, op.upper, one);
        let span = builder.binary(BinaryOp::Sub, most, op.lower);
        // A loop may span more than the greatest index.
        let span = builder.cast(span, DType::U64);
        let step = Literal::from_bits(DType::U64, op.step.cast_unsigned());
        let step = builder.filled(step, Shape::SCALAR);
        let over = builder.binary(BinaryOp::Rem, span, step);
        let over = builder.cast(over, DType::I64);
        builder.binary(BinaryOp::Sub, most, over)
    }

    /// What the loop carries once the front of an iteration is done: what that has advanced, and what its back takes.
    fn carried(&self, front: &Map) -> Vec<Value> {
        let advanced = self.advanced.iter().map(|&at| self.yielded[at]);
        let crossing = self.crossing.iter().copied();
        let values = advanced.chain(crossing).map(|value| mapped(front, value));
        values.collect()
    }

    /// From what the loop carries: what the back of the iteration takes, and the carried values of the next one, as far as
    /// the front has advanced them.
    fn of_back(&self, index: Value, carried: &[Value]) -> (Map, Vec<Value>) {
        let (advanced, rest) = carried.split_at(self.advanced.len());
        let crossing = self.crossing.iter().copied();
        let mut map: Map = crossing.zip(rest.iter().copied()).collect();
        map.insert(self.parameters[0], index);
        let mut next = self.op.init.clone();
        for (&at, &value) in self.advanced.iter().zip(advanced) {
            next[at] = value;
        }
        (map, next)
    }
}

/// Gives values the layouts of others.
fn place_as(func: &mut Func, values: &[Value], others: &[Value]) {
    for (&value, &other) in values.iter().zip(others) {
        let layout = func.layout(other);
        func.set_layout(value, layout);
    }
}

fn mapped(map: &Map, value: Value) -> Value {
    map.get(&value).copied().unwrap_or(value)
}

/// Appends copies of instructions.
fn append(builder: &mut Builder, insts: &[Inst], map: &mut Map) {
    let region = builder.region();
    let func = builder.func_mut();
    let copied = duplicate(func, insts, map);
    func.region_mut(region).insts.extend(copied);
}

/// The body of a loop.
struct Body<'a> {
    func: &'a Func,
    insts: Vec<Inst>,
    parameters: Vec<Value>,
    yielded: Vec<Value>,
    definitions: BTreeMap<Value, Inst>,
}

/// The front of an iteration.
#[derive(Default)]
struct Front {
    insts: BTreeSet<Inst>,
    advanced: BTreeSet<usize>,
    /// Its products.
    products: Vec<Inst>,
}

impl<'a> Body<'a> {
    fn new(func: &'a Func, op: &op::For) -> Option<Self> {
        let (_, insts) = func.region(op.body).insts.split_last()?;
        let defined = insts.iter().flat_map(|&inst| {
            let results = func.inst(inst).results.iter();
            results.map(move |&result| (result, inst))
        });
        Some(Self {
            func,
            definitions: defined.collect(),
            insts: insts.to_vec(),
            parameters: func.region(op.body).parameters.clone(),
            yielded: func.yielded(op.body).to_vec(),
        })
    }

    /// The products and what they take, up to the second ones; `None` where there are none, or where the first products
    /// of an iteration follow from the second ones of the one before.
    fn front(&self) -> Option<Front> {
        let mut front = Front::default();
        let mut seconds = Vec::new();
        for &inst in &self.insts {
            if let Op::Dot(op) = self.func.op(inst)
                && self.slice(op.a).iter().any(|&it| self.is_product(it))
            {
                self.close(&mut front, op.a);
                seconds.push((inst, op.accumulator));
            }
        }
        let products = self.insts.iter().copied();
        let products = products.filter(|&it| self.is_product(it));
        let (first, rest): (Vec<Inst>, Vec<Inst>) =
            products.partition(|it| front.insts.contains(it));
        let mut all = first.iter().chain(&rest);
        let grouped = all.all(|&it| is_grouped(self.func, it));
        let apart = rest.iter().eq(seconds.iter().map(|(inst, _)| inst));
        front.products = first;
        for &(_, sums) in &seconds {
            front.insts.extend(self.slice(sums));
        }
        let ends = rest.iter().all(|it| !front.insts.contains(it));
        (!seconds.is_empty() && apart && grouped && ends).then_some(front)
    }

    fn divide(&self, inst: Inst, op: &op::For, front: &Front) -> Rotation {
        let (crossing, own) = self.crossing(front);
        let insts = &self.insts;
        let last = insts.iter().rposition(|it| front.products.contains(it));
        let (begins, ends) = insts.split_at(last.map_or(0, |last| last + 1));
        // What the back of the iteration before decides comes behind it.
        let (mut first, mut rest) = (Vec::new(), Vec::new());
        for &inst in begins.iter().filter(|it| front.insts.contains(it)) {
            let slice = self.slice_of(inst);
            let late = slice.iter().any(|&it| self.takes_other(it, front));
            if late { &mut rest } else { &mut first }.push(inst);
        }
        rest.extend(ends.iter().filter(|it| front.insts.contains(it)));
        let back = insts.iter().copied();
        let back = back.filter(|it| !front.insts.contains(it) || own.contains(it));
        let back: Vec<Inst> = back.collect();
        let mut loads = BTreeSet::new();
        for &inst in &back {
            let mut taken = self.slice_of(inst);
            let is_box = matches!(self.func.op(inst), Op::LoadBox(_));
            let is_box = is_box && taken.remove(&inst) && !self.takes_carried(inst);
            if is_box && taken.iter().all(|&it| self.follows_from_index(it)) {
                loads.extend(taken);
                loads.insert(inst);
            }
        }
        Rotation {
            inst,
            op: op.clone(),
            parameters: self.parameters.clone(),
            yielded: self.yielded.clone(),
            begins: first,
            ends: rest,
            loads: back
                .iter()
                .copied()
                .filter(|it| loads.contains(it))
                .collect(),
            back,
            advanced: front.advanced.clone(),
            crossing,
        }
    }

    /// What the back takes of its iteration, and those instructions of the front that the back computes again, since they
    /// follow from the index alone.
    fn crossing(&self, front: &Front) -> (Vec<Value>, BTreeSet<Inst>) {
        let rest = self.insts.iter().filter(|it| !front.insts.contains(it));
        let mut taken: Vec<Value> = rest.flat_map(|&it| self.operands(it)).collect();
        let carried = self.yielded.iter().enumerate();
        let carried = carried.filter(|(at, _)| !front.advanced.contains(at));
        taken.extend(carried.map(|(_, &value)| value));
        let (mut crossing, mut own) = (BTreeSet::new(), BTreeSet::new());
        for value in taken {
            let made = self.definitions.get(&value);
            let in_front = made.is_some_and(|inst| front.insts.contains(inst));
            let slice = self.slice(value);
            if in_front && slice.iter().all(|&it| self.follows_from_index(it)) {
                own.extend(slice);
            } else if in_front || self.position(value).is_some() {
                crossing.insert(value);
            }
        }
        (crossing.into_iter().collect(), own)
    }

    /// What a value follows from in an iteration.
    fn slice(&self, value: Value) -> BTreeSet<Inst> {
        let defined = self.definitions.get(&value);
        defined.map_or_else(BTreeSet::new, |&inst| self.slice_of(inst))
    }

    /// An instruction and what it follows from in an iteration.
    fn slice_of(&self, inst: Inst) -> BTreeSet<Inst> {
        let mut found = BTreeSet::from([inst]);
        let mut pending = vec![inst];
        while let Some(inst) = pending.pop() {
            let defined = self.operands(inst).into_iter();
            let defined = defined.filter_map(|it| self.definitions.get(&it).copied());
            pending.extend(defined.filter(|&it| found.insert(it)));
        }
        found
    }

    /// Adds what a value follows from, in this iteration and those before.
    fn close(&self, front: &mut Front, value: Value) {
        let mut pending = vec![value];
        while let Some(value) = pending.pop() {
            if let Some(&inst) = self.definitions.get(&value) {
                if front.insts.insert(inst) {
                    pending.extend(self.operands(inst));
                }
            } else if let Some(at) = self.position(value)
                && front.advanced.insert(at)
            {
                pending.push(self.yielded[at]);
            }
        }
    }

    /// Which of the carried values a value is.
    fn position(&self, value: Value) -> Option<usize> {
        let carried = self.parameters[1..].iter();
        carried.copied().position(|it| it == value)
    }

    /// What an instruction and those in it use.
    fn operands(&self, inst: Inst) -> Vec<Value> {
        let op = self.func.op(inst);
        let mut operands = op.operands();
        for region in op.regions() {
            self.func.walk(region, &mut |it| {
                operands.extend(self.func.op(it).operands())
            });
        }
        operands
    }

    /// Whether an instruction takes a carried value that the front does not advance.
    fn takes_other(&self, inst: Inst, front: &Front) -> bool {
        let positions = self.operands(inst).into_iter();
        let mut positions = positions.filter_map(|value| self.position(value));
        positions.any(|at| !front.advanced.contains(&at))
    }

    fn is_product(&self, inst: Inst) -> bool {
        matches!(self.func.op(inst), Op::Dot(_))
    }

    /// Whether an instruction is arithmetic on what the index, and no carried value, decides.
    fn follows_from_index(&self, inst: Inst) -> bool {
        let cheap = self.func.op(inst).regions().is_empty() && self.func.is_pure(inst);
        cheap && !self.is_product(inst) && !self.takes_carried(inst)
    }

    fn takes_carried(&self, inst: Inst) -> bool {
        let mut operands = self.operands(inst).into_iter();
        operands.any(|value| self.position(value).is_some())
    }
}
