//! What machine code does beside products of groups of warps: whether it writes a register that one may still read, as assemblers
//! before CUDA 13.3 are known to, and what comes one after the other.

use std::collections::{BTreeSet, VecDeque};

/// The instructions that write registers which products take as their first operand, before a wait says that they are
/// over. Goes through the code in its order, so what a branch skips counts as run.
pub(crate) fn written_while_read(sass: &str) -> Vec<&str> {
    let mut groups: VecDeque<BTreeSet<u32>> = VecDeque::new();
    let mut open = BTreeSet::new();
    let mut found = Vec::new();
    for line in sass.lines() {
        let Some(instruction) = instruction(line) else {
            continue;
        };
        let (name, operands) = instruction.split_once(' ').unwrap_or((instruction, ""));
        let operands: Vec<&str> = operands.split(',').map(str::trim).collect();
        if name.starts_with("HGMMA") {
            if let Some(first) = operands.get(1).and_then(|it| register(it)) {
                open.extend(first..first + 4);
            }
            if operands.contains(&"gsb0") {
                groups.push_back(std::mem::take(&mut open));
            }
        } else if name.starts_with("WARPGROUP.DEPBAR") {
            let left = operands.last().and_then(|it| it.strip_prefix("0x"));
            let left = left.and_then(|it| usize::from_str_radix(it, 16).ok());
            while groups.len() > left.unwrap_or(0) {
                groups.pop_front();
            }
        } else if !name.starts_with("ST")
            && let Some(first) = register(operands[0])
        {
            let width = match name {
                name if name.contains(".128") => 4,
                name if name.contains(".64") => 2,
                _ => 1,
            };
            let read = |it: u32| open.contains(&it) || groups.iter().any(|read| read.contains(&it));
            found.extend((first..first + width).any(read).then_some(instruction));
        }
    }
    found
}

/// How many times at most instructions with this in their names follow each other.
pub(crate) fn successive(sass: &str, name: &str) -> usize {
    let (mut now, mut most) = (0, 0);
    for instruction in sass.lines().filter_map(instruction) {
        now = if instruction.contains(name) {
            now + 1
        } else {
            0
        };
        most = most.max(now);
    }
    most
}

/// The instruction of a line, without its address and what predicates it.
fn instruction(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("*/")?;
    let (text, _) = rest.split_once(';')?;
    let text = text.trim();
    match text.strip_prefix('@') {
        Some(predicated) => predicated.split_once(' ').map(|(_, rest)| rest.trim()),
        None => Some(text),
    }
}

/// The number of a register, which may be reused from a cache of operands.
fn register(operand: &str) -> Option<u32> {
    let number = operand.trim().strip_prefix('R')?;
    let digits = number.split('.').next()?;
    digits.parse().ok()
}

#[test]
fn a_register_that_a_product_reads_is_found_written() {
    let code = |write: &str, left: u32| {
        format!(
            "/*0000*/ HGMMA.64x8x16.F32.BF16 R152, R156, gdesc[UR12], R152 ;\n\
             /*0010*/ HGMMA.64x8x16.F32.BF16 R152, R160, gdesc[UR16], R152, gsb0 ;\n\
             /*0020*/ HGMMA.64x8x16.F32.BF16 R8, gdesc[UR16], RZ, !UPT, gsb0 ;\n\
             /*0030*/ WARPGROUP.DEPBAR.LE gsb0, 0x{left} ;\n\
             /*0040*/ @!P0 {write} ;\n"
        )
    };
    let found = |write: &str, left: u32| written_while_read(&code(write, left)).len();
    assert_eq!(found("F2FP.BF16.F32.PACK_AB R163, R49, R48", 2), 1);
    assert_eq!(found("LDS.128 R156, [R2]", 2), 1);
    assert_eq!(found("F2FP.BF16.F32.PACK_AB R163, R49, R48", 1), 0);
    assert_eq!(found("F2FP.BF16.F32.PACK_AB R164, R163, R48", 2), 0);
    assert_eq!(found("STS [R157], R156", 2), 0);
}

#[test]
fn what_follows_each_other_is_counted() {
    let code = "/*0000*/ MUFU.EX2 R1, R2 ;\n/*0010*/ FADD R3, R4, R5 ;\n/*0020*/ MUFU.EX2 R1, R2 ;\n\
                /* 0x000fe200 */\n/*0030*/ @!P0 MUFU.EX2 R1, R2 ;\n";
    assert_eq!(successive(code, "MUFU"), 2);
    assert_eq!(successive(code, "FMUL"), 0);
}
