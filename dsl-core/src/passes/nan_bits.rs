//! Makes the bits of NaN canonical where something reads them.
//!
//! Machines differ in the bits of NaN, so a read that can tell one NaN from another takes the canonical
//! ones in their place. That is not needed where the float is never NaN, nor where the bits end in a float that only meets what is
//! NaN as well: NaN times anything is NaN. `exp` is so: its scale has its exponent from the bits of
//! the rounded argument, and its polynomial is NaN where the argument is.
//!
//! Tensor cores read the upper bits of an `f32` alone, where some NaN look like infinity.

use std::collections::{BTreeMap, BTreeSet};

use super::float_range::{Ranges, ranges};
use super::rewrite::rewrite;
use crate::builder::Builder;
use crate::entity::{Entity, EntityMap};
use crate::ir::{
    BinaryOp, CompareOp, DType, Func, Inst, Op, Precision, TernaryOp, UnaryOp, Value, op,
};

/// Writes the canonical NaN into every read of a float's bits that can tell one NaN from another.
///
/// No pass may run after it that knows the bits of NaN, as the interpreters do, and so would drop what
/// it adds.
pub fn canonical_reads(func: &mut Func) {
    let (seen, cut) = (seen_reads(func), cut_operands(func));
    if !seen.iter().any(|(_, &seen)| seen) && cut.is_empty() {
        return;
    }
    rewrite(func, &mut |rewriter, inst| {
        if let (Op::Mma(op), Some(&cut)) =
            (rewriter.builder.func().op(inst).clone(), cut.get(&inst))
            && cut.contains(&true)
        {
            let sums = with_canonical_operands(&mut rewriter.builder, op, cut)?;
            return Some(vec![sums]);
        }
        let Op::Bitcast(op::Bitcast { x }) = *rewriter.builder.func().op(inst) else {
            return None;
        };
        let result = rewriter.builder.func().inst(inst).results[0];
        if !seen.get(result).copied().unwrap_or(false) {
            return None;
        }
        let to = rewriter.builder.ty(result).dtype()?;
        let bits = canonical_bits(&mut rewriter.builder, x)?;
        let same = rewriter.builder.ty(bits).dtype() == Some(to);
        Some(vec![if same {
            bits
        } else {
            rewriter.builder.bitcast(bits, to)
        }])
    });
}

/// For steps of tensor cores whether the lowest bits of each operand do not count and it may be NaN.
fn cut_operands(func: &Func) -> BTreeMap<Inst, [bool; 2]> {
    let mut found = BTreeMap::new();
    for inst in func.all_insts() {
        if let Op::Mma(op) = func.op(inst)
            && func.ty(op.a).dtype() == Some(DType::F32)
            && op.precision == Precision::Hopper
        {
            found.insert(inst, [op.a, op.b]);
        }
    }
    if found.is_empty() {
        return BTreeMap::new();
    }
    let ranges = ranges(func);
    let cut = |operands: [Value; 2]| operands.map(|value| ranges.may_be_nan(value));
    found
        .into_iter()
        .map(|(inst, operands)| (inst, cut(operands)))
        .collect()
}

fn with_canonical_operands(builder: &mut Builder, op: op::Mma, cut: [bool; 2]) -> Option<Value> {
    let mut canonical = |x: Value, cut: bool| match cut {
        true => {
            let bits = canonical_bits(builder, x)?;
            Some(builder.bitcast(bits, DType::F32))
        }
        false => Some(x),
    };
    let (a, b) = (canonical(op.a, cut[0])?, canonical(op.b, cut[1])?);
    Some(builder.value(Op::Mma(op::Mma { a, b, ..op })))
}

/// The bits of `x` as an unsigned integer, those of NaN canonical.
fn canonical_bits(builder: &mut Builder, x: Value) -> Option<Value> {
    let dtype = builder.ty(x).dtype()?;
    let format = dtype.format()?;
    let integer = dtype.unsigned();
    let bits = builder.bitcast(x, integer);
    let is_nan = match dtype.is_narrow_float() {
        // Machines compare narrow floats as wider ones, which takes a conversion.
        true => {
            let all_but_sign = builder.bits_like(bits, integer, integer.mask() >> 1);
            let magnitude = builder.and(bits, all_but_sign);
            let overflow = builder.bits_like(bits, integer, format.overflow());
            builder.compare(CompareOp::Gt, magnitude, overflow)
        }
        false => builder.compare(CompareOp::Ne, x, x),
    };
    let canonical = builder.bits_like(bits, integer, dtype.canonical_nan());
    Some(builder.select(is_nan, canonical, bits))
}

