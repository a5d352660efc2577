"""What operators of zae-limiter do, and what programs read, on a store in a file and on DynamoDB."""

from __future__ import annotations

import asyncio
import datetime
import inspect
import time

import pytest

import tollgate as tg
from tollgate.compat.zae import (
    EntityNotFoundError,
    InvalidIdentifierError,
    InvalidLimitError,
    InvalidNameError,
    Limit,
    NamespaceStateError,
    OnUnavailable,
    RateLimiter,
    RateLimitExceeded,
    Repository,
    ResourceDisabled,
    ScheduleEntry,
    SyncRateLimiter,
    SyncRepository,
    ValidationError,
)


@pytest.fixture(params=["file", "dynamodb"])
def url(request, tmp_path) -> str:
    return f"file:{tmp_path}/limits.db" if request.param == "file" else request.getfixturevalue("dynamodb")


@pytest.fixture
def repository(url) -> SyncRepository:
    # The table is that of the whole session: each test has a namespace of its own.
    return SyncRepository.open(f"test-{time.monotonic_ns()}", url=url)


@pytest.fixture
def limiter(repository) -> SyncRateLimiter:
    return SyncRateLimiter(repository=repository)


def quota(amount: int, name: str = "rpm") -> Limit:
    return Limit.quota(name, amount, reset_after=datetime.timedelta(days=1))


def test_more_is_taken_of_every_resource_of_a_lease_and_ends_with_it(limiter):
    limiter.set_system_defaults([quota(100)])
    with limiter.acquire("bob", "gpt-4", {"rpm": 10}, also={"search": {"rpm": 20}}) as lease:
        search = lease.resource("search")
        search.consume(rpm=30)
        assert search.consumed == {"rpm": 50} and lease.consumed == {"rpm": 10}
        assert limiter.available("bob", "search") == {"rpm": 50}
        with pytest.raises(RateLimitExceeded) as caught:
            search.consume(rpm=60)
        assert caught.value.primary_violation.resource == "search"
        with pytest.raises(RateLimitExceeded) as caught:
            search.consume(rpm=600)
        assert (caught.value.primary_violation.requested, caught.value.primary_violation.limit.capacity) == (600, 100)
        # More than was taken later, so a part is of what the call took at first.
        search.release(rpm=45)
    assert limiter.available("bob", "search") == {"rpm": 95}
    with pytest.raises(ZeroDivisionError), limiter.acquire("bob", "gpt-4", {"rpm": 10}, also={"search": {"rpm": 20}}) as lease:
        lease.resource("search").consume(rpm=30)
        raise ZeroDivisionError
    assert limiter.available("bob", "search") == {"rpm": 95}
    assert limiter.available("bob", "gpt-4") == {"rpm": 90}


def test_more_is_taken_of_another_resource_in_an_event_loop(url):
    async def main() -> None:
        limiter = RateLimiter(repository=await Repository.open(f"test-{time.monotonic_ns()}", url=url))
        await limiter.set_system_defaults([quota(100)])
        async with limiter.acquire("bob", "gpt-4", {"rpm": 10}, also={"search": {"rpm": 20}}) as lease:
            await lease.resource("search").consume(rpm=30)
        assert await limiter.available("bob", "search") == {"rpm": 50}
        assert inspect.iscoroutinefunction(limiter.available) and inspect.iscoroutinefunction(lease.adjust)

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_cancelled_task_gives_back_what_it_took_of_every_resource(url):
    async def main() -> None:
        limiter = RateLimiter(repository=await Repository.open(f"test-{time.monotonic_ns()}", url=url))
        await limiter.set_system_defaults([quota(100)])
        entered = asyncio.Event()

        async def body() -> None:
            async with limiter.acquire("bob", "gpt-4", {"rpm": 10}, also={"search": {"rpm": 20}}) as lease:
                await lease.resource("search").consume(rpm=30)
                entered.set()
                await asyncio.sleep(3_600)

        task = asyncio.create_task(body())
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # It is given back in the background.
        while [await limiter.available("bob", "gpt-4"), await limiter.available("bob", "search")] != [{"rpm": 100}] * 2:
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(main(), 60))


