"""Repositories: where limits and entities are kept."""

from __future__ import annotations

import os
from typing import Any

import tollgate as tg

from ._errors import NamespaceNotFoundError
from ._models import AuditEvent, Entity, Limit, Namespace, OnUnavailable, native
from ._operations import Ask, Operation, awaited, blocking, run, run_async

DEFAULT_RESOURCE = "_default_"
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


class _RepositoryMethods:
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

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._limiter.store!r} namespace={self.namespace_name!r}>"

    def _catalog(self, principal: str | None) -> tg.Catalog:
        catalog = self._limiter.catalog
        return catalog.acting_as(principal) if principal else catalog

    def namespace(self, name: str, *, on_unavailable: OnUnavailable | None = None, bucket_ttl_multiplier: int | None = None) -> Any:
        """Return the repository of another namespace on the same store, which must exist."""
        settings = {**self._settings, "namespace": name, "create_namespace": False}
        if on_unavailable is not None:
            settings["on_unavailable"] = on_unavailable.value
        limiter = yield Ask(_Opener, "open", self._url, settings)
        return type(self)(self._url, settings, limiter)

    def close(self) -> Any:
        """Do nothing: the store is closed with its last user."""
        return
        yield

    def ping(self) -> Any:
        """Return whether the store answers."""
        yield Ask(self._limiter.catalog.namespaces, "get", self.namespace_name)
        return True

    # Entities

    def create_entity(
        self,
        entity_id: str,
        name: str | None = None,
        parent_id: str | None = None,
        cascade: bool = False,
        metadata: dict[str, str] | None = None,
        principal: str | None = None,
    ) -> Any:
        """Create an entity. With ``cascade`` its calls are charged to the parent as well."""
        named = {"name": name, "parent": parent_id, "cascades": cascade, "metadata": metadata}
        return Entity.of((yield Ask(self._catalog(principal), "create_entity", entity_id, **named)))

    def get_entity(self, entity_id: str) -> Any:
        """Return an entity; ``None`` if it was never created."""
        found = yield Ask(self._catalog(None), "get_entity", entity_id)
        return found and Entity.of(found)

    def delete_entity(self, entity_id: str, principal: str | None = None) -> Any:
        """Delete an entity with all that belongs to it but audit events."""
        yield Ask(self._catalog(principal), "delete_entity", entity_id)

    def get_children(self, parent_id: str) -> Any:
        """Return the children of an entity."""
        found: list[Entity] = []
        after = None
        while True:
            page = yield Ask(self._catalog(None), "children", parent_id, after=after)
            for child in page:
                entity = yield Ask(self._catalog(None), "get_entity", child)
                found += [Entity.of(entity)] if entity else []
            after = page.next
            if after is None:
                return found

    def set_parent(self, entity_id: str, parent_id: str | None, *, principal: str | None = None) -> Any:
        """Move an entity to another parent, or to none. Returns how many entities have moved."""
        return int((yield Ask(self._catalog(principal), "set_parent", entity_id, parent_id)))

    # Limits

    def set_limits(
        self, entity_id: str, limits: list[Limit], resource: str = DEFAULT_RESOURCE, principal: str | None = None
    ) -> Any:
        """Store the limits of an entity, for a resource or as its default."""
        yield Ask(self._catalog(principal), "set_limits", native(limits), entity=entity_id, resource=_own(resource))

    def get_limits(self, entity_id: str, resource: str = DEFAULT_RESOURCE) -> Any:
        """Return the limits of an entity, for a resource or its default."""
        stored = yield Ask(self._catalog(None), "get_limits", entity=entity_id, resource=_own(resource))
        return _shown(stored)

    def delete_limits(
        self, entity_id: str, resource: str = DEFAULT_RESOURCE, principal: str | None = None
    ) -> Any:
        """Delete the limits of an entity, for a resource or its default."""
        yield Ask(self._catalog(principal), "delete_limits", entity=entity_id, resource=_own(resource))

    def set_resource_defaults(self, resource: str, limits: list[Limit], principal: str | None = None) -> Any:
        """Store the limits of a resource."""
        yield Ask(self._catalog(principal), "set_limits", native(limits), resource=resource)

    def get_resource_defaults(self, resource: str) -> Any:
        """Return the limits of a resource."""
        return _shown((yield Ask(self._catalog(None), "get_limits", resource=resource)))

    def delete_resource_defaults(self, resource: str, principal: str | None = None) -> Any:
        """Delete the limits of a resource."""
        yield Ask(self._catalog(principal), "delete_limits", resource=resource)

    def list_resources_with_defaults(self) -> Any:
        """Return the resources that have limits."""
        return (yield Ask(self._catalog(None), "resources_with_limits"))

    def set_system_defaults(
        self, limits: list[Limit], on_unavailable: OnUnavailable | None = None, principal: str | None = None
    ) -> Any:
        """Store the limits of the system, and what to do while the store does not answer."""
        policy = on_unavailable.value if on_unavailable else None
        yield Ask(self._catalog(principal), "set_system_limits", native(limits), on_unavailable=policy)

    def get_system_defaults(self) -> Any:
        """Return the limits of the system, and what to do while the store does not answer."""
        stored = yield Ask(self._catalog(None), "get_limits")
        policy = stored.on_unavailable if stored else None
        return _shown(stored), OnUnavailable(policy) if policy in ("allow", "block") else None

    def delete_system_defaults(self, principal: str | None = None) -> Any:
        """Delete the limits of the system."""
        yield Ask(self._catalog(principal), "delete_limits")

    def list_entities_with_custom_limits(
        self, resource: str, limit: int | None = None, cursor: str | None = None
    ) -> Any:
        """Return entities that have limits of their own for a resource, and the cursor of the next page."""
        page = yield Ask(self._catalog(None), "entities_with_limits", resource, limit=limit, after=cursor)
        return list(page), page.next

    def list_resources_with_entity_configs(self) -> Any:
        """Return the resources that some entity has limits of its own for."""
        return sorted((yield Ask(self._catalog(None), "resources_with_entity_limits")))

    # Switches, buckets, audit

    def disable_entity(self, entity_id: str, principal: str | None = None) -> Any:
        """Disable an entity."""
        yield Ask(self._catalog(principal), "disable_entity", entity_id)

    def enable_entity(self, entity_id: str, principal: str | None = None) -> Any:
        """Enable an entity again."""
        yield Ask(self._catalog(principal), "enable_entity", entity_id)

    def disable_resource(self, resource: str, principal: str | None = None) -> Any:
        """Disable a resource."""
        yield Ask(self._catalog(principal), "disable_resource", resource)

    def enable_resource(self, resource: str, principal: str | None = None) -> Any:
        """Enable a resource again."""
        yield Ask(self._catalog(principal), "enable_resource", resource)

    def reset_bucket(self, entity_id: str, resource: str, principal: str | None = None) -> Any:
        """Reset a bucket to its unused state."""
        return (yield Ask(self._catalog(principal), "reset", entity_id, resource))

    def top_up(
        self,
        entity_id: str,
        resource: str,
        amounts: dict[str, int],
        *,
        idempotency_key: str | None = None,
        principal: str | None = None,
    ) -> Any:
        """Add credit to a bucket, once for each idempotency key."""
        return (yield Ask(self._catalog(principal), "top_up", entity_id, resource, amounts, key=idempotency_key))

    def get_audit_events(
        self, entity_id: str, limit: int = 100, start_event_id: str | None = None
    ) -> Any:
        """Return the changes that were made to an entity, ``$SYSTEM`` or ``$RESOURCE:name``, the newest first."""
        whose: dict[str, Any] = {"entity": entity_id}
        if entity_id == "$SYSTEM":
            whose = {"system": True}
        elif entity_id.startswith("$RESOURCE:"):
            whose = {"resource": entity_id.removeprefix("$RESOURCE:")}
        found: list[AuditEvent] = []
        after = None
        while len(found) < limit:
            page = yield Ask(self._catalog(None), "audit", newest_first=True, after=after, **whose)
            # Ids sort by time.
            found += [AuditEvent.of(event) for event in page if start_event_id is None or event.id < start_event_id]
            after = page.next
            if after is None:
                break
        return found[:limit]

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

    def invalidate_config_cache(self) -> Any:
        """Forget what is cached, so that the changes of other processes are seen at once."""
        self._limiter.catalog.invalidate()
        return
        yield

    def delete_stack(self) -> Any:
        """Not supported: a stack is deleted by the tools that made it."""
        raise NotImplementedError("stacks are not deleted from here; use delete_namespace and purge_namespace, or `tollgate`")
        yield


def _own(resource: str) -> str | None:
    return None if resource == DEFAULT_RESOURCE else resource


def _shown(stored: tg.StoredLimits | None) -> list[Limit]:
    return [Limit.from_native(limit) for limit in stored.limits] if stored else []


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
