//! Thousands of batches with a provider that replies at random, each verified by one checker.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tollgate_batch::{Batch, BatchEvent, CallReply, CooldownPolicy, Item, ItemAttempt, Order, Retry};
use tollgate_provider::{FatalKind, Hint};
use tollgate_store::Mutex;

const RUNS: u64 = 5_000;

/// A generator (LCG) that a seed replays. It has its own sequence, which the numbers of calls in
/// here depend on.
#[derive(Clone)]
struct ChaosRandom(u64);

impl ChaosRandom {
    fn new(seed: u64) -> ChaosRandom {
        ChaosRandom(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// An event that the checker verifies.
#[derive(Clone, Debug, PartialEq)]
enum Fact {
    Started { at: Duration, scope: String, id: String },
    Cooling { at: Duration, scope: String, until: Duration },
    Outcome { id: String },
}

/// Checks the promises of a batch, and returns the first that was broken.
fn check(items: u64, facts: &[Fact]) -> Result<(), String> {
    let mut cooling: BTreeMap<&str, Duration> = BTreeMap::new();
    let mut outcomes: BTreeMap<&str, u32> = BTreeMap::new();
    for fact in facts {
        match fact {
            // The last event holds: advice may prove too long, and then a cooldown becomes shorter.
            Fact::Cooling { scope, until, .. } => {
                cooling.insert(scope, *until);
            }
            Fact::Started { at, scope, id } => {
                if cooling.get(scope.as_str()).is_some_and(|until| at < until) {
                    return Err(format!("{id} started at {at:?}, while {scope} cooled down"));
                }
                if outcomes.contains_key(id.as_str()) {
                    return Err(format!("{id} started after its outcome"));
                }
            }
            Fact::Outcome { id } => *outcomes.entry(id).or_default() += 1,
        }
    }
    if let Some((id, count)) = outcomes.iter().find(|(_, count)| **count != 1) {
        return Err(format!("{id} has {count} outcomes"));
    }
    match outcomes.len() as u64 == items {
        true => Ok(()),
        false => Err(format!("{} outcomes of {items} items", outcomes.len())),
    }
}

/// Replies to a call at random.
async fn answer(random: &Mutex<ChaosRandom>, call: &ItemAttempt<u64>) -> CallReply<u64> {
    let (kind, millis, advice) = {
        let mut random = random.lock();
        (random.below(100), random.below(3_000), random.below(20))
    };
    sleep(Duration::from_millis(millis)).await;
    match kind {
        0..=54 => CallReply::done(*call.payload(), Hint::ok()),
        55..=69 => CallReply::refused(Hint::throttled(Some(Duration::from_secs(advice)))),
        70..=79 => CallReply::refused(Hint::throttled(None)),
        80..=84 => CallReply::refused(Hint::overloaded(None)),
        85..=91 => CallReply::refused(Hint::transient()),
        92..=93 => CallReply::invalid("no JSON", Hint::ok()),
        94 => CallReply::refused(Hint::fatal(FatalKind::Request)),
        95 => panic!("a handler that panics"),
        _ => {
            sleep(Duration::from_secs(1_000_000)).await;
            CallReply::refused(Hint::transient())
        }
    }
}

async fn run(seed: u64) -> (u64, Vec<Fact>) {
    let mut random = ChaosRandom::new(seed);
    let began = Instant::now();
    let (count, workers, scopes) = (1 + random.below(40), 1 + random.below(64) as usize, 1 + random.below(3));
    let facts = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&facts);
    let mut batch = Batch::new()
        .workers(workers)
        .buffer(random.below(8) as usize)
        .lookahead(random.below(50) as usize)
        .order(if random.below(2) == 0 { Order::Completion } else { Order::Input })
        .cooldown(CooldownPolicy::default())
        .seed(seed)
        .on_transient(Retry::attempts(3).pause(Duration::from_millis(100)).longest(Duration::from_secs(2)))
        .attempt_deadline(Duration::from_secs(5))
        .observer(move |event: &BatchEvent<'_>| {
            let at = began.elapsed();
            let fact = match event {
                BatchEvent::Started { id, scope, .. } => {
                    Fact::Started { at, scope: (*scope).to_owned(), id: (*id).to_owned() }
                }
                BatchEvent::CoolingDown { scope, left, .. } => {
                    Fact::Cooling { at, scope: (*scope).to_owned(), until: at + *left }
                }
                _ => return,
            };
            recorded.lock().push(fact);
        });
    if random.below(4) == 0 {
        batch = batch.item_deadline(Duration::from_secs(1 + random.below(60)));
    }
    let shutdown = (random.below(5) == 0).then(|| Duration::from_millis(random.below(30_000)));
    let items = (0..count).map(move |at| Item::new(at.to_string(), at).scope((at % scopes).to_string()));
    let script = Arc::new(Mutex::new(random));
    let mut run = batch.run(items, move |call: ItemAttempt<u64>| {
        let script = Arc::clone(&script);
        async move { answer(&script, &call).await }
    });
    let mut timer = std::pin::pin!(sleep(shutdown.unwrap_or(Duration::from_secs(100_000_000))));
    loop {
        tokio::select! {
            biased;
            () = &mut timer, if shutdown.is_some() && !timer.is_elapsed() => run.shut_down(),
            outcome = run.next() => match outcome {
                Some(outcome) => facts.lock().push(Fact::Outcome { id: outcome.id.to_string() }),
                None => break,
            },
        }
    }
    let summary = run.finish().await.expect("the batch ends");
    assert_eq!(
        summary.counters.calls,
        facts.lock().iter().filter(|fact| matches!(fact, Fact::Started { .. })).count() as u64
    );
    assert!(summary.counters.handed_out <= summary.counters.parked);
    assert!(began.elapsed() < Duration::from_secs(86_400), "seed {seed} took {:?}", began.elapsed());
    // A batch that was shut down has not accepted all of its items.
    let accepted = summary.progress.accepted;
    assert!(accepted == count || shutdown.is_some(), "seed {seed}: {accepted} of {count}");
    let facts = facts.lock().clone();
    (accepted, facts)
}

#[tokio::test(start_paused = true)]
async fn each_item_has_one_outcome_and_no_call_starts_in_a_cooldown_whatever_the_provider_replies() {
    // Handlers that panic are part of the script, so their panics are not printed.
    std::panic::set_hook(Box::new(|info| {
        let output = info.to_string();
        if !output.contains("a handler that panics") {
            eprintln!("{output}");
        }
    }));
    for seed in 0..RUNS {
        let (items, facts) = run(seed).await;
        if let Err(wrong) = check(items, &facts) {
            panic!("seed {seed}: {wrong}\n{facts:#?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_checker_catches_planted_faults() {
    // A run with a cooldown, after which a call started.
    let (items, facts) = run(3).await;
    assert_eq!(check(items, &facts), Ok(()));
    let cooling = facts.iter().position(|fact| matches!(fact, Fact::Cooling { .. })).expect("a cooldown");
    let Fact::Cooling { at, scope, .. } = facts[cooling].clone() else { unreachable!() };
    let mut early = facts.clone();
    early.insert(cooling + 1, Fact::Started { at, scope, id: "x".into() });
    assert!(check(items, &early).unwrap_err().contains("cooled down"));

    let outcome = facts.iter().position(|fact| matches!(fact, Fact::Outcome { .. })).expect("an outcome");
    let mut doubled = facts.clone();
    doubled.push(facts[outcome].clone());
    assert!(check(items, &doubled).unwrap_err().contains("2 outcomes"));
    let mut lost = facts.clone();
    lost.remove(outcome);
    assert!(check(items, &lost).is_err());
    let Fact::Outcome { id } = facts[outcome].clone() else { unreachable!() };
    let mut again = facts;
    again.push(Fact::Started { at: Duration::from_secs(1_000_000), scope: "y".into(), id });
    assert!(check(items, &again).unwrap_err().contains("after its outcome"));
}
