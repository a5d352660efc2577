//! Tokens: a namespace unseals only what it has sealed.

use tollgate_catalog::{Action, CatalogError, PageRequest, Subject};
use tollgate_store::records::{Item, Value, Write};

use super::fixture::CatalogFixture;
use super::keys;
use crate::OpenBackend;

crate::catalog::laws![
    every_namespace_has_a_secret_of_its_own_from_the_start,
    a_token_returns_what_was_sealed,
    a_token_changed_in_any_byte_is_refused,
    a_token_of_another_namespace_is_refused,
    a_token_outlives_one_rotation_and_not_two,
    a_rotation_leaves_an_event_without_the_secret,
    of_two_concurrent_rotations_one_is_made,
    a_token_of_a_process_that_has_rotated_is_known_at_once,
    a_namespace_without_a_secret_gets_one_when_it_is_opened,
    a_namespace_without_a_secret_gets_one_by_an_upgrade,
    a_principal_that_may_not_make_a_secret_gets_an_error_with_the_remedy,
    a_secret_is_read_once_for_many_tokens,
    a_purge_removes_the_secret,
    no_secret_is_shown,
];

fn secret_item(fixture: &CatalogFixture, ns: &str) -> Item {
    fixture.item(keys::secret(ns)).unwrap_or_else(|| panic!("{ns} has no secret"))
}

/// Asserts that a text is 32 bytes in base64 for URLs: 43 characters, of which the last has four bits.
fn assert_is_32_bytes(text: &str) {
    assert_eq!(text.len(), 43);
    assert!(text.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it)));
    assert!(text.ends_with(|last: char| "AEIMQUYcgkosw048".contains(last)));
}

fn remove_secret(fixture: &CatalogFixture) {
    let delete = Write::Delete(keys::secret(fixture.catalog.namespace_id()), Vec::new());
    fixture.spy.inner().write(&[delete]).wait().unwrap();
}

fn seal(fixture: &CatalogFixture, payload: &str) -> String {
    fixture.catalog.seal(payload).wait().unwrap()
}

fn unseal(fixture: &CatalogFixture, token: &str) -> tollgate_catalog::Result<String> {
    fixture.catalog.unseal(token).wait()
}

fn every_namespace_has_a_secret_of_its_own_from_the_start(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let other = fixture.registry.register("other").wait().unwrap();
    let [one, two] = [fixture.catalog.namespace_id(), &other.id].map(|ns| secret_item(&fixture, ns));
    assert_eq!(one.key.partition, format!("{}/SECRET", fixture.catalog.namespace_id()));
    assert_eq!((one.int("version"), &one.fields["previous"]), (Some(1), &Value::Null));
    assert_is_32_bytes(one.text("current").unwrap());
    assert_ne!(one.text("current"), two.text("current"));
    // Opening the namespace again changes nothing.
    fixture.registry.open_or_register("other").wait().unwrap();
    fixture.registry.open("other").wait().unwrap();
    assert_eq!(secret_item(&fixture, &other.id), two);
}

