//! Facts of random functions, held against what the functions compute.

mod generate;

use std::collections::BTreeMap;

use generate::generate;

use super::{Fact, Indices};
use crate::ir::op::Control;
use crate::ir::{DType, Func, Inst, Literal, Op, Region, Value, unflatten};
use crate::passes::linear::Linear;
use crate::semantics::elementwise;
use crate::text::parse;

/// Runs a function of indices and holds each fact against each number.
struct Machine<'a> {
    func: &'a Func,
    indices: Indices,
    numbers: BTreeMap<Value, Vec<u64>>,
    /// How much facts say: the number of axes with runs.
    runs: usize,
}

impl Machine<'_> {
    fn region(&mut self, region: Region) -> Vec<Vec<u64>> {
        for &inst in &self.func.region(region).insts {
            self.inst(inst);
        }
        let yielded = self.func.yielded(region).iter();
        let yielded = yielded.map(|value| self.numbers[value].clone()).collect();
        // No fact may be of what is out of scope.
        let data = self.func.region(region);
        let results = data
            .insts
            .iter()
            .flat_map(|&inst| &self.func.inst(inst).results);
        for value in data.parameters.iter().chain(results) {
            self.numbers.remove(value);
        }
        yielded
    }

    fn set(&mut self, value: Value, numbers: Vec<u64>) {
        self.numbers.insert(value, numbers);
        let fact = self.indices.fact(value).clone();
        let claim = self.wrong(value, &fact);
        assert_eq!(claim, None, "{value:?}: {fact:?}\n{}", self.func);
        self.runs += fact.axes.iter().filter(|along| along.run() > 0).count();
    }

    fn call(&mut self, region: Region, arguments: Vec<Vec<u64>>) -> Vec<Vec<u64>> {
        let parameters = self.func.region(region).parameters.clone();
        for (parameter, numbers) in parameters.into_iter().zip(arguments) {
            self.set(parameter, numbers);
        }
        self.region(region)
    }

    fn control(&mut self, control: Control<'_>) -> Vec<Vec<u64>> {
        let all = |this: &Self, values: &[Value]| -> Vec<Vec<u64>> {
            values
                .iter()
                .map(|value| this.numbers[value].clone())
                .collect()
        };
        match control {
            Control::If(op) => {
                let holds = self.numbers[&op.condition][0] != 0;
                self.region(if holds { op.on_true } else { op.on_false })
            }
            Control::For(op) => {
                let mut carried = all(self, &op.init);
                let [lower, upper] = [op.lower, op.upper].map(|it| self.numbers[&it][0] as i64);
                for index in (lower..upper).step_by(op.step as usize) {
                    carried.insert(0, vec![index as u64]);
                    carried = self.call(op.body, carried);
                }
                carried
            }
            Control::While(op) => {
                let mut carried = all(self, &op.init);
                loop {
                    let mut tested = self.call(op.before, carried);
                    if tested.remove(0)[0] == 0 {
                        return tested;
                    }
                    carried = self.call(op.body, tested);
                }
            }
        }
    }

    fn inst(&mut self, inst: Inst) {
        let (func, op) = (self.func, self.func.op(inst));
        if let Some(control) = op.control() {
            let results = self.control(control);
            for (&result, numbers) in func.inst(inst).results.iter().zip(results) {
                self.set(result, numbers);
            }
            return;
        }
        let Some(&result) = func.inst(inst).results.first() else {
            return;
        };
        let ty = func.ty(result);
        let count = ty.shape.elements();
        let numbers = if let Some((x, map)) = func.view(inst) {
            let from = &self.numbers[&x];
            let at = |flat| from[map.apply(flat) as usize];
            (0..count as u64).map(at).collect()
        } else if let Op::Constant(op) = op {
            vec![op.value.bits; count]
        } else if let Op::Splat(op) = op {
            vec![self.numbers[&op.x][0]; count]
        } else if let Op::Arange(op) = op {
            (op.start..op.end).map(i64::cast_unsigned).collect()
        } else {
            let op = op.elementwise().expect("is elementwise");
            let element = |at: usize| {
                let literal = |value: Value| {
                    let dtype = func.ty(value).dtype().expect("is a number");
                    Literal::from_bits(dtype, self.numbers[&value][at])
                };
                elementwise(op, ty.dtype().expect("is a number"), &literal)
            };
            (0..count).map(element).collect()
        };
        self.set(result, numbers);
    }

    fn integer(&self, value: Value, at: usize) -> i128 {
        let dtype = self.func.ty(value).dtype().expect("is a number");
        let literal = Literal::from_bits(dtype, self.numbers[&value][at]);
        literal.integer().expect("is an integer")
    }

    fn evaluate(&self, sum: &Linear) -> i128 {
        let product = |(factors, times): (&[Value], i64)| {
            let factors = factors.iter().map(|&factor| self.integer(factor, 0));
            factors.fold(i128::from(times), |all, factor| {
                all.wrapping_mul(factor) as i64 as i128
            })
        };
        sum.terms().map(product).fold(0, i128::wrapping_add)
    }

    /// What a fact says and is not so.
    fn wrong(&self, value: Value, fact: &Fact) -> Option<String> {
        let ty = self.func.ty(value);
        let dtype = ty.dtype().expect("is a number");
        let bits = dtype.bits();
        let numbers: Vec<i128> = (0..ty.shape.elements())
            .map(|at| self.integer(value, at))
            .collect();
        let divides = |divisor: u32, number: i128| number.trailing_zeros() >= divisor.min(bits);
        let same = |a: i128, b: i128| divides(bits, a.wrapping_sub(b));
        let range = fact.range.expect("is an integer");
        for &number in &numbers {
            if !(range.low..=range.high).contains(&number) || !divides(fact.divisor, number) {
                return Some(format!("{number} is out of range or not divided"));
            }
        }
        if let Some(origin) = &fact.origin
            && !same(numbers[0], self.evaluate(origin))
        {
            return Some("the origin".into());
        }
        for (axis, along) in fact.axes.iter().enumerate() {
            let stride = ty.shape.strides()[axis];
            for (flat, &number) in numbers.iter().enumerate() {
                let at = unflatten(&ty.shape, flat)[axis];
                let later = at & ((1 << along.run()) - 1);
                let first = numbers[flat - later * stride];
                let expected = first.wrapping_add(self.evaluate(along.step()) * later as i128);
                if !same(number, expected) || !divides(along.divisor_of_runs(along.run()), first) {
                    return Some(format!("axis {axis} at {flat}: {number} from {first}"));
                }
                let falls = at & ((1 << along.falling()) - 1) > 0;
                if dtype == DType::Bool && falls && numbers[flat - stride] < number {
                    return Some(format!("axis {axis} rises at {flat}"));
                }
            }
        }
        None
    }
}