/// For each value whether it is the bits of a float that may be NaN and that somebody sees.
fn seen_reads(func: &Func) -> EntityMap<Value, bool> {
    let mut found = EntityMap::filled(func.value_count(), false);
    let reads: Vec<(Value, Value)> = func
        .all_insts()
        .into_iter()
        .filter_map(|inst| match (func.op(inst), &func.inst(inst).results[..]) {
            (Op::Bitcast(op::Bitcast { x }), &[bits]) if is_float(func, *x) => Some((bits, *x)),
            _ => None,
        })
        .collect();
    if reads.is_empty() {
        return found;
    }
    let mut reading = Reading::new(func);
    for (bits, x) in reads {
        found[bits] = reading.ranges.may_be_nan(x) && !reading.is_hidden(bits, x);
    }
    found
}

/// For each value whether it is the bits of a float, and what they become meets only NaN if that is NaN.
pub(super) fn hidden_reads(func: &Func) -> EntityMap<Value, bool> {
    let mut hidden = EntityMap::filled(func.value_count(), false);
    let mut reading = Reading::new(func);
    for inst in func.all_insts() {
        if let (Op::Bitcast(op::Bitcast { x }), &[bits]) =
            (func.op(inst), &func.inst(inst).results[..])
            && is_float(func, *x)
        {
            hidden[bits] = reading.is_hidden(bits, *x);
        }
    }
    hidden
}

fn is_float(func: &Func, value: Value) -> bool {
    func.ty(value).dtype().is_some_and(|dtype| dtype.is_float())
}

struct Reading<'a> {
    func: &'a Func,
    ranges: Ranges,
    definitions: EntityMap<Value, Option<Inst>>,
    users: EntityMap<Value, Vec<Inst>>,
    /// The place of each instruction in program order.
    order: Vec<usize>,
    /// The values by which alone others may be NaN, as far as they were asked for.
    origins: BTreeMap<Value, Value>,
}

impl<'a> Reading<'a> {
    fn new(func: &'a Func) -> Self {
        let mut users: EntityMap<Value, Vec<Inst>> =
            EntityMap::filled(func.value_count(), Vec::new());
        let mut order = vec![0; func.inst_count()];
        for (at, inst) in func.all_insts().into_iter().enumerate() {
            order[inst.index()] = at;
            func.op(inst)
                .visit_operands(&mut |operand| users[operand].push(inst));
        }
        Self {
            order,
            origins: BTreeMap::new(),
            func,
            ranges: ranges(func),
            definitions: func.definitions(),
            users,
        }
    }

    /// Whether `bits`, those of `x`, only reach results that are NaN whenever `x` is.
    fn is_hidden(&mut self, bits: Value, x: Value) -> bool {
        let Some(floats) = self.floats_of(bits) else {
            return false;
        };
        let users = floats.iter().flat_map(|&float| &self.users[float]);
        let last = users.map(|user| self.order[user.index()]).max();
        let source = self.source(x);
        let poisoned = self.poisoned_by(source, last.unwrap_or(0));
        let mut floats = floats.into_iter();
        floats.all(|float| self.meets_only_nan(float, &poisoned))
    }

    /// The floats that integers made of `bits` become, if they become nothing else.
    fn floats_of(&self, bits: Value) -> Option<Vec<Value>> {
        let (mut integers, mut seen) = (vec![bits], BTreeSet::new());
        let mut floats = Vec::new();
        while let Some(integer) = integers.pop() {
            if !seen.insert(integer) {
                continue;
            }
            for &user in &self.users[integer] {
                let results = &self.func.inst(user).results;
                let op = self.func.op(user);
                let defined = if let Op::Raw(op::Raw { op, .. }) = op {
                    Some(op.defined())
                } else if let Op::Binary(op::Binary { op, .. }) = op {
                    Some(*op)
                } else {
                    None
                };
                if defined.is_some_and(is_bitwise) {
                    integers.extend(results);
                } else if matches!(op, Op::Bitcast(_)) && is_float(self.func, results[0]) {
                    floats.push(results[0]);
                } else {
                    return None;
                }
            }
        }
        Some(floats)
    }

