//! Limits as text, as they are written after `-l`.
//!
//! ```text
//! NAME:AMOUNT[/PERIOD][:BURST][,OPTION]...
//! ```
//!
//! | written | meaning |
//! |---|---|
//! | `rpm:1000` | 1000 a minute |
//! | `tpm:10000/hour:20000` | 10000 an hour, with a burst of 20000 |
//! | `rps:5/90s` | 5 in 90 seconds; `second`, `minute`, `hour`, `day`, or a number with `us`, `ms`, `s`, `m`, `h`, `d` |
//! | `slots:4/at-once` | concurrency: 4 at once, released when a lease ends |
//! | `spend:500/cron(0 0 * * * Europe/Berlin)` | 500 until the next edge of a calendar in a time zone |
//! | `messages:80/session(3h)` | 80 in three hours from the first use |
//!
//! | option | meaning |
//! |---|---|
//! | `fixed`, `sliding` | a window instead of a bucket: fixed from the epoch, or wherever it starts |
//! | `leaky`, `gcra` | other names for a bucket, with the same verdicts |
//! | `resolution=100ms` | the resolution of a sliding window |
//! | `calls` | every call takes 1 unless its demand names another amount |
//! | `soft=800` | warn when more than 800 are in use |
//! | `shadow` | count, and never deny |
//! | `unit=USD:6` | amounts are in this unit, with so many decimals: `spend:25.50/day,unit=USD:6` |
//!
//! An amount is a whole number, whose digits may be grouped by `_`, or `unbounded`. Every limit can be written, and
//! a printed limit parses back to the same limit.

mod parse;
mod print;

pub(crate) use parse::parse;
pub(crate) use print::{amount, per, print, shown};

use tollgate::Algorithm;

/// The valid form, for error messages.
const VALID: &str = "NAME:AMOUNT[/PERIOD][:BURST][,OPTION], such as rpm:1000 or tpm:10000/hour:20000";

/// The names of algorithms other than the token bucket.
const ALGORITHMS: [(&str, Algorithm); 4] = [
    ("fixed", Algorithm::FixedWindow),
    ("sliding", Algorithm::SlidingWindow),
    ("leaky", Algorithm::LeakyBucket),
    ("gcra", Algorithm::Gcra),
];

/// The names of periods, in seconds.
const PERIODS: [(&str, u64); 4] = [("second", 1), ("minute", 60), ("hour", 3_600), ("day", 86_400)];

/// The period of a concurrency limit.
const AT_ONCE: &str = "at-once";

/// The amount of a limit that never denies.
const NO_BOUND: &str = "unbounded";

