//! The kernel language, the IR, its meaning and its lowering.
