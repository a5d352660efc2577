"""Compares the CPU time of acquire, update and release of three limits with Concurry's, in one run.

It needs an optimised build of the extension module: with one for development the ratio is ten times as high.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import ModuleType

#: How much of Concurry's time a cycle may take.
MOST = 0.03


def cycle_of(module: ModuleType) -> Callable[[int], None]:
    """Return what acquires, updates and releases so many times."""
    bucket = module.RateLimitAlgorithm.TokenBucket
    limits = module.LimitSet(
        limits=[
            module.CallLimit(window=60, capacity=1_000_000_000, algorithm=bucket),
            module.RateLimit(key="tokens", window=60, capacity=1_000_000_000, algorithm=bucket),
            module.ResourceLimit(key="connections", capacity=10),
        ]
    )
    requested, usage = {"tokens": 100}, {"tokens": 80}

    def cycle(turns: int) -> None:
        for _ in range(turns):
            acquisition = limits.acquire(requested)
            acquisition.update(usage)
            acquisition.release()

    return cycle


def best(cycle: Callable[[int], None], turns: int) -> float:
    """Return the nanoseconds of CPU time of one cycle in the best of several batches."""
    cycle(turns)
    times = []
    for _ in range(7):
        start = time.process_time_ns()
        cycle(turns)
        times.append((time.process_time_ns() - start) / turns)
    return min(times)


def main() -> int:
    """Print both times and their ratio."""
    import concurry
    import tollgate.compat.concurry as ours

    own, theirs = best(cycle_of(ours), 20_000), best(cycle_of(concurry), 1_000)
    print(f"tollgate {own:.0f} ns, concurry {theirs:.0f} ns, ratio {own / theirs:.4f} (at most {MOST})")
    return 0 if own / theirs <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
