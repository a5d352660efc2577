"""How calls are spread over several sets or workers."""

from __future__ import annotations

import collections
import random
import threading
from typing import Any

from .constants import LoadBalancingAlgorithm


def LoadBalancer(algorithm: Any, **settings: Any) -> Balancer:
    """Return a balancer. ``offset`` is where a round robin starts."""
    try:
        name = LoadBalancingAlgorithm(algorithm).name
    except ValueError as error:
        raise KeyError(f"{algorithm!r} is no load balancing algorithm") from error
    balancer: Balancer = _CLASSES[name](**settings)
    return balancer


class Balancer:
    """Chooses the one of several that gets the next call."""

    algorithm = ""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._dispatched = 0

    def select_worker(self, num_workers: int) -> int:
        """Return the index of the next."""
        if num_workers <= 0:
            raise ValueError(f"num_workers must be positive, but is {num_workers!r}")
        with self._lock:
            return self._next(num_workers)

    def _next(self, count: int) -> int:
        raise NotImplementedError

    def record_start(self, worker_id: int) -> None:
        """Note that a call has begun."""

    def record_complete(self, worker_id: int) -> None:
        """Note that a call has ended."""

    def get_stats(self) -> dict[str, Any]:
        """Return what was counted."""
        with self._lock:
            return {"algorithm": self.algorithm, **self._counts(), "total_dispatched": self._dispatched}

    def _counts(self) -> dict[str, Any]:
        return {}


class _RoundRobin(Balancer):
    algorithm = "RoundRobin"

    def __init__(self, offset: int = 0) -> None:
        super().__init__()
        self.offset = offset

    def _next(self, count: int) -> int:
        self._dispatched += 1
        return (self.offset + self._dispatched - 1) % count

    def _counts(self) -> dict[str, Any]:
        return {"offset": self.offset}


class _Random(Balancer):
    algorithm = "Random"

    def _next(self, count: int) -> int:
        self._dispatched += 1
        return random.randrange(count)


class _LeastLoad(Balancer):
    def __init__(self) -> None:
        super().__init__()
        self._calls: collections.defaultdict[int, int] = collections.defaultdict(int)

    def _next(self, count: int) -> int:
        # Looking a worker up counts it with 0.
        return min(range(count), key=lambda index: self._calls[index])

    def record_start(self, worker_id: int) -> None:
        with self._lock:
            self._calls[worker_id] += 1
            self._dispatched += 1


class _LeastActiveLoad(_LeastLoad):
    algorithm = "LeastActiveLoad"

    def record_complete(self, worker_id: int) -> None:
        with self._lock:
            if self._calls.get(worker_id, 0) > 0:
                self._calls[worker_id] -= 1

    def _counts(self) -> dict[str, Any]:
        return {"active_calls": dict(self._calls), "total_active": sum(self._calls.values())}


class _LeastTotalLoad(_LeastLoad):
    algorithm = "LeastTotalLoad"

    def _counts(self) -> dict[str, Any]:
        return {"total_calls": dict(self._calls), "sum_total_calls": sum(self._calls.values())}


_CLASSES: dict[str, Any] = {
    "RoundRobin": _RoundRobin,
    "Random": _Random,
    "LeastActiveLoad": _LeastActiveLoad,
    "LeastTotalLoad": _LeastTotalLoad,
}
