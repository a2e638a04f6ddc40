//! Replaces comparisons, logic and control flow by calls of the traits in `exactile::__private`.
//!
//! The walk follows Rust's scopes, since a loop or branch must name every outer binding that its
//! body could change. Generated calls carry the span of the operator or keyword, so type errors and
//! traced locations point there.

mod branches;
mod hints;
mod loops;
mod matches;
mod operators;
mod slots;
mod wide;

use syn::visit_mut::{self, VisitMut};
use syn::{
    Arm, Block, Expr, ExprBlock, ExprClosure, ExprIf, ExprWhile, GenericArgument, Item, Local, Pat,
    Stmt, Type, parse_quote,
};

use crate::context::Context;
use crate::exits;
use crate::model::{Binding, Device, Kernel};
use crate::names::{Macros, Scopes, mentions};

/// What the body of a closure begins or leaves a loop with.
const LOOPS: [&str; 4] = ["for", "while", "loop", "return"];

/// Rewrites the body of a kernel in place.
pub(crate) fn kernel(context: &Context, kernel: &mut Kernel) {
    let mut rewriter = Rewriter::new(context, &kernel.body, kernel.checks_overflow);
    for parameter in &kernel.parameters {
        let binding = if parameter.mutable {
            Binding::Mutable
        } else {
            Binding::Fixed
        };
        rewriter.scopes.declare(&parameter.name, binding);
    }
    exits::body(context, &mut kernel.body);
    rewriter.visit_block_mut(&mut kernel.body);
}

/// Rewrites the body of a device function in place.
pub(crate) fn device(context: &Context, device: &mut Device) {
    let mut rewriter = Rewriter::new(context, &device.function.block, device.checks_overflow);
    rewriter.scopes.declare_signature(&device.function.sig);
    exits::body(context, &mut device.function.block);
    rewriter.visit_block_mut(&mut device.function.block);
}

struct Rewriter<'a> {
    context: &'a Context,
    scopes: Scopes,
    macros: Macros,
    /// Whether operators of integers assert that nothing overflows.
    checks_overflow: bool,
}

impl<'a> Rewriter<'a> {
    fn new(context: &'a Context, body: &Block, checks_overflow: bool) -> Self {
        Self {
            context,
            scopes: Scopes::default(),
            macros: Macros::of(body),
            checks_overflow,
        }
    }

    fn arm(&mut self, arm: &mut Arm) {
        self.scopes.enter();
        self.scopes.declare_pattern(&arm.pat);
        if let Some((_, guard)) = &mut arm.guard {
            self.visit_expr_mut(guard);
        }
        self.visit_expr_mut(&mut arm.body);
        self.scopes.leave();
    }

