//! Which names are in scope, which can change, and which a piece of code mentions.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{
    BinOp, Block, Expr, ExprAssign, ExprBinary, FnArg, Ident, ItemMacro, Macro, Pat, PatIdent,
    PatType, Signature, Type, UnOp,
};

use crate::model::Binding;

/// Names in scope, in the order of their declaration.
#[derive(Default)]
pub(crate) struct Scopes {
    names: Vec<(Ident, Binding)>,
    starts: Vec<usize>,
}

impl Scopes {
    pub(crate) fn enter(&mut self) {
        self.starts.push(self.names.len());
    }

    pub(crate) fn leave(&mut self) {
        let start = self
            .starts
            .pop()
            .expect("broken invariant: scopes are left as often as entered");
        self.names.truncate(start);
    }

    pub(crate) fn declare(&mut self, name: &Ident, binding: Binding) {
        self.names.push((name.clone(), binding));
    }

    /// Whether something of the body has this name.
    pub(crate) fn declares(&self, name: &Ident) -> bool {
        self.names.iter().any(|(declared, _)| declared == name)
    }

    /// Declares the names that a pattern binds.
    pub(crate) fn declare_pattern(&mut self, pattern: &Pat) {
        BoundNames(self).visit_pat(pattern);
    }

    /// Declares the parameters of a function.
    pub(crate) fn declare_signature(&mut self, signature: &Signature) {
        for input in &signature.inputs {
            match input {
                FnArg::Receiver(receiver) => {
                    let by_reference = receiver.reference.is_some();
                    let binding = match (by_reference, receiver.mutability.is_some()) {
                        (_, false) => Binding::Fixed,
                        (true, true) => Binding::Reference,
                        (false, true) => Binding::Mutable,
                    };
                    self.declare(&Ident::from(receiver.self_token), binding);
                }
                FnArg::Typed(typed) => BoundNames(self).visit_pat_type(typed),
            }
        }
    }

    /// Whether a name in scope is a `mut` binding that begins with a literal.
    pub(crate) fn is_number(&self, name: &Ident) -> bool {
        let last = self.names.iter().rfind(|(own, _)| own == name);
        last.is_some_and(|(_, binding)| *binding == Binding::Number)
    }

    /// The names that can change and that the code mentions, each once, in order of declaration.
    /// A name assigned through, as in `*name = ..`, is a reference whatever its pattern was.
    pub(crate) fn changeable(&self, code: &Mentions) -> Vec<(Ident, Binding)> {
        let mut found = Vec::new();
        for (index, (name, binding)) in self.names.iter().enumerate() {
            let shadowed = self.names[index + 1..]
                .iter()
                .any(|(later, _)| later == name);
            let text = name.to_string();
            let binding = match binding {
                Binding::Fixed if code.assigned_through.contains(&text) => Binding::Reference,
                other => *other,
            };
            let is_passed = binding == Binding::Reference && code.passed.contains(&text);
            let is_mentioned = is_passed || code.names.contains(&text);
            if !shadowed && binding != Binding::Fixed && is_mentioned {
                found.push((name.clone(), binding));
            }
        }
        found
    }
}

struct BoundNames<'a>(&'a mut Scopes);

impl<'ast> Visit<'ast> for BoundNames<'_> {
    fn visit_pat_type(&mut self, pattern: &'ast PatType) {
        match (&*pattern.pat, &*pattern.ty) {
            (Pat::Ident(name), Type::Reference(reference)) if reference.mutability.is_some() => {
                self.0.declare(&name.ident, Binding::Reference);
            }
            (inner, _) => self.visit_pat(inner),
        }
    }

    fn visit_pat_ident(&mut self, pattern: &'ast PatIdent) {
        let binding = if pattern.mutability.is_some() && pattern.by_ref.is_none() {
            Binding::Mutable
        } else {
            Binding::Fixed
        };
        self.0.declare(&pattern.ident, binding);
        visit::visit_pat_ident(self, pattern);
    }
}

/// The names that a piece of code mentions.
#[derive(Default)]
pub(crate) struct Mentions {
    names: BTreeSet<String>,
    assigned_through: BTreeSet<String>,
    /// What functions are given, which changes only what a reference leads to.
    passed: BTreeSet<String>,
}

impl Mentions {
    /// Adds the names in `block`.
    pub(crate) fn add_block(&mut self, block: &Block) {
        collect(block.to_token_stream(), &mut self.names);
        AssignedThrough(&mut self.assigned_through).visit_block(block);
    }

    /// Adds the names in `expression`.
    pub(crate) fn add_expression(&mut self, expression: &Expr) {
        collect(expression.to_token_stream(), &mut self.names);
        AssignedThrough(&mut self.assigned_through).visit_expr(expression);
    }

