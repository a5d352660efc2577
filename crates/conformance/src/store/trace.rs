//! Random traces, whose instants aim at the boundary of admission.

use tollgate_core::{Costs, Limits, Ready, Span, Tick, Usage};
use tollgate_store::{
    BucketRef, Clock, Key, LeaseTerm, ManualClock, Op, OpId, SplitMix64, Step, StepOutcome, Store, Taken,
    Transaction, TxnOutcome,
};

use super::model::Model;
use super::trace_limits::{anchor_costs, random_costs, random_credit, random_usage, variants};
use crate::fixture::{START, open_at};
use crate::random::seeded;

const STEPS: u64 = 120;

struct Receipt {
    key: usize,
    variant: usize,
    at: Tick,
    costs: Costs,
    holder: Option<u128>,
}

struct Trace<'a, S> {
    seed: u64,
    step: u64,
    random: SplitMix64,
    clock: ManualClock,
    store: S,
    model: Model,
    keys: &'a [Key],
    variants: &'a [Limits],
    /// The index of the limits in force for each key.
    current: Vec<usize>,
    receipts: Vec<Receipt>,
    ids: u128,
    retry_at: Option<Tick>,
    goes_back: bool,
}

pub(super) fn run<S: Store>(seed: u64, open: &impl Fn(Clock) -> S) {
    let (clock, store) = open_at(START, open);
    let goes_back = seed.is_multiple_of(2);
    let variants = variants(goes_back);
    let keys: Vec<Key> = (0..5).map(|key| Key::new(&["entity", &key.to_string()])).collect();
    let mut trace = Trace {
        seed,
        step: 0,
        random: seeded(seed),
        clock,
        store,
        model: Model::default(),
        keys: &keys,
        current: vec![seed as usize % variants.len(); 5],
        variants: &variants,
        receipts: Vec::new(),
        ids: u128::from(seed) << 64,
        retry_at: None,
        goes_back,
    };
    for step in 0..STEPS {
        trace.step = step;
        trace.step();
    }
}

impl<'a, S: Store> Trace<'a, S> {
    fn step(&mut self) {
        self.move_clock();
        match self.random.below(16) {
            0 | 1 => self.change_limits(),
            2..=5 if !self.receipts.is_empty() => self.settle(),
            6 => self.top_up(),
            7 => self.reset(),
            _ => self.take(),
        }
        if self.random.one_in(2) {
            self.compare_asks();
        }
        self.compare_peeks();
    }

    /// Moves the clock, half of the time to the instant at which the last denial ends, or a tick before it.
    fn move_clock(&mut self) {
        let now = self.clock.now();
        let target = match (self.random.below(12), self.retry_at.take()) {
            (0..=2, Some(retry)) => retry,
            (3..=5, Some(retry)) => retry - Span::from_micros(1),
            (6, _) if self.goes_back => now - Span::from_secs(self.random.below(6)),
            (7, _) => now + Span::from_secs(3_600),
            (8, _) => now + Span::from_micros(self.random.below(3)),
            (9 | 10, _) => now + Span::from_millis(self.random.below(5_000)),
            _ => now,
        };
        self.clock.set(target.max(START));
    }

    /// Puts other limits in force by taking nothing; earlier versions are refused.
    fn change_limits(&mut self) {
        let key = self.random_key();
        let variant = self.any_variant(key);
        let place = self.place(key, variant);
        let costs = anchor_costs(place.limits);
        self.apply_both(None, &[Step { place, op: Op::Take { costs: &costs, term: None } }]);
    }

    fn random_key(&mut self) -> usize {
        self.random.below(self.keys.len() as u64) as usize
    }

    /// Picks any limits, unless the bucket equals a fresh one: a store may have forgotten it, and a forgotten bucket is full
    /// under the next limits, while a stored one is not filled by raised limits.
    fn any_variant(&mut self, key: usize) -> usize {
        let place = self.place(key, self.current[key]);
        if self.model.is_forgettable(&place, self.clock.now()) {
            return self.current[key];
        }
        self.random.below(self.variants.len() as u64) as usize
    }

