//! What `print` leaves in memory, and the lines that it stands for.
//!
//! The record of a launch is words of 64 bits, zero before it: the words taken so far, the prints that found no room,
//! and behind these the prints in the order in which they took their words. Each has its number plus one, the
//! number of its program, its elements and, where it has a mask, for each element whether it is meant.

use std::fmt::Write;

use crate::diagnostic::Loc;
use crate::ir::prints::{COUNTERS, HEADER};
use crate::ir::{
    DType, Func, Grid, Inst, Literal, NumberFormat, Op, Shape, program_coordinates, unflatten,
};

/// A print of a kernel.
#[derive(Clone, Debug)]
struct Print {
    number: u64,
    loc: Loc,
    label: String,
    dtype: DType,
    shape: Shape,
    masked: bool,
    format: Option<NumberFormat>,
}

/// The prints of a function.
#[derive(Clone, Default, Debug)]
pub struct Prints(Vec<Print>);

impl Prints {
    /// Those of a function as it was traced.
    #[must_use]
    pub fn of(func: &Func) -> Self {
        let print = |inst: Inst| {
            let Op::Print(print) = func.op(inst) else {
                return None;
            };
            let ty = func.ty(print.x);
            Some(Print {
                number: print.number.cast_unsigned(),
                loc: func.inst(inst).loc.clone(),
                label: print.label.clone(),
                dtype: ty.dtype()?,
                shape: ty.shape,
                masked: print.mask.is_some(),
                format: print.format,
            })
        };
        Self(func.all_insts().into_iter().filter_map(print).collect())
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The lines of a record: by program, then in the order in which the program printed them, then by element. Where
    /// prints found no room, the last line says how many.
    #[must_use]
    pub fn lines(&self, grid: Grid, record: &[u64]) -> Vec<String> {
        let (counters, mut rest) = record.split_at(record.len().min(COUNTERS as usize));
        let mut found = Vec::new();
        while let Some((print, program, elements, after)) = self.first(rest) {
            found.push((program, print, elements));
            rest = after;
        }
        found.sort_by_key(|&(program, ..)| program);
        let mut lines = Vec::new();
        for (program, print, elements) in found {
            print.put(program_coordinates(grid, program), elements, &mut lines);
        }
        if let Some(&dropped) = counters.get(1).filter(|&&dropped| dropped > 0) {
            lines.push(format!(
                "{dropped} prints of this launch found no room in its record of {} numbers",
                record.len()
            ));
        }
        lines
    }

    /// The first print of some words, its program, its words, and those behind it.
    fn first<'a>(&self, words: &'a [u64]) -> Option<(&Print, u64, &'a [u64], &'a [u64])> {
        let (header, rest) = words.split_at_checked(HEADER as usize)?;
        let number = header[0].checked_sub(1)?;
        let print = self.0.iter().find(|print| print.number == number)?;
        let parts = if print.masked { 2 } else { 1 };
        let (elements, rest) = rest.split_at_checked(print.shape.elements() * parts)?;
        Some((print, header[1], elements, rest))
    }
}

impl Print {
    fn put(&self, [x, y, z]: [u64; 3], words: &[u64], lines: &mut Vec<String>) {
        let (elements, mask) = words.split_at(self.shape.elements());
        for (at, &bits) in elements.iter().enumerate() {
            if mask.get(at) == Some(&0) {
                continue;
            }
            let mut line = format!("{} ({x}, {y}, {z}) {}", self.loc, self.label);
            if !self.shape.is_scalar() {
                let place = unflatten(&self.shape, at);
                let place: Vec<String> = place.iter().map(usize::to_string).collect();
                let _ = write!(line, "[{}]", place.join(", "));
            }
            line.push_str(": ");
            let literal = Literal::from_bits(self.dtype, bits);
            line.push_str(&match self.format {
                None => number(literal),
                Some(NumberFormat::Hexadecimal) => hexadecimal(literal),
            });
            lines.push(line);
        }
    }
}

/// A number in few digits that name it alone.
pub fn number(literal: Literal) -> String {
    match (literal.dtype, literal.integer(), literal.float()) {
        (DType::Bool, ..) => (literal.bits != 0).to_string(),
        (_, Some(integer), _) => integer.to_string(),
        (DType::F64, None, Some(float)) => format!("{float:?}"),
        // Whatever is narrower is an `f32`.
        (_, None, Some(float)) => format!("{:?}", float as f32),
        (_, None, None) => String::new(),
    }
}

/// The bits of a number, with all digits of its width.
fn hexadecimal(literal: Literal) -> String {
    let bits = literal.dtype.bits();
    let digits = (bits as usize).div_ceil(4);
    let kept = literal.bits & (u64::MAX >> (64 - bits));
    format!("0x{kept:0digits$x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;

    const PRINTS: &str =
        "func @f block (%x: tile<2x2xf16>, %n: i32, %m: bool, %r: ptr<u64> write) {
      print %r, %x, label=\"x\", number=4, words=64
      print %r, %n, mask=%m, label=\"n\", number=7, words=64, format=hexadecimal
    }";

    #[test]
    fn lines_are_sorted_by_program_and_say_what_is_missing() {
        let prints = Prints::of(&parse(PRINTS, "test.bir").expect("parses"));
        let one = 0x3c00;
        let record = [
            26,
            3,
            5,
            3,
            one,
            0,
            0x8000,
            0x7e00,
            8,
            1,
            5,
            1,
            8,
            3,
            6,
            0,
            8,
            1,
            u64::MAX - 6,
            1,
            0,
            0,
        ];
        let lines = prints.lines([2, 2, 1], &record);
        let expected = [
            "test.bir:3:7 (1, 0, 0) n: 0x00000005",
            "test.bir:3:7 (1, 0, 0) n: 0xfffffff9",
            "test.bir:2:7 (1, 1, 0) x[0, 0]: 1.0",
            "test.bir:2:7 (1, 1, 0) x[0, 1]: 0.0",
            "test.bir:2:7 (1, 1, 0) x[1, 0]: -0.0",
            "test.bir:2:7 (1, 1, 0) x[1, 1]: NaN",
            "3 prints of this launch found no room in its record of 22 numbers",
        ];
        assert_eq!(lines, expected);
        assert!(prints.lines([1, 1, 1], &[]).is_empty());
        assert_eq!(number(Literal::from_bits(DType::I32, u64::MAX)), "-1");
    }
}
