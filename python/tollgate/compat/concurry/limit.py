"""The names of ``concurry.core.limit``."""

from ..._core import Acquisition, LimitSetAcquisition
from ._limits import CallLimit, Limit, RateLimit, ResourceLimit
from .algorithms import RateLimiter
from .constants import RateLimitAlgorithm
from .limit_pool import LimitPool
from .limit_set import LimitSet

__all__ = [
    "Acquisition",
    "CallLimit",
    "Limit",
    "LimitPool",
    "LimitSet",
    "LimitSetAcquisition",
    "RateLimit",
    "RateLimitAlgorithm",
    "RateLimiter",
    "ResourceLimit",
]
