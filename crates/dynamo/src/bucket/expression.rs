//! An update of an item with its condition, in the words of DynamoDB.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

use crate::service::Attributes;

/// An update of one item, made only if its condition holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expression {
    sets: Vec<String>,
    adds: Vec<String>,
    removes: Vec<String>,
    conditions: Vec<String>,
    pub(crate) names: HashMap<String, String>,
    pub(crate) values: Attributes,
}

impl Expression {
    fn name(&mut self, attribute: &str) -> String {
        let placeholder = format!("#{}", self.names.len());
        self.names.insert(placeholder.clone(), attribute.into());
        placeholder
    }

    fn value(&mut self, value: AttributeValue) -> String {
        let placeholder = format!(":{}", self.values.len());
        self.values.insert(placeholder.clone(), value);
        placeholder
    }

    pub(crate) fn set(&mut self, attribute: &str, value: AttributeValue) {
        let (name, value) = (self.name(attribute), self.value(value));
        self.sets.push(format!("{name}={value}"));
    }

    pub(crate) fn add(&mut self, attribute: &str, value: AttributeValue) {
        let (name, value) = (self.name(attribute), self.value(value));
        self.adds.push(format!("{name} {value}"));
    }

    pub(crate) fn remove(&mut self, attribute: &str) {
        let name = self.name(attribute);
        self.removes.push(name);
    }

    /// The attribute compares so with the value, such as `>=`.
    pub(crate) fn require(&mut self, attribute: &str, comparison: &str, value: AttributeValue) {
        let (name, value) = (self.name(attribute), self.value(value));
        self.conditions.push(format!("{name}{comparison}{value}"));
    }

    pub(crate) fn require_absent(&mut self, attribute: &str) {
        let name = self.name(attribute);
        self.conditions.push(format!("attribute_not_exists({name})"));
    }

    /// The attribute is this, or absent for `None`.
    pub(crate) fn require_is(&mut self, attribute: &str, value: Option<AttributeValue>) {
        match value {
            Some(value) => self.require(attribute, "=", value),
            None => self.require_absent(attribute),
        }
    }

    /// The attribute is below the value, or absent.
    pub(crate) fn require_below(&mut self, attribute: &str, value: AttributeValue) {
        let (name, value) = (self.name(attribute), self.value(value));
        self.conditions.push(format!("(attribute_not_exists({name}) OR {name}<{value})"));
    }

    pub(crate) fn update(&self) -> String {
        let clauses = [("SET ", &self.sets), ("ADD ", &self.adds), ("REMOVE ", &self.removes)];
        let clauses = clauses.iter().filter(|(_, parts)| !parts.is_empty());
        clauses.map(|(word, parts)| format!("{word}{}", parts.join(","))).collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn condition(&self) -> String {
        self.conditions.join(" AND ")
    }
}