/// Returns whether a limit counts tokens, by its name: `tpm`, `tpd`, `input_tokens`.
pub(crate) fn counts_tokens(name: &str) -> bool {
    matches!(name, "tpm" | "tpd" | "tps" | "tph") || name.contains("token")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tollgate::{Limit, LimitBuilder, UNBOUNDED, Unit, calendar};

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn every_form_means_what_the_page_says() {
        let berlin = calendar::daily("Europe/Berlin").unwrap();
        let usd = || Unit::new("USD", 6).unwrap();
        let meant: [(&str, LimitBuilder); 18] = [
            ("rpm:1000", Limit::per_minute("rpm", 1_000)),
            ("rpm:1_000", Limit::per_minute("rpm", 1_000)),
            ("rpm:1000:50", Limit::per_minute("rpm", 1_000).burst(50)),
            ("tpm:10000/hour:20000", Limit::per_hour("tpm", 10_000).burst(20_000)),
            ("rps:5/second", Limit::per_second("rps", 5)),
            ("rpd:5/day", Limit::per_day("rpd", 5)),
            ("rps:5/90s", Limit::rate("rps", 5, Duration::from_secs(90))),
            ("slots:4/at-once", Limit::resource("slots", 4)),
            ("spend:500/cron(0 0 * * * Europe/Berlin)", Limit::quota("spend", 500, berlin.clone())),
            ("spend:500/cron(@daily Europe/Berlin)", Limit::quota("spend", 500, berlin)),
            (
                "office:9/cron(*/15 9 * * MON,TUE UTC),soft=8",
                Limit::quota("office", 9, calendar::cron("*/15 9 * * 1,2", "UTC").unwrap()).soft(8),
            ),
            ("messages:80/session(3h)", Limit::quota("messages", 80, Duration::from_secs(10_800))),
            ("rpm:10,fixed", Limit::fixed_window("rpm", 10, MINUTE)),
            (
                "rpm:10,sliding,resolution=1s",
                Limit::sliding_window("rpm", 10, MINUTE).resolution(Duration::from_secs(1)),
            ),
            ("calls:100/minute,calls", Limit::calls(100, MINUTE).named("calls")),
            ("rpm:1000,soft=800,shadow", Limit::per_minute("rpm", 1_000).soft(800).shadow()),
            ("spend:25.50/day,unit=USD:6", Limit::per_day("spend", 25_500_000).unit(usd())),
            ("rpm:unbounded", Limit::per_minute("rpm", UNBOUNDED)),
        ];
        for (text, limit) in meant {
            assert_eq!(parse(text), Ok(limit.build().unwrap()), "{text}");
        }
    }

    #[test]
    fn what_is_printed_reads_back() {
        for text in [
            "rpm:1000/minute",
            "tpm:10000/hour:20000",
            "rps:5/90s",
            "rps:5/1500us",
            "slots:4/at-once",
            "spend:500/cron(0 0 * * 1-5 Europe/Berlin)",
            "messages:80/session(3h)",
            "rpm:10/minute,fixed",
            "rpm:10/minute,sliding,resolution=1s",
            "rpm:10/minute:5,gcra",
            "rpm:10/minute:unbounded,leaky",
            "calls:100/minute,calls,soft=50,shadow",
            "spend:25.5/day:30,soft=10.25,unit=USD:6",
            "rpm:unbounded/minute",
            "slots:unbounded/at-once",
        ] {
            assert_eq!(print(&parse(text).unwrap()), text);
        }
    }

    #[test]
    fn an_error_says_what_is_wrong_and_shows_an_example() {
        for (text, said) in [
            ("", "there is no ':'"),
            ("rpm", "there is no ':'"),
            (":5", "name is \"\""),
            ("r pm:5", "name is \"r pm\""),
            ("wcu:5", "name is \"wcu\""),
            ("rpm:", "\"\" is not an amount"),
            ("rpm:many", "\"many\" is not an amount"),
            ("rpm:-5", "\"-5\" is not an amount"),
            ("rpm:1.5", "\"1.5\" is not an amount"),
            ("rpm:0", "amount is 0"),
            ("rpm:18446744073709551615", "is too large; at most 1000000000000000, or unbounded"),
            ("rpm:5:18446744073709551615", "is too large"),
            ("rpm:18446744073709551614", "amount is 18446744073709551614"),
            ("rpm:5/fortnight", "\"fortnight\" is not a period"),
            ("rpm:5/0s", "period is 0ns"),
            ("rpm:5:x", "\"x\" is not an amount"),
            ("slots:5/at-once:7", "burst is 7"),
            ("spend:5/cron(0 0 * * *)", "number of words is 5"),
            ("spend:5/cron(0 0 * * * Europe/Berln)", "did you mean Europe/Berlin"),
            ("spend:5/cron(0 0 * * * UTC", "there is no ')'"),
            ("spend:5/session(long)", "\"long\" is not a duration"),
            ("spend:5/week(2)", "\"week(2)\" is not a period"),
            ("rpm:5,fast", "\"fast\" is not an option"),
            ("rpm:5,soft", "\"soft\" is not an option"),
            ("rpm:5,soft=9", "soft is 9"),
            ("rpm:5,fixed,sliding", "\"sliding\" comes after \"fixed\""),
            ("rpm:5,shadow,shadow", "\"shadow\" is given twice"),
            ("slots:4/at-once,fixed", "only rates and call limits"),
            ("rpm:5,unit=USD", "\"USD\" is not a unit"),
        ] {
            let why = parse(text).unwrap_err();
            assert!(why.contains(said), "{text:?}: {why}");
            assert!(why.ends_with(VALID), "{text:?}: {why}");
        }
    }

    #[test]
    fn limits_count_calls_or_tokens_by_their_names() {
        for (name, tokens) in [("rpm", false), ("tpm", true), ("input_tokens", true), ("calls", false)] {
            assert_eq!(counts_tokens(name), tokens, "{name}");
        }
    }
}
