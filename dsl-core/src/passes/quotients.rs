//! Quotients of `f32` by the machine's reciprocal, where ranges prove that they are correctly rounded.
//!
//! The proof is in `docs/numerics.md`; the machine's own division needs a branch for what is ruled out here.

use super::float_range::{Ranges, ranges_but_of_hidden};
use super::nan_bits::hidden_reads;
use super::rewrite::rewrite;
use crate::builder::Builder;
use crate::entity::EntityMap;
use crate::ir::numbers::filling;
use crate::ir::{Approximate, BinaryOp, DType, Func, Inst, Op, Value, op};
use crate::target::Native;

/// Operands of these magnitudes, or NaN: no step under- or overflows.
const LEAST: f64 = 1.0 / GREATEST;
const GREATEST: f64 = (1u64 << 60) as f64;

/// Replaces quotients in the same bits on machines that have a reciprocal.
pub fn shorten_quotients(func: &mut Func, native: &Native) {
    let quotients: Vec<(Value, [Value; 2])> = match native.reciprocals.contains(&DType::F32) {
        true => func
            .all_insts()
            .into_iter()
            .filter_map(|inst| quotient(func, inst))
            .collect(),
        false => Vec::new(),
    };
    if quotients.is_empty() {
        return;
    }
    let reading = Reading {
        func,
        definitions: func.definitions(),
        ranges: ranges_but_of_hidden(func, &hidden_reads(func)),
    };
    let mut short = EntityMap::filled(func.value_count(), false);
    for (result, [lhs, rhs]) in quotients {
        short[result] = reading.is_ordinary(lhs, rhs);
    }
    rewrite(func, &mut |rewriter, inst| {
        let (result, [lhs, rhs]) = quotient(rewriter.builder.func(), inst)?;
        let is_short = short.get(result).copied().unwrap_or(false);
        is_short.then(|| vec![by_reciprocal(&mut rewriter.builder, lhs, rhs)])
    });
}

/// A quotient of `f32` and its operands.
fn quotient(func: &Func, inst: Inst) -> Option<(Value, [Value; 2])> {
    let &[result] = &func.inst(inst).results[..] else {
        return None;
    };
    let Op::Binary(op::Binary {
        op: BinaryOp::Div,
        lhs,
        rhs,
    }) = *func.op(inst)
    else {
        return None;
    };
    (func.ty(result).dtype() == Some(DType::F32)).then_some((result, [lhs, rhs]))
}

struct Reading<'a> {
    func: &'a Func,
    definitions: EntityMap<Value, Option<Inst>>,
    ranges: Ranges,
}

impl Reading<'_> {
    /// Whether both operands are ordinary, or `rhs` is `1 + t` with `t` from 0 and `lhs` is `t`, what the sum has
    /// lost, or one of these by a selection: below 2^-24 the sum is 1, by which everything divides.
    fn is_ordinary(&self, lhs: Value, rhs: Value) -> bool {
        let is_number = |value: Value| {
            let either = [(LEAST, GREATEST), (-GREATEST, -LEAST)];
            either
                .into_iter()
                .any(|bounds| self.ranges.lies_in(value, bounds))
        };
        let added = self.added_to_one(rhs);
        let added = added.filter(|&t| self.ranges.lies_in(t, (0.0, GREATEST)));
        let is_dividend = |value: Value| {
            let is_added = added.is_some_and(|t| value == t || self.is_lost(value, rhs, t));
            is_number(value) || is_added
        };
        let chosen = || match self.definition(lhs) {
            Some(Op::Select(op)) => is_dividend(op.on_true) && is_dividend(op.on_false),
            _ => false,
        };
        is_number(rhs) && (is_dividend(lhs) || chosen())
    }

    /// Whether `value` is `t - (sum - 1)`, what the sum of 1 and `t` has lost: zero, or no less than 2^-47, of
    /// which all three are multiples; or the sum is 1.
    fn is_lost(&self, value: Value, sum: Value, t: Value) -> bool {
        let difference = |value: Value| match self.definition(value) {
            Some(Op::Binary(op::Binary {
                op: BinaryOp::Sub,
                lhs,
                rhs,
            })) => Some((*lhs, *rhs)),
            _ => None,
        };
        let summand = difference(value).filter(|&(of, _)| of == t);
        let parts = summand.and_then(|(_, summand)| difference(summand));
        parts.is_some_and(|(of, one)| of == sum && self.is_one(one))
    }

    fn is_one(&self, value: Value) -> bool {
        let literal = filling(value, |value| self.definition(value));
        literal.and_then(|it| it.float()) == Some(1.0)
    }

    fn definition(&self, value: Value) -> Option<&Op> {
        self.definitions[value].map(|inst| self.func.op(inst))
    }

    /// `t` of `1 + t`.
    fn added_to_one(&self, value: Value) -> Option<Value> {
        let Some(Op::Binary(op::Binary {
            op: BinaryOp::Add,
            lhs,
            rhs,
        })) = self.definition(value)
        else {
            return None;
        };
        let either = [(*lhs, *rhs), (*rhs, *lhs)];
        either
            .into_iter()
            .find(|&(one, _)| self.is_one(one))
            .map(|(_, t)| t)
    }
}