#[test]
fn facts_hold_for_every_number() {
    let mut runs = 0;
    for seed in 0..12_000 {
        let (func, arguments) = generate(seed);
        let mut machine = Machine {
            func: &func,
            indices: Indices::of(&func),
            numbers: BTreeMap::new(),
            runs: 0,
        };
        for (&argument, bits) in func.arguments().iter().zip(arguments) {
            machine.set(argument, vec![bits]);
        }
        machine.region(func.body());
        runs += machine.runs;
    }
    assert!(runs > 100_000, "facts say little: {runs}");
}

/// The runs along the last axis of `%r`: those that count up, equal ones, and what divides their firsts.
fn runs(body: &str) -> [u32; 3] {
    let source = format!(
        "func @f block (%y: ptr<i64> write, %n: i64, %m: i32) {{
           %i = arange start=0, end=64 : tile<64xi64>
           %p = program_id axis=0 : i64
           %block = constant value=i64(64) : i64
           %start = mul %p, %block : i64
           %s = splat %start : tile<64xi64>
           %at = add %s, %i : tile<64xi64>
           %four = constant value=i64(4) : tile<64xi64>
           %sixteen = constant value=i64(16) : tile<64xi64>
           %hundred = constant value=i64(100) : tile<64xi64>
           {body}
           store %y, %r, %r
         }}"
    );
    let func = parse(&source, "test.bir").expect("parses");
    let insts = func.all_insts();
    let offsets = insts.iter().find_map(|&inst| func.op(inst).access());
    let indices = Indices::of(&func);
    let fact = indices.fact(offsets.expect("stores").offsets);
    let along = fact.axes.last().expect("is a tile");
    let divisor = along.divisor_of_runs(along.run());
    [along.counting(), along.equal(), divisor]
}

#[test]
fn grouped_and_wrapped_indices_have_runs() {
    assert_eq!(runs("%r = add %at, %four : tile<64xi64>"), [6, 0, 2]);
    assert_eq!(runs("%r = rem %at, %sixteen : tile<64xi64>"), [4, 0, 40]);
    assert_eq!(runs("%r = div %at, %sixteen : tile<64xi64>"), [0, 4, 0]);
    assert_eq!(runs("%r = and %at, %four : tile<64xi64>"), [0, 2, 2]);
    assert_eq!(runs("%r = rem %at, %hundred : tile<64xi64>"), [0, 0, 0]);
    // Rows of sixteen of a padded matrix.
    let rows = "%q = div %at, %sixteen : tile<64xi64>
                %w = rem %at, %sixteen : tile<64xi64>
                %o = mul %q, %hundred : tile<64xi64>
                %r = add %o, %w : tile<64xi64>";
    assert_eq!(runs(rows), [4, 0, 2]);
    let narrow = "%k = cast %at : tile<64xi32>
                  %v = splat %m : tile<64xi32>
                  %a = add %k, %v : tile<64xi32>
                  %r = cast %a : tile<64xi64>";
    assert_eq!(runs(narrow), [0, 0, 0]);
    let masked = "%k = cast %i : tile<64xi32>
                  %z = constant value=i32(32) : i32
                  %b = mul %m, %z : i32
                  %v = splat %b : tile<64xi32>
                  %a = add %k, %v : tile<64xi32>
                  %r = cast %a : tile<64xi64>";
    assert_eq!(runs(masked), [5, 0, 5]);
}