fn a_token_returns_what_was_sealed(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    for payload in ["", "a", "user-1,gpt-4", "ünï.côde\n+", &"long ".repeat(1_000)] {
        let token = seal(&fixture, payload);
        assert!(token.starts_with("tgl1.") && token.matches('.').count() == 2, "{token}");
        assert!(token.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_.".contains(&it)), "{token}");
        assert_eq!(unseal(&fixture, &token).as_deref(), Ok(payload));
        assert_eq!(unseal(&fixture.another(), &token).as_deref(), Ok(payload));
    }
    let long = fixture.catalog.seal(&"x".repeat(tollgate_catalog::TOKEN_BYTES_MAX)).wait();
    assert!(matches!(long, Err(CatalogError::Invalid { .. })));
}

fn a_token_changed_in_any_byte_is_refused(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let token = seal(&fixture, "user-1,tpm=10");
    let refused = |changed: &str| match unseal(&fixture, changed) {
        Err(CatalogError::NotAToken(_) | CatalogError::TokenRefused(_)) => {}
        other => panic!("{changed} returned {other:?}"),
    };
    for index in 0..token.len() {
        let (before, after) = (&token[..index], &token[index + 1..]);
        refused(&format!("{before}{after}"));
        refused(before);
        for other in "A.z0_-B9 =\n\u{e9}".chars().filter(|other| !token[index..].starts_with(*other)) {
            refused(&format!("{before}{other}{after}"));
            refused(&format!("{before}{other}{}", &token[index..]));
        }
        // The neighbour in the alphabet differs in one bit, which the last character of a text may not use.
        let neighbour = char::from(token.as_bytes()[index] ^ 1);
        refused(&format!("{before}{neighbour}{after}"));
    }
    assert!(unseal(&fixture, &token).is_ok());
}

fn a_token_of_another_namespace_is_refused(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let other = fixture.registry.open_or_register("other").wait().unwrap();
    let token = other.seal("x").wait().unwrap();
    assert_eq!(unseal(&fixture, &token), Err(CatalogError::TokenRefused("default".into())));
    let found = fixture.registry.namespace_of_token(&token).wait().unwrap();
    assert_eq!(found.map(|it| it.name).as_deref(), Some("other"));
    let elsewhere = CatalogFixture::new(open);
    assert_eq!(unseal(&elsewhere, &token), Err(CatalogError::TokenRefused("default".into())));
    assert_eq!(elsewhere.registry.namespace_of_token(&token).wait(), Ok(None));
    // A secret that was copied from one namespace to another opens nothing there.
    let copied = Item {
        key: keys::secret(fixture.catalog.namespace_id()),
        ..secret_item(&fixture, other.namespace_id())
    };
    fixture.spy.inner().write(&[Write::Put(copied, Vec::new())]).wait().unwrap();
    fixture.catalog.invalidate();
    assert_eq!(unseal(&fixture, &token), Err(CatalogError::TokenRefused("default".into())));
}

fn a_token_outlives_one_rotation_and_not_two(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let tokens: Vec<String> = (0..4)
        .map(|version| {
            let token = seal(&fixture, &version.to_string());
            assert_eq!(fixture.catalog.rotate_secret().wait(), Ok(version + 2));
            token
        })
        .collect();
    // A token that was sealed before the last rotation is valid, in this process and in others.
    for opened in [fixture.another(), fixture] {
        let valid: Vec<bool> = tokens.iter().map(|token| unseal(&opened, token).is_ok()).collect();
        assert_eq!(valid, [false, false, false, true]);
    }
}

fn a_rotation_leaves_an_event_without_the_secret(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    fixture.catalog.rotate_secret().wait().unwrap();
    let events = fixture.catalog.audit(Subject::System, PageRequest::default()).wait().unwrap().items;
    assert_eq!(events.iter().map(|it| it.action.clone()).collect::<Vec<_>>(), [Action::SecretRotated]);
    assert_eq!(events[0].action.name(), "secret_rotated");
    assert_eq!(events[0].details, [("version".to_owned(), 2.into())].into());
}

fn of_two_concurrent_rotations_one_is_made(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let token = seal(&fixture, "x");
    let faster = fixture.catalog.clone();
    fixture.spy.before_write(move || assert_eq!(faster.rotate_secret().wait(), Ok(2)));
    let error = fixture.catalog.rotate_secret().wait().unwrap_err();
    assert!(matches!(error, CatalogError::Contended(_)), "{error}");
    assert_eq!(secret_item(&fixture, fixture.catalog.namespace_id()).int("version"), Some(2));
    assert!(unseal(&fixture, &token).is_ok());
}

fn a_token_of_a_process_that_has_rotated_is_known_at_once(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::without_revision(open);
    let other = fixture.another();
    assert!(unseal(&fixture, &seal(&other, "x")).is_ok());
    other.catalog.rotate_secret().wait().unwrap();
    assert_eq!(unseal(&fixture, &seal(&other, "new")).as_deref(), Ok("new"));
}

fn a_namespace_without_a_secret_gets_one_when_it_is_opened(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let ns = fixture.catalog.namespace_id();
    let old = seal(&fixture, "x");
    remove_secret(&fixture);
    fixture.registry.open("default").wait().unwrap();
    let made = secret_item(&fixture, ns);
    assert_eq!(made.int("version"), Some(1));
    let another = fixture.another();
    assert_eq!(unseal(&another, &old), Err(CatalogError::TokenRefused("default".into())));
    assert!(unseal(&another, &seal(&another, "x")).is_ok());
    // A catalog that was open when the secret was lost makes one when it has to read it again.
    remove_secret(&fixture);
    fixture.catalog.invalidate();
    assert!(unseal(&fixture, &seal(&fixture, "x")).is_ok());
    assert_ne!(secret_item(&fixture, ns), made);
}

fn a_namespace_without_a_secret_gets_one_by_an_upgrade(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    fixture.registry.register_all(&["a", "b"]).wait().unwrap();
    assert_eq!(fixture.registry.make_secrets().wait(), Ok(0));
    remove_secret(&fixture);
    assert_eq!(fixture.registry.make_secrets().wait(), Ok(1));
    secret_item(&fixture, fixture.catalog.namespace_id());
    assert_eq!(fixture.registry.make_secrets().wait(), Ok(0));
}

fn a_principal_that_may_not_make_a_secret_gets_an_error_with_the_remedy(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    remove_secret(&fixture);
    fixture.spy.refuse_writes();
    // The namespace can be opened all the same: it has more than tokens.
    let reader = fixture.another();
    let error = reader.catalog.seal("x").wait().unwrap_err();
    assert!(matches!(error, CatalogError::NoSecret { .. }), "{error}");
    assert!(error.to_string().contains("tollgate upgrade"), "{error}");
    assert_eq!(reader.catalog.unseal("tgl1.eA.AAAAAAAAAAAAAAAAAAAAAA").wait(), Err(error));
    assert_eq!(fixture.item(keys::secret(fixture.catalog.namespace_id())), None);
    // A reader that has a secret to read needs no permission to write.
    fixture.spy.permit_writes();
    fixture.registry.make_secrets().wait().unwrap();
    fixture.spy.refuse_writes();
    assert!(unseal(&reader, &seal(&reader, "x")).is_ok());
}

fn a_secret_is_read_once_for_many_tokens(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::without_revision(open);
    seal(&fixture, "first");
    fixture.spy.calls();
    for payload in ["a", "b", "c"] {
        assert!(unseal(&fixture, &seal(&fixture, payload)).is_ok());
    }
    assert_eq!(fixture.spy.calls(), 0);
    fixture.advance(60);
    seal(&fixture, "later");
    assert_eq!(fixture.spy.calls(), 1);
}

fn a_purge_removes_the_secret(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let ns = fixture.catalog.namespace_id();
    fixture.registry.delete("default").wait().unwrap();
    secret_item(&fixture, ns);
    fixture.registry.purge(ns, |_| ()).wait().unwrap();
    assert_eq!(fixture.item(keys::secret(ns)), None);
    fixture.catalog.invalidate();
    assert!(fixture.catalog.seal("x").wait().is_err());
    assert_eq!(fixture.item(keys::secret(ns)), None);
}

fn no_secret_is_shown(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    seal(&fixture, "x");
    fixture.catalog.rotate_secret().wait().unwrap();
    let item = secret_item(&fixture, fixture.catalog.namespace_id());
    let put = Write::Put(item.clone(), Vec::new());
    let inspection = fixture.registry.inspect().wait().unwrap();
    let shown = format!("{:?} {:?} {item:?} {put:?} {inspection:?}", fixture.catalog, fixture.registry);
    for field in ["current", "previous"] {
        assert!(!shown.contains(item.text(field).unwrap()), "{field}");
    }
    let events = fixture.catalog.audit_of_all(PageRequest::default()).wait().unwrap().items;
    let shown_events = format!("{events:?}");
    assert!(
        !shown_events.contains(item.text("current").unwrap())
            && !shown_events.contains(item.text("previous").unwrap())
    );
}
