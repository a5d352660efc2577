//! Tickets: leases that are passed on as text.

use std::sync::Arc;
use std::time::Duration;

use tollgate::Limiter;
use tollgate::limiter::{LeaseEnd, TicketEnd, TicketError};
use tollgate_catalog::Level;
use tollgate_core::{Limit, demand};

use super::LimiterFixture;
use super::fixture::{RESOURCE, built, limiter_on};
use crate::OpenBackend;

const HOUR_MS: u64 = 3_600_000;

/// Returns the ticket of a call of `tpm` that may outlive its process for ten seconds.
fn ticket_of(fixture: &LimiterFixture, entity: &str, tpm: u64) -> String {
    let call = fixture.limiter.acquire(entity, RESOURCE, demand! { tpm: tpm });
    let lease = call.detached(Duration::from_secs(10)).wait().expect("there is room");
    lease.into_ticket().wait().expect("it was detached")
}

fn end(limiter: &Limiter, ticket: &str, ending: LeaseEnd) -> TicketEnd {
    let lease = limiter.redeem(ticket).wait().expect("it is a ticket");
    lease.end_once(ending).wait().expect("the store answers")
}

fn refusal(limiter: &Limiter, ticket: &str) -> TicketError {
    limiter.redeem(ticket).wait().expect_err("it is refused")
}

/// However often it is redeemed, it counts once.
pub fn a_ticket_is_settled_once_by_any_process_that_has_it(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.create("parent", None);
    fixture.create("user", Some("parent"));
    fixture.set(Level::System, [Limit::per_hour("tpm", 100), Limit::resource("slots", 2)]);
    let ticket = ticket_of(&fixture, "user", 40);
    let left = |entity| (fixture.available(entity, "tpm"), fixture.available(entity, "slots"));
    assert_eq!((left("user"), left("parent")), ((60, 1), (60, 1)));
    let another = limiter_on(&fixture.backend, |builder| builder);
    for _ in 0..3 {
        let lease = another.redeem(&ticket).wait().expect("it is a ticket");
        lease.settle(demand! { tpm: 70 }).wait().expect("the store answers");
        assert_eq!((left("user"), left("parent")), ((30, 2), (30, 2)));
    }
    // A ticket that was settled as it was taken needs no write, but has ended.
    let call = fixture.limiter.acquire("parent", "other", demand! { tpm: 10, slots: 0 });
    let ticket = call.wait().expect("there is room").into_ticket().wait().expect("it holds nothing");
    for used in [10, 0, 90] {
        let lease = another.redeem(&ticket).wait().expect("it is a ticket");
        lease.settle(demand! { tpm: used }).wait().expect("the store answers");
        let status = fixture.limiter.available("parent", "other").wait().expect("the store is there");
        assert_eq!(status.available("tpm"), Some(90), "{used}");
    }
    // No process redeems this one.
    drop(ticket_of(&fixture, "user", 10));
    assert_eq!(left("user"), (20, 1));
    fixture.advance_ms(10_000);
    assert_eq!(left("user"), (20, 2));
    for broken in ["", "tg1", "tg2", "tgl1", "tgl1.", "tgl1..", "tgl2.YQ.YQ", &ticket[..ticket.len() / 2]] {
        let refused = refusal(&another, broken);
        assert!(matches!(refused, TicketError::NotOne(..)), "{broken:?}: {refused}");
    }
    for unsealed in ["tg1+1+-+user+gpt-4+user,0,1,tpm=1", "tg2+ns+1+-+user+gpt-4+user,0,1,tpm=1"] {
        assert_eq!(refusal(&another, unsealed), TicketError::TooOld);
    }
}

