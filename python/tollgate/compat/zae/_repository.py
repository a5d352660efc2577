"""Repositories: where limits and entities are kept."""

from __future__ import annotations

import os
from typing import Any

import tollgate as tg

from ._errors import NamespaceNotFoundError
from ._models import Namespace, OnUnavailable
from ._operations import Ask, Operation, awaited, blocking, run, run_async
from ._store import _StoreMethods

DEFAULT_STACK = "zae-limiter"


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


def _open(
    url: str | None,
    namespace: str | None,
    stack: str | None,
    region: str | None,
    endpoint_url: str | None,
    **settings: Any,
) -> Operation[tuple[str, dict[str, Any], tg.Limiter]]:
    where = _url(url, stack, region, endpoint_url)
    settings = {"namespace": namespace or "default", **settings}
    limiter = yield Ask(_Opener, "open", where, settings)
    return where, settings, limiter


class _Opener:
    """Opening as a method that there is twice."""

    @staticmethod
    def open(url: str, settings: dict[str, Any]) -> tg.Limiter:
        return tg.Limiter(url, **settings)

    @staticmethod
    def open_async(url: str, settings: dict[str, Any]) -> Any:
        return tg.Limiter.open_async(url, **settings)


class _RepositoryMethods(_StoreMethods):
    def __init__(self, url: str, settings: dict[str, Any], limiter: tg.Limiter) -> None:
        self._url, self._settings, self._limiter = url, settings, limiter

    @property
    def namespace_name(self) -> str:
        """The name of the namespace."""
        return self._limiter.namespace

    @property
    def namespace_id(self) -> str:
        """The id of the namespace."""
        return self._limiter.catalog.namespace_id

    def _native(self) -> Operation[tg.Limiter]:
        return self._limiter
        yield

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._limiter.store!r} namespace={self.namespace_name!r}>"

    def namespace(self, name: str, *, on_unavailable: OnUnavailable | None = None, bucket_ttl_multiplier: int | None = None) -> Any:
        """Return the repository of another namespace on the same store, which must exist."""
        settings = {**self._settings, "namespace": name, "create_namespace": False}
        if on_unavailable is not None:
            settings["on_unavailable"] = on_unavailable.value
        limiter = yield Ask(_Opener, "open", self._url, settings)
        return type(self)(self._url, settings, limiter)

    def ping(self) -> Any:
        """Return whether the store answers."""
        yield Ask(self._limiter.catalog.namespaces, "get", self.namespace_name)
        return True

    # Namespaces

    def register_namespace(self, name: str) -> Any:
        """Create a namespace, or find it. Returns its id."""
        return (yield Ask(self._limiter.catalog.namespaces, "create", name)).id

    def list_namespaces(self) -> Any:
        """Return the namespaces that are in use."""
        return [Namespace.of(found) for found in (yield Ask(self._limiter.catalog.namespaces, "list"))]

    def get_namespace(self, name: str) -> Any:
        """Return a namespace. Raises ``NamespaceNotFoundError``."""
        found = yield Ask(self._limiter.catalog.namespaces, "get", name)
        if found is None:
            raise NamespaceNotFoundError(f"there is no namespace {name!r}")
        return Namespace.of(found)

    def delete_namespace(self, name: str) -> Any:
        """Delete a namespace; it can be recovered by its id until it is purged."""
        yield Ask(self._limiter.catalog.namespaces, "delete", name)

    def recover_namespace(self, namespace_id: str) -> Any:
        """Recover a deleted namespace. Returns its name."""
        return (yield Ask(self._limiter.catalog.namespaces, "recover", namespace_id)).name

    def list_orphan_namespaces(self) -> Any:
        """Return the namespaces that were deleted and not purged."""
        return [Namespace.of(found) for found in (yield Ask(self._limiter.catalog.namespaces, "orphans"))]

    def purge_namespace(self, namespace_id: str) -> Any:
        """Delete all records of a deleted namespace."""
        yield Ask(self._limiter.catalog.namespaces, "purge", namespace_id)

    def delete_stack(self) -> Any:
        """Not supported: a stack is deleted by the tools that made it."""
        raise NotImplementedError("stacks are not deleted from here; use delete_namespace and purge_namespace, or `tollgate`")
        yield


@awaited
class Repository(_RepositoryMethods):
    """Where limits and entities are kept, in an event loop: ``repo = await Repository.open()``."""

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
        return cls(*await run_async(_open(url, namespace, stack, region, endpoint_url, cache_ttl=config_cache_ttl)))

    @classmethod
    async def connect(cls, namespace: str | None = None, *, auto_update: bool = False, **named: Any) -> Repository:
        """As ``open``."""
        return await cls.open(namespace, **named)

    async def __aenter__(self) -> Repository:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        return None


@blocking
class SyncRepository(_RepositoryMethods):
    """Where limits and entities are kept: ``repo = SyncRepository.open()``."""

    @classmethod
    def open(
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
    ) -> SyncRepository:
        """Open a store, and create the namespace if it is new. ``url`` is any store of Tollgate's."""
        return cls(*run(_open(url, namespace, stack, region, endpoint_url, cache_ttl=config_cache_ttl)))

    @classmethod
    def connect(cls, namespace: str | None = None, *, auto_update: bool = False, **named: Any) -> SyncRepository:
        """As ``open``."""
        return cls.open(namespace, **named)

    def __enter__(self) -> SyncRepository:
        return self

    def __exit__(self, *exc_info: object) -> None:
        return None
