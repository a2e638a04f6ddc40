//! Runs a definition on one number.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::ops::RangeInclusive;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::{Domain, define, define_exact};
use crate::builder::Builder;
use crate::entity::Entity;
use crate::ir::{Approximate, DType, Func, Function, Inst, Literal, Op, Stage, Value, op};
use crate::semantics::enclosure::{Enclosure, enclosure};
use crate::semantics::{canonical, cast, elementwise};

/// The fewest numbers that a thread is begun for.
const LEAST_NUMBERS: u64 = 4096;

/// The definition of a derived function of a data type, ready to run on numbers.
#[derive(Debug)]
pub struct Definition {
    func: Func,
    result: Value,
    /// What the result depends on, constants aside, in order.
    steps: Vec<Inst>,
    /// For each value its bits, as far as they are known before the run.
    start: Vec<u64>,
}

impl Definition {
    /// The definition of `op` for the float type `dtype`.
    pub fn new(op: Function, dtype: DType) -> Self {
        Self::within(op, dtype, Domain::ANYTHING)
    }

    /// The definition for arguments of a domain.
    pub fn within(op: Function, dtype: DType, domain: Domain) -> Self {
        Self::of(op.mnemonic(), dtype, &|builder, x| {
            define(builder, op, x, domain)
        })
    }

    /// What `define` makes of a number of type `dtype`: elementwise ops and constants alone.
    pub(crate) fn of(
        name: &str,
        dtype: DType,
        define: &dyn Fn(&mut Builder, Value) -> Value,
    ) -> Self {
        let mut builder = Builder::new(name, Stage::Block);
        let x = builder.scalar_parameter("x", dtype);
        let result = define(&mut builder, x);
        let func = builder
            .finish()
            .expect("broken invariant: definitions of float types are well typed");
        let mut live = vec![false; func.value_count()];
        live[result.index()] = true;
        let mut steps = Vec::new();
        let mut start = vec![0; func.value_count()];
        for &inst in func.region(func.body()).insts.iter().rev() {
            let data = func.inst(inst);
            let defined = data.results[0].index();
            if let Op::Constant(op::Constant { value }) = &data.op {
                start[defined] = value.bits;
            } else if live[defined] {
                let mark = &mut |operand: Value| live[operand.index()] = true;
                data.op.visit_operands(mark);
                steps.push(inst);
            }
        }
        steps.reverse();
        Self {
            func,
            result,
            steps,
            start,
        }
    }

    /// The function of one parameter; its last value is the result.
    pub fn func(&self) -> &Func {
        &self.func
    }

    /// The function at `x`.
    pub fn evaluate(&self, x: u64) -> u64 {
        self.evaluate_in(x, &mut self.start.clone())
    }

    /// The function at `x`, with the values of another run.
    fn evaluate_in(&self, x: u64, values: &mut [u64]) -> u64 {
        let func = &self.func;
        values[func.arguments()[0].index()] = x;
        for &inst in &self.steps {
            let data = func.inst(inst);
            let result = data.results[0];
            let at = |value: Value| self.literal(value, values[value.index()]);
            let op = data.op.elementwise();
            let op = op.expect("broken invariant: definitions hold elementwise ops");
            values[result.index()] = elementwise(op, at(result).dtype, &at);
        }
        values[self.result.index()]
    }

    fn literal(&self, value: Value, bits: u64) -> Literal {
        let dtype = self.func.ty(value).dtype();
        let dtype = dtype.expect("broken invariant: definitions hold numbers");
        Literal::from_bits(dtype, bits)
    }

    /// Whether it has the bits of `definition` at every number of its argument's type, on every device whose
    /// approximate functions are as near as they are said to be. All cores look, each at a part of the numbers.
    pub(crate) fn is_certainly(&self, definition: &Self) -> bool {
        let last = self.literal(self.func.arguments()[0], 0).dtype.mask();
        let cores = thread::available_parallelism().map_or(1, NonZero::get) as u64;
        let each = (last / cores + 1).max(LEAST_NUMBERS);
        let holds = AtomicBool::new(true);
        thread::scope(|scope| {
            for first in (0..=last).step_by(each as usize) {
                let numbers = first..=last.min(first + (each - 1));
                let look = {
                    let (numbers, holds) = (numbers.clone(), &holds);
                    move || self.compare(definition, numbers, holds)
                };
                // Where the system gives no thread, this one looks.
                if thread::Builder::new().spawn_scoped(scope, look).is_err() {
                    self.compare(definition, numbers, &holds);
                }
            }
        });
        holds.into_inner()
    }

    /// The same for some numbers: ends as soon as it does not hold.
    fn compare(&self, definition: &Self, numbers: RangeInclusive<u64>, holds: &AtomicBool) {
        let func = &self.func;
        let known = |value: Value| Enclosure::of(self.literal(value, self.start[value.index()]));
        let mut held: Vec<Option<Enclosure>> = func.values().map(|it| Some(known(it))).collect();
        let mut values = definition.start.clone();
        let argument = func.arguments()[0];
        let result = self.literal(self.result, 0).dtype;
        for x in numbers {
            held[argument.index()] = Some(Enclosure::of(self.literal(argument, x)));
            for &inst in &self.steps {
                let data = func.inst(inst);
                let result = data.results[0];
                let to = self.literal(result, 0).dtype;
                held[result.index()] = enclosure(&data.op, to, &|value| held[value.index()]);
            }
            let number = held[self.result.index()].and_then(Enclosure::number);
            let expected = canonical(result, definition.evaluate_in(x, &mut values));
            let same = number.is_some_and(|number| canonical(result, number.bits) == expected);
            if !same {
                holds.store(false, Ordering::Relaxed);
            }
            if !holds.load(Ordering::Relaxed) {
                return;
            }
        }
    }
}

/// `op` at one number of a float type, by its definition.
pub fn function(op: Function, dtype: DType, x: u64) -> u64 {
    let compute = dtype.compute();
    let definition = FUNCTIONS.get(&(op, compute));
    let definition = definition.expect("broken invariant: a function takes floats");
    cast(compute, dtype, definition.evaluate(cast(dtype, compute, x)))
}

/// The exact function that `op` approximates, at one number of a type that it takes: a device's
/// result is near it.
pub fn approximate(op: Approximate, dtype: DType, x: u64) -> u64 {
    let definition = APPROXIMATED.get(&(op, dtype));
    let definition = definition.expect("broken invariant: an approximate function takes `f32`");
    definition.evaluate(x)
}

/// The definitions that need no cast.
static FUNCTIONS: LazyLock<BTreeMap<(Function, DType), Definition>> = LazyLock::new(|| {
    let every = Function::ALL.iter();
    let pairs = every.flat_map(|&op| [DType::F32, DType::F64].map(|dtype| (op, dtype)));
    pairs
        .filter(|(op, dtype)| op.accepts().admits(*dtype))
        .map(|(op, dtype)| ((op, dtype), Definition::new(op, dtype)))
        .collect()
});

/// The definitions of what approximate functions approximate.
static APPROXIMATED: LazyLock<BTreeMap<(Approximate, DType), Definition>> = LazyLock::new(|| {
    let every = Approximate::ALL.iter();
    let definition = |op: Approximate, dtype| {
        Definition::of(op.mnemonic(), dtype, &|builder, x| {
            define_exact(builder, op, x, Domain::ANYTHING)
        })
    };
    every
        .flat_map(|&op| {
            let admitted = DType::ALL
                .iter()
                .filter(move |&&it| op.accepts().admits(it));
            admitted.map(move |&dtype| ((op, dtype), definition(op, dtype)))
        })
        .collect()
});
