//! The tests of the core in one program. `allocation` counts those of its whole process, so it is another one.

mod oracle;

mod admission_bound;
mod all_or_nothing;
mod bad_input;
mod changing_limits;
mod clock;
mod codec_bucket;
mod codec_limits;
mod cooldown;
mod custom;
mod debt;
mod exhaustive;
mod extremes;
mod fast_path;
mod holders;
mod numbers;
mod oracle_agreement;
mod planted_faults;
mod probes_and_eviction;
mod queue_sums;
mod shadow;
mod sliding_debt;
mod top_up;
