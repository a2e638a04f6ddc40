//! The cases of what runs and tools do.

use super::Outcome::{Elsewhere, Partly, Pointless, Runs};
use super::Section;

/// The cases, by the part of the suite.
pub(super) const SECTIONS: &[Section] = &[(
    "Runtime and tools",
    &[
        (
            "test_autotuner: test_kwargs, test_no_do_bench",
            Elsewhere("tests/suite/autotune.rs::the_fastest_right_candidate_wins"),
        ),
        (
            "test_autotuner: test_restore, test_restore_with_none, test_reset_to_zero",
            Elsewhere(
                "tests/suite/configure.rs::a_kernel_is_tuned_over_what_it_says_and_its_arguments_are_restored",
            ),
        ),
        (
            "test_autotuner: test_hooks",
            Elsewhere(
                "tests/suite/configure.rs::what_a_kernel_writes_is_restored_after_a_panic_of_who_listens",
            ),
        ),
        (
            "test_autotuner: test_prune_configs, test_prune_configs_fractional_top_k_keeps_one, test_prune_configs_fractional_top_k_after_early_prune",
            Partly(
                &Elsewhere(
                    "tests/suite/configure.rs::constraints_and_what_is_set_narrow_the_space",
                ),
                "a model of times",
            ),
        ),
        (
            "test_autotuner: test_config_ir_override_changes_disk_cache_key, test_override_ttir, test_override_ttgir, test_override_ptx",
            Pointless("a candidate is settings: what a stage gives is not replaced"),
        ),
        (
            "test_autotuner: test_pruned_single_config_skips_benchmark",
            Pointless("a search measures what it tries"),
        ),
        (
            "test_autotuner: test_exceed_threads",
            Elsewhere("tests/suite/autotune.rs::candidates_that_do_not_compile_keep_their_reason"),
        ),
        (
            "test_autotuner: test_prune_all_configs",
            Elsewhere("tests/suite/autotune.rs::no_right_candidate_is_an_error_that_says_why"),
        ),
        (
            "test_autotune_listener: test_autotune_listener_*",
            Pointless("the tuner returns what it measured"),
        ),
        (
            "test_cache: test_nochange, test_toplevel_change, test_nested1_change, test_nested2_change, test_combine_fn_change, test_constexpr_fn_change, test_changed_line_numbers_invalidate_cache, test_constexpr_cache_invalidation_recreated",
            Elsewhere(
                "tests/suite/kept.rs::what_code_relies_on_is_part_of_the_key_and_lines_are_not",
            ),
        ),
        (
            "test_cache: test_cache_key_independent_of_dependency_hash_order, test_cache_key_independent_of_globals_dict_identity, test_invalid_constexpr_fn",
            Pointless("names of Python"),
        ),
        (
            "test_cache: test_reuse, test_specialize, test_within_2gb, test_annotation",
            Elsewhere("tests/suite/launch.rs::a_kernel_is_compiled_once_for_arguments_alike"),
        ),
        (
            "test_cache: test_kernel_default_arg, test_function_arguments, test_jit_debug, test_jit_noinline, test_higher_order_kernel",
            Pointless("arguments and functions are those of Rust"),
        ),
        (
            "test_cache: test_jit_warmup_cache, test_preload, test_preload_constexpr_tuple_arg, test_preload_higher_order_kernels",
            Elsewhere("tests/suite/built.rs::what_was_built_is_found_by_launches_like_those"),
        ),
        (
            "test_cache: test_file_cache_manager_get_group_rejects_missing_child, test_remote_cache_manager_get_group_rejects_missing_child",
            Elsewhere("tests/suite/kept.rs::damaged_entries_are_compiled_anew"),
        ),
        (
            "test_cache: test_hooks",
            Pointless("no hook comes before a compilation"),
        ),
        (
            "test_cache: test_async_compile_mock, test_async_compile",
            Elsewhere("tests/suite/meeting.rs::launches_compiled_ahead_are_told_apart"),
        ),
        (
            "test_cache: test_async_compile_error",
            Elsewhere("tests/suite/autotune.rs::candidates_that_do_not_compile_keep_their_reason"),
        ),
        (
            "test_cache: test_module_load_unload",
            Pointless("code is unloaded with the last kernel that needs it, and no hook sees it"),
        ),
        (
            "test_cache_determinism: test_cache_key_deterministic_across_process_global_identities, test_cache_key_deterministic_under_concurrent_dependency_hashing",
            Elsewhere("tests/suite/kept.rs::another_process_runs_neither_the_lowering_nor_llvm"),
        ),
        (
            "test_compilation_listener: test_compile_stats",
            Elsewhere("tests/suite/cli.rs::the_stages_of_compilations_are_timed"),
        ),
        (
            "test_specialize: test_specialize_impl",
            Pointless("the signature says the types"),
        ),
        (
            "test_launch: test_metadata",
            Elsewhere("src/shown.rs::each_kernel_has_a_folder_and_each_code_its_files"),
        ),
        (
            "test_launch: test_launch_with_options",
            Elsewhere(
                "tests/suite/configure.rs::schedules_are_tried_where_lanes_run_and_hopeless_ones_are_not_run",
            ),
        ),
        (
            "test_launch: test_load_hook, test_multiple_hooks, test_pre_run_hooks",
            Elsewhere("tests/suite/runtime.rs::launches_are_queued"),
        ),
        (
            "test_launch: test_memory_leak",
            Elsewhere("tests/suite/steady.rs::many_launches_keep_no_memory"),
        ),
        (
            "test_launch: test_interpreter_implicit_cvt_bool",
            Pointless("types are converted by name"),
        ),
        (
            "test_driver: test_is_lazy",
            Pointless("a device is asked for, and nothing happens before"),
        ),
        (
            "test_driver: test_kernel_in_thread",
            Elsewhere("tests/suite/runtime.rs::launches_are_queued"),
        ),
        (
            "test_driver: test_profile_scratch_stream_zero_uses_default_stream, test_expand_signature_with_aggregate_tensordesc, test_wrap_tensordesc_handles_aggregate_arguments, test_wrap_tensordesc_is_noop_without_tensordesc",
            Pointless("inner functions of that runtime"),
        ),
        (
            "test_subproc: test_compile_in_subproc, test_compile_in_forked_subproc, test_compile_in_forked_subproc_with_forced_gc",
            Partly(
                &Elsewhere("tests/suite/kept.rs::processes_and_threads_share_a_folder"),
                "processes that are forked, not started",
            ),
        ),
        (
            "test_interpreter: test_load_accepts_non_contiguous_ndarray_views, test_store_accepts_non_contiguous_ndarray_views",
            Elsewhere("tests/suite/slices.rs::views_of_slices_have_extents_and_strides"),
        ),
        (
            "test_interpreter: test_atomic_rmw_accepts_non_contiguous_ndarray_views, test_atomic_cas_accepts_non_contiguous_ndarray_views",
            Elsewhere("tests/suite/views.rs::atomics_reach_views_with_strides"),
        ),
        (
            "test_debug: test_device_assert, test_device_assert_barrier",
            Elsewhere("tests/suite/debug.rs::a_failed_assertion_names_its_line_and_its_element"),
        ),
        (
            "test_debug: test_expect_zero_device_assert",
            Pointless("`device_assert(mask | (x == 0.0), ..)` says it, of any value"),
        ),
        (
            "test_debug: test_static_assert",
            Elsewhere("tests/suite/trace.rs::errors_come_all_at_once"),
        ),
        (
            "test_debug: test_sanitize_int_add_overflow, test_sanitize_int_mul_overflow, test_sanitize_int_sub_overflow",
            Elsewhere("tests/suite/overflow.rs::what_does_not_fit_is_an_error_with_its_line"),
        ),
        (
            "test_debug_dump: test_fn_dump",
            Elsewhere("src/shown.rs::each_kernel_has_a_folder_and_each_code_its_files"),
        ),
        (
            "test_debug_dump: test_version_info",
            Pointless("a version is that of the package"),
        ),
        (
            "test_debuginfo: test_triton_debuginfo_on",
            Partly(
                &Elsewhere("backends/nvptx/tests/codegen/lines.rs::lines_change_no_instruction"),
                "the names of local values, of which a trace has none: `device_print` shows a value under a name",
            ),
        ),
        (
            "test_link: test_link_extern_libs",
            Pointless("no library is linked"),
        ),
        (
            "test_perf_warning: test_mma_remark, test_remark_vectorization, test_remark_swp_op_before_operands",
            Pointless("no remark is made: a listing shows the schedule"),
        ),
        (
            "test_stages_inspection: test_inspection",
            Elsewhere("src/shown.rs::each_kernel_has_a_folder_and_each_code_its_files"),
        ),
        (
            "test_knobs: test_*",
            Pointless("few variables, each in the README"),
        ),
        (
            "test_aot: test_launcher_has_no_available_kernel",
            Elsewhere("tests/suite/built.rs::other_machines_kernels_and_levels_find_nothing"),
        ),
        (
            "test_aot: test_aot_target_parsing_with_explicit_target",
            Elsewhere("tests/suite/built.rs::the_command_builds_kernels_and_lists_them"),
        ),
        (
            "test_aot: test_ttgir_to_asm",
            Elsewhere("tests/suite/cli.rs::a_dumped_stage_is_a_kernel_again"),
        ),
        (
            "test_aot: test_compile_link_matmul_no_specialization, test_compile_link_matmul, test_compile_link_autotune_matmul",
            Pointless(
                "no launcher in C is written: code that was built ahead is launched by a Rust program, which knows its signature",
            ),
        ),
        (
            "test_disasm: test_disam_cubin, test_extract_handles_large_instruction_offsets",
            Elsewhere("tests/suite/examples.rs::examples_assemble_as_recorded"),
        ),
        (
            "test_irsource: test_mlir_attribute_parsing",
            Elsewhere("tests/suite/cli.rs::a_dumped_stage_is_a_kernel_again"),
        ),
        (
            "test_linear_layout: test_identity_1d, test_zeros_1d, test_identity_2d, test_operator_mul_identity, test_operator_mul_disjoint_dims, test_compose, test_invert, test_invert_and_compose",
            Elsewhere("dsl-core/src/layout/shape_tests.rs::a_product_divides_again"),
        ),
        (
            "test_linear_layout: test_get_matrix_view_identity, test_get_matrix_view_strided, test_get_matrix_view_from_bases",
            Pointless("a layout is printed by its columns, not as a matrix"),
        ),
        (
            "test_functional_regressions: test_chained_matmul, test_vecmat, test_iv_dependent_matmul, test_permutation_ptxas_bug",
            Runs("forms of products"),
        ),
        (
            "test_functional_regressions: test_reverse_range",
            Runs("loops downwards"),
        ),
        (
            "test_functional_regressions: test_inductor_cummax_bool",
            Partly(
                &Runs("scans of flags"),
                "the places of the flags: a scan of pairs gives those of numbers, in the case `scans`",
            ),
        ),
        (
            "test_cast_matmul: test_cast_matmul",
            Partly(
                &Runs("products"),
                "products of two types, of which one is converted before",
            ),
        ),
        (
            "python/triton_kernels/tests: all",
            Pointless(
                "a library of kernels for mixtures of experts: those here have tests of their own",
            ),
        ),
        (
            "python/test/gsan: all",
            Partly(
                &Elsewhere(
                    "dsl-core/src/interp/lane/tests.rs::a_barrier_orders_shared_memory_and_its_absence_is_a_race",
                ),
                "global memory, in which no race between programs is looked for",
            ),
        ),
        (
            "third_party/proton/test: all",
            Pointless(
                "the commands of another profiler: `profile` and its timeline have tests of their own",
            ),
        ),
    ],
)];
