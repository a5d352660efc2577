//! Random expressions, zones and instants. Proptest prints the failing case and stores its seed.

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use tollgate_calendar::cron;
use tollgate_core::Tick;

const ZONES: [&str; 8] = [
    "UTC",
    "Europe/Berlin",
    "America/Havana",
    "Africa/Cairo",
    "Africa/Monrovia",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "America/St_Johns",
];

/// The last microsecond of the year 9999 that every zone has.
const LAST: u64 = 253_402_207_200_000_000;

fn zone() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&ZONES[..])
}

/// Returns any instant, with more of them near the ends and in recent years.
fn tick() -> impl Strategy<Value = Tick> {
    let micros = prop_oneof![
        any::<u64>(),
        0..LAST,
        0..4_000_000_000_000_000_u64,
        Just(0),
        Just(u64::MAX),
        Just(i64::MAX as u64),
        LAST - 200_000_000_000..LAST + 200_000_000_000,
    ];
    micros.prop_map(Tick::from_micros)
}

/// Returns an instant in recent years, where there is always a next edge.
fn recent() -> impl Strategy<Value = Tick> {
    (0..4_000_000_000_000_000_u64).prop_map(Tick::from_micros)
}

fn config(cases: u32) -> ProptestConfig {
    let seeds = Box::new(FileFailurePersistence::WithSource("regressions"));
    ProptestConfig { failure_persistence: Some(seeds), ..ProptestConfig::with_cases(cases) }
}

fn field(low: u32, high: u32) -> impl Strategy<Value = String> {
    let number = move || low..=high;
    let range = (number(), number()).prop_map(|(one, two)| format!("{}-{}", one.min(two), one.max(two)));
    let item = prop_oneof![
        number().prop_map(|number| number.to_string()),
        range.clone(),
        (range, 1..=high).prop_map(|(range, step)| format!("{range}/{step}")),
        (1..=high).prop_map(|step| format!("*/{step}")),
    ];
    let list = prop::collection::vec(item, 1..4).prop_map(|items| items.join(","));
    prop_oneof![Just("*".to_owned()), list]
}

/// Returns a valid expression, except that no year may have such a date.
fn expression() -> impl Strategy<Value = String> {
    (field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 7))
        .prop_map(|(minute, hour, day, month, weekday)| format!("{minute} {hour} {day} {month} {weekday}"))
}

/// Returns text that resembles cron, and text that does not.
fn garbage() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[-0-9*/, @A-Z]{0,40}", "([-0-9*/,A-Z]{1,6} ){4}[-0-9*/,A-Z]{1,6}"]
}

proptest! {
    #![proptest_config(config(1_000))]

    #[test]
    fn an_edge_is_later_at_any_instant(expression in expression(), zone in zone(), after in tick()) {
        if let Ok(calendar) = cron(&expression, zone) {
            let edge = calendar.next_edge(after);
            prop_assert!(edge > after || edge == Tick::MAX);
        }
    }

    #[test]
    fn no_edge_lies_between_an_instant_and_its_next_edge(
        expression in expression(), zone in zone(), after in recent(), part in 0.0..1.0_f64,
    ) {
        let Ok(calendar) = cron(&expression, zone) else { return Ok(()) };
        let edge = calendar.next_edge(after);
        let between = (edge.since(after).as_micros() as f64 * part) as u64;
        let between = Tick::from_micros(after.as_micros() + between).min(Tick::from_micros(edge.as_micros() - 1));
        prop_assert_eq!(calendar.next_edge(between), edge);
    }

    #[test]
    fn the_text_makes_the_same_calendar(expression in expression(), zone in zone(), after in tick()) {
        let Ok(calendar) = cron(&expression, zone) else { return Ok(()) };
        let (rewritten, _) = calendar.text().rsplit_once(' ').unwrap();
        let again = cron(rewritten, zone).unwrap();
        prop_assert_eq!(again.text(), calendar.text());
        prop_assert_eq!(again.next_edge(after), calendar.next_edge(after));
    }
}

proptest! {
    // An unknown zone is compared with all names, which is slow.
    #![proptest_config(config(200))]

    #[test]
    fn garbage_does_not_panic(expression in garbage(), zone in any::<String>(), after in tick()) {
        prop_assert!(cron("@daily", &zone).is_err() || zone.is_ascii());
        if let Ok(calendar) = cron(&expression, "Europe/Berlin") {
            calendar.next_edge(after);
        }
    }
}
