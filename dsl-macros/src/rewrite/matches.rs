//! `match` on numbers: the arms of literals become the branches of an `if`, whose type of condition decides
//! where it runs.

use proc_macro2::Span;
use quote::quote_spanned;
use syn::spanned::Spanned;
use syn::{
    Arm, Expr, ExprMatch, ExprPath, Ident, Lit, Pat, PatRange, RangeLimits, parse_quote_spanned,
};

/// The branches of a `match` of which each arm but the last is of literals, or, where one of them is, of `_` with a guard, and the last one takes the rest.
/// Any other stays the `match` of Rust, which is decided on the host.
pub(super) fn branches(matched: &ExprMatch) -> Option<Expr> {
    let value = Ident::new("__matched", Span::mixed_site());
    let (rest, arms) = matched.arms.split_last()?;
    let plain = matched.arms.iter().all(|arm| arm.attrs.is_empty());
    let names_numbers = arms.iter().any(|arm| !matches!(arm.pat, Pat::Wild(_)));
    if !names_numbers || !plain || rest.guard.is_some() || !takes_all(&rest.pat) {
        return None;
    }
    let mut chain = arm_body(rest, &value);
    for arm in arms.iter().rev() {
        let span = arm.pat.span();
        let condition: Expr = match (&arm.pat, &arm.guard) {
            (Pat::Wild(_), Some((_, guard))) => parse_quote_spanned!(span=> (#guard)),
            (pattern, Some((_, guard))) => {
                let condition = condition(pattern, &value)?;
                parse_quote_spanned!(span=> #condition && (#guard))
            }
            (pattern, None) => condition(pattern, &value)?,
        };
        let body = &arm.body;
        chain = parse_quote_spanned!(span=> if #condition { #body } else { #chain });
    }
    let scrutinee = &matched.expr;
    let span = matched.match_token.span();
    Some(parse_quote_spanned! {span=> {
        let #value = #scrutinee;
        #chain
    }})
}

/// The body of the last arm, which may bind the value.
fn arm_body(arm: &Arm, value: &Ident) -> Expr {
    let (pattern, body) = (&arm.pat, &arm.body);
    let span = pattern.span();
    match pattern {
        Pat::Wild(_) => parse_quote_spanned!(span=> { #body }),
        _ => parse_quote_spanned!(span=> { let #pattern = #value; #body }),
    }
}

/// `_`, or a new name. A name in upper case may be a constant.
fn takes_all(pattern: &Pat) -> bool {
    match pattern {
        Pat::Wild(_) => true,
        Pat::Ident(name) => {
            let text = name.ident.to_string();
            name.subpat.is_none() && text.chars().all(|letter| !letter.is_uppercase())
        }
        _ => false,
    }
}

/// Whether the value is one that the pattern names; nothing if that is no literal.
fn condition(pattern: &Pat, value: &Ident) -> Option<Expr> {
    let span = pattern.span();
    match pattern {
        Pat::Lit(literal) if is_number(&literal.lit) => {
            Some(parse_quote_spanned!(span=> (#value == #literal)))
        }
        Pat::Path(path) if is_limit(path) => Some(parse_quote_spanned!(span=> (#value == #path))),
        Pat::Range(range) => bounds(range, value),
        Pat::Paren(inner) => condition(&inner.pat, value),
        Pat::Or(several) => {
            let mut conditions = several.cases.iter().map(|case| condition(case, value));
            let first = conditions.next()??;
            conditions.try_fold(first, |any, other| {
                let other = other?;
                Some(parse_quote_spanned!(span=> (#any || #other)))
            })
        }
        _ => None,
    }
}

fn bounds(range: &PatRange, value: &Ident) -> Option<Expr> {
    let span = range.span();
    let literal = |bound: &Expr| match bound {
        Expr::Lit(literal) if is_number(&literal.lit) => Some(bound.clone()),
        Expr::Path(path) if is_limit(path) => Some(bound.clone()),
        _ => None,
    };
    let start = match &range.start {
        Some(start) => Some(literal(start)?),
        None => None,
    };
    let end = match &range.end {
        Some(end) => Some(literal(end)?),
        None => None,
    };
    let above = start.map(|start| quote_spanned!(span=> #value >= #start));
    let below = end.map(|end| match range.limits {
        RangeLimits::HalfOpen(_) => quote_spanned!(span=> #value < #end),
        RangeLimits::Closed(_) => quote_spanned!(span=> #value <= #end),
    });
    match (above, below) {
        (Some(above), Some(below)) => Some(parse_quote_spanned!(span=> (#above && #below))),
        (Some(one), None) | (None, Some(one)) => Some(parse_quote_spanned!(span=> (#one))),
        (None, None) => None,
    }
}

/// Whether a path is a constant of a number type, such as `i32::MIN`.
fn is_limit(path: &ExprPath) -> bool {
    const TYPES: [&str; 12] = [
        "i8", "i16", "i32", "i64", "isize", "u8", "u16", "u32", "u64", "usize", "f32", "f64",
    ];
    let segments = &path.path.segments;
    segments.len() == 2 && TYPES.iter().any(|name| segments[0].ident == name)
}

fn is_number(literal: &Lit) -> bool {
    matches!(
        literal,
        Lit::Int(_) | Lit::Float(_) | Lit::Bool(_) | Lit::Byte(_)
    )
}
