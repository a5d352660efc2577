//! The text of a ticket below its seal.
//!
//! `ID+EXPIRES+HOLDER+ENTITY+RESOURCE,RESOURCE+PART+PART`, where a part is `ENTITY,RESOURCE,AT,rpm=1,tpm=0,slots:1`:
//! what was taken from one bucket, of each of its limits. Those of which nothing was taken are named as well, because more
//! of them may be settled. Names have neither of the signs.

use std::fmt::Write as _;
use std::time::Duration;

use tollgate_core::{AMOUNT_MAX, Costs, Demand, Limit, Limits, Span, Tick};
use tollgate_store::{Key, LeaseTerm, OpId};

use super::lease::StoredGrant;
use super::ticket::Ticket;
use crate::reservation::{Origin, Reservation, ReservedTake};

impl StoredGrant {
    /// What the lease holds, as text.
    pub(super) fn to_text(&self, ticket: &Ticket) -> String {
        let Ticket { id: OpId(id), expires } = ticket;
        let holder = self.term().map_or("-".into(), |term| format!("{:x}", term.holder));
        let (expires, resources) = (expires.as_micros(), self.resources.join(","));
        let mut text = format!("{id:x}+{expires}+{holder}+{}+{resources}", self.entity);
        for take in self.takes() {
            let (entity, _) = take.key.pair().expect("the key of an entity's bucket has two parts");
            // Writing to a string cannot fail.
            let _ = write!(text, "+{entity},{},{}", take.resource, take.at.as_micros());
            let limits = take.limits.iter().zip(take.costs.amounts());
            // A cooldown is no limit that anything is settled of.
            for (limit, amount) in limits.filter(|(limit, _)| !limit.is_cooldown()) {
                let sign = if limit.is_resource() { ':' } else { '=' };
                let _ = write!(text, ",{}{sign}{amount}", limit.name());
            }
        }
        text
    }
}

/// What a text says that a lease holds; otherwise what is wrong with it.
pub(super) fn parse(text: &str) -> Result<(StoredGrant, Ticket), &'static str> {
    let mut sections = text.split('+');
    let mut section = || sections.next().filter(|it| !it.is_empty()).ok_or("it was cut off");
    let id = u128::from_str_radix(section()?, 16).map_err(|_| "its id is no number")?;
    let expires = section()?.parse().map_err(|_| "its expiry is no number")?;
    let ticket = Ticket { id: OpId(id), expires: Tick::from_micros(expires) };
    let term = match section()? {
        "-" => None,
        holder => {
            let holder = u128::from_str_radix(holder, 16).map_err(|_| "its holder is no number")?;
            Some(LeaseTerm { holder, ttl: Span::covering(Duration::from_micros(1)) })
        }
    };
    let (entity, resources) = (section()?, section()?);
    let resources: Vec<Box<str>> = resources.split(',').map(Into::into).collect();
    let parts = sections
        .map(|text| parse_part(text, entity, &resources))
        .collect::<Result<Vec<ReservedTake>, _>>()?;
    if parts.is_empty() {
        return Err("it was cut off");
    }
    Ok((StoredGrant::redeemed(grouped(parts, term), resources, entity), ticket))
}

/// Several takes from one bucket are settled one after the other.
fn grouped(parts: Vec<ReservedTake>, term: Option<LeaseTerm>) -> Vec<Reservation> {
    let mut groups: Vec<Vec<ReservedTake>> = Vec::new();
    for part in parts {
        match groups.iter_mut().find(|group| !group.iter().any(|take| take.key == part.key)) {
            Some(group) => group.push(part),
            None => groups.push(vec![part]),
        }
    }
    groups.into_iter().map(|takes| Reservation::new(takes, Origin::Store, term)).collect()
}

fn parse_part(text: &str, caller: &str, resources: &[Box<str>]) -> Result<ReservedTake, &'static str> {
    let mut fields = text.split(',');
    let mut field = || fields.next().filter(|it| !it.is_empty()).ok_or("a part of it was cut off");
    let entity = field()?;
    let resource: usize = field()?.parse().map_err(|_| "a part names no resource")?;
    let name = resources.get(resource).ok_or("a part names a resource that is not there")?;
    let at = Tick::from_micros(field()?.parse().map_err(|_| "a part has no time")?);
    let taken = fields.map(parse_amount).collect::<Result<Vec<_>, _>>()?;
    let limits = Limits::new(taken.iter().map(|(limit, _)| limit.clone()))
        .map_err(|_| "a part names a limit twice")?;
    let demand: Demand = taken.iter().map(|(limit, amount)| (limit.name().as_str(), *amount)).collect();
    let costs = if taken.is_empty() { Ok(Costs::none(0)) } else { limits.costs(&demand) };
    let costs = costs.map_err(|_| "an amount is not valid")?;
    // What is of another entity than the one that called was charged to it as a parent.
    let costs = if entity == caller { costs } else { costs.of_child() };
    let key = Key::new(&[entity, name]);
    Ok(ReservedTake { key, limits, costs, at, resource, pin: None })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_cut_off_anywhere_is_refused_or_has_fewer_parts() {
        let whole = "1f+99+ab+user+gpt-4,embed+user,0,7,rpm=1,tpm=0,slots:1+user,1,7,rpm=2";
        let (stored, ticket) = parse(whole).map_err(str::to_owned).unwrap();
        assert_eq!(ticket, Ticket { id: OpId(0x1f), expires: Tick::from_micros(99) });
        assert_eq!(stored.to_text(&ticket), whole);
        for bad in [
            "",
            "1f",
            "1f+99+ab+user+gpt-4",
            "1f+99+ab+user+gpt-4+",
            "x+99+-+a+b+a,0,1,c=1",
            "1+x+-+a+b+a,0,1,c=1",
            "1+1+x+a+b+a,0,1,c=1",
            "1+1+-+a+b+a,1,1,c=1",
            "1+1+-+a+b+a,0,x,c=1",
            "1+1+-+a+b+a,0,1,c=x",
            "1+1+-+a+b+a,0,1,c",
            "1+1+-+a+b+a,0,1,c=1,c=2",
            "1+1+-+a+b+a,0,1,=1",
        ] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
