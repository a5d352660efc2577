"""What repositories and limiters both do: entities, limits, switches, buckets and audit events."""

from __future__ import annotations

from typing import Any

import tollgate as tg

from ._models import AuditEvent, Entity, Limit, OnUnavailable, native
from ._operations import Ask, Operation

DEFAULT_RESOURCE = "_default_"


class _StoreMethods:
    def _native(self) -> Operation[tg.Limiter]:
        """Return the limiter of the library, opened."""
        raise NotImplementedError
        yield

    def _catalog(self, principal: str | None) -> Operation[tg.Catalog]:
        catalog = (yield from self._native()).catalog
        return catalog.acting_as(principal) if principal else catalog

    def close(self) -> Any:
        """Do nothing: the store is closed with its last user."""
        return
        yield

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
        return Entity.of((yield Ask((yield from self._catalog(principal)), "create_entity", entity_id, **named)))

    def get_entity(self, entity_id: str) -> Any:
        """Return an entity; ``None`` if it was never created."""
        found = yield Ask((yield from self._catalog(None)), "get_entity", entity_id)
        return found and Entity.of(found)

    def delete_entity(self, entity_id: str, principal: str | None = None) -> Any:
        """Delete an entity with all that belongs to it but audit events."""
        yield Ask((yield from self._catalog(principal)), "delete_entity", entity_id)

    def get_children(self, parent_id: str) -> Any:
        """Return the children of an entity."""
        found: list[Entity] = []
        after = None
        while True:
            page = yield Ask((yield from self._catalog(None)), "children", parent_id, after=after)
            for child in page:
                entity = yield Ask((yield from self._catalog(None)), "get_entity", child)
                found += [Entity.of(entity)] if entity else []
            after = page.next
            if after is None:
                return found

    def set_parent(self, entity_id: str, parent_id: str | None, *, principal: str | None = None) -> Any:
        """Move an entity to another parent, or to none. Returns how many entities have moved."""
        return int((yield Ask((yield from self._catalog(principal)), "set_parent", entity_id, parent_id)))

    # Limits

    def set_limits(
        self, entity_id: str, limits: list[Limit], resource: str = DEFAULT_RESOURCE, principal: str | None = None
    ) -> Any:
        """Store the limits of an entity, for a resource or as its default."""
        yield Ask((yield from self._catalog(principal)), "set_limits", native(limits), entity=entity_id, resource=_own(resource))

    def get_limits(self, entity_id: str, resource: str = DEFAULT_RESOURCE) -> Any:
        """Return the limits of an entity, for a resource or its default."""
        stored = yield Ask((yield from self._catalog(None)), "get_limits", entity=entity_id, resource=_own(resource))
        return _shown(stored)

    def delete_limits(
        self, entity_id: str, resource: str = DEFAULT_RESOURCE, principal: str | None = None
    ) -> Any:
        """Delete the limits of an entity, for a resource or its default."""
        yield Ask((yield from self._catalog(principal)), "delete_limits", entity=entity_id, resource=_own(resource))

    def set_resource_defaults(self, resource: str, limits: list[Limit], principal: str | None = None) -> Any:
        """Store the limits of a resource."""
        yield Ask((yield from self._catalog(principal)), "set_limits", native(limits), resource=resource)

    def get_resource_defaults(self, resource: str) -> Any:
        """Return the limits of a resource."""
        return _shown((yield Ask((yield from self._catalog(None)), "get_limits", resource=resource)))

    def delete_resource_defaults(self, resource: str, principal: str | None = None) -> Any:
        """Delete the limits of a resource."""
        yield Ask((yield from self._catalog(principal)), "delete_limits", resource=resource)

    def list_resources_with_defaults(self) -> Any:
        """Return the resources that have limits."""
        return (yield Ask((yield from self._catalog(None)), "resources_with_limits"))

    def set_system_defaults(
        self, limits: list[Limit], on_unavailable: OnUnavailable | None = None, principal: str | None = None
    ) -> Any:
        """Store the limits of the system, and what to do while the store does not answer."""
        policy = on_unavailable.value if on_unavailable else None
        yield Ask((yield from self._catalog(principal)), "set_system_limits", native(limits), on_unavailable=policy)

    def get_system_defaults(self) -> Any:
        """Return the limits of the system, and what to do while the store does not answer."""
        stored = yield Ask((yield from self._catalog(None)), "get_limits")
        policy = stored.on_unavailable if stored else None
        return _shown(stored), OnUnavailable(policy) if policy in ("allow", "block") else None

    def delete_system_defaults(self, principal: str | None = None) -> Any:
        """Delete the limits of the system."""
        yield Ask((yield from self._catalog(principal)), "delete_limits")

    def list_entities_with_custom_limits(
        self, resource: str, limit: int | None = None, cursor: str | None = None
    ) -> Any:
        """Return entities that have limits of their own for a resource, and the cursor of the next page."""
        page = yield Ask((yield from self._catalog(None)), "entities_with_limits", resource, limit=limit, after=cursor)
        return list(page), page.next

    def list_resources_with_entity_configs(self) -> Any:
        """Return the resources that some entity has limits of its own for."""
        return sorted((yield Ask((yield from self._catalog(None)), "resources_with_entity_limits")))

    # Switches, buckets, audit

    def disable_entity(self, entity_id: str, principal: str | None = None) -> Any:
        """Disable an entity."""
        yield Ask((yield from self._catalog(principal)), "disable_entity", entity_id)

    def enable_entity(self, entity_id: str, principal: str | None = None) -> Any:
        """Enable an entity again."""
        yield Ask((yield from self._catalog(principal)), "enable_entity", entity_id)

    def disable_resource(self, resource: str, principal: str | None = None) -> Any:
        """Disable a resource."""
        yield Ask((yield from self._catalog(principal)), "disable_resource", resource)

    def enable_resource(self, resource: str, principal: str | None = None) -> Any:
        """Enable a resource again."""
        yield Ask((yield from self._catalog(principal)), "enable_resource", resource)

    def reset_bucket(self, entity_id: str, resource: str, principal: str | None = None) -> Any:
        """Reset a bucket to its unused state."""
        return (yield Ask((yield from self._catalog(principal)), "reset", entity_id, resource))

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
        return (yield Ask((yield from self._catalog(principal)), "top_up", entity_id, resource, amounts, key=idempotency_key))

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
            page = yield Ask((yield from self._catalog(None)), "audit", newest_first=True, after=after, **whose)
            # Ids sort by time.
            found += [AuditEvent.of(event) for event in page if start_event_id is None or event.id < start_event_id]
            after = page.next
            if after is None:
                break
        return found[:limit]

    def invalidate_config_cache(self) -> Any:
        """Forget what is cached, so that the changes of other processes are seen at once."""
        (yield from self._catalog(None)).invalidate()


def _own(resource: str) -> str | None:
    return None if resource == DEFAULT_RESOURCE else resource


def _shown(stored: tg.StoredLimits | None) -> list[Limit]:
    return [Limit.from_native(limit) for limit in stored.limits] if stored else []
