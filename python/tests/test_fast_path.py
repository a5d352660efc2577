"""What calls that need not wait do without: the GIL stays, the event loop is not asked, wake-ups come in bursts."""

from __future__ import annotations

import asyncio

import pytest
import tollgate as tg


def test_p6_a_call_that_need_not_wait_keeps_the_gil(run_python):
    program = """
        import sys, threading, time
        import tollgate as tg

        limits = tg.LimitSet([tg.per_day("rpm", 10**9), tg.resource("slots", 4)])
        demand, turns, stop = limits.demand(rpm=1), 0, False

        def other():
            global turns
            while not stop:
                turns += 1
                # Releases the GIL, and wants it again.
                time.sleep(0)

        thread = threading.Thread(target=other)
        thread.start()
        # From here on a thread gives up the GIL only where it releases it.
        sys.setswitchinterval(1_000)
        moved = []
        for use in (
            lambda: limits.acquire(demand).commit(),
            lambda: limits.acquire({"rpm": 2}).settle(rpm=1),
            lambda: limits.try_acquire(rpm=10**9),
            limits.peek,
            lambda: time.sleep(0.001),
        ):
            before = turns
            for _ in range(200):
                use()
            moved.append(turns != before)
        stop = True
        sys.setswitchinterval(0.005)
        thread.join()
        print(moved)
    """
    assert run_python(program) == "[False, False, False, False, True]"


def test_p11_what_is_there_at_once_needs_no_event_loop():
    limits = tg.LimitSet([tg.per_day("rpm", 100), tg.resource("slots", 1)])

    def at_once(pending):
        # A generator that ends before it yields anything has not asked a loop for anything.
        with pytest.raises(StopIteration) as ended:
            pending.send(None)
        return ended.value.value

    lease = at_once(limits.acquire_async(rpm=1))
    assert not at_once(limits.try_acquire_async(rpm=1))
    at_once(lease.settle_async(rpm=1))
    assert at_once(limits.peek_async())["slots"].available == 1


def test_p12_a_burst_wakes_its_loop_once():
    class Loop(asyncio.SelectorEventLoop):
        """Watches no descriptors of others, so that each wake-up is a call."""

        wake_ups = 0

        def add_reader(self, *_):
            raise NotImplementedError

        def call_soon_threadsafe(self, *arguments, **named):
            self.wake_ups += 1
            return super().call_soon_threadsafe(*arguments, **named)

    async def main():
        limits = tg.LimitSet([tg.resource("slots", 1_000)])
        async with limits.acquire_async(slots=1_000):
            tasks = [asyncio.create_task(limits.acquire_async(slots=1)) for _ in range(1_000)]
            while limits.peek().waiting != 1_000:
                await asyncio.sleep(0.001)
            loop.wake_ups = 0
        await asyncio.gather(*tasks)

    loop = Loop()
    try:
        loop.run_until_complete(main())
    finally:
        loop.close()
    assert 1 <= loop.wake_ups < 100


def test_p12_a_grant_needs_no_gil(run_python):
    program = """
        import asyncio, ctypes
        import tollgate as tg
        from tollgate import _awaiting

        class Poll(ctypes.Structure):
            _fields_ = [("fd", ctypes.c_int), ("events", ctypes.c_short), ("revents", ctypes.c_short)]

        async def main():
            limits = tg.LimitSet([tg.per_second("rps", 5, burst=1)])
            await limits.acquire_async(rps=1)
            task = asyncio.create_task(limits.acquire_async(rps=1))
            await asyncio.sleep(0)
            assert limits.peek().waiting == 1
            bell = Poll(_awaiting._waits_of(asyncio.get_running_loop()).fileno(), 1, 0)
            # Holds the GIL for a minute, unless the thread of the timer admits the task and rings without it.
            rung = ctypes.PyDLL(None).poll(ctypes.byref(bell), 1, 60_000)
            await task
            print(rung)

        asyncio.run(main())
    """
    assert run_python(program) == "1"


def test_p41_members_of_an_enum_of_texts_are_their_texts():
    from enum import Enum

    class Choice(str, Enum):
        GCRA = "gcra"
        REFUND = "refund"
        BATCH = "batch"

    limits = tg.LimitSet([tg.per_day("rpm", 5, algorithm=Choice.GCRA)], on_drop=Choice.REFUND)
    assert limits["rpm"].algorithm == "gcra"
    limits.acquire({"rpm": 1}, priority=Choice.BATCH).commit()
    with pytest.raises(tg.InvalidValue):
        tg.per_day("rpm", 5, algorithm=Choice.REFUND)
