//! What the trace of a kernel refuses, with the notes that say what to do: each message has a kernel here or in
//! another test, which `every_refusal_is_shown` holds.

use std::collections::BTreeMap;
use std::fs;

use exactile::Kernel;
use exactile::prelude::*;
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::Visit;

use crate::root;

#[kernel]
fn chooses_a_pointer(x: Ptr<f32>, y: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let mut p = x;
    if n > 3 {
        p = y + 1;
    }
    store(out, load(p));
}

#[kernel]
fn chooses_a_pointer_as_value(x: Ptr<f32>, y: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let p = if n > 3 { x } else { y };
    store(out, load(p));
}

#[kernel]
fn moves_a_pointer_in_a_condition(x: Ptr<f32>, y: Ptr<f32>, out: PtrMut<f32>) {
    let mut p = x;
    while {
        p = y;
        load(p) > 0.0
    } {
        store(out, 1.0);
    }
}

#[kernel]
fn moves_a_pointer(x: Ptr<f32>, y: Ptr<f32>, out: PtrMut<f32>) {
    let mut p = x;
    while load(p) > 0.0 {
        p = y;
        store(out, 1.0);
    }
}

#[kernel]
fn masks_late(x: Ptr<f32>, out: PtrMut<f32>) {
    let offsets = arange(0, 4);
    let value = load(x + offsets);
    store(out + offsets, value * 2.0);
    store(out + offsets, value.mask(offsets < 3));
}

#[kernel]
fn gives_other_host_values(out: PtrMut<f32>, n: i32) {
    let width = if n > 3 { 4usize } else { 8usize };
    store(out + arange(0, width), 1.0);
}

#[kernel]
fn gives_no_handles(out: PtrMut<f32>, n: i32) {
    let places = if n > 3 {
        vec![1, 2].into_iter()
    } else {
        vec![3].into_iter()
    };
    for place in places {
        store(out + place, 1.0);
    }
}

#[kernel]
fn adds_an_axis(x: Ptr<f32>, out: PtrMut<f32>) {
    let row = load(x + arange(0, 4));
    let table = row.expand(0).expand(1);
    store(out + arange(0, 4), row + table);
}

#[kernel]
fn has_other_extents(x: Ptr<f32>, out: PtrMut<f32>) {
    store(
        out + arange(0, 4),
        load(x + arange(0, 8)) + arange(0, 4).to::<f32>(),
    );
}

#[kernel]
fn has_other_offsets(x: Ptr<f32>, out: PtrMut<f32>) {
    store(out + arange(0, 4), load(x + arange(0, 8) + arange(0, 4)));
}

#[kernel]
fn steps_by_zero(out: PtrMut<f32>, n: i32) {
    for i in range(0, n).step(0) {
        if i > 3 {
            break;
        }
        store(out + i, 1.0);
    }
}

#[kernel]
fn carries_another_number(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let mut sums = vec![load(x)];
    for i in 0..n {
        sums.push(load(x + i));
    }
    store(out, sums[0]);
}

#[kernel]
fn carries_an_iterator(out: PtrMut<f32>, n: i32) {
    let mut names = [1, 2].into_iter();
    for i in 0..n {
        names.next();
        store(out + i, 1.0);
    }
}

#[kernel]
fn counts_trips(out: PtrMut<f32>, n: i32) {
    let mut trips = 0;
    for i in 0..n {
        trips += 1;
        store(out + i, 1.0);
    }
    store(out, trips as f64);
}

#[kernel]
fn widens_a_value(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let mut sum = load(x + arange(0, 4));
    for _ in 0..n {
        sum = sum.expand(0);
    }
    store(out + arange(0, 4), sum);
}

#[kernel]
fn deals_no_rows(out: PtrMut<f32>, n: i32) {
    let (row, _) = swizzle_2d(
        program_id(0),
        program_id(1),
        n.to::<i64>(),
        n.to::<i64>(),
        0,
    );
    store(out + row, 1.0);
}

#[kernel]
fn squeezes_a_row(x: Ptr<f32>, out: PtrMut<f32>) {
    store(out, load(x + arange(0, 4)).squeeze(0));
}

#[kernel]
fn cats_along_no_axis(x: Ptr<f32>, out: PtrMut<f32>) {
    let row = load(x + arange(0, 4));
    store(out, row.cat(row, 2).sum(0));
}

#[kernel]
fn cats_three(x: Ptr<f32>, out: PtrMut<f32>) {
    store(out, cat([load(x + arange(0, 4)); 3], 0).sum(0));
}

#[kernel]
fn asks_for_no_axis(x: Tensor<f32, 2>, out: PtrMut<i64>) {
    store(out, x.extent(2));
}

#[kernel]
fn transposes_a_row(x: Ptr<f32>, out: PtrMut<f32>) {
    store(out, load(x + arange(0, 4)).transpose().sum(0));
}

#[kernel]
fn makes_a_tile_a_scalar(x: Ptr<f32>, out: PtrMut<f32>) {
    store(out, load(x + arange(0, 4)).scalar());
}

#[kernel]
fn asks_the_device_for_a_host_condition(x: Ptr<f32>, out: PtrMut<f32>) {
    let mut count = 0;
    while {
        store(out, load(x));
        count < 3
    } {
        count += 1;
    }
}

#[kernel]
fn reads_after_it_left(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let mut i = n;
    while load(x + i) > 0.0 {
        if i < 1 {
            break;
        }
        i -= 1;
    }
    store(out, i.to::<f32>());
}

