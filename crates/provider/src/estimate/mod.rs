//! What a request will cost, before it is sent.
//!
//! An [`Estimator`] counts characters at once, which is wrong by a third for some models and texts, and learns from
//! what the provider reports afterwards how wrong it is. With the feature `tiktoken` it counts with the vocabularies
//! of OpenAI's models where it knows the model; other providers publish none, or none that is in use.

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

/// How many models are distinguished. Further ones are learned together.
pub const MODELS_MAX: usize = 64;

/// Names of models beyond this many bytes are learned together.
const MODEL_NAME_MAX: usize = 200;

/// How long an answer is taken to be where nothing is said or learned.
const OUTPUT_DEFAULT: u64 = 500;

/// The thousandths of calls that an estimate is to cover, unless the user says otherwise.
const COVER_DEFAULT: u16 = 900;

/// What one request will cost.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Estimate {
    /// Tokens of the request.
    pub input: u64,
    /// Tokens of the answer that are to be expected.
    pub output: u64,
    /// How many tokens the answer may have at most, if the request says so. Some providers count these.
    pub output_max: Option<u64>,
    model: Arc<str>,
    counted: u64,
    answers: u64,
}

impl Estimate {
    /// Both directions.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Both directions, with the longest answer that the request allows: what OpenAI and Bedrock reserve.
    #[must_use]
    pub fn total_max(&self) -> u64 {
        self.input.saturating_add(self.output_max.unwrap_or(self.output))
    }
}

/// Estimates requests, and learns from what they used. It can be shared by threads.
///
/// ```
/// use serde_json::json;
/// use tollgate_provider::{Estimator, Tokens};
///
/// let estimator = Estimator::new();
/// let request = json!({"model": "m", "messages": [{"role": "user", "content": "How far is it?"}], "max_tokens": 50});
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
    /// One that has learned nothing, and will be high enough for nine calls in ten.
    #[must_use]
    pub fn new() -> Self {
        Self { cover: COVER_DEFAULT, models: Mutex::default() }
    }

    /// The same, high enough for so many thousandths of the calls: more is safer, and wastes more.
    #[must_use]
    pub fn covering(self, permille: u16) -> Self {
        Self { cover: permille.clamp(1, 1_000), ..self }
    }

    /// Estimates a request in the form of OpenAI, Anthropic or Gemini. Anything else is counted as text.
    #[must_use]
    pub fn estimate(&self, request: &Value) -> Estimate {
        let model = request.get("model").and_then(Value::as_str).unwrap_or_default();
        self.estimate_for(model, request)
    }

    /// As [`estimate`](Self::estimate), where the model is named elsewhere, as in the path of Gemini and Bedrock.
    #[must_use]
    pub fn estimate_for(&self, model: &str, request: &Value) -> Estimate {
        let count = counter(model);
        self.expected(model, &EstimatedRequest::read(request, count.as_ref()))
    }

    /// As [`estimate`](Self::estimate), for a body as it is sent. What is no JSON is counted as text.
    #[must_use]
    pub fn estimate_body(&self, body: &[u8]) -> Estimate {
        match serde_json::from_slice(body) {
            Ok(request) => self.estimate(&request),
            Err(_) => self.expected("", &request::plain(&String::from_utf8_lossy(body))),
        }
    }

    /// Learns what a request that was estimated came to.
    pub fn learn(&self, estimate: &Estimate, used: Tokens) {
        let mut models = self.models();
        let model = if models.len() < MODELS_MAX || models.contains_key(&estimate.model) {
            estimate.model.clone()
        } else {
            Arc::from("")
        };
        models.entry(model).or_default().add(estimate, used);
    }

    /// How well all estimates did that were learned from.
    #[must_use]
    pub fn accuracy(&self) -> Accuracy {
        self.models().values().fold(Accuracy::default(), |sum, model| sum.plus(&model.accuracy))
    }

    /// How well those of each model did, by name. Requests without one, and those of too many models, have an empty one.
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
        // Models beyond the bound share what is learned under no name.
        let learned = models.get(&model).or_else(|| models.get("").filter(|_| models.len() >= MODELS_MAX));
        let input = learned.map_or(request.input, |it| it.input(request.input, self.cover));
        let each = learned.and_then(|it| it.output(self.cover));
        let each = each.or(request.output_max).unwrap_or(OUTPUT_DEFAULT);
        let answers = |each: u64| each.saturating_mul(request.answers);
        let output_max = request.output_max.map(answers);
        let output = answers(each).min(output_max.unwrap_or(u64::MAX));
        Estimate { input, output, output_max, model, counted: request.input, answers: request.answers }
    }

    /// Locks the models. What is learned stays sound if a thread panics in between: it is numbers only.
    fn models(&self) -> MutexGuard<'_, HashMap<Arc<str>, LearnedModel>> {
        self.models.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A way to count the tokens of a text.
type TokenCounter = Box<dyn Fn(&str) -> u64>;

#[cfg(feature = "tiktoken")]
fn counter(model: &str) -> TokenCounter {
    exact::counter(model).unwrap_or_else(|| Box::new(script::tokens))
}

#[cfg(not(feature = "tiktoken"))]
fn counter(_model: &str) -> TokenCounter {
    Box::new(script::tokens)
}
