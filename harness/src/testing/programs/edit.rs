//! Changes to functions that shrinking and planted faults make.

use exactile_core::ir::{BinaryOp, DType, Func, Inst, Literal, Op, Region, Type, Value, op};

/// Removes these instructions from their regions.
pub(in crate::testing) fn remove(func: &mut Func, insts: &[Inst]) {
    for region in regions(func) {
        func.region_mut(region)
            .insts
            .retain(|inst| !insts.contains(inst));
    }
}

fn regions(func: &Func) -> Vec<Region> {
    let mut regions = vec![func.body()];
    for inst in func.all_insts() {
        regions.extend(func.op(inst).regions());
    }
    regions
}

/// Puts the instructions `new` before `inst`.
pub(in crate::testing) fn insert_before(func: &mut Func, inst: Inst, new: &[Inst]) {
    for region in regions(func) {
        let insts = &mut func.region_mut(region).insts;
        if let Some(at) = insts.iter().position(|&it| it == inst) {
            insts.splice(at..at, new.iter().copied());
            return;
        }
    }
}

/// Uses `values` wherever the results of `inst` are used, and removes `inst`.
pub(in crate::testing) fn replace(func: &mut Func, inst: Inst, values: &[Value]) {
    let results = func.inst(inst).results.clone();
    for user in func.all_insts() {
        func.inst_mut(user).op.map_operands(&mut |value| {
            let index = results.iter().position(|&result| result == value);
            index
                .and_then(|index| values.get(index).copied())
                .unwrap_or(value)
        });
    }
    remove(func, &[inst]);
}

/// A scalar constant before `inst`.
pub(in crate::testing) fn constant_before(
    func: &mut Func,
    inst: Inst,
    dtype: DType,
    value: i64,
) -> Value {
    let value = Literal::from_bits(dtype, value.cast_unsigned() & dtype.mask());
    let constant = Op::Constant(op::Constant { value });
    add_before(func, inst, constant, Type::scalar(dtype))
}

/// A scalar integer and a number more, before `inst`.
pub(in crate::testing) fn added_before(func: &mut Func, inst: Inst, lhs: Value, by: i64) -> Value {
    let ty = func.ty(lhs);
    let rhs = constant_before(func, inst, ty.dtype().unwrap_or(DType::I32), by);
    let op = BinaryOp::Add;
    add_before(func, inst, Op::Binary(op::Binary { op, lhs, rhs }), ty)
}

/// A new instruction with one result before `inst`.
pub(in crate::testing) fn add_before(func: &mut Func, inst: Inst, op: Op, ty: Type) -> Value {
    let loc = func.inst(inst).loc.clone();
    let new = func.add_inst(op, &[ty], loc);
    insert_before(func, inst, &[new]);
    func.inst(new).results[0]
}
