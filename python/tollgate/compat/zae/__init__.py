"""A drop-in for ``zae_limiter``: the names that programs use, over a Tollgate limiter on any store.

``Repository.open()`` opens the DynamoDB table of the stack, as there. With ``url=``, or with ``TOLLGATE_STORE`` in the environment, it is
any other store: ``file:limits.db``, ``redis://host``, ``shm:name``, ``memory``.

>>> from tollgate.compat.zae import Limit, SyncRateLimiter, SyncRepository
>>> limiter = SyncRateLimiter(repository=SyncRepository.open(url="memory"))
>>> with limiter.acquire("api-key-123", "gpt-4", {"rpm": 1, "tpm": 500}, [Limit.per_minute("rpm", 100), Limit.per_minute("tpm", 10_000)]) as lease:
...     lease.adjust(tpm=-120)
>>> lease.consumed
{'rpm': 1, 'tpm': 380}

What differs: names that have no limit are an error instead of a warning; a lease that a cancelled task holds is rolled back; parents count in
what is available; stacks are not deployed or deleted, parameters do not change by a schedule, and no call is exempt from limits
(``NotImplementedError`` says what to use instead).
"""

from typing import Literal, TypeAlias

from tollgate import __version__

from ._builder import RepositoryBuilder, SyncRepositoryBuilder
from ._errors import (
    EntityError,
    EntityExistsError,
    EntityNotFoundError,
    FanoutIncomplete,
    IncompatibleSchemaError,
    InfrastructureError,
    InfrastructureNotFoundError,
    InvalidIdentifierError,
    InvalidLimitError,
    InvalidNameError,
    LeaseExpiredError,
    NamespaceNotFoundError,
    NamespaceStateError,
    PermissionDenied,
    RateLimitError,
    RateLimiterUnavailable,
    RateLimitExceeded,
    ResourceDisabled,
    StackAlreadyExistsError,
    StackOperationError,
    ValidationError,
    VersionError,
    VersionMismatchError,
    ZAELimiterError,
)
from ._lease import Lease, LeaseResource, SyncLease, SyncLeaseResource
from ._limiter import RateLimiter, SyncRateLimiter
from ._limits import Limit, ScheduleEntry
from ._models import (
    AuditAction,
    AuditEvent,
    BackendCapabilities,
    BucketOperationResult,
    CacheStats,
    Entity,
    EntityCapacity,
    LimitName,
    OnUnavailable,
    ResourceCapacity,
    UsageSnapshot,
    UsageSummary,
)
from ._repository import Repository, SyncRepository
from ._stacks import LimiterInfo, StackOptions, Status
from ._statuses import Availability, LimitStatus
from ._unsupported import BucketState, StackManager, SyncConfigCache, SyncStackManager

#: The levels that limits come from.
ConfigSource: TypeAlias = Literal["entity", "entity_default", "resource", "system"]

# There is one kind of repository, on every store; the names of their protocols serve annotations and isinstance.
RepositoryProtocol = Repository
SyncRepositoryProtocol = SyncRepository

__all__ = [
    "AuditAction",
    "AuditEvent",
    "Availability",
    "BackendCapabilities",
    "BucketOperationResult",
    "BucketState",
    "CacheStats",
    "ConfigSource",
    "Entity",
    "EntityCapacity",
    "EntityError",
    "EntityExistsError",
    "EntityNotFoundError",
    "FanoutIncomplete",
    "IncompatibleSchemaError",
    "InfrastructureError",
    "InfrastructureNotFoundError",
    "InvalidIdentifierError",
    "InvalidLimitError",
    "InvalidNameError",
    "Lease",
    "LeaseExpiredError",
    "LeaseResource",
    "Limit",
    "LimitName",
    "LimitStatus",
    "LimiterInfo",
    "NamespaceNotFoundError",
    "NamespaceStateError",
    "OnUnavailable",
    "PermissionDenied",
    "RateLimitError",
    "RateLimitExceeded",
    "RateLimiter",
    "RateLimiterUnavailable",
    "Repository",
    "RepositoryBuilder",
    "RepositoryProtocol",
    "ResourceCapacity",
    "ResourceDisabled",
    "ScheduleEntry",
    "StackAlreadyExistsError",
    "StackManager",
    "StackOperationError",
    "StackOptions",
    "Status",
    "SyncConfigCache",
    "SyncLease",
    "SyncLeaseResource",
    "SyncRateLimiter",
    "SyncRepository",
    "SyncRepositoryBuilder",
    "SyncRepositoryProtocol",
    "SyncStackManager",
    "UsageSnapshot",
    "UsageSummary",
    "ValidationError",
    "VersionError",
    "VersionMismatchError",
    "ZAELimiterError",
    "__version__",
]
