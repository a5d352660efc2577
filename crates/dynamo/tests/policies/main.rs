//! The policies that are deployed let each kind of principal make the calls it makes, and no others.
//!
//! No emulator enforces IAM. So calls are recorded on their way to the engine, and an evaluator of ours decides about
//! each of them by the template.

#[path = "../common/mod.rs"]
mod common;

mod calls;
mod clients;
mod keys;
mod policy;

use std::path::PathBuf;

use policy::Policy;
use serde_json::Value;

/// The ARN of the table in these tests.
pub(crate) const TABLE: &str = "arn:aws:dynamodb:eu-west-1:123456789012:table/limits";

/// A policy of the template, by the name of its resource.
pub(crate) fn policy(resource: &str) -> Policy {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy/template.json");
    let text = std::fs::read_to_string(&path).expect("there is a template");
    let template: Value = serde_json::from_str(&text).expect("it is JSON");
    let properties = &template["Resources"][resource]["Properties"];
    let document = match &properties["PolicyDocument"] {
        Value::Null => &properties["Policies"][0]["PolicyDocument"],
        document => document,
    };
    Policy::new(&resolved(document))
}

/// The document with the functions of CloudFormation done.
fn resolved(value: &Value) -> Value {
    match value {
        Value::Object(fields) => match (fields.get("Fn::Sub"), fields.get("Fn::GetAtt")) {
            (Some(Value::String(text)), _) => text.replace("${Table.Arn}", TABLE).into(),
            (_, Some(Value::Array(parts))) if parts[0] == "Table" => TABLE.into(),
            (_, Some(parts)) => format!("arn:of:{parts}").into(),
            _ => fields.iter().map(|(name, value)| (name.clone(), resolved(value))).collect(),
        },
        Value::Array(values) => values.iter().map(resolved).collect(),
        value => value.clone(),
    }
}
