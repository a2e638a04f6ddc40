//! The page of the ready kernels is what their files hold.

use std::fmt::Write;
use std::fs;

use syn::spanned::Spanned;
use syn::visit::Visit;

use crate::root;

const INTRODUCTION: &str = "\
# Kernels

Written from the files of `kernels/src` by `BLESS=1 cargo test --test suite kernels::`; do not edit.

What stands ready in the package `exactile-kernels`: each file holds the kernels, a function that launches them on
buffers, what they compute in plain Rust, and the settings that a tuner chooses from. Lines are those of the kernel
that are not blank, from its name to its last brace.

| kernel | lines | file |
|---|---|---|
";

/// The kernels of a file, with their lines.
struct Kernels<'a> {
    lines: Vec<&'a str>,
    found: Vec<(String, usize)>,
}

impl<'a> Visit<'a> for Kernels<'_> {
    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        let marked = |attribute: &syn::Attribute| attribute.path().is_ident("kernel");
        if item.attrs.iter().any(marked) {
            let (first, last) = (item.sig.span().start().line, item.block.span().end().line);
            let lines = self.lines[first - 1..last].iter();
            let count = lines.filter(|line| !line.trim().is_empty()).count();
            self.found.push((item.sig.ident.to_string(), count));
        }
    }
}

fn page() -> String {
    let mut rows = Vec::new();
    for file in fs::read_dir(root().join("kernels/src")).expect("is a folder") {
        let path = file.expect("is read").path();
        let text = fs::read_to_string(&path).expect("is read");
        let mut kernels = Kernels {
            lines: text.lines().collect(),
            found: Vec::new(),
        };
        kernels.visit_file(&syn::parse_file(&text).expect("is Rust"));
        let name = path
            .file_name()
            .expect("has a name")
            .to_string_lossy()
            .to_string();
        rows.extend(
            kernels
                .found
                .into_iter()
                .map(|(kernel, lines)| (kernel, lines, name.clone())),
        );
    }
    rows.sort();
    let mut page = INTRODUCTION.to_string();
    for (kernel, lines, file) in rows {
        let _ = writeln!(
            page,
            "| `{kernel}` | {lines} | [{file}](../kernels/src/{file}) |"
        );
    }
    page
}

#[test]
fn the_page_of_kernels_is_fresh() {
    let path = root().join("docs/kernels.md");
    let page = page();
    if std::env::var("BLESS").is_ok_and(|value| value == "1") {
        fs::write(&path, &page).expect("the page can be written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == page,
        "docs/kernels.md is stale: run `BLESS=1 cargo test --test suite kernels::`"
    );
}
