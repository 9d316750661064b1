//! The HAL conformance tests: functions that take a device and assert on values.

pub(crate) mod copies;
pub(crate) mod dispatches;
pub(crate) mod errors;
pub(crate) mod fault_layer;
pub(crate) mod kit;
pub(crate) mod lifetimes;
pub(crate) mod semaphores;
pub(crate) mod timestamps;

use kit::Context;

type Test = fn(&Context<'_>);

macro_rules! tests {
    ($($module:ident: $($name:ident),* $(,)?;)*) => {
        /// All tests with their names.
        pub(crate) const TESTS: &[(&str, Test)] =
            &[$($((concat!(stringify!($module), "::", stringify!($name)), $module::$name),)*)*];
    };
}

tests! {
    copies:
        copies_of_odd_sizes_at_odd_offsets_are_exact,
        regions_of_one_copy_are_all_copied,
        a_copy_within_one_buffer_moves_the_bytes,
        a_barrier_orders_copies_of_copies,
        a_fill_covers_its_range_only,
        updates_of_one_word_and_of_the_most_are_exact,
        host_writes_and_device_writes_are_seen_through_the_mapping,
        flushes_of_any_range_keep_their_neighbours,
        device_memory_is_mapped_only_where_the_properties_say_so,
        addresses_are_there_unless_the_fallback_is,
        imported_host_memory_is_read_and_written_in_place,
        copies_on_every_queue_are_exact;
    dispatches:
        a_kernel_reads_its_buffers_and_constants,
        constants_and_group_counts_arrive_whole,
        workgroups_share_memory,
        uniform_buffers_and_aligned_offsets_are_honoured,
        only_what_changes_between_dispatches_changes,
        a_recording_runs_as_often_as_it_is_submitted,
        a_reset_recording_records_anew,
        thousands_of_dispatches_keep_their_own_bindings,
        an_event_orders_what_it_stands_between,
        threads_record_and_submit_side_by_side;
    semaphores:
        a_value_reached_is_reached_whatever_the_deadline,
        a_value_not_reached_is_late_at_the_deadline_and_not_before,
        an_endless_timeout_waits_for_the_signal_of_another_thread,
        the_host_may_only_raise_the_value,
        a_submission_may_only_raise_the_value,
        a_failure_is_what_queries_and_waits_return,
        a_failure_ends_a_wait_that_has_begun,
        a_submission_that_names_a_failed_semaphore_is_refused,
        work_waits_for_the_host,
        a_wait_may_be_submitted_before_its_signal,
        queues_hand_work_to_each_other,
        one_submission_signals_several_semaphores,
        a_failure_reaches_the_work_that_waits_and_frees_the_queue,
        waiting_sleeps_instead_of_spinning,
        wait_idle_waits_for_all_that_was_submitted;
    timestamps:
        a_device_has_timestamps_or_says_that_it_has_none,
        timestamps_rise_in_the_order_of_commands,
        work_between_two_timestamps_takes_longer_than_nothing,
        slots_are_used_again_after_a_reset,
        timestamps_may_be_dropped_while_they_are_written,
        slots_outside_their_set_are_refused,
        slots_that_were_not_written_cannot_be_read,
        a_slot_written_twice_without_a_reset_is_refused,
        a_copy_queue_writes_what_a_compute_queue_has_reset;
    lifetimes:
        everything_may_be_dropped_in_any_order_while_it_runs,
        freeing_a_buffer_before_its_copy_runs_keeps_the_data,
        many_recordings_dropped_at_once_all_run,
        children_may_outlive_their_device,
        a_device_with_stuck_work_can_be_dropped,
        buffers_created_and_dropped_in_a_loop_do_not_pile_up;
    errors:
        sizes_that_no_device_has_are_out_of_memory,
        the_budget_holds_together,
        ranges_outside_their_buffers_are_refused,
        dispatches_that_do_not_fit_their_kernel_are_refused,
        kernels_that_do_not_fit_the_device_are_refused_by_name,
        subgroup_sizes_can_be_demanded_where_they_can_be_chosen,
        a_command_buffer_is_finished_once_and_then_submitted,
        a_recording_for_one_submission_is_submitted_once,
        objects_of_another_device_are_refused,
        copy_queues_do_not_dispatch,
        a_pipeline_cache_comes_back_and_wrong_ones_are_ignored;
}
