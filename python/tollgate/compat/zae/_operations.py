"""Operations that are written once and serve both a class that waits and one whose methods are awaited.

An operation is a generator. It yields what it asks of the library as an ``Ask``, and is sent the answer.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Concatenate, Generic, ParamSpec, TypeAlias, TypeVar, cast, overload

from ._translation import translated

P = ParamSpec("P")
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


class Blocking:
    """The base of classes whose operations wait."""


class Awaiting:
    """The base of classes whose operations are awaited."""


class operation(Generic[P, T]):  # noqa: N801
    """A public operation, written as a generator. ``blocking`` and ``awaited`` make methods of it; this declares what they are."""

    def __init__(self, body: Callable[Concatenate[Any, P], Operation[T]]) -> None:
        self.body = body
        self.__doc__ = body.__doc__

    @overload
    def __get__(self, instance: Blocking, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, instance: Awaiting, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    @overload
    def __get__(self, instance: None, owner: type) -> operation[P, T]: ...
    def __get__(self, instance: object, owner: type) -> Any:
        return self


def _operations_of(cls: type) -> dict[str, Callable[..., Operation[Any]]]:
    found: dict[str, Callable[..., Operation[Any]]] = {}
    for base in reversed(cls.__mro__):
        found.update({name: value.body for name, value in vars(base).items() if isinstance(value, operation)})
    return found


def blocking(cls: type[C]) -> type[C]:
    """Make the public operations of a class methods that wait; private ones stay generators, for others to use."""
    for name, body in _operations_of(cls).items():

        def method(self: Any, *arguments: Any, _body: Any = body, **named: Any) -> Any:
            return run(_body(self, *arguments, **named))

        setattr(cls, name, _named(method, body, cls))
    return cls


def awaited(cls: type[C]) -> type[C]:
    """Make the public operations of a class methods that are awaited; private ones stay generators, for others to use."""
    for name, body in _operations_of(cls).items():

        async def method(self: Any, *arguments: Any, _body: Any = body, **named: Any) -> Any:
            return await run_async(_body(self, *arguments, **named))

        setattr(cls, name, _named(method, body, cls))
    return cls


def _named(method: Callable[..., Any], body: Callable[..., Any], cls: type) -> Callable[..., Any]:
    method = functools.wraps(body)(method)
    method.__qualname__ = f"{cls.__qualname__}.{body.__name__}"
    # Signatures show what the method returns, not the generator that it runs.
    result = str(method.__annotations__.get("return", "Any")).removeprefix("Operation[").removesuffix("]")
    method.__annotations__ = {**method.__annotations__, "return": result}
    method.__dict__["__signature__"] = inspect.signature(body).replace(return_annotation=result)
    del method.__dict__["__wrapped__"]
    return method
