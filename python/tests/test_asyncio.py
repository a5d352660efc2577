"""Waiting in event loops: cancellation, bursts, several loops."""

from __future__ import annotations

import asyncio
import gc
import random
import threading
import warnings

import pytest

import tollgate as tg


def one_slot() -> tg.LimitSet:
    return tg.LimitSet([tg.resource("slots", 1), tg.quota("tpm", 1_000_000, after=86_400)])


async def waiting(limits: tg.LimitSet, count: int) -> None:
    while limits.peek().waiting != count:
        await asyncio.sleep(0.001)


def test_await_and_async_with_give_a_lease():
    async def main():
        limits = one_slot()
        lease = await limits.acquire_async({"tpm": 100})
        await lease.settle_async(tpm=40)
        async with limits.acquire_async(tpm=100) as lease:
            assert lease.reserved == {"slots": 1, "tpm": 100}
            assert not await limits.try_acquire_async(tpm=1)
        async with await limits.acquire_async(tpm=100) as lease:
            await lease.consume_async(tpm=10)
            assert await lease.heartbeat_async()
        return await limits.peek_async()

    status = asyncio.run(main())
    assert (status["slots"].available, status["tpm"].available) == (1, 999_750)


def test_tasks_are_served_in_the_order_of_their_arrival():
    async def main():
        limits, order = one_slot(), []

        async def work(number):
            async with limits.acquire_async(slots=1, timeout=60):
                order.append(number)
                await asyncio.sleep(0)

        async with limits.acquire_async(slots=1):
            tasks = [asyncio.create_task(work(number)) for number in range(100)]
            await waiting(limits, 100)
        await asyncio.gather(*tasks)
        return order

    assert asyncio.run(main()) == list(range(100))


def test_an_awaitable_is_a_coroutine_to_asyncio():
    async def main():
        limits = one_slot()
        held = await asyncio.create_task(limits.acquire_async(slots=1))
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(limits.acquire_async(slots=1), 0.01)
        later, _ = asyncio.ensure_future(limits.acquire_async(slots=1)), await asyncio.sleep(0)
        held.commit()
        (await later).commit()
        results = await asyncio.gather(limits.peek_async(), limits.try_acquire_async(slots=1))
        assert results[1]

    asyncio.run(main())


def test_p10_waiters_cost_no_thread():
    async def main():
        limits, before = one_slot(), threading.active_count()
        async with limits.acquire_async(slots=1):
            tasks = [asyncio.create_task(limits.acquire_async(slots=1)) for _ in range(1_000)]
            await waiting(limits, 1_000)
            assert threading.active_count() == before
            await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(None, len, "job"), 30)
        for task in tasks:
            (await task).commit()

    asyncio.run(main())


def test_p13_cancelled_waiters_leave_no_trace():
    async def main():
        from tollgate import _awaiting

        limits = one_slot()
        async with limits.acquire_async(slots=1):
            tasks = [asyncio.create_task(limits.acquire_async(tpm=1)) for _ in range(1_000)]
            await waiting(limits, 1_000)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert limits.peek().waiting == 0
            assert len(_awaiting._waits_of(asyncio.get_running_loop())) == 0
        status = limits.peek()
        assert (status["slots"].available, status["tpm"].available) == (1, 1_000_000)

    asyncio.run(main())


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_p14_cancelled_between_the_grant_and_the_task(turns):
    async def main():
        limits, chance = one_slot(), random.Random(turns)
        for _ in range(500):
            held = await limits.acquire_async(slots=1)
            task = asyncio.create_task(limits.acquire_async(tpm=100))
            await asyncio.sleep(0)
            await waiting(limits, 1)
            both = [held.commit, task.cancel]
            chance.shuffle(both)
            both[0]()
            for _ in range(turns):
                await asyncio.sleep(0)
            both[1]()
            done = await asyncio.gather(task, return_exceptions=True)
            if isinstance(done[0], tg.Lease):
                done[0].cancel()
            status = limits.peek()
            assert (status["slots"].available, status["tpm"].available, status.waiting) == (1, 1_000_000, 0)

    asyncio.run(main())


def test_p22_wait_for_loses_no_grant():
    async def main():
        limits, chance = one_slot(), random.Random(22)
        for _ in range(500):
            held = await limits.acquire_async(slots=1)
            asyncio.get_running_loop().call_later(0.001 * chance.random(), held.commit)
            try:
                lease = await asyncio.wait_for(limits.acquire_async(tpm=100), 0.001 * chance.random())
                lease.cancel()
            except asyncio.TimeoutError:
                pass
            while limits.peek()["slots"].available == 0:
                await asyncio.sleep(0.0005)
            assert limits.peek()["tpm"].available == 1_000_000

    asyncio.run(main())


def test_p15_p16_of_a_burst_one_is_cancelled_and_one_fails():
    async def main():
        limits = tg.LimitSet([tg.resource("slots", 100), tg.per_minute("rpm", 1_000)])
        async with limits.acquire_async(slots=100):
            tasks = [asyncio.create_task(limits.acquire_async(slots=1)) for _ in range(98)]
            fails = asyncio.create_task(limits.acquire_async(slots=1, rpm=900))
            await waiting(limits, 99)
            # It can never fit any more.
            limits.replace(tg.per_minute("rpm", 100))
            tasks[50].cancel()
        done = await asyncio.gather(*tasks, fails, return_exceptions=True)
        kinds = [type(one).__name__ for one in done]
        assert (kinds.count("Lease"), kinds.count("CancelledError"), kinds.count("Impossible")) == (97, 1, 1)

    asyncio.run(main())


