"""Types of the extension module."""

import builtins
from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from os import PathLike
from types import ModuleType, TracebackType
from typing import Any, Generic, Literal, SupportsIndex, TypeVar, final

from typing_extensions import Self

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

_T_co = TypeVar("_T_co", covariant=True)
_F = TypeVar("_F", bound=Callable[..., Any])

_Amount = int | float | str | Decimal | SupportsIndex
_Amounts = Mapping[str, _Amount]
_Seconds = float | timedelta
_Headers = Mapping[str, str] | Iterable[tuple[str, str]]
_Priority = Literal["interactive", "normal", "batch"]
_Algorithm = Literal["token_bucket", "leaky_bucket", "gcra", "fixed_window", "sliding_window"]

__all__ = [
    "BatchCall",
    "BatchRun",
    "Catalog",
    "Demand",
    "Denial",
    "Estimate",
    "Estimator",
    "Event",
    "Hint",
    "Lease",
    "Limit",
    "LimitPool",
    "LimitReading",
    "LimitSet",
    "Limiter",
    "LoopWaits",
    "ManualClock",
    "Namespaces",
    "Pending",
    "ReplyReader",
    "SetStatus",
    "Status",
    "Tokens",
    "Unit",
    "__version__",
    "_remove_anonymous_stores",
    "_run_command",
    "_set_hooks",
    "calls",
    "estimate_tokens",
    "fixed_window",
    "per_day",
    "per_hour",
    "per_minute",
    "per_second",
    "quota",
    "rate",
    "read_reply",
    "resource",
    "sliding_window",
]

__version__: str

@final
class Unit:
    def __new__(cls, symbol: str, decimals: int) -> Self: ...
    @property
    def symbol(self) -> str: ...
    @property
    def decimals(self) -> int: ...
    def parse(self, value: _Amount) -> int: ...
    def show(self, amount: int) -> str: ...
    def __reduce__(self) -> tuple[type[Unit], tuple[str, int]]: ...

@final
class Limit:
    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> Literal["rate", "calls", "resource", "quota"]: ...
    @property
    def algorithm(self) -> _Algorithm | None: ...
    @property
    def amount(self) -> int | float: ...
    @property
    def capacity(self) -> int | float: ...
    @property
    def period(self) -> float | None: ...
    @property
    def unit(self) -> Unit | None: ...
    @property
    def shadow(self) -> bool: ...
    @property
    def soft(self) -> int | None: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, tuple[str]]: ...

def per_second(
    name: str,
    amount: _Amount,
    *,
    burst: _Amount | None = None,
    algorithm: _Algorithm | None = None,
    unit: Unit | None = None,
    soft: _Amount | None = None,
    shadow: bool = False,
) -> Limit: ...
def per_minute(
    name: str,
    amount: _Amount,
    *,
    burst: _Amount | None = None,
    algorithm: _Algorithm | None = None,
    unit: Unit | None = None,
    soft: _Amount | None = None,
    shadow: bool = False,
) -> Limit: ...
def per_hour(
    name: str,
    amount: _Amount,
    *,
    burst: _Amount | None = None,
    algorithm: _Algorithm | None = None,
    unit: Unit | None = None,
    soft: _Amount | None = None,
    shadow: bool = False,
) -> Limit: ...
def per_day(
    name: str,
    amount: _Amount,
    *,
    burst: _Amount | None = None,
    algorithm: _Algorithm | None = None,
    unit: Unit | None = None,
    soft: _Amount | None = None,
    shadow: bool = False,
) -> Limit: ...
def rate(
    name: str,
    amount: _Amount,
    period: _Seconds,
    *,
    burst: _Amount | None = None,
    algorithm: _Algorithm | None = None,
    unit: Unit | None = None,
    soft: _Amount | None = None,
    shadow: bool = False,
) -> Limit: ...
def fixed_window(
    name: str,
    amount: _Amount,
    period: _Seconds,
    *,
    unit: Unit | None = None,
    soft: _Amount | None = None,
    shadow: bool = False,
) -> Limit: ...
def sliding_window(
    name: str,
    amount: _Amount,
    period: _Seconds,
    *,
    resolution: _Seconds | None = None,
    unit: Unit | None = None,
    soft: _Amount | None = None,
    shadow: bool = False,
) -> Limit: ...
def calls(
    amount: _Amount,
    period: _Seconds,
    *,
    name: str | None = None,
    burst: _Amount | None = None,
    algorithm: _Algorithm | None = None,
    soft: _Amount | None = None,
    shadow: bool = False,
) -> Limit: ...
def resource(name: str, capacity: _Amount, *, soft: _Amount | None = None, shadow: bool = False) -> Limit: ...
def quota(
    name: str,
    amount: _Amount,
    *,
    cron: str | None = None,
    tz: str = "UTC",
    after: _Seconds | None = None,
    unit: Unit | None = None,
    soft: _Amount | None = None,
    shadow: bool = False,
) -> Limit: ...
@final
class Demand:
    def as_dict(self) -> dict[str, int]: ...
    def __len__(self) -> int: ...

