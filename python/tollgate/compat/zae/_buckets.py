"""Resets and top-ups of buckets, and the limits that hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import tollgate as tg

from ._errors import ValidationError
from ._limits import Limit
from ._models import BucketOperationResult, CacheStats
from ._operations import Ask, Operation, operation
from ._switches import CatalogUser


class BucketMethods(CatalogUser):
    """Resets and top-ups of buckets, and the limits that hold."""

    def _statuses(self, entity_id: str, resource: str) -> Operation[list[tg.Status]]:
        """Return how the limits of a bucket stand; nothing if it was never used."""
        buckets = yield Ask((yield from self._catalog()), "buckets", entity_id)
        return [status for bucket in buckets if bucket.resource == resource for status in bucket.statuses]

    @operation
    def reset_bucket(
        self,
        entity_id: str,
        resource: str,
        limits: Sequence[str] | None = None,
        principal: str | None = None,
        idempotency_key: str | None = None,
    ) -> Operation[BucketOperationResult]:
        """Reset a bucket to its unused state, with all of its limits."""
        statuses = yield from self._statuses(entity_id, resource)
        if limits is not None and set(limits) != {status.name for status in statuses}:
            raise NotImplementedError("a reset is of all limits of a bucket; give one of them back with top_up")
        if not statuses:
            return BucketOperationResult(entity_id, resource, 0, {})
        changed = yield Ask((yield from self._catalog(principal)), "reset", entity_id, resource, key=idempotency_key)
        restored = {status.name: _room(status) if changed else 0 for status in statuses}
        return BucketOperationResult(entity_id, resource, int(changed), restored)

    @operation
    def top_up(
        self,
        entity_id: str,
        resource: str,
        amounts: dict[str, int],
        principal: str | None = None,
        idempotency_key: str | None = None,
    ) -> Operation[BucketOperationResult]:
        """Add credit to a bucket up to its capacity, once for each idempotency key."""
        rooms = {status.name: _room(status) for status in (yield from self._statuses(entity_id, resource))}
        changed = yield Ask((yield from self._catalog(principal)), "top_up", entity_id, resource, amounts, key=idempotency_key)
        granted = {name: min(amount, rooms.get(name, 0)) if changed else 0 for name, amount in amounts.items()}
        return BucketOperationResult(entity_id, resource, int(changed and bool(rooms)), granted)

    @operation
    def resolve_limits(
        self, entity_id: str, resource: str, disabled_out: Any = None, cascade_out: Any = None
    ) -> Operation[tuple[list[Limit] | None, Literal["allow", "block"] | None, str | None]]:
        """Return the limits that hold, the policy of the system, and the level that the limits come from: entity, entity_default,
        resource or system."""
        if disabled_out is not None or cascade_out is not None:
            raise NotImplementedError("nothing is collected on the way; use resolve_disabled and get_entity_cascade")
        limiter = yield from self._native()
        policy = yield from self._policy()
        try:
            found = yield Ask(limiter, "peek", entity_id, resource)
        except ValidationError as error:
            if isinstance(error.__cause__, tg.NoLimits):
                return None, policy, None
            raise
        limits = [Limit.from_native(status.limit) for status in found.statuses if status.entity == entity_id]
        return limits, policy, found.sources.get((entity_id, resource))

    def _policy(self) -> Operation[Literal["allow", "block"] | None]:
        stored = yield Ask((yield from self._catalog()), "get_limits")
        policy: Literal["allow", "block"] | None = stored.on_unavailable if stored else None
        return policy if policy in ("allow", "block") else None

    @operation
    def resolve_on_unavailable(self) -> Operation[Literal["allow", "block"]]:
        """Return what is done while the store does not answer."""
        return (yield from self._policy()) or "block"

    @operation
    def invalidate_config_cache(self) -> Operation[None]:
        """Forget what is cached, so that the changes of other processes are seen at once."""
        (yield from self._catalog()).invalidate()


def cache_stats(limiter: tg.Limiter | None, ttl: int) -> CacheStats:
    """Return the hits and misses of the cache of stored limits."""
    if limiter is None:
        return CacheStats(ttl_seconds=ttl)
    found = limiter.catalog.cache_stats()
    return CacheStats(found.hits + found.negative_hits, found.misses, found.entries, ttl)


def _room(status: tg.Status) -> int:
    # Without a bound the capacity is infinite, and nothing is missing.
    capacity = status.limit.capacity
    return max(0, capacity - status.available) if isinstance(capacity, int) else 0
