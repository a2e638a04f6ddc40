//! The `#[kernel]` and `#[device]` attributes.
