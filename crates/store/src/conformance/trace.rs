//! Random traces, aimed at the boundary.

use std::time::Duration;

use tollgate_core::{Costs, Demand, Limit, Limits, Ready, Span, Tick, Usage};

use super::model::Model;
use super::random::Random;
use crate::{Applied, Call, Clock, Done, Key, ManualClock, Op, OpId, Place, Step, Store, Taken, Term};

const STEPS: u64 = 120;
const START: Tick = Tick::from_secs(1_000_000);

struct Receipt {
    key: usize,
    version: usize,
    at: Tick,
    costs: Costs,
    holder: Option<u128>,
}

struct Trace<'a, S> {
    seed: u64,
    random: Random,
    hands: ManualClock,
    store: S,
    model: Model,
    keys: &'a [Key],
    versions: &'a [Limits],
    /// Which version of the limits each key is under.
    current: Vec<usize>,
    receipts: Vec<Receipt>,
    ids: u128,
    retry_at: Option<Tick>,
    goes_back: bool,
}

pub(super) fn run<S: Store>(seed: u64, open: &impl Fn(Clock) -> S) {
    let hands = ManualClock::at(START);
    let goes_back = seed.is_multiple_of(2);
    let versions = versions(goes_back);
    let keys: Vec<Key> = (0..5).map(|key| Key::new(&["entity", &key.to_string()])).collect();
    let mut trace = Trace {
        seed,
        random: Random::new(seed),
        store: open(hands.clock()),
        hands,
        model: Model::default(),
        keys: &keys,
        current: vec![seed as usize % versions.len(); 5],
        versions: &versions,
        receipts: Vec::new(),
        ids: u128::from(seed) << 64,
        retry_at: None,
        goes_back,
    };
    for step in 0..STEPS {
        trace.step(step);
    }
}

/// A limit that is in use throughout, so that no store may forget the bucket.
const ANCHOR: &str = "anchor";

/// Every machine, alone and together; versions of one key differ by changed limits.
///
/// In half of the traces the clock steps back. What a store has forgotten it cannot compare the clock with, so
/// there every bucket is anchored.
fn versions(anchored: bool) -> Vec<Limits> {
    let seconds = Duration::from_secs;
    let sets = [
        vec![Limit::per_minute("rpm", 10), Limit::per_minute("tpm", 100)],
        vec![Limit::per_minute("rpm", 4), Limit::per_minute("tpm", 1_000).burst(50)],
        vec![Limit::fixed_window("rpm", 5, seconds(10)), Limit::sliding_window("tpm", 20, seconds(7))],
        vec![
            Limit::rate("rpm", 7, seconds(3)),
            Limit::resource("slots", 3),
            Limit::quota("spend", 30, seconds(60)),
        ],
        vec![
            Limit::sliding_window("tpm", 9, seconds(2)),
            Limit::resource("slots", 2),
            Limit::calls(6, seconds(5)),
        ],
        vec![Limit::per_day("rpm", 10).burst(3)],
    ];
    let anchor = anchored.then(|| Limit::quota(ANCHOR, 1_000_000, seconds(3_600 * 24 * 365)));
    let build = |limits: Vec<_>| Limits::new(limits.into_iter().chain(anchor.clone()));
    sets.into_iter().map(|limits| build(limits).expect("the limits of the suite are valid")).collect()
}

impl<'a, S: Store> Trace<'a, S> {
    fn step(&mut self, step: u64) {
        self.turn_clock();
        match self.random.below(10) {
            0 => self.change_limits(step),
            1..=3 if !self.receipts.is_empty() => self.settle(step),
            _ => self.take(step),
        }
        self.compare_peeks(step);
    }

    /// Half of the time to where the last denial said it would pass, or a tick before.
    fn turn_clock(&mut self) {
        let now = self.hands.now();
        let target = match (self.random.below(12), self.retry_at.take()) {
            (0..=2, Some(retry)) => retry,
            (3..=5, Some(retry)) => retry - Span::from_micros(1),
            (6, _) if self.goes_back => now - Span::from_secs(self.random.below(6)),
            (7, _) => now + Span::from_secs(3_600),
            (8, _) => now + Span::from_micros(self.random.below(3)),
            (9 | 10, _) => now + Span::from_millis(self.random.below(5_000)),
            _ => now,
        };
        self.hands.set(target.max(START));
    }

    /// Changes the limits of a key and puts them in force at once, by taking nothing.
    ///
    /// A bucket that says nothing is left as it is: a store may have forgotten it, and what is forgotten is
    /// full under whatever limits come next, while what is remembered is only raised to where it was.
    fn change_limits(&mut self, step: u64) {
        let key = self.random.below(self.keys.len() as u64) as usize;
        let place = self.place(key, self.current[key]);
        if self.model.is_forgettable(&place, self.hands.now()) {
            return;
        }
        self.current[key] = self.random.below(self.versions.len() as u64) as usize;
        let place = self.place(key, self.current[key]);
        let zero = place.limits.iter().fold(Demand::new(), |demand, limit| demand.with(limit.name(), 0));
        let costs = place.limits.costs(&zero).expect("nothing always fits");
        let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
        self.apply_both(step, &Call { id: None, steps: &steps, metered: false });
    }

