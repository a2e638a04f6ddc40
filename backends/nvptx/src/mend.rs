//! PTX as `ptxas` makes right code of it.

use std::collections::BTreeSet;

use crate::error::{Error, Result};

/// Replaces the instructions of LLVM that `ptxas` 13.0 makes wrong code of, by others of equal meaning.
///
/// They are replaced in the text because LLVM makes them of many expressions.
///
/// # Errors
/// When one stands in a form that this does not know.
pub(crate) fn mend(text: &str) -> Result<String> {
    let mut mended = String::with_capacity(text.len());
    let parted = parted(text);
    for line in text.split_inclusive('\n') {
        match replacement(line).or_else(|| word_load(line, &parted)) {
            Some(replacement) => {
                mended.push_str("\t{ ");
                mended.push_str(&replacement);
                mended.push_str(" }\n");
            }
            None if line.split_whitespace().any(|word| WRONG.contains(&word)) => {
                let line = line.trim();
                let message = format!("`{line}` stands in a form whose replacement is unknown");
                return Err(Error::Llvm(message));
            }
            None => mended.push_str(line),
        }
    }
    Ok(mended)
}

/// What never reaches `ptxas`.
const WRONG: [&str; 5] = ["neg.s16", "abs.s16", "neg.s32", "abs.s32", "abs.s64"];

/// What stands for an instruction that `ptxas` gets wrong.
///
/// - It takes the absolute value of the least integer for positive.
/// - It negates 16 bits in a register of 32 that it takes for sign-extended.
/// - It drops the negation where it makes one instruction of two maxima or minima and that.
/// - It loses the high half of a register of the uniform datapath that is split to be stored by bytes.
/// - It converts a float to an integer where the low bits of its register are stored.
/// - It takes the upper part of a register from the register after it, where it loads the register again for lack of others. It
///   does so with loads of one register that say that nothing writes the memory, and of those without parts it is right.
/// - It makes a conversion of 0 or -1 of a choice between -0.0 and -1.0 by a uniform condition, which gives +0.0.
fn replacement(line: &str) -> Option<String> {
    narrow_store(line)
        .or_else(|| narrow_load(line))
        .or_else(|| arithmetic(line))
        .or_else(|| choice(line))
}

/// A choice of floats of which one is -0.0, as one of bits.
fn choice(line: &str) -> Option<String> {
    let line = line.trim().strip_suffix(';')?;
    let (instruction, operands) = line.split_once(char::is_whitespace)?;
    let (bits, float, zero) = match instruction {
        "selp.f32" => ("selp.b32", "0f", "0f80000000"),
        "selp.f64" => ("selp.b64", "0d", "0d8000000000000000"),
        _ => return None,
    };
    let has_zero = operands.split(',').any(|operand| operand.trim() == zero);
    has_zero.then(|| format!("{bits} {};", operands.trim().replace(float, "0x")))
}

/// The registers of which statements take parts, also of copies of them.
fn parted(text: &str) -> BTreeSet<&str> {
    let statements = text.split([';', '\n']).filter_map(|statement| {
        let statement = statement.trim().trim_start_matches("{ ");
        let (first, rest) = statement.split_once(char::is_whitespace)?;
        match first.starts_with('@') {
            true => rest.trim().split_once(char::is_whitespace),
            false => Some((first, rest)),
        }
    });
    let mut copies = Vec::new();
    let mut found = BTreeSet::new();
    for (instruction, operands) in statements {
        let mut words = instruction.split('.');
        let (target, sources) = match operands.trim().strip_prefix('{') {
            Some(parts) => parts.split_once('}').unwrap_or_default(),
            None => operands.split_once(',').unwrap_or_default(),
        };
        let takes_part = match words.next() {
            Some("shr" | "bfe" | "prmt" | "shf") => true,
            Some("mov") => operands.trim().starts_with('{'),
            Some("cvt") => words.any(|word| NARROW.contains(&word)),
            Some("and") => sources.contains("-65536"),
            Some(_) | None => false,
        };
        let sources = sources.split([',', ' ', '\t']);
        let sources = sources.filter(|source| register_bits(source).is_some());
        match takes_part {
            true => found.extend(sources),
            false if instruction.starts_with("mov.") || instruction.starts_with("selp.") => {
                copies.extend(sources.map(|source| (target.trim(), source)));
            }
            false => {}
        }
    }
    let mut before = 0;
    while before < found.len() {
        before = found.len();
        let more = copies.iter().filter(|(target, _)| found.contains(target));
        let more: Vec<&str> = more.map(|&(_, source)| source).collect();
        found.extend(more);
    }
    found
}

