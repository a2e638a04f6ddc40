//! The promise: the same bits for every tile size, schedule, batch and device.

use std::fs;

use exactile::Device;
use exactile_harness::testing::{determinism, levels};

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

/// The page says what runs showed: every promise of a level held, and each level gains something.
#[test]
fn the_page_of_levels_is_fresh() {
    let devices = [Device::interpreter(), Device::cpu(), Device::lanes()];
    let lines = levels::run(&devices).expect("runs");
    for line in &lines {
        let broken: Vec<_> = line.broken().collect();
        assert!(
            broken.is_empty(),
            "{} at {:?}: {broken:?}",
            line.kernel,
            line.level
        );
    }
    let differs = |line: &&levels::Line| {
        let seen = line.seen.iter().flatten();
        seen.filter(|it| matches!(it, levels::Seen::Differs(_)))
            .count()
            > 0
    };
    assert!(lines.iter().filter(differs).count() > 4);
    let path = crate::root().join("docs/determinism.md");
    let page = levels::page(&lines);
    if std::env::var("BLESS").is_ok_and(|value| value == "1") {
        fs::write(&path, &page).expect("the page can be written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == page,
        "docs/determinism.md is stale: run `BLESS=1 cargo test --test suite determinism`"
    );
}
