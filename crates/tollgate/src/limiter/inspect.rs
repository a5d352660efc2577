//! Status without taking.

use std::time::Duration;

use tollgate_core::{AsDemand, Demand};
use tollgate_store::{Priority, Reply};

use super::plan::{AnyDemand, LimiterRequest};
use super::{ChainStatus, Limiter, LimiterError};
use crate::admission::WaitPolicy;

impl Limiter {
    /// Returns the status of every limit of the entity and of its parents. Changes nothing.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Limiter::acquire), denials aside.
    pub fn available<'a>(
        &'a self,
        entity: &'a str,
        resource: &'a str,
    ) -> Reply<'a, Result<ChainStatus, LimiterError>> {
        Reply::later(async move {
            let chain = self.0.route(entity, resource).await?;
            let asked: Demand =
                chain.chain.links[0].limits.iter().map(|limit| (limit.name().as_str(), 0_u64)).collect();
            self.evaluate(entity, resource, &asked).await
        })
    }

    /// Returns whether the demand would pass now and, if not, which limit of which entity denies it, and when it would pass.
    /// Takes nothing.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Limiter::acquire), denials aside.
    pub fn check_availability<'a, D>(
        &'a self,
        entity: &'a str,
        resource: &'a str,
        demand: D,
    ) -> Reply<'a, Result<ChainStatus, LimiterError>>
    where
        D: AsDemand + Send + Sync + 'a,
    {
        Reply::later(async move { self.evaluate(entity, resource, &demand).await })
    }

    /// As [`check_availability`](Limiter::check_availability), for a call that takes from several resources, all or
    /// nothing.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Limiter::acquire), denials aside.
    pub fn check_availability_of_all<'a, D>(
        &'a self,
        entity: &'a str,
        demands: Vec<(&'a str, D)>,
    ) -> Reply<'a, Result<ChainStatus, LimiterError>>
    where
        D: AsDemand + Send + Sync + 'a,
    {
        Reply::later(async move {
            let demands = demands.iter().map(|(resource, demand)| (*resource, demand as AnyDemand<'_>));
            self.evaluate_all(LimiterRequest::new(entity, demands.collect())).await
        })
    }

    /// Returns how long until the demand would pass, if no other caller takes or gives back meanwhile; `None` if that
    /// depends on others giving back.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Limiter::acquire), denials aside.
    pub fn time_until_available<'a, D>(
        &'a self,
        entity: &'a str,
        resource: &'a str,
        demand: D,
    ) -> Reply<'a, Result<Option<Duration>, LimiterError>>
    where
        D: AsDemand + Send + Sync + 'a,
    {
        Reply::later(async move { Ok(self.evaluate(entity, resource, &demand).await?.retry_after()) })
    }

    async fn evaluate(
        &self,
        entity: &str,
        resource: &str,
        demand: &(dyn AsDemand + Send + Sync),
    ) -> Result<ChainStatus, LimiterError> {
        self.evaluate_all(LimiterRequest::new(entity, vec![(resource, demand)])).await
    }

    async fn evaluate_all(&self, request: LimiterRequest<'_>) -> Result<ChainStatus, LimiterError> {
        let plan = self.0.plan(&request).await?;
        let policy = WaitPolicy::at_once(Priority::default());
        Ok(*self.0.evaluate(&request, &plan, policy).await?)
    }
}