/// Integers of less than a register.
const NARROW: [&str; 4] = ["s8", "u8", "s16", "u16"];

/// A load of one register of which parts are taken, which does not say that nothing writes the memory.
fn word_load(line: &str, parted: &BTreeSet<&str>) -> Option<String> {
    let line = line.trim();
    let (load, address) = line.strip_suffix(';')?.split_once('[')?;
    let target = load
        .split_whitespace()
        .last()
        .map(|it| it.trim_end_matches(','))?;
    let says_so = load.contains("ld.global.") && load.contains(".nc");
    (says_so && parted.contains(target)).then(|| format!("{}[{address};", load.replace(".nc", "")))
}

/// A load of several elements below 32 bits that may be made again, by words from which they are taken.
fn narrow_load(line: &str) -> Option<String> {
    let (load, operands) = line
        .trim()
        .strip_suffix(';')?
        .split_once(char::is_whitespace)?;
    let (kind, bits) = load.rsplit_once(".b")?;
    let (kind, count) = kind.rsplit_once(".v")?;
    let (bits, count): (u32, u32) = (bits.parse().ok()?, count.parse().ok()?);
    if !kind.starts_with("ld.") || !kind.ends_with(".nc") || bits >= 32 {
        return None;
    }
    let (list, address) = operands.trim().strip_prefix('{')?.split_once('}')?;
    let words = (bits * count).div_ceil(32);
    let width = (bits * count).min(32);
    let mut replacement = format!(".reg .b32 %part, %word<{words}>; ");
    replacement.push_str(&match words {
        1 => {
            let kind = kind.trim_end_matches(".nc");
            format!("{kind}.b{width} %word0{address};")
        }
        _ => {
            let list: Vec<String> = (0..words).map(|word| format!("%word{word}")).collect();
            format!("{kind}.v{words}.b32 {{{}}}{address};", list.join(", "))
        }
    });
    for (target, at) in list.split(", ").zip((0..).step_by(bits as usize)) {
        if target == "_" {
            continue;
        }
        let (word, place) = (at / 32, at % 32);
        let taken = match register_bits(target)? {
            16 => format!("cvt.u16.u32 {target}, %part;"),
            _ => format!("cvt.u32.u32 {target}, %part;"),
        };
        replacement.push_str(&format!(
            " bfe.u32 %part, %word{word}, {place}, {bits}; {taken}"
        ));
    }
    Some(replacement)
}

/// A store of the low bits of wider registers, by registers of the width of the store.
fn narrow_store(line: &str) -> Option<String> {
    let line = line.trim();
    let store = line
        .split_whitespace()
        .find(|word| !word.starts_with('@'))?;
    let bits: u32 = store
        .strip_prefix("st.")?
        .rsplit(".b")
        .next()?
        .parse()
        .ok()?;
    let (before, stored) = line.strip_suffix(';')?.split_once("], ")?;
    let list = stored
        .strip_prefix('{')
        .and_then(|list| list.strip_suffix('}'));
    let sources: Vec<&str> = list.unwrap_or(stored).split(", ").collect();
    if list.is_none() && sources.len() > 1 {
        return None;
    }
    let is_wider = |source: &str| register_bits(source).filter(|&wide| bits < wide);
    sources.iter().find_map(|source| is_wider(source))?;
    let mut narrowed = format!(".reg .b{bits} %low<{}>;", sources.len());
    let mut lows = Vec::new();
    for (index, source) in sources.iter().enumerate() {
        lows.push(match is_wider(source) {
            Some(wide) => {
                narrowed.push_str(&format!(" cvt.u{bits}.u{wide} %low{index}, {source};"));
                format!("%low{index}")
            }
            None => (*source).to_string(),
        });
    }
    let stored = match list {
        Some(_) => format!("{{{}}}", lows.join(", ")),
        None => lows.concat(),
    };
    Some(format!("{narrowed} {before}], {stored};"))
}

/// The width of a register as LLVM names it; nothing for a number.
fn register_bits(name: &str) -> Option<u32> {
    match name.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "%rs" => Some(16),
        "%r" => Some(32),
        "%rd" => Some(64),
        _ => None,
    }
}

