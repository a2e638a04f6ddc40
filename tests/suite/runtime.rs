//! What a program sees of launches, on every device that needs no GPU.

use exactile::Device;
use exactile_harness::testing::runtime::checks;

#[test]
fn launches_are_queued() {
    for device in [Device::interpreter(), Device::lanes(), Device::cpu()] {
        for check in checks() {
            let result = check.run(&device);
            assert!(result.is_ok(), "{device}: {}: {result:?}", check.name);
        }
    }
}
