//! Chains: which entities a call takes from, and when it takes from none.

use tollgate_catalog::Switchable;
use tollgate_catalog::{Action, Cascade, CatalogError, Level, LimitsSource, NewEntity, PageRequest, Subject};
use tollgate_store::records::{Item, Write};
use tollgate_store::{CHAIN_MAX, Key};

use super::fixture::{CatalogFixture, rpm};
use crate::OpenBackend;

crate::catalog::laws![
    a_chain_goes_up_for_as_long_as_each_cascades,
    each_link_has_limits_of_its_own,
    an_entity_that_was_never_created_has_no_parent,
    a_parent_without_limits_is_an_error_that_names_it,
    a_chain_has_a_bound,
    cached_and_new_parents_form_no_cycle,
    a_cycle_in_the_store_is_an_error,
    nothing_disabled_is_used,
    a_cascade_policy_is_that_of_the_entity_then_of_the_resource_then_the_entity_itself,
    a_cascade_policy_and_a_switch_of_one_resource_do_not_disturb_each_other,
    limits_of_the_call_come_before_all_that_are_stored,
];

fn entities(fixture: &CatalogFixture, entity: &str) -> Vec<String> {
    let chain = fixture.catalog.chain(entity, "gpt-4").wait().unwrap();
    chain.links.iter().map(|link| link.entity.clone()).collect()
}

fn a_chain_goes_up_for_as_long_as_each_cascades(open: OpenBackend<'_>) {
    for fixture in [CatalogFixture::new(open), CatalogFixture::without_revision(open)] {
        let catalog = &fixture.catalog;
        catalog.set_limits(Level::System, &rpm(10)).wait().unwrap();
        catalog.create_entity(NewEntity::new("org").cascades(true)).wait().unwrap();
        catalog.create_entity(NewEntity::new("team").parent("org")).wait().unwrap();
        catalog.create_entity(NewEntity::new("user").parent("team").cascades(true)).wait().unwrap();
        assert_eq!(entities(&fixture, "user"), ["user", "team"]);
        assert!(catalog.set_cascades("team", true).wait().unwrap());
        assert!(!catalog.set_cascades("team", true).wait().unwrap());
        assert_eq!(entities(&fixture, "user"), ["user", "team", "org"]);
        assert!(catalog.set_cascades("user", false).wait().unwrap());
        assert_eq!(entities(&fixture, "user"), ["user"]);
        catalog.set_cascades("user", true).wait().unwrap();
        assert!(catalog.set_parent("user", Some("org")).wait().unwrap());
        assert_eq!(entities(&fixture, "user"), ["user", "org"]);
        assert!(catalog.set_parent("user", None).wait().unwrap());
        assert_eq!(entities(&fixture, "user"), ["user"]);
    }
}

fn each_link_has_limits_of_its_own(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let catalog = &fixture.catalog;
    catalog.create_entity(NewEntity::new("project")).wait().unwrap();
    catalog.create_entity(NewEntity::new("key").parent("project").cascades(true)).wait().unwrap();
    catalog.set_limits(Level::Entity("project"), &rpm(100)).wait().unwrap();
    catalog.set_limits(Level::EntityResource("key", "gpt-4"), &rpm(50)).wait().unwrap();
    let chain = catalog.chain("key", "gpt-4").wait().unwrap();
    let [key, project] = &chain.links[..] else { panic!("{chain:?}") };
    assert_eq!((key.limits[0].amount(), key.source), (50, LimitsSource::Entity));
    assert_eq!((project.limits[0].amount(), project.source), (100, LimitsSource::EntityDefault));
    assert_eq!((&key.key, &project.key), (&Key::new(&["key", "gpt-4"]), &Key::new(&["project", "gpt-4"])));
    assert_eq!((key.limits.version(), project.limits.version()), (2, 2));
}

fn an_entity_that_was_never_created_has_no_parent(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    fixture.catalog.set_limits(Level::System, &rpm(10)).wait().unwrap();
    assert_eq!(entities(&fixture, "nobody"), ["nobody"]);
    assert_eq!(fixture.catalog.entity("nobody").wait().unwrap(), None);
}

