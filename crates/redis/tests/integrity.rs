//! What is stored and cannot be read is found, and never taken for a full bucket.

use std::time::Duration;

use tollgate_core::{Limit, Limits, demand};
use tollgate_redis::RedisStore;
use tollgate_redis_local::{Server, ServerKind};
use tollgate_store::{BucketRef, Key, Op, Step, Store, StoreError, Transaction, TxnOutcome};

fn open(server: &Server) -> RedisStore {
    RedisStore::builder(server.url()).timeout(Duration::from_secs(30)).build().wait().expect("it opens")
}

fn take(store: &RedisStore, entity: &str) -> Result<TxnOutcome, StoreError> {
    let limits = Limits::new([Limit::per_hour("rph", 10)]).expect("they are valid");
    let (key, costs) = (Key::new(&[entity, "gpt"]), limits.costs(&demand! { rph: 1 }).expect("it fits"));
    let place = BucketRef { namespace: "ns", key: &key, limits: &limits };
    let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
    store.apply(&Transaction { id: None, steps: &steps, metered: false }).wait()
}

/// The name of a bucket's key on the server.
fn name(entity: &str) -> String {
    let parts = String::from_utf8(Key::new(&["ns", entity, "gpt"]).as_bytes().to_vec()).expect("short names");
    format!("{{tollgate}}b:{parts}")
}

#[test]
fn garbage_in_the_place_of_a_bucket_is_found_and_refused() {
    for kind in ServerKind::ALL {
        let server = Server::start(kind);
        let store = open(&server);
        assert!(matches!(take(&store, "good"), Ok(TxnOutcome::Done(_))));
        assert_eq!(store.damages().wait(), Ok(Vec::new()));
        server.command(&["SET", &name("garbage"), "M-but-nothing-else"]);
        server.command(&["SET", &name("empty"), ""]);
        server.command(&["HSET", &name("hash"), "field", "value"]);
        server.command(&["SET", "{tollgate}r:\u{4}ns/x#META", "no record"]);
        server.command(&["SET", "another program's key", ""]);
        for entity in ["garbage", "empty", "hash"] {
            let taken = take(&store, entity);
            assert!(matches!(taken, Err(StoreError::Refused(_))), "{entity}: {taken:?}");
        }
        let mut damages = store.damages().wait().expect("the server answers");
        damages.sort();
        let starts = [
            "bucket [\"ns\", \"empty\", \"gpt\"]: ",
            "bucket [\"ns\", \"garbage\"",
            "bucket [\"ns\", \"hash\"",
        ];
        assert_eq!(damages.len(), 4, "{damages:?}");
        for (damage, start) in damages.iter().zip(starts) {
            assert!(damage.starts_with(start), "{damage}");
        }
        assert!(damages[2].ends_with("it is of the type hash, not a string"), "{damages:?}");
        assert!(damages[3].starts_with("record "), "{damages:?}");
    }
}
