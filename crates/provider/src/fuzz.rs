//! Fuzzing of what providers reply.

use std::time::{Duration, SystemTime};

use crate::{REASON_MAX, Response, WAIT_MAX, read};

#[cfg(test)]
#[path = "../../../fuzz/driver.rs"]
mod driver;

/// Reads any reply: a line with the status, headers, an empty line, the body. Every wait and text of the hint has its bound.
///
/// # Panics
///
/// If that is not so.
pub fn reply(data: &[u8]) {
    let end = data.windows(2).position(|pair| pair == b"\n\n").unwrap_or(data.len());
    let head = String::from_utf8_lossy(&data[..end]);
    let body = data.get(end + 2..).unwrap_or_default();
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.trim().parse().ok()).unwrap_or(429);
    let headers: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(": ")).collect();
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    let hint = read(&Response::new(status, &headers, body), now);
    assert!(hint.advice.is_none_or(|wait| wait <= WAIT_MAX), "{hint:?}");
    assert!(hint.meters.iter().all(|meter| meter.reset.is_none_or(|wait| wait <= WAIT_MAX)), "{hint:?}");
    assert!(hint.reason.as_ref().is_none_or(|text| text.chars().count() <= REASON_MAX), "{hint:?}");
}

#[cfg(test)]
mod tests {
    #[test]
    fn any_reply_has_a_hint_with_bounds() {
        super::driver::run(super::reply, &[
            b"429\nretry-after: 20\nx-ratelimit-reset-tokens: 6m0.5s\n\n{\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"wait 1.5s\"}}",
            b"529\nanthropic-ratelimit-tokens-reset: 2026-11-15T14:00:00Z\n\n{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}",
            b"429\ndate: Sun, 15 Nov 2026 14:00:00 GMT\nratelimit: \"a\";r=0;t=30\n\n[{\"error\":{\"details\":[{\"retryDelay\":\"13s\"}]}}]",
            b"200\n\n{\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":20,\"total_tokens\":30}}",
        ]);
    }
}
