//! The order in which sums are added, in plain Rust: the balanced binary tree over the index.

/// The sum in the order of the tree: the greatest power of two of elements that leaves some, and
/// the rest. Its bits are those of every exact sum on every device.
pub fn sum(x: &[f32]) -> f32 {
    match x {
        [] => 0.0,
        [one] => *one,
        _ => {
            let (head, rest) = x.split_at(x.len().next_power_of_two() / 2);
            sum(head) + sum(rest)
        }
    }
}
