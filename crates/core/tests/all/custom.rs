//! Custom limits: a rule of the caller is a limit like any other.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::oracle::seed::{TestRng, first_failure, for_seeds};
use crate::oracle::spec::{Spec, any};
use crate::oracle::subject::{Core, tick};
use crate::oracle::trace::{PLAN, Plan, compare};
use tollgate_core::{
    Bucket, CustomLimit, Demand, Limit, Limits, LimitsError, Ready, Take, Tick, UNBOUNDED, Usage, demand,
};

/// A fixed window, written by a caller. What is used beyond the amount is charged to the following
/// windows.
struct Window {
    amount: u64,
    period: u64,
    /// A planted fault: refunds are lost.
    loses_refunds: bool,
}

/// The use in the window of this number.
#[derive(Clone, Debug, Default, PartialEq)]
struct Used {
    window: u64,
    count: u64,
}

impl Window {
    fn at(&self, used: &Used, now: Tick) -> Used {
        let window = now.as_micros() / self.period;
        let forgiven = (window - used.window).saturating_mul(self.amount);
        Used { window, count: used.count.saturating_sub(forgiven) }
    }
}

impl CustomLimit for Window {
    type State = Used;

    fn capacity(&self) -> u64 {
        self.amount
    }

    fn fresh(&self) -> Used {
        Used::default()
    }

    fn ready(&self, used: &Used, now: Tick, amount: u64) -> Ready {
        let used = self.at(used, now);
        match (used.count + amount).saturating_sub(self.amount) {
            0 => Ready::Now,
            over => Ready::At(tick((used.window + over.div_ceil(self.amount)) * self.period)),
        }
    }

    fn available(&self, used: &Used, now: Tick) -> i64 {
        self.amount as i64 - self.at(used, now).count as i64
    }

    fn charge(&self, used: &mut Used, now: Tick, amount: u64) {
        *used = self.at(used, now);
        used.count += amount;
    }

    fn refund(&self, used: &mut Used, at: Tick, now: Tick, amount: u64) {
        *used = self.at(used, now);
        if used.window == at.as_micros() / self.period && !self.loses_refunds {
            used.count = used.count.saturating_sub(amount);
        }
    }
}

fn window_of(spec: &Spec, loses_refunds: bool) -> Limit {
    let Spec::Fixed { amount, period } = *spec else { panic!("it is a fixed window") };
    Limit::custom("x", Window { amount, period, loses_refunds }).build().expect("it is valid")
}

fn agrees(rng: &mut TestRng, loses_refunds: bool) -> Result<(), String> {
    let spec = any::fixed(rng);
    let plan = Plan { clock_back: rng.one_in(4), ..PLAN };
    compare(&spec, plan, rng, |spec, now| Core::new(window_of(spec, loses_refunds), now))
}

#[test]
fn a_custom_window_agrees_with_the_count_of_every_window() {
    for_seeds(2_000, |rng| agrees(rng, false));
}

#[test]
fn a_rule_that_loses_refunds_is_found() {
    assert!(first_failure(200, |rng| agrees(rng, true)).is_some());
}

/// At most `amount` in each period; the first lasts `first`, and each following one twice as long
/// as the one before. Nothing is charged to the next period.
#[derive(Clone, Copy)]
struct Doubling {
    amount: u64,
    first: u64,
}

impl Doubling {
    /// Returns the number of the period at an instant: period `n` starts at `(2^n - 1) * first`.
    fn number(&self, now: Tick) -> u32 {
        (now.as_micros() / self.first + 1).ilog2()
    }

    fn start(&self, number: u32) -> Tick {
        tick(((1 << number) - 1) * self.first)
    }
}

impl CustomLimit for Doubling {
    /// The number of the period, and the use in it.
    type State = (u32, i64);

    fn capacity(&self) -> u64 {
        self.amount
    }

    fn fresh(&self) -> (u32, i64) {
        (0, 0)
    }

    fn ready(&self, state: &(u32, i64), now: Tick, amount: u64) -> Ready {
        let fits = self.available(state, now) >= amount as i64;
        if fits { Ready::Now } else { Ready::At(self.start(self.number(now) + 1)) }
    }

