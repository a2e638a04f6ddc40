//! Integer literals that no `i32` holds: they take the type of what is beside them.

use proc_macro2::TokenStream;
use quote::quote_spanned;
use syn::spanned::Spanned;
use syn::{BinOp, Expr, ExprBinary, ExprCall, Ident, Lit, Token, UnOp, parse_quote_spanned};

use crate::names::{Scopes, is_compound};

/// The functions of one number whose type they name, with how many arguments each has.
const FUNCTIONS: [(&str, usize); 2] = [("scalar", 1), ("full", 2)];

/// Gives such an operand its type; the statements that go before the operator.
pub(super) fn operand(binary: &mut ExprBinary) -> Option<TokenStream> {
    if let Some(mirrored) = mirrored(&binary.op).filter(|_| is_wide(&binary.left)) {
        std::mem::swap(&mut binary.left, &mut binary.right);
        binary.op = mirrored;
    }
    let is_right = is_wide(&binary.right);
    if !is_right && (is_compound(&binary.op) || !is_wide(&binary.left)) {
        return None;
    }
    let (other, literal) = match is_right {
        true => (&mut binary.left, &mut binary.right),
        false => (&mut binary.right, &mut binary.left),
    };
    let span = literal.span();
    let width = shifted_width(literal);
    if is_compound(&binary.op) {
        let typed = quote_spanned! {span=>
            let __literal = ::exactile::__private::operators::beside_place::<{ #literal }, #width, _>(|| #other);
        };
        **literal = parse_quote_spanned!(span=> __literal);
        return Some(typed);
    }
    let before = quote_spanned!(span=> let __beside = #other;);
    **other = parse_quote_spanned!(span=> __beside);
    let typed = quote_spanned! {span=>
        ::exactile::__private::operators::beside::<{ #literal }, #width, _>(&__beside)
    };
    **literal = match is_right {
        true => parse_quote_spanned!(span=> #typed),
        false => {
            parse_quote_spanned!(span=> ::exactile::__private::operators::Literal(#typed))
        }
    };
    Some(before)
}

/// The comparison with swapped operands.
fn mirrored(operator: &BinOp) -> Option<BinOp> {
    Some(match operator {
        BinOp::Lt(it) => BinOp::Gt(Token![>](it.span())),
        BinOp::Le(it) => BinOp::Ge(Token![>=](it.span())),
        BinOp::Gt(it) => BinOp::Lt(Token![<](it.span())),
        BinOp::Ge(it) => BinOp::Le(Token![<=](it.span())),
        BinOp::Eq(it) => BinOp::Eq(*it),
        BinOp::Ne(it) => BinOp::Ne(*it),
        _ => return None,
    })
}

/// Gives such a literal the type that a function names. A function of the same name that somebody else wrote keeps a
/// number of the host.
pub(super) fn argument(call: &ExprCall, scopes: &Scopes) -> Option<Expr> {
    let Expr::Path(path) = &*call.func else {
        return None;
    };
    if path
        .path
        .get_ident()
        .is_some_and(|name| scopes.declares(name))
    {
        return None;
    }
    let last = path.path.segments.last()?;
    let literal = call.args.last().filter(|literal| is_wide(literal))?;
    let count = call.args.len();
    if !FUNCTIONS
        .iter()
        .any(|it| last.ident == it.0 && count == it.1)
    {
        return None;
    }
    let (span, width) = (literal.span(), shifted_width(literal));
    let before = call.args.iter().take(count - 1);
    let shape: Vec<&Expr> = before.collect();
    let names: Vec<_> = shape.iter().map(|_| Ident::new("__shape", span)).collect();
    let kind = Ident::new(if shape.is_empty() { "OfOne" } else { "OfTwo" }, span);
    Some(parse_quote_spanned! {span=> {
        #[allow(unused_imports, reason = "which of them is used depends on the function")]
        use ::exactile::__private::operators::{HostArgument as _, WideArgument as _};
        let __function = #path;
        #(let #names = #shape;)*
        let __kind = ::exactile::__private::operators::#kind::new(&__function #(, &#names)*);
        let __number = ::exactile::__private::operators::Number::<{ #literal }, #width>;
        let __literal = (&__kind).typed(__number);
        __function(#(#names,)* __literal)
    }})
}

/// Whether a literal, or arithmetic of literals without types, needs more than an `i32`.
fn is_wide(expression: &Expr) -> bool {
    let mut most = 0;
    let value = value(expression, &mut most);
    let fits = |it: i128| i32::try_from(it).is_ok();
    // `-0x8000_0000` has a literal of 32 bits in it.
    value.is_some_and(|value| !fits(value) || most > i128::from(i32::MAX) + 1)
}

/// How many bits a type has at least in which shifts of literals are what Rust makes of them: the bits that fit.
/// More than any type has where a literal is more than shifts.
fn shifted_width(expression: &Expr) -> u32 {
    match expression {
        Expr::Lit(_) => {
            let mut most = 0;
            let number = value(expression, &mut most).unwrap_or(i128::MAX);
            i128::BITS - number.leading_zeros() + 1
        }
        Expr::Paren(inner) => shifted_width(&inner.expr),
        Expr::Group(inner) => shifted_width(&inner.expr),
        Expr::Binary(binary) => {
            let widths = [&binary.left, &binary.right].map(|side| shifted_width(side));
            let both = widths[0].max(widths[1]);
            match binary.op {
                BinOp::BitOr(_) => both,
                BinOp::Shl(_) => {
                    let count = value(&binary.right, &mut 0).and_then(|it| u32::try_from(it).ok());
                    both.max(count.map_or(u32::MAX, |count| count.saturating_add(1)))
                }
                _ => u32::MAX,
            }
        }
        _ => u32::MAX,
    }
}

/// The number, with the greatest literal in it.
fn value(expression: &Expr, most: &mut i128) -> Option<i128> {
    match expression {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) if number.suffix().is_empty() => {
                let number: i128 = number.base10_parse().ok()?;
                *most = number.max(*most);
                Some(number)
            }
            _ => None,
        },
        Expr::Paren(inner) => value(&inner.expr, most),
        Expr::Group(inner) => value(&inner.expr, most),
        Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => {
            value(&unary.expr, most)?.checked_neg()
        }
        Expr::Binary(binary) => {
            let (left, right) = (value(&binary.left, most)?, value(&binary.right, most)?);
            match binary.op {
                BinOp::Add(_) => left.checked_add(right),
                BinOp::Sub(_) => left.checked_sub(right),
                BinOp::Mul(_) => left.checked_mul(right),
                BinOp::Shl(_) => left.checked_shl(u32::try_from(right).ok()?),
                BinOp::BitOr(_) => Some(left | right),
                _ => None,
            }
        }
        _ => None,
    }
}
