//! Random and mutated texts for the parsers of the command. None of them is public, so libFuzzer has no targets for them.

use std::path::Path;

use crate::commands::batch::BatchRequest;
use crate::{demand_text, duration_text, limit_text, limits_file};

#[path = "../../../fuzz/driver.rs"]
mod driver;

fn text(data: &[u8]) -> String {
    String::from_utf8_lossy(data).into_owned()
}

fn limit(data: &[u8]) {
    let Ok(limit) = limit_text::parse(&text(data)) else { return };
    let printed = limit_text::print(&limit);
    assert_eq!(limit_text::parse(&printed).as_ref(), Ok(&limit), "{printed}");
}

fn duration(data: &[u8]) {
    let Ok(length) = duration_text::parse(&text(data)) else { return };
    assert_eq!(duration_text::parse(&duration_text::print(length)), Ok(length));
}

#[test]
fn any_text_is_a_limit_or_an_error() {
    driver::run(
        limit,
        &[
            b"rpm:60",
            b"tpm:100_000/hour:200000",
            b"rpm:10,sliding,resolution=1s",
            b"spend:25.5/day:30,soft=10.25,unit=USD:6",
        ],
    );
}

#[test]
fn any_text_is_a_duration_or_an_error() {
    driver::run(duration, &[b"90s", b"5m", b"7d", b"1500us", b"18446744073709551615us"]);
}

#[test]
fn any_text_is_an_amount_or_an_error() {
    driver::run(|data| drop(demand_text::parse(&text(data))), &[b"rpm=1", b"usd=12.50", b"tpm=1_000"]);
}

#[test]
fn any_text_is_a_limits_file_or_an_error() {
    driver::run(|data| drop(limits_file::parse(Path::new("limits.toml"), &text(data))), &[
        b"set = \"a\"\n[system]\nlimits = [\"rpm:60\"]\non_unavailable = \"block\"\n",
        b"[resource.\"gpt-4o\"]\nlimits = [\"tpm:1000/min\"]\n[entity.\"team\"]\nparent = \"org\"\ncascade = true\n",
    ]);
}

#[test]
fn any_line_of_a_batch_is_a_request_or_an_error() {
    driver::run(|data| drop(BatchRequest::parse(&text(data), 1)), &[
        br#"{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[]}}"#,
        br#"{"custom_id":"b","params":{"model":"claude","max_tokens":10,"stream":false}}"#,
        br#"{"model":"m","input":"text"}"#,
    ]);
}
