//! Lets groups of warps multiply `f32` as TF32 where it lies: their tensor cores read the upper bits alone, and take a NaN for
//! an infinity if all bits that tell them apart are below.
//!
//! Either makes each sum that it takes part in infinite or NaN, which it stays. So where all sums of a loop are finite, no
//! operand was NaN. Where one is not, a second loop looks through the operands, and sums of a row or a column with NaN
//! are NaN.

use std::collections::{BTreeMap, BTreeSet};

use super::boxes::{Share, shared_by_groups};
use super::duplicate::duplicate;
use crate::builder::Builder;
use crate::ir::op::Control;
use crate::ir::{
    Access, Axis, BinaryOp, Cache, CompareOp, DType, Func, Inst, Literal, Op, Order, Precision,
    Region, Shape, Stage, Type, Value, op,
};
use crate::target::Target;

/// Makes products of `f32` by Hopper's tensor cores such of [`Precision::Cut`], where groups of so many warps share
/// them, a loop adds them up, and its operands can be loaded again.
pub fn cut_products(func: &mut Func, target: &Target, share: Share) {
    if !target.gpu.mma.contains(&Precision::Cut) {
        return;
    }
    let loops = func.all_regions().into_iter().flat_map(|region| {
        let insts = &func.region(region).insts;
        insts.iter().map(move |&inst| (region, inst))
    });
    let loops: Vec<(Region, Inst)> = loops.collect();
    let found: Vec<Sum> = loops
        .into_iter()
        .filter_map(|(region, inst)| Sum::find(func, region, inst, share))
        .collect();
    if found.is_empty() {
        return;
    }
    func.keep_sites();
    for sum in found {
        sum.apply(func);
    }
}

/// What a loop adds up by the one product in it.
struct Sum {
    /// The region of the loop.
    region: Region,
    around: Inst,
    dot: Inst,
    /// Which of the carried values it is.
    position: usize,
}

impl Sum {
    fn find(func: &Func, region: Region, around: Inst, share: Share) -> Option<Self> {
        let Some(Control::For(op)) = func.op(around).control() else {
            return None;
        };
        let (_, own) = func.region(op.body).insts.split_last()?;
        let mut dots = own.iter().copied();
        let dot = dots.find(|&inst| is_tf32(func, inst))?;
        let product = cut(func, dot)?;
        let parameters = &func.region(op.body).parameters[1..];
        let position = parameters
            .iter()
            .position(|&it| it == product.accumulator)?;
        let sum = func.inst(dot).results[0];
        let carried = func.yielded(op.body)[position] == sum;
        let once = [product.accumulator, sum].map(|value| uses(func, value) == 1);
        let rest = own.iter().filter(|&&inst| inst != dot);
        let again = rest
            .clone()
            .all(|&inst| func.is_pure(inst) || is_read(func, inst));
        let alone = rest
            .clone()
            .all(|&inst| !matches!(func.op(inst), Op::Dot(_)));
        let shared = shared_by_groups(
            func,
            &product,
            share.warps.trailing_zeros(),
            share.shared_bytes,
        );
        (carried && once == [true; 2] && again && alone && shared.is_some()).then_some(Self {
            region,
            around,
            dot,
            position,
        })
    }

    fn apply(&self, func: &mut Func) {
        let product = cut(func, self.dot);
        let product =
            product.expect("broken invariant: the product of a sum is the one that was found");
        func.inst_mut(self.dot).op = Op::Dot(product);
        let sums = func.inst(self.around).results[self.position];
        let loc = func.inst(self.around).loc.clone();
        let insts = &mut func.region_mut(self.region).insts;
        let at = insts.iter().position(|&inst| inst == self.around);
        let rest = insts.split_off(at.map_or(insts.len(), |at| at + 1));
        let before = insts.len();
        let owned = std::mem::replace(func, Func::new("", Stage::Block));
        let mut builder = Builder::resume(owned);
        builder.set_loc(loc);
        builder.enter(self.region);
        let finite = all_finite(&mut builder, sums);
        let told = builder.if_else(
            finite,
            |_| vec![sums],
            |builder| vec![self.with_nan(builder, sums)],
        )[0];
        *func = builder
            .finish()
            .expect("broken invariant: sums are as they were before");
        let mut own = BTreeSet::new();
        for &inst in &func.region(self.region).insts[before..] {
            own.insert(inst);
            for region in func.op(inst).regions() {
                func.walk(region, &mut |it| {
                    own.insert(it);
                });
            }
        }
        func.region_mut(self.region).insts.extend(rest);
        for inst in func.all_insts() {
            if !own.contains(&inst) {
                let op = &mut func.inst_mut(inst).op;
                op.map_operands(&mut |value| if value == sums { told } else { value });
            }
        }
    }

    /// The sums, NaN where an operand is.
    fn with_nan(&self, builder: &mut Builder, sums: Value) -> Value {
        let shape = builder.ty(sums).shape;
        let [rows, columns] = self.nan(builder);
        let nan = builder.constant_like(sums, f64::NAN);
        // One after the other, so that lanes exchange a row and a column and not a tile.
        [(rows, 1), (columns, 0)]
            .into_iter()
            .fold(sums, |sums, (x, axis)| {
                let x = any(builder, x, axis);
                let axis = Axis(axis as u8);
                let x = builder.value(Op::ExpandDims(op::ExpandDims { x, axis }));
                let all = builder.ty(x).with_shape(shape);
                let found = builder.declared(Op::Broadcast(op::Broadcast { x }), all);
                builder.select(found, nan, sums)
            })
    }

