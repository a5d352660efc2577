//! Styles: the provider whose formats are used.

use std::fmt;
use std::str::FromStr;

/// The provider whose formats are used for limits, denials and failures.
///
/// ```
/// use tollgate_mock_provider::Style;
///
/// assert_eq!("anthropic".parse(), Ok(Style::Anthropic));
/// assert_eq!(Style::default().to_string(), "openai");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Style {
    /// Headers with every reply, `retry-after` and `retry-after-ms`, durations such as `6m0s`.
    #[default]
    OpenAi,
    /// Like OpenAI, with whole seconds.
    Azure,
    /// Headers with dates, `retry-after`, 529 for overload.
    Anthropic,
    /// No headers; the wait is in the body.
    Gemini,
    /// No headers, and no wait.
    Bedrock,
    /// Standard HTTP: `Retry-After`, `RateLimit` and `RateLimit-Policy`, problem details as JSON.
    Plain,
}

impl Style {
    /// All styles.
    pub const ALL: [Style; 6] =
        [Style::OpenAi, Style::Azure, Style::Anthropic, Style::Gemini, Style::Bedrock, Style::Plain];

    /// Returns the name, which `parse` accepts.
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

/// A text that is not the name of a style.
///
/// ```
/// use tollgate_mock_provider::{Style, UnknownStyle};
///
/// let error: UnknownStyle = "open-ai".parse::<Style>().unwrap_err();
/// assert!(error.to_string().starts_with("\"open-ai\" is not a style; valid are openai"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a style; valid are openai, azure, anthropic, gemini, bedrock and plain")]
pub struct UnknownStyle(String);
