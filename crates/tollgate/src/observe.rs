//! Events, for metrics and logs.

use std::cmp::Ordering;
#[cfg(feature = "tracing")]
use std::collections::BTreeSet;
use std::sync::Arc;
#[cfg(feature = "tracing")]
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tollgate_core::{Costs, Limit, Limits, Name};

use crate::Config;

/// Something that happened. Labels come from closed sets: names of limits, never of callers.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use tollgate::{demand, Event, Limit, LimitSet, Observer};
///
/// #[derive(Clone, Default)]
/// struct Denied(Arc<Mutex<u64>>);
///
/// impl Observer for Denied {
///     fn observe(&self, event: &Event<'_>) {
///         if let Event::Denied { limit: Some(_) } = event {
///             *self.0.lock().unwrap() += 1;
///         }
///     }
/// }
///
/// let denied = Denied::default();
/// let set = LimitSet::builder().limits([Limit::per_minute("rpm", 1)]).observer(denied.clone()).build()?;
/// let admitted = (0..3).filter(|_| set.try_acquire(demand! { rpm: 1 }).wait().is_ok_and(|it| it.is_admitted()));
/// assert_eq!((admitted.count(), *denied.0.lock().unwrap()), (1, 2));
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A demand was admitted.
    Allowed,
    /// A demand was denied, and this limit would take longest; `None` for a cooldown or a queue.
    Denied {
        /// The limit.
        limit: Option<&'a Name>,
    },
    /// A demand was admitted after a wait, reported once at its end.
    Waited {
        /// The limit that made it wait longest.
        limit: Option<&'a Name>,
        /// How long.
        duration: Duration,
    },
    /// Less was used than taken.
    Refunded {
        /// The limit.
        limit: &'a Name,
        /// What came back.
        amount: u64,
    },
    /// More was used than taken; the rest is debt.
    OverUsed {
        /// The limit.
        limit: &'a Name,
        /// How much more.
        amount: u64,
    },
    /// A demand or a report named what is no limit of the set.
    UnknownLimit {
        /// The name.
        name: &'a str,
    },
    /// A lease was silent for too long and has lost its resources.
    ExpiredLease,
    /// A call was admitted that a limit in shadow mode would have denied.
    WouldDeny {
        /// The limit.
        limit: &'a Name,
    },
    /// A call was admitted that passed the soft level of a limit.
    SoftLimitPassed {
        /// The limit.
        limit: &'a Name,
    },
    /// The store was unavailable, and a lease was granted that limits less than it should.
    Degraded,
    /// A cooldown began or was extended.
    Cooldown {
        /// How long it lasts from now.
        duration: Duration,
    },
}

/// Is notified of what happens to a set or to a checker. Called while the caller waits, so it should be quick.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use tollgate::{demand, Event, Limit, LimitSet, Observer};
///
/// #[derive(Clone, Default)]
/// struct Denied(Arc<Mutex<u64>>);
///
/// impl Observer for Denied {
///     fn observe(&self, event: &Event<'_>) {
///         if let Event::Denied { limit: Some(_) } = event {
///             *self.0.lock().unwrap() += 1;
///         }
///     }
/// }
///
/// let denied = Denied::default();
/// let set = LimitSet::builder().limits([Limit::per_minute("rpm", 1)]).observer(denied.clone()).build()?;
/// let admitted = (0..3).filter(|_| set.try_acquire(demand! { rpm: 1 }).wait().is_ok_and(|it| it.is_admitted()));
/// assert_eq!((admitted.count(), *denied.0.lock().unwrap()), (1, 2));
/// # Ok::<(), tollgate::Error>(())
/// ```
pub trait Observer: Send + Sync {
    /// Something happened.
    fn observe(&self, event: &Event<'_>);

    /// Something happened to a [check](crate::Checker). By default reported as any other event.
    ///
    /// The subject is for logs and traces. As a label of a metric it would have no bound.
    fn observe_check(&self, event: &Event<'_>, check: &CheckInfo<'_>) {
        let _ = check;
        self.observe(event);
    }
}

/// The subject of a check.
///
/// ```
/// use tollgate::{demand, CheckInfo, Checker, Event, Limit, Limits, Observer};
///
/// struct Log;
///
/// impl Observer for Log {
///     fn observe(&self, _: &Event<'_>) {}
///
///     fn observe_check(&self, event: &Event<'_>, check: &CheckInfo<'_>) {
///         assert_eq!((*event, check.entity, check.operation), (Event::Allowed, "my_key", "chat"));
///     }
/// }
///
/// let limits = Limits::new([Limit::per_minute("rpm", 1)])?;
/// let checker = Checker::new().observer(Log);
/// assert!(checker.try_acquire("my_key", "chat", demand! { rpm: 1 }, &limits).wait()?.is_admitted());
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckInfo<'a> {
    /// The entity.
    pub entity: &'a str,
    /// The operation.
    pub operation: &'a str,
    /// The [metadata](crate::Checker::metadata) of the caller.
    pub metadata: &'a Config,
}