def test_availability_of_limits_that_come_with_the_call(limiter):
    limits = [quota(100), quota(1_000, "tpm")]
    assert limiter.available("bob", "gpt-4", limits=limits) == {"rpm": 100, "tpm": 1_000}
    with limiter.acquire("bob", "gpt-4", {"rpm": 10, "tpm": 300}, limits):
        pass
    assert limiter.available("bob", "gpt-4", limits=limits) == {"rpm": 90, "tpm": 700}
    assert limiter.time_until_available("bob", "gpt-4", {"rpm": 90}, limits=limits) == 0.0
    found = limiter.check_availability("bob", "gpt-4", {"rpm": 91, "tpm": 5}, limits)
    assert (found.allowed, found.exceeded, found.deficit, found.needed) == (False, ["rpm"], {"rpm": 1}, {"rpm": 91, "tpm": 5})
    assert found.status("tpm").available == 700 and found.status("nothing") is None and found.limits == limits
    with pytest.raises(RateLimitExceeded) as caught, limiter.acquire("bob", "gpt-4", {"rpm": 1, "tpm": 5_000}, limits):
        pass
    assert [(s.limit_name, s.available, s.exceeded) for s in caught.value.statuses] == [("rpm", 90, False), ("tpm", 700, True)]


def test_what_was_used_comes_in_snapshots_and_sums(limiter):
    limiter.set_system_defaults([quota(100), quota(1_000, "tpm")])
    with limiter.acquire("bob", "gpt-4", {"rpm": 3, "tpm": 50}):
        pass
    with limiter.acquire("bob", "search", {"rpm": 4}):
        pass
    found, key = limiter.get_usage_snapshots("bob", window_type="daily")
    assert key is None and {row.resource: row.counters for row in found} == {"gpt-4": {"rpm": 3, "tpm": 50}, "search": {"rpm": 4}}
    assert all(row.window_start.endswith("T00:00:00Z") and row.window_end > row.window_start for row in found)
    # Without a type, hourly ones come first; pages have keys.
    kinds, key = [], None
    while True:
        rows, key = limiter.get_usage_snapshots(resource="gpt-4", limit=1, next_key=key)
        kinds += [row.window_type for row in rows]
        if key is None:
            break
    assert kinds == ["hourly", "daily"]
    total = limiter.get_usage_summary("bob")
    assert (total.snapshot_count, total.total, total.average) == (2, {"rpm": 7, "tpm": 50}, {"rpm": 3.5, "tpm": 25.0})
    tomorrow = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
    assert limiter.get_usage_snapshots("bob", start_time=tomorrow)[0] == []
    assert limiter.get_usage_summary("bob", end_time=tomorrow.isoformat()).snapshot_count == 2
    assert limiter.get_usage_summary("nobody").min_window_start is None
    assert limiter.get_usage_snapshots("bob", window_type="weekly") == ([], None)
    with pytest.raises(ValueError, match="entity_id or resource"):
        limiter.get_usage_snapshots()


