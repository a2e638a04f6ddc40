//! Writes the rewritten function: a module with `Config`, and the function that gives the kernel.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{GenericArgument, Generics, Ident, ItemFn, PathArguments, Type, parse_quote};

use crate::model::{Device, Kernel, Meta, Parameter};

/// The output of `#[kernel]`.
pub(crate) fn kernel(kernel: &Kernel) -> TokenStream {
    let module = config_module(kernel);
    let default = config_default(kernel);
    let function = function(kernel);
    quote! {
        #module
        #default
        #function
    }
}

/// The output of `#[device]`.
pub(crate) fn device(device: &Device) -> TokenStream {
    let ItemFn {
        attrs,
        vis,
        sig,
        block,
    } = &device.function;
    let lints = lints();
    quote! {
        #(#attrs)*
        #lints
        #vis #sig #block
    }
}

/// Lints that the rewriting trips: braces around calls, and bindings read through slots.
fn lints() -> TokenStream {
    quote! {
        #[allow(
            unused_braces, unused_parens, unused_mut, unused_assignments,
            clippy::let_unit_value, clippy::blocks_in_conditions, clippy::neg_multiply,
            clippy::needless_borrow, clippy::borrow_deref_ref, clippy::unit_arg,
            clippy::redundant_closure, clippy::deref_addrof, clippy::too_many_arguments,
            clippy::explicit_auto_deref, clippy::multiple_bound_locations,
            reason = "the body is rewritten for tracing"
        )]
    }
}

fn config_module(kernel: &Kernel) -> TokenStream {
    let Kernel {
        name,
        visibility,
        metas,
        ..
    } = kernel;
    let about_module = format!("The configuration of the kernel [`{name}`](fn@{name}).");
    let about_config = format!("Meta-parameters and schedule of the kernel `{name}`.");
    let fields = metas.iter().map(|meta| {
        let (field, ty) = (&meta.field, &meta.ty);
        let about = format!("The const generic `{}`.", meta.name);
        quote! {
            #[doc = #about]
            pub #field: #ty,
        }
    });
    // Kernels of one file may share a visibility such as `pub(super)`, which means another module
    // inside `mod`, so the fields are `pub` and the module carries the visibility.
    quote! {
        #[doc = #about_module]
        #visibility mod #name {
            #[doc = #about_config]
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            pub struct Config {
                #(#fields)*
                /// How the work of a program is laid out.
                pub schedule: ::exactile::Schedule,
            }
        }
    }
}