fn a_parent_without_limits_is_an_error_that_names_it(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let catalog = &fixture.catalog;
    catalog.create_entity(NewEntity::new("project")).wait().unwrap();
    catalog.create_entity(NewEntity::new("key").parent("project").cascades(true)).wait().unwrap();
    catalog.set_limits(Level::Entity("key"), &rpm(50)).wait().unwrap();
    let error = catalog.chain("key", "gpt-4").wait().unwrap_err();
    assert_eq!(error, CatalogError::NoLimits { entity: "project".into(), resource: "gpt-4".into() });
}

fn a_chain_has_a_bound(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let catalog = &fixture.catalog;
    catalog.set_limits(Level::System, &rpm(10)).wait().unwrap();
    let ids: Vec<String> = (0..=CHAIN_MAX).map(|index| format!("e{index}")).collect();
    catalog.create_entity(NewEntity::new(&ids[0]).cascades(true)).wait().unwrap();
    for pair in ids.windows(2).take(CHAIN_MAX - 1) {
        catalog.create_entity(NewEntity::new(&pair[1]).parent(&pair[0]).cascades(true)).wait().unwrap();
    }
    assert_eq!(entities(&fixture, &ids[CHAIN_MAX - 1]).len(), CHAIN_MAX);
    let too_deep = NewEntity::new(&ids[CHAIN_MAX]).parent(&ids[CHAIN_MAX - 1]);
    let error = catalog.create_entity(too_deep).wait().unwrap_err();
    assert_eq!(error, CatalogError::ChainTooLong(ids[CHAIN_MAX].clone()));

    // A move of an ancestor can still make it too long, and then the call returns the error.
    catalog.create_entity(NewEntity::new("top").cascades(true)).wait().unwrap();
    catalog.set_parent(&ids[0], Some("top")).wait().unwrap();
    let error = catalog.chain(&ids[CHAIN_MAX - 1], "gpt-4").wait().unwrap_err();
    assert_eq!(error, CatalogError::ChainTooLong(ids[CHAIN_MAX - 1].clone()));
    assert_eq!(entities(&fixture, &ids[CHAIN_MAX - 2]).len(), CHAIN_MAX);
}

fn cached_and_new_parents_form_no_cycle(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::without_revision(open);
    let other = fixture.another();
    other.catalog.set_limits(Level::System, &rpm(10)).wait().unwrap();
    other.catalog.create_entity(NewEntity::new("b").cascades(true)).wait().unwrap();
    other.catalog.create_entity(NewEntity::new("a").parent("b").cascades(true)).wait().unwrap();
    assert_eq!(entities(&fixture, "b"), ["b"]);
    fixture.advance(30);
    assert_eq!(entities(&fixture, "a"), ["a", "b"]);
    other.catalog.set_parent("a", None).wait().unwrap();
    other.catalog.set_parent("b", Some("a")).wait().unwrap();
    // By now the cached record of `b` has expired, and that of `a` has not.
    fixture.advance(31);
    assert_eq!(entities(&fixture, "a"), ["a"]);
    assert_eq!(entities(&fixture, "b"), ["b", "a"]);
}

fn a_cycle_in_the_store_is_an_error(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    fixture.catalog.set_limits(Level::System, &rpm(10)).wait().unwrap();
    for (id, parent) in [("a", "b"), ("b", "a")] {
        let key = super::keys::entity(fixture.catalog.namespace_id(), id);
        let item = Item::new(key).with("parent_id", parent).with("cascade", true);
        fixture.spy.inner().write(&[Write::Put(item, Vec::new())]).wait().unwrap();
    }
    let error = fixture.catalog.chain("a", "gpt-4").wait().unwrap_err();
    assert_eq!(error, CatalogError::Cycle { entity: "b".into(), parent: "a".into() });
}

