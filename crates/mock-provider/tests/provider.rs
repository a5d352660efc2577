//! The provider from a client's view: over TCP, with replies parsed by `tollgate-provider`.

mod support;

use std::io::{Read, Write};
use std::time::Duration;

use support::{CHAT, HttpReply, NOON, TestServer};
use tollgate::store::Reply;
use tollgate::{Span, Tick};
use tollgate_mock_provider::{LimitChange, MockProvider, Outage, OutageKind, Style};
use tollgate_provider::{Class, FatalKind, LimitUnit};

fn ms(wait: Option<Duration>) -> Option<u128> {
    wait.map(|wait| wait.as_millis())
}

#[test]
fn exactly_the_burst_is_admitted_and_the_reported_wait_suffices() {
    let server = TestServer::new(MockProvider::builder().requests_per_second(10).burst(25));
    let calls: Vec<_> = (0..60).map(|_| server.send("/v1/chat/completions", "key-1", CHAT)).collect();
    let got: Vec<HttpReply> = calls.into_iter().map(|stream| HttpReply::from(stream).unwrap()).collect();
    assert_eq!(got.iter().filter(|reply| reply.status == 200).count(), 25);
    let refused: Vec<&HttpReply> = got.iter().filter(|reply| reply.status == 429).collect();
    assert_eq!(refused.len(), 35);
    let hint = server.read(refused[0]);
    assert_eq!((hint.class, ms(hint.advice)), (Class::Throttled, Some(100)));
    server.clock.advance(Span::from_millis(99));
    assert_eq!(server.call().status, 429);
    server.clock.advance(Span::from_millis(1));
    assert_eq!([server.call().status, server.call().status], [200, 429]);
    let stats = server.provider.stats();
    assert_eq!((stats.calls, stats.ok, stats.rejected), (63, 26, 37));
}

#[test]
fn the_denial_of_every_style_is_parsed_back() {
    // The wait is half a second; styles with whole seconds round it up.
    let table = [
        (Style::OpenAi, Some(500), 1),
        (Style::Azure, Some(500), 1),
        (Style::Anthropic, Some(1_000), 1),
        (Style::Gemini, Some(500), 1),
        (Style::Bedrock, None, 0),
        (Style::Plain, Some(1_000), 1),
    ];
    for (style, wait, meters) in table {
        let server = TestServer::new(MockProvider::builder().style(style).requests_per_second(2).burst(1));
        let first = server.read(&server.call());
        assert_eq!(first.class, Class::Ok, "{style}");
        let hint = server.read(&server.call());
        assert_eq!((hint.class, ms(hint.advice)), (Class::Throttled, wait), "{style}");
        assert_eq!(hint.meters.len(), meters, "{style}: {:?}", hint.meters);
        if let Some(meter) = hint.meters.first() {
            assert_eq!((meter.unit, meter.limit), (LimitUnit::Requests, Some(1)), "{style}");
            assert!(style == Style::Gemini || meter.remaining == Some(0), "{style}");
            let reset = meter.reset.map(|reset| reset.as_millis());
            let expected = if style == Style::OpenAi { 500 } else { 1_000 };
            assert!(style == Style::Gemini || reset == Some(expected), "{style}: {reset:?}");
        }
        assert!(hint.reason.is_some(), "{style}");
        // A client that waits as long as the reply asks is admitted.
        server.clock.advance(Span::covering(hint.advice.unwrap_or(Duration::from_millis(500))));
        assert_eq!(server.call().status, 200, "{style}");
    }
}

#[test]
fn waits_and_headers_can_be_left_out() {
    for style in Style::ALL {
        let builder = MockProvider::builder().style(style).requests_per_second(2).burst(1);
        let server = TestServer::new(builder.without_advice().without_headers());
        assert_eq!(server.call().status, 200);
        let got = server.call();
        let hint = server.read(&got);
        assert_eq!((hint.class, hint.advice), (Class::Throttled, None), "{style}: {got:?}");
        assert!(style == Style::Gemini || hint.meters.is_empty(), "{style}");
    }
}

#[test]
fn an_exhausted_account_is_reported_in_every_style() {
    for style in Style::ALL {
        let server = TestServer::new(MockProvider::builder().style(style).spend_cap(3));
        let statuses: Vec<u16> = (0..3).map(|_| server.call().status).collect();
        assert_eq!(statuses, [200, 200, 200], "{style}");
        let hint = server.read(&server.call());
        assert!(matches!(hint.class, Class::Exhausted { .. }), "{style}: {hint:?}");
        let knows_when = matches!(style, Style::Anthropic | Style::Gemini);
        assert_eq!(matches!(hint.class, Class::Exhausted { until: Some(_) }), knows_when, "{style}");
        assert_eq!(server.provider.stats().refused, 1);
    }
}

