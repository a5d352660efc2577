//! Limits that warn and do not deny: shadow limits, and soft levels below the capacity.

use crate::oracle::seed::{PANICKED, TestRng, first_failure, for_seeds};
use crate::oracle::spec::{Spec, any};
use crate::oracle::subject::{Answer, Core, Observation, Subject, tick};
use crate::oracle::trace::{Checker, PLAN, Plan, Trace};
use crate::oracle::{Reference, Settled};
use tollgate_core::{
    Bucket, Demand, DemandError, Holder, Limit, LimitBuilder, Limits, Ready, Take, Usage, demand,
};

const BACK: Plan = Plan { clock_back: true, ..PLAN };

fn built(limit: LimitBuilder) -> Limit {
    limit.build().expect("it is valid")
}

/// Checks that every demand is admitted, and all of it counted.
struct CountsAll(Reference);

impl Checker for CountsAll {
    fn taken(&mut self, now: u64, cost: u64, holder: Option<Holder>, answer: &Answer) -> Result<(), String> {
        self.0.charge(now, cost, holder.map(|holder| (holder.id, holder.expires.as_micros())));
        match answer {
            Answer::Admitted(at) if *at == self.0.stamp() => Ok(()),
            answer => Err(format!("{cost} was answered {answer:?}")),
        }
    }

    fn settled(&mut self, now: u64, settled: &Settled) -> Result<(), String> {
        self.0.settle(now, settled);
        Ok(())
    }

    fn peeked(&mut self, now: u64, observed: &Observation) -> Result<(), String> {
        let left = self.0.left(now);
        if i128::from(observed.available) != left {
            return Err(format!("reported {} available, but it is {left}", observed.available));
        }
        Ok(())
    }
}

/// A shadow limit, or a faulty one.
enum Claimed {
    Shadow(Core),
    Refuses(Core),
    CountsOnlyWhatFits(Core),
}

impl Claimed {
    fn core(&self) -> &Core {
        let (Claimed::Shadow(core) | Claimed::Refuses(core) | Claimed::CountsOnlyWhatFits(core)) = self;
        core
    }
}

impl Subject for Claimed {
    fn take(&mut self, now: u64, cost: u64, holder: Option<Holder>) -> Answer {
        match self {
            Claimed::Shadow(core) | Claimed::Refuses(core) => core.take(now, cost, holder),
            Claimed::CountsOnlyWhatFits(core) => {
                let left = u64::try_from(core.peek(now).available).unwrap_or(0);
                core.take(now, cost.min(left), holder)
            }
        }
    }

    fn settle(&mut self, now: u64, settled: &Settled) {
        let (Claimed::Shadow(core) | Claimed::Refuses(core) | Claimed::CountsOnlyWhatFits(core)) = self;
        core.settle(now, settled);
    }

    fn peek(&self, now: u64) -> Observation {
        self.core().peek(now)
    }
}

fn check(rng: &mut TestRng, claim: impl Fn(&Spec, u64) -> Claimed) -> Result<(), String> {
    let spec = any::kind(rng);
    let trace = Trace::new(&spec, BACK, rng);
    let mut checker = CountsAll(Reference::new(spec.machine(), trace.now));
    let mut subject = claim(&spec, trace.now);
    trace.run(&mut subject, &mut checker).map(drop)
}

fn shadow(spec: &Spec, now: u64) -> Core {
    Core::new(built(spec.builder("x").shadow()), now)
}

#[test]
fn a_shadow_limit_counts_exactly_as_an_enforced_one_in_debt() {
    for_seeds(4_000, |rng| check(rng, |spec, now| Claimed::Shadow(shadow(spec, now))));
}

