//! The page of all ops is what the op tables say.

use std::fs;

use exactile_core::ir::{DType, op};
use exactile_core::{text, verify};
use exactile_harness::ops::{OpRow, rows};

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

fn row(name: &str) -> OpRow {
    let found = rows().into_iter().find(|row| row.name == name);
    found.unwrap_or_else(|| panic!("no op `{name}`"))
}

/// What the list says of ops with their own shape is what their type rules take.
#[test]
fn dtypes_of_shaped_ops_are_those_of_the_type_rules() {
    let of_memory = |op: &str, with: &str| format!("{op}%p, %i{with}");
    let cases = [
        ("load", of_memory("%r = load ", " : tile<16xT>")),
        ("store", of_memory("store ", ", %x")),
        ("atomic_reduce", of_memory("atomic_reduce ", ", %x, op=add")),
        (
            "atomic_fetch",
            of_memory("%r = atomic_fetch ", ", %x, op=exchange : tile<16xT>"),
        ),
        (
            "sort",
            "%r = sort [%x], keys=1, axis=0, direction=ascending, count=16 : tile<16xT>".into(),
        ),
        (
            "histogram",
            "%r = histogram %x, bins=8 : tile<8xi32>".into(),
        ),
        ("gather", "%r = gather %x, %i, axis=0 : tile<16xT>".into()),
        ("flip", "%r = flip %x, axis=0 : tile<16xT>".into()),
        (
            "reduce",
            "%r = reduce [%x], axis=0, order=tree (%a: T, %b: T) {\n yield [%b]\n } : T".into(),
        ),
    ];
    for (name, line) in cases {
        let accepted = DType::ALL.iter().filter(|dtype| {
            let source = format!(
                "func @f block (%p: ptr<T> write) {{\n %i = arange start=0, end=16 : tile<16xi64>\n \
                 %x = load %p, %i : tile<16xT>\n {line}\n}}"
            );
            let func = text::parse(&source.replace('T', dtype.name()), "ops.bir");
            let func = func.unwrap_or_else(|error| panic!("{name}: {error}"));
            verify::block(func).is_ok()
        });
        let accepted: Vec<&str> = accepted.map(|dtype| dtype.name()).collect();
        assert!(!accepted.is_empty(), "`{name}`: {line}");
        assert_eq!(row(name).dtypes, Some(accepted), "`{name}`");
    }
}

#[test]
fn every_op_says_whether_it_is_exact() {
    for row in rows().iter().filter(|row| row.kind != Some("raw")) {
        assert!(row.exactness.is_some(), "`{}`", row.name);
    }
    assert_eq!(row("reduce").exactness, Some("order"));
    assert_eq!(row("atomic_fetch").exactness, Some("arrival"));
    assert_eq!(row("approx_exp2").exactness, Some("device"));
    let structural = op::STRUCTURAL.iter().map(|(_, rows)| rows.len());
    assert_eq!(
        structural.sum::<usize>(),
        rows().iter().filter(|row| row.kind.is_none()).count()
    );
}
