"""One row of the benchmark: rows.py NAME ROUNDS prints what we and a peer need for one operation, as JSON.

Both sides run in turns in one process, so that what else the machine does affects both. Times are processor time of the
whole process, in nanoseconds: what a woken task costs the thread that wakes it is part of the cost.
"""

from __future__ import annotations

import asyncio
import gc
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import tollgate as tg

#: How long a round of a side takes at least, in nanoseconds of processor time.
ROUND_NS = 10_000_000

#: More than any row takes.
PLENTY = 10**12

#: A side of a row: performs the operation so many times. It may return the processor time that counts, without that of preparations.
Side = Callable[[int], "int | None"]


def acquire() -> tuple[Side, str, Side]:
    from ratelimit import limits

    ours = tg.LimitSet([tg.per_second("calls", PLENTY)])
    demand = ours.demand(calls=1)

    def tollgate(times: int) -> None:
        acquire = ours.acquire
        for _ in range(times):
            acquire(demand)

    @limits(calls=PLENTY, period=1)
    def call() -> None:
        pass

    def ratelimit(times: int) -> None:
        for _ in range(times):
            call()

    return tollgate, "ratelimit", ratelimit


def acquire_settle() -> tuple[Side, str, Side]:
    from limits import RateLimitItemPerSecond
    from limits.storage import MemoryStorage
    from limits.strategies import FixedWindowRateLimiter

    ours = tg.LimitSet([tg.per_second("rpm", PLENTY), tg.per_second("tpm", PLENTY), tg.resource("slots", 8)])

    def tollgate(times: int) -> None:
        acquire = ours.acquire
        for _ in range(times):
            acquire({"rpm": 1, "tpm": 100, "slots": 1}).settle(tpm=80)

    limiter, item = FixedWindowRateLimiter(MemoryStorage()), RateLimitItemPerSecond(PLENTY)

    def limits(times: int) -> None:
        hit = limiter.hit
        for _ in range(times):
            hit(item, "key")

    return tollgate, "limits", limits


def await_acquire() -> tuple[Side, str, Side]:
    from aiolimiter import AsyncLimiter

    ours = tg.LimitSet([tg.per_second("calls", PLENTY)])
    demand = ours.demand(calls=1)

    async def tollgate(times: int) -> None:
        acquire = ours.acquire_async
        for _ in range(times):
            await acquire(demand)

    async def aiolimiter(times: int) -> None:
        limiter = AsyncLimiter(PLENTY, 1)
        for _ in range(times):
            await limiter.acquire()

    return in_loop(tollgate), "aiolimiter", in_loop(aiolimiter)


def wake_one_by_one() -> tuple[Side, str, Side]:
    """A thread ends a lease as soon as a task waits for it; beside a thread that wakes a task by a callback."""
    ours = tg.LimitSet([tg.resource("slot", 1)])

    async def tollgate(times: int) -> None:
        leases = [await ours.acquire_async(slot=1)]
        with Waker(lambda: leases.pop().commit()) as waker:
            for _ in range(times):
                waker.wake_soon()
                leases.append(await ours.acquire_async(slot=1))
            leases.pop().commit()

    async def callbacks(times: int) -> None:
        loop = asyncio.get_running_loop()
        futures: list[asyncio.Future[None]] = []
        with Waker(lambda: loop.call_soon_threadsafe(futures.pop().set_result, None)) as waker:
            for _ in range(times):
                future = loop.create_future()
                futures.append(future)
                waker.wake_soon()
                await future

    return in_loop(tollgate), "call_soon_threadsafe", in_loop(callbacks)


#: How many tasks wait at once.
CROWD = 1_000


