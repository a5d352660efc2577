"""The enums. A member can be written in any case, with or without ``_``, ``-`` and spaces, or by an alias."""

from __future__ import annotations

import enum
from typing import Any

__all__ = ["ExecutionMode", "LoadBalancingAlgorithm", "RateLimitAlgorithm", "RateWindow"]


def _normal(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter not in " _-")


class _NamedEnum(enum.Enum):
    """An enum whose members are found by name, by alias, and by a member of the same name of another enum."""

    @classmethod
    def _aliases(cls) -> dict[str, str]:
        return {}

    @classmethod
    def _missing_(cls, value: Any) -> Any:
        text = value.name if isinstance(value, enum.Enum) else value
        if isinstance(text, str):
            wanted = _normal(text)
            aliases = cls._aliases()
            for member in cls:
                spellings = [member.name, *aliases.get(member.name, "").split(",")]
                if wanted in map(_normal, spellings):
                    return member
        names = ", ".join(member.name for member in cls)
        raise ValueError(f"Could not find enum with value {value!r}; it must be one of {names}")

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


class ExecutionMode(_NamedEnum):
    """Where the workers run that share a set."""

    Auto = "Auto"
    Sync = "Sync"
    Asyncio = "Asyncio"
    Threads = "Threads"
    Processes = "Processes"
    Ray = "Ray"

    @classmethod
    def _aliases(cls) -> dict[str, str]:
        return {
            "Sync": "synchronous",
            "Asyncio": "async,asynchronous",
            "Threads": "thread",
            "Processes": "proc,procs,process",
        }


class LoadBalancingAlgorithm(_NamedEnum):
    """How calls are spread."""

    RoundRobin = "RoundRobin"
    LeastActiveLoad = "LeastActiveLoad"
    LeastTotalLoad = "LeastTotalLoad"
    Random = "Random"

    @classmethod
    def _aliases(cls) -> dict[str, str]:
        return {"RoundRobin": "rr", "LeastActiveLoad": "active", "LeastTotalLoad": "total", "Random": "rand"}


class RateLimitAlgorithm(_NamedEnum):
    """How a rate is measured."""

    TokenBucket = "TokenBucket"
    LeakyBucket = "LeakyBucket"
    SlidingWindow = "SlidingWindow"
    FixedWindow = "FixedWindow"
    GCRA = "GCRA"

    @classmethod
    def _aliases(cls) -> dict[str, str]:
        return {
            "TokenBucket": "token",
            "LeakyBucket": "leaky",
            "SlidingWindow": "sliding",
            "FixedWindow": "fixed",
            "GCRA": "Generic cell rate algorithm,Generic cell rate",
        }


#: What one unit of each window is called, and how many seconds it has.
_UNITS = {
    "Secondly": ("second,sec", 1.0),
    "Minutely": ("minute,min", 60.0),
    "Hourly": ("hour,hr", 3_600.0),
    "Daily": ("day", 86_400.0),
    "Weekly": ("week,wk", 604_800.0),
}


class RateWindow(_NamedEnum):
    """The windows that have a name."""

    Secondly = "Secondly"
    Minutely = "Minutely"
    Hourly = "Hourly"
    Daily = "Daily"
    Weekly = "Weekly"

    @classmethod
    def _aliases(cls) -> dict[str, str]:
        return {name: ",".join(_spellings(units)) for name, (units, _) in _UNITS.items()}

    def to_seconds(self) -> float:
        """Return how many seconds it lasts."""
        return _UNITS[self.name][1]


def _spellings(units: str) -> list[str]:
    plural = [form for unit in units.split(",") for form in (unit, f"{unit}s")]
    return plural + [f"per_{form}" for form in plural]
