"""Limits: how much of what. A set makes them count; the state of a limit is that of the last set that took it."""

from __future__ import annotations

import enum
import logging
import math
import warnings
from typing import Any, ClassVar

from ..._core import SharedLimits
from ._frozen import Frozen
from .algorithms import SetRate, limiter_of, name_of_algorithm
from .constants import RateLimitAlgorithm, RateWindow

__all__ = ["CallLimit", "Limit", "RateLimit", "ResourceLimit"]

logger = logging.getLogger(__name__)


class Limit(Frozen):
    """What all limits have in common: a key, which is unique within a set."""

    key: str
    #: The set that counts for it, and its place there.
    _home: tuple[SharedLimits, int] | None = None
    _rate: SetRate | None = None
    _fields: ClassVar[tuple[str, ...]] = ("key",)

    def __init__(self, **fields: Any) -> None:
        unknown = [name for name in fields if name not in self._fields]
        if unknown:
            raise ValueError(f"{type(self).__name__} has no field {unknown[0]!r}; fields: {', '.join(self._fields)}")
        key = fields.get("key")
        if not isinstance(key, str):
            raise ValueError(f"{type(self).__name__} requires a key, which is a text, not {key!r}")
        self._set(key=key)

    def can_acquire(self, requested: float) -> bool:
        """Return whether it has as much now."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it has")

    def validate_usage(self, requested: float, used: float) -> None:
        """Raise ValueError for what cannot have been used."""
        raise NotImplementedError(f"{type(self).__name__} does not say what can be used")

    def get_stats(self) -> dict[str, Any]:
        """Return how it stands."""
        return self._stats_in(*self._own_home())

    def _stats_in(self, home: SharedLimits, index: int) -> dict[str, Any]:
        raise NotImplementedError(f"{type(self).__name__} has no stats")

    def _spec(self) -> tuple[Any, ...]:
        raise TypeError(f"a set takes RateLimit, CallLimit and ResourceLimit, not {type(self).__name__}")

    def _bind(self, home: SharedLimits, index: int) -> None:
        self._home, self._rate = (home, index), None

    def _own_home(self) -> tuple[SharedLimits, int]:
        """Return the set that counts for it: one of its own, if it is in none."""
        if self._home is None:
            self._home = (SharedLimits([self._spec()], {}), 0)
        return self._home

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._fields}

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._values() == self._values()

    def __hash__(self) -> int:
        return hash((type(self), tuple(self._values().values())))

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self._values())

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self._values().items())
        return f"{type(self).__name__}({fields})"


def _restore(cls: type[Limit], fields: dict[str, Any]) -> Limit:
    return cls(**fields)


class RateLimit(Limit):
    """So much in each window."""

    window: float
    algorithm: Any
    capacity: float
    _fields = ("key", "window", "algorithm", "capacity")
    _kind: ClassVar[str] = "rate"

    def __init__(self, **fields: Any) -> None:
        window = _window(fields)
        capacity = _capacity(fields.pop("capacity", None))
        algorithm = fields.pop("algorithm", RateLimitAlgorithm.SlidingWindow)
        name_of_algorithm(algorithm)
        super().__init__(**fields)
        if not isinstance(algorithm, enum.Enum):
            algorithm = RateLimitAlgorithm(algorithm)
        self._set(window=window, algorithm=algorithm, capacity=capacity)

    @property
    def _impl(self) -> SetRate:
        if self._rate is None:
            self._rate = self._rate_in(*self._own_home())
        return self._rate

    def _rate_in(self, home: SharedLimits, index: int) -> SetRate:
        name, rate = name_of_algorithm(self.algorithm), self.capacity / self.window
        return limiter_of(name, (home, index), rate, self.capacity, self.window)

    def can_acquire(self, requested: float) -> bool:
        home, index = self._own_home()
        return home._has(index, requested)

    def validate_usage(self, requested: float, used: float) -> None:
        if used > requested:
            logger.warning(
                "the usage %r exceeds requested amount %r of limit %r, whose capacity is %r: the excess becomes debt",
                used,
                requested,
                self.key,
                self.capacity,
            )

    def _stats_in(self, home: SharedLimits, index: int) -> dict[str, Any]:
        stats = self._rate_in(home, index).get_stats()
        stats.update(key=self.key, window=self.window, capacity=self.capacity)
        return stats

    def params_signature(self) -> str:
        """Return a short text of what distinguishes it, such as ``c300w60gcr``."""
        name = name_of_algorithm(self.algorithm)
        return f"c{_short(self.capacity)}w{_short(self.window)}{name[:3].lower()}"

    def _spec(self) -> tuple[Any, ...]:
        algorithm = name_of_algorithm(self.algorithm)
        return (self, self.key, self._kind, algorithm, self.capacity, None, self.window)


class CallLimit(RateLimit):
    """So many calls in each window. It counts 1 of each acquisition that does not name it."""

    CallLimit_key: ClassVar[str] = "call_count"
    _kind = "calls"

    def __init__(self, **fields: Any) -> None:
        fields["key"] = self.CallLimit_key
        super().__init__(**fields)

    def validate_usage(self, requested: float, used: float) -> None:
        if requested == 1 and used != 1:
            raise ValueError(f"the usage of '{self.key}' must be 1 for an implicit acquisition of 1 call, but is {used}")
        if used < 0:
            raise ValueError(f"the usage of '{self.key}' cannot be negative, but is {used}")
        super().validate_usage(requested, used)


class ResourceLimit(Limit):
    """So many at once: connections, files. Free again when the acquisition is released."""

    capacity: int
    _fields = ("key", "capacity")
    #: What was written to it while it is in no set.
    _usage: int = 0

    def __init__(self, **fields: Any) -> None:
        capacity = fields.pop("capacity", None)
        number = _number("capacity", capacity)
        if not math.isfinite(number) or number != int(number):
            raise ValueError(f"the capacity of a ResourceLimit must be a whole number, but is {capacity!r}")
        if number < 1:
            raise ValueError(f"the capacity of a ResourceLimit must be >= 1, but is {capacity!r}")
        super().__init__(**fields)
        self._set(capacity=int(number))

    @property
    def _current_usage(self) -> int:
        if self._home is None:
            return self._usage
        home, index = self._home
        return round(self.capacity - home._available(index))

    @_current_usage.setter
    def _current_usage(self, usage: int) -> None:
        self._usage = usage

    def can_acquire(self, requested: float) -> bool:
        return self._current_usage + requested <= self.capacity

    def validate_usage(self, requested: float, used: float) -> None:
        """Accept everything: what was taken is given back."""

    def get_stats(self) -> dict[str, Any]:
        return self._stats_of(self._current_usage)

    def _stats_in(self, home: SharedLimits, index: int) -> dict[str, Any]:
        return self._stats_of(round(self.capacity - home._available(index)))

    def _stats_of(self, usage: int) -> dict[str, Any]:
        return {
            "key": self.key,
            "capacity": self.capacity,
            "current_usage": usage,
            "available": self.capacity - usage,
            "utilization": usage / self.capacity,
        }

    def _spec(self) -> tuple[Any, ...]:
        return (self, self.key, "resource", "", float(self.capacity), None, None)


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, but is {value!r}") from None
    except OverflowError:
        number = math.inf
    if math.isnan(number):
        raise ValueError(f"{name} must be a number, but is {value!r}")
    return number


def _capacity(value: Any) -> float:
    capacity = _number("capacity", value)
    if not capacity > 0:
        raise ValueError(f"capacity must be > 0, but is {value!r}")
    return capacity


#: The names of the window, best first.
_WINDOWS = ("window", "per", "window_seconds")


def _window(fields: dict[str, Any]) -> float:
    """Take the window out of the fields, in seconds."""
    given = [(name, fields.pop(name)) for name in _WINDOWS if name in fields]
    given = [(name, value) for name, value in given if value is not None]
    if not given:
        raise ValueError("window is missing: a number of seconds, a RateWindow or its name")
    if len(given) > 1:
        names = " and ".join(name for name, _ in given)
        raise ValueError(f"{names} are given, but mean the same: `per` and `window_seconds` are aliases of `window`")
    name, value = given[0]
    if name == "window_seconds":
        text = "`window_seconds` is deprecated; write `window`, which takes the same number and names such as 'minute'"
        warnings.warn(text, DeprecationWarning, stacklevel=_stack_of_caller())
    if isinstance(value, bool):
        raise ValueError(f"window must be a number of seconds, a RateWindow or its name, not a bool: {value!r}")
    if isinstance(value, (int, float)):
        if not value > 0:
            raise ValueError(f"window must be > 0 seconds, but is {value!r}")
        return _number("window", value)
    try:
        return RateWindow(value).to_seconds()
    except ValueError:
        names = ", ".join(member.name for member in RateWindow)
        raise ValueError(f"window must be > 0 seconds or one of {names} or an alias, but is {value!r}") from None


def _stack_of_caller() -> int:
    """Return how far up the call is that made the limit, for a warning of the caller of this function."""
    import sys

    level = 2
    while sys._getframe(level).f_globals.get("__name__") == __name__:
        level += 1
    return level


def _short(number: float) -> str:
    if math.isinf(number):
        return "inf"
    return str(int(number)) if number == int(number) else repr(number)


