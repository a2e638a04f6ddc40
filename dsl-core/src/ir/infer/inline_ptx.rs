//! The type rule of inline PTX, and what its text may name.

use super::expect::Rules;
use crate::ir::{Type, Value, op};

impl Rules<'_> {
    /// The type of the meaning that is asked for.
    pub(super) fn inline_ptx(self, op: &op::InlinePtx) -> Result<Type, String> {
        let (results, operands) = (op.meaning.len(), op.operands.len());
        if results == 0 || operands == 0 {
            return Err(format!(
                "`inline_ptx` of {operands} operands and {results} results, expected one of each at least"
            ));
        }
        let shape = self.ty(op.operands[0]).shape;
        for &value in op.meaning.iter().chain(&op.operands) {
            let ty = self.in_register(value)?;
            self.expect("an operand or a meaning", ty, ty.with_shape(shape))?;
        }
        check_text(&op.text, results, operands)?;
        let asked = usize::try_from(op.result).ok();
        let asked = asked.and_then(|result| op.meaning.get(result));
        asked.map(|&value| self.ty(value)).ok_or_else(|| {
            let result = op.result;
            format!("`inline_ptx` has no result {result} of {results}")
        })
    }

    /// The type of a number that has a register of PTX of its width.
    fn in_register(self, value: Value) -> Result<Type, String> {
        let ty = self.ty(value);
        let dtype = self.number(ty)?;
        match dtype.bits() {
            16 | 32 | 64 => Ok(ty),
            _ => Err(format!(
                "`inline_ptx` takes and gives numbers of 16, 32 or 64 bits, found `{dtype}`"
            )),
        }
    }
}

/// Whether a text names results and operands that are there, and each result.
fn check_text(text: &str, results: usize, operands: usize) -> Result<(), String> {
    let is_plain = |it: char| matches!(it, ' '..='~' | '\n' | '\t');
    if let Some(other) = text.chars().find(|&it| !is_plain(it)) {
        return Err(format!("the text of `inline_ptx` holds {other:?}"));
    }
    let mut written = vec![false; results];
    for part in text.split('$').skip(1) {
        let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
        let Ok(number) = digits.parse::<usize>() else {
            return Err(
                "a `$` in the text of `inline_ptx` is before no number of a result or operand"
                    .to_string(),
            );
        };
        if number >= results + operands {
            return Err(format!(
                "the text of `inline_ptx` names `${number}`, with {results} results and {operands} operands"
            ));
        }
        written
            .get_mut(number)
            .into_iter()
            .for_each(|it| *it = true);
    }
    match written.iter().position(|written| !written) {
        Some(number) => Err(format!(
            "the text of `inline_ptx` does not name the result `${number}`"
        )),
        None => Ok(()),
    }
}
