//! Invalid expressions and zones, and their errors.

use tollgate_calendar::{CalendarError, cron, daily};

fn error_of(expression: &str) -> String {
    let text = cron(expression, "UTC").expect_err(expression).to_string();
    let start = format!("cron {expression:?}: ");
    text.strip_prefix(&start).unwrap_or_else(|| panic!("{text} does not begin with {start}")).to_owned()
}

#[test]
fn an_invalid_expression_is_refused_with_the_field_its_value_and_the_valid_values() {
    let five = "but must be 5: minute, hour, day of month, month, day of week";
    let weekday = "but must be 0 to 7 (both 0 and 7 are Sunday), or SUN to SAT";
    let cases = [
        ("61 * * * *", "minute is 61, but must be 0 to 59"),
        ("* 24 * * *", "hour is 24, but must be 0 to 23"),
        ("* * 0 * *", "day of month is 0, but must be 1 to 31"),
        ("* * 1-32 * *", "day of month is 32, but must be 1 to 31"),
        ("* * * 13 *", "month is 13, but must be 1 to 12, or JAN to DEC"),
        ("* * * MOND *", "month is MOND, but must be 1 to 12, or JAN to DEC"),
        ("* * * * 8", &format!("day of week is 8, {weekday}")),
        ("* * * * JAN", &format!("day of week is JAN, {weekday}")),
        ("-1 * * * *", "minute is -1, but must be 0 to 59"),
        ("+1 * * * *", "minute is +1, but must be 0 to 59"),
        ("1,,2 * * * *", "minute is \"\", but must be 0 to 59"),
        ("1.5 * * * *", "minute is 1.5, but must be 0 to 59"),
        ("99999999999 * * * *", "minute is 99999999999, but must be 0 to 59"),
        ("* 17-9 * * *", "hour is 17-9, but must be a range from low to high, or two of them in a list"),
        ("*/0 * * * *", "minute is */0, but must be stepped by 1 to 59"),
        ("*/60 * * * *", "minute is */60, but must be stepped by 1 to 59"),
        ("*/ * * * *", "minute is */, but must be stepped by 1 to 59"),
        ("5/15 * * * *", "minute is 5/15, but must be stepped from * or a range, such as 0-59/2"),
        ("* * L * *", "day of month is L, but must be 1 to 31"),
        ("ü * * * *", "minute is \"ü\", but must be 0 to 59"),
        ("* * * *", &format!("number of fields is 4, {five}")),
        ("0 * * * * *", &format!("number of fields is 6, {five}")),
        ("", &format!("number of fields is 0, {five}")),
        ("@dayly", "nickname is \"@dayly\", but must be @hourly, @daily, @weekly, @monthly or @yearly"),
        ("@reboot", "nickname is \"@reboot\", but must be @hourly, @daily, @weekly, @monthly or @yearly"),
    ];
    for (expression, expected) in cases {
        assert_eq!(error_of(expression), expected);
    }
}

#[test]
fn a_date_that_no_year_has_is_refused() {
    assert_eq!(error_of("0 0 31 2 *"), "day of month is 31, but must be at most 29 in month 2");
    assert_eq!(error_of("0 0 30,31 FEB *"), "day of month is 30,31, but must be at most 29 in month FEB");
    assert_eq!(error_of("0 0 31 4,6,9,11 *"), "day of month is 31, but must be at most 30 in month 4,6,9,11");
}

#[test]
fn a_date_that_some_year_has_is_not_refused() {
    for expression in ["0 0 29 2 *", "0 0 31 2,3 *", "0 0 31 2 MON"] {
        assert!(cron(expression, "UTC").is_ok(), "{expression}");
    }
}

#[test]
fn an_unknown_zone_is_refused_with_a_similar_one() {
    let cases = [
        ("Europe/Berln", Some("Europe/Berlin")),
        ("Berlin", Some("Europe/Berlin")),
        ("new york", Some("America/New_York")),
        ("Asia/Kolkatta", Some("Asia/Kolkata")),
        ("Etc/Unknown", None),
        ("", None),
        ("Middle-earth/Rivendell", None),
    ];
    for (zone, similar) in cases {
        let CalendarError::UnknownZone { zone: named, hint } = daily(zone).unwrap_err() else {
            panic!("{zone}: another error");
        };
        assert_eq!((named.as_str(), hint.name()), (zone, similar));
    }
}

#[test]
fn the_error_for_a_zone_reads_as_a_sentence() {
    let text = |zone| daily(zone).unwrap_err().to_string();
    assert_eq!(
        text("Europe/Berln"),
        "time zone is \"Europe/Berln\", but must be an IANA name; did you mean Europe/Berlin?"
    );
    assert_eq!(text("?"), "time zone is \"?\", but must be an IANA name, such as Europe/Berlin");
}
