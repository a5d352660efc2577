"""A drop-in for ``zae_limiter``: the names that programs use, over a Tollgate limiter on any store.

``Repository.open()`` opens the DynamoDB table of the stack, as there. With ``url=``, or with ``TOLLGATE_STORE`` in the environment, it is
any other store: ``file:limits.db``, ``redis://host``, ``shm:name``, ``memory``.

>>> from tollgate.compat.zae import Limit, SyncRateLimiter, SyncRepository
>>> limiter = SyncRateLimiter(repository=SyncRepository.open(url="memory"))
>>> with limiter.acquire("api-key-123", "gpt-4", {"rpm": 1, "tpm": 500}, [Limit.per_minute("rpm", 100), Limit.per_minute("tpm", 10_000)]) as lease:
...     lease.adjust(tpm=-120)
>>> lease.consumed
{'rpm': 1, 'tpm': 380}

What differs: names that have no limit are an error instead of a warning; a lease that a cancelled task holds is rolled back; stacks are not
deployed or deleted.
"""

from ._errors import (
    EntityError,
    EntityExistsError,
    EntityNotFoundError,
    InfrastructureError,
    LeaseExpiredError,
    NamespaceNotFoundError,
    NamespaceStateError,
    PermissionDenied,
    RateLimiterUnavailable,
    RateLimitError,
    RateLimitExceeded,
    ResourceDisabled,
    ValidationError,
    ZAELimiterError,
)
from ._lease import Lease, LeaseResource, SyncLease, SyncLeaseResource
from ._limiter import RateLimiter, SyncRateLimiter
from ._models import AuditEvent, Availability, Entity, Limit, LimitStatus, Namespace, OnUnavailable
from ._repository import Repository, SyncRepository

__all__ = [
    "AuditEvent",
    "Availability",
    "Entity",
    "EntityError",
    "EntityExistsError",
    "EntityNotFoundError",
    "InfrastructureError",
    "Lease",
    "LeaseExpiredError",
    "LeaseResource",
    "Limit",
    "LimitStatus",
    "Namespace",
    "NamespaceNotFoundError",
    "NamespaceStateError",
    "OnUnavailable",
    "PermissionDenied",
    "RateLimitError",
    "RateLimitExceeded",
    "RateLimiter",
    "RateLimiterUnavailable",
    "Repository",
    "ResourceDisabled",
    "SyncLease",
    "SyncLeaseResource",
    "SyncRateLimiter",
    "SyncRepository",
    "ValidationError",
    "ZAELimiterError",
]
