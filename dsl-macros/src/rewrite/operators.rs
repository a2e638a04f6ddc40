//! Comparisons, `&&`, `||`, integer literals on the left of an operator, and operators that check for overflow.

use proc_macro2::Span;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{BinOp, Expr, ExprBinary, Lit, UnOp, parse_quote_spanned};

use super::{Rewriter, hints, wide};
use crate::names::{Mentions, is_compound};

impl Rewriter<'_> {
    /// Rewrites an operator of two operands where Rust cannot overload it.
    pub(super) fn binary(&mut self, expression: &mut Expr) {
        let Expr::Binary(binary) = expression else {
            return;
        };
        if let BinOp::And(_) | BinOp::Or(_) = binary.op {
            *expression = self.logic(binary);
            return;
        }
        self.visit_expr_mut(&mut binary.left);
        self.visit_expr_mut(&mut binary.right);
        if is_literal(&binary.left) && is_literal(&binary.right) {
            return;
        }
        let span = binary.op.span();
        if let Expr::Path(target) = &*binary.left
            && let Some(name) = target.path.get_ident()
            && is_compound(&binary.op)
            && self.scopes.is_number(name)
        {
            hints::operand(&mut binary.right);
        }
        let typed = wide::operand(binary);
        if let Some((comparison, mirrored)) = comparison(&binary.op) {
            *expression = compare(binary, span, comparison, mirrored);
        } else if is_integer_literal(&binary.left) && !is_compound(&binary.op) {
            let literal = &binary.left;
            let left_span = literal.span();
            *binary.left = parse_quote_spanned! {left_span=>
                ::exactile::__private::operators::Literal(#literal)
            };
        }
        if self.checks_overflow {
            check_overflow(expression);
        }
        if let Some(typed) = typed {
            *expression = parse_quote_spanned!(span=> { #typed #expression });
        }
    }
}

impl Rewriter<'_> {
    /// `&&` and `||`: the right side is traced as a branch, which changes what it changes only when it decides.
    fn logic(&mut self, binary: &mut ExprBinary) -> Expr {
        let span = binary.op.span();
        let mut mentioned = Mentions::default();
        mentioned.add_changed(&binary.right);
        let slots = self.slots(mentioned, span);
        self.visit_expr_mut(&mut binary.left);
        self.visit_expr_mut(&mut binary.right);
        let (left, right) = (&binary.left, &binary.right);
        let method = match binary.op {
            BinOp::And(_) => syn::Ident::new("and", span),
            _ => syn::Ident::new("or", span),
        };
        let (imports, save, list) = (&slots.imports, &slots.save, &slots.list);
        Expr::Verbatim(quote_spanned! {span=> {
            #imports
            let (mut __circuit, mut __right) =
                ::exactile::__private::operators::Circuit::#method(#left);
            #save
            if ::exactile::__private::operators::Circuit::enter(&mut __circuit, #list) {
                __right = ::core::option::Option::Some(#right);
            }
            ::exactile::__private::operators::Circuit::end(__circuit, __right, #list)
        }})
    }
}

/// An operator that may overflow, checked alone: not what its operands are made of.
fn check_overflow(expression: &mut Expr) {
    let Expr::Binary(ExprBinary {
        left, op, right, ..
    }) = expression
    else {
        return;
    };
    let span = op.span();
    let (operands, left) = match op {
        BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_) => (
            quote_spanned!(span=> let (__left, __right) = (#left, #right);),
            quote_spanned!(span=> __left),
        ),
        BinOp::AddAssign(_) | BinOp::SubAssign(_) | BinOp::MulAssign(_) => {
            (quote_spanned!(span=> let __right = #right;), quote!(#left))
        }
        _ => return,
    };
    *expression = Expr::Verbatim(quote_spanned! {span=> {
        #operands
        let __checks = ::exactile::__private::operators::Checks::begin();
        #left #op __right
    }});
}

/// The comparison of an operator, and the one with swapped operands.
fn comparison(operator: &BinOp) -> Option<(&'static str, &'static str)> {
    match operator {
        BinOp::Lt(_) => Some(("Less", "Greater")),
        BinOp::Le(_) => Some(("LessEqual", "GreaterEqual")),
        BinOp::Gt(_) => Some(("Greater", "Less")),
        BinOp::Ge(_) => Some(("GreaterEqual", "LessEqual")),
        BinOp::Eq(_) => Some(("Equal", "Equal")),
        BinOp::Ne(_) => Some(("NotEqual", "NotEqual")),
        _ => None,
    }
}

/// A literal on the left is swapped to the right, where its type follows from the other operand.
fn compare(binary: &ExprBinary, span: Span, direct: &str, mirrored: &str) -> Expr {
    let (left, right, name) = if is_literal(&binary.left) {
        (&binary.right, &binary.left, mirrored)
    } else {
        (&binary.left, &binary.right, direct)
    };
    let name = syn::Ident::new(name, span);
    let call = quote_spanned! {span=>
        ::exactile::__private::operators::Compare::compare(
            #left, #right, ::exactile::__private::operators::Comparison::#name
        )
    };
    Expr::Verbatim(call)
}

/// A number without a type of its own, or arithmetic of such numbers.
pub(super) fn is_literal(expression: &Expr) -> bool {
    literal_kind(expression, &|literal| {
        matches!(literal, Lit::Int(_) | Lit::Float(_))
    })
}

fn is_integer_literal(expression: &Expr) -> bool {
    literal_kind(
        expression,
        &|literal| matches!(literal, Lit::Int(number) if number.suffix().is_empty()),
    )
}

fn literal_kind(expression: &Expr, accept: &dyn Fn(&Lit) -> bool) -> bool {
    match expression {
        Expr::Lit(literal) => accept(&literal.lit),
        Expr::Paren(inner) => literal_kind(&inner.expr, accept),
        Expr::Group(inner) => literal_kind(&inner.expr, accept),
        Expr::Unary(unary) => matches!(unary.op, UnOp::Neg(_)) && literal_kind(&unary.expr, accept),
        Expr::Binary(binary) => {
            comparison(&binary.op).is_none()
                && literal_kind(&binary.left, accept)
                && literal_kind(&binary.right, accept)
        }
        _ => false,
    }
}
