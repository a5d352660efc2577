"""The data that users read: entities, audit events, capacities, usage."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

import tollgate as tg


class OnUnavailable(enum.Enum):
    """What to do while the store does not answer."""

    ALLOW = "allow"
    BLOCK = "block"


@dataclass(frozen=True)
class Entity:
    """An entity."""

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
    """A change that was made."""

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
    """

    entity_id: str
    resource: str
    shards: int
    amounts: dict[str, int]


@dataclass(frozen=True)
class CacheStats:
    """The hits and misses of the cache of stored limits."""

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
    """What a store can do."""

    supports_audit_logging: bool = False
    supports_usage_snapshots: bool = False
    supports_infrastructure_management: bool = False
    supports_change_streams: bool = False
    supports_batch_operations: bool = False


@dataclass
class EntityCapacity:
    """How much one entity has of a limit."""

    entity_id: str
    capacity: int
    available: int
    utilization_pct: float


@dataclass
class ResourceCapacity:
    """How much all entities have of a limit of a resource."""

    resource: str
    limit_name: str
    total_capacity: int
    total_available: int
    utilization_pct: float
    entities: list[EntityCapacity]


@dataclass(frozen=True)
class UsageSnapshot:
    """What an entity used of a resource in a window: hourly, daily or monthly. ``overdrawn`` is empty: it is not recorded."""

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
    """What was used over several windows."""

    snapshot_count: int
    total: dict[str, int]
    average: dict[str, float]
    min_window_start: str | None
    max_window_start: str | None
