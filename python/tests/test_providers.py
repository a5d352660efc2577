"""Replies and estimates of providers: what is read, and what any input does."""

from __future__ import annotations

import json
import random

import pytest

import tollgate as tg


def test_headers_are_a_mapping_or_pairs():
    for headers in [{"Retry-After": "7"}, [("Retry-After", "7")], (("retry-after", "7"),), {"retry-after": "7"}.items()]:
        hint = tg.read_reply(429, headers)
        assert (hint.kind, hint.retry_after, hint.may_retry) == ("throttled", 7.0, True)
    for headers in [7, "text", [("a",)], [(b"a", b"b")], {"a": 1}, [("a", "\ud800")]]:
        with pytest.raises(tg.InvalidValue, match="headers is"):
            tg.read_reply(200, headers)
        with pytest.raises(tg.InvalidValue, match="headers is"):
            tg.ReplyReader(200, headers)
    for status in [-1, 70_000, 2**70, "200", None, 200.5]:
        with pytest.raises(tg.InvalidValue, match="status is"):
            tg.read_reply(status, [])


def test_classes_and_quotas():
    body = json.dumps({"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}).encode()
    assert (tg.read_reply(429, [], body).kind, tg.read_reply(401, []).kind, tg.read_reply(529, []).kind) == ("exhausted", "fatal", "overloaded")
    assert tg.read_reply(500, []).kind == "transient"
    assert "quota" in tg.read_reply(429, [], body).reason


def test_p43_amounts_of_tokens():
    assert tg.Tokens(5.0, 3).total == 8
    for wrong in [-1, 2**70, 0.5, True, "5", None]:
        with pytest.raises(tg.InvalidDemand):
            tg.Tokens(wrong, 1)
    for cover in [0, 1.1, float("nan"), -1]:
        with pytest.raises(tg.InvalidValue, match="cover"):
            tg.Estimator(cover=cover)


def test_what_no_request_is_made_of_is_reported():
    for wrong in [object(), {1: object()}, {"a": {1, 2}}]:
        with pytest.raises(tg.InvalidValue, match="a request is"):
            tg.estimate_tokens(wrong)
    nested = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(tg.InvalidValue, match="a request is"):
        tg.estimate_tokens(nested)
    # Text that is no JSON counts as text.
    assert tg.estimate_tokens("[" * 100_000).input > 1_000
    assert tg.estimate_tokens(b"\xff\xfe\x00").input > 0


@pytest.mark.parametrize("seed", range(4))
def test_p30_any_reply_is_read(seed):
    chance = random.Random(seed)
    names = ["retry-after", "retry-after-ms", "x-ratelimit-reset-requests", "x-ratelimit-limit-tokens", "date", "content-type", "x-should-retry"]
    words = ["1", "-1", "nan", "1e999", "6m0s", "\x00", "é" * 50, "Sun, 15 Nov 2026 12:00:30 GMT", "9" * 400, "text/event-stream", ""]
    parts = [b"data: ", b"event: message_stop", b"\n", b"\r\n", b'{"usage":', b'{"error":{', b"}", b'"total_tokens":', b"18446744073709551615", b"[DONE]", b"-1", b"\xff", b","]
    for _ in range(2_000):
        headers = [(chance.choice(names), chance.choice(words)) for _ in range(chance.randrange(6))]
        pieces = [chance.choice(parts) for _ in range(chance.randrange(12))]
        status = chance.choice([0, 100, 200, 204, 302, 400, 401, 429, 500, 529, 65_535])
        reader = tg.ReplyReader(status, headers)
        for piece in pieces:
            reader.feed(piece)
        for hint in (reader.hint(), tg.read_reply(status, headers, b"".join(pieces))):
            assert hint.kind in ("ok", "throttled", "exhausted", "overloaded", "transient", "fatal")
            assert hint.retry_after is None or 0 <= hint.retry_after <= 32 * 86_400
        tg.estimate_tokens(b"".join(pieces))
