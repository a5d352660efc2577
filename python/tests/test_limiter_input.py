"""What a limiter makes of arguments that are not valid."""

from __future__ import annotations

import decimal

import pytest

import tollgate as tg


class Indexed:
    def __index__(self) -> int:
        return 5


@pytest.mark.parametrize("amount", [5, 5.0, decimal.Decimal(5), Indexed()])
def test_p43_whole_amounts_of_any_type_count(amount):
    limiter = tg.Limiter("memory")
    limiter.catalog.set_limits([tg.per_hour("rpm", 10)])
    for take in (limiter.acquire, limiter.try_acquire):
        lease = take("bob", "gpt-4", {"rpm": amount})
        assert lease.reserved == {"rpm": 5}
        lease.cancel()
    assert limiter.acquire("bob", "gpt-4", limiter.demand(rpm=amount)).reserved == {"rpm": 5}


@pytest.mark.parametrize("amount", [True, -1, 2**70, -(2**70), 0.5, float("nan"), float("inf"), "5", None, [], decimal.Decimal("NaN")])
def test_p43_other_amounts_are_invalid(amount):
    limiter = tg.Limiter("memory")
    limiter.catalog.set_limits([tg.per_hour("rpm", 10)])
    for call in (limiter.acquire, limiter.try_acquire, limiter.check, limiter.ready_after, limiter.catalog.top_up):
        with pytest.raises(tg.InvalidDemand):
            call("bob", "gpt-4", {"rpm": amount})
    with pytest.raises(tg.InvalidDemand):
        limiter.acquire("bob", "gpt-4", {"rpm": 1}, also={"x": {"rpm": amount}})
    assert limiter.peek("bob", "gpt-4")["rpm"].available == 10


@pytest.mark.parametrize("name", ["", "x" * 300, "a#b", "\ud800", "a\0b", "\n"])
def test_p45_p46_names_that_are_not_valid_are_refused_with_a_text(name):
    limiter = tg.Limiter("memory")
    limiter.catalog.set_limits([tg.per_hour("rpm", 10)])
    for call in (limiter.acquire, limiter.try_acquire, limiter.check):
        for entity, resource in ((name, "gpt-4"), ("bob", name)):
            with pytest.raises(tg.InvalidValue) as caught:
                call(entity, resource, {"rpm": 1})
            assert str(caught.value)
    with pytest.raises(tg.InvalidDemand):
        limiter.acquire("bob", "gpt-4", {name: 1})
    with pytest.raises(tg.InvalidValue):
        limiter.acquire("bob", "gpt-4", {"rpm": 1}, also={name: {"rpm": 1}})


@pytest.mark.parametrize("bad", [5, None, b"bob", ["bob"], 1.5, True])
def test_names_that_are_no_texts_are_type_errors(bad):
    limiter = tg.Limiter("memory")
    for call in (limiter.acquire, limiter.try_acquire, limiter.peek, limiter.check, limiter.ready_after):
        with pytest.raises(TypeError):
            call(bad, "gpt-4")
        with pytest.raises(TypeError):
            call("bob", bad)
    with pytest.raises(TypeError):
        limiter.resume(bad)
    with pytest.raises(TypeError):
        tg.Limiter(bad)


@pytest.mark.parametrize("timeout", [-1, float("nan"), "5", True, [], -(10**400)])
def test_p8_a_timeout_that_is_none_is_refused(timeout):
    limiter = tg.Limiter("memory")
    limiter.catalog.set_limits([tg.per_hour("rpm", 10)])
    with pytest.raises((ValueError, TypeError)):
        limiter.acquire("bob", "gpt-4", {"rpm": 1}, timeout=timeout)
    for good in (0, 1e300, float("inf"), 10**400, None):
        limiter.acquire("bob", "gpt-4", {"rpm": 1}, timeout=good).cancel()


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("namespace", ["", "a b", "x" * 300, "\ud800", 5, True]),
        ("create_namespace", ["yes", 1, 0.5]),
        ("principal", ["", "\ud800", 5]),
        ("cache_ttl", [-1, float("nan"), float("inf"), "60", True, 10**400]),
        ("on_unavailable", ["", "Block", "deny", 1, True]),
        ("local_share", [0, 101, -1, 2**70, 0.5, True, "50"]),
        ("store_timeout", [0, -1, float("nan"), float("inf"), True]),
        ("connect_within", [-1, float("nan"), "1"]),
        ("lease_ttl", [0, -1, float("nan"), float("inf"), True]),
        ("heartbeats", ["none", 1, ""]),
        ("on_drop", ["", "free", 5]),
        ("waiters_max", [-1, 2**70, 0.5, True, "5"]),
        ("nonsense", [1]),
    ],
)
def test_settings_that_are_not_valid_are_refused(name, values):
    for value in values:
        with pytest.raises((ValueError, TypeError)) as caught:
            tg.Limiter("memory", **{name: value})
        assert "argument" in str(caught.value) or isinstance(caught.value, (tg.Error, TypeError)), value


@pytest.mark.parametrize("url", ["", "nonsense", "redis:", "file:", "shm:a/b", "a\0b", "\ud800", "http://x"])
def test_urls_that_are_not_valid_are_refused(url):
    with pytest.raises(tg.Error):
        tg.Limiter(url)
