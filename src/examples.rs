//! The examples of the language's functions and methods, run as documentation tests: where they stand, in the package
//! below this one, there is no `#[kernel]`.

macro_rules! examples {
    ($($Example:ident $file:literal;)*) => { $(
        #[doc = include_str!(concat!("../dsl-core/src/lang/examples/", $file))]
        struct $Example;
    )* };
}

examples! {
    Accumulator "accumulator.md";
    Arange "arange.md";
    Argmax "argmax.md";
    At "at.md";
    Cache "cache.md";
    Cdiv "cdiv.md";
    Cumsum "cumsum.md";
    Dot "dot.md";
    DotPromoted "dot_promoted.md";
    DotWith "dot_with.md";
    Expand "expand.md";
    Full "full.md";
    Gather "gather.md";
    Histogram "histogram.md";
    Join "join.md";
    Load "load.md";
    LogSumExpAccumulator "log_sum_exp_accumulator.md";
    Mask "mask.md";
    Math "math.md";
    Max "max.md";
    MaxAccumulator "max_accumulator.md";
    NumPrograms "num_programs.md";
    Other "other.md";
    ProgramId "program_id.md";
    Range "range.md";
    Reduce "reduce.md";
    ReduceMasked "reduce_masked.md";
    Require "require.md";
    Reshape "reshape.md";
    Scalar "scalar.md";
    Scan "scan.md";
    Select "select.md";
    Sort "sort.md";
    Stages "stages.md";
    Step "step.md";
    Store "store.md";
    Sum "sum.md";
    SumAccumulator "sum_accumulator.md";
    SumKeep "sum_keep.md";
    Tile "tile.md";
    To "to.md";
    Topk "topk.md";
    Zeros "zeros.md";
}