@final
class Status:
    def __new__(
        cls,
        limit: Limit,
        available: int,
        requested: int,
        exceeded: bool,
        retry_after: float | None,
        full_after: float | None,
        entity: str | None,
        resource: str | None,
    ) -> Self: ...
    @property
    def limit(self) -> Limit: ...
    @property
    def available(self) -> int: ...
    @property
    def requested(self) -> int: ...
    @property
    def exceeded(self) -> bool: ...
    @property
    def retry_after(self) -> float | None: ...
    @property
    def full_after(self) -> float | None: ...
    @property
    def entity(self) -> str | None: ...
    @property
    def resource(self) -> str | None: ...
    @property
    def name(self) -> str: ...
    def __reduce__(self) -> tuple[type[Status], tuple[Any, ...]]: ...

@final
class SetStatus:
    @property
    def limits(self) -> tuple[Status, ...]: ...
    @property
    def waiting(self) -> int: ...
    @property
    def cooling_for(self) -> float | None: ...
    def __getitem__(self, name: str, /) -> Status: ...
    def __len__(self) -> int: ...

@final
class Denial:
    def __bool__(self) -> Literal[False]: ...
    @property
    def retry_after(self) -> float | None: ...
    @property
    def retry_after_header(self) -> str | None: ...
    @property
    def ahead(self) -> int: ...
    @property
    def statuses(self) -> tuple[Status, ...]: ...
    @property
    def violations(self) -> tuple[Status, ...]: ...
    @property
    def limited_by(self) -> Status | None: ...
    def as_dict(self) -> dict[str, Any]: ...
    def raise_(self) -> None: ...
    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]: ...

@final
class Pending(Coroutine[Any, Any, _T_co], Generic[_T_co]):
    def __await__(self) -> Generator[Any, Any, _T_co]: ...
    def __aenter__(self) -> Pending[_T_co]: ...
    def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> Pending[None]: ...
    def send(self, value: Any) -> Any: ...
    def throw(self, *arguments: Any) -> Any: ...
    def close(self) -> None: ...
    def _begin(self) -> Any: ...
    def _end(self, value: Any) -> Any: ...

@final
class Lease:
    def settle(self, usage: _Amounts | Demand | None = None, /, **named: _Amount) -> None: ...
    def settle_async(self, usage: _Amounts | Demand | None = None, /, **named: _Amount) -> Pending[None]: ...
    def commit(self) -> None: ...
    def commit_async(self) -> Pending[None]: ...
    def cancel(self) -> None: ...
    def cancel_async(self) -> Pending[None]: ...
    def report(
        self, usage: _Amounts | Demand | None = None, /, *, resource: str | None = None, **named: _Amount
    ) -> None: ...
    def adjust(self, by: _Amounts | None = None, /, *, resource: str | None = None, **named: _Amount) -> None: ...
    def consume(self, demand: _Amounts | Demand | None = None, /, **named: _Amount) -> None: ...
    def consume_async(self, demand: _Amounts | Demand | None = None, /, **named: _Amount) -> Pending[None]: ...
    def heartbeat(self) -> bool: ...
    def heartbeat_async(self) -> Pending[bool]: ...
    def into_token(self) -> str: ...
    def into_token_async(self) -> Pending[str]: ...
    def end_once(self, *, cancel: bool = False) -> bool: ...
    def end_once_async(self, *, cancel: bool = False) -> Pending[bool]: ...
    @property
    def set(self) -> LimitSet | None: ...
    @property
    def limiter(self) -> Limiter | None: ...
    @property
    def entity(self) -> str | None: ...
    @property
    def resource(self) -> str | None: ...
    @property
    def config(self) -> dict[str, Any]: ...
    @property
    def waited(self) -> float | None: ...
    @property
    def reserved(self) -> dict[str, int]: ...
    @property
    def reported(self) -> dict[str, int]: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def degraded(self) -> bool: ...
    @property
    def lost(self) -> bool: ...
    @property
    def ended_(self) -> bool: ...
    def __bool__(self) -> Literal[True]: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
    def __aenter__(self) -> Pending[Lease]: ...
    def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> Pending[None]: ...

