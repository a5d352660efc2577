"""The data that users read: limits, entities, statuses."""

from __future__ import annotations

import dataclasses
import datetime
import enum
from dataclasses import dataclass, field
from typing import Any

import tollgate as tg

from ._errors import ValidationError


class OnUnavailable(enum.Enum):
    """What to do while the store does not answer."""

    ALLOW = "allow"
    BLOCK = "block"


@dataclass(frozen=True)
class Limit:
    """A limit: so much at once, refilled by so much in each period; or a quota, which is full again at its reset.

    >>> from tollgate.compat.zae import Limit
    >>> Limit.per_minute("rpm", 100).capacity
    100
    """

    name: str
    capacity: int
    refill_amount: int
    refill_period_seconds: int
    schedule: tuple[Any, ...] = ()
    #: Pairs of a cron expression and a time zone.
    reset_schedule: tuple[tuple[str, str], ...] = ()
    reset_after: datetime.timedelta | None = None
    soft: bool = False

    def __post_init__(self) -> None:
        if self.schedule:
            raise NotImplementedError("limits that change by a schedule; store other limits at those times instead")
        self.to_native()

    @classmethod
    def custom(
        cls, name: str, capacity: int, refill_amount: int, refill_period_seconds: int, *, soft: bool = False
    ) -> Limit:
        return cls(name, capacity, refill_amount, refill_period_seconds, soft=soft)

    @classmethod
    def per_second(cls, name: str, rate: int, burst: int | None = None, *, soft: bool = False) -> Limit:
        return cls(name, rate if burst is None else burst, rate, 1, soft=soft)

    @classmethod
    def per_minute(cls, name: str, rate: int, burst: int | None = None, *, soft: bool = False) -> Limit:
        return cls(name, rate if burst is None else burst, rate, 60, soft=soft)

    @classmethod
    def per_hour(cls, name: str, rate: int, burst: int | None = None, *, soft: bool = False) -> Limit:
        return cls(name, rate if burst is None else burst, rate, 3_600, soft=soft)

    @classmethod
    def per_day(cls, name: str, rate: int, burst: int | None = None, *, soft: bool = False) -> Limit:
        return cls(name, rate if burst is None else burst, rate, 86_400, soft=soft)

    @classmethod
    def quota(
        cls,
        name: str,
        amount: int,
        *,
        cron: str | None = None,
        tz: str = "UTC",
        reset_after: datetime.timedelta | None = None,
        soft: bool = False,
    ) -> Limit:
        if (cron is None) == (reset_after is None):
            raise ValidationError("cron", str(cron), "a quota has either cron or reset_after")
        resets = ((cron, tz),) if cron is not None else ()
        return cls(name, amount, 0, 1, reset_schedule=resets, reset_after=reset_after, soft=soft)

    @property
    def refill_rate(self) -> float:
        """How much is refilled each second."""
        return self.refill_amount / self.refill_period_seconds

    @property
    def is_quota(self) -> bool:
        return bool(self.reset_schedule) or self.reset_after is not None

    @property
    def reset_after_seconds(self) -> int | None:
        return None if self.reset_after is None else int(self.reset_after.total_seconds())

    def to_native(self) -> tg.Limit:
        """Return the limit of the library."""
        try:
            if self.reset_after is not None:
                return tg.quota(self.name, self.capacity, after=self.reset_after, shadow=self.soft)
            if self.reset_schedule:
                ((cron, tz),) = self.reset_schedule
                return tg.quota(self.name, self.capacity, cron=cron, tz=tz, shadow=self.soft)
            period = self.refill_period_seconds
            return tg.rate(self.name, self.refill_amount, period, burst=self.capacity, shadow=self.soft)
        except (tg.Error, TypeError) as error:
            raise ValidationError("limit", self.name, str(error)) from error

    @classmethod
    def from_native(cls, limit: tg.Limit) -> Limit:
        """Return what shows a limit of the library. A calendar of resets is shown as its text."""
        made = object.__new__(cls)
        period = 1 if limit.kind == "quota" else int(limit.period or 1)
        is_anchored = limit.kind == "quota" and limit.period is not None
        values = {
            "name": limit.name,
            "capacity": limit.capacity,
            "refill_amount": 0 if limit.kind == "quota" else limit.amount,
            "refill_period_seconds": period,
            "schedule": (),
            "reset_schedule": ((str(limit), ""),) if limit.kind == "quota" and not is_anchored else (),
            "reset_after": datetime.timedelta(seconds=limit.period or 0) if is_anchored else None,
            "soft": limit.shadow,
        }
        for name, value in values.items():
            object.__setattr__(made, name, value)
        return made

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, with ``reset_after`` in seconds."""
        values = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        values["reset_after"] = self.reset_after_seconds
        return values

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Limit:
        """Return the limit of such a dict."""
        values = dict(values)
        if values.get("reset_after") is not None:
            values["reset_after"] = datetime.timedelta(seconds=values["reset_after"])
        for name in ("schedule", "reset_schedule"):
            values[name] = tuple(tuple(each) for each in values.get(name, ()))
        return cls(**values)


def native(limits: list[Limit]) -> list[tg.Limit]:
    """Return the limits of the library."""
    for limit in limits:
        if not isinstance(limit, Limit):
            raise ValidationError("limits", repr(limit), f"{limit!r} is not a Limit")
    return [limit.to_native() for limit in limits]


@dataclass(frozen=True)
class LimitStatus:
    """How one limit of one entity stands."""

    entity_id: str
    resource: str
    limit_name: str
    limit: Limit
    available: int
    requested: int
    exceeded: bool
    retry_after_seconds: float = 0.0
    resets_at_ms: int | None = None

    @classmethod
    def of(cls, status: tg.Status) -> LimitStatus:
        """Return what shows a status of the library."""
        limit = Limit.from_native(status.limit)
        retry_after = (status.retry_after or 0.0) if status.exceeded else 0.0
        whose = (status.entity or "", status.resource or "")
        return cls(*whose, status.name, limit, status.available, status.requested, status.exceeded, retry_after)

    @classmethod
    def impossible(cls, status: tg.Status, requested: int) -> LimitStatus:
        """Return the status for a demand above the capacity: the wait is that of a bucket without a ceiling."""
        known = cls.of(status)
        missing = requested - status.available
        rate = known.limit.refill_rate
        wait = missing / rate if missing > 0 and rate > 0 else status.full_after or 0.0
        exceeded = requested > known.limit.capacity or missing > 0
        return dataclasses.replace(
            known, requested=requested, exceeded=exceeded, retry_after_seconds=wait if exceeded else 0.0
        )

    @property
    def deficit(self) -> int:
        return max(0, self.requested - self.available)

    @property
    def overdrawn(self) -> bool:
        return self.available < 0

    @property
    def soft(self) -> bool:
        return self.limit.soft

    def as_dict(self) -> dict[str, Any]:
        """Return the status as a dict, for an answer in JSON."""
        limit = self.limit
        kind: dict[str, Any] = {"kind": "quota", "capacity": limit.capacity, "resets_at_ms": self.resets_at_ms}
        if not limit.is_quota:
            kind = {
                "kind": "rate",
                "capacity": limit.capacity,
                "refill_amount": limit.refill_amount,
                "refill_period_seconds": limit.refill_period_seconds,
            }
        return {
            "entity_id": self.entity_id,
            "resource": self.resource,
            "limit_name": self.limit_name,
            **kind,
            "available": self.available,
            "requested": self.requested,
            "exceeded": self.exceeded,
            "retry_after_seconds": self.retry_after_seconds,
            "soft": self.soft,
        }


@dataclass(frozen=True)
class Availability:
    """How all limits stand for a demand."""

    entity_id: str
    resource: str
    checked_at_ms: int
    statuses: tuple[LimitStatus, ...]
    bypassed: bool = False

    @property
    def allowed(self) -> bool:
        return not any(status.exceeded for status in self.statuses)

    @property
    def available(self) -> dict[str, int]:
        """By name, the least of what the entity and its parents have."""
        least: dict[str, int] = {}
        for status in self.statuses:
            least[status.limit_name] = min(status.available, least.get(status.limit_name, status.available))
        return least

    @property
    def exceeded(self) -> tuple[LimitStatus, ...]:
        return tuple(status for status in self.statuses if status.exceeded)

    @property
    def retry_after_seconds(self) -> float:
        return max((status.retry_after_seconds for status in self.statuses), default=0.0)

    def status(self, name: str) -> LimitStatus:
        """Return the status of a limit of the calling entity."""
        for status in self.statuses:
            if status.limit_name == name:
                return status
        raise KeyError(name)


@dataclass(frozen=True)
class Entity:
    """An entity."""

    id: str
    name: str | None = None
    parent_id: str | None = None
    cascade: bool = False
    metadata: dict[str, str] = field(default_factory=dict)
    created_at: str | None = None

    @classmethod
    def of(cls, entity: tg.Entity) -> Entity:
        """Return what shows an entity of the library."""
        return cls(entity.id, entity.name, entity.parent, entity.cascades, dict(entity.metadata), entity.created_at)

    @property
    def is_parent(self) -> bool:
        return self.parent_id is None

    @property
    def is_child(self) -> bool:
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


@dataclass(frozen=True)
class Namespace:
    """A namespace."""

    namespace_id: str
    name: str
    status: str
    created_at: str
    deleted_at: str | None = None

    @classmethod
    def of(cls, namespace: tg.Namespace) -> Namespace:
        """Return what shows a namespace of the library."""
        return cls(namespace.id, namespace.name, namespace.status, namespace.created_at, namespace.deleted_at)
