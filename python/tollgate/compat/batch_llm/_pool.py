"""Calls of a service that share limits, and a processor that items are added to."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any, Generic, TypeVar

from ._artifacts import JsonlArtifactStore, ResumePolicy
from ._classify import ErrorClassifier
from ._config import ProcessorConfig
from ._engine import Engine
from ._errors import BatchAdmissionClosedError, LLMCallError
from ._results import BatchResult, BatchTermination, TOutput, WorkItemResult, no_usage
from ._runs import ProgressCallback, make_engine, output_of, with_concurrency
from ._strategies import LLMCallStrategy, LLMWorkItem, TInput, check_strategy

TItem = TypeVar("TItem")
TPoolContext = TypeVar("TPoolContext")


class _Feed(Generic[TItem]):
    """Items that come from outside, until it is closed."""

    def __init__(self, size: int = 0) -> None:
        self._items: asyncio.Queue[TItem | None] = asyncio.Queue(size)
        self.is_closed = False

    async def put(self, item: TItem) -> None:
        await self._items.put(item)

    async def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            await self._items.put(None)

    async def items(self) -> AsyncIterator[TItem]:
        while (item := await self._items.get()) is not None:
            yield item


class LLMCallPool(Generic[TOutput]):
    """Calls of a service that share one pace: each waits its turn, and a 429 of one makes all wait.

    >>> import asyncio
    >>> from tollgate.compat.batch_llm import CallableStrategy, CallOutcome, LLMCallPool
    >>> async def invoke(prompt, *, attempt, timeout, state):
    ...     return CallOutcome(prompt.upper())
    >>> async def main():
    ...     async with LLMCallPool(CallableStrategy(invoke)) as pool:
    ...         return await asyncio.gather(pool.submit("a"), pool.submit("b"))
    >>> asyncio.run(main())
    ['A', 'B']
    """

    def __init__(
        self,
        strategy: LLMCallStrategy[TOutput],
        *,
        config: ProcessorConfig | None = None,
        error_classifier: ErrorClassifier | None = None,
        max_pending: int | None = None,
        submit_timeout: float | None = None,
    ) -> None:
        check_strategy(strategy)
        if max_pending is not None and (isinstance(max_pending, bool) or max_pending < 1):
            raise ValueError(f"max_pending must be >= 1 or None (got {max_pending!r})")
        if submit_timeout is not None and not submit_timeout > 0:
            raise ValueError(f"submit_timeout must be > 0 or None (got {submit_timeout!r})")
        self._strategy, self._config, self._classifier = strategy, with_concurrency(config, None), error_classifier
        self._submit_timeout, self._count, self._is_closed = submit_timeout, 0, False
        self._room = asyncio.Semaphore(self._config.workers + max_pending) if max_pending is not None else contextlib.nullcontext()
        self._feed: _Feed[LLMWorkItem[str, TOutput, None]] = _Feed()
        self._waiting: dict[int, asyncio.Future[WorkItemResult[TOutput, Any]]] = {}
        self._engine: Engine | None = None
        self._task: asyncio.Task[None] | None = None

    async def submit(self, prompt: str, *, timeout: float | None = None) -> TOutput:
        """Make a call and return its output, or raise what it failed with."""
        return output_of(await self.submit_result(prompt, timeout=timeout))

    async def submit_result(self, prompt: str, *, timeout: float | None = None) -> WorkItemResult[TOutput, Any]:
        """Make a call and return its result."""
        if self._is_closed:
            raise RuntimeError("Shared call pool is closed")
        if timeout is None:
            timeout = self._submit_timeout
        self._count += 1
        index = self._count
        try:
            return await asyncio.wait_for(self._submitted(prompt, index), timeout)
        except asyncio.TimeoutError:
            return WorkItemResult(f"req-{index}", False, error="submit timed out", token_usage=no_usage())

    async def _submitted(self, prompt: str, index: int) -> WorkItemResult[TOutput, Any]:
        async with self._room:
            while self._task is not None and self._engine is not None and self._engine.stopped.is_set():
                await asyncio.wait({self._task})
            if self._is_closed:
                raise RuntimeError("Shared call pool is closed")
            if self._task is None:
                self._engine = make_engine(self._feed.items(), self._config, error_classifier=self._classifier)
                self._task = asyncio.create_task(self._serve(self._engine))
            future = self._waiting[index] = asyncio.get_running_loop().create_future()
            await self._feed.put(LLMWorkItem(f"req-{index}", self._strategy, prompt, None, index))
            try:
                result: WorkItemResult[TOutput, Any] = await future
            except asyncio.CancelledError:
                # The caller has gone: its call ends, and another takes the place.
                if self._engine is not None:
                    self._engine.cancel(index)
                raise
            finally:
                self._waiting.pop(index, None)
            result.submission_index = None
            return result

    async def _serve(self, engine: Engine) -> None:
        error: BaseException = LLMCallError("The provider refuses for good")
        try:
            async for result in engine.results():
                future = self._waiting.get(result.submission_index or 0)
                if future is not None and not future.done():
                    future.set_result(result)
        except BaseException as raised:
            error = raised
            raise
        finally:
            # The provider may refuse for a day; the next call begins anew.
            self._engine = self._task = None
            self._feed = _Feed()
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(error if isinstance(error, Exception) else LLMCallError(f"the pool has ended: {error!r}"))

    async def aclose(self) -> None:
        """Let the calls end that were submitted, and take no more."""
        self._is_closed = True
        await self._feed.close()
        if self._task is not None:
            await self._task

    async def __aenter__(self) -> LLMCallPool[TOutput]:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class ParallelBatchProcessor(Generic[TInput, TOutput, TPoolContext]):
    """Items with strategies of their own: add them, then read the results.

    >>> import asyncio
    >>> from tollgate.compat.batch_llm import CallableStrategy, CallOutcome, LLMWorkItem, ParallelBatchProcessor
    >>> async def invoke(prompt, *, attempt, timeout, state):
    ...     return CallOutcome(prompt.upper())
    >>> async def main():
    ...     async with ParallelBatchProcessor(max_workers=5) as processor:
    ...         await processor.add_work(LLMWorkItem("a", CallableStrategy(invoke), "text"))
    ...         batch = await processor.process_all()
    ...     return list(batch.outputs(with_ids=True))
    >>> asyncio.run(main())
    [('a', 'TEXT')]
    """

    def __init__(
        self,
        max_workers: int | None = None,
        post_processor: Any = None,
        timeout_per_item: float | None = None,
        rate_limit_cooldown: float | None = None,
        config: ProcessorConfig | None = None,
        error_classifier: ErrorClassifier | None = None,
        rate_limit_strategy: Any = None,
        middlewares: Any = None,
        observers: Any = None,
        progress_callback: ProgressCallback | None = None,
        artifact_store: JsonlArtifactStore | None = None,
        resume: ResumePolicy = ResumePolicy.NONE,
    ) -> None:
        if config is None:
            config = ProcessorConfig(max_workers=max_workers, timeout_per_item=timeout_per_item)
        elif timeout_per_item is not None:
            raise ValueError("Pass timeout_per_item in the config.")
        else:
            config = with_concurrency(config, None)
            if max_workers is not None:
                config = ProcessorConfig(**{**vars(config), "concurrency": max_workers})
        self.config = config
        self._feed: _Feed[LLMWorkItem[TInput, TOutput, TPoolContext]] = _Feed(config.max_queue_size)
        self._engine = make_engine(
            self._feed.items(),
            config,
            artifact_store,
            resume,
            error_classifier=error_classifier,
            post_processor=post_processor,
            progress_callback=progress_callback,
            rate_limit_strategy=rate_limit_strategy,
            rate_limit_cooldown=rate_limit_cooldown,
            middlewares=middlewares,
            observers=observers,
        )
        self._engine.is_finite = True
        self._out: asyncio.Queue[WorkItemResult[TOutput, TPoolContext] | None] = asyncio.Queue(config.max_result_queue_size)
        self._task: asyncio.Task[None] | None = None
        self._counts = {"total": 0, "processed": 0, "succeeded": 0, "failed": 0, "replayed": 0}
        self._tokens = {"input_tokens": 0, "output_tokens": 0, "cached_input_tokens": 0}
        self._errors: dict[str, int] = {}
        self._started = time.time()

    @property
    def termination(self) -> BatchTermination:
        """Why the batch has ended."""
        return self._engine.termination

    @property
    def aborted(self) -> bool:
        """Whether the batch ends before its input does."""
        return self._engine.stopped.is_set()

    async def wait_for_abort(self) -> None:
        """Wait until the batch is aborted."""
        await self._engine.stopped.wait()

    async def add_work(self, work_item: LLMWorkItem[TInput, TOutput, TPoolContext]) -> None:
        """Add an item; waits while ``max_queue_size`` items wait."""
        if self._feed.is_closed:
            raise BatchAdmissionClosedError("Cannot add work while processor is closed. Create a new processor for additional work.")
        if not isinstance(work_item, LLMWorkItem):
            raise TypeError(f"add_work takes an LLMWorkItem, got {type(work_item).__name__}")
        self._counts["total"] += 1
        if self.config.max_queue_size:
            # Its room is made by calls.
            self.start()
        await self._feed.put(work_item)

    def start(self) -> None:
        """Begin to call; ``results`` and ``process_all`` do so as well."""
        if self._task is None:
            self._task = asyncio.create_task(self._work())

    async def finish(self) -> None:
        """End the input: the results end after those of the items that were added."""
        await self._feed.close()

    async def results(self) -> AsyncIterator[WorkItemResult[TOutput, TPoolContext]]:
        """Return each result as soon as it is there."""
        self.start()
        assert self._task is not None
        while (result := await self._out.get()) is not None:
            yield result
        await self._task

    async def process_all(self) -> BatchResult[TOutput, TPoolContext]:
        """Call all items that were added, and return their results."""
        begun = time.monotonic()
        closing = asyncio.ensure_future(self.finish())
        results = [result async for result in self.results()]
        await closing
        return BatchResult(results, self.termination, time.monotonic() - begun)

    async def _work(self) -> None:
        results = self._engine.results()
        try:
            async for result in results:
                self._counts["processed"] += 1
                self._counts["succeeded" if result.success else "failed"] += 1
                self._counts["replayed"] += result.replayed_from_artifact
                for name in self._tokens:
                    self._tokens[name] += result.token_usage.get(name, 0)
                if result.error_category is not None:
                    category = str(result.error_category)
                    self._errors[category] = self._errors.get(category, 0) + 1
                await self._out.put(result)
        finally:
            await results.aclose()  # type: ignore[attr-defined]
            self._feed.is_closed = True
            await self._out.put(None)

    async def get_stats(self) -> dict[str, Any]:
        """Return the counts of items, tokens and errors."""
        inputs, outputs = self._tokens["input_tokens"], self._tokens["output_tokens"]
        return {
            **self._counts,
            "start_time": self._started,
            "error_counts": dict(self._errors),
            "total_input_tokens": inputs,
            "total_output_tokens": outputs,
            "total_tokens": inputs + outputs,
            "cached_input_tokens": self._tokens["cached_input_tokens"],
            "total_cached_tokens": self._tokens["cached_input_tokens"],
        }

    async def shutdown(self) -> None:
        """End the batch now."""
        self._feed.is_closed = True
        self._engine.shut_down()
        if self._task is not None:
            # Results that are not read must not keep the task waiting.
            self._out = asyncio.Queue()
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def __aenter__(self) -> ParallelBatchProcessor[TInput, TOutput, TPoolContext]:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.shutdown()
