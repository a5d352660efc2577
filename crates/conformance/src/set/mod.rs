//! The suite for limit sets, in this process and in every store.

#[doc(hidden)]
pub mod changes;
#[doc(hidden)]
pub mod checks;
#[doc(hidden)]
pub mod events;
mod fixture;
#[doc(hidden)]
pub mod joining;
#[doc(hidden)]
pub mod leases;
#[doc(hidden)]
pub mod numbers;
#[doc(hidden)]
pub mod pools;
#[doc(hidden)]
pub mod sharing;
#[doc(hidden)]
pub mod waiting;

pub use fixture::{OpenSetStore, SetFixture};

/// Makes a `#[test]` of every law of limit [sets](mod@crate::set): with `here` on sets of this process, otherwise on stores made by
/// `$open`, from a clock to an `Arc<dyn Backend>`.
#[macro_export]
macro_rules! set_suite {
    (here) => {
        $crate::set_suite!(@all |_| None);
    };
    ($open:expr) => {
        $crate::set_suite!(@all |clock| Some($open(clock)));
        $crate::set_suite!(@of sharing, |clock| Some($open(clock)),
            openers_of_one_name_share_its_counts_and_others_do_not
            a_cooldown_by_one_opener_stops_the_others
            a_replaced_limit_reaches_the_others_with_their_next_call
            a_demand_that_only_a_raised_limit_fits_is_admitted_by_the_others
            limits_of_a_later_version_stay_and_of_equal_ones_the_last_to_open_decides
            resources_of_a_silent_holder_return_to_the_others_once
            while_the_store_is_unavailable_a_set_blocks_allows_or_keeps_to_its_share
            a_store_that_comes_back_is_used_again
            sets_in_use_are_listed_by_name_and_opened_without_knowing_their_limits
            a_cooldown_can_wait_for_a_set_that_is_not_in_use
            a_set_whose_bucket_was_forgotten_is_idle_and_keeps_its_limits
            checkers_of_one_namespace_share_counts_and_limits_of_other_names_keep_theirs
        );
        $crate::set_suite!(@of joining, |clock| Some($open(clock)),
            a_rate_that_another_opener_does_not_name_stays_in_force
            a_resource_that_another_opener_does_not_name_is_never_held_twice
            an_opener_takes_nothing_of_limits_that_it_does_not_name
            limits_named_by_openers_at_the_same_time_are_all_in_force
            a_limit_is_removed_only_on_purpose
            a_later_version_removes_a_limit_that_it_leaves_out_by_name
            two_kinds_under_one_name_are_an_error_for_the_second_opener
            an_open_set_asks_the_store_once_for_an_acquire
            a_lost_record_is_made_from_the_limits_of_the_bucket
        );
    };
    (@all $open:expr) => {
        $crate::set_suite!(@of numbers, $open,
            of_100_a_minute_the_101st_has_a_wait_of_600_ms_and_is_admitted_then
            of_100_demands_of_1_and_400_2_are_admitted_and_the_others_denied_by_tpm_for_12_s
            a_slow_limit_beside_one_that_is_used_all_day_has_regained_its_10
            of_7_per_3_s_taken_one_every_100_ms_for_ten_minutes_there_are_7_and_1400
            a_clock_5_s_back_mints_nothing_and_an_hour_forward_fills_and_no_more
            where_rpm_needs_3_s_and_tpm_7_s_the_waiter_is_granted_at_7_s_with_one_event_limited_by_tpm
            of_200_tries_from_8_threads_on_100_exactly_100_are_admitted
            a_set_has_32_limits_and_no_more
        );
        $crate::set_suite!(@of leases, $open,
            less_than_taken_is_refunded_and_more_is_debt
            a_dropped_lease_stays_charged_and_its_resources_are_free
            a_policy_refunds_dropped_leases
            a_committed_lease_counts_as_reported_and_otherwise_as_taken
            adjustments_add_up
            consume_takes_more_or_nothing_and_is_held_like_the_rest
            a_block_that_fails_or_is_cancelled_gives_everything_back
            a_reported_lease_that_is_dropped_keeps_what_it_consumed
            a_heartbeat_keeps_consumed_resources
            however_a_lease_ends_it_counts_once
            calls_are_counted_without_being_named_and_not_reported_beyond
            names_that_are_no_limits_are_errors_unless_the_set_skips_them
            a_demand_that_can_never_fit_is_refused_at_once
            a_lease_knows_its_config_and_what_was_reserved
            an_empty_set_admits_everything
            heartbeats_keep_resources_and_a_silent_holder_loses_them_once
        );
        $crate::set_suite!(@of waiting, $open,
            waiters_are_admitted_in_order_at_their_exact_instants
            a_wait_that_cannot_fit_fails_at_once
            a_wait_behind_others_that_cannot_fit_fails_at_once
            a_wait_for_a_resource_ends_at_its_deadline_and_takes_nothing
            a_refund_or_a_release_lets_the_head_pass_at_once
            no_waiter_is_overtaken_and_a_large_demand_is_not_starved
            the_higher_priority_goes_first
            a_wait_dropped_after_any_number_of_polls_leaves_nothing
            waiters_beyond_the_bound_are_refused
            a_waiter_holds_back_no_demand_for_other_limits
            a_waiter_that_is_not_polled_holds_no_caller_back_for_long
            a_waiter_that_is_not_polled_keeps_no_resource
            a_grant_that_is_not_collected_goes_to_a_newcomer
        );
        $crate::set_suite!(@of changes, $open,
            a_cooldown_stops_all_callers_to_the_microsecond
            a_cooldown_is_extended_and_never_shortened_and_can_be_ended
            a_waiter_is_admitted_when_the_cooldown_is_over
            lowered_limits_clamp_and_raised_ones_mint_nothing
            raised_limits_admit_waiters
            a_limit_that_does_not_fit_is_not_replaced
            a_removed_limit_refuses_nothing_any_more
            a_peek_shows_the_limits_of_the_set_and_no_others
        );
        $crate::set_suite!(@of pools, $open,
            a_pool_moves_on_from_a_set_that_denies_or_cools
            a_pool_waits_in_all_sets_and_takes_the_first_grant
            a_pool_that_waits_is_granted_by_a_set_that_becomes_free
        );
        $crate::set_suite!(@of checks, $open,
            checks_charge_all_or_nothing_and_wait_for_the_slowest
            a_check_that_waits_holds_back_no_check_of_another_limit
            counts_of_checks_can_be_peeked_at_charged_and_refunded
            events_of_checks_carry_entity_operation_and_metadata
        );
        $crate::set_suite!(@of events, $open,
            events_are_reported_once_and_name_only_limits_of_the_set
            shadow_and_soft_limits_warn_and_admit
        );
    };
    (@of $module:ident, $open:expr, $($law:ident)*) => {
        mod $module {
            #[allow(unused_imports, reason = "the stores of some suites need nothing")]
            use super::*;
            $(
                #[test]
                fn $law() {
                    $crate::set::$module::$law(&$open);
                }
            )*
        }
    };
}
