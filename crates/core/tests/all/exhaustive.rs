//! All small cases: capacity up to 4, costs up to 5, 6 steps, for every machine.
//!
//! A step is a demand or a settlement after some time. The tree of all steps is walked level by
//! level; a node that is reached in two ways is continued once.

use crate::oracle;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::oracle::Settled;
use crate::oracle::edges::Listed;
use crate::oracle::spec::Spec;
use crate::oracle::subject::{Answer, Core, Subject, costs};
use crate::oracle::trace::{Checker, Compare};
use tollgate_core::{Algorithm, Demand, DemandError, Holder};

const STEPS: usize = 6;
const COST_MAX: u64 = 5;

/// A node of the tree: the core, the oracle, and the last reservation that is not settled.
#[derive(Clone)]
struct Node {
    core: Core,
    oracle: Compare,
    now: u64,
    reservation: Option<Settled>,
}

impl Node {
    fn start(spec: &Spec) -> Node {
        Node { core: Core::new(spec.limit("x"), 0), oracle: Compare::new(spec, 0), now: 0, reservation: None }
    }

    /// Returns a key. Nodes with the same key have the same future.
    fn key(&self) -> String {
        format!("{} {:?} {:?} {:?}", self.now, self.core.bucket, self.oracle.oracle, self.reservation)
    }

    fn take(&self, passed: u64, cost: u64, holder: Option<Holder>) -> Result<Node, String> {
        let mut next = Node { now: self.now + passed, ..self.clone() };
        let answer = next.core.take(next.now, cost, holder);
        next.oracle.taken(next.now, cost, holder, &answer)?;
        match answer {
            Answer::Admitted(at) => {
                let holder = holder.map(|holder| holder.id);
                next.reservation = Some(Settled { at, reserved: cost, used: 0, holder });
            }
            Answer::Denied { .. } if next.core.bucket == self.core.bucket => {}
            Answer::Denied { .. } => return Err("a denial changed the bucket".into()),
        }
        Ok(next)
    }

    fn settle(&self, passed: u64, used: u64) -> Result<Node, String> {
        let mut next = Node { now: self.now + passed, reservation: None, ..self.clone() };
        let Some(reservation) = self.reservation else { return Ok(next) };
        let settled = Settled { used, ..reservation };
        next.core.settle(next.now, &settled);
        next.oracle.settled(next.now, &settled)?;
        Ok(next)
    }
}

/// Walks all paths of demands up to the capacity and settlements, and returns the number of nodes.
fn enumerate(spec: &Spec, pauses: &[u64], usages: &[u64]) -> Result<usize, String> {
    let mut level = vec![Node::start(spec)];
    let mut nodes = 1;
    for _ in 0..STEPS {
        let mut next = HashMap::new();
        for node in &level {
            step(spec, node, pauses, usages, &mut next)
                .map_err(|why| format!("{spec:?}, after {}: {why}", node.key()))?;
        }
        level = next.into_values().collect();
        nodes += level.len();
    }
    Ok(nodes)
}

/// Performs every step that is possible at `node`.
fn step(
    spec: &Spec,
    node: &Node,
    pauses: &[u64],
    usages: &[u64],
    next: &mut HashMap<String, Node>,
) -> Result<(), String> {
    for passed in pauses {
        let takes = (1..=spec.capacity()).map(|cost| node.take(*passed, cost, holder(spec, node)));
        let settles = usages.iter().map(|used| node.settle(*passed, *used));
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

/// At every other tick a holder with an expiry takes from the gauge.
fn holder(spec: &Spec, node: &Node) -> Option<Holder> {
    let held = matches!(spec, Spec::Gauge { .. }) && node.now % 2 == 1;
    held.then(|| Holder { id: node.now.into(), expires: oracle::subject::tick(node.now + 3) })
}

fn impossible_costs_are_refused(spec: &Spec) {
    let limits = Core::new(spec.limit("x"), 0).limits;
    for asked in spec.capacity() + 1..=COST_MAX {
        let refused = match spec {
            // No demand can name a cooldown.
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
        // A larger capacity has more demands to choose from; fewer pauses keep the tree small.
        let pauses = if spec.capacity() <= 2 { pauses } else { &pauses[..2] };
        impossible_costs_are_refused(&spec);
        let nodes = enumerate(&spec, pauses, usages);
        assert!(nodes.as_ref().is_ok_and(|nodes| *nodes > STEPS), "{nodes:?}");
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
