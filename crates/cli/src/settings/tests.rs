use std::ffi::OsString;
use std::path::Path;

use super::*;

fn resolve(
    flags: GlobalArgs,
    variables: &[(&str, &str)],
    file: Option<&str>,
) -> Result<CliSettings, SettingsError> {
    let get =
        |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(*value));
    let read = |_: &Path| match file {
        Some(text) => Ok(text.to_owned()),
        None => Err(std::io::Error::from(std::io::ErrorKind::NotFound)),
    };
    CliSettings::resolve(&flags, &Environment::new(&get, &read))
}

const HOME: (&str, &str) = ("HOME", "/alice");

#[test]
fn a_flag_wins_over_the_environment_and_that_over_the_file_and_that_over_the_default() {
    let file = Some("namespace = \"from-file\"\nprincipal = \"file\"\nstore = \"memory\"\n");
    let variables = [HOME, ("TOLLGATE_NAMESPACE", "from-env"), ("TOLLGATE_PRINCIPAL", "env")];
    let flags = GlobalArgs { namespace: Some("from-flag".into()), ..GlobalArgs::default() };
    let settings = resolve(flags, &variables, file).unwrap();
    let path = PathBuf::from("/alice/.config/tollgate/config.toml");
    let store = settings.store().unwrap().clone();
    assert_eq!(
        (settings.namespace.value.as_str(), settings.namespace.source),
        ("from-flag", SettingSource::Flag("--namespace"))
    );
    assert_eq!(settings.principal.source, SettingSource::Environment("TOLLGATE_PRINCIPAL"));
    assert_eq!((&store.value, &store.source), (&StoreUrl::Memory, &SettingSource::File(path)));
    assert_eq!((settings.color.value, settings.color.source), (Color::Auto, SettingSource::Default));
}

#[test]
fn the_default_store_is_a_file_in_the_data_directory() {
    let store = |variables: &[(&str, &str)]| {
        let settings = resolve(GlobalArgs::default(), variables, None)?;
        settings.store().map(|store| store.value.clone())
    };
    let file = |path: &str| StoreUrl::File(path.into());
    assert_eq!(store(&[HOME]).unwrap(), file("/alice/.local/share/tollgate/tollgate.db"));
    assert_eq!(store(&[HOME, ("XDG_DATA_HOME", "/data")]).unwrap(), file("/data/tollgate/tollgate.db"));
    // The XDG specification requires that a relative path is ignored.
    assert_eq!(
        store(&[HOME, ("XDG_DATA_HOME", "data")]).unwrap(),
        file("/alice/.local/share/tollgate/tollgate.db")
    );
    assert!(store(&[]).unwrap_err().to_string().contains("--store"));
}

#[test]
fn an_unknown_key_is_refused_with_the_one_that_was_meant() {
    let why = resolve(GlobalArgs::default(), &[HOME], Some("namspace = \"x\"\n")).unwrap_err().to_string();
    assert!(why.contains("\"namspace\" is not a setting; did you mean \"namespace\"?"), "{why}");
    let why = resolve(GlobalArgs::default(), &[HOME], Some("zzz = 1\n")).unwrap_err().to_string();
    assert!(
        why.contains(
            "valid are store, namespace, principal, color, store_timeout, audit_retention, usage_retention and cache_ttl"
        ),
        "{why}"
    );
}

#[test]
fn a_bad_value_says_where_it_is_and_what_would_be_valid() {
    for (variables, file, said) in [
        (
            vec![HOME, ("TOLLGATE_STORE", "redis")],
            None,
            "environment variable TOLLGATE_STORE: store is \"redis\"",
        ),
        (vec![HOME], Some("color = \"blue\"\n"), "config.toml: color is \"blue\""),
        (vec![HOME], Some("store_timeout = 5\n"), "store_timeout is 5, but must be a string, such as \"5s\""),
        (vec![HOME], Some("store = \n"), "config.toml cannot be read: "),
    ] {
        let why =
            resolve(GlobalArgs::default(), &variables, file).and_then(|settings| settings.store().cloned());
        let why = why.unwrap_err().to_string();
        assert!(why.contains(said), "{why}");
    }
}

#[test]
fn a_password_is_never_shown() {
    for (variables, file) in [
        (vec![HOME, ("TOLLGATE_STORE", "redis://me:hunter2@host")], None),
        (vec![HOME, ("TOLLGATE_STORE", "redis://me:hunter2@host:port")], None),
        (vec![HOME, ("TOLLGATE_STORE", "amqp://me:hunter2@host")], None),
        (vec![HOME], Some("store = \"redis://me:hunter2@host\"\n")),
        (vec![HOME], Some("store = \"redis://me:hunter2@host\n")),
        (vec![HOME], Some("store = redis://me:hunter2@host\n")),
        (vec![HOME], Some("store = [\"redis://me:hunter2@host\"]\n")),
    ] {
        let why =
            resolve(GlobalArgs::default(), &variables, file).and_then(|settings| settings.store().cloned());
        let said = why.map_or_else(|why| why.to_string(), |store| format!("{store:?} {}", store.value));
        assert!(!said.contains("hunter2"), "{said}");
    }
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_not_utf8_is_an_error_unless_it_is_a_path() {
    use std::os::unix::ffi::OsStringExt;
    let read = |_: &Path| Err(std::io::Error::from(std::io::ErrorKind::NotFound));
    let odd = || OsString::from_vec(b"/\xff".to_vec());
    for key in KEYS {
        let get = |name: &str| (name == key.variable || name == "HOME").then(odd);
        let settings = CliSettings::resolve(&GlobalArgs::default(), &Environment::new(&get, &read));
        let why = settings.and_then(|settings| settings.store().cloned()).unwrap_err().to_string();
        assert!(why.contains(key.variable) && why.contains("UTF-8"), "{why}");
    }
    let get = |name: &str| (name == "HOME").then(odd);
    let settings = CliSettings::resolve(&GlobalArgs::default(), &Environment::new(&get, &read)).unwrap();
    let path = PathBuf::from(odd()).join(".local/share/tollgate/tollgate.db");
    assert_eq!(settings.store().unwrap().value, StoreUrl::File(path));
}

#[test]
fn a_file_that_was_named_must_exist() {
    let flags = GlobalArgs { config: Some("mine.toml".into()), ..GlobalArgs::default() };
    assert!(resolve(flags, &[HOME], None).is_err());
    assert!(resolve(GlobalArgs::default(), &[HOME, ("TOLLGATE_CONFIG", "mine.toml")], None).is_err());
    assert!(resolve(GlobalArgs::default(), &[HOME], None).is_ok());
}

#[test]
fn a_login_is_made_a_valid_principal() {
    let login =
        |user: &str| resolve(GlobalArgs::default(), &[HOME, ("USER", user)], None).unwrap().principal.value;
    assert_eq!(login("alice"), "alice");
    assert_eq!(login("CORP\\alice b"), "CORP-alice-b");
    assert_eq!(login("-"), "unknown");
}

#[test]
fn a_user_without_a_login_in_the_environment_is_looked_up() {
    let get = |_: &str| None::<OsString>;
    let read = |_: &Path| Ok("root:x:0:0::/:/bin/sh\nalice:x:1000:1000::/:/bin/sh\n".to_owned());
    let login = |user| Environment::new(&get, &read).with_user(user).login();
    assert_eq!(login(Some(1_000)), "alice");
    assert_eq!(login(Some(7)), "unknown");
    assert_eq!(login(None), "unknown");
}
