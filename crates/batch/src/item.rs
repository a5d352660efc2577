//! What goes in, what a handler sees, and what it answers.

use std::sync::Arc;

use tollgate_provider::{Class, Hint};
use tollgate_store::{Mutex, MutexGuard};

/// One piece of work.
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

/// What the journal's line says of an item besides what became of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) has_custom_id: bool,
    pub(crate) fingerprint: Option<u64>,
}

impl<P> Item<P> {
    /// An item. The id is its name in results, and in the journal.
    pub fn new(id: impl Into<Arc<str>>, payload: P) -> Item<P> {
        let label = Label::default();
        Item { id: id.into(), payload, scope: None, tokens: 0, cost_micros: 0, payload_bytes: 0, label }
    }

    /// The same for one scope: a provider and an account, say. Without it any account of the batch will do.
    #[must_use]
    pub fn scope(self, scope: impl Into<Arc<str>>) -> Item<P> {
        Item { scope: Some(scope.into()), ..self }
    }

    /// The same with how many tokens a call will take, as far as is known.
    #[must_use]
    pub fn tokens(self, tokens: u64) -> Item<P> {
        Item { tokens, ..self }
    }

    /// The same with what a call will cost, in millionths of whatever money is counted in.
    #[must_use]
    pub fn cost_micros(self, cost_micros: u64) -> Item<P> {
        Item { cost_micros, ..self }
    }

    /// Sets how much memory the payload takes, by which [`Batch::buffer_bytes`](crate::Batch::buffer_bytes) bounds how many
    /// items wait.
    #[must_use]
    pub fn payload_bytes(self, payload_bytes: usize) -> Item<P> {
        Item { payload_bytes, ..self }
    }

    /// Writes the id into the journal's line as `custom_id` as well, the field that files of batches have it in.
    #[must_use]
    pub fn with_custom_id(mut self) -> Item<P> {
        self.label.has_custom_id = true;
        self
    }

    /// Sets what the payload is recognised by: a hash of it, say, that is the same in every process. A later run reports an
    /// item whose fingerprint is not the one in the journal, and does not call it.
    #[must_use]
    pub fn fingerprint(mut self, fingerprint: u64) -> Item<P> {
        self.label.fingerprint = Some(fingerprint);
        self
    }
}

/// What stays of an item from one call to the next.
#[derive(Debug)]
pub(crate) struct ItemShared<P, S> {
    pub(crate) id: Arc<str>,
    pub(crate) payload: P,
    pub(crate) state: Mutex<S>,
}

/// One call of an item, as its handler sees it.
#[derive(Debug)]
pub struct ItemAttempt<P, S = ()> {
    pub(crate) card: Arc<ItemShared<P, S>>,
    pub(crate) scope: Arc<str>,
    pub(crate) attempt: u32,
    pub(crate) number: u32,
}

impl<P, S> ItemAttempt<P, S> {
    /// The id of the item.
    pub fn id(&self) -> &str {
        &self.card.id
    }

    /// What is to be done.
    pub fn payload(&self) -> &P {
        &self.card.payload
    }

    /// The scope it is called in: which account to use.
    pub fn scope(&self) -> &str {
        &self.scope
    }

    /// Which attempt this is, from 1. A refusal with "not now" is no attempt.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Which call this is, from 1, whatever became of those before.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns what this item's calls pass on from one to the next. No two of them run at once, so this does not wait.
    pub fn state(&self) -> MutexGuard<'_, S> {
        self.card.state.lock()
    }
}

/// What a call used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenUsage {
    /// So many tokens.
    Known(u64),
    /// Nothing: it was refused.
    Zero,
    /// It is not known, so what was estimated counts.
    Unknown,
}

/// What a handler answers.
#[derive(Clone, Debug)]
pub struct CallReply<O> {
    pub(crate) result: CallAnswer<O>,
    pub(crate) hint: Hint,
    pub(crate) usage: TokenUsage,
    pub(crate) cost_micros: Option<u64>,
    pub(crate) rejected: Option<O>,
    pub(crate) was_sent: bool,
}

/// What came of a call.
#[derive(Clone, Debug)]
pub(crate) enum CallAnswer<O> {
    Done(O),
    Invalid(String),
    Refused,
}

impl<O> CallReply<O> {
    /// It is done. The hint is what the provider said.
    pub fn done(output: O, mut hint: Hint) -> CallReply<O> {
        hint.class = Class::Ok;
        CallReply::new(CallAnswer::Done(output), hint)
    }

    /// The provider answered, but not with anything of use.
    pub fn invalid(why: impl Into<String>, mut hint: Hint) -> CallReply<O> {
        hint.class = Class::Ok;
        CallReply::new(CallAnswer::Invalid(why.into()), hint)
    }

    /// The provider refused, or could not be reached. A hint that says that all is well counts as something that may
    /// not fail again.
    pub fn refused(mut hint: Hint) -> CallReply<O> {
        if hint.class == Class::Ok {
            hint.class = Class::Transient;
        }
        CallReply::new(CallAnswer::Refused, hint)
    }

    /// No call was made, because the handler knows that the provider refuses for good: the hint is what it said before. It
    /// does not count as a call, and the item is called in another scope if there is one.
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

    /// The same with what was used, if the hint does not say so or is wrong.
    #[must_use]
    pub fn usage(self, usage: TokenUsage) -> CallReply<O> {
        CallReply { usage, ..self }
    }

    /// Adds what the provider replied to a call that was refused or brought nothing of use. If the item fails, its
    /// [outcome](crate::Outcome::rejected) has the last of these.
    #[must_use]
    pub fn rejected(self, output: O) -> CallReply<O> {
        CallReply { rejected: Some(output), ..self }
    }

    /// The same with what it cost, in the unit of [`Item::cost_micros`]. Otherwise that is estimated from the tokens.
    #[must_use]
    pub fn cost_micros(self, cost_micros: u64) -> CallReply<O> {
        CallReply { cost_micros: Some(cost_micros), ..self }
    }
}