    fn available(&self, (number, used): &(u32, i64), now: Tick) -> i64 {
        let used = if *number == self.number(now) { *used } else { 0 };
        self.amount as i64 - used
    }

    fn charge(&self, state: &mut (u32, i64), now: Tick, amount: u64) {
        let used = self.amount as i64 - self.available(state, now);
        *state = (self.number(now), used + amount as i64);
    }

    fn refund(&self, (number, used): &mut (u32, i64), at: Tick, _: Tick, amount: u64) {
        if *number == self.number(at) {
            *used -= amount as i64;
        }
    }
}

/// Everything that happened to a [`Doubling`], recounted for every query.
#[derive(Default)]
struct Ledger(Vec<(u64, i64)>);

impl Ledger {
    fn left(&self, rule: Doubling, now: u64) -> i64 {
        let (mut start, mut length) = (0, rule.first);
        while now >= start + length {
            (start, length) = (start + length, 2 * length);
        }
        let used: i64 = self.0.iter().filter(|(at, _)| *at >= start).map(|(_, amount)| amount).sum();
        rule.amount as i64 - used
    }
}

/// Runs a trace of takes and settlements of a custom limit beside a rate. Compares the rate with
/// the same rate alone, and the custom limit with the ledger.
fn beside_a_rate(rng: &mut TestRng) -> Result<(), String> {
    let rule = Doubling { amount: rng.from(1, 9), first: rng.from(1, 20) };
    let rate = || Limit::rate("rate", 5, Duration::from_micros(40));
    let both = Limits::new([Limit::custom("own", rule), rate()]).expect("they are valid");
    let alone = Limits::new([rate()]).expect("it is valid");
    let mut now = rng.from(0, 50);
    let mut bucket = Bucket::fresh(&both, tick(now));
    let (mut rate_bucket, mut ledger, mut reservations) =
        (Bucket::fresh(&alone, tick(now)), Ledger::default(), Vec::new());
    for step in 0..60 {
        now += *rng.pick(&[0, 0, 1, 7, 30]);
        let (own, rated) = (rng.from(0, rule.amount), rng.from(0, 5));
        let costs = both.costs(&Demand::new().with("own", own).with("rate", rated)).expect("they fit");
        let share = alone.costs(&Demand::new().with("rate", rated)).expect("it fits");
        let fits =
            (own == 0 || ledger.left(rule, now) >= own as i64) && rate_bucket.fits(&alone, tick(now), &share);
        let before = bucket.clone();
        let what = format!("{rule:?}: step {step}, now {now}, {own} and {rated}");
        match bucket.take(&both, tick(now), &Take::of(&costs)) {
            Ok(at) if fits => {
                rate_bucket.take(&alone, tick(now), &Take::of(&share)).expect("it was found to fit");
                ledger.0.push((now, own as i64));
                reservations.push((at, costs, share, own, rated));
            }
            Err(denial) if !fits => {
                if bucket != before {
                    return Err(format!("{what}: a denial changed something"));
                }
                // The wait is tight: admitted then, and not a tick earlier.
                let Ready::At(ready) = denial.ready() else {
                    return Err(format!("{what}: {denial:?} has no instant"));
                };
                let earlier = tick(ready.as_micros() - 1);
                if !before.fits(&both, ready, &costs)
                    || earlier >= tick(now) && before.fits(&both, earlier, &costs)
                {
                    return Err(format!("{what}: {ready:?} is not tight"));
                }
            }
            other => return Err(format!("{what}: answered {other:?}")),
        }
        if !reservations.is_empty() && rng.one_in(3) {
            let (at, reserved, share, own, rated) = reservations.swap_remove(0);
            let used = [rng.from(0, 2 * own), rng.from(0, 2 * rated)];
            bucket.settle(&both, tick(now), &Usage { at, reserved: &reserved, used: &used, holder: None });
            let usage = Usage { at, reserved: &share, used: &used[1..], holder: None };
            rate_bucket.settle(&alone, tick(now), &usage);
            // A refund counts at the instant of the take, an excess at the current one.
            let more = used[0] as i64 - own as i64;
            ledger.0.push((if more < 0 { at.as_micros() } else { now }, more));
        }
        let status = bucket.peek(&both, tick(now));
        let left = (ledger.left(rule, now), rate_bucket.peek(&alone, tick(now))[0].available());
        if (status[0].available(), status[1].available()) != left {
            return Err(format!("{what}: {left:?} are left, but the bucket reports {status:?}"));
        }
    }
    Ok(())
}