#[test]
fn a_shadow_limit_that_denies_or_counts_too_little_is_found() {
    let enforced = |spec: &Spec, now| Core::new(spec.limit("x"), now);
    let refuses = first_failure(200, |rng| check(rng, |spec, now| Claimed::Refuses(enforced(spec, now))));
    let forgets =
        first_failure(200, |rng| check(rng, |spec, now| Claimed::CountsOnlyWhatFits(shadow(spec, now))));
    for found in [refuses, forgets] {
        assert_ne!(found.expect("it is found out").1, PANICKED);
    }
}

/// Repeats a trace of one bucket on another that has a shadow limit beside.
struct Beside {
    limits: Limits,
    bucket: Bucket,
    shadow_cost: u64,
}

impl Beside {
    fn demand(&self, cost: u64) -> Demand {
        Demand::new().with("x", cost).with("beside", self.shadow_cost)
    }
}

impl Checker for Beside {
    fn taken(&mut self, now: u64, cost: u64, holder: Option<Holder>, answer: &Answer) -> Result<(), String> {
        let costs = self.limits.costs(&self.demand(cost)).map_err(|why| why.to_string())?;
        let ready = self.bucket.ready(&self.limits, tick(now), &costs);
        let taken = self.bucket.take(&self.limits, tick(now), &Take { costs: &costs, holder });
        let same = match (&taken, answer) {
            (Ok(at), Answer::Admitted(alone)) => at.as_micros() == *alone && ready == Ready::Now,
            (Err(denial), Answer::Denied { available, ready: alone }) => {
                let statuses: Vec<_> = denial.statuses().collect();
                let [x, beside] = &statuses[..] else { return Err("there are two limits".into()) };
                let names_it = denial.limited_by().is_some_and(|status| status.limit().name() == "x");
                let does_not_deny = !beside.is_exceeded() && beside.requested() == self.shadow_cost;
                x.available() == *available
                    && denial.ready() == *alone
                    && ready == *alone
                    && names_it
                    && does_not_deny
            }
            _ => false,
        };
        if same { Ok(()) } else { Err(format!("alone {answer:?}, beside a shadow limit {taken:?}")) }
    }

    fn settled(&mut self, now: u64, settled: &Settled) -> Result<(), String> {
        let wide = ["x", "beside"].map(|name| Limit::resource(name, tollgate_core::UNBOUNDED));
        let wide = Limits::new(wide).expect("two limits are a set");
        let reserved = wide.costs(&self.demand(settled.reserved)).map_err(|why| why.to_string())?;
        let used = [settled.used, self.shadow_cost / 2];
        let usage = Usage { at: tick(settled.at), reserved: &reserved, used: &used, holder: settled.holder };
        self.bucket.settle(&self.limits, tick(now), &usage);
        Ok(())
    }

    fn peeked(&mut self, now: u64, observed: &Observation) -> Result<(), String> {
        let status = self.bucket.peek(&self.limits, tick(now)).remove(0);
        let beside = Observation { available: status.available(), full: status.full() };
        if beside == *observed { Ok(()) } else { Err(format!("alone {observed:?}, beside {beside:?}")) }
    }
}

#[test]
fn a_shadow_limit_never_changes_a_verdict_of_the_others() {
    for_seeds(4_000, |rng| {
        let (spec, beside) = (any::kind(rng), any::kind(rng));
        let limits = [spec.builder("x"), beside.builder("beside").shadow()];
        let limits = Limits::new(limits).map_err(|why| why.to_string())?;
        let shadow_cost = rng.from(0, 2 * beside.capacity());
        let trace = Trace::new(&spec, BACK, rng);
        let bucket = Bucket::fresh(&limits, tick(trace.now));
        let mut alone = Core::new(spec.limit("x"), trace.now);
        trace.run(&mut alone, &mut Beside { limits, bucket, shadow_cost }).map(drop)
    });
}

