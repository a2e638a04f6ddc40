//! What an assembler refuses, in the words of a kernel: the line where inline PTX stands, and the part of the schedule that leaves
//! too few registers.

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

/// What an assembler says of a text, with the line of the kernel where that is of inline PTX, and with what to state where an
/// instruction needs more registers than a lane may have.
pub(crate) fn explained(text: &str, refusal: String) -> String {
    let place = place(text, &refusal).map(|place| format!("this is the inline PTX of {place}"));
    match place.or_else(|| too_few(&refusal)) {
        Some(note) => format!("{}\n{note}", refusal.trim_end()),
        None => refusal,
    }
}

/// What the assembler says of an instruction whose operands alone take more registers than a lane has.
const TOO_MANY: &str = "specified register target constraints";

fn too_few(refusal: &str) -> Option<String> {
    if refusal.contains(TOO_MANY) {
        let note = "the schedule leaves a lane too few registers for one of its instructions: state more `registers`, or a smaller `occupancy`";
        return Some(note.to_string());
    }
    let (_, least) = refusal
        .split_once("Insufficient registers")?
        .1
        .split_once("register target of ")?;
    let least: String = least.chars().take_while(char::is_ascii_digit).collect();
    let least: u32 = least.parse().ok()?;
    Some(format!(
        "the schedule leaves a lane too few registers for one of its instructions: state `registers` of {least} or more, or smaller \
         tiles, more warps, or a smaller `occupancy`"
    ))
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
        let named = |line: usize| explained(text, format!("ptxas x.ptx, line {line}; error : no"));
        assert!(named(4).ends_with("this is the inline PTX of a.rs:7:3"));
        for line in [1, 6] {
            assert!(!named(line).contains("inline PTX"));
        }
        assert_eq!(explained(text, "no line".to_string()), "no line");
    }

    #[test]
    fn too_few_registers_name_the_schedule() {
        let refusal = "ptxas fatal   : (C7600) Insufficient registers (32) to compile instruction at line 9 in function f. \
                       Try to compile with register target of 90 or higher.";
        let explained = explained("", refusal.to_string());
        assert!(
            explained.contains("state `registers` of 90 or more"),
            "{explained}"
        );
        let refusal = "ptxas error   : Function 'f' using feature 'mma with .f64 type' and with shape '.m16n8k16' cannot be compiled \
                       with specified register target constraints";
        let explained = super::explained("", refusal.to_string());
        assert!(
            explained.ends_with("state more `registers`, or a smaller `occupancy`"),
            "{explained}"
        );
    }
}