    fn closure(&mut self, closure: &mut ExprClosure) {
        if let Expr::Block(body) = &mut *closure.body {
            exits::body(self.context, &mut body.block);
        } else if mentions(&closure.body)
            .iter()
            .any(|name| LOOPS.contains(&name.as_str()))
        {
            let value = std::mem::replace(&mut *closure.body, Expr::Verbatim(Default::default()));
            let mut body: ExprBlock = parse_quote!({ #value });
            exits::body(self.context, &mut body.block);
            *closure.body = Expr::Block(body);
        }
        self.scopes.enter();
        for input in &closure.inputs {
            self.scopes.declare_pattern(input);
        }
        self.visit_expr_mut(&mut closure.body);
        self.scopes.leave();
    }

    /// A branch on patterns is decided on the host; only what it holds is rewritten.
    fn host_if(&mut self, branch: &mut ExprIf) {
        self.scopes.enter();
        self.let_chain(&mut branch.cond);
        self.visit_block_mut(&mut branch.then_branch);
        self.scopes.leave();
        if let Some((_, otherwise)) = &mut branch.else_branch {
            self.visit_expr_mut(otherwise);
        }
    }

    fn host_while(&mut self, looped: &mut ExprWhile) {
        self.scopes.enter();
        self.let_chain(&mut looped.cond);
        self.visit_block_mut(&mut looped.body);
        self.scopes.leave();
    }

    fn let_chain(&mut self, condition: &mut Expr) {
        match condition {
            Expr::Binary(chain) if holds_let(&chain.left) || holds_let(&chain.right) => {
                self.let_chain(&mut chain.left);
                self.let_chain(&mut chain.right);
            }
            Expr::Let(binding) => {
                self.visit_expr_mut(&mut binding.expr);
                self.scopes.declare_pattern(&binding.pat);
            }
            other => {
                self.visit_expr_mut(other);
                hints::condition(other);
            }
        }
    }
}

/// Whether a condition binds a pattern.
pub(crate) fn holds_let(condition: &Expr) -> bool {
    match condition {
        Expr::Let(_) => true,
        Expr::Binary(chain) => holds_let(&chain.left) || holds_let(&chain.right),
        _ => false,
    }
}

impl VisitMut for Rewriter<'_> {
    fn visit_block_mut(&mut self, block: &mut Block) {
        self.scopes.enter();
        for statement in &mut block.stmts {
            self.visit_stmt_mut(statement);
        }
        self.scopes.leave();
    }

    fn visit_stmt_mut(&mut self, statement: &mut Stmt) {
        visit_mut::visit_stmt_mut(self, statement);
        if let Stmt::Macro(called) = statement
            && let Some(checks) = hints::printed(&called.mac)
        {
            *statement = parse_quote!({ #checks #called });
        }
    }

    fn visit_local_mut(&mut self, local: &mut Local) {
        if let Some(init) = &mut local.init {
            self.visit_expr_mut(&mut init.expr);
            if let Some((_, diverge)) = &mut init.diverge {
                self.visit_expr_mut(diverge);
            }
        }
        self.scopes.declare_pattern(&local.pat);
        if let (Pat::Ident(name), Some(init)) = (&local.pat, &local.init)
            && name.mutability.is_some()
            && operators::is_literal(&init.expr)
        {
            self.scopes.declare(&name.ident, Binding::Number);
        }
    }

    fn visit_item_mut(&mut self, _: &mut Item) {
        // Items inside the body are plain Rust.
    }

    fn visit_type_mut(&mut self, _: &mut Type) {
        // Lengths of arrays are constants.
    }

    fn visit_pat_mut(&mut self, _: &mut Pat) {
        // Patterns hold constants only.
    }

    fn visit_generic_argument_mut(&mut self, _: &mut GenericArgument) {
        // Constants and types.
    }

    fn visit_expr_mut(&mut self, expression: &mut Expr) {
        match expression {
            Expr::If(branch) if holds_let(&branch.cond) => self.host_if(branch),
            Expr::While(looped) if holds_let(&looped.cond) => self.host_while(looped),
            Expr::If(branch) => *expression = self.branch(branch),
            Expr::While(looped) => *expression = self.while_loop(looped),
            Expr::ForLoop(looped) => *expression = self.for_loop(looped),
            Expr::Binary(_) => self.binary(expression),
            Expr::Closure(closure) => self.closure(closure),
            Expr::Call(call) => {
                hints::order(call);
                visit_mut::visit_expr_call_mut(self, call);
                if let Some(typed) = wide::argument(call, &self.scopes) {
                    *expression = typed;
                }
            }
            Expr::Repeat(repeat) => self.visit_expr_mut(&mut repeat.expr),
            Expr::Const(_) => {}
            Expr::Match(matched) if let Some(branches) = matches::branches(matched) => {
                *expression = branches;
                self.visit_expr_mut(expression);
            }
            Expr::Match(matched) => {
                let checks = hints::matched(matched);
                self.visit_expr_mut(&mut matched.expr);
                matched.arms.iter_mut().for_each(|arm| self.arm(arm));
                if let Some(checks) = checks {
                    *expression = parse_quote!({ #checks #expression });
                }
            }
            Expr::Cast(cast) => {
                visit_mut::visit_expr_cast_mut(self, cast);
                hints::cast(cast);
            }
            _ => visit_mut::visit_expr_mut(self, expression),
        }
    }
}
