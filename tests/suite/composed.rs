//! The list of functions made of others is what their documentation says.

use std::collections::BTreeMap;
use std::fs;

use syn::spanned::Spanned;

use crate::root;

/// The files whose public functions are made of ops.
const FILES: [&str; 9] = [
    "bessel",
    "bits",
    "floats",
    "functions",
    "lengths",
    "narrow",
    "normal",
    "random",
    "rounded",
];

fn read(file: &str) -> String {
    fs::read_to_string(root().join("dsl-core/src/lang").join(file)).expect("is read")
}

/// The data types of each class of elements, as `Float`, and of each alone.
fn classes() -> BTreeMap<String, Vec<String>> {
    let text = read("element.rs");
    let (_, rows) = text.split_once("\nelements! {").expect("lists them");
    let (rows, _) = rows.split_once("\n}").expect("ends the list");
    let mut classes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in rows.lines().filter_map(|row| row.trim().strip_suffix(';')) {
        let (name, own) = row.split_once(": ").expect("has classes");
        let dtype = name.trim_start_matches("half::").to_lowercase();
        classes.insert(name.to_string(), vec![dtype.clone()]);
        for class in own.split(' ') {
            classes
                .entry(class.to_string())
                .or_default()
                .push(dtype.clone());
        }
    }
    classes
}

/// The documentation of an item in one line.
fn documentation(attributes: &[syn::Attribute]) -> String {
    let text = |attribute: &syn::Attribute| {
        if let syn::Meta::NameValue(pair) = &attribute.meta
            && pair.path.is_ident("doc")
            && let syn::Expr::Lit(literal) = &pair.value
            && let syn::Lit::Str(text) = &literal.lit
        {
            return Some(text.value().trim().to_string());
        }
        None
    };
    let lines: Vec<String> = attributes.iter().filter_map(text).collect();
    lines.join(" ")
}

/// The first sentence, without links. A point behind an initial ends none.
fn sentence(documentation: &str) -> String {
    let is_initial = |word: &str| word.len() == 1 && word.starts_with(char::is_uppercase);
    let last_word = |at: usize| documentation[..at].rsplit(' ').next().unwrap_or_default();
    let is_end = |(at, _): &(usize, &str)| !is_initial(last_word(*at));
    let mut ends = documentation.match_indices(". ").filter(is_end);
    let sentence = ends
        .next()
        .map_or(documentation, |(at, _)| &documentation[..=at]);
    sentence.replace("[`", "`").replace("`]", "`")
}

/// The errors that a documentation states, as `f32 0.5001, f64 1`: "At most 0.5001 ulp off, and 1 ulp in `f64`". What
/// says where, as "At most 1.8 ulp off from 0 on", stands behind.
fn errors(documentation: &str) -> String {
    let Some((_, stated)) = documentation.split_once("At most ") else {
        return String::new();
    };
    let (single, rest) = stated.split_once(" ulp off").expect("states an error");
    let double = rest
        .strip_prefix(", and ")
        .and_then(|rest| rest.split_once(" ulp in `f64`"));
    let double = double.map_or(String::new(), |(double, _)| format!(", f64 {double}"));
    let mut parts = rest.split(['.', ',', ';', ':']);
    let place = parts.next().map(str::trim).unwrap_or_default();
    let is_place = ["from", "but"].iter().any(|word| place.starts_with(word));
    let place = match is_place {
        true => format!(" {place}"),
        false => String::new(),
    };
    format!("f32 {single}{place}{double}")
}

/// The class that the signature asks of the elements, or the type that it takes.
fn class(signature: &str) -> &str {
    let (_, bound) = signature
        .split_once("Element: ")
        .or_else(|| signature.split_once("Element = "))
        .or_else(|| signature.split_once("<T: "))
        .or_else(|| signature.split_once("Tile<"))
        .unwrap_or_else(|| panic!("no class of elements: {signature}"));
    bound
        .split(|character: char| !character.is_alphanumeric())
        .next()
        .unwrap_or_default()
}

fn list() -> String {
    let classes = classes();
    let mut rows = Vec::new();
    for file in FILES {
        let text = read(&format!("{file}.rs"));
        let lines: Vec<&str> = text.lines().collect();
        for item in syn::parse_file(&text).expect("is Rust").items {
            let syn::Item::Fn(function) = item else {
                continue;
            };
            if !matches!(function.vis, syn::Visibility::Public(_)) {
                continue;
            }
            let (first, last) = (
                function.sig.span().start().line,
                function.block.span().start().line,
            );
            let signature = lines[first - 1..last].join(" ");
            let documentation = documentation(&function.attrs);
            let dtypes = classes[class(&signature)].join(" ");
            rows.push(format!(
                "{}\t{dtypes}\t{}\t{}",
                function.sig.ident,
                errors(&documentation),
                sentence(&documentation)
            ));
        }
    }
    rows.sort();
    rows.join("\n") + "\n"
}

#[test]
fn the_list_of_composed_functions_is_fresh() {
    let path = root().join("harness/src/composed.tsv");
    let list = list();
    if std::env::var("BLESS").is_ok_and(|value| value == "1") {
        fs::write(&path, &list).expect("the list can be written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == list,
        "composed.tsv is stale: run `BLESS=1 cargo test --test suite composed::`, and then that of `ops::`"
    );
    for name in ["clamp", "gelu", "gelu_tanh", "relu", "silu", "softplus"] {
        assert!(list.contains(&format!("\n{name}\t")), "lists `{name}`");
    }
}
