//! Hints of accesses: what they stand behind, and which of them has which.

use exactile::prelude::*;

#[kernel]
fn misplaced(x: Ptr<f32>, out: PtrMut<f32>, count: PtrMut<i32>) {
    let at = arange(0, 4);
    let twice = load(x + at) * 2.0;
    store(out + at, twice.cache(Cache::Streaming));
    atomic_add(count, 1).cache(Cache::Streaming).mask(true);
}

#[test]
fn a_hint_stands_behind_its_access() {
    let errors = misplaced(Default::default()).check();
    let errors = errors.expect_err("neither is one").to_string();
    for access in ["load", "store"] {
        let wanted = format!("`cache` does not directly follow a `{access}`");
        assert!(errors.contains(&wanted), "{errors}");
    }
}

#[kernel]
fn other_side(x: Ptr<f32>, out: PtrMut<f32>) {
    let x = load(x).cache(Cache::WriteThrough);
    store(out, x);
    store(out + 1, x).cache(Cache::Anew);
}

#[test]
fn loads_and_stores_have_hints_of_their_own() {
    let errors = other_side(Default::default()).check();
    let errors = errors.expect_err("neither is one").to_string();
    for wanted in ["`load` is never `write_through`", "`store` is never `anew`"] {
        assert!(errors.contains(wanted), "{errors}");
    }
}
