//! PTX of atomics that no instruction is: a loop tries what the op makes of what memory holds until nothing came
//! between.

use exactile_core::ir::{AtomicOp, DType, MemoryOrder};

use super::atomic::order_name;

/// A loop, without the names of its operands.
pub(super) struct Attempts {
    dtype: DType,
    kind: Kind,
    /// The order, as instructions name it.
    order: &'static str,
    /// Whether other accesses are ordered: then it writes, also where nothing changes.
    is_ordered: bool,
    /// The scope and the state space, as instructions name them.
    place: String,
}

/// What the loop tries.
#[derive(Clone, Copy)]
enum Kind {
    /// The smaller or the larger number.
    Extreme { less: bool },
    /// The sum of `bf16`.
    Sum,
    /// The value in place of what is expected, of which a NaN is any NaN.
    Replacement,
    /// The value in place of any number of 16 bits.
    Exchange,
}

/// The operands of a loop.
pub(super) struct Operands<'s> {
    pub(super) result: Option<&'s str>,
    pub(super) address: &'s str,
    pub(super) value: &'s str,
    pub(super) expected: Option<&'s str>,
    pub(super) mask: Option<&'s str>,
}

impl Attempts {
    /// The loop for an op of a GPU of this compute capability, if no instruction is it.
    pub(super) fn of(
        (op, compares): (AtomicOp, bool),
        dtype: DType,
        capability: (u32, u32),
        order: Option<MemoryOrder>,
        place: &str,
    ) -> Option<Self> {
        let kind = match op {
            AtomicOp::Exchange if !compares && dtype.bits() == 16 => Kind::Exchange,
            _ if !dtype.is_float() => return None,
            AtomicOp::Min => Kind::Extreme { less: true },
            AtomicOp::Max => Kind::Extreme { less: false },
            AtomicOp::Add if dtype == DType::BF16 && capability < (9, 0) => Kind::Sum,
            AtomicOp::Exchange if compares => Kind::Replacement,
            AtomicOp::Add | AtomicOp::Exchange | AtomicOp::Load => return None,
            AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => return None,
        };
        Some(Self {
            dtype,
            kind,
            order: order_name(order),
            is_ordered: order.is_some(),
            place: place.to_string(),
        })
    }

    /// The text with these operands. Only the last instruction writes the result, so that it may share a register
    /// with another operand.
    pub(super) fn text(&self, operands: &Operands<'_>) -> String {
        let bits = self.dtype.bits();
        let guard = operands
            .mask
            .map_or(String::new(), |mask| format!("@!{mask} bra over;\n"));
        let result = operands.result.map_or(String::new(), |result| {
            format!("mov.b{bits} {result}, old;\n")
        });
        let (before, attempt) = self.attempt(operands);
        format!(
            "{{\n.reg .pred stays, again;\n.reg .b{bits} old, new, found;\n{guard}{before}\
             attempt:\n{attempt}held:\n{result}over:\n}}"
        )
    }

    /// What comes before the first attempt, and one attempt on `old`, which goes on at `held` or tries again.
    fn attempt(&self, operands: &Operands<'_>) -> (String, String) {
        let (Operands { address, value, .. }, bits) = (operands, self.dtype.bits());
        let (order, place) = (self.order, &self.place);
        let first = format!("ld.relaxed.{place}.b{bits} old, [{address}];\n");
        let compare = format!("atom.{order}.{place}.cas.b{bits} found, [{address}]");
        let again = format!(
            "setp.ne.b{bits} again, found, old;\nmov.b{bits} old, found;\n@again bra attempt;\n"
        );
        match self.kind {
            Kind::Extreme { less } => {
                let order = if less { "ge" } else { "le" };
                let stop = if self.is_ordered {
                    ""
                } else {
                    "@stays bra held;\n"
                };
                let (key, mine) = (self.key("old", "key"), self.key("given", "mine"));
                let before = format!(
                    ".reg .pred idle;\n.reg .b{bits} given, mine, key;\nmov.b{bits} given, {value};\n\
                     setp.nan.f{bits} idle, given, given;\n{mine}{first}"
                );
                let attempt = format!(
                    "{key}setp.{order}.s{bits} stays, mine, key;\n\
                     setp.num.and.f{bits} stays, old, old, stays;\nor.pred stays, stays, idle;\n{stop}\
                     selp.b{bits} new, old, given, stays;\n{compare}, old, new;\n{again}"
                );
                (before, attempt)
            }
            Kind::Sum => {
                let before = format!(
                    ".reg .b16 one, given;\nmov.b16 one, 0x3F80;\nmov.b16 given, {value};\n{first}"
                );
                let attempt =
                    format!("fma.rn.bf16 new, old, one, given;\n{compare}, old, new;\n{again}");
                (before, attempt)
            }
            Kind::Replacement => {
                let expected = operands.expected.unwrap_or(value);
                let before = format!(
                    ".reg .b{bits} given, wanted, size;\nmov.b{bits} given, {value};\nmov.b{bits} wanted, {expected};\n"
                );
                let (wanted, found) = (self.and_nan("wanted"), self.and_nan("found"));
                // A NaN that is not the one expected is expected then.
                let attempt = format!(
                    "{compare}, wanted, given;\nmov.b{bits} old, found;\n\
                     setp.ne.b{bits} again, found, wanted;\n{wanted}{found}\
                     mov.b{bits} wanted, found;\n@again bra attempt;\n"
                );
                (before, attempt)
            }
            Kind::Exchange => {
                let before = format!(".reg .b{bits} given;\nmov.b{bits} given, {value};\n{first}");
                (before, format!("{compare}, old, given;\n{again}"))
            }
        }
    }

    /// Lets `again` hold only where this float is NaN: not every GPU compares floats of 16 bits.
    fn and_nan(&self, float: &str) -> String {
        let bits = self.dtype.bits();
        if bits != 16 {
            return format!("setp.nan.and.f{bits} again, {float}, {float}, again;\n");
        }
        let infinity = match self.dtype == DType::F16 {
            true => "0x7C00",
            false => "0x7F80",
        };
        format!("and.b16 size, {float}, 0x7FFF;\nsetp.gt.and.u16 again, size, {infinity}, again;\n")
    }

    /// An integer with the order of a float that is no NaN, -0 < +0.
    fn key(&self, float: &str, key: &str) -> String {
        let bits = self.dtype.bits();
        let last = bits - 1;
        format!(
            "shr.s{bits} {key}, {float}, {last};\nshr.u{bits} {key}, {key}, 1;\n\
             xor.b{bits} {key}, {key}, {float};\n"
        )
    }
}
