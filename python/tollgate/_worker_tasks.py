"""The workers of a pool as tasks of an event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Any

from ._errors import Error
from ._workers import Work, Worker


class Tasks:
    """A queue of jobs, and the tasks that do them."""

    def __init__(self, work: Work, count: int, limits: Any) -> None:
        self._work, self._count, self._limits = work, count, limits
        self._jobs: deque[tuple[asyncio.Future[Any], Any]] = deque()
        self._workers: set[asyncio.Task[None]] = set()
        self._free = deque(Worker(index, limits) for index in range(count))
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False

    def submit(self, item: Any) -> Any:
        if self._loop is None or self._is_closed:
            raise Error("the pool is closed: submit jobs in its async with block")
        future = self._loop.create_future()
        self._jobs.append((future, item))
        # A task does jobs until there are none left, so that an idle pool has none.
        if self._free:
            task = self._loop.create_task(self._serve(self._free.popleft()))
            self._workers.add(task)
            task.add_done_callback(self._workers.discard)
        return future

    def map(self, items: Iterable[Any], return_exceptions: bool) -> list[Any]:
        raise NotImplementedError

    async def map_async(self, items: Iterable[Any], return_exceptions: bool) -> list[Any]:
        from ._worker_threads import _result_async

        window: deque[asyncio.Future[Any]] = deque()
        results: list[Any] = []
        try:
            for item in items:
                if len(window) >= 2 * self._count:
                    results.append(await _result_async(window.popleft(), return_exceptions))
                window.append(self.submit(item))
            while window:
                results.append(await _result_async(window.popleft(), return_exceptions))
            return results
        except BaseException:
            for future in window:
                future.cancel()
            raise

    def close(self) -> None:
        raise NotImplementedError

    def leave(self, error: BaseException | None) -> None:
        raise NotImplementedError

    async def enter_async(self) -> None:
        self._loop = asyncio.get_running_loop()

    async def leave_async(self, error: BaseException | None) -> None:
        self._is_closed = True
        workers = list(self._workers)
        if error is not None:
            for future, _ in self._jobs:
                future.cancel()
            self._jobs.clear()
            for worker in workers:
                worker.cancel()
        try:
            await asyncio.gather(*workers, return_exceptions=True)
        except asyncio.CancelledError:
            for worker in workers:
                worker.cancel()
            raise

    async def _serve(self, worker: Worker) -> None:
        try:
            while self._jobs:
                future, item = self._jobs.popleft()
                if future.cancelled():
                    continue
                try:
                    result = await self._do(worker, item)
                except asyncio.CancelledError:
                    future.cancel()
                    raise
                except Exception as error:
                    if not future.done():
                        future.set_exception(error)
                else:
                    if not future.done():
                        future.set_result(result)
        finally:
            self._free.append(worker)

    async def _do(self, worker: Worker, item: Any) -> Any:
        failures = 0
        while True:
            try:
                return await self._work.call(worker, item)
            except Exception as error:
                failures += 1
                pause = self._work.pause(error, failures)
                if pause is None:
                    raise
            await asyncio.sleep(pause)
