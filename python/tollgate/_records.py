"""What a limiter and its catalog return: small objects that do not change, compare by value and pickle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._core import Limit, Status


class Record:
    """The base of all records: named fields that are set once, compare by value, and are a dict by ``as_dict``.

    >>> import tollgate as tg
    >>> tg.CacheStats(hits=1, misses=2, negative_hits=0, entries=3).as_dict()
    {'hits': 1, 'misses': 2, 'negative_hits': 0, 'entries': 3}
    """

    __slots__: tuple[str, ...] = ()

    def __init__(self, *values: Any, **named: Any) -> None:
        fields = self.__slots__
        given = dict(zip(fields, values, strict=False), **named)
        if len(values) > len(fields) or given.keys() != set(fields):
            raise TypeError(f"{type(self).__name__}() takes {', '.join(fields)}")
        for name in fields:
            object.__setattr__(self, name, given[name])

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a {type(self).__name__} does not change")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {type(self).__name__} does not change")

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return dict(zip(self.__slots__, self._values(), strict=True))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash((type(self), self._values()))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({fields})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._values()


class Availability(Record):
    """Whether a demand would pass, and how every limit stands. It is true if the demand would pass.

    >>> import tollgate as tg
    >>> limiter = tg.Limiter("memory")
    >>> limiter.catalog.set_limits([tg.per_minute("rpm", 10)])
    >>> found = limiter.check("user-1", "gpt-4", {"rpm": 4})
    >>> bool(found), found["rpm"].available, found.sources
    (True, 10, {('user-1', 'gpt-4'): 'system'})
    """

    __slots__ = ("passes", "retry_after", "statuses", "sources")

    passes: bool
    #: How many seconds until the demand would pass; ``None`` if that depends on others.
    retry_after: float | None
    #: How every limit of every entity stands, the calling one first.
    statuses: tuple[Status, ...]
    #: By entity and resource, the level that the limits come from: entity, entity_default, resource, system or call.
    sources: dict[tuple[str, str], str]

    def __bool__(self) -> bool:
        return self.passes

    def __getitem__(self, name: str) -> Status:
        """Return the status of a limit of the calling entity."""
        for status in self.statuses:
            if status.name == name:
                return status
        raise KeyError(name)

    @property
    def violations(self) -> tuple[Status, ...]:
        """The limits that deny the demand."""
        return tuple(status for status in self.statuses if status.exceeded)


class Page(Record):
    """A part of a list. There is more while ``next`` is not ``None``: pass it as ``after``.

    >>> import tollgate as tg
    >>> catalog = tg.Limiter("memory").catalog
    >>> catalog.create_entity("user-1").id
    'user-1'
    >>> catalog.list_entities()
    Page(items=('user-1',), next=None)
    """

    __slots__ = ("items", "next")

    items: tuple[Any, ...]
    next: str | None

    def __iter__(self) -> Any:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


class Entity(Record):
    """An entity that was created.

    >>> import tollgate as tg
    >>> catalog = tg.Limiter("memory").catalog
    >>> catalog.create_entity("user-1", metadata={"plan": "pro"}).metadata
    {'plan': 'pro'}
    """

    __slots__ = ("id", "name", "parent", "cascades", "metadata", "created_at", "children")

    id: str
    name: str
    parent: str | None
    cascades: bool
    metadata: dict[str, str]
    created_at: str
    children: int


class StoredLimits(Record):
    """The limits of a level.

    >>> import tollgate as tg
    >>> catalog = tg.Limiter("memory").catalog
    >>> catalog.set_limits([tg.per_minute("rpm", 500)], resource="gpt-4")
    >>> catalog.get_limits(resource="gpt-4").limits
    (<Limit rpm: 500 per 60s>,)
    """

    __slots__ = ("limits", "on_unavailable", "version")

    limits: tuple[Limit, ...]
    #: What to do while the store does not answer; only the system has one.
    on_unavailable: str | None
    #: When the level was last set, in microseconds since the epoch.
    version: int


class ManagedSet(Record):
    """Levels that are managed together. Each is a pair of an entity and a resource, either of which may be ``None``.

    >>> import tollgate as tg
    >>> catalog = tg.Limiter("memory").catalog
    >>> catalog.apply_limits([{"limits": [tg.per_minute("rpm", 5)]}], managed_set="limits.toml")
    >>> catalog.managed_sets()[0].levels
    ((None, None),)
    """

    __slots__ = ("name", "revision", "levels")

    name: str
    revision: int
    levels: tuple[tuple[str | None, str | None], ...]


class AuditEvent(Record):
    """A change that was made: when, by whom, to what.

    >>> import tollgate as tg
    >>> catalog = tg.Limiter("memory", principal="alice").catalog
    >>> catalog.disable_resource("gpt-4")
    True
    >>> event = catalog.audit(resource="gpt-4").items[0]
    >>> event.subject, event.principal, event.action
    ('$RESOURCE:gpt-4', 'alice', 'disabled')
    """

    __slots__ = ("id", "subject", "timestamp", "action", "principal", "resource", "details")

    id: str
    #: The entity, or ``$SYSTEM``, or ``$RESOURCE:`` and the resource.
    subject: str
    timestamp: str
    action: str
    principal: str
    resource: str | None
    details: dict[str, Any]


class UsageRow(Record):
    """What an entity used of a resource in one window.

    >>> import tollgate as tg
    >>> limiter = tg.Limiter("memory")
    >>> limiter.catalog.set_limits([tg.per_minute("rpm", 500)])
    >>> limiter.acquire("user-1", "gpt-4", {"rpm": 3}).commit()
    >>> limiter.catalog.usage("day", entity="user-1").items[0].amounts
    {'rpm': 3}
    """

    __slots__ = ("entity", "resource", "window", "start", "amounts", "events", "child_amounts", "child_events")

    entity: str
    resource: str
    #: ``hour``, ``day`` or ``month``.
    window: str
    #: When it began, in seconds since the epoch.
    start: float
    amounts: dict[str, int]
    events: int
    #: What calls of descendants used of that.
    child_amounts: dict[str, int]
    child_events: int


class WindowUsage(Record):
    """What was used in one window, by all that were asked for.

    >>> import tollgate as tg
    >>> limiter = tg.Limiter("memory")
    >>> limiter.catalog.set_limits([tg.per_minute("rpm", 500)])
    >>> limiter.acquire("user-1", "gpt-4", {"rpm": 3}).commit()
    >>> list(limiter.catalog.usage_by_window("day", resource="gpt-4").values())
    [WindowUsage(events=1, amounts={'rpm': 3})]
    """

    __slots__ = ("events", "amounts")

    events: int
    amounts: dict[str, int]


class LimitUsage(Record):
    """What was used of one limit over several windows.

    >>> import tollgate as tg
    >>> limiter = tg.Limiter("memory")
    >>> limiter.catalog.set_limits([tg.per_minute("rpm", 500)])
    >>> limiter.acquire("user-1", "gpt-4", {"rpm": 3}).commit()
    >>> usage = limiter.catalog.usage_summary("day", entity="user-1").limits["rpm"]
    >>> usage.total, usage.average
    (3, 3.0)
    """

    __slots__ = ("total", "windows", "min", "max")

    total: int
    windows: int
    min: int
    max: int

    @property
    def average(self) -> float:
        """The mean of the windows that have any."""
        return self.total / max(self.windows, 1)


class UsageSummary(Record):
    """What was used over several windows.

    >>> import tollgate as tg
    >>> limiter = tg.Limiter("memory")
    >>> limiter.catalog.set_limits([tg.per_minute("rpm", 500)])
    >>> limiter.acquire("user-1", "gpt-4", {"rpm": 3}).commit()
    >>> limiter.catalog.usage_summary("hour", entity="user-1").events
    1
    """

    __slots__ = ("windows", "first", "last", "events", "limits")

    windows: int
    first: float | None
    last: float | None
    events: int
    limits: dict[str, LimitUsage]


class Bucket(Record):
    """How the limits of one entity and one resource stand.

    >>> import tollgate as tg
    >>> limiter = tg.Limiter("memory")
    >>> limiter.catalog.set_limits([tg.per_minute("rpm", 500)])
    >>> limiter.acquire("user-1", "gpt-4", {"rpm": 3}).commit()
    >>> [(bucket.entity, bucket.resource) for bucket in limiter.catalog.buckets("user-1")]
    [('user-1', 'gpt-4')]
    """

    __slots__ = ("entity", "resource", "statuses")

    entity: str
    resource: str
    statuses: tuple[Status, ...]


class EntityCapacity(Record):
    """How much one entity has and uses of a limit.

    >>> import tollgate as tg
    >>> limiter = tg.Limiter("memory")
    >>> limiter.catalog.set_limits([tg.per_day("rpd", 500)])
    >>> limiter.acquire("user-1", "gpt-4", {"rpd": 3}).commit()
    >>> limiter.catalog.capacity("gpt-4", "rpd").entities[0].entity
    'user-1'
    """

    __slots__ = ("entity", "capacity", "available", "used")

    entity: str
    #: ``None`` without a bound.
    capacity: int | None
    available: int
    used: int


class ResourceCapacity(Record):
    """How much all entities have and use of a limit of a resource.

    >>> import tollgate as tg
    >>> limiter = tg.Limiter("memory")
    >>> limiter.catalog.set_limits([tg.per_day("rpd", 500)])
    >>> limiter.acquire("user-1", "gpt-4", {"rpd": 3}).commit()
    >>> limiter.catalog.capacity("gpt-4", "rpd").total_used
    3
    """

    __slots__ = ("total_capacity", "total_available", "total_used", "entities")

    total_capacity: int
    total_available: int
    total_used: int
    entities: tuple[EntityCapacity, ...]


class Counts(Record):
    """How much a namespace has of each kind of record.

    >>> import tollgate as tg
    >>> catalog = tg.Limiter("memory").catalog
    >>> catalog.create_entity("user-1").id
    'user-1'
    >>> catalog.counts().entities
    1
    """

    __slots__ = (
        "entities",
        "entity_limits",
        "resource_limits",
        "system_limits",
        "disabled",
        "audit_events",
        "usage_records",
        "buckets",
    )

    entities: int
    entity_limits: int
    resource_limits: int
    system_limits: int
    disabled: int
    audit_events: int
    usage_records: int
    buckets: int


class CacheStats(Record):
    """The hits and misses of the cache of a catalog.

    >>> import tollgate as tg
    >>> tg.Limiter("memory").catalog.cache_stats().hits
    0
    """

    __slots__ = ("hits", "misses", "negative_hits", "entries")

    hits: int
    misses: int
    negative_hits: int
    entries: int


class Namespace(Record):
    """A namespace: ``status`` is active, deleted or purging.

    >>> import tollgate as tg
    >>> namespaces = tg.Limiter("memory").catalog.namespaces
    >>> namespaces.create("staging").status
    'active'
    """

    __slots__ = ("id", "name", "status", "created_at", "deleted_at")

    id: str
    name: str
    status: str
    created_at: str
    deleted_at: str | None


class Purged(Record):
    """What a purge has deleted.

    >>> import tollgate as tg
    >>> namespaces = tg.Limiter("memory").catalog.namespaces
    >>> gone = namespaces.create("staging") and namespaces.delete("staging")
    >>> namespaces.purge(gone.id).buckets
    0
    """

    __slots__ = ("namespace", "buckets", "records")

    namespace: Namespace
    buckets: int
    records: int


#: All records, by which the package exports them.
RECORDS = (
    Availability,
    Page,
    Entity,
    StoredLimits,
    ManagedSet,
    AuditEvent,
    UsageRow,
    WindowUsage,
    LimitUsage,
    UsageSummary,
    Bucket,
    EntityCapacity,
    ResourceCapacity,
    Counts,
    CacheStats,
    Namespace,
    Purged,
)

for _class in (Record, *RECORDS):
    _class.__module__ = "tollgate"
