//! Usage of a call, as the providers report it.

use serde_json::Value;

use crate::Tokens;

/// The highest counts so far; in a stream, later counts include the earlier ones.
#[derive(Default)]
pub(crate) struct TokenCounts {
    input: Option<u64>,
    output: Option<u64>,
    total: Option<u64>,
}

impl TokenCounts {
    /// Adds a `usage` of OpenAI, Anthropic or Bedrock, or a `usageMetadata` of Gemini.
    pub(crate) fn add(&mut self, usage: &Value) {
        let count = |name: &str| usage.get(name).and_then(Value::as_u64);
        let sum = |names: &[&str]| names.iter().filter_map(|name| count(name)).reduce(u64::saturating_add);
        let first = |names: &[&str]| names.iter().find_map(|name| count(name));
        // Anthropic's cache reads count against no limit, its cache writes do.
        let input = first(&["prompt_tokens", "promptTokenCount", "inputTokens", "inputTokenCount"])
            .or_else(|| sum(&["input_tokens", "cache_creation_input_tokens"]));
        let output = first(&["completion_tokens", "outputTokens", "outputTokenCount", "output_tokens"])
            .or_else(|| sum(&["candidatesTokenCount", "thoughtsTokenCount"]));
        self.input = self.input.max(input);
        self.output = self.output.max(output);
        self.total = self.total.max(first(&["total_tokens", "totalTokenCount", "totalTokens"]));
    }

    /// Returns the tokens, if there were any counts.
    pub(crate) fn tokens(&self) -> Option<Tokens> {
        self.input.or(self.output).or(self.total)?;
        let parts = Tokens::new(self.input.unwrap_or(0), self.output.unwrap_or(0));
        Some(Tokens { total: parts.total.max(self.total.unwrap_or(0)), ..parts })
    }
}