/// `Config::new` with the meta-parameters that have no default, and `Default` when all have one.
fn config_default(kernel: &Kernel) -> TokenStream {
    let name = &kernel.name;
    let required: Vec<&Meta> = kernel
        .metas
        .iter()
        .filter(|meta| meta.default.is_none())
        .collect();
    let arguments = required.iter().map(|meta| {
        let (field, ty) = (&meta.field, &meta.ty);
        quote!(#field: #ty)
    });
    let values = kernel.metas.iter().map(|meta| {
        let field = &meta.field;
        match &meta.default {
            Some(value) => quote!(#field: #value),
            None => quote!(#field),
        }
    });
    let schedule = kernel
        .schedule
        .iter()
        .map(|(field, value)| quote!(.#field(#value)));
    let schedule = quote!(::exactile::Schedule::AUTO #(#schedule)*);
    let default = required.is_empty().then(|| {
        quote! {
            impl ::core::default::Default for #name::Config {
                fn default() -> Self {
                    Self::new()
                }
            }
        }
    });
    quote! {
        impl #name::Config {
            /// Every field at its default; the arguments are the fields that have none.
            #[allow(clippy::too_many_arguments, reason = "one for each meta-parameter")]
            pub const fn new(#(#arguments),*) -> Self {
                Self { #(#values,)* schedule: #schedule }
            }

            /// The same tile sizes on another schedule.
            #[allow(clippy::needless_update, dead_code, reason = "generated for every kernel")]
            pub const fn scheduled(self, schedule: ::exactile::Schedule) -> Self {
                Self { schedule, ..self }
            }
        }
        #default
    }
}

fn function(kernel: &Kernel) -> TokenStream {
    let Kernel {
        attributes,
        visibility,
        name,
        generics,
        metas,
        parameters,
        body,
        ..
    } = kernel;
    let where_clause = kernel.where_clause();
    let lints = lints();
    let parameters = passed_parameters(parameters, generics);
    let types = parameters.iter().map(|parameter| &parameter.ty);
    let text = name.to_string();
    // Not visible to the user's tokens.
    let config = Ident::new("config", Span::mixed_site());
    let values = metas.iter().map(|meta| {
        let (name, field, ty) = (&meta.name, &meta.field, &meta.ty);
        quote! { let #name: #ty = #config.#field; }
    });
    let declarations = parameters.iter().map(declaration);
    let generic_names = generics.type_params().map(|parameter| &parameter.ident);
    let order = match kernel.tile_order {
        true => quote!(::exactile::__private::LoopOrder::OfTiles),
        false => quote!(::exactile::__private::LoopOrder::Whole),
    };
    let place = quote_spanned!(name.span()=> file: file!(), place: [line!(), column!()],);
    quote! {
        #(#attributes)*
        #lints
        #[allow(non_snake_case, unused_variables, reason = "const generics became variables")]
        #visibility fn #name #generics (
            #config: #name::Config,
        ) -> ::exactile::Kernel<(#(#types,)*)> #where_clause {
            let source = ::exactile::__private::KernelSource::new::<
                (#(::core::marker::PhantomData<#generic_names>,)*),
                #name::Config,
            >(
                ::exactile::__private::KernelHeader {
                    name: #text,
                    #place
                    schedule: #config.schedule,
                    order: #order,
                },
                #config,
                move || {
                    #(#values)*
                    #(#declarations)*
                    #body
                },
            );
            ::core::convert::From::from(source)
        }
    }
}

/// The parameters as a launch knows them.
fn passed_parameters(parameters: &[Parameter], generics: &Generics) -> Vec<Parameter> {
    let parameters = parameters.iter().map(|parameter| Parameter {
        name: parameter.name.clone(),
        mutable: parameter.mutable,
        ty: passed(&parameter.ty, generics),
    });
    parameters.collect()
}

/// The type of a parameter as a launch knows it: a type argument as it stands is a scalar of it.
fn passed(ty: &Type, generics: &Generics) -> Type {
    let mut ty = ty.clone();
    match &mut ty {
        Type::Path(path) => {
            let is_argument = |name: &Ident| generics.type_params().any(|it| it.ident == *name);
            if path.path.get_ident().is_some_and(is_argument) {
                return parse_quote!(::exactile::__private::Scalar<#ty>);
            }
            if let Some(last) = path.path.segments.last_mut()
                && last.ident == "Option"
                && let PathArguments::AngleBracketed(arguments) = &mut last.arguments
                && let Some(GenericArgument::Type(inner)) = arguments.args.first_mut()
            {
                *inner = passed(inner, generics);
            }
        }
        Type::Tuple(tuple) => {
            for item in &mut tuple.elems {
                *item = passed(item, generics);
            }
        }
        Type::Array(array) => *array.elem = passed(&array.elem, generics),
        Type::Paren(inner) => *inner.elem = passed(&inner.elem, generics),
        _ => {}
    }
    ty
}

fn declaration(parameter: &Parameter) -> TokenStream {
    let Parameter { name, mutable, ty } = parameter;
    let mutable = mutable.then(|| quote!(mut));
    let text = name.to_string();
    quote_spanned! {name.span()=>
        let #mutable #name =
            <#ty as ::exactile::__private::KernelParameter>::declare(#text);
    }
}
