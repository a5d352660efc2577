//! The suite for the limiter on a store: the promised numbers, and the promises behind them.

#[doc(hidden)]
pub mod features;
mod fixture;
#[doc(hidden)]
pub mod numbers;
#[doc(hidden)]
pub mod promises;
#[doc(hidden)]
pub mod tickets;
#[doc(hidden)]
pub mod usage;
#[doc(hidden)]
pub mod waiting;

pub use fixture::LimiterFixture;

/// Makes a `#[test]` of every law of the [limiter](crate::limiter), on stores made by `$open`, from a clock to an
/// `Arc<dyn Backend>`. With `quick` behind it, it leaves out the law that takes longer than all others together.
#[macro_export]
macro_rules! limiter_suite {
    ($open:expr) => {
        $crate::limiter_suite!(@all $open, usage_agrees_with_a_recount_over_a_month_with_a_change_of_clocks);
    };
    ($open:expr, quick) => {
        $crate::limiter_suite!(@all $open,);
    };
    (@all $open:expr, $($slow:ident)*) => {
        $crate::limiter_suite!(@of numbers, $open,
            tpm_1000_acquired_500_adjusted_by_1500_is_1000_in_debt_and_the_next_waits_60_06_s
            a_parent_of_100_admits_50_through_each_of_two_children_and_refuses_a_third
            the_first_level_with_limits_wins_and_they_fall_back_from_the_top_to_an_error
            a_resource_with_only_rpm_does_not_enforce_the_tpm_of_the_system
            limits_that_only_refused_a_demand_were_in_force_all_the_same
            lowered_from_1000_to_10_a_full_bucket_refuses_50_and_raised_again_refills_at_the_new_rate
            an_override_of_10_on_a_bucket_of_100_refuses_50
            of_200_tries_from_10_threads_on_100_exactly_100_are_admitted
            fifty_leases_that_adjust_by_10_at_once_make_500
            a_task_cancelled_in_the_block_leaves_everything_as_before_it
            an_error_in_the_block_leaves_everything_as_before_it_adjustments_included
            a_refund_into_a_bucket_that_has_refilled_meanwhile_never_goes_above_capacity
            an_entity_deleted_while_a_lease_is_open_is_not_made_anew_by_its_end
            ten_in_the_hour_after_midnight_and_ten_at_14_h_are_hours_of_10_and_a_day_of_20
            two_namespaces_have_nothing_in_common_and_a_purge_leaves_nothing
            an_unavailable_store_blocks_with_an_error_or_allows_with_a_degraded_lease
        );
        $crate::limiter_suite!(@of promises, $open,
            a_panic_in_the_block_leaves_everything_as_before_it
            a_denied_chain_of_1_to_8_entities_changes_nothing_at_any_level
            changed_limits_keep_the_bound_of_each_version
            an_expired_holder_gives_back_once_and_heartbeats_keep
            a_holder_that_lost_its_resources_learns_of_it_once
            quotas_reset_at_local_midnight_also_on_days_of_23_and_25_hours
            bad_input_is_refused_with_what_is_wrong_and_writes_nothing
            $($slow)*
        );
        $crate::limiter_suite!(@of features, $open,
            several_resources_are_taken_all_or_nothing
            a_dry_run_returns_the_limit_its_entity_and_the_wait
            a_shadow_limit_counts_and_never_refuses
            a_soft_limit_warns_and_admits
            consume_takes_more_or_nothing_and_is_held_like_the_rest
            consumed_resources_expire_with_their_holder
            reports_and_adjustments_add_up
            a_disabled_entity_or_resource_is_refused_until_it_is_enabled
            a_cascade_policy_decides_which_entities_are_charged
            an_entity_is_exempt_from_a_disabled_resource
            reset_and_top_up_count_once_for_each_key
            a_session_quota_is_full_again_so_long_after_its_first_use
            while_the_store_is_unavailable_local_keeps_to_a_share_of_the_limit
            a_store_that_comes_back_is_used_again
            a_dropped_lease_frees_resources_and_stays_charged_or_is_refunded
        );
        $crate::limiter_suite!(@of tickets, $open,
            a_ticket_is_settled_once_by_any_process_that_has_it
            a_ticket_is_refused_in_another_namespace
            ending_a_ticket_again_reports_that_it_had_ended
            a_ticket_changed_in_any_byte_is_refused_and_changes_nothing
            a_limit_that_a_ticket_took_nothing_of_can_be_settled
            a_ticket_outlives_one_rotation_and_not_two
            a_ticket_expires_and_counts_once_until_then
            a_redeemed_lease_that_is_dropped_changes_nothing
        );
        $crate::limiter_suite!(@of usage, $open,
            a_sum_over_entities_counts_a_call_once
            a_ticket_is_counted_once_in_a_sum_over_entities
        );
        $crate::limiter_suite!(@of waiting, $open,
            waiters_are_admitted_in_order_at_their_exact_instants
            a_wait_that_cannot_fit_fails_at_once
            a_wait_behind_others_that_cannot_fit_fails_at_once
            consume_overtakes_no_waiter
            a_wait_for_a_held_resource_can_succeed
            a_release_wakes_the_next_at_once
            a_waiter_of_one_child_does_not_block_its_siblings
            a_waiter_that_was_short_of_the_parent_too_does_not_block_its_siblings
            no_newcomer_overtakes_a_waiter
            waiters_learn_of_raised_limits
            cancelled_waiters_leave_no_trace
            a_large_demand_is_not_starved_by_small_ones
        );
    };
    (@of $module:ident, $open:expr, $($law:ident)*) => {
        mod $module {
            #[allow(unused_imports, reason = "the stores of some suites need nothing")]
            use super::*;
            $(
                #[test]
                fn $law() {
                    $crate::limiter::$module::$law(&$open);
                }
            )*
        }
    };
}
