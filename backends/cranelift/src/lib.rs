//! Lane IR to CPU machine code through Cranelift.
