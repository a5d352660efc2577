"""What repositories and limiters both do: entities, limits and audit events."""

from __future__ import annotations

from typing import Any

import tollgate as tg

from ._buckets import BucketMethods
from ._errors import EntityNotFoundError
from ._limits import Limit, native
from ._models import AuditEvent, Entity
from ._operations import Ask, Operation, operation
from ._switches import DEFAULT_RESOURCE, SwitchMethods, own, refuse_bypass
from ._usage import UsageMethods

#: The default of arguments that change something only where they are given.
_UNSET: Any = object()


class StoreMethods(SwitchMethods, BucketMethods, UsageMethods):
    """Entities, limits and audit events."""

    @operation
    def close(self) -> Operation[None]:
        """Do nothing: the store is closed with its last user."""
        return
        yield  # makes it a generator, as every operation

    # Entities

    @operation
    def create_entity(
        self,
        entity_id: str,
        name: str | None = None,
        parent_id: str | None = None,
        cascade: bool = False,
        metadata: dict[str, str] | None = None,
        principal: str | None = None,
    ) -> Operation[Entity]:
        """Create an entity. With ``cascade`` its calls are charged to the parent as well."""
        named = {"name": name, "parent": parent_id, "cascades": cascade, "metadata": metadata}
        return Entity.of((yield Ask((yield from self._catalog(principal)), "create_entity", entity_id, **named)))

    @operation
    def get_entity(self, entity_id: str, *, consistent_read: bool = False) -> Operation[Entity | None]:
        """Return an entity; ``None`` if it was never created. Reads are always consistent."""
        found = yield Ask((yield from self._catalog()), "get_entity", entity_id)
        return Entity.of(found) if found else None

    @operation
    def delete_entity(self, entity_id: str, principal: str | None = None) -> Operation[None]:
        """Delete an entity with all that belongs to it but audit events; nothing if there is none."""
        try:
            yield Ask((yield from self._catalog(principal)), "delete_entity", entity_id)
        except EntityNotFoundError:
            return

    @operation
    def get_children(self, parent_id: str) -> Operation[list[Entity]]:
        """Return the children of an entity."""
        found: list[Entity] = []
        after = None
        while True:
            page = yield Ask((yield from self._catalog()), "children", parent_id, after=after)
            for child in page:
                entity = yield Ask((yield from self._catalog()), "get_entity", child)
                found += [Entity.of(entity)] if entity else []
            after = page.next
            if after is None:
                return found

    @operation
    def set_parent(self, entity_id: str, parent_id: str | None, *, principal: str | None = None) -> Operation[int]:
        """Move an entity to another parent, or to none. Returns how many entities have moved."""
        return int((yield Ask((yield from self._catalog(principal)), "set_parent", entity_id, parent_id)))

    # Limits

    @operation
    def set_limits(
        self,
        entity_id: str,
        limits: list[Limit],
        resource: str = DEFAULT_RESOURCE,
        principal: str | None = None,
        *,
        disabled: bool | str | None = _UNSET,
        cascade: bool | None = _UNSET,
    ) -> Operation[None]:
        """Store the limits of an entity, for a resource or as its default; then its switches, where they are given."""
        refuse_bypass(disabled)
        yield Ask((yield from self._catalog(principal)), "set_limits", native(limits), entity=entity_id, resource=own(resource))
        yield from self._switches(principal, disabled, cascade, entity_id, resource)

    def _switches(
        self, principal: str | None, disabled: bool | str | None, cascade: bool | None, entity: str | None, resource: str
    ) -> Operation[None]:
        if disabled is not _UNSET:
            yield from self._switch(principal, disabled, entity, resource)
        if cascade is not _UNSET:
            yield from self._cascade(principal, cascade, entity, resource)

    @operation
    def get_limits(self, entity_id: str, resource: str = DEFAULT_RESOURCE) -> Operation[list[Limit]]:
        """Return the limits of an entity, for a resource or its default."""
        stored = yield Ask((yield from self._catalog()), "get_limits", entity=entity_id, resource=own(resource))
        return shown(stored)

    @operation
    def delete_limits(
        self, entity_id: str, resource: str = DEFAULT_RESOURCE, principal: str | None = None
    ) -> Operation[None]:
        """Delete the limits of an entity, for a resource or its default."""
        yield Ask((yield from self._catalog(principal)), "delete_limits", entity=entity_id, resource=own(resource))

    @operation
    def set_resource_defaults(
        self,
        resource: str,
        limits: list[Limit],
        principal: str | None = None,
        *,
        disabled: bool | str | None = _UNSET,
        cascade: bool | None = _UNSET,
    ) -> Operation[None]:
        """Store the limits of a resource; then its switches, where they are given."""
        refuse_bypass(disabled)
        yield Ask((yield from self._catalog(principal)), "set_limits", native(limits), resource=resource)
        yield from self._switches(principal, disabled, cascade, None, resource)

    @operation
    def get_resource_defaults(self, resource: str) -> Operation[list[Limit]]:
        """Return the limits of a resource."""
        return shown((yield Ask((yield from self._catalog()), "get_limits", resource=resource)))

    @operation
    def delete_resource_defaults(self, resource: str, principal: str | None = None) -> Operation[None]:
        """Delete the limits of a resource."""
        yield Ask((yield from self._catalog(principal)), "delete_limits", resource=resource)

    @operation
    def list_resources_with_defaults(self) -> Operation[list[str]]:
        """Return the resources that have limits."""
        return list((yield Ask((yield from self._catalog()), "resources_with_limits")))

    def _set_system(self, limits: list[Limit], policy: str | None, principal: str | None) -> Operation[None]:
        yield Ask((yield from self._catalog(principal)), "set_system_limits", native(limits), on_unavailable=policy)

    def _system(self) -> Operation[list[Limit]]:
        return shown((yield Ask((yield from self._catalog()), "get_limits")))

    @operation
    def delete_system_defaults(self, principal: str | None = None) -> Operation[None]:
        """Delete the limits of the system."""
        yield Ask((yield from self._catalog(principal)), "delete_limits")

    @operation
    def list_entities_with_custom_limits(
        self, resource: str, limit: int | None = None, cursor: str | None = None
    ) -> Operation[tuple[list[str], str | None]]:
        """Return entities that have limits of their own for a resource, and the cursor of the next page."""
        page = yield Ask((yield from self._catalog()), "entities_with_limits", resource, limit=limit, after=cursor)
        return list(page), page.next

    @operation
    def list_resources_with_entity_configs(self) -> Operation[list[str]]:
        """Return the resources that some entity has limits of its own for."""
        return sorted((yield Ask((yield from self._catalog()), "resources_with_entity_limits")))

    # Audit

    @operation
    def get_audit_events(
        self, entity_id: str, limit: int = 100, start_event_id: str | None = None
    ) -> Operation[list[AuditEvent]]:
        """Return the changes that were made to an entity, ``$SYSTEM`` or ``$RESOURCE:name``, the newest first."""
        whose: dict[str, Any] = {"entity": entity_id}
        if entity_id == "$SYSTEM":
            whose = {"system": True}
        elif entity_id.startswith("$RESOURCE:"):
            whose = {"resource": entity_id.removeprefix("$RESOURCE:")}
        found: list[AuditEvent] = []
        after = None
        while len(found) < limit:
            page = yield Ask((yield from self._catalog()), "audit", newest_first=True, after=after, **whose)
            # Ids sort by time.
            found += [AuditEvent.of(event) for event in page if start_event_id is None or event.id < start_event_id]
            after = page.next
            if after is None:
                break
        return found[:limit]


def shown(stored: tg.StoredLimits | None) -> list[Limit]:
    return [Limit.from_native(limit) for limit in stored.limits] if stored else []