#[test]
fn a_wrong_key_is_reported_in_every_style_and_keys_are_counted_separately() {
    for style in Style::ALL {
        let server = TestServer::new(MockProvider::builder().style(style).key("key-1").key("key-2"));
        assert_eq!(server.call().status, 200, "{style}");
        let wrong = HttpReply::from(server.send("/v1/chat/completions", "key-3", CHAT)).unwrap();
        assert_eq!(server.read(&wrong).class, Class::Fatal(FatalKind::Auth), "{style}");
        let garbage = HttpReply::from(server.send("/v1/chat/completions", "key-3", "no json")).unwrap();
        assert_eq!(garbage.status, wrong.status, "a client with a wrong key learns nothing else");
        let stats = server.provider.stats();
        assert_eq!((stats.keys["key-1"].ok, stats.keys["key-3"].calls, stats.refused), (1, 2, 2));
    }
}

#[test]
fn a_request_larger_than_the_limit_is_reported_in_every_style() {
    for style in Style::ALL {
        let server = TestServer::new(MockProvider::builder().style(style).tokens_per_minute(20));
        let hint = server.read(&server.call());
        assert_eq!(hint.class, Class::Fatal(FatalKind::TooLarge), "{style}: {hint:?}");
    }
}

#[test]
fn outages_are_reported_in_every_style() {
    for style in Style::ALL {
        let builder = MockProvider::builder().style(style);
        let server = TestServer::new(
            builder
                .outage(Outage::every(3, OutageKind::Status(500)))
                .outage(Outage::every(4, OutageKind::Status(529)))
                .outage(Outage::every(5, OutageKind::Status(429))),
        );
        let classes: Vec<Class> = (0..5).map(|_| server.read(&server.call()).class).collect();
        let [ok, throttled] = [Class::Ok, Class::Throttled];
        assert_eq!(classes, [ok, ok, Class::Transient, Class::Overloaded, throttled], "{style}");
        let stats = server.provider.stats();
        assert_eq!((stats.failed, stats.rejected), (2, 1));
    }
}

#[test]
fn an_outage_starts_and_ends() {
    let outage = Outage::between(Duration::from_secs(10), Duration::from_secs(20), OutageKind::Status(503));
    let server = TestServer::new(MockProvider::builder().outage(outage));
    for (second, status) in [(0, 200), (9, 200), (10, 503), (19, 503), (20, 200)] {
        server.clock.set(Tick::from_secs(NOON + second));
        assert_eq!(server.call().status, status, "{second}");
    }
}

