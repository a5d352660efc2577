"""The workers of a pool as threads. Each has a doer: a function in the thread, or a process that it serves."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, Protocol

from ._errors import Error
from ._workers import Work, Worker


class Doer(Protocol):
    """What does the jobs of one worker."""

    def do(self, item: Any) -> Any: ...

    def end(self, at_once: bool) -> None: ...


class _InThread:
    """Calls the function in the thread."""

    def __init__(self, work: Work, worker: Worker) -> None:
        self._work, self._worker = work, worker

    def do(self, item: Any) -> Any:
        return call_with_retries(self._work, self._worker, item)

    def end(self, at_once: bool) -> None:
        pass


def call_with_retries(work: Work, worker: Worker, item: Any) -> Any:
    """Call the function of a pool, again after a failure."""
    failures = 0
    while True:
        try:
            return work.call(worker, item)
        except Exception as error:
            failures += 1
            pause = work.pause(error, failures)
            if pause is None:
                raise
        time.sleep(pause)


def doers_in_thread(work: Work, limits: Any) -> Callable[[int], Doer]:
    """Return what makes the doers of threads."""
    return lambda index: _InThread(work, Worker(index, limits))


class Threads:
    """A queue of jobs, and the threads that do them."""

    def __init__(self, doer_of: Callable[[int], Doer], count: int) -> None:
        self._doer_of, self._count = doer_of, count
        self._jobs: deque[tuple[Future[Any], Any]] = deque()
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._is_closed = False
        self._ends_at_once = False
        self._process = os.getpid()

    def submit(self, item: Any) -> Future[Any]:
        if self._process != os.getpid():
            # No thread of the pool is here, and one that is gone may hold its lock.
            raise Error("the pool belongs to the process that made it; make one here")
        future: Future[Any] = Future()
        with self._changed:
            if self._is_closed:
                raise Error("the pool is closed")
            self._jobs.append((future, item))
            # As many as there were jobs at once, up to the number that was given.
            if len(self._threads) < self._count:
                thread = threading.Thread(target=self._serve, args=(len(self._threads),), name="tollgate-worker", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._changed.notify()
        return future

    def map(self, items: Iterable[Any], return_exceptions: bool) -> list[Any]:
        futures: list[Future[Any]] = []
        try:
            for item in items:
                if len(futures) >= 2 * self._count:
                    _wait_for_room(futures, 2 * self._count, return_exceptions)
                futures.append(self.submit(item))
            return [_result(future, return_exceptions) for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            raise

    async def map_async(self, items: Iterable[Any], return_exceptions: bool) -> list[Any]:
        import asyncio

        window: deque[asyncio.Future[Any]] = deque()
        results: list[Any] = []
        try:
            for item in items:
                if len(window) >= 2 * self._count:
                    results.append(await _result_async(window.popleft(), return_exceptions))
                window.append(asyncio.wrap_future(self.submit(item)))
            while window:
                results.append(await _result_async(window.popleft(), return_exceptions))
            return results
        except BaseException:
            for future in window:
                future.cancel()
            raise

    def close(self) -> None:
        self._close(cancel=False, at_once=False)

    def leave(self, error: BaseException | None) -> None:
        # Ctrl-C and the end of the process do not wait for jobs.
        self._close(cancel=error is not None, at_once=error is not None and not isinstance(error, Exception))

    async def enter_async(self) -> None:
        pass

    async def leave_async(self, error: BaseException | None) -> None:
        import asyncio

        await asyncio.get_running_loop().run_in_executor(None, self.leave, error)

    def _close(self, cancel: bool, at_once: bool) -> None:
        if self._process != os.getpid():
            return
        with self._changed:
            self._is_closed = True
            self._ends_at_once |= at_once
            cancelled = list(self._jobs) if cancel else []
            if cancel:
                self._jobs.clear()
            self._changed.notify_all()
        for future, _ in cancelled:
            future.cancel()
        if not at_once:
            for thread in self._threads:
                thread.join()

    def _next(self) -> tuple[Future[Any], Any] | None:
        with self._changed:
            while not self._jobs:
                if self._is_closed:
                    return None
                self._changed.wait()
            return self._jobs.popleft()

    def _serve(self, index: int) -> None:
        doer: Doer | None = None
        while (job := self._next()) is not None:
            future, item = job
            if not future.set_running_or_notify_cancel():
                continue
            try:
                if doer is None:
                    doer = self._doer_of(index)
                result = doer.do(item)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)
            # Not kept until the next job.
            del future, item, job
        if doer is not None:
            doer.end(self._ends_at_once)


def _wait_for_room(futures: list[Future[Any]], window: int, return_exceptions: bool) -> None:
    """Wait until fewer than ``window`` of the last jobs are under way."""
    oldest = futures[-window]
    _result(oldest, return_exceptions)


def _result(future: Future[Any], return_exceptions: bool) -> Any:
    try:
        return future.result()
    except Exception as error:
        if return_exceptions:
            return error
        raise


async def _result_async(future: Any, return_exceptions: bool) -> Any:
    try:
        return await future
    except Exception as error:
        if return_exceptions:
            return error
        raise
