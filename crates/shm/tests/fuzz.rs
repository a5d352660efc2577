//! Whatever is in the file: an error, or an answer. Never the end of the process, and never a circle.

#![allow(clippy::unwrap_used, reason = "what panics here is a test")]

mod support;

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use support::fork::{End, fork, one_at_a_time};
use support::{Folder, Tap, open, queue};
use tollgate_core::Span;
use tollgate_shm::ShmStore;
use tollgate_store::records::{Index, Item, ItemKey, Query, Records, Write};
use tollgate_store::{Backend, LeaseTerm, Op, OpId, Priority, Scope, Step, Store, Transaction};

const HEADERS: u64 = 300;
const BODIES: u64 = 400;

/// A store that has something of everything.
fn prepared(folder: &Folder) {
    let store = open(folder.path());
    for user in 0..40 {
        let tap = Tap::new(&store, &format!("user-{user}"));
        let term = (user % 2 == 0).then_some(LeaseTerm { holder: user, ttl: Span::from_secs(60) });
        let costs = tap.costs(1, 1);
        let steps = [Step { place: tap.place(), op: Op::Take { costs: &costs, term } }];
        store.apply(&Transaction { id: Some(OpId(user)), steps: &steps, metered: true }).wait().unwrap();
        let item = Item::new(ItemKey::new("tests/p", format!("{user}"))).with("x", 1).indexed(
            Index::Children,
            "tests/q",
            "z",
        );
        store.write(&[Write::Put(item, Vec::new())]).wait().unwrap();
    }
    store.write_usage("tests", Scope::Entity("user-3")).wait().unwrap();
}

/// Uses all there is. What comes out does not matter, but that something does.
fn use_all(folder: &Folder) {
    // Rubbish may name a thread that is there as the owner of the lock.
    let builder = ShmStore::builder("x").folder(folder.path()).timeout(Duration::from_millis(20));
    let Ok(store) = builder.build() else { return };
    for user in [0, 1, 39, 100] {
        let tap = Tap::new(&store, &format!("user-{user}"));
        let _ = tap.try_take(1, 1, None);
        let _ = store.peek(&tap.place()).wait();
        let item = Item::new(ItemKey::new("tests/p", format!("{user}"))).with("x", 2);
        let _ = store.write(&[Write::Put(item, Vec::new())]).wait();
    }
    let _ = store.query(&Query::all("tests/p")).wait();
    let _ = store.query(&Query { newest_first: true, ..Query::all("tests/p") }).wait();
    let _ = store.find(Index::Children, &Query::all("tests/q")).wait();
    let _ = store.find(Index::Namespace, &Query::all("tests")).wait();
    let _ = store.buckets("tests", Scope::All, None, 1_000).wait();
    let _ = store.write_usage("tests", Scope::All).wait();
    let mut guard = store.wait_queues().guard(store.clock(), Priority::default(), store.clock().now());
    let _ = guard.enqueue([queue("user-1")], 10);
    drop(guard);
    let _ = store.forget("tests", Scope::All).wait();
    let _ = store.check();
}

fn fuzz(rounds: u64, at: impl Fn(&mut dyn FnMut(u64) -> u64) -> u64) {
    let _alone = one_at_a_time();
    let seed = std::env::var("TOLLGATE_SEED").ok().and_then(|seed| seed.parse().ok());
    let folder = Folder::new();
    prepared(&folder);
    let path = ShmStore::builder("x").folder(folder.path()).path().unwrap();
    let template = fs::read(&path).unwrap();
    for round in seed.map_or(0..rounds, |seed| seed..seed + 1) {
        let mut random = round.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut roll = |sides: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % sides
        };
        let file = File::options().write(true).open(&path).unwrap();
        file.write_all_at(&template, 0).unwrap();
        for _ in 0..=roll(4) {
            let at = at(&mut roll);
            let old = u64::from_ne_bytes(*template[at as usize * 8..].first_chunk().unwrap());
            let value = match roll(6) {
                0 => 0,
                1 => u64::MAX,
                2 => old.wrapping_add(roll(64)).wrapping_sub(32),
                3 => old ^ 1 << roll(64),
                4 => roll(template.len() as u64 / 8),
                _ => roll(u64::MAX),
            };
            file.write_all_at(&value.to_ne_bytes(), at * 8).unwrap();
        }
        drop(file);
        let end = fork(|| {
            // SAFETY: it lets the system end this process if it walks in a circle.
            unsafe { libc::alarm(20) };
            use_all(&folder);
        });
        assert_eq!(end.end(), End::Code(0), "TOLLGATE_SEED={round}");
    }
}

#[test]
fn a_header_of_rubbish_is_an_error() {
    fuzz(HEADERS, |roll| roll(256));
}

#[test]
fn a_body_of_rubbish_is_an_error() {
    const ARENA: u64 = 512 + 8 * 4_096 + 2 * (1 << 16);
    fuzz(BODIES, |roll| ARENA + roll(8_000));
}