def test_p17_a_loop_that_is_closed_with_waiters_inside(run_python):
    program = """
        import asyncio, gc, os, tempfile, threading
        import tollgate as tg

        limits = tg.LimitSet([tg.resource("slots", 1)])
        held = limits.acquire()
        folder, stop, strays = tempfile.mkdtemp(), threading.Event(), []

        def meddle():
            while not stop.is_set():
                path = os.path.join(folder, "file")
                with open(path, "wb") as file:
                    file.write(b"x")
                if os.path.getsize(path) != 1:
                    strays.append(path)

        thread = threading.Thread(target=meddle)
        thread.start()
        for turn in range(200):
            loop = asyncio.new_event_loop()
            tasks = [loop.create_task(limits.acquire_async(timeout=0.01 if turn % 2 else None)) for _ in range(3)]
            loop.run_until_complete(asyncio.sleep(0))
            for task in tasks:
                task._log_destroy_pending = False
            loop.close()
            del tasks, loop
        gc.collect()
        stop.set()
        thread.join()

        async def last():
            held.commit()
            async with limits.acquire_async(slots=1, timeout=60):
                pass

        asyncio.run(last())
        assert not strays
        print(limits.peek().waiting, limits.peek()["slots"].available)
    """
    assert run_python(program) == "0 1"


def test_p18_two_loops_in_two_threads_hand_over(run_python):
    program = """
        import asyncio, threading
        import tollgate as tg

        limits = tg.LimitSet([tg.resource("slots", 1)])
        counts = []

        async def work():
            for count in range(1_000):
                async with limits.acquire_async(slots=1, timeout=60):
                    await asyncio.sleep(0)
            counts.append(count + 1)

        threads = [threading.Thread(target=asyncio.run, args=(work(),)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(counts)
    """
    assert run_python(program, PYTHONASYNCIODEBUG="1") == "[1000, 1000]"


def test_p19_a_loop_that_watches_no_descriptors():
    class Loop(asyncio.SelectorEventLoop):
        """Watches the descriptors of asyncio itself only."""

        def add_reader(self, *_):
            raise NotImplementedError

    async def main():
        limits = one_slot()
        async with limits.acquire_async(slots=1):
            tasks = [asyncio.create_task(limits.acquire_async(slots=1)) for _ in range(100)]
            await waiting(limits, 100)
        for task in tasks:
            (await asyncio.wait_for(task, 60)).commit()

    loop = Loop()
    try:
        loop.run_until_complete(main())
    finally:
        loop.close()


def test_p19_on_uvloop():
    uvloop = pytest.importorskip("uvloop")

    async def main():
        limits = one_slot()
        async with limits.acquire_async(slots=1):
            tasks = [asyncio.create_task(limits.acquire_async(slots=1)) for _ in range(100)]
            await waiting(limits, 100)
            tasks[3].cancel()
        for task in tasks[:3] + tasks[4:]:
            (await task).commit()

    uvloop.run(main())


def test_p19_on_trio():
    trio = pytest.importorskip("trio")

    async def main():
        limits, order = one_slot(), []

        async def work(number):
            async with limits.acquire_async(slots=1, timeout=60):
                order.append(number)

        async with trio.open_nursery() as nursery:
            async with limits.acquire_async(slots=1):
                for number in range(10):
                    nursery.start_soon(work, number)
                    while limits.peek().waiting != number + 1:
                        await trio.sleep(0.001)
                with trio.move_on_after(0.01):
                    await limits.acquire_async(tpm=100)
                assert limits.peek().waiting == 10
                with pytest.raises(tg.WouldBlockLoop):
                    limits.acquire(slots=1)
        assert order == list(range(10))
        assert limits.peek()["tpm"].available == 1_000_000

    trio.run(main)


def test_p20_what_was_awaited_cannot_be_awaited_again():
    async def main():
        acquired = one_slot().acquire_async(slots=1)
        await acquired
        with pytest.raises(RuntimeError, match="already"):
            await acquired

    asyncio.run(main())


def test_p21_what_is_never_awaited_takes_nothing_and_warns():
    limits = one_slot()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        limits.acquire_async(tpm=100)
        gc.collect()
    assert "never awaited" in str(caught[0].message)
    assert caught[0].category is RuntimeWarning
    assert limits.peek()["tpm"].available == 1_000_000


@pytest.mark.parametrize("error", [asyncio.CancelledError, KeyboardInterrupt, GeneratorExit, ValueError])
def test_p23_a_block_left_by_an_exception_gives_everything_back(error):
    async def main():
        limits = one_slot()
        try:
            async with limits.acquire_async(tpm=100):
                raise error
        except error:
            pass
        status = limits.peek()
        assert (status["slots"].available, status["tpm"].available) == (1, 1_000_000)

    asyncio.run(main())


def test_a_denial_in_a_loop_is_an_exception_of_acquire_and_a_value_of_try():
    async def main():
        limits = tg.LimitSet([tg.per_hour("jobs", 1)])
        await limits.acquire_async(jobs=1)
        with pytest.raises(tg.TimedOut):
            await limits.acquire_async({"jobs": 1}, timeout=1)
        with pytest.raises(tg.Impossible):
            await limits.acquire_async(jobs=2)
        assert not await limits.try_acquire_async(jobs=1)

    asyncio.run(main())
