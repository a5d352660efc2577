"""Finite runs, streams and single calls."""

from __future__ import annotations

import asyncio
import inspect
import logging
import sys
import time
import warnings
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping, Sized
from typing import Any, NoReturn

from ._artifacts import JsonlArtifactStore, ResumePolicy
from ._classify import ErrorClassifier
from ._config import ProcessorConfig, warn_ignored
from ._engine import Engine
from ._errors import LLMCallError
from ._results import BatchResult, TOutput, WorkItemResult
from ._strategies import LLMCallStrategy, LLMWorkItem, check_strategy

log = logging.getLogger("tollgate.compat.batch_llm")

#: What is called after each result: how many are done, how many there are, and the id of the item.
ProgressCallback = Callable[[int, int, str], Any]


async def process_prompts(
    strategy: LLMCallStrategy[TOutput],
    prompts: Iterable[Any] | AsyncIterable[Any],
    *,
    config: ProcessorConfig | None = None,
    concurrency: int | None = None,
    progress: bool | ProgressCallback = False,
    preserve_order: bool = False,
    artifact_store: JsonlArtifactStore | None = None,
    resume: ResumePolicy = ResumePolicy.NONE,
    **processor_kwargs: Any,
) -> BatchResult[TOutput, Any]:
    """Call a strategy for all prompts, and return their results.

    A prompt is a text, ``(item_id, prompt)`` or ``(item_id, prompt, context)``.

    >>> import asyncio
    >>> from tollgate.compat.batch_llm import CallableStrategy, CallOutcome, process_prompts
    >>> async def invoke(prompt, *, attempt, timeout, state):
    ...     return CallOutcome(prompt.upper(), token_usage={"input_tokens": 3, "output_tokens": 2, "total_tokens": 5})
    >>> batch = asyncio.run(process_prompts(CallableStrategy(invoke), [("a", "one"), ("b", "two")], concurrency=10))
    >>> batch.by_id()["b"].output, batch.succeeded, batch.total_input_tokens
    ('TWO', 2, 6)
    """
    begun = time.monotonic()
    source = _Source(strategy, prompts, "process_prompts")
    engine = source.engine(config, concurrency, progress, artifact_store, resume, processor_kwargs)
    results = [result async for result in engine.results()]
    batch = BatchResult[TOutput, Any](results, engine.termination, time.monotonic() - begun)
    return batch.in_input_order() if preserve_order else batch


async def process_stream(
    strategy: LLMCallStrategy[TOutput],
    prompts: Iterable[Any] | AsyncIterable[Any],
    *,
    config: ProcessorConfig | None = None,
    concurrency: int | None = None,
    progress: bool | ProgressCallback = False,
    artifact_store: JsonlArtifactStore | None = None,
    resume: ResumePolicy = ResumePolicy.NONE,
    **processor_kwargs: Any,
) -> AsyncIterator[WorkItemResult[TOutput, Any]]:
    """As ``process_prompts``, and return each result as soon as it is there. Prompts are taken as there is room.

    >>> import asyncio
    >>> from tollgate.compat.batch_llm import CallableStrategy, CallOutcome, process_stream
    >>> async def invoke(prompt, *, attempt, timeout, state):
    ...     return CallOutcome(len(prompt))
    >>> async def main():
    ...     async for result in process_stream(CallableStrategy(invoke), ["four"]):
    ...         print(result.item_id, result.output)
    >>> asyncio.run(main())
    item_0 4
    """
    source = _Source(strategy, prompts, "process_stream")
    engine = source.engine(config, concurrency, progress, artifact_store, resume, processor_kwargs)
    results = engine.results()
    try:
        async for result in results:
            yield result
    finally:
        await results.aclose()  # type: ignore[attr-defined]


