//! The promise: the same bits for every tile size, schedule, batch and device.

use exactile::Device;
use exactile_harness::testing::determinism;

#[test]
fn sums_and_means_have_the_same_bits_everywhere() {
    let mut devices = vec![Device::interpreter(), Device::cpu(), Device::lanes()];
    match Device::cuda(0) {
        Ok(device) => devices.push(device),
        Err(reason) => eprintln!("no CUDA device is tested: {reason}"),
    }
    let report = determinism::run(&devices).expect("runs");
    assert!(report.failures.is_empty(), "{}", report.failures.join("\n"));
    assert!(report.compared > 400, "{}", report.compared);
}