@final
class LimitSet:
    def __new__(
        cls,
        limits: Iterable[Limit],
        *,
        store: str | PathLike[str] | None = None,
        name: str | None = None,
        namespace: str | None = None,
        config: dict[str, Any] | None = None,
        skip_unknown: bool = False,
        on_drop: Literal["keep", "refund"] = "keep",
        lease_ttl: _Seconds | None = None,
        waiters_max: int | None = None,
        version: int = 1,
        without: Iterable[str] = (),
        on_unavailable: Literal["block", "allow", "local"] = "block",
        local_share: int = 50,
        store_timeout: _Seconds = 5.0,
        connect_within: _Seconds | None = None,
        observer: object = None,
        clock: ManualClock | None = None,
    ) -> Self: ...
    @staticmethod
    def open_async(
        limits: Iterable[Limit], *, store: str | PathLike[str] | None = None, **settings: Any
    ) -> Pending[LimitSet]: ...
    def acquire(
        self,
        demand: _Amounts | Demand | None = None,
        /,
        *,
        timeout: _Seconds | None = None,
        priority: _Priority | None = None,
        **named: _Amount,
    ) -> Lease: ...
    def acquire_async(
        self,
        demand: _Amounts | Demand | None = None,
        /,
        *,
        timeout: _Seconds | None = None,
        priority: _Priority | None = None,
        **named: _Amount,
    ) -> Pending[Lease]: ...
    def try_acquire(
        self,
        demand: _Amounts | Demand | None = None,
        /,
        *,
        priority: _Priority | None = None,
        **named: _Amount,
    ) -> Lease | Denial: ...
    def try_acquire_async(
        self,
        demand: _Amounts | Demand | None = None,
        /,
        *,
        priority: _Priority | None = None,
        **named: _Amount,
    ) -> Pending[Lease | Denial]: ...
    def limit(
        self,
        demand: _Amounts | Demand | Callable[..., _Amounts | Demand | None] | None = None,
        /,
        *,
        settle: Callable[[Any], Mapping[str, Any] | None] | None = None,
        timeout: _Seconds | None = None,
        priority: _Priority | None = None,
        on_error: Literal["cancel", "commit"] = "cancel",
    ) -> Callable[[_F], _F]: ...
    def demand(self, demand: _Amounts | Demand | None = None, /, **named: _Amount) -> Demand: ...
    def ready_after(self, demand: _Amounts | Demand | None = None, /, **named: _Amount) -> float | None: ...
    def ready_after_async(self, demand: _Amounts | Demand | None = None, /, **named: _Amount) -> Pending[float | None]: ...
    def peek(self) -> SetStatus: ...
    def peek_async(self) -> Pending[SetStatus]: ...
    def replace(self, limit: Limit) -> None: ...
    def replace_async(self, limit: Limit) -> Pending[None]: ...
    def remove(self, name: str) -> None: ...
    def remove_async(self, name: str) -> Pending[None]: ...
    def cool_down(self, duration: _Seconds) -> None: ...
    def cool_down_async(self, duration: _Seconds) -> Pending[None]: ...
    def end_cool_down(self) -> None: ...
    def end_cool_down_async(self) -> Pending[None]: ...
    @property
    def limits(self) -> tuple[Limit, ...]: ...
    @property
    def config(self) -> dict[str, Any]: ...
    @property
    def name(self) -> str | None: ...
    @property
    def store(self) -> str | None: ...
    @property
    def reach(self) -> Literal["process", "host", "fleet"]: ...
    def __getitem__(self, name: str, /) -> Limit: ...
    def __contains__(self, name: str, /) -> bool: ...
    def __len__(self) -> int: ...
    def __copy__(self) -> LimitSet: ...
    def __deepcopy__(self, memo: object) -> LimitSet: ...

@final
class LimitPool:
    def __new__(
        cls,
        sets: Iterable[LimitSet],
        *,
        spread: Literal["soonest", "round_robin", "random"] | Callable[[tuple[LimitSet, ...]], int] | None = None,
    ) -> Self: ...
    def acquire(
        self,
        demand: _Amounts | Demand | None = None,
        /,
        *,
        timeout: _Seconds | None = None,
        priority: _Priority | None = None,
        **named: _Amount,
    ) -> Lease: ...
    def acquire_async(
        self,
        demand: _Amounts | Demand | None = None,
        /,
        *,
        timeout: _Seconds | None = None,
        priority: _Priority | None = None,
        **named: _Amount,
    ) -> Pending[Lease]: ...
    def try_acquire(
        self,
        demand: _Amounts | Demand | None = None,
        /,
        *,
        priority: _Priority | None = None,
        **named: _Amount,
    ) -> Lease | Denial: ...
    def try_acquire_async(
        self,
        demand: _Amounts | Demand | None = None,
        /,
        *,
        priority: _Priority | None = None,
        **named: _Amount,
    ) -> Pending[Lease | Denial]: ...
    def peek(self) -> tuple[SetStatus, ...]: ...
    def peek_async(self) -> Pending[tuple[SetStatus, ...]]: ...
    def for_worker(self, index: int) -> LimitPool: ...
    @property
    def index(self) -> int: ...
    @property
    def sets(self) -> tuple[LimitSet, ...]: ...
    @property
    def spread(self) -> str | Callable[[tuple[LimitSet, ...]], int]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> LimitSet: ...

