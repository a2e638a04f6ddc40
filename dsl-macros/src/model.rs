//! What a kernel or device function is, as far as the macros care.

use proc_macro2::Span;
use syn::{
    Attribute, Block, Expr, ExprRange, Generics, Ident, ItemFn, Lifetime, Type, Visibility,
    WhereClause, parse_quote,
};

/// A function marked `#[kernel]`.
pub(crate) struct Kernel {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) name: Ident,
    /// Type parameters only, with their bounds.
    pub(crate) generics: Generics,
    pub(crate) metas: Vec<Meta>,
    /// What the kernel asks of the fields of its schedule by default.
    pub(crate) schedule: Vec<(Ident, Expr)>,
    /// Whether its loops add up in an order for each tile size.
    pub(crate) tile_order: bool,
    /// Whether integers that overflow fail the launch.
    pub(crate) checks_overflow: bool,
    /// The grid of a launch that states none.
    pub(crate) grid: Option<Expr>,
    /// What must hold of the const generics and the arguments.
    pub(crate) constraint: Option<Expr>,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) body: Block,
}

/// A const generic parameter: a value of the trace.
pub(crate) struct Meta {
    pub(crate) name: Ident,
    /// The name as a field of `Config`.
    pub(crate) field: Ident,
    pub(crate) ty: Type,
    pub(crate) default: Option<Expr>,
    /// Whether the default is the most: `BM = ..=128`.
    pub(crate) shrinks: bool,
    /// The numbers worth a try.
    pub(crate) values: Option<MetaValues>,
}

/// What `#[meta(..)]` says of a const generic.
pub(crate) enum MetaValues {
    /// `#[meta(16..=256)]`: the powers of two of a range, or `#[meta(16..=256, step = 16)]`: steps from its beginning on.
    Range(ExprRange, Option<Expr>),
    /// `#[meta(48, 96)]`: these.
    List(Vec<Expr>),
}

/// A parameter that the launch passes.
pub(crate) struct Parameter {
    pub(crate) name: Ident,
    pub(crate) mutable: bool,
    pub(crate) ty: Type,
}

/// A function marked `#[device]`.
pub(crate) struct Device {
    /// Whether integers that overflow fail the launch.
    pub(crate) checks_overflow: bool,
    pub(crate) function: ItemFn,
}

/// What kind of binding a name is, seen from a loop or branch that mentions it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binding {
    /// Cannot change.
    Fixed,
    /// A `mut` binding.
    Mutable,
    /// A `mut` binding that begins with a literal without a type of its own stated.
    Number,
    /// A `&mut` parameter: what it points to can change.
    Reference,
}

impl Kernel {
    /// The bounds written, and that type arguments hold no references: they tell kernels apart.
    pub(crate) fn where_clause(&self) -> WhereClause {
        let mut generics = self.generics.clone();
        let names: Vec<Ident> = self
            .generics
            .type_params()
            .map(|ty| ty.ident.clone())
            .collect();
        let bounds = generics.make_where_clause();
        for name in names {
            bounds.predicates.push(parse_quote!(#name: 'static));
        }
        bounds.clone()
    }

    /// The names of the const generics.
    pub(crate) fn meta_names(&self) -> Vec<String> {
        self.metas
            .iter()
            .map(|meta| meta.name.to_string())
            .collect()
    }
}

/// What a function may not have, with the place where it has it.
pub(crate) struct Unsupported {
    pub(crate) span: Span,
    pub(crate) what: &'static str,
}

impl Unsupported {
    pub(crate) fn lifetime(lifetime: &Lifetime) -> Self {
        Self {
            span: lifetime.span(),
            what: "a kernel takes no lifetime parameters",
        }
    }
}
