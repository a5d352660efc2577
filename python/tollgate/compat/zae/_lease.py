"""Leases. What is adjusted is noted, and written when the block ends."""

from __future__ import annotations

import logging
from typing import Any

import tollgate as tg

from ._errors import translated
from ._operations import Ask, Operation, awaited, blocking

_logger = logging.getLogger("tollgate")


class _LeaseBase:
    """What both kinds of leases do."""

    _of_resource: type

    def __init__(self, lease: tg.Lease | None, resource: str, amounts: dict[str, dict[str, int]]) -> None:
        # Without a lease nothing was taken: the store was unavailable, and the policy was to allow.
        self._lease, self._primary = lease, resource
        self._amounts = {name: dict(of) for name, of in amounts.items()}
        self._degraded = lease is None or lease.degraded
        self._overdrawn = [] if lease is None else list(lease.warnings)

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources that were taken together."""
        return tuple(self._amounts)

    @property
    def consumed(self) -> dict[str, int]:
        """What counts of the resource of the call, with all adjustments. Parents are not counted again."""
        return dict(self._amounts[self._primary])

    @property
    def degraded(self) -> bool:
        """Whether nothing is limited, because the store was unavailable."""
        return self._degraded

    @property
    def bypassed(self) -> bool:
        """Always false: there are no entities without limits."""
        return False

    @property
    def overdrawn(self) -> list[str]:
        """The soft limits that the call has passed."""
        return list(self._overdrawn)

    def resource(self, name: str) -> Any:
        """Return the part of the lease that is of one resource."""
        if name not in self._amounts:
            raise KeyError(name)
        return self._of_resource(self, name)

    def _note(self, resource: str, amounts: dict[str, int], sign: int) -> None:
        changes = {name: sign * amount for name, amount in amounts.items()}
        try:
            if self._lease is not None:
                self._lease.adjust(changes, resource=None if resource == self._primary else resource)
        except tg.InvalidDemand as error:
            # What is valid in it was noted.
            _logger.warning("lease: %s", error)
        except tg.Error as error:
            raise translated(error) from error
        counted = self._amounts[resource]
        for name, change in changes.items():
            if name in counted:
                counted[name] = max(0, counted[name] + change)

    def _take(self, resource: str, amounts: dict[str, int]) -> Operation[None]:
        if resource != self._primary:
            raise NotImplementedError("more can be consumed of the resource of the call only; acquire again for another")
        if self._lease is not None:
            yield Ask(self._lease, "consume", amounts)
        counted = self._amounts[resource]
        for name, amount in amounts.items():
            counted[name] = counted.get(name, 0) + amount


class _LeaseMethods(_LeaseBase):
    def adjust(self, **amounts: int) -> Any:
        """Add to what was used, or take from it. Never refused: what goes beyond becomes debt."""
        self._note(self._primary, amounts, 1)
        return
        yield

    def release(self, **amounts: int) -> Any:
        """Give back what was not used."""
        self._note(self._primary, amounts, -1)
        return
        yield

    def consume(self, **amounts: int) -> Any:
        """Take more, all or nothing. Raises ``RateLimitExceeded``."""
        yield from self._take(self._primary, amounts)


class _ResourceMethods:
    """The part of a lease that is of one resource."""

    def __init__(self, lease: _LeaseBase, name: str) -> None:
        self._lease, self.name = lease, name

    @property
    def consumed(self) -> dict[str, int]:
        """What counts of the resource, with all adjustments."""
        return dict(self._lease._amounts[self.name])

    @property
    def bypassed(self) -> bool:
        """Always false: there are no entities without limits."""
        return False

    def adjust(self, **amounts: int) -> Any:
        """As ``Lease.adjust``."""
        self._lease._note(self.name, amounts, 1)
        return
        yield

    def release(self, **amounts: int) -> Any:
        """As ``Lease.release``."""
        self._lease._note(self.name, amounts, -1)
        return
        yield

    def consume(self, **amounts: int) -> Any:
        """As ``Lease.consume``."""
        yield from self._lease._take(self.name, amounts)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} {self.consumed}>"


@awaited
class LeaseResource(_ResourceMethods):
    """The part of a lease that is of one resource, in an event loop."""


@blocking
class SyncLeaseResource(_ResourceMethods):
    """The part of a lease that is of one resource."""


@awaited
class Lease(_LeaseMethods):
    """What an admitted call holds, in an event loop."""

    _of_resource = LeaseResource


@blocking
class SyncLease(_LeaseMethods):
    """What an admitted call holds."""

    _of_resource = SyncLeaseResource
