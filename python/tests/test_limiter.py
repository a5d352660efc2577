"""The limiter: acquiring for entities, on every kind of store that one host has."""

from __future__ import annotations

import asyncio
import copy
import os
import pickle
import threading
import uuid

import pytest

import tollgate as tg


@pytest.fixture(params=["memory", "file", "shm"])
def url(request, tmp_path):
    if request.param == "memory":
        return "memory"
    if request.param == "file":
        return f"file:{tmp_path}/limits.db"
    return "shm:"


@pytest.fixture
def limiter(url):
    return tg.Limiter(url)


def family(limiter: tg.Limiter, parent: int, child: int) -> None:
    """A child that cascades to its parent, with limits of their own."""
    catalog = limiter.catalog
    catalog.create_entity("project")
    catalog.create_entity("key-1", parent="project", cascades=True)
    catalog.set_limits([tg.per_hour("rpm", parent)], entity="project")
    catalog.set_limits([tg.per_hour("rpm", child)], entity="key-1")


def test_a_child_is_charged_with_its_parent_and_a_refusal_has_the_statuses_of_both(limiter):
    family(limiter, parent=10, child=8)
    limiter.acquire("key-1", "gpt-4", {"rpm": 6}).commit()
    denial = limiter.try_acquire("key-1", "gpt-4", rpm=5)
    assert not denial
    assert [(s.entity, s.resource, s.name, s.available, s.exceeded) for s in denial.statuses] == [
        ("key-1", "gpt-4", "rpm", 2, True),
        ("project", "gpt-4", "rpm", 4, True),
    ]
    assert 0 < denial.retry_after <= 3600
    assert denial.limited_by.entity == "key-1"
    answer = denial.as_dict()
    assert answer["limits"][1]["entity"] == "project" and answer["limits"][1]["exceeded"] is True
    # Neither has moved.
    assert [s.available for s in limiter.peek("key-1", "gpt-4").statuses] == [2, 4]


def test_the_first_level_that_has_limits_wins_whole(limiter):
    catalog = limiter.catalog
    levels = [
        ({}, 10),
        ({"resource": "gpt-4"}, 20),
        ({"entity": "bob"}, 30),
        ({"entity": "bob", "resource": "gpt-4"}, 40),
    ]
    for level, amount in levels:
        catalog.set_limits([tg.per_hour("rpm", amount)], **level)
    sources = ["system", "resource", "entity_default", "entity"]
    for (level, amount), source in reversed(list(zip(levels, sources))):
        found = limiter.peek("bob", "gpt-4")
        assert found["rpm"].limit.amount == amount
        assert found.sources == {("bob", "gpt-4"): source}
        assert catalog.delete_limits(**level) is True
    with pytest.raises(tg.NoLimits):
        limiter.acquire("bob", "gpt-4", {"rpm": 1})


def test_also_takes_several_resources_or_none(limiter):
    limiter.catalog.set_limits([tg.per_hour("rpm", 10)])
    lease = limiter.acquire("bob", "gpt-4", {"rpm": 4}, also={"embeddings": {"rpm": 9}})
    lease.adjust(rpm=-9, resource="embeddings")
    lease.commit()
    assert limiter.peek("bob", "embeddings")["rpm"].available == 10
    denial = limiter.try_acquire("bob", "gpt-4", {"rpm": 7}, also={"embeddings": {"rpm": 1}})
    assert not denial and [(s.resource, s.exceeded) for s in denial.statuses] == [("gpt-4", True), ("embeddings", False)]
    assert limiter.peek("bob", "embeddings")["rpm"].available == 10
    with pytest.raises(tg.InvalidDemand, match="twice"):
        limiter.acquire("bob", "gpt-4", {"rpm": 1}, also={"gpt-4": {"rpm": 1}})
    with pytest.raises(tg.InvalidDemand, match="not for resource"):
        limiter.acquire("bob", "gpt-4", {"rpm": 1}).adjust(rpm=1, resource="other")


def test_limits_of_the_call_override_the_stored_ones(limiter):
    limiter.catalog.set_limits([tg.per_day("rpm", 100)])
    limiter.acquire("bob", "gpt-4", {"rpm": 1}).commit()
    with pytest.raises(tg.Impossible):
        limiter.acquire("bob", "gpt-4", {"rpm": 50}, limits=[tg.per_hour("rpm", 10)])
    limiter.acquire("bob", "gpt-4", {"rpm": 5}, limits=[tg.per_hour("rpm", 10)]).commit()


