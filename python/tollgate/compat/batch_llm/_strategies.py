"""How an item is called: strategies, work items and estimates of tokens."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from ._classify import ErrorClassifier
from ._results import TOutput

_USAGE_KEYS = ("cached_input_tokens", "input_tokens", "output_tokens", "total_tokens")

TInput = TypeVar("TInput")
TItemOutput = TypeVar("TItemOutput")
TItemContext = TypeVar("TItemContext")


@dataclass
class RetryState:
    """What the attempts of one item share.

    >>> from tollgate.compat.batch_llm import RetryState
    >>> state = RetryState()
    >>> state.set("model", "large")
    >>> state.get("model"), state.get("other", 0)
    ('large', 0)
    """

    data: dict[str, Any] = field(default_factory=dict)

    def get(self, key: str, default: Any = None) -> Any:
        """Return a value."""
        return self.data.get(key, default)

    def set(self, key: str, value: Any) -> None:
        """Set a value."""
        self.data[key] = value

    def delete(self, key: str, raise_if_missing: bool = False) -> None:
        """Remove a value."""
        if raise_if_missing:
            del self.data[key]
        else:
            self.data.pop(key, None)

    def clear(self) -> None:
        """Remove all values."""
        self.data.clear()


@dataclass(frozen=True)
class TokenEstimate:
    """How many tokens a call will take.

    >>> from tollgate.compat.batch_llm import TokenEstimate
    >>> TokenEstimate(300, 200).total_tokens
    500
    """

    input_tokens: int
    output_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Both together."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True)
class CharacterTokenEstimator:
    """Estimates tokens from characters.

    >>> from tollgate.compat.batch_llm import CharacterTokenEstimator
    >>> CharacterTokenEstimator(expected_output_tokens=100)("a prompt of some 30 characters").total_tokens
    108
    """

    characters_per_token: float = 4.0
    expected_output_tokens: int = 256
    minimum_input_tokens: int = 1

    def __call__(self, prompt: str, **_: Any) -> TokenEstimate:
        inputs = max(self.minimum_input_tokens, math.ceil(len(prompt) / self.characters_per_token))
        return TokenEstimate(inputs, self.expected_output_tokens)


@dataclass(frozen=True)
class ArtifactIdentity:
    """What has made a result: results of another identity are not used again.

    >>> from tollgate.compat.batch_llm import ArtifactIdentity
    >>> ArtifactIdentity(provider="openai", model="gpt-4o-mini").model
    'gpt-4o-mini'
    """

    provider: str | None = None
    model: str | None = None
    prompt_version: str | None = None
    parser_version: str | None = None
    application_version: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


class LLMCallStrategy(ABC, Generic[TOutput]):
    """How a prompt is called: ``execute`` returns the output and the tokens, and raises what failed.

    >>> import asyncio
    >>> from tollgate.compat.batch_llm import LLMCallStrategy, process_prompts
    >>> class Upper(LLMCallStrategy[str]):
    ...     async def execute(self, prompt, attempt, timeout, state=None):
    ...         return prompt.upper(), {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    >>> batch = asyncio.run(process_prompts(Upper(), ["a", "b"], preserve_order=True))
    >>> list(batch.outputs())
    ['A', 'B']
    """

    #: The most calls of this strategy, or of its ``concurrency_scope``, at a time.
    max_concurrency: int | None = None
    concurrency_scope: object | None = None
    #: What shares the limits of the provider; each strategy has its own if it names none.
    quota_scope: object | None = None

    async def prepare(self) -> None:
        """Called once before the first call."""

    @abstractmethod
    async def execute(self, prompt: str, attempt: int, timeout: float, state: RetryState | None = None) -> Any:
        """Call the provider; return ``(output, usage)`` or ``(output, usage, metadata)``."""

    async def cleanup(self) -> None:
        """Called once after the last call."""

    async def on_error(self, exception: Exception, attempt: int, state: RetryState | None = None) -> None:
        """Called after each call that failed."""

    async def dry_run(self, prompt: str) -> Any:
        """Return what ``ProcessorConfig(dry_run=True)`` has instead of a call."""
        usage = {"input_tokens": 100, "output_tokens": 50, "total_tokens": 150}
        return f"[DRY-RUN] Mock output for prompt: {prompt[:50]}...", usage

    def recommended_error_classifier(self) -> ErrorClassifier | None:
        """Return the classifier of the provider."""
        return None

    def estimate_tokens(self, prompt: str, attempt: int, state: RetryState | None) -> Any:
        """Return a ``TokenEstimate``, an awaitable of one, or None."""
        return None


@dataclass(frozen=True)
class CallOutcome(Generic[TOutput]):
    """What the function of a ``CallableStrategy`` returns.

    >>> from tollgate.compat.batch_llm import CallOutcome
    >>> CallOutcome("text", token_usage={"total_tokens": 5}).metadata is None
    True
    """

    output: TOutput
    token_usage: Mapping[str, int] = field(default_factory=dict)
    metadata: Mapping[str, Any] | None = None


class CallableStrategy(LLMCallStrategy[TOutput]):
    """A strategy that is one asynchronous function.

    >>> import asyncio
    >>> from tollgate.compat.batch_llm import CallableStrategy, CallOutcome, call
    >>> async def invoke(prompt, *, attempt, timeout, state):
    ...     return CallOutcome(prompt[::-1])
    >>> asyncio.run(call(CallableStrategy(invoke), "abc"))
    'cba'
    """

    def __init__(
        self,
        invoke: Callable[..., Awaitable[CallOutcome[TOutput]]],
        *,
        identity: ArtifactIdentity | None = None,
        error_classifier: ErrorClassifier | None = None,
        prepare: Callable[[], Awaitable[None]] | None = None,
        cleanup: Callable[[], Awaitable[None]] | None = None,
        on_error: Callable[..., Awaitable[None]] | None = None,
        dry_run: Callable[[str], Awaitable[CallOutcome[TOutput]]] | None = None,
        max_concurrency: int | None = None,
        concurrency_scope: object | None = None,
        quota_scope: object | None = None,
        token_estimator: Any = None,
        request_concurrency: Callable[[int], Awaitable[bool]] | None = None,
    ) -> None:
        if not callable(invoke):
            raise TypeError("CallableStrategy invoke must be callable")
        if not (inspect.iscoroutinefunction(invoke) or inspect.iscoroutinefunction(type(invoke).__call__)) and not _is_partial(invoke):
            raise TypeError("CallableStrategy invoke must be declared with async def and return CallOutcome")
        if max_concurrency is not None and (isinstance(max_concurrency, bool) or max_concurrency < 1):
            raise ValueError(f"max_concurrency must be >= 1 or None (got {max_concurrency!r})")
        self._invoke, self._classifier = invoke, error_classifier
        self._prepare, self._cleanup, self._on_error, self._dry_run = prepare, cleanup, on_error, dry_run
        self._estimator, self._request_concurrency = token_estimator, request_concurrency
        self.artifact_identity = identity
        self.max_concurrency, self.concurrency_scope, self.quota_scope = max_concurrency, concurrency_scope, quota_scope

    def recommended_error_classifier(self) -> ErrorClassifier | None:
        return self._classifier

    def estimate_tokens(self, prompt: str, attempt: int, state: RetryState | None) -> Any:
        if self._estimator is None:
            return None
        return self._estimator(prompt, strategy=self, attempt=attempt, state=state)

    async def prepare(self) -> None:
        if self._prepare is not None:
            await self._prepare()

    async def cleanup(self) -> None:
        if self._cleanup is not None:
            await self._cleanup()

    async def on_error(self, exception: Exception, attempt: int, state: RetryState | None = None) -> None:
        if self._on_error is not None:
            await self._on_error(exception, attempt, state)

    async def request_concurrency(self, concurrency: int) -> bool:
        """Say how many calls there will be; true if the function was told."""
        return await self._request_concurrency(concurrency) if self._request_concurrency is not None else False

    async def execute(self, prompt: str, attempt: int, timeout: float, state: RetryState | None = None) -> Any:
        return _parts_of(await self._invoke(prompt, attempt=attempt, timeout=timeout, state=state))

    async def dry_run(self, prompt: str) -> Any:
        if self._dry_run is None:
            return await super().dry_run(prompt)
        return _parts_of(await self._dry_run(prompt))


def _is_partial(invoke: Any) -> bool:
    inner = getattr(invoke, "func", None)
    return inner is not None and inspect.iscoroutinefunction(inner)


def _parts_of(outcome: Any) -> tuple[Any, dict[str, int], dict[str, Any] | None]:
    if not isinstance(outcome, CallOutcome):
        raise TypeError(f"CallableStrategy callbacks must resolve to CallOutcome (got {type(outcome).__name__})")
    usage, metadata = outcome.token_usage, outcome.metadata
    if not isinstance(usage, Mapping):
        raise TypeError("CallOutcome.token_usage must be a mapping")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise TypeError("CallOutcome.metadata must be a mapping or None")
    unknown = sorted(str(name) for name in usage if name not in _USAGE_KEYS)
    if unknown:
        text = f"Unknown CallOutcome.token_usage key(s): {', '.join(unknown)}. Supported keys: {', '.join(_USAGE_KEYS)}."
        raise ValueError(text)
    for name, count in usage.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise ValueError(f"CallOutcome.token_usage[{name!r}] must be a non-negative integer (got {count!r})")
    return outcome.output, dict(usage), None if metadata is None else dict(metadata)


@dataclass
class LLMWorkItem(Generic[TInput, TItemOutput, TItemContext]):
    """An item of a ``ParallelBatchProcessor``.

    >>> from tollgate.compat.batch_llm import CallableStrategy, CallOutcome, LLMWorkItem
    >>> async def invoke(prompt, *, attempt, timeout, state):
    ...     return CallOutcome(prompt)
    >>> LLMWorkItem("a", CallableStrategy(invoke), "a prompt").context is None
    True
    """

    item_id: str
    strategy: LLMCallStrategy[TItemOutput]
    prompt: str = ""
    context: TItemContext | None = None
    submission_index: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.item_id, str) or not self.item_id.strip():
            text = f"item_id must be a non-empty string (got {type(self.item_id).__name__}: {self.item_id!r})."
            raise ValueError(text)
        check_strategy(self.strategy)


def check_strategy(strategy: Any) -> None:
    """Raise a TypeError if it is no strategy."""
    if not isinstance(strategy, LLMCallStrategy):
        text = f"strategy must be an LLMCallStrategy, got {type(strategy).__name__}. Wrap your client with CallableStrategy(fn)."
        raise TypeError(text)
