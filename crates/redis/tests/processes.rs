//! Several processes on one server: together they admit what there is, by the time of the server.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tollgate::catalog::Level;
use tollgate::{Attempt, Limit, Limiter, Limits, demand};
use tollgate_redis::RedisStore;
use tollgate_redis_local::{Server, ServerKind};
use tollgate_store::{BucketRef, Clock, Key, Op, Step, StepOutcome, Store, Transaction, TxnOutcome};

const CROWD: usize = 10;
const TRIES: usize = 20;
const CAPACITY: u64 = 100;

const TOGETHER: usize = 8;
const LASTS: Duration = Duration::from_secs(5);
const RATE: u64 = 300;
const BURST: u64 = 50;

/// The variable that says to a child what to do, and where the store is.
const TOLD: &str = "TOLLGATE_TEST_CHILD";

fn store(url: &str) -> RedisStore {
    RedisStore::builder(url).timeout(Duration::from_secs(60)).build().wait().expect("the server is there")
}

fn limiter(url: &str) -> Limiter {
    Limiter::open(Arc::new(store(url)), "default").wait().expect("it answers")
}

/// Only does something as a child.
#[test]
fn child() {
    let Ok(told) = std::env::var(TOLD) else { return };
    let (what, url) = told.split_once(' ').expect("it is told two things");
    let said = match what {
        "crowd" => format!("said={}\n", crowd(url)),
        _ => format!("said={}\n", history(url).iter().map(u64::to_string).collect::<Vec<_>>().join(",")),
    };
    std::io::stdout().write_all(said.as_bytes()).expect("somebody listens");
}

/// Tries so often, and says how often it was admitted.
fn crowd(url: &str) -> usize {
    let limiter = limiter(url);
    let admitted =
        (0..TRIES).filter(|_| match limiter.try_acquire("user", "gpt-4", demand! { rpm: 1 }).wait() {
            Ok(Attempt::Admitted(lease)) => lease.commit().wait().is_ok(),
            Ok(Attempt::Denied(_)) => false,
            Err(error) => panic!("{error}"),
        });
    admitted.count()
}

fn shared_limits() -> Limits {
    Limits::new([Limit::rate("calls", RATE, Duration::from_secs(1)).burst(BURST)]).expect("it is valid")
}

/// Takes as much as there is for a while, and says when it was admitted.
fn history(url: &str) -> Vec<u64> {
    let (store, limits, key) = (store(url), shared_limits(), Key::new(&["one", "key"]));
    let costs = limits.costs(&demand! { calls: 1 }).expect("it fits");
    let place = BucketRef { namespace: "history", key: &key, limits: &limits };
    let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
    let mut taken = Vec::new();
    let until = Clock::system().now() + tollgate_core::Span::covering(LASTS);
    while Clock::system().now() < until {
        match store.apply(&Transaction { id: None, steps: &steps, metered: false }).wait() {
            Ok(TxnOutcome::Done(done)) => match done[..] {
                [StepOutcome::Taken(it)] => taken.push(it.at.as_micros()),
                _ => panic!("a take came to {done:?}"),
            },
            Ok(TxnOutcome::Denied(_)) => {}
            other => panic!("a take came to {other:?}"),
        }
    }
    taken
}

fn start(what: &str, url: &str) -> Child {
    let this = std::env::current_exe().expect("it is running");
    let mut command = Command::new(this);
    command.args(["--exact", "child", "--nocapture"]).env(TOLD, format!("{what} {url}"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it can be started")
}

fn said(child: Child) -> String {
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let words = said.split("said=").nth(1).and_then(|rest| rest.split_whitespace().next());
    words.unwrap_or_default().to_owned()
}

#[test]
fn two_hundred_tries_of_ten_processes_on_a_hundred_admit_a_hundred() {
    for kind in ServerKind::ALL {
        let server = Server::start(kind);
        let limits = Limits::new([Limit::per_day("rpm", CAPACITY).burst(CAPACITY)]).expect("it is valid");
        limiter(&server.url()).catalog().set_limits(Level::System, &limits).wait().expect("it answers");
        let children: Vec<Child> = (0..CROWD).map(|_| start("crowd", &server.url())).collect();
        let admitted =
            children.into_iter().map(|child| said(child).parse::<u64>().expect("it says a number"));
        assert_eq!(admitted.sum::<u64>(), CAPACITY);
    }
}

#[test]
fn eight_processes_on_one_key_never_admit_more_than_there_is_in_any_interval() {
    let server = Server::start(ServerKind::Redis);
    let children: Vec<Child> = (0..TOGETHER).map(|_| start("history", &server.url())).collect();
    let mut all: Vec<u64> = Vec::new();
    for child in children {
        let words = said(child);
        all.extend(
            words.split(',').filter(|word| !word.is_empty()).map(|word| word.parse::<u64>().expect("a time")),
        );
    }
    all.sort_unstable();
    for (first, from) in all.iter().enumerate() {
        for (last, to) in all.iter().enumerate().skip(first) {
            let taken = (last - first + 1) as u64;
            let there_was = BURST * 1_000_000 + (to - from) * RATE;
            assert!(taken * 1_000_000 <= there_was, "{taken} in {} us", to - from);
        }
    }
    assert!(all.len() as u64 > BURST, "{} show nothing of the rate", all.len());
}
