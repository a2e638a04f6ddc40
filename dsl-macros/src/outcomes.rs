//! Values that leave loops: which functions return one from inside of a loop, and how all their ends do likewise.

use quote::format_ident;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Block, Expr, ExprBreak, ExprClosure, ExprLoop, ExprReturn, Ident, Item, Lifetime, Stmt,
    parse_quote,
};

use crate::context::Context;
use crate::early_return;

/// Whether a `return` with a value leaves a loop, or a branch that does not end the function. Then every end of the
/// block becomes such a `return`.
pub(crate) fn returns(context: &Context, block: &mut Block) -> bool {
    let mut branches = block.clone();
    early_return::body(&mut branches);
    let mut found = Returns(false);
    found.visit_block(&branches);
    if found.0 && !end(block) {
        let last = block.stmts.last().map_or(block.span(), Spanned::span);
        context.error(
            last,
            "a `return` of this function gives a value, but its end does not",
        );
    }
    found.0
}

/// Declares what a statement sets.
pub(crate) fn declaration(name: &Ident) -> Stmt {
    parse_quote!(let mut #name = ::exactile::__private::control::Outcome::new();)
}

/// The value that a statement has set.
pub(crate) fn given(name: &Ident) -> Stmt {
    Stmt::Expr(parse_quote!(#name.get()), None)
}

/// The name of what `return` sets.
pub(crate) fn result() -> Ident {
    format_ident!("__result")
}

/// Makes a `return` of the value of a block; whether it has one.
fn end(block: &mut Block) -> bool {
    match block.stmts.last_mut() {
        Some(Stmt::Expr(expression, semicolon)) => end_of(expression, semicolon.is_some()),
        Some(Stmt::Local(_) | Stmt::Item(_) | Stmt::Macro(_)) | None => false,
    }
}

fn end_of(expression: &mut Expr, is_statement: bool) -> bool {
    match expression {
        Expr::Return(_) => true,
        Expr::If(branch) => {
            let Some((_, otherwise)) = &mut branch.else_branch else {
                return false;
            };
            end(&mut branch.then_branch) & end_of(otherwise, is_statement)
        }
        Expr::Match(matched) => {
            let arms = matched.arms.iter_mut();
            arms.fold(true, |all, arm| all & end_of(&mut arm.body, false))
        }
        Expr::Block(inner) if inner.label.is_none() => end(&mut inner.block),
        Expr::Loop(looped) if !is_left(looped) => true,
        Expr::ForLoop(_) | Expr::While(_) => false,
        _ if is_statement => false,
        value => {
            *value = parse_quote!(return #value);
            true
        }
    }
}

/// Whether a `break` leaves the loop.
fn is_left(looped: &ExprLoop) -> bool {
    let label = looped.label.as_ref().map(|label| &label.name);
    let mut breaks = Breaks {
        label,
        depth: 0,
        found: false,
    };
    breaks.visit_block(&looped.body);
    breaks.found
}

struct Breaks<'a> {
    label: Option<&'a Lifetime>,
    /// How many loops are around inside of it.
    depth: usize,
    found: bool,
}

impl<'ast> Visit<'ast> for Breaks<'_> {
    fn visit_expr(&mut self, expression: &'ast Expr) {
        let is_loop = matches!(
            expression,
            Expr::ForLoop(_) | Expr::While(_) | Expr::Loop(_)
        );
        self.depth += usize::from(is_loop);
        visit::visit_expr(self, expression);
        self.depth -= usize::from(is_loop);
    }

    fn visit_expr_break(&mut self, exit: &'ast ExprBreak) {
        self.found |= match &exit.label {
            Some(label) => self.label == Some(label),
            None => self.depth == 0,
        };
        visit::visit_expr_break(self, exit);
    }

    fn visit_expr_closure(&mut self, _: &'ast ExprClosure) {}

    fn visit_item(&mut self, _: &'ast Item) {}
}

/// Finds a `return` with a value.
struct Returns(bool);

impl<'ast> Visit<'ast> for Returns {
    fn visit_expr_return(&mut self, exit: &'ast ExprReturn) {
        self.0 |= exit.expr.is_some();
        visit::visit_expr_return(self, exit);
    }

    fn visit_expr_closure(&mut self, _: &'ast ExprClosure) {}

    fn visit_item(&mut self, _: &'ast Item) {}
}
