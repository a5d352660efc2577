//! Looking without taking.

use std::time::Duration;

use tollgate_core::{AsDemand, Demand};
use tollgate_store::Reply;

use super::plan::{AnyDemand, LimiterRequest};
use super::{ChainStatus, Limiter, LimiterError};

impl Limiter {
    /// How every limit of the entity and of its parents stands. Changes nothing.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Limiter::acquire), refusal aside.
    pub fn available<'a>(
        &'a self,
        entity: &'a str,
        resource: &'a str,
    ) -> Reply<'a, Result<ChainStatus, LimiterError>> {
        Reply::later(async move {
            let chain = self.0.route(entity, resource).await?;
            let asked: Demand =
                chain.chain.links[0].limits.iter().map(|limit| (limit.name().as_str(), 0_u64)).collect();
            self.stand(entity, resource, &asked).await
        })
    }

    /// Whether the demand would pass now and, if not, which limit of which entity refuses, and when it would. Takes
    /// nothing.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Limiter::acquire), refusal aside.
    pub fn check_availability<'a, D>(
        &'a self,
        entity: &'a str,
        resource: &'a str,
        demand: D,
    ) -> Reply<'a, Result<ChainStatus, LimiterError>>
    where
        D: AsDemand + Send + Sync + 'a,
    {
        Reply::later(async move { self.stand(entity, resource, &demand).await })
    }

    /// As [`check_availability`](Limiter::check_availability), for a call that takes from several resources, all or
    /// nothing.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Limiter::acquire), refusal aside.
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
            self.stand_all(LimiterRequest::now(entity, demands.collect())).await
        })
    }

    /// Returns how long until the demand would pass, if no other caller takes or gives back meanwhile; `None` if that
    /// depends on others giving back.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Limiter::acquire), refusal aside.
    pub fn time_until_available<'a, D>(
        &'a self,
        entity: &'a str,
        resource: &'a str,
        demand: D,
    ) -> Reply<'a, Result<Option<Duration>, LimiterError>>
    where
        D: AsDemand + Send + Sync + 'a,
    {
        Reply::later(async move { Ok(self.stand(entity, resource, &demand).await?.retry_after()) })
    }

    async fn stand(
        &self,
        entity: &str,
        resource: &str,
        demand: &(dyn AsDemand + Send + Sync),
    ) -> Result<ChainStatus, LimiterError> {
        self.stand_all(LimiterRequest::now(entity, vec![(resource, demand)])).await
    }

    async fn stand_all(&self, request: LimiterRequest<'_>) -> Result<ChainStatus, LimiterError> {
        let shared = &self.0;
        let plan = shared.plan(&request).await?;
        Ok(*shared.stand(&request, &plan).await?)
    }
}
