//! The status of a set in a store.

use tollgate_core::{Costs, Demand, Denial, Limits, Ready};
use tollgate_store::{Priority, StoreError};

use super::StoredBacking;
use crate::AcquireError;
use crate::admission::{Takes, behind};
use crate::set::{LimitSet, SetStatus};

impl StoredBacking {
    /// Returns how `costs` would fare, with nothing taken.
    pub(super) async fn evaluate(&self, limits: &Limits, costs: &Costs) -> Result<Denial, StoreError> {
        let answers = self.store.evaluate(&[Takes { bucket: &self.key, limits, costs }]).await?;
        let answer = answers.into_iter().next();
        let answer = answer.ok_or_else(|| StoreError::BadCall("the store did not answer a take".into()))?;
        self.cache_cooldown(answer.cooling_until());
        Ok(answer)
    }

    /// Returns the status of every limit.
    pub(in crate::set) async fn status(&self) -> Result<SetStatus, StoreError> {
        self.open().await?;
        let limits = self.in_force().limits;
        let asked = self.evaluate(&limits, &Costs::none(limits.len())).await?;
        if asked.limits().version() > limits.version() {
            self.learn(Some(&limits)).await?;
        }
        let (waiting, cooling_until) = (self.waiting(), asked.cooling_until());
        Ok(SetStatus { limits: asked.statuses().collect(), waiting, cooling_until })
    }

    /// Returns how many callers of this process wait.
    pub(in crate::set) fn waiting(&self) -> usize {
        self.store.backend.wait_queues().waiting_for(&self.store.namespace, &self.key)
    }

    /// Returns when the demand of a newcomer would be admitted.
    pub(in crate::set) async fn ready(&self, set: &LimitSet, wanted: &Demand) -> Result<Ready, AcquireError> {
        self.open().await?;
        let (in_force, costs) = self.possible_costs(set, wanted).await?;
        let asked = self.evaluate(&in_force.limits, &costs).await?;
        Ok(behind(&*self.store.backend, &self.store.namespace, &self.key, Priority::default(), asked).ready())
    }
}
