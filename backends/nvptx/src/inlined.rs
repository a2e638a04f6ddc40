//! Where inline PTX stands in the text of a kernel, so that what an assembler refuses names the kernel's line.

/// What the comment before inline PTX begins with.
const MARK: &str = "// inline PTX of ";

/// What code generation writes behind inline PTX.
const END: &str = "// end inline asm";

/// The comment that stands before inline PTX of a line of the kernel.
#[cfg(feature = "llvm")]
pub(crate) fn comment(loc: &exactile_core::diagnostic::Loc) -> String {
    // A `$` means something to LLVM there.
    let place = loc
        .to_string()
        .replace(|it| !matches!(it, ' '..='~') || it == '$', "_");
    format!("{MARK}{place}\n")
}

/// What an assembler says of a text, with the line of the kernel where that is of inline PTX.
pub(crate) fn with_place(text: &str, refusal: String) -> String {
    match place(text, &refusal) {
        Some(place) => format!("{}\nthis is the inline PTX of {place}", refusal.trim_end()),
        None => refusal,
    }
}

/// The line of the kernel whose inline PTX holds the line of the text that the refusal names first.
fn place<'a>(text: &'a str, refusal: &str) -> Option<&'a str> {
    let (_, named) = refusal.split_once(", line ")?;
    let digits: String = named.chars().take_while(char::is_ascii_digit).collect();
    let number: usize = digits.parse().ok()?;
    let lines: Vec<&str> = text.lines().take(number).collect();
    let before = lines.iter().rev().map(|line| line.trim());
    let mut before = before.take_while(|&line| line != END);
    before.find_map(|line| line.strip_prefix(MARK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_inside_inline_ptx_names_its_line() {
        let text = "mov.u32 %r1, %r2;\n\t// begin inline asm\n\t// inline PTX of a.rs:7:3\n\
                    \tnop.b32 %r3;\n\t// end inline asm\nret;\n";
        let named = |line: usize| with_place(text, format!("ptxas x.ptx, line {line}; error : no"));
        assert!(named(4).ends_with("this is the inline PTX of a.rs:7:3"));
        for line in [1, 6] {
            assert!(!named(line).contains("inline PTX"));
        }
        assert_eq!(with_place(text, "no line".to_string()), "no line");
    }
}
