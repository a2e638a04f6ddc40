//! Programs that are counted.

use super::*;

#[test]
fn programs_are_counted_and_not_listed() {
    let all = |device: &Device, count| device.programs(count).collect::<Vec<u64>>();
    let device = Device::interpreter();
    assert_eq!(all(&device, 1), [0]);
    assert_eq!(all(&device, 3), [0, 1, 2]);
    assert_eq!(
        device.programs(1 << 40).size_hint(),
        (1 << 40, Some(1 << 40))
    );
    let device = device.sampling(3);
    assert_eq!(all(&device, 2), [0, 1]);
    assert_eq!(all(&device, 1 << 40), [0, (1 << 39) - 1, (1 << 40) - 1]);
}
