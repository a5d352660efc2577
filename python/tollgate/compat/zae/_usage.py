"""What was used: snapshots of windows, their sums, and the capacity of a resource."""

from __future__ import annotations

import datetime
from typing import Any

import tollgate as tg

from ._models import EntityCapacity, ResourceCapacity, UsageSnapshot, UsageSummary
from ._operations import Ask, Operation, operation
from ._switches import CatalogUser

#: The names of windows there and here.
WINDOWS = {"hourly": "hour", "daily": "day", "monthly": "month"}

_Instant = datetime.datetime | str


class UsageMethods(CatalogUser):
    """Usage. It is counted by the store with each call: no function has to aggregate it before."""

    @operation
    def get_usage_snapshots(
        self,
        entity_id: str | None = None,
        resource: str | None = None,
        window_type: str | None = None,
        start_time: _Instant | None = None,
        end_time: _Instant | None = None,
        limit: int = 100,
        next_key: dict[str, Any] | None = None,
    ) -> Operation[tuple[list[UsageSnapshot], dict[str, Any] | None]]:
        """Return a page of what was used, the newest first, and the key of the next page. Without ``window_type``, first hourly
        windows and then daily ones."""
        if entity_id is None and resource is None:
            raise ValueError("either entity_id or resource must be given")
        if window_type is not None and window_type not in WINDOWS:
            return [], None
        kinds = [window_type] if window_type else ["hourly", "daily"]
        place = next_key or {"window": kinds[0], "after": None}
        kind = place["window"]
        asked = {"entity": entity_id, "resource": resource, "limit": limit, "after": place["after"], "newest_first": True}
        page = yield Ask((yield from self._catalog()), "usage", WINDOWS[kind], **asked)
        first, last = _seconds(start_time), _seconds(end_time)
        rows = [row for row in page if (first is None or first <= row.start) and (last is None or row.start <= last)]
        following = kinds[kinds.index(kind) + 1 :]
        key = {"window": kind, "after": page.next} if page.next else {"window": following[0], "after": None} if following else None
        return [_snapshot(row, kind) for row in rows], key

    @operation
    def get_usage_summary(
        self,
        entity_id: str | None = None,
        resource: str | None = None,
        window_type: str | None = None,
        start_time: _Instant | None = None,
        end_time: _Instant | None = None,
    ) -> Operation[UsageSummary]:
        """Return the sums and averages of windows: without ``window_type``, of hourly ones, so that nothing counts twice."""
        snapshots: list[UsageSnapshot] = []
        key: dict[str, Any] | None = None
        while True:
            asked = (entity_id, resource, window_type or "hourly", start_time, end_time, 1_000, key)
            page, key = yield from UsageMethods.get_usage_snapshots.body(self, *asked)
            snapshots += page
            if key is None:
                break
        total: dict[str, int] = {}
        for snapshot in snapshots:
            for name, amount in snapshot.counters.items():
                total[name] = total.get(name, 0) + amount
        average = {name: amount / len(snapshots) for name, amount in total.items()}
        starts = [snapshot.window_start for snapshot in snapshots]
        return UsageSummary(len(snapshots), total, average, min(starts, default=None), max(starts, default=None))

    @operation
    def get_resource_capacity(
        self, resource: str, limit_name: str, parents_only: bool = False
    ) -> Operation[ResourceCapacity]:
        """Return how much all entities that have used a resource have of one of its limits. Limits without a bound are left out."""
        catalog = yield from self._catalog()
        found: tg.ResourceCapacity = yield Ask(catalog, "capacity", resource, limit_name)
        rows = []
        for row in found.entities:
            if parents_only:
                entity = yield Ask(catalog, "get_entity", row.entity)
                if entity is None or entity.parent is not None:
                    continue
            if row.capacity is not None:
                rows.append(EntityCapacity(row.entity, row.capacity, row.available, _percent(row.capacity, row.available)))
        capacity, available = sum(row.capacity for row in rows), sum(row.available for row in rows)
        return ResourceCapacity(resource, limit_name, capacity, available, _percent(capacity, available), rows)


def _percent(capacity: int, available: int) -> float:
    return (capacity - available) / capacity * 100 if capacity else 0.0


def _seconds(instant: _Instant | None) -> float | None:
    if instant is None:
        return None
    if isinstance(instant, str):
        # Python 3.10 does not read the Z.
        instant = datetime.datetime.fromisoformat(instant.replace("Z", "+00:00"))
    return (instant if instant.tzinfo else instant.replace(tzinfo=datetime.timezone.utc)).timestamp()


def _snapshot(row: tg.UsageRow, kind: str) -> UsageSnapshot:
    start = datetime.datetime.fromtimestamp(row.start, datetime.timezone.utc)
    length = {"hourly": datetime.timedelta(hours=1), "daily": datetime.timedelta(days=1)}.get(kind)
    # The first of the next month: 32 days later is in it.
    end = start + length if length else (start + datetime.timedelta(days=32)).replace(day=1)
    counters = {name: amount for name, amount in row.amounts.items() if amount}
    return UsageSnapshot(row.entity, row.resource, _iso(start), _iso(end), kind, counters, row.events)


def _iso(instant: datetime.datetime) -> str:
    return instant.strftime("%Y-%m-%dT%H:%M:%SZ")
