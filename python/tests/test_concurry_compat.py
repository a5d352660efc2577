"""What Concurry's own tests do not notice: that the limits hold."""

from __future__ import annotations

import asyncio
import copy
import gc
import logging
import pickle
import random
import threading
import weakref
from fractions import Fraction

import pytest

from tollgate.compat import concurry
from tollgate.compat.concurry import (
    CallLimit,
    LimitPool,
    LimitSet,
    RateLimit,
    RateLimitAlgorithm,
    RateLimiter,
    RateWindow,
    ResourceLimit,
)

#: So long that nothing comes back while a test runs.
AGES = 100_000_000


def mixed(slots: int = 1, tokens: float = 100) -> concurry.BaseLimitSet:
    return LimitSet(
        limits=[
            CallLimit(window=AGES, capacity=1_000, algorithm="TokenBucket"),
            RateLimit(key="tokens", window=AGES, capacity=tokens, algorithm="TokenBucket"),
            ResourceLimit(key="slots", capacity=slots),
        ]
    )


def left(limits: concurry.BaseLimitSet, key: str) -> float:
    """How much of a limit is available now."""
    return limits._available(list(limits._limits_by_key).index(key))


def test_all_limits_are_taken_or_none() -> None:
    limits = mixed()
    held = limits.acquire({"tokens": 60})
    assert [left(limits, key) for key in ("call_count", "tokens", "slots")] == pytest.approx([999, 40, 0])
    refused = limits.try_acquire({"tokens": 10})
    assert not refused.successful and left(limits, "tokens") == pytest.approx(40)
    held.update({"tokens": 60})
    held.release()
    assert left(limits, "slots") == 1 and left(limits, "call_count") == pytest.approx(999)


def test_what_is_not_used_is_given_back_and_what_is_used_too_much_is_debt() -> None:
    limits = mixed()
    with limits.acquire({"tokens": 60}) as acquisition:
        acquisition.update({"tokens": 55})
        acquisition.update({"tokens": 10})
    assert left(limits, "tokens") == pytest.approx(90, abs=1e-3)
    with limits.acquire({"tokens": 90}) as acquisition:
        acquisition.update({"tokens": 150})
    assert left(limits, "tokens") == pytest.approx(-60, abs=1e-3)
    assert not limits.try_acquire({"tokens": 1}).successful


@pytest.mark.parametrize("algorithm", list(RateLimitAlgorithm))
def test_only_token_buckets_and_gcra_give_back(algorithm: RateLimitAlgorithm) -> None:
    limits = LimitSet(limits=[RateLimit(key="tokens", window=AGES, capacity=10, algorithm=algorithm)])
    with limits.acquire({"tokens": 8}) as acquisition:
        acquisition.update({"tokens": 3})
    refunds = algorithm in (RateLimitAlgorithm.TokenBucket, RateLimitAlgorithm.GCRA)
    assert limits.try_acquire({"tokens": 7}).successful is refunds


def test_calls_of_a_batch_are_reported_and_given_back() -> None:
    limits = LimitSet(limits=[CallLimit(window=AGES, capacity=10, algorithm="GCRA")])
    with pytest.raises(RuntimeError, match=r"Missing: \['call_count'\]"), limits.acquire({"call_count": 5}):
        pass
    with limits.acquire({"call_count": 5}) as acquisition:
        acquisition.update({"call_count": 0})
    assert left(limits, "call_count") == pytest.approx(5, abs=1e-3)
    with limits.acquire() as acquisition, pytest.raises(ValueError, match="implicit acquisition"):
        acquisition.update({"call_count": 0})


def test_a_missing_report_frees_everything_before_it_raises() -> None:
    limits = mixed()
    acquisition = limits.acquire({"tokens": 60})
    with pytest.raises(RuntimeError, match=r"Not all limits in the LimitSet were updated. Missing: \['tokens'\]"):
        acquisition.release()
    assert left(limits, "slots") == 1 and left(limits, "tokens") == pytest.approx(40)
    acquisition.release()
    assert acquisition._released


def test_p25_an_exception_leaves_the_block_as_it_is() -> None:
    limits = mixed()
    with pytest.raises(ZeroDivisionError), limits.acquire({"tokens": 60}):
        _ = 1 / 0
    assert left(limits, "slots") == 1 and left(limits, "tokens") == pytest.approx(40)

    async def leave() -> None:
        async with await limits.async_acquire({"tokens": 10}):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(leave())
    assert left(limits, "slots") == 1


