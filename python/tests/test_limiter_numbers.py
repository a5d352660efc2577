"""The numbers of the limiter that do not depend on when a test runs: a clock that stands still until it is advanced."""

from __future__ import annotations

import pytest

import tollgate as tg
from tollgate.testing import ManualClock


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def limiter(clock):
    return tg.Limiter("memory", clock=clock)


def test_debt_is_paid_back_before_the_next_call(limiter, clock):
    limiter.catalog.set_limits([tg.per_minute("tpm", 1_000)])
    with limiter.acquire("bob", "gpt-4", tpm=500) as lease:
        lease.adjust(tpm=+1_500)
    assert limiter.peek("bob", "gpt-4")["tpm"].available == -1_000
    denial = limiter.try_acquire("bob", "gpt-4", tpm=1)
    assert denial.retry_after == pytest.approx(60.06)
    assert limiter.ready_after("bob", "gpt-4", tpm=1) == denial.retry_after
    clock.advance(denial.retry_after)
    limiter.try_acquire("bob", "gpt-4", tpm=1).commit()


def test_two_children_share_their_parent_and_refusals_move_neither(limiter):
    catalog = limiter.catalog
    catalog.create_entity("team")
    catalog.set_limits([tg.per_minute("rpm", 100)], entity="team")
    for child in ("a", "b"):
        catalog.create_entity(child, parent="team", cascades=True)
        catalog.set_limits([tg.per_minute("rpm", 50)], entity=child)
        limiter.acquire(child, "gpt-4", rpm=50).commit()
    catalog.create_entity("c", parent="team", cascades=True)
    catalog.set_limits([tg.per_minute("rpm", 50)], entity="c")
    denial = limiter.try_acquire("c", "gpt-4", rpm=1)
    assert [(s.entity, s.available, s.exceeded) for s in denial.statuses] == [("c", 50, False), ("team", 0, True)]
    assert [s.entity for s in denial.violations] == ["team"] and denial.limited_by.entity == "team"
    usage = catalog.usage_summary("day", entity="team").limits["rpm"]
    assert usage.total == 100


def test_a_lowered_limit_clamps_at_once_and_a_raised_one_mints_nothing(limiter, clock):
    catalog = limiter.catalog
    catalog.set_limits([tg.per_minute("rpm", 1_000)])
    assert limiter.check("bob", "gpt-4", rpm=1_000)
    limiter.acquire("bob", "gpt-4", rpm=1).cancel()
    catalog.set_limits([tg.per_minute("rpm", 10)])
    with pytest.raises(tg.Impossible):
        limiter.try_acquire("bob", "gpt-4", rpm=50)
    assert limiter.try_acquire("bob", "gpt-4", rpm=1)
    catalog.set_limits([tg.per_minute("rpm", 1_000)])
    assert limiter.peek("bob", "gpt-4")["rpm"].available <= 10
    clock.advance(30)
    assert limiter.peek("bob", "gpt-4")["rpm"].available <= 510


def test_a_refund_into_a_bucket_that_has_refilled_stays_within_capacity(limiter, clock):
    limiter.catalog.set_limits([tg.per_minute("rpm", 10)])
    lease = limiter.acquire("bob", "gpt-4", rpm=10)
    clock.advance(60)
    lease.cancel()
    assert limiter.peek("bob", "gpt-4")["rpm"].available == 10


def test_a_waiter_is_admitted_when_its_time_has_come(limiter, clock):
    import threading

    limiter.catalog.set_limits([tg.per_minute("rpm", 1)])
    limiter.acquire("bob", "gpt-4", rpm=1).commit()
    waited: list[float | None] = []
    thread = threading.Thread(target=lambda: waited.append(limiter.acquire("bob", "gpt-4", {"rpm": 1}, timeout=90).waited))
    thread.start()
    while limiter.waiting == 0:
        pass
    clock.advance(60)
    thread.join(60)
    assert waited == [pytest.approx(60)]


def test_usage_of_two_hours_is_that_of_their_day(limiter, clock):
    limiter.catalog.set_limits([tg.per_minute("rpm", 100)])
    limiter.acquire("bob", "gpt-4", rpm=10).commit()
    clock.advance(14 * 3_600)
    limiter.acquire("bob", "gpt-4", rpm=10).commit()
    hours = [row.amounts["rpm"] for row in limiter.catalog.usage("hour", entity="bob")]
    days = [row.amounts["rpm"] for row in limiter.catalog.usage("day", entity="bob")]
    assert (hours, days) == ([10, 10], [20])
    by_hour = limiter.catalog.usage_by_window("hour", entity="bob")
    first, second = by_hour
    assert second - first == 14 * 3_600
    assert len(limiter.catalog.usage("hour", entity="bob", since=second).items) == 1
    assert len(limiter.catalog.usage("hour", entity="bob", until=second).items) == 1


def test_an_expired_token_is_refused_and_its_charge_stays(limiter, clock):
    limiter.catalog.set_limits([tg.quota("rpm", 10, after=10**8)])
    token = limiter.acquire("bob", "gpt-4", {"rpm": 4}, detached=60).into_token()
    clock.advance(10**7)
    with pytest.raises(tg.TokenError, match="expired"):
        limiter.resume(token)
    assert limiter.peek("bob", "gpt-4")["rpm"].available == 6


def test_p7_p28_an_observer_may_call_the_limiter_and_is_collected_with_it():
    import gc
    import weakref

    class Watching:
        def __init__(self) -> None:
            self.kinds: list[str] = []
            self.limiter: tg.Limiter | None = None

        def __call__(self, event: tg.Event) -> None:
            self.kinds.append(event.kind)
            self.limiter.peek("bob", "gpt-4")

    watching = Watching()
    limiter = watching.limiter = tg.Limiter("memory", observer=watching)
    limiter.catalog.set_limits([tg.per_hour("rpm", 1)])
    limiter.acquire("bob", "gpt-4", rpm=1).commit()
    limiter.try_acquire("bob", "gpt-4", rpm=1)
    assert watching.kinds == ["allowed", "denied"]
    gone = weakref.ref(watching)
    del watching, limiter
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("observer", [5, "x", object()])
def test_an_observer_that_listens_to_nothing_is_refused(observer):
    with pytest.raises(TypeError):
        tg.Limiter("memory", observer=observer)


def test_a_clock_is_for_memory_and_an_observer_does_not_pickle(tmp_path):
    import pickle

    url = f"file:{tmp_path}/limits.db"
    with pytest.raises(tg.InvalidValue, match="clock"):
        tg.Limiter(url, clock=ManualClock())
    with pytest.raises(TypeError, match="ManualClock"):
        tg.Limiter("memory", clock=5)
    limiter = tg.Limiter(url, observer=lambda event: None)
    assert pickle.loads(pickle.dumps(limiter)).store == limiter.store
