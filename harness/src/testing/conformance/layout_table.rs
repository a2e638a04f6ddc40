//! The cases of layouts, of sanitizers and of single reports, and those of files that are no Python.

use super::Outcome::{Elsewhere, Partly, Pointless, Runs};
use super::Section;

/// The cases, by the part of the suite.
pub(super) const SECTIONS: &[Section] = &[
    (
        "Regressions by number",
        &[
            (
                "regressions: #10597 (overflow of a word that becomes a float below 1)",
                Runs("random numbers"),
            ),
            (
                "regressions: #11148, #11153 (stores of one program around an exchange between lanes)",
                Runs("stores of one program"),
            ),
            (
                "regressions: #10697 (argmax with NaN and ties)",
                Runs("special values"),
            ),
            ("regressions: #5439 (flip with infinity)", Runs("joins")),
            (
                "regressions: #1601 (two products in a loop)",
                Runs("forms of products"),
            ),
            (
                "regressions: #2523 (products of two types)",
                Runs("products"),
            ),
            (
                "regressions: #1508 (reductions over different axes)",
                Runs("reductions along axes"),
            ),
            (
                "regressions: #10919, #10923, #10945, #11584 (arithmetic of bool and bf16 in an interpreter)",
                Runs("arithmetic"),
            ),
            (
                "regressions: #5745 (a conversion wider than the scratch of a round)",
                Elsewhere(
                    "dsl-core/src/layout/shape_tests.rs::reduce_reshape_reshape_broadcast_of_1_8_4",
                ),
            ),
            (
                "regressions: #5265 (chained products of bf16 by eight warps)",
                Elsewhere("tests/filetests/schedule/chained.bir"),
            ),
            (
                "regressions: #8328, #8655 (rounds of a conversion)",
                Elsewhere(
                    "dsl-core/src/layout/conversion_tests.rs::random_pairs_convert_without_bank_conflicts",
                ),
            ),
            (
                "regressions: #9517, #11767 (histogram by atomics in shared memory)",
                Runs("histograms"),
            ),
            (
                "regressions: #4914, #6647 (wrong code of that compiler)",
                Elsewhere(
                    "tests/suite/programs.rs::every_way_to_run_a_program_gives_the_same_bits",
                ),
            ),
        ],
    ),
    (
        "Lit and C++",
        &[
            (
                "lit and C++: LinearLayoutTest.cpp, LinearLayoutConversionsTest.cpp",
                Elsewhere("dsl-core/src/layout/shape_tests.rs::shape_ops_carry_layouts_both_ways"),
            ),
            (
                "lit and C++: SwizzleTest.cpp, cvt_to_llvm.mlir",
                Elsewhere(
                    "dsl-core/src/layout/conversion_tests.rs::random_pairs_convert_without_bank_conflicts",
                ),
            ),
            (
                "lit and C++: test-membar.mlir",
                Elsewhere(
                    "dsl-core/src/interp/lane/tests.rs::a_barrier_orders_shared_memory_and_its_absence_is_a_race",
                ),
            ),
            (
                "lit and C++: test-allocation.mlir, test-alias.mlir",
                Elsewhere("tests/filetests/passes/allocate.bir"),
            ),
            (
                "lit and C++: tritongpu_to_llvm.mlir, reduce_to_llvm.mlir, scan_to_llvm.mlir, triton_to_tritongpu.mlir, tma_to_llvm.mlir, test-alignment.mlir",
                Pointless(
                    "snapshots of the IR of another compiler; tests/filetests states ours, stage by stage",
                ),
            ),
            (
                "lit and C++: combine.mlir, canonicalize.mlir, loop-invariant-code-motion.mlir, loop-peeling.mlir, loop-unroll.mlir, reorder-broadcast.mlir, rewrite-tensor-descriptor-to-pointer.mlir, verify-make-range.mlir, invalid.mlir",
                Pointless(
                    "snapshots of the IR of another compiler; tests/filetests states ours, stage by stage",
                ),
            ),
            (
                "lit and C++: coalesce.mlir, accelerate-matmul.mlir, dot-operands.mlir, optimize-locality.mlir, loop-pipeline.mlir, loop-schedule.mlir, prefetch.mlir, reorder-instructions.mlir, reduce-data-duplication.mlir, fuse-nested-loops.mlir",
                Pointless(
                    "snapshots of the IR of another compiler; tests/filetests states ours, stage by stage",
                ),
            ),
            (
                "lit and C++: DumpLayoutTest.cpp, DialectTest.cpp, PaddedTest.cpp, LayoutUtilsTest.cpp, UtilityTest.cpp",
                Pointless("functions of that compiler which have no counterpart"),
            ),
        ],
    ),
    (
        "Layouts",
        &[
            (
                "gluon test_lowerings: test_reduce_funky_layout, test_reduce_layouts, test_store_layouts",
                Partly(
                    &Elsewhere("tests/filetests/schedule/stated.bir"),
                    "most of its layouts: there is one of each kind",
                ),
            ),
            (
                "gluon test_lowerings: test_scan_layouts, test_scan_blocked_broadcast_layout, test_scan_blocked_broadcast_layout_multiblock, test_histogram",
                Partly(
                    &Elsewhere("tests/filetests/schedule/stated.bir"),
                    "most of its layouts: there is one of each kind",
                ),
            ),
            (
                "gluon test_lowerings: test_gather_layouts",
                Partly(
                    &Elsewhere("tests/filetests/schedule/gather_mixed.bir"),
                    "most of its layouts: there is one of each kind",
                ),
            ),
            (
                "gluon test_lowerings: test_convert1d_layouts, test_convert2d_layouts, test_convert_mma2mma_layouts, test_convert_warp_local_layouts, test_regress_warp_shuffle_convert_layout",
                Elsewhere(
                    "dsl-core/src/layout/conversion_tests.rs::random_pairs_convert_without_bank_conflicts",
                ),
            ),
            (
                "gluon test_lowerings: test_elementwise_generic_linear, test_reshape_generic_linear, test_split_join_generic_linear, test_expand_dims_generic_linear, test_permute_generic_linear, test_broadcast_generic_linear",
                Elsewhere("dsl-core/src/layout/shape_tests.rs::shape_ops_carry_layouts_both_ways"),
            ),
            (
                "gluon test_lowerings: test_local_load_*, test_memdesc_subslice",
                Pointless("shared memory has no construct"),
            ),
            (
                "gluon test_lowerings: test_convert_1d_to_2d_slice_cga, test_atomic_poll_two_ctas, test_cluster_barrier_in_warp_specialize, test_convert_layout_cross_cta_in_warp_specialize, test_memdesc_subslice_two_cta_broadcasted_cga",
                Pointless("clusters of thread blocks have no construct"),
            ),
            (
                "gluon test_core: test_copy_kernel",
                Elsewhere("tests/filetests/schedule/stated.bir"),
            ),
            (
                "gluon test_core: test_2d_tensor_early_return",
                Runs("branches"),
            ),
            (
                "gluon test_core: test_noinline_call_preserves_live_shared_allocation",
                Pointless("functions are traced into their callers"),
            ),
            (
                "gluon test_core: test_async_shared_store, test_async_shared_store_packed_f16, test_tma, test_proxy_fence_noinline_tma_store, test_async_copy_mbarrier, test_device_tma_load, test_device_tma_store, test_tma_slice, test_descriptor_shape",
                Elsewhere("tests/suite/boxes.rs::boxes_have_the_bits_of_the_cpu"),
            ),
            (
                "gluon test_core: test_gluon_tma_round_f32_to_tf32",
                Runs("packed numbers"),
            ),
            (
                "gluon test_core: test_copy_kernel_multi_cta, test_local_store_transposed_cga_to_non_transposed_alloc, test_tma_im2col, test_tma_multicast_copy, test_cross_cta_tma, test_mbarrier_arrive_multicast, test_mbarrier_arrive_broadcast_one_cta",
                Pointless("clusters of thread blocks, multicast and im2col have no construct"),
            ),
            (
                "gluon test_core: test_warpgroup_mma, test_warpgroup_mma_wait_synchronizes_warpgroups, test_mma_shared_inputs, test_tma_mma_shared_inputs",
                Partly(
                    &Elsewhere("tests/filetests/lanes/group_mma.bir"),
                    "most of its schedules and layouts",
                ),
            ),
            (
                "gluon test_core: test_mma_v2, test_dot_fma",
                Runs("products"),
            ),
            (
                "gluon test_core: test_dot3d_fma",
                Runs("batches of products"),
            ),
            (
                "gluon test_core: test_packed_arith, test_packed_arith_reduction, test_packed_arith_chains",
                Pointless("pairs of numbers in a register are the backend's choice"),
            ),
            (
                "gluon test_core: test_math_fast_expf, test_math_fast_dividef",
                Elsewhere("tests/suite/approximate.rs::they_are_near_where_they_are_allowed"),
            ),
            (
                "gluon test_core: test_auto_layout_constant, test_split_auto_layout_execution, test_coalesced_layout, test_convert_auto_layout_to_coalesced_layout",
                Elsewhere("tests/filetests/schedule/assign.bir"),
            ),
            (
                "gluon test_core: test_in_thread_convert_layout_8bit",
                Elsewhere(
                    "dsl-core/src/layout/conversion_tests.rs::random_pairs_convert_without_bank_conflicts",
                ),
            ),
            (
                "gluon test_core: test_multibuffer_prefix_subslice, test_slice_reinterpret, test_padded_shared_layout_subslice, test_shared_subslice_swizzled_register_block",
                Pointless("shared memory has no construct"),
            ),
            (
                "gluon test_core: test_shared_gather, test_shared_scatter, test_scatter_gather_multiwarp, test_gather_*, test_scatter_2d_native, test_scatter_3d_native, test_scatter_subslice_2d, test_scatter_padded, test_scatter_padded_subslice",
                Pointless("shared memory has no construct"),
            ),
            (
                "gluon test_core: test_shared_atomic_scatter_rmw, test_shared_atomic_scatter_rmw_broadcast",
                Pointless("shared memory has no construct"),
            ),
            (
                "gluon test_frontend: test_bank_conflicts",
                Partly(
                    &Elsewhere(
                        "dsl-core/src/layout/conversion_tests.rs::random_pairs_convert_without_bank_conflicts",
                    ),
                    "layouts of shared memory that an author writes",
                ),
            ),
            (
                "gluon test_frontend: test_linear_layout, test_dot_operand_layout, test_to_linear_layout, test_reshape_linear_layout",
                Elsewhere("dsl-core/src/layout/shape_tests.rs::shape_ops_carry_layouts_both_ways"),
            ),
            (
                "gluon test_frontend: test_simple_ops, test_histogram_frontend, test_broadcast, test_math, test_libdevice, test_libdevice_implicit_broadcast, test_reduce, test_elementwise_core, test_tensor_permute, test_split_join, test_split_auto_layout, test_tensor_reshape, test_static_assert, test_inline_asm_elementwise, test_load, test_split_join_subtile, test_atomic_rmw, test_atomic_rmw_scalar_masks, test_atomic_cas, test_non_scalar_loop_bounds, test_get_num_warps, test_num_ctas, test_num_warps_caller_context, test_auto_layout, test_auto_layout_broadcast, test_auto_layout_convert_store_val, test_auto_layout_convert_store_ptr, test_shared_memory, test_shared_memory_subview, test_shared_memory_index, test_shared_memory_permute, test_shared_memory_cast, test_shared_atomic_scatter_rmw, test_reinterpret_parent_then_multibuffer_subslice, test_padded_shared_layout, test_infer_layout_for_padded_shared, test_convert_padded_shared_with_multicta, test_barrier, test_fence_async_shared, test_mbarrier, test_ampere_mbarrier_arrive, test_async_shared_store, test_async_copy, test_async_tma, test_warpgroup_mma, test_warpgroup_mma_wait, test_warp_specialize, test_nv_tma_descriptor_load_kernel, test_nv_tma_descriptor_store_kernel, test_nv_tma_descriptor_reduce_kernel, test_packed_arith_reduce_frontend, test_packed_arith_reduce_warp_specialized_frontend, test_packed_arith_scalar_broadcast_frontend, test_packed_arith_frontend_errors",
                Pointless("snapshots of the IR of a language in which the author writes layouts"),
            ),
            (
                "gluon test_layout: test_shared_linear_layout_shape",
                Pointless("shared memory has no construct"),
            ),
            (
                "gluon test_layout_format_view: test_format_view_blocked_layout, test_format_view_distributed_linear_layout, test_format_view_slice_layout, test_format_view_nvmma_layout, test_format_view_dot_operand_layout",
                Partly(
                    &Elsewhere("tests/filetests/schedule/stated.bir"),
                    "the view of the tile",
                ),
            ),
            (
                "gluon test_layout_format_view: test_format_view_swizzled_shared_layout, test_format_view_nvmma_shared_layout, test_format_view_shared_linear_layout, test_format_view_padded_shared_layout, test_format_view_auto_layout, test_format_view_coalesced_layout, test_format_view_kernel",
                Pointless("only layouts of registers are values"),
            ),
        ],
    ),
    (
        "Sanitizers",
        &[
            (
                "gluon test_consan: test_cache_miss_knob, test_cache_miss_env, test_consan_uses_profile_scratch, test_consan_initializes_allocations_with_nan",
                Pointless(
                    "switches of a tool: lanes are interpreted where nobody asks, and memory is spoiled in tests",
                ),
            ),
            (
                "gluon test_consan: test_async_tma_kernel, test_async_tma_kernel_2bufs_1bar, test_async_tma_expect_bytes_mismatch, test_tma_interleave_kernel, test_tma_wait_tracks_only_waited_barrier, test_tma_wait_tracks_only_requested_phase, test_tma_wait_does_not_publish_overwritten_row, test_tma_overlapping_operations, test_async_copy, test_tma_store, test_multibuffered_loop",
                Elsewhere("tests/filetests/lanes/bulk.bir"),
            ),
            (
                "gluon test_consan: test_async_shared_store_expect_bytes, test_async_shared_store_completion, test_async_shared_store_split_recipients, test_async_shared_store_proxy_handoff",
                Pointless("one lane does not store into the shared memory of another thread block"),
            ),
            (
                "gluon test_consan: test_warpgroup_mma, test_warpgroup_mma2, test_multibuffered_wgmma_loop, test_mma_read_async_copy_write, test_mma_read_local_alloc_write",
                Elsewhere("tests/filetests/lanes/group_mma_faults.bir"),
            ),
            (
                "gluon test_consan: test_ws_wgmma_wait_visibility, test_reader_generation, test_reader_visibility_across_partitions, test_ws_join_write_visibility, test_ws_join_publishes_to_async_peer, test_ws_join_publishes_proxy_generation, test_ws_join_async_write_visibility, test_ws_store_wait_load, test_fence_async_shared_across_warp_specialize, test_ws_load_wait_store, test_ws_cluster_barrier_does_not_replace_local_handoff, test_ws_two_loads_two_bars, test_ws_two_loads_one_bar, test_ws_two_loads_two_bars_loop, test_ws_load_ordering, test_ws_two_producers_two_consumers, test_ws_different_warp_sizes, test_ws_async_copy_commits, test_ws_async_copy_wait_visibility",
                Elsewhere("tests/filetests/lanes/roles.bir"),
            ),
            (
                "gluon test_consan: test_deadlock_two_partitions, test_deadlock_with_padded_warp_specialize_partition, test_deadlock_after_other_partition_returns, test_deadlock_user_cluster_barrier_inside_warp_specialize, test_deadlock_overarrival, test_deadlock_underarrival, test_deadlock_different_phases, test_deadlock_exempt_when_tma_signals, test_barrier_underflow, test_payload_reuse_requires_barrier_invalidation, test_barrier_init_is_generic_write, test_async_copy_mbarrier_arrive_requires_init, test_barrier_invalidate_requires_completion_wait, test_barrier_reinit_requires_invalidate, test_barrier_use_without_init, test_barrier_use_after_invalidate",
                Elsewhere("tests/filetests/lanes/mbarriers.bir"),
            ),
            (
                "gluon test_consan: test_aliasing_shared_visibility_outstanding_write, test_aliasing_tma_overwrite_clears_stale_write_visibility, test_aliasing_commit_tracking",
                Elsewhere("tests/filetests/lanes/copies.bir"),
            ),
            (
                "gluon test_fpsan: test_*",
                Pointless("there is no sanitizer of floats: every result is compared in its bits"),
            ),
        ],
    ),
];
