"""Entities and resources that are disabled, and whether calls are charged to parents."""

from __future__ import annotations

from typing import Final

import tollgate as tg

from ._operations import Ask, Operation, operation

DEFAULT_RESOURCE: Final = "_default_"

NO_BYPASS = (
    "there is no bypass: every call is limited and counted; give the entity limits that are high enough with set_limits, "
    "or none that deny with Limit.per_minute(.., soft=True)"
)


class CatalogUser:
    """What has a limiter of the library."""

    def _native(self) -> Operation[tg.Limiter]:
        """Return the limiter of the library, opened."""
        raise NotImplementedError
        yield

    def _catalog(self, principal: str | None = None) -> Operation[tg.Catalog]:
        catalog = (yield from self._native()).catalog
        return catalog.acting_as(principal) if principal else catalog


def own(resource: str | None) -> str | None:
    """Return the resource, or ``None`` for the default of an entity."""
    return None if resource == DEFAULT_RESOURCE else resource


def refuse_bypass(disabled: object) -> None:
    """Raise for the third state of ``disabled``."""
    if isinstance(disabled, str):
        raise NotImplementedError(NO_BYPASS)


class SwitchMethods(CatalogUser):
    """Switches. Those that change something return how much they changed: 1, or 0 if it was so already."""

    def _switch(self, principal: str | None, disabled: bool | str | None, entity: str | None, resource: str | None) -> Operation[int]:
        refuse_bypass(disabled)
        catalog, resource = (yield from self._catalog(principal)), own(resource)
        if entity is not None and resource is not None:
            access = None if disabled is None else not disabled
            return int((yield Ask(catalog, "set_access", entity, resource, access)))
        verb = "disable" if disabled else "enable"
        kind = "entity" if entity is not None else "resource"
        return int((yield Ask(catalog, f"{verb}_{kind}", entity if entity is not None else resource)))

    def _cascade(self, principal: str | None, cascade: bool | None, entity: str | None, resource: str | None) -> Operation[int]:
        catalog = yield from self._catalog(principal)
        return int((yield Ask(catalog, "set_cascade", cascade, entity=entity, resource=own(resource))))

    @operation
    def disable_entity(self, entity_id: str, resource: str | None = None, principal: str | None = None) -> Operation[int]:
        """Disable an entity, or one resource for it."""
        return (yield from self._switch(principal, True, entity_id, resource))

    @operation
    def enable_entity(self, entity_id: str, resource: str | None = None, principal: str | None = None) -> Operation[int]:
        """Enable an entity again, or one resource for it even if the resource is disabled."""
        return (yield from self._switch(principal, False, entity_id, resource))

    @operation
    def clear_entity_disabled(self, entity_id: str, resource: str | None = None, principal: str | None = None) -> Operation[int]:
        """Remove what was set for an entity, or for one resource of it."""
        return (yield from self._switch(principal, None, entity_id, resource))

    @operation
    def get_entity_disabled(self, entity_id: str, resource: str) -> Operation[bool | str | None]:
        """Return whether an entity is disabled for a resource; ``None`` if nothing was set there."""
        catalog = yield from self._catalog()
        if own(resource) is None:
            return True if (yield Ask(catalog, "is_entity_disabled", entity_id)) else None
        access = yield Ask(catalog, "get_access", entity_id, resource)
        return None if access is None else not access

    @operation
    def disable_resource(self, resource: str, principal: str | None = None) -> Operation[int]:
        """Disable a resource for all entities without an exception."""
        return (yield from self._switch(principal, True, None, resource))

    @operation
    def enable_resource(self, resource: str, principal: str | None = None) -> Operation[int]:
        """Enable a resource again."""
        return (yield from self._switch(principal, False, None, resource))

    @operation
    def clear_resource_disabled(self, resource: str, principal: str | None = None) -> Operation[int]:
        """Enable a resource again."""
        return (yield from self._switch(principal, None, None, resource))

    @operation
    def get_resource_disabled(self, resource: str) -> Operation[bool | str | None]:
        """Return true if a resource is disabled, and ``None`` if it is not."""
        found = yield Ask((yield from self._catalog()), "disabled_resources")
        return True if resource in found else None

    @operation
    def resolve_disabled(self, entity_id: str, resource: str) -> Operation[tuple[bool, str | None]]:
        """Return whether calls are refused, and the level that says so: entity, entity_default or resource."""
        catalog = yield from self._catalog()
        access = yield Ask(catalog, "get_access", entity_id, resource)
        if (yield Ask(catalog, "is_entity_disabled", entity_id)):
            return True, "entity_default"
        if access is not None:
            return not access, "entity"
        is_disabled = resource in (yield Ask(catalog, "disabled_resources"))
        return is_disabled, "resource" if is_disabled else None

    @operation
    def bypass_entity(self, entity_id: str, resource: str | None = None, principal: str | None = None) -> Operation[int]:
        """Not supported: every call is limited and counted."""
        raise NotImplementedError(NO_BYPASS)
        yield

    @operation
    def bypass_resource(self, resource: str, principal: str | None = None) -> Operation[int]:
        """Not supported: every call is limited and counted."""
        raise NotImplementedError(NO_BYPASS)
        yield

    @operation
    def set_entity_cascade(
        self, entity_id: str, cascade: bool, resource: str | None = None, principal: str | None = None
    ) -> Operation[int]:
        """Set whether calls of an entity are charged to its parent, for a resource or for all."""
        return (yield from self._cascade(principal, cascade, entity_id, resource))

    @operation
    def clear_entity_cascade(self, entity_id: str, resource: str | None = None, principal: str | None = None) -> Operation[int]:
        """Remove what was set for an entity."""
        return (yield from self._cascade(principal, None, entity_id, resource))

    @operation
    def get_entity_cascade(self, entity_id: str, resource: str) -> Operation[bool | None]:
        """Return what was set for an entity and a resource; ``None`` if nothing was."""
        found: bool | None = yield Ask((yield from self._catalog()), "get_cascade", entity=entity_id, resource=own(resource))
        return found

    @operation
    def set_resource_cascade(self, resource: str, cascade: bool, principal: str | None = None) -> Operation[int]:
        """Set whether calls of a resource are charged to parents."""
        return (yield from self._cascade(principal, cascade, None, resource))

    @operation
    def clear_resource_cascade(self, resource: str, principal: str | None = None) -> Operation[int]:
        """Remove what was set for a resource."""
        return (yield from self._cascade(principal, None, None, resource))

    @operation
    def get_resource_cascade(self, resource: str) -> Operation[bool | None]:
        """Return what was set for a resource; ``None`` if nothing was."""
        found: bool | None = yield Ask((yield from self._catalog()), "get_cascade", resource=resource)
        return found
