"""The limits of Concurry 0.13, as a drop-in: ``from concurry import X`` becomes ``from tollgate.compat.concurry import X``.

>>> from tollgate.compat.concurry import CallLimit, LimitSet, RateLimit, ResourceLimit
>>> limits = LimitSet(
...     limits=[
...         CallLimit(window=60, capacity=500),
...         RateLimit(key="tokens", window="minute", capacity=200_000, algorithm="TokenBucket"),
...         ResourceLimit(key="connections", capacity=16),
...     ]
... )
>>> with limits.acquire(requested={"tokens": 1_500}, timeout=30) as acquisition:
...     acquisition.update(usage={"tokens": 1_180})  # what the call has really used
"""

from ..._core import Acquisition, LimitSetAcquisition
from ._limits import CallLimit, Limit, RateLimit, ResourceLimit
from .algorithms import LoadBalancer, RateLimiter
from .constants import ExecutionMode, LoadBalancingAlgorithm, RateLimitAlgorithm, RateWindow
from .limit_pool import LimitPool
from .limit_set import (
    BaseLimitSet,
    InMemorySharedLimitSet,
    LimitSet,
    MultiprocessSharedLimitSet,
    NoOpLimitSet,
    RaySharedLimitSet,
)

__all__ = [
    "Acquisition",
    "BaseLimitSet",
    "CallLimit",
    "ExecutionMode",
    "InMemorySharedLimitSet",
    "Limit",
    "LimitPool",
    "LimitSet",
    "LimitSetAcquisition",
    "LoadBalancer",
    "LoadBalancingAlgorithm",
    "MultiprocessSharedLimitSet",
    "NoOpLimitSet",
    "RateLimit",
    "RateLimitAlgorithm",
    "RateLimiter",
    "RateWindow",
    "RaySharedLimitSet",
    "ResourceLimit",
]