def test_a_lease_settles_reports_adjusts_consumes_and_cancels(limiter):
    limiter.catalog.set_limits([tg.per_day("tpm", 1_000), tg.resource("slots", 2)])

    def left() -> tuple[int, int]:
        found = limiter.peek("bob", "gpt-4")
        return found["tpm"].available, found["slots"].available

    lease = limiter.acquire("bob", "gpt-4", {"tpm": 500})
    assert (lease.entity, lease.resource, lease.set, lease.limiter) == ("bob", "gpt-4", None, limiter)
    assert lease.reserved == {"tpm": 500, "slots": 1} and left() == (500, 1)
    lease.report(tpm=100)
    assert lease.reported == {"tpm": 100}
    lease.adjust(tpm=+20)
    assert lease.reported == {"tpm": 120}
    assert lease.heartbeat() is True and lease.lost is False and lease.degraded is False
    lease.commit()
    assert left() == (880, 2)
    lease = limiter.acquire("bob", "gpt-4", {"tpm": 100})
    lease.consume(tpm=50)
    assert lease.reserved["tpm"] == 150 and left() == (730, 1)
    with pytest.raises(tg.RateLimited):
        lease.consume(tpm=900)
    lease.cancel()
    assert left() == (880, 2)
    lease = limiter.acquire("bob", "gpt-4", {"tpm": 100})
    lease.settle(tpm=2_000)
    assert left() == (-1_120, 2)
    with pytest.raises(tg.LeaseEnded):
        lease.settle(tpm=1)


def test_p25_an_exception_in_the_block_gives_everything_back_and_comes_out(limiter):
    limiter.catalog.set_limits([tg.per_day("tpm", 100), tg.resource("slots", 1)])
    with pytest.raises(ZeroDivisionError):
        with limiter.acquire("bob", "gpt-4", {"tpm": 60}) as lease:
            lease.adjust(tpm=30)
            raise ZeroDivisionError
    found = limiter.peek("bob", "gpt-4")
    assert (found["tpm"].available, found["slots"].available) == (100, 1)
    with limiter.acquire("bob", "gpt-4", {"tpm": 60}) as lease:
        lease.adjust(tpm=-10)
    assert limiter.peek("bob", "gpt-4")["tpm"].available == 50


def test_p26_a_denial_as_a_context_manager_gives_nothing_back(limiter):
    limiter.catalog.set_limits([tg.resource("slots", 1)])
    held = limiter.acquire("bob", "gpt-4")
    denial = limiter.try_acquire("bob", "gpt-4")
    with pytest.raises((TypeError, AttributeError)), denial:
        pass
    assert not limiter.try_acquire("bob", "gpt-4")
    held.commit()
    limiter.try_acquire("bob", "gpt-4").commit()


def test_a_waiter_is_served_in_its_turn_and_times_out_with_the_statuses(limiter):
    family(limiter, parent=10, child=8)
    limiter.acquire("key-1", "gpt-4", {"rpm": 8}).commit()
    with pytest.raises(tg.TimedOut) as caught:
        limiter.acquire("key-1", "gpt-4", {"rpm": 8}, timeout=1)
    assert [status.entity for status in caught.value.statuses] == ["key-1", "project"]
    assert caught.value.limited_by.entity == "key-1"
    with pytest.raises(tg.Impossible, match="can never fit"):
        limiter.acquire("key-1", "gpt-4", {"rpm": 9})


def test_a_thread_waits_until_another_gives_back(limiter):
    limiter.catalog.set_limits([tg.resource("slots", 1)])
    held = limiter.acquire("bob", "gpt-4")
    got: list[float | None] = []

    def wait() -> None:
        with limiter.acquire("bob", "gpt-4", timeout=60) as lease:
            got.append(lease.waited)

    thread = threading.Thread(target=wait)
    thread.start()
    while limiter.waiting == 0:
        pass
    held.commit()
    thread.join(60)
    assert got and got[0] > 0
    assert limiter.waiting == 0