#[test]
fn warnings_name_the_limits_above_their_level() {
    let limits = [
        Limit::per_minute("rpm", 10),
        Limit::per_minute("tpm", 100).soft(80),
        Limit::per_minute("spend", 5).shadow(),
        Limit::resource("slots", 4).soft(1).shadow(),
    ];
    let limits = Limits::new(limits).unwrap();
    let mut bucket = Bucket::fresh(&limits, tick(0));
    let mut take = |demand: &Demand| {
        let costs = limits.costs(demand).unwrap();
        bucket.take(&limits, tick(0), &Take::of(&costs)).unwrap();
        bucket.warnings(&limits, tick(0))
    };
    let nothing = || Demand::new().with("slots", 0);
    assert_eq!(take(&nothing().with("tpm", 80).with("spend", 5)), 0b0000);
    assert_eq!(take(&nothing().with("tpm", 1)), 0b0010);
    assert_eq!(take(&nothing().with("spend", 1)), 0b0110);
    assert_eq!(take(&Demand::new().with("slots", 1)), 0b0110);
    assert_eq!(take(&Demand::new().with("slots", 9)), 0b1110);
    let a_minute_later = tick(60_000_000);
    assert_eq!(bucket.warnings(&limits, a_minute_later), 0b1000, "the rates have refilled");
    assert!(limits.may_warn());
    assert!(!Limits::new([Limit::per_minute("rpm", 10)]).unwrap().may_warn());
}

#[test]
fn a_demand_above_the_capacity_is_possible_for_a_shadow_limit_only() {
    let enforced = Limits::new([Limit::per_minute("tpm", 10)]).unwrap();
    assert!(matches!(enforced.costs(&demand! { tpm: 11 }), Err(DemandError::Impossible { .. })));
    let shadow = Limits::new([Limit::per_minute("tpm", 10).shadow()]).unwrap();
    assert!(shadow.costs(&demand! { tpm: 11 }).is_ok());
}

#[test]
fn enforcing_a_shadow_limit_carries_its_debt_over() {
    let shadow = Limits::new([Limit::per_minute("tpm", 60).shadow()]).unwrap();
    let costs = shadow.costs(&demand! { tpm: 90 }).unwrap();
    let mut bucket = Bucket::fresh(&shadow, tick(0));
    bucket.take(&shadow, tick(0), &Take::of(&costs)).unwrap();
    let enforced = Limits::new([Limit::per_minute("tpm", 60)]).unwrap();
    bucket.adopt(&shadow, &enforced, tick(0));
    let one = enforced.costs(&demand! { tpm: 1 }).unwrap();
    let denial = bucket.take(&enforced, tick(0), &Take::of(&one)).unwrap_err();
    assert_eq!(denial.wait().unwrap().as_secs(), 31);
}

#[test]
fn a_soft_level_must_be_below_the_capacity() {
    let tpm = || Limit::per_minute("tpm", 100).burst(20);
    assert_eq!(built(tpm().soft(19)).soft_level(), Some(19));
    let valid = "below the capacity, which is 20";
    for (level, valid) in [(20, valid), (100, valid), (0, "1 to 1000000000000000, or UNBOUNDED")] {
        let why = tpm().soft(level).build().unwrap_err();
        assert_eq!((why.field(), why.valid()), ("soft", valid));
    }
    let unbounded = Limit::per_minute("tpm", tollgate_core::UNBOUNDED).soft(5).build().unwrap_err();
    assert_eq!(unbounded.valid(), "left out: the limit is unbounded");
}

#[test]
fn a_shown_limit_names_its_soft_level_and_shadow() {
    let tpm = || Limit::per_minute("tpm", 100);
    assert_eq!(built(tpm().soft(80)).to_string(), "tpm: 100 per 60s, soft 80");
    assert_eq!(built(tpm().shadow()).to_string(), "tpm: 100 per 60s, shadow");
    assert_eq!(
        built(tpm().burst(20).soft(5).shadow()).to_string(),
        "tpm: 100 per 60s, burst 20, soft 5, shadow"
    );
    assert!(built(tpm().shadow()).is_shadow() && !built(tpm()).is_shadow());
}
