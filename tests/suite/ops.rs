//! The page of all ops is what the op tables say.

use std::fs;

#[test]
fn the_page_of_ops_is_fresh() {
    let path = crate::root().join("OPS.md");
    let page = exactile_harness::ops::page();
    if std::env::var("BLESS").is_ok_and(|value| value == "1") {
        fs::write(&path, &page).expect("the page can be written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == page,
        "OPS.md is stale: run `BLESS=1 cargo test --test suite ops`"
    );
}
