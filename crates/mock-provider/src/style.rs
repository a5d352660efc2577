//! Whose manners the provider has.

use std::fmt;
use std::str::FromStr;

/// Whose manners the provider has when it limits, refuses and fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Style {
    /// Headers with every reply, `retry-after` and `retry-after-ms`, durations such as `6m0s`.
    #[default]
    OpenAi,
    /// As OpenAI, with whole seconds.
    Azure,
    /// Headers with dates, `retry-after`, 529 for too much to do.
    Anthropic,
    /// No headers; how long to wait stands in the body.
    Gemini,
    /// No headers, and nothing about how long to wait.
    Bedrock,
    /// HTTP as the standards have it: `Retry-After`, `RateLimit` and `RateLimit-Policy`, problems as JSON.
    Plain,
}

impl Style {
    /// All of them.
    pub const ALL: [Style; 6] =
        [Style::OpenAi, Style::Azure, Style::Anthropic, Style::Gemini, Style::Bedrock, Style::Plain];

    /// Its name, as it is parsed.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Style::OpenAi => "openai",
            Style::Azure => "azure",
            Style::Anthropic => "anthropic",
            Style::Gemini => "gemini",
            Style::Bedrock => "bedrock",
            Style::Plain => "plain",
        }
    }
}

impl fmt::Display for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Style {
    type Err = UnknownStyle;

    fn from_str(text: &str) -> Result<Style, UnknownStyle> {
        let named = |style: &Style| style.as_str().eq_ignore_ascii_case(text);
        Style::ALL.into_iter().find(named).ok_or_else(|| UnknownStyle(text.to_owned()))
    }
}

/// A text that names no style.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no style; valid are openai, azure, anthropic, gemini, bedrock and plain")]
pub struct UnknownStyle(String);
