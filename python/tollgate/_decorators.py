"""Decorators: each call of a function acquires first, and ends its lease when it returns."""

from __future__ import annotations

import functools
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from ._core import Demand
from ._errors import InvalidValue
from ._settings import check_wait

if TYPE_CHECKING:
    from datetime import timedelta

_F = TypeVar("_F", bound=Callable[..., Any])

#: What a demand may be given as: amounts by name, prepared, or a function of the arguments that returns one of both.
DemandSource = Mapping[str, Any] | Demand | Callable[..., Mapping[str, Any] | Demand | None] | None


class _Lease(Protocol):
    """What a decorator needs of a lease."""

    def settle(self, usage: Any, /) -> Any: ...
    def settle_async(self, usage: Any, /) -> Awaitable[Any]: ...
    def commit(self) -> Any: ...
    def commit_async(self) -> Awaitable[Any]: ...
    def cancel(self) -> Any: ...
    def cancel_async(self) -> Awaitable[Any]: ...


def limit(
    limits: Any,
    demand: DemandSource = None,
    /,
    *,
    settle: Callable[[Any], Mapping[str, Any] | None] | None = None,
    timeout: float | timedelta | None = None,
    priority: str | None = None,
    on_error: str = "cancel",
    entity: str | Callable[..., str] | None = None,
    resource: str | Callable[..., str] | None = None,
) -> Callable[[_F], _F]:
    """Decorate a function: each call acquires ``demand`` from ``limits`` first, and waits for it if it has to.

    Works for functions, coroutine functions, generators, async generators and methods, which stay what they are. ``limits`` is anything
    with ``acquire`` and ``acquire_async``: a set, a pool, or a limiter, which also needs ``entity`` and ``resource``. What is a function
    is called with the arguments of the call.

    ``settle`` gets the result of the call, or the last value of a generator, and returns what was really used; without it, what was
    taken counts. A generator holds its lease while it runs; one that is closed early counts as it was taken. If the call raises,
    everything is given back, or stays taken with ``on_error="commit"``.

    >>> import tollgate as tg
    >>> limits = tg.LimitSet([tg.per_day("words", 1_000)])
    >>> @limits.limit(lambda text: {"words": 10}, settle=lambda words: {"words": len(words)})
    ... def split(text):
    ...     return text.split()
    >>> split("the gate opens")
    ['the', 'gate', 'opens']
    >>> limits.peek()["words"].available
    997
    """
    if not hasattr(limits, "acquire") or not hasattr(limits, "acquire_async"):
        raise InvalidValue(f"limits is {limits!r}, which has no acquire and acquire_async; pass a LimitSet, a LimitPool or a Limiter")
    if on_error not in ("cancel", "commit"):
        raise InvalidValue(f'on_error is {on_error!r}, but must be "cancel" or "commit"')
    if settle is not None and not callable(settle):
        raise InvalidValue(f"settle is {settle!r}, but must be a function of the result")
    check_wait(timeout, priority)
    prepare = getattr(limits, "demand", None)
    if demand is not None and not callable(demand) and callable(prepare):
        # Wrong names are reported now, and not by the first call.
        demand = cast(Demand, prepare(demand))
    return cast(Callable[[_F], _F], _Decorator(limits, demand, settle, timeout, priority, on_error, entity, resource))


#: What the compiler notes of a function, by ``inspect.CO_…``. Importing ``inspect`` takes a third of the time of ``import tollgate``.
_GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x200


