"""Worker pools: threads, processes or tasks that share limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from ._errors import Error, Impossible, InvalidDemand, InvalidValue, RateLimited

if TYPE_CHECKING:
    from types import TracebackType

    from ._worker_tasks import Tasks
    from ._worker_threads import Threads

#: The most workers of a pool.
WORKERS_MAX = 10_000

#: The first pause before a retry in seconds, and the longest.
_PAUSE, _PAUSE_MAX = 0.05, 30.0


class WorkerDied(Error, RuntimeError):
    """A worker process ended in the middle of a job.

    >>> import tollgate as tg
    >>> issubclass(tg.WorkerDied, tg.Error)
    True
    """


class Worker:
    """One worker of a pool, as its function sees it.

    >>> import tollgate as tg
    >>> def work(worker, item):
    ...     with worker.limits.acquire():
    ...         return f"{item} by worker {worker.index}"
    >>> with tg.WorkerPool(work, threads=1, limits=tg.LimitSet([tg.resource("slots", 1)])) as pool:
    ...     pool.map(["a", "b"])
    ['a by worker 0', 'b by worker 0']
    """

    def __init__(self, index: int, limits: Any) -> None:
        for_worker = getattr(limits, "for_worker", None)
        self._index = index
        self._limits = limits if for_worker is None else for_worker(index)

    @property
    def index(self) -> int:
        """Its number in the pool, from 0."""
        return self._index

    @property
    def limits(self) -> Any:
        """The limits of the pool; of a ``LimitPool``, as this worker uses it."""
        return self._limits

    def __repr__(self) -> str:
        return f"<Worker {self._index}>"


class Work:
    """The function of a pool, with its retries."""

    def __init__(self, function: Callable[..., Any], retries: int) -> None:
        if not callable(function):
            raise InvalidValue(f"work is {function!r}, but must be a function of an item, or of a worker and an item")
        self.function = function
        self.retries = retries
        # Pools import what they need when they are made: not all programs have one.
        import inspect

        self.is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))
        self._takes_worker = _takes_worker(function)

    def call(self, worker: Worker, item: Any) -> Any:
        """Call the function once."""
        return self.function(worker, item) if self._takes_worker else self.function(item)

    def pause(self, error: Exception, failures: int) -> float | None:
        """Return the pause in seconds before the next try, or ``None`` if there is none."""
        if failures > self.retries or isinstance(error, (Impossible, InvalidDemand, InvalidValue)):
            return None
        if isinstance(error, RateLimited) and error.retry_after is not None:
            return error.retry_after
        return min(_PAUSE * 2.0 ** (failures - 1), _PAUSE_MAX)


def _takes_worker(function: Callable[..., Any]) -> bool:
    import inspect

    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [one for one in parameters if one.kind in kinds and one.default is inspect.Parameter.empty]
    takes_any = any(one.kind in (*kinds, inspect.Parameter.VAR_POSITIONAL) for one in parameters)
    if len(needed) > 2 or not takes_any:
        raise InvalidValue(f"work is {function!r}, but must be a function of an item, or of a worker and an item")
    return len(needed) == 2


class WorkerPool:
    """Workers that do jobs, in threads, processes or tasks. ``work`` is a function of an item, or of a ``Worker`` and an item.

    A job that raises is tried again up to ``retries`` times, after a pause; one that was denied, when it may be admitted. A process that
    dies fails the job that it was doing with ``WorkerDied``, and is replaced. Processes get the limits by pickle, so these are in a
    store. At the end of its block a pool finishes its jobs; if an exception leaves the block, it cancels those that have not begun.

    >>> import tollgate as tg
    >>> limits = tg.LimitSet([tg.per_second("rps", 1_000), tg.resource("connections", 2)])
    >>> @limits.limit({"rps": 1})
    ... def work(item):
    ...     return item * item
    >>> with tg.WorkerPool(work, threads=8, retries=3) as pool:
    ...     pool.map(range(5))
    [0, 1, 4, 9, 16]
    """

    def __init__(
        self,
        work: Callable[..., Any],
        *,
        threads: int | None = None,
        processes: int | None = None,
        tasks: int | None = None,
        limits: Any = None,
        retries: int = 0,
        mp_context: Any = None,
    ) -> None:
        kinds = {"threads": threads, "processes": processes, "tasks": tasks}
        given = [(kind, count) for kind, count in kinds.items() if count is not None]
        if len(given) != 1:
            raise InvalidValue("a pool has threads, processes or tasks: give the number of one of them")
        kind, count = given[0]
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= WORKERS_MAX:
            raise InvalidValue(f"{kind} is {count!r}, but must be 1 to {WORKERS_MAX}")
        if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
            raise InvalidValue(f"retries is {retries!r}, but must be a number of retries, or 0")
        if mp_context is not None and kind != "processes":
            raise InvalidValue("mp_context is for processes")
        job = Work(work, retries)
        if job.is_async != (kind == "tasks"):
            what, other = ("a coroutine function", "tasks") if job.is_async else ("no coroutine function", "threads or processes")
            raise InvalidValue(f"work is {what}: give the pool {other}, not {kind}")
        self._kind, self._count = kind, count
        self._runner: Threads | Tasks
        if kind == "tasks":
            from ._worker_tasks import Tasks

            self._runner = Tasks(job, count, limits)
        elif kind == "threads":
            from ._worker_threads import Threads, doers_in_thread

            self._runner = Threads(doers_in_thread(job, limits), count)
        else:
            from ._worker_processes import doers_in_processes
            from ._worker_threads import Threads

            self._runner = Threads(doers_in_processes(job, limits, mp_context), count)

    def submit(self, item: Any) -> Any:
        """Add a job. Return its future: of ``concurrent.futures`` for threads and processes, of asyncio for tasks.

        >>> import tollgate as tg
        >>> with tg.WorkerPool(str.upper, threads=1) as pool:
        ...     pool.submit("a").result()
        'A'
        """
        return self._runner.submit(item)

    def map(self, items: Iterable[Any], *, return_exceptions: bool = False) -> list[Any]:
        """Do a job for each item, and return the results in the order of the items. Items are taken as workers come free.

        The first exception cancels the jobs that have not begun, and is raised; with ``return_exceptions`` each is a result.

        >>> import tollgate as tg
        >>> with tg.WorkerPool(lambda item: 6 // item, threads=2) as pool:
        ...     pool.map([1, 0, 3], return_exceptions=True)
        [6, ZeroDivisionError('integer division or modulo by zero'), 2]
        """
        if self._kind == "tasks":
            raise InvalidValue("a pool of tasks does not block: await map_async")
        return self._runner.map(items, return_exceptions)

    def map_async(self, items: Iterable[Any], *, return_exceptions: bool = False) -> Awaitable[list[Any]]:
        """As ``map``, in an event loop.

        >>> import asyncio
        >>> import tollgate as tg
        >>> async def work(item):
        ...     return item + 1
        >>> async def main():
        ...     async with tg.WorkerPool(work, tasks=10) as pool:
        ...         return await pool.map_async([1, 2, 3])
        >>> asyncio.run(main())
        [2, 3, 4]
        """
        return self._runner.map_async(items, return_exceptions)

    def close(self) -> None:
        """Finish all jobs and end the workers.

        >>> import tollgate as tg
        >>> pool = tg.WorkerPool(str.upper, threads=1)
        >>> future = pool.submit("a")
        >>> pool.close()
        >>> future.result()
        'A'
        """
        if self._kind == "tasks":
            raise InvalidValue("a pool of tasks does not block: use it in an async with block")
        self._runner.close()

    def __enter__(self) -> WorkerPool:
        if self._kind == "tasks":
            raise InvalidValue("a pool of tasks does not block: use it in an async with block")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._runner.leave(error)

    async def __aenter__(self) -> WorkerPool:
        await self._runner.enter_async()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        await self._runner.leave_async(error)

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a pool of workers belongs to the process that made it; pass its function and its limits, and make a pool there")

    def __repr__(self) -> str:
        return f"<WorkerPool {self._kind}={self._count}>"


WorkerPool.__module__ = Worker.__module__ = WorkerDied.__module__ = "tollgate"
