//! Thousands of batches with a provider that follows a script of chance, each judged by one checker.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tollgate_batch::{Batch, BatchEvent, CallReply, CooldownPolicy, Item, ItemAttempt, Order, Retry};
use tollgate_provider::{FatalKind, Hint};
use tollgate_store::Mutex;

const RUNS: u64 = 5_000;

/// A small generator whose numbers a seed replays.
#[derive(Clone)]
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// What is reported to the checker.
#[derive(Clone, Debug, PartialEq)]
enum Fact {
    Started { at: Duration, scope: String, id: String },
    Cooling { at: Duration, scope: String, until: Duration },
    Outcome { id: String },
}

/// Whether everything was as promised; what was not, if not.
fn check(items: u64, facts: &[Fact]) -> Result<(), String> {
    let mut cooling: BTreeMap<&str, Duration> = BTreeMap::new();
    let mut outcomes: BTreeMap<&str, u32> = BTreeMap::new();
    for fact in facts {
        match fact {
            // What was said last holds: what was advised may prove to be too long.
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

/// What the provider does with a call.
async fn answer(dice: &Mutex<Dice>, call: &ItemAttempt<u64>) -> CallReply<u64> {
    let (kind, millis, advice) = {
        let mut dice = dice.lock();
        (dice.roll(100), dice.roll(3_000), dice.roll(20))
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
    let mut dice = Dice::new(seed);
    let began = Instant::now();
    let (count, workers, scopes) = (1 + dice.roll(40), 1 + dice.roll(64) as usize, 1 + dice.roll(3));
    let facts = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&facts);
    let mut batch = Batch::new()
        .workers(workers)
        .buffer(dice.roll(8) as usize)
        .lookahead(dice.roll(50) as usize)
        .order(if dice.roll(2) == 0 { Order::Completion } else { Order::Input })
        .rules(CooldownPolicy::default())
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
            heard.lock().push(fact);
        });
    if dice.roll(4) == 0 {
        batch = batch.item_deadline(Duration::from_secs(1 + dice.roll(60)));
    }
    let shutdown = (dice.roll(5) == 0).then(|| Duration::from_millis(dice.roll(30_000)));
    let items = (0..count).map(move |at| Item::new(at.to_string(), at).scope((at % scopes).to_string()));
    let script = Arc::new(Mutex::new(dice));
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
async fn whatever_the_provider_does_each_item_has_one_outcome_and_nobody_starts_in_a_cooldown() {
    // Handlers that panic are part of the script, and nothing to read about.
    std::panic::set_hook(Box::new(|info| {
        let said = info.to_string();
        if !said.contains("a handler that panics") {
            eprintln!("{said}");
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
    // A run with a cooldown, after which something started.
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
