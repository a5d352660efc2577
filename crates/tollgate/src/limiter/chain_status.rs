//! The status of a demand for every limit of every entity in its chain.

use std::fmt;
use std::time::Duration;

use tollgate_catalog::LimitsSource;
use tollgate_core::{Denial, Ready, Status};

/// The status of a demand for every limit of every entity it is charged to: why it was denied, or whether it would pass.
///
/// ```
/// use tollgate::{demand, Level, Limit, Limiter, Limits};
///
/// let limiter = Limiter::in_memory()?;
/// limiter.catalog().set_limits(Level::System, &Limits::new([Limit::per_minute("rpm", 10)])?).wait()?;
/// let status = limiter.check_availability("user-1", "gpt-4", demand! { rpm: 4 }).wait()?;
/// assert!(status.passes());
/// assert_eq!((status.available("rpm"), status.retry_after()), (Some(10), Some(std::time::Duration::ZERO)));
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ChainStatus {
    /// Each bucket: the entity first, then its parents; the resource of the call first, then the others.
    pub parts: Vec<LinkStatus>,
}

/// The status of a demand for the limits of one entity and one resource.
///
/// ```
/// use tollgate::{demand, Level, Limit, Limiter, Limits};
///
/// let limiter = Limiter::in_memory()?;
/// limiter.catalog().set_limits(Level::System, &Limits::new([Limit::per_minute("rpm", 10)])?).wait()?;
/// let status = limiter.available("user-1", "gpt-4").wait()?;
/// assert_eq!((status.parts[0].entity.as_str(), status.parts[0].resource.as_str()), ("user-1", "gpt-4"));
/// # let _ = demand! {};
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LinkStatus {
    /// The entity.
    pub entity: String,
    /// The resource.
    pub resource: String,
    /// Where its limits come from; `None` if they came with the call.
    pub source: Option<LimitsSource>,
    /// The status of each limit, and when all of them would admit the demand.
    pub denial: Denial,
}

impl ChainStatus {
    /// Returns whether the demand passes now.
    pub fn passes(&self) -> bool {
        self.ready() == Ready::Now
    }

    /// Returns when it would pass, if no other caller takes or gives back meanwhile.
    pub fn ready(&self) -> Ready {
        self.parts.iter().map(|part| part.denial.ready()).fold(Ready::Now, Ready::later)
    }

    /// Returns how long until then, if that is known: the wait of the slowest limit.
    pub fn retry_after(&self) -> Option<Duration> {
        let now = self.parts.first()?.denial.now();
        self.ready().wait(now)
    }

    /// Returns the status of every limit, with the entity and the resource it belongs to.
    pub fn statuses(&self) -> impl Iterator<Item = (&LinkStatus, Status)> {
        self.parts.iter().flat_map(|part| part.denial.statuses().map(move |status| (part, status)))
    }

    /// Returns the limits that deny the demand.
    pub fn violations(&self) -> impl Iterator<Item = (&LinkStatus, Status)> {
        self.statuses().filter(|(_, status)| status.is_exceeded())
    }

    /// Returns the limit that takes longest, and whose it is; `None` if no limit denies the demand.
    pub fn limited_by(&self) -> Option<(&LinkStatus, Status)> {
        self.violations().reduce(|slowest, other| {
            let as_slow = slowest.1.ready().later(other.1.ready()) == slowest.1.ready();
            if as_slow { slowest } else { other }
        })
    }

    /// How much could be had now of a limit of the resource of the call: the least of what the entity and its parents
    /// have left. `None` if there is no such limit.
    pub fn available(&self, limit: &str) -> Option<i64> {
        let resource = &self.parts.first()?.resource;
        let mine = self
            .statuses()
            .filter(|(part, status)| part.resource == *resource && status.limit().name() == limit);
        mine.map(|(_, status)| status.available()).min()
    }
}

/// `user-1 on gpt-4: tpm has 200 of the 400 asked; retry in 12s`.
impl fmt::Display for ChainStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.limited_by() {
            Some((part, _)) => write!(f, "{} on {}: {}", part.entity, part.resource, part.denial),
            None if self.passes() => f.write_str("it passes"),
            None => f.write_str("no limit denies it, but others are ahead"),
        }
    }
}

impl std::error::Error for ChainStatus {}
