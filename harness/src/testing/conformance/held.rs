//! Where the tests run that hold cases to account, and how they judge.

/// A test of this repository that holds cases to account.
pub struct Held {
    /// `path::function`, or the path of a filetest.
    pub test: &'static str,
    types: &'static str,
    interpreter: &'static str,
    cpu: &'static str,
    code: &'static str,
    gpu: &'static str,
    judged: &'static str,
}

impl Held {
    /// The types, the interpreter, the CPU, the code of a GPU, a GPU, and how it is judged.
    pub(super) fn cells(&self) -> [&'static str; 6] {
        [
            self.types,
            self.interpreter,
            self.cpu,
            self.code,
            self.gpu,
            self.judged,
        ]
    }
}

macro_rules! held {
    ($($test:literal: $types:literal, $interpreter:literal $cpu:literal $code:literal $gpu:literal, $judged:literal;)*) => {
        /// All tests that rows name. One of a tool has no columns.
        pub const HELD: &[Held] = &[$(Held {
            test: $test,
            types: $types,
            interpreter: $interpreter,
            cpu: $cpu,
            code: $code,
            gpu: $gpu,
            judged: $judged,
        }),*];
    };
}

held! {
    "backends/nvptx/tests/codegen/lines.rs::lines_change_no_instruction":
        "f32", "" "" "assembled" "", "instructions";
    "backends/nvptx/tests/codegen/lowered.rs::every_gpu_has_code":
        "f32, bf16", "" "" "assembled" "", "instructions";
    "backends/nvptx/tests/codegen/lowered.rs::threads_use_no_more_registers_than_asked_for":
        "f32", "" "" "assembled" "", "registers";
    "dsl-core/src/interp/lane/tests.rs::a_barrier_orders_shared_memory_and_its_absence_is_a_race":
        "i32", "" "" "lanes" "", "bits";
    "dsl-core/src/layout/conversion_tests.rs::random_pairs_convert_without_bank_conflicts":
        "8 to 64 bits", "" "" "layouts" "", "every element arrives";
    "dsl-core/src/layout/shape_tests.rs::a_product_divides_again":
        "", "" "" "layouts" "", "equal layouts";
    "dsl-core/src/layout/shape_tests.rs::reduce_reshape_reshape_broadcast_of_1_8_4":
        "", "" "" "layouts" "", "equal layouts";
    "dsl-core/src/layout/shape_tests.rs::shape_ops_carry_layouts_both_ways":
        "", "" "" "layouts" "", "equal layouts";
    "dsl-core/src/semantics/tests/derived.rs::errors_stay_within_the_table":
        "f32, f64", "yes" "" "" "", "the errors of OPS.md";
    "kernels/tests/kernels.rs::matrices_are_multiplied":
        "f32", "" "yes" "lanes" "not yet run", "the tolerance of f32";
    "src/shown.rs::each_kernel_has_a_folder_and_each_code_its_files":
        "", "" "" "" "", "";
    "tests/filetests/lanes/bulk.bir":
        "f32", "" "" "lanes" "", "bits, and what is refused";
    "tests/filetests/lanes/copies.bir":
        "f32", "" "" "lanes" "with the filetests", "bits, and what is refused";
    "tests/filetests/lanes/group_mma.bir":
        "bf16", "" "" "lanes" "with the filetests", "bits";
    "tests/filetests/lanes/group_mma_faults.bir":
        "bf16", "" "" "lanes" "", "what is refused";
    "tests/filetests/lanes/mbarriers.bir":
        "f32", "" "" "lanes" "", "bits, and what is refused";
    "tests/filetests/lanes/roles.bir":
        "i32", "" "" "lanes" "", "bits, and what is refused";
    "tests/filetests/memory/tensors.bir":
        "i32, f32, f64", "yes" "yes" "lanes" "with the filetests", "bits";
    "tests/filetests/passes/allocate.bir":
        "f32", "" "" "assembled" "", "the text of the stage";
    "tests/filetests/schedule/assign.bir":
        "f32", "yes" "" "assembled" "", "the text of the stage";
    "tests/filetests/schedule/chained.bir":
        "bf16", "yes" "yes" "lanes" "with the filetests", "bits, and the text of the stage";
    "tests/filetests/schedule/gather_mixed.bir":
        "f32", "yes" "" "lanes" "with the filetests", "bits";
    "tests/filetests/schedule/pipeline.bir":
        "f32", "yes" "" "assembled" "", "bits, and the text of the stage";
    "tests/filetests/schedule/stated.bir":
        "i32, f32", "yes" "yes" "lanes" "with the filetests", "bits";
    "tests/suite/accumulators.rs::any_combine_has_the_bits_of_one_tile":
        "f32", "yes" "yes" "lanes" "yes", "bits";
    "tests/suite/approximate.rs::exact_refuses_them_with_their_line":
        "f32", "" "" "" "", "errors";
    "tests/suite/approximate.rs::they_are_near_where_they_are_allowed":
        "f32", "" "yes" "lanes" "yes", "the errors that are stated";
    "tests/suite/arguments.rs::every_number_is_a_parameter":
        "all types", "yes" "yes" "lanes" "yes", "bits";
    "tests/suite/arguments.rs::structures_tuples_and_arrays_are_parameters":
        "f32", "yes" "yes" "lanes" "yes", "bits";
    "tests/suite/autotune.rs::candidates_that_do_not_compile_keep_their_reason":
        "", "" "" "" "", "";
    "tests/suite/autotune.rs::no_right_candidate_is_an_error_that_says_why":
        "", "" "" "" "", "";
    "tests/suite/autotune.rs::the_fastest_right_candidate_wins":
        "", "" "" "" "", "";
    "tests/suite/bits.rs::bits_of_u32":
        "u32", "yes" "yes" "lanes" "yes", "bits";
    "tests/suite/boxes.rs::boxes_have_the_bits_of_the_cpu":
        "bf16", "" "yes" "lanes" "yes", "bits";
    "tests/suite/built.rs::other_machines_kernels_and_levels_find_nothing":
        "", "" "" "" "", "";
    "tests/suite/built.rs::the_command_builds_kernels_and_lists_them":
        "", "" "" "" "", "";
    "tests/suite/built.rs::what_was_built_is_found_by_launches_like_those":
        "", "" "" "" "", "";
    "tests/suite/cli.rs::a_dumped_stage_is_a_kernel_again":
        "", "" "" "" "", "";
    "tests/suite/cli.rs::the_stages_of_compilations_are_timed":
        "", "" "" "" "", "";
    "tests/suite/configure.rs::a_kernel_is_tuned_over_what_it_says_and_its_arguments_are_restored":
        "", "" "" "" "", "";
    "tests/suite/configure.rs::constraints_and_what_is_set_narrow_the_space":
        "", "" "" "" "", "";
    "tests/suite/configure.rs::schedules_are_tried_where_lanes_run_and_hopeless_ones_are_not_run":
        "", "" "" "" "", "";
    "tests/suite/configure.rs::what_a_kernel_writes_is_restored_after_a_panic_of_who_listens":
        "", "" "" "" "", "";
    "tests/suite/configure.rs::what_is_not_set_has_its_default_and_the_grid_follows":
        "", "" "" "" "", "";
    "tests/suite/debug.rs::a_combine_states_nothing_but_gives_a_flag":
        "i32", "yes" "yes" "lanes" "yes", "errors";
    "tests/suite/debug.rs::a_failed_assertion_names_its_line_and_its_element":
        "f32", "yes" "yes" "lanes" "yes", "errors";
    "tests/suite/each.rs::each_element_takes_its_own_steps":
        "f32, i32", "yes" "yes" "lanes" "yes", "bits";
    "tests/suite/each.rs::inline_ptx_has_the_bits_of_its_meaning":
        "u32", "yes" "yes" "lanes" "yes", "bits";
    "tests/suite/each.rs::inline_ptx_takes_four_bytes_in_a_register":
        "u8", "yes" "yes" "lanes" "yes", "bits";
    "tests/suite/each.rs::what_a_map_does_knows_its_lines":
        "", "" "" "" "", "";
    "tests/suite/examples.rs::examples_assemble_as_recorded":
        "f32", "" "" "assembled" "", "instructions";
    "tests/suite/functions.rs::classes_of_singles":
        "f32; f16 and f64 beside it", "yes" "yes" "lanes" "yes", "bits";
    "tests/suite/kept.rs::another_process_runs_neither_the_lowering_nor_llvm":
        "", "" "" "" "", "";
    "tests/suite/kept.rs::damaged_entries_are_compiled_anew":
        "", "" "" "" "", "";
    "tests/suite/kept.rs::processes_and_threads_share_a_folder":
        "", "" "" "" "", "";
    "tests/suite/kept.rs::what_code_relies_on_is_part_of_the_key_and_lines_are_not":
        "", "" "" "" "", "";
    "tests/suite/launch.rs::a_kernel_is_compiled_once_for_arguments_alike":
        "", "" "" "" "", "";
    "tests/suite/lines.rs::instructions_know_their_line_and_column":
        "", "" "" "" "", "";
    "tests/suite/meeting.rs::launches_compiled_ahead_are_told_apart":
        "", "" "" "" "", "";
    "tests/suite/narrow.rs::singles_to_halves":
        "f32, f16; f64, bf16, F8E4M3 and F8E5M2 beside it", "yes" "yes" "lanes" "yes", "bits";
    "tests/suite/narrow_floats.rs::conversions_give_the_nearest_number":
        "f32, f64, F8E4M3, F8E5M2, f16, bf16", "yes" "yes" "lanes" "in the case casts", "bits";
    "tests/suite/overflow.rs::what_does_not_fit_is_an_error_with_its_line":
        "i8, u16, i32, u32, i64, u64", "yes" "yes" "lanes" "yes", "errors";
    "tests/suite/parts.rs::pages_are_tensors_that_the_kernel_makes":
        "f32", "yes" "yes" "lanes" "yes", "bits";
    "tests/suite/parts.rs::parts_end_where_their_tensor_does":
        "i32", "yes" "yes" "lanes" "yes", "bits";
    "tests/suite/print.rs::lines_come_by_program_and_then_in_order":
        "f16, f32", "yes" "yes" "lanes" "yes", "lines";
    "tests/suite/print.rs::numbers_of_every_type_are_shown":
        "all types", "yes" "yes" "lanes" "yes", "lines";
    "tests/suite/products.rs::batches_are_multiplied":
        "f32", "yes" "yes" "lanes" "yes", "bits";
    "tests/suite/programs.rs::every_way_to_run_a_program_gives_the_same_bits":
        "all types", "yes" "yes" "lanes" "with selftest programs", "bits";
    "tests/suite/promoted.rs::bytes_are_added_by_parts":
        "F8E4M3", "yes" "yes" "lanes" "yes", "bits";
    "tests/suite/runtime.rs::launches_are_queued":
        "f32", "yes" "yes" "lanes" "with selftest runtime", "bits";
    "tests/suite/scaled.rs::blocks_of_e4m3_in_singles":
        "F8E4M3", "yes" "yes" "lanes" "yes", "bits";
    "tests/suite/scaled.rs::bytes_hold_two_floats":
        "u8, f32", "yes" "yes" "lanes" "yes", "bits";
    "tests/suite/slices.rs::views_of_slices_have_extents_and_strides":
        "f32", "yes" "yes" "lanes" "refused", "bits";
    "tests/suite/sort.rs::comparisons_of_a_sort_stay_flags":
        "f32", "" "" "assembled" "", "instructions";
    "tests/suite/steady.rs::many_launches_keep_no_memory":
        "f32", "yes" "yes" "lanes" "not yet run", "memory of the process";
    "tests/suite/trace.rs::errors_come_all_at_once":
        "", "" "" "" "", "";
    "tests/suite/views.rs::atomics_reach_views_with_strides":
        "i32", "yes" "yes" "lanes" "yes", "bits";
}
