//! Limits of several levels, changed together, and the sets that manage them.

use tollgate_catalog::{
    CatalogError, DEFAULT_RESOURCE, LEVELS_MAX, Level, LevelChange, OnUnavailable, PageRequest, Subject,
    Target,
};
use tollgate_core::{Limit, Limits};

use super::fixture::{CatalogFixture, rpm};
use crate::OpenBackend;

crate::catalog::laws![
    levels_that_change_together_are_as_if_they_had_changed_one_by_one,
    a_change_of_levels_that_is_wrong_changes_none,
    the_largest_change_of_levels_fits_one_transaction,
    a_set_has_the_levels_it_was_given_and_did_not_release,
    deleting_what_is_not_there_leaves_no_event,
    two_callers_that_change_one_set_in_steps_do_not_mix,
];

fn apply(
    fixture: &CatalogFixture,
    set: Option<&str>,
    changes: &[(Level<'_>, Target<'_>)],
) -> tollgate_catalog::Result<()> {
    let changes: Vec<LevelChange<'_>> =
        changes.iter().map(|(level, target)| LevelChange { level: *level, target: *target }).collect();
    fixture.catalog.apply_limits(set, &changes).wait()
}

fn events(fixture: &CatalogFixture) -> usize {
    fixture.catalog.audit_of_all(PageRequest::default()).wait().unwrap().items.len()
}

fn levels_that_change_together_are_as_if_they_had_changed_one_by_one(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let catalog = &fixture.catalog;
    let (one, two) = (rpm(1), rpm(2));
    catalog.set_limits(Level::Resource("old"), &one).wait().unwrap();
    catalog.set_limits(Level::EntityResource("e", "old"), &one).wait().unwrap();
    catalog.set_limits(Level::Entity("e"), &one).wait().unwrap();
    let changes = [
        (Level::System, Target::System(&two, Some(OnUnavailable::Allow))),
        (Level::Resource("old"), Target::Nothing),
        (Level::Resource("new"), Target::Limits(&two)),
        (Level::Entity("e"), Target::Limits(&two)),
        (Level::Entity("f"), Target::Limits(&two)),
        (Level::EntityResource("e", "old"), Target::Nothing),
        (Level::EntityResource("e", "new"), Target::Limits(&two)),
    ];
    let before = events(&fixture);
    apply(&fixture, None, &changes).unwrap();
    for (level, target) in changes {
        let stored = catalog.limits(level).wait().unwrap().map(|stored| stored.limits);
        assert_eq!(stored, (!matches!(target, Target::Nothing)).then(|| two.clone()), "{level}");
    }
    assert_eq!(events(&fixture) - before, changes.len());
    assert_eq!(catalog.resources_with_limits().wait().unwrap(), ["new"]);
    let counts = catalog.resources_with_entity_limits().wait().unwrap();
    assert_eq!(counts, [(DEFAULT_RESOURCE.into(), 2), ("new".into(), 1)].into());
    let policy = |fixture: &CatalogFixture| {
        fixture.catalog.limits(Level::System).wait().unwrap().unwrap().on_unavailable
    };
    assert_eq!(policy(&fixture), Some(OnUnavailable::Allow));
    apply(&fixture, None, &[(Level::System, Target::Limits(&one))]).unwrap();
    assert_eq!(policy(&fixture), Some(OnUnavailable::Allow));
    apply(&fixture, None, &[(Level::System, Target::System(&one, None))]).unwrap();
    assert_eq!(policy(&fixture), None);
    assert!(fixture.registry.inspect().wait().unwrap().findings.is_empty());
    let link = &catalog.chain("f", "new").wait().unwrap().links[0];
    assert_eq!(link.limits[0].amount(), 2, "what was known of the levels is not trusted any more");
}

fn a_change_of_levels_that_is_wrong_changes_none(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let none = Limits::new::<[Limit; 0]>([]).unwrap();
    let good = rpm(1);
    let fine = (Level::Resource("r"), Target::Limits(&good));
    for (level, target) in [
        (Level::Entity("e"), Target::Limits(&none)),
        (Level::System, Target::System(&none, None)),
        (Level::Entity("e"), Target::System(&good, None)),
        (Level::Entity("#"), Target::Limits(&good)),
        fine,
    ] {
        let error = apply(&fixture, Some("prod"), &[fine, (level, target)]).unwrap_err();
        assert!(!matches!(error, CatalogError::Contended(_) | CatalogError::Store(_)), "{error}");
    }
    assert!(matches!(apply(&fixture, Some("a#b"), &[fine]), Err(CatalogError::Name(_))));
    assert_eq!(fixture.catalog.limits(Level::Resource("r")).wait().unwrap(), None);
    assert_eq!((events(&fixture), fixture.catalog.managed_sets().wait().unwrap().len()), (0, 0));
}

