//! A small evaluator of IAM policies: what the template uses of the language, and nothing else.

use serde_json::Value;

/// Something that a principal asks for.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Such as `dynamodb:GetItem`.
    pub(crate) action: String,
    /// The ARN of a table, an index or a stream.
    pub(crate) resource: String,
    /// The partition keys that it names; none for what names no items.
    pub(crate) leading_keys: Vec<String>,
}

/// A policy document with the functions of CloudFormation done.
pub(crate) struct Policy(Vec<Statement>);

struct Statement {
    is_deny: bool,
    actions: Vec<String>,
    resources: Vec<String>,
    conditions: Vec<(String, Vec<String>)>,
}

impl Policy {
    /// # Panics
    ///
    /// If it says anything that the evaluator does not know: what is not understood must not be taken for harmless.
    pub(crate) fn new(document: &Value) -> Policy {
        assert_eq!(document["Version"], "2012-10-17");
        let statements = document["Statement"].as_array().expect("a policy has statements");
        Policy(statements.iter().map(Statement::new).collect())
    }

    /// Whether a principal with this tag may do it: a statement allows it, and none denies it.
    pub(crate) fn allows(&self, request: &Request, namespace_tag: Option<&str>) -> bool {
        let applies = |it: &&Statement| it.applies(request, namespace_tag);
        let applying: Vec<&Statement> = self.0.iter().filter(applies).collect();
        !applying.is_empty() && !applying.iter().any(|statement| statement.is_deny)
    }
}

impl Statement {
    fn new(statement: &Value) -> Statement {
        let fields = statement.as_object().expect("a statement has fields");
        let known = ["Sid", "Effect", "Action", "Resource", "Condition"];
        assert!(fields.keys().all(|name| known.contains(&name.as_str())), "{statement}");
        let is_deny = match statement["Effect"].as_str() {
            Some("Allow") => false,
            Some("Deny") => true,
            other => panic!("{other:?} is no effect"),
        };
        let conditions = statement.get("Condition").and_then(Value::as_object).into_iter().flatten();
        let conditions = conditions.map(|(operator, keys)| {
            let keys = keys.as_object().expect("an operator has keys");
            assert!(keys.len() == 1 && keys.contains_key("dynamodb:LeadingKeys"), "{statement}");
            (operator.clone(), texts(&keys["dynamodb:LeadingKeys"]))
        });
        Statement {
            is_deny,
            actions: texts(&statement["Action"]),
            resources: texts(&statement["Resource"]),
            conditions: conditions.collect(),
        }
    }

    fn applies(&self, request: &Request, namespace_tag: Option<&str>) -> bool {
        let is_like = |patterns: &[String], text: &str| patterns.iter().any(|it| is_like(it, text));
        is_like(&self.actions, &request.action)
            && is_like(&self.resources, &request.resource)
            && self.conditions.iter().all(|(operator, values)| {
                // A variable that has no value matches nothing.
                let values = values.iter().filter_map(|value| with_tag(value, namespace_tag));
                let (values, keys): (Vec<String>, _) = (values.collect(), &request.leading_keys);
                match operator.as_str() {
                    "ForAllValues:StringLike" => keys.iter().all(|key| is_like(&values, key)),
                    "ForAnyValue:StringLike" => keys.iter().any(|key| is_like(&values, key)),
                    "Null" => values == [keys.is_empty().to_string()],
                    other => panic!("{other} is unknown to the evaluator"),
                }
            })
    }
}

/// One text or a list of them.
fn texts(value: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned();
    value.as_array().map_or_else(|| vec![text(value)], |values| values.iter().map(text).collect())
}

fn with_tag(value: &str, namespace_tag: Option<&str>) -> Option<String> {
    const VARIABLE: &str = "${aws:PrincipalTag/tollgate-namespace}";
    let value = if value.contains(VARIABLE) { value.replace(VARIABLE, namespace_tag?) } else { value.into() };
    assert!(!value.contains("${"), "{value} has a variable that is unknown to the evaluator");
    Some(value)
}

/// Whether a text is like a pattern, in which `*` is any text and `?` any character.
fn is_like(pattern: &str, text: &str) -> bool {
    let mut rest = pattern.chars();
    match rest.next() {
        None => text.is_empty(),
        Some('*') => {
            let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
            ends.into_iter().any(|at| is_like(rest.as_str(), &text[at..]))
        }
        Some(wanted) => {
            let mut left = text.chars();
            left.next().is_some_and(|found| wanted == '?' || wanted == found)
                && is_like(rest.as_str(), left.as_str())
        }
    }
}

fn request(action: &str, keys: &[&str]) -> Request {
    let (action, resource) = (format!("dynamodb:{action}"), "table".to_owned());
    Request { action, resource, leading_keys: keys.iter().map(|key| key.to_string()).collect() }
}

#[test]
fn the_evaluator_finds_what_each_part_of_a_policy_does() {
    let allow = |condition: Value| serde_json::json!({ "Effect": "Allow", "Action": ["dynamodb:GetItem"], "Resource": "table", "Condition": condition });
    let all = serde_json::json!({ "ForAllValues:StringLike": { "dynamodb:LeadingKeys": ["a/*"] } });
    let of = |statements: Vec<Value>| {
        Policy::new(&serde_json::json!({ "Version": "2012-10-17", "Statement": statements }))
    };
    let careless = of(vec![allow(all.clone())]);
    assert!(careless.allows(&request("GetItem", &["a/1"]), None));
    assert!(!careless.allows(&request("PutItem", &["a/1"]), None), "another action");
    assert!(!careless.allows(&request("GetItem", &["a/1", "b/1"]), None), "one of two keys");
    assert!(careless.allows(&request("GetItem", &[]), None), "for all of none is true");
    let mut both = all.clone();
    both["Null"] = serde_json::json!({ "dynamodb:LeadingKeys": "false" });
    assert!(!of(vec![allow(both)]).allows(&request("GetItem", &[]), None));
    let deny = serde_json::json!({ "Effect": "Deny", "Action": "dynamodb:*", "Resource": "*", "Condition": { "ForAnyValue:StringLike": { "dynamodb:LeadingKeys": "*/?ECRET" } } });
    let denied = of(vec![allow(all), deny]);
    assert!(denied.allows(&request("GetItem", &["a/1"]), None));
    assert!(!denied.allows(&request("GetItem", &["a/1", "a/SECRET"]), None));
    let own = serde_json::json!({ "ForAllValues:StringLike": { "dynamodb:LeadingKeys": ["${aws:PrincipalTag/tollgate-namespace}/*"] } });
    let own = of(vec![allow(own)]);
    assert!(own.allows(&request("GetItem", &["me/1"]), Some("me")));
    assert!(!own.allows(&request("GetItem", &["/1"]), None), "a tag that is not there is no empty one");
}