def test_the_dict_of_a_refusal_is_that_of_theirs(limiter):
    """What zae-limiter 0.17.0 gave on ministack for the same calls, with times and the order of limits set aside."""
    session = Limit.quota("msgs", 3, reset_after=datetime.timedelta(hours=3))
    daily = Limit.quota("rpd", 5, cron="0 0 * * *", tz="Europe/Berlin")
    limiter.set_limits("q1", [session, daily, Limit.per_day("soft", 2, soft=True), Limit.per_day("rate", 24)], resource="gpt-4")
    with limiter.acquire("q1", "gpt-4", {"msgs": 2, "rpd": 2, "soft": 3, "rate": 20}) as lease:
        pass
    assert lease.overdrawn == ["soft"]
    with pytest.raises(RateLimitExceeded) as caught, limiter.acquire("q1", "gpt-4", {"msgs": 2, "rpd": 2, "soft": 1, "rate": 7}):
        pass
    found = caught.value.as_dict()
    waits = {row["limit_name"]: row.pop("retry_after_seconds") for row in found["limits"]}
    resets = {row["limit_name"]: row.pop("resets_at_ms") for row in found["limits"] if row["kind"] == "quota"}
    whose = {"entity_id": "q1", "resource": "gpt-4"}
    day = {"refill_period_seconds": 86_400}
    assert sorted(found.pop("limits"), key=lambda row: row["limit_name"]) == [
        {**whose, "limit_name": "msgs", "kind": "quota", "capacity": 3, "available": 1, "requested": 2, "exceeded": True, "soft": False},
        {**whose, "limit_name": "rate", "kind": "rate", "capacity": 24, "refill_amount": 24, **day}
        | {"available": 4, "requested": 7, "exceeded": True, "soft": False},
        {**whose, "limit_name": "rpd", "kind": "quota", "capacity": 5, "available": 3, "requested": 2, "exceeded": False, "soft": False},
        {**whose, "limit_name": "soft", "kind": "rate", "capacity": 2, "refill_amount": 2, **day}
        | {"available": -1, "requested": 1, "exceeded": False, "soft": True},
    ]
    assert (waits["rpd"], waits["soft"]) == (0.0, 0.0)
    # Three of 24 a day come back in three hours, less what the test itself took.
    assert 10_700 < waits["msgs"] <= 10_800 and 10_700 < waits["rate"] <= 10_800
    assert abs(resets["msgs"] / 1_000 - time.time() - waits["msgs"]) < 60 and resets["rpd"] > time.time() * 1_000
    longest = max(waits.values())
    assert found == {
        "error": "rate_limit_exceeded",
        "message": f"Rate limit exceeded for q1/gpt-4: [msgs, rate]. Retry after {longest:.1f}s",
        "contended": False,
        "retry_after_seconds": longest,
        "retry_after_ms": int(longest * 1_000),
    }
    assert caught.value.retry_after_header == str(int(longest) + 1)


def test_the_capacity_of_a_resource_is_that_of_all_entities(limiter):
    limiter.set_system_defaults([quota(100)])
    limiter.create_entity("team")
    limiter.create_entity("bob", parent_id="team")
    for entity, used in (("team", 10), ("bob", 40)):
        with limiter.acquire(entity, "gpt-4", {"rpm": used}):
            pass
    found = limiter.get_resource_capacity("gpt-4", "rpm")
    assert (found.total_capacity, found.total_available, found.utilization_pct) == (200, 150, 25.0)
    parents = limiter.get_resource_capacity("gpt-4", "rpm", parents_only=True)
    assert [(row.entity_id, row.available, row.utilization_pct) for row in parents.entities] == [("team", 90, 10.0)]


def test_switches_are_set_read_and_cleared(limiter, repository):
    limiter.set_system_defaults([quota(100)])
    assert repository.disable_entity("bob", "gpt-4") == 1 and repository.get_entity_disabled("bob", "gpt-4") is True
    assert repository.resolve_disabled("bob", "gpt-4") == (True, "entity")
    with pytest.raises(ResourceDisabled) as caught, limiter.acquire("bob", "gpt-4", {"rpm": 1}):
        pass
    assert (caught.value.entity_id, caught.value.resource, caught.value.level) == ("bob", "gpt-4", "entity")
    assert repository.clear_entity_disabled("bob", "gpt-4") == 1 and repository.get_entity_disabled("bob", "gpt-4") is None
    repository.disable_resource("gpt-4")
    assert repository.get_resource_disabled("gpt-4") is True and repository.resolve_disabled("bob", "gpt-4") == (True, "resource")
    repository.enable_entity("vip", "gpt-4")
    with limiter.acquire("vip", "gpt-4", {"rpm": 1}):
        pass
    assert repository.clear_resource_disabled("gpt-4") == 1 and repository.get_resource_disabled("gpt-4") is None
    repository.set_limits("bob", [quota(5)], disabled=True, cascade=False)
    assert repository.get_entity_disabled("bob", "_default_") is True and repository.get_entity_cascade("bob", "_default_") is False
    repository.set_resource_defaults("gpt-4", [quota(6)], cascade=True)
    assert repository.get_resource_cascade("gpt-4") is True and repository.clear_resource_cascade("gpt-4") == 1
    assert repository.get_resource_cascade("gpt-4") is None


