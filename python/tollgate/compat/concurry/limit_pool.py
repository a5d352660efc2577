"""Pools: several sets in rotation, one for each account or region."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

from ..._core import LimitSetAcquisition, Pending
from ._balancers import LoadBalancer
from ._frozen import Frozen
from .constants import LoadBalancingAlgorithm
from .limit_set import BaseLimitSet

__all__ = ["LimitPool"]


class LimitPool(Frozen):
    """Several sets; each call goes to one of them, whose config its acquisition has.

    The rotation is strict: a call waits for the set that is its turn, also if another has room.
    """

    limit_sets: list[BaseLimitSet]
    load_balancing: Any
    worker_index: int

    def __init__(
        self, *, limit_sets: Iterable[BaseLimitSet], load_balancing: Any = LoadBalancingAlgorithm.RoundRobin, worker_index: int = 0
    ) -> None:
        sets = list(limit_sets)
        if not sets:
            raise ValueError("a LimitPool requires at least one LimitSet")
        for one in sets:
            if not isinstance(one, BaseLimitSet):
                raise ValueError(f"a LimitPool has LimitSets, not {one!r}")
        algorithm = LoadBalancingAlgorithm(load_balancing)
        if algorithm is LoadBalancingAlgorithm.RoundRobin:
            balancer = LoadBalancer(algorithm, offset=worker_index)
        elif algorithm is LoadBalancingAlgorithm.Random:
            balancer = LoadBalancer(algorithm)
        else:
            raise ValueError(f"Unsupported load balancing algorithm for a LimitPool: {algorithm.name}; Random and RoundRobin are supported")
        if not isinstance(load_balancing, enum.Enum):
            load_balancing = algorithm
        self._set(limit_sets=sets, load_balancing=load_balancing, worker_index=worker_index)
        self._balancer = balancer

    def _next(self) -> BaseLimitSet:
        return self.limit_sets[self._balancer.select_worker(len(self.limit_sets))]

    def acquire(
        self, requested: dict[str, float] | None = None, timeout: float | None = None
    ) -> LimitSetAcquisition:
        """Acquire from the set whose turn it is, and wait for it."""
        return self._next().acquire(requested, timeout)

    def async_acquire(self, requested: dict[str, float] | None = None, timeout: float | None = None) -> Pending[LimitSetAcquisition]:
        """As ``acquire``, in an event loop."""
        return self._next().async_acquire(requested, timeout)

    def try_acquire(self, requested: dict[str, float] | None = None) -> LimitSetAcquisition:
        """Acquire from the set whose turn it is now, ``successful`` or not."""
        return self._next().try_acquire(requested)

    def get_stats(self) -> dict[str, Any]:
        """Return how the sets stand, and how many calls were spread."""
        return {
            "num_limit_sets": len(self.limit_sets),
            "load_balancing": self.load_balancing.value,
            "worker_index": self.worker_index,
            "balancer_stats": self._balancer.get_stats(),
            "limit_sets": [one.get_stats() for one in self.limit_sets],
        }

    def __getitem__(self, index: int) -> BaseLimitSet:
        if not isinstance(index, int):
            raise TypeError(f"the indices of a LimitPool must be integers, not {type(index).__name__}: pool[i][key] is a limit")
        return self.limit_sets[index]

    def __len__(self) -> int:
        return len(self.limit_sets)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.limit_sets, self.load_balancing, self.worker_index)

    def __repr__(self) -> str:
        return f"<LimitPool of {len(self.limit_sets)} {self.load_balancing!r}>"


def _restore(limit_sets: list[BaseLimitSet], load_balancing: Any, worker_index: int) -> LimitPool:
    return LimitPool(limit_sets=limit_sets, load_balancing=load_balancing, worker_index=worker_index)