fn arithmetic(line: &str) -> Option<String> {
    let (instruction, operands) = line
        .trim()
        .strip_suffix(';')?
        .split_once(char::is_whitespace)?;
    let (target, source) = operands.rsplit_once(',')?;
    let (target, source) = (target.trim(), source.trim());
    match instruction {
        "neg.s16" => Some(in_32_bits(
            "not.b32 %wide, %wide; add.s32 %wide, %wide, 1;",
            target,
            source,
        )),
        "abs.s16" => Some(in_32_bits("abs.s32 %wide, %wide;", target, source)),
        "neg.s32" => Some(format!(
            ".reg .b32 %not; not.b32 %not, {source}; add.s32 {target}, %not, 1;"
        )),
        "abs.s32" => Some(magnitude(32, target, source)),
        "abs.s64" => Some(magnitude(64, target, source)),
        "mov.b32" => {
            let (low, high) = target
                .strip_prefix('{')?
                .strip_suffix('}')?
                .split_once(',')?;
            let (low, high) = (low.trim(), high.trim());
            let taken = |half: &str, from: &str| match half {
                "_" => String::new(),
                half => format!(" cvt.u16.u32 {half}, {from};"),
            };
            Some(format!(
                ".reg .b32 %high; shr.u32 %high, {source}, 16;{}{}",
                taken(low, source),
                taken(high, "%high")
            ))
        }
        _ => None,
    }
}

/// The absolute value of an integer, by nothing that says so.
fn magnitude(bits: u32, target: &str, source: &str) -> String {
    let last = bits - 1;
    format!(
        ".reg .b{bits} %sign, %sum; shr.s{bits} %sign, {source}, {last}; \
         add.s{bits} %sum, {source}, %sign; xor.b{bits} {target}, %sum, %sign;"
    )
}

/// An operation on a number of 16 bits, `%wide`, in a register of 32.
fn in_32_bits(operation: &str, target: &str, source: &str) -> String {
    format!(
        ".reg .b32 %wide; cvt.s32.s16 %wide, {source}; {operation} cvt.u16.u32 {target}, %wide;"
    )
}

#[cfg(test)]
mod tests {
    use super::mend;

    fn mended(text: &str) -> String {
        mend(text).expect("every form is known")
    }

    #[test]
    fn wrongly_assembled_instructions_are_replaced() {
        let replaced = [
            (
                "\tneg.s16 \t%rs2, %rs1;\n",
                "\t{ .reg .b32 %wide; cvt.s32.s16 %wide, %rs1; not.b32 %wide, %wide; \
                 add.s32 %wide, %wide, 1; cvt.u16.u32 %rs2, %wide; }\n",
            ),
            (
                "\tabs.s64 \t%rd1, %rd1;\n",
                "\t{ .reg .b64 %sign, %sum; shr.s64 %sign, %rd1, 63; add.s64 %sum, %rd1, %sign; \
                 xor.b64 %rd1, %sum, %sign; }\n",
            ),
            (
                "\tmov.b32 \t{%rs1, %rs2}, %r3;\n",
                "\t{ .reg .b32 %high; shr.u32 %high, %r3, 16; cvt.u16.u32 %rs1, %r3; \
                 cvt.u16.u32 %rs2, %high; }\n",
            ),
            (
                "\tselp.f32 \t%r4, 0fBF800000, 0f80000000, %p4;\n",
                "\t{ selp.b32 %r4, 0xBF800000, 0x80000000, %p4; }\n",
            ),
            (
                "\tselp.f64 \t%rd1, 0d8000000000000000, %rd2, %p1;\n",
                "\t{ selp.b64 %rd1, 0x8000000000000000, %rd2, %p1; }\n",
            ),
            (
                "\tmov.b32 \t{_, %rs2}, %r3;\n",
                "\t{ .reg .b32 %high; shr.u32 %high, %r3, 16; cvt.u16.u32 %rs2, %high; }\n",
            ),
        ];
        for (line, expected) in replaced {
            assert_eq!(mended(line), expected);
        }
        let stores = [
            (
                "\tst.global.b8 \t[%rd1+64], %rs1;\n",
                "\t{ .reg .b8 %low<1>; cvt.u8.u16 %low0, %rs1; st.global.b8 \t[%rd1+64], %low0; }\n",
            ),
            (
                "\t@!%p1 st.shared.b32 [%rd1], %rd2;\n",
                "\t{ .reg .b32 %low<1>; cvt.u32.u64 %low0, %rd2; @!%p1 st.shared.b32 [%rd1], %low0; }\n",
            ),
        ];
        for (line, expected) in stores {
            assert_eq!(mended(line), expected);
        }
        let bytes = "\tst.global.v2.b8 \t[%rd1], {%rs1, %rs2};\n";
        let expected = "\t{ .reg .b8 %low<2>; cvt.u8.u16 %low0, %rs1; cvt.u8.u16 %low1, %rs2; \
                        st.global.v2.b8 \t[%rd1], {%low0, %low1}; }\n";
        assert_eq!(mended(bytes), expected);
        let number = "\tst.global.v2.b8 \t[%rd1], {%rs1, 0};\n";
        let expected = "\t{ .reg .b8 %low<2>; cvt.u8.u16 %low0, %rs1; st.global.v2.b8 \t[%rd1], {%low0, 0}; }\n";
        assert_eq!(mended(number), expected);
        let whole = "\tst.global.b16 \t[%rd1], %rs1;\n\tst.global.v2.b16 \t[%rd1], {%rs1, %rs2};\n";
        assert_eq!(mended(whole), whole);
        let kept = "\tneg.s64 \t%rd2, %rd1;\n\tmov.b32 \t%r1, {%rs1, %rs2};\n\tabs.f32 \t%r1, %r2;\n\tselp.f32 \t%r1, 0fBF800000, 0f00000000, %p1;\n";
        assert_eq!(mended(kept), kept);
        let unknown = mend("\t@%p1 neg.s32 \t%r2, %r1;\n").expect_err("it has a condition");
        assert!(unknown.to_string().contains("@%p1 neg.s32"), "{unknown}");
    }

