//! The cases of files of few tests, and of products, pipelines and descriptors.

use super::Outcome::{Elsewhere, Partly, Pointless, Runs};
use super::Section;

/// The cases, by the part of the suite.
pub(super) const SECTIONS: &[Section] = &[
    (
        "Standard library",
        &[
            ("test_standard: test_maximum_minium", Runs("arithmetic")),
            ("test_standard: test_sort", Runs("sorts")),
            ("test_standard: test_flip", Runs("flips")),
            ("test_standard: test_flip_inf", Runs("joins")),
            ("test_standard: test_ravel", Runs("squares")),
            ("test_standard: test_swizzle2d", Runs("axes and places")),
            (
                "test_standard: test_squeeze, test_unsqueeze",
                Runs("axes and places"),
            ),
        ],
    ),
    (
        "Random numbers",
        &[
            (
                "test_random: test_randint, test_rand, test_randn",
                Partly(
                    &Runs("random numbers"),
                    "more than 2048 numbers at once, whose distribution a sharper test would judge",
                ),
            ),
            ("test_random: test_rand_limits", Runs("random numbers")),
        ],
    ),
    (
        "Small language files",
        &[
            (
                "test_annotations: test_float_annotation",
                Elsewhere("tests/suite/arguments.rs::every_number_is_a_parameter"),
            ),
            (
                "test_decorator: test_decorator_with_def",
                Pointless("decorators of Python"),
            ),
            (
                "test_decorator: test_triton_heuristic",
                Partly(
                    &Elsewhere(
                        "tests/suite/configure.rs::what_is_not_set_has_its_default_and_the_grid_follows",
                    ),
                    "numbers that follow from arguments, which the code of the host makes",
                ),
            ),
            (
                "test_libdevice: test_bessel",
                Partly(&Runs("Bessel functions"), "f64, which is refused by name"),
            ),
            (
                "test_libdevice: test_clz, test_popc",
                Elsewhere("tests/suite/bits.rs::bits_of_u32"),
            ),
            (
                "test_libdevice: test_isinf",
                Elsewhere("tests/suite/functions.rs::classes_of_singles"),
            ),
            (
                "test_libdevice: test_libdevice_rename",
                Pointless("imports of Rust have any name"),
            ),
            (
                "test_line_info: test_line_info, test_line_info_ir_source, test_line_info_env",
                Elsewhere("backends/nvptx/tests/codegen/lines.rs::lines_change_no_instruction"),
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
                "test_subprocess: test_print (lines of programs, masks, loops)",
                Elsewhere("tests/suite/print.rs::lines_come_by_program_and_then_in_order"),
            ),
            (
                "test_subprocess: test_print (types)",
                Partly(
                    &Elsewhere("tests/suite/print.rs::numbers_of_every_type_are_shown"),
                    "pointers",
                ),
            ),
            (
                "test_reproducer: test_triton_reproducer_path",
                Elsewhere("tests/suite/cli.rs::a_dumped_stage_is_a_kernel_again"),
            ),
            (
                "test_mxfp: TestMXFP4Tensor.test_zero_values, TestMXFP4Tensor.test_out_of_range_values, TestMXFP4Tensor.test_subnormal_numbers, TestMXFP4Tensor.test_rounding_edge_cases, TestMXFP4Tensor.test_negative_values, TestMXFP4Tensor.test_negative_out_of_range, TestMXFP4Tensor.test_packing",
                Runs("packed numbers"),
            ),
            (
                "test_mxfp: TestMXFP4Tensor.test_roundtrip, TestMXFP4Tensor.test_packed_tensor",
                Elsewhere("tests/suite/scaled.rs::bytes_hold_two_floats"),
            ),
            (
                "test_mxfp: TestMXFP4Tensor.test_padding, TestMXFP4Tensor.test_packing_with_padding, TestMXFP4Tensor.test_invalid_packing_dimension, TestMXFP4Tensor.test_empty_tensor",
                Pointless(
                    "a class of Python: packing is of the last axis, whose extent is a power of two",
                ),
            ),
            (
                "test_mxfp: TestMXScaleTensor.test_positive_values, TestMXScaleTensor.test_special_values, TestMXScaleTensor.test_e8m0_nan_to_float_nan, TestMXScaleTensor.test_roundtrip",
                Elsewhere("tests/suite/scaled.rs::blocks_of_e4m3_in_singles"),
            ),
            (
                "test_mxfp: TestMXScaleTensor.test_random_generation",
                Pointless("a generator of random arrays of Python"),
            ),
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
                Elsewhere("backends/nvptx/tests/codegen/lowered.rs::every_gpu_has_code"),
            ),
            (
                "test_tuple: test_index, test_assign, test_assign_return, test_serialize, test_namedtuple, test_passing_tuple_with_constexpr, test_passing_tuple_with_mixed_constexpr_and_non_constexpr_values, test_passing_nested_tuple_with_constexpr, test_passing_tuple_to_make_tensor_descriptor, test_tuple_float, test_constexpr_tuple_arg_unpack, test_constexpr_nested_tuple_arg_unpack, test_constexpr_tuple_arg_subscript",
                Elsewhere("tests/suite/arguments.rs::structures_tuples_and_arrays_are_parameters"),
            ),
            (
                "test_tuple: test_eq, test_add, test_tuple_logic, test_tuple_constexpr_function, test_passing_nested_tuple_with_constexpr_and_jit_hook",
                Pointless("tuples are those of Rust"),
            ),
            (
                "test_tuple: test_modifying_tuples",
                Pointless("elements of a tuple of Rust may change"),
            ),
        ],
    ),
    (
        "Matrix products, pipelines, descriptors",
        &[
            (
                "test_matmul: test_simple_matmul, test_simple_persistent_matmul",
                Partly(
                    &Elsewhere("kernels/tests/kernels.rs::matrices_are_multiplied"),
                    "f16, bf16 and fp8, which `exactile bench` compares on a GPU",
                ),
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
                Runs("tensors of every type"),
            ),
            (
                "test_tensor_descriptor: test_tensor_descriptor_load_nd, test_tensor_descriptor_store_nd",
                Partly(
                    &Runs("buffers and strides"),
                    "ranks 1 and 2, which the case `tensors of every type` has, and 4, between those that run",
                ),
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
                "test_tensor_descriptor: test_make_tensor_descriptor_matmul, test_make_tensor_descriptor_loop_carried",
                Elsewhere("tests/suite/parts.rs::pages_are_tensors_that_the_kernel_makes"),
            ),
            (
                "test_tensor_descriptor: test_tensor_descriptor_return_value",
                Runs("tensors that change"),
            ),
            (
                "test_tensor_descriptor: test_tensor_descriptor_batched_gemm_2d_tma, test_tensor_descriptor_batched_gemm_3d_tma",
                Elsewhere("tests/suite/products.rs::batches_are_multiplied"),
            ),
            (
                "test_tensor_descriptor: test_host_tensor_descriptor_matmul",
                Elsewhere("kernels/tests/kernels.rs::matrices_are_multiplied"),
            ),
            (
                "test_tensor_descriptor: test_tensor_descriptor_rank_reducing_load",
                Elsewhere("tests/suite/parts.rs::parts_end_where_their_tensor_does"),
            ),
            (
                "test_tensor_descriptor: test_tensor_descriptor_rank_reducing_matmul, test_tensor_descriptor_reshape_matmul",
                Runs("forms of products"),
            ),
            (
                "test_tensor_descriptor: test_tensor_descriptor_reduce",
                Partly(
                    &Runs("atomics on tiles"),
                    "extremes of f16 and bf16, for one of which GPUs have no atomic",
                ),
            ),
            (
                "test_tensor_descriptor: test_tensor_descriptor_store_downcast",
                Pointless("types are converted by name"),
            ),
            (
                "test_tma_descriptor: test_ragged_tma",
                Elsewhere("tests/suite/parts.rs::pages_are_tensors_that_the_kernel_makes"),
            ),
            (
                "test_tma_descriptor: test_tma_descriptor_round_f32_to_tf32",
                Runs("packed numbers"),
            ),
            (
                "test_tensor_descriptor_cuda: test_specialization_after_host_tensordesc",
                Pointless("the signature says the types"),
            ),
            (
                "test_libdevice_cuda: test_math_extern",
                Partly(
                    &Runs("functions"),
                    "sine and cosine of f64, whose errors `dsl-core/src/semantics/tests/derived.rs` holds",
                ),
            ),
            (
                "test_libdevice_cuda: test_fpsan_libdevice_unary_equivalence, test_fpsan_libdevice_div_rn_equivalence, test_fpsan_libdevice_fma_equivalence",
                Pointless("there is no sanitizer of floats: every result is compared in its bits"),
            ),
            (
                "test_libdevice_cuda: test_fpsan_distinguishes_approximate_libdevice",
                Elsewhere("tests/suite/approximate.rs::exact_refuses_them_with_their_line"),
            ),
            (
                "test_denorm_cuda: test_linked_function_preserves_denorms",
                Runs("functions"),
            ),
            (
                "test_warp_specialization: test_warpgroup_reduction, test_warp_specialize_tma_matmul, test_warp_specialize_tma_matmul_persistent",
                Pointless("a schedule, which never changes a result"),
            ),
            (
                "test_warp_specialization: test_warp_specialize_basic_ir, test_warp_specialize_tma_matmul_consan, test_warp_specialize_tma_matmul_persistent_consan",
                Pointless("a schedule, which never changes a result"),
            ),
            (
                "triton-cpu test_block_pointer: test_block_copy, test_block_copy2d, test_block_ptr_rank_3, test_block_ptr_dtype_element_ty",
                Partly(
                    &Runs("tensors of every type"),
                    "padding by NaN, which `tests/filetests/memory/tensors.bir` has by `other`",
                ),
            ),
            (
                "triton-cpu test_block_pointer: test_block_ptr_matmul_no_scf",
                Elsewhere("kernels/tests/kernels.rs::matrices_are_multiplied"),
            ),
        ],
    ),
];
