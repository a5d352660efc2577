"""The threads of a batch whose function is no coroutine function."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

_T = TypeVar("_T")

_Job = tuple["Future[Any]", Callable[[], Any]]


class DaemonThreads(Executor):
    """Calls functions in threads, at most ``most`` at once.

    The end of the interpreter waits for the threads of ``ThreadPoolExecutor``, and so does Ctrl-C, for as long as a call takes. It does not
    wait for these.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most, self._name = most, name
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._count = 0

    def submit(self, function: Callable[..., _T], /, *arguments: Any, **named: Any) -> Future[_T]:
        """Call a function as soon as a thread is free. An event loop calls this, from one thread."""
        future: Future[_T] = Future()
        self._jobs.put((future, lambda: function(*arguments, **named)))
        if not self._idle.acquire(blocking=False) and self._count < self._most:
            self._count += 1
            threading.Thread(target=self._serve, name=f"{self._name}-{self._count}", daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Begin no more calls, and end each thread after its call."""
        try:
            while (job := self._jobs.get_nowait()) is not None:
                job[0].cancel()
        except Empty:
            pass
        for _ in range(self._count):
            self._jobs.put(None)

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, call = job
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:
                    future.set_exception(error)
            # Not kept until the next job.
            del future, call, job
            self._idle.release()
