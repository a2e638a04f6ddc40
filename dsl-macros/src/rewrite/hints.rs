//! Code that would be right for numbers of the host, in a form whose error says what to write for handles.

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Expr, ExprCall, ExprCast, ExprMatch, ExprMethodCall, Ident, Lit, Macro, Pat, Token,
    parse_quote_spanned,
};

use super::operators::is_literal;

/// `std::cmp::min` and `max`.
pub(super) fn order(call: &mut ExprCall) {
    let Expr::Path(path) = &mut *call.func else {
        return;
    };
    let names: Vec<String> = path
        .path
        .segments
        .iter()
        .map(|it| it.ident.to_string())
        .collect();
    let [.., module, name] = &names[..] else {
        return;
    };
    if module != "cmp" || !matches!(&name[..], "min" | "max") {
        return;
    }
    let span = path.span();
    let name = Ident::new(&format!("host_{name}"), span);
    *call.func = parse_quote_spanned!(span=> ::exactile::__private::hints::#name);
}

/// `value as T`.
pub(super) fn cast(cast: &mut ExprCast) {
    if is_literal(&cast.expr) {
        return;
    }
    let (span, value) = (cast.as_token.span(), &cast.expr);
    let check = check(
        "HostCast",
        "DeviceCast",
        "cast",
        &quote_spanned!(span=> __cast),
        span,
    );
    *cast.expr = parse_quote_spanned! {span=> { let __cast = #value; #check __cast } };
}

/// What is added to a variable that begins with a literal.
pub(super) fn operand(right: &mut Expr) {
    let span = right.span();
    if !is_literal(right) {
        *right = parse_quote_spanned! {span=> {
            let __operand = #right;
            ::exactile::__private::hints::host_operand(&__operand);
            __operand
        }};
    }
}

/// A condition beside a pattern.
pub(super) fn condition(condition: &mut Expr) {
    let span = condition.span();
    *condition =
        parse_quote_spanned!(span=> ::exactile::__private::hints::HostCondition::holds(#condition));
}

/// A call of `.rev()` or `.step_by(..)` of a range, where `range` stands for the range.
pub(super) fn adapted(call: &ExprMethodCall, range: &TokenStream) -> Option<TokenStream> {
    let (name, arguments) = (&call.method, &call.args);
    let span = name.span();
    (name == "rev" || name == "step_by").then(|| {
        quote_spanned!(span=> ::exactile::__private::hints::HostRange::#name(#range, #arguments))
    })
}

/// What a macro of the standard library shows of variables; nothing where it shows none, or not as they are.
pub(super) fn printed(called: &Macro) -> Option<TokenStream> {
    const PRINTS: [&str; 5] = ["print", "println", "eprint", "eprintln", "format"];
    let name = called.path.get_ident()?.to_string();
    let parser = Punctuated::<Expr, Token![,]>::parse_terminated;
    let shown = parser.parse2(called.tokens.clone()).ok()?;
    let Some(Expr::Lit(text)) = shown.first() else {
        return None;
    };
    let Lit::Str(text) = &text.lit else {
        return None;
    };
    let format = text.value();
    if !PRINTS.contains(&&name[..]) || format.contains('?') || format.contains("{{") {
        return None;
    }
    let named = format.split('{').skip(1).filter_map(|it| {
        let name = it.split(['}', ':']).next()?;
        let is_given = |value: &Expr| matches!(value, Expr::Assign(given) if matches!(&*given.left, Expr::Path(path) if path.path.is_ident(name)));
        let name: Ident = syn::parse_str(name).ok()?;
        (!shown.iter().any(is_given)).then(|| Ident::new(&name.to_string(), text.span()))
    });
    let variables = shown.iter().skip(1).filter_map(|value| match value {
        Expr::Path(path) => path.path.get_ident().cloned(),
        _ => None,
    });
    let checks: TokenStream = named
        .chain(variables)
        .map(|name| {
            let span = name.span();
            check(
                "HostPrint",
                "DevicePrint",
                "print",
                &quote_spanned!(span=> #name),
                span,
            )
        })
        .collect();
    (!checks.is_empty()).then_some(checks)
}

/// The variables of a tuple of which a pattern names numbers.
pub(super) fn matched(matched: &ExprMatch) -> Option<TokenStream> {
    let Expr::Tuple(tuple) = &*matched.expr else {
        return None;
    };
    let names_number = |place: usize| {
        let mut tuples = matched.arms.iter().filter_map(|arm| match &arm.pat {
            Pat::Tuple(pattern) => pattern.elems.iter().nth(place),
            _ => None,
        });
        tuples.any(|it| matches!(it, Pat::Lit(_) | Pat::Range(_)))
    };
    let checks: TokenStream = tuple
        .elems
        .iter()
        .enumerate()
        .filter(|(place, it)| matches!(it, Expr::Path(_)) && names_number(*place))
        .map(|(_, it)| {
            let span = it.span();
            check(
                "HostMatch",
                "DeviceMatch",
                "matched",
                &quote_spanned!(span=> #it),
                span,
            )
        })
        .collect();
    (!checks.is_empty()).then_some(checks)
}

/// A statement that only compiles for what is no handle.
fn check(host: &str, device: &str, method: &str, value: &TokenStream, span: Span) -> TokenStream {
    let [host, device, method] = [host, device, method].map(|name| Ident::new(name, span));
    quote_spanned! {span=> {
        #[allow(unused_imports, reason = "which of them is used depends on the types")]
        use ::exactile::__private::hints::{#host as _, #device as _};
        (&&::exactile::__private::control::Kind::of(&#value)).#method();
    }}
}