def wake_crowd() -> tuple[Side, str, Side]:
    """A thread ends the lease that 1,000 tasks wait for; beside a thread that wakes each of them by a callback."""
    ours = tg.LimitSet([tg.resource("slots", CROWD)])

    async def tollgate(times: int) -> int:
        async def wait() -> None:
            lease = await ours.acquire_async(slots=1)
            kept.append(lease)

        taken = 0
        kept: list[tg.Lease] = []
        leases = [await ours.acquire_async(slots=CROWD)]
        with Waker(lambda: leases.pop().commit()) as waker:
            for _ in range(times // CROWD):
                tasks = [asyncio.create_task(wait()) for _ in range(CROWD)]
                await asyncio.sleep(0)
                taken += await woken(waker, tasks)
                while kept:
                    kept.pop().commit()
                leases.append(await ours.acquire_async(slots=CROWD))
            leases.pop().commit()
        return taken

    async def callbacks(times: int) -> int:
        loop = asyncio.get_running_loop()
        futures: list[asyncio.Future[None]] = []
        taken = 0

        async def wait() -> None:
            future = loop.create_future()
            futures.append(future)
            await future

        def wake() -> None:
            while futures:
                loop.call_soon_threadsafe(futures.pop().set_result, None)

        with Waker(wake) as waker:
            for _ in range(times // CROWD):
                tasks = [asyncio.create_task(wait()) for _ in range(CROWD)]
                await asyncio.sleep(0)
                taken += await woken(waker, tasks)
        return taken

    return in_loop(tollgate), "call_soon_threadsafe each", in_loop(callbacks)


def concurry_cycle() -> tuple[Side, str, Side]:
    import concurry

    from tollgate.compat import concurry as ours

    def cycle(package: object) -> Side:
        limits = package.LimitSet(
            limits=[
                package.CallLimit(window=1, algorithm="token_bucket", capacity=10**9),
                package.RateLimit(key="tokens", window=1, algorithm="token_bucket", capacity=10**9),
                package.ResourceLimit(key="connections", capacity=8),
            ],
            shared=True,
            mode="thread",
        )

        def run(times: int) -> None:
            for _ in range(times):
                acquisition = limits.acquire(requested={"tokens": 100})
                acquisition.update(usage={"tokens": 80})
                acquisition.release()

        return run

    return cycle(ours), "concurry", cycle(concurry)


async def woken(waker: Waker, tasks: list[asyncio.Task[None]]) -> int:
    """Wakes tasks that wait, and returns the processor time until all of them have run."""
    begun = time.process_time_ns()
    waker.wake_soon()
    for task in tasks:
        await task
    return time.process_time_ns() - begun


class Waker:
    """A thread that calls `wake` once for each `wake_soon`, which is called before the task that waits is suspended."""

    def __init__(self, wake: Callable[[], object]) -> None:
        self._wake = wake
        self._asked = threading.Semaphore(0)
        self._is_over = False
        self._thread = threading.Thread(target=self._run)

    def wake_soon(self) -> None:
        # By a callback, so that the thread is asked when the task waits.
        asyncio.get_running_loop().call_soon(self._asked.release)

    def _run(self) -> None:
        while True:
            self._asked.acquire()
            if self._is_over:
                return
            self._wake()

    def __enter__(self) -> Waker:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._asked.release()
        self._thread.join()


def in_loop(side: Callable[[int], object]) -> Side:
    return lambda times: asyncio.run(side(times))


def cpu_ns(side: Side, times: int) -> int:
    begun = time.process_time_ns()
    taken = side(times)
    return time.process_time_ns() - begun if taken is None else taken


def enough(side: Side, least: int) -> int:
    """How many operations fill a round."""
    times = least
    while cpu_ns(side, times) < ROUND_NS:
        times *= 2
    return times


def contest(rounds: int, least: int, ours: Side, name: str, peer: Side) -> dict[str, object]:
    sides = (ours, peer)
    times = [enough(side, least) for side in sides]
    gc.collect()
    gc.freeze()
    taken: list[list[float]] = [[], []]
    for _ in range(rounds):
        for of_side, side, count in zip(taken, sides, times, strict=True):
            of_side.append(cpu_ns(side, count) / count)
    value, of_peer = map(statistics.median, taken)
    return {"ours": value, "peer": of_peer, "detail": f"processor time, beside {name}"}


def import_ms(rounds: int) -> dict[str, object]:
    """What `import tollgate` adds to an interpreter that starts and ends, in milliseconds of processor time."""
    program = "import time; t = time.process_time_ns(); import tollgate; print(time.process_time_ns() - t)"
    started = lambda: subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout
    value = statistics.median(int(started()) for _ in range(max(rounds, 5))) / 1e6
    return {"ours": value, "detail": "processor time, median of fresh interpreters"}


CONTESTS = {
    "acquire": acquire,
    "acquire-settle": acquire_settle,
    "await-acquire": await_acquire,
    "wake-one-by-one": wake_one_by_one,
    "wake-1000-at-once": wake_crowd,
    "concurry-cycle": concurry_cycle,
}


def main(name: str, rounds: str) -> None:
    if name == "import":
        row = import_ms(int(rounds))
    else:
        row = contest(int(rounds), CROWD if name == "wake-1000-at-once" else 16, *CONTESTS[name]())
    print(json.dumps(row))


if __name__ == "__main__":
    main(*sys.argv[1:])
