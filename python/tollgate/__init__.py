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
    Estimate,
    Estimator,
    Event,
    Hint,
    Lease,
    Limit,
    LimitPool,
    LimitReading,
    LimitSet,
    Pending,
    ReplyReader,
    SetStatus,
    Status,
    Tokens,
    Unit,
    __version__,
    calls,
    estimate_tokens,
    fixed_window,
    per_day,
    per_hour,
    per_minute,
    per_second,
    quota,
    rate,
    read_reply,
    resource,
    sliding_window,
)
from ._decorators import limit
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
from ._workers import Worker, WorkerDied, WorkerPool

_core._set_hooks(_awaiting, _errors, _stores, _observing)

__all__ = [
    "Demand",
    "Denial",
    "Error",
    "Estimate",
    "Estimator",
    "Event",
    "Hint",
    "Impossible",
    "InvalidDemand",
    "InvalidValue",
    "Lease",
    "LeaseEnded",
    "Limit",
    "LimitPool",
    "LimitReading",
    "LimitSet",
    "Pending",
    "QueueFull",
    "RateLimited",
    "ReplyReader",
    "SetStatus",
    "Status",
    "StoreRefused",
    "TimedOut",
    "Tokens",
    "Unavailable",
    "Unit",
    "Worker",
    "WorkerDied",
    "WorkerPool",
    "WouldBlockLoop",
    "__version__",
    "calls",
    "estimate_tokens",
    "fixed_window",
    "limit",
    "per_day",
    "per_hour",
    "per_minute",
    "per_second",
    "quota",
    "rate",
    "read_reply",
    "resource",
    "sliding_window",
]
