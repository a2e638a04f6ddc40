//! What each function is, by its row: definition, true values, accuracy.

use super::formula::Formula;
use super::{
    Domain, bessel, correct, error_function, exponential, gamma, hyperbolic, inverse, logarithm,
    power_of_ten, root, rounding, trigonometric, weight,
};
use crate::ir::functions::for_each_function_family;
use crate::ir::{Approximate, DType, Function, Value};
use crate::semantics::oracle::Wide;

/// A definition: appends instructions that compute the function of a value.
pub(super) type Define = fn(&mut Formula<'_>, Value) -> Value;

/// All that a function is. It is stated where the function is defined, and its row names it.
pub(in crate::semantics) struct Meaning {
    /// The definition.
    pub(super) define: Define,
    /// Shorter definitions, of the same bits, for arguments of a domain; the first that is known to hold is
    /// taken.
    pub(super) shorter: &'static [(Domain, Define)],
    /// The function of an `f32` by a device's approximate ones, good to about 1e-6 of the value.
    pub(super) approximate: Option<Define>,
    /// The function in the same bits by a device's approximate ones.
    pub(super) native: Option<Define>,
    /// A short form of it in `f32` for arguments of a domain, whose results are near enough to be rounded to 8
    /// significant bits, mostly as the definition's are: whoever takes it proves that they all are.
    pub(super) rounded: Option<(Domain, Define)>,
    /// The true value within a few units in the last place of an `f64`.
    pub(in crate::semantics) reference: fn(f64) -> f64,
    /// What the definition for `f64` is judged by; `None` where there is none.
    pub(in crate::semantics) double: Option<Double>,
    /// A bound of the errors in `f32` that were found, in units in the last place.
    pub(super) max_ulp: f64,
    /// What was tried to find them.
    pub(super) tried: Tried,
    /// The least and the greatest result of any number up to the given one; no bounds where other arguments
    /// than NaN give NaN.
    pub(in crate::semantics) values: Option<fn(f64) -> (f64, f64)>,
    /// Arguments with the results that every type must give exactly.
    pub(super) special: &'static [(f64, f64)],
}

/// What is known of a definition for `f64`.
pub(in crate::semantics) struct Double {
    /// The true value to about 100 bits, where it is a normal number and the argument is finite.
    pub(in crate::semantics) reference: fn(f64) -> Wide,
    /// The greatest error found over 2 million arguments, in units in the last place.
    pub(super) max_ulp: f64,
}

impl Meaning {
    /// What a function is that has one definition, for `f32` unless there is something to judge `f64` by.
    pub(super) const fn single(
        define: Define,
        reference: fn(f64) -> f64,
        max_ulp: f64,
        special: &'static [(f64, f64)],
    ) -> Self {
        Self {
            define,
            shorter: &[],
            approximate: None,
            native: None,
            rounded: None,
            reference,
            double: None,
            max_ulp,
            tried: Tried::Parts,
            values: None,
            special,
        }
    }

    /// The definition for arguments of a domain.
    pub(super) fn within(&self, domain: Domain) -> Define {
        let mut shorter = self.shorter.iter();
        shorter
            .find(|(wider, _)| wider.holds(domain))
            .map_or(self.define, |&(_, define)| define)
    }
}

/// What an `f32` function was tried with.
#[derive(Clone, Copy)]
pub(super) enum Tried {
    /// Most of them, with parts.
    Parts,
    /// Every argument.
    All,
}

impl Tried {
    const fn words(self) -> &'static str {
        match self {
            Self::Parts => "5 to 13 of 256 parts of all bit patterns",
            Self::All => "every bit pattern",
        }
    }
}

/// The greatest error of a type narrower than its computation, over every bit pattern of all
/// functions.
const NARROW_MAX_ULP: f64 = 0.5002;

macro_rules! meanings {
    ($($(#[doc = $family_doc:literal])* $Family:ident $Variant:ident { $($field:ident),* } { $($row:tt)* })*) => {
        $(meanings! { @$Family $($row)* })*
    };
    (@Function $($row:tt)*) => {
        meanings! {
            /// What the function is.
            @match meaning Function $($row)*
        }
    };
    (@Approximate $($row:tt)*) => {
        meanings! {
            /// What the exact function is that `op` approximates.
            @match approximated Approximate $($row)*
        }
    };
    ($(#[doc = $meaning_doc:literal])* @match $name:ident $Family:ident
        $($(#[doc = $doc:literal])* $Op:ident $mnemonic:literal $method:ident $accepts:ident $surface:ident
        = $module:ident::$MEANING:ident;)*) => {
        $(#[doc = $meaning_doc])*
        pub(in crate::semantics) const fn $name(op: $Family) -> &'static Meaning {
            match op { $($Family::$Op => &$module::$MEANING),* }
        }
    };
}
for_each_function_family!(meanings);

/// The greatest error of a derived function.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Accuracy {
    /// The function.
    pub op: Function,
    /// The data type.
    pub dtype: DType,
    /// A bound of the errors found, in units in the last place of the true value.
    pub max_ulp: f64,
    /// The arguments that were tried.
    pub domain: &'static str,
}

/// How far the functions are from the true values: measured, and checked by tests. One row for each
/// function and data type.
pub fn accuracy() -> impl Iterator<Item = Accuracy> {
    Function::ALL.iter().flat_map(|&op| {
        let accepted = DType::ALL
            .iter()
            .filter(move |&&dtype| op.accepts().admits(dtype));
        accepted.filter_map(move |&dtype| {
            let meaning = meaning(op);
            let (max_ulp, domain) = if dtype == DType::F64 {
                (meaning.double.as_ref()?.max_ulp, "2 million arguments")
            } else if dtype == DType::F32 {
                (meaning.max_ulp, meaning.tried.words())
            } else {
                (NARROW_MAX_ULP, Tried::All.words())
            };
            Some(Accuracy {
                op,
                dtype,
                max_ulp,
                domain,
            })
        })
    })
}

/// The domains for which a function has a definition of its own.
pub fn domains(op: Function) -> impl Iterator<Item = Domain> {
    let shorter = meaning(op).shorter.iter();
    std::iter::once(Domain::ANYTHING).chain(shorter.map(|&(domain, _)| domain))
}

/// The least and the greatest result of `op` of numbers up to `greatest`; `None` where nothing is known,
/// and where other arguments than NaN give NaN.
pub fn values(op: Function, greatest: f64) -> Option<(f64, f64)> {
    meaning(op).values.map(|values| values(greatest))
}

/// Arguments of a function with the results that every type gives exactly.
pub fn special_values(op: Function) -> &'static [(f64, f64)] {
    meaning(op).special
}
