//! Which keys each policy reaches, whatever a client asks for.

use crate::policy::Request;
use crate::{TABLE, policy};

const OWN: &str = "aB3_-xyz012";
const READS: [&str; 4] = ["GetItem", "BatchGetItem", "Query", "ConditionCheckItem"];
const WRITES: [&str; 4] = ["PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem"];

fn ask(action: &str, key: &str) -> Request {
    let action = format!("dynamodb:{action}");
    Request { action, resource: TABLE.into(), leading_keys: vec![key.replace("{ns}", OWN)] }
}

fn allows(resource: &str, action: &str, key: &str) -> bool {
    policy(resource).allows(&ask(action, key), Some(OWN))
}

#[test]
fn who_acquires_writes_neither_the_registry_nor_anything_that_is_configured() {
    let configured = [
        "_/SYSTEM#",
        "_/CLOSED#{ns}",
        "_/STREAM#",
        "{ns}/SYSTEM#",
        "{ns}/ENTITY#user",
        "{ns}/RESOURCE#gpt-4",
        "{ns}/RESOURCE#a/BUCKET",
        "{ns}/AUDIT#user",
        "{ns}/SECRET",
        "{ns}/LIMIT_SETS#",
    ];
    for acquirer in ["AcquirePolicy", "TenantAcquirePolicy"] {
        for (action, key) in WRITES.iter().flat_map(|action| configured.map(|key| (action, key))) {
            assert!(!allows(acquirer, action, key), "{acquirer}: {action} {key}");
        }
        assert!(allows(acquirer, "UpdateItem", "{ns}/BUCKET#user#gpt-4#0"));
    }
    for key in configured {
        assert!(allows("FullPolicy", "PutItem", key), "{key}");
        assert_eq!(allows("TenantFullPolicy", "PutItem", key), !key.starts_with("_/"), "{key}");
    }
}

#[test]
fn the_secret_of_a_namespace_is_read_by_who_acquires_and_written_by_who_has_full_rights() {
    let secret = "{ns}/SECRET";
    for (policy, may_read, may_write) in [
        ("AcquirePolicy", true, false),
        ("FullPolicy", true, true),
        ("ReadPolicy", false, false),
        ("TenantAcquirePolicy", true, false),
        ("TenantFullPolicy", true, true),
        ("TenantReadPolicy", false, false),
        ("AggregatorRole", false, false),
    ] {
        assert_eq!(allows(policy, "GetItem", secret), may_read, "{policy}");
        for action in ["PutItem", "UpdateItem", "DeleteItem"] {
            assert_eq!(allows(policy, action, secret), may_write, "{policy}: {action}");
        }
    }
    for policy in ["ReadPolicy", "TenantReadPolicy", "AggregatorRole"] {
        for action in READS {
            assert!(!allows(policy, action, secret), "{policy}: {action}");
        }
        // A batch with the secret among others is a way to it as well; a scan names no keys at all.
        let mut batch = ask("BatchGetItem", secret);
        batch.leading_keys.push(format!("{OWN}/SYSTEM#"));
        let scan = Request { leading_keys: Vec::new(), ..ask("Scan", "") };
        for request in [batch, scan] {
            assert!(!crate::policy(policy).allows(&request, Some(OWN)), "{policy}: {request:?}");
        }
    }
}

#[test]
fn a_tenant_reaches_no_other_namespace_and_without_its_tag_nothing() {
    for tenant in ["TenantAcquirePolicy", "TenantFullPolicy", "TenantReadPolicy"] {
        for action in READS.into_iter().chain(WRITES) {
            for key in
                ["other-ns-id/BUCKET#user#gpt-4#0", "other-ns-id", "other-ns-id/SECRET", "{ns}x/SYSTEM#"]
            {
                assert!(!allows(tenant, action, key), "{tenant}: {action} {key}");
            }
            assert!(
                !policy(tenant).allows(&ask(action, "{ns}/BUCKET#user#gpt-4#0"), None),
                "{tenant}: {action}"
            );
            assert!(!WRITES.contains(&action) || !allows(tenant, action, "_/SYSTEM#"), "{tenant}: {action}");
        }
        assert!(allows(tenant, "GetItem", "_/SYSTEM#"), "{tenant}");
    }
}
