//! The bindings that a loop or branch may change, handed to the tracer as slots.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote_spanned};
use syn::Ident;

use super::Rewriter;
use crate::model::Binding;
use crate::names::Mentions;

/// What the generated code needs of the changeable bindings.
pub(super) struct Slots {
    /// Brings the traits of the fallback into scope.
    pub(super) imports: TokenStream,
    /// Remembers the host values before.
    pub(super) save: TokenStream,
    /// `&mut [slot, ..]`.
    pub(super) list: TokenStream,
}

impl Rewriter<'_> {
    /// Slots of the bindings in scope among `mentioned`, for a keyword at `span`.
    ///
    /// The kind of each slot follows from its type by autoref: handles are carried, host values
    /// that can be compared must not change, and everything else is refused by a traced loop.
    pub(super) fn slots(&self, mut mentioned: Mentions, span: Span) -> Slots {
        mentioned.add_macros(&self.macros);
        let mut save = TokenStream::new();
        let mut items = TokenStream::new();
        for (name, binding) in self.scopes.changeable(&mentioned) {
            let saved = saved(&name);
            let text = name.to_string();
            let place = place(&name, binding, span);
            let kind = quote_spanned! {span=>
                (&&&::exactile::__private::control::Kind::of(&#place)).kind()
            };
            save.extend(quote_spanned! {span=>
                let #saved = #kind.save(&#place);
            });
            items.extend(quote_spanned! {span=>
                #kind.slot(#text, &mut #place, &#saved),
            });
        }
        Slots {
            imports: quote_spanned! {span=>
                #[allow(unused_imports, reason = "which of them is used depends on the types")]
                use ::exactile::__private::control::{
                    CarriedKind as _, HostKind as _, OpaqueKind as _,
                };
            },
            save,
            list: quote_spanned! {span=> &mut [#items] },
        }
    }
}

fn saved(name: &Ident) -> Ident {
    format_ident!("__saved_{}", name)
}

fn place(name: &Ident, binding: Binding, span: Span) -> TokenStream {
    match binding {
        Binding::Reference => quote_spanned! {span=> (*#name) },
        Binding::Mutable | Binding::Number | Binding::Fixed => quote_spanned! {span=> #name },
    }
}
