//! What LLVM says when it refuses something, as errors of this crate.

use inkwell::builder::BuilderError;
use inkwell::support::LLVMString;
use inkwell::values::InstructionValueError;

use crate::error::Error;

impl From<BuilderError> for Error {
    fn from(error: BuilderError) -> Self {
        Self::Llvm(error.to_string())
    }
}

impl From<InstructionValueError> for Error {
    fn from(error: InstructionValueError) -> Self {
        Self::Llvm(error.to_string())
    }
}

impl From<LLVMString> for Error {
    fn from(error: LLVMString) -> Self {
        Self::Llvm(error.to_string().trim_end().to_string())
    }
}