/// One step of Newton's gives the correctly rounded reciprocal, one of Markstein's the quotient. The
/// remainder is negated twice, so that a zero keeps its sign.
fn by_reciprocal(builder: &mut Builder, lhs: Value, rhs: Value) -> Value {
    let near = builder.approximate(Approximate::NormalReciprocal, rhs);
    let one = builder.constant_like(rhs, 1.0);
    let divisor = builder.neg(rhs);
    let error = builder.fma(divisor, near, one);
    let reciprocal = builder.fma(near, error, near);
    let quotient = builder.mul(lhs, reciprocal);
    let dividend = builder.neg(lhs);
    let excess = builder.fma(quotient, rhs, dividend);
    let remainder = builder.neg(excess);
    builder.fma(remainder, reciprocal, quotient)
}

#[cfg(test)]
mod tests {
    use super::shorten_quotients;
    use crate::builder::Builder;
    use crate::ir::{Approximate, DType, Func, Function, Stage};
    use crate::passes::decompose::decompose;
    use crate::random::Random;
    use crate::semantics::derived::{Domain, define};
    use crate::target::Target;
    use crate::text::parse;

    /// How many quotients there are left, and how many became short.
    fn quotients(mut func: Func) -> (usize, usize) {
        shorten_quotients(&mut func, &Target::SM_90A.native);
        let text = func.to_string();
        let count = |mnemonic: &str| text.matches(&format!("= {mnemonic} ")).count();
        let short = count(Approximate::NormalReciprocal.mnemonic());
        (count("div"), short)
    }

