//! Integer literals that no `i32` holds: they take the type of what is beside them.

use proc_macro2::TokenStream;
use quote::quote_spanned;
use syn::spanned::Spanned;
use syn::{BinOp, Expr, ExprBinary, ExprCall, Lit, Token, UnOp, parse_quote_spanned};

use crate::names::is_compound;

/// The functions of one number whose type they name.
const FUNCTIONS: [&str; 2] = ["scalar", "full"];

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
    if is_compound(&binary.op) {
        let typed = quote_spanned! {span=>
            let __literal = ::exactile::__private::operators::beside_place::<{ #literal }, _>(|| #other);
        };
        **literal = parse_quote_spanned!(span=> __literal);
        return Some(typed);
    }
    let before = quote_spanned!(span=> let __beside = #other;);
    **other = parse_quote_spanned!(span=> __beside);
    let typed = quote_spanned! {span=>
        ::exactile::__private::operators::beside::<{ #literal }, _>(&__beside)
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

/// Gives such a literal the type that a function names.
pub(super) fn argument(call: &mut ExprCall) {
    let Expr::Path(path) = &*call.func else {
        return;
    };
    let last = path.path.segments.last();
    if !last.is_some_and(|last| FUNCTIONS.iter().any(|name| last.ident == name)) {
        return;
    }
    if let Some(literal) = call.args.last_mut().filter(|literal| is_wide(literal)) {
        let span = literal.span();
        *literal = parse_quote_spanned! {span=>
            ::exactile::__private::operators::Wide(#literal)
        };
    }
}

/// Whether a literal, or arithmetic of literals without types, needs more than an `i32`.
fn is_wide(expression: &Expr) -> bool {
    let mut most = 0;
    let value = value(expression, &mut most);
    let fits = |it: i128| i32::try_from(it).is_ok();
    // `-0x8000_0000` has a literal of 32 bits in it.
    value.is_some_and(|value| !fits(value) || most > i128::from(i32::MAX) + 1)
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
