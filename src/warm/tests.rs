//! Memories that must not meet, compared byte by byte.

use exactile_core::random::Random;

use super::*;

#[test]
fn memory_that_is_written_meets_no_other() {
    let mut random = Random::stream(11, 0);
    let mut found = [0; 2];
    for _ in 0..20_000 {
        let count = 1 + random.below(5);
        let arguments: Vec<Passed> = (0..count)
            .map(|_| Passed::Memory {
                address: random.below(40) as u64,
                bytes: random.below(12) as u64,
                access: [Access::Read, Access::ReadWrite][usize::from(random.below(4) == 0)],
            })
            .collect();
        let mut words = Words::default();
        let bytes: Vec<(Vec<u64>, bool)> = arguments
            .iter()
            .zip(&mut words)
            .filter_map(|(argument, word)| match *argument {
                Passed::Memory {
                    address,
                    bytes,
                    access,
                } => {
                    *word = address;
                    let all = (address..address + bytes).collect();
                    Some((all, access == Access::ReadWrite))
                }
                Passed::Scalar(_) => None,
            })
            .collect();
        let meets = bytes.iter().enumerate().any(|(index, (one, written))| {
            bytes[index + 1..].iter().any(|(other, is_written)| {
                (*written || *is_written) && one.iter().any(|byte| other.contains(byte))
            })
        });
        let apart = Apart::of(&arguments).iter().all(|it| it.holds(&words));
        assert_eq!(apart, !meets, "{arguments:?}");
        found[usize::from(apart)] += 1;
    }
    assert!(found.iter().all(|&it| it > 1000), "{found:?}");
}
