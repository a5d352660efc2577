//! Estimates of what a request will use, before it is sent.
//!
//! An [`Estimator`] starts by counting characters, which is off by a third for some models and
//! texts, and corrects itself by the usage that the provider reports. With the feature `tiktoken`
//! it uses the vocabularies of OpenAI's models; other providers do not publish theirs, or not the
//! current ones.

#[cfg(feature = "tiktoken")]
mod exact;
mod histogram;
mod learned;
mod request;
mod script;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::Tokens;
use learned::LearnedModel;
use request::EstimatedRequest;

pub use learned::Accuracy;

/// The maximum number of models with statistics of their own. Further models share one entry.
pub const MODELS_MAX: usize = 64;

/// The maximum length of a model's name, in bytes. Models with longer names share one entry.
const MODEL_NAME_MAX: usize = 200;

/// The expected length of an answer before anything is known about it.
const OUTPUT_DEFAULT: u64 = 500;

/// The default of the thousandths of calls whose usage does not exceed the estimate.
const COVER_DEFAULT: u16 = 900;

/// The estimated tokens of one request.
///
/// ```
/// use serde_json::json;
/// use tollgate_provider::Estimator;
///
/// let request = json!({"prompt": "How far is it?", "max_tokens": 50});
/// let estimate = Estimator::new().estimate(&request);
/// assert_eq!(estimate.output_max, Some(50));
/// assert_eq!(estimate.total(), estimate.input + estimate.output);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Estimate {
    /// The tokens of the request.
    pub input: u64,
    /// The expected tokens of the answer.
    pub output: u64,
    /// The maximum tokens of the answer, if the request sets one. Some providers count these.
    pub output_max: Option<u64>,
    model: Arc<str>,
    counted: u64,
    answers: u64,
}

impl Estimate {
    /// Returns input plus expected output.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Returns input plus the longest output that the request allows: what OpenAI and Bedrock
    /// reserve.
    #[must_use]
    pub fn total_max(&self) -> u64 {
        self.input.saturating_add(self.output_max.unwrap_or(self.output))
    }
}

/// Estimates requests, and learns from their usage. Threads can share it.
///
/// ```
/// use serde_json::json;
/// use tollgate_provider::{Estimator, Tokens};
///
/// let estimator = Estimator::new();
/// let messages = json!([{"role": "user", "content": "How far is it?"}]);
/// let request = json!({"model": "m", "messages": messages, "max_tokens": 50});
/// let estimate = estimator.estimate(&request);
/// assert_eq!((estimate.input, estimate.output), (11, 50));
/// estimator.learn(&estimate, Tokens::new(12, 30));
/// assert_eq!(estimator.accuracy().wasted, 19);
/// ```
#[derive(Debug)]
pub struct Estimator {
    cover: u16,
    models: Mutex<HashMap<Arc<str>, LearnedModel>>,
}

impl Default for Estimator {
    fn default() -> Self {
        Self::new()
    }
}

impl Estimator {
    /// Creates an estimator without statistics, whose estimates are high enough for nine calls in
    /// ten.
    #[must_use]
    pub fn new() -> Self {
        Self { cover: COVER_DEFAULT, models: Mutex::default() }
    }

    /// Sets how many thousandths of the calls an estimate covers: more is safer, and reserves more
    /// than needed.
    #[must_use]
    pub fn covering(self, permille: u16) -> Self {
        Self { cover: permille.clamp(1, 1_000), ..self }
    }

    /// Estimates a request in the format of OpenAI, Anthropic or Gemini. Anything else is counted
    /// as text.
    #[must_use]
    pub fn estimate(&self, request: &Value) -> Estimate {
        let model = request.get("model").and_then(Value::as_str).unwrap_or_default();
        self.estimate_for(model, request)
    }

    /// Estimates like [`estimate`](Self::estimate) a request whose model is named elsewhere, as in
    /// the path of Gemini and Bedrock.
    #[must_use]
    pub fn estimate_for(&self, model: &str, request: &Value) -> Estimate {
        let count = counter(model);
        self.expected(model, &EstimatedRequest::read(request, count.as_ref()))
    }

    /// Estimates like [`estimate`](Self::estimate) a body as it is sent. A body that is not JSON is
    /// counted as text.
    #[must_use]
    pub fn estimate_body(&self, body: &[u8]) -> Estimate {
        match serde_json::from_slice(body) {
            Ok(request) => self.estimate(&request),
            Err(_) => self.expected("", &request::of_text(&String::from_utf8_lossy(body))),
        }
    }

    /// Adds the actual usage of an estimated request to the statistics.
    pub fn learn(&self, estimate: &Estimate, used: Tokens) {
        let mut models = self.models();
        let model = if models.len() < MODELS_MAX || models.contains_key(&estimate.model) {
            estimate.model.clone()
        } else {
            Arc::from("")
        };
        models.entry(model).or_default().add(estimate, used);
    }

    /// Returns the accuracy of all estimates with known usage.
    #[must_use]
    pub fn accuracy(&self) -> Accuracy {
        self.models().values().fold(Accuracy::default(), |sum, model| sum.plus(&model.accuracy))
    }

    /// Returns the accuracy of each model, by name. Requests without a model, and those of too many
    /// models, have an empty name.
    #[must_use]
    pub fn accuracy_by_model(&self) -> Vec<(String, Accuracy)> {
        let models = self.models();
        let mut all: Vec<_> =
            models.iter().map(|(name, learned)| (name.to_string(), learned.accuracy.clone())).collect();
        all.sort_by(|one, other| one.0.cmp(&other.0));
        all
    }

    fn expected(&self, model: &str, request: &EstimatedRequest) -> Estimate {
        let model: Arc<str> = Arc::from(if model.len() <= MODEL_NAME_MAX { model } else { "" });
        let models = self.models();
        // Models beyond the bound share the statistics without a name.
        let learned = models.get(&model).or_else(|| models.get("").filter(|_| models.len() >= MODELS_MAX));
        let input = learned.map_or(request.input, |model| model.input(request.input, self.cover));
        let each = learned.and_then(|model| model.output(self.cover));
        let each = each.or(request.output_max).unwrap_or(OUTPUT_DEFAULT);
        let answers = |each: u64| each.saturating_mul(request.answers);
        let output_max = request.output_max.map(answers);
        let output = answers(each).min(output_max.unwrap_or(u64::MAX));
        Estimate { input, output, output_max, model, counted: request.input, answers: request.answers }
    }

    /// Locks the models. A panic of another thread leaves valid numbers, so poisoning is ignored.
    fn models(&self) -> MutexGuard<'_, HashMap<Arc<str>, LearnedModel>> {
        self.models.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts the tokens of a text.
type TokenCounter = Box<dyn Fn(&str) -> u64>;

#[cfg(feature = "tiktoken")]
fn counter(model: &str) -> TokenCounter {
    exact::counter(model).unwrap_or_else(|| Box::new(script::tokens))
}

#[cfg(not(feature = "tiktoken"))]
fn counter(_model: &str) -> TokenCounter {
    Box::new(script::tokens)
}
