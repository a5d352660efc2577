"""Programs that were written for zae-limiter, with the import changed, on a store in a file."""

from __future__ import annotations

import asyncio
import datetime
import pickle

import pytest

from tollgate.compat.zae import (
    EntityExistsError,
    EntityNotFoundError,
    LeaseExpiredError,
    Limit,
    NamespaceNotFoundError,
    OnUnavailable,
    RateLimiter,
    RateLimiterUnavailable,
    RateLimitError,
    RateLimitExceeded,
    Repository,
    ResourceDisabled,
    SyncRateLimiter,
    SyncRepository,
    ValidationError,
    ZAELimiterError,
)


@pytest.fixture
def store(tmp_path, monkeypatch) -> str:
    url = f"file:{tmp_path}/limits.db"
    monkeypatch.setenv("TOLLGATE_STORE", url)
    return url


@pytest.fixture
def limiter(store) -> SyncRateLimiter:
    return SyncRateLimiter(repository=SyncRepository.open())


@pytest.mark.parametrize("kind", ["file", "dynamodb"])
def test_the_usage_of_the_readme_with_the_import_changed(kind, store, request, monkeypatch):
    if kind == "dynamodb":
        # A table of its own, which `open` makes, as there.
        store = f"{request.getfixturevalue('dynamodb').replace('limits?', 'readme?')}&create=true"
        monkeypatch.setenv("TOLLGATE_STORE", store)
    async def call_llm() -> int:
        return 380

    def call_api() -> None:
        pass

    async def main() -> None:
        repo = await Repository.open()
        limiter = RateLimiter(repository=repo)
        sync_repo = await asyncio.to_thread(SyncRepository.open)
        sync_limiter = SyncRateLimiter(repository=sync_repo)
        default_limits = [Limit.per_minute("rpm", 100), Limit.per_minute("tpm", 10_000)]

        async with limiter.acquire(
            entity_id="api-key-123",
            resource="gpt-4",
            limits=default_limits,
            consume={"rpm": 1, "tpm": 500},
        ) as lease:
            total = await call_llm()
            await lease.adjust(tpm=total - 500)
        assert lease.consumed == {"rpm": 1, "tpm": 380}

        await limiter.create_entity(entity_id="proj-1", name="Production")
        await limiter.set_limits("proj-1", [Limit.per_minute("tpm", 100_000)])
        await limiter.create_entity(entity_id="api-key-456", parent_id="proj-1", cascade=True)

        def in_a_thread() -> None:
            with sync_limiter.acquire(
                entity_id="api-key-456",
                resource="gpt-4",
                limits=default_limits,
                consume={"rpm": 1, "tpm": 500},
            ):
                call_api()

        await asyncio.to_thread(in_a_thread)
        assert (await limiter.get_entity("api-key-456")).parent_id == "proj-1"
        used = await limiter.get_usage_summary("proj-1", window_type="daily")
        assert used.total["tpm"] == 500, "the parent was charged as well"

        tenant_repo = await Repository.open("tenant-alpha")
        tenant_limiter = RateLimiter(repository=tenant_repo)
        assert await tenant_limiter.get_entity("proj-1") is None
        with pytest.raises(NotImplementedError):
            await repo.delete_stack()

    asyncio.run(main())


def quota(amount: int, name: str = "rpm") -> Limit:
    return Limit.quota(name, amount, reset_after=datetime.timedelta(days=1))


def test_a_refusal_has_the_statuses_of_every_limit_and_pickles(limiter):
    limiter.create_entity("team")
    limiter.create_entity("bob", parent_id="team", cascade=True)
    limiter.set_limits("team", [Limit.per_day("rpm", 10)])
    limiter.set_limits("bob", [Limit.per_day("rpm", 8)])
    with limiter.acquire("bob", "gpt-4", {"rpm": 8}):
        pass
    with pytest.raises(RateLimitExceeded) as caught, limiter.acquire("bob", "gpt-4", {"rpm": 3}):
        pytest.fail("it was admitted")
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert [(s.entity_id, s.limit_name, s.available, s.deficit) for s in error.statuses] == [("bob", "rpm", 0, 3), ("team", "rpm", 2, 1)]
        assert error.violations == error.statuses and error.passed == []
        assert error.primary_violation.entity_id == "bob" and error.retry_after_seconds > 86_400 / 4
        assert error.retry_after_header == str(int(error.retry_after_seconds) + 1)
        assert str(error).startswith("Rate limit exceeded for bob/gpt-4: [rpm, rpm]. Retry after ")
        answer = error.as_dict()
        assert answer["error"] == "rate_limit_exceeded" and answer["limits"][0]["kind"] == "rate"
        assert isinstance(error, RateLimitError) and isinstance(error, ZAELimiterError)
    assert limiter.available("bob", "gpt-4") == {"rpm": 0}
    found = limiter.check_availability("bob", "gpt-4", {"rpm": 3})
    assert found.allowed is False and found.retry_after_seconds == pytest.approx(error.retry_after_seconds, abs=60)
    assert limiter.time_until_available("bob", "gpt-4", {"rpm": 1}) > 0


