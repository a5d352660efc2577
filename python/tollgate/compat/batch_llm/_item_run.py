"""One item of a batch while it runs: its calls, what they used, and what they raised."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ._classify import ErrorCategory, ErrorInfo, TimeoutCategory
from ._errors import FrameworkTimeoutError, ItemDeadlineExceeded
from ._results import AttemptTiming, WorkItemResult, WorkItemTiming, no_usage
from ._strategies import LLMWorkItem, RetryState

log = logging.getLogger("tollgate.compat.batch_llm")

_T = TypeVar("_T")


@dataclass(eq=False)
class ItemRun:
    """What is known of an item."""

    item: LLMWorkItem[Any, Any, Any]
    index: int
    accepted: float = field(default_factory=time.monotonic)
    #: When its first call started.
    begun: float | None = None
    state: RetryState = field(default_factory=RetryState)
    attempts: list[AttemptTiming] = field(default_factory=list)
    usage: dict[str, int] | None = None
    rejections: int = 0
    first_rejected: float | None = None
    is_done: bool = False
    is_cancelled: bool = False
    output: Any = None
    metadata: dict[str, Any] | None = None
    exception: Exception | None = None
    category: str | None = None
    timeout_category: str | None = None
    #: The call that runs.
    task: asyncio.Future[Any] | None = None

    @property
    def is_answered(self) -> bool:
        """Whether its call has returned."""
        task = self.task
        return task is not None and task.done() and not task.cancelled() and task.exception() is None

    def add_usage(self, usage: Mapping[str, int]) -> None:
        """Count the tokens of a call."""
        sums = dict(self.usage or {})
        for name, count in usage.items():
            sums[name] = sums.get(name, 0) + count
        self.usage = sums

    def aborted(self, exception: Exception, info: ErrorInfo) -> None:
        """Note why it ended early, and the call that ran then."""
        self.failed(exception, info)
        if self.begun is None:
            self.timeout_category = None
        if self.task is not None and not self.task.done():
            number = len(self.attempts) + 1
            facts = (type(exception).__name__, info.error_category, self.timeout_category)
            self.attempts.append(AttemptTiming(number, number, error_type=facts[0], error_category=facts[1], timeout_category=facts[2]))

    def failed(self, exception: Exception, info: ErrorInfo) -> None:
        """Note why the last call failed."""
        self.exception, self.category = exception, info.error_category
        self.timeout_category = _timeout_category(exception, info)

    def result(self) -> WorkItemResult[Any, Any]:
        """Return what became of it."""
        timing = WorkItemTiming(time.monotonic() - self.accepted, self.attempts, None if self.is_done else self.timeout_category)
        found = WorkItemResult[Any, Any](
            self.item.item_id,
            self.is_done,
            context=self.item.context,
            admission_wait_seconds=timing.admission_wait_seconds,
            timing=timing,
            submission_index=self.index,
        )
        if self.is_done:
            found.output, found.metadata, found.token_usage = self.output, self.metadata, self.usage or {}
        else:
            found.token_usage = {**no_usage(), **(self.usage or {})}
            found.exception, found.error_category = self.exception, self.category
            found.error = error_text(self.exception) if self.exception is not None else "not finished"
        return found

    async def within(self, call: Awaitable[_T], limit: float, deadline: float | None) -> _T:
        """Await a call for so many seconds, or to the deadline of the item."""
        begun = time.monotonic()
        left = None if deadline is None else deadline - begun
        task = self.task = asyncio.ensure_future(call)
        try:
            await asyncio.wait({task}, timeout=limit if left is None else max(0.0, min(limit, left)))
            if task.done():
                result: _T = task.result()
                return result
        finally:
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        if left is not None and left < limit:
            raise ItemDeadlineExceeded("End-to-end item deadline exceeded", item_id=self.item.item_id)
        elapsed = time.monotonic() - begun
        text = f"Framework timeout after {elapsed:.1f}s (limit: {limit:.1f}s)"
        raise FrameworkTimeoutError(text, item_id=self.item.item_id, elapsed=elapsed, timeout_limit=limit)


def error_text(exception: BaseException) -> str:
    """Return the text of an exception, as in a result."""
    return f"{type(exception).__name__}: {exception}"


def _timeout_category(exception: Exception, info: ErrorInfo) -> str | None:
    if isinstance(exception, FrameworkTimeoutError) or info.error_category == ErrorCategory.BATCH_DEADLINE_EXCEEDED:
        return TimeoutCategory.FRAMEWORK_EXECUTION_TIMEOUT.value
    if isinstance(exception, ItemDeadlineExceeded):
        return TimeoutCategory.FRAMEWORK_TOTAL_ITEM_TIMEOUT.value
    return TimeoutCategory.PROVIDER_OR_TRANSPORT_TIMEOUT.value if info.is_timeout else None


def usage_of(exception: Exception) -> dict[str, int]:
    """Return the tokens that a call has used although it failed."""
    usage = getattr(exception, "token_usage", None)
    return checked_usage(usage) if isinstance(usage, Mapping) else {}


def checked_usage(usage: Mapping[str, Any]) -> dict[str, int]:
    """Return the whole numbers of a usage."""
    return {str(name): count for name, count in usage.items() if isinstance(count, int) and not isinstance(count, bool) and count >= 0}