/// A ticket is valid in its own namespace and store only.
pub fn a_ticket_is_refused_in_another_namespace(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.set(Level::System, [Limit::per_hour("tpm", 100)]);
    let lease = fixture.take("user", demand! { tpm: 40 }).expect("there is room");
    assert_eq!(lease.called(), Some(("user", RESOURCE)));
    let ticket = lease.into_ticket().wait().expect("it holds nothing");
    let other = Limiter::open(Arc::clone(&fixture.backend), "other").wait().expect("the store is there");
    let limits = built([Limit::per_hour("tpm", 100)]);
    other.catalog().set_limits(Level::System, &limits).wait().expect("the limits can be stored");
    assert_eq!(refusal(&other, &ticket), TicketError::NotGenuine("other".into()));
    let elsewhere = LimiterFixture::new(open);
    assert_eq!(refusal(&elsewhere.limiter, &ticket), TicketError::NotGenuine("default".into()));
    let lease = fixture.limiter.redeem(&ticket).wait().expect("it is of this one");
    lease.settle(demand! { tpm: 70 }).wait().expect("the store answers");
    assert_eq!(fixture.available("user", "tpm"), 30);
    let left = other.available("user", RESOURCE).wait().expect("the store is there");
    assert_eq!(left.available("tpm"), Some(100));
}

pub fn ending_a_ticket_again_reports_that_it_had_ended(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.set(Level::System, [Limit::per_hour("tpm", 100), Limit::resource("slots", 2)]);
    for (first, left) in [(LeaseEnd::Cancel, 100), (LeaseEnd::Commit, 90)] {
        let ticket = ticket_of(&fixture, "user", 10);
        assert_eq!(end(&fixture.limiter, &ticket, first), TicketEnd::Now);
        for again in [LeaseEnd::Commit, LeaseEnd::Cancel] {
            assert_eq!(end(&fixture.limiter, &ticket, again), TicketEnd::Before);
            assert_eq!((fixture.available("user", "tpm"), fixture.available("user", "slots")), (left, 2));
        }
    }
    // The same holds if the first call was a commit.
    let ticket = ticket_of(&fixture, "user", 10);
    let lease = fixture.limiter.redeem(&ticket).wait().expect("it is a ticket");
    lease.commit().wait().expect("the store is there");
    assert_eq!(end(&fixture.limiter, &ticket, LeaseEnd::Cancel), TicketEnd::Before);
    assert_eq!(fixture.available("user", "tpm"), 80);
    let lease = fixture.take("user", demand! { tpm: 10 }).expect("there is room");
    assert_eq!(lease.end_once(LeaseEnd::Cancel).wait(), Ok(TicketEnd::Now));
    assert_eq!(fixture.available("user", "tpm"), 80);
}

/// A ticket for 10 that was made one for 60,000 gives nothing back, and one for 10 gives back 10.
pub fn a_ticket_changed_in_any_byte_is_refused_and_changes_nothing(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.set(Level::System, [Limit::per_hour("tpm", 100_000)]);
    fixture.spend("user", demand! { tpm: 90_000 });
    let ticket = ticket_of(&fixture, "user", 10);
    for place in 0..ticket.len() {
        for other in ['A', 'B', '9', '_', '.'] {
            let changed = format!("{}{other}{}", &ticket[..place], &ticket[place + 1..]);
            if changed != ticket {
                let refused = refusal(&fixture.limiter, &changed);
                let is_told = matches!(refused, TicketError::NotGenuine(_) | TicketError::NotOne(_));
                assert!(is_told, "{place} {other}: {refused}");
            }
        }
    }
    assert_eq!(fixture.available("user", "tpm"), 9_990);
    assert_eq!(end(&fixture.limiter, &ticket, LeaseEnd::Cancel), TicketEnd::Now);
    assert_eq!(fixture.available("user", "tpm"), 10_000);
}

/// A call that cannot know its tokens asks for none, and is charged for what it used.
pub fn a_limit_that_a_ticket_took_nothing_of_can_be_settled(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.create("parent", None);
    fixture.create("user", Some("parent"));
    let limits = || [Limit::per_hour("rpm", 60), Limit::per_hour("tpm", 1_000), Limit::per_hour("usd", 50)];
    fixture.set(Level::System, limits());
    let call = fixture.limiter.acquire("user", RESOURCE, demand! { rpm: 1, tpm: 0 });
    let ticket = call.wait().expect("there is room").into_ticket().wait().expect("it holds nothing");
    let lease = fixture.limiter.redeem(&ticket).wait().expect("it is a ticket");
    assert_eq!((lease.reserved("rpm"), lease.reserved("tpm")), (Some(1), Some(0)));
    lease.settle(demand! { tpm: 300, usd: 7 }).wait().expect("the store answers");
    for entity in ["user", "parent"] {
        let left = ["rpm", "tpm", "usd"].map(|limit| fixture.available(entity, limit));
        assert_eq!(left, [59, 700, 43], "{entity}");
    }
    let lease = fixture.limiter.redeem(&ticket).wait().expect("it is a ticket");
    assert!(lease.settle(demand! { eur: 1 }).wait().is_err());
    assert_eq!(fixture.available("user", "tpm"), 700);
}