    /// Adds the names in `expression` of what it may change: targets, what methods and closures are called of, references
    /// that they are given, and what macros mention.
    pub(crate) fn add_changed(&mut self, expression: &Expr) {
        let (names, passed) = (&mut self.names, &mut self.passed);
        Changed { names, passed }.visit_expr(expression);
        AssignedThrough(&mut self.assigned_through).visit_expr(expression);
    }

    /// Adds what the macros among the names mention, and those that they call.
    pub(crate) fn add_macros(&mut self, macros: &Macros) {
        loop {
            let before = self.names.len();
            for (name, mentioned) in &macros.0 {
                if self.names.contains(name) {
                    self.names.extend(mentioned.iter().cloned());
                }
            }
            if self.names.len() == before {
                return;
            }
        }
    }
}

/// The macros that a body defines, with the names that each mentions: a call of one mentions them too.
#[derive(Default)]
pub(crate) struct Macros(BTreeMap<String, BTreeSet<String>>);

impl Macros {
    /// Those that `block` defines anywhere.
    pub(crate) fn of(block: &Block) -> Self {
        let mut macros = Self::default();
        macros.visit_block(block);
        macros
    }
}

impl<'ast> Visit<'ast> for Macros {
    fn visit_item_macro(&mut self, item: &'ast ItemMacro) {
        if let Some(name) = &item.ident {
            let names = self.0.entry(name.to_string()).or_default();
            collect(item.mac.tokens.clone(), names);
        }
    }
}

/// Finds the names of what an expression may change.
struct Changed<'a> {
    names: &'a mut BTreeSet<String>,
    passed: &'a mut BTreeSet<String>,
}

impl<'ast> Visit<'ast> for Changed<'_> {
    fn visit_expr(&mut self, expression: &'ast Expr) {
        match expression {
            Expr::Assign(assign) => collect(assign.left.to_token_stream(), self.names),
            Expr::Binary(binary) if is_compound(&binary.op) => {
                collect(binary.left.to_token_stream(), self.names);
            }
            Expr::Reference(taken) if taken.mutability.is_some() => {
                collect(taken.expr.to_token_stream(), self.names);
            }
            Expr::MethodCall(call) => {
                self.names.extend(place_of(&call.receiver));
                self.passed.extend(call.args.iter().filter_map(place_of));
            }
            Expr::Call(call) => {
                self.names.extend(place_of(&call.func));
                self.passed.extend(call.args.iter().filter_map(place_of));
            }
            _ => {}
        }
        visit::visit_expr(self, expression);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        collect(call.to_token_stream(), self.names);
    }
}

/// The binding that a place is part of.
fn place_of(place: &Expr) -> Option<String> {
    match place {
        Expr::Path(path) => path.path.get_ident().map(Ident::to_string),
        Expr::Field(field) => place_of(&field.base),
        Expr::Index(index) => place_of(&index.expr),
        Expr::Paren(inner) => place_of(&inner.expr),
        Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) => place_of(&unary.expr),
        _ => None,
    }
}

/// Finds the names in `*name = ..` and `*name += ..`.
struct AssignedThrough<'a>(&'a mut BTreeSet<String>);

impl AssignedThrough<'_> {
    fn target(&mut self, target: &Expr) {
        if let Expr::Unary(unary) = target
            && matches!(unary.op, UnOp::Deref(_))
            && let Expr::Path(path) = &*unary.expr
            && let Some(name) = path.path.get_ident()
        {
            self.0.insert(name.to_string());
        }
    }
}

impl<'ast> Visit<'ast> for AssignedThrough<'_> {
    fn visit_expr_assign(&mut self, assign: &'ast ExprAssign) {
        self.target(&assign.left);
        visit::visit_expr_assign(self, assign);
    }

    fn visit_expr_binary(&mut self, binary: &'ast ExprBinary) {
        if is_compound(&binary.op) {
            self.target(&binary.left);
        }
        visit::visit_expr_binary(self, binary);
    }
}

/// Whether an operator assigns, as `+=` does.
pub(crate) fn is_compound(operator: &BinOp) -> bool {
    matches!(
        operator,
        BinOp::AddAssign(_)
            | BinOp::SubAssign(_)
            | BinOp::MulAssign(_)
            | BinOp::DivAssign(_)
            | BinOp::RemAssign(_)
            | BinOp::BitXorAssign(_)
            | BinOp::BitAndAssign(_)
            | BinOp::BitOrAssign(_)
            | BinOp::ShlAssign(_)
            | BinOp::ShrAssign(_)
    )
}

/// Every identifier in the tokens, those inside macro calls included.
pub(crate) fn mentions(code: &impl ToTokens) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    collect(code.to_token_stream(), &mut names);
    names
}

fn collect(tokens: TokenStream, names: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(name) => {
                names.insert(name.to_string());
            }
            TokenTree::Group(group) => collect(group.stream(), names),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}
