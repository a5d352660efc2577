//! The calls of a batch: account, address, and how a reply is reported to the batch.

use std::collections::HashMap;
use std::sync::Arc;

use tollgate::Clock;
use tollgate_batch::{CallReply, ItemAttempt};
use tollgate_provider::{Class, Estimator, FatalKind, Hint};

use super::account::AccountConfig;
use super::first_call::FirstCall;
use super::http::{HttpCaller, Replied};
use super::input::PlannedRequest;
use super::output::Answered;
use super::price::Prices;
use super::reachability::Reachability;
use super::{endpoint, key};

/// Makes the calls of a batch.
pub(super) struct BatchCalls {
    pub(super) caller: HttpCaller,
    pub(super) accounts: HashMap<String, (AccountConfig, FirstCall)>,
    pub(super) prices: Arc<Prices>,
    pub(super) estimator: Arc<Estimator>,
    pub(super) reachability: Arc<Reachability>,
    /// The maximum number of attempts of a request.
    pub(super) attempts: u32,
}

impl BatchCalls {
    /// Makes one call, and returns its reply.
    ///
    /// # Cancel safety
    ///
    /// As [`HttpCaller::call`].
    pub(super) async fn call(&self, attempt: &ItemAttempt<PlannedRequest>) -> CallReply<Answered> {
        let PlannedRequest { request, estimate } = attempt.payload();
        let (account, first_call) = &self.accounts[attempt.scope()];
        let address = match endpoint::address(account, request.path.as_deref(), &request.model) {
            Ok(address) => address,
            // A retry cannot help: the request has no address at this account.
            Err(why) => return CallReply::refused(Hint::fatal(FatalKind::Request).with_reason(why)),
        };
        let call = self.caller.call(account, address, request.body.get());
        let replied = match first_call.pass(call).await {
            Ok(replied) => replied,
            Err(refusal) => return CallReply::not_sent(refusal),
        };
        let (host, _) = key::host_of(&account.base_url);
        let is_last = attempt.attempt() >= self.attempts;
        if self.reachability.observe(host, &replied, is_last, Clock::system().now()) {
            // The batch is about to end. Until then no request must fail because of the connection.
            return std::future::pending().await;
        }
        let hint = replied.hint.clone();
        if hint.class != Class::Ok {
            let reply = with_rejected(CallReply::refused(hint), account, &replied);
            return match replied.usage {
                Some(usage) => reply.usage(usage),
                None => reply,
            };
        }
        let cost = hint.usage.and_then(|tokens| {
            self.estimator.learn(estimate, tokens);
            Some(self.prices.of(&request.model)?.micros(tokens))
        });
        let reply = match Answered::new(&account.name, &replied) {
            Ok(answered) => CallReply::done(answered, hint),
            Err(why) => with_rejected(CallReply::invalid(why, hint), account, &replied),
        };
        match cost {
            Some(cost) => reply.cost_micros(cost),
            None => reply,
        }
    }
}

/// Adds the reply of the server, if there is one, for a request that may fail.
fn with_rejected(
    reply: CallReply<Answered>,
    account: &AccountConfig,
    replied: &Replied,
) -> CallReply<Answered> {
    match Answered::rejected(account, replied) {
        Some(rejected) => reply.rejected(rejected),
        None => reply,
    }
}

/// Returns the accounts by name, each with the state of its first call.
pub(super) fn by_name(accounts: Vec<AccountConfig>) -> HashMap<String, (AccountConfig, FirstCall)> {
    accounts.into_iter().map(|account| (account.name.clone(), (account, FirstCall::default()))).collect()
}
