//! Each message of the trace, of the text form, of the verifier with its type rules, and of the macros stands in a test; of those
//! of launches and of what runs behind them a part that no other message has, or a good part with its holes filled.

use std::collections::{BTreeMap, BTreeSet};
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
        let is_told = call
            .path
            .segments
            .first()
            .is_some_and(|it| it.ident == "log");
        if !is_told && !name.is_some_and(|name| name.contains("quote")) {
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

/// The rooms of whose messages a test holds a part: what a launch and its compilation refuse, ready kernels, and what is kept.
const ROOMS_OF_LAUNCHES: [&str; 10] = [
    "src",
    "kernels/src",
    "backends/cranelift/src",
    "backends/nvptx/src",
    "store/src",
    "dsl-core/src/launch",
    "dsl-core/src/interp",
    "dsl-core/src/lower",
    "dsl-core/src/passes",
    "dsl-core/src/schedule",
];

/// Files of these rooms whose texts are instructions, what is kept of code, and what one pass says of another.
const WRITERS: [&str; 8] = [
    "/codegen/",
    "/target.rs",
    "/loops.rs",
    "/mend.rs",
    "/stored.rs",
    "/inlined.rs",
    "/preserving.rs",
    "/environment.rs",
];

/// Texts of these rooms that tell something and refuse nothing: progress, tables, keys of what is kept.
const TOLD: &[&str] = &[
    "memory is read in little-endian order",
    ", stated grid",
    " with driver {driver}",
    "   - more: {counts}\n",
    "   - {} more that are slower",
    "   - {config:?}: {}\n",
    "warning: {}",
    "the search",
    "the process ends",
    "define ptx_kernel void @empty(ptr addrspace(1) %x) {\n  ret void\n}\n",
    "comparing {config:?}",
    "all candidates",
    "standard output: {error}",
    "{name}: {codes} codes for {target}, {bytes} bytes\n",
    "compiled and kept on disk",
    "found on disk",
    "lowered to code that is there",
    "interpreted as traced",
    "copy to the host",
    "copy from the host",
    "copy on the device",
    "integers without sign",
    "mean us",
    "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n",
    "{{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 0, \"args\": {{\"name\": {device}}}}}",
    "{{\"name\": {}, \"cat\": \"{}\", \"ph\": \"X\", \"pid\": 0, \"tid\": {}, \"ts\": {:.3}, \"dur\": {:.3}, \"args\": {{",
    "\"grid\": \"{grid:?}\"",
    "\"bytes\": {bytes}",
    "{}, ptxas {}",
    ".target ",
    "measuring {config:?}",
    "compiled {config:?}",
    "found on {} in {:.2} s",
    "total ms",
    "exactile: {text}",
    "error: {error}",
    "{} launches",
    "{} threads of {} programs, {} registers, {} bytes of local memory, {} bytes of shared memory, {} thread blocks a multiprocessor, occupancy {:.0} %",
    "kernel {}\nplaces{positions}\n\n{traced}",
    "target {}\ncompiler {}",
    "machine {target:?}\noptions {options:?}\nfacts {facts:?}\ngrid {grid:?}\n{}",
    "{}\nmade by {maker}\n{}",
    "driver {:?} {}",
    "{}, assembler {assembler}",
    "memory {parameter} {dtype} {name}",
    "assertion {}",
    "number {index}",
    "constant {bits}",
    "compiler ",
    "made by ",
    "records ",
    "compiler {}",
    "made by {}",
    "records {}",
];

/// Words of which messages are put together that stand in tests as a whole.
const WORDS: &[&str] = &[
    "found `{Self}`",
    "expected `{}`",
    "the CPU",
    "the host",
    "\n  --> the capture at {place}",
    "kernel `{kernel}`: {missing}",
    "{} failed: {message}",
    "`{call}` failed: {reason}",
    "kernel `{}` {what}",
    "device {index} of {count}",
    "new memory",
    "an event",
    "gather axis {}",
    "{} panicked: {text}",
    "a scalar `{}`",
    "a scalar `{ty}`",
    "a multiple of {}",
    "copies to",
    "copies from",
    "kernel `{}`",
    ", program {}: {}",
    " {verb} at `{mnemonic}` of line {}",
    " has ended",
    " have ended",
    "bulk write",
    "bulk read",
    "is known",
];

/// Refusals that no test of this repository can ask for, each with the reason.
const UNREACHED_HERE: [(&str, &str); 15] = [
    (
        "`Device::use_built` was given no folder",
        "a launch on a GPU in a build with `cuda` and without `nvptx`, which these tests are not",
    ),
    (
        "it holds no code of this kernel",
        "a file of other contents whose checksum is right",
    ),
    (
        "the stream is one of cuda:{ordinal} or of a context of its own, expected the primary context of {device}",
        "a stream of `cudarc` on two GPUs",
    ),
    (
        "the stream is of another device, or of another context than the primary one of its device",
        "a stream of others on two GPUs",
    ),
    (
        "the address {address:#x} is not that of memory of this device",
        "memory of others on two GPUs: the driver of these tests knows all addresses",
    ),
    (
        "`{}` has compute capability {major}.{minor}, for which no code is made; known are {}",
        "a GPU older than an A100, or newer than the code",
    ),
    (
        "a copy of {len} bytes at {start}, found {} on the device",
        "what calls it knows how many bytes there are",
    ),
    (
        "a fill by {} bytes, expected 1, 2 or 4",
        "what calls it has numbers of 1, 2, 4 or 8 bytes",
    ),
    (
        "needs {input:?}, which the launch lacks",
        "code whose hidden parameters are of another kernel",
    ),
    (
        "has an array that is none here",
        "code whose boxes are of another kernel",
    ),
    (
        "there is no thread for it: {error}",
        "a system that has no thread left",
    ),
    (
        "it ended without a word",
        "a thread of LLVM that ends without a panic",
    ),
    (
        "the linker made nothing",
        "a driver that says that it has linked and gives nothing",
    ),
    (
        "unknown error",
        "a driver that does not know its own errors",
    ),
    (
        "it was removed meanwhile",
        "a file that goes between two calls",
    ),
];

/// Asked of results behind the type rules, which refuse all ops that could give pending sums and do not; and told where a crate is
/// built, while the tests of mistakes only check theirs.
const UNREACHED: [&str; 2] = [
    "` cannot give pending sums",
    "an integer literal does not fit the number beside it",
];

fn is_rust(name: &str) -> bool {
    name.ends_with(".rs")
}

fn is_code(name: &str) -> bool {
    is_rust(name) && !name.contains("/tests")
}

fn is_told(name: &str) -> bool {
    is_code(name)
        && !WRITERS
            .iter()
            .any(|writer| name.contains(writer) && name.contains("/backends/"))
}

/// The texts of tests but this one, and of the tests in files of code.
fn tests() -> Vec<String> {
    let is_test = |name: &str| is_rust(name) && name.contains("/tests");
    let is_expected = |name: &str| name.ends_with(".stderr");
    let is_filetest = |name: &str| name.ends_with(".bir");
    let mut tests = Vec::new();
    let whole: [(&str, &dyn Fn(&str) -> bool); 10] = [
        ("tests/ui", &is_expected),
        ("tests/suite", &is_rust),
        ("tests/filetests", &is_filetest),
        ("harness/src/testing", &is_rust),
        ("dsl-core/src", &is_test),
        ("src", &is_test),
        ("kernels/tests", &is_rust),
        ("backends/cranelift", &is_test),
        ("backends/nvptx", &is_test),
        ("store/src", &is_test),
    ];
    for (folder, is_wanted) in whole {
        let mut texts = texts_below(folder, is_wanted);
        texts.retain(|name, _| !name.ends_with("suite/messages.rs"));
        tests.extend(texts.into_values());
    }
    for folder in ["dsl-core/src", "src", "backends", "store/src"] {
        for text in texts_below(folder, &is_code).into_values() {
            if let Some((_, text)) = text.split_once("#[cfg(test)]\nmod tests {") {
                tests.push(text.to_string());
            }
        }
    }
    tests
}

/// The messages of a room, each with its file.
fn messages_of(room: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (name, text) in texts_below(room, &is_told) {
        let mut messages = Messages::default();
        messages.visit_file(&syn::parse_file(&text).expect("parses"));
        all.extend(messages.0.into_iter().map(|it| (name.clone(), it)));
    }
    all
}

#[test]
fn every_refusal_is_shown() {
    let shown = whole_tests();
    let mut missing = Vec::new();
    for (name, message) in ROOMS.into_iter().flat_map(messages_of) {
        let part = fixed_part(&message);
        if part.len() > 5 && !shown.contains(&part) && !UNREACHED.contains(&&part[..]) {
            missing.push(format!("{name}: no test shows `{message}`"));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

fn whole_tests() -> String {
    let texts: Vec<String> = tests().iter().map(|text| words(text)).collect();
    texts.join("\n")
}

/// A part that tells a message: of two words or more, and in no other message.
fn is_telling(part: &str, messages: &BTreeSet<String>) -> bool {
    let holders = messages.iter().filter(|message| message.contains(part));
    part.len() >= 12 && part.contains(' ') && holders.take(2).count() == 1
}

/// The most that fills a hole of a message.
const LONGEST_HOLE: usize = 80;

/// Whether a text has a good part of a message with its holes filled, each by a few words.
fn is_filled(message: &str, text: &str) -> bool {
    let parts = message.split('{').map(|part| match part.split_once('}') {
        Some((_, fixed)) => fixed.trim(),
        None => part.trim(),
    });
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    let whole = parts.concat().len();
    (0..parts.len()).any(|first| {
        let (mut rest, mut shown) = (text, 0);
        for (index, part) in parts[first..].iter().enumerate() {
            let Some(at) = rest
                .find(part)
                .filter(|&at| index == 0 || at <= LONGEST_HOLE)
            else {
                break;
            };
            rest = &rest[at + part.len()..];
            shown += part.len();
        }
        shown >= 12 && 5 * shown >= 2 * whole
    })
}

#[test]
fn a_part_of_each_refusal_of_a_launch_is_shown() {
    let rooms = ROOMS.into_iter().chain(ROOMS_OF_LAUNCHES);
    let messages: BTreeSet<String> = rooms
        .flat_map(messages_of)
        .map(|(_, message)| words(&message))
        .collect();
    let tests = tests();
    let shown = whole_tests();
    let texts = tests.iter().flat_map(|text| text.split('"')).map(words);
    let texts: BTreeSet<String> = texts.filter(|it| it.len() >= 12).collect();
    let parts = texts.iter().filter(|it| is_telling(it, &messages));
    let parts: Vec<&String> = parts.collect();
    let unreached = UNREACHED_HERE.iter().map(|(message, _)| message);
    let exempt: BTreeSet<&str> = unreached.chain(TOLD).chain(WORDS).copied().collect();
    let mut missing = Vec::new();
    for (name, message) in ROOMS_OF_LAUNCHES.into_iter().flat_map(messages_of) {
        let part = fixed_part(&message);
        let text = words(&message);
        let is_shown = (is_telling(&part, &messages) && shown.contains(&part))
            || parts.iter().any(|part| text.contains(*part))
            || texts.iter().any(|filled| is_filled(&text, filled));
        if part.len() > 5 && !is_shown && !exempt.contains(message.as_str()) {
            missing.push(format!("{name}: no test shows a part of `{message}`"));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// Whether a text has all of a message, each hole filled by something.
fn is_whole(message: &str, text: &str) -> bool {
    let mut parts = message.split('{').map(|part| match part.split_once('}') {
        Some((_, fixed)) => fixed,
        None => part,
    });
    let first = parts.next().unwrap_or_default();
    let parts: Vec<&str> = parts.collect();
    text.match_indices(first).any(|(at, _)| {
        let mut rest = &text[at + first.len()..];
        parts.iter().all(|part| {
            let hole = rest.find(part);
            let Some(hole) = hole.filter(|&hole| hole <= LONGEST_HOLE) else {
                return false;
            };
            rest = &rest[hole + part.len()..];
            true
        })
    })
}

/// Words of which messages are put together are not told by a part: each stands in a test with its holes filled.
#[test]
fn words_of_refusals_are_shown() {
    let tests = tests();
    let missing = WORDS.iter().filter(|message| {
        let message = words(message);
        let holds = |text: &String| text.split('"').any(|text| is_whole(&message, text));
        !tests.iter().any(holds)
    });
    let missing: Vec<_> = missing.collect();
    assert!(missing.is_empty(), "no test shows {missing:?}");
}
