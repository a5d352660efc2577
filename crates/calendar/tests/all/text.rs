//! The text of a calendar is canonical.

use tollgate_calendar::{CalendarError, cron, daily, hourly, monthly, parse, weekly};

#[test]
fn equivalent_expressions_have_the_same_text() {
    let cases: [(&[&str], &str); 12] = [
        (&["@hourly", "0 * * * *", "00 0-23 */1 JAN-DEC 0-7"], "0 * * * *"),
        (&["@daily", " 0  0 * * * ", "0 0 1-31 * *", "0 0 * * SUN-SAT"], "0 0 * * *"),
        (&["@weekly", "0 0 * * 7", "0 0 * * sun"], "0 0 * * 0"),
        (&["@monthly", "0 0 1 1-12 *"], "0 0 1 * *"),
        (&["@yearly", "0 0 1 jan *"], "0 0 1 1 *"),
        (&["*/15 * * * *", "45,30,15,0 * * * *", "0-59/15 * * * *"], "*/15 * * * *"),
        (&["0 9 * * MON-FRI", "0 9 * * 1,2,3,4,5"], "0 9 * * 1-5"),
        (&["0 0 * * 6-7", "0 0 * * SAT-SUN", "0 0 * * 0,6"], "0 0 * * 0,6"),
        // Days that the months do not have, and months that do not have the day.
        (&["0 0 31 1-3 *", "0 0 31 1,3 *"], "0 0 31 1,3 *"),
        (&["0 0 28,31 2 *", "0 0 28 2 *"], "0 0 28 2 *"),
        (&["0 0 1-29 2 *", "0 0 * 2 *"], "0 0 * 2 *"),
        // A date that matches either field for days matches, so a field with all days makes the
        // calendar daily.
        (&["0 0 1-31 * MON", "0 0 13 * 0-6", "@daily"], "0 0 * * *"),
    ];
    for (expressions, text) in cases {
        for expression in expressions {
            assert_eq!(cron(expression, "UTC").unwrap().text(), format!("{text} UTC"), "{expression}");
        }
    }
}

#[test]
fn a_day_that_no_month_has_is_removed() {
    assert_eq!(cron("0 0 31 2 MON", "UTC").unwrap().text(), "0 0 * 2 1 UTC");
}

#[test]
fn a_zone_is_spelt_as_in_the_database() {
    for zone in ["europe/berlin", "EUROPE/BERLIN", "Europe/Berlin"] {
        assert_eq!(daily(zone).unwrap().text(), "0 0 * * * Europe/Berlin");
    }
}

#[test]
fn the_shortcuts_equal_the_nicknames() {
    let zone = "Asia/Tokyo";
    assert_eq!(hourly(zone), cron("@hourly", zone));
    assert_eq!(daily(zone), cron("@daily", zone));
    assert_eq!(weekly(zone), cron("@weekly", zone));
    assert_eq!(monthly(zone), cron("@monthly", zone));
}

#[test]
fn a_calendar_is_parsed_from_its_text() {
    let expressions =
        ["@hourly", "0 9 * * MON-FRI", "*/15 0,12 1-7 JAN-MAR 1", "0 0 31 2 MON", "59 23 31 12 *"];
    for expression in expressions {
        for zone in ["UTC", "europe/berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5"] {
            let calendar = cron(expression, zone).unwrap();
            let read = parse(calendar.text()).unwrap();
            assert_eq!(read.text(), calendar.text());
            let at = tollgate_core::Tick::from_secs(1_767_225_600);
            assert_eq!(read.next_edge(at), calendar.next_edge(at));
        }
    }
    assert_eq!(parse(" @daily\tAsia/Tokyo\n").unwrap(), daily("Asia/Tokyo").unwrap());
}

#[test]
fn invalid_text_is_refused() {
    for text in ["", " ", "@daily", "0 0 * * *", "UTC", "@daily UTC UTC", "0 0 * * * * UTC"] {
        let error = parse(text).unwrap_err();
        assert!(matches!(error, CalendarError::Field { field: "number of words", .. }), "{text:?}: {error}");
    }
    assert!(matches!(parse("61 0 * * * UTC"), Err(CalendarError::Field { field: "minute", .. })));
    assert!(matches!(parse("0 0 * * * Mars/Base"), Err(CalendarError::UnknownZone { .. })));
}
