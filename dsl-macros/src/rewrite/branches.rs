//! `if` and `else`: a host condition takes one branch, a device condition traces both.

use std::cell::Cell;

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{Expr, ExprBreak, ExprIf, Ident, Lit, Stmt, parse_quote_spanned};

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

/// What the ends of a branch give.
#[derive(Clone, Copy, Default)]
struct Found {
    /// A literal.
    literal: bool,
    /// A literal to which a branch around gave a type.
    given: bool,
    /// What has a type of its own.
    typed: bool,
}

impl Found {
    fn of(visit: impl FnOnce(&dyn Fn(Expr) -> Expr)) -> Self {
        let found = Cell::new(Self::default());
        visit(&|value| {
            let mut all = found.get();
            match &value {
                value if is_literal_end(value) => all.literal = true,
                value if is_given(value) => all.given = true,
                Expr::Macro(_) => {}
                _ => all.typed = true,
            }
            found.set(all);
            value
        });
        found.get()
    }
}

/// Lets literals that some ends give take the type of what the others give.
fn type_literals(branch: &mut ExprIf) {
    let found = Found::of(|value| visit_ends(branch, value));
    if found.literal && found.typed {
        give_types_in(branch);
    }
}

/// The same where no end before says the type. An inner branch of literals alone is decided before an end behind it says
/// one: its literals stay numbers of the host.
fn give_types_in(branch: &mut ExprIf) {
    let Some((_, otherwise)) = &mut branch.else_branch else {
        return;
    };
    let then = &mut branch.then_branch;
    let is_known = Found::of(|value| ends(value, |ends| ends.of_block(then))).typed;
    if let [.., Stmt::Expr(last, None)] = then.stmts.as_mut_slice() {
        give_types(last, false);
    }
    give_types(otherwise, is_known);
}

fn give_types(end: &mut Expr, is_known: bool) {
    let is_typed = Found::of(|value| ends(value, |ends| ends.of(end, false))).typed;
    match end {
        Expr::If(_) if !is_typed && !is_known => {}
        Expr::If(inner) if !is_known => give_types_in(inner),
        Expr::Block(inner) if !is_known && inner.label.is_none() => {
            if let [.., Stmt::Expr(last, None)] = inner.block.stmts.as_mut_slice() {
                give_types(last, false);
            }
        }
        end if is_known || is_typed || is_literal_end(end) => {
            ends(&give_type, |ends| ends.of(end, false));
        }
        _ => {}
    }
}

fn give_type(value: Expr) -> Expr {
    let span = value.span();
    match is_literal_end(&value) {
        true => parse_quote_spanned!(span=> ::exactile::__private::control::Given::given(#value)),
        false => value,
    }
}

/// Whether a branch around has given a type to it.
fn is_given(value: &Expr) -> bool {
    let Expr::Call(call) = value else {
        return false;
    };
    let Expr::Path(function) = &*call.func else {
        return false;
    };
    let segments = function.path.segments.iter().map(|it| it.ident.to_string());
    segments.eq(["exactile", "__private", "control", "Given", "given"])
}

fn visit_ends(branch: &mut ExprIf, value: &dyn Fn(Expr) -> Expr) {
    if let Some((_, otherwise)) = &mut branch.else_branch {
        ends(value, |ends| {
            ends.of_block(&mut branch.then_branch);
            ends.of(otherwise, false)
        });
    }
}

fn ends(value: &dyn Fn(Expr) -> Expr, visit: impl FnOnce(&Ends<'_>) -> bool) {
    let broken = |value: Expr, mut exit: ExprBreak| {
        exit.expr = Some(Box::new(value));
        Expr::Break(exit)
    };
    visit(&Ends {
        value,
        broken: &broken,
    });
}

fn is_literal_end(value: &Expr) -> bool {
    is_literal(value) || matches!(value, Expr::Lit(literal) if matches!(literal.lit, Lit::Bool(_)))
}

impl Rewriter<'_> {
    /// Rewrites an `if` without patterns; it keeps its value.
    pub(super) fn branch(&mut self, branch: &mut ExprIf) -> Expr {
        let span = branch.if_token.span();
        let branches = Ident::new("__branches", Span::mixed_site().located_at(span));
        // The branch around says which type the literals have.
        let new_branches = match Found::of(|value| visit_ends(branch, value)).given {
            true => quote_spanned!(span=> like(&#branches)),
            false => quote_spanned!(span=> new()),
        };
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
                            #branches.otherwise = ::core::option::Option::Some(#otherwise);
                        }
                    }
                }
            }
            None => quote_spanned! {span=>
                if __if.enter_nothing(#list) {
                    #branches.otherwise = ::core::option::Option::Some(());
                }
            },
        };
        let (condition, then) = (&branch.cond, &branch.then_branch);
        Expr::Verbatim(quote_spanned! {span=> {
            #imports
            let mut __if = ::exactile::__private::control::If::begin(#condition);
            #save
            let mut #branches = ::exactile::__private::control::Branches::#new_branches;
            if __if.enter_then(#list) {
                #then_is_dead
                {
                    #branches.then = ::core::option::Option::Some(#then);
                }
            }
            #otherwise
            let __kind = (&&&::exactile::__private::control::Kind::of_branches(&#branches)).kind();
            __kind.merge(__if, #branches, #list)
        }})
    }
}