    fn place(&self, key: usize, version: usize) -> Place<'a> {
        Place { namespace: "trace", key: &self.keys[key], limits: &self.versions[version] }
    }

    fn take(&mut self, step: u64) {
        let length = 1 + self.random.below(4) as usize;
        let first = self.random.below(self.keys.len() as u64) as usize;
        let chain: Vec<usize> = (0..length).map(|link| (first + link) % self.keys.len()).collect();
        let costs: Vec<Costs> = chain.iter().map(|key| self.random_costs(self.current[*key])).collect();
        self.ids += 1;
        let id = self.random.one_in(2).then_some(OpId(self.ids));
        let ttl = Span::from_millis(1 + self.random.below(20_000));
        let term = self.random.one_in(3).then_some(Term { holder: self.ids, ttl });
        let links: Vec<(usize, Costs)> = chain.into_iter().zip(costs).collect();
        let mut calls = Vec::new();
        for (key, costs) in &links {
            let place = self.place(*key, self.current[*key]);
            calls.push(Step { place, op: Op::Take { costs, term } });
        }
        let call = Call { id, steps: &calls, metered: false };
        let applied = self.apply_both(step, &call);
        // A call that is sent again changes nothing more.
        if id.is_some() && self.random.one_in(3) {
            self.apply_both(step, &call);
        }
        self.remember(&links, applied, term);
    }

    fn remember(&mut self, links: &[(usize, Costs)], applied: Applied, term: Option<Term>) {
        match applied {
            Applied::Done(done) => {
                for ((key, costs), done) in links.iter().zip(done) {
                    let Done::Taken(Taken { at, .. }) = done else { continue };
                    let (version, holder) = (self.current[*key], term.map(|term| term.holder));
                    self.receipts.push(Receipt { key: *key, version, at, costs: costs.clone(), holder });
                }
            }
            Applied::Denied(denials) => {
                let ready = denials.iter().fold(Ready::Now, |latest, denial| latest.later(denial.ready()));
                if let Ready::At(tick) = ready {
                    self.retry_at = Some(tick);
                }
            }
            Applied::Stale(_) => {}
        }
    }

    fn random_costs(&mut self, version: usize) -> Costs {
        let limits: &'a Limits = &self.versions[version];
        let mut demand = Demand::new();
        for limit in limits.iter() {
            let ceiling = limit.capacity().min(12);
            let amount = if limit.name() == ANCHOR { 1 } else { self.random.below(ceiling + 1) };
            demand = demand.with(limit.name().as_str(), amount);
        }
        limits.costs(&demand).expect("amounts up to the capacity are possible")
    }

    /// Settles in the limits it was taken under, whatever limits are in force by now.
    fn settle(&mut self, step: u64) {
        let receipt = self.receipts.swap_remove(self.random.below(self.receipts.len() as u64) as usize);
        let names = self.versions[receipt.version].iter().map(Limit::name);
        let amounts = names.zip(receipt.costs.amounts());
        let used: Vec<u64> = amounts
            .map(|(name, cost)| if name == ANCHOR { *cost } else { self.random.below(cost * 10 + 1) })
            .collect();
        let Receipt { key, version, at, costs, holder } = &receipt;
        let usage = Usage { at: *at, reserved: costs, used: &used, holder: *holder };
        let place = self.place(*key, *version);
        let renew =
            holder.filter(|_| self.random.one_in(3)).map(|holder| Term { holder, ttl: Span::from_secs(5) });
        let op = renew.map_or(Op::Settle(usage), Op::Renew);
        let steps = [Step { place, op }];
        self.ids += 1;
        let call = Call { id: Some(OpId(self.ids)), steps: &steps, metered: false };
        self.apply_both(step, &call);
        if self.random.one_in(3) {
            self.apply_both(step, &call);
        }
    }

    fn apply_both(&mut self, step: u64, call: &Call<'_>) -> Applied {
        let now = self.hands.now();
        let expected = self.model.apply(call, now);
        let actual = self.store.apply(call).wait().expect("a store that is there answers");
        let seed = self.seed;
        assert_eq!(actual, expected, "TOLLGATE_SEED={seed}, step {step}, at {now:?}, call {call:?}");
        actual
    }

    fn compare_peeks(&mut self, step: u64) {
        let now = self.hands.now();
        for key in 0..self.keys.len() {
            let place = self.place(key, self.current[key]);
            let expected = self.model.peek(&place, now);
            let actual = self.store.peek(&place).wait().expect("a store that is there answers");
            assert_eq!(actual, expected, "TOLLGATE_SEED={}, step {step}, at {now:?}, key {key}", self.seed);
        }
    }
}
