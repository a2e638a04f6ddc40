//! Rejects what a traced body cannot mean, at the user's token.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Attribute, Block, Expr, ExprClosure, ExprRepeat, GenericArgument, Item, Macro, Pat, PatIdent,
    Type, TypeArray,
};

use crate::context::Context;
use crate::model::{Device, Kernel};
use crate::names::mentions;

/// Macros whose arguments are not rewritten, so that they would fail or mean something else.
const REJECTED_MACROS: [(&str, &str); 7] = [
    ("assert", REQUIRE),
    ("assert_eq", REQUIRE),
    ("assert_ne", REQUIRE),
    ("debug_assert", REQUIRE),
    ("debug_assert_eq", REQUIRE),
    ("debug_assert_ne", REQUIRE),
    ("matches", "write a `match` or a comparison"),
];
const REQUIRE: &str = "write `require(condition, \"message\")` for a condition on host values, which is checked while the kernel is compiled, or `device_assert(condition, \"message\")` for one on device values";

const CONST_POSITION: &str = "is a value of the trace, not a Rust constant";
const PASS_AS_ARGUMENT: &str = "pass it as a `usize` argument";

const STORED_ALIAS: &str = "a stored `&mut` alias hides changes from loops and branches: pass `&mut` only as an argument of a call";

/// So many const generics a kernel may have: what was set of them is marked in one word.
const MOST_METAS: usize = 64;

/// So many parameters a kernel may have: a launch passes a tuple of them.
const MOST_PARAMETERS: usize = 64;

/// Checks the signature and body of a kernel.
pub(crate) fn kernel(context: &Context, kernel: &Kernel) {
    let mut checker = Checker {
        context,
        metas: kernel.meta_names(),
    };
    if let Some(parameter) = kernel.parameters.get(MOST_PARAMETERS) {
        let count = kernel.parameters.len();
        let message = format!(
            "a kernel has at most {MOST_PARAMETERS} parameters, and this one has {count}: put some into an array, or into a structure that derives `KernelArguments`"
        );
        context.error(parameter.name.span(), message);
    }
    for parameter in &kernel.parameters {
        checker.visit_type(&parameter.ty);
        checker.name_is_free(&parameter.name);
    }
    for (place, meta) in kernel.metas.iter().enumerate() {
        checker.meta_type(&meta.ty);
        if place == MOST_METAS {
            let message = format!("a kernel has at most {MOST_METAS} const generics");
            context.error(meta.name.span(), message);
        }
    }
    checker.visit_block(&kernel.body);
}

/// Checks the body of a device function. Its const generics stay Rust constants.
pub(crate) fn device(context: &Context, device: &Device) {
    let mut checker = Checker {
        context,
        metas: Vec::new(),
    };
    checker.visit_block(&device.function.block);
}

struct Checker<'a> {
    context: &'a Context,
    metas: Vec<String>,
}

impl Checker<'_> {
    fn name_is_free(&self, name: &syn::Ident) {
        if self.metas.iter().any(|meta| name == meta) {
            let message = format!("`{name}` is a const generic and a parameter");
            self.context.error(name.span(), message);
        }
    }

    fn meta_type(&self, ty: &Type) {
        let known = ["usize", "bool", "i32", "i64", "u32", "u64"];
        let named =
            matches!(ty, Type::Path(path) if known.iter().any(|name| path.path.is_ident(name)));
        if !named {
            let message = format!(
                "a const generic of a kernel is one of `{}`",
                known.join("`, `")
            );
            self.context.error(ty.span(), message);
        }
    }

    /// Reports const generics of the kernel among `tokens`, which stand where Rust wants a
    /// constant.
    fn const_position(&self, tokens: &impl quote::ToTokens, span: Span) {
        let names = mentions(tokens);
        for meta in self.metas.iter().filter(|meta| names.contains(*meta)) {
            self.context.error(
                span,
                format!("`{meta}` {CONST_POSITION}: {PASS_AS_ARGUMENT}"),
            );
        }
    }

    fn stored_alias(&self, value: &Expr) {
        match value {
            Expr::Reference(reference) if reference.mutability.is_some() => {
                self.context.error(reference.span(), STORED_ALIAS);
            }
            Expr::MethodCall(call) if call.method.to_string().ends_with("_mut") => {
                self.context.error(call.method.span(), STORED_ALIAS);
            }
            Expr::MethodCall(call) => self.stored_alias(&call.receiver),
            Expr::Paren(inner) => self.stored_alias(&inner.expr),
            Expr::Tuple(tuple) => tuple.elems.iter().for_each(|item| self.stored_alias(item)),
            Expr::Array(array) => array.elems.iter().for_each(|item| self.stored_alias(item)),
            Expr::Struct(literal) => literal
                .fields
                .iter()
                .for_each(|field| self.stored_alias(&field.expr)),
            Expr::Block(block) => self.block_value(&block.block),
            Expr::If(branch) => {
                self.block_value(&branch.then_branch);
                if let Some((_, otherwise)) = &branch.else_branch {
                    self.stored_alias(otherwise);
                }
            }
            _ => {}
        }
    }

    fn block_value(&self, block: &Block) {
        if let Some(syn::Stmt::Expr(value, None)) = block.stmts.last() {
            self.stored_alias(value);
        }
    }
}

