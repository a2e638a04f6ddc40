//! Writes the rewritten function: a module with the kernel's type, and the function that gives the kernel.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{GenericArgument, Generics, Ident, ItemFn, PathArguments, Type, parse_quote};

use crate::launches::launches;
use crate::meta;
use crate::model::{Device, Kernel, Meta, Parameter};

/// The output of `#[kernel]`.
pub(crate) fn kernel(kernel: &Kernel) -> TokenStream {
    let module = module(kernel);
    let function = function(kernel);
    quote! {
        #module
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
            clippy::explicit_auto_deref, clippy::multiple_bound_locations, clippy::nonminimal_bool,
            reason = "the body is rewritten for tracing"
        )]
    }
}

/// A module with the configuration of the kernel, and the kernel with its setters.
fn module(kernel: &Kernel) -> TokenStream {
    let Kernel {
        name,
        visibility,
        metas,
        ..
    } = kernel;
    let about_module = format!("The kernel [`{name}`](fn@{name}) with its setters.");
    let about_config = format!("What the kernel `{name}` is configured to.");
    let about_kernel = format!("The kernel `{name}`, as far as it is configured.");
    let fields = metas.iter().map(
        |Meta {
             field, ty, name, ..
         }| {
            let about = format!("The const generic `{name}`.");
            quote! {
                #[doc = #about]
                pub #field: #ty,
            }
        },
    );
    let implementations = implementations(metas);
    let launches = launches(name, &kernel.parameters);
    // Kernels of one file may share a visibility such as `pub(super)`, which means another module
    // inside `mod`, so the items are `pub` and the module carries the visibility.
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

            #[doc = #about_kernel]
            #[must_use = "a kernel does nothing until it is launched"]
            pub struct Kernel<P>(#[doc(hidden)] pub ::exactile::Configured<P, Config>);

            #implementations

            #launches
        }
    }
}

/// What the kernel's type can do.
fn implementations(metas: &[Meta]) -> TokenStream {
    let setters = metas.iter().enumerate().map(|(place, meta)| {
        let Meta {
            field, ty, name, ..
        } = meta;
        let about = format!("Sets the const generic `{name}`.");
        quote! {
            #[doc = #about]
            #[allow(dead_code, reason = "generated for every const generic")]
            pub fn #field(mut self, #field: #ty) -> Self {
                self.0.set(#place, |config| config.#field = #field);
                self
            }
        }
    });
    quote! {
        impl<P> ::core::clone::Clone for Kernel<P> {
            fn clone(&self) -> Self {
                Self(::core::clone::Clone::clone(&self.0))
            }
        }

        impl<P> ::core::fmt::Debug for Kernel<P> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::fmt::Debug::fmt(&self.0, f)
            }
        }

        impl<P: 'static> Kernel<P> {
            #(#setters)*
        }

        impl<P: 'static> ::core::ops::Deref for Kernel<P> {
            type Target = ::exactile::Kernel<P>;
            fn deref(&self) -> &::exactile::Kernel<P> {
                self.0.kernel()
            }
        }

        impl<P: 'static> ::exactile::Configure for Kernel<P> {
            type Parameters = P;
            type Config = Config;
            fn configured(&self) -> &::exactile::Configured<P, Config> {
                &self.0
            }
            fn configured_mut(&mut self) -> &mut ::exactile::Configured<P, Config> {
                &mut self.0
            }
        }
    }
}

