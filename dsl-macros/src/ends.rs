//! Where a block, a branch, a `match` or a `loop` gives its value, and what stands there instead.

use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{
    Block, Expr, ExprBreak, ExprClosure, ExprContinue, ExprLoop, ExprReturn, Item, Label, Lifetime,
    Macro, Stmt,
};

/// What stands for the value at an end, and for a `break` with a value of a `loop` that is one.
pub(crate) struct Ends<'a> {
    pub(crate) value: &'a dyn Fn(Expr) -> Expr,
    pub(crate) broken: &'a dyn Fn(Expr, ExprBreak) -> Expr,
}

impl Ends<'_> {
    /// Whether each end of the block has a value, or is left.
    pub(crate) fn of_block(&self, block: &mut Block) -> bool {
        match block.stmts.last_mut() {
            Some(Stmt::Expr(expression, semicolon)) => self.of(expression, semicolon.is_some()),
            Some(Stmt::Macro(called)) => is_panic(&called.mac),
            Some(Stmt::Local(_) | Stmt::Item(_)) | None => false,
        }
    }

    /// The same of an expression, which gives nothing as a statement.
    pub(crate) fn of(&self, expression: &mut Expr, is_statement: bool) -> bool {
        match expression {
            Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) => true,
            Expr::If(branch) => {
                let Some((_, otherwise)) = &mut branch.else_branch else {
                    return false;
                };
                self.of_block(&mut branch.then_branch) & self.of(otherwise, is_statement)
            }
            Expr::Match(matched) => {
                let arms = matched.arms.iter_mut();
                arms.fold(true, |all, arm| all & self.of(&mut arm.body, is_statement))
            }
            Expr::Block(inner) if inner.label.is_none() => self.of_block(&mut inner.block),
            Expr::Loop(looped) => self.of_loop(looped, is_statement),
            Expr::ForLoop(_) | Expr::While(_) => false,
            Expr::Macro(called) if is_panic(&called.mac) => true,
            _ if is_statement => false,
            value => {
                let given = std::mem::replace(value, Expr::Verbatim(Default::default()));
                *value = (self.value)(given);
                true
            }
        }
    }

    fn of_loop(&self, looped: &mut ExprLoop, is_statement: bool) -> bool {
        let ends = Exits::of(looped).own > 0;
        if !ends || is_statement {
            return !ends;
        }
        let mut broken = Broken {
            ends: self,
            label: looped.label.as_ref().map(|label| label.name.clone()),
            depth: 0,
            shadows: 0,
            is_given: true,
        };
        broken.visit_block_mut(&mut looped.body);
        broken.is_given
    }
}

/// Whether a branch ends in a macro that panics.
pub(crate) fn panics(branch: &Expr) -> bool {
    match branch {
        Expr::Block(inner) => block_panics(&inner.block),
        Expr::Macro(called) => is_panic(&called.mac),
        _ => false,
    }
}

/// The same of a block.
pub(crate) fn block_panics(block: &Block) -> bool {
    match block.stmts.last() {
        Some(Stmt::Expr(last, _)) => panics(last),
        Some(Stmt::Macro(called)) => is_panic(&called.mac),
        Some(Stmt::Local(_) | Stmt::Item(_)) | None => false,
    }
}

/// Whether a macro of the standard library panics, so that nothing takes what it gives.
fn is_panic(called: &Macro) -> bool {
    let name = called.path.segments.last().map(|it| it.ident.to_string());
    let panics = ["panic", "unreachable", "unimplemented", "todo"];
    name.is_some_and(|name| panics.contains(&name.as_str()))
}

/// Whether something in the expression leaves more than the loops in it.
pub(crate) fn is_left(expression: &Expr) -> bool {
    let mut exits = Exits::default();
    exits.visit_expr(expression);
    exits.is_outer
}

/// Finds what leaves a loop or the function.
#[derive(Default)]
struct Exits<'a> {
    /// The loops around, with their labels.
    loops: Vec<Option<&'a Lifetime>>,
    /// How many statements leave the outermost of them.
    own: usize,
    /// Whether one leaves more than that.
    is_outer: bool,
}

impl<'a> Exits<'a> {
    fn of(looped: &'a ExprLoop) -> Self {
        let mut exits = Self::default();
        exits.loops.push(name(looped.label.as_ref()));
        exits.visit_block(&looped.body);
        exits
    }

    /// The place among the loops of that which an exit leaves.
    fn place(&mut self, label: Option<&Lifetime>) -> Option<usize> {
        let place = match label {
            Some(_) => self.loops.iter().rposition(|own| *own == label),
            None => self.loops.len().checked_sub(1),
        };
        self.is_outer |= place.is_none();
        place
    }
}

impl<'ast> Visit<'ast> for Exits<'ast> {
    fn visit_expr(&mut self, expression: &'ast Expr) {
        let around = self.loops.len();
        self.loops.extend(label_of(expression));
        visit::visit_expr(self, expression);
        self.loops.truncate(around);
    }

    fn visit_expr_break(&mut self, exit: &'ast ExprBreak) {
        let place = self.place(exit.label.as_ref());
        self.own += usize::from(place == Some(0));
        visit::visit_expr_break(self, exit);
    }

    fn visit_expr_continue(&mut self, exit: &'ast ExprContinue) {
        self.place(exit.label.as_ref());
    }

    fn visit_expr_return(&mut self, exit: &'ast ExprReturn) {
        self.is_outer = true;
        visit::visit_expr_return(self, exit);
    }

    fn visit_expr_closure(&mut self, _: &'ast ExprClosure) {}

    fn visit_item(&mut self, _: &'ast Item) {}
}

fn name(label: Option<&Label>) -> Option<&Lifetime> {
    label.map(|label| &label.name)
}

/// The label that a loop may have; nothing of what is no loop.
fn label_of(expression: &Expr) -> Option<Option<&Lifetime>> {
    match expression {
        Expr::ForLoop(looped) => Some(name(looped.label.as_ref())),
        Expr::While(looped) => Some(name(looped.label.as_ref())),
        Expr::Loop(looped) => Some(name(looped.label.as_ref())),
        _ => None,
    }
}

/// Replaces what leaves a loop with a value.
struct Broken<'a> {
    ends: &'a Ends<'a>,
    label: Option<Lifetime>,
    /// How many loops are around inside of it.
    depth: usize,
    /// How many of these have its label.
    shadows: usize,
    /// Whether all have had one.
    is_given: bool,
}

impl VisitMut for Broken<'_> {
    fn visit_expr_mut(&mut self, expression: &mut Expr) {
        let label = label_of(expression);
        let is_loop = usize::from(label.is_some());
        let shadows = label
            .flatten()
            .is_some_and(|it| self.label.as_ref() == Some(it));
        self.depth += is_loop;
        self.shadows += usize::from(shadows);
        visit_mut::visit_expr_mut(self, expression);
        self.depth -= is_loop;
        self.shadows -= usize::from(shadows);
        let Expr::Break(exit) = expression else {
            return;
        };
        let is_own = match &exit.label {
            Some(label) => self.shadows == 0 && self.label.as_ref() == Some(label),
            None => self.depth == 0,
        };
        if is_own {
            let given = exit
                .expr
                .take()
                .map(|value| (self.ends.broken)(*value, exit.clone()));
            self.is_given &= given.is_some();
            if let Some(given) = given {
                *expression = given;
            }
        }
    }

    fn visit_expr_closure_mut(&mut self, _: &mut ExprClosure) {}

    fn visit_item_mut(&mut self, _: &mut Item) {}
}
