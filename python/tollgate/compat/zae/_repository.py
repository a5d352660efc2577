"""Repositories: where limits and entities are kept."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import tollgate as tg

from ._buckets import cache_stats
from ._builder import RepositoryBuilder, SyncRepositoryBuilder
from ._errors import NamespaceNotFoundError
from ._limits import Limit
from ._models import BackendCapabilities, CacheStats, OnUnavailable
from ._operations import Ask, Awaiting, Blocking, Operation, awaited, blocking, operation, run, run_async
from ._stacks import StackOptions
from ._store import StoreMethods
from ._unsupported import DEPLOYMENT, PlumbingMethods

if TYPE_CHECKING:
    from typing_extensions import Self

DEFAULT_STACK = "zae-limiter"

_Policy = Literal["allow", "block"]


def _url(url: str | None, stack: str | None, region: str | None, endpoint_url: str | None) -> str:
    named = url or os.environ.get("TOLLGATE_STORE")
    if named and not (stack or region or endpoint_url):
        return named
    if url:
        raise ValueError("give either url, or stack, region and endpoint_url")
    parameters = ["create=true"]
    parameters += [f"region={region}"] if region else []
    parameters += [f"endpoint={endpoint_url}"] if endpoint_url else []
    return f"dynamodb:{stack or DEFAULT_STACK}?{'&'.join(parameters)}"


@dataclass(frozen=True)
class _Opened:
    """A limiter of the library, and what opens another one like it."""

    url: str
    settings: dict[str, Any]
    limiter: tg.Limiter
    stack: str | None = None


def opened(
    url: str | None = None,
    namespace: str | None = None,
    stack: str | None = None,
    region: str | None = None,
    endpoint_url: str | None = None,
    config_cache_ttl: int = 60,
    on_unavailable: _Policy | None = None,
) -> Operation[_Opened]:
    """Open a store as ``Repository.open`` does."""
    where = _url(url, stack, region, endpoint_url)
    settings: dict[str, Any] = {"namespace": namespace or "default", "cache_ttl": config_cache_ttl}
    if on_unavailable is not None:
        settings["on_unavailable"] = OnUnavailable(on_unavailable).value
    limiter = yield Ask(_Opener, "open", where, settings)
    is_table = where.startswith("dynamodb:")
    return _Opened(where, settings, limiter, where.removeprefix("dynamodb:").partition("?")[0] if is_table else None)


class _Opener:
    """Opening as a method that there is twice."""

    @staticmethod
    def open(url: str, settings: dict[str, Any]) -> tg.Limiter:
        return tg.Limiter(url, **settings)

    @staticmethod
    def open_async(url: str, settings: dict[str, Any]) -> Any:
        return tg.Limiter.open_async(url, **settings)


class RepositoryMethods(StoreMethods, PlumbingMethods):
    """What both kinds of repositories do."""

    def __init__(
        self,
        name: str,
        region: str | None = None,
        endpoint_url: str | None = None,
        stack_options: StackOptions | None = None,
        config_cache_ttl: int = 60,
        parallel_mode: str = "auto",
        *,
        rejection_cache_ttl: float = 1.0,
        rejection_cache_size: int = 10_000,
        stamp_ttl: float = 60,
    ) -> None:
        warnings.warn(f"use {type(self).__name__}.open(stack=...)", DeprecationWarning, stacklevel=2)
        if stack_options is not None:
            raise NotImplementedError(f"stack_options: {DEPLOYMENT}")
        self._named: dict[str, Any] = {"stack": name, "region": region, "endpoint_url": endpoint_url}
        self._named["config_cache_ttl"] = config_cache_ttl
        self._made: _Opened | None = None

    @classmethod
    def _of(cls, made: _Opened) -> Self:
        new = cls.__new__(cls)
        new._named, new._made = {}, made
        return new

    def _opened(self) -> Operation[_Opened]:
        if self._made is None:
            self._made = yield from opened(**self._named)
        return self._made

    def _native(self) -> Operation[tg.Limiter]:
        return (yield from self._opened()).limiter

    @property
    def _limiter(self) -> tg.Limiter:
        if self._made is None:
            raise RuntimeError(f"the repository is not open yet; use {type(self).__name__}.open(...)")
        return self._made.limiter

    @property
    def namespace_name(self) -> str:
        """The name of the namespace."""
        return self._limiter.namespace if self._made else "default"

    @property
    def namespace_id(self) -> str:
        """The id of the namespace."""
        return self._limiter.catalog.namespace_id

    @property
    def stack_name(self) -> str:
        """The name of the stack, which is that of the table; of other stores, where they are."""
        return str(self._named["stack"]) if self._made is None else self._made.stack or self._made.limiter.store

    @property
    def table_name(self) -> str:
        """As ``stack_name``."""
        return self.stack_name

    @property
    def capabilities(self) -> BackendCapabilities:
        """What the store can do."""
        return BackendCapabilities(supports_audit_logging=True, supports_usage_snapshots=True)

    def get_cache_stats(self) -> CacheStats:
        """Return the hits and misses of the cache of stored limits."""
        if self._made is None:
            return CacheStats()
        return cache_stats(self._made.limiter, self._made.settings["cache_ttl"])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.stack_name!r} namespace={self.namespace_name!r}>"

    def _other(self, name: str, on_unavailable: _Policy | OnUnavailable | None) -> Operation[Self]:
        made = yield from self._opened()
        settings = {**made.settings, "namespace": name, "create_namespace": False}
        if on_unavailable is not None:
            settings["on_unavailable"] = OnUnavailable(on_unavailable).value
        limiter = yield Ask(_Opener, "open", made.url, settings)
        return self._of(_Opened(made.url, settings, limiter, made.stack))

    @operation
    def ping(self) -> Operation[bool]:
        """Return whether the store answers."""
        try:
            yield from self._namespace(self.namespace_name)
        except Exception:
            return False
        return True

    @operation
    def set_system_defaults(
        self, limits: list[Limit], on_unavailable: _Policy | None = None, principal: str | None = None
    ) -> Operation[None]:
        """Store the limits of the system, and what to do while the store does not answer."""
        policy = None if on_unavailable is None else OnUnavailable(on_unavailable).value
        yield from self._set_system(limits, policy, principal)

    @operation
    def get_system_defaults(self) -> Operation[tuple[list[Limit], _Policy | None]]:
        """Return the limits of the system, and what to do while the store does not answer."""
        return (yield from self._system()), (yield from self._policy())

    @operation
    def get_system_limits(self) -> Operation[list[Limit]]:
        """Return the limits of the system."""
        return (yield from self._system())

    # Namespaces

    def _namespaces(self, verb: str, *arguments: Any) -> Operation[Any]:
        return (yield Ask((yield from self._catalog()).namespaces, verb, *arguments))

    def _namespace(self, name: str) -> Operation[tg.Namespace | None]:
        found: tg.Namespace | None = yield from self._namespaces("get", name)
        return found

    @operation
    def register_namespace(self, namespace: str) -> Operation[str]:
        """Create a namespace, or find it. Returns its id."""
        return str((yield from self._namespaces("create", namespace)).id)

    @operation
    def register_namespaces(self, namespaces: list[str]) -> Operation[dict[str, str]]:
        """Create namespaces, or find them. Returns their ids by name."""
        found = {}
        for name in namespaces:
            found[name] = str((yield from self._namespaces("create", name)).id)
        return found

    @operation
    def list_namespaces(self) -> Operation[list[dict[str, str]]]:
        """Return the namespaces that are in use: name, namespace_id, created_at."""
        found = yield from self._namespaces("list")
        return [{"name": each.name, "namespace_id": each.id, "created_at": each.created_at} for each in found]

    @operation
    def get_namespace(self, namespace: str) -> Operation[dict[str, str] | None]:
        """Return a namespace: name, namespace_id, status, created_at; ``None`` if there is none."""
        found = yield from self._namespace(namespace)
        if found is None:
            return None
        return {"name": found.name, "namespace_id": found.id, "status": found.status, "created_at": found.created_at}

    @operation
    def delete_namespace(self, namespace: str) -> Operation[None]:
        """Delete a namespace; it can be recovered by its id until it is purged. Nothing if there is none."""
        try:
            yield from self._namespaces("delete", namespace)
        except NamespaceNotFoundError:
            return

    @operation
    def recover_namespace(self, namespace_id: str) -> Operation[str]:
        """Recover a deleted namespace. Returns its name."""
        return str((yield from self._namespaces("recover", namespace_id)).name)

    @operation
    def list_orphan_namespaces(self) -> Operation[list[dict[str, str]]]:
        """Return the namespaces that were deleted and not purged: namespace_id, namespace, deleted_at."""
        found = yield from self._namespaces("orphans")
        return [{"namespace_id": each.id, "namespace": each.name, "deleted_at": each.deleted_at or ""} for each in found]

    @operation
    def purge_namespace(self, namespace_id: str) -> Operation[None]:
        """Delete all records of a deleted namespace."""
        yield from self._namespaces("purge", namespace_id)


@awaited
class Repository(RepositoryMethods, Awaiting):
    """Where limits and entities are kept, in an event loop.

    >>> import asyncio
    >>> from tollgate.compat.zae import Repository
    >>> asyncio.run(Repository.open("tenant-1", url="memory")).namespace_name
    'tenant-1'
    """

    @classmethod
    async def open(
        cls,
        namespace: str | None = None,
        *,
        stack: str | None = None,
        region: str | None = None,
        endpoint_url: str | None = None,
        config_cache_ttl: int = 60,
        auto_update: bool = True,
        rejection_cache_ttl: float = 1.0,
        rejection_cache_size: int = 10_000,
        stamp_ttl: float = 60,
        url: str | None = None,
    ) -> Repository:
        """Open a store, and create the namespace if it is new. ``url`` is any store of Tollgate's."""
        return cls._of(await run_async(opened(url, namespace, stack, region, endpoint_url, config_cache_ttl)))

    @classmethod
    async def connect(
        cls,
        namespace: str | None = None,
        *,
        stack: str | None = None,
        region: str | None = None,
        endpoint_url: str | None = None,
        config_cache_ttl: int = 60,
        rejection_cache_ttl: float = 1.0,
        rejection_cache_size: int = 10_000,
        stamp_ttl: float = 60,
        url: str | None = None,
    ) -> Repository:
        """As ``open``."""
        return cls._of(await run_async(opened(url, namespace, stack, region, endpoint_url, config_cache_ttl)))

    @classmethod
    def builder(cls) -> RepositoryBuilder:
        """Return a builder."""
        return RepositoryBuilder()

    async def namespace(
        self, name: str, *, on_unavailable: _Policy | OnUnavailable | None = None, bucket_ttl_multiplier: int | None = None
    ) -> Repository:
        """Return the repository of another namespace on the same store, which must exist."""
        return await run_async(self._other(name, on_unavailable))

    async def __aenter__(self) -> Repository:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        return None


