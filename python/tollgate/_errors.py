"""The exceptions of the package. All of them pickle, and all derive from ``Error``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._core import Denial, Status


class Error(Exception):
    """Anything that Tollgate raises.

    >>> import tollgate as tg
    >>> try:
    ...     tg.per_minute("rpm", 0)
    ... except tg.Error as error:
    ...     print(error)
    limit "rpm": amount is 0, but must be 1 to 1000000000000000, or UNBOUNDED
    """


class InvalidValue(Error, ValueError):
    """A limit, a name or a setting is not valid.

    >>> import tollgate as tg
    >>> tg.resource("1st", 5)
    Traceback (most recent call last):
    ...
    tollgate.InvalidValue: limit "1st": name is "1st", but must be a letter followed by letters, digits, '_', '.' or '-', at most 64 characters, not 'wcu'
    """


class InvalidDemand(Error, ValueError):
    """A demand or a report of usage is not valid.

    >>> import tollgate as tg
    >>> tg.LimitSet([tg.per_minute("rpm", 5)]).acquire({"tpm": 1})
    Traceback (most recent call last):
    ...
    tollgate.InvalidDemand: the demand names "tpm", which is no limit here; known limits: rpm
    """


class Impossible(Error, ValueError):
    """A demand can never fit, however long the caller waits.

    >>> import tollgate as tg
    >>> tg.LimitSet([tg.per_minute("rpm", 5)]).acquire(rpm=6)
    Traceback (most recent call last):
    ...
    tollgate.Impossible: a demand of 6 can never fit rpm, whose capacity is 5
    """


class RateLimited(Error):
    """A demand was denied. ``denial`` has the status of every limit and the time to retry.

    >>> import tollgate as tg
    >>> limits = tg.LimitSet([tg.per_hour("jobs", 1)])
    >>> lease = limits.acquire(jobs=1)
    >>> try:
    ...     limits.try_acquire(jobs=1).raise_()
    ... except tg.RateLimited as error:
    ...     print(error.limited_by.name, error.retry_after > 3_000)
    jobs True
    """

    def __init__(self, denial: Denial, *more: Any) -> None:
        super().__init__(denial, *more)
        self.denial = denial

    def __str__(self) -> str:
        return f"denied: {self.denial}"

    @property
    def retry_after(self) -> float | None:
        """How many seconds until the demand would fit; ``None`` if that depends on other callers."""
        return self.denial.retry_after

    @property
    def retry_after_header(self) -> str | None:
        """The same for the header ``Retry-After``: whole seconds, rounded up."""
        return self.denial.retry_after_header

    @property
    def statuses(self) -> tuple[Status, ...]:
        """How every limit stands."""
        return self.denial.statuses

    @property
    def violations(self) -> tuple[Status, ...]:
        """The limits that deny the demand."""
        return self.denial.violations

    @property
    def limited_by(self) -> Status | None:
        """The limit that takes longest; ``None`` for a cooldown or a waiter ahead."""
        return self.denial.limited_by

    def as_dict(self) -> dict[str, Any]:
        """Return the denial as a dict, for an answer in JSON."""
        return self.denial.as_dict()


class TimedOut(RateLimited, TimeoutError):
    """A demand was not admitted in time. Raised at once if that can be known at once.

    >>> import tollgate as tg
    >>> limits = tg.LimitSet([tg.per_hour("jobs", 1)])
    >>> lease = limits.acquire(jobs=1)
    >>> try:
    ...     limits.acquire(jobs=1, timeout=5)
    ... except TimeoutError as error:
    ...     print(error.waited)
    0.0
    """

    def __init__(self, denial: Denial, waited: float) -> None:
        super().__init__(denial, waited)
        self.waited = waited

    def __str__(self) -> str:
        return f"not admitted in time, after waiting {self.waited:.3g} s: {self.denial}"


class QueueFull(Error):
    """Too many callers wait already.

    >>> import tollgate as tg
    >>> issubclass(tg.QueueFull, tg.Error)
    True
    """


class Unavailable(Error, ConnectionError):
    """The store did not answer in time.

    >>> import tollgate as tg
    >>> issubclass(tg.Unavailable, ConnectionError)
    True
    """


class StoreRefused(Error, OSError):
    """The store answered that it will not: no permission, a damaged file, a call that it cannot serve.

    >>> import tollgate as tg
    >>> issubclass(tg.StoreRefused, OSError)
    True
    """


class NotFound(Error, LookupError):
    """An entity or a namespace does not exist.

    >>> import tollgate as tg
    >>> tg.Limiter("memory").catalog.set_parent("user-1", "team")
    Traceback (most recent call last):
    ...
    tollgate.NotFound: there is no entity "user-1"; create it first
    """


class NoLimits(NotFound):
    """No level has limits for an entity and a resource.

    >>> import tollgate as tg
    >>> tg.Limiter("memory").acquire("user-1", "gpt-4", {"rpm": 1})
    Traceback (most recent call last):
    ...
    tollgate.NoLimits: there are no limits for entity "user-1" and resource "gpt-4"; set some on any level
    """


class AlreadyExists(Error):
    """An entity or a namespace exists already.

    >>> import tollgate as tg
    >>> catalog = tg.Limiter("memory").catalog
    >>> catalog.create_entity("user-1").id
    'user-1'
    >>> catalog.create_entity("user-1")
    Traceback (most recent call last):
    ...
    tollgate.AlreadyExists: entity "user-1" exists already
    """


class Conflict(Error):
    """What is there, or what another caller did meanwhile, forbids a change.

    >>> import tollgate as tg
    >>> catalog = tg.Limiter("memory").catalog
    >>> parent, child = catalog.create_entity("team"), catalog.create_entity("user-1", parent="team")
    >>> catalog.delete_entity("team")
    Traceback (most recent call last):
    ...
    tollgate.Conflict: entity "team" has a child; delete or move it first
    """


class Disabled(Error):
    """An entity or a resource is disabled.

    >>> import tollgate as tg
    >>> limiter = tg.Limiter("memory")
    >>> limiter.catalog.set_limits([tg.per_minute("rpm", 5)])
    >>> limiter.catalog.disable_resource("gpt-4")
    True
    >>> limiter.acquire("user-1", "gpt-4", {"rpm": 1})
    Traceback (most recent call last):
    ...
    tollgate.Disabled: resource "gpt-4" is disabled; enable it first
    """


class TokenError(Error, ValueError):
    """A lease cannot become a token, or a token no lease: it was changed, is of another namespace, or has expired.

    >>> import tollgate as tg
    >>> tg.Limiter("memory").resume("copied by half")
    Traceback (most recent call last):
    ...
    tollgate.TokenError: this is no token: it does not begin with tgl1.; copy all of what acquire gave you
    """


class LeaseEnded(Error, RuntimeError):
    """The lease has ended already, or belongs to another process.

    >>> import tollgate as tg
    >>> lease = tg.LimitSet([tg.per_minute("rpm", 5)]).acquire(rpm=1)
    >>> lease.commit()
    >>> lease.commit()
    Traceback (most recent call last):
    ...
    tollgate.LeaseEnded: the lease has ended already
    """


class WouldBlockLoop(Error, RuntimeError):
    """A call would have stopped the event loop that runs in its thread.

    >>> import asyncio
    >>> import tollgate as tg
    >>> async def main():
    ...     limits = tg.LimitSet([tg.resource("slots", 1)])
    ...     with limits.acquire():
    ...         limits.acquire()
    >>> asyncio.run(main())
    Traceback (most recent call last):
    ...
    tollgate.WouldBlockLoop: this would stop the event loop that runs in this thread; await the method with the suffix _async
    """


def _name_public(*classes: type) -> None:
    """Give the classes the module that users import them from, so that they pickle by it."""
    for cls in classes:
        cls.__module__ = "tollgate"


_name_public(
    Error,
    InvalidValue,
    InvalidDemand,
    Impossible,
    RateLimited,
    TimedOut,
    QueueFull,
    Unavailable,
    StoreRefused,
    NotFound,
    NoLimits,
    AlreadyExists,
    Conflict,
    Disabled,
    TokenError,
    LeaseEnded,
    WouldBlockLoop,
)
