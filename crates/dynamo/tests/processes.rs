//! Several processes on one table, over HTTP: together they admit what there is, whatever their clocks say.

mod common;

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tollgate::catalog::Level;
use tollgate::{Attempt, Limit, Limiter, Limits, demand};
use tollgate_core::{Span, Tick};
use tollgate_dynamo::DynamoStore;
use tollgate_dynamo_local::{Engine, serve};
use tollgate_store::ManualClock;

const PROCESSES: usize = 10;
const TRIES: usize = 20;
const CAPACITY: u64 = 100;

/// The variable that says to a child where the table is, and whether the fast path is on.
const TOLD: &str = "TOLLGATE_TEST_CHILD";

fn limiter(endpoint: &str, fast_path: bool) -> Limiter {
    let store = DynamoStore::builder("limits").endpoint(endpoint).create_table(true).fast_path(fast_path);
    let store = store.timeout(Duration::from_secs(60)).build().wait().expect("the table is there");
    Limiter::open(Arc::new(store), "default").wait().expect("it answers")
}

/// An engine on a port of this host, for as long as the process lasts.
fn endpoint() -> String {
    let engine = Engine::in_memory().expect("there is memory for an engine");
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("there is a port");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().expect("there are threads");
        runtime.block_on(serve(engine, listener)).expect("it is served");
    });
    format!("http://{address}")
}

/// Only does something as a child: tries, and says how often it was admitted.
#[test]
fn child() {
    let Ok(told) = std::env::var(TOLD) else { return };
    let (endpoint, fast_path) = told.split_once(' ').expect("it is told two things");
    let limiter = limiter(endpoint, fast_path == "on");
    let admitted =
        (0..TRIES).filter(|_| match limiter.try_acquire("user", "gpt-4", demand! { rpm: 1 }).wait() {
            Ok(Attempt::Admitted(lease)) => lease.commit().wait().is_ok(),
            Ok(Attempt::Denied(_)) => false,
            Err(error) => panic!("{error}"),
        });
    let said = format!("admitted={}\n", admitted.count());
    std::io::Write::write_all(&mut std::io::stdout(), said.as_bytes()).expect("somebody listens");
}

#[test]
fn two_hundred_tries_of_ten_processes_on_a_hundred_admit_a_hundred() {
    let endpoint = endpoint();
    let limits = Limits::new([Limit::per_day("rpm", CAPACITY).burst(CAPACITY)]).expect("it is valid");
    limiter(&endpoint, true).catalog().set_limits(Level::System, &limits).wait().expect("it answers");
    let child = |number: usize| {
        let fast_path = if number.is_multiple_of(2) { "on" } else { "off" };
        let this = std::env::current_exe().expect("it is running");
        Command::new(this)
            .args(["--exact", "child", "--nocapture"])
            .env(TOLD, format!("{endpoint} {fast_path}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it can be started")
    };
    let children: Vec<_> = (0..PROCESSES).map(child).collect();
    let admitted = children.into_iter().map(|child| {
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        let count = said.split("admitted=").nth(1).and_then(|rest| rest.split_whitespace().next());
        count.and_then(|count| count.parse::<u64>().ok()).unwrap_or_else(|| panic!("it said {said:?}"))
    });
    assert_eq!(admitted.sum::<u64>(), CAPACITY);
}

/// Ten a minute: in the three minutes that pass, two clients whose clocks are five minutes off to either side admit what
/// one with a right clock would.
#[test]
fn clients_whose_clocks_are_minutes_apart_mint_nothing() {
    let start = Tick::from_secs(1_800_000_000);
    let right = ManualClock::at(start);
    let engine = common::engine(&right.clock());
    let offsets = [Span::from_secs(300), Span::from_secs(0), Span::from_secs(600)];
    // The right time stands between them.
    let hands: Vec<ManualClock> =
        offsets.iter().map(|offset| ManualClock::at(start + *offset - Span::from_secs(300))).collect();
    let clients: Vec<Limiter> = hands
        .iter()
        .map(|hands| {
            let store = common::builder(hands.clock()).http_client(engine.http_client()).build().wait();
            let store = Arc::new(store.expect("the engine has what it takes"));
            Limiter::open(store, "default").wait().expect("it answers")
        })
        .collect();
    let limits = Limits::new([Limit::per_minute("rpm", 10)]).expect("it is valid");
    clients[0].catalog().set_limits(Level::System, &limits).wait().expect("it answers");
    let mut admitted = 0;
    let mut earned = 10.0;
    for _ in 0..90 {
        for client in &clients {
            while let Ok(Attempt::Admitted(lease)) =
                client.try_acquire("user", "gpt-4", demand! { rpm: 1 }).wait()
            {
                lease.commit().wait().expect("it answers");
                admitted += 1;
            }
        }
        // A time in whole seconds is off by one at most.
        assert!(f64::from(admitted) <= earned + 10.0 / 60.0 + 1e-9, "{admitted} of {earned} were admitted");
        let step = Span::from_secs(2);
        right.advance(step);
        hands.iter().for_each(|hands| hands.advance(step));
        earned += 10.0 * 2.0 / 60.0;
    }
    assert!(admitted >= 38, "{admitted} of 40 were admitted: nobody is stuck either");
}
