//! Expressions, with the placeholders of their names and values.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use tollgate_core::Tick;
use tollgate_store::records::{Test, Value};

use crate::attributes::{EXPIRES, attribute_name, attribute_of};
use crate::table::{PARTITION, TTL};

/// The names and values of an expression. The expression has placeholders for them, so that any text is allowed.
#[derive(Debug, Default)]
pub(super) struct Words {
    names: HashMap<String, String>,
    values: HashMap<String, AttributeValue>,
}

impl Words {
    /// Returns the placeholder of an attribute.
    pub(super) fn name(&mut self, attribute: &str) -> String {
        let known = self.names.iter().find(|(_, name)| *name == attribute).map(|(word, _)| word.clone());
        known.unwrap_or_else(|| {
            let word = format!("#{}", self.names.len());
            self.names.insert(word.clone(), attribute.into());
            word
        })
    }

    /// Returns the placeholder of a field.
    pub(super) fn field(&mut self, field: &str) -> String {
        self.name(&attribute_name(field))
    }

    /// Returns the placeholder of a value.
    pub(super) fn value(&mut self, value: AttributeValue) -> String {
        let word = format!(":{}", self.values.len());
        self.values.insert(word.clone(), value);
        word
    }

    pub(super) fn names(&self) -> Option<HashMap<String, String>> {
        (!self.names.is_empty()).then(|| self.names.clone())
    }

    pub(super) fn values(&self) -> Option<HashMap<String, AttributeValue>> {
        (!self.values.is_empty()).then(|| self.values.clone())
    }

    /// Returns the condition that the record exists, expired or not.
    fn is_there(&mut self) -> String {
        format!("attribute_exists({})", self.name(PARTITION))
    }

    /// Returns the condition that the record has not expired; holds without a record.
    pub(super) fn has_not_expired(&mut self, now: Tick) -> String {
        let (ttl, exact) = (self.name(TTL), self.name(EXPIRES));
        let micros = now.as_micros();
        let exact_now = self.value(AttributeValue::N(micros.to_string()));
        let whole_now = self.value(AttributeValue::N((micros / 1_000_000).to_string()));
        format!(
            "(attribute_not_exists({ttl}) OR {exact} > {exact_now} \
             OR (attribute_not_exists({exact}) AND {ttl} > {whole_now}))"
        )
    }

    /// Returns a condition that always holds.
    pub(super) fn anything(&mut self) -> String {
        let there = self.is_there();
        format!("{there} OR NOT {there}")
    }

    /// Returns the condition that the record exists and has not expired.
    pub(super) fn is_live(&mut self, now: Tick) -> String {
        format!("({} AND {})", self.is_there(), self.has_not_expired(now))
    }
}

/// Returns the condition that the tests hold at `now`; `None` if there are none.
pub(super) fn condition(words: &mut Words, tests: &[Test], now: Tick) -> Option<String> {
    if tests.is_empty() {
        return None;
    }
    let live = words.is_live(now);
    Some(all(words, tests, &live))
}

/// Returns the condition that the record has not expired, and that the tests hold of it.
pub(super) fn condition_unless_expired(words: &mut Words, tests: &[Test], now: Tick) -> String {
    let not_expired = words.has_not_expired(now);
    if tests.is_empty() {
        return not_expired;
    }
    let there = words.is_there();
    format!("{not_expired} AND {}", all(words, tests, &there))
}

/// Returns the condition that there is no record, or one that has expired.
pub(super) fn condition_absent(words: &mut Words, now: Tick) -> String {
    format!("NOT {}", words.is_live(now))
}

/// Returns the conjunction of all tests, where `live` is the condition that the record exists.
fn all(words: &mut Words, tests: &[Test], live: &str) -> String {
    let needs = |test: &Test| match test {
        Test::Exists | Test::Is(..) => true,
        Test::AtMost(_, most) => *most < 0,
        _ => false,
    };
    let must_live = tests.iter().any(needs);
    let mut parts = Vec::new();
    if must_live {
        parts.push(live.to_owned());
    }
    if tests.contains(&Test::Absent) {
        parts.push(format!("(NOT {live})"));
    }
    for test in tests {
        match test {
            Test::Is(field, value) => parts.push(is(words, field, value)),
            Test::AtMost(field, most) if must_live => parts.push(at_most(words, field, *most)),
            Test::AtMost(field, most) => {
                parts.push(format!("((NOT {live}) OR {})", at_most(words, field, *most)));
            }
            _ => {}
        }
    }
    parts.join(" AND ")
}

fn is(words: &mut Words, field: &str, value: &Value) -> String {
    let (field, value) = (words.field(field), words.value(attribute_of(value)));
    format!("{field} = {value}")
}

/// Returns the condition that a field is at most `most`; without a number it counts as 0.
fn at_most(words: &mut Words, field: &str, most: i64) -> String {
    let field = words.field(field);
    let most_word = words.value(AttributeValue::N(most.to_string()));
    let kind = words.value(AttributeValue::S("N".into()));
    if most >= 0 {
        format!("((NOT attribute_type({field}, {kind})) OR {field} <= {most_word})")
    } else {
        format!("(attribute_type({field}, {kind}) AND {field} <= {most_word})")
    }
}
