//! Each message of the trace, of the text form, of the verifier with its type rules, and of the macros stands in a test.

use std::collections::BTreeMap;
use std::fs;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::Visit;

use crate::root;

/// The texts of a file that say what is wrong or what to do about it: all with a blank, outside of tests and of
/// what only the compiler reads. Documentation begins with a capital letter.
#[derive(Default)]
struct Messages(Vec<String>);

impl Messages {
    fn add(&mut self, text: &str) {
        let is_message = text.contains(' ') && !text.starts_with("broken invariant");
        if is_message && !text.starts_with(char::is_uppercase) {
            self.0.push(text.to_string());
        }
    }

    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut behind_hash = false;
        for token in tokens {
            let is_attribute = std::mem::take(&mut behind_hash);
            match token {
                TokenTree::Literal(literal) => {
                    if let Ok(text) = syn::parse_str::<syn::LitStr>(&literal.to_string()) {
                        self.add(&text.value());
                    }
                }
                TokenTree::Group(group) if !is_attribute => self.add_tokens(group.stream()),
                TokenTree::Punct(sign) => behind_hash = sign.as_char() == '#',
                TokenTree::Group(_) | TokenTree::Ident(_) => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Messages {
    fn visit_lit_str(&mut self, text: &'ast syn::LitStr) {
        self.add(&text.value());
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let name = call.path.segments.last().map(|it| it.ident.to_string());
        if !name.is_some_and(|name| name.contains("quote")) {
            self.add_tokens(call.tokens.clone());
        }
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if let syn::Meta::List(list) = &attribute.meta
            && list
                .path
                .segments
                .last()
                .is_some_and(|it| it.ident == "on_unimplemented")
        {
            self.add_tokens(list.tokens.clone());
        }
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if module.ident != "tests" {
            syn::visit::visit_item_mod(self, module);
        }
    }
}

/// The longest part of a message that is the same each time.
fn fixed_part(message: &str) -> String {
    let parts = message.split('{').map(|part| match part.split_once('}') {
        Some((_, fixed)) => fixed,
        None => part,
    });
    let longest = parts.max_by_key(|part| part.trim().len());
    words(longest.unwrap_or_default())
}

/// A text with one blank between words, and without the marks of where its lines go on.
fn words(text: &str) -> String {
    let text = text.replace("\\\n", " ").replace("\\\"", "\"");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn texts_below(folder: &str, is_wanted: &dyn Fn(&str) -> bool) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("is a folder") {
            let path = entry.expect("is listed").path();
            let name = path.display().to_string();
            if path.is_dir() {
                folders.push(path);
            } else if is_wanted(&name) {
                found.insert(name, fs::read_to_string(&path).expect("is text"));
            }
        }
    }
    found
}

/// The rooms whose messages are looked for.
const ROOMS: [&str; 5] = [
    "dsl-core/src/ir",
    "dsl-core/src/lang",
    "dsl-core/src/text",
    "dsl-core/src/verify",
    "dsl-macros/src",
];

/// Asked of results behind the type rules, which refuse all ops that could give pending sums and do not.
const UNREACHED: &str = "` cannot give pending sums";

#[test]
fn every_refusal_is_shown() {
    let is_rust = |name: &str| name.ends_with(".rs");
    let is_code = |name: &str| is_rust(name) && !name.contains("/tests");
    let is_test = |name: &str| is_rust(name) && name.contains("/tests");
    let mut shown = String::new();
    for (folder, is_wanted) in [
        (
            "tests/ui",
            &(|name: &str| name.ends_with(".stderr")) as &dyn Fn(&str) -> bool,
        ),
        ("tests/suite", &is_rust),
        ("tests/filetests", &|name: &str| name.ends_with(".bir")),
        ("harness/src/testing", &is_rust),
        ("dsl-core/src", &is_test),
        ("dsl-core/src/lang", &is_rust),
    ] {
        for (name, text) in texts_below(folder, is_wanted) {
            let is_room = name.contains("dsl-core/src/lang/") && !name.contains("/tests");
            let tests = text
                .split_once("#[cfg(test)]")
                .map_or("", |(_, tests)| tests);
            shown += &words(if is_room { tests } else { &text });
        }
    }
    let mut missing = Vec::new();
    for folder in ROOMS {
        for (name, text) in texts_below(folder, &is_code) {
            let mut messages = Messages::default();
            messages.visit_file(&syn::parse_file(&text).expect("parses"));
            for message in messages.0 {
                let part = fixed_part(&message);
                if part.len() > 5 && !shown.contains(&part) && part != UNREACHED {
                    missing.push(format!("{name}: no test shows `{message}`"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