    /// Where an operand of the loop is NaN, by its place in a tile.
    fn nan(&self, builder: &mut Builder) -> [Value; 2] {
        let again = self.again(builder.func());
        let again = again.expect("broken invariant: the loop of a sum is the one that was found");
        let none = again.operands.map(|operand| {
            let shape: Shape = builder.ty(operand).shape;
            builder.filled(Literal::from_bits(DType::Bool, 0), shape)
        });
        let init = [&again.around.init[..], &none].concat();
        let own = again.parameters[..1].iter().chain(&init);
        let types: Vec<Type> = own.map(|&value| builder.ty(value)).collect();
        let body = builder.region_with(&types, |builder, values| {
            let (parameters, before) = values.split_at(again.parameters.len());
            let pairs = again.parameters.iter().zip(parameters);
            let mut map: BTreeMap<Value, Value> = pairs.map(|(&from, &to)| (from, to)).collect();
            let region = builder.region();
            let copied = duplicate(builder.func_mut(), &again.insts, &mut map);
            builder.func_mut().region_mut(region).insts.extend(copied);
            let mapped = |value: Value| map.get(&value).copied().unwrap_or(value);
            let found = again
                .operands
                .iter()
                .zip(before)
                .map(|(&operand, &before)| {
                    let operand = mapped(operand);
                    let is_nan = builder.compare(CompareOp::Ne, operand, operand);
                    builder.binary(BinaryOp::Or, before, is_nan)
                });
            let found: Vec<Value> = found.collect();
            let yielded = again.yielded.iter().map(|&it| mapped(it));
            yielded.chain(found).collect()
        });
        let op = op::For {
            init,
            stages: 0,
            body,
            ..again.around
        };
        let inst = builder.emit(Op::For(op), &[]);
        let results = builder.results(inst);
        [results[results.len() - 2], results[results.len() - 1]]
    }

    /// The loop without its sum.
    fn again(&self, func: &Func) -> Option<Again> {
        let (Some(Control::For(around)), Op::Dot(product)) =
            (func.op(self.around).control(), func.op(self.dot))
        else {
            return None;
        };
        let region = func.region(around.body);
        let (_, insts) = region.insts.split_last()?;
        let insts = insts.iter().copied().filter(|&inst| inst != self.dot);
        let without = |values: &[Value], first: usize| {
            let mut kept = values.to_vec();
            kept.remove(first + self.position);
            kept
        };
        Some(Again {
            insts: insts.collect(),
            parameters: without(&region.parameters, 1),
            yielded: without(func.yielded(around.body), 0),
            operands: [product.a, product.b],
            around: op::For {
                init: without(&around.init, 0),
                ..around.clone()
            },
        })
    }
}

/// A loop that a copy goes through once more.
struct Again {
    around: op::For,
    insts: Vec<Inst>,
    /// The index, and what is carried.
    parameters: Vec<Value>,
    yielded: Vec<Value>,
    /// Those of the product.
    operands: [Value; 2],
}

/// A product of this instruction that does not look for NaN.
fn cut(func: &Func, inst: Inst) -> Option<op::Dot> {
    let Op::Dot(product) = func.op(inst).clone() else {
        return None;
    };
    Some(op::Dot {
        precision: Precision::Cut,
        ..product
    })
}

fn is_tf32(func: &Func, inst: Inst) -> bool {
    let Op::Dot(dot) = func.op(inst) else {
        return false;
    };
    dot.precision == Precision::Hopper && func.ty(dot.a).dtype() == Some(DType::F32)
}

/// Whether an instruction loads what no program of the kernel writes.
fn is_read(func: &Func, inst: Inst) -> bool {
    let (base, cache) = if let Op::Load(op) = func.op(inst) {
        (op.base, op.cache)
    } else if let Op::LoadBox(op) = func.op(inst) {
        (op.base, op.cache)
    } else {
        return false;
    };
    let parameter = func.parameter_index(base);
    let only_read = parameter.is_some_and(|it| func.parameters[it].access == Access::Read);
    only_read && cache != Some(Cache::Volatile)
}

fn uses(func: &Func, value: Value) -> usize {
    let mut count = 0;
    for inst in func.all_insts() {
        func.op(inst)
            .visit_operands(&mut |it| count += usize::from(it == value));
    }
    count
}

fn all_finite(builder: &mut Builder, sums: Value) -> Value {
    let size = builder.abs(sums);
    let infinity = builder.constant_like(sums, f64::INFINITY);
    let is_finite = builder.compare(CompareOp::Lt, size, infinity);
    let rows = reduced(builder, BinaryOp::And, is_finite, 1);
    reduced(builder, BinaryOp::And, rows, 0)
}

fn any(builder: &mut Builder, x: Value, axis: usize) -> Value {
    reduced(builder, BinaryOp::Or, x, axis)
}

fn reduced(builder: &mut Builder, op: BinaryOp, x: Value, axis: usize) -> Value {
    let combine =
        |builder: &mut Builder, a: &[Value], b: &[Value]| vec![builder.binary(op, a[0], b[0])];
    builder.reduce(&[x], axis, Order::Tree, combine)[0]
}
