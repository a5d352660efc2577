"""Batches: many items through one function, as fast as the provider admits it, and exactly one outcome for each.

>>> import asyncio
>>> from tollgate import batch
>>> async def ask(call):
...     return call.payload.upper()  # call the API
>>> results = asyncio.run(batch.run(["one", "two"], ask, in_order=True).collect())
>>> [outcome.output for outcome in results]
['ONE', 'TWO']
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from os import PathLike, fspath
from typing import Any

from ._batch_replies import Done, Fatal, Invalid, Overloaded, Throttled, Transient, answer, headers_of
from ._batch_threads import DaemonThreads
from ._core import BatchCall, BatchRun
from ._errors import InvalidValue, WouldBlockLoop

__all__ = ["Call", "Done", "Fatal", "Invalid", "Outcome", "Overloaded", "Run", "Summary", "Throttled", "Transient", "run"]


@dataclass(frozen=True)
class Call:
    """One call of an item, as the function of a batch gets it.

    >>> import asyncio
    >>> from tollgate import batch
    >>> async def ask(call):
    ...     call.state["tries"] = call.state.get("tries", 0) + 1
    ...     if call.attempt == 1:
    ...         raise batch.Invalid("half an answer")
    ...     return call.id, call.payload, call.attempt, call.state["tries"]
    >>> [outcome] = asyncio.run(batch.run([("a", "text")], ask, attempts=2).collect())
    >>> outcome.output
    ('a', 'text', 2, 2)
    """

    #: The id of the item, its payload, and its account.
    id: str
    payload: Any
    scope: str
    #: The number of the attempt, from 1; a 429 does not count as one.
    attempt: int
    #: The number of the call, from 1.
    number: int
    #: How long the call may take, in seconds.
    timeout: float | None
    #: What the calls of one item share.
    state: dict[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Outcome:
    """What became of one item. It is true if the item is done.

    >>> import asyncio
    >>> from tollgate import batch
    >>> async def ask(call):
    ...     raise batch.Fatal("no such model")
    >>> [outcome] = asyncio.run(batch.run(["a"], ask).collect())
    >>> bool(outcome), outcome.kind, outcome.error
    (False, 'fatal', 'no such model')
    """

    id: str
    #: Its place in the input, from 0.
    index: int
    #: What the function returned; ``None`` if the item failed.
    output: Any
    #: "done", "throttled", "overloaded", "transient", "invalid", "fatal", "deadline" or "unfinished".
    kind: str
    #: Why it failed.
    error: str | None
    attempts: int
    calls: int
    throttles: int
    tokens: int
    #: Seconds from its acceptance.
    took: float

    def __bool__(self) -> bool:
        return self.kind == "done"


@dataclass(frozen=True)
class Summary:
    """What became of a batch.

    >>> import asyncio
    >>> from tollgate import batch
    >>> async def ask(call):
    ...     return call.payload
    >>> async def main():
    ...     run = batch.run(range(3), ask)
    ...     await run.collect()
    ...     return run.summary.done, run.summary.failed
    >>> asyncio.run(main())
    (3, 0)
    """

    accepted: int
    #: Items that an earlier run of the journal has finished.
    skipped: int
    done: int
    failed: int
    unfinished: int
    tokens: int
    calls: int
    #: Calls that the provider refused for the moment.
    rejected: int
    cooldowns: int
    #: Seconds.
    took: float
    #: Why the batch ended before its input did.
    stopped: str | None


def run(
    items: Iterable[Any] | AsyncIterable[Any],
    function: Callable[[Call], Any] | Callable[[Call], Awaitable[Any]],
    *,
    workers: int = 50,
    attempts: int = 3,
    attempt_deadline: float | timedelta | None = None,
    item_deadline: float | timedelta | None = None,
    deadline: float | timedelta | None = None,
    throttle_budget: float | timedelta | None = None,
    max_tokens: int | None = None,
    journal: str | PathLike[str] | None = None,
    retry_failed: bool = False,
    in_order: bool = False,
    buffer: int = 1_024,
    classify: Callable[[Exception], Exception | None] | None = None,
) -> Run:
    """Run a batch: ``function`` is called for each item, by tasks of the event loop, or by threads if it is no coroutine function.

    An item is a payload, ``(id, payload)``, or ``(id, payload, {"tokens": estimate, "scope": account})``; they are taken as there is
    room. What the function returns is the output; ``Done`` also has the tokens and the headers of the reply. What it raises is a reply,
    too: errors of the SDKs of providers carry status, headers and body. After a 429 the items of an account wait, and the pace adapts;
    that counts as no attempt. ``classify`` turns other exceptions into ``Throttled``, ``Invalid``, ``Fatal`` and the like.

    With a ``journal`` outcomes are on disk before they are returned, as JSON, and a later run calls only the items that are missing.

    >>> from tollgate import batch
    >>> def ask(call):
    ...     return batch.Done(call.payload * 2, tokens=7)
    >>> run = batch.run([1, 2, 3], ask, in_order=True)
    >>> [outcome.output for outcome in run.wait()], run.summary.tokens
    ([2, 4, 6], 21)
    """
    if not callable(function):
        raise InvalidValue(f"function is {function!r}, but must be a function of a call")
    if not hasattr(items, "__iter__") and not hasattr(items, "__aiter__"):
        raise InvalidValue(f"items is {items!r}, but must be an iterable or an async iterable of payloads")
    for name, number in (("workers", workers), ("attempts", attempts), ("buffer", buffer)):
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= 1_000_000:
            raise InvalidValue(f"{name} is {number!r}, but must be 1 to 1000000")
    settings = {
        "workers": workers,
        "attempts": attempts,
        "item_deadline": item_deadline,
        "deadline": deadline,
        "throttle_budget": throttle_budget,
        "max_tokens": max_tokens,
        "journal": None if journal is None else fspath(journal),
        "retry_failed": retry_failed,
        "in_order": in_order,
        "buffer": buffer,
    }
    if isinstance(attempt_deadline, timedelta):
        attempt_deadline = attempt_deadline.total_seconds()
    if attempt_deadline is not None and not attempt_deadline > 0:
        raise InvalidValue(f"attempt_deadline is {attempt_deadline!r}, but must be seconds above 0")
    return Run(items, function, settings, attempt_deadline, classify)


class Run:
    """A batch that begins when its outcomes are read: ``async for outcome in run``, ``await run.collect()`` or ``run.wait()``.

    >>> import asyncio
    >>> from tollgate import batch
    >>> async def ask(call):
    ...     return len(call.payload)
    >>> async def main():
    ...     async for outcome in batch.run(["gate"], ask):
    ...         print(outcome.id, outcome.output)
    >>> asyncio.run(main())
    0 4
    """

    def __init__(
        self,
        items: Iterable[Any] | AsyncIterable[Any],
        function: Callable[[Call], Any],
        settings: dict[str, Any],
        attempt_deadline: float | None,
        classify: Callable[[Exception], Exception | None] | None,
    ) -> None:
        self._items = items
        self._function = function
        self._settings = settings
        self._timeout = attempt_deadline
        self._classify = classify
        self._core: BatchRun | None = None
        self._error: BaseException | None = None
        self._threads: DaemonThreads | None = None
        self._summary: Summary | None = None
        code = function if inspect.isroutine(function) else type(function).__call__
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(code)

    @property
    def summary(self) -> Summary:
        """What became of the batch, after all of its outcomes were read."""
        if self._summary is None:
            raise InvalidValue("the batch has not ended: read all of its outcomes first")
        return self._summary

    def shut_down(self) -> None:
        """End the batch: no call starts, and every accepted item has an outcome at once."""
        if self._core is not None:
            self._core.shut_down()

    async def collect(self) -> list[Outcome]:
        """Return all outcomes, in the order in which they came."""
        return [outcome async for outcome in self]

    def wait(self) -> list[Outcome]:
        """As ``collect``, in a thread without an event loop."""
        if asyncio._get_running_loop() is not None:
            raise WouldBlockLoop("this would stop the event loop that runs in this thread; await run.collect()")
        return asyncio.run(self.collect())

    async def __aiter__(self) -> AsyncIterator[Outcome]:
        if self._core is not None:
            raise InvalidValue("a batch runs once; make another with batch.run")
        core = self._core = BatchRun(**self._settings)
        if not self._is_async:
            self._threads = DaemonThreads(self._settings["workers"], "tollgate-batch")
        serving = [asyncio.create_task(self._feed(core)), asyncio.create_task(self._make_calls(core))]
        try:
            while (parts := await core.next_outcome()) is not None:
                yield _outcome_of(parts)
            if self._error is not None:
                raise self._error
            self._summary = Summary(**await core.finish())
        finally:
            core.shut_down()
            for task in serving:
                task.cancel()
            await asyncio.gather(*serving, return_exceptions=True)
            if self._threads is not None:
                self._threads.shutdown(wait=False, cancel_futures=True)

    def _fail(self, error: BaseException) -> None:
        """End the batch with an error that is no item's."""
        if self._error is None:
            self._error = error
        self.shut_down()

    async def _feed(self, core: BatchRun) -> None:
        index = 0
        try:
            if isinstance(self._items, AsyncIterable):
                async for item in self._items:
                    if not await core.send(*_sent(item, index)):
                        return
                    index += 1
            else:
                for item in self._items:
                    if not await core.send(*_sent(item, index)):
                        return
                    index += 1
        except Exception as error:
            self._fail(error)
        finally:
            core.end_input()

    async def _make_calls(self, core: BatchRun) -> None:
        tasks: set[asyncio.Task[None]] = set()

        def is_over(task: asyncio.Task[None]) -> None:
            tasks.discard(task)
            if not task.cancelled():
                # An interrupt, which the loop has raised: that is enough.
                task.exception()

        try:
            while (call := await core.next_call()) is not None:
                task = asyncio.create_task(self._make(call))
                tasks.add(task)
                task.add_done_callback(is_over)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _make(self, made: BatchCall) -> None:
        payload, state = made.payload
        call = Call(made.id, payload, made.scope, made.attempt, made.number, self._timeout, state)
        try:
            value = await asyncio.wait_for(self._called(call), self._timeout)
            done = value if isinstance(value, Done) else Done(value)
            text = None if self._settings["journal"] is None else _json_of(made.id, done.output)
            made.done(done.output, text, done.tokens, headers_of(done.headers))
        except Exception as error:
            try:
                better = self._classify(error) if self._classify is not None else None
                answer(made, error if better is None else better)
            except Exception as other:
                made.failed("fatal", repr(other))
                self._fail(other)
        except BaseException as error:
            # A task that is cancelled from outside, or Ctrl-C: that is no reply of a provider.
            self._fail(error)
            raise

    async def _called(self, call: Call) -> Any:
        if self._threads is not None:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._function, call)
        return await self._function(call)


