//! `#[meta(..)]` on a const generic: the numbers that a tuner tries.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Attribute, Expr, ExprRange, Ident, RangeLimits, Token};

use crate::context::Context;
use crate::model::{Meta, MetaValues};

const EXPECTED: &str = "expected a range such as `16..=256`, of which powers of two are tried, `16..=256, step = 16`, or a list";

/// What the attributes of a const generic say.
pub(crate) fn values(context: &Context, attributes: &[Attribute]) -> Option<MetaValues> {
    let mut found = None;
    for attribute in attributes {
        if !attribute.path().is_ident("meta") {
            context.error(
                attribute.span(),
                "a const generic of a kernel has no other attribute than `#[meta(..)]`",
            );
        } else if found.is_some() {
            context.error(attribute.span(), "a const generic has one `#[meta(..)]`");
        } else {
            match attribute.parse_args() {
                Ok(Parsed(values)) => found = Some(values),
                Err(error) => context.push(error),
            }
        }
    }
    found
}

struct Parsed(MetaValues);

impl Parse for Parsed {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut values = vec![input.parse::<Expr>()?];
        let mut step = None;
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            if input.is_empty() {
                break;
            }
            if input.peek(Ident) && input.peek2(Token![=]) && !input.peek2(Token![==]) {
                let name: Ident = input.parse()?;
                input.parse::<Token![=]>()?;
                let value = input.parse()?;
                if name != "step" || step.is_some() {
                    return Err(syn::Error::new(name.span(), EXPECTED));
                }
                step = Some(value);
            } else {
                values.push(input.parse()?);
            }
        }
        match (values.as_slice(), step) {
            ([Expr::Range(range)], step) if is_closed(range) => {
                Ok(Self(MetaValues::Range(range.clone(), step)))
            }
            ([first, ..], Some(_)) => Err(syn::Error::new(first.span(), EXPECTED)),
            (values, _) => match values.iter().find(|it| matches!(it, Expr::Range(_))) {
                Some(range) => Err(syn::Error::new(range.span(), EXPECTED)),
                None => Ok(Self(MetaValues::List(values.to_vec()))),
            },
        }
    }
}

fn is_closed(range: &ExprRange) -> bool {
    let closed = matches!(range.limits, RangeLimits::Closed(_));
    closed && range.start.is_some() && range.end.is_some()
}

/// The numbers as an iterator of the type of the const generic.
pub(crate) fn tried(meta: &Meta) -> Option<TokenStream> {
    let ty = &meta.ty;
    Some(match meta.values.as_ref()? {
        MetaValues::List(values) => {
            quote!(::core::iter::IntoIterator::into_iter([#(#values),*] as [#ty; _]))
        }
        MetaValues::Range(range, Some(step)) => {
            let (start, end) = (&range.start, &range.end);
            quote! {{
                let range: ::core::ops::RangeInclusive<#ty> = #start..=#end;
                range.step_by(::core::cmp::Ord::max(#step, 1))
            }}
        }
        MetaValues::Range(range, None) => {
            let (start, end) = (&range.start, &range.end);
            quote! {{
                let (least, most): (#ty, #ty) = (#start, #end);
                (0..63).map(|bit| 1i128 << bit)
                    .filter(move |&number| number >= least as i128 && number <= most as i128)
                    .map(|number| number as #ty)
            }}
        }
    })
}
