"""How an event loop waits for what the extension module has begun.

``import tollgate`` starts no thread and does not import asyncio.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from ._core import LoopWaits
from ._errors import WouldBlockLoop

if TYPE_CHECKING:
    import asyncio

    from ._core import Pending

_waits: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopWaits] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def _forget_lock() -> None:
    """Make a new lock in a forked child, where a thread that held it is gone."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_lock)


def is_main_thread() -> bool:
    """Return whether Python runs signal handlers in this thread."""
    return threading.current_thread() is threading.main_thread()


def runs_event_loop() -> bool:
    """Return whether an event loop runs in this thread, which a wait would stop."""
    running = _function_of("asyncio.events", "_get_running_loop")
    if running is not None and running() is not None:
        return True
    if is_gevent_here() or is_eventlet_here():
        raise WouldBlockLoop(
            "this would stop all greenlets of this thread; pass what the method with the suffix _async returns to tollgate.greenlets.wait"
        )
    return _in_trio()


def is_gevent_here() -> bool:
    """Return whether gevent switches between greenlets in this thread."""
    hub = _function_of("gevent._hub_local", "get_hub_if_exists")
    return hub is not None and hub() is not None


def is_eventlet_here() -> bool:
    """Return whether eventlet switches between greenlets in this thread."""
    return getattr(_function_of("eventlet.hubs", "_threadlocal"), "hub", None) is not None


def _in_trio() -> bool:
    in_trio = _function_of("trio.lowlevel", "in_trio_run")
    return in_trio is not None and in_trio()


def _function_of(module: str, name: str) -> Any:
    """Return what a module has, or ``None`` if it was not imported, or not to its end.

    Nothing is imported here: another thread may be importing it, and in a forked child that thread is gone and its import never ends.
    """
    return getattr(sys.modules.get(module), name, None)


def drive(pending: Pending[Any]) -> Generator[Any, Any, Any]:
    """Begin an operation, and wait for it in the event loop that runs."""
    value = pending._begin()
    if value is not pending:
        return value
    if _in_trio():
        value = yield from _wait_in_trio(pending).__await__()
        return pending._end(value)
    import asyncio

    loop = asyncio.get_running_loop()
    waits = _waits_of(loop)
    future = loop.create_future()
    try:
        waits.add(pending, future)
        value = yield from future
    except BaseException:
        waits.remove(pending, future)
        raise
    return pending._end(value)


def _waits_of(loop: asyncio.AbstractEventLoop) -> LoopWaits:
    waits = _waits.get(loop)
    if waits is None:
        with _lock:
            for other in [other for other in _waits if other.is_closed()]:
                # Its tasks will never go on: what they wait for is cancelled.
                _waits.pop(other).close()
            waits = _waits[loop] = LoopWaits()
        try:
            loop.add_reader(waits.fileno(), waits.drain)
        except NotImplementedError:
            waits.call_instead(loop.call_soon_threadsafe)
    return waits


async def _wait_in_trio(pending: Pending[Any]) -> Any:
    import trio

    waits = LoopWaits()
    future = PlainFuture()
    try:
        waits.add(pending, future)
        while not future.done():
            await trio.lowlevel.wait_readable(waits.fileno())
            waits.drain()
        return future.result()
    except BaseException:
        waits.remove(pending, future)
        raise


class PlainFuture:
    """What ``LoopWaits`` needs of a future, where the loop has none."""

    def __init__(self) -> None:
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None

    def done(self) -> bool:
        return self._done

    def cancelled(self) -> bool:
        return False

    def exception(self) -> BaseException | None:
        return self._error

    def set_result(self, value: Any) -> None:
        self._done, self._value = True, value

    def set_exception(self, error: BaseException) -> None:
        self._done, self._error = True, error

    def result(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._value