    /// Whether every use of `x` is an operation on it and something poisoned.
    fn meets_only_nan(&self, x: Value, poisoned: &BTreeSet<Value>) -> bool {
        self.users[x].iter().all(|&user| {
            let mut others = false;
            let op = self.func.op(user);
            op.visit_operands(&mut |operand| {
                others |= operand != x && poisoned.contains(&operand);
            });
            others && spreads_nan(op)
        })
    }

    /// The value by which alone `x` may be NaN.
    fn source(&mut self, x: Value) -> Value {
        let (mut source, mut way) = (x, vec![x]);
        while let Some(before) = self.doubtful(source) {
            source = before;
            if let Some(&known) = self.origins.get(&source) {
                source = known;
                break;
            }
            way.push(source);
        }
        self.origins
            .extend(way.into_iter().map(|value| (value, source)));
        source
    }

    /// The only operand by which `x` may be NaN, where the operation makes none itself.
    fn doubtful(&self, x: Value) -> Option<Value> {
        let op = self.func.op(self.definitions[x]?);
        if !spreads_nan(op) || self.ranges.makes_nan(op) {
            return None;
        }
        let mut doubtful = Vec::new();
        op.visit_operands(&mut |operand| {
            if self.ranges.may_be_nan(operand) && !doubtful.contains(&operand) {
                doubtful.push(operand);
            }
        });
        match doubtful[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Values that are NaN whenever `source` is; only what instructions before the one at `last` make is
    /// asked for.
    fn poisoned_by(&self, source: Value, last: usize) -> BTreeSet<Value> {
        let mut poisoned = BTreeSet::from([source]);
        let mut values = vec![source];
        while let Some(value) = values.pop() {
            for &user in &self.users[value] {
                let [result] = self.func.inst(user).results[..] else {
                    continue;
                };
                let asked = self.order[user.index()] < last;
                if asked && spreads_nan(self.func.op(user)) && poisoned.insert(result) {
                    values.push(result);
                }
            }
        }
        poisoned
    }
}

/// Whether an op of floats is NaN where any operand is.
const fn spreads_nan(op: &Op) -> bool {
    matches!(
        op,
        Op::Unary(op::Unary {
            op: UnaryOp::Neg | UnaryOp::Abs,
            ..
        }) | Op::Binary(op::Binary {
            op: BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div,
            ..
        }) | Op::Ternary(op::Ternary {
            op: TernaryOp::Fma,
            ..
        })
    )
}

const fn is_bitwise(op: BinaryOp) -> bool {
    matches!(
        op,
        BinaryOp::Shl | BinaryOp::Shr | BinaryOp::And | BinaryOp::Or | BinaryOp::Xor
    )
}

#[cfg(test)]
mod tests {
    use super::{canonical_reads, seen_reads};
    use crate::builder::Builder;
    use crate::ir::{DType, Func, Function, Op, Stage, op};
    use crate::semantics::derived::{Domain, define};
    use crate::text::parse;
    use crate::verify;

    /// How many reads of float bits there are, and how many of those can tell NaNs apart.
    fn reads(func: &Func) -> (usize, usize) {
        let canonical = seen_reads(func);
        let reads = func.all_insts().into_iter().filter_map(|inst| {
            let Op::Bitcast(op::Bitcast { x }) = *func.op(inst) else {
                return None;
            };
            let float = func.ty(x).dtype().is_some_and(DType::is_float);
            float.then_some(canonical[func.inst(inst).results[0]])
        });
        let reads: Vec<bool> = reads.collect();
        (reads.len(), reads.iter().filter(|read| **read).count())
    }

    fn reads_of(source: &str) -> (usize, usize) {
        reads(&parse(source, "test.bir").expect("parses"))
    }

    #[test]
    fn reads_that_tell_nans_apart_get_the_canonical_one() {
        for (float, bits, added) in [
            ("f16", "i16", "and gt select"),
            ("bf16", "u16", "and gt select"),
            ("f32", "u32", "ne select"),
            ("f64", "i64", "ne select"),
        ] {
            let source = format!(
                "func @f block (%x: {float}, %o: ptr<{bits}> write) {{
                   %z = constant value=i64(0) : i64
                   %b = bitcast %x : {bits}
                   store %o, %z, %b
                 }}"
            );
            let mut func = parse(&source, "test.bir").expect("parses");
            canonical_reads(&mut func);
            let func = verify::block(func).expect("is valid");
            let insts = func.all_insts();
            let mnemonics = insts.iter().map(|&inst| func.op(inst).mnemonic());
            let found: Vec<&str> = mnemonics
                .filter(|name| ["and", "gt", "ne", "select"].contains(name))
                .collect();
            assert_eq!(found.join(" "), added, "{}", *func);
        }
    }

