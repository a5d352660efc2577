"""The limiter on every store, and while a store is away."""

from __future__ import annotations

import asyncio
import os
import pickle
import time

import pytest

import tollgate as tg


@pytest.fixture
def limiter(store):
    # Tests share a table.
    return tg.Limiter(store, namespace=f"test-{os.getpid()}-{time.monotonic_ns()}")


def left(limiter: tg.Limiter) -> tuple[int, ...]:
    return tuple(status.available for status in limiter.peek("key-1", "gpt-4").statuses)


def test_a_chain_is_taken_settled_and_given_back(limiter):
    catalog = limiter.catalog
    catalog.create_entity("team")
    catalog.create_entity("key-1", parent="team", cascades=True)
    catalog.set_limits([tg.quota("tpm", 100, after=86_400)], entity="team")
    catalog.set_limits([tg.quota("tpm", 50, after=86_400)], entity="key-1")
    with limiter.acquire("key-1", "gpt-4", tpm=20) as lease:
        lease.adjust(tpm=-5)
    assert left(limiter) == (35, 85)
    with pytest.raises(ZeroDivisionError), limiter.acquire("key-1", "gpt-4", tpm=20):
        raise ZeroDivisionError
    limiter.acquire("key-1", "gpt-4", tpm=20).cancel()
    denial = limiter.try_acquire("key-1", "gpt-4", tpm=36)
    assert [(s.entity, s.available, s.exceeded) for s in denial.statuses] == [("key-1", 35, True), ("team", 85, False)]
    with pytest.raises(tg.Impossible):
        limiter.acquire("key-1", "gpt-4", tpm=51)
    token = limiter.acquire("key-1", "gpt-4", tpm=5).into_token()
    pickle.loads(pickle.dumps(limiter)).resume(token).settle(tpm=1)
    assert limiter.resume(token).end_once() is False
    assert left(limiter) == (34, 84)


def test_the_same_in_an_event_loop(store):
    async def main() -> None:
        limiter = await tg.Limiter.open_async(store, namespace=f"test-{os.getpid()}-{time.monotonic_ns()}")
        await limiter.catalog.set_limits_async([tg.quota("tpm", 50, after=86_400), tg.resource("slots", 1)])
        async with limiter.acquire_async("bob", "gpt-4", tpm=20) as lease:
            waiter = asyncio.create_task(limiter.acquire_async("bob", "gpt-4", {"tpm": 1}, timeout=60))
            while limiter.waiting == 0:
                await asyncio.sleep(0.001)
            await lease.settle_async(tpm=10)
        async with await waiter:
            pass
        assert (await limiter.peek_async("bob", "gpt-4"))["tpm"].available == 39
        assert (await limiter.catalog.counts_async()).system_limits == 1

    asyncio.run(main())


@pytest.fixture
def away(redis):
    """Opens limiters on a server that is stopped once they know their limits."""
    opened = []

    def open_limiter(**settings: object) -> tg.Limiter:
        limiter = tg.Limiter(redis.url, store_timeout=0.5, **settings)
        limiter.catalog.set_limits([tg.quota("rpm", 10, after=86_400)])
        limiter.acquire("bob", "gpt-4", rpm=1).commit()
        redis.stop()
        opened.append(limiter)
        return limiter

    yield open_limiter
    redis.go_on()


def test_block_raises_unavailable_while_the_store_is_away(away):
    limiter = away(on_unavailable="block")
    with pytest.raises(tg.Unavailable) as caught:
        limiter.acquire("bob", "gpt-4", rpm=1)
    assert isinstance(caught.value, ConnectionError)


def test_allow_admits_with_a_degraded_lease_while_the_store_is_away(away):
    limiter = away(on_unavailable="allow")
    with limiter.acquire("bob", "gpt-4", rpm=10) as lease:
        assert lease.degraded is True and lease.entity is None and lease.reserved == {}
        lease.adjust(rpm=1)
    with pytest.raises(tg.TokenError, match="degraded"):
        limiter.acquire("bob", "gpt-4", rpm=10).into_token()


def test_local_admits_a_share_of_the_limits_while_the_store_is_away(away):
    limiter = away(on_unavailable="local", local_share=30)
    for _ in range(3):
        lease = limiter.acquire("bob", "gpt-4", rpm=1)
        assert lease.degraded is True and lease.reserved == {"rpm": 1}
        lease.commit()
    with pytest.raises(tg.Unavailable):
        limiter.acquire("bob", "gpt-4", rpm=1)


