//! The launches of a kernel, which name its parameters where a launch passes too few arguments or too many.
//!
//! The compiler shows the text of the trait that is not implemented. So each wrong number has a trait of its own, which
//! a type of another name than the tuple would have to implement: of one type the compiler shows the first trait it asks for.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::Ident;

use crate::model::Parameter;

/// So many arguments too few or too many are told one by one.
const TOLD: usize = 2;

/// The traits, and the methods of the kernel that ask for them.
pub(crate) fn launches(name: &Ident, parameters: &[Parameter]) -> TokenStream {
    let count = parameters.len();
    let has = has(name, parameters);
    let note = match count {
        0 => "pass `()`".to_string(),
        1 => format!("pass a tuple of it: `({},)`", parameters[0].name),
        _ => format!("pass a tuple of them: `({})`", names(parameters).join(", ")),
    };
    let about = format!("The arguments of a launch of `{name}`.");
    let wrong = (count.saturating_sub(TOLD)..=count + TOLD).filter(|&given| given != count);
    let wrong = wrong.map(|given| wrong_count(&has, &note, parameters, given));
    let (tuple, generics) = tuple(count);
    let methods = methods(count);
    quote! {
        #[doc(hidden)]
        #[doc = #about]
        #[diagnostic::on_unimplemented(
            message = #has,
            label = "found `{Self}`",
            note = #note
        )]
        pub trait Arguments<'a, P> {
            #[doc = "As many as there are parameters."]
            type Counted: ::exactile::Arguments<'a, P, #count>;
            #[doc = "The same."]
            fn counted(self) -> Self::Counted;
        }

        impl<'a, P, #(#generics),*> Arguments<'a, P> for #tuple
        where
            #tuple: ::exactile::Arguments<'a, P, #count>,
        {
            type Counted = Self;
            #[inline]
            fn counted(self) -> Self {
                self
            }
        }

        #[doc(hidden)]
        #[doc = "Too few arguments of a launch, or too many."]
        pub enum Miscounted {}

        #(#wrong)*

        #methods
    }
}

/// What the kernel has, in words.
fn has(name: &Ident, parameters: &[Parameter]) -> String {
    let names = names(parameters).join(", ");
    match parameters.len() {
        0 => format!("`{name}` has no parameters"),
        1 => format!("`{name}` has 1 parameter ({names})"),
        count => format!("`{name}` has {count} parameters ({names})"),
    }
}

fn names(parameters: &[Parameter]) -> Vec<String> {
    let names = parameters.iter();
    names.map(|parameter| parameter.name.to_string()).collect()
}

/// The type of a tuple of so many types, and their names.
fn tuple(count: usize) -> (TokenStream, Vec<Ident>) {
    let generics: Vec<Ident> = (0..count).map(|at| format_ident!("A{at}")).collect();
    (quote!((#(#generics,)*)), generics)
}

/// What is said where another number is given.
fn wrong_count(has: &str, note: &str, parameters: &[Parameter], given: usize) -> TokenStream {
    let count = parameters.len();
    let were = match given {
        1 => "1 was given".to_string(),
        given => format!("{given} were given"),
    };
    let wrong = match parameters.get(given..) {
        Some(missing) => {
            let names = names(missing).join("`, `");
            let are = if missing.len() == 1 { "is" } else { "are" };
            format!("`{names}` {are} missing")
        }
        None if given == count + 1 => "the last one is too many".to_string(),
        None => format!("the last {} are too many", given - count),
    };
    let message = format!("{has}; {were}, {wrong}");
    let name = Ident::new(&format!("Given{given}"), Span::call_site());
    let (tuple, generics) = tuple(given);
    quote! {
        #[doc(hidden)]
        #[doc = #message]
        #[diagnostic::on_unimplemented(message = #message, label = #wrong, note = #note)]
        pub trait #name<'a, P, A> {
            #[doc = "As many as there are parameters."]
            type Counted: ::exactile::Arguments<'a, P, #count>;
            #[doc = "Never called."]
            fn counted(arguments: A) -> Self::Counted;
        }

        impl<'a, P, #(#generics),*> Arguments<'a, P> for #tuple
        where
            Miscounted: #name<'a, P, #tuple>,
        {
            type Counted = <Miscounted as #name<'a, P, #tuple>>::Counted;
            fn counted(self) -> Self::Counted {
                <Miscounted as #name<'a, P, #tuple>>::counted(self)
            }
        }
    }
}

/// Launches as those of all kernels are, with arguments of this one.
fn methods(count: usize) -> TokenStream {
    let rows = [
        ("launch", quote!(&impl ::exactile::Queue), quote!(())),
        ("run", quote!(&impl ::exactile::Queue), quote!(())),
        (
            "compile",
            quote!(&::exactile::Device),
            quote!(::exactile::Kernel<P>),
        ),
        (
            "inspect",
            quote!(&impl ::exactile::Queue),
            quote!(::exactile::Inspection),
        ),
    ];
    let methods = rows.iter().map(|(name, place, gives)| {
        let about = format!("Calls `exactile::Kernel::{name}`.");
        let method = Ident::new(name, Span::call_site());
        quote! {
            #[doc(hidden)]
            #[doc = #about]
            #[inline]
            #[allow(dead_code, reason = "generated for every kernel")]
            pub fn #method<'a>(
                &self,
                place: #place,
                grid: impl ::exactile::LaunchGrid,
                arguments: impl Arguments<'a, P>,
            ) -> ::exactile::Result<#gives> {
                ::exactile::Kernel::#method(self.0.kernel(), place, grid, arguments.counted())
            }
        }
    });
    quote! {
        impl<P: ::exactile::Parameters<#count> + 'static> Kernel<P> {
            #(#methods)*
        }
    }
}
