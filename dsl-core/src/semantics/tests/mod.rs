//! The semantics against independent oracles.

mod derived;
mod scalar;
