//! Tickets: leases that outlive the process that took them, as text.
//!
//! A shell that acquires, works and settles is three processes; so is a client of a server, from the server's side. What
//! was taken is written as text, which any process that has it can settle, once. The namespace seals the text
//! ([`Catalog::seal`](tollgate_catalog::Catalog::seal)), so that a ticket that was changed on its way is refused.

use tollgate_catalog::{CatalogError, TICKET_KEPT};
use tollgate_core::{Span, Tick};
use tollgate_store::records::RecordsError;
use tollgate_store::{LeaseTerm, OpId, Reply, StoreError, random_id};

use super::Limiter;
use super::lease::LimiterLease;
use super::settle::LeaseEnd;
use super::ticket_text::parse;
use crate::LeaseError;
use crate::reservation::Reservation;

/// What tickets of earlier forms begin with, which were not sealed.
const UNSEALED_FORMS: [&str; 2] = ["tg1+", "tg2+"];

/// Why a lease cannot become a ticket, or a ticket no lease.
///
/// ```
/// use tollgate::Limiter;
/// use tollgate::limiter::TicketError;
///
/// let limiter = Limiter::in_memory()?;
/// let error = limiter.redeem("copied by half").wait().unwrap_err();
/// assert!(matches!(error, TicketError::NotOne(_)));
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TicketError {
    /// Its resources would be freed when its process ends.
    #[error("the lease holds resources for this process; acquire it with detached(ttl) to hand it on")]
    Held,
    /// It holds nothing of the store, which was unavailable.
    #[error("the lease is degraded, so there is nothing to hand on")]
    Degraded,
    /// The text is no ticket.
    #[error("this is no ticket: {0}; copy all of what acquire gave you")]
    NotOne(&'static str),
    /// An earlier version wrote it, and did not seal it.
    #[error("the ticket is of an earlier version, which did not seal them; acquire anew")]
    TooOld,
    /// The lease was taken by the process that this one was forked off from, and is that one's to pass on.
    #[error("the lease belongs to the process that took it; make the ticket there, or acquire one here")]
    OtherProcess,
    /// No valid secret of the namespace sealed it. Nothing was changed.
    #[error(
        "namespace {0:?} did not give out this ticket: it was changed, is of another namespace or store, or is older than the last two secrets; nothing was changed"
    )]
    NotGenuine(String),
    /// Its time is over: what it holds of resources is free, and what it took of rates stays charged.
    #[error("the ticket expired at {0}; what it took stays charged, and nothing was changed")]
    Expired(String),
    /// The secret that seals tickets cannot be had.
    #[error(transparent)]
    Catalog(CatalogError),
}

impl From<CatalogError> for TicketError {
    fn from(error: CatalogError) -> TicketError {
        match error {
            CatalogError::NotAToken(why) => TicketError::NotOne(why),
            CatalogError::TokenRefused(namespace) => TicketError::NotGenuine(namespace),
            other => TicketError::Catalog(other),
        }
    }
}

impl From<StoreError> for TicketError {
    fn from(error: StoreError) -> TicketError {
        TicketError::Catalog(error.into())
    }
}

/// Whether a call was the first to end a ticket.
///
/// ```
/// use tollgate::limiter::{LeaseEnd, TicketEnd};
/// use tollgate::{demand, Level, Limit, Limiter, Limits};
///
/// let limiter = Limiter::in_memory()?;
/// limiter.catalog().set_limits(Level::System, &Limits::new([Limit::per_minute("rpm", 10)])?).wait()?;
/// let ticket = limiter.acquire("user-1", "gpt-4", demand! { rpm: 1 }).wait()?.into_ticket().wait()?;
/// let end = || limiter.redeem(&ticket).wait()?.end_once(LeaseEnd::Commit).wait().map_err(tollgate::Error::from);
/// assert_eq!((end()?, end()?), (TicketEnd::Now, TicketEnd::Before), "it counts once");
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TicketEnd {
    /// It was ended now.
    Now,
    /// It was ended before, and nothing was changed.
    Before,
}

/// The identity and expiry of a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    /// With it, the ticket ends once, however many try.
    pub(super) id: OpId,
    /// From when on it is refused.
    pub(super) expires: Tick,
}

impl Ticket {
    fn new(now: Tick, ttl: Option<Span>) -> Ticket {
        let life = ttl.map_or(TICKET_KEPT, |ttl| ttl.max(TICKET_KEPT));
        Ticket { id: OpId(random_id()), expires: now + life }
    }
}

/// A holder that is no process, so that no store can see it gone; it loses what it holds when its time is over.
pub(super) fn detached_term(ttl: Span) -> LeaseTerm {
    LeaseTerm { holder: random_id() >> 32, ttl }
}