#[test]
fn a_reset_connection_has_no_reply_and_the_next_has_one() {
    let server = TestServer::new(MockProvider::builder().outage(Outage::every(2, OutageKind::Reset)));
    assert_eq!(server.call().status, 200);
    let mut stream = server.send("/v1/chat/completions", "key-1", CHAT);
    let error = stream.read(&mut [0; 1]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    assert_eq!(server.call().status, 200);
    assert_eq!(server.provider.stats().failed, 1);
}

#[test]
fn a_call_that_hangs_is_not_answered_and_the_client_may_disconnect() {
    let server = TestServer::new(MockProvider::builder().outage(Outage::every(1, OutageKind::Hang)));
    let hanging = server.send("/v1/chat/completions", "key-1", CHAT);
    let other = server.send("/v1/chat/completions", "key-1", CHAT);
    wait_until(|| server.provider.stats().failed == 2);
    drop(other);
    assert_eq!(server.get("/healthz").body, "ok\n");
    // After an hour by its clock, the provider resets the connection.
    server.clock.advance(Span::from_secs(3_600));
    assert!(HttpReply::from(hanging).is_none());
}

#[test]
fn latency_follows_the_clock_and_concurrency_is_limited_exactly() {
    let latency = Duration::from_millis(100)..=Duration::from_millis(200);
    let server = TestServer::new(MockProvider::builder().concurrency(5).latency(latency));
    let calls: Vec<_> = (0..8).map(|_| server.send("/v1/chat/completions", "key-1", CHAT)).collect();
    wait_until(|| server.provider.stats().rejected == 3 && server.provider.stats().concurrent == 5);
    server.clock.advance(Span::from_millis(99));
    assert_eq!(server.provider.stats().ok, 0);
    server.clock.advance(Span::from_millis(101));
    let statuses: Vec<u16> =
        calls.into_iter().map(|stream| HttpReply::from(stream).unwrap().status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 5);
    let stats = server.provider.stats();
    assert_eq!((stats.ok, stats.concurrent, stats.concurrent_max), (5, 0, 5));
}

#[test]
fn a_client_that_disconnects_releases_its_concurrency() {
    let second = Duration::from_secs(1);
    let server = TestServer::new(MockProvider::builder().concurrency(1).latency(second..=second));
    let leaving = server.send("/v1/chat/completions", "key-1", CHAT);
    wait_until(|| server.provider.stats().concurrent == 1);
    assert_eq!(server.call().status, 429);
    drop(leaving);
    wait_until(|| server.provider.stats().abandoned == 1);
    let next = server.send("/v1/chat/completions", "key-1", CHAT);
    wait_until(|| server.provider.stats().concurrent == 1);
    server.clock.advance(Span::from_secs(1));
    assert_eq!(HttpReply::from(next).unwrap().status, 200);
}

#[test]
fn a_limit_changes_at_its_time_without_a_call() {
    let change = LimitChange::after(Duration::from_secs(10)).requests_per_second(1);
    let server = TestServer::new(MockProvider::builder().requests_per_second(5).change(change));
    let admitted = |count: usize| (0..count).filter(|_| server.call().status == 200).count();
    assert_eq!(admitted(8), 5);
    server.clock.set(Tick::from_secs(NOON + 9));
    assert_eq!(admitted(8), 5);
    server.clock.set(Tick::from_secs(NOON + 30));
    assert_eq!(admitted(8), 1);
    server.clock.set(Tick::from_secs(NOON + 31));
    assert_eq!(admitted(8), 1);
}

#[test]
fn tokens_are_charged_as_they_are_used() {
    let server = TestServer::new(MockProvider::builder().tokens_per_minute(1_000));
    let first = server.read(&server.call());
    let used = first.usage.unwrap().total;
    let tokens = first.meters.iter().find(|meter| meter.unit == LimitUnit::Tokens).unwrap();
    assert_eq!((tokens.limit, tokens.remaining), (Some(1_000), Some(1_000 - used)));
    let admitted = 1 + (0..100).filter(|_| server.call().status == 200).count() as u64;
    assert_eq!(admitted, 1_000 / used);
    assert_eq!(server.provider.stats().tokens, admitted * used);
}

#[test]
fn every_endpoint_answers_and_reports_its_usage() {
    let server = TestServer::new(MockProvider::builder().seed(7));
    let table = [
        ("/v1/chat/completions", CHAT),
        ("/v1/messages", CHAT),
        ("/v1/responses", r#"{"model":"m","input":"hello"}"#),
        ("/v1/embeddings", r#"{"model":"text-embedding-3-small","input":["a","b"]}"#),
        ("/openai/deployments/gpt/chat/completions?api-version=1", CHAT),
    ];
    for (path, body) in table {
        let got = HttpReply::from(server.send(path, "key-1", body)).unwrap();
        let hint = server.read(&got);
        assert_eq!(hint.class, Class::Ok, "{path}: {got:?}");
        let again = server.read(&HttpReply::from(server.send(path, "key-1", body)).unwrap());
        assert!(hint.usage.is_some_and(|usage| usage.total > 0) && hint.usage == again.usage, "{path}");
    }
    let stats: serde_json::Value = serde_json::from_str(&server.get("/stats").body).unwrap();
    assert_eq!(
        (&stats["calls"], &stats["ok"], &stats["keys"]["key-1"]["ok"]),
        (&10.into(), &10.into(), &10.into())
    );
    assert_eq!(server.get("/v1/models").status, 404);
    assert_eq!(server.get("/v1/messages").status, 405);
    assert_eq!(server.provider.stats().calls, 10, "requests to other paths are not calls");
}

#[test]
fn a_stream_consists_of_events_and_may_break_off_in_every_style() {
    let stream =
        |body: &str| body.replacen('{', r#"{"stream":true,"stream_options":{"include_usage":true},"#, 1);
    for style in Style::ALL {
        let server = TestServer::new(
            MockProvider::builder().style(style).outage(Outage::every(4, OutageKind::Midway)),
        );
        let table = [
            ("/v1/chat/completions", CHAT),
            ("/v1/messages", CHAT),
            ("/v1/responses", r#"{"model":"m","input":"hello"}"#),
        ];
        for (path, body) in table {
            let got = HttpReply::from(server.send(path, "key-1", &stream(body))).unwrap();
            let hint = server.read(&got);
            assert!(got.body.contains("data: {"), "{got:?}");
            assert_eq!(
                (hint.class, hint.usage.is_some_and(|usage| usage.output > 1)),
                (Class::Ok, true),
                "{style} {path}"
            );
        }
        let broken = HttpReply::from(server.send("/v1/messages", "key-1", &stream(CHAT))).unwrap();
        assert_eq!(
            (broken.status, server.read(&broken).class),
            (200, Class::Overloaded),
            "{style}: {broken:?}"
        );
        let plain = (0..4).map(|_| server.call().status).collect::<Vec<_>>();
        assert_eq!(plain, [200, 200, 200, 503], "{style}");
    }
}

#[test]
fn an_invalid_body_is_refused_as_such() {
    let server = TestServer::new(MockProvider::builder());
    for body in ["", "{", "[]", "null", "{\"messages\"", "\u{0}\u{1}"] {
        let got = HttpReply::from(server.send("/v1/chat/completions", "", body)).unwrap();
        assert_eq!(
            (got.status, server.read(&got).class),
            (400, Class::Fatal(FatalKind::Request)),
            "{body:?}"
        );
    }
}

#[test]
fn an_oversized_body_is_refused_before_it_is_read() {
    let server = TestServer::new(MockProvider::builder());
    let mut stream = server.connect();
    write!(stream, "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n").unwrap();
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    // Sends nine megabytes, or until the provider has enough.
    for _ in 0..144 {
        if stream.write_all(chunk.as_bytes()).is_err() {
            break;
        }
    }
    let refused = HttpReply::from(stream);
    assert!(refused.is_none_or(|got| got.status == 413));
    wait_until(|| server.provider.stats().refused == 1);
    let mut stream = server.connect();
    write!(
        stream,
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 99999999999\r\n\r\nx"
    )
    .unwrap();
    assert_eq!(HttpReply::from(stream).unwrap().status, 413);
}

#[test]
fn a_slow_client_is_refused() {
    let server = TestServer::new(MockProvider::builder().read_timeout(Duration::from_millis(50)));
    let mut stream = server.connect();
    stream.write_all(b"POST /v1/chat/comp").unwrap();
    // There is no reply to a request whose headers never end.
    let got = HttpReply::from(stream);
    assert!(got.is_none_or(|reply| reply.status == 408));
    let mut stream = server.connect();
    stream
        .write_all(
            b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 100\r\n\r\n{",
        )
        .unwrap();
    let got = HttpReply::from(stream).unwrap();
    assert_eq!((got.status, server.read(&got).class), (408, Class::Transient));
}

#[test]
fn garbage_on_the_wire_does_not_affect_other_calls() {
    let server = TestServer::new(MockProvider::builder());
    for bytes in [
        &b"\x00\xff\x16\x03\x01\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"POST /v1/messages HTTP/9.9\r\n\r\n",
        &[b'a'; 1 << 20],
    ] {
        let mut stream = server.connect();
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    let mut stream = server.connect();
    stream.write_all(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer \xff\xfe\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}").unwrap();
    assert_eq!(HttpReply::from(stream).unwrap().status, 400);
    assert_eq!(server.call().status, 200);
}

#[test]
fn invalid_settings_are_refused() {
    let message =
        |builder: tollgate_mock_provider::MockProviderBuilder| builder.build().unwrap_err().to_string();
    assert!(message(MockProvider::builder().requests_per_second(0)).contains("requests"));
    assert!(
        message(MockProvider::builder().outage(Outage::every(1, OutageKind::Status(200))))
            .contains("500 to 599")
    );
    assert!(
        message(MockProvider::builder().change(LimitChange::after(Duration::ZERO).tokens_per_minute(0)))
            .contains("tokens")
    );
    assert!("open-ai".parse::<Style>().unwrap_err().to_string().contains("openai"));
}

/// Waits for other threads, however long they take.
fn wait_until(holds: impl Fn() -> bool) {
    while !holds() {
        std::thread::yield_now();
    }
}

#[test]
fn a_call_in_this_process_is_answered_as_one_over_tcp() {
    let server = TestServer::new(MockProvider::builder().requests_per_second(1).burst(2));
    let here = |path| Reply::later(server.provider.call(path, "key-1", CHAT.as_bytes())).wait();
    let (remote, local) = (server.call(), here("/v1/chat/completions").expect("no outage"));
    assert_eq!((local.status, local.body), (200, remote.body));
    let denied = here("/v1/chat/completions").expect("no outage");
    assert!(
        denied.headers.iter().any(|(name, wait)| *name == "retry-after-ms" && wait == "1000"),
        "{denied:?}"
    );
    assert_eq!((denied.status, denied.body), (429, server.call().body));
    assert_eq!(here("/v1/files").map(|reply| reply.status), Some(404));
    let stats = server.provider.stats();
    assert_eq!((stats.ok, stats.rejected, stats.keys["key-1"].calls), (2, 2, 4));
    let resets =
        MockProvider::builder().outage(Outage::every(1, OutageKind::Reset)).build().expect("it is valid");
    assert_eq!(Reply::later(resets.call("/v1/chat/completions", "", CHAT.as_bytes())).wait(), None);
}