@final
class Event:
    @property
    def kind(self) -> str: ...
    @property
    def limit(self) -> str | None: ...
    @property
    def amount(self) -> int | None: ...
    @property
    def seconds(self) -> float | None: ...
    @property
    def set(self) -> str | None: ...

@final
class ManualClock:
    def __new__(cls) -> Self: ...
    def advance(self, seconds: _Seconds) -> None: ...
    @property
    def elapsed(self) -> float: ...

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

@final
class LoopWaits:
    def __new__(cls) -> Self: ...
    def fileno(self) -> int: ...
    def call_instead(self, schedule: Callable[..., Any]) -> None: ...
    def add(self, pending: Pending[Any], future: Any) -> None: ...
    def remove(self, pending: Pending[Any], future: Any) -> None: ...
    def drain(self) -> None: ...
    def close(self) -> None: ...
    def __len__(self) -> int: ...

@final
class Tokens:
    def __new__(cls, input: int, output: int) -> Self: ...
    @property
    def input(self) -> int: ...
    @property
    def output(self) -> int: ...
    @property
    def total(self) -> int: ...

@final
class LimitReading:
    @property
    def unit(self) -> Literal["requests", "tokens", "input_tokens", "output_tokens"]: ...
    @property
    def limit(self) -> int | None: ...
    @property
    def remaining(self) -> int | None: ...
    @property
    def reset(self) -> float | None: ...

@final
class Hint:
    @property
    def kind(self) -> Literal["ok", "throttled", "exhausted", "overloaded", "transient", "fatal"]: ...
    @property
    def may_retry(self) -> bool: ...
    @property
    def retry_after(self) -> float | None: ...
    @property
    def usage(self) -> Tokens | None: ...
    @property
    def limits(self) -> tuple[LimitReading, ...]: ...
    @property
    def reason(self) -> str | None: ...

@final
class ReplyReader:
    def __new__(cls, status: int, headers: _Headers) -> Self: ...
    def feed(self, piece: bytes) -> None: ...
    @property
    def is_complete(self) -> bool: ...
    def hint(self) -> Hint: ...

@final
class Estimate:
    @property
    def input(self) -> int: ...
    @property
    def output(self) -> int: ...
    @property
    def output_max(self) -> int | None: ...
    @property
    def total(self) -> int: ...
    @property
    def total_max(self) -> int: ...

@final
class Estimator:
    def __new__(cls, *, cover: float = 0.9) -> Self: ...
    def estimate(self, request: object) -> Estimate: ...
    def learn(self, estimate: Estimate, used: Tokens) -> None: ...

@final
class BatchCall:
    @property
    def id(self) -> str: ...
    @property
    def payload(self) -> Any: ...
    @property
    def scope(self) -> str: ...
    @property
    def attempt(self) -> int: ...
    @property
    def number(self) -> int: ...
    def done(self, value: object, json: str | None, tokens: int | None, headers: list[tuple[str, str]]) -> bool: ...
    def invalid(self, why: str, tokens: int | None) -> bool: ...
    def refused(self, status: int, headers: list[tuple[str, str]], body: bytes) -> bool: ...
    def failed(self, kind: str, reason: str, retry_after: _Seconds | None = None) -> bool: ...

@final
class BatchRun:
    def __new__(cls, **settings: Any) -> Self: ...
    def send(self, id: str, payload: object, tokens: int, scope: str | None) -> Pending[bool]: ...
    def end_input(self) -> None: ...
    def next_call(self) -> Pending[BatchCall | None]: ...
    def next_outcome(self) -> Pending[tuple[Any, ...] | None]: ...
    def finish(self) -> Pending[dict[str, Any]]: ...
    def shut_down(self) -> None: ...

def estimate_tokens(request: object) -> Estimate: ...
def read_reply(status: int, headers: _Headers, body: bytes | None = None) -> Hint: ...
def _run_command(words: list[str]) -> int: ...
def _remove_anonymous_stores() -> None: ...
def _set_hooks(awaiting: ModuleType, errors: ModuleType, stores: ModuleType, observing: ModuleType) -> None: ...
