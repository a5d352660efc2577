"""Rate limiters: what programs call."""

from __future__ import annotations

import time
import warnings
from types import TracebackType
from typing import Any, Generic, TypeVar, cast

import tollgate as tg

from ._errors import PermissionDenied, RateLimiterUnavailable, RateLimitExceeded, ResourceDisabled, ValidationError
from ._lease import Lease, LeaseMethods, SyncLease
from ._limits import Limit, native
from ._models import OnUnavailable
from ._operations import Ask, Awaiting, Blocking, Operation, awaited, blocking, operation, run, run_async
from ._repository import DEFAULT_STACK, Repository, RepositoryMethods, SyncRepository, opened
from ._stacks import LimiterInfo, StackOptions
from ._statuses import Availability, LimitStatus
from ._store import StoreMethods
from ._translation import translated
from ._unsupported import DEPLOYMENT

L = TypeVar("L", bound=LeaseMethods)


class LimiterMethods(StoreMethods):
    """What both kinds of limiters do."""

    _repository_class: type[RepositoryMethods]

    def __init__(
        self,
        repository: RepositoryMethods | None = None,
        name: str | None = None,
        region: str | None = None,
        endpoint_url: str | None = None,
        stack_options: StackOptions | None = None,
        on_unavailable: OnUnavailable | None = None,
        auto_update: bool | None = None,
        bucket_ttl_refill_multiplier: int | None = None,
        speculative_writes: bool = True,
    ) -> None:
        older = {"name": name, "region": region, "endpoint_url": endpoint_url, "stack_options": stack_options}
        given = [key for key, value in older.items() if value is not None]
        if repository is not None and given:
            raise ValueError(f"{', '.join(given)} cannot be given with a repository; open the repository with them")
        if stack_options is not None:
            raise NotImplementedError(f"stack_options: {DEPLOYMENT}")
        if repository is None:
            text = f"open a repository, and pass it: {type(self).__name__}(repository={self._repository_class.__name__}.open(...))"
            warnings.warn(text, DeprecationWarning, stacklevel=2)
        self._repository = repository
        self._older: dict[str, Any] = {"stack": name, "region": region, "endpoint_url": endpoint_url}
        self._policy_of_calls = on_unavailable

    @property
    def name(self) -> str:
        """The name of the stack, which is that of the table; of other stores, where they are."""
        if self._repository is None:
            return self._older["stack"] or DEFAULT_STACK
        return self._repository.stack_name

    @property
    def stack_name(self) -> str:
        """As ``name``."""
        return self.name

    @property
    def table_name(self) -> str:
        """As ``name``."""
        return self.name

    def _opened(self) -> Operation[RepositoryMethods]:
        if self._repository is None:
            self._repository = self._repository_class._of((yield from opened(**self._older)))
        return self._repository

    def _native(self) -> Operation[tg.Limiter]:
        return (yield from (yield from self._opened())._native())

    def _try_acquire(
        self,
        entity_id: str,
        resource: str,
        consume: dict[str, int],
        limits: list[Limit] | None,
        policy: OnUnavailable | None,
        also: dict[str, dict[str, int]] | None,
    ) -> Operation[tg.Lease | None]:
        """Return what was taken; ``None`` if the store is away and the policy is to allow."""
        if limits is not None and also:
            raise ValidationError("also", next(iter(also)), "cannot be combined with limits=; a limits override has no resource")
        limiter = yield from self._native()
        policy = policy or self._policy_of_calls
        given = native(limits) if limits is not None else None
        try:
            got = yield Ask(limiter, "try_acquire", entity_id, resource, consume, also=also, limits=given)
        except PermissionDenied as error:
            raise self._where(error, entity_id, resource) from error.__cause__
        except RateLimiterUnavailable as error:
            if policy is OnUnavailable.ALLOW:
                return None
            raise self._where(error, entity_id, resource) from error.__cause__
        except ResourceDisabled as error:
            # The library names what is disabled; programs read both.
            named = (error.entity_id or entity_id, error.resource or resource)
            raise ResourceDisabled(*named, error.level) from error.__cause__
        except ValidationError as error:
            if isinstance(error.__cause__, tg.Impossible):
                raise (yield from self._refusal(entity_id, {resource: consume, **(also or {})}, limits)) from error
            raise
        if got and got.degraded and policy is OnUnavailable.BLOCK:
            yield Ask(got, "cancel")
            raise RateLimiterUnavailable("the store did not answer", entity_id=entity_id, resource=resource)
        if got:
            return cast(tg.Lease, got)
        raise RateLimitExceeded([LimitStatus.of(status) for status in got.statuses])

    def _where(self, error: RateLimiterUnavailable, entity_id: str, resource: str) -> RateLimiterUnavailable:
        return type(error)(str(error), error.cause, stack_name=self.stack_name, entity_id=entity_id, resource=resource)

    def _refusal(
        self, entity_id: str, demands: dict[str, dict[str, int]], limits: list[Limit] | None
    ) -> Operation[RateLimitExceeded]:
        """Return the refusal of demands of which one is above a capacity, which programs expect to be one like any other."""
        statuses: list[LimitStatus] = []
        for resource, needed in demands.items():
            statuses += yield from self._standing(entity_id, resource, needed, limits)
        return RateLimitExceeded(statuses)

    def _standing(
        self, entity_id: str, resource: str, needed: dict[str, int] | None, limits: list[Limit] | None
    ) -> Operation[list[LimitStatus]]:
        if limits is not None:
            return (yield from self._standing_of_call(entity_id, resource, needed or {}, limits))
        limiter = yield from self._native()
        if not needed:
            return [LimitStatus.of(status) for status in (yield Ask(limiter, "peek", entity_id, resource)).statuses]
        try:
            found = yield Ask(limiter, "check", entity_id, resource, needed)
            return [LimitStatus.of(status) for status in found.statuses]
        except ValidationError as error:
            if not isinstance(error.__cause__, tg.Impossible):
                raise
        found = yield Ask(limiter, "check", entity_id, resource, dict.fromkeys(needed, 0))
        return [LimitStatus.of(status, needed.get(status.name, 0)) for status in found.statuses]

    def _standing_of_call(
        self, entity_id: str, resource: str, needed: dict[str, int], limits: list[Limit]
    ) -> Operation[list[LimitStatus]]:
        """Return how limits stand that come with the call: what the bucket has, or all of it if it was never used."""
        known = {status.name: status for status in (yield from self._statuses(entity_id, resource))}
        statuses = []
        for limit in native(limits):
            kept, capacity = known.get(limit.name), int(limit.capacity)
            available = min(kept.available, capacity) if kept else capacity
            full_after = kept.full_after if kept else None
            status = tg.Status(limit, available, 0, False, None, full_after, entity_id, resource)
            statuses.append(LimitStatus.of(status, needed.get(limit.name, 0)))
        return statuses

    @operation
    def available(
        self, entity_id: str, resource: str, limits: list[Limit] | None = None, use_stored_limits: bool = False
    ) -> Operation[dict[str, int]]:
        """Return by name how much is available: the least of what the entity and its parents have."""
        found = yield from LimiterMethods.check_availability.body(self, entity_id, resource, None, limits)
        return found.available

    @operation
    def check_availability(
        self,
        entity_id: str,
        resource: str,
        needed: dict[str, int] | None = None,
        limits: list[Limit] | None = None,
    ) -> Operation[Availability]:
        """Return how all limits stand for a demand. Takes nothing. With ``limits``, only those of the entity."""
        statuses = yield from self._standing(entity_id, resource, needed, limits)
        return Availability(entity_id, resource, time.time_ns() // 1_000_000, statuses)

    @operation
    def time_until_available(
        self,
        entity_id: str,
        resource: str,
        needed: dict[str, int],
        limits: list[Limit] | None = None,
        use_stored_limits: bool = False,
    ) -> Operation[float]:
        """Return how many seconds until a demand would pass."""
        found = yield from LimiterMethods.check_availability.body(self, entity_id, resource, needed, limits)
        return found.retry_after_seconds

    @operation
    def is_available(self, timeout: float = 1.0) -> Operation[bool]:
        """Return whether the store answers within its own time-out (``?timeout=`` of its URL). Never raises."""
        try:
            repository = yield from self._opened()
        except Exception:
            return False
        return (yield from RepositoryMethods.ping.body(repository))

    @operation
    def set_system_defaults(
        self, limits: list[Limit], on_unavailable: OnUnavailable | None = None, principal: str | None = None
    ) -> Operation[None]:
        """Store the limits of the system, and what to do while the store does not answer."""
        yield from self._set_system(limits, on_unavailable.value if on_unavailable else None, principal)

    @operation
    def get_system_defaults(self) -> Operation[tuple[list[Limit], OnUnavailable | None]]:
        """Return the limits of the system, and what to do while the store does not answer."""
        policy = yield from self._policy()
        return (yield from self._system()), OnUnavailable(policy) if policy else None


class _AcquireBase(Generic[L]):
    """The block of one call."""

    def __init__(
        self,
        limiter: LimiterMethods,
        kind: type[L],
        entity_id: str,
        demands: dict[str, dict[str, int]],
        limits: list[Limit] | None,
        policy: OnUnavailable | None,
    ) -> None:
        self._limiter, self._kind, self._entity = limiter, kind, entity_id
        self._demands, self._limits, self._policy = demands, limits, policy
        self._lease: L | None = None

    def _enter(self) -> Operation[L]:
        (resource, consume), *others = self._demands.items()
        got = yield from self._limiter._try_acquire(
            self._entity, resource, consume, self._limits, self._policy, dict(others) or None
        )
        self._lease = self._kind(got, resource, self._demands, self)
        return self._lease

    def take(self, resource: str, amounts: dict[str, int]) -> Operation[tg.Lease | None]:
        """Take more of a resource of the call."""
        return (yield from self._limiter._try_acquire(self._entity, resource, amounts, None, self._policy, None))

    def refusal(self, demands: dict[str, dict[str, int]]) -> Operation[RateLimitExceeded]:
        """Return the refusal of demands above a capacity."""
        return (yield from self._limiter._refusal(self._entity, demands, self._limits))

    def _ends(self) -> list[tg.Lease]:
        """Return the leases that end now, the latest first. Nothing more is noted from here on."""
        if self._lease is None:
            return []
        self._lease._has_ended = True
        first = [self._lease._lease] if self._lease._lease is not None else []
        return [*(taken.lease for taken in reversed(self._lease._later)), *first]


class AcquireBlock(_AcquireBase[Lease]):
    """What ``RateLimiter.acquire`` returns: ``async with`` takes the amounts."""

    async def __aenter__(self) -> Lease:
        return await run_async(self._enter())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        failed: tg.Error | None = None
        leases = self._ends()
        try:
            for lease in leases:
                try:
                    # As in zae-limiter, all is given back when the block has ended; a cancelled task does not wait for that.
                    await (lease.cancel_async() if isinstance(error, Exception) else lease.__aexit__(kind, error, traceback))
                except tg.Error as other:
                    failed = failed or other
        finally:
            if error is not None:
                # Gives back in the background what was not, if the task was cancelled meanwhile; otherwise it does nothing.
                for lease in leases:
                    lease.__exit__(kind, error, traceback)
        # The exception of the block counts, not that something could not be given back: it expires.
        if failed is not None and error is None:
            raise translated(failed) from failed


class SyncAcquireBlock(_AcquireBase[SyncLease]):
    """What ``SyncRateLimiter.acquire`` returns: ``with`` takes the amounts."""

    def __enter__(self) -> SyncLease:
        return run(self._enter())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        failed: tg.Error | None = None
        leases = self._ends()
        try:
            for lease in leases:
                try:
                    if isinstance(error, Exception):
                        lease.cancel()
                    else:
                        lease.__exit__(kind, error, traceback)
                except tg.Error as other:
                    failed = failed or other
        finally:
            # As above: after an interrupt, or in a thread whose event loop must not wait.
            if error is not None:
                for lease in leases:
                    lease.__exit__(kind, error, traceback)
        if failed is not None and error is None:
            raise translated(failed) from failed


def _demands(resource: str, consume: dict[str, int], also: dict[str, dict[str, int]] | None) -> dict[str, dict[str, int]]:
    if also and resource in also:
        raise ValidationError("also", resource, "names the primary resource; each resource appears once")
    return {resource: consume, **(also or {})}


def _warn_of_older(use_stored_limits: bool) -> None:
    if use_stored_limits:
        text = "use_stored_limits has no effect: stored limits are used where none are given"
        warnings.warn(text, DeprecationWarning, stacklevel=3)


@awaited
class RateLimiter(LimiterMethods, Awaiting):
    """A limiter in an event loop: ``async with limiter.acquire("key", "gpt-4", {"rpm": 1}) as lease``.

    >>> import asyncio
    >>> from tollgate.compat.zae import Limit, RateLimiter, Repository
    >>> async def call():
    ...     limiter = RateLimiter(repository=await Repository.open(url="memory"))
    ...     await limiter.set_system_defaults([Limit.per_hour("rpm", 8)])
    ...     async with limiter.acquire("key-1", "gpt-4", {"rpm": 1}) as lease:
    ...         await lease.consume(rpm=4)
    ...     return lease.consumed
    >>> asyncio.run(call())
    {'rpm': 5}
    """

    _repository_class = Repository

    def acquire(
        self,
        entity_id: str,
        resource: str,
        consume: dict[str, int],
        limits: list[Limit] | None = None,
        use_stored_limits: bool = False,
        on_unavailable: OnUnavailable | None = None,
        *,
        also: dict[str, dict[str, int]] | None = None,
    ) -> AcquireBlock:
        """Take the amounts for a block, or raise ``RateLimitExceeded``. The end of the block writes what was adjusted; an exception,
        and a cancelled task, give everything back."""
        _warn_of_older(use_stored_limits)
        return AcquireBlock(self, Lease, entity_id, _demands(resource, consume, also), limits, on_unavailable)

    @classmethod
    async def list_deployed(cls, region: str | None = None, endpoint_url: str | None = None) -> list[LimiterInfo]:
        """Not supported: stacks are listed by the tools of AWS."""
        raise NotImplementedError(f"list_deployed: {DEPLOYMENT}")

    async def __aenter__(self) -> RateLimiter:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        return None


@blocking
class SyncRateLimiter(LimiterMethods, Blocking):
    """A limiter: ``with limiter.acquire("key", "gpt-4", {"rpm": 1}) as lease``.

    >>> from tollgate.compat.zae import Limit, SyncRateLimiter, SyncRepository
    >>> limiter = SyncRateLimiter(repository=SyncRepository.open(url="memory"))
    >>> with limiter.acquire("key-1", "gpt-4", {"rph": 5}, [Limit.per_hour("rph", 10)]):
    ...     pass
    >>> limiter.get_usage_summary("key-1").total
    {'rph': 5}
    """

    _repository_class = SyncRepository

    def acquire(
        self,
        entity_id: str,
        resource: str,
        consume: dict[str, int],
        limits: list[Limit] | None = None,
        use_stored_limits: bool = False,
        on_unavailable: OnUnavailable | None = None,
        *,
        also: dict[str, dict[str, int]] | None = None,
    ) -> SyncAcquireBlock:
        """As ``RateLimiter.acquire``."""
        _warn_of_older(use_stored_limits)
        return SyncAcquireBlock(self, SyncLease, entity_id, _demands(resource, consume, also), limits, on_unavailable)

    @classmethod
    def list_deployed(cls, region: str | None = None, endpoint_url: str | None = None) -> list[LimiterInfo]:
        """Not supported: stacks are listed by the tools of AWS."""
        raise NotImplementedError(f"list_deployed: {DEPLOYMENT}")

    def __enter__(self) -> SyncRateLimiter:
        return self

    def __exit__(self, *exc_info: object) -> None:
        return None
