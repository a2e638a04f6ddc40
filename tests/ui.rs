//! The compiler's messages for mistakes in kernels: each file of `tests/ui` and its `.stderr`.

#[test]
fn mistakes_are_explained() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
}
