//! Lowers tiles to what one worker does.
//!
//! [`sequential`] walks tiles by loop nests: a CPU thread runs a whole program. [`distributed`]
//! spreads tiles over the registers of a thread block's lanes.

mod combine;
pub mod distributed;
mod ordered;
pub mod sequential;
#[cfg(test)]
mod tests;
