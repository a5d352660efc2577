//! The layout of the table: keys and fields are those of the original, so that its tables can be migrated.

use tollgate_catalog::{CatalogError, Level, NewEntity, OnUnavailable};
use tollgate_core::{Limit, Limits};
use tollgate_store::records::{Fields, Index, Item, ItemKey, Query, Value, Write};

use super::fixture::{CatalogFixture, rpm};
use crate::OpenBackend;

crate::catalog::laws![
    records_have_the_keys_and_fields_of_the_original,
    limits_of_the_original_are_read_as_token_buckets,
    limits_that_cannot_be_understood_are_an_error_that_names_the_record,
];

fn read(fixture: &CatalogFixture, partition: &str, sort: &str) -> Item {
    let partition = partition.replace("{ns}", fixture.catalog.namespace_id());
    let key = ItemKey::new(partition, sort.replace("{ns}", fixture.catalog.namespace_id()));
    fixture.item(key.clone()).unwrap_or_else(|| panic!("{key:?} is not there"))
}

fn fields<const N: usize>(pairs: [(&str, Value); N]) -> Fields {
    pairs.map(|(name, value)| (name.to_owned(), value)).into()
}

fn found(fixture: &CatalogFixture, index: Index, partition: &str) -> Vec<String> {
    let partition = partition.replace("{ns}", fixture.catalog.namespace_id());
    let keys = fixture.spy.inner().find(index, &Query::all(partition)).wait().unwrap().items;
    keys.into_iter().map(|key| format!("{} {}", key.partition, key.sort)).collect()
}

fn records_have_the_keys_and_fields_of_the_original(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let (catalog, ns) = (&fixture.catalog, fixture.catalog.namespace_id());
    let now = "2026-11-15T00:00:00Z";
    catalog.create_entity(NewEntity::new("p")).wait().unwrap();
    catalog.create_entity(NewEntity::new("e").parent("p").metadata("k", "v")).wait().unwrap();
    catalog.set_limits(Level::EntityResource("e", "gpt-4"), &rpm(40)).wait().unwrap();
    catalog.set_limits(Level::Resource("gpt-4"), &rpm(20)).wait().unwrap();
    catalog.set_system_limits(&rpm(10), Some(OnUnavailable::Allow)).wait().unwrap();

    let by_name = read(&fixture, "_/SYSTEM#", "#NAMESPACE#default");
    let by_id = read(&fixture, "_/SYSTEM#", "#NSID#{ns}");
    assert_eq!(by_name.fields, by_id.fields);
    let expected = fields([
        ("namespace_id", ns.into()),
        ("namespace_name", "default".into()),
        ("status", "active".into()),
        ("created_at", now.into()),
        ("deleted_at", Value::Null),
    ]);
    assert_eq!(by_id.fields, expected);
    let entity = read(&fixture, "{ns}/ENTITY#e", "#META");
    let expected = fields([
        ("entity_id", "e".into()),
        ("name", "e".into()),
        ("parent_id", "p".into()),
        ("cascade", false.into()),
        ("metadata", Value::Map(fields([("k", "v".into())]))),
        ("created_at", now.into()),
    ]);
    assert_eq!(entity.fields, expected);
    assert_eq!(read(&fixture, "{ns}/ENTITY#p", "#META").fields["parent_id"], Value::Null);
    assert_eq!(found(&fixture, Index::Children, "{ns}/PARENT#p"), [format!("{ns}/ENTITY#e #META")]);

    let mut config = read(&fixture, "{ns}/ENTITY#e", "#CONFIG#gpt-4").fields;
    assert!(matches!(config.remove("config_version"), Some(Value::Int(_))));
    let limit =
        |amount: i64| [("l_rpm_cp", amount.into()), ("l_rpm_ra", amount.into()), ("l_rpm_rp", 60.into())];
    let mut expected = fields([("entity_id", "e".into()), ("resource", "gpt-4".into())]);
    expected.extend(fields(limit(40)));
    assert_eq!(config, expected);
    let place = [format!("{ns}/ENTITY#e #CONFIG#gpt-4")];
    assert_eq!(found(&fixture, Index::Custom, "{ns}/ENTITY_CONFIG#gpt-4"), place);
    let mut config = read(&fixture, "{ns}/RESOURCE#gpt-4", "#CONFIG").fields;
    config.remove("config_version");
    assert_eq!(config, fields(limit(20)).into_iter().chain(fields([("resource", "gpt-4".into())])).collect());
    let mut config = read(&fixture, "{ns}/SYSTEM#", "#CONFIG").fields;
    config.remove("config_version");
    assert_eq!(
        config,
        fields(limit(10)).into_iter().chain(fields([("on_unavailable", "allow".into())])).collect()
    );
    let resources = read(&fixture, "{ns}/SYSTEM#", "#RESOURCES").fields;
    assert_eq!(resources, fields([("resources", Value::Set(["gpt-4".into()].into()))]));
    let counts = read(&fixture, "{ns}/SYSTEM#", "#ENTITY_CONFIG_RESOURCES").fields;
    assert_eq!(counts, fields([("gpt-4", 1.into())]));

    let query = Query::prefix(format!("{ns}/AUDIT#e"), "#AUDIT#");
    let events = fixture.spy.inner().query(&query).wait().unwrap().items;
    let names: Vec<&str> = events[0].fields.keys().map(String::as_str).collect();
    let expected = ["action", "details", "entity_id", "event_id", "principal", "resource", "timestamp"];
    assert_eq!(names, expected);
    assert_eq!(events[0].key.sort, format!("#AUDIT#{}", events[0].text("event_id").unwrap()));
    for subject in ["$SYSTEM", "$RESOURCE:gpt-4"] {
        let query = Query::all(format!("{ns}/AUDIT#{subject}"));
        assert_eq!(fixture.spy.inner().query(&query).wait().unwrap().items.len(), 1, "{subject}");
    }
}

