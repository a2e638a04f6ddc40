//! Faults that nobody can find in these runs, and why.

/// A fault of a function that changes nothing there.
struct Spared {
    fault: &'static str,
    /// The functions, as their subjects are named.
    functions: &'static [&'static str],
}

const BARRIER: &str = "a barrier is missing";

const PINGPONG: &[&str] = &[
    "passes/pingpong.bir @copied",
    "passes/pingpong.bir @deep",
    "passes/pingpong_with_producer.bir @copied",
    "passes/pingpong_with_producer.bir @deep",
];

const SPARED: &[Spared] = &[
    // Accesses of one argument at offsets that are other values: what is launched keeps them apart, and nothing
    // that the compiler knows does.
    Spared {
        fault: BARRIER,
        functions: &[
            "control/if_while.bir @choose",
            "control/if_while.bir @store_sometimes",
            "control/stages.bir @aliased",
            "control/stages.bir @ordered",
            "kernel `layer_norm_loop`",
            "kernel `softmax_loop`",
            "memory/atomic.bir @loop",
            "memory/atomic.bir @signed",
            "memory/atomic.bir @signed_64",
            "memory/atomic.bir @unsigned",
            "memory/atomic.bir @unsigned_32",
            "memory/cache.bir @streams",
            "memory/print.bir @chosen",
            "memory/print.bir @full",
            "memory/print.bir @numbers",
            "memory/print.bir @where",
            "memory/tensors.bir @masked",
            "passes/stagger_again.bir @nested",
            "schedule/onward.bir @places",
            "schedule/onward.bir @steps",
            "schedule/onward.bir @written",
            "reduce/accumulators.bir @maps",
            "reduce/accumulators.bir @rows",
            "schedule/chained_in_turn.bir @chained",
            "schedule/place.bir @asked",
            "tiles/join.bir @two_numbers",
            "schedule/table_ahead.bir @renewed",
        ],
    },
    // The program has stored nothing before what it releases.
    Spared {
        fault: BARRIER,
        functions: &[
            "memory/atomic_extremes.bir @released",
            "memory/tensors_atomic.bir @bits",
        ],
    },
    // One group of warps: who waits for its products waits for what all its warps read.
    Spared {
        fault: BARRIER,
        functions: &[
            "schedule/nested.bir @single",
            "schedule/products_of_tf32.bir @nan",
            "schedule/rotated.bir @rotated",
            "schedule/stored.bir @stored",
        ],
    },
    Spared {
        fault: "pipeline: a barrier is missing",
        functions: &["schedule/stored.bir @stored"],
    },
    Spared {
        fault: "homes: a barrier is missing",
        functions: &["schedule/parts.bir @between"],
    },
    // One group of warps waits for the products of an iteration before it fills their slots anew.
    Spared {
        fault: "a wait for a phase is missing",
        functions: &[
            "schedule/onward.bir @places",
            "schedule/onward.bir @steps",
            "schedule/onward.bir @written",
            "schedule/table_ahead.bir @renewed",
            "schedule/table_ahead.bir @table",
            "schedule/table_ahead.bir @written",
        ],
    },
    Spared {
        fault: "homes: a barrier is missing",
        functions: &[
            "schedule/onward.bir @written",
            "schedule/table_ahead.bir @renewed",
        ],
    },
    // No run has more iterations than its ring has slots, so none is filled anew in it.
    Spared {
        fault: "a wait for products is missing",
        functions: &[
            "schedule/onward.bir @places",
            "schedule/table_ahead.bir @renewed",
        ],
    },
    Spared {
        fault: "a wait leaves a product too many",
        functions: &[
            "schedule/onward.bir @places",
            "schedule/table_ahead.bir @renewed",
        ],
    },
    Spared {
        fault: "overlap: a wait for products is missing",
        functions: &[
            "schedule/onward.bir @places",
            "schedule/table_ahead.bir @renewed",
        ],
    },
    Spared {
        fault: "overlap: a wait leaves a product too many",
        functions: &[
            "schedule/onward.bir @places",
            "schedule/table_ahead.bir @renewed",
        ],
    },
    // Results of a group begin when those of the other are complete, copies and all: what else orders them finds nothing left.
    Spared {
        fault: "a named barrier is missing",
        functions: &[
            "passes/pingpong.bir @copied",
            "passes/pingpong.bir @deep",
            "passes/pingpong.bir @stored",
            "passes/pingpong_with_producer.bir @copied",
            "passes/pingpong_with_producer.bir @deep",
            "passes/pingpong_with_producer.bir @stored",
        ],
    },
    Spared {
        fault: "a wait for copies out is missing",
        functions: PINGPONG,
    },
    Spared {
        fault: "a wait leaves a copy out too many",
        functions: PINGPONG,
    },
    Spared {
        fault: "a wait for what copies out read is missing",
        functions: PINGPONG,
    },
    Spared {
        fault: "a wait for what copies out read leaves one too many",
        functions: PINGPONG,
    },
    Spared {
        fault: "pipeline: a barrier is missing",
        functions: PINGPONG,
    },
    // Before it lanes have made barriers, and written nothing that copies touch.
    Spared {
        fault: "a fence is missing",
        functions: PINGPONG,
    },
    // The rounds in which stores find who is highest: one round is enough for these offsets, and a barrier is
    // for the next.
    Spared {
        fault: BARRIER,
        functions: &[
            "memory/apart.bir @cut",
            "memory/apart.bir @masked",
            "memory/apart.bir @narrow",
            "memory/apart.bir @programs",
            "memory/apart_bounds.bir @axes",
            "memory/apart_large.bir @large",
            "memory/load_store.bir @scatter",
            "memory/overlapping.bir @diagonals",
            "memory/tensors.bir @moved",
            "memory/tensors.bir @turned",
        ],
    },
    // Between two tiles all meet twice, before the ring is filled anew and before results are stored.
    Spared {
        fault: BARRIER,
        functions: &["schedule/waves.bir @waves"],
    },
    Spared {
        fault: "pipeline: a barrier is missing",
        functions: &["schedule/waves.bir @waves"],
    },
    // The sums that are exchanged in each iteration have barriers between a product and the boxes that follow it, too.
    Spared {
        fault: BARRIER,
        functions: &["schedule/exchange.bir @exchange"],
    },
    Spared {
        fault: "a wait for a phase is missing",
        functions: &["schedule/exchange.bir @exchange"],
    },
    Spared {
        fault: "homes: a barrier is missing",
        functions: &["schedule/exchange.bir @exchange"],
    },
    Spared {
        fault: "pipeline: a barrier is missing",
        functions: &["schedule/exchange.bir @exchange"],
    },
    // The barrier that shows ones to the products of the loop inside stands between a product and the boxes that follow it, too.
    Spared {
        fault: "a wait for a phase is missing",
        functions: &["schedule/stored_in_turn.bir @sums"],
    },
    Spared {
        fault: "homes: a barrier is missing",
        functions: &["schedule/stored_in_turn.bir @sums"],
    },
    // Slots of the second product of an iteration are released first and waited for last, and either barrier orders the buffers of both.
    Spared {
        fault: "a wait for a phase is missing",
        functions: &["passes/stagger_again.bir @pair"],
    },
    Spared {
        fault: "homes: a barrier is missing",
        functions: &["passes/stagger_again.bir @pair"],
    },
    // All meet behind the buffers of boxes, and this loop begins with a barrier as well.
    Spared {
        fault: BARRIER,
        functions: &["schedule/boxes.bir @one_by_one"],
    },
    // A slot for results begins before the rings do, so these ask for a fence, but nothing has been in their memory.
    Spared {
        fault: "a fence is missing",
        functions: &["schedule/nested.bir @deep", "schedule/nested.bir @turns"],
    },
    // Each run has one product, and lanes that store its results meet before the next one.
    Spared {
        fault: BARRIER,
        functions: &["schedule/nested.bir @ends"],
    },
    Spared {
        fault: "homes: a barrier is missing",
        functions: &["schedule/nested.bir @ends"],
    },
    Spared {
        fault: "pipeline: a barrier is missing",
        functions: &["schedule/nested.bir @ends"],
    },
    // One group of warps, as above.
    Spared {
        fault: "homes: a barrier is missing",
        functions: &[
            "schedule/boxed_once.bir @rotated",
            "schedule/chained_in_turn.bir @chained",
        ],
    },
    // The last iteration of none is that before the first key, where boxes are zeros.
    Spared {
        fault: "rotate: the first iteration runs whether there is one or not",
        functions: &["passes/producer.bir @attention"],
    },
    // Nothing else touches what the atomic does.
    Spared {
        fault: BARRIER,
        functions: &["passes/producer.bir @acquired"],
    },
    // Nothing is stored before the loop that takes tiles in turns.
    Spared {
        fault: "a fence is missing",
        functions: &["passes/producer.bir @turns"],
    },
    // All meet while results leave, between the products of a run and the first copies of the next one.
    Spared {
        fault: "a wait for a phase is missing",
        functions: &["schedule/nested.bir @deep"],
    },
    // The two results lie apart, and who waits for the copy of the second waits for that of the first as well.
    Spared {
        fault: "a wait for what copies out read is missing",
        functions: &["schedule/results.bir @two"],
    },
    Spared {
        fault: "a wait for what copies out read leaves one too many",
        functions: &["schedule/results.bir @two"],
    },
    Spared {
        fault: "results: a wait for copies is missing",
        functions: &["schedule/results.bir @two"],
    },
    // What is stored before the loop is fenced and met at the head of each iteration as well, or where barriers of slots are made. The one operand is of ones
    // alone, wherever they lie.
    Spared {
        fault: BARRIER,
        functions: &[
            "schedule/adjoined.bir @adjoined",
            "schedule/beside.bir @beside",
            "schedule/chained.bir @chained",
            "schedule/released.bir @apart",
            "schedule/released_together.bir @of_parts",
            "schedule/released_together.bir @together",
            "schedule/waits.bir @late",
            "schedule/table_ahead.bir @chain",
            "schedule/table_ahead.bir @written",
        ],
    },
    Spared {
        fault: "a fence is missing",
        functions: &[
            "schedule/adjoined.bir @adjoined",
            "schedule/beside.bir @beside",
            "schedule/chained.bir @chained",
            "schedule/released.bir @apart",
            "schedule/released_together.bir @of_parts",
            "schedule/released_together.bir @together",
            "schedule/waits.bir @late",
            "schedule/table_ahead.bir @chain",
        ],
    },
    Spared {
        fault: "homes: a barrier is missing",
        functions: &[
            "passes/producer.bir @attention",
            "schedule/adjoined.bir @adjoined",
            "schedule/beside.bir @beside",
            "schedule/chained.bir @chained",
            "schedule/released.bir @apart",
            "schedule/released_together.bir @of_parts",
            "schedule/released_together.bir @together",
            "schedule/waits.bir @late",
            "schedule/table_ahead.bir @chain",
            "schedule/table_ahead.bir @written",
        ],
    },
    Spared {
        fault: "homes: a fence is missing",
        functions: &[
            "schedule/adjoined.bir @adjoined",
            "schedule/beside.bir @beside",
            "schedule/chained.bir @chained",
            "schedule/waits.bir @late",
            "schedule/table_ahead.bir @chain",
            "schedule/table_ahead.bir @written",
        ],
    },
    Spared {
        fault: "pipeline: a barrier is missing",
        functions: &[
            "schedule/adjoined.bir @adjoined",
            "schedule/beside.bir @beside",
            "schedule/chained.bir @chained",
            "schedule/released.bir @apart",
            "schedule/released_together.bir @of_parts",
            "schedule/released_together.bir @together",
            "schedule/waits.bir @late",
            "schedule/table_ahead.bir @chain",
            "schedule/table_ahead.bir @written",
        ],
    },
    Spared {
        fault: "homes: a layout has two bits exchanged",
        functions: &[
            "schedule/beside.bir @beside",
            "schedule/chained.bir @chained",
            "schedule/stored_in_turn.bir @sums",
        ],
    },
    // The product behind the loop may read the ones behind any slot.
    Spared {
        fault: "adjoin: columns lie behind the next slot",
        functions: &[
            "schedule/adjoined.bir @adjoined",
            "schedule/beside.bir @beside",
            "schedule/chained.bir @chained",
        ],
    },
    Spared {
        fault: "adjoin: columns have two bits exchanged",
        functions: &[
            "schedule/beside.bir @beside",
            "schedule/chained.bir @chained",
        ],
    },
    // Boxes are cut off at the extents: an iteration that is none adds zeros.
    Spared {
        fault: "rotate: the first iteration runs whether there is one or not",
        functions: &[
            "schedule/boxed_once.bir @rotated",
            "schedule/released.bir @apart",
        ],
    },
    // Lanes bring one operand and meet at the head of each iteration, where the other one's slots are waited for: either is
    // enough for what both keep apart.
    Spared {
        fault: "a wait for a phase is missing",
        functions: &["schedule/products_of_integers.bir @row_major"],
    },
    Spared {
        fault: "pipeline: a barrier is missing",
        functions: &["schedule/products_of_integers.bir @row_major"],
    },
    // One group of warps waits for its products before slots are filled anew, and lanes have stored nothing in the memory of the boxes that a
    // fence stands before.
    Spared {
        fault: BARRIER,
        functions: &["schedule/table_ahead.bir @table"],
    },
    Spared {
        fault: "a fence is missing",
        functions: &["schedule/table_ahead.bir @table"],
    },
    Spared {
        fault: "homes: a barrier is missing",
        functions: &["schedule/table_ahead.bir @table"],
    },
    Spared {
        fault: "pipeline: a barrier is missing",
        functions: &["schedule/table_ahead.bir @table"],
    },
    // In a branch each warp stores the rows that it multiplies itself, behind a barrier for the columns that lanes have copied, and the
    // fence there stands for that of the copies, too.
    Spared {
        fault: BARRIER,
        functions: &["schedule/programs.bir @guarded"],
    },
    Spared {
        fault: "a fence is missing",
        functions: &["schedule/programs.bir @guarded"],
    },
    Spared {
        fault: "pipeline: a barrier is missing",
        functions: &["schedule/programs.bir @guarded"],
    },
    // Written by hand: what comes behind waits as well.
    Spared {
        fault: BARRIER,
        functions: &["lanes/roles.bir @pingpong"],
    },
    Spared {
        fault: "a wait for products is missing",
        functions: &["lanes/group_mma_chain.bir @chain"],
    },
    Spared {
        fault: "a wait leaves a product too many",
        functions: &["lanes/group_mma_chain.bir @chain"],
    },
    // The two tiles differ in no iteration that prints.
    Spared {
        fault: "assign: a conversion is of another tile",
        functions: &["memory/print.bir @chosen"],
    },
    // A reduction takes its source as it lies, and this one is made where it is used.
    Spared {
        fault: "place: a layout has two bits exchanged",
        functions: &["reduce/accumulators.bir @handed_on"],
    },
];

/// Whether a fault changes nothing in a function.
pub(super) fn is_spared(fault: &str, function: &str) -> bool {
    SPARED
        .iter()
        .any(|it| it.fault == fault && it.functions.contains(&function))
}

/// The spared faults that somebody finds after all, of those that are planted in all of these functions.
pub(super) fn stale(survived: &dyn Fn(&str, &str) -> bool) -> Vec<String> {
    let pairs = SPARED.iter().flat_map(|it| {
        let functions = it.functions.iter();
        functions.map(|function| (it.fault, *function))
    });
    pairs
        .filter(|&(fault, function)| !survived(fault, function))
        .map(|(fault, function)| format!("spared and found: {fault}: {function}"))
        .collect()
}
