"""Rate limiters: what programs call."""

from __future__ import annotations

import time
import warnings
from typing import Any, cast

import tollgate as tg

from ._errors import PermissionDenied, RateLimiterUnavailable, RateLimitExceeded, ValidationError, translated
from ._lease import Lease, SyncLease
from ._models import Availability, Limit, LimitStatus, OnUnavailable, native
from ._operations import Ask, Operation, awaited, blocking, run, run_async
from ._repository import Repository, SyncRepository, _open, _RepositoryMethods
from ._store import _StoreMethods

class _LimiterMethods(_StoreMethods):
    _repository_class: type

    def __init__(
        self,
        repository: Any = None,
        name: str | None = None,
        region: str | None = None,
        endpoint_url: str | None = None,
        stack_options: Any = None,
        on_unavailable: OnUnavailable | None = None,
        auto_update: bool | None = None,
        bucket_ttl_refill_multiplier: int | None = None,
        speculative_writes: bool = True,
    ) -> None:
        older = {"name": name, "region": region, "endpoint_url": endpoint_url, "stack_options": stack_options}
        given = [key for key, value in older.items() if value is not None]
        if repository is not None and given:
            raise ValueError(f"{', '.join(given)} cannot be given with a repository; open the repository with them")
        if repository is None:
            text = f"open a repository, and pass it: {type(self).__name__}(repository={self._repository_class.__name__}.open(...))"
            warnings.warn(text, DeprecationWarning, stacklevel=2)
        self._repository = repository
        self._older = {"stack": name, "region": region, "endpoint_url": endpoint_url}
        self._policy = on_unavailable

    def _opened(self) -> Operation[_RepositoryMethods]:
        if self._repository is None:
            self._repository = self._repository_class(*(yield from _open(None, None, **self._older)))
        return cast(_RepositoryMethods, self._repository)

    def _native(self) -> Operation[tg.Limiter]:
        return (yield from self._opened())._limiter

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
            raise ValidationError("also", "", "limits and also cannot be combined")
        limiter = yield from self._native()
        policy = policy or self._policy
        given = native(limits) if limits is not None else None
        try:
            got = yield Ask(limiter, "try_acquire", entity_id, resource, consume, also=also, limits=given)
        except PermissionDenied:
            raise
        except RateLimiterUnavailable:
            if policy is OnUnavailable.ALLOW:
                return None
            raise
        except ValidationError as error:
            if isinstance(error.__cause__, tg.Impossible):
                raise (yield from self._impossible(limiter, entity_id, resource, consume, given)) from error
            raise
        if got and got.degraded and policy is OnUnavailable.BLOCK:
            yield Ask(got, "cancel")
            raise RateLimiterUnavailable("the store did not answer", entity_id=entity_id, resource=resource)
        if got:
            return cast(tg.Lease, got)
        raise RateLimitExceeded([LimitStatus.of(status) for status in got.statuses])

    def _impossible(
        self, limiter: tg.Limiter, entity_id: str, resource: str, consume: dict[str, int], given: list[tg.Limit] | None
    ) -> Operation[RateLimitExceeded]:
        """Return the refusal of a demand above a capacity, which programs expect to be one like any other."""
        found = yield Ask(limiter, "check", entity_id, resource, dict.fromkeys(consume, 0))
        own = {limit.name: limit for limit in given or ()}
        statuses = []
        for status in found.statuses:
            if status.name in own and status.entity == entity_id:
                named = own[status.name]
                least = min(status.available, int(named.capacity))
                status = tg.Status(named, least, 0, False, None, None, entity_id, resource)
            statuses.append(LimitStatus.impossible(status, consume.get(status.name, 0)))
        return RateLimitExceeded(statuses)

    def available(
        self, entity_id: str, resource: str, limits: list[Limit] | None = None, use_stored_limits: bool = False
    ) -> Any:
        """Return by name how much is available: the least of what the entity and its parents have."""
        found = yield from _LimiterMethods.check_availability(self, entity_id, resource, None, limits)
        return found.available

    def check_availability(
        self,
        entity_id: str,
        resource: str,
        needed: dict[str, int] | None = None,
        limits: list[Limit] | None = None,
    ) -> Any:
        """Return how all limits stand for a demand. Takes nothing."""
        if limits is not None:
            raise NotImplementedError("availability is that of the stored limits; store them first")
        limiter = yield from self._native()
        if needed is None:
            found = yield Ask(limiter, "peek", entity_id, resource)
        else:
            found = yield Ask(limiter, "check", entity_id, resource, needed)
        statuses = tuple(LimitStatus.of(status) for status in found.statuses)
        return Availability(entity_id, resource, time.time_ns() // 1_000_000, statuses)

    def time_until_available(
        self,
        entity_id: str,
        resource: str,
        needed: dict[str, int],
        limits: list[Limit] | None = None,
        use_stored_limits: bool = False,
    ) -> Any:
        """Return how many seconds until a demand would pass."""
        if limits is not None:
            raise NotImplementedError("availability is that of the stored limits; store them first")
        limiter = yield from self._native()
        wait = yield Ask(limiter, "ready_after", entity_id, resource, needed)
        return float("inf") if wait is None else wait

    def is_available(self, timeout: float = 1.0) -> Any:
        """Return whether the store answers. Never raises."""
        try:
            repository = yield from self._opened()
            return (yield from _RepositoryMethods.ping(repository))
        except Exception:
            return False


class _AcquireBase:
    """The block of one call."""

    def __init__(self, limiter: _LimiterMethods, arguments: tuple[Any, ...]) -> None:
        self._limiter, self._arguments = limiter, arguments
        self._lease: tg.Lease | None = None

    def _entered(self, lease: tg.Lease | None, kind: type) -> Any:
        self._lease = lease
        _, resource, consume, _, _, also = self._arguments
        return kind(lease, resource, {resource: consume, **(also or {})})


class _Acquire(_AcquireBase):
    async def __aenter__(self) -> Lease:
        return cast(Lease, self._entered(await run_async(self._limiter._try_acquire(*self._arguments)), Lease))

    async def __aexit__(self, *exc_info: Any) -> None:
        try:
            if self._lease is not None:
                await self._lease.__aexit__(*exc_info)
        except tg.Error as error:
            raise translated(error) from error


class _SyncAcquire(_AcquireBase):
    def __enter__(self) -> SyncLease:
        return cast(SyncLease, self._entered(run(self._limiter._try_acquire(*self._arguments)), SyncLease))

    def __exit__(self, *exc_info: Any) -> None:
        try:
            if self._lease is not None:
                self._lease.__exit__(*exc_info)
        except tg.Error as error:
            raise translated(error) from error


def _warn_of_older(use_stored_limits: bool) -> None:
    if use_stored_limits:
        text = "use_stored_limits has no effect: stored limits are used where none are given"
        warnings.warn(text, DeprecationWarning, stacklevel=3)


@awaited
class RateLimiter(_LimiterMethods):
    """A limiter in an event loop: ``async with limiter.acquire("key", "gpt-4", {"rpm": 1}) as lease``."""

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
    ) -> _Acquire:
        """Take the amounts for a block, or raise ``RateLimitExceeded``. The end of the block writes what was adjusted; an exception,
        and a cancelled task, give everything back."""
        _warn_of_older(use_stored_limits)
        return _Acquire(self, (entity_id, resource, consume, limits, on_unavailable, also))

    async def __aenter__(self) -> RateLimiter:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        return None


@blocking
class SyncRateLimiter(_LimiterMethods):
    """A limiter: ``with limiter.acquire("key", "gpt-4", {"rpm": 1}) as lease``."""

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
    ) -> _SyncAcquire:
        """As ``RateLimiter.acquire``."""
        _warn_of_older(use_stored_limits)
        return _SyncAcquire(self, (entity_id, resource, consume, limits, on_unavailable, also))

    def __enter__(self) -> SyncRateLimiter:
        return self

    def __exit__(self, *exc_info: object) -> None:
        return None
