"""Operations that are written once and serve both a class that waits and one whose methods are awaited.

An operation is a generator. It yields what it asks of the library as an ``Ask``, and is sent the answer. Public ones are declared to
return ``Any``, because type checkers do not see what the decorators make of them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar, cast

from ._errors import translated

T = TypeVar("T")
C = TypeVar("C")


class Ask:
    """A call of a method that the library has twice: ``x``, which waits, and ``x_async``."""

    __slots__ = ("arguments", "method", "named", "target")

    def __init__(self, target: Any, method: str, *arguments: Any, **named: Any) -> None:
        self.target, self.method, self.arguments, self.named = target, method, arguments, named

    def wait(self) -> Any:
        return getattr(self.target, self.method)(*self.arguments, **self.named)

    def begin(self) -> Any:
        return getattr(self.target, f"{self.method}_async")(*self.arguments, **self.named)


Operation: TypeAlias = Generator[Ask, Any, T]


def run(operation: Operation[T]) -> T:
    """Run an operation in this thread."""
    try:
        ask = next(operation)
        while True:
            try:
                answer = ask.wait()
            except Exception as error:
                ask = operation.throw(translated(error))
            else:
                ask = operation.send(answer)
    except StopIteration as end:
        return cast(T, end.value)


async def run_async(operation: Operation[T]) -> T:
    """Run an operation in an event loop. What a cancelled task was about to get is given back by the library."""
    try:
        ask = next(operation)
        while True:
            try:
                answer = await ask.begin()
            except Exception as error:
                ask = operation.throw(translated(error))
            else:
                ask = operation.send(answer)
    except StopIteration as end:
        return cast(T, end.value)
    finally:
        operation.close()


def _operations_of(cls: type) -> dict[str, Callable[..., Any]]:
    found: dict[str, Callable[..., Any]] = {}
    for base in reversed(cls.__mro__):
        public = {name: value for name, value in vars(base).items() if not name.startswith("_")}
        found.update({name: value for name, value in public.items() if inspect.isgeneratorfunction(value)})
    return found


def blocking(cls: type[C]) -> type[C]:
    """Make the public operations of a class methods that wait; private ones stay generators, for others to use."""
    for name, operation in _operations_of(cls).items():

        def method(self: Any, *arguments: Any, _operation: Any = operation, **named: Any) -> Any:
            return run(_operation(self, *arguments, **named))

        setattr(cls, name, _named(method, operation, cls))
    return cls


def awaited(cls: type[C]) -> type[C]:
    """Make the public operations of a class methods that are awaited; private ones stay generators, for others to use."""
    for name, operation in _operations_of(cls).items():

        def method(self: Any, *arguments: Any, _operation: Any = operation, **named: Any) -> Any:
            return run_async(_operation(self, *arguments, **named))

        setattr(cls, name, _named(method, operation, cls))
    return cls


def _named(method: Callable[..., Any], operation: Callable[..., Any], cls: type) -> Callable[..., Any]:
    method = functools.wraps(operation)(method)
    method.__qualname__ = f"{cls.__qualname__}.{operation.__name__}"
    return method