fn the_largest_change_of_levels_fits_one_transaction(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let limits = rpm(1);
    let names: Vec<String> = (0..=LEVELS_MAX).map(|index| format!("r{index}")).collect();
    let mut changes: Vec<_> =
        names.iter().map(|name| (Level::Resource(name), Target::Limits(&limits))).collect();
    changes[0].0 = Level::Entity("e");
    let error = apply(&fixture, Some("prod"), &changes).unwrap_err();
    assert!(matches!(error, CatalogError::Invalid { .. }), "{error}");
    changes.pop();
    apply(&fixture, Some("prod"), &changes).unwrap();
    assert_eq!(fixture.catalog.resources_with_limits().wait().unwrap().len(), LEVELS_MAX - 1);
}

fn a_set_has_the_levels_it_was_given_and_did_not_release(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let limits = rpm(1);
    fixture.catalog.set_limits(Level::Resource("by-hand"), &limits).wait().unwrap();
    let levels = [Level::System, Level::Resource("r"), Level::Entity("e"), Level::EntityResource("e", "r")];
    apply(&fixture, Some("prod"), &levels.map(|level| (level, Target::Limits(&limits)))).unwrap();
    apply(&fixture, Some("test"), &[(Level::Resource("by-hand"), Target::Unchanged)]).unwrap();
    let changes = [(Level::Entity("e"), Target::Nothing), (Level::Resource("r"), Target::Unchanged)];
    apply(&fixture, Some("prod"), &changes).unwrap();
    let sets = fixture.catalog.managed_sets().wait().unwrap();
    let names: Vec<&str> = sets.iter().map(tollgate_catalog::ManagedSet::name).collect();
    assert_eq!(names, ["prod", "test"]);
    let levels: Vec<Level<'_>> = sets[0].levels().collect();
    assert_eq!(levels, [Level::EntityResource("e", "r"), Level::Resource("r"), Level::System]);
    assert!(sets[1].manages(Level::Resource("by-hand")) && !sets[0].manages(Level::Entity("e")));
}

fn deleting_what_is_not_there_leaves_no_event(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    apply(&fixture, Some("prod"), &[(Level::Resource("r"), Target::Nothing)]).unwrap();
    let page = PageRequest::default();
    assert!(fixture.catalog.audit(Subject::Resource("r"), page).wait().unwrap().items.is_empty());
    assert!(fixture.catalog.resources_with_limits().wait().unwrap().is_empty());
}

fn two_callers_that_change_one_set_in_steps_do_not_mix(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let catalog = &fixture.catalog;
    let (one, two) = (rpm(1), rpm(2));
    let change = |level, target| LevelChange { level, target };
    let revision = || {
        let sets = catalog.managed_sets().wait().unwrap();
        sets.iter().find(|set| set.name() == "prod").map(tollgate_catalog::ManagedSet::revision)
    };
    assert_eq!(revision(), None);
    // Both callers have read a set that does not exist. The second gets the error at its first step, and has changed nothing.
    let seen =
        catalog.apply_limits_since("prod", 0, &[change(Level::Resource("a"), Target::Limits(&one))]).wait();
    assert_eq!(seen, Ok(1));
    let late =
        [change(Level::Resource("a"), Target::Limits(&two)), change(Level::System, Target::Limits(&two))];
    let refused = catalog.apply_limits_since("prod", 0, &late).wait();
    assert_eq!(refused, Err(CatalogError::SetChanged("prod".into())));
    assert_eq!(catalog.limits(Level::System).wait().unwrap(), None);
    assert_eq!(catalog.limits(Level::Resource("a")).wait().unwrap().unwrap().limits, one);
    // The first goes on, until another caller changes the set without having read it.
    assert_eq!(catalog.apply_limits_since("prod", 1, &[]).wait(), Ok(2));
    assert_eq!(revision(), Some(2));
    apply(&fixture, Some("prod"), &[(Level::Resource("a"), Target::Nothing)]).unwrap();
    let refused = catalog.apply_limits_since("prod", 2, &late).wait();
    assert_eq!(refused, Err(CatalogError::SetChanged("prod".into())));
    // Changes of another set, and of levels in no set, do not conflict.
    assert_eq!(catalog.apply_limits_since("test", 0, &late[1..]).wait(), Ok(1));
    catalog.set_limits(Level::Resource("b"), &one).wait().unwrap();
    assert_eq!(catalog.apply_limits_since("prod", 3, &late[..1]).wait(), Ok(4));
    assert!(fixture.registry.inspect().wait().unwrap().findings.is_empty());
}
