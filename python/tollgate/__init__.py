"""Rate limits for LLM providers and other expensive APIs: requests, tokens, money and concurrency, all of them together or none.

>>> import tollgate as tg
>>> limits = tg.LimitSet([tg.per_minute("rpm", 500), tg.per_minute("tpm", 200_000), tg.resource("connections", 16)])
>>> with limits.acquire({"rpm": 1, "tpm": 1_500}, timeout=30) as lease:
...     lease.settle(tpm=1_180)  # what the call has really used
>>> limits.peek()["tpm"].available
198820
"""

from . import _awaiting, _core, _errors, _observing, _stores
from ._core import (
    Demand,
    Denial,
    Event,
    Lease,
    Limit,
    LimitPool,
    LimitSet,
    Pending,
    SetStatus,
    Status,
    Unit,
    __version__,
    calls,
    fixed_window,
    per_day,
    per_hour,
    per_minute,
    per_second,
    quota,
    rate,
    resource,
    sliding_window,
)
from ._errors import (
    Error,
    Impossible,
    InvalidDemand,
    InvalidValue,
    LeaseEnded,
    QueueFull,
    RateLimited,
    StoreRefused,
    TimedOut,
    Unavailable,
    WouldBlockLoop,
)

_core._set_hooks(_awaiting, _errors, _stores, _observing)

__all__ = [
    "Demand",
    "Denial",
    "Error",
    "Event",
    "Impossible",
    "InvalidDemand",
    "InvalidValue",
    "Lease",
    "LeaseEnded",
    "Limit",
    "LimitPool",
    "LimitSet",
    "Pending",
    "QueueFull",
    "RateLimited",
    "SetStatus",
    "Status",
    "StoreRefused",
    "TimedOut",
    "Unavailable",
    "Unit",
    "WouldBlockLoop",
    "__version__",
    "calls",
    "fixed_window",
    "per_day",
    "per_hour",
    "per_minute",
    "per_second",
    "quota",
    "rate",
    "resource",
    "sliding_window",
]
