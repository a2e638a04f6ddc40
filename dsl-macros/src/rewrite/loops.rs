//! `for` and `while`: host bounds and conditions unroll, device ones become loops.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{Expr, ExprForLoop, ExprRange, ExprWhile, RangeLimits};

use super::operators::is_literal;
use super::{Rewriter, hints};
use crate::names::Mentions;

impl Rewriter<'_> {
    /// Rewrites a `for` loop.
    pub(super) fn for_loop(&mut self, looped: &mut ExprForLoop) -> Expr {
        let span = looped.for_token.span();
        self.visit_expr_mut(&mut looped.expr);
        let iterated = self.iterated(&looped.expr);
        let mut mentioned = Mentions::default();
        mentioned.add_block(&looped.body);
        let slots = self.slots(mentioned, span);
        self.scopes.enter();
        self.scopes.declare_pattern(&looped.pat);
        self.visit_block_mut(&mut looped.body);
        self.scopes.leave();
        let (pattern, body) = (&looped.pat, &looped.body);
        let (imports, save, list) = (&slots.imports, &slots.save, &slots.list);
        Expr::Verbatim(quote_spanned! {span=> {
            #imports
            // What the iterated expression borrows stays to the end of the loop, as in Rust.
            match ::exactile::__private::control::IntoLoop::into_loop(#iterated) {
                mut __loop => {
                    #save
                    while let ::core::option::Option::Some(__item) =
                        ::exactile::__private::control::Loop::next(&mut __loop, #list)
                    {
                        let #pattern = __item;
                        #body
                    }
                }
            }
        }})
    }

    /// Rewrites a `while` loop without patterns.
    pub(super) fn while_loop(&mut self, looped: &mut ExprWhile) -> Expr {
        let span = looped.while_token.span();
        let mut mentioned = Mentions::default();
        mentioned.add_block(&looped.body);
        mentioned.add_expression(&looped.cond);
        let slots = self.slots(mentioned, span);
        self.visit_expr_mut(&mut looped.cond);
        self.visit_block_mut(&mut looped.body);
        let (condition, body) = (&looped.cond, &looped.body);
        let (imports, save, list) = (&slots.imports, &slots.save, &slots.list);
        Expr::Verbatim(quote_spanned! {span=> {
            #imports
            let mut __while = ::exactile::__private::control::While::new();
            #save
            while __while.enter(#list) {
                if !__while.test(#condition, #list) {
                    break;
                }
                #body
            }
        }})
    }

    /// What a `for` runs over: `a..b` becomes a call unless both bounds are literals, which
    /// only Rust itself can give a type.
    fn iterated(&self, iterated: &Expr) -> TokenStream {
        if let Expr::MethodCall(call) = iterated
            && let Expr::Range(range) = strip_parentheses(&call.receiver)
            && range.start.is_some()
            && range.end.is_some()
            && let Some(adapted) = hints::adapted(call, &self.iterated(&call.receiver))
        {
            return adapted;
        }
        let Expr::Range(range) = strip_parentheses(iterated) else {
            return quote!(#iterated);
        };
        let ExprRange {
            start, limits, end, ..
        } = range;
        let (Some(start), Some(end)) = (start, end) else {
            self.context
                .error(range.span(), "a loop in a kernel needs both bounds");
            return TokenStream::new();
        };
        if is_literal(start) && is_literal(end) {
            return quote!(#iterated);
        }
        let span = range.span();
        let method = match limits {
            RangeLimits::HalfOpen(_) => quote_spanned!(span=> over),
            RangeLimits::Closed(_) => quote_spanned!(span=> through),
        };
        quote_spanned! {span=> ::exactile::__private::control::Span::#method(#start, #end) }
    }
}

fn strip_parentheses(expression: &Expr) -> &Expr {
    match expression {
        Expr::Paren(inner) => strip_parentheses(&inner.expr),
        // What a macro was given.
        Expr::Group(inner) => strip_parentheses(&inner.expr),
        other => other,
    }
}