def test_a_demand_above_the_capacity_is_a_refusal_like_any_other(limiter):
    limiter.set_system_defaults([Limit.per_minute("rpm", 100)])
    with pytest.raises(RateLimitExceeded) as caught, limiter.acquire("bob", "gpt-4", {"rpm": 160}):
        pass
    assert caught.value.retry_after_seconds == pytest.approx(36)
    with pytest.raises(RateLimitExceeded), limiter.acquire("bob", "gpt-4", {"rpm": 60}, [Limit.per_minute("rpm", 50)]):
        pass


def test_the_end_of_a_block_writes_adjustments_and_an_exception_nothing(limiter):
    limiter.set_system_defaults([quota(100)])
    with limiter.acquire("bob", "gpt-4", {"rpm": 10}) as lease:
        lease.adjust(rpm=5)
        lease.release(rpm=2)
        lease.consume(rpm=20)
        assert lease.consumed == {"rpm": 33} and lease.resources == ("gpt-4",)
        assert (lease.degraded, lease.bypassed, lease.overdrawn) == (False, False, [])
    assert limiter.available("bob", "gpt-4") == {"rpm": 67}
    with pytest.raises(LeaseExpiredError):
        lease.adjust(rpm=1)
    with pytest.raises(ZeroDivisionError), limiter.acquire("bob", "gpt-4", {"rpm": 10}) as lease:
        lease.adjust(rpm=5)
        raise ZeroDivisionError
    with limiter.acquire("bob", "gpt-4", {"rpm": 1}) as lease, pytest.raises(RateLimitExceeded):
        lease.consume(rpm=99)
    assert limiter.available("bob", "gpt-4") == {"rpm": 66}


def test_a_name_that_is_no_limit_is_logged_by_adjust_and_the_rest_counts(limiter, caplog):
    limiter.set_system_defaults([quota(100)])
    with limiter.acquire("bob", "gpt-4", {"rpm": 10}) as lease:
        lease.adjust(rpm=5, typo=1)
    assert "typo" in caplog.text and limiter.available("bob", "gpt-4") == {"rpm": 85}


def test_several_resources_are_taken_together(limiter):
    limiter.set_system_defaults([quota(100)])
    with limiter.acquire("bob", "gpt-4", {"rpm": 10}, also={"search": {"rpm": 20}}) as lease:
        search = lease.resource("search")
        search.adjust(rpm=-5)
        assert search.consumed == {"rpm": 15} and lease.resources == ("gpt-4", "search")
        with pytest.raises(ValidationError, match="not a resource of this lease"):
            lease.resource("other")
    assert limiter.available("bob", "search") == {"rpm": 85}
    with pytest.raises(ValidationError, match="combined"), limiter.acquire("bob", "a", {"rpm": 1}, [quota(5)], also={"b": {"rpm": 1}}):
        pass


def test_p22_a_cancelled_task_is_rolled_back(store):
    async def main() -> None:
        limiter = RateLimiter(repository=await Repository.open())
        await limiter.set_system_defaults([quota(100)])
        entered = asyncio.Event()

        async def body() -> None:
            async with limiter.acquire("bob", "gpt-4", {"rpm": 40}):
                entered.set()
                await asyncio.sleep(3_600)

        task = asyncio.create_task(body())
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while (await limiter.available("bob", "gpt-4"))["rpm"] != 100:
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(main(), 60))


