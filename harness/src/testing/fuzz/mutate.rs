//! Changes of a text that leave most of it as it is, so that many still parse.

use exactile_core::ir::op::all_mnemonics;

use exactile_core::random::Random;

/// Numbers at the ends of ranges.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "3",
    "16",
    "31",
    "32",
    "33",
    "255",
    "256",
    "4096",
    "16777216",
    "2147483647",
    "2147483648",
    "4294967295",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551616",
    "nan",
    "-inf",
    "0x1p-149",
    "true",
];

/// Words and signs of the syntax.
const WORDS: &[&str] = &[
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "<",
    ">",
    ":",
    ",",
    "=",
    ";",
    "%",
    "@",
    "yield []",
    "f32",
    "f16",
    "bf16",
    "f64",
    "i8",
    "i64",
    "u64",
    "bool",
    "tile<8xf32>",
    "tile<2x4xi32>",
    "ptr<f32>",
    "tree",
    "any",
    "block",
    "lane",
    "stages=4",
    "step=3",
    "\u{e9}",
];

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || "_.-+".contains(character)
}

/// The parts of a text: words with what stands before them, and single signs.
fn parts(text: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = String::new();
    for character in text.chars() {
        let continues = is_word(character) && part.chars().all(is_word);
        if !(part.is_empty() || continues) {
            parts.push(std::mem::take(&mut part));
        }
        part.push(character);
    }
    parts.push(part);
    parts
}

fn is_number(part: &str) -> bool {
    part.starts_with(|c: char| c.is_ascii_digit() || c == '-')
}

/// A text with one to four changes.
pub(super) fn mutated(text: &str, random: &mut Random) -> String {
    let mut parts = parts(text);
    for _ in 0..=random.below(4) {
        change(&mut parts, random);
    }
    parts.concat()
}

fn change(parts: &mut Vec<String>, random: &mut Random) {
    let (at, other) = (random.below(parts.len()), random.below(parts.len()));
    let mnemonics = all_mnemonics();
    // The next word of its kind from a random place on.
    let from = |wanted: &dyn Fn(&str) -> bool| {
        let rest = parts.iter().enumerate().skip(at);
        rest.filter(|(_, part)| wanted(part))
            .map(|(at, _)| at)
            .next()
    };
    match random.below(8) {
        0..=2 => {
            let number = random.pick(NUMBERS).to_string();
            if let Some(at) = from(&is_number) {
                parts[at] = number;
            }
        }
        3 => {
            let name = random.pick(&mnemonics).to_string();
            if let Some(at) = from(&|part| mnemonics.contains(&part)) {
                parts[at] = name;
            }
        }
        4 => parts[at] = parts[other].clone(),
        5 => parts.swap(at, other),
        6 => parts[at] = random.pick(WORDS).to_string(),
        _ => {
            parts.remove(at);
            parts.push("\n".to_string());
        }
    }
}
