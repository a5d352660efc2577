//! Errors speak of what the user has typed: none of them shows Rust.

mod support;

use support::sandbox::Sandbox;

/// Signs of Rust source, and of values that are printed for developers.
const RUST: [&str; 12] =
    ["!(", "! {", "::", "Some(", "None", "Ok(", "Err(", "Error {", " { ", "&str", "Demand", "PathBuf"];

fn write(sandbox: &Sandbox, name: &str, text: &str) {
    std::fs::write(sandbox.path().join(name), text).expect("it can be written");
}

fn prepared() -> Sandbox {
    let sandbox = Sandbox::new();
    for line in [
        "tollgate system set-defaults -l rpm:60 -l spend:5/day,unit=USD:6 -l tpm:100000 -l slots:2/at-once",
        "tollgate entity create acme",
    ] {
        let ran = sandbox.shell(line);
        assert_eq!(ran.exit, 0, "{line}: {}", ran.stderr);
    }
    let call = |demand: &str| {
        format!("{{\"time\": 1794744000, \"entity\": \"e\", \"resource\": \"r\", \"demand\": {demand}}}\n")
    };
    write(&sandbox, "empty.jsonl", &call("{}"));
    write(&sandbox, "much.jsonl", &call("{\"rpm\": 61}"));
    write(&sandbox, "wrong.jsonl", &(call("[]") + &call("{\"rpm\": -1}") + "nonsense\n"));
    write(&sandbox, "limits.toml", "set = 7\n");
    write(&sandbox, "unknown.toml", "[system]\nlimit = [\"rpm:1\"]\n");
    sandbox
}

const WRONG: [&str; 27] = [
    "acquire acme gpt-4",
    "acquire acme gpt-4 tpn=1",
    "acquire acme gpt-4 rpm=1 rpm=2",
    "acquire acme gpt-4 rpm=61",
    "acquire acme gpt-4 spend=6",
    "acquire acme gpt-4 rpm=99999999999999999999",
    "acquire acme gpt-4 rpm=1 spend=0.0000001",
    "acquire 'a b' gpt-4 rpm=1",
    "explain acme gpt-4",
    "run acme gpt-4 -- true",
    "run acme gpt-4 rpm=1 -- no-such-program",
    "settle nonsense",
    "entity top-up acme gpt-4",
    "entity top-up acme gpt-4 tpn=1",
    "entity set-limits acme -l rpm:0",
    "entity set-limits acme -l rpm:5/never",
    "entity set-limits acme -l rpm:5 -l rpm:6",
    "entity set-parent acme acme",
    "limits plan limits.toml",
    "limits plan unknown.toml",
    "limits plan no-such.toml",
    "simulate empty.jsonl",
    "simulate wrong.jsonl",
    "simulate much.jsonl -l rpm:60",
    "set show nonsense",
    "status --store file:/no/such/folder/limits.db",
    "usage list --after nonsense",
];

#[test]
fn no_error_shows_rust() {
    let sandbox = prepared();
    for line in WRONG {
        let ran = sandbox.shell(&format!("tollgate {line}"));
        let shown = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!shown.trim().is_empty(), "{line} says nothing");
        for sign in RUST {
            assert!(!shown.contains(sign), "{line} shows {sign:?}:\n{shown}");
        }
    }
}

#[test]
fn a_simulation_names_the_amount_that_is_missing_as_it_is_typed() {
    let ran = prepared().shell("tollgate simulate empty.jsonl | tr -s ' \\n' ' '");
    assert!(ran.stdout.contains("e on r: rpm needs an amount, such as rpm=1"), "{ran:?}");
}

#[test]
fn a_command_without_amounts_does_not_guess_tokens_or_dollars() {
    let sandbox = prepared();
    for line in ["tollgate run acme gpt-4 -- touch ran", "tollgate explain acme gpt-4"] {
        let ran = sandbox.shell(line);
        let why = "how much of spend and tpm the call takes must be given, such as rpm=1 spend=0.05 tpm=1500; \
                   0 takes none";
        assert!(ran.exit == 2 && ran.stderr.contains(why), "{line}: {ran:?}");
    }
    assert!(!sandbox.path().join("ran").exists(), "nothing was run");
    let given = sandbox.shell("tollgate run acme gpt-4 rpm=1 spend=0.05 tpm=0 -- tollgate peek acme gpt-4");
    assert!(given.exit == 0 && given.stdout.contains("4.95"), "{given:?}");
    assert_eq!(sandbox.shell("tollgate resource set-defaults jobs -l rpm:60 -l slots:2/at-once").exit, 0);
    let without = sandbox.shell("tollgate run acme jobs -- tollgate peek acme jobs --json | grep available");
    assert_eq!(
        without.stdout.matches("59,").count() + without.stdout.matches("1,").count(),
        2,
        "{without:?}"
    );
}
