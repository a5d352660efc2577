//! Items, the attempts that a handler is called with, and its replies.

use std::sync::Arc;

use tollgate_provider::{Class, Hint};
use tollgate_store::{Mutex, MutexGuard};

/// An item: one piece of work with an id.
///
/// ```
/// use tollgate_batch::Item;
///
/// let prompt = "Translate: good morning";
/// let item = Item::new("greeting-1", prompt).scope("openai").tokens(40).payload_bytes(prompt.len());
/// # let _ = item;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item<P> {
    pub(crate) id: Arc<str>,
    pub(crate) payload: P,
    pub(crate) scope: Option<Arc<str>>,
    pub(crate) tokens: u64,
    pub(crate) cost_micros: u64,
    pub(crate) payload_bytes: usize,
    pub(crate) label: Label,
}

/// What a journal line contains of an item besides its outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) has_custom_id: bool,
    pub(crate) fingerprint: Option<u64>,
}

impl<P> Item<P> {
    /// Creates an item. The id identifies it in outcomes and in the journal.
    pub fn new(id: impl Into<Arc<str>>, payload: P) -> Item<P> {
        let label = Label::default();
        Item { id: id.into(), payload, scope: None, tokens: 0, cost_micros: 0, payload_bytes: 0, label }
    }

    /// Assigns the item to a scope, such as an account of a provider. Without a scope, any account
    /// of the batch may serve it.
    #[must_use]
    pub fn scope(self, scope: impl Into<Arc<str>>) -> Item<P> {
        Item { scope: Some(scope.into()), ..self }
    }

    /// Sets the estimated tokens of one call.
    #[must_use]
    pub fn tokens(self, tokens: u64) -> Item<P> {
        Item { tokens, ..self }
    }

    /// Sets the estimated cost of one call, in millionths of the currency.
    #[must_use]
    pub fn cost_micros(self, cost_micros: u64) -> Item<P> {
        Item { cost_micros, ..self }
    }

    /// Sets the memory that the payload takes. [`Batch::buffer_bytes`](crate::Batch::buffer_bytes)
    /// bounds the sum over all waiting items.
    #[must_use]
    pub fn payload_bytes(self, payload_bytes: usize) -> Item<P> {
        Item { payload_bytes, ..self }
    }

    /// Writes the id into the journal line as `custom_id` as well, the field that providers' batch
    /// files use.
    #[must_use]
    pub fn with_custom_id(mut self) -> Item<P> {
        self.label.has_custom_id = true;
        self
    }

    /// Sets a fingerprint of the payload, such as a hash that is the same in every process. A later
    /// run reports an item whose fingerprint differs from the one in the journal, and does not call
    /// it.
    #[must_use]
    pub fn fingerprint(mut self, fingerprint: u64) -> Item<P> {
        self.label.fingerprint = Some(fingerprint);
        self
    }
}

/// The part of an item that its calls share.
#[derive(Debug)]
pub(crate) struct ItemShared<P, S> {
    pub(crate) id: Arc<str>,
    pub(crate) payload: P,
    pub(crate) state: Mutex<S>,
}

/// One call of an item, as its handler receives it. `S` is state that the calls of one item share.
///
/// ```
/// use tollgate_batch::{Batch, CallReply, Item, ItemAttempt};
/// use tollgate_provider::Hint;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let items = [Item::new("a", "one two")];
/// let run = Batch::new().run(items, |call: ItemAttempt<&str, u32>| async move {
///     *call.state() += 1;
///     match call.number() {
///         1 => CallReply::invalid("half an answer", Hint::ok()),
///         _ => CallReply::done((call.id().to_owned(), call.attempt(), *call.state()), Hint::ok()),
///     }
/// });
/// let (outcomes, _) = run.collect().await.unwrap();
/// assert_eq!(outcomes[0].result, Ok(("a".to_owned(), 2, 2)));
/// # });
/// ```
#[derive(Debug)]
pub struct ItemAttempt<P, S = ()> {
    pub(crate) item: Arc<ItemShared<P, S>>,
    pub(crate) scope: Arc<str>,
    pub(crate) attempt: u32,
    pub(crate) number: u32,
}

impl<P, S> ItemAttempt<P, S> {
    /// Returns the id of the item.
    pub fn id(&self) -> &str {
        &self.item.id
    }

    /// Returns the payload of the item.
    pub fn payload(&self) -> &P {
        &self.item.payload
    }

    /// Returns the scope of the call, which names the account to use.
    pub fn scope(&self) -> &str {
        &self.scope
    }

