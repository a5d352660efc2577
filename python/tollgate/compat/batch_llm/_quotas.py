"""Limits that the settings name: requests and tokens of a minute, and calls at a time."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import time
from collections.abc import AsyncIterator
from typing import Any

import tollgate as tg

from ._config import ProcessorConfig
from ._errors import AsyncBatchLLMError, ItemDeadlineExceeded
from ._item_run import ItemRun
from ._results import AttemptTiming
from ._strategies import LLMCallStrategy


class TokenEstimatorRequired(AsyncBatchLLMError):
    """There is a limit of tokens, and nothing that estimates them.

    >>> from tollgate.compat.batch_llm import AsyncBatchLLMError, TokenEstimatorRequired
    >>> issubclass(TokenEstimatorRequired, AsyncBatchLLMError)
    True
    """


class TokenEstimateExceedsLimit(AsyncBatchLLMError):
    """A call would need more tokens than the limit ever has.

    >>> from tollgate.compat.batch_llm import AsyncBatchLLMError, TokenEstimateExceedsLimit
    >>> issubclass(TokenEstimateExceedsLimit, AsyncBatchLLMError)
    True
    """


class Quotas:
    """The limits of one batch, for each scope."""

    def __init__(self, config: ProcessorConfig) -> None:
        self._config = config
        self._sets: dict[int, tg.LimitSet] = {}
        self._semaphores: dict[object, asyncio.Semaphore] = {}
        total = config.max_provider_concurrency
        self._all = asyncio.Semaphore(total) if total is not None else None

    @contextlib.asynccontextmanager
    async def slot(self, strategy: LLMCallStrategy[Any]) -> AsyncIterator[None]:
        """Hold a place among the calls that may run at a time."""
        async with contextlib.AsyncExitStack() as held:
            if strategy.max_concurrency is not None:
                scope: object = strategy if strategy.concurrency_scope is None else strategy.concurrency_scope
                key: object = id(scope)
                if key not in self._semaphores:
                    self._semaphores[key] = asyncio.Semaphore(strategy.max_concurrency)
                await held.enter_async_context(self._semaphores[key])
            if self._all is not None:
                await held.enter_async_context(self._all)
            yield

    async def admit(self, run: ItemRun, timing: AttemptTiming, scope: object, deadline: float | None) -> tg.Lease | None:
        """Wait for the limits of a minute, to the deadline of the item; return what they have granted."""
        config = self._config
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise ItemDeadlineExceeded("End-to-end item deadline exceeded", item_id=run.item.item_id)
        if config.max_requests_per_minute is None and config.max_tokens_per_minute is None:
            return None
        demand = {} if config.max_requests_per_minute is None else {"rpm": 1}
        if config.max_tokens_per_minute is not None:
            demand["tpm"] = await self._tokens_of(run, timing)
        if id(scope) not in self._sets:
            self._sets[id(scope)] = _limits_of(config)
        limits = self._sets[id(scope)]
        begun = time.monotonic()
        try:
            lease = await limits.acquire_async(demand, timeout=left)
        except tg.Impossible as error:
            raise TokenEstimateExceedsLimit(str(error)) from error
        except tg.TimedOut:
            raise ItemDeadlineExceeded("End-to-end item deadline exceeded", item_id=run.item.item_id) from None
        timing.admission_wait_seconds = timing.quota_wait_seconds = time.monotonic() - begun
        timing.reserved_tokens = demand.get("tpm", 0)
        return lease

    async def _tokens_of(self, run: ItemRun, timing: AttemptTiming) -> int:
        item = run.item
        estimate = item.strategy.estimate_tokens(item.prompt, timing.attempt, run.state)
        if estimate is None and self._config.token_estimator is not None:
            estimate = self._config.token_estimator(item.prompt, strategy=item.strategy, attempt=timing.attempt, state=run.state)
        if inspect.isawaitable(estimate):
            estimate = await estimate
        if estimate is None:
            raise TokenEstimatorRequired("max_tokens_per_minute needs a token_estimator, in the config or in the strategy.")
        timing.estimated_input_tokens, timing.estimated_output_tokens = estimate.input_tokens, estimate.output_tokens
        return int(estimate.total_tokens)


def _limits_of(config: ProcessorConfig) -> tg.LimitSet:
    found = []
    for name, amount in (("rpm", config.max_requests_per_minute), ("tpm", config.max_tokens_per_minute)):
        if amount is None:
            continue
        seconds = 60.0
        if amount != int(amount):
            # Whole numbers only: 0.5 in a minute is 1 in two.
            amount, seconds = 1, 60.0 / amount
        burst = None
        if config.quota_burst_seconds is not None:
            burst = max(1, int(amount * config.quota_burst_seconds / seconds))
        found.append(tg.rate(name, int(amount), seconds, burst=burst))
    return tg.LimitSet(found)
