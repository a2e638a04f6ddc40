//! The example programs, whose cases the demo runs.

use exactile_harness::demo::Case;

macro_rules! examples {
    ($($name:ident = $path:literal),* $(,)?) => {
        $(
            #[path = $path]
            #[expect(dead_code, reason = "`main` is for `cargo run --example`")]
            pub(super) mod $name;
        )*

        /// The cases of all examples.
        pub(super) fn cases(quick: bool) -> Vec<Case> {
            let mut cases = Vec::new();
            $(cases.extend($name::cases(quick));)*
            cases
        }
    };
}

examples! {
    vector_add = "../../examples/vector_add.rs",
    softmax = "../../examples/softmax.rs",
    mean = "../../examples/mean.rs",
    layer_norm = "../../examples/layer_norm.rs",
    sum = "../../examples/sum.rs",
    cumsum = "../../examples/cumsum.rs",
    matmul = "../../examples/matmul.rs",
    sort = "../../examples/sort.rs",
    topk = "../../examples/topk.rs",
    histogram = "../../examples/histogram.rs",
    gather = "../../examples/gather.rs",
}
