//! Reads attribute arguments and functions into the model.

use proc_macro2::TokenStream;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Expr, ExprLit, ExprRange, FnArg, GenericParam, Ident, ItemFn, Lit, MetaNameValue, Pat, PatType,
    RangeLimits, ReturnType, Token, Type,
};

use crate::context::Context;
use crate::meta;
use crate::model::{Device, Kernel, Meta, Parameter, Unsupported};

/// Reads a `#[kernel(..)]` function; `None` when it is no function at all.
pub(crate) fn kernel(
    context: &Context,
    arguments: TokenStream,
    item: TokenStream,
) -> Option<Kernel> {
    let function = item_function(context, item)?;
    let defaults = defaults(context, arguments);
    reject_qualifiers(context, &function, "kernel");
    if let ReturnType::Type(_, ty) = &function.sig.output {
        context.error(ty.span(), "a kernel returns nothing: store its results through a `PtrMut` or `TensorMut` parameter");
    }
    let mut generics = function.sig.generics.clone();
    let mut metas = Vec::new();
    for parameter in std::mem::take(&mut generics.params) {
        match parameter {
            GenericParam::Type(ty) => generics.params.push(GenericParam::Type(ty)),
            GenericParam::Const(parameter) => metas.push(Meta {
                field: field_name(&parameter.ident),
                values: meta::values(context, &parameter.attrs),
                name: parameter.ident,
                ty: parameter.ty,
                default: None,
                shrinks: false,
            }),
            GenericParam::Lifetime(lifetime) => {
                let unsupported = Unsupported::lifetime(&lifetime.lifetime);
                context.error(unsupported.span, unsupported.what);
            }
        }
    }
    let (order, defaults) = defaults.into_iter().partition(|(name, _)| name == ORDER);
    let tile_order = declared(
        context,
        order,
        "tile",
        "the kernel's loops may add up in an order for each tile size",
    );
    let (overflow, mut defaults) = defaults.into_iter().partition(|(name, _)| name == OVERFLOW);
    let checks_overflow = checks_overflow(context, overflow);
    let grid = taken(&mut defaults, GRID);
    let constraint = taken(&mut defaults, CONSTRAINT);
    let schedule = assign_defaults(context, &mut metas, defaults);
    check_smaller(context, &metas, grid.is_some());
    let parameters = function
        .sig
        .inputs
        .iter()
        .filter_map(|input| parameter(context, input))
        .collect();
    Some(Kernel {
        attributes: function.attrs,
        visibility: function.vis,
        name: function.sig.ident,
        generics,
        metas,
        schedule,
        tile_order,
        checks_overflow,
        grid,
        constraint,
        parameters,
        body: *function.block,
    })
}

/// Reads a `#[device]` function; `None` when it is no function at all.
pub(crate) fn device(
    context: &Context,
    arguments: TokenStream,
    item: TokenStream,
) -> Option<Device> {
    let checks_overflow = device_checks(context, arguments);
    let function = item_function(context, item)?;
    reject_qualifiers(context, &function, "device function");
    Some(Device {
        checks_overflow,
        function,
    })
}

fn item_function(context: &Context, item: TokenStream) -> Option<ItemFn> {
    match syn::parse2(item) {
        Ok(function) => Some(function),
        Err(error) => {
            context.push(error);
            None
        }
    }
}

fn reject_qualifiers(context: &Context, function: &ItemFn, what: &str) {
    let signature = &function.sig;
    let found = [
        signature
            .asyncness
            .as_ref()
            .map(|token| (token.span(), "async")),
        signature
            .constness
            .as_ref()
            .map(|token| (token.span(), "const")),
        signature
            .unsafety
            .as_ref()
            .map(|token| (token.span(), "unsafe")),
        signature.abi.as_ref().map(|abi| (abi.span(), "extern")),
        signature
            .variadic
            .as_ref()
            .map(|dots| (dots.span(), "variadic")),
    ];
    for (span, word) in found.into_iter().flatten() {
        context.error(span, format!("a {what} cannot be `{word}`"));
    }
}

fn parameter(context: &Context, input: &FnArg) -> Option<Parameter> {
    let PatType { pat, ty, .. } = match input {
        FnArg::Typed(typed) => typed,
        FnArg::Receiver(receiver) => {
            context.error(receiver.span(), "a kernel is a free function, not a method");
            return None;
        }
    };
    match (&**pat, &**ty) {
        (Pat::Ident(name), _) if name.by_ref.is_some() || name.subpat.is_some() => {
            context.error(pat.span(), "a parameter of a kernel is a plain name");
            None
        }
        (Pat::Ident(_), Type::Reference(reference)) => {
            context.error(
                reference.span(),
                "a kernel takes no references: use `Ptr<T>`, `PtrMut<T>`, `Tensor<T, RANK>`, `TensorMut<T, RANK>` or a scalar such as `i32`",
            );
            None
        }
        (Pat::Ident(name), ty) => Some(Parameter {
            name: name.ident.clone(),
            mutable: name.mutability.is_some(),
            ty: ty.clone(),
        }),
        (_, _) => {
            context.error(pat.span(), "a parameter of a kernel is a plain name");
            None
        }
    }
}

