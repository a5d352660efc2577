//! Which limits are in force.

use tollgate_catalog::{CatalogError, Level, LimitsSource, OnUnavailable};
use tollgate_core::{Limit, Limits};

use super::fixture::{CatalogFixture, rpm};
use crate::OpenBackend;

crate::catalog::laws![
    limits_of_the_first_level_that_has_some_win,
    a_level_wins_whole,
    a_system_with_a_policy_and_no_limits_has_no_limits,
    the_version_grows_with_every_change_of_limits,
];

/// Returns the amount in force and its source.
fn resolved(fixture: &CatalogFixture) -> Result<(u64, LimitsSource), CatalogError> {
    let chain = fixture.catalog.chain("user-1", "gpt-4").wait()?;
    Ok((chain.links[0].limits[0].amount(), chain.links[0].source))
}

fn limits_of_the_first_level_that_has_some_win(open: OpenBackend<'_>) {
    for fixture in [CatalogFixture::new(open), CatalogFixture::without_revision(open)] {
        let levels = [
            (Level::System, 10, LimitsSource::System),
            (Level::Resource("gpt-4"), 20, LimitsSource::Resource),
            (Level::Entity("user-1"), 30, LimitsSource::EntityDefault),
            (Level::EntityResource("user-1", "gpt-4"), 40, LimitsSource::Entity),
        ];
        let no_limits = CatalogError::NoLimits { entity: "user-1".into(), resource: "gpt-4".into() };
        assert_eq!(resolved(&fixture), Err(no_limits.clone()));
        for (level, amount, source) in levels {
            fixture.catalog.set_limits(level, &rpm(amount)).wait().unwrap();
            assert_eq!(resolved(&fixture), Ok((amount, source)));
        }
        let other = fixture.catalog.chain("user-1", "gpt-3").wait().unwrap();
        assert_eq!(other.links[0].source, LimitsSource::EntityDefault);
        let other = fixture.catalog.chain("user-2", "gpt-4").wait().unwrap();
        assert_eq!(other.links[0].source, LimitsSource::Resource);
        for (level, amount, source) in levels.into_iter().rev() {
            assert_eq!(resolved(&fixture), Ok((amount, source)));
            assert!(fixture.catalog.delete_limits(level).wait().unwrap());
            assert!(!fixture.catalog.delete_limits(level).wait().unwrap());
        }
        assert_eq!(resolved(&fixture), Err(no_limits));
    }
}

fn a_level_wins_whole(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let both = Limits::new([Limit::per_minute("rpm", 10), Limit::per_minute("tpm", 1_000)]).unwrap();
    fixture.catalog.set_limits(Level::System, &both).wait().unwrap();
    fixture.catalog.set_limits(Level::Resource("gpt-4"), &rpm(20)).wait().unwrap();
    assert_eq!(fixture.catalog.chain("user-1", "gpt-4").wait().unwrap().links[0].limits, rpm(20));
    assert_eq!(fixture.catalog.chain("user-1", "gpt-3").wait().unwrap().links[0].limits, both);
}

fn a_system_with_a_policy_and_no_limits_has_no_limits(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let none = Limits::new::<[Limit; 0]>([]).unwrap();
    fixture.catalog.set_system_limits(&none, Some(OnUnavailable::Allow)).wait().unwrap();
    assert!(matches!(resolved(&fixture), Err(CatalogError::NoLimits { .. })));
    fixture.catalog.set_limits(Level::Resource("gpt-4"), &rpm(20)).wait().unwrap();
    let chain = fixture.catalog.chain("user-1", "gpt-4").wait().unwrap();
    assert_eq!(chain.on_unavailable, Some(OnUnavailable::Allow));
    assert_eq!(fixture.catalog.last_on_unavailable(), Some(OnUnavailable::Allow));
}

fn the_version_grows_with_every_change_of_limits(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let version = || fixture.catalog.chain("user-1", "gpt-4").wait().unwrap().links[0].limits.version();
    fixture.catalog.set_limits(Level::System, &rpm(10)).wait().unwrap();
    assert_eq!(version(), 1);
    fixture.catalog.set_limits(Level::System, &rpm(10)).wait().unwrap();
    fixture.catalog.set_limits(Level::Entity("user-1"), &rpm(30)).wait().unwrap();
    assert_eq!(version(), 3);
    fixture.catalog.delete_limits(Level::Entity("user-1")).wait().unwrap();
    assert_eq!(version(), 4);
    fixture.catalog.delete_limits(Level::Entity("user-1")).wait().unwrap();
    fixture.catalog.disable_entity("user-2").wait().unwrap();
    assert_eq!(version(), 4);
}