def test_the_async_twins_do_the_same(url):
    async def main() -> None:
        limiter = await tg.Limiter.open_async(url)
        catalog = limiter.catalog
        await catalog.set_limits_async([tg.per_hour("rpm", 10), tg.resource("slots", 1)])
        async with limiter.acquire_async("bob", "gpt-4", {"rpm": 4}) as lease:
            assert not await limiter.try_acquire_async("bob", "gpt-4", rpm=1)
            waiter = asyncio.create_task(limiter.acquire_async("bob", "gpt-4", {"rpm": 1}, timeout=60))
            while limiter.waiting == 0:
                await asyncio.sleep(0)
            lease.adjust(rpm=-2)
        async with await waiter:
            pass
        found = await limiter.peek_async("bob", "gpt-4")
        assert found["rpm"].available == 7
        assert not await limiter.check_async("bob", "gpt-4", rpm=8)
        assert 0 < await limiter.ready_after_async("bob", "gpt-4", rpm=8) <= 3600
        with pytest.raises(tg.RateLimited):
            async with limiter.acquire_async("bob", "gpt-4", {"rpm": 7}, timeout=0) as lease:
                await lease.consume_async(rpm=1)

    asyncio.run(main())


def test_p13_p23_a_cancelled_task_takes_nothing(limiter):
    limiter.catalog.set_limits([tg.per_hour("rpm", 10), tg.resource("slots", 1)])

    async def body() -> None:
        async with limiter.acquire_async("bob", "gpt-4", {"rpm": 4}):
            await asyncio.sleep(3600)

    async def main() -> None:
        tasks = [asyncio.create_task(body()) for _ in range(20)]
        while limiter.waiting < 19:
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(error, asyncio.CancelledError) for error in done)
        while True:
            found = await limiter.peek_async("bob", "gpt-4")
            if (found["rpm"].available, found["slots"].available) == (10, 1):
                break
            await asyncio.sleep(0.01)
        assert limiter.waiting == 0

    asyncio.run(asyncio.wait_for(main(), 60))


def test_p14_a_grant_and_a_cancellation_in_the_same_turn_of_the_loop_leave_nothing(limiter):
    import random

    limiter.catalog.set_limits([tg.quota("rpm", 10, after=86_400), tg.resource("slots", 1)])

    async def main() -> None:
        for _ in range(100):
            held = await limiter.acquire_async("bob", "gpt-4", rpm=1)
            task = asyncio.create_task(take())
            while limiter.waiting == 0:
                await asyncio.sleep(0)
            ends = [held.cancel_async, lambda: cancel(task)]
            random.shuffle(ends)
            for end in ends:
                await end()
            done = await asyncio.gather(task, return_exceptions=True)
            if isinstance(done[0], tg.Lease):
                await done[0].cancel_async()
        while True:
            found = await limiter.peek_async("bob", "gpt-4")
            if (found["rpm"].available, found["slots"].available) == (10, 1):
                return
            await asyncio.sleep(0.01)

    async def take() -> tg.Lease:
        return await limiter.acquire_async("bob", "gpt-4", {"rpm": 1}, timeout=60)

    async def cancel(task: asyncio.Task[tg.Lease]) -> None:
        task.cancel()

    asyncio.run(asyncio.wait_for(main(), 100))


def test_p9_a_wait_in_a_running_loop_is_refused(limiter):
    limiter.catalog.set_limits([tg.resource("slots", 1)])

    async def main() -> None:
        held = limiter.try_acquire("bob", "gpt-4") if limiter.reach == "process" else await limiter.acquire_async("bob", "gpt-4")
        with pytest.raises(tg.WouldBlockLoop):
            limiter.acquire("bob", "gpt-4", timeout=5)
        await held.commit_async()

    asyncio.run(main())


def test_p20_p21_an_awaitable_is_awaited_once_and_does_nothing_before(limiter):
    limiter.catalog.set_limits([tg.per_hour("rpm", 10)])

    async def main() -> None:
        with pytest.warns(RuntimeWarning, match="never awaited"):
            limiter.acquire_async("bob", "gpt-4", rpm=1)
        with pytest.warns(RuntimeWarning, match="never awaited"):
            limiter.try_acquire_async("bob", "gpt-4", rpm=1)
        awaitable = limiter.acquire_async("bob", "gpt-4", rpm=1)
        await (await awaitable).commit_async()
        with pytest.raises(RuntimeError, match="reuse"):
            await awaitable
        assert (await limiter.peek_async("bob", "gpt-4"))["rpm"].available == 9

    asyncio.run(main())


def test_p24_only_a_dropped_lease_that_held_resources_warns(limiter, recwarn):
    limiter.catalog.set_limits([tg.per_hour("rpm", 10)])
    limiter.acquire("bob", "gpt-4", rpm=1)
    assert not [w for w in recwarn if w.category is ResourceWarning]
    limiter.catalog.set_limits([tg.per_hour("rpm", 10), tg.resource("slots", 1)])
    with pytest.warns(ResourceWarning, match="without an end"):
        limiter.acquire("bob", "gpt-4", rpm=1)


