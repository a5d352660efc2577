"""Pools of sets."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref

import numpy as np
import pytest
import tollgate as tg
from tollgate.testing import ManualClock


def account(region, rpm=1, **settings):
    return tg.LimitSet([tg.per_minute("rpm", rpm)], config={"region": region}, **settings)


def regions(pool, count, **demand):
    leases = [pool.try_acquire(demand or {"rpm": 1}) for _ in range(count)]
    return [lease.config["region"] if lease else None for lease in leases]


def test_a_pool_takes_from_the_set_that_admits_and_says_which():
    blue, green = account("blue"), account("green")
    pool = tg.LimitPool([blue, green])
    leases = [pool.acquire(rpm=1) for _ in range(2)]
    assert {lease.config["region"] for lease in leases} == {"blue", "green"}
    assert {lease.set for lease in leases} == {blue, green}
    denial = pool.try_acquire(rpm=1)
    assert not denial and 0 < denial.retry_after <= 60
    with pytest.raises(tg.TimedOut):
        pool.acquire(rpm=1, timeout=0)
    with pytest.raises(tg.Impossible):
        pool.acquire(rpm=2)


def test_round_robin_begins_at_the_place_of_the_worker_and_goes_on():
    sets = [account(name, 100) for name in "abc"]
    pool = tg.LimitPool(sets, spread="round_robin")
    assert regions(pool, 4) == ["a", "b", "c", "a"]
    for index, order in [(0, "abca"), (1, "bcab"), (2, "cabc"), (3, "abca"), (np.int64(1), "bcab")]:
        mine = pool.for_worker(index)
        assert mine.index == index and regions(mine, 4) == list(order)
    # The others have not moved it.
    assert regions(pool, 1) == ["b"]


def test_soonest_takes_the_set_that_is_free_first():
    clock = ManualClock()
    slow, fast = (
        tg.LimitSet([tg.per_minute("rpm", rate, burst=1)], config={"region": name}, clock=clock)
        for name, rate in [("slow", 1), ("fast", 6)]
    )
    pool = tg.LimitPool([slow, fast], spread="soonest")
    assert sorted(regions(pool, 2)) == ["fast", "slow"]
    assert pool.try_acquire(rpm=1).retry_after == 10
    clock.advance(10)
    assert regions(pool, 2) == ["fast", None]
    fast.cool_down(1_000)
    clock.advance(50)
    assert regions(pool, 2) == ["slow", None]


def test_random_takes_from_all():
    pool = tg.LimitPool([account(name, 1_000) for name in "abc"], spread="random")
    assert set(regions(pool, 200)) == {"a", "b", "c"}


def test_a_function_chooses_the_set_to_try_first():
    sets, seen = [account("dear", 2), account("cheap", 1)], []

    def cheapest(sets):
        seen.append(sets)
        return [one.config["region"] for one in sets].index("cheap")

    pool = tg.LimitPool(sets, spread=cheapest)
    assert regions(pool, 4) == ["cheap", "dear", "dear", None]
    assert seen == [tuple(sets)] * 4 and pool.spread is cheapest
    assert regions(tg.LimitPool(sets, spread=lambda sets: np.int64(1)), 1) == [None]


@pytest.mark.parametrize("place", [2, -1, True, 1.0, None, "0", 2**70, float("nan")])
def test_a_function_that_chooses_no_place_is_an_error(place):
    pool = tg.LimitPool([account("a"), account("b")], spread=lambda sets: place)
    with pytest.raises(tg.InvalidValue, match="result of spread"):
        pool.try_acquire(rpm=1)
    with pytest.raises(tg.InvalidValue, match="result of spread"):
        pool.acquire(rpm=1)
    assert [status["rpm"].available for status in pool.peek()] == [1, 1]


def test_what_a_function_raises_comes_to_the_caller():
    def fail(sets):
        raise LookupError("no account")

    pool = tg.LimitPool([account("a")], spread=fail)
    for call in (pool.try_acquire, pool.acquire):
        with pytest.raises(LookupError, match="no account"):
            call(rpm=1)
    with pytest.raises(LookupError):
        asyncio.run(_awaited(pool.acquire_async(rpm=1)))


async def _awaited(pending):
    return await pending


def test_a_waiter_takes_the_first_set_that_gives_back():
    sets = [tg.LimitSet([tg.resource("slots", 1)], config={"n": n}) for n in range(3)]
    pool = tg.LimitPool(sets)
    held = [one.acquire() for one in sets]
    got = []
    thread = threading.Thread(target=lambda: got.append(pool.acquire(slots=1, timeout=100)))
    thread.start()
    while not all(status.waiting for status in pool.peek()):
        time.sleep(0.001)
    held[1].commit()
    thread.join(100)
    assert got[0].config["n"] == 1
    # It has left the other queues.
    assert [status.waiting for status in pool.peek()] == [0, 0, 0]


def test_every_verb_has_a_twin_for_event_loops():
    async def main():
        pool = tg.LimitPool([account("blue"), account("green")])
        async with pool.acquire_async(rpm=1) as first:
            second = await pool.try_acquire_async(rpm=1)
            assert {first.config["region"], second.config["region"]} == {"blue", "green"}
            assert not await pool.try_acquire_async(rpm=1)
        assert [status["rpm"].available for status in await pool.peek_async()] == [0, 0]
        with pytest.raises(tg.TimedOut):
            await pool.acquire_async(rpm=1, timeout=0)
        waiting = asyncio.create_task(_awaited(pool.acquire_async(rpm=1)))
        while not all(status.waiting for status in pool.peek()):
            await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert [status.waiting for status in pool.peek()] == [0, 0]

    asyncio.run(main())


def test_a_pool_over_stores_takes_from_each(store, name):
    sets = [
        tg.LimitSet([tg.resource("slots", 1), tg.per_day("rpm", 5)], store=store, name=f"{name}-{n}", config={"region": n})
        for n in range(2)
    ]
    pool = tg.LimitPool(sets)
    with pool.acquire(rpm=1) as first, pool.acquire(rpm=1) as second:
        assert {first.set, second.set} == set(sets)
        assert not pool.try_acquire(rpm=1)
    assert [status["rpm"].available for status in pool.peek()] == [4, 4]
    sets[0].cool_down(1_000)
    with pool.acquire(rpm=1, timeout=100) as lease:
        assert lease.config["region"] == 1


def test_a_pool_is_a_sequence_of_its_sets():
    sets = [account(name) for name in "abc"]
    pool = tg.LimitPool(iter(sets))
    assert len(pool) == 3 and pool.sets == tuple(sets) and pool[0] is sets[0] and pool[-1] is sets[2]
    assert list(pool) == sets and "3 sets" in repr(pool)
    for index in (3, -4):
        with pytest.raises(IndexError):
            pool[index]
    with pytest.raises(TypeError):
        pool["a"]


def test_demands_are_read_by_the_units_of_all_sets():
    usd = tg.Unit("USD", 2)
    pool = tg.LimitPool([account("a"), tg.LimitSet([tg.per_minute("budget", "5.00", unit=usd)], config={"region": "b"})])
    assert pool.try_acquire({"budget": "1.25"}).reserved == {"budget": 125}


@pytest.mark.parametrize(
    ("sets", "settings"),
    [
        ([], {}),
        ([5], {}),
        (["a"], {}),
        (5, {}),
        ([None], {}),
        (None, {"spread": "fastest"}),
        (None, {"spread": "\ud800"}),
        (None, {"spread": 5}),
        (None, {"spread": b"random"}),
        (None, {"nonesuch": 5}),
    ],
)
def test_bad_pools_are_refused(sets, settings):
    with pytest.raises((tg.InvalidValue, TypeError)):
        tg.LimitPool([account("a")] if sets is None else sets, **settings)


@pytest.mark.parametrize("index", [-1, True, 1.0, "1", None, 2**70, float("nan")])
def test_bad_indices_of_workers_are_refused(index):
    with pytest.raises((tg.InvalidValue, TypeError)):
        tg.LimitPool([account("a")]).for_worker(index)


def test_p28_a_pool_whose_function_has_the_pool_is_collected():
    class Choice:
        def __call__(self, sets):
            return 0

    choice = Choice()
    choice.pool = pool = tg.LimitPool([account("a", 100)], spread=choice)
    pool.acquire(rpm=1)
    watch = weakref.ref(choice)
    del choice, pool
    gc.collect()
    assert watch() is None