def _flags_of(function: Any) -> int:
    """Return what the compiler notes of a function or a method, or of that of a ``functools.partial``."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif hasattr(function, "__func__"):
            function = function.__func__
        else:
            break
    mark = getattr(sys.modules.get("inspect"), "_is_coroutine_mark", None)
    if mark is not None and getattr(function, "_is_coroutine_mark", None) is mark:
        # By ``inspect.markcoroutinefunction``, which only a program that has imported it can have called.
        return _COROUTINE
    flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
    return flags if isinstance(flags, int) else 0


def _called(value: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    return value(*arguments, **named) if callable(value) else value


class _Decorator:
    """One use of ``limit``."""

    def __init__(
        self,
        limits: Any,
        demand: Any,
        settle: Callable[[Any], Mapping[str, Any] | None] | None,
        timeout: float | timedelta | None,
        priority: str | None,
        on_error: str,
        entity: Any,
        resource: Any,
    ) -> None:
        self._limits = limits
        self._demand = demand
        self._settle = settle
        self._options = {key: value for key, value in (("timeout", timeout), ("priority", priority)) if value is not None}
        self._keeps = on_error == "commit"
        self._keys = [key for key in (entity, resource) if key is not None]

    def __repr__(self) -> str:
        return "<decorator limit, of no function yet>"

    def __call__(self, function: Any = None, /, *arguments: Any, **named: Any) -> Any:
        if function is None or arguments or named:
            # A function under a bare @limits.limit was taken for its demand, and is called here.
            raise InvalidValue("no function was limited yet; write @limits.limit() or @limits.limit(demand) above it, with parentheses")
        if isinstance(function, (staticmethod, classmethod)):
            return type(function)(self(function.__func__))
        if isinstance(function, type) or not callable(function):
            raise InvalidValue(f"{function!r} cannot be limited; write @limits.limit() or @limits.limit(demand) above a function or a method")
        # An object that can be called is what its method is, unless it is one itself, as an ``AsyncMock`` is.
        flags = _flags_of(function) or _flags_of(type(function).__call__)
        if flags & _COROUTINE:
            return self._of_coroutine(function)
        if flags & _ASYNC_GENERATOR:
            return self._of_async_generator(function)
        if flags & _GENERATOR:
            return self._of_generator(function)
        return self._of_function(function)

    def _asked(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        asked = [_called(key, arguments, named) for key in self._keys]
        demand = _called(self._demand, arguments, named)
        return asked if demand is None else [*asked, demand]

    def _acquire(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> _Lease:
        return cast(_Lease, self._limits.acquire(*self._asked(arguments, named), **self._options))

    async def _acquire_async(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> _Lease:
        return cast(_Lease, await self._limits.acquire_async(*self._asked(arguments, named), **self._options))

    def _usage(self, result: Any) -> Mapping[str, Any] | None:
        return None if self._settle is None else self._settle(result)

    def _end(self, lease: _Lease, result: Any) -> None:
        try:
            usage = self._usage(result)
        except BaseException:
            lease.commit()
            raise
        if usage is None:
            lease.commit()
        else:
            lease.settle(usage)

    async def _end_async(self, lease: _Lease, result: Any) -> None:
        try:
            usage = self._usage(result)
        except BaseException:
            await lease.commit_async()
            raise
        if usage is None:
            await lease.commit_async()
        else:
            await lease.settle_async(usage)

    def _fail(self, lease: _Lease) -> None:
        if self._keeps:
            lease.commit()
        else:
            lease.cancel()

    async def _fail_async(self, lease: _Lease) -> None:
        await (lease.commit_async() if self._keeps else lease.cancel_async())

    def _of_function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def limited(*arguments: Any, **named: Any) -> Any:
            lease = self._acquire(arguments, named)
            try:
                result = function(*arguments, **named)
            except BaseException:
                self._fail(lease)
                raise
            self._end(lease, result)
            return result

        return limited

    def _of_coroutine(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        async def limited(*arguments: Any, **named: Any) -> Any:
            lease = await self._acquire_async(arguments, named)
            try:
                result = await function(*arguments, **named)
            except BaseException:
                await self._fail_async(lease)
                raise
            await self._end_async(lease, result)
            return result

        return limited

    def _of_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def limited(*arguments: Any, **named: Any) -> Generator[Any, Any, Any]:
            lease = self._acquire(arguments, named)
            last = None
            try:
                generator = function(*arguments, **named)
                resume: Callable[[], Any] = functools.partial(next, generator)
                while True:
                    try:
                        last = resume()
                    except StopIteration as stop:
                        result = stop.value
                        break
                    try:
                        sent = yield last
                    except GeneratorExit:
                        generator.close()
                        raise
                    except BaseException as error:
                        resume = functools.partial(generator.throw, error)
                    else:
                        resume = functools.partial(generator.send, sent)
            except GeneratorExit:
                lease.commit()
                raise
            except BaseException:
                self._fail(lease)
                raise
            self._end(lease, last)
            return result

        return limited

    def _of_async_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        async def limited(*arguments: Any, **named: Any) -> AsyncGenerator[Any, Any]:
            lease = await self._acquire_async(arguments, named)
            last = None
            try:
                generator = function(*arguments, **named)
                resume: Callable[[], Any] = generator.__anext__
                while True:
                    try:
                        last = await resume()
                    except StopAsyncIteration:
                        break
                    try:
                        sent = yield last
                    except GeneratorExit:
                        await generator.aclose()
                        raise
                    except BaseException as error:
                        resume = functools.partial(generator.athrow, error)
                    else:
                        resume = functools.partial(generator.asend, sent)
            except GeneratorExit:
                await lease.commit_async()
                raise
            except BaseException:
                await self._fail_async(lease)
                raise
            await self._end_async(lease, last)

        return limited