/// One rotation leaves tickets in transit valid, and two end them.
pub fn a_ticket_outlives_one_rotation_and_not_two(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.set(Level::System, [Limit::per_hour("tpm", 100)]);
    let tickets = [ticket_of(&fixture, "user", 10), ticket_of(&fixture, "user", 20)];
    fixture.catalog().rotate_secret().wait().expect("the store answers");
    assert_eq!(end(&fixture.limiter, &tickets[0], LeaseEnd::Cancel), TicketEnd::Now);
    assert_eq!(fixture.available("user", "tpm"), 80);
    fixture.catalog().rotate_secret().wait().expect("the store answers");
    let another = limiter_on(&fixture.backend, |builder| builder);
    for limiter in [&fixture.limiter, &another] {
        assert_eq!(refusal(limiter, &tickets[1]), TicketError::NotGenuine("default".into()));
    }
    assert_eq!(fixture.available("user", "tpm"), 80);
}

/// A ticket can be redeemed for a day or for as long as it holds something, and counts once however late that is.
pub fn a_ticket_expires_and_counts_once_until_then(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.set(Level::System, [Limit::per_day("tpm", 100), Limit::resource("slots", 9)]);
    let of_a_day = ticket_of(&fixture, "user", 20);
    let call = fixture.limiter.acquire("user", RESOURCE, demand! { tpm: 10 });
    let lease = call.detached(Duration::from_secs(48 * 3_600)).wait().expect("there is room");
    let of_two_days = lease.into_ticket().wait().expect("it was detached");
    let early = ticket_of(&fixture, "user", 10);
    assert_eq!(end(&fixture.limiter, &early, LeaseEnd::Cancel), TicketEnd::Now);
    fixture.advance_ms(24 * HOUR_MS - 1);
    assert_eq!(end(&fixture.limiter, &early, LeaseEnd::Cancel), TicketEnd::Before);
    assert!(fixture.limiter.redeem(&of_a_day).wait().is_ok());
    fixture.advance_ms(1);
    for ticket in [&early, &of_a_day] {
        let refused = refusal(&fixture.limiter, ticket);
        assert!(matches!(refused, TicketError::Expired(_)), "{refused}");
    }
    assert_eq!(end(&fixture.limiter, &of_two_days, LeaseEnd::Cancel), TicketEnd::Now);
    fixture.advance_ms(24 * HOUR_MS - 1);
    assert_eq!(end(&fixture.limiter, &of_two_days, LeaseEnd::Cancel), TicketEnd::Before);
    fixture.advance_ms(1);
    assert!(matches!(refusal(&fixture.limiter, &of_two_days), TicketError::Expired(_)));
}

/// A process that redeems a ticket and dies leaves it to the next.
pub fn a_redeemed_lease_that_is_dropped_changes_nothing(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.set(Level::System, [Limit::per_hour("tpm", 100), Limit::resource("slots", 2)]);
    let ticket = ticket_of(&fixture, "user", 10);
    let left = || (fixture.available("user", "tpm"), fixture.available("user", "slots"));
    drop(fixture.limiter.redeem(&ticket).wait().expect("it is a ticket"));
    assert_eq!(left(), (90, 1));
    // A redeemed lease becomes the same ticket again, and ends with it.
    let lease = fixture.limiter.redeem(&ticket).wait().expect("it is a ticket");
    let again = lease.into_ticket().wait().expect("it was one");
    assert_eq!(again, ticket);
    assert_eq!(end(&fixture.limiter, &again, LeaseEnd::Cancel), TicketEnd::Now);
    assert_eq!((left(), end(&fixture.limiter, &ticket, LeaseEnd::Cancel)), ((100, 2), TicketEnd::Before));
}
