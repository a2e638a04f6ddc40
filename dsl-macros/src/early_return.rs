//! Turns early returns into branches: `if c { return; } rest` becomes `if c {} else { rest }`.
//!
//! A `return` is understood in tail position, and as the end of a branch of an `if` statement in
//! tail position. What is left is for [`exits`](crate::exits).

use syn::spanned::Spanned;
use syn::{Block, Expr, ExprBlock, ExprIf, ExprReturn, Stmt, Token};

use crate::rewrite::holds_let;

/// Rewrites the body of a function or closure.
pub(crate) fn body(block: &mut Block) {
    if let Some(index) = block.stmts.iter().position(is_return) {
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
    let mut places = 0..block.stmts.len();
    let _ = places.find(|&index| absorb(block, index, is_return));
    match block.stmts.last_mut() {
        Some(Stmt::Expr(Expr::If(branch), _)) => tail_of_if(branch),
        Some(Stmt::Expr(Expr::Block(inner), None)) => body(&mut inner.block),
        _ => {}
    }
}

/// Moves the statements after an `if` of which one branch `ends` in a way out to the other one;
/// whether the statement at `index` is such an `if`.
pub(crate) fn absorb(block: &mut Block, index: usize, ends: impl Fn(&Stmt) -> bool) -> bool {
    let last = |block: &Block| block.stmts.last().is_some_and(&ends);
    let Some(Stmt::Expr(Expr::If(branch), semicolon)) = block.stmts.get_mut(index) else {
        return false;
    };
    let then_ends = last(&branch.then_branch);
    let otherwise_ends = match &branch.else_branch {
        Some((_, otherwise)) => matches!(&**otherwise, Expr::Block(inner) if last(&inner.block)),
        None => false,
    };
    // In the branch that goes on, what follows would see the names of a pattern.
    if !then_ends && (!otherwise_ends || holds_let(&branch.cond)) {
        return false;
    }
    *semicolon = None;
    let rest: Vec<Stmt> = block.stmts.drain(index + 1..).collect();
    if rest.is_empty() {
        return true;
    }
    if let Some(Stmt::Expr(Expr::If(branch), _)) = block.stmts.get_mut(index) {
        let other = match then_ends {
            true => otherwise_block(branch),
            false => &mut branch.then_branch,
        };
        // What the branch declares is unknown to the rest.
        if other.stmts.iter().any(|it| !matches!(it, Stmt::Expr(..))) {
            let own = std::mem::take(&mut other.stmts);
            let own = Stmt::Expr(block_expression(own), Some(Default::default()));
            other.stmts.push(own);
        }
        if let Some(Stmt::Expr(_, semicolon)) = other.stmts.last_mut() {
            semicolon.get_or_insert_with(Default::default);
        }
        other.stmts.extend(rest);
    }
    true
}

fn tail_of_if(branch: &mut ExprIf) {
    body(&mut branch.then_branch);
    if let Some((_, otherwise)) = &mut branch.else_branch {
        match &mut **otherwise {
            Expr::Block(inner) => body(&mut inner.block),
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

/// A block of statements as an expression.
pub(crate) fn block_expression(stmts: Vec<Stmt>) -> Expr {
    Expr::Block(ExprBlock {
        attrs: Vec::new(),
        label: None,
        block: Block {
            brace_token: Default::default(),
            stmts,
        },
    })
}

fn is_return(statement: &Stmt) -> bool {
    matches!(statement, Stmt::Expr(Expr::Return(_), _))
}