def test_p26_a_failed_try_gives_nothing_back() -> None:
    limits = mixed()
    held = limits.acquire({"tokens": 60})
    with limits.try_acquire({"tokens": 1}) as refused:
        assert not refused.successful and not refused.acquisitions["tokens"].successful
    assert left(limits, "slots") == 0 and left(limits, "tokens") == pytest.approx(40)
    held._end()


def test_p24_an_acquisition_that_nobody_keeps_frees_its_resources() -> None:
    limits = mixed()
    limits.acquire({"tokens": 60})
    gc.collect()
    assert left(limits, "slots") == 1 and left(limits, "tokens") == pytest.approx(40)


def test_p27_one_acquisition_released_by_many_threads_counts_once() -> None:
    limits = mixed(slots=2)
    other = limits.acquire({"tokens": 0})
    for _ in range(50):
        acquisition = limits.acquire({"tokens": 40})
        acquisition.update({"tokens": 0})
        threads = [threading.Thread(target=acquisition.release) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert left(limits, "slots") == 1 and left(limits, "tokens") == pytest.approx(100)
    other._end()


def test_acquisitions_of_limits_show_and_take_reports() -> None:
    limits = mixed()
    acquisition = limits.acquire({"tokens": 60})
    tokens = acquisition.acquisitions["tokens"]
    assert list(acquisition.acquisitions) == ["tokens", "call_count", "slots"]
    assert (tokens.requested, tokens.used, tokens.limit) == (60, None, limits["tokens"])
    tokens.update(20)
    assert tokens.used == 20
    with pytest.raises(ValueError, match="negative"):
        acquisition.update({"tokens": -1})
    acquisition.update({"tokens": 30})
    acquisition.release()
    with pytest.raises(RuntimeError, match="already released"):
        tokens.update(10)
    assert left(limits, "tokens") == pytest.approx(70, abs=1e-3)


# Amounts


def test_p44_what_is_admitted_is_never_more_than_the_decimals_add_up_to() -> None:
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    for _ in range(300):
        capacity = float(f"{chance.uniform(1, 10):.{chance.randrange(17)}f}e{chance.randrange(-12, 12)}")
        algorithm = chance.choice(["TokenBucket", "GCRA", "FixedWindow"])
        limits = LimitSet(limits=[RateLimit(key="x", window=3e8, capacity=capacity, algorithm=algorithm)])
        admitted = Fraction(0)
        for _ in range(40):
            amount = capacity * chance.choice([chance.random(), 0.1, 0.3, 1.0])
            acquisition = limits.try_acquire({"x": amount})
            if acquisition.successful:
                admitted += Fraction(repr(amount))
        # What comes back in a second.
        allowance = Fraction(repr(capacity)) / 10**8
        assert admitted <= Fraction(repr(capacity)) + allowance, (seed, capacity, algorithm)


def test_p44_decimals_fit_as_they_are_written() -> None:
    def fits(capacity: float, *amounts: float) -> bool:
        # Nothing of a fixed window comes back before its end.
        limits = LimitSet(limits=[RateLimit(key="x", window=3e8, capacity=capacity, algorithm="FixedWindow")])
        return all(limits.try_acquire({"x": amount}).successful for amount in amounts)

    assert fits(0.3, 0.1, 0.1, 0.1)
    assert fits(0.1 + 0.2, 0.3) and fits(0.1 + 0.2, 0.1 + 0.2) and not fits(0.3, 0.1, 0.1, 0.1, 0.01)
    assert fits(1e-300, 1e-300) and fits(5e-324, 5e-324) and fits(1e300, 1e300)
    assert fits(1_000_000, 0.5, 999_999.5) and not fits(1_000_000, 0.5, 999_999.6)
    assert fits(float("inf"), 1e300, 10**400, 1)
    for capacity in (10**10, 10**12 + 1, 10**15):
        assert fits(capacity, *[1] * 50, capacity - 50) and not fits(capacity, *[1] * 50, capacity - 49)
    assert fits(12_345_678.901, 0.001, 12_345_678.9) and not fits(12_345_678.901, 0.001, 12_345_678.901)
    assert not fits(1e-300, 0, 1e-300, 1e-300)


@pytest.mark.parametrize("amount", [-1, -0.5, float("nan"), -(10**400)])
def test_p43_amounts_below_zero_are_refused(amount: float) -> None:
    limits = mixed()
    with pytest.raises(ValueError, match="0 or more"):
        limits.acquire({"tokens": amount})
    with pytest.raises(ValueError, match="negative"), limits.acquire({"tokens": 1}) as acquisition:
        acquisition.update({"tokens": amount})
    assert left(limits, "slots") == 1


def test_more_than_the_capacity_is_refused_at_once() -> None:
    limits = mixed()
    for amount in (101, 100.5, 10**400, float("inf")):
        with pytest.raises(ValueError, match=r"exceeds capacity 100.0 of limit 'tokens' and can never be fulfilled"):
            limits.acquire({"tokens": amount})
    with pytest.raises(ValueError, match="integers"):
        limits.acquire({"tokens": 1, "slots": 0.5})
    with pytest.raises(TypeError):
        limits.acquire({"tokens": "many"})
    with pytest.raises(ValueError, match="Must specify requested amount for RateLimit 'tokens'"):
        limits.acquire()


def test_p45_any_text_is_a_key() -> None:
    keys = ["tokens per min", "模型", "", "wcu", "x" * 500, "\ud800", "1st"]
    limits = LimitSet(limits=[RateLimit(key=key, window=AGES, capacity=5) for key in keys])
    with limits.acquire(dict.fromkeys(keys, 2)) as acquisition:
        acquisition.update(dict.fromkeys(list(keys), 2))
    assert [left(limits, key) for key in keys] == [3] * len(keys)
    assert list(limits.get_stats()) == keys
    with pytest.raises(ValueError, match="too many"):
        LimitSet(limits=[ResourceLimit(key=str(number), capacity=1) for number in range(33)])


def test_p50_unknown_keys_are_told_once_for_each_set(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for limits in (mixed(), mixed()):
            for _ in range(3):
                with limits.acquire({"tokens": 1, "typo": 5}) as acquisition:
                    acquisition.update({"tokens": 1, "other": 2})
                    acquisition.update({"other": 2})
    unknown = [record for record in caplog.records if "Unknown limit key 'typo'" in record.getMessage()]
    assert len(unknown) == 2 and "Available limit keys:" in unknown[0].getMessage()
    assert len([record for record in caplog.records if "Cannot update limit 'other'" in record.getMessage()]) == 6


def test_p47_a_dict_that_changes_while_it_is_read_does_no_harm() -> None:
    limits = mixed()
    requested: dict[object, object] = {"tokens": 1}

    class Shrinking(float):
        def __float__(self) -> float:
            requested.clear()
            return 1.0

    requested["tokens"] = Shrinking(1)
    limits.acquire(requested)._end()
    assert left(limits, "slots") == 1


# Waiting


def test_waiters_are_served_in_the_order_of_their_arrival(run_python) -> None:
    program = """
    import threading
    from tollgate.compat.concurry import LimitSet, ResourceLimit

    limits = LimitSet(limits=[ResourceLimit(key="slots", capacity=1)])
    served, held = [], limits.acquire()

    def wait(number):
        with limits.acquire():
            served.append(number)

    threads = []
    for number in range(20):
        threads.append(threading.Thread(target=wait, args=(number,)))
        threads[-1].start()
        while limits._waiting() <= number:
            pass
    assert not limits.try_acquire().successful
    held.release()
    for thread in threads:
        thread.join()
    print(served == list(range(20)), limits._available(0), limits._waiting())
    """
    assert run_python(program) == "True 1.0 0"


def test_threads_and_tasks_never_hold_more_than_there_is(run_python) -> None:
    program = """
    import asyncio, threading
    from tollgate.compat.concurry import LimitSet, ResourceLimit, RateLimit

    limits = LimitSet(limits=[
        ResourceLimit(key="slots", capacity=3),
        RateLimit(key="tokens", window=100_000_000, capacity=100_000, algorithm="TokenBucket"),
    ], shared=True, mode="thread")
    lock, holding, most, done = threading.Lock(), 0, 0, 0

    def enter():
        global holding, most
        with lock:
            holding += 1
            most = max(most, holding)

    def leave():
        global holding, done
        with lock:
            holding -= 1
            done += 1

    def work():
        for _ in range(100):
            with limits.acquire({"tokens": 10}) as acquisition:
                enter()
                acquisition.update({"tokens": 5})
                leave()

    async def task():
        for _ in range(20):
            async with await limits.async_acquire({"tokens": 10}) as acquisition:
                enter()
                await asyncio.sleep(0)
                acquisition.update({"tokens": 5})
                leave()

    async def tasks():
        await asyncio.gather(*(task() for _ in range(20)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    threads += [threading.Thread(target=lambda: asyncio.run(tasks())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(most <= 3, done, limits._available(0), 100_000 - round(limits._available(1)))
    """
    assert run_python(program) == "True 1200 3.0 6000"


def test_p10_a_thousand_tasks_wait_without_a_thread(run_python) -> None:
    program = """
    import asyncio, threading
    from tollgate.compat.concurry import LimitSet, ResourceLimit

    async def main():
        limits = LimitSet(limits=[ResourceLimit(key="slots", capacity=1)])
        held = await limits.async_acquire()
        before = threading.active_count()

        async def wait():
            async with await limits.async_acquire(timeout=60):
                pass

        tasks = [asyncio.create_task(wait()) for _ in range(1_000)]
        while limits._waiting() < 1_000:
            await asyncio.sleep(0)
        print(threading.active_count() - before)
        for task in tasks[::2]:
            task.cancel()
        held.release()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        print(sum(result is None for result in results), limits._available(0), limits._waiting())

    asyncio.run(main())
    """
    assert run_python(program) == "0\n500 1.0 0"


def test_p14_a_task_that_is_cancelled_after_the_grant_gives_everything_back(run_python) -> None:
    program = """
    import asyncio
    from tollgate.compat.concurry import LimitSet, RateLimit, ResourceLimit

    async def main():
        limits = LimitSet(limits=[
            ResourceLimit(key="slots", capacity=1),
            RateLimit(key="tokens", window=100_000_000, capacity=1_000, algorithm="TokenBucket"),
        ])
        got = 0
        for turn in range(500):
            held = limits.acquire({"tokens": 0})
            task = asyncio.create_task(limits.async_acquire({"tokens": 100}))
            while limits._waiting() == 0:
                await asyncio.sleep(0)
            held.update({"tokens": 0})
            held.release()
            for _ in range(turn % 4):
                await asyncio.sleep(0)
            task.cancel()
            try:
                acquisition = await task
            except asyncio.CancelledError:
                pass
            else:
                got += 1
                acquisition.update({"tokens": 0})
                acquisition.release()
            assert limits._available(0) == 1, turn
            assert limits._available(1) == 1_000, (turn, limits._available(1))
        return 0 < got < 500

    print(asyncio.run(main()))
    """
    assert run_python(program) == "True"


def test_p1_a_signal_ends_a_wait_and_nothing_is_taken(run_python) -> None:
    program = """
    import os, signal, threading
    from tollgate.compat.concurry import LimitSet, RateLimit, ResourceLimit

    limits = LimitSet(limits=[
        ResourceLimit(key="slots", capacity=1),
        RateLimit(key="tokens", window=100_000_000, capacity=100, algorithm="GCRA"),
    ])
    held = limits.acquire({"tokens": 10})

    def interrupt():
        while limits._waiting() == 0:
            pass
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    try:
        limits.acquire({"tokens": 50})
    except KeyboardInterrupt:
        print("interrupted", limits._waiting(), round(limits._available(1)))
    """
    assert run_python(program) == "interrupted 0 90"


def test_p8_time_limits() -> None:
    limits = mixed()
    held = limits.acquire({"tokens": 1})
    for timeout in (0, -1, 0.01, 1e-320):
        with pytest.raises(TimeoutError, match=f"Failed to acquire all limits within {timeout}s"):
            limits.acquire({"tokens": 1}, timeout=timeout)
    with pytest.raises(ValueError, match="nan"):
        limits.acquire({"tokens": 1}, timeout=float("nan"))
    held._end()
    for timeout in (None, float("inf"), 1e300, 10**400):
        limits.acquire({"tokens": 1}, timeout)._end()


def test_p9_a_wait_in_a_running_loop_ends_with_its_time_limit() -> None:
    async def main() -> None:
        limits = mixed()
        async with await limits.async_acquire({"tokens": 1}) as acquisition:
            with pytest.raises(TimeoutError):
                limits.acquire({"tokens": 1}, timeout=0.05)
            with pytest.raises(TimeoutError):
                await limits.async_acquire({"tokens": 1}, timeout=0.05)
            acquisition.update({"tokens": 1})
        assert left(limits, "slots") == 1

    asyncio.run(main())


# Objects


def test_limits_are_frozen_equal_and_picklable() -> None:
    limits = [
        RateLimit(key="tokens", per="hour", capacity=0.5, algorithm=RateLimitAlgorithm.GCRA),
        CallLimit(window=RateWindow.Minutely, capacity=3),
        ResourceLimit(key="slots", capacity=2),
    ]
    for limit in limits:
        for other in (pickle.loads(pickle.dumps(limit)), copy.deepcopy(limit)):
            assert other == limit and hash(other) == hash(limit) and other is not limit
        with pytest.raises(ValueError):
            limit.capacity = 9
        with pytest.raises(AttributeError):
            limit.acquire()
    assert pickle.loads(pickle.dumps(limits[0])).algorithm is RateLimitAlgorithm.GCRA
    with pytest.raises(TypeError):
        RateLimit("tokens", 60, 1)
    for wrong in ({"window": 60, "per": 60}, {"window": True}, {"window": 0}, {}, {"window": 60, "burst": 1}):
        with pytest.raises(ValueError):
            RateLimit(key="tokens", capacity=1, **wrong)


def test_p41_members_of_other_enums_are_taken_by_name_and_given_back() -> None:
    import enum

    Foreign = enum.Enum("Foreign", {"GCRA": "g", "RoundRobin": "r", "Threads": "t"})
    limit = RateLimit(key="tokens", window=60, capacity=1, algorithm=Foreign.GCRA)
    assert limit.algorithm is Foreign.GCRA and limit.get_stats()["algorithm"] == "gcra"
    limits = LimitSet(limits=[limit], shared=True, mode=Foreign.Threads)
    assert LimitPool(limit_sets=[limits], load_balancing=Foreign.RoundRobin).load_balancing is Foreign.RoundRobin
    assert RateLimitAlgorithm("generic cell-rate") is RateLimitAlgorithm.GCRA and RateWindow("per mins") is RateWindow.Minutely
    with pytest.raises(ValueError, match="Could not find enum with value"):
        LimitSet(limits=[limit], mode="nonsense")


def test_p35_sets_and_acquisitions_in_memory_are_not_pickled() -> None:
    limits = mixed()
    for thing in (limits, limits.acquire({"tokens": 1})):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(thing)


def test_p28_a_set_is_collected_with_its_limits() -> None:
    limits = mixed()
    acquisition = limits.acquire({"tokens": 1})
    assert acquisition.acquisitions["tokens"].limit.get_stats()["available_tokens"] == pytest.approx(99)
    dead = weakref.ref(limits)
    del limits, acquisition
    gc.collect()
    assert dead() is None


def test_a_limit_belongs_to_the_last_set_that_took_it() -> None:
    limit = RateLimit(key="tokens", window=AGES, capacity=10, algorithm="TokenBucket")
    one, other = LimitSet(limits=[limit]), LimitSet(limits=[limit])
    one.acquire({"tokens": 4})
    assert limit.can_acquire(10) and round(one.get_stats()["tokens"]["available_tokens"]) == 6
    other.acquire({"tokens": 3})
    assert not limit.can_acquire(8) and round(limit.get_stats()["available_tokens"]) == 7


def test_p48_a_pool_rotates_and_its_config_is_a_copy() -> None:
    sets = [
        LimitSet(limits=[RateLimit(key="tokens", window=AGES, capacity=9)], config={"region": region})
        for region in "abc"
    ]
    pool = LimitPool(limit_sets=sets, worker_index=1)
    taken = [pool.try_acquire({"tokens": 5}) for _ in range(4)]
    assert [one.config["region"] for one in taken] == ["b", "c", "a", "b"]
    assert [one.successful for one in taken] == [True, True, True, False]
    taken[0].config["region"] = "x"
    assert sets[1].config == {"region": "b"} and sets[1].try_acquire({"tokens": 1}).config == {"region": "b"}


@pytest.mark.parametrize("algorithm", list(RateLimitAlgorithm))
def test_a_rate_by_itself_admits_its_capacity_and_no_more(algorithm: RateLimitAlgorithm) -> None:
    limiter = RateLimiter(algorithm, max_rate=1e-7, capacity=7, window_seconds=AGES)
    assert sum(limiter.try_acquire() for _ in range(50)) == 7
    assert not limiter.can_acquire() and not limiter.acquire(1, timeout=0.01) and not limiter.acquire(8, timeout=1)
    limiter.refund(3)
    refunds = algorithm in (RateLimitAlgorithm.TokenBucket, RateLimitAlgorithm.GCRA)
    assert sum(limiter.try_acquire() for _ in range(50)) == (3 if refunds else 0)
    assert isinstance(limiter.get_stats()["utilization"], float)


def test_rates_of_zero_and_infinity() -> None:
    never = RateLimiter("TokenBucket", max_rate=0, capacity=2)
    assert sum(never.try_acquire() for _ in range(5)) == 2 and not never.acquire(timeout=0.05)
    always = RateLimiter("GCRA", max_rate=float("inf"), capacity=float("inf"))
    assert always.try_acquire(10**12) and always.get_stats()["available_tokens"] == float("inf")
