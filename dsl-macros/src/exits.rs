//! Ways out of loops: `break`, `continue`, and `return` where it does not end the function's block. What a `break` or
//! `return` gives is set before.
//!
//! Each becomes a call that notes what is left, after which what follows is skipped: statements move to
//! the other branch of an `if` of which one ends so, and into an `if` of their own behind anything else.
//! Loops end, or unroll no further, by what their slots have noted.

use std::collections::BTreeSet;

use proc_macro2::Span;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{
    Arm, Block, Expr, ExprBreak, ExprClosure, ExprContinue, ExprIf, ExprReturn, ExprWhile, Ident,
    Item, Lifetime, Macro, Stmt, Token, parse_quote, parse_quote_spanned,
};

use crate::context::Context;
use crate::early_return::{self, block_expression};
use crate::held;
use crate::names::mentions;
use crate::outcomes;
use crate::rewrite::holds_let;

/// Rewrites the body of a function or closure.
pub(crate) fn body(context: &Context, block: &mut Block) {
    let gives = outcomes::returns(context, block);
    if !gives {
        early_return::body(block);
    }
    let mut pass = Pass {
        context,
        loops: Vec::new(),
        returned: None,
        gives,
        is_value: false,
        in_expression: false,
        made: 0,
    };
    pass.block(block);
    if let Some(returned) = pass.returned {
        block.stmts.insert(0, declaration(&returned));
    }
    if gives {
        let result = outcomes::result();
        block.stmts.insert(0, outcomes::declaration(&result));
        block.stmts.push(outcomes::given(&result));
    }
    Leftover { context }.visit_block(block);
}

/// What may have been left after some code.
type Exits = BTreeSet<Ident>;

/// A loop around the code.
struct Frame {
    label: Option<Lifetime>,
    /// Noted by `break`.
    left: Ident,
    /// Noted by `continue`.
    skipped: Ident,
    /// Whether something asks what `continue` has noted.
    asks_skipped: bool,
    /// Set by a `break` with a value, which leaves a `loop` alone.
    outcome: Option<Ident>,
    /// Whether there is a `break` without a value, and one with a value.
    breaks: [bool; 2],
}

struct Pass<'a> {
    context: &'a Context,
    loops: Vec<Frame>,
    /// Noted by `return`.
    returned: Option<Ident>,
    /// Whether `return` gives a value.
    gives: bool,
    /// Whether the code is part of an expression, which nothing leaves.
    is_value: bool,
    /// Whether it is part of an expression or of a loop in one, behind which nothing could be skipped.
    in_expression: bool,
    made: usize,
}