def test_nobody_is_exempt_and_the_error_says_what_to_do(repository):
    with pytest.raises(NotImplementedError, match="set_limits"):
        repository.bypass_entity("bob")
    with pytest.raises(NotImplementedError, match="set_limits"):
        repository.bypass_resource("gpt-4")
    with pytest.raises(NotImplementedError, match="soft=True"):
        repository.set_limits("bob", [quota(5)], disabled="bypass")
    assert repository.get_limits("bob") == []


def test_resets_and_top_ups_report_what_they_gave(limiter, repository):
    limiter.set_system_defaults([quota(100), quota(50, "tpm")])
    assert repository.reset_bucket("bob", "gpt-4").shards == 0
    with limiter.acquire("bob", "gpt-4", {"rpm": 30, "tpm": 5}):
        pass
    first = repository.top_up("bob", "gpt-4", {"rpm": 10}, idempotency_key="k")
    assert (first.shards, first.amounts) == (1, {"rpm": 10})
    again = repository.top_up("bob", "gpt-4", {"rpm": 10}, idempotency_key="k")
    assert (again.shards, again.amounts) == (0, {"rpm": 0})
    assert limiter.available("bob", "gpt-4") == {"rpm": 80, "tpm": 45}
    with pytest.raises(NotImplementedError, match="top_up"):
        repository.reset_bucket("bob", "gpt-4", limits=["rpm"])
    assert repository.reset_bucket("bob", "gpt-4", limits=["rpm", "tpm"]).amounts == {"rpm": 20, "tpm": 5}
    assert limiter.available("bob", "gpt-4") == {"rpm": 100, "tpm": 50}


def test_the_limits_that_hold_and_the_policy(repository):
    assert repository.resolve_limits("bob", "gpt-4") == (None, None, None) and repository.resolve_on_unavailable() == "block"
    repository.set_system_defaults([quota(5)], on_unavailable="allow")
    assert repository.resolve_limits("bob", "gpt-4") == ([quota(5)], "allow", "system")
    assert repository.get_system_defaults() == ([quota(5)], "allow") and repository.resolve_on_unavailable() == "allow"
    assert SyncRateLimiter(repository=repository).get_system_defaults() == ([quota(5)], OnUnavailable.ALLOW)
    repository.set_limits("bob", [quota(6)])
    assert repository.resolve_limits("bob", "gpt-4") == ([quota(6)], "allow", "entity_default")
    stats = repository.get_cache_stats()
    assert stats.as_dict().keys() == {"hits", "misses", "size", "ttl", "local_rejections"} and stats.ttl_seconds == 60
    repository.invalidate_config_cache()
    assert repository.capabilities.supports_usage_snapshots and not repository.capabilities.supports_infrastructure_management


def test_namespaces_are_dicts_as_there(repository):
    ids = repository.register_namespaces(["one-" + repository.namespace_name, "two-" + repository.namespace_name])
    one, two = ids
    assert repository.get_namespace(one).keys() == {"name", "namespace_id", "status", "created_at"}
    assert {one, two} <= {each["name"] for each in repository.list_namespaces()}
    with pytest.raises(NamespaceStateError):
        repository.purge_namespace(ids[one])
    repository.delete_namespace(one)
    repository.delete_namespace(one)
    orphan = next(each for each in repository.list_orphan_namespaces() if each["namespace"] == one)
    assert orphan["namespace_id"] == ids[one] and orphan["deleted_at"]
    repository.purge_namespace(ids[one])
    assert one not in {each["namespace"] for each in repository.list_orphan_namespaces()}


