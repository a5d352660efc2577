//! Update expressions of DynamoDB with their conditions.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

use super::values::number;
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

    /// Requires that the attribute compares so with the value, such as `>=`.
    pub(crate) fn require(&mut self, attribute: &str, comparison: &str, value: AttributeValue) {
        let (name, value) = (self.name(attribute), self.value(value));
        self.conditions.push(format!("{name}{comparison}{value}"));
    }

    pub(crate) fn require_absent(&mut self, attribute: &str) {
        let name = self.name(attribute);
        self.conditions.push(format!("attribute_not_exists({name})"));
    }

    /// Requires that the attribute is this, or absent for `None`.
    pub(crate) fn require_is(&mut self, attribute: &str, value: Option<AttributeValue>) {
        match value {
            Some(value) => self.require(attribute, "=", value),
            None => self.require_absent(attribute),
        }
    }

    /// Requires that the attribute rounded down is this number: the original writes some with decimals.
    pub(crate) fn require_floor(&mut self, attribute: &str, floor: i128) {
        let condition = self.floor(attribute, floor);
        self.conditions.push(condition);
    }

    /// Requires that the attribute rounded down is this number; an absent one is 0.
    pub(crate) fn require_count(&mut self, attribute: &str, count: i128) {
        let mut condition = self.floor(attribute, count);
        if count == 0 {
            let name = self.name(attribute);
            condition = format!("(attribute_not_exists({name}) OR {condition})");
        }
        self.conditions.push(condition);
    }

    fn floor(&mut self, attribute: &str, floor: i128) -> String {
        let most = number(last_of(floor));
        let (name, least, most) = (self.name(attribute), self.value(number(floor)), self.value(most));
        format!("{name} BETWEEN {least} AND {most}")
    }

    /// Requires that the attribute is below the value, or absent.
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

/// Returns the largest number with 18 decimals that is `floor` when it is rounded down.
fn last_of(floor: i128) -> String {
    if floor < 0 { format!("-{}.{:018}", -(floor + 1), 1) } else { format!("{floor}.{}", "9".repeat(18)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_of_a_floor_is_just_below_the_next() {
        assert_eq!(last_of(40_000), "40000.999999999999999999");
        assert_eq!(last_of(0), "0.999999999999999999");
        assert_eq!(last_of(-1), "-0.000000000000000001");
        assert_eq!(last_of(-500), "-499.000000000000000001");
    }
}