impl Pass<'_> {
    fn block(&mut self, block: &mut Block) -> Exits {
        let mut found = Exits::new();
        let mut index = 0;
        while index < block.stmts.len() {
            self.made += 1;
            held::part(self.context, block, index, self.made);
            early_return::absorb(block, index, leaves);
            let exits = self.statement(&mut block.stmts[index]);
            index += 1;
            found.extend(exits.iter().cloned());
            if exits.is_empty() || index == block.stmts.len() {
                continue;
            }
            let rest: Vec<Stmt> = block.stmts.drain(index..).collect();
            let mut rest: Block = parse_quote!({ #(#rest)* });
            found.extend(self.block(&mut rest));
            block
                .stmts
                .push(Stmt::Expr(self.unless(&exits, rest), None));
            break;
        }
        found
    }

    /// `block`, if none of these has been left.
    fn unless(&mut self, exits: &Exits, block: Block) -> Expr {
        for frame in &mut self.loops {
            frame.asks_skipped |= exits.contains(&frame.skipped);
        }
        let span = block
            .stmts
            .first()
            .map_or_else(Span::call_site, Spanned::span);
        let exits = exits.iter();
        let condition =
            quote_spanned!(span=> ::exactile::__private::control::Exit::none([#(#exits),*]));
        Expr::If(ExprIf {
            attrs: Vec::new(),
            if_token: Token![if](span),
            cond: Box::new(Expr::Verbatim(condition)),
            then_branch: block,
            else_branch: None,
        })
    }

    fn statement(&mut self, statement: &mut Stmt) -> Exits {
        match statement {
            Stmt::Expr(expression, semicolon) => {
                let exits = self.expression(expression);
                if !exits.is_empty() {
                    semicolon.get_or_insert_with(Default::default);
                }
                exits
            }
            Stmt::Local(local) => {
                if let Some(init) = &mut local.init {
                    self.value(&mut init.expr);
                    if let Some((_, diverge)) = &mut init.diverge {
                        self.value(diverge);
                    }
                }
                Exits::new()
            }
            Stmt::Item(_) | Stmt::Macro(_) => Exits::new(),
        }
    }

    /// An expression in the place of a statement.
    fn expression(&mut self, expression: &mut Expr) -> Exits {
        match expression {
            Expr::Break(_) | Expr::Continue(_) | Expr::Return(_) => self.exit(expression),
            Expr::If(branch) => {
                self.value(&mut branch.cond);
                let mut exits = self.block(&mut branch.then_branch);
                if let Some((_, otherwise)) = &mut branch.else_branch {
                    exits.extend(self.expression(otherwise));
                }
                exits
            }
            Expr::Match(matched) => {
                self.value(&mut matched.expr);
                matched
                    .arms
                    .iter_mut()
                    .flat_map(|arm| self.arm(arm))
                    .collect()
            }
            Expr::Block(inner) if inner.label.is_none() => self.block(&mut inner.block),
            Expr::ForLoop(_) | Expr::While(_) | Expr::Loop(_) => self.looped(expression),
            other => {
                self.value(other);
                Exits::new()
            }
        }
    }

    fn arm(&mut self, arm: &mut Arm) -> Exits {
        if let Some((_, guard)) = &mut arm.guard {
            self.value(guard);
        }
        let is_exit = matches!(
            *arm.body,
            Expr::Break(_) | Expr::Continue(_) | Expr::Return(_)
        );
        let exits = self.expression(&mut arm.body);
        if is_exit && !exits.is_empty() {
            let noted = std::mem::replace(&mut *arm.body, Expr::Verbatim(Default::default()));
            let noted = Stmt::Expr(noted, Some(Default::default()));
            *arm.body = block_expression(vec![noted]);
        }
        exits
    }

    /// Notes an exit; one that leaves nothing known stays, to be reported.
    fn exit(&mut self, expression: &mut Expr) -> Exits {
        let span = expression.span();
        let left = match expression {
            _ if self.is_value => None,
            Expr::Break(exit) => self.broken(exit),
            Expr::Continue(ExprContinue { label, .. }) => self
                .frame(label.as_ref())
                .map(|frame| (frame.skipped.clone(), None)),
            Expr::Return(exit) if !self.in_expression => Some(self.returned(exit)),
            _ => None,
        };
        let Some((name, outcome)) = left else {
            return Exits::new();
        };
        *expression = match outcome {
            None => Expr::Verbatim(quote_spanned!(span=> #name.leave())),
            Some((outcome, mut value)) => {
                self.value(&mut value);
                parse_quote_spanned!(span=> { #outcome.set(#value); #name.leave(); })
            }
        };
        Exits::from([name])
    }

    /// What a `break` notes, and the value that it gives with its name.
    fn broken(&mut self, exit: &mut ExprBreak) -> Option<(Ident, Option<(Ident, Expr)>)> {
        let frame = self.frame(exit.label.as_ref())?;
        let outcome = match exit.expr.is_some() {
            true => Some(frame.outcome.clone()?),
            false => None,
        };
        frame.breaks[usize::from(outcome.is_some())] = true;
        let left = frame.left.clone();
        let value = exit.expr.take().map(|value| *value);
        Some((left, outcome.zip(value)))
    }

    /// What a `return` notes, and the value that it gives with its name.
    fn returned(&mut self, exit: &mut ExprReturn) -> (Ident, Option<(Ident, Expr)>) {
        if self.gives && exit.expr.is_none() {
            let message = "this `return` gives no value, but another one does";
            self.context.error(exit.return_token.span(), message);
        }
        let returned = self
            .returned
            .get_or_insert_with(|| format_ident!("__returned"));
        let value = exit.expr.take().map(|value| (outcomes::result(), *value));
        (returned.clone(), value)
    }

    fn frame(&mut self, label: Option<&Lifetime>) -> Option<&mut Frame> {
        match label {
            None => self.loops.last_mut(),
            Some(_) => self
                .loops
                .iter_mut()
                .rev()
                .find(|frame| frame.label.as_ref() == label),
        }
    }

    /// A loop: it runs in a block of its own with what its statements note.
    fn looped(&mut self, expression: &mut Expr) -> Exits {
        self.made += 1;
        let outcome = matches!(expression, Expr::Loop(_));
        let outcome = outcome.then(|| format_ident!("__value_{}", self.made));
        let (label, body) = match expression {
            Expr::ForLoop(looped) => {
                self.value(&mut looped.expr);
                (looped.label.take(), &mut looped.body)
            }
            Expr::While(looped) => {
                self.value(&mut looped.cond);
                (looped.label.take(), &mut looped.body)
            }
            Expr::Loop(looped) => (looped.label.take(), &mut looped.body),
            _ => return Exits::new(),
        };
        self.loops.push(Frame {
            label: label.map(|label| label.name),
            left: format_ident!("__left_{}", self.made),
            skipped: format_ident!("__skipped_{}", self.made),
            asks_skipped: false,
            outcome,
            breaks: [false; 2],
        });
        let mut exits = self.block(body);
        let Some(frame) = self.loops.pop() else {
            return exits;
        };
        if exits.remove(&frame.skipped) {
            match frame.asks_skipped {
                true => body.stmts.insert(0, declaration(&frame.skipped)),
                false => Unasked(&frame.skipped).visit_block_mut(body),
            }
        }
        if !exits.is_empty() {
            let inner = std::mem::replace(body, parse_quote!({}));
            let guarded = self.unless(&exits, inner);
            body.stmts.push(Stmt::Expr(guarded, None));
        }
        let left = exits.remove(&frame.left);
        self.ended(expression, &frame, left, &exits);
        exits
    }

    /// Makes a `while` of a `loop`, and declares what leaves a loop in front of it.
    fn ended(&self, expression: &mut Expr, frame: &Frame, left: bool, outer: &Exits) {
        if let Expr::Loop(looped) = expression {
            if !left && outer.is_empty() {
                self.context.error(
                    looped.loop_token.span(),
                    "this `loop` never ends: it needs a `break` or a `return`",
                );
            }
            let span = looped.loop_token.span();
            if frame.breaks == [true; 2] {
                let message =
                    "one `break` of this `loop` gives a value, and another one gives none";
                self.context.error(span, message);
            }
            let body = &looped.body;
            *expression = parse_quote_spanned! {span=>
                while ::exactile::__private::control::Forever #body
            };
        }
        if let Expr::While(looped) = expression {
            let all = outer.iter().chain(left.then_some(&frame.left));
            ends_on_the_host(looped, &all.collect::<Vec<_>>());
        }
        if left {
            let looped = std::mem::replace(expression, Expr::Verbatim(Default::default()));
            let mut statements = vec![declaration(&frame.left), Stmt::Expr(looped, None)];
            if let Some(outcome) = frame.outcome.as_ref().filter(|_| frame.breaks[1]) {
                statements.insert(0, outcomes::declaration(outcome));
                statements.push(outcomes::given(outcome));
            }
            *expression = block_expression(statements);
        }
    }

    /// Part of an expression: it has loops, but nothing leaves it.
    fn value(&mut self, expression: &mut Expr) {
        let loops = std::mem::take(&mut self.loops);
        let was_value = std::mem::replace(&mut self.is_value, true);
        let was_within = std::mem::replace(&mut self.in_expression, true);
        Values(self).visit_expr_mut(expression);
        (self.is_value, self.in_expression) = (was_value, was_within);
        self.loops = loops;
    }
}

/// A `while let` runs on the host and has no slots: it asks for what it knows itself.
fn ends_on_the_host(looped: &mut ExprWhile, exits: &[&Ident]) {
    if !holds_let(&looped.cond) || exits.is_empty() {
        return;
    }
    let body = &mut looped.body;
    let ends = quote! {
        if ::exactile::__private::control::Exit::any([#(#exits),*]) { break; }
    };
    body.stmts.push(Stmt::Expr(Expr::Verbatim(ends), None));
}

/// Finds the loops in an expression.
struct Values<'p, 'a>(&'p mut Pass<'a>);

impl VisitMut for Values<'_, '_> {
    fn visit_expr_mut(&mut self, expression: &mut Expr) {
        match expression {
            Expr::ForLoop(_) | Expr::While(_) | Expr::Loop(_) => {
                // What leaves the loop itself is its own.
                let was_value = std::mem::replace(&mut self.0.is_value, false);
                self.0.looped(expression);
                self.0.is_value = was_value;
            }
            Expr::Closure(_) => {}
            _ => visit_mut::visit_expr_mut(self, expression),
        }
    }

    fn visit_item_mut(&mut self, _: &mut Item) {}
}

/// Removes the notes of a `continue` for which nothing asks.
struct Unasked<'a>(&'a Ident);

impl VisitMut for Unasked<'_> {
    fn visit_block_mut(&mut self, block: &mut Block) {
        block.stmts.retain(|statement| {
            !matches!(statement, Stmt::Expr(Expr::Verbatim(noted), _)
                if mentions(noted).contains(&self.0.to_string()))
        });
        visit_mut::visit_block_mut(self, block);
    }

    fn visit_expr_if_mut(&mut self, branch: &mut ExprIf) {
        visit_mut::visit_expr_if_mut(self, branch);
        let is_empty = |otherwise: &Expr| matches!(otherwise, Expr::Block(inner) if inner.block.stmts.is_empty());
        branch
            .else_branch
            .take_if(|(_, otherwise)| is_empty(otherwise));
    }
}

fn declaration(name: &Ident) -> Stmt {
    parse_quote!(let mut #name = ::exactile::__private::control::Exit::new();)
}

/// Whether a statement leaves a loop or the function.
pub(crate) fn leaves(statement: &Stmt) -> bool {
    matches!(
        statement,
        Stmt::Expr(Expr::Break(_) | Expr::Continue(_) | Expr::Return(_), _)
    )
}

/// Reports the exits that are left.
struct Leftover<'a> {
    context: &'a Context,
}

impl<'ast> Visit<'ast> for Leftover<'_> {
    fn visit_expr_break(&mut self, exit: &'ast ExprBreak) {
        let message = match &exit.expr {
            Some(_) => {
                "this `break` with a value is not supported in a kernel: it leaves a `loop`, and is a statement of its body, of a branch or of an arm; what it skips is bound by a `let` of its own"
            }
            None => {
                "this `break` is not supported in a kernel: it is a statement of a loop's body, of a branch or of an arm, and its label names a loop; what it skips is bound by a `let` of its own"
            }
        };
        self.context.error(exit.break_token.span(), message);
        visit::visit_expr_break(self, exit);
    }

    fn visit_expr_continue(&mut self, exit: &'ast ExprContinue) {
        self.context.error(
            exit.continue_token.span(),
            "this `continue` is not supported in a kernel: it is a statement of a loop's body, of a branch or of an arm, and its label names a loop; what it skips is bound by a `let` of its own",
        );
    }

    fn visit_expr_return(&mut self, exit: &'ast ExprReturn) {
        let message = match &exit.expr {
            Some(_) => {
                "this `return` gives its value from inside of an expression: it is a statement of a block, of a branch or of an arm; what it skips is bound by a `let` of its own"
            }
            None => {
                "this `return` is not supported in a kernel: it is a statement of a block, of a branch or of an arm; what it skips is bound by a `let` of its own"
            }
        };
        self.context.error(exit.return_token.span(), message);
        visit::visit_expr_return(self, exit);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        let names = mentions(&call.tokens);
        for word in ["break", "continue", "return"] {
            if names.contains(word) {
                let message =
                    format!("`{word}` inside of a macro is not rewritten: write it outside");
                self.context.error(call.path.span(), message);
            }
        }
    }

    fn visit_expr_closure(&mut self, _: &'ast ExprClosure) {}

    fn visit_item(&mut self, _: &'ast Item) {}
}
