//! The `exactile` command.
fn main() {}