    fn quotients_of(body: &str) -> (usize, usize) {
        let source = format!(
            "func @f block (%x: f32, %y: f32) {{
               %one = constant value=f32(1.0) : f32
               %m = abs %x : f32
               %n = neg %m : f32
               {body}
             }}"
        );
        let mut func = parse(&source, "test.bir").expect("parses");
        decompose(&mut func);
        quotients(func)
    }

    #[test]
    fn functions_divide_by_the_reciprocal() {
        for op in [Function::Sigmoid, Function::Tanh] {
            let mut builder = Builder::new("f", Stage::Block);
            let x = builder.scalar_parameter("x", DType::F32);
            define(&mut builder, op, x, Domain::ANYTHING);
            let func = builder.finish().expect("is well typed");
            assert_eq!(quotients(func), (0, 1), "{op:?}");
        }
    }

    #[test]
    fn quotients_are_short_where_ranges_prove_them_ordinary() {
        let of_power = |end: &str| {
            quotients_of(&format!(
                "%t = exp %n : f32\n %s = add %t, %one : f32\n {end}"
            ))
        };
        assert_eq!(of_power("%q = div %one, %s : f32"), (0, 1));
        assert_eq!(of_power("%q = div %t, %s : f32"), (0, 1));
        let lost = "%d = sub %s, %one : f32\n %l = sub %t, %d : f32\n %q = div %l, %s : f32";
        assert_eq!(of_power(lost), (0, 1));
        assert_eq!(
            quotients_of("%t = exp %n : f32\n %r = log1p %t : f32"),
            (0, 1)
        );
        // The power may be subnormal or zero, its reciprocal infinite.
        assert_eq!(of_power("%q = div %one, %t : f32"), (1, 0));
        assert_eq!(
            of_power("%u = mul %t, %t : f32\n %q = div %u, %s : f32"),
            (1, 0)
        );
        assert_eq!(of_power("%q = div %x, %s : f32"), (1, 0));
        assert_eq!(quotients_of("%q = div %x, %y : f32"), (1, 0));
        // A sum with a greater number may be infinite.
        let unbounded = "%t = exp %x : f32\n %s = add %t, %one : f32\n %q = div %one, %s : f32";
        assert_eq!(quotients_of(unbounded), (1, 0));
        let limits = "%a = constant value=f32(0x1p-60) : f32
             %b = constant value=f32(0x1p60) : f32
             %less = lt %m, %b : bool
             %l = select %less, %m, %b : f32
             %above = gt %l, %a : bool
             %z = select %above, %l, %a : f32";
        let within = format!("{limits} %q = div %z, %z : f32");
        assert_eq!(quotients_of(&within), (0, 1));
        let beyond = within.replace("0x1p60", "0x1.2p60");
        assert_eq!(quotients_of(&beyond), (1, 0));
    }

    /// What the instructions give, from a reciprocal that is off by so many units in the last place.
    fn by_reciprocal(lhs: f32, rhs: f32, off: i32) -> f32 {
        let bits = (1.0 / rhs).to_bits().wrapping_add_signed(off);
        let near = f32::from_bits(bits);
        let error = (-rhs).mul_add(near, 1.0);
        let reciprocal = near.mul_add(error, near);
        let quotient = lhs * reciprocal;
        let excess = quotient.mul_add(rhs, -lhs);
        (-excess).mul_add(reciprocal, quotient)
    }

    /// How far off the machine's reciprocal may be. Of the one significand of ones alone the step may round to
    /// the wrong side of a tie; that it does not is what `rcp.rn` relies on.
    fn offsets(rhs: f32) -> std::ops::RangeInclusive<i32> {
        match rhs.to_bits() & 0x7f_ffff == 0x7f_ffff {
            true => 0..=0,
            false => -1..=1,
        }
    }

    fn check(lhs: f32, rhs: f32) {
        for off in offsets(rhs) {
            let found = by_reciprocal(lhs, rhs, off);
            let expected = lhs / rhs;
            assert_eq!(
                found.to_bits(),
                expected.to_bits(),
                "{lhs:e} / {rhs:e}, {off} off"
            );
        }
    }

    #[test]
    fn quotients_by_reciprocals_are_correctly_rounded() {
        let significand = |bits: u32| f32::from_bits(0x3f80_0000 | bits & 0x7f_ffff);
        for bits in 0..1 << 23 {
            check(1.0, significand(bits));
        }
        // Every sum of 1 and a power that a sigmoid has, thinned out.
        for bits in (0..=0x3f80_0000).step_by(251) {
            let t = f32::from_bits(bits);
            check(t, 1.0 + t);
        }
        // The cases that are hardest to prove: large significands.
        for lhs in (1 << 23) - 512..1 << 23 {
            for rhs in (1 << 23) - 512..1 << 23 {
                check(significand(lhs), significand(rhs));
            }
        }
        let mut random = Random::new(7);
        for _ in 0..1 << 20 {
            let mut number = || {
                let bits = random.bits();
                let exponent = 127 - 60 + (bits >> 32) as u32 % 120;
                let sign = (bits >> 63) as u32;
                f32::from_bits(sign << 31 | exponent << 23 | bits as u32 & 0x7f_ffff)
            };
            check(number(), number());
        }
    }

    #[test]
    fn zeros_keep_their_signs() {
        check(0.0, 1.0);
        check(-0.0, 1.0);
    }
}