def test_operators_manage_limits_entities_and_namespaces(limiter, store):
    repository = SyncRepository.open("jobs", url=store)
    assert repository.namespace_name == "jobs" and [n["name"] for n in repository.list_namespaces()] == ["default", "jobs"]
    limiter.set_resource_defaults("gpt-4", [quota(10)], principal="ops")
    assert limiter.get_resource_defaults("gpt-4")[0].capacity == 10
    assert limiter.list_resources_with_defaults() == ["gpt-4"]
    limiter.set_system_defaults([Limit.custom("rpm", 50, 10, 30)], on_unavailable=OnUnavailable.ALLOW)
    limits, policy = limiter.get_system_defaults()
    assert policy is OnUnavailable.ALLOW and (limits[0].capacity, limits[0].refill_amount, limits[0].refill_period_seconds) == (50, 10, 30)
    limiter.set_limits("bob", [quota(5)], resource="gpt-4")
    assert limiter.list_entities_with_custom_limits("gpt-4") == (["bob"], None)
    assert limiter.list_resources_with_entity_configs() == ["gpt-4"]
    limiter.delete_limits("bob", "gpt-4")
    assert limiter.get_limits("bob", "gpt-4") == []
    limiter.create_entity("bob", metadata={"plan": "pro"})
    with pytest.raises(EntityExistsError):
        limiter.create_entity("bob")
    with pytest.raises(EntityNotFoundError):
        limiter.create_entity("kid", parent_id="ghost")
    limiter.create_entity("kid", parent_id="bob")
    assert [child.id for child in limiter.get_children("bob")] == ["kid"]
    assert limiter.get_audit_events("$RESOURCE:gpt-4")[0].principal == "ops"
    assert [event.action for event in limiter.get_audit_events("bob", limit=1)] == ["entity_created"]
    limiter.disable_resource("gpt-4")
    with pytest.raises(ResourceDisabled) as caught, limiter.acquire("bob", "gpt-4", {"rpm": 1}):
        pass
    assert (caught.value.resource, caught.value.level) == ("gpt-4", "resource")
    limiter.enable_resource("gpt-4")
    limiter.disable_entity("bob")
    with pytest.raises(ResourceDisabled) as caught, limiter.acquire("bob", "gpt-4", {"rpm": 1}):
        pass
    assert (caught.value.entity_id, caught.value.level) == ("bob", "entity_default")
    limiter.enable_entity("bob")
    with limiter.acquire("bob", "gpt-4", {"rpm": 10}):
        pass
    assert limiter.top_up("bob", "gpt-4", {"rpm": 4}, idempotency_key="k").amounts == {"rpm": 4}
    assert limiter.reset_bucket("bob", "gpt-4").amounts == {"rpm": 6}
    repository.delete_namespace("jobs")
    (orphan,) = repository.list_orphan_namespaces()
    assert repository.recover_namespace(orphan["namespace_id"]) == "jobs"
    assert repository.get_namespace("nothing") is None
    with pytest.raises(NamespaceNotFoundError):
        repository.namespace("nothing")
    assert repository.namespace("default").namespace_name == "default"


def test_errors_are_those_that_programs_catch(limiter, store):
    with pytest.raises(ValidationError, match="no limits"), limiter.acquire("bob", "gpt-4", {"rpm": 1}):
        pass
    limiter.set_system_defaults([quota(10)])
    for entity, consume in (("bo#b", {"rpm": 1}), ("bob", {"rpm": -1}), ("bob", {"x": 1}), ("", {"rpm": 1})):
        with pytest.raises(ValidationError), limiter.acquire(entity, "gpt-4", consume):
            pass
    with pytest.raises(ValueError, match="repository"):
        RateLimiter(repository=object(), region="eu-west-1")
    with pytest.warns(DeprecationWarning, match="repository"):
        older = SyncRateLimiter()
    assert older.is_available() is True and older.get_system_defaults()[0][0].capacity == 10
    with pytest.raises(ZAELimiterError):
        Limit.per_minute("rpm", 0)
    with pytest.raises(ValidationError):
        Limit.quota("rpm", 5)
    for error in (ValidationError("f", "v", "why"), ResourceDisabled("e", "r", "l"), RateLimiterUnavailable("m", entity_id="e"), LeaseExpiredError()):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == str(error)
        assert {k: v for k, v in vars(again).items() if k != "cause"} == {k: v for k, v in vars(error).items() if k != "cause"}


def test_the_policy_of_the_call_holds_while_the_store_is_away(redis, monkeypatch):
    monkeypatch.setenv("TOLLGATE_STORE", f"{redis.url}?timeout=500ms")
    limiter = SyncRateLimiter(repository=SyncRepository.open())
    limiter.set_system_defaults([quota(10)])
    with limiter.acquire("bob", "gpt-4", {"rpm": 1}):
        pass
    redis.stop()
    try:
        with pytest.raises(RateLimiterUnavailable) as caught, limiter.acquire("bob", "gpt-4", {"rpm": 1}):
            pass
        assert (caught.value.entity_id, caught.value.resource) == ("bob", "gpt-4") and "entity=bob, resource=gpt-4]" in str(caught.value)
        with limiter.acquire("bob", "gpt-4", {"rpm": 1}, on_unavailable=OnUnavailable.ALLOW) as lease:
            lease.adjust(rpm=5)
            lease.consume(rpm=100)
            assert lease.degraded is True and lease.consumed == {"rpm": 106}
        with pytest.raises(RateLimiterUnavailable), limiter.acquire("bob", "gpt-4", {"rpm": 1}, on_unavailable=OnUnavailable.BLOCK):
            pass
        assert limiter.is_available() is False
    finally:
        redis.go_on()


def test_limits_compare_and_convert():
    limit = Limit.per_minute("tpm", 100, burst=150, soft=True)
    assert Limit.from_native(limit.to_native()) == limit == Limit.from_dict(limit.to_dict())
    assert (limit.refill_rate, limit.is_quota) == (100 / 60, False)
    daily = quota(5)
    assert Limit.from_native(daily.to_native()) == daily == Limit.from_dict(daily.to_dict())
    assert daily.is_quota and daily.reset_after_seconds == 86_400
    assert Limit.quota("rpm", 5, cron="0 0 * * *", tz="Europe/Berlin").to_native().kind == "quota"
