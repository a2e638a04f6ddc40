//! Inline PTX: the one way to give a GPU text that the compiler does not look into.

#![expect(unsafe_code, reason = "the caller vouches for the text")]

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use exactile_core::ir::{Func, Op};
use exactile_core::lang;
use exactile_core::lang::operands::{Operands, Results};

use crate::error::{Error, Result};

/// The texts that callers of this process have vouched for.
static VOUCHED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// What PTX gives for each element of tiles and scalars on a GPU, and what `meaning` gives everywhere else.
///
/// `operands` is a tile or a scalar, or a tuple of up to eight; their shapes broadcast as those of arithmetic do.
/// `meaning` takes a tile of each, computes by arithmetic of elements alone, and gives a tile or a tuple of tiles. All
/// are numbers of 16, 32 or 64 bits, each in a register of its kind: of integers and of narrow floats `.b16`, `.b32` or
/// `.b64`, of `f32` and `f64` `.f32` and `.f64`. In `text` `$0` and so on are the results, then the operands. It runs
/// once for each element, in no stated order and as often as the compiler likes; labels and registers that it
/// declares stand in braces.
///
/// The interpreter and the CPU run `meaning`, which is what the bits of a GPU are compared with: `compare`, a tuner's
/// judgement and `assert_bits_equal` find a text that means something else. So it is allowed at every level of
/// determinism, `Exact` too, and there is no form without a meaning. Which NaN an operand holds is not stated.
///
/// ```
/// use exactile::prelude::*;
///
/// #[kernel]
/// fn parity(x: Ptr<u32>, y: Ptr<u32>, z: Ptr<u32>, out: PtrMut<u32>) {
///     let i = arange(0, 64);
///     let operands = (load(x + i), load(y + i), load(z + i));
///     // SAFETY: `lop3` has no effect but its result, the exclusive or of all three.
///     let bits = unsafe {
///         inline_ptx("lop3.b32 $0, $1, $2, $3, 0x96;", operands, |(a, b, c)| a ^ b ^ c)
///     };
///     store(out + i, bits);
/// }
///
/// # fn main() -> exactile::Result<()> {
/// let device = Device::cpu();
/// let x = Buffer::from_slice(&device, &[1_u32; 64])?;
/// let y = Buffer::from_slice(&device, &[3_u32; 64])?;
/// let mut out = Buffer::zeros(&device, 64)?;
/// parity().launch(&device, 1, (&x, &y, &x, &mut out))?;
/// assert_eq!(out.to_vec()?, [3_u32; 64]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// A text that names other results or operands than there are, or not each result; numbers of 8 bits; a meaning that
/// loads, reduces or branches. What the assembler of a GPU refuses is an error of the launch with the kernel's line.
///
/// # Safety
/// For all operands of these types the text must write its results and have no other effect: no access to memory, no
/// barrier, no trap, no end of the thread, no jump out of itself, and nothing that all lanes of a warp must
/// execute together. It must be a function of its operands, the same one in every run, and that must be `meaning`: the
/// compiler may take either for the other.
#[track_caller]
pub unsafe fn inline_ptx<S: Operands, R: Results>(
    text: &str,
    operands: S,
    meaning: impl FnMut(S::Tiles) -> R,
) -> R::Tiles {
    let mut vouched = VOUCHED.lock().unwrap_or_else(PoisonError::into_inner);
    if !vouched.contains(text) {
        vouched.insert(text.to_string());
    }
    drop(vouched);
    lang::inline_ptx::inline_ptx(text, operands, meaning)
}

/// Whether somebody has vouched for every text that a GPU would run.
pub(crate) fn check(func: &Func) -> Result<()> {
    let vouched = VOUCHED.lock().unwrap_or_else(PoisonError::into_inner);
    for inst in func.all_insts() {
        let data = func.inst(inst);
        if let Op::InlinePtx(op) = &data.op
            && !vouched.contains(&op.text)
        {
            return Err(Error::Invalid(format!(
                "{}: nobody has vouched for inline PTX of `@{}`: a GPU runs what an `unsafe` call of \
                 `exactile::inline_ptx` in this process has given, and a CPU runs the meaning of any",
                data.loc, func.name
            )));
        }
    }
    Ok(())
}