fn nothing_disabled_is_used(open: OpenBackend<'_>) {
    for fixture in [CatalogFixture::new(open), CatalogFixture::without_revision(open)] {
        let catalog = &fixture.catalog;
        let chain = || catalog.chain("key", "gpt-4").wait().map(|chain| chain.links.len());
        catalog.set_limits(Level::System, &rpm(10)).wait().unwrap();
        catalog.create_entity(NewEntity::new("project")).wait().unwrap();
        catalog.create_entity(NewEntity::new("key").parent("project").cascades(true)).wait().unwrap();
        for entity in ["key", "project"] {
            assert!(catalog.disable_entity(entity).wait().unwrap());
            assert!(!catalog.disable_entity(entity).wait().unwrap());
            let what = Switchable::Entity(entity.into());
            assert_eq!(chain(), Err(CatalogError::Disabled { what }));
            assert!(catalog.enable_entity(entity).wait().unwrap());
            assert!(!catalog.enable_entity(entity).wait().unwrap());
            assert_eq!(chain(), Ok(2));
        }
        assert!(catalog.disable_resource("gpt-4").wait().unwrap());
        assert_eq!(chain().unwrap_err().to_string(), "resource \"gpt-4\" is disabled; enable it first");
        assert_eq!(catalog.chain("key", "gpt-3").wait().unwrap().links.len(), 2);
        assert!(catalog.enable_resource("gpt-4").wait().unwrap());
        assert_eq!(chain(), Ok(2));
        assert!(catalog.disable_entity("nobody").wait().unwrap());
        assert!(catalog.chain("nobody", "gpt-4").wait().is_err());
        assert_eq!(catalog.entity("nobody").wait().unwrap(), None);
    }
}

fn limits_of_the_call_come_before_all_that_are_stored(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let catalog = &fixture.catalog;
    let chain = |entity| catalog.chain_with(entity, "gpt-4", &rpm(3)).wait();
    // No limits need be stored for that.
    assert_eq!(
        (chain("e").unwrap().links[0].source, chain("e").unwrap().links.len()),
        (LimitsSource::Call, 1)
    );
    catalog.create_entity(NewEntity::new("p")).wait().unwrap();
    catalog.create_entity(NewEntity::new("e").parent("p").cascades(true)).wait().unwrap();
    assert!(matches!(chain("e"), Err(CatalogError::NoLimits { entity, .. }) if entity == "p"));
    catalog.set_limits(Level::System, &rpm(10)).wait().unwrap();
    catalog.set_limits(Level::EntityResource("e", "gpt-4"), &rpm(40)).wait().unwrap();
    let links = chain("e").unwrap().links.clone();
    let seen = links.iter().map(|link| (link.limits[0].amount(), link.source)).collect::<Vec<_>>();
    assert_eq!(seen, [(3, LimitsSource::Call), (10, LimitsSource::System)]);
    catalog.disable_entity("p").wait().unwrap();
    assert!(matches!(chain("e"), Err(CatalogError::Disabled { .. })));
    let none = tollgate_core::Limits::new::<[tollgate_core::Limit; 0]>([]).unwrap();
    assert!(catalog.chain_with("e", "gpt-4", &none).wait().is_err());
}

