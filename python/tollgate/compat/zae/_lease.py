"""Leases. What is adjusted is noted, and written when the block ends."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Protocol

import tollgate as tg

from ._errors import LeaseExpiredError, RateLimitExceeded, ValidationError
from ._operations import Ask, Awaiting, Blocking, Operation, awaited, blocking, operation
from ._translation import translated

_logger = logging.getLogger("tollgate")


class Taker(Protocol):
    """What a lease asks its limiter for."""

    def take(self, resource: str, amounts: dict[str, int]) -> Operation[tg.Lease | None]:
        """Take more of a resource; ``None`` if the store is away, and the policy is to allow."""
        ...

    def refusal(self, demands: dict[str, dict[str, int]]) -> Operation[RateLimitExceeded]:
        """Return the refusal of demands above a capacity."""
        ...


@dataclass
class Taken:
    """What was taken of another resource later. It ends with the block."""

    lease: tg.Lease
    resource: str
    #: What was not given back of it.
    amounts: dict[str, int]


class LeaseMethods:
    """What both kinds of leases do."""

    def __init__(self, lease: tg.Lease | None, resource: str, amounts: dict[str, dict[str, int]], taker: Taker) -> None:
        # Without a lease nothing was taken: the store was unavailable, and the policy was to allow.
        self._lease, self._primary, self._taker = lease, resource, taker
        self._amounts = {name: dict(of) for name, of in amounts.items()}
        self._degraded = lease is None or lease.degraded
        self._overdrawn = [] if lease is None else list(lease.warnings)
        self._later: list[Taken] = []
        self._has_ended = False

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

    def _checked(self, name: str) -> str:
        if name not in self._amounts:
            raise ValidationError("resource", name, f"not a resource of this lease (resources: {list(self._amounts)})")
        return name

    def _note(self, resource: str, amounts: dict[str, int], sign: int) -> None:
        if self._has_ended:
            raise LeaseExpiredError
        changes = {name: sign * amount for name, amount in amounts.items()}
        try:
            if self._lease is not None:
                rest = self._give_back(resource, changes)
                self._lease.adjust(rest, resource=None if resource == self._primary else resource)
        except tg.InvalidDemand as error:
            # What is valid in it was noted.
            _logger.warning("lease: %s", error)
        except tg.Error as error:
            raise translated(error) from error
        counted = self._amounts[resource]
        for name, change in changes.items():
            if name in counted:
                counted[name] = max(0, counted[name] + change)

    def _give_back(self, resource: str, changes: dict[str, int]) -> dict[str, int]:
        """Give back what was taken later first. Returns what remains to be noted."""
        rest = dict(changes)
        for taken in reversed(self._later):
            if taken.resource == resource:
                parts = {name: max(change, -taken.amounts.get(name, 0)) for name, change in rest.items() if change < 0}
                parts = {name: part for name, part in parts.items() if part}
                taken.lease.adjust(parts)
                for name, part in parts.items():
                    taken.amounts[name] += part
                    rest[name] -= part
        return rest

    def _more(self, resource: str, amounts: dict[str, int]) -> Operation[None]:
        if self._has_ended:
            raise LeaseExpiredError
        if self._lease is not None and resource == self._primary:
            try:
                yield Ask(self._lease, "consume", amounts)
            except ValidationError as error:
                if isinstance(error.__cause__, tg.Impossible):
                    raise (yield from self._taker.refusal({resource: amounts})) from error
                raise
        elif self._lease is not None:
            # A lease takes more of the resource of the call only, so this is a call of its own. They end together.
            taken = yield from self._taker.take(resource, amounts)
            self._later += [Taken(taken, resource, dict(amounts))] if taken else []
        counted = self._amounts[resource]
        for name, amount in amounts.items():
            counted[name] = counted.get(name, 0) + amount

    @operation
    def adjust(self, /, **amounts: int) -> Operation[None]:
        """Add to what was used, or take from it. Never refused: what goes beyond becomes debt."""
        self._note(self._primary, amounts, 1)
        return
        yield

    @operation
    def release(self, /, **amounts: int) -> Operation[None]:
        """Give back what was not used."""
        self._note(self._primary, amounts, -1)
        return
        yield

    @operation
    def consume(self, /, **amounts: int) -> Operation[None]:
        """Take more, all or nothing. Raises ``RateLimitExceeded``."""
        yield from self._more(self._primary, amounts)


class ResourceMethods:
    """The part of a lease that is of one resource."""

    def __init__(self, lease: LeaseMethods, name: str) -> None:
        self._lease, self.name = lease, name

    @property
    def consumed(self) -> dict[str, int]:
        """What counts of the resource, with all adjustments."""
        return dict(self._lease._amounts[self.name])

    @property
    def bypassed(self) -> bool:
        """Always false: there are no entities without limits."""
        return False

    @operation
    def adjust(self, /, **amounts: int) -> Operation[None]:
        """As ``Lease.adjust``."""
        self._lease._note(self.name, amounts, 1)
        return
        yield

    @operation
    def release(self, /, **amounts: int) -> Operation[None]:
        """As ``Lease.release``."""
        self._lease._note(self.name, amounts, -1)
        return
        yield

    @operation
    def consume(self, /, **amounts: int) -> Operation[None]:
        """As ``Lease.consume``. It is given back if the block raises, as all of the lease."""
        yield from self._lease._more(self.name, amounts)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} {self.consumed}>"


@awaited
class LeaseResource(ResourceMethods, Awaiting):
    """The part of a lease that is of one resource, in an event loop.

    >>> import asyncio
    >>> from tollgate.compat.zae import Limit, RateLimiter, Repository
    >>> async def call():
    ...     limiter = RateLimiter(repository=await Repository.open(url="memory"))
    ...     await limiter.set_system_defaults([Limit.per_hour("rpm", 8)])
    ...     async with limiter.acquire("key-1", "gpt-4", {"rpm": 1}) as lease:
    ...         await lease.resource("gpt-4").consume(rpm=1)
    ...     return lease.resources
    >>> asyncio.run(call())
    ('gpt-4',)
    """


@blocking
class SyncLeaseResource(ResourceMethods, Blocking):
    """The part of a lease that is of one resource.

    >>> from tollgate.compat.zae import Limit, SyncRateLimiter, SyncRepository
    >>> limiter = SyncRateLimiter(repository=SyncRepository.open(url="memory"))
    >>> limiter.set_system_defaults([Limit.per_hour("rpm", 8)])
    >>> with limiter.acquire("key-1", "gpt-4", {"rpm": 1}, also={"search": {"rpm": 2}}) as lease:
    ...     lease.resource("search").adjust(rpm=-1)
    >>> lease.resource("search")
    <SyncLeaseResource 'search' {'rpm': 1}>
    """


@awaited
class Lease(LeaseMethods, Awaiting):
    """What an admitted call holds, in an event loop.

    >>> import asyncio
    >>> from tollgate.compat.zae import Limit, RateLimiter, Repository
    >>> async def call():
    ...     limiter = RateLimiter(repository=await Repository.open(url="memory"))
    ...     await limiter.set_system_defaults([Limit.per_hour("rpm", 8)])
    ...     async with limiter.acquire("key-1", "gpt-4", {"rpm": 1}) as lease:
    ...         await lease.adjust(rpm=2)
    ...     return lease.consumed
    >>> asyncio.run(call())
    {'rpm': 3}
    """

    def resource(self, name: str) -> LeaseResource:
        """Return the part of the lease that is of one resource."""
        return LeaseResource(self, self._checked(name))


@blocking
class SyncLease(LeaseMethods, Blocking):
    """What an admitted call holds.

    >>> from tollgate.compat.zae import Limit, SyncRateLimiter, SyncRepository
    >>> limiter = SyncRateLimiter(repository=SyncRepository.open(url="memory"))
    >>> limiter.set_system_defaults([Limit.per_hour("rpm", 8)])
    >>> with limiter.acquire("key-1", "gpt-4", {"rpm": 1}, also={"search": {"rpm": 2}}) as lease:
    ...     lease.resource("search").consume(rpm=3)
    >>> lease.consumed, lease.resource("search").consumed
    ({'rpm': 1}, {'rpm': 5})
    """

    def resource(self, name: str) -> SyncLeaseResource:
        """Return the part of the lease that is of one resource."""
        return SyncLeaseResource(self, self._checked(name))
