//! Tickets: leases that outlive the process that took them.
//!
//! A shell that acquires, works and settles is three processes; so is a client of a server, from the server's side. What
//! was taken is written as text, which whoever has it can settle, once.

use std::fmt::Write as _;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use tollgate_core::{AMOUNT_MAX, Costs, Demand, Limit, Limits, Span, Tick};
use tollgate_store::records::RecordsError;
use tollgate_store::{Key, OpId, Reply, StoreError, Term};

use super::end::Ending;
use super::lease::{Held, Lease, Stored};
use super::plan::Planned;
use super::{LeaseError, Limiter};
use crate::within::within;

/// What a ticket of this form begins with.
const FORM: &str = "tg2";

/// What one begins with that does not say which namespace it is of, so that nobody can tell whether it is of this one.
const FORM_WITHOUT_NAMESPACE: &str = "tg1";

/// Why a lease cannot become a ticket, or a text is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TicketError {
    /// What it holds would be taken from it as soon as its process is gone.
    #[error("the lease holds resources for this process; acquire it with detached(ttl) to hand it on")]
    Held,
    /// It holds nothing of the store, which was away.
    #[error("the lease is degraded, so there is nothing to hand on")]
    Degraded,
    /// The text is no ticket.
    #[error("{0:?} is no ticket: {1}; copy what acquire gave you, such as tg2+...")]
    NotOne(String, &'static str),
    /// An earlier version wrote it, and it does not say which namespace it is of.
    #[error("the ticket is of an earlier version and does not say its namespace; acquire anew")]
    TooOld,
    /// It is of another namespace, or of one of this name that was made anew. Nothing was changed in either.
    #[error("the ticket is of the namespace with id {id}, and this one has id {here}; redeem it there")]
    OtherNamespace {
        /// The id of the namespace that the ticket is of.
        id: String,
        /// The id of the namespace that it was brought to.
        here: String,
    },
}

/// Whether whoever ended a ticket was the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was ended now.
    Now,
    /// It was ended before, and nothing was changed.
    Before,
}

/// A holder that is no process, so that nobody can see it gone; it loses what it holds when its time is over.
pub(super) fn detached_term(ttl: Span) -> Term {
    Term { holder: random_id() >> 32, ttl }
}

fn random_id() -> u128 {
    let random = || u128::from(RandomState::new().build_hasher().finish());
    random() << 64 | random()
}

impl Lease<'_> {
    /// Ends the lease here without settling it: who has the ticket can, in any process, with
    /// [`Limiter::redeem`]. Until then it stays charged as it was taken. What was noted on it is forgotten.
    ///
    /// A lease that holds resources must have been acquired [`detached`](super::Acquire::detached), with the time after
    /// which they are free if nobody settles it.
    ///
    /// # Errors
    ///
    /// [`TicketError`]; the lease is dropped then, as it would be without a word.
    pub fn into_ticket(mut self) -> Result<String, TicketError> {
        if self.is_degraded() {
            return Err(TicketError::Degraded);
        }
        let Some(stored) = self.as_stored() else { return Err(TicketError::Degraded) };
        let holds = stored.groups.iter().flatten().any(|held| held.planned.holds_resources());
        if holds && !stored.is_detached {
            return Err(TicketError::Held);
        }
        let text = stored.to_text();
        self.is_open = false;
        Ok(format!("{FORM}+{}+{text}", self.shared().namespace))
    }
}

impl Lease<'_> {
    /// Ends the lease of a ticket, and tells whether somebody did before. To know that, a record is kept for
    /// [`TICKET_KEPT`](tollgate_catalog::TICKET_KEPT); who does not want to know has [`commit`](Lease::commit) and
    /// [`cancel`](Lease::cancel), which leave none. A lease that is of no ticket is always ended now.
    ///
    /// # Cancel safety
    ///
    /// When this returns, awaited or not, it has been sent.
    ///
    /// # Errors
    ///
    /// [`LeaseError::Store`] if it could not be written down, or if it is not known who ended it.
    pub fn end_once(mut self, ending: Ending) -> Reply<'static, Result<Ended, LeaseError>> {
        let Some(OpId(id)) = self.as_stored().and_then(|stored| stored.id) else {
            let ended = match ending {
                Ending::Commit => self.commit(),
                Ending::Cancel => self.cancel(),
            };
            return Reply::later(async move { ended.await.map(|()| Ended::Now) });
        };
        self.is_open = false;
        let mut lease = self.into_owned();
        Reply::eager(async move {
            let shared = lease.shared().clone();
            let by = format!("{:x}", random_id());
            let writes = shared.catalog.ticket_writes(id, &by);
            let record = writes.last().map(|write| write.key().clone());
            match lease.send_end(ending, |_| writes).await {
                Ok(()) => {}
                Err(RecordsError::Store(error)) => return Err(error.into()),
                Err(RecordsError::Failed(0)) => {
                    return Err(StoreError::NamespaceGone(shared.namespace.to_string()).into());
                }
                Err(_) => return Ok(Ended::Before),
            }
            // The store answers a call that it remembers as it did at first; so the record tells who made it.
            let found = shared.backend.get_many(record.as_slice());
            let found =
                within(&shared.clock, shared.settings.timeout, found).await.map_err(|error| match error {
                    RecordsError::Store(error) => error,
                    other => StoreError::BadCall(other.to_string()),
                })?;
            let is_ours = found.into_iter().flatten().any(|item| item.text("by") == Some(by.as_str()));
            Ok(if is_ours { Ended::Now } else { Ended::Before })
        })
    }
}

