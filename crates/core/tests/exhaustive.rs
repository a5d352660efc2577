//! All small cases: capacity up to 4, costs up to 5, 6 steps, for every machine.
//!
//! A step is a demand or a settlement after some time. The tree of all of them is walked level by level, with
//! what was reached in two ways walked on from once.

mod oracle;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use oracle::Settled;
use oracle::edges::Listed;
use oracle::spec::Spec;
use oracle::subject::{Answer, Core, Subject, costs};
use oracle::trace::{Compare, Witness};
use tollgate_core::{Algorithm, Demand, DemandError, Holder};

const STEPS: usize = 6;
const COST_MAX: u64 = 5;

/// Where a path has led to: the core, the oracle, and what was taken last and is not settled.
#[derive(Clone)]
struct Place {
    core: Core,
    oracle: Compare,
    now: u64,
    loan: Option<Settled>,
}

impl Place {
    fn start(spec: &Spec) -> Place {
        Place { core: Core::new(spec.limit("x"), 0), oracle: Compare::new(spec, 0), now: 0, loan: None }
    }

    /// Places with the same key have the same future.
    fn key(&self) -> String {
        format!("{} {:?} {:?} {:?}", self.now, self.core.bucket, self.oracle.oracle, self.loan)
    }

    fn take(&self, passed: u64, cost: u64, holder: Option<Holder>) -> Result<Place, String> {
        let mut next = Place { now: self.now + passed, ..self.clone() };
        let answer = next.core.take(next.now, cost, holder);
        next.oracle.taken(next.now, cost, holder, &answer)?;
        match answer {
            Answer::Admitted(at) => {
                let holder = holder.map(|holder| holder.id);
                next.loan = Some(Settled { at, reserved: cost, used: 0, holder });
            }
            Answer::Denied { .. } if next.core.bucket == self.core.bucket => {}
            Answer::Denied { .. } => return Err("a denial changed the bucket".into()),
        }
        Ok(next)
    }

    fn settle(&self, passed: u64, used: u64) -> Result<Place, String> {
        let mut next = Place { now: self.now + passed, loan: None, ..self.clone() };
        let Some(loan) = self.loan else { return Ok(next) };
        let settled = Settled { used, ..loan };
        next.core.settle(next.now, &settled);
        next.oracle.settled(next.now, &settled)?;
        Ok(next)
    }
}

/// Walks all paths of demands of up to the capacity and settlements, and answers how many places there are.
fn enumerate(spec: &Spec, pauses: &[u64], usages: &[u64]) -> Result<usize, String> {
    let mut level = vec![Place::start(spec)];
    let mut places = 1;
    for _ in 0..STEPS {
        let mut next = HashMap::new();
        for place in &level {
            step(spec, place, pauses, usages, &mut next)
                .map_err(|why| format!("{spec:?}, after {}: {why}", place.key()))?;
        }
        level = next.into_values().collect();
        places += level.len();
    }
    Ok(places)
}

/// Everything that can happen at `place`.
fn step(
    spec: &Spec,
    place: &Place,
    pauses: &[u64],
    usages: &[u64],
    next: &mut HashMap<String, Place>,
) -> Result<(), String> {
    for passed in pauses {
        let takes = (1..=spec.capacity()).map(|cost| place.take(*passed, cost, holder(spec, place)));
        let settles = usages.iter().map(|used| place.settle(*passed, *used));
        for reached in takes.chain(settles) {
            let mut reached = reached?;
            if let Entry::Vacant(vacant) = next.entry(reached.key()) {
                reached.oracle.peeked(reached.now, &reached.core.peek(reached.now))?;
                vacant.insert(reached);
            }
        }
    }
    Ok(())
}

/// Every other tick the gauge is taken by a holder that expires.
fn holder(spec: &Spec, place: &Place) -> Option<Holder> {
    let held = matches!(spec, Spec::Gauge { .. }) && place.now % 2 == 1;
    held.then(|| Holder { id: place.now.into(), expires: oracle::subject::tick(place.now + 3) })
}

fn impossible_costs_are_refused(spec: &Spec) {
    let limits = Core::new(spec.limit("x"), 0).limits;
    for asked in spec.capacity() + 1..=COST_MAX {
        let refused = match spec {
            // No demand can name it.
            Spec::Cooldown => limits.impossible(&costs(&limits, asked)).map_or(Ok(()), Err),
            _ => limits.costs(&Demand::new().with("x", asked)).map(drop),
        };
        let expected = (asked, spec.capacity());
        assert!(
            matches!(refused, Err(DemandError::Impossible { asked, capacity, .. }) if (asked, capacity) == expected)
        );
    }
}

fn all_cases(specs: impl IntoIterator<Item = Spec>, pauses: &[u64], usages: &[u64]) {
    for spec in specs {
        // The larger the capacity, the more demands there are to choose from; fewer pauses keep it walkable.
        let pauses = if spec.capacity() <= 2 { pauses } else { &pauses[..2] };
        impossible_costs_are_refused(&spec);
        let places = enumerate(&spec, pauses, usages);
        assert!(places.as_ref().is_ok_and(|places| *places > STEPS), "{places:?}");
    }
}

fn buckets(algorithm: Algorithm) -> impl Iterator<Item = Spec> {
    let rates = [(1, 2), (2, 3)];
    (1..=4).flat_map(move |capacity| {
        rates.map(|(amount, period)| Spec::Bucket { algorithm, amount, capacity, period })
    })
}

#[test]
fn every_small_case_of_a_token_bucket() {
    all_cases(buckets(Algorithm::TokenBucket), &[0, 1, 3], &[0, 5]);
}

#[test]
fn every_small_case_of_a_leaky_bucket() {
    all_cases(buckets(Algorithm::LeakyBucket), &[0, 1, 3], &[0, 5]);
}

#[test]
fn every_small_case_of_gcra() {
    all_cases(buckets(Algorithm::Gcra), &[0, 1, 3], &[0, 5]);
}

#[test]
fn every_small_case_of_a_fixed_window() {
    let specs = (1..=4).flat_map(|amount| [1, 3].map(|period| Spec::Fixed { amount, period }));
    all_cases(specs, &[0, 1, 3], &[0, 5]);
}

#[test]
fn every_small_case_of_a_sliding_window() {
    let steps = [(1, 1), (3, 1), (3, 2), (5, 3)];
    let specs = (1..=4)
        .flat_map(|amount| steps.map(|(period, step)| Spec::Sliding { amount, period, step: Some(step) }));
    all_cases(specs, &[0, 1, 3], &[0, 5]);
}

#[test]
fn every_small_case_of_a_session_quota() {
    let specs = (1..=4).flat_map(|amount| [1, 3].map(|span| Spec::Session { amount, span }));
    all_cases(specs, &[0, 1, 3], &[0, 5]);
}

#[test]
fn every_small_case_of_a_calendar_quota() {
    let specs =
        (1..=4).map(|amount| Spec::Calendar { amount, edges: Listed(vec![1, 2, 5, 6, 10, 11, 12, 20]) });
    all_cases(specs, &[0, 1, 3], &[0, 5]);
}

#[test]
fn every_small_case_of_a_cooldown() {
    all_cases([Spec::Cooldown], &[0, 1, 3], &[0, 2, 5]);
}

#[test]
fn every_small_case_of_a_gauge() {
    all_cases((1..=4).map(|capacity| Spec::Gauge { capacity }), &[0, 1, 3], &[0]);
}
