//! The cases of the language, and what became of each.

use super::Outcome::{Elsewhere, Partly, Pointless, Runs};
use super::Section;

/// The cases, by the part of the suite.
pub(super) const SECTIONS: &[Section] = &[
    (
        "Scalars, operators, comparison",
        &[
            (
                "test_bin_op (`+ - * /`)",
                Partly(
                    &Runs("arithmetic"),
                    "operands of two types, of which one is converted by name",
                ),
            ),
            (
                "test_bin_op (`%` of integers)",
                Partly(
                    &Runs("integer operators"),
                    "operands of two types, of which one is converted by name",
                ),
            ),
            ("test_bin_op (`%` of floats)", Runs("remainders")),
            (
                "test_bfloat16_mul_rounds_to_nearest_even",
                Runs("arithmetic"),
            ),
            (
                "test_int1_bin_op_wraparound",
                Pointless("`bool` has no sums; `^` is the same function"),
            ),
            (
                "test_addptr",
                Partly(
                    &Runs("masks"),
                    "an offset before its pointer: it is written after it",
                ),
            ),
            ("test_floordiv", Runs("arithmetic")),
            ("test_unsigned_name_mangling", Runs("mixed types")),
            (
                "test_bitwise_op, test_shift_op",
                Partly(
                    &Runs("integer operators"),
                    "operands of two types, of which one is converted by name",
                ),
            ),
            (
                "test_interpreter_ashr_does_not_mutate_uint64_rhs",
                Runs("integer operators"),
            ),
            (
                "test_compare_op",
                Partly(
                    &Runs("arithmetic"),
                    "operands of two types, of which one is converted by name",
                ),
            ),
            (
                "test_where",
                Partly(&Runs("choices"), "pointers, which stay in one argument"),
            ),
            ("test_where_broadcast", Runs("choices")),
            ("test_unary_op", Runs("arithmetic")),
            ("test_neg_preserves_signed_zero", Runs("arithmetic")),
            ("test_bin_op_constexpr", Runs("literals")),
            (
                "test_propagate_nan",
                Partly(
                    &Runs("float operators"),
                    "a second rule of `clamp`, which `maximum` and `minimum` give",
                ),
            ),
            ("test_clamp, test_clamp_symmetric", Runs("arithmetic")),
            ("test_umulhi", Runs("integer operators")),
        ],
    ),
    (
        "Shapes, indexing, broadcasting",
        &[
            (
                "test_broadcast, test_transpose, test_index1d",
                Runs("squares"),
            ),
            ("test_cat", Runs("joins")),
            ("test_cat_nd", Runs("concatenations")),
            ("test_join, test_join_scalars", Runs("joins")),
            ("test_join_with_mma", Runs("forms of products")),
            ("test_interleave, test_interleave_scalars", Runs("joins")),
            ("test_split, test_split_to_scalar", Runs("joins")),
            (
                "test_permute",
                Partly(
                    &Runs("permutations"),
                    "the width of accesses, which `tests/suite/examples.rs::examples_assemble_as_recorded` has",
                ),
            ),
            ("test_trans_2d, test_trans_4d", Runs("permutations")),
            ("test_full", Runs("constants")),
            ("test_arange", Runs("axes and places")),
            (
                "test_reshape",
                Partly(
                    &Runs("reshapes"),
                    "tiles of nine axes: there are six at most",
                ),
            ),
            ("test_gather", Runs("gathers")),
        ],
    ),
    (
        "Math",
        &[
            (
                "test_math_op",
                Partly(
                    &Runs("functions"),
                    "sine and cosine of f64, whose errors `dsl-core/src/semantics/tests/derived.rs` holds",
                ),
            ),
            ("test_math_member_fn", Runs("methods")),
            (
                "test_math_erf_op",
                Elsewhere("dsl-core/src/semantics/tests/derived.rs::errors_stay_within_the_table"),
            ),
            ("test_math_fma_op", Runs("float operators")),
            (
                "test_math_divide_op, test_precise_math, test_fdiv_ieee_rounding",
                Runs("arithmetic"),
            ),
            ("test_abs", Runs("arithmetic")),
            ("test_abs_fp8", Runs("codes")),
            ("test_libdevice_rint", Runs("roundings")),
            ("test_enable_fp_fusion", Pointless("nothing is contracted")),
            (
                "test_enable_reflect_ftz",
                Pointless("subnormal numbers are always kept"),
            ),
        ],
    ),
    (
        "Functions",
        &[
            (
                "test_noinline, test_noinline_returns_tensor",
                Pointless("functions are traced into their callers"),
            ),
            ("test_call", Runs("branches")),
            ("test_jit_function_arg", Runs("branches")),
        ],
    ),
    (
        "Atomics",
        &[
            (
                "test_atomic_rmw",
                Partly(
                    &Runs("atomics"),
                    "the words of PTX, which `tests/filetests/memory/atomic_order.bir` states",
                ),
            ),
            ("test_atomic_rmw_predicate", Runs("predicated atomics")),
            ("test_tensor_atomic_rmw", Runs("atomics on tiles")),
            (
                "test_tensor_atomic_add_non_exclusive_offset, test_tensor_atomic_add_shift_1",
                Runs("shared places"),
            ),
            (
                "test_tensor_atomic_add_access_patterns",
                Runs("shared places"),
            ),
            ("test_tensor_atomic_rmw_block", Runs("atomic extremes")),
            (
                "test_atomic_cas",
                Partly(
                    &Runs("atomics with results"),
                    "the lock: a program may not wait for another one",
                ),
            ),
            ("test_tensor_atomic_cas", Runs("atomics with results")),
            (
                "test_atomic_poll*",
                Pointless("a program may not wait for another one"),
            ),
            (
                "test_scalar_atomic_cas_multicta_result, test_tensor_atomic_cas_multicta_result",
                Pointless("clusters of thread blocks have no construct"),
            ),
            (
                "test_load_scope_sem_coop_grid_cta_one, test_load_scope_sem_coop_grid_cta_not_one",
                Pointless("clusters of thread blocks have no construct"),
            ),
            ("test_atomic_min_max_neg_zero", Runs("atomic extremes")),
            ("test_tensor_atomic_use_result", Runs("atomics on tiles")),
        ],
    ),
    (
        "Casts",
        &[
            ("test_cast (conversions)", Runs("casts")),
            ("test_cast (bits)", Runs("bits")),
            ("test_convert_float16_to_float32", Runs("codes")),
            ("test_ptx_cast", Runs("running maxima")),
            ("test_conversions: test_typeconvert_upcast", Runs("codes")),
            (
                "test_conversions: test_typeconvert_downcast (to the nearest)",
                Elsewhere("tests/suite/narrow_floats.rs::conversions_give_the_nearest_number"),
            ),
            (
                "test_conversions: test_typeconvert_downcast (toward zero)",
                Elsewhere("tests/suite/narrow.rs::singles_to_halves"),
            ),
            (
                "test_conversions: test_typeconvert_downcast_clamping",
                Partly(
                    &Runs("casts"),
                    "the largest number in place of an infinity, where the type has one",
                ),
            ),
        ],
    ),
    (
        "Reductions, scans, histograms",
        &[
            (
                "test_max_returns_zero, test_max_min_with_nan",
                Runs("special values"),
            ),
            (
                "test_argmax_argmin_with_nan, test_argmax_argmin_tie_break_fast_with_nan",
                Runs("special values"),
            ),
            ("test_reduce1d", Runs("reductions of rows")),
            (
                "test_reduce",
                Partly(
                    &Runs("reductions along axes"),
                    "all axes at once, whose sums other types have",
                ),
            ),
            ("test_sum_dtype", Runs("sums of other types")),
            (
                "test_scan2d (prefixes)",
                Partly(
                    &Runs("scans"),
                    "rows of 1024 of other types than i32, whose sums would round",
                ),
            ),
            (
                "test_scan2d (recurrences, roll)",
                Partly(
                    &Runs("recurrences"),
                    "floats, whose combines `tests/suite/accumulators.rs::any_combine_has_the_bits_of_one_tile` has",
                ),
            ),
            (
                "test_scan_1d, test_cumsum_dtype",
                Runs("prefixes that grow"),
            ),
            (
                "test_histogram",
                Partly(
                    &Runs("histograms"),
                    "the machine code, which `tests/suite/examples.rs::examples_assemble_as_recorded` has",
                ),
            ),
            (
                "test_histogram_silent_data_corruption, test_histogram_out_of_range, test_histogram_mask",
                Runs("histograms"),
            ),
            (
                "test_optimize_thread_locality, test_optimize_thread_locality_preserves_rows",
                Elsewhere("tests/suite/accumulators.rs::any_combine_has_the_bits_of_one_tile"),
            ),
            (
                "test_no_rematerialization_op",
                Elsewhere("tests/suite/examples.rs::examples_assemble_as_recorded"),
            ),
            ("test_generic_reduction", Runs("own combines")),
            (
                "test_side_effectful_reduction, test_side_effectful_reduction_2d, test_side_effectful_scan",
                Elsewhere("tests/suite/debug.rs::a_combine_states_nothing_but_gives_a_flag"),
            ),
            ("test_chained_reductions", Runs("chained reductions")),
            (
                "facebookexperimental test_core: test_reduction_ordering_sum, test_reduction_ordering_reduce_mul, test_reduction_ordering_argmin",
                Partly(
                    &Runs("reductions of rows"),
                    "two and eight warps, which `exactile selftest determinism` takes",
                ),
            ),
            (
                "facebookexperimental test_core: test_reduction_ordering_sum_multi_group, test_reduction_ordering_sum_masked_multi_reg_group",
                Partly(
                    &Runs("reductions of rows"),
                    "two and eight warps, which `exactile selftest determinism` takes",
                ),
            ),
        ],
    ),
    (
        "Products",
        &[
            (
                "test_dot",
                Partly(
                    &Runs("products"),
                    "a softmax behind it, which is no part of a product; sums of f16 in f16, since sums are of 32 bits; and forms by parts (`tf32x3`, `bf16x3`, `bf16x6`), since `dot` of f32 is a chain of `fma`, whose errors are those of f32",
                ),
            ),
            (
                "test_scaled_dot",
                Partly(
                    &Elsewhere("tests/suite/scaled.rs::blocks_of_e4m3_in_singles"),
                    "f16, and e2m1, which is unpacked before",
                ),
            ),
            ("test_dot3d", Runs("batches of products")),
            (
                "test_dot_mulbroadcasted",
                Pointless("a sum of products keeps the order of a sum"),
            ),
            (
                "test_dot_without_load",
                Runs("products without whole loads"),
            ),
            (
                "test_dot_max_num_imprecise_acc",
                Elsewhere("tests/suite/promoted.rs::bytes_are_added_by_parts"),
            ),
            ("test_dot_multidim", Runs("forms of products")),
        ],
    ),
    (
        "Loads and stores",
        &[
            ("test_store_constant", Runs("constants")),
            ("test_load_store_same_ptr", Runs("buffers and strides")),
            ("test_masked_load", Runs("masks")),
            (
                "test_masked_load_scalar, test_load_scalar_with_mask",
                Runs("masks"),
            ),
            (
                "test_masked_load_shared_memory",
                Runs("products without whole loads"),
            ),
            (
                "test_load_cache_modifier, test_store_cache_modifier, test_store_eviction_policy",
                Partly(
                    &Runs("hints"),
                    "the words of PTX, which `tests/filetests/memory/cache.bir` states",
                ),
            ),
            (
                "test_vectorization, test_vectorization_hints",
                Elsewhere("tests/suite/examples.rs::examples_assemble_as_recorded"),
            ),
            (
                "test_assume",
                Pointless("no promise of a user changes code"),
            ),
            (
                "test_zero_strided_tensors",
                Partly(
                    &Runs("buffers and strides"),
                    "atomics: what is written may not meet itself",
                ),
            ),
            (
                "test_aliasing",
                Pointless(
                    "`&mut` of one buffer twice does not compile; of arrays that are only read, any number may be one",
                ),
            ),
            (
                "test_strided_load, test_strided_store, test_indirect_load, test_indirect_store",
                Runs("masks"),
            ),
        ],
    ),
    (
        "Arguments and options",
        &[
            (
                "test_constexpr_shape, test_constexpr_scalar_shape",
                Runs("permutations"),
            ),
            ("test_constexpr_if_return", Runs("branches")),
            (
                "test_pointer_arguments",
                Partly(
                    &Runs("wrong launches"),
                    "pinned memory of the host, which is copied and is no argument",
                ),
            ),
            (
                "test_value_specialization, test_value_specialization_overflow",
                Pointless("the signature says the types"),
            ),
            ("test_num_warps_pow2", Runs("wrong launches")),
            (
                "test_override_arch",
                Elsewhere("backends/nvptx/tests/codegen/lowered.rs::every_gpu_has_code"),
            ),
            (
                "test_num_ctas_pre_sm90",
                Pointless("clusters of thread blocks have no construct"),
            ),
            (
                "test_maxnreg",
                Elsewhere(
                    "backends/nvptx/tests/codegen/lowered.rs::threads_use_no_more_registers_than_asked_for",
                ),
            ),
        ],
    ),
    (
        "Control flow",
        &[
            (
                "test_if, test_if_else, test_if_return, test_if_call, test_nested_if_else_return",
                Runs("branches"),
            ),
            ("test_while, test_nested_while", Runs("loops")),
            ("test_for_iv (upwards)", Runs("loops")),
            ("test_for_iv (downwards)", Runs("loops downwards")),
            ("test_temp_var_in_loop, test_static_range", Runs("loops")),
            (
                "test_tl_range_num_stages",
                Partly(
                    &Runs("pipelines"),
                    "the product: what the stages bring is added",
                ),
            ),
            (
                "test_tl_range_fuse, test_tl_range_fuse_dependent",
                Pointless("no option fuses loops"),
            ),
            (
                "test_disable_licm, test_unroll_attr",
                Pointless("no option of that kind"),
            ),
            ("test_unsplat", Runs("branches")),
            ("test_num_programs", Runs("grids")),
        ],
    ),
    (
        "Device features",
        &[
            (
                "test_inline_asm, test_inline_asm_multiple_outputs",
                Elsewhere("tests/suite/each.rs::inline_ptx_has_the_bits_of_its_meaning"),
            ),
            (
                "test_inline_asm_packed, test_inline_asm_packed_multiple_outputs",
                Elsewhere("tests/suite/each.rs::inline_ptx_takes_four_bytes_in_a_register"),
            ),
            (
                "test_inline_asm_with_pointers",
                Pointless("inline PTX takes numbers and no addresses"),
            ),
            (
                "test_map_elementwise, test_map_elementwise_multiple_outputs",
                Elsewhere("tests/suite/each.rs::each_element_takes_its_own_steps"),
            ),
            (
                "test_map_elementwise_pack",
                Pointless("the function takes one element of each tile: a tile of pairs is split"),
            ),
            (
                "test_num_threads",
                Pointless("a program does not see its threads"),
            ),
            (
                "test_globaltimer, test_smid",
                Pointless("results may not depend on them"),
            ),
        ],
    ),
];
