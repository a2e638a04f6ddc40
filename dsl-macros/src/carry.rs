//! `#[derive(Carry)]`: a structure whose fields loops and branches carry.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Fields, Member, parse_quote};

use crate::context::Context;
use crate::names::mentions;

/// The implementation, or nothing where the item is no structure of handles.
pub(crate) fn derive(context: &Context, item: TokenStream) -> Option<TokenStream> {
    let input = input(context, item)?;
    let fields = fields(context, &input, "Carry")?;
    let name = &input.ident;
    let mut generics = input.generics.clone();
    let parameters: Vec<String> = generics
        .type_params()
        .map(|parameter| parameter.ident.to_string())
        .collect();
    let bounds = generics.make_where_clause();
    for field in fields {
        let ty = &field.ty;
        let names = mentions(ty);
        if parameters.iter().any(|parameter| names.contains(parameter)) {
            let bound = parse_quote!(#ty: ::exactile::__private::control::Carry);
            bounds.predicates.push(bound);
        }
    }
    let members = members(fields);
    let visits = fields.iter().zip(&members).map(|(field, member)| {
        quote_spanned! {field.ty.span()=>
            ::exactile::__private::control::Carry::visit(&mut self.#member, visitor);
        }
    });
    let unset = fields.iter().zip(&members).map(|(field, member)| {
        quote_spanned! {field.ty.span()=>
            #member: ::exactile::__private::control::Carry::unset()?
        }
    });
    let (implemented, arguments, bounds) = generics.split_for_impl();
    Some(quote! {
        impl #implemented ::exactile::__private::control::Carry for #name #arguments #bounds {
            fn visit(
                &mut self,
                visitor: &mut dyn ::core::ops::FnMut(::exactile::__private::control::Part<'_>),
            ) {
                #(#visits)*
            }

            fn unset() -> ::core::option::Option<Self> {
                ::core::option::Option::Some(Self { #(#unset,)* })
            }
        }
    })
}

/// The item under a derive.
pub(crate) fn input(context: &Context, item: TokenStream) -> Option<DeriveInput> {
    let input = syn::parse2(item);
    input.map_err(|error| context.push(error)).ok()
}

/// The fields of a structure; anything else is an error.
pub(crate) fn fields<'a>(
    context: &Context,
    input: &'a DeriveInput,
    what: &str,
) -> Option<&'a Fields> {
    let keyword = match &input.data {
        Data::Struct(data) => return Some(&data.fields),
        Data::Enum(data) => data.enum_token.span(),
        Data::Union(data) => data.union_token.span(),
    };
    let message = format!("`{what}` is derived for a `struct`: a kernel knows no other type");
    context.error(keyword, message);
    None
}

/// The names of fields, or their positions in a tuple structure.
pub(crate) fn members(fields: &Fields) -> Vec<Member> {
    fields.members().collect()
}
