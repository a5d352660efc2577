"""A batch of work items on the driver of ``tollgate.batch``."""

from __future__ import annotations

import asyncio
import inspect
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import tollgate as tg
from tollgate import batch

from ._artifacts import JsonlArtifactStore, ResumePolicy
from ._classify import DefaultErrorClassifier, ErrorCategory, ErrorClassifier, ErrorInfo, status_of
from ._config import AbortMode, AttemptUsage, ProcessorConfig
from ._errors import (
    ArtifactError,
    ArtifactFormatError,
    ArtifactIdentityError,
    ArtifactSerializationError,
    BatchAbortedError,
    BatchBudgetExceeded,
    BatchDeadlineExceeded,
    ItemDeadlineExceeded,
    RateLimitRetriesExceeded,
)
from ._item_run import ItemRun, checked_usage, error_text, log, usage_of
from ._quotas import Quotas, TokenEstimateExceedsLimit, TokenEstimatorRequired
from ._results import AttemptTiming, BatchTermination, WorkItemResult, total_of
from ._strategies import LLMCallStrategy, LLMWorkItem

#: The failures of a provider that is down, which ``wait_for_outages`` waits for.
_OUTAGES = {"server_error", "connection_error", "network_error", "upstream_error", "server_timeout"}

#: What an item fails with, by the reason that the batch has ended for.
_ENDINGS: dict[str, tuple[type[BatchDeadlineExceeded] | type[BatchAbortedError], ErrorCategory]] = {
    "batch_timeout": (BatchDeadlineExceeded, ErrorCategory.BATCH_DEADLINE_EXCEEDED),
    "fail_fast": (BatchAbortedError, ErrorCategory.BATCH_ABORTED),
    "budget_exceeded": (BatchBudgetExceeded, ErrorCategory.BATCH_BUDGET_EXCEEDED),
}

_OWN_ERRORS: dict[type[Exception], ErrorCategory] = {
    ArtifactIdentityError: ErrorCategory.ARTIFACT_PREPARATION_ERROR,
    ArtifactSerializationError: ErrorCategory.ARTIFACT_SERIALIZATION_ERROR,
    TokenEstimatorRequired: ErrorCategory.TOKEN_ESTIMATOR_REQUIRED,
    TokenEstimateExceedsLimit: ErrorCategory.TOKEN_ESTIMATE_EXCEEDS_LIMIT,
}


class _TooLate(batch.Fatal):
    """A call that is not made any more."""