def test_p27_eight_threads_settle_one_lease_and_one_succeeds(limiter):
    limiter.catalog.set_limits([tg.per_day("tpm", 1_000)])
    for _ in range(20):
        lease = limiter.acquire("bob", "gpt-4", tpm=10)
        outcomes: list[str] = []
        barrier = threading.Barrier(8)

        def settle(lease=lease, outcomes=outcomes, barrier=barrier) -> None:
            barrier.wait()
            try:
                lease.settle(tpm=0)
                outcomes.append("settled")
            except tg.LeaseEnded:
                outcomes.append("ended")

        threads = [threading.Thread(target=settle) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes) == ["ended"] * 7 + ["settled"]
    assert limiter.peek("bob", "gpt-4")["tpm"].available == 1_000


def test_p35_a_limiter_in_memory_and_a_lease_do_not_pickle():
    limiter = tg.Limiter("memory")
    limiter.catalog.set_limits([tg.per_hour("rpm", 10)])
    with pytest.raises(TypeError, match="shm:"):
        pickle.dumps(limiter)
    lease = limiter.acquire("bob", "gpt-4", rpm=1)
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled"):
            attempt(lease)


def test_p36_a_pickled_limiter_is_the_same_one(tmp_path):
    limiter = tg.Limiter(f"file:{tmp_path}/limits.db", namespace="jobs", cache_ttl=0, on_unavailable="local")
    limiter.catalog.set_limits([tg.per_hour("rpm", 10)])
    again = pickle.loads(pickle.dumps(limiter))
    assert (again.namespace, again.store, repr(again)) == (limiter.namespace, limiter.store, repr(limiter))
    again.acquire("bob", "gpt-4", rpm=4).commit()
    assert limiter.peek("bob", "gpt-4")["rpm"].available == 6
    before = len(os.listdir("/proc/self/fd"))
    copies = [pickle.loads(pickle.dumps(limiter)) for _ in range(100)]
    assert len(os.listdir("/proc/self/fd")) - before < 10, "one handle of the store"
    assert copies[-1].namespace == "jobs"


def test_p38_a_password_is_in_no_text():
    password = "hunter" + uuid.uuid4().hex
    with pytest.raises(tg.Error) as caught:
        tg.Limiter(f"redis://user:{password}@127.0.0.1:1", connect_within=0, store_timeout=1)
    assert password not in str(caught.value) and password not in repr(caught.value)
    with pytest.raises(tg.Error) as caught:
        tg.Limiter(f"redis://user:{password}@127.0.0.1:notaport")
    assert password not in str(caught.value)


def test_p39_p40_public_objects_pickle_by_their_public_names(limiter):
    family(limiter, parent=10, child=8)
    limiter.acquire("key-1", "gpt-4", {"rpm": 8}).commit()
    denial = limiter.try_acquire("key-1", "gpt-4", rpm=1)
    for value in (denial, limiter.peek("key-1", "gpt-4"), limiter.catalog.get_entity("key-1")):
        again = pickle.loads(pickle.dumps(value))
        assert type(again).__module__ == "tollgate" and repr(again) == repr(value)
    with pytest.raises(tg.TimedOut) as caught:
        limiter.acquire("key-1", "gpt-4", {"rpm": 8}, timeout=0.1)
    again = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(again, tg.TimedOut) and again.statuses[1].entity == "project"
    assert again.retry_after == caught.value.retry_after and str(again) == str(caught.value)
    for cls in (tg.NotFound, tg.NoLimits, tg.AlreadyExists, tg.Conflict, tg.Disabled, tg.TokenError):
        error = pickle.loads(pickle.dumps(cls("why")))
        assert type(error) is cls and str(error) == "why" and cls.__module__ == "tollgate"


def test_settings_are_kept(tmp_path):
    limiter = tg.Limiter("memory", namespace="jobs", principal="deploy", cache_ttl=0, on_drop="refund", waiters_max=0)
    assert (limiter.namespace, limiter.catalog.principal, limiter.store) == ("jobs", "deploy", "memory")
    assert repr(limiter) == '<Limiter "memory" namespace="jobs">'
    limiter.catalog.set_limits([tg.per_hour("rpm", 1)])
    limiter.acquire("bob", "gpt-4", rpm=1)
    assert limiter.peek("bob", "gpt-4")["rpm"].available == 1, "dropped, and given back"
    limiter.acquire("bob", "gpt-4", rpm=1).commit()
    with pytest.raises(tg.QueueFull):
        limiter.acquire("bob", "gpt-4", rpm=1)
    with pytest.raises(tg.NotFound):
        tg.Limiter(f"file:{tmp_path}/limits.db", namespace="jobs", create_namespace=False)


