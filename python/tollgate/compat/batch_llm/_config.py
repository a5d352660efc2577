"""The settings of async-batch-llm: which of them say something here, and which the pace finds out by itself."""

from __future__ import annotations

import enum
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any


def _check(condition: bool, text: str) -> None:
    if not condition:
        raise ValueError(text)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and not math.isnan(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_time(value: Any) -> bool:
    return value is None or (_is_number(value) and value > 0)


@dataclass
class RetryConfig:
    """How often a call is tried, and the waits between. A 429 is no attempt.

    >>> from tollgate.compat.batch_llm import RetryConfig
    >>> RetryConfig(max_attempts=5, initial_wait=0.5).max_wait
    60.0
    """

    max_attempts: int = 3
    initial_wait: float = 1.0
    max_wait: float = 60.0
    exponential_base: float = 2.0
    jitter: bool = True
    max_rate_limit_retries: int = 20

    def __post_init__(self) -> None:
        self.validate()

    def validate(self) -> None:
        """Raise a ValueError if a setting makes no sense."""
        _check(_is_count(self.max_attempts) and 1 <= self.max_attempts <= 1_000_000, f"max_attempts must be >= 1 (got {self.max_attempts!r}).")
        _check(_is_number(self.initial_wait) and self.initial_wait > 0, f"initial_wait must be > 0 (got {self.initial_wait!r}).")
        text = f"max_wait must be >= initial_wait (got max_wait={self.max_wait!r}, initial_wait={self.initial_wait!r})."
        _check(_is_number(self.max_wait) and self.max_wait >= self.initial_wait, text)
        base = self.exponential_base
        _check(_is_number(base) and base >= 1, f"exponential_base must be >= 1 (got {base!r}).")
        retries = self.max_rate_limit_retries
        _check(_is_count(retries) and retries >= 0, f"max_rate_limit_retries must be >= 0 (got {retries!r}).")


@dataclass
class RateLimitConfig:
    """Cooldowns and slow starts. They are learned here, so that only a warning says that they were set.

    >>> from tollgate.compat.batch_llm import RateLimitConfig
    >>> RateLimitConfig().cooldown_seconds
    300.0
    """

    cooldown_seconds: float = 300.0
    slow_start_items: int = 50
    slow_start_initial_delay: float = 2.0
    slow_start_final_delay: float = 0.1
    backoff_multiplier: float = 1.5
    max_cooldown_seconds: float = 600.0

    def __post_init__(self) -> None:
        self.validate()
        if any(getattr(self, one.name) != one.default for one in fields(self)):
            warn_ignored("RateLimitConfig")

    def validate(self) -> None:
        """Raise a ValueError if a setting makes no sense."""
        for name in ("cooldown_seconds", "slow_start_items", "slow_start_initial_delay", "slow_start_final_delay", "max_cooldown_seconds"):
            value = getattr(self, name)
            _check(_is_number(value) and value >= 0, f"{name} must be >= 0 (got {value!r}).")
        multiplier = self.backoff_multiplier
        _check(_is_number(multiplier) and multiplier >= 1, f"backoff_multiplier must be >= 1.0 (got {multiplier!r}).")


_warned: set[str] = set()


def warn_ignored(name: str) -> None:
    """Say once for each setting that it does nothing here."""
    if name not in _warned:
        _warned.add(name)
        text = f"{name} is ignored by tollgate.compat.batch_llm: cooldowns and the pace are learned from the provider"
        warnings.warn(text, UserWarning, stacklevel=4)


@dataclass
class StartupRampConfig:
    """A slow start; ignored here, with a warning.

    >>> from tollgate.compat.batch_llm import StartupRampConfig
    >>> StartupRampConfig().initial_concurrency
    1
    """

    initial_concurrency: int = 1
    concurrency_step: int = 1
    ramp_interval_seconds: float = 1.0
    max_concurrency: int | None = None
    jitter_seconds: float = 0.0


class AbortMode(str, enum.Enum):
    """What becomes of calls that run when a batch is stopped.

    >>> from tollgate.compat.batch_llm import AbortMode
    >>> AbortMode("drain_active").name
    'DRAIN_ACTIVE'
    """

    DRAIN_ACTIVE = "drain_active"
    CANCEL_ACTIVE = "cancel_active"


@dataclass(frozen=True)
class AttemptUsage:
    """What one call has used, for ``GuardrailConfig.cost_function``.

    >>> from tollgate.compat.batch_llm import AttemptUsage
    >>> AttemptUsage("a", 1, 1, None, {"total_tokens": 5}, True).usage["total_tokens"]
    5
    """

    item_id: str
    attempt: int
    try_number: int
    strategy: Any
    usage: Mapping[str, int]
    success: bool


@dataclass
class GuardrailConfig:
    """What ends an item or the batch.

    >>> from tollgate.compat.batch_llm import GuardrailConfig
    >>> GuardrailConfig(max_total_tokens=20_000_000).budget_configured
    True
    """

    total_timeout_per_item: float | None = None
    batch_timeout: float | None = None
    abort_on_error_categories: frozenset[str] = frozenset()
    abort_mode: AbortMode = AbortMode.DRAIN_ACTIVE
    max_total_tokens: int | None = None
    max_total_cost: float | None = None
    cost_function: Callable[[AttemptUsage], float] | None = None

    def __post_init__(self) -> None:
        self.validate()

    @property
    def budget_configured(self) -> bool:
        """Whether there is a budget."""
        return self.max_total_tokens is not None or self.max_total_cost is not None

    def validate(self) -> None:
        """Raise a ValueError if a setting makes no sense."""
        for name in ("total_timeout_per_item", "batch_timeout", "max_total_cost"):
            _check(_is_time(getattr(self, name)), f"{name} must be > 0 or None (got {getattr(self, name)!r}).")
        tokens = self.max_total_tokens
        _check(tokens is None or (_is_count(tokens) and tokens > 0), f"max_total_tokens must be > 0 or None (got {tokens!r}).")
        has_both = self.max_total_cost is None or self.cost_function is not None
        _check(has_both, "max_total_cost needs a cost_function.")
        if isinstance(self.abort_on_error_categories, str):
            raise TypeError("abort_on_error_categories must be a set of categories, not a string.")
        self.abort_on_error_categories = frozenset(self.abort_on_error_categories)
        self.abort_mode = AbortMode(self.abort_mode)


@dataclass
class ProcessorConfig:
    """The settings of a batch. ``wait_for_outages`` is Tollgate's own: while the provider is down, items keep their attempts and wait.

    >>> from tollgate.compat.batch_llm import ProcessorConfig
    >>> config = ProcessorConfig(concurrency=20, attempt_timeout=30)
    >>> config.attempt_timeout, config.retry.max_attempts
    (30, 3)
    """

    max_workers: int | None = None
    timeout_per_item: float | None = None
    post_processor_timeout: float = 90.0
    concurrent_post_processing: bool = False
    retry: RetryConfig = field(default_factory=RetryConfig)
    rate_limit: RateLimitConfig = field(default_factory=RateLimitConfig)
    max_requests_per_minute: float | None = None
    progress_interval: int = 10
    progress_callback_timeout: float | None = 5.0
    enable_detailed_logging: bool = False
    max_queue_size: int = 0
    dry_run: bool = False
    max_provider_concurrency: int | None = None
    startup_ramp: StartupRampConfig | None = None
    guardrails: GuardrailConfig = field(default_factory=GuardrailConfig)
    attempt_timeout: float | None = None
    concurrency: int | None = None
    max_result_queue_size: int = 0
    progress_refresh_interval_seconds: float = 0.1
    max_tokens_per_minute: int | None = None
    token_estimator: Any = None
    quota_burst_seconds: float | None = None
    wait_for_outages: bool = False

    def __post_init__(self) -> None:
        if self.timeout_per_item is not None:
            text = "Pass attempt_timeout only: timeout_per_item is a deprecated alias for it."
            _check(self.attempt_timeout is None or self.attempt_timeout == self.timeout_per_item, text)
            self.attempt_timeout = self.timeout_per_item
        if self.attempt_timeout is None:
            self.attempt_timeout = 120.0
        self.timeout_per_item = self.attempt_timeout
        self.validate()
        if self.startup_ramp is not None:
            warn_ignored("StartupRampConfig")

    @property
    def workers(self) -> int:
        """How many calls may be under way."""
        return self.concurrency or self.max_workers or 5

    def validate(self) -> None:
        """Raise a ValueError if a setting makes no sense."""
        for name in ("concurrency", "max_workers", "max_provider_concurrency"):
            value = getattr(self, name)
            is_right = value is None or (_is_count(value) and 1 <= value <= 1_000_000)
            _check(is_right, f"{name} must be >= 1 or None (got {value!r}). Set config.{name} to a positive integer (typical: 5-50).")
        text = f"attempt_timeout must be > 0 (got {self.attempt_timeout!r}). Set config.attempt_timeout to a positive number in seconds."
        _check(_is_time(self.attempt_timeout), text)
        for name in ("max_queue_size", "max_result_queue_size"):
            value = getattr(self, name)
            _check(_is_count(value) and value >= 0, f"{name} must be >= 0 (got {value!r}).")
        for name in ("max_requests_per_minute", "max_tokens_per_minute", "quota_burst_seconds"):
            value = getattr(self, name)
            _check(_is_time(value) and value != math.inf, f"{name} must be > 0 or None (and finite when set) (got {value!r}).")
        self.retry.validate()
        self.rate_limit.validate()
        self.guardrails.validate()
