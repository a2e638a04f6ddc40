//! The cases beside the language: files of few tests, products, descriptors, runtime, layouts.

use super::Outcome::{Elsewhere, NotYet, Pointless, Runs};
use super::Section;

/// The cases, by the part of the suite.
pub(super) const SECTIONS: &[Section] = &[
    (
        "Small language files",
        &[
            (
                "test_annotations: test_float_annotation",
                Elsewhere("tests/suite/arguments.rs::every_number_is_a_parameter"),
            ),
            (
                "test_decorator: test_decorator_with_def, test_triton_heuristic",
                Pointless("decorators of Python"),
            ),
            ("test_libdevice: test_bessel", Runs("Bessel functions")),
            (
                "test_libdevice: test_clz, test_popc",
                Elsewhere("tests/suite/bits.rs::bits_of_u32"),
            ),
            (
                "test_libdevice: test_isinf, test_libdevice_rename",
                Pointless("`x.abs() == f64::INFINITY` says it"),
            ),
            (
                "test_line_info: test_line_info, test_line_info_ir_source, test_line_info_env",
                NotYet(
                    "machine code has no table of lines, so a profiler shows PTX; errors name lines by their own table",
                ),
            ),
            (
                "test_line_info: test_line_info_interpreter",
                Elsewhere(
                    "tests/suite/debug.rs::a_failed_assertion_names_its_line_and_its_element",
                ),
            ),
            (
                "test_line_info: test_line_and_column_numbers, test_while_block_arg_carries_init_handle_loc",
                Elsewhere("tests/suite/lines.rs::instructions_know_their_line_and_column"),
            ),
            (
                "test_line_info: test_use_name_loc_as_prefix",
                Pointless("values have numbers, arguments their names, instructions their places"),
            ),
            (
                "test_line_info: test_map_elementwise_has_lineinfo",
                Elsewhere("tests/suite/each.rs::what_a_map_does_knows_its_lines"),
            ),
            (
                "test_subprocess: test_print",
                Elsewhere("tests/suite/print.rs::lines_come_by_program_and_then_in_order"),
            ),
            (
                "test_reproducer: test_triton_reproducer_path",
                Elsewhere("tests/suite/cli.rs::a_dumped_stage_is_a_kernel_again"),
            ),
            ("test_mxfp: *", Runs("packed numbers")),
            (
                "test_compile_only: test_compile_only_sort_keeps_comparisons_boolean",
                Elsewhere("tests/suite/sort.rs::comparisons_of_a_sort_stay_flags"),
            ),
            (
                "test_compile_only: test_compile_only_expect_zero, test_compile_only_packed_arith_chains",
                Pointless("a construct of the PTX of later GPUs"),
            ),
            (
                "test_compile_only: test_signature_ordering",
                Pointless("arguments have an order"),
            ),
            (
                "test_compile_only: test_fp8_compiles_for_multiple_architectures_cuda",
                Elsewhere("tests/suite/ptx.rs::random_programs_assemble"),
            ),
            (
                "test_tuple: *",
                Elsewhere("tests/suite/arguments.rs::structures_tuples_and_arrays_are_parameters"),
            ),
        ],
    ),
    (
        "Matrix products, pipelines, descriptors",
        &[
            (
                "test_matmul: test_simple_matmul, test_simple_persistent_matmul",
                Elsewhere("kernels/tests/kernels.rs::matrices_are_multiplied"),
            ),
            (
                "test_matmul: test_i4_m_minor_join_bk16_matmul",
                Runs("forms of products"),
            ),
            (
                "test_pipeliner: test_pipeline_matmul, test_tma_load_unaligned_stage_size",
                Elsewhere("tests/suite/boxes.rs::boxes_have_the_bits_of_the_cpu"),
            ),
            ("test_pipeliner: test_pipeline_vecadd", Runs("pipelines")),
            (
                "test_pipeliner: test_pipeline_epilogue, test_conditional_store_pipeline",
                Runs("pipelines"),
            ),
            (
                "test_pipeliner: test_indirect_matmul",
                Elsewhere("tests/filetests/schedule/pipeline.bir"),
            ),
            (
                "test_tensor_descriptor: test_tensor_descriptor_load, test_tensor_descriptor_store, test_tensor_descriptor_load3d, test_tensor_descriptor_store3d, test_host_tensor_descriptor_load",
                Runs("buffers and strides"),
            ),
            (
                "test_tensor_descriptor: test_tensor_descriptor_load_nd, test_tensor_descriptor_store_nd",
                Runs("buffers and strides"),
            ),
            (
                "test_tensor_descriptor: test_tensor_descriptor_functional_interface, test_tensor_descriptor_in_function, test_tensor_descriptor_argument, test_host_tensor_descriptor_in_tuple",
                Elsewhere("tests/suite/arguments.rs::structures_tuples_and_arrays_are_parameters"),
            ),
            (
                "test_tensor_descriptor: test_tensor_descriptor_padding",
                Elsewhere("tests/filetests/memory/tensors.bir"),
            ),
            (
                "test_tensor_descriptor: test_make_tensor_descriptor_*",
                Elsewhere("tests/suite/parts.rs::pages_are_tensors_that_the_kernel_makes"),
            ),
            (
                "test_tensor_descriptor: test_tensor_descriptor_return_value",
                Runs("tensors that change"),
            ),
            (
                "test_tensor_descriptor: test_tensor_descriptor_batched_gemm_*, test_host_tensor_descriptor_matmul",
                Elsewhere("kernels/tests/kernels.rs::matrices_are_multiplied"),
            ),
            (
                "test_tensor_descriptor: test_tensor_descriptor_rank_reducing_*",
                Elsewhere("tests/suite/parts.rs::parts_end_where_their_tensor_does"),
            ),
            (
                "test_tensor_descriptor: test_tensor_descriptor_reshape_matmul",
                Runs("forms of products"),
            ),
            (
                "test_tensor_descriptor: test_tensor_descriptor_reduce",
                Runs("atomics on tiles"),
            ),
            (
                "test_tensor_descriptor: test_tensor_descriptor_store_downcast",
                Pointless("types are converted by name"),
            ),
            ("test_tma_descriptor: *", Runs("packed numbers")),
            (
                "test_tensor_descriptor_cuda: *",
                Elsewhere("tests/suite/boxes.rs::boxes_have_the_bits_of_the_cpu"),
            ),
            ("test_libdevice_cuda: test_math_extern", Runs("functions")),
            (
                "test_libdevice_cuda: test_fpsan_*",
                Pointless("there are no approximate functions in exact mode"),
            ),
            (
                "test_denorm_cuda: test_linked_function_preserves_denorms",
                Runs("functions"),
            ),
            (
                "test_warp_specialization: *",
                Pointless("a schedule, which never changes a result"),
            ),
            ("test_block_pointer: *", Runs("buffers and strides")),
        ],
    ),
    (
        "Runtime and tools",
        &[
            (
                "test_autotuner: *",
                Elsewhere("tests/suite/autotune.rs::the_fastest_right_candidate_wins"),
            ),
            (
                "test_autotune_listener: *",
                Pointless("the tuner returns what it measured"),
            ),
            (
                "test_cache: keys",
                Elsewhere(
                    "tests/suite/kept.rs::what_code_relies_on_is_part_of_the_key_and_lines_are_not",
                ),
            ),
            (
                "test_cache: use, globals and closures",
                Pointless("names of Python"),
            ),
            (
                "test_cache: files, preload, async",
                Elsewhere(
                    "tests/suite/kept.rs::another_process_runs_neither_the_lowering_nor_llvm",
                ),
            ),
            (
                "test_cache: test_module_load_unload",
                Pointless(
                    "code is unloaded with the last kernel that needs it, and no hook sees it",
                ),
            ),
            (
                "test_cache_determinism: *",
                Elsewhere(
                    "tests/suite/kept.rs::another_process_runs_neither_the_lowering_nor_llvm",
                ),
            ),
            (
                "test_compilation_listener: test_compile_stats",
                Elsewhere("tests/suite/cli.rs::the_stages_of_compilations_are_timed"),
            ),
            (
                "test_specialize: *",
                Pointless("the signature says the types"),
            ),
            (
                "test_launch: *",
                Elsewhere("tests/suite/launch.rs::results_come_back"),
            ),
            (
                "test_driver: *",
                Elsewhere("tests/suite/runtime.rs::launches_are_queued"),
            ),
            (
                "test_subproc: *",
                Elsewhere("tests/suite/kept.rs::processes_and_threads_share_a_folder"),
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
                "test_debug: test_device_assert*",
                Elsewhere(
                    "tests/suite/debug.rs::a_failed_assertion_names_its_line_and_its_element",
                ),
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
                "test_debug: test_sanitize_int_*_overflow",
                Pointless("integers wrap, in every mode"),
            ),
            (
                "test_debug_dump, test_debuginfo, test_link, test_perf_warning, test_stages_inspection: *",
                Elsewhere("src/shown.rs::each_kernel_has_a_folder_and_each_code_its_files"),
            ),
            (
                "test_knobs: *",
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
                "test_aot: test_compile_link_*",
                Pointless(
                    "no launcher in C is written: code that was built ahead is launched by a Rust program, which knows its signature",
                ),
            ),
            (
                "test_disasm, test_irsource: *",
                Elsewhere("tests/suite/ptx.rs::random_programs_assemble"),
            ),
            (
                "test_linear_layout: *",
                Elsewhere("dsl-core/src/layout/shape_tests.rs::shape_ops_carry_layouts_both_ways"),
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
                Runs("scans of flags"),
            ),
            ("test_cast_matmul: test_cast_matmul", Runs("products")),
        ],
    ),
    (
        "Regressions by number",
        &[
            (
                "#10597: overflow of a word that becomes a float below 1",
                Runs("random numbers"),
            ),
            (
                "#11148, #11153: stores of one program around an exchange between lanes",
                Runs("stores of one program"),
            ),
            ("#10697: argmax with NaN and ties", Runs("special values")),
            ("#5439: flip with infinity", Runs("joins")),
            ("#1601: two products in a loop", Runs("forms of products")),
            ("#2523: products of two types", Runs("products")),
            (
                "#4914, #6647: wrong code of that compiler",
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
                "LinearLayoutTest.cpp, LinearLayoutConversionsTest.cpp",
                Elsewhere("dsl-core/src/layout/shape_tests.rs::a_product_divides_again"),
            ),
            (
                "SwizzleTest.cpp, convert_layout in tritongpu_to_llvm.mlir",
                Elsewhere(
                    "dsl-core/src/layout/conversion_tests.rs::random_pairs_convert_without_bank_conflicts",
                ),
            ),
            (
                "test-membar.mlir",
                Elsewhere(
                    "dsl-core/src/interp/lane/tests.rs::a_barrier_orders_shared_memory_and_its_absence_is_a_race",
                ),
            ),
            (
                "other files of test/Conversion, test/TritonGPU, test/Analysis, test/Triton",
                Pointless(
                    "snapshots of the IR of another compiler; tests/filetests states ours, stage by stage",
                ),
            ),
            (
                "DumpLayoutTest.cpp, DialectTest.cpp, PaddedTest.cpp, LayoutUtilsTest.cpp, UtilityTest.cpp",
                Pointless("functions of that compiler which have no counterpart"),
            ),
        ],
    ),
    (
        "Layouts",
        &[
            (
                "test_lowerings: test_reduce_*, test_store_layouts, test_gather_layouts",
                Elsewhere("tests/filetests/schedule/stated.bir"),
            ),
            (
                "test_lowerings: test_scan_*, test_histogram",
                Elsewhere("tests/filetests/schedule/stated.bir"),
            ),
            (
                "test_lowerings: test_convert*, test_regress_warp_shuffle_convert_layout",
                Elsewhere(
                    "dsl-core/src/layout/conversion_tests.rs::random_pairs_convert_without_bank_conflicts",
                ),
            ),
            (
                "test_lowerings: test_*_generic_linear",
                Elsewhere("tests/filetests/schedule/stated.bir"),
            ),
            (
                "test_lowerings: test_local_load_*, test_memdesc_subslice",
                Pointless("shared memory has no construct"),
            ),
            (
                "test_lowerings: clusters",
                Pointless("clusters of thread blocks have no construct"),
            ),
            (
                "test_core of Gluon: copies, calls, layouts",
                Elsewhere("tests/filetests/schedule/stated.bir"),
            ),
            (
                "test_core of Gluon: asynchronous copies, TMA",
                Elsewhere("tests/suite/boxes.rs::boxes_have_the_bits_of_the_cpu"),
            ),
            ("test_core of Gluon: wgmma, mma", Runs("products")),
            (
                "test_core of Gluon: packed arithmetic",
                Pointless("pairs of numbers in a register are the backend's choice"),
            ),
            (
                "test_core of Gluon: fast math",
                Pointless("approximate functions come with a level of determinism, not by name"),
            ),
            (
                "test_core of Gluon: shared memory views, shared gather and scatter, shared atomics",
                Pointless("shared memory has no construct"),
            ),
            (
                "test_core of Gluon: multicast, clusters, Blackwell, AMD",
                Pointless("clusters, tensor memory and other machines have no construct"),
            ),
            (
                "test_frontend of Gluon: test_bank_conflicts",
                Elsewhere(
                    "dsl-core/src/layout/conversion_tests.rs::random_pairs_convert_without_bank_conflicts",
                ),
            ),
            (
                "test_frontend of Gluon: test_linear_layout, test_dot_operand_layout, test_to_linear_layout, test_reshape_linear_layout",
                Elsewhere("dsl-core/src/layout/shape_tests.rs::shape_ops_carry_layouts_both_ways"),
            ),
            (
                "test_frontend of Gluon: others",
                Pointless("snapshots of the IR of a language in which the author writes layouts"),
            ),
            (
                "test_layout: test_shared_linear_layout_shape",
                Pointless("shared memory has no construct"),
            ),
            (
                "test_layout_format_view: test_format_view_blocked_layout, test_format_view_distributed_linear_layout, test_format_view_slice_layout, test_format_view_nvmma_layout, test_format_view_dot_operand_layout",
                Elsewhere("tests/filetests/schedule/stated.bir"),
            ),
            (
                "test_layout_format_view: *_shared_*, test_format_view_auto_layout, test_format_view_coalesced_layout, test_format_view_kernel",
                Pointless(
                    "only layouts of registers are values, and their text is the hardware view alone",
                ),
            ),
            (
                "convert_layout wider than the scratch of a round",
                Elsewhere(
                    "dsl-core/src/layout/conversion_tests.rs::random_pairs_convert_without_bank_conflicts",
                ),
            ),
            ("histogram by atomics in shared memory", Runs("histograms")),
            (
                "triton_kernels, gsan, proton: *",
                Pointless("libraries and tools beside the language"),
            ),
        ],
    ),
];
