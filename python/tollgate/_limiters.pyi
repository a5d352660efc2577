"""Types of the limiter, its catalog and its namespaces, which the extension module has."""

import builtins
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, final

from typing_extensions import Self

from ._core import Demand, Denial, Lease, Limit, Pending, _Amount, _Amounts, _Priority, _Seconds
from ._records import (
    Availability,
    Bucket,
    CacheStats,
    Counts,
    Entity,
    ManagedSet,
    Namespace,
    Page,
    Purged,
    ResourceCapacity,
    StoredLimits,
    UsageSummary,
    WindowUsage,
)

__all__ = ["Catalog", "Limiter", "Namespaces"]

_Policy = Literal["block", "allow", "local"]
_Window = Literal["hour", "day", "month"]
_Instant = float | datetime

@final
class Limiter:
    def __new__(
        cls,
        url: str,
        *,
        namespace: str = "default",
        create_namespace: bool = True,
        principal: str | None = None,
        cache_ttl: _Seconds = 60,
        on_unavailable: _Policy | None = None,
        local_share: int = 50,
        store_timeout: _Seconds = 5,
        connect_within: _Seconds | None = None,
        lease_ttl: _Seconds | None = None,
        heartbeats: Literal["automatic", "manual"] = "automatic",
        on_drop: Literal["keep", "refund"] = "keep",
        waiters_max: int | None = None,
        observer: Any = None,
        clock: Any = None,
    ) -> Self: ...
    @staticmethod
    def open_async(
        url: str,
        *,
        namespace: str = "default",
        create_namespace: bool = True,
        principal: str | None = None,
        cache_ttl: _Seconds = 60,
        on_unavailable: _Policy | None = None,
        local_share: int = 50,
        store_timeout: _Seconds = 5,
        connect_within: _Seconds | None = None,
        lease_ttl: _Seconds | None = None,
        heartbeats: Literal["automatic", "manual"] = "automatic",
        on_drop: Literal["keep", "refund"] = "keep",
        waiters_max: int | None = None,
        observer: Any = None,
        clock: Any = None,
    ) -> Pending[Limiter]: ...
    def acquire(
        self,
        entity: str,
        resource: str,
        demand: _Amounts | Demand | None = None,
        /,
        *,
        also: Mapping[str, _Amounts | Demand] | None = None,
        limits: Iterable[Limit] | None = None,
        detached: _Seconds | None = None,
        timeout: _Seconds | None = None,
        priority: _Priority | None = None,
        **named: _Amount,
    ) -> Lease: ...
    def acquire_async(
        self,
        entity: str,
        resource: str,
        demand: _Amounts | Demand | None = None,
        /,
        *,
        also: Mapping[str, _Amounts | Demand] | None = None,
        limits: Iterable[Limit] | None = None,
        detached: _Seconds | None = None,
        timeout: _Seconds | None = None,
        priority: _Priority | None = None,
        **named: _Amount,
    ) -> Pending[Lease]: ...
    def try_acquire(
        self,
        entity: str,
        resource: str,
        demand: _Amounts | Demand | None = None,
        /,
        *,
        also: Mapping[str, _Amounts | Demand] | None = None,
        limits: Iterable[Limit] | None = None,
        detached: _Seconds | None = None,
        priority: _Priority | None = None,
        **named: _Amount,
    ) -> Lease | Denial: ...
    def try_acquire_async(
        self,
        entity: str,
        resource: str,
        demand: _Amounts | Demand | None = None,
        /,
        *,
        also: Mapping[str, _Amounts | Demand] | None = None,
        limits: Iterable[Limit] | None = None,
        detached: _Seconds | None = None,
        priority: _Priority | None = None,
        **named: _Amount,
    ) -> Pending[Lease | Denial]: ...
    @staticmethod
    def demand(demand: _Amounts | Demand | None = None, /, **named: _Amount) -> Demand: ...
    def resume(self, token: str, /) -> Lease: ...
    def resume_async(self, token: str, /) -> Pending[Lease]: ...
    def peek(self, entity: str, resource: str, /) -> Availability: ...
    def peek_async(self, entity: str, resource: str, /) -> Pending[Availability]: ...
    def check(
        self,
        entity: str,
        resource: str,
        demand: _Amounts | Demand | None = None,
        /,
        *,
        also: Mapping[str, _Amounts | Demand] | None = None,
        **named: _Amount,
    ) -> Availability: ...
    def check_async(
        self,
        entity: str,
        resource: str,
        demand: _Amounts | Demand | None = None,
        /,
        *,
        also: Mapping[str, _Amounts | Demand] | None = None,
        **named: _Amount,
    ) -> Pending[Availability]: ...
    def ready_after(
        self,
        entity: str,
        resource: str,
        demand: _Amounts | Demand | None = None,
        /,
        **named: _Amount,
    ) -> float | None: ...
    def ready_after_async(
        self,
        entity: str,
        resource: str,
        demand: _Amounts | Demand | None = None,
        /,
        **named: _Amount,
    ) -> Pending[float | None]: ...
    @property
    def catalog(self) -> Catalog: ...
    @property
    def namespace(self) -> str: ...
    @property
    def store(self) -> str: ...
    @property
    def waiting(self) -> int: ...
    @property
    def reach(self) -> Literal["process", "host", "fleet"]: ...
    @classmethod
    def _restore(cls, url: str, settings: dict[str, Any]) -> Limiter: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Catalog:
    def acting_as(self, principal: str) -> Catalog: ...
    @property
    def principal(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def namespace_id(self) -> str: ...
    @property
    def namespaces(self) -> Namespaces: ...
    def invalidate(self) -> None: ...
    def cache_stats(self) -> CacheStats: ...
    def create_entity(
        self,
        entity: str,
        /,
        *,
        name: str | None = None,
        parent: str | None = None,
        cascades: bool = False,
        metadata: dict[str, str] | None = None,
    ) -> Entity: ...
    def create_entity_async(
        self,
        entity: str,
        /,
        *,
        name: str | None = None,
        parent: str | None = None,
        cascades: bool = False,
        metadata: dict[str, str] | None = None,
    ) -> Pending[Entity]: ...
    def get_entity(self, entity: str, /) -> Entity | None: ...
    def get_entity_async(self, entity: str, /) -> Pending[Entity | None]: ...
    def delete_entity(self, entity: str, /) -> None: ...
    def delete_entity_async(self, entity: str, /) -> Pending[None]: ...
    def list_entities(self, *, limit: int | None = None, after: str | None = None) -> Page: ...
    def list_entities_async(self, *, limit: int | None = None, after: str | None = None) -> Pending[Page]: ...
    def children(self, entity: str, /, *, limit: int | None = None, after: str | None = None) -> Page: ...
    def children_async(
        self,
        entity: str,
        /,
        *,
        limit: int | None = None,
        after: str | None = None,
    ) -> Pending[Page]: ...
    def set_parent(self, entity: str, parent: str | None, /) -> bool: ...
    def set_parent_async(self, entity: str, parent: str | None, /) -> Pending[bool]: ...
    def set_cascades(self, entity: str, cascades: bool, /) -> bool: ...
    def set_cascades_async(self, entity: str, cascades: bool, /) -> Pending[bool]: ...
    def set_name(self, entity: str, name: str, /) -> bool: ...
    def set_name_async(self, entity: str, name: str, /) -> Pending[bool]: ...
    def set_limits(
        self,
        limits: Iterable[Limit],
        *,
        entity: str | None = None,
        resource: str | None = None,
    ) -> None: ...
    def set_limits_async(
        self,
        limits: Iterable[Limit],
        *,
        entity: str | None = None,
        resource: str | None = None,
    ) -> Pending[None]: ...
    def ensure_limits(
        self,
        limits: Iterable[Limit],
        *,
        entity: str | None = None,
        resource: str | None = None,
    ) -> bool: ...
    def ensure_limits_async(
        self,
        limits: Iterable[Limit],
        *,
        entity: str | None = None,
        resource: str | None = None,
    ) -> Pending[bool]: ...
    def set_system_limits(self, limits: Iterable[Limit], *, on_unavailable: _Policy | None = None) -> None: ...
    def set_system_limits_async(
        self,
        limits: Iterable[Limit],
        *,
        on_unavailable: _Policy | None = None,
    ) -> Pending[None]: ...
    def get_limits(self, *, entity: str | None = None, resource: str | None = None) -> StoredLimits | None: ...
    def get_limits_async(
        self,
        *,
        entity: str | None = None,
        resource: str | None = None,
    ) -> Pending[StoredLimits | None]: ...
    def delete_limits(self, *, entity: str | None = None, resource: str | None = None) -> bool: ...
    def delete_limits_async(self, *, entity: str | None = None, resource: str | None = None) -> Pending[bool]: ...
    def limits_of_entity(self, entity: str, /) -> dict[str, StoredLimits]: ...
    def limits_of_entity_async(self, entity: str, /) -> Pending[dict[str, StoredLimits]]: ...
    def resources_with_limits(self) -> list[str]: ...
    def resources_with_limits_async(self) -> Pending[list[str]]: ...
    def entities_with_limits(
        self,
        resource: str | None = None,
        /,
        *,
        limit: int | None = None,
        after: str | None = None,
    ) -> Page: ...
    def entities_with_limits_async(
        self,
        resource: str | None = None,
        /,
        *,
        limit: int | None = None,
        after: str | None = None,
    ) -> Pending[Page]: ...
    def resources_with_entity_limits(self) -> dict[str, int]: ...
    def resources_with_entity_limits_async(self) -> Pending[dict[str, int]]: ...
    def apply_limits(
        self,
        changes: Iterable[dict[str, Any]],
        /,
        *,
        managed_set: str | None = None,
        seen: int | None = None,
    ) -> int | None: ...
    def apply_limits_async(
        self,
        changes: Iterable[dict[str, Any]],
        /,
        *,
        managed_set: str | None = None,
        seen: int | None = None,
    ) -> Pending[int | None]: ...
    def managed_sets(self) -> list[ManagedSet]: ...
    def managed_sets_async(self) -> Pending[list[ManagedSet]]: ...
    def disable_entity(self, entity: str, /) -> bool: ...
    def disable_entity_async(self, entity: str, /) -> Pending[bool]: ...
    def enable_entity(self, entity: str, /) -> bool: ...
    def enable_entity_async(self, entity: str, /) -> Pending[bool]: ...
    def is_entity_disabled(self, entity: str, /) -> bool: ...
    def is_entity_disabled_async(self, entity: str, /) -> Pending[bool]: ...
    def disable_resource(self, resource: str, /) -> bool: ...
    def disable_resource_async(self, resource: str, /) -> Pending[bool]: ...
    def enable_resource(self, resource: str, /) -> bool: ...
    def enable_resource_async(self, resource: str, /) -> Pending[bool]: ...
    def disabled_resources(self) -> list[str]: ...
    def disabled_resources_async(self) -> Pending[list[str]]: ...
    def set_access(self, entity: str, resource: str, access: bool | None, /) -> bool: ...
    def set_access_async(self, entity: str, resource: str, access: bool | None, /) -> Pending[bool]: ...
    def get_access(self, entity: str, resource: str, /) -> bool | None: ...
    def get_access_async(self, entity: str, resource: str, /) -> Pending[bool | None]: ...
    def accesses_of_entity(self, entity: str, /) -> dict[str, bool]: ...
    def accesses_of_entity_async(self, entity: str, /) -> Pending[dict[str, bool]]: ...
    def set_cascade(
        self,
        cascade: bool | None,
        /,
        *,
        entity: str | None = None,
        resource: str | None = None,
    ) -> bool: ...
    def set_cascade_async(
        self,
        cascade: bool | None,
        /,
        *,
        entity: str | None = None,
        resource: str | None = None,
    ) -> Pending[bool]: ...
    def get_cascade(self, *, entity: str | None = None, resource: str | None = None) -> bool | None: ...
    def get_cascade_async(self, *, entity: str | None = None, resource: str | None = None) -> Pending[bool | None]: ...
    def audit(
        self,
        *,
        entity: str | None = None,
        resource: str | None = None,
        system: bool = False,
        limit: int | None = None,
        after: str | None = None,
        newest_first: bool = False,
    ) -> Page: ...
    def audit_async(
        self,
        *,
        entity: str | None = None,
        resource: str | None = None,
        system: bool = False,
        limit: int | None = None,
        after: str | None = None,
        newest_first: bool = False,
    ) -> Pending[Page]: ...
    def usage(
        self,
        window: _Window,
        /,
        *,
        entity: str | None = None,
        resource: str | None = None,
        since: _Instant | None = None,
        until: _Instant | None = None,
        limit: int | None = None,
        after: str | None = None,
        newest_first: bool = False,
    ) -> Page: ...
    def usage_async(
        self,
        window: _Window,
        /,
        *,
        entity: str | None = None,
        resource: str | None = None,
        since: _Instant | None = None,
        until: _Instant | None = None,
        limit: int | None = None,
        after: str | None = None,
        newest_first: bool = False,
    ) -> Pending[Page]: ...
    def usage_summary(
        self,
        window: _Window,
        /,
        *,
        entity: str | None = None,
        resource: str | None = None,
        since: _Instant | None = None,
        until: _Instant | None = None,
    ) -> UsageSummary: ...
    def usage_summary_async(
        self,
        window: _Window,
        /,
        *,
        entity: str | None = None,
        resource: str | None = None,
        since: _Instant | None = None,
        until: _Instant | None = None,
    ) -> Pending[UsageSummary]: ...
    def usage_by_window(
        self,
        window: _Window,
        /,
        *,
        entity: str | None = None,
        resource: str | None = None,
        since: _Instant | None = None,
        until: _Instant | None = None,
    ) -> dict[float, WindowUsage]: ...
    def usage_by_window_async(
        self,
        window: _Window,
        /,
        *,
        entity: str | None = None,
        resource: str | None = None,
        since: _Instant | None = None,
        until: _Instant | None = None,
    ) -> Pending[dict[float, WindowUsage]]: ...
    def top_up(
        self,
        entity: str,
        resource: str,
        credit: _Amounts | Demand | None = None,
        /,
        *,
        key: str | None = None,
        **named: _Amount,
    ) -> bool: ...
    def top_up_async(
        self,
        entity: str,
        resource: str,
        credit: _Amounts | Demand | None = None,
        /,
        *,
        key: str | None = None,
        **named: _Amount,
    ) -> Pending[bool]: ...
    def reset(self, entity: str, resource: str, /, *, key: str | None = None) -> bool: ...
    def reset_async(self, entity: str, resource: str, /, *, key: str | None = None) -> Pending[bool]: ...
    def buckets(self, entity: str, /) -> list[Bucket]: ...
    def buckets_async(self, entity: str, /) -> Pending[list[Bucket]]: ...
    def capacity(self, resource: str, limit: str, /) -> ResourceCapacity: ...
    def capacity_async(self, resource: str, limit: str, /) -> Pending[ResourceCapacity]: ...
    def counts(self, entity: str | None = None, /) -> Counts: ...
    def counts_async(self, entity: str | None = None, /) -> Pending[Counts]: ...

@final
class Namespaces:
    def list(self) -> builtins.list[Namespace]: ...
    def list_async(self) -> Pending[builtins.list[Namespace]]: ...
    def get(self, name: str, /) -> Namespace | None: ...
    def get_async(self, name: str, /) -> Pending[Namespace | None]: ...
    def create(self, name: str, /) -> Namespace: ...
    def create_async(self, name: str, /) -> Pending[Namespace]: ...
    def delete(self, name: str, /) -> Namespace: ...
    def delete_async(self, name: str, /) -> Pending[Namespace]: ...
    def recover(self, id: str, /) -> Namespace: ...
    def recover_async(self, id: str, /) -> Pending[Namespace]: ...
    def orphans(self) -> builtins.list[Namespace]: ...
    def orphans_async(self) -> Pending[builtins.list[Namespace]]: ...
    def purge(self, id: str, /) -> Purged: ...
    def purge_async(self, id: str, /) -> Pending[Purged]: ...