def test_p3_a_signal_handler_calls_the_limiter_that_the_main_thread_waits_on(run_python):
    printed = run_python(
        """
        import os, signal, threading, time
        import tollgate as tg

        class Stop(Exception):
            pass

        limiter = tg.Limiter("memory")
        limiter.catalog.set_limits([tg.resource("slots", 1)])
        held = limiter.acquire("bob", "gpt-4")

        def handler(*_):
            print(bool(limiter.try_acquire("bob", "gpt-4")))
            raise Stop

        signal.signal(signal.SIGUSR1, handler)

        def kick():
            while limiter.waiting == 0:
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGUSR1)

        threading.Thread(target=kick).start()
        try:
            limiter.acquire("bob", "gpt-4")
        except Stop:
            print("stopped", limiter.waiting)
        held.commit()
        print(bool(limiter.try_acquire("bob", "gpt-4")))
        """,
        PYTHONWARNINGS="ignore",
    )
    assert printed.split() == ["False", "stopped", "0", "True"]


def test_p31_p33_a_forked_child_uses_the_limiter_and_not_its_parents_lease(run_python, tmp_path):
    printed = run_python(
        """
        import os, sys
        import tollgate as tg

        for url in ("memory", "shm:", f"file:{sys.argv[1]}/limits.db"):
            limiter = tg.Limiter(url)
            limiter.catalog.set_limits([tg.resource("slots", 2), tg.per_day("rpm", 100)])
            lease = limiter.acquire("bob", "gpt-4", rpm=10)
            for _ in range(5):
                pid = os.fork()
                if pid == 0:
                    try:
                        lease.settle(rpm=0)
                        code = 1
                    except tg.LeaseEnded:
                        code = 0
                    del lease
                    with limiter.acquire("bob", "gpt-4", {"rpm": 1}, timeout=30):
                        pass
                    os._exit(code)
                assert os.waitpid(pid, 0)[1] == 0, url
            other = limiter.acquire("bob", "gpt-4", rpm=1)
            assert not limiter.try_acquire("bob", "gpt-4", rpm=1), "the children freed nothing of the parent's"
            lease.settle(rpm=10)
            other.commit()
            expected = 89 if url == "memory" else 84
            assert limiter.peek("bob", "gpt-4")["rpm"].available == expected, url
        print("ok")
        """,
        str(tmp_path),
        PYTHONWARNINGS="ignore",
    )
    assert printed == "ok"


def test_p29_the_interpreter_ends_with_leases_and_waiters(run_python, tmp_path):
    for url in ("memory", "shm:", f"file:{tmp_path}/limits.db"):
        printed = run_python(
            """
            import sys, threading, time
            import tollgate as tg

            limiter = tg.Limiter(sys.argv[1])
            limiter.catalog.set_limits([tg.resource("slots", 100)])
            leases = [limiter.acquire("bob", "gpt-4") for _ in range(100)]
            threading.Thread(target=lambda: limiter.acquire("bob", "gpt-4"), daemon=True).start()
            while limiter.waiting == 0:
                time.sleep(0.01)
            print("ends")
            """,
            url,
            PYTHONWARNINGS="ignore",
        )
        assert printed == "ends"


def test_p28_a_limiter_is_collected_with_its_leases():
    import gc
    import weakref

    limiter = tg.Limiter("memory")
    limiter.catalog.set_limits([tg.per_hour("rpm", 10)])
    lease, catalog = limiter.acquire("bob", "gpt-4", rpm=1), limiter.catalog
    gone = weakref.ref(limiter)
    del limiter, lease, catalog
    gc.collect()
    assert gone() is None


def test_p51_eight_threads_use_one_limiter_and_its_catalog(limiter):
    limiter.catalog.set_limits([tg.quota("rpm", 1_000, after=86_400)])
    errors: list[BaseException] = []

    def work(entity: str) -> None:
        try:
            for _ in range(25):
                with limiter.acquire(entity, "gpt-4", rpm=1) as lease:
                    repr(lease)
                limiter.peek(entity, "gpt-4")
                limiter.catalog.get_limits()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(f"user-{n % 2}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert limiter.peek("user-0", "gpt-4")["rpm"].available == 1_000 - 100