    /// Returns the number of the attempt, from 1. A 429 does not count as an attempt.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns the number of the call, from 1. Every earlier call counts.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the state that the calls of this item share. No two of them run at the same time, so
    /// the lock is free.
    pub fn state(&self) -> MutexGuard<'_, S> {
        self.item.state.lock()
    }
}

/// The tokens that a call used.
///
/// ```
/// use tollgate_batch::{CallReply, TokenUsage};
/// use tollgate_provider::Hint;
///
/// let reply = CallReply::done("text", Hint::ok()).usage(TokenUsage::Known(31));
/// # let _ = reply;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenUsage {
    /// This many tokens.
    Known(u64),
    /// None: the call was refused.
    Zero,
    /// Unknown, so the estimate of the item counts.
    Unknown,
}

/// The reply of a handler to one call.
///
/// ```
/// use tollgate_batch::CallReply;
/// use std::time::SystemTime;
/// use tollgate_provider::{Class, Response, read};
///
/// /// Turns an HTTP response of the provider into the reply of a handler.
/// fn reply(response: &Response<'_>) -> CallReply<Vec<u8>> {
///     let hint = read(response, SystemTime::now());
///     match hint.class {
///         Class::Ok => CallReply::done(response.body.to_vec(), hint),
///         _ => CallReply::refused(hint),
///     }
/// }
/// # reply(&Response::new(429, &[("retry-after", "1")], b"{}"));
/// ```
#[derive(Clone, Debug)]
pub struct CallReply<O> {
    pub(crate) result: CallAnswer<O>,
    pub(crate) hint: Hint,
    pub(crate) usage: TokenUsage,
    pub(crate) cost_micros: Option<u64>,
    pub(crate) rejected: Option<O>,
    pub(crate) was_sent: bool,
}

/// The result of a call.
#[derive(Clone, Debug)]
pub(crate) enum CallAnswer<O> {
    Done(O),
    Invalid(String),
    Refused,
}

impl<O> CallReply<O> {
    /// Returns the reply of a call that succeeded. `hint` is what was read from the provider's
    /// response.
    pub fn done(output: O, mut hint: Hint) -> CallReply<O> {
        hint.class = Class::Ok;
        CallReply::new(CallAnswer::Done(output), hint)
    }

    /// Returns the reply of a call that the provider answered with an output that is not usable.
    pub fn invalid(why: impl Into<String>, mut hint: Hint) -> CallReply<O> {
        hint.class = Class::Ok;
        CallReply::new(CallAnswer::Invalid(why.into()), hint)
    }

    /// Returns the reply of a call that the provider refused, or that did not reach it. A hint of
    /// class `Ok` counts as a transient failure.
    pub fn refused(mut hint: Hint) -> CallReply<O> {
        if hint.class == Class::Ok {
            hint.class = Class::Transient;
        }
        CallReply::new(CallAnswer::Refused, hint)
    }

    /// Returns the reply of a handler that made no call, because it knows that the provider refuses
    /// permanently; `hint` is the earlier refusal. It does not count as a call, and another scope
    /// serves the item if there is one.
    pub fn not_sent(hint: Hint) -> CallReply<O> {
        CallReply { was_sent: false, usage: TokenUsage::Zero, ..CallReply::refused(hint) }
    }

    fn new(result: CallAnswer<O>, hint: Hint) -> CallReply<O> {
        let usage = match (hint.usage, &result) {
            (Some(tokens), _) => TokenUsage::Known(tokens.total),
            (None, CallAnswer::Refused) if hint.class != Class::Transient => TokenUsage::Zero,
            (None, _) => TokenUsage::Unknown,
        };
        CallReply { result, hint, usage, cost_micros: None, rejected: None, was_sent: true }
    }

    /// Sets the tokens that the call used, where the hint does not have them or is wrong.
    #[must_use]
    pub fn usage(self, usage: TokenUsage) -> CallReply<O> {
        CallReply { usage, ..self }
    }

    /// Adds the provider's reply to a call that was refused or whose output is not usable. If the
    /// item fails, [`Outcome::rejected`](crate::Outcome::rejected) is the last of these replies.
    #[must_use]
    pub fn rejected(self, output: O) -> CallReply<O> {
        CallReply { rejected: Some(output), ..self }
    }

    /// Sets the cost of the call, in the unit of [`Item::cost_micros`]. By default the cost is
    /// estimated from the tokens.
    #[must_use]
    pub fn cost_micros(self, cost_micros: u64) -> CallReply<O> {
        CallReply { cost_micros: Some(cost_micros), ..self }
    }
}