async def call_result(
    strategy: LLMCallStrategy[TOutput],
    prompt: str,
    *,
    config: ProcessorConfig | None = None,
    error_classifier: ErrorClassifier | None = None,
) -> WorkItemResult[TOutput, Any]:
    """Make one call, with retries, and return its result.

    >>> import asyncio
    >>> from tollgate.compat.batch_llm import CallableStrategy, CallOutcome, call_result
    >>> async def invoke(prompt, *, attempt, timeout, state):
    ...     raise ValueError("no")
    >>> result = asyncio.run(call_result(CallableStrategy(invoke), "a prompt"))
    >>> result.success, result.error, result.error_category
    (False, 'ValueError: no', 'logic_error')
    """
    source = _Source(strategy, [("single", prompt)], "call")
    engine = source.engine(config, None, False, None, ResumePolicy.NONE, {"error_classifier": error_classifier})
    [result] = [result async for result in engine.results()]
    result.submission_index = None
    return result


async def call(
    strategy: LLMCallStrategy[TOutput],
    prompt: str,
    *,
    config: ProcessorConfig | None = None,
    error_classifier: ErrorClassifier | None = None,
) -> TOutput:
    """Make one call, with retries, and return its output, or raise what it failed with.

    >>> import asyncio
    >>> from tollgate.compat.batch_llm import CallableStrategy, CallOutcome, call
    >>> async def invoke(prompt, *, attempt, timeout, state):
    ...     return CallOutcome(prompt.upper())
    >>> asyncio.run(call(CallableStrategy(invoke), "text"))
    'TEXT'
    """
    return output_of(await call_result(strategy, prompt, config=config, error_classifier=error_classifier))


def output_of(result: WorkItemResult[TOutput, Any]) -> TOutput:
    """Return the output of a call, or raise what it failed with."""
    if result.success:
        return result.output  # type: ignore[return-value]
    if result.exception is not None:
        raise result.exception
    raise LLMCallError(result.error or "the call failed", result=result)


class _Source:
    """The prompts of a run, as work items."""

    def __init__(self, strategy: LLMCallStrategy[Any], prompts: Any, name: str) -> None:
        check_strategy(strategy)
        if isinstance(prompts, (str, bytes, Mapping)) or not isinstance(prompts, (Iterable, AsyncIterable)):
            raise TypeError(
                "prompts must be an iterable of prompt entries, not a string, bytes, or mapping. "
                "For one prompt, use call(strategy, prompt) or pass [prompt]."
            )
        self._strategy, self._prompts, self._name = strategy, prompts, name
        self._ids: set[str] = set()

    def engine(
        self,
        config: ProcessorConfig | None,
        concurrency: int | None,
        progress: bool | ProgressCallback,
        store: JsonlArtifactStore | None,
        resume: ResumePolicy,
        options: dict[str, Any],
    ) -> Engine:
        config = with_concurrency(config, concurrency)
        if progress is not False and progress is not None:
            options = {"progress_callback": progress, **options}
        total = len(self._prompts) if isinstance(self._prompts, Sized) else None
        engine = make_engine(self._items(), config, store, resume, total, **options)
        engine.is_finite = total is not None
        return engine

    async def _items(self) -> AsyncIterator[LLMWorkItem[Any, Any, Any]]:
        index = 0
        if isinstance(self._prompts, AsyncIterable):
            async for entry in self._prompts:
                yield self._item(entry, index)
                index += 1
        else:
            for entry in self._prompts:
                yield self._item(entry, index)
                index += 1

    def _item(self, entry: Any, index: int) -> LLMWorkItem[Any, Any, Any]:
        item_id: Any = f"item_{index}"
        prompt, context = entry, None
        if isinstance(entry, tuple):
            if not 2 <= len(entry) <= 3:
                _refuse(f"prompt tuple must be (item_id, prompt) or (item_id, prompt, context); got a tuple of length {len(entry)}", index)
            item_id, prompt, *rest = entry
            context = rest[0] if rest else None
        item_id, prompt = _text_of(item_id), _text_of(prompt)
        if not isinstance(prompt, str):
            _refuse(f"a prompt must be a string; got {type(prompt).__name__}", index)
        if item_id in self._ids:
            text = f"Duplicate item ID {item_id!r} in {self._name}; use unique IDs or submission_index to distinguish results."
            warnings.warn(text, UserWarning, stacklevel=2)
        elif isinstance(entry, tuple):
            self._ids.add(item_id)
        return LLMWorkItem(item_id, self._strategy, prompt, context, index)


