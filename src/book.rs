//! The chapters of the book, whose blocks are run as documentation tests.

macro_rules! chapters {
    ($($Chapter:ident $file:literal;)*) => { $(
        #[doc = include_str!(concat!("../docs/book/src/", $file))]
        struct $Chapter;
    )* };
}

chapters! {
    FirstKernel "first-kernel.md";
    Masks "masks.md";
    TilesAndTensors "tiles-and-tensors.md";
    Loops "loops.md";
    Reductions "reductions.md";
    Numbers "numbers.md";
    Determinism "determinism.md";
    Interop "interop.md";
    Launching "launching.md";
    Tuning "tuning.md";
    Shipping "shipping.md";
    Debugging "debugging.md";
    Limits "limits.md";
    FromTriton "from-triton.md";
}
