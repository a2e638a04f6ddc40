//! Turns early returns into branches: `if c { return; } rest` becomes `if c {} else { rest }`.
//!
//! A `return` is understood in tail position, and as the end of a branch of an `if` statement in
//! tail position. Every other one is an error.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Block, Expr, ExprBlock, ExprClosure, ExprIf, ExprReturn, Item, Stmt, Token};

use crate::context::Context;

/// Rewrites the body of a function or closure.
pub(crate) fn body(context: &Context, block: &mut Block) {
    tail(block);
    Leftover { context }.visit_block(block);
}

fn tail(block: &mut Block) {
    if let Some(index) = block.stmts.iter().position(is_exit) {
        // What follows never runs; rustc would warn, so it stays an error of the user.
        if index + 1 == block.stmts.len() {
            let value = match block.stmts.pop() {
                Some(Stmt::Expr(Expr::Return(ExprReturn { expr, .. }), _)) => expr,
                _ => None,
            };
            if let Some(value) = value {
                block.stmts.push(Stmt::Expr(*value, None));
            }
        }
    }
    absorb_rest(block);
    match block.stmts.last_mut() {
        Some(Stmt::Expr(Expr::If(branch), _)) => tail_of_if(branch),
        Some(Stmt::Expr(Expr::Block(inner), None)) => tail(&mut inner.block),
        _ => {}
    }
}

/// Moves the statements after a branch that returns into the other branch.
fn absorb_rest(block: &mut Block) {
    let found = block.stmts.iter().position(|statement| {
        matches!(statement, Stmt::Expr(Expr::If(branch), _) if then_exits(branch) || else_exits(branch))
    });
    let Some(index) = found else { return };
    let rest: Vec<Stmt> = block.stmts.drain(index + 1..).collect();
    let Some(Stmt::Expr(Expr::If(branch), semicolon)) = block.stmts.last_mut() else {
        return;
    };
    *semicolon = None;
    if rest.is_empty() {
        return;
    }
    if then_exits(branch) {
        let otherwise = otherwise_block(branch);
        otherwise.stmts.extend(rest);
    } else {
        branch.then_branch.stmts.extend(rest);
    }
}

fn tail_of_if(branch: &mut ExprIf) {
    tail(&mut branch.then_branch);
    if let Some((_, otherwise)) = &mut branch.else_branch {
        match &mut **otherwise {
            Expr::Block(inner) => tail(&mut inner.block),
            Expr::If(inner) => tail_of_if(inner),
            _ => {}
        }
    }
}

/// The `else` block of a branch, made if there is none or if it is an `else if`.
fn otherwise_block(branch: &mut ExprIf) -> &mut Block {
    let span = branch.if_token.span();
    let (_, otherwise) = branch
        .else_branch
        .get_or_insert_with(|| (Token![else](span), Box::new(block_expression(Vec::new()))));
    if !matches!(**otherwise, Expr::Block(_)) {
        let inner = std::mem::replace(&mut **otherwise, Expr::Verbatim(Default::default()));
        **otherwise = block_expression(vec![Stmt::Expr(inner, Some(Token![;](span)))]);
    }
    match &mut **otherwise {
        Expr::Block(inner) => &mut inner.block,
        _ => unreachable!("broken invariant: the branch was just made a block"),
    }
}

fn block_expression(stmts: Vec<Stmt>) -> Expr {
    Expr::Block(ExprBlock {
        attrs: Vec::new(),
        label: None,
        block: Block {
            brace_token: Default::default(),
            stmts,
        },
    })
}

fn is_exit(statement: &Stmt) -> bool {
    matches!(statement, Stmt::Expr(Expr::Return(_), _))
}

fn then_exits(branch: &ExprIf) -> bool {
    branch.then_branch.stmts.last().is_some_and(is_exit)
}

fn else_exits(branch: &ExprIf) -> bool {
    match &branch.else_branch {
        Some((_, otherwise)) => match &**otherwise {
            Expr::Block(inner) => inner.block.stmts.last().is_some_and(is_exit),
            _ => false,
        },
        None => false,
    }
}

/// Reports the returns that are left.
struct Leftover<'a> {
    context: &'a Context,
}

impl<'ast> Visit<'ast> for Leftover<'_> {
    fn visit_expr_return(&mut self, expression: &'ast ExprReturn) {
        let span: Span = expression.return_token.span();
        self.context.error(
            span,
            "this `return` is not supported: return only at the end of a branch of an `if` statement of the function's own block, outside of loops",
        );
        visit::visit_expr_return(self, expression);
    }

    fn visit_expr_closure(&mut self, _: &'ast ExprClosure) {}

    fn visit_item(&mut self, _: &'ast Item) {}
}
