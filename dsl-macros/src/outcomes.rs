//! Values that leave loops: which functions return one from inside of a loop, and how all their ends do likewise.

use quote::format_ident;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Block, ExprClosure, ExprReturn, Ident, Item, Stmt, parse_quote};

use crate::context::Context;
use crate::early_return;
use crate::ends::Ends;

/// Whether a `return` with a value leaves a loop, or a branch that does not end the function. Then every end of the
/// block becomes such a `return`.
pub(crate) fn returns(context: &Context, block: &mut Block) -> bool {
    let mut branches = block.clone();
    early_return::body(&mut branches);
    let mut found = Returns(false);
    found.visit_block(&branches);
    let ends = Ends {
        value: &|value| parse_quote!(return #value),
        broken: &|value, _| parse_quote!(return #value),
    };
    if found.0 && !ends.of_block(block) {
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