def _json_of(name: str, output: Any) -> str:
    try:
        return json.dumps(output)
    except (TypeError, ValueError) as error:
        raise Fatal(f"the output of item {name!r} is not JSON, which the journal needs: {error}") from None


def _sent(item: Any, index: int) -> tuple[str, tuple[Any, dict[str, Any]], int, str | None]:
    """Return what the driver knows of an item."""
    if not isinstance(item, tuple):
        return str(index), (item, {}), 0, None
    if not 2 <= len(item) <= 3 or not isinstance(item[0], str) or (len(item) == 3 and not isinstance(item[2], dict)):
        raise InvalidValue(f'item {index} is {item!r}, but a tuple is (id, payload) or (id, payload, {{"tokens": n, "scope": name}})')
    options = dict(item[2]) if len(item) == 3 else {}
    tokens, scope = options.pop("tokens", 0), options.pop("scope", None)
    if options:
        raise InvalidValue(f'item {index} has the option "{next(iter(options))}", but only tokens and scope are known')
    if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 0:
        raise InvalidValue(f"item {index} has tokens {tokens!r}, but must have a number")
    return item[0], (item[1], {}), tokens, scope


def _outcome_of(parts: tuple[Any, ...]) -> Outcome:
    name, index, is_done, output, kind, reason, *numbers = parts
    return Outcome(name, index, output, "done" if is_done else kind, reason, *numbers)