impl Limiter {
    /// The lease of a ticket, to be settled, committed or cancelled here. It counts once: whoever redeems a ticket again
    /// changes nothing, for as long as the store remembers.
    ///
    /// # Errors
    ///
    /// [`TicketError::NotOne`], [`TicketError::TooOld`], or [`TicketError::OtherNamespace`] for one that is of another
    /// namespace than this limiter.
    pub fn redeem(&self, ticket: &str) -> Result<Lease<'_>, TicketError> {
        let sections: Vec<&str> = ticket.trim().split('+').collect();
        let not_one = |why| TicketError::NotOne(ticket.into(), why);
        let (namespace, sections) = match &sections[..] {
            [FORM, namespace, sections @ ..] if !namespace.is_empty() => (*namespace, sections),
            [FORM, ..] => return Err(not_one("it was cut off")),
            [FORM_WITHOUT_NAMESPACE, _, ..] => return Err(TicketError::TooOld),
            _ => return Err(not_one("it does not begin with tg2")),
        };
        let stored = parse(sections).map_err(not_one)?;
        if *namespace != *self.0.namespace {
            let (id, here) = (namespace.into(), self.0.namespace.to_string());
            return Err(TicketError::OtherNamespace { id, here });
        }
        Ok(Lease::stored(self, stored, None))
    }
}

impl Stored {
    /// What stands behind `tg2+NAMESPACE+`: `ID+HOLDER+ENTITY+RESOURCE,RESOURCE+PART+PART`, where a part is
    /// `ENTITY,RESOURCE,AT,rpm=1,slots:1`: names and numbers only, with nothing that a shell would make something of.
    fn to_text(&self) -> String {
        let id = random_id();
        let holder = self.term.map_or("-".into(), |term| format!("{:x}", term.holder));
        let mut text = format!("{id:x}+{holder}+{}+{}", self.entity, self.resources.join(","));
        for Held { planned, at, .. } in self.groups.iter().flatten() {
            // Writing to a string cannot fail.
            let _ = write!(text, "+{},{},{}", planned.entity(), planned.resource, at.as_micros());
            for (limit, amount) in
                planned.limits().iter().zip(planned.costs.amounts()).filter(|(_, it)| **it > 0)
            {
                let sign = if limit.is_resource() { ':' } else { '=' };
                let _ = write!(text, ",{}{sign}{amount}", limit.name());
            }
        }
        text
    }
}

fn parse(sections: &[&str]) -> Result<Stored, &'static str> {
    let mut sections = sections.iter().copied();
    let mut section = || sections.next().filter(|it| !it.is_empty()).ok_or("it was cut off");
    let id = u128::from_str_radix(section()?, 16).map_err(|_| "its id is no number")?;
    let term = match section()? {
        "-" => None,
        holder => {
            let holder = u128::from_str_radix(holder, 16).map_err(|_| "its holder is no number")?;
            Some(Term { holder, ttl: Span::covering(Duration::from_micros(1)) })
        }
    };
    let (entity, resources) = (section()?, section()?);
    let resources: Vec<Box<str>> = resources.split(',').map(Into::into).collect();
    let mut parts: Vec<Held> = Vec::new();
    for text in sections {
        parts.push(parse_part(text, entity, &resources)?);
    }
    if parts.is_empty() {
        return Err("it was cut off");
    }
    // Several takes from one bucket are settled one after the other.
    let mut groups: Vec<Vec<Held>> = Vec::new();
    for part in parts {
        let has_bucket =
            |group: &&mut Vec<Held>| !group.iter().any(|held| held.planned.key() == part.planned.key());
        match groups.iter_mut().find(has_bucket) {
            Some(group) => group.push(part),
            None => groups.push(vec![part]),
        }
    }
    Ok(Stored::redeemed(groups, resources, entity.into(), term, OpId(id)))
}

fn parse_part(text: &str, caller: &str, resources: &[Box<str>]) -> Result<Held, &'static str> {
    let mut fields = text.split(',');
    let mut field = || fields.next().filter(|it| !it.is_empty()).ok_or("a part of it was cut off");
    let entity = field()?;
    let resource: usize = field()?.parse().map_err(|_| "a part names no resource")?;
    let name = resources.get(resource).ok_or("a part names a resource that is not there")?;
    let at = Tick::from_micros(field()?.parse().map_err(|_| "a part has no time")?);
    let taken = fields.map(parse_amount).collect::<Result<Vec<_>, _>>()?;
    let limits = Limits::new(taken.iter().map(|(limit, _)| limit.clone()))
        .map_err(|_| "a part names a limit twice")?;
    let demand: Demand<'_> = taken.iter().map(|(limit, amount)| (limit.name().as_str(), *amount)).collect();
    let costs = if taken.is_empty() { Ok(Costs::none(0)) } else { limits.costs(&demand) };
    let costs = costs.map_err(|_| "an amount is not valid")?;
    // What is of another entity than the one that called was charged to it as a parent.
    let costs = if entity == caller { costs } else { costs.of_child() };
    let key = Key::new(&[entity, name]);
    Ok(Held::redeemed(Planned::redeemed(entity, key, resource, limits, costs), at))
}

/// A limit of which only the name counts, and whether it is given back: what is settled is moved to the limits in force
/// by that.
fn parse_amount(text: &str) -> Result<(Limit, u64), &'static str> {
    const WHY: &str = "an amount is no number";
    let (limit, amount) = match (text.split_once('='), text.split_once(':')) {
        (Some((name, amount)), _) => (Limit::per_second(name, AMOUNT_MAX), amount),
        (None, Some((name, amount))) => (Limit::resource(name, AMOUNT_MAX), amount),
        (None, None) => return Err(WHY),
    };
    Ok((limit.build().map_err(|_| "a limit has no valid name")?, amount.parse().map_err(|_| WHY)?))
}