def test_names_that_are_not_valid_are_named(limiter):
    limiter.set_system_defaults([quota(5)])
    for kind, field, value, call in (
        (InvalidIdentifierError, "entity_id", "k#9", lambda: limiter.create_entity("k#9")),
        (InvalidNameError, "resource", "9 x", lambda: limiter.set_resource_defaults("9 x", [quota(5)])),
        (InvalidNameError, "name", "rp m", lambda: Limit.per_minute("rp m", 5)),
    ):
        with pytest.raises(kind) as caught:
            call()
        assert (caught.value.field, caught.value.value) == (field, value)
    with pytest.raises(EntityNotFoundError) as missing:
        limiter.create_entity("kid", parent_id="ghost")
    assert missing.value.entity_id == "ghost"
    limiter.delete_entity("nobody")


def test_schedules_of_resets_are_kept_and_others_are_refused(limiter):
    daily = Limit.quota("rpd", 5, cron="0 6 * * MON-FRI", tz="Europe/Berlin")
    assert daily.reset_schedule == (ScheduleEntry.reset("0 6 * * MON-FRI", "Europe/Berlin"),)
    assert Limit.from_dict(daily.to_dict()) == daily
    limiter.set_limits("bob", [daily])
    (kept,) = limiter.get_limits("bob")
    assert (kept.reset_schedule[0].tz, kept.capacity, kept.is_quota) == ("Europe/Berlin", 5, True)
    assert Limit.from_dict(kept.to_dict()) == kept
    with limiter.acquire("bob", "gpt-4", {"rpd": 5}):
        pass
    with pytest.raises(RateLimitExceeded) as caught, limiter.acquire("bob", "gpt-4", {"rpd": 1}):
        pass
    (shown,) = caught.value.as_dict()["limits"]
    assert shown["kind"] == "quota" and abs(shown["resets_at_ms"] / 1_000 - time.time() - shown["retry_after_seconds"]) < 60
    later = daily.with_reset_schedule((ScheduleEntry.reset("0 7 * * *"),))
    assert later.reset_schedule[0].cron == "0 7 * * *"
    half = ScheduleEntry("* 0-6 * * *", scale=0.5)
    assert half == ScheduleEntry("* 0-6 * * *", scale=0.5)
    assert Limit.per_minute("rpm", 5).with_schedule(()) == Limit.per_minute("rpm", 5)
    with pytest.raises(NotImplementedError, match="set_limits"):
        Limit.per_minute("rpm", 5).with_schedule((half,))
    for wrong in (
        lambda: ScheduleEntry("* * * * *"),
        lambda: ScheduleEntry("* * * * *", scale=2, capacity=3),
        lambda: ScheduleEntry.reset("nope"),
        lambda: Limit.quota("rpd", 5, cron="0 0 * * *", tz="Nowhere"),
        lambda: Limit.per_minute("rpm", 5).with_reset_schedule((ScheduleEntry.reset("0 0 * * *"),)),
        lambda: daily.with_reset_schedule((half,)),
        lambda: Limit.per_minute("rpm", 0),
    ):
        with pytest.raises(InvalidLimitError) as caught:
            wrong()
        assert isinstance(caught.value, ValueError) and isinstance(caught.value, ValidationError)


def test_builders_open_any_store_and_namespace(url):
    name = f"test-{time.monotonic_ns()}"
    made = SyncRepository.builder().url(url).namespace(name).config_cache_ttl(5).on_unavailable("allow").auto_update(False).build()
    assert made.namespace_name == name and made.get_cache_stats().ttl_seconds == 5
    other = asyncio.run(Repository.builder().url(url).namespace(name).build())
    assert other.namespace_id == made.namespace_id
    kind = "limits" if url.startswith("dynamodb:") else tg.Limiter(url).store
    assert (made.stack_name, SyncRateLimiter(repository=made).name) == (kind, kind)


def test_the_older_ways_to_open_warn(dynamodb):
    endpoint = dynamodb.partition("endpoint=")[2].partition("&")[0]
    with pytest.warns(DeprecationWarning, match=r"open\(stack"):
        older = SyncRepository("limits", endpoint_url=endpoint)
    assert older.stack_name == "limits" and older.ping() is True and older.namespace_name == "default"
    with pytest.warns(DeprecationWarning, match="repository"):
        limiter = SyncRateLimiter(name="limits", endpoint_url=endpoint)
    assert limiter.name == "limits" and limiter.is_available() is True
