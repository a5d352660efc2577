//! A lease belongs to the process that took it.

use std::sync::Arc;
use std::time::Duration;

use tollgate::limiter::{LeaseEnd, TicketError};
use tollgate::store::Backend;
use tollgate::{Attempt, Lease, Level, Limit, LimitSet, Limiter, LimiterLease, Limits, demand};

use crate::stores;
use crate::support::Folder;
use crate::support::fork::{End, fork_and_end, one_at_a_time};

/// What a child does with its copy of a lease of a set.
const ENDS: [fn(Lease<'static>); 6] = [
    drop,
    |lease| lease.settle(demand! { tpm: 0 }).wait().expect("a copy does nothing"),
    |lease| lease.settle(demand! { tpm: 900 }).wait().expect("a copy does nothing"),
    |lease| lease.cancel().wait().expect("a copy does nothing"),
    |lease| lease.commit().wait().expect("a copy does nothing"),
    |lease| {
        assert!(!lease.heartbeat().wait().expect("a copy asks nobody"), "it is none of this process");
        let mut lease = lease.into_owned();
        lease.report(demand! { tpm: 700 }).expect("it is a limit");
    },
];

const YEAR: Duration = Duration::from_secs(365 * 24 * 3_600);

fn limits() -> [Limit; 2] {
    // Nothing comes back while the test runs, however slow the machine is.
    let limits = [Limit::rate("tpm", 1_000, YEAR).build(), Limit::resource("slots", 1).build()];
    limits.map(|limit| limit.expect("it is valid"))
}

fn available(set: &LimitSet) -> [i64; 2] {
    let status = set.peek().wait().expect("it answers");
    ["tpm", "slots"].map(|name| status.limit(name).expect("it is a limit").available())
}

/// Whatever a child does to its copy, the lease of the parent stays as it is, and counts once.
fn check_set(set: &LimitSet) {
    for end in ENDS {
        let before = available(set);
        let lease = set.acquire(demand! { tpm: 100 }).wait().expect("it is free");
        let mut copy = Some(lease.into_owned());
        let ended = fork_and_end(|| end(copy.take().expect("it is there")));
        assert_eq!(ended, End::Code(0));
        assert_eq!(available(set), [before[0] - 100, 0]);
        assert!(matches!(set.try_acquire(demand! { tpm: 1 }).wait(), Ok(Attempt::Denied(_))));
        drop(copy);
        assert_eq!(available(set), [before[0] - 100, 1]);
    }
}

fn check_set_in(store: Arc<dyn Backend>) {
    let set = LimitSet::builder().limits(limits()).store(store).name("shared").build();
    check_set(&set.expect("they are valid"));
}

/// What a child does with its copy of a lease of a limiter.
const LIMITER_ENDS: [fn(LimiterLease<'static>); 7] = [
    drop,
    |lease| lease.settle(demand! { tpm: 0 }).wait().expect("a copy does nothing"),
    |lease| lease.commit().wait().expect("a copy does nothing"),
    |lease| lease.cancel().wait().expect("a copy does nothing"),
    |lease| {
        assert!(!lease.heartbeat().wait().expect("a copy asks nobody"), "it is none of this process");
        let refused = lease.into_ticket().wait().expect_err("it is not to be handed on");
        assert_eq!(refused, TicketError::OtherProcess);
    },
    |lease| {
        lease.end_once(LeaseEnd::Cancel).wait().expect("a copy does nothing");
    },
    |mut lease| drop(lease.consume(demand! { tpm: 1 }).wait().expect_err("nothing is added to a copy")),
];

fn check_limiter(limiter: &Limiter, slots_held: bool) {
    let limits = Limits::new(limits()).expect("they are valid");
    limiter.catalog().set_limits(Level::Resource("gpt"), &limits).wait().expect("it answers");
    let available = |name| limiter.available("user", "gpt").wait().expect("it answers").available(name);
    for end in LIMITER_ENDS {
        let tpm = available("tpm").expect("it is a limit");
        let slots = i64::from(!slots_held);
        let lease = limiter.acquire("user", "gpt", demand! { tpm: 10, slots: 1 - slots as u64 });
        let mut copy = Some(lease.wait().expect("it is free").into_owned());
        let ended = fork_and_end(|| end(copy.take().expect("it is there")));
        assert_eq!(ended, End::Code(0));
        assert_eq!([available("tpm"), available("slots")], [Some(tpm - 10), Some(slots)]);
        copy.take().expect("it is there").commit().wait().expect("it counts");
        assert_eq!([available("tpm"), available("slots")], [Some(tpm - 10), Some(1)]);
    }
}

fn check_limiter_in(store: Arc<dyn Backend>) {
    let limiter = Limiter::open(store, "default").wait().expect("it answers");
    [true, false].into_iter().for_each(|slots_held| check_limiter(&limiter, slots_held));
}

#[test]
fn a_copy_of_a_lease_in_a_forked_process_does_nothing_in_memory() {
    let _alone = one_at_a_time();
    check_set(&LimitSet::new(limits()).expect("they are valid"));
    check_limiter_in(Arc::new(tollgate::store::Memory::default()));
}

#[test]
fn a_copy_of_a_lease_in_a_forked_process_does_nothing_in_shared_memory() {
    let (_alone, folder) = (one_at_a_time(), Folder::new());
    let store = Arc::new(crate::support::open(folder.path()));
    check_set_in(store.clone());
    check_limiter_in(store);
}

#[test]
fn a_copy_of_a_lease_in_a_forked_process_does_nothing_in_a_file() {
    let (_alone, folder) = (one_at_a_time(), Folder::new());
    let store = Arc::new(stores::file(folder.path()));
    check_set_in(store.clone());
    check_limiter_in(store);
}

#[test]
fn a_copy_of_a_lease_in_a_forked_process_does_nothing_on_redis() {
    let _alone = one_at_a_time();
    let store = Arc::new(stores::redis("copies"));
    check_set_in(store.clone());
    check_limiter_in(store);
}

#[test]
fn a_copy_of_a_lease_in_a_forked_process_does_nothing_on_dynamodb() {
    let _alone = one_at_a_time();
    let store = Arc::new(stores::dynamo("copies"));
    check_set_in(store.clone());
    check_limiter_in(store);
}

#[test]
fn tickets_of_a_parent_and_of_its_child_are_not_alike() {
    let (_alone, folder) = (one_at_a_time(), Folder::new());
    let limiter = Limiter::open(Arc::new(crate::support::open(folder.path())), "default");
    let limiter = limiter.wait().expect("it answers");
    let limits = Limits::new([Limit::rate("tpm", 1_000, YEAR)]).expect("they are valid");
    limiter.catalog().set_limits(Level::Resource("gpt"), &limits).wait().expect("it answers");
    let ticket = || {
        let lease = limiter.acquire("user", "gpt", demand! { tpm: 10 }).wait().expect("it is free");
        lease.into_ticket().wait().expect("it holds no resources")
    };
    let file = folder.file("ticket");
    assert_eq!(fork_and_end(|| std::fs::write(&file, ticket()).expect("it can be written")), End::Code(0));
    let tickets = [ticket(), std::fs::read_to_string(&file).expect("it was written")];
    for ticket in &tickets {
        let lease = limiter.redeem(ticket).wait().expect("it is a ticket");
        lease.end_once(LeaseEnd::Cancel).wait().expect("it answers");
    }
    let available = limiter.available("user", "gpt").wait().expect("it answers").available("tpm");
    assert_eq!(available, Some(1_000), "both were given back");
}