impl<F: Fn(&Event<'_>) + Send + Sync> Observer for F {
    fn observe(&self, event: &Event<'_>) {
        self(event);
    }
}

/// Notifies the observer and `tracing`, and warns once for each thing that is worth a warning.
#[derive(Clone, Default)]
pub(crate) struct Reporter {
    observer: Option<Arc<dyn Observer>>,
    #[cfg(feature = "tracing")]
    warned: Arc<Mutex<BTreeSet<String>>>,
}

/// How many different warnings are remembered, so that names made up by callers cannot fill the memory.
#[cfg(feature = "tracing")]
const WARNED_MAX: usize = 1_000;

impl Reporter {
    pub(crate) fn new(observer: Option<Arc<dyn Observer>>) -> Reporter {
        Reporter {
            observer,
            #[cfg(feature = "tracing")]
            warned: Arc::default(),
        }
    }

    /// Returns whether an observer or `tracing` would receive an ordinary event. Lets the common path do nothing at
    /// all.
    #[inline(always)]
    pub(crate) fn is_watched(&self) -> bool {
        #[cfg(feature = "tracing")]
        let is_traced = tracing::level_filters::LevelFilter::current() > tracing::Level::WARN;
        #[cfg(not(feature = "tracing"))]
        let is_traced = false;
        is_traced || self.observer.is_some()
    }

    /// Reports an ordinary event.
    #[inline]
    pub(crate) fn report_if_watched(&self, event: &Event<'_>) {
        if self.is_watched() {
            self.report(event);
        }
    }

    /// Reports that a call was admitted past a limit that warns.
    pub(crate) fn report_warning(&self, limit: &Limit) {
        let (is_shadow, limit) = (limit.is_shadow(), limit.name());
        self.report(&if is_shadow { Event::WouldDeny { limit } } else { Event::SoftLimitPassed { limit } });
    }

    /// Reports refunds and over-use. Over-use is a warning, which is reported also where ordinary events are not.
    pub(crate) fn report_difference(&self, limits: &Limits, reserved: &Costs, used: &[u64]) {
        let amounts = reserved.amounts().iter().zip(used);
        for (limit, (reserved, used)) in limits.iter().zip(amounts) {
            if limit.is_resource() || limit.is_cooldown() {
                continue;
            }
            let limit = limit.name();
            match used.cmp(reserved) {
                Ordering::Less => {
                    self.report_if_watched(&Event::Refunded { limit, amount: reserved - used });
                }
                Ordering::Greater => self.report(&Event::OverUsed { limit, amount: used - reserved }),
                Ordering::Equal => {}
            }
        }
    }

    #[cold]
    pub(crate) fn report_check(&self, event: &Event<'_>, check: &CheckInfo<'_>) {
        if let Some(observer) = &self.observer {
            observer.observe_check(event, check);
        }
        #[cfg(feature = "tracing")]
        self.trace(event);
    }

    #[cold]
    pub(crate) fn report(&self, event: &Event<'_>) {
        if let Some(observer) = &self.observer {
            observer.observe(event);
        }
        #[cfg(feature = "tracing")]
        self.trace(event);
    }

    #[cfg(feature = "tracing")]
    fn trace(&self, event: &Event<'_>) {
        match event {
            Event::UnknownLimit { name } if self.is_first(&format!("unknown {name}")) => {
                tracing::warn!(target: "tollgate", limit = name, "no such limit in this set; it is skipped");
            }
            Event::OverUsed { limit, amount } if self.is_first(&format!("over {limit}")) => {
                tracing::warn!(target: "tollgate", %limit, amount, "more was used than taken; the rest is debt");
            }
            Event::Degraded if self.is_first("degraded") => {
                tracing::warn!(target: "tollgate", "the store is away; limits are kept less strictly");
            }
            Event::Allowed => tracing::trace!(target: "tollgate", "allowed"),
            _ => tracing::debug!(target: "tollgate", ?event),
        }
    }

    #[cfg(feature = "tracing")]
    fn is_first(&self, what: &str) -> bool {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        warned.len() < WARNED_MAX && warned.insert(what.into())
    }
}