    fn place(&self, key: usize, variant: usize) -> BucketRef<'a> {
        BucketRef { namespace: "trace", key: &self.keys[key], limits: &self.variants[variant] }
    }

    fn random_links(&mut self) -> Vec<(usize, usize, Costs)> {
        let (length, first) = (1 + self.random.below(4) as usize, self.random_key());
        let mut links = Vec::new();
        for key in (0..length).map(|link| (first + link) % self.keys.len()) {
            let variant = if self.random.one_in(12) { self.any_variant(key) } else { self.current[key] };
            let costs = random_costs(&mut self.random, &self.variants[variant]);
            links.push((key, variant, costs));
        }
        links
    }

    fn take(&mut self) {
        let links = self.random_links();
        let ttl = Span::from_millis(1 + self.random.below(20_000));
        let term = self.random.one_in(3).then_some(LeaseTerm { holder: self.ids, ttl });
        let step =
            |(key, variant, costs): &'_ (usize, usize, Costs)| (self.place(*key, *variant), costs.clone());
        let takes: Vec<(BucketRef<'a>, Costs)> = links.iter().map(step).collect();
        let op = |costs| Op::Take { costs, term };
        let steps: Vec<Step<'_>> =
            takes.iter().map(|(place, costs)| Step { place: *place, op: op(costs) }).collect();
        let id = self.random.one_in(2).then(|| self.new_id());
        let applied = self.apply_both(id, &steps);
        match applied {
            TxnOutcome::Done(done) => self.add_receipts(&links, &done, term),
            TxnOutcome::Denied(denials) => {
                let ready = denials.iter().fold(Ready::Now, |latest, denial| latest.later(denial.ready()));
                if let Ready::At(tick) = ready {
                    self.retry_at = Some(tick);
                }
            }
            _ => {}
        }
    }

    fn add_receipts(
        &mut self,
        links: &[(usize, usize, Costs)],
        done: &[StepOutcome],
        term: Option<LeaseTerm>,
    ) {
        for ((key, variant, costs), done) in links.iter().zip(done) {
            let StepOutcome::Taken(Taken { at, .. }) = done else { continue };
            let holder = term.map(|term| term.holder);
            let receipt = Receipt { key: *key, variant: *variant, at: *at, costs: costs.clone(), holder };
            self.receipts.push(receipt);
        }
    }

    fn new_id(&mut self) -> OpId {
        self.ids += 1;
        OpId(self.ids)
    }

    /// Settles under the limits of the take, whatever limits are in force by now.
    fn settle(&mut self) {
        let receipt = self.receipts.swap_remove(self.random.below(self.receipts.len() as u64) as usize);
        let Receipt { key, variant, at, costs, holder } = &receipt;
        let place = self.place(*key, *variant);
        let may_be_gone = self.model.is_forgettable(&place, self.clock.now());
        if may_be_gone && *variant != self.current[*key] {
            return;
        }
        let used = random_usage(&mut self.random, place.limits, costs);
        let usage = Usage { at: *at, reserved: costs, used: &used, holder: *holder };
        let renew = holder
            .filter(|_| self.random.one_in(3))
            .map(|holder| LeaseTerm { holder, ttl: Span::from_secs(5) });
        let op = match renew {
            Some(term) => Op::Renew(term),
            None if may_be_gone || self.random.one_in(2) => Op::Settle(usage),
            None => Op::SettleExisting(usage),
        };
        let id = self.new_id();
        self.apply_both(Some(id), &[Step { place, op }]);
    }

    fn top_up(&mut self) {
        let (key, variant) = (self.random_key(), self.random.below(self.variants.len() as u64) as usize);
        let place = self.place(key, variant);
        let credit = random_credit(&mut self.random, place.limits);
        let id = self.random.one_in(2).then(|| self.new_id());
        self.apply_both(id, &[Step { place, op: Op::TopUp(&credit) }]);
    }

    fn reset(&mut self) {
        let key = self.random_key();
        let place = self.place(key, self.current[key]);
        let was_there = self.model.in_force(&place).is_some();
        self.apply_both(None, &[Step { place, op: Op::Reset }]);
        if self.goes_back && was_there {
            let costs = anchor_costs(place.limits);
            self.apply_both(None, &[Step { place, op: Op::Take { costs: &costs, term: None } }]);
        }
    }

    fn apply_both(&mut self, id: Option<OpId>, steps: &[Step<'_>]) -> TxnOutcome {
        let call = Transaction { id, steps, metered: self.random.one_in(2) };
        let applied = self.compare_applied(&call);
        // A call that is sent again changes nothing.
        if id.is_some() && self.random.one_in(3) {
            self.compare_applied(&call);
        }
        for key in 0..self.keys.len() {
            let in_force = self.model.in_force(&self.place(key, 0));
            let variant =
                in_force.and_then(|limits| self.variants.iter().position(|other| other.same(limits)));
            self.current[key] = variant.unwrap_or(self.current[key]);
        }
        applied
    }

    fn compare_applied(&mut self, call: &Transaction<'_>) -> TxnOutcome {
        let now = self.clock.now();
        let expected = self.model.apply(call, now);
        let actual = self.store.apply(call).wait().expect("the store answers");
        assert_eq!(actual, expected, "{}, call {call:?}", self.context());
        actual
    }

    fn context(&self) -> String {
        format!("TOLLGATE_SEED={}, step {}, at {:?}", self.seed, self.step, self.clock.now())
    }

    fn compare_asks(&mut self) {
        let links = self.random_links();
        let mut steps: Vec<Step<'_>> = Vec::new();
        for (key, variant, costs) in &links {
            let op = if self.random.one_in(8) { Op::Reset } else { Op::Take { costs, term: None } };
            steps.push(Step { place: self.place(*key, *variant), op });
        }
        let expected = self.model.evaluate(&steps, self.clock.now());
        let actual = self.store.evaluate(&steps).wait().expect("the store answers");
        assert_eq!(actual, expected, "{}, asking {steps:?}", self.context());
    }

    fn compare_peeks(&mut self) {
        let now = self.clock.now();
        for key in 0..self.keys.len() {
            let variant = if self.random.one_in(4) { self.any_variant(key) } else { self.current[key] };
            let place = self.place(key, variant);
            let expected = self.model.peek(&place, now);
            let actual = self.store.peek(&place).wait().expect("the store answers");
            assert_eq!(actual, expected, "{}, key {key} under variant {variant}", self.context());
        }
    }
}
