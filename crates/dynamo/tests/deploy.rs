//! What is deployed is what the store needs: emulators ignore half of a template, so it is looked at itself.

use std::path::PathBuf;

use serde_json::{Value, json};

fn read(name: &str) -> Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

fn resource(name: &str) -> Value {
    read("template.json")["Resources"][name]["Properties"].clone()
}

const POLICIES: [(&str, &str); 6] = [
    ("acquire", "AcquirePolicy"),
    ("full", "FullPolicy"),
    ("read", "ReadPolicy"),
    ("tenant-acquire", "TenantAcquirePolicy"),
    ("tenant-full", "TenantFullPolicy"),
    ("tenant-read", "TenantReadPolicy"),
];

/// The statements of a policy, each with its actions.
fn statements(policy: &Value) -> Vec<(&Value, Vec<&str>)> {
    let statements = policy["Statement"].as_array().expect("a policy has statements");
    let with_actions = |statement| (statement, actions(statement));
    statements.iter().map(with_actions).collect()
}

fn actions(statement: &Value) -> Vec<&str> {
    let actions = statement["Action"].as_array().expect("a statement has actions");
    actions.iter().map(|action| action.as_str().expect("an action is text")).collect()
}

#[test]
fn the_table_expires_is_restorable_and_has_a_stream_of_both_images() {
    let table = resource("Table");
    assert_eq!(table["TimeToLiveSpecification"], json!({ "AttributeName": "ttl", "Enabled": true }));
    assert_eq!(table["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"], true);
    assert_eq!(table["StreamSpecification"]["StreamViewType"], "NEW_AND_OLD_IMAGES");
    assert_eq!(table["BillingMode"], "PAY_PER_REQUEST");
    assert_eq!(read("template.json")["Resources"]["Table"]["DeletionPolicy"], "Retain");
}

#[test]
fn the_indexes_are_those_of_the_store_and_copy_keys_only() {
    let table = resource("Table");
    let key = |partition: &str, sort: &str| json!([{ "AttributeName": partition, "KeyType": "HASH" }, { "AttributeName": sort, "KeyType": "RANGE" }]);
    assert_eq!(table["KeySchema"], key("PK", "SK"));
    let indexes = table["GlobalSecondaryIndexes"].as_array().unwrap();
    assert_eq!(indexes.len(), 4);
    for (number, index) in (1..).zip(indexes) {
        let name = format!("GSI{number}");
        assert_eq!(index["IndexName"], name);
        assert_eq!(index["KeySchema"], key(&format!("{name}PK"), &format!("{name}SK")));
        assert_eq!(index["Projection"], json!({ "ProjectionType": "KEYS_ONLY" }));
    }
}

#[test]
fn the_policies_of_the_template_are_those_of_the_files() {
    fn plain(value: &Value) -> Value {
        match value {
            Value::Object(fields) if fields.len() == 1 && fields.contains_key("Fn::Sub") => {
                fields["Fn::Sub"].as_str().unwrap().replace("${Table.Arn}", "${TableArn}").into()
            }
            Value::Object(fields) => {
                fields.iter().map(|(name, value)| (name.clone(), plain(value))).collect()
            }
            Value::Array(values) => values.iter().map(plain).collect(),
            value => value.clone(),
        }
    }
    for (file, name) in POLICIES {
        let deployed = plain(&resource(name)["PolicyDocument"]);
        assert_eq!(deployed, read(&format!("policies/{file}.json")), "{file}");
    }
}

#[test]
fn no_policy_names_an_action_that_is_none() {
    // A transaction needs the actions of its items; there is no action of its own, and IAM ignores one in silence.
    let text = read("template.json").to_string();
    assert!(!text.contains("dynamodb:TransactWriteItems") && !text.contains("dynamodb:TransactGetItems"));
    assert!(!text.contains("dynamodb:*"));
}

#[test]
fn archived_events_can_be_read_at_once_whatever_their_age() {
    let rule = &resource("Archive")["LifecycleConfiguration"]["Rules"][0];
    assert_eq!(rule["Transitions"][0]["StorageClass"], "GLACIER_IR");
}

#[test]
fn the_aggregator_gets_buckets_and_expired_audit_events_and_may_fail_in_part() {
    let mapping = resource("StreamToAggregator");
    assert_eq!(mapping["FunctionResponseTypes"], json!(["ReportBatchItemFailures"]));
    assert_eq!(mapping["StartingPosition"], "TRIM_HORIZON");
    let filters = mapping["FilterCriteria"]["Filters"].as_array().unwrap();
    let pattern =
        |filter: &Value| serde_json::from_str::<Value>(filter["Pattern"].as_str().unwrap()).unwrap();
    let patterns: Vec<Value> = filters.iter().map(pattern).collect();
    // By the sort key, which is the same in every namespace.
    assert_eq!(patterns[0]["dynamodb"]["Keys"]["SK"]["S"], json!(["#STATE"]));
    assert_eq!(patterns[1]["dynamodb"]["Keys"]["SK"]["S"], json!([{ "prefix": "#AUDIT#" }]));
    assert_eq!(patterns[1]["userIdentity"]["principalId"], json!(["dynamodb.amazonaws.com"]));
    let role = resource("AggregatorRole");
    let archive = &role["Policies"][0]["PolicyDocument"];
    let (archive, _) = statements(archive).into_iter().find(|(it, _)| it["Sid"] == "Archive").unwrap();
    assert_eq!(archive["Resource"], json!({ "Fn::Sub": "${Archive.Arn}/audit/*" }), "where files are put");
}
