//! Statements whose value may be left: `let x = if c { return; } else { v };`, assignments likewise, and `let .. else`.
//!
//! What follows moves into the one branch that gives a value. Where there are several, each sets it, and a statement of its
//! own binds it, which is skipped where something was left.

use quote::format_ident;
use syn::spanned::Spanned;
use syn::{
    Block, Expr, ExprBreak, ExprIf, ExprLet, Local, LocalInit, Pat, Stmt, Token, parse_quote,
    parse_quote_spanned,
};

use crate::context::Context;
use crate::early_return::block_expression;
use crate::ends::{Ends, is_left};
use crate::exits::leaves;
use crate::names::is_compound;
use crate::outcomes;
use crate::rewrite::holds_let;

/// Parts the statement at `index`, if something leaves its value; no other one of the function has this `number`.
pub(crate) fn part(context: &Context, block: &mut Block, index: usize, number: usize) {
    if let Some(condition) = pattern(&block.stmts[index]) {
        let rest: Vec<Stmt> = block.stmts.drain(index + 1..).collect();
        let Some(Stmt::Local(local)) = block.stmts.pop() else {
            return;
        };
        block.stmts.push(on_the_host(condition, rest, local));
        return;
    }
    let Some(value) = value(&mut block.stmts[index]) else {
        return;
    };
    let mut code = std::mem::replace(value, Expr::Verbatim(Default::default()));
    if let Expr::If(branch) = &mut code
        && let Some(goes_on) = other_value(branch)
    {
        *value = goes_on;
        let moved = block.stmts.drain(index..).collect();
        move_into(branch, moved);
        block.stmts.push(Stmt::Expr(code, None));
        return;
    }
    let span = code.span();
    let name = format_ident!("__held_{}", number);
    *value = parse_quote!(#name.bound());
    let ends = Ends {
        value: &|value| parse_quote_spanned!(span=> #name.set(#value)),
        broken: &|value, exit: ExprBreak| parse_quote_spanned!(span=> { #name.set(#value); #exit }),
    };
    if !ends.of(&mut code, false) {
        let message = "something leaves this value, but one of its ends gives none";
        context.error(span, message);
    }
    let parts = [
        outcomes::declaration(&name),
        Stmt::Expr(code, Some(Token![;](span))),
    ];
    block.stmts.splice(index..index, parts);
}

/// The value of a statement, where something leaves it.
fn value(statement: &mut Stmt) -> Option<&mut Expr> {
    let value = match statement {
        Stmt::Local(Local {
            init:
                Some(LocalInit {
                    expr,
                    diverge: None,
                    ..
                }),
            ..
        }) => expr,
        Stmt::Expr(Expr::Assign(assign), _) => &mut assign.right,
        Stmt::Expr(Expr::Binary(binary), _) if is_compound(&binary.op) => &mut binary.right,
        Stmt::Local(_) | Stmt::Item(_) | Stmt::Expr(..) | Stmt::Macro(_) => return None,
    };
    let has_ends = match &**value {
        Expr::Block(inner) => inner.label.is_none(),
        Expr::If(_) | Expr::Match(_) | Expr::Loop(_) => true,
        _ => false,
    };
    (has_ends && is_left(value)).then_some(value)
}

/// Takes the value of the branch that goes on, where the other one ends by leaving.
fn other_value(branch: &mut ExprIf) -> Option<Expr> {
    let (_, otherwise) = branch.else_branch.as_mut()?;
    let ends = |block: &Block| block.stmts.last().is_some_and(leaves);
    // In a branch with a pattern what follows would see its names.
    if holds_let(&branch.cond) {
        return None;
    }
    let value = if ends(&branch.then_branch) {
        std::mem::replace(&mut **otherwise, block_expression(Vec::new()))
    } else if matches!(&**otherwise, Expr::Block(inner) if ends(&inner.block)) {
        block_expression(std::mem::take(&mut branch.then_branch.stmts))
    } else {
        return None;
    };
    Some(match value {
        Expr::Block(mut inner) => match &mut inner.block.stmts[..] {
            [Stmt::Expr(only, None)] => only.clone(),
            _ => Expr::Block(inner),
        },
        other => other,
    })
}

/// Puts statements into the branch whose value was taken.
fn move_into(branch: &mut ExprIf, moved: Vec<Stmt>) {
    match &mut branch.else_branch {
        Some((_, otherwise)) if !branch.then_branch.stmts.is_empty() => {
            **otherwise = block_expression(moved);
        }
        _ => branch.then_branch.stmts = moved,
    }
}

/// The condition of a `let` whose `else` leaves a loop or the function.
fn pattern(statement: &Stmt) -> Option<Expr> {
    let Stmt::Local(local) = statement else {
        return None;
    };
    let init = local.init.as_ref()?;
    let (_, diverge) = init.diverge.as_ref()?;
    if !is_left(diverge) || matches!(local.pat, Pat::Type(_)) {
        return None;
    }
    Some(Expr::Let(ExprLet {
        attrs: Vec::new(),
        let_token: local.let_token,
        pat: Box::new(local.pat.clone()),
        eq_token: init.eq_token,
        expr: init.expr.clone(),
    }))
}

/// A branch on a pattern with what follows, and the `else` of the `let` as its other side.
fn on_the_host(condition: Expr, rest: Vec<Stmt>, local: Local) -> Stmt {
    let diverge = local.init.and_then(|init| init.diverge);
    let branch = ExprIf {
        attrs: Vec::new(),
        if_token: Token![if](local.let_token.span),
        cond: Box::new(condition),
        then_branch: parse_quote!({ #(#rest)* }),
        else_branch: diverge,
    };
    Stmt::Expr(Expr::If(branch), None)
}