impl std::fmt::Debug for Doubling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} in each period, the first of {}", self.amount, self.first)
    }
}

#[test]
fn a_custom_limit_and_a_rate_are_taken_together_or_not_at_all() {
    for_seeds(2_000, beside_a_rate);
}

/// A rule that always returns the same readiness.
struct Constant(Ready);

impl CustomLimit for Constant {
    type State = u64;

    fn capacity(&self) -> u64 {
        10
    }

    fn fresh(&self) -> u64 {
        0
    }

    fn ready(&self, _: &u64, _: Tick, amount: u64) -> Ready {
        assert!((1..=10).contains(&amount), "{amount} is asked of it");
        self.0
    }

    fn available(&self, _: &u64, _: Tick) -> i64 {
        10
    }

    fn charge(&self, used: &mut u64, _: Tick, amount: u64) {
        assert!(amount != 7, "a rule that panics");
        *used += amount;
    }

    fn refund(&self, used: &mut u64, _: Tick, _: Tick, amount: u64) {
        *used -= amount;
    }
}

fn constant(ready: Ready) -> Limits {
    Limits::new([Limit::custom("own", Constant(ready)), Limit::resource("slots", 10)])
        .expect("they are valid")
}

#[test]
fn a_past_instant_is_now_and_the_last_tick_is_unknown() {
    let now = tick(1_000);
    for (returned, meant) in [
        (Ready::At(tick(1_000)), Ready::Now),
        (Ready::At(tick(3)), Ready::Now),
        (Ready::At(tick(1_001)), Ready::At(tick(1_001))),
        (Ready::At(Tick::MAX), Ready::Unknown),
    ] {
        let limits = constant(returned);
        let costs = limits.costs(&demand! { own: 1 }).expect("it fits");
        let bucket = Bucket::fresh(&limits, now);
        assert_eq!(bucket.ready(&limits, now, &costs), meant);
        assert_eq!(bucket.fits(&limits, now, &costs), meant == Ready::Now);
    }
}

#[test]
fn a_rule_is_called_with_at_most_its_capacity_and_never_with_zero() {
    let limits = constant(Ready::Now);
    let mut bucket = Bucket::fresh(&limits, Tick::ZERO);
    let none = limits.costs(&demand! { own: 0 }).expect("it fits");
    bucket.take(&limits, Tick::ZERO, &Take::of(&none)).expect("nothing always fits");
    let demand = demand! { own: 11 };
    assert!(limits.costs(&demand).is_err());
    let sum = limits.resolve(&demand, |_| Ok(())).expect("capacities are not looked at");
    assert!(!bucket.fits(&limits, Tick::ZERO, &sum));
    assert_eq!(bucket.ready(&limits, Tick::ZERO, &sum), Ready::Unknown);
}

#[test]
fn a_rule_that_panics_leaves_the_bucket_unchanged() {
    let limits = constant(Ready::Now);
    let mut bucket = Bucket::fresh(&limits, Tick::ZERO);
    let costs = limits.costs(&demand! { own: 2 }).expect("it fits");
    bucket.take(&limits, Tick::ZERO, &Take::of(&costs)).expect("it fits");
    let before = bucket.clone();
    let unlucky = limits.costs(&demand! { own: 7 }).expect("it fits");
    let panicked =
        catch_unwind(AssertUnwindSafe(|| bucket.take(&limits, tick(5), &Take::of(&unlucky)).is_ok()));
    assert!(panicked.is_err());
    assert_eq!(bucket, before);
    assert_eq!(bucket.peek(&limits, tick(5))[1].available(), 9, "only the first take holds a slot");
}

