//! Faults of a store that has buckets and records together.

use tollgate_store::records::{Cursor, Item, ItemKey, Page, Records, RecordsError, Write};
use tollgate_store::usage::{Caller, Sums, UsageRetention};
use tollgate_store::{
    Activity, Backend, BucketStatus, Op, Reply, Scope, Store, StoreError, Transaction, TxnOutcome, WaitQueues,
};

use crate::faulty::{Fault, Faulty};

impl Faulty {
    pub(crate) fn is_metered(&self, call: &Transaction<'_>) -> bool {
        let settles = call.steps.iter().any(|step| matches!(step.op, Op::Settle(_) | Op::SettleExisting(_)));
        match self.fault {
            Fault::MetersNothing => false,
            Fault::MetersEverything => call.steps.iter().all(|step| step.place.key.pair().is_some()),
            Fault::MetersNoSettlement => call.metered && !settles,
            _ => call.metered,
        }
    }

    /// Counts what a call used as if it had been sent twice.
    pub(crate) fn count_again(
        &self,
        call: &Transaction<'_>,
        applied: TxnOutcome,
    ) -> Result<TxnOutcome, StoreError> {
        for step in call.steps.iter().filter(|_| call.metered && matches!(applied, TxnOutcome::Done(_))) {
            let (Op::Take { costs, .. }, Some((entity, resource))) = (&step.op, step.place.key.pair()) else {
                continue;
            };
            let mut sums = Sums::new(step.place.limits, self.clock().now(), Caller::of(costs));
            sums.add_take(costs);
            let kept = UsageRetention::default();
            let writes = sums.writes(step.place.namespace, entity, resource, &kept);
            self.memory.write(&writes).wait().map_err(|error| StoreError::BadCall(error.to_string()))?;
        }
        Ok(applied)
    }

    fn apply_with_faulty(
        &self,
        call: &Transaction<'_>,
        writes: &[Write],
    ) -> Result<TxnOutcome, RecordsError> {
        let apply = || self.apply_faulty(call).map_err(RecordsError::from);
        match self.fault {
            Fault::WritesBeforeItApplies => {
                self.memory.write(writes).wait()?;
                apply()
            }
            Fault::AppliesBeforeItWrites => {
                let applied = apply()?;
                if matches!(applied, TxnOutcome::Done(_)) {
                    self.memory.write(writes).wait()?;
                }
                Ok(applied)
            }
            Fault::WritesAgain => {
                let applied = self.memory.apply_with(call, writes).wait()?;
                let untested = |write: &Write| match write.clone() {
                    Write::Change(key, changes, _) => Write::Change(key, changes, vec![]),
                    write => write,
                };
                if matches!(applied, TxnOutcome::Done(_)) {
                    self.memory.write(&writes.iter().map(untested).collect::<Vec<_>>()).wait()?;
                }
                Ok(applied)
            }
            Fault::MixesNamespaces | Fault::ForgetsIds => {
                let applied = apply()?;
                self.memory.write(writes).wait()?;
                Ok(applied)
            }
            _ => self
                .memory
                .apply_with(&Transaction { metered: self.is_metered(call), ..call.clone() }, writes)
                .wait(),
        }
    }

    fn forget_faulty(&self, namespace: &str, scope: Scope<'_>) -> Result<usize, StoreError> {
        match self.fault {
            Fault::ForgetsNothing => Ok(0),
            Fault::ForgetsTooMuch => self.memory.forget(namespace, Scope::All).wait(),
            Fault::ForgetsAllAtOnce => {
                let mut all = 0;
                loop {
                    let forgotten = self.memory.forget(namespace, scope).wait()?;
                    all += forgotten;
                    if forgotten == 0 {
                        return Ok(all);
                    }
                }
            }
            Fault::MiscountsTheForgotten => {
                Ok(self.memory.forget(namespace, scope).wait()?.saturating_sub(1))
            }
            _ => self.memory.forget(namespace, scope).wait(),
        }
    }

    fn buckets_faulty(
        &self,
        namespace: &str,
        scope: Scope<'_>,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<BucketStatus>, StoreError> {
        let scope = if self.has(Fault::ListsWithoutScope) { Scope::All } else { scope };
        let namespace = if self.has(Fault::MixesNamespaces) { "all" } else { namespace };
        let mut page = self.memory.buckets(namespace, scope, after, limit).wait()?;
        if let (true, [first, .., last]) = (self.has(Fault::ListsOneTwice), &mut page.items[..]) {
            *last = first.clone();
        }
        Ok(page)
    }
}

impl Backend for Faulty {
    fn apply_with<'a>(
        &'a self,
        call: &Transaction<'a>,
        writes: &'a [Write],
    ) -> Reply<'a, Result<TxnOutcome, RecordsError>> {
        Reply::ready(self.apply_with_faulty(call, writes))
    }

    fn buckets<'a>(
        &'a self,
        namespace: &'a str,
        scope: Scope<'a>,
        after: Option<Cursor>,
        limit: usize,
    ) -> Reply<'a, Result<Page<BucketStatus>, StoreError>> {
        Reply::ready(self.buckets_faulty(namespace, scope, after, limit))
    }

    fn forget<'a>(&'a self, namespace: &'a str, scope: Scope<'a>) -> Reply<'a, Result<usize, StoreError>> {
        Reply::ready(self.forget_faulty(namespace, scope))
    }

    fn close<'a>(&'a self, namespace: &'a str) -> Reply<'a, Result<(), StoreError>> {
        match self.fault {
            Fault::NeverCloses => Reply::ready(Ok(())),
            Fault::ClosesAll => {
                let all = ["forget", "forgetting"].map(|namespace| self.memory.close(namespace).wait());
                Reply::ready(all.into_iter().collect())
            }
            _ => self.memory.close(namespace),
        }
    }

    fn wait_queues(&self) -> &WaitQueues {
        self.memory.wait_queues()
    }

    fn activity<'a>(
        &'a self,
        namespace: &'a str,
        scope: Scope<'a>,
        after: Option<Cursor>,
    ) -> Reply<'a, Result<Page<Activity>, StoreError>> {
        if self.has(Fault::WritesUsageWhenAsked) {
            self.memory.write_usage(namespace, scope).wait().ok();
        }
        self.memory.activity(namespace, scope, after)
    }

    fn usage_at<'a>(&'a self, keys: &'a [ItemKey]) -> Reply<'a, Result<Vec<Option<Item>>, RecordsError>> {
        self.memory.usage_at(keys)
    }

    fn write_usage<'a>(&'a self, namespace: &'a str, scope: Scope<'a>) -> Reply<'a, Result<(), StoreError>> {
        let scope = if self.has(Fault::MetersOneEntity) { Scope::Entity("user") } else { scope };
        self.memory.write_usage(namespace, scope)
    }
}