@blocking
class SyncRepository(RepositoryMethods, Blocking):
    """Where limits and entities are kept.

    >>> from tollgate.compat.zae import SyncRepository
    >>> SyncRepository.open("tenant-1", url="memory").namespace_name
    'tenant-1'
    """

    @classmethod
    def open(
        cls,
        namespace: str | None = None,
        parallel_mode: str = "auto",
        *,
        stack: str | None = None,
        region: str | None = None,
        endpoint_url: str | None = None,
        config_cache_ttl: int = 60,
        auto_update: bool = True,
        rejection_cache_ttl: float = 1.0,
        rejection_cache_size: int = 10_000,
        stamp_ttl: float = 60,
        url: str | None = None,
    ) -> SyncRepository:
        """Open a store, and create the namespace if it is new. ``url`` is any store of Tollgate's."""
        return cls._of(run(opened(url, namespace, stack, region, endpoint_url, config_cache_ttl)))

    @classmethod
    def connect(
        cls,
        namespace: str | None = None,
        *,
        stack: str | None = None,
        region: str | None = None,
        endpoint_url: str | None = None,
        config_cache_ttl: int = 60,
        rejection_cache_ttl: float = 1.0,
        rejection_cache_size: int = 10_000,
        stamp_ttl: float = 60,
        url: str | None = None,
    ) -> SyncRepository:
        """As ``open``."""
        return cls._of(run(opened(url, namespace, stack, region, endpoint_url, config_cache_ttl)))

    @classmethod
    def builder(cls) -> SyncRepositoryBuilder:
        """Return a builder."""
        return SyncRepositoryBuilder()

    def namespace(
        self, name: str, *, on_unavailable: _Policy | OnUnavailable | None = None, bucket_ttl_multiplier: int | None = None
    ) -> SyncRepository:
        """Return the repository of another namespace on the same store, which must exist."""
        return run(self._other(name, on_unavailable))

    def __enter__(self) -> SyncRepository:
        return self

    def __exit__(self, *exc_info: object) -> None:
        return None