#[kernel]
fn adds_to_one_address(x: Ptr<i32>, out: PtrMut<i32>) {
    atomic_add(out, load(x + arange(0, 4)));
}

#[kernel]
fn adds_another_extent(x: Ptr<f32>, out: PtrMut<f32>) {
    let mut sum = sum_accumulator::<f32>([]);
    sum.add(load(x + arange(0, 4)), 0);
    sum.add(load(x + arange(0, 8)), 0);
    store(out, sum.finish());
}

#[kernel]
fn panics_behind_an_error(x: Ptr<f32>, out: PtrMut<f32>) {
    let rows = load(x + arange(0, 4)).transpose().shape();
    store(out, rows[1] as f64);
}

fn gives_up() {
    std::panic::panic_any(7);
}

#[kernel]
fn panics_with_a_number(out: PtrMut<f32>) {
    gives_up();
    store(out, 1.0);
}

/// The errors of a kernel, with their notes.
fn shown<P>(kernel: &Kernel<P>) -> String {
    kernel.trace().expect_err("is refused").to_string()
}

macro_rules! check {
    ($($kernel:ident: $($message:literal),+;)*) => { $(
        let errors = shown(&$kernel(Default::default()));
        for message in [$($message),+] {
            assert!(errors.contains(message), "{message}\nis not in\n{errors}");
        }
        assert!(errors.contains("refusals.rs:"), "{errors}");
    )* };
}

#[test]
fn a_pointer_stays_in_one_argument() {
    check! {
        chooses_a_pointer:
            "`p` points into another argument after the branch",
            "which argument a pointer points into is known while tracing: load from both and choose by `select`, \
             or access each argument in its own branch";
        chooses_a_pointer_as_value:
            "the value of the `if` points into another argument in the second branch",
            "load from both and choose by `select`";
        moves_a_pointer:
            "`p` points into another argument after the body";
        moves_a_pointer_in_a_condition:
            "`p` points into another argument after the condition";
    }
}

#[test]
fn a_late_mask_says_where_it_stands() {
    check! {
        masks_late:
            "`mask` does not directly follow a `load`",
            "write `load(..).mask(..)` before anything uses the result";
    }
}

#[test]
fn loops_and_branches_refuse_what_they_cannot_carry() {
    check! {
        gives_other_host_values: "a run-time `if` gives different host values in its branches";
        gives_no_handles: "a run-time `if` cannot give a value of type `alloc::vec::into_iter::IntoIter<i32>`";
        steps_by_zero: "step `0` of `for` is zero";
        carries_another_number: "`sums` holds another number of values after the body";
        carries_an_iterator:
            "cannot be carried through a run-time loop",
            "bind it without `mut`, or derive `Carry` for it if it holds handles";
        counts_trips:
            "the host value `trips` changes inside a run-time loop",
            "it would change once, while tracing: use a `Scalar`, or make the bounds or condition host values";
        widens_a_value: "`sum` is `tile<1x4xf32>` after the body, expected `tile<4xf32>` as before it";
        asks_the_device_for_a_host_condition: "the host condition of a `while` computes device values";
        reads_after_it_left:
            "the condition of a `while` that `break` or `return` leaves reads memory",
            "write `loop { if !condition { break; } .. }`, which does not compute it again after a `break`";
    }
}

#[test]
fn shapes_that_do_not_fit_are_named() {
    check! {
        adds_an_axis: "`add`: shapes", "the ranks differ: insert an axis with `.expand(axis)`";
        has_other_extents: "axis 0 has extents `8` and `4`";
        has_other_offsets: "`pointer offset`: shapes [8] and [4] do not broadcast";
        deals_no_rows: "`swizzle_2d` takes groups of one row or more";
        squeezes_a_row: "`squeeze` needs extent 1 along axis 0, found `tile<4xf32>`";
        cats_along_no_axis: "`cat` along axis 2 of tiles of rank 1";
        cats_three: "`cat` of 3 tiles, expected a power of two";
        asks_for_no_axis: "axis 2 is out of range for a tensor of rank 2";
        transposes_a_row: "`transpose` needs two axes, found `tile<4xf32>`";
        makes_a_tile_a_scalar: "`scalar` needs a tile of rank 0, found `tile<4xf32>`";
        adds_to_one_address:
            "`atomic_add`: a tile of shape [4] does not go to one address",
            "`ptr + offsets` is an address for each element; `x.sum(0)` and its like make one number of a tile";
        adds_another_extent:
            "`add`: the tile has extent `8` along axis 0, expected `4` as before";
    }
}

#[test]
fn a_panic_is_an_error_of_its_kernel() {
    check! {
        panics_behind_an_error:
            "the body of kernel `panics_behind_an_error` panicked while it was traced: index out of bounds",
            "an earlier error may be the cause";
        panics_with_a_number: "panicked while it was traced: a value that is no text";
    }
}

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
    for folder in ["dsl-core/src/lang", "dsl-macros/src"] {
        for (name, text) in texts_below(folder, &is_code) {
            let mut messages = Messages::default();
            messages.visit_file(&syn::parse_file(&text).expect("parses"));
            for message in messages.0 {
                let part = fixed_part(&message);
                if part.len() > 5 && !shown.contains(&part) {
                    missing.push(format!("{name}: no test shows `{message}`"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