class Engine:
    """A batch that runs while ``results`` is read."""

    def __init__(
        self,
        items: AsyncIterator[LLMWorkItem[Any, Any, Any]],
        config: ProcessorConfig,
        classifier: ErrorClassifier | None = None,
        store: JsonlArtifactStore | None = None,
        resume: ResumePolicy = ResumePolicy.NONE,
        on_result: Callable[[WorkItemResult[Any, Any]], Awaitable[None]] | None = None,
    ) -> None:
        self.termination = BatchTermination()
        self.stopped = asyncio.Event()
        self.accepted = 0
        #: Whether items that are not taken any more have results, too.
        self.is_finite = False
        self._items, self._config, self._classifier = items, config, classifier
        self._store, self._resume, self._on_result = store, resume, on_result
        self._default = DefaultErrorClassifier()
        self._quotas = Quotas(config)
        self._open: dict[str, ItemRun] = {}
        self._active: set[ItemRun] = set()
        #: Items whose callers went before they were taken.
        self._gone: set[int] = set()
        self._ready: list[WorkItemResult[Any, Any]] = []
        self._prepared: dict[LLMCallStrategy[Any], asyncio.Future[None]] = {}
        self._scopes: dict[int, tuple[str, object]] = {}
        self._tokens, self._cost = 0, 0.0
        self._run: batch.Run | None = None

    async def results(self) -> AsyncIterator[WorkItemResult[Any, Any]]:
        """Run the batch, and return each result once."""
        config = self._config
        queues = [size for size in (config.max_queue_size, config.max_result_queue_size) if size > 0]
        if self._store is not None:
            self._store.begin()
        run = self._run = batch.run(
            self._sent(),
            self._make,
            workers=config.workers,
            attempts=config.retry.max_attempts,
            journal=None if self._store is None else self._store.path,
            retry_failed=self._resume is not ResumePolicy.REUSE_ALL,
            buffer=min(queues, default=1_024),
            classify=lambda error: None,
        )
        seconds, timer = config.guardrails.batch_timeout, None
        if seconds is not None:
            reason = f"Batch deadline exceeded after {seconds}s"
            ending = BatchTermination("batch_timeout", reason, ErrorCategory.BATCH_DEADLINE_EXCEEDED.value)
            timer = asyncio.get_running_loop().call_later(seconds, self._terminate, ending, True)
        outcomes = run.__aiter__()
        try:
            async for outcome in outcomes:
                item = self._open.pop(outcome.id)
                self._active.discard(item)
                yield await self._published(self._result_of(item, outcome))
                while self._ready:
                    yield await self._published(self._ready.pop(0))
                self._shut_down_if_idle()
            while self._ready:
                yield await self._published(self._ready.pop(0))
            # What the driver did not take any more.
            for item in list(self._open.values()):
                yield await self._published(self._ended(item, None))
            if self.termination.kind != "completed" and self.is_finite:
                async for work in self._items:
                    yield await self._published(self._ended(ItemRun(work, self._accept(work)), None))
        except tg.StoreRefused as error:
            raise ArtifactFormatError(str(error)) from error
        except tg.Unavailable as error:
            raise ArtifactError(str(error)) from error
        finally:
            if timer is not None:
                timer.cancel()
            await outcomes.aclose()  # type: ignore[attr-defined]
            await self._clean_up()

    def cancel(self, index: int) -> None:
        """End the item of a caller that has gone."""
        self._gone.add(index)
        for run in self._open.values():
            if run.index == index:
                run.is_cancelled = True
                self._gone.discard(index)
                if run.task is not None:
                    run.task.cancel()

    def shut_down(self) -> None:
        """End the batch now: what is not finished is aborted."""
        self._terminate(BatchTermination("fail_fast", "The batch was shut down", ErrorCategory.BATCH_ABORTED.value), True)

    def _accept(self, work: LLMWorkItem[Any, Any, Any]) -> int:
        index = self.accepted if work.submission_index is None else work.submission_index
        self.accepted += 1
        return index

    async def _sent(self) -> AsyncIterator[tuple[str, ItemRun, dict[str, Any]]]:
        """The items for the driver; those that are replayed or cannot be called are results at once."""
        async for work in self._items:
            run = ItemRun(work, self._accept(work))
            key = str(self.accepted)
            if self._store is not None:
                try:
                    key = self._store.key_of(work, self._resume)
                except ArtifactError as error:
                    run.failed(error, self._info_of(work.strategy, error))
                    self._ready.append(run.result())
                    continue
                replayed = self._store.lookup(work, key, self._resume)
                if replayed is not None:
                    replayed.submission_index = run.index
                    self._ready.append(replayed)
                    continue
            run.is_cancelled = run.index in self._gone
            self._gone.discard(run.index)
            self._open[key] = run
            yield key, run, {"scope": self._scope_of(work.strategy)[0]}

    def _scope_of(self, strategy: LLMCallStrategy[Any]) -> tuple[str, object]:
        scope: object = strategy if strategy.quota_scope is None else strategy.quota_scope
        # The object is kept, so that its id is not used again.
        return self._scopes.setdefault(id(scope), (f"scope-{len(self._scopes) + 1}", scope))

    async def _make(self, call: batch.Call) -> Any:
        """Make a call of an item; what it raises says what the driver does next."""
        run: ItemRun = call.payload
        if self.termination.kind != "completed" or run.is_cancelled:
            raise self._too_late()
        guards, strategy = self._config.guardrails, run.item.strategy
        run.begun = run.begun or time.monotonic()
        deadline = None if guards.total_timeout_per_item is None else run.begun + guards.total_timeout_per_item
        timing = AttemptTiming(call.attempt, call.number)
        begun = time.monotonic()
        try:
            await self._prepare(strategy)
        except Exception as error:
            run.failed(error, self._info_of(strategy, error))
            raise self._fatal(run) from None
        try:
            async with self._quotas.slot(strategy):
                usage, output = await self._attempt(run, timing, deadline)
        except _TooLate:
            raise
        except Exception as error:
            timing.execution_seconds = timing.execution_seconds or time.monotonic() - begun
            raise await self._answer(run, timing, error, deadline) from None
        finally:
            timing.total_seconds = time.monotonic() - begun
        run.output, run.is_done = output, True
        timing.success = True
        run.attempts.append(timing)
        self._spend(run, timing, usage)
        if self._store is None:
            return batch.Done(output, tokens=total_of(usage))
        try:
            record = self._store.record_of(run.item, output, run.usage or {}, run.metadata)
        except ArtifactSerializationError as error:
            run.is_done = False
            run.failed(error, self._info_of(strategy, error))
            raise self._fatal(run) from None
        return batch.Done(record, tokens=total_of(usage))

    async def _attempt(self, run: ItemRun, timing: AttemptTiming, deadline: float | None) -> tuple[dict[str, int], Any]:
        strategy, limit = run.item.strategy, self._config.attempt_timeout or 120.0
        lease = await self._quotas.admit(run, timing, self._scope_of(strategy)[1], deadline)
        if self.termination.kind != "completed" or run.is_cancelled:
            if lease is not None:
                lease.cancel()
            raise self._too_late()
        self._active.add(run)
        begun = time.monotonic()
        try:
            if self._config.dry_run:
                called = strategy.dry_run(run.item.prompt)
            else:
                called = strategy.execute(run.item.prompt, timing.attempt, limit, run.state)
            found = await run.within(called, limit, deadline)
        except asyncio.CancelledError:
            if not run.is_cancelled:
                raise
            raise BatchAbortedError("The caller has gone", item_id=run.item.item_id) from None
        finally:
            timing.execution_seconds = timing.provider_seconds = time.monotonic() - begun
            if lease is not None and not run.is_answered:
                # What the call has used is not known: what was reserved stays taken.
                lease.commit()
        if not isinstance(found, tuple) or len(found) not in (2, 3):
            kind = type(found).__name__
            raise ValueError(f"Strategy.execute() must return a tuple of (output, tokens) or (output, tokens, metadata); got {kind}.")
        usage = checked_usage(found[1] or {})
        if lease is not None:
            lease.settle({"tpm": total_of(usage)} if usage and timing.reserved_tokens else {})
        run.metadata = found[2] if len(found) == 3 else None
        return usage, found[0]

    async def _answer(self, run: ItemRun, timing: AttemptTiming, error: Exception, deadline: float | None) -> Exception:
        """Note a failure, wait for the next attempt, and return what the driver has to know."""
        strategy, retry = run.item.strategy, self._config.retry
        info = self._info_of(strategy, error)
        run.failed(error, info)
        timing.error_type, timing.error_category, timing.timeout_category = type(error).__name__, info.error_category, run.timeout_category
        run.attempts.append(timing)
        self._spend(run, timing, usage_of(error))
        try:
            await strategy.on_error(error, timing.attempt, run.state)
        except Exception:
            log.warning("on_error of %s failed", type(strategy).__name__, exc_info=True)
        if self.termination.kind != "completed":
            return self._fatal(run)
        if info.is_rate_limit:
            if self._is_throttled_too_often(run):
                text = f"Exceeded {retry.max_rate_limit_retries} rate-limit retries for {run.item.item_id} (last error: {error_text(error)})"
                last = RateLimitRetriesExceeded(text, item_id=run.item.item_id, rate_limit_retries=retry.max_rate_limit_retries)
                run.failed(last, self._default.classify(last))
                return self._fatal(run)
            self._active.discard(run)
            # The driver reads the reply itself, if there is one: its headers, and what the provider says of the quota.
            return error if status_of(error) in (429, 529) else batch.Throttled(error_text(error), retry_after=info.suggested_wait)
        if not info.is_retryable:
            return self._fatal(run)
        if self._config.wait_for_outages and info.error_category in _OUTAGES:
            self._active.discard(run)
            return batch.Transient(f"{info.error_category}|{error_text(error)}")
        if timing.attempt >= retry.max_attempts:
            return self._fatal(run)
        wait = min(retry.max_wait, retry.initial_wait * retry.exponential_base ** min(timing.attempt - 1, 64))
        wait = max(info.suggested_wait or 0.0, wait * (random.uniform(0.5, 1.0) if retry.jitter else 1.0))
        if deadline is not None and time.monotonic() + wait >= deadline:
            over = ItemDeadlineExceeded("End-to-end item deadline exceeded", item_id=run.item.item_id)
            run.failed(over, self._default.classify(over))
            return self._fatal(run)
        timing.retry_backoff_seconds = wait
        self._active.discard(run)
        await asyncio.sleep(wait)
        return batch.Invalid(f"{info.error_category}|{error_text(error)}")

    def _too_late(self) -> _TooLate:
        return _TooLate(f"{ErrorCategory.BATCH_ABORTED.value}|the batch has ended")

    def _fatal(self, run: ItemRun) -> batch.Fatal:
        if run.category in self._config.guardrails.abort_on_error_categories:
            reason = f"Fail-fast triggered by item {run.item.item_id!r} with category {str(run.category)!r}"
            self._terminate(BatchTermination("fail_fast", reason, str(run.category), run.item.item_id))
        reason = "failed" if run.exception is None else error_text(run.exception)
        return batch.Fatal(f"{run.category}|{reason}")

    def _is_throttled_too_often(self, run: ItemRun) -> bool:
        """As often, and for as long, as cooldowns of the configured time would have taken: shorter ones must not fail items earlier."""
        config, now = self._config, time.monotonic()
        run.rejections += 1
        run.first_rejected = run.first_rejected or now
        retries = config.retry.max_rate_limit_retries
        return run.rejections > retries and now - run.first_rejected >= retries * config.rate_limit.cooldown_seconds

    def _info_of(self, strategy: LLMCallStrategy[Any], error: Exception) -> ErrorInfo:
        for kind, category in _OWN_ERRORS.items():
            if isinstance(error, kind):
                return ErrorInfo(False, False, False, category.value)
        if isinstance(error, (ItemDeadlineExceeded, BatchAbortedError)):
            return self._default.classify(error)
        classifier = self._classifier or strategy.recommended_error_classifier() or self._default
        try:
            return classifier.classify(error)
        except Exception:
            log.warning("the classifier failed", exc_info=True)
            return ErrorInfo(False, False, False, ErrorCategory.CLASSIFIER_ERROR.value)

    def _spend(self, run: ItemRun, timing: AttemptTiming, usage: dict[str, int]) -> None:
        guards = self._config.guardrails
        if usage:
            run.add_usage(usage)
        if not guards.budget_configured:
            return
        self._tokens += total_of(usage)
        if guards.cost_function is not None:
            facts = AttemptUsage(run.item.item_id, timing.attempt, timing.try_number, run.item.strategy, usage, timing.success)
            self._cost += guards.cost_function(facts)
        reason = None
        if guards.max_total_tokens is not None and self._tokens >= guards.max_total_tokens:
            reason = f"Token budget reached: {self._tokens} of {guards.max_total_tokens} tokens used"
        elif guards.max_total_cost is not None and self._cost >= guards.max_total_cost:
            reason = f"Cost budget reached: {self._cost:g} of {guards.max_total_cost:g} used"
        if reason is not None:
            category = ErrorCategory.BATCH_BUDGET_EXCEEDED.value
            self._terminate(BatchTermination("budget_exceeded", reason, category, run.item.item_id))

    def _terminate(self, termination: BatchTermination, at_once: bool = False) -> None:
        if self.termination.kind == "completed":
            self.termination = termination
            self.stopped.set()
        if self._run is not None and (at_once or self._config.guardrails.abort_mode is AbortMode.CANCEL_ACTIVE):
            self._run.shut_down()

    def _shut_down_if_idle(self) -> None:
        if self.termination.kind != "completed" and not self._active and self._run is not None:
            self._run.shut_down()

    def _result_of(self, run: ItemRun, outcome: batch.Outcome) -> WorkItemResult[Any, Any]:
        if run.is_done:
            return run.result()
        if outcome.kind == "unfinished" or run.exception is None:
            if outcome.kind == "unfinished" and self.termination.kind == "completed":
                # The provider refuses for good: a spend cap, or a quota of a day.
                self.termination = BatchTermination("fail_fast", outcome.error, ErrorCategory.QUOTA_EXHAUSTED.value)
                self.stopped.set()
            if run.category == ErrorCategory.RATE_LIMIT and self.termination.error_category == ErrorCategory.QUOTA_EXHAUSTED:
                run.category = ErrorCategory.QUOTA_EXHAUSTED.value
                return run.result()
            return self._ended(run, outcome.error)
        return run.result()

    def _ended(self, run: ItemRun, reason: str | None) -> WorkItemResult[Any, Any]:
        kind, category = _ENDINGS.get(self.termination.kind, _ENDINGS["fail_fast"])
        error = kind(self.termination.reason or reason or "The batch has ended", item_id=run.item.item_id)
        run.aborted(error, ErrorInfo(False, False, False, category.value))
        return run.result()

    async def _published(self, result: WorkItemResult[Any, Any]) -> WorkItemResult[Any, Any]:
        if self._on_result is not None:
            await self._on_result(result)
        return result

    async def _prepare(self, strategy: LLMCallStrategy[Any]) -> None:
        """Prepare a strategy once; others wait for it."""
        found = self._prepared.get(strategy)
        if found is None:
            found = self._prepared[strategy] = asyncio.ensure_future(self._begin(strategy))
        await asyncio.shield(found)

    async def _begin(self, strategy: LLMCallStrategy[Any]) -> None:
        await strategy.prepare()
        request = getattr(strategy, "request_concurrency", None)
        if request is not None and inspect.iscoroutinefunction(request):
            await request(self._config.workers)

    async def _clean_up(self) -> None:
        for strategy, prepared in self._prepared.items():
            if not prepared.done():
                prepared.cancel()
                await asyncio.gather(prepared, return_exceptions=True)
            if prepared.cancelled() or prepared.exception() is not None:
                continue
            try:
                await strategy.cleanup()
            except Exception:
                log.warning("cleanup of %s failed", type(strategy).__name__, exc_info=True)
