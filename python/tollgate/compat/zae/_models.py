"""The data that users read: entities, audit events, capacities, usage."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

import tollgate as tg


class OnUnavailable(enum.Enum):
    """What to do while the store does not answer.

    >>> from tollgate.compat.zae import OnUnavailable, SyncRateLimiter, SyncRepository
    >>> limiter = SyncRateLimiter(repository=SyncRepository.open(url="memory"), on_unavailable=OnUnavailable.ALLOW)
    """

    ALLOW = "allow"
    BLOCK = "block"


@dataclass(frozen=True)
class Entity:
    """An entity.

    >>> from tollgate.compat.zae import SyncRepository
    >>> SyncRepository.open(url="memory").create_entity("key-1", metadata={"plan": "pro"}).metadata
    {'plan': 'pro'}
    """

    id: str
    name: str | None = None
    parent_id: str | None = None
    cascade: bool = False
    metadata: dict[str, str] = field(default_factory=dict)
    created_at: str | None = None
    parent_generation: int = 0
    incarnation: str = "-"

    @classmethod
    def of(cls, entity: tg.Entity) -> Entity:
        """Return what shows an entity of the library."""
        return cls(entity.id, entity.name, entity.parent, entity.cascades, dict(entity.metadata), entity.created_at)

    @property
    def is_parent(self) -> bool:
        """Whether it has no parent itself."""
        return self.parent_id is None

    @property
    def is_child(self) -> bool:
        """Whether it has a parent."""
        return self.parent_id is not None


@dataclass(frozen=True)
class AuditEvent:
    """A change that was made.

    >>> from tollgate.compat.zae import SyncRepository
    >>> repo = SyncRepository.open(url="memory")
    >>> made = repo.create_entity("key-1", principal="alice")
    >>> [(event.action, event.principal) for event in repo.get_audit_events("key-1")]
    [('entity_created', 'alice')]
    """

    event_id: str
    timestamp: str
    action: str
    entity_id: str
    principal: str | None = None
    resource: str | None = None
    details: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, event: tg.AuditEvent) -> AuditEvent:
        """Return what shows an audit event of the library."""
        whose = (event.subject, event.principal, event.resource)
        return cls(event.id, event.timestamp, event.action, *whose, dict(event.details))

    def to_dict(self) -> dict[str, Any]:
        """Return the event as a dict; what it does not have is left out."""
        always = {"event_id": self.event_id, "timestamp": self.timestamp, "action": self.action, "entity_id": self.entity_id}
        others = {"principal": self.principal, "resource": self.resource, "details": self.details or None}
        return {**always, **{name: value for name, value in others.items() if value is not None}}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> AuditEvent:
        """Return the event of such a dict."""
        return cls(**data)


class AuditAction:
    """The actions of audit events. The library has more of them: any text may come.

    >>> from tollgate.compat.zae import AuditAction
    >>> AuditAction.LIMITS_SET
    'limits_set'
    """

    ENTITY_CREATED = "entity_created"
    ENTITY_DELETED = "entity_deleted"
    ENTITY_PARENT_CHANGED = "entity_parent_changed"
    LIMITS_SET = "limits_set"
    LIMITS_DELETED = "limits_deleted"
    BUCKET_RESET = "bucket_reset"
    BUCKET_TOPPED_UP = "bucket_topped_up"


class LimitName:
    """Usual names of limits.

    >>> from tollgate.compat.zae import LimitName
    >>> LimitName.RPM
    'rpm'
    """

    RPM = "rpm"
    RPH = "rph"
    RPD = "rpd"
    TPM = "tpm"
    TPH = "tph"
    TPD = "tpd"


@dataclass(frozen=True)
class BucketOperationResult:
    """What a reset or a top-up did. ``shards`` is 0 if there was nothing to do, and if a top-up with the same key was made before.

    ``amounts`` are what was given by name, as a look immediately before it found the room: calls at the same time are not in it.

    >>> from tollgate.compat.zae import SyncRepository
    >>> SyncRepository.open(url="memory").reset_bucket("key-1", "gpt-4")
    BucketOperationResult(entity_id='key-1', resource='gpt-4', shards=0, amounts={})
    """

    entity_id: str
    resource: str
    shards: int
    amounts: dict[str, int]


@dataclass(frozen=True)
class CacheStats:
    """The hits and misses of the cache of stored limits.

    >>> from tollgate.compat.zae import SyncRepository
    >>> SyncRepository.open(url="memory").get_cache_stats().as_dict()["ttl"]
    60
    """

    hits: int = 0
    misses: int = 0
    size: int = 0
    ttl_seconds: int = 0
    local_rejections: int = 0

    def as_dict(self) -> dict[str, int]:
        """Return the numbers by name."""
        return {
            "hits": self.hits,
            "misses": self.misses,
            "size": self.size,
            "ttl": self.ttl_seconds,
            "local_rejections": self.local_rejections,
        }


@dataclass(frozen=True)
class BackendCapabilities:
    """What a store can do.

    >>> from tollgate.compat.zae import SyncRepository
    >>> SyncRepository.open(url="memory").capabilities.supports_usage_snapshots
    True
    """

    supports_audit_logging: bool = False
    supports_usage_snapshots: bool = False
    supports_infrastructure_management: bool = False
    supports_change_streams: bool = False
    supports_batch_operations: bool = False


@dataclass
class EntityCapacity:
    """How much one entity has of a limit.

    >>> from tollgate.compat.zae import EntityCapacity
    >>> EntityCapacity("key-1", capacity=10, available=9, utilization_pct=10.0).available
    9
    """

    entity_id: str
    capacity: int
    available: int
    utilization_pct: float


@dataclass
class ResourceCapacity:
    """How much all entities have of a limit of a resource.

    >>> from tollgate.compat.zae import Limit, SyncRateLimiter, SyncRepository
    >>> limiter = SyncRateLimiter(repository=SyncRepository.open(url="memory"))
    >>> with limiter.acquire("key-1", "gpt-4", {"rph": 5}, [Limit.per_hour("rph", 10)]):
    ...     pass
    >>> limiter.get_resource_capacity("gpt-4", "rph").utilization_pct
    50.0
    """

    resource: str
    limit_name: str
    total_capacity: int
    total_available: int
    utilization_pct: float
    entities: list[EntityCapacity]


@dataclass(frozen=True)
class UsageSnapshot:
    """What an entity used of a resource in a window: hourly, daily or monthly. ``overdrawn`` is empty: it is not recorded.

    >>> from tollgate.compat.zae import Limit, SyncRateLimiter, SyncRepository
    >>> limiter = SyncRateLimiter(repository=SyncRepository.open(url="memory"))
    >>> with limiter.acquire("key-1", "gpt-4", {"rph": 5}, [Limit.per_hour("rph", 10)]):
    ...     pass
    >>> snapshots, following = limiter.get_usage_snapshots("key-1", window_type="daily")
    >>> snapshots[0].counters
    {'rph': 5}
    """

    entity_id: str
    resource: str
    window_start: str
    window_end: str
    window_type: str
    counters: dict[str, int]
    total_events: int
    overdrawn: dict[str, int] = field(default_factory=dict)


@dataclass
class UsageSummary:
    """What was used over several windows.

    >>> from tollgate.compat.zae import Limit, SyncRateLimiter, SyncRepository
    >>> limiter = SyncRateLimiter(repository=SyncRepository.open(url="memory"))
    >>> with limiter.acquire("key-1", "gpt-4", {"rph": 5}, [Limit.per_hour("rph", 10)]):
    ...     pass
    >>> limiter.get_usage_summary("key-1").total
    {'rph': 5}
    """

    snapshot_count: int
    total: dict[str, int]
    average: dict[str, float]
    min_window_start: str | None
    max_window_start: str | None