def _text_of(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _refuse(text: str, index: int) -> NoReturn:
    raise TypeError(f"{text} at index {index}.")


def with_concurrency(config: ProcessorConfig | None, concurrency: int | None) -> ProcessorConfig:
    """Return the settings with ``concurrency``, which may be in one place only."""
    if config is None:
        return ProcessorConfig(concurrency=concurrency)
    if not isinstance(config, ProcessorConfig):
        raise TypeError(f"config must be a ProcessorConfig, got {type(config).__name__}")
    config.validate()
    if concurrency is None:
        return config
    own = config.concurrency or config.max_workers
    if own is not None and own != concurrency:
        text = f"Conflicting concurrency: config.concurrency={own} but concurrency={concurrency} was also passed. Set it in one place."
        raise ValueError(text)
    config = ProcessorConfig(**{**vars(config), "concurrency": concurrency})
    return config


def make_engine(
    items: AsyncIterator[LLMWorkItem[Any, Any, Any]],
    config: ProcessorConfig,
    artifact_store: JsonlArtifactStore | None = None,
    resume: ResumePolicy = ResumePolicy.NONE,
    total: int | None = None,
    *,
    error_classifier: ErrorClassifier | None = None,
    post_processor: Callable[[Any], Any] | None = None,
    progress_callback: bool | ProgressCallback | None = None,
    rate_limit_strategy: Any = None,
    rate_limit_cooldown: float | None = None,
    middlewares: Any = None,
    observers: Any = None,
    **unknown: Any,
) -> Engine:
    """Return an engine with the options of a processor."""
    if unknown:
        raise TypeError(f"Unexpected processor keyword {next(iter(unknown))!r}. Check the processor arguments.")
    for name, value in (("middlewares", middlewares), ("observers", observers)):
        if value:
            raise NotImplementedError(f"tollgate.compat.batch_llm has no {name}; wrap the strategy, or read the results")
    if rate_limit_strategy is not None:
        warn_ignored("rate_limit_strategy")
    if rate_limit_cooldown is not None:
        warn_ignored("rate_limit_cooldown")
    if artifact_store is not None and not isinstance(artifact_store, JsonlArtifactStore):
        raise TypeError(f"artifact_store must be a JsonlArtifactStore, got {type(artifact_store).__name__}")
    published = _Publisher(config, post_processor, progress_callback, total)
    engine = Engine(items, config, error_classifier, artifact_store, ResumePolicy(resume), published)
    published.engine = engine
    return engine


class _Publisher:
    """What happens with each result before it is returned."""

    engine: Engine

    def __init__(
        self,
        config: ProcessorConfig,
        post_processor: Callable[[Any], Any] | None,
        progress: bool | ProgressCallback | None,
        total: int | None,
    ) -> None:
        self._config, self._post, self._progress, self._total = config, post_processor, progress, total
        self._done = 0

    async def __call__(self, result: WorkItemResult[Any, Any]) -> None:
        self._done += 1
        if self._post is not None:
            await _guarded(self._post, (result,), self._config.post_processor_timeout)
        if not self._progress:
            return
        total = self.engine.accepted if self._total is None else self._total
        if callable(self._progress):
            await _guarded(self._progress, (self._done, total, result.item_id), self._config.progress_callback_timeout)
        elif self._done % max(1, self._config.progress_interval) == 0 or self._done == total:
            print(f"{self._done}/{total} items", file=sys.stderr)


async def _guarded(function: Callable[..., Any], arguments: tuple[Any, ...], seconds: float | None) -> None:
    """Call a function of the program, and await what it returns if it is asynchronous. Its failure is logged, and fails no item."""
    try:
        returned = function(*arguments)
        if inspect.isawaitable(returned):
            await asyncio.wait_for(returned, seconds)
    except Exception:
        log.warning("%r failed", function, exc_info=True)
