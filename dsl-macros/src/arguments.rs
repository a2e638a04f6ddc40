//! `#[derive(KernelArguments)]`: a structure of parameters, and the one of what a launch passes for it.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DeriveInput, Fields, GenericParam, Ident, Member, Type, parse_quote};

use crate::carry::{fields, input, members};
use crate::context::Context;

/// Both structures' implementations, or nothing where the item is no structure of parameters.
pub(crate) fn derive(context: &Context, item: TokenStream) -> Option<TokenStream> {
    let input = input(context, item)?;
    let fields = fields(context, &input, "KernelArguments")?;
    for lifetime in input.generics.lifetimes() {
        context.error(lifetime.span(), "a structure of parameters holds no references: they are `Ptr<T>`, `PtrMut<T>`, tensors and `Scalar<T>`");
    }
    for field in fields {
        check_number(context, &field.ty);
    }
    let declares = declares(&input, fields);
    let on_host = on_host(&input, fields);
    let passed = passed(&input, fields);
    Some(quote! {
        #declares
        #on_host
        #passed
    })
}

/// A field is what the body sees, which is no number of the host.
fn check_number(context: &Context, ty: &Type) {
    match ty {
        Type::Array(array) => check_number(context, &array.elem),
        Type::Tuple(tuple) => tuple.elems.iter().for_each(|it| check_number(context, it)),
        Type::Path(path) => {
            let name = path.path.get_ident().map(ToString::to_string);
            if let Some(name) = name.filter(|name| NUMBERS.contains(&name.as_str())) {
                context.error(
                    ty.span(),
                    format!("a structure holds what the body sees: a number is a `Scalar<{name}>`"),
                );
            }
        }
        _ => {}
    }
}

const NUMBERS: [&str; 13] = [
    "bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64",
];

/// What a kernel sees.
fn declares(input: &DeriveInput, fields: &Fields) -> TokenStream {
    let name = &input.ident;
    let (implemented, arguments, bounds) = input.generics.split_for_impl();
    let members = members(fields);
    let values = fields.iter().zip(&members).map(|(field, member)| {
        let ty = &field.ty;
        let suffix = match member {
            Member::Named(name) => format!("_{name}"),
            Member::Unnamed(index) => format!("_{}", index.index),
        };
        quote_spanned! {ty.span()=>
            #member: <#ty as ::exactile::__private::KernelParameter>::declare(
                &::std::format!("{name}{}", #suffix)
            )
        }
    });
    quote! {
        impl #implemented ::exactile::__private::KernelArguments for #name #arguments #bounds {
            fn declare(name: &str) -> Self {
                Self { #(#values,)* }
            }
        }
    }
}

/// What the grid of a kernel sees: nothing, behind which other parameters are found.
fn on_host(input: &DeriveInput, fields: &Fields) -> TokenStream {
    let name = &input.ident;
    let (implemented, arguments, bounds) = input.generics.split_for_impl();
    let types = fields.iter().map(|field| &field.ty);
    quote! {
        impl #implemented ::exactile::OnHost for #name #arguments #bounds {
            type Host = ();
            fn on_host(arguments: &mut ::exactile::HostArguments<'_>, name: &str) -> ::exactile::Result<()> {
                #(<#types as ::exactile::OnHost>::on_host(arguments, name)?;)*
                ::core::result::Result::Ok(())
            }
        }
    }
}

/// What a launch passes: a structure with the same fields, each of any type that its parameter takes.
fn passed(input: &DeriveInput, fields: &Fields) -> TokenStream {
    let (name, visibility) = (&input.ident, &input.vis);
    let passed = format_ident!("{}Arguments", name);
    let about = format!("What a launch passes for [`{name}`].");
    let kinds: Vec<Ident> = (0..fields.len())
        .map(|index| format_ident!("A{index}"))
        .collect();
    let members = members(fields);
    let declared = fields.iter().zip(&kinds).map(|(field, kind)| {
        let visibility = &field.vis;
        match &field.ident {
            Some(name) => {
                let about = format!("For the parameter `{name}`.");
                quote!(#[doc = #about] #visibility #name: #kind)
            }
            None => quote!(#[doc = "For the parameter at this place."] #visibility #kind),
        }
    });
    let declared = match fields {
        Fields::Named(_) => quote!({ #(#declared,)* }),
        Fields::Unnamed(_) => quote!((#(#declared,)*);),
        Fields::Unit => quote!(;),
    };
    let mut generics = input.generics.clone();
    generics.params.insert(0, parse_quote!('__launch));
    for (kind, field) in kinds.iter().zip(fields) {
        let ty = &field.ty;
        let parameter: GenericParam = parse_quote!(#kind: ::exactile::Argument<'__launch, #ty>);
        generics.params.push(parameter);
    }
    let (implemented, _, bounds) = generics.split_for_impl();
    let (_, arguments, _) = input.generics.split_for_impl();
    quote! {
        #[doc = #about]
        #[derive(Clone, Copy, Debug)]
        #visibility struct #passed<#(#kinds),*> #declared

        impl #implemented ::exactile::Argument<'__launch, #name #arguments> for #passed<#(#kinds),*> #bounds {
            fn bind(self, bound: &mut ::exactile::BoundArguments<'__launch>) {
                #(::exactile::Argument::bind(self.#members, bound);)*
            }
        }
    }
}
