"""Rates by themselves, and balancers."""

from __future__ import annotations

import collections
import decimal
import math
import threading
import time
from typing import Any, ClassVar

from ..._core import LimitSetAcquisition, SharedLimits
from ._balancers import LoadBalancer
from .constants import RateLimitAlgorithm

__all__ = ["LoadBalancer", "RateLimiter"]

#: How many of the last amounts that were taken can be refunded.
_REFUNDABLE = 1_024


def name_of_algorithm(algorithm: Any) -> str:
    """Return the name of an algorithm, also for a member of another enum of such names."""
    return str(RateLimitAlgorithm(algorithm).name)


def RateLimiter(
    algorithm: Any, max_rate: float, capacity: float, window_seconds: float | None = None
) -> SetRate:
    """Return a rate by itself: ``max_rate`` per second up to ``capacity``, or ``capacity`` in each window."""
    name = name_of_algorithm(algorithm)
    for what, number in (("max_rate", max_rate), ("capacity", capacity)):
        if not number >= 0:
            raise ValueError(f"{what} must be 0 or more, but is {number!r}")
    rate, window = (max_rate, None) if name not in _WINDOWS else (None, window_seconds or 1.0)
    limiter = limiter_of(name, None, max_rate, capacity, window_seconds or 1.0)
    spec = (limiter, "tokens", "rate", name, float(capacity), rate, window)
    limiter._home = (SharedLimits([spec], {}), 0)
    return limiter


def limiter_of(
    name: str, home: tuple[SharedLimits, int] | None, rate: float, capacity: float, window: float
) -> SetRate:
    """Return the rate that a set counts."""
    return _CLASSES[name](home, rate, capacity, window)


class SetRate:
    """A rate that a set counts."""

    algorithm: ClassVar[str]
    #: Whether amounts can be given back.
    refunds: ClassVar[bool] = False

    def __init__(
        self, home: tuple[SharedLimits, int] | None, max_rate: float, capacity: float, window: float
    ) -> None:
        self._home = home
        self.max_rate = max_rate
        self.capacity = capacity
        self.window_seconds = window
        self._lock = threading.Lock()
        self._taken: collections.deque[tuple[LimitSetAcquisition, float]]
        self._taken = collections.deque(maxlen=_REFUNDABLE)

    @property
    def _set(self) -> tuple[SharedLimits, int]:
        if self._home is None:
            raise RuntimeError("the rate belongs to no set")
        return self._home

    def can_acquire(self, tokens: float = 1) -> bool:
        """Return whether it has as much now."""
        home, index = self._set
        return home._has(index, tokens)

    def try_acquire(self, tokens: float = 1) -> bool:
        """Take it now, or return False."""
        home, index = self._set
        return self._keep(home._try_one(index, tokens), tokens)

    def acquire(self, tokens: float = 1, timeout: float | None = None) -> bool:
        """Take it, and wait for that. Returns False if that lasts longer than ``timeout`` seconds."""
        home, index = self._set
        if timeout is not None and tokens > self.capacity:
            return False
        try:
            return self._keep(home._acquire_one(index, tokens, timeout), tokens)
        except TimeoutError:
            return False

    def _keep(self, acquisition: LimitSetAcquisition | None, tokens: float) -> bool:
        if acquisition is not None and self.refunds:
            self._taken.append((acquisition, tokens))
        return acquisition is not None

    def refund(self, tokens: float) -> None:
        """Give back what was not used of the amounts taken last, each of them once. Only token buckets and GCRA do."""
        left = decimal.Decimal(repr(tokens)) if self.refunds else decimal.Decimal(0)
        with self._lock:
            while left > 0 and self._taken:
                acquisition, taken = self._taken.pop()
                used = max(decimal.Decimal(repr(taken)) - left, decimal.Decimal(0))
                left -= decimal.Decimal(repr(taken)) - used
                acquisition._end_with(float(used))

    @property
    def _left(self) -> float:
        home, index = self._set
        return home._available(index)

    @property
    def _used(self) -> int:
        """How much is counted: 0 without a bound."""
        left = self._left
        return 0 if math.isinf(left) else math.ceil(self.capacity - left)

    def _utilization(self) -> float:
        if math.isinf(self.capacity) or self.capacity == 0:
            return 0.0
        return 1.0 - self._left / self.capacity

    def get_stats(self) -> dict[str, Any]:
        """Return how it stands."""
        return {
            "algorithm": self.algorithm,
            **self._levels(),
            "capacity": self.capacity,
            "max_rate": self.max_rate,
            "utilization": self._utilization(),
        }

    def _levels(self) -> dict[str, Any]:
        raise NotImplementedError


class _TokenBucket(SetRate):
    algorithm = "token_bucket"
    refunds = True

    @property
    def _tokens(self) -> float:
        return self._left

    def _levels(self) -> dict[str, Any]:
        return {"available_tokens": self._left}


class _LeakyBucket(SetRate):
    algorithm = "leaky_bucket"

    @property
    def _queue(self) -> range:
        return range(self._used)

    def _leak(self) -> None:
        """Do nothing: it leaks by itself."""

    def _levels(self) -> dict[str, Any]:
        return {"queue_size": self._used}


class _Window(SetRate):
    def __init__(self, home: Any, max_rate: float, capacity: float, window: float) -> None:
        super().__init__(home, capacity, capacity, window)

    def _levels(self) -> dict[str, Any]:
        left = self._left
        return {
            "current_requests": self._used,
            "available": left,
            "window_seconds": self.window_seconds,
        }


class _SlidingWindow(_Window):
    algorithm = "sliding_window"

    @property
    def _requests(self) -> range:
        return range(self._used)

    def _cleanup_old_requests(self) -> None:
        """Do nothing: old ones do not count."""


class _FixedWindow(_Window):
    algorithm = "fixed_window"

    @property
    def _request_count(self) -> float:
        left = self._left
        return 0 if math.isinf(left) else _whole(self.capacity - left)

    def _levels(self) -> dict[str, Any]:
        return {**super()._levels(), "current_requests": self._request_count}


class _GCRA(SetRate):
    algorithm = "gcra"
    refunds = True

    @property
    def _emission_interval(self) -> float:
        return 1.0 / self.max_rate if self.max_rate > 0 else 0.0

    @property
    def _tau(self) -> float:
        if math.isinf(self.capacity) or math.isinf(self.max_rate):
            return math.inf
        return self.capacity * self._emission_interval

    @property
    def _tat(self) -> float:
        left = self._left
        if not left < self.capacity:
            return 0.0
        return time.time() + (self.capacity - left) * self._emission_interval

    def _levels(self) -> dict[str, Any]:
        return {"available_tokens": max(0.0, self._left), "emission_interval": self._emission_interval}


_WINDOWS = ("SlidingWindow", "FixedWindow")

_CLASSES: dict[str, type[SetRate]] = {
    "TokenBucket": _TokenBucket,
    "LeakyBucket": _LeakyBucket,
    "SlidingWindow": _SlidingWindow,
    "FixedWindow": _FixedWindow,
    "GCRA": _GCRA,
}


def _whole(number: float) -> float:
    return int(number) if number == int(number) else number