    #[test]
    fn exponentials_tell_no_nan_from_another() {
        for dtype in [DType::F32, DType::F64] {
            for op in [
                Function::Exp,
                Function::Exp2,
                Function::Sigmoid,
                Function::Tanh,
                Function::Erf,
            ] {
                for domain in [Domain::ANYTHING, Domain::NOT_POSITIVE] {
                    let mut builder = Builder::new("f", Stage::Block);
                    let x = builder.scalar_parameter("x", dtype);
                    define(&mut builder, op, x, domain);
                    let func = builder.finish().expect("is well typed");
                    assert_eq!(reads(&func), (1, 0), "{op:?} {dtype} {domain:?}");
                }
            }
        }
    }

    /// Bits of `%t`, shifted, become `%f`; `END` is what happens next.
    const SHIFTED: &str = "func @f block (%x: f32, %y: f32, %o: ptr<f32> write) {
       %m = constant value=f32(0x1.8p23) : f32
       %low = constant value=f32(-0x1p7) : f32
       %below = lt %x, %low : bool
       %c = select %below, %low, %x : f32
       %high = constant value=f32(0x1p7) : f32
       %above = gt %c, %high : bool
       %d = select %above, %high, %c : f32
       %t = add %d, %m : f32
       %i = bitcast %t : u32
       %k = constant value=u32(23) : u32
       %s = shl %i, %k : u32
       %f = bitcast %s : f32
       END
     }";

    #[test]
    fn what_meets_only_nan_is_hidden() {
        let ends = |end: &str| reads_of(&SHIFTED.replace("END", end));
        assert_eq!(
            ends("%p = mul %d, %m : f32\n %q = mul %p, %f : f32"),
            (1, 0)
        );
        assert_eq!(ends("%q = fma %d, %m, %f : f32"), (1, 0));
        // Neither another argument, nor a comparison, nor memory, nor itself hides it.
        assert_eq!(ends("%q = mul %y, %f : f32"), (1, 1));
        assert_eq!(
            ends("%q = mul %d, %f : f32\n %r = lt %f, %m : bool"),
            (1, 1)
        );
        assert_eq!(ends("%q = mul %f, %f : f32"), (1, 1));
        assert_eq!(
            ends("%q = mul %d, %f : f32\n %z = constant value=i64(0) : i64\n store %o, %z, %f"),
            (1, 1)
        );
        assert_eq!(ends("%q = maxnum %d, %f : f32"), (1, 1));
        assert_eq!(
            ends("%q = mul %d, %f : f32\n %w = add %s, %k : u32"),
            (1, 1)
        );
    }

    #[test]
    fn a_nan_that_the_sum_makes_is_seen() {
        let source = "func @f block (%x: f32, %y: f32) {
               %t = add %x, %y : f32
               %i = bitcast %t : u32
               %f = bitcast %i : f32
               %q = mul %x, %f : f32
             }";
        assert_eq!(reads_of(source), (1, 1));
    }

    #[test]
    fn infinities_and_half_floats_are_not_trusted() {
        let func = parse(
            "func @f block (%x: f32, %h: f16) {
               %limit = constant value=f32(inf) : f32
               %below = lt %x, %limit : bool
               %a = select %below, %x, %limit : f32
               %b = sub %a, %a : f32
               %i = bitcast %b : u32
               %k = add %i, %i : u32
               %one = constant value=f16(1.0) : f16
               %less = lt %h, %one : bool
               %c = select %less, %h, %one : f16
               %j = bitcast %c : u16
               %l = add %j, %j : u16
             }",
            "test.bir",
        )
        .expect("parses");
        assert_eq!(reads(&func), (2, 2));
    }

    #[test]
    fn a_product_that_vanished_times_infinity_is_nan() {
        let func = parse(
            "func @f block (%x: f32, %y: f32) {
               %t = constant value=f32(0x1p-100) : f32
               %above = gt %x, %t : bool
               %a = select %above, %x, %t : f32
               %b = mul %a, %a : f32
               %one = constant value=f32(0x1p0) : f32
               %more = gt %y, %one : bool
               %c = select %more, %y, %one : f32
               %d = mul %b, %c : f32
               %i = bitcast %d : u32
               %k = add %i, %i : u32
             }",
            "test.bir",
        )
        .expect("parses");
        assert_eq!(reads(&func), (1, 1));
    }
}