def test_p5_other_threads_run_while_one_waits_for_the_store(away):
    import threading

    limiter = away(on_unavailable="block")
    done = threading.Event()
    counted = 0

    def ask() -> None:
        with pytest.raises(tg.Unavailable):
            limiter.acquire("bob", "gpt-4", rpm=1)
        done.set()

    thread = threading.Thread(target=ask)
    thread.start()
    while not done.is_set():
        counted += 1
    thread.join(60)
    # With the GIL held it would not count at all until the time-out of half a second.
    assert counted > 1_000


def test_p38_no_text_of_a_server_with_a_password_has_it(redis):
    redis.command("CONFIG", "SET", "requirepass", "hunter2hunter2")
    limiter = tg.Limiter(f"redis://:hunter2hunter2@127.0.0.1:{redis.port}")
    limiter.catalog.set_limits([tg.quota("rpm", 10, after=86_400)])
    lease = limiter.acquire("bob", "gpt-4", rpm=1)
    texts = [repr(limiter), str(limiter), limiter.store, repr(limiter.catalog), repr(limiter.catalog.namespaces), repr(lease)]
    lease.commit()
    assert not any("hunter2" in text for text in texts), texts
    assert pickle.loads(pickle.dumps(limiter)).peek("bob", "gpt-4")["rpm"].available == 9
    with pytest.raises(tg.Error) as caught:
        tg.Limiter(f"redis://:wrong2wrong2@127.0.0.1:{redis.port}")
    assert "wrong2" not in str(caught.value)


def test_p33_parent_and_children_use_a_limiter_at_once(store, run_python):
    printed = run_python(
        """
        import os, sys
        import tollgate as tg

        limiter = tg.Limiter(sys.argv[1], namespace=sys.argv[2])
        limiter.catalog.set_limits([tg.quota("rpm", 1_000, after=86_400)])
        limiter.acquire("bob", "gpt-4", rpm=1).commit()
        children = []
        for _ in range(8):
            pid = os.fork()
            if pid == 0:
                for _ in range(5):
                    limiter.acquire("bob", "gpt-4", rpm=1).commit()
                os._exit(0)
            children.append(pid)
            limiter.acquire("bob", "gpt-4", rpm=1).commit()
        assert all(os.waitpid(pid, 0)[1] == 0 for pid in children)
        print(limiter.peek("bob", "gpt-4")["rpm"].available)
        """,
        store,
        f"test-{os.getpid()}-{time.monotonic_ns()}",
        PYTHONWARNINGS="ignore",
    )
    assert printed == str(1_000 - 1 - 8 * 5 - 8)


def test_p29_the_interpreter_ends_with_leases_alive(store, run_python):
    printed = run_python(
        """
        import sys
        import tollgate as tg

        limiter = tg.Limiter(sys.argv[1], namespace=sys.argv[2])
        limiter.catalog.set_limits([tg.resource("slots", 100)])
        leases = [limiter.acquire("bob", "gpt-4") for _ in range(20)]
        print("ends")
        """,
        store,
        f"test-{os.getpid()}-{time.monotonic_ns()}",
        PYTHONWARNINGS="ignore",
    )
    assert printed == "ends"


def test_p36_p40_a_limiter_goes_to_worker_processes_and_denials_come_back(tmp_path, run_script):
    printed = run_script(
        """
        import multiprocessing, sys
        from concurrent.futures import ProcessPoolExecutor
        import tollgate as tg

        def work(limiter):
            with limiter.acquire("key-1", "gpt-4", {"rpm": 1}, timeout=0):
                return limiter.namespace

        def main():
            limiter = tg.Limiter(sys.argv[1], namespace="jobs")
            limiter.catalog.set_limits([tg.quota("rpm", 2, after=86_400)])
            with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
                futures = [pool.submit(work, limiter) for _ in range(3)]
                denied = [future.exception() for future in futures if future.exception()]
                (error,) = denied
                assert isinstance(error, tg.TimedOut) and error.statuses[0].entity == "key-1", error
                assert error.retry_after > 0 and error.as_dict()["limits"][0]["name"] == "rpm"
            print("ok")
        """,
        f"file:{tmp_path}/limits.db",
    )
    assert printed == "ok"