    #[test]
    fn elements_that_may_be_loaded_again_are_taken_from_words() {
        let pair = "\tld.global.nc.v2.b16 \t{%rs1, %rs2}, [%rd1+4];\n";
        let expected = "\t{ .reg .b32 %part, %word<1>; ld.global.b32 %word0, [%rd1+4]; \
                        bfe.u32 %part, %word0, 0, 16; cvt.u16.u32 %rs1, %part; \
                        bfe.u32 %part, %word0, 16, 16; cvt.u16.u32 %rs2, %part; }\n";
        assert_eq!(mended(pair), expected);
        let four = "\tld.global.nc.v4.b16 \t{_, %rs2, _, %rs4}, [%rd1];\n";
        let expected = "\t{ .reg .b32 %part, %word<2>; ld.global.nc.v2.b32 {%word0, %word1}, [%rd1]; \
                        bfe.u32 %part, %word0, 16, 16; cvt.u16.u32 %rs2, %part; \
                        bfe.u32 %part, %word1, 16, 16; cvt.u16.u32 %rs4, %part; }\n";
        assert_eq!(mended(four), expected);
        let bytes = "\tld.global.nc.v2.b8 \t{%rs1, %rs2}, [%rd1];\n";
        let expected = "\t{ .reg .b32 %part, %word<1>; ld.global.b16 %word0, [%rd1]; \
                        bfe.u32 %part, %word0, 0, 8; cvt.u16.u32 %rs1, %part; \
                        bfe.u32 %part, %word0, 8, 8; cvt.u16.u32 %rs2, %part; }\n";
        assert_eq!(mended(bytes), expected);
        let kept = "\tld.global.nc.v2.b32 \t{%r1, %r2}, [%rd1];\n\tld.shared.v2.b16 \t{%rs1, %rs2}, [%rd1];\n";
        assert_eq!(mended(kept), kept);
    }

    #[test]
    fn a_register_of_which_parts_are_taken_is_not_loaded_again() {
        let parts = [
            "\tmov.b32 \t{_, %rs2}, %r3;\n",
            "\tshr.u32 \t%r9, %r3, 16;\n",
            "\tcvt.u16.u32 \t%rs2, %r3;\n",
            "\t{ .reg .b32 %high; bfe.u32 %high, %r3, 8, 8; }\n",
            "\t@%p1 shr.u32 \t%r9, %r3, 16;\n",
            "\tprmt.b32 \t%r5, %r1, %r3, 0x7632U;\n",
            "\tand.b32 \t%r5, %r3, -65536;\n",
            "\tmov.b32 \t%r5, %r3;\n\tselp.b32 \t%r6, %r5, %r1, %p1;\n\tshr.u32 \t%r7, %r6, 16;\n",
        ];
        let loads = [
            ("ld.global.nc.b32", "ld.global.b32"),
            ("@%p2 ld.global.nc.cs.b32", "@%p2 ld.global.cs.b32"),
        ];
        for (load, plain) in loads {
            for part in parts {
                let text = format!("\t{load} %r3, [%rd1+4];\n{part}");
                let expected = format!("\t{{ {plain} %r3, [%rd1+4]; }}\n");
                assert!(mended(&text).starts_with(&expected), "{}", mended(&text));
            }
            let whole = format!("\t{load} %r3, [%rd1+4];\n\tadd.rn.f32 \t%r4, %r3, %r3;\n");
            assert_eq!(mended(&whole), whole);
        }
    }
}