impl<'a> LimiterLease<'a> {
    /// Ends the lease here without settling it: a process that has the ticket can, with [`Limiter::redeem`]. Until then it
    /// stays charged as it was taken. What was noted on it is forgotten.
    ///
    /// A lease that holds resources must have been acquired [`detached`](crate::Acquire::detached), with the time after
    /// which they are free if no process settles it. The ticket can be redeemed for that time, or for
    /// [`TICKET_KEPT`] if that is longer. The ticket of a lease that was redeemed is that ticket
    /// again, and ends with it.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it answers, the lease is dropped, as it would be without a word.
    ///
    /// # Errors
    ///
    /// [`TicketError`]; the lease is dropped then, as it would be without a word.
    pub fn into_ticket(self) -> Reply<'a, Result<String, TicketError>> {
        let mut lease = self;
        Reply::later(async move {
            if !lease.is_of_this_process() {
                return Err(TicketError::OtherProcess);
            }
            let shared = lease.shared().clone();
            if lease.is_degraded() {
                return Err(TicketError::Degraded);
            }
            let Some(stored) = lease.as_stored() else { return Err(TicketError::Degraded) };
            let holds = stored.reservations.iter().any(Reservation::holds_resources);
            if holds && !stored.is_detached {
                return Err(TicketError::Held);
            }
            let ttl = stored.term().map(|term| term.ttl);
            let ticket = stored.ticket.unwrap_or_else(|| Ticket::new(shared.clock.now(), ttl));
            let text = stored.to_text(&ticket);
            let sealed = shared.store.bounded(shared.catalog.seal(&text)).await?;
            lease.close();
            Ok(sealed)
        })
    }

    /// Ends the lease of a ticket, and returns whether it was ended before. To know that, a record is kept until the
    /// ticket has expired and for [`TICKET_KEPT`] more. A lease that is of no ticket is always ended now.
    ///
    /// # Cancel safety
    ///
    /// When this returns, awaited or not, it has been sent.
    ///
    /// # Errors
    ///
    /// [`LeaseError::Store`] if it could not be written down, or if it is not known who ended it.
    pub fn end_once(mut self, ending: LeaseEnd) -> Reply<'static, Result<TicketEnd, LeaseError>> {
        if !self.is_of_this_process() {
            self.open.set(false);
            return Reply::ready(Ok(TicketEnd::Before));
        }
        let Some(ticket) = self.as_stored().and_then(|stored| stored.ticket) else {
            let ended = match ending {
                LeaseEnd::Commit => self.commit(),
                LeaseEnd::Cancel => self.cancel(),
            };
            return Reply::later(async move { ended.await.map(|()| TicketEnd::Now) });
        };
        self.close();
        let lease = self.into_owned();
        Reply::eager(async move { lease.end_ticket(ticket, ending).await })
    }

    async fn end_ticket(mut self, ticket: Ticket, ending: LeaseEnd) -> Result<TicketEnd, LeaseError> {
        let shared = self.shared().clone();
        let by = format!("{:x}", random_id());
        let Ticket { id: OpId(id), expires } = ticket;
        let writes = shared.catalog.ticket_writes(id, expires, &by);
        let record = writes.last().map(|write| write.key().clone());
        match self.send_end(ending, writes).await {
            Ok(()) => {}
            Err(RecordsError::Store(error)) => return Err(error.into()),
            Err(RecordsError::Failed(0)) => {
                return Err(StoreError::NamespaceGone(shared.store.namespace.to_string()).into());
            }
            Err(_) => return Ok(TicketEnd::Before),
        }
        // The store answers a repeated call as the first time; only the record tells which caller made it.
        let found = shared.store.backend.get_many(record.as_slice());
        let found = shared.store.bounded(found).await.map_err(|error| match error {
            RecordsError::Store(error) => error,
            other => StoreError::BadCall(other.to_string()),
        })?;
        let is_ours = found.into_iter().flatten().any(|item| item.text("by") == Some(by.as_str()));
        Ok(if is_ours { TicketEnd::Now } else { TicketEnd::Before })
    }
}

impl Limiter {
    /// The lease of a ticket, to be settled, committed or cancelled here. It counts once: a ticket that is redeemed and
    /// ended again changes nothing. A lease that is dropped without being ended changes nothing either, and the ticket can
    /// be redeemed again.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
    ///
    /// # Errors
    ///
    /// [`TicketError`]: the text is no ticket, it was changed or is of another namespace, it has expired, or the secret of
    /// the namespace cannot be read. Nothing was changed.
    pub fn redeem<'a>(&'a self, ticket: &'a str) -> Reply<'a, Result<LimiterLease<'a>, TicketError>> {
        Reply::later(async move {
            let ticket = ticket.trim();
            if UNSEALED_FORMS.iter().any(|form| ticket.starts_with(form)) {
                return Err(TicketError::TooOld);
            }
            let unsealed = self.0.catalog.unseal(ticket);
            let text = self.0.store.bounded(unsealed).await?;
            let (mut stored, ticket) = parse(&text).map_err(TicketError::NotOne)?;
            if ticket.expires <= self.0.clock.now() {
                return Err(TicketError::Expired(tollgate_store::usage::iso(ticket.expires)));
            }
            stored.ticket = Some(ticket);
            let mut lease = LimiterLease::stored(self, stored, None);
            // Other processes may have the ticket: only an explicit end may end it.
            lease.close();
            Ok(lease)
        })
    }
}
