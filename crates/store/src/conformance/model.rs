//! What a store must equal: the functions of the core on a plain map.

use std::collections::HashMap;

use tollgate_core::{Bucket, Limits, Link, Status, Tick, take_all};

use crate::{Applied, Call, Done, Key, Op, OpId, Place, Step, Taken, Term};

type Address = (String, Key);

#[derive(Default)]
pub(super) struct Model {
    buckets: HashMap<Address, (Limits, Bucket)>,
    applied: HashMap<OpId, Applied>,
}

impl Model {
    pub(super) fn apply(&mut self, call: &Call<'_>, now: Tick) -> Applied {
        if let Some(applied) = call.id.and_then(|id| self.applied.get(&id)) {
            return applied.clone();
        }
        let applied = self.apply_steps(call.steps, now);
        if let (Some(id), Applied::Done(_)) = (call.id, &applied) {
            self.applied.insert(id, applied.clone());
        }
        applied
    }

    fn apply_steps(&mut self, steps: &[Step<'_>], now: Tick) -> Applied {
        let mut places: Vec<Option<(Limits, Bucket)>> =
            steps.iter().map(|step| self.place_for(step, now)).collect();
        let takes = steps.iter().zip(&mut places).filter_map(|(step, place)| match (&step.op, place) {
            (Op::Take { costs, term }, Some((limits, bucket))) => {
                Some((Link { limits, bucket, costs }, *term))
            }
            _ => None,
        });
        let (mut links, terms): (Vec<Link<'_>>, Vec<Option<Term>>) = takes.unzip();
        let holder = terms.into_iter().flatten().next().map(|term| term.starting(now));
        let mut taken = Vec::new();
        if let Err(denials) = take_all(&mut links, now, holder, |_, at| taken.push(at)) {
            return Applied::Denied(denials);
        }
        let mut taken = taken.into_iter();
        let done = steps.iter().zip(&mut places).map(|(step, place)| match &step.op {
            Op::Take { .. } => {
                let at = taken.next().expect("one for each take");
                Done::Taken(Taken { at, remarks: 0 })
            }
            Op::Settle(usage) | Op::SettleIfThere(usage) => {
                if let Some((limits, bucket)) = place {
                    bucket.settle_counted_in(step.place.limits, limits, now, usage);
                }
                Done::Settled
            }
            Op::TopUp(credit) => {
                if let Some((limits, bucket)) = place {
                    bucket.top_up(limits, now, &credit.moved(step.place.limits, limits));
                }
                Done::Changed
            }
            Op::Reset => {
                if let Some((limits, bucket)) = place {
                    *bucket = Bucket::fresh(limits, now.max(bucket.stamp()));
                }
                Done::Changed
            }
            Op::Renew(term) => Done::Renewed(
                place.as_mut().is_some_and(|(limits, bucket)| bucket.renew(limits, now, term.starting(now))),
            ),
        });
        let done = done.collect();
        for (step, place) in steps.iter().zip(places) {
            self.buckets.extend(place.map(|place| (address(&step.place), place)));
        }
        Applied::Done(done)
    }

    /// The bucket of a step. A take puts its limits in force, and what charges makes a bucket if there is none.
    fn place_for(&self, step: &Step<'_>, now: Tick) -> Option<(Limits, Bucket)> {
        let known = self.buckets.get(&address(&step.place)).cloned();
        let under_its_limits = || Some((step.place.limits.clone(), self.bucket(&step.place, now)));
        match &step.op {
            Op::Take { .. } => under_its_limits(),
            Op::Settle(usage) if usage.is_over() => known.or_else(under_its_limits),
            _ => known,
        }
    }

    fn bucket(&self, place: &Place<'_>, now: Tick) -> Bucket {
        match self.buckets.get(&address(place)) {
            None => Bucket::fresh(place.limits, Tick::ZERO),
            Some((limits, bucket)) => {
                let mut bucket = bucket.clone();
                if limits != place.limits {
                    bucket.adopt(limits, place.limits, now);
                }
                bucket
            }
        }
    }

    /// Whether there is a bucket, and it says nothing.
    pub(super) fn is_forgettable(&self, place: &Place<'_>, now: Tick) -> bool {
        self.buckets.get(&address(place)).is_some_and(|(limits, bucket)| bucket.is_fresh(limits, now))
    }

    pub(super) fn peek(&self, place: &Place<'_>, now: Tick) -> Vec<Status> {
        self.bucket(place, now).peek(place.limits, now)
    }
}

fn address(place: &Place<'_>) -> Address {
    (place.namespace.into(), place.key.clone())
}
