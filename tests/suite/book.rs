//! The book: every chapter is listed and run, its links lead somewhere, and its numbers are those of the code.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use exactile_core::diagnostic::MOST_ERRORS;
use exactile_core::ir::infer::MAX_BINS;
use exactile_core::ir::prints::{COUNTERS, WORDS};
use exactile_core::ir::{DType, Grid, MAX_DEPTH, MAX_ELEMENTS, MAX_LEVELS, MAX_RANK, Precision};
use exactile_core::pipeline::MOST_INSTRUCTIONS;
use exactile_core::schedule::pipeline::MAX_STAGES;
use exactile_core::target::Target;
use exactile_core::verify::MAX_PARAMETERS;

use crate::root;

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The chapters that are there.
fn chapters() -> BTreeSet<String> {
    let files = fs::read_dir(root().join("docs/book/src")).expect("is a folder");
    let names = files.map(|file| file.expect("is read").file_name());
    let mut names: BTreeSet<String> = names
        .map(|name| name.into_string().expect("is UTF-8"))
        .collect();
    assert!(names.remove("SUMMARY.md"), "the book has a summary");
    names
}

/// The text between each `open` and the next `close`.
fn between<'a>(text: &'a str, open: &'a str, close: char) -> impl Iterator<Item = &'a str> {
    let parts = text.split(open).skip(1);
    parts.filter_map(move |part| Some(part.split_once(close)?.0))
}

/// The text without its code.
fn prose(text: &str) -> String {
    let text: String = text.split("```").step_by(2).collect();
    text.split('`').step_by(2).collect()
}

#[test]
fn every_chapter_is_listed_and_run() {
    let chapters = chapters();
    let of = |text: &str, open: &str, close: char| -> BTreeSet<String> {
        between(text, open, close)
            .map(ToString::to_string)
            .collect()
    };
    let summary = read(&root().join("docs/book/src/SUMMARY.md"));
    assert_eq!(of(&summary, "](", ')'), chapters);
    let tests = read(&root().join("src/book.rs"));
    let (_, listed) = tests.split_once("\nchapters! {").expect("lists them");
    let names = listed.split('"').skip(1).step_by(2);
    assert_eq!(
        names.map(ToString::to_string).collect::<BTreeSet<_>>(),
        chapters
    );
    for chapter in chapters {
        let text = read(&root().join("docs/book/src").join(&chapter));
        assert!(text.starts_with("# "), "{chapter} has a title");
        assert!(text.contains("```rust\n"), "{chapter} runs nothing");
        for tag in text.split("```").skip(1).step_by(2) {
            let tag = tag.lines().next().unwrap_or_default();
            assert!(
                ["rust", "python"].contains(&tag),
                "{chapter}: a block of `{tag}`"
            );
        }
    }
}

/// The anchor that a title has.
fn anchor(title: &str) -> String {
    let kept = title.trim().to_lowercase();
    let kept = kept
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// All pages of the repository: those beside this one's packages, and those below `docs`.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    let mut folders = vec![root().join("docs")];
    let beside = fs::read_dir(root()).expect("is a folder");
    let beside = beside.map(|entry| entry.expect("is listed").path());
    pages.extend(beside.filter(|path| path.extension().is_some_and(|it| it == "md")));
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("is a folder") {
            let path = entry.expect("is listed").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "md") {
                pages.push(path);
            }
        }
    }
    for name in ["README.md", "docs/kernels.md", "docs/book/src/SUMMARY.md"] {
        assert!(pages.contains(&root().join(name)), "{name} is a page");
    }
    pages
}

#[test]
fn links_lead_somewhere() {
    let mut problems = Vec::new();
    for page in pages() {
        let text = prose(&read(&page));
        for link in between(&text, "](", ')').filter(|link| !link.starts_with("http")) {
            let (file, title) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() {
                page.clone()
            } else {
                page.with_file_name(file)
            };
            if !target.exists() {
                problems.push(format!("{}: {link}", page.display()));
            } else if !title.is_empty() {
                let text = prose(&read(&target));
                let mut titles = text.lines().filter_map(|line| line.strip_prefix('#'));
                if !titles.any(|found| anchor(found.trim_start_matches('#')) == title) {
                    problems.push(format!("{}: no title for {link}", page.display()));
                }
            }
        }
    }
    assert!(
        problems.is_empty(),
        "links to nothing:\n{}",
        problems.join("\n")
    );
}