/// The configuration in which everything has its default.
fn default_config(kernel: &Kernel) -> TokenStream {
    let name = &kernel.name;
    let values = kernel.metas.iter().map(
        |Meta {
             field, ty, default, ..
         }| match default {
            Some(value) => quote!(#field: #value),
            // Never read: a kernel of which it is not set says so.
            None => quote!(#field: <#ty as ::core::default::Default>::default()),
        },
    );
    let schedule = kernel
        .schedule
        .iter()
        .map(|(field, value)| quote!(.#field(#value)));
    quote! {
        #name::Config {
            #(#values,)*
            schedule: ::exactile::Schedule::AUTO #(#schedule)*,
        }
    }
}

/// What is known of the const generics.
fn meta_rows(kernel: &Kernel) -> TokenStream {
    let module = &kernel.name;
    let rows = kernel.metas.iter().map(|meta| {
        let (name, setter) = (meta.name.to_string(), meta.field.to_string());
        let (field, has_default) = (&meta.field, meta.default.is_some());
        let smaller = match meta::tried(meta).filter(|_| meta.shrinks) {
            None => quote!(::core::option::Option::None),
            Some(tried) => quote! {
                ::core::option::Option::Some(|config| {
                    #tried
                        .filter(|tried| *tried < config.#field)
                        .map(|tried| #module::Config { #field: tried, ..*config })
                        .collect()
                })
            },
        };
        let each = match meta::tried(meta) {
            None => quote!(::core::option::Option::None),
            Some(tried) => quote! {
                ::core::option::Option::Some(|config| {
                    #tried.map(|tried| #module::Config { #field: tried, ..*config }).collect()
                })
            },
        };
        let range = match meta::tried(meta) {
            None => quote!(::std::vec::Vec::new),
            Some(tried) => quote!(|| #tried.map(|tried| tried as usize).collect()),
        };
        quote! {
            ::exactile::MetaRow::<#module::Config> {
                name: #name,
                setter: #setter,
                has_default: #has_default,
                smaller: #smaller,
                each: #each,
                range: #range,
            }
        }
    });
    quote!(&[#(#rows),*])
}

/// The grid and the constraint as a function of the configuration and the arguments.
fn place(kernel: &Kernel, parameters: &[Parameter]) -> TokenStream {
    let Kernel {
        grid, constraint, ..
    } = kernel;
    if grid.is_none() && constraint.is_none() {
        return quote!(::core::option::Option::None);
    }
    let [config, arguments] = ["config", "arguments"].map(|it| Ident::new(it, Span::mixed_site()));
    let values = meta_values(kernel, &config);
    let parameters = parameters.iter().map(|Parameter { name, ty, .. }| {
        let text = name.to_string();
        match [grid, constraint]
            .into_iter()
            .any(|it| mentions(it.to_token_stream(), name))
        {
            true => {
                quote! { let #name = <#ty as ::exactile::OnHost>::on_host(#arguments, #text)?; }
            }
            false => quote! { #arguments.skip::<#ty>(#text)?; },
        }
    });
    let check = constraint.as_ref().map(|constraint| {
        let text = constraint.to_token_stream().to_string();
        quote_spanned! {constraint.span()=>
            if !(#constraint) {
                return ::core::result::Result::Err(#arguments.unmet(#text));
            }
        }
    });
    let grid = match grid {
        Some(grid) => quote_spanned! {grid.span()=>
            ::exactile::IntoGrid::into_grid(#grid).map(::core::option::Option::Some)
        },
        None => quote!(::core::result::Result::Ok(::core::option::Option::None)),
    };
    quote! {
        ::core::option::Option::Some(|#config, #arguments| {
            #values
            #(#parameters)*
            #check
            #grid
        })
    }
}

/// Whether a name is among the tokens, or inside a text that is formatted.
fn mentions(tokens: TokenStream, name: &Ident) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == *name,
        TokenTree::Group(group) => mentions(group.stream(), name),
        TokenTree::Literal(literal) => is_formatted(&literal.to_string(), &name.to_string()),
        TokenTree::Punct(_) => false,
    })
}

/// Whether a text names what it formats as `{name}`, `{name:..}` or, for a width or a precision, `{..name$}`.
fn is_formatted(text: &str, name: &str) -> bool {
    let places = text.split('{').skip(1);
    let mut places = places.filter_map(|place| place.split_once('}'));
    places.any(|(place, _)| {
        let mut words = place.split([':', '$', '.', '>', '<', '^']);
        // What is before a width, such as `0` or `#`.
        words.any(|word| {
            word.trim_start_matches(|it: char| it != '_' && !it.is_alphabetic()) == name
        })
    })
}

/// The const generics as variables.
fn meta_values(kernel: &Kernel, config: &Ident) -> TokenStream {
    let values = kernel.metas.iter().map(|meta| {
        let (name, field, ty) = (&meta.name, &meta.field, &meta.ty);
        quote! { let #name: #ty = #config.#field; }
    });
    quote!(#(#values)*)
}

fn function(kernel: &Kernel) -> TokenStream {
    let Kernel {
        attributes,
        visibility,
        name,
        generics,
        parameters,
        body,
        ..
    } = kernel;
    let (where_clause, lints) = (kernel.where_clause(), lints());
    let parameters = passed_parameters(parameters, generics);
    let types = parameters.iter().map(|parameter| &parameter.ty);
    let text = name.to_string();
    // Not visible to the user's tokens.
    let config = Ident::new("config", Span::mixed_site());
    let values = meta_values(kernel, &config);
    let declarations = parameters.iter().map(declaration);
    let generic_names = generics.type_params().map(|parameter| &parameter.ident);
    let order = match kernel.tile_order {
        true => quote!(::exactile::__private::LoopOrder::OfTiles),
        false => quote!(::exactile::__private::LoopOrder::Whole),
    };
    let (default, rows) = (default_config(kernel), meta_rows(kernel));
    let grid = place(kernel, &parameters);
    let line = quote_spanned! {name.span()=> file: file!(), place: [line!(), column!()],};
    quote! {
        #(#attributes)*
        #lints
        #[allow(non_snake_case, unused_variables, reason = "const generics became variables")]
        #visibility fn #name #generics () -> #name::Kernel<(#(#types,)*)> #where_clause {
            #name::Kernel(::exactile::Configured::new(::exactile::Definition {
                name: #text,
                config: #default,
                source: |#config| {
                    ::exactile::__private::KernelSource::new::<
                        (#(::core::marker::PhantomData<#generic_names>,)*),
                        #name::Config,
                    >(
                        ::exactile::__private::KernelHeader {
                            name: #text,
                            #line
                            schedule: #config.schedule,
                            order: #order,
                        },
                        #config,
                        move || {
                            #values
                            #(#declarations)*
                            #body
                        },
                    )
                },
                place: #grid,
                schedule: |config| &mut config.schedule,
                metas: #rows,
            }))
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
