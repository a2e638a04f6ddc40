//! `if` and `else`: a host condition takes one branch, a device condition traces both.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{Expr, ExprIf};

use super::Rewriter;
use crate::ends::{block_panics, panics};
use crate::names::Mentions;

/// Lets what takes the value of a branch stand behind one that gives none.
fn dead(panics: bool) -> Option<TokenStream> {
    panics.then(|| {
        quote! {
            #[allow(unreachable_code, clippy::diverging_sub_expression, reason = "the branch panics")]
        }
    })
}

impl Rewriter<'_> {
    /// Rewrites an `if` without patterns; it keeps its value.
    pub(super) fn branch(&mut self, branch: &mut ExprIf) -> Expr {
        let span = branch.if_token.span();
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