#[test]
fn a_replaced_rule_carries_over_what_was_used() {
    let custom = |limit| Limits::new([limit]).expect("it is valid");
    let window = |amount| Window { amount, period: 1_000, loses_refunds: false };
    let old = custom(Limit::custom("x", window(10)));
    let mut bucket = Bucket::fresh(&old, Tick::ZERO);
    bucket.settle(
        &old,
        Tick::ZERO,
        &Usage { at: Tick::ZERO, reserved: &tollgate_core::Costs::none(1), used: &[4], holder: None },
    );
    let left = |bucket: &Bucket, limits: &Limits| bucket.peek(limits, Tick::ZERO)[0].available();
    // The new rule is of the same type: the state itself is carried over.
    let larger = old.replacing(Limit::custom("x", window(12)).build().expect("it is valid")).expect("it may");
    bucket.adopt(&old, &larger, Tick::ZERO);
    assert_eq!(left(&bucket, &larger), 8);
    // The new rule is of another type: what is left is carried over.
    let other = Doubling { amount: 20, first: 1_000 };
    let other = larger.replacing(Limit::custom("x", other).build().expect("it is valid")).expect("it may");
    bucket.adopt(&larger, &other, Tick::ZERO);
    assert_eq!(left(&bucket, &other), 8);
    let unbounded = other.replacing(other[0].without_bound()).expect("it is of one kind");
    bucket.adopt(&other, &unbounded, Tick::ZERO);
    assert_eq!(left(&bucket, &unbounded), i64::MAX);
    let rate = Limit::per_second("x", 5).build().expect("it is valid");
    assert_eq!(other.replacing(rate), Err(LimitsError::OtherKind(other[0].name().clone())));
}

#[test]
fn a_custom_shadow_limit_never_denies_and_a_custom_soft_level_warns() {
    let rule = Doubling { amount: 2, first: 1_000 };
    let limits = Limits::new([Limit::custom("shadow", rule).shadow(), Limit::custom("soft", rule).soft(1)]);
    let limits = limits.expect("they are valid");
    let mut bucket = Bucket::fresh(&limits, Tick::ZERO);
    let costs = limits.costs(&demand! { shadow: 2, soft: 1 }).expect("it fits");
    for (warnings, left) in [(0b00, [0, 1]), (0b11, [-2, 0])] {
        bucket.take(&limits, Tick::ZERO, &Take::of(&costs)).expect("it passes");
        assert_eq!(bucket.warnings(&limits, Tick::ZERO), warnings);
        let available: Vec<i64> =
            bucket.peek(&limits, Tick::ZERO).iter().map(|status| status.available()).collect();
        assert_eq!(available, left);
    }
}

#[test]
fn an_invalid_custom_limit_is_refused_when_it_is_built() {
    let window = |amount| Limit::custom("own", Window { amount, period: 1, loses_refunds: false });
    assert_eq!(window(0).build().unwrap_err().field(), "amount");
    assert_eq!(window(5).burst(6).build().unwrap_err().field(), "burst");
    assert_eq!(window(5).algorithm(tollgate_core::Algorithm::Gcra).build().unwrap_err().field(), "algorithm");
    assert!(window(UNBOUNDED).build().expect("it is valid").is_unbounded());
    assert_eq!(window(5).build().expect("it is valid").to_string(), "own: 5 (custom)");
}

#[test]
fn a_custom_limit_cannot_be_stored_partitioned_or_scaled() {
    let limits = constant(Ready::Now);
    assert_eq!(limits.check_storable(), Err(LimitsError::Custom(limits[0].name().clone())));
    assert!(Limits::from_text(&limits.to_text(), &|_| None).is_err());
    let bucket = Bucket::fresh(&limits, Tick::ZERO);
    assert!(Bucket::from_bytes(&limits, &bucket.to_bytes()).is_err());
    assert!(Bucket::of_parts(&limits, Tick::ZERO, &bucket.parts(&limits)).is_err());
    assert!(Bucket::of_views(&limits, Tick::ZERO, bucket.views(&limits)).is_err());
    assert_eq!(limits.part(0, 2), None);
    assert_eq!(limits.scaled(50)[0], limits[0], "a rule has no shares");
    let rates = Limits::new([Limit::per_second("rps", 1)]).expect("it is valid");
    assert_eq!(rates.check_storable(), Ok(()));
    assert_ne!(limits[0], constant(Ready::Now)[0], "only a clone is the same rule");
}
