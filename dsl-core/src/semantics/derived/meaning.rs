//! What each function is, by its row: definition, true values, accuracy.

use super::formula::Formula;
use super::{Domain, error_function, exponential, logarithm, root};
use crate::ir::functions::for_each_function_family;
use crate::ir::{Approximate, DType, Function, Value};
use crate::semantics::oracle::Wide;

/// A definition: appends instructions that compute the function of a value.
pub(super) type Define = fn(&mut Formula<'_>, Value) -> Value;

/// All that a function is. It is stated where the function is defined, and its row names it.
pub(in crate::semantics) struct Meaning {
    /// The definition.
    pub(super) define: Define,
    /// A shorter definition, of the same bits, for arguments that are not positive.
    pub(super) not_positive: Option<Define>,
    /// The same for arguments from 0 to 1.
    pub(super) fraction: Option<Define>,
    /// The function of an `f32` by a device's approximate ones, good to about 1e-6 of the value.
    pub(super) approximate: Option<Define>,
    /// The true value within a few units in the last place of an `f64`.
    pub(in crate::semantics) reference: fn(f64) -> f64,
    /// The true value to about 100 bits, where it is a normal number and the argument is finite.
    pub(in crate::semantics) reference_wide: fn(f64) -> Wide,
    /// The greatest error found, in units in the last place: of `f32` over every bit pattern, and of
    /// `f64` over 2 million arguments.
    pub(super) max_ulp: [f64; 2],
    /// Arguments with the results that every type must give exactly.
    pub(super) special: &'static [(f64, f64)],
}

impl Meaning {
    /// The definition for arguments of a domain.
    pub(super) fn within(&self, domain: Domain) -> Define {
        let shorter = match domain {
            Domain::Anything => None,
            Domain::NotPositive => self.not_positive,
            Domain::Fraction => self.fraction,
        };
        shorter.unwrap_or(self.define)
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
    /// The greatest error found, in units in the last place of the true value.
    pub max_ulp: f64,
    /// The arguments that were tried.
    pub domain: &'static str,
}

/// How far the functions are from the true values: measured, and checked by tests. One row for each
/// function and data type.
pub fn accuracy() -> impl Iterator<Item = Accuracy> {
    Function::ALL.iter().flat_map(|&op| {
        let floats = DType::ALL.iter().filter(|dtype| dtype.is_float());
        floats.map(move |&dtype| {
            let [single, double] = meaning(op).max_ulp;
            let (max_ulp, domain) = if dtype == DType::F64 {
                (double, "2 million arguments")
            } else if dtype == DType::F32 {
                (single, "every bit pattern")
            } else {
                (NARROW_MAX_ULP, "every bit pattern")
            };
            Accuracy {
                op,
                dtype,
                max_ulp,
                domain,
            }
        })
    })
}

/// The domains for which a function has a definition of its own.
pub fn domains(op: Function) -> &'static [Domain] {
    let meaning = meaning(op);
    match (meaning.not_positive, meaning.fraction) {
        (Some(_), Some(_)) => &[Domain::Anything, Domain::NotPositive, Domain::Fraction],
        (Some(_), None) => &[Domain::Anything, Domain::NotPositive],
        (None, Some(_)) => &[Domain::Anything, Domain::Fraction],
        (None, None) => &[Domain::Anything],
    }
}

/// Arguments of a function with the results that every type gives exactly.
pub fn special_values(op: Function) -> &'static [(f64, f64)] {
    meaning(op).special
}