/// What stands in a file between a line that begins a list of rows and the brace that ends it.
fn rows(file: &str, begin: &str) -> String {
    let text = read(&root().join(file));
    let (_, rows) = text.split_once(begin).expect("has the rows");
    rows.split_once("\n}").expect("ends them").0.to_string()
}

/// The parameters of a kernel: the longest tuple of arguments that a launch takes.
fn parameters() -> usize {
    let rows = rows("src/arguments.rs", "\ntuples! { []");
    rows.split_whitespace()
        .filter(|word| word.starts_with('P'))
        .count()
}

/// The longest tuple that is coordinates.
fn coordinates() -> usize {
    let rows = rows("dsl-core/src/lang/tensor.rs", "\ntuple_coordinates! {");
    rows.lines().filter(|line| line.contains(": ")).count()
}

/// The numbers that occur, the least one first.
fn either(numbers: &[u64]) -> String {
    let numbers: BTreeSet<u64> = numbers.iter().copied().collect();
    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    numbers.join(" or ")
}

#[test]
fn limits_are_those_of_the_code() {
    let text = read(&root().join("docs/book/src/limits.md"));
    let gpu = Target::SM_90A.gpu;
    for row in [
        format!("| axes of a tile | {MAX_RANK} |"),
        format!("| elements of a tile | {MAX_ELEMENTS} |"),
        format!(
            "| elements of one tile that a lane of a GPU may hold | {} |",
            gpu.tile_registers
        ),
        format!(
            "| registers that a loop may carry in each lane of a GPU | {} |",
            gpu.thread_registers.1
        ),
        format!(
            "| instructions of a lane of a GPU where tiles make them many, as the compiler counts them | {MOST_INSTRUCTIONS} |"
        ),
        format!("| loops and branches inside each other | {MAX_DEPTH} |"),
        format!(
            "| tiles that an accumulator adds up | {} |",
            (1u64 << MAX_LEVELS) - 1
        ),
        format!("as many again with a mask | {} |", WORDS - COUNTERS),
        format!("| programs along an axis of the grid | {} |", u32::MAX),
        format!("| warps of a program | {} |", gpu.most_warps),
        format!(
            "where no other precision is asked for | {} or more |",
            Precision::usual(DType::F16, DType::F32).step(DType::F16)
        ),
    ] {
        assert!(text.contains(&row), "limits.md lacks {row}");
    }
    for target in Target::GPUS {
        let gpu = &target.gpu;
        let row = format!(
            "| `{}` | {} KiB | {} | {} |",
            target.name,
            gpu.shared_bytes / 1024,
            gpu.resident_warps,
            gpu.resident_blocks
        );
        assert!(text.contains(&row), "limits.md lacks {row}");
    }
}

#[test]
fn limits_of_lists_are_those_of_the_code() {
    let text = read(&root().join("docs/book/src/limits.md"));
    let bins = |target: &Target| 1 << (target.gpu.shared_bytes / 4 - 1).ilog2();
    let bins: Vec<u64> = Target::GPUS.iter().map(bins).collect();
    for row in [
        format!(
            "pointers that parameters become, structures and tensors taken apart | {MAX_PARAMETERS} |"
        ),
        format!("| axes of the grid | {} |", Grid::default().len()),
        format!("| stages of a loop | {MAX_STAGES}, more count as {MAX_STAGES} |"),
        format!("| bins of a histogram | {MAX_BINS} |"),
        format!("| bins of a histogram on a GPU | {}", either(&bins)),
        format!("| errors that a compilation lists | {MOST_ERRORS}, and"),
        format!(
            "structures and tuples taken apart or not | {} |",
            parameters()
        ),
        format!(
            "| coordinates of a tensor as a tuple | {}; more",
            coordinates()
        ),
    ] {
        assert!(text.contains(&row), "limits.md lacks {row}");
    }
}