impl<'ast> Visit<'ast> for Checker<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        // Items inside the body are plain Rust, but cannot see values of the trace.
        if let Item::Const(_) | Item::Static(_) | Item::Type(_) = item {
            self.const_position(item, item.span());
        }
    }

    /// What becomes of a statement would not follow it into the code that is made of it.
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let path = attribute.path();
        if path.is_ident("cfg") || path.is_ident("cfg_attr") {
            self.context.error(
                attribute.span(),
                "a part of a kernel cannot be left out by an attribute: write `if cfg!(..)`, or have two functions under `#[cfg(..)]`",
            );
        }
    }

    fn visit_generic_argument(&mut self, argument: &'ast GenericArgument) {
        match argument {
            GenericArgument::Const(value) => self.const_position(value, value.span()),
            GenericArgument::Type(Type::Path(path)) if path.path.get_ident().is_some() => {
                self.const_position(path, path.span());
            }
            _ => visit::visit_generic_argument(self, argument),
        }
    }

    fn visit_type_array(&mut self, array: &'ast TypeArray) {
        self.const_position(&array.len, array.len.span());
        visit::visit_type_array(self, array);
    }

    fn visit_expr_repeat(&mut self, repeat: &'ast ExprRepeat) {
        self.const_position(&repeat.len, repeat.len.span());
        self.stored_alias(&repeat.expr);
        visit::visit_expr_repeat(self, repeat);
    }

    fn visit_pat(&mut self, pattern: &'ast Pat) {
        match pattern {
            Pat::Ident(PatIdent { ident, .. }) if self.metas.iter().any(|meta| ident == meta) => {
                self.context.error(
                    ident.span(),
                    format!("the pattern `{ident}` would bind a new name: compare with `==`, or {PASS_AS_ARGUMENT}"),
                );
            }
            Pat::Range(range) => self.const_position(range, range.span()),
            Pat::Path(path) => self.const_position(path, path.span()),
            _ => {}
        }
        if let Pat::Ident(PatIdent {
            by_ref: Some(by_ref),
            mutability: Some(_),
            ..
        }) = pattern
        {
            self.context.error(
                by_ref.span(),
                "a `ref mut` binding hides changes from loops and branches: bind by value",
            );
        }
        visit::visit_pat(self, pattern);
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if let Some(init) = &local.init {
            self.stored_alias(&init.expr);
        }
        visit::visit_local(self, local);
    }

    fn visit_expr(&mut self, expression: &'ast Expr) {
        match expression {
            Expr::Assign(assign) => self.stored_alias(&assign.right),
            Expr::Tuple(_) | Expr::Array(_) | Expr::Struct(_) => self.stored_alias(expression),
            Expr::Async(_) | Expr::Await(_) => self
                .context
                .error(expression.span(), "a kernel cannot be asynchronous"),
            Expr::Unsafe(block) if !is_call(&block.block) => self.context.error(
                block.unsafe_token.span(),
                "`unsafe` in a kernel holds one call and nothing else, such as that of `inline_ptx`",
            ),
            _ => {}
        }
        visit::visit_expr(self, expression);
    }

    fn visit_expr_closure(&mut self, closure: &'ast ExprClosure) {
        self.stored_alias(&closure.body);
        visit::visit_expr_closure(self, closure);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        let Some(name) = call.path.segments.last().map(|segment| &segment.ident) else {
            return;
        };
        if let Some((_, hint)) = REJECTED_MACROS.iter().find(|(known, _)| name == known) {
            self.context.error(
                call.path.span(),
                format!("`{name}!` is not rewritten in a kernel: {hint}"),
            );
        }
    }
}

/// Whether a block is one call, whose value it gives.
fn is_call(block: &Block) -> bool {
    matches!(
        &block.stmts[..],
        [syn::Stmt::Expr(Expr::Call(_) | Expr::MethodCall(_), None)]
    )
}
