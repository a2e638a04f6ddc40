//! `if` and `else`: a host condition takes one branch, a device condition traces both.

use std::cell::Cell;

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{Expr, ExprBreak, ExprIf, Lit, parse_quote_spanned};

use super::Rewriter;
use super::operators::is_literal;
use crate::ends::{Ends, block_panics, panics};
use crate::names::Mentions;

/// Lets what takes the value of a branch stand behind one that gives none.
fn dead(panics: bool) -> Option<TokenStream> {
    panics.then(|| {
        quote! {
            #[allow(unreachable_code, clippy::diverging_sub_expression, reason = "the branch panics")]
        }
    })
}

/// Lets literals that some ends give take the type of what the others give.
fn type_literals(branch: &mut ExprIf) {
    let given = Cell::new([false; 2]);
    visit_ends(branch, &|value| {
        let [is_literal, is_typed] = given.get();
        let (literal, panics) = (is_given(&value), matches!(value, Expr::Macro(_)));
        given.set([is_literal || literal, is_typed || !(literal || panics)]);
        value
    });
    if given.get() == [true; 2] {
        visit_ends(branch, &|value| {
            let span = value.span();
            match is_given(&value) {
                true => {
                    parse_quote_spanned!(span=> ::exactile::__private::control::Given::given(#value))
                }
                false => value,
            }
        });
    }
}

fn visit_ends(branch: &mut ExprIf, value: &dyn Fn(Expr) -> Expr) {
    let broken = |value: Expr, mut exit: ExprBreak| {
        exit.expr = Some(Box::new(value));
        Expr::Break(exit)
    };
    let ends = Ends {
        value,
        broken: &broken,
    };
    if let Some((_, otherwise)) = &mut branch.else_branch {
        ends.of_block(&mut branch.then_branch);
        ends.of(otherwise, false);
    }
}

fn is_given(value: &Expr) -> bool {
    is_literal(value) || matches!(value, Expr::Lit(literal) if matches!(literal.lit, Lit::Bool(_)))
}

impl Rewriter<'_> {
    /// Rewrites an `if` without patterns; it keeps its value.
    pub(super) fn branch(&mut self, branch: &mut ExprIf) -> Expr {
        let span = branch.if_token.span();
        type_literals(branch);
        let mut mentioned = Mentions::default();
        mentioned.add_block(&branch.then_branch);
        if let Some((_, otherwise)) = &branch.else_branch {
            mentioned.add_expression(otherwise);
        }
        let slots = self.slots(mentioned, span);
        let then_is_dead = dead(block_panics(&branch.then_branch));
        let otherwise_is_dead = branch.else_branch.as_ref().map(|(_, it)| dead(panics(it)));
        self.visit_expr_mut(&mut branch.cond);
        self.visit_block_mut(&mut branch.then_branch);
        let (imports, save, list) = (&slots.imports, &slots.save, &slots.list);
        let otherwise = match &mut branch.else_branch {
            Some((_, otherwise)) => {
                self.visit_expr_mut(otherwise);
                quote_spanned! {span=>
                    if __if.enter_otherwise(#list) {
                        #otherwise_is_dead
                        {
                            __branches.otherwise = ::core::option::Option::Some(#otherwise);
                        }
                    }
                }
            }
            None => quote_spanned! {span=>
                if __if.enter_nothing(#list) {
                    __branches.otherwise = ::core::option::Option::Some(());
                }
            },
        };
        let (condition, then) = (&branch.cond, &branch.then_branch);
        Expr::Verbatim(quote_spanned! {span=> {
            #imports
            let mut __if = ::exactile::__private::control::If::begin(#condition);
            #save
            let mut __branches = ::exactile::__private::control::Branches::new();
            if __if.enter_then(#list) {
                #then_is_dead
                {
                    __branches.then = ::core::option::Option::Some(#then);
                }
            }
            #otherwise
            let __kind = (&&&::exactile::__private::control::Kind::of_branches(&__branches)).kind();
            __kind.merge(__if, __branches, #list)
        }})
    }
}
