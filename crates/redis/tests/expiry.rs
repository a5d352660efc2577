//! A key expires only once its bucket equals a new one: no debt, no lease and no usage is forgotten.

mod common;

use std::time::Duration;

use tollgate_core::{Costs, Demand, Limit, LimitBuilder, Limits, Ready, Usage};
use tollgate_redis::RedisStore;
use tollgate_redis_local::{Client, RespReply, Server, ServerKind};
use tollgate_store::{BucketRef, Key, LeaseTerm, Op, Step, StepOutcome, Store, Transaction, TxnOutcome};

/// Keys of buckets, and for how many milliseconds each is still there; -1 for ever.
fn lives(client: &mut Client) -> Vec<i64> {
    let RespReply::List(keys) = client.command(&["KEYS", "*}b:*"]) else { panic!("there are keys") };
    let life = |key: &RespReply| match client.command_bytes(&[b"PTTL", key.bytes()]) {
        RespReply::Number(life) => life,
        other => panic!("a life is no {other:?}"),
    };
    keys.iter().map(life).collect()
}

struct Desk {
    store: RedisStore,
    limits: Limits,
    key: Key,
}

impl Desk {
    fn new(server: &Server, limit: LimitBuilder, key: &str) -> Desk {
        let store = RedisStore::builder(server.url()).build().wait().expect("the server is there");
        Desk { store, limits: Limits::new([limit]).expect("it is valid"), key: Key::new(&[key, "resource"]) }
    }

    fn place(&self) -> BucketRef<'_> {
        BucketRef { namespace: "expiry", key: &self.key, limits: &self.limits }
    }

    fn costs(&self, amount: u64) -> Costs {
        self.limits.costs(&Demand::new().with("it", amount)).expect("it fits")
    }

    fn apply(&self, op: Op<'_>, metered: bool) -> StepOutcome {
        let steps = [Step { place: self.place(), op }];
        match self.store.apply(&Transaction { id: None, steps: &steps, metered }).wait() {
            Ok(TxnOutcome::Done(done)) => done[0],
            other => panic!("it came to {other:?}"),
        }
    }

    /// When it is full again, in milliseconds from now; `None` if that is unknown.
    fn full_in_ms(&self) -> Option<i64> {
        let status = self.store.peek(&self.place()).wait().expect("the server is there").remove(0);
        match status.full() {
            Ready::Now => Some(0),
            Ready::At(at) => Some(at.since(self.store.clock().now()).as_micros() as i64 / 1_000),
            Ready::Unknown => None,
        }
    }
}

#[test]
fn a_key_outlives_its_debt_whatever_the_machine() {
    for kind in ServerKind::ALL {
        let day = Duration::from_secs(86_400);
        for limit in [
            Limit::rate("it", 10, day),
            Limit::rate("it", 1_000, Duration::from_secs(1)),
            Limit::fixed_window("it", 10, day),
            Limit::sliding_window("it", 10, day),
            Limit::quota("it", 10, day),
        ] {
            let server = Server::start(kind);
            let desk = Desk::new(&server, limit.clone(), "debtor");
            // The first makes it, the others are made by the script, and the last go into debt.
            for used in [1, 1, 2, 30] {
                let costs = desk.costs(1);
                let StepOutcome::Taken(taken) = desk.apply(Op::Take { costs: &costs, term: None }, false)
                else {
                    panic!("it was taken")
                };
                let usage = Usage { at: taken.at, reserved: &costs, used: &[used], holder: None };
                desk.apply(Op::Settle(usage), false);
                let full = desk.full_in_ms().expect("it fills up by itself");
                let life = lives(&mut server.client())[0];
                assert!(life == -1 || life >= full, "{limit:?} lives {life} ms and is full in {full} ms");
            }
        }
    }
}

#[test]
fn a_debt_is_charged_again_and_again_and_the_key_outlives_it() {
    let server = Server::start(ServerKind::Redis);
    let desk = Desk::new(&server, Limit::rate("it", 100, Duration::from_secs(1)), "debtor");
    let costs = desk.costs(1);
    desk.apply(Op::Take { costs: &costs, term: None }, false);
    for _ in 0..20 {
        let usage = Usage { at: desk.store.clock().now(), reserved: &costs, used: &[100_000], holder: None };
        desk.apply(Op::Settle(usage), false);
        let (full, life) = (desk.full_in_ms().expect("it fills up"), lives(&mut server.client())[0]);
        assert!(life >= full + 60_000, "it lives {life} ms and is full in {full} ms");
    }
}

#[test]
fn what_somebody_holds_is_kept_and_what_expires_is_kept_for_long_enough() {
    let server = Server::start(ServerKind::Redis);
    let desk = Desk::new(&server, Limit::resource("it", 5), "holder");
    let costs = desk.costs(1);
    desk.apply(Op::Take { costs: &costs, term: None }, false);
    desk.apply(Op::Take { costs: &costs, term: None }, false);
    assert_eq!(lives(&mut server.client()), [-1], "nobody says when it is given back");
    for _ in 0..2 {
        let usage = Usage { at: desk.store.clock().now(), reserved: &costs, used: &[0], holder: None };
        desk.apply(Op::Settle(usage), false);
    }
    let term = Some(LeaseTerm { holder: 7, ttl: tollgate_core::Span::from_secs(100_000) });
    desk.apply(Op::Take { costs: &costs, term }, false);
    let life = lives(&mut server.client())[0];
    assert!((100_000_000..200_000_000).contains(&life), "{life}");
    // A second, shorter hold does not shorten the life of the first.
    let term = Some(LeaseTerm { holder: 8, ttl: tollgate_core::Span::from_secs(1) });
    desk.apply(Op::Take { costs: &costs, term }, false);
    assert!(lives(&mut server.client())[0] >= 99_000_000);
}

#[test]
fn usage_that_is_not_written_down_keeps_its_bucket() {
    use tollgate_store::{Backend, Scope};
    let server = Server::start(ServerKind::Redis);
    let desk = Desk::new(&server, Limit::rate("it", 1_000, Duration::from_secs(1)), "metered");
    let costs = desk.costs(1);
    for _ in 0..3 {
        desk.apply(Op::Take { costs: &costs, term: None }, true);
    }
    assert_eq!(lives(&mut server.client()), [-1]);
    desk.store.write_usage("expiry", Scope::All).wait().expect("the server is there");
    assert!(lives(&mut server.client())[0] > 0, "now it may be forgotten");
}