fn a_cascade_policy_is_that_of_the_entity_then_of_the_resource_then_the_entity_itself(open: OpenBackend<'_>) {
    use Cascade::{Off, On};
    for fixture in [CatalogFixture::new(open), CatalogFixture::without_revision(open)] {
        let catalog = &fixture.catalog;
        catalog.set_limits(Level::System, &rpm(10)).wait().unwrap();
        catalog.create_entity(NewEntity::new("org")).wait().unwrap();
        catalog.create_entity(NewEntity::new("team").parent("org")).wait().unwrap();
        catalog.create_entity(NewEntity::new("user").parent("team").cascades(true)).wait().unwrap();
        let set = |level, cascade| catalog.set_cascade(level, cascade).wait().unwrap();
        let chain = |entity: &str, resource: &str| {
            let chain = catalog.chain(entity, resource).wait().unwrap();
            chain.links.iter().map(|link| link.entity.clone()).collect::<Vec<_>>()
        };
        let model = Level::Resource("gpt-4");
        assert_eq!(chain("user", "gpt-4"), ["user", "team"]);
        // The policy of a resource holds for every entity of the chain, and for no other resource.
        assert!(set(model, Some(Off)) && !set(model, Some(Off)));
        assert_eq!((chain("user", "gpt-4"), chain("user", "gpt-3").len()), (vec!["user".into()], 2));
        assert!(set(model, Some(On)));
        assert_eq!(chain("user", "gpt-4"), ["user", "team", "org"]);
        assert_eq!((chain("team", "gpt-4").len(), chain("org", "gpt-4").len()), (2, 1));
        assert_eq!(chain("never-created", "gpt-4"), ["never-created"]);
        // The policy of an entity holds for all resources, and that of an entity and a resource for one.
        assert!(set(Level::Entity("user"), Some(Off)));
        assert_eq!((chain("user", "gpt-4").len(), chain("user", "gpt-3").len()), (1, 1));
        assert!(set(Level::EntityResource("user", "gpt-4"), Some(On)));
        assert_eq!((chain("user", "gpt-4").len(), chain("user", "gpt-3").len()), (3, 1));
        assert!(set(Level::EntityResource("team", "gpt-4"), Some(Off)));
        assert_eq!(chain("user", "gpt-4"), ["user", "team"]);
        let policy = |level| catalog.cascade(level).wait().unwrap();
        assert_eq!((policy(model), policy(Level::Entity("user"))), (Some(On), Some(Off)));
        assert_eq!(policy(Level::EntityResource("user", "gpt-3")), None);
        let of_user = catalog.cascades_of_entity("user").wait().unwrap();
        assert_eq!(of_user.into_iter().collect::<Vec<_>>(), [("gpt-4".to_owned(), On)]);
        let of_resources = catalog.cascades_of_resources().wait().unwrap();
        assert_eq!(of_resources.into_iter().collect::<Vec<_>>(), [("gpt-4".to_owned(), On)]);
        // A policy that is removed leaves the decision to the next level.
        for level in [Level::EntityResource("team", "gpt-4"), Level::EntityResource("user", "gpt-4")] {
            assert!(set(level, None) && !set(level, None));
        }
        assert!(set(Level::Entity("user"), None) && set(model, None));
        assert_eq!(chain("user", "gpt-4"), ["user", "team"]);
        assert_eq!(catalog.counts_of_entity("user").wait().unwrap().disabled, 0, "nothing is left of it");
    }
}

fn a_cascade_policy_and_a_switch_of_one_resource_do_not_disturb_each_other(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let catalog = &fixture.catalog;
    catalog.set_limits(Level::System, &rpm(10)).wait().unwrap();
    catalog.create_entity(NewEntity::new("org")).wait().unwrap();
    catalog.create_entity(NewEntity::new("user").parent("org").cascades(true)).wait().unwrap();
    let links = || catalog.chain("user", "gpt-4").wait().map(|chain| chain.links.len());
    let model = Level::Resource("gpt-4");
    assert!(catalog.set_cascade(model, Some(Cascade::Off)).wait().unwrap());
    assert!(catalog.disabled_resources().wait().unwrap().is_empty());
    assert!(catalog.disable_resource("gpt-4").wait().unwrap());
    assert!(links().is_err() && !catalog.disable_resource("gpt-4").wait().unwrap());
    assert_eq!(catalog.disabled_resources().wait().unwrap(), ["gpt-4"]);
    assert!(catalog.enable_resource("gpt-4").wait().unwrap());
    assert_eq!(links(), Ok(1), "the policy has outlived the switch");
    assert!(!catalog.enable_resource("gpt-4").wait().unwrap());
    assert!(catalog.disable_entity("user").wait().unwrap());
    assert!(catalog.set_cascade(Level::Entity("user"), Some(Cascade::On)).wait().unwrap());
    assert!(links().is_err() && catalog.enable_entity("user").wait().unwrap());
    assert_eq!(links(), Ok(2));
    // Each change leaves an event.
    let events = catalog.audit(Subject::Resource("gpt-4"), PageRequest::default()).wait().unwrap().items;
    let actions: Vec<_> = events.into_iter().map(|event| event.action).collect();
    assert_eq!(actions, [Action::CascadeSet, Action::Disabled, Action::Enabled]);
    // A policy is deleted with its entity, and the system has none.
    catalog.delete_entity("user").wait().unwrap();
    assert_eq!(catalog.cascade(Level::Entity("user")).wait().unwrap(), None);
    let refused = catalog.set_cascade(Level::System, Some(Cascade::On)).wait();
    assert!(matches!(refused, Err(CatalogError::Invalid { .. })), "{refused:?}");
    let unnamed = catalog.set_cascade(Level::Resource("a#b"), Some(Cascade::On)).wait();
    assert!(matches!(unnamed, Err(CatalogError::Name(_))), "{unnamed:?}");
}