fn limits_of_the_original_are_read_as_token_buckets(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let ns = fixture.catalog.namespace_id();
    let item = Item::new(ItemKey::new(format!("{ns}/RESOURCE#gpt-4"), "#CONFIG"))
        .with("resource", "gpt-4")
        .with("config_version", 3)
        .with("l_tpm_cp", 200)
        .with("l_tpm_ra", 100)
        .with("l_tpm_rp", 60)
        .with("l_call_count_cp", 5)
        .with("l_call_count_ra", 5)
        .with("l_call_count_rp", 1);
    fixture.spy.inner().write(&[Write::Put(item, Vec::new())]).wait().unwrap();
    let stored = fixture.catalog.limits(Level::Resource("gpt-4")).wait().unwrap().unwrap();
    let limits = [Limit::per_second("call_count", 5), Limit::per_minute("tpm", 100).burst(200)];
    assert_eq!((stored.limits, stored.config_version), (Limits::new(limits).unwrap(), 3));
    assert_eq!(fixture.catalog.chain("e", "gpt-4").wait().unwrap().links[0].limits.len(), 2);
}

fn limits_that_cannot_be_understood_are_an_error_that_names_the_record(open: OpenBackend<'_>) {
    let good = || fields([("l_a_cp", 1.into()), ("l_a_ra", 1.into()), ("l_a_rp", 1.into())]);
    for (name, value, expected) in [
        ("l_a_ra", Value::Null, "no number l_a_ra"),
        ("l_a_kd", "wish".into(), "kind \"wish\""),
        ("l_a_al", "guess".into(), "algorithm \"guess\""),
        ("l_a_cp", 0.into(), "burst is 0"),
        ("l_a_rp", 0.into(), "period is 0ns"),
        ("l_a_un", "USD".into(), "unit \"USD\""),
        ("l_#_cp", 1.into(), "no number l_#_ra"),
        ("on_unavailable", "pray".into(), "on_unavailable is \"pray\""),
    ] {
        let fixture = CatalogFixture::new(open);
        let mut item =
            Item::new(ItemKey::new(format!("{}/SYSTEM#", fixture.catalog.namespace_id()), "#CONFIG"));
        item.fields = good();
        item.fields.insert(name.into(), value);
        fixture.spy.inner().write(&[Write::Put(item, Vec::new())]).wait().unwrap();
        let error = fixture.catalog.chain("e", "gpt-4").wait().unwrap_err();
        assert!(matches!(error, CatalogError::BadRecord { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
        assert!(error.to_string().contains("#CONFIG"), "{error}");
    }
}
