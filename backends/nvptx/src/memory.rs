//! Address arithmetic: the one place that calls inkwell's `unsafe` builders.

use inkwell::builder::{Builder, BuilderError};
use inkwell::types::BasicType;
use inkwell::values::{IntValue, PointerValue};

/// The address of element `index` of an array of `element` at `base`. Nothing is promised about
/// its being in bounds, so the address of a masked-off access is no poison.
pub(crate) fn element_address<'c>(
    builder: &Builder<'c>,
    element: impl BasicType<'c>,
    base: PointerValue<'c>,
    index: IntValue<'c>,
) -> Result<PointerValue<'c>, BuilderError> {
    #[expect(unsafe_code, reason = "inkwell cannot check that index and type fit")]
    // SAFETY: one index into an array of a sized type is well formed for every opaque pointer.
    unsafe {
        builder.build_gep(element, base, &[index], "")
    }
}
