//! The text of a calendar: one for each calendar, whichever way it was written.

use tollgate_calendar::{cron, daily, hourly, monthly, weekly};

#[test]
fn the_ways_to_write_a_calendar_have_one_text() {
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
        // Either field for days is enough, so one that takes in all days makes it daily.
        (&["0 0 1-31 * MON", "0 0 13 * 0-6", "@daily"], "0 0 * * *"),
    ];
    for (expressions, text) in cases {
        for expression in expressions {
            assert_eq!(cron(expression, "UTC").unwrap().text(), format!("{text} UTC"), "{expression}");
        }
    }
}

#[test]
fn a_day_that_never_comes_leaves_the_day_of_week() {
    assert_eq!(cron("0 0 31 2 MON", "UTC").unwrap().text(), "0 0 * 2 1 UTC");
}

#[test]
fn a_zone_is_spelt_as_in_the_database() {
    for zone in ["europe/berlin", "EUROPE/BERLIN", "Europe/Berlin"] {
        assert_eq!(daily(zone).unwrap().text(), "0 0 * * * Europe/Berlin");
    }
}

#[test]
fn the_conveniences_are_the_nicknames() {
    let zone = "Asia/Tokyo";
    assert_eq!(hourly(zone), cron("@hourly", zone));
    assert_eq!(daily(zone), cron("@daily", zone));
    assert_eq!(weekly(zone), cron("@weekly", zone));
    assert_eq!(monthly(zone), cron("@monthly", zone));
}
