"""Waiting in greenlets, of gevent or of eventlet, while the others of the thread go on.

A method that has to wait stops its thread, and so all greenlets in it: there it raises ``WouldBlockLoop``. Wait for its twin instead:

>>> import tollgate as tg
>>> from tollgate import greenlets
>>> limits = tg.LimitSet([tg.per_minute("rpm", 500), tg.resource("connections", 16)])
>>> with greenlets.hold(limits.acquire_async(rpm=1, timeout=30)):
...     pass  # call the API
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeVar

from ._awaiting import PlainFuture, is_eventlet_here, is_gevent_here
from ._core import LoopWaits
from ._errors import Error

if TYPE_CHECKING:
    from types import TracebackType

    from ._core import Lease, Pending

__all__ = ["hold", "wait"]

_T = TypeVar("_T")


def wait(pending: Pending[_T]) -> _T:
    """Do what a method with the suffix ``_async`` has returned. If it has to wait, the other greenlets of the thread go on.

    A greenlet that is killed, or leaves by a timeout of gevent or eventlet, leaves the queue and takes nothing.

    >>> import tollgate as tg
    >>> from tollgate import greenlets
    >>> limits = tg.LimitSet([tg.resource("slots", 1)])
    >>> greenlets.wait(limits.acquire_async(timeout=5)).commit()
    """
    value: Any = pending._begin()
    if value is not pending:
        return value  # type: ignore[no-any-return]
    waits, future = LoopWaits(), PlainFuture()
    try:
        waits.add(pending, future)
        while not future.done():
            _wait_readable(waits.fileno())
            waits.drain()
        value = future.result()
    except BaseException:
        waits.remove(pending, future)
        raise
    return pending._end(value)  # type: ignore[no-any-return]


class hold:
    """A block that holds a lease, as ``async with`` does in event loops: its end waits for the store, while other greenlets go on.

    >>> import tollgate as tg
    >>> from tollgate import greenlets
    >>> limits = tg.LimitSet([tg.per_day("tpm", 1_000)])
    >>> with greenlets.hold(limits.acquire_async(tpm=100)) as lease:
    ...     lease.report(tpm=40)
    >>> limits.peek()["tpm"].available
    960
    """

    def __init__(self, pending: Pending[Lease]) -> None:
        self._pending = pending

    def __enter__(self) -> Lease:
        return wait(self._pending.__aenter__())

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        wait(self._pending.__aexit__(kind, error, traceback))


def _wait_readable(descriptor: int) -> None:
    if "gevent" in sys.modules and not (is_eventlet_here() and not is_gevent_here()):
        hub = sys.modules["gevent"].get_hub()
        watcher = hub.loop.io(descriptor, 1)
        try:
            hub.wait(watcher)
        finally:
            watcher.close()
    elif "eventlet.hubs" in sys.modules:
        sys.modules["eventlet.hubs"].trampoline(descriptor, read=True)
    else:
        raise Error("neither gevent nor eventlet was imported; wait here for what belongs to their greenlets only")
