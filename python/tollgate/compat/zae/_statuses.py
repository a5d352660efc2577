"""How limits stand: of a refusal, and of a look."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from typing import Any

import tollgate as tg

from ._limits import Limit


@dataclass(frozen=True)
class LimitStatus:
    """How one limit of one entity stands.

    >>> from tollgate.compat.zae import Limit, LimitStatus
    >>> LimitStatus("key-1", "gpt-4", "rpm", Limit.per_minute("rpm", 5), available=2, requested=3, exceeded=True, retry_after_seconds=12.0).deficit
    1
    """

    entity_id: str
    resource: str
    limit_name: str
    limit: Limit
    available: int
    requested: int
    exceeded: bool
    retry_after_seconds: float
    #: When a quota that was used is full again, in milliseconds since the epoch.
    resets_at_ms: int | None = None

    @classmethod
    def of(cls, status: tg.Status, requested: int | None = None) -> LimitStatus:
        """Return what shows a status of the library; with ``requested``, for that demand instead."""
        limit = Limit.from_native(status.limit)
        asked = status.requested if requested is None else requested
        made = cls(
            status.entity or "",
            status.resource or "",
            status.name,
            limit,
            status.available,
            asked,
            status.exceeded,
            (status.retry_after or 0.0) if status.exceeded else 0.0,
            int((time.time() + status.full_after) * 1_000) if limit.is_quota and status.full_after else None,
        )
        return made if requested is None else made._for(requested, status.full_after or 0.0)

    def _for(self, requested: int, full_after: float) -> LimitStatus:
        # Above the capacity, the wait is that of a bucket without a ceiling, as in zae-limiter.
        missing = requested - self.available
        if missing <= 0 or requested == 0 or self.soft:
            return dataclasses.replace(self, requested=requested, exceeded=False, retry_after_seconds=0.0)
        rate = self.limit.refill_rate
        wait = missing / rate if rate else full_after
        return dataclasses.replace(self, requested=requested, exceeded=True, retry_after_seconds=wait)

    @property
    def deficit(self) -> int:
        """How much is missing."""
        return 0 if self.soft else max(0, self.requested - self.available)

    @property
    def overdrawn(self) -> bool:
        """Whether more was used than there is."""
        return self.available < 0

    @property
    def soft(self) -> bool:
        """Whether the limit counts only."""
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
    """How all limits stand for a demand: those of the entity, then those of the parents that it is charged to.

    >>> from tollgate.compat.zae import Limit, SyncRateLimiter, SyncRepository
    >>> limiter = SyncRateLimiter(repository=SyncRepository.open(url="memory"))
    >>> limiter.set_system_defaults([Limit.per_hour("rpm", 8)])
    >>> found = limiter.check_availability("key-1", "gpt-4", {"rpm": 9})
    >>> found.allowed, found.deficit, found.retry_after_seconds
    (False, {'rpm': 1}, 450.0)
    """

    entity_id: str
    resource: str
    checked_at_ms: int
    statuses: list[LimitStatus]
    bypassed: bool = False

    @property
    def allowed(self) -> bool:
        """Whether the call would be admitted."""
        return not any(status.exceeded for status in self.statuses)

    @property
    def available(self) -> dict[str, int]:
        """By name, the least of what the entity and its parents have."""
        least: dict[str, int] = {}
        for status in self.statuses:
            least[status.limit_name] = min(status.available, least.get(status.limit_name, status.available))
        return least

    @property
    def needed(self) -> dict[str, int]:
        """By name, what was asked for."""
        return {status.limit_name: status.requested for status in self.statuses if status.requested > 0}

    @property
    def limits(self) -> list[Limit]:
        """The limits of the entity."""
        return [status.limit for status in self.statuses if status.entity_id == self.entity_id]

    @property
    def exceeded(self) -> list[str]:
        """The names of the limits that deny the demand."""
        return list(dict.fromkeys(status.limit_name for status in self.statuses if status.exceeded))

    @property
    def deficit(self) -> dict[str, int]:
        """By name, how much is missing of the limits that deny the demand."""
        most: dict[str, int] = {}
        for status in self.statuses:
            if status.exceeded:
                most[status.limit_name] = max(status.deficit, most.get(status.limit_name, 0))
        return most

    @property
    def retry_after_seconds(self) -> float:
        """How many seconds until the demand would pass."""
        return max((status.retry_after_seconds for status in self.statuses), default=0.0)

    def status(self, limit_name: str) -> LimitStatus | None:
        """Return the status of a limit of the entity; ``None`` if it has no such limit."""
        return next((status for status in self.statuses if status.limit_name == limit_name), None)
