//! The specification of Tollgate: limits, demands, buckets and verdicts.
//!
//! A [`Limit`] is one rule with a name, such as 100 requests per minute. [`Limits`] are several of
//! them that one [`Bucket`] tracks. A [`Demand`] asks amounts by the names of limits;
//! [`Limits::costs`] resolves it to [`Costs`], and [`Bucket::take`] either takes all of them or
//! returns a [`Denial`] with the exact wait. [`Bucket::settle`] later corrects the reservation to
//! what was used.
//!
//! Every operation is a pure function from (limits, state, now, operation) to (state, verdict). The
//! crate reads no clock, does no I/O and takes no lock: time is an argument, and a store only has
//! to make the function atomic. All arithmetic is in integers, so there is no rounding and no
//! drift.
//!
//! ```
//! use tollgate_core::{demand, Bucket, Limit, Limits, Take, Tick};
//!
//! let limits = Limits::new([Limit::per_minute("rpm", 100), Limit::per_minute("tpm", 1_000)])?;
//! let costs = limits.costs(&demand! { rpm: 1, tpm: 400 })?;
//! let mut bucket = Bucket::fresh(&limits, Tick::ZERO);
//!
//! assert!(bucket.take(&limits, Tick::ZERO, &Take::of(&costs)).is_ok());
//! assert!(bucket.take(&limits, Tick::ZERO, &Take::of(&costs)).is_ok());
//! let denial = bucket.take(&limits, Tick::ZERO, &Take::of(&costs)).unwrap_err();
//! assert_eq!(denial.wait().unwrap().as_secs(), 12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod amount;
mod bucket;
mod calendar;
mod chain;
mod codec;
mod costs;
mod demand;
mod fast_bucket;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;
mod inline_vec;
mod limit;
mod limits;
mod machine;
mod name;
mod state;
mod tick;
mod unit;
mod verdict;

pub use amount::{AMOUNT_MAX, BadAmount, IntoAmount, UNBOUNDED};
pub use bucket::{Bucket, Holder, Take, Usage};
pub use calendar::{Calendar, Edges};
pub use chain::{Link, take_all};
pub use codec::{CodecError, MILLIS, MachineView, Part, Rate, StateView};
pub use costs::{CostSink, Costs, Packed, SmallCosts};
pub use demand::{AsDemand, Demand, DemandArray, DemandError};
pub use inline_vec::InlineVec;
pub use limit::{Algorithm, CustomLimit, Kind, Limit, LimitBuilder, LimitError, PERIOD_MAX, Resets};
pub use limits::{BUCKET_LIMITS_MAX, LIMITS_MAX, Limits, LimitsError};
pub use machine::SLIDING_STEPS;
pub use name::{HashedName, NAME_MAX, Name};
pub use state::State;
pub use tick::{Span, Tick};
pub use unit::{Unit, UnitError};
pub use verdict::{Denial, Ready, Shortage, Status};