fn defaults(context: &Context, arguments: TokenStream) -> Vec<(Ident, Expr)> {
    let parser = Punctuated::<MetaNameValue, Token![,]>::parse_terminated;
    let entries = match syn::parse::Parser::parse2(parser, arguments) {
        Ok(entries) => entries,
        Err(error) => {
            context.push(error);
            return Vec::new();
        }
    };
    let mut defaults: Vec<(Ident, Expr)> = Vec::new();
    for entry in entries {
        let Some(name) = entry.path.get_ident().cloned() else {
            context.error(entry.path.span(), "expected the name of a const generic");
            continue;
        };
        if defaults.iter().any(|(earlier, _)| *earlier == name) {
            context.error(name.span(), format!("`{name}` has two defaults"));
            continue;
        }
        defaults.push((name, entry.value));
    }
    defaults
}

/// What `#[kernel(order = "tile")]` declares.
const ORDER: &str = "order";

/// What `#[kernel(overflow = "checked")]` declares.
const OVERFLOW: &str = "overflow";

/// Whether integers that overflow fail the launch.
fn checks_overflow(context: &Context, stated: Vec<(Ident, Expr)>) -> bool {
    declared(
        context,
        stated,
        "checked",
        "sums, differences and products of integers that overflow fail the launch",
    )
}

/// Whether `#[device(overflow = "checked")]` says so, which takes nothing else.
fn device_checks(context: &Context, arguments: TokenStream) -> bool {
    if arguments.is_empty() {
        return false;
    }
    let span = arguments.span();
    match syn::parse2::<MetaNameValue>(arguments) {
        Ok(MetaNameValue { path, value, .. }) if path.is_ident(OVERFLOW) => {
            let name = Ident::new(OVERFLOW, path.span());
            checks_overflow(context, vec![(name, value)])
        }
        Ok(_) | Err(_) => {
            context.error(
                span,
                "`#[device]` takes nothing but `overflow = \"checked\"`",
            );
            false
        }
    }
}

/// Whether something is declared by its only word.
fn declared(context: &Context, stated: Vec<(Ident, Expr)>, word: &str, meaning: &str) -> bool {
    stated.into_iter().fold(false, |_, (name, value)| {
        let text = match &value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(text),
                ..
            }) => Some(text.value()),
            _ => None,
        };
        let is_word = text.as_deref() == Some(word);
        if !is_word {
            context.error(value.span(), format!("`{name}` is `\"{word}\"`: {meaning}"));
        }
        is_word
    })
}

/// What `#[kernel(grid = n.div_ceil(BLOCK))]` states.
const GRID: &str = "grid";

/// What `#[kernel(constraint = BLOCK >= columns)]` states.
const CONSTRAINT: &str = "constraint";

/// What is stated under a name.
fn taken(stated: &mut Vec<(Ident, Expr)>, name: &str) -> Option<Expr> {
    let place = stated.iter().position(|(other, _)| other == name)?;
    Some(stated.remove(place).1)
}

/// What every kernel has, so that no const generic has a setter of that name.
const METHODS: [(&str, &str); 5] = [
    ("schedule", "setter"),
    ("launch", "method"),
    ("run", "method"),
    ("compile", "method"),
    ("inspect", "method"),
];

/// Gives the metas their defaults; what is left are those of the schedule. Only the compiler knows the
/// schedule's fields, but they have no upper-case letter.
fn assign_defaults(
    context: &Context,
    metas: &mut [Meta],
    defaults: Vec<(Ident, Expr)>,
) -> Vec<(Ident, Expr)> {
    let mut schedule = Vec::new();
    for (name, value) in defaults {
        if let Some(meta) = metas.iter_mut().find(|meta| meta.name == name) {
            (meta.default, meta.shrinks) = match value {
                Expr::Range(range) if is_most(&range) => (range.end.map(|it| *it), true),
                value => (Some(value), false),
            };
        } else if name == field_name(&name) {
            schedule.push((name, value));
        } else {
            let known = metas.iter().map(|meta| format!("`{}`, ", meta.name));
            let known: String = known.collect();
            context.error(
                name.span(),
                format!(
                    "`{name}` is no const generic of this kernel, expected {known}or a field of \
                     the schedule"
                ),
            );
        }
    }
    for meta in metas {
        let taken = METHODS.iter().find(|(name, _)| meta.field == name);
        if let Some((name, kind)) = taken {
            context.error(
                meta.name.span(),
                format!("`{name}` is a {kind} of every kernel"),
            );
        }
    }
    schedule
}

/// Whether a default is `..=128`.
fn is_most(range: &ExprRange) -> bool {
    range.start.is_none() && matches!(range.limits, RangeLimits::Closed(_))
}

/// A default that is the most has smaller numbers beside it, and a grid that follows from them.
fn check_smaller(context: &Context, metas: &[Meta], has_grid: bool) {
    for meta in metas.iter().filter(|meta| meta.shrinks) {
        let name = &meta.name;
        if meta.values.is_none() {
            let message = format!(
                "`{name} = ..=` takes smaller numbers of `#[meta(..)]` for small problems, and `{name}` has none: \
                 write `#[meta(16..=128)] const {name}: usize`, or one default"
            );
            context.error(name.span(), message);
        }
        if !has_grid {
            let message = format!(
                "`{name} = ..=` takes smaller numbers where the grid has few programs, and the kernel states none: \
                 write `#[kernel(grid = ..)]`, or one default"
            );
            context.error(name.span(), message);
        }
    }
}

/// `BLOCK_M` becomes `block_m`.
fn field_name(name: &Ident) -> Ident {
    Ident::new(&name.to_string().to_lowercase(), name.span())
}
