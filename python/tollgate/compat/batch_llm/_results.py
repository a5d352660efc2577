"""What became of items and batches, and the same as JSON in the format of async-batch-llm."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from os import PathLike
from typing import Any, Generic, TypedDict, TypeVar

from ._errors import ResultSerializationError

TOutput = TypeVar("TOutput")
TContext = TypeVar("TContext")

_SCHEMA = {"schema": "async-batch-llm-result", "schema_version": 1}


class TokenUsage(TypedDict, total=False):
    """The tokens of a call; a dict.

    >>> from tollgate.compat.batch_llm import TokenUsage
    >>> TokenUsage(input_tokens=3, output_tokens=2)
    {'input_tokens': 3, 'output_tokens': 2}
    """

    input_tokens: int
    output_tokens: int
    total_tokens: int
    cached_input_tokens: int


def no_usage() -> dict[str, int]:
    """Return the usage of calls that have reported none."""
    return {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0, "cached_input_tokens": 0}


def total_of(usage: Mapping[str, int]) -> int:
    """Return all tokens of a call."""
    return usage.get("total_tokens") or usage.get("input_tokens", 0) + usage.get("output_tokens", 0)


@dataclass
class AttemptTiming:
    """One call of an item.

    >>> from tollgate.compat.batch_llm import AttemptTiming
    >>> AttemptTiming(attempt=1, try_number=2).success
    False
    """

    attempt: int
    try_number: int
    total_seconds: float = 0.0
    admission_wait_seconds: float = 0.0
    startup_ramp_wait_seconds: float = 0.0
    execution_seconds: float = 0.0
    provider_seconds: float | None = None
    cooldown_wait_seconds: float = 0.0
    retry_backoff_seconds: float = 0.0
    success: bool = False
    error_type: str | None = None
    error_category: str | None = None
    timeout_category: str | None = None
    quota_wait_seconds: float = 0.0
    estimated_input_tokens: int | None = None
    estimated_output_tokens: int | None = None
    reserved_tokens: int = 0
    reported_tokens: int | None = None
    reconciliation_delta_tokens: int | None = None
    quota_scope_id: int | None = None


@dataclass
class WorkItemTiming:
    """The calls of an item, and how long it took in all.

    >>> from tollgate.compat.batch_llm import AttemptTiming, WorkItemTiming
    >>> WorkItemTiming(attempts=[AttemptTiming(1, 1, execution_seconds=0.5)]).execution_seconds
    0.5
    """

    total_seconds: float = 0.0
    attempts: list[AttemptTiming] = field(default_factory=list)
    timeout_category: str | None = None

    @property
    def execution_seconds(self) -> float:
        """The seconds of its calls."""
        return sum(one.execution_seconds for one in self.attempts)

    @property
    def admission_wait_seconds(self) -> float:
        """The seconds that it waited for quotas."""
        return sum(one.admission_wait_seconds for one in self.attempts)

    @property
    def retry_backoff_seconds(self) -> float:
        """The seconds between its attempts."""
        return sum(one.retry_backoff_seconds for one in self.attempts)


@dataclass
class WorkItemResult(Generic[TOutput, TContext]):
    """What became of one item.

    >>> from tollgate.compat.batch_llm import WorkItemResult
    >>> WorkItemResult(item_id="a", success=True, output="text").output
    'text'
    """

    item_id: str
    success: bool
    output: TOutput | None = None
    error: str | None = None
    context: TContext | None = None
    token_usage: dict[str, int] = field(default_factory=dict)
    metadata: dict[str, Any] | None = None
    exception: Exception | None = None
    admission_wait_seconds: float = 0.0
    timing: WorkItemTiming = field(default_factory=WorkItemTiming)
    submission_index: int | None = None
    error_category: str | None = None
    replayed_from_artifact: bool = False

    @property
    def quota_wait_seconds(self) -> float:
        """The seconds that it waited for quotas."""
        return sum(one.quota_wait_seconds for one in self.timing.attempts)

    def to_dict(self, *, encoder: Callable[[Any], Any] | None = None) -> dict[str, Any]:
        """Return it as values of JSON; ``encoder`` turns others into such."""
        found = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in ("timing", "exception")}
        for name in ("output", "context", "metadata"):
            found[name] = json_value(found[name], encoder, f"$.{name}")
            found[f"{name}_included"] = True
        # Categories may be members of an enum, which are texts.
        found["error_category"] = None if self.error_category is None else str(self.error_category)
        exception = self.exception
        found["exception"] = None
        if exception is not None:
            kind = type(exception)
            found["exception"] = {"module": kind.__module__, "class_name": kind.__qualname__, "message": str(exception)}
        return {**_SCHEMA, "record_type": "work_item_result", **found, "timing": asdict(self.timing)}

    @classmethod
    def from_dict(
        cls,
        data: Mapping[str, Any],
        *,
        output_decoder: Callable[[Any], Any] | None = None,
        context_decoder: Callable[[Any], Any] | None = None,
    ) -> WorkItemResult[Any, Any]:
        """Return the result that ``to_dict`` wrote. Exceptions are not made again."""
        _check_record(data, "work_item_result")
        known = {one.name for one in fields(cls)} - {"timing", "exception"}
        values = {name: value for name, value in data.items() if name in known}
        if output_decoder is not None and values.get("output") is not None:
            values["output"] = output_decoder(values["output"])
        if context_decoder is not None and values.get("context") is not None:
            values["context"] = context_decoder(values["context"])
        try:
            timing = dict(data.get("timing") or {})
            attempts = [AttemptTiming(**one) for one in timing.pop("attempts", ())]
            return WorkItemResult(**values, timing=WorkItemTiming(attempts=attempts, **timing))
        except (TypeError, ValueError) as error:
            raise ResultSerializationError(f"no work_item_result: {error}") from None


def json_value(value: Any, encoder: Callable[[Any], Any] | None, path: str) -> Any:
    """Return a value of JSON, or raise with the path of the part that is none."""
    if value is None or isinstance(value, (bool, int)) or type(value) is str:
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, (list, tuple)):
        return [json_value(one, encoder, f"{path}[{index}]") for index, one in enumerate(value)]
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {str(name): json_value(one, encoder, f"{path}.{name}") for name, one in value.items()}
    if encoder is not None:
        return json_value(encoder(value), None, path)
    kind = type(value)
    text = f"Unsupported value of type {kind.__module__}.{kind.__qualname__} at {path}; pass an encoder that returns JSON-safe data."
    raise ResultSerializationError(text)


def _check_record(data: Any, kind: str) -> None:
    expected = {**_SCHEMA, "record_type": kind}
    if not isinstance(data, Mapping) or any(data.get(name) != value for name, value in expected.items()):
        raise ResultSerializationError(f"no {kind} of schema async-batch-llm-result, version 1")


@dataclass(frozen=True)
class BatchTermination:
    """Why a batch ended: "completed", "batch_timeout", "fail_fast", "budget_exceeded" or "artifact_error".

    >>> from tollgate.compat.batch_llm import BatchTermination
    >>> BatchTermination().kind
    'completed'
    """

    kind: str = "completed"
    reason: str | None = None
    error_category: str | None = None
    triggering_item_id: str | None = None


@dataclass
class BatchResult(Generic[TOutput, TContext]):
    """What became of a batch.

    >>> from tollgate.compat.batch_llm import BatchResult, WorkItemResult
    >>> batch = BatchResult([WorkItemResult("a", True, output="text", token_usage={"input_tokens": 3, "output_tokens": 2})])
    >>> batch.succeeded, batch.total_input_tokens, list(batch.outputs()), batch.estimated_cost(1.0, 2.0)
    (1, 3, ['text'], 7e-06)
    """

    results: list[WorkItemResult[TOutput, TContext]]
    termination: BatchTermination = field(default_factory=BatchTermination)
    wall_time_seconds: float | None = None
    total_items: int = field(init=False)
    succeeded: int = field(init=False)
    failed: int = field(init=False)
    total_input_tokens: int = field(init=False)
    total_output_tokens: int = field(init=False)
    total_cached_tokens: int = field(init=False)

    def __post_init__(self) -> None:
        self.total_items = len(self.results)
        self.succeeded = sum(one.success for one in self.results)
        self.failed = self.total_items - self.succeeded
        self.total_input_tokens = self._sum("input_tokens")
        self.total_output_tokens = self._sum("output_tokens")
        self.total_cached_tokens = self._sum("cached_input_tokens")

    def _sum(self, name: str) -> int:
        return sum(one.token_usage.get(name) or 0 for one in self.results)

    @property
    def successes(self) -> list[WorkItemResult[TOutput, TContext]]:
        """The items that are done."""
        return [one for one in self.results if one.success]

    @property
    def failures(self) -> list[WorkItemResult[TOutput, TContext]]:
        """The items that have failed."""
        return [one for one in self.results if not one.success]

    @property
    def cache_hit_rate(self) -> float:
        """The percentage of the input tokens that came from a cache."""
        return 100.0 * self.total_cached_tokens / self.total_input_tokens if self.total_input_tokens else 0.0

    def effective_input_tokens(self, cached_token_rate: float | None = None) -> int:
        """Return the input tokens, with those from a cache at ``cached_token_rate`` of the price."""
        rate = 0.1 if cached_token_rate is None else cached_token_rate
        cached = self.total_cached_tokens
        return math.ceil(self.total_input_tokens - cached + cached * rate)

    def estimated_cost(self, input_per_mtok: float, output_per_mtok: float, cached_token_rate: float | None = None) -> float:
        """Return the cost at these prices for a million tokens."""
        inputs = self.effective_input_tokens(cached_token_rate)
        return (inputs * input_per_mtok + self.total_output_tokens * output_per_mtok) / 1_000_000

    def by_id(self) -> dict[str, WorkItemResult[TOutput, TContext]]:
        """Return the results by the ids of their items; of several with the same id, the last."""
        return {one.item_id: one for one in self.results}

    def outputs(self, *, with_ids: bool = False) -> Iterator[Any]:
        """Return the outputs of the items that are done, or pairs of id and output."""
        for one in self.successes:
            yield (one.item_id, one.output) if with_ids else one.output

    def in_input_order(self) -> BatchResult[TOutput, TContext]:
        """Return the same in the order of the input."""
        without = [one.item_id for one in self.results if one.submission_index is None]
        if without:
            raise ValueError(f"Cannot order results by input: {len(without)} result(s) lack submission_index ({without[0]!r}).")
        ordered = sorted(self.results, key=lambda one: one.submission_index or 0)
        return BatchResult(ordered, self.termination, self.wall_time_seconds)

    def summary(self) -> str:
        """Return a text for people."""
        extra = [len(one.timing.attempts) - 1 for one in self.results if len(one.timing.attempts) > 1]
        stopped = self.termination.kind + (f" ({self.termination.reason})" if self.termination.reason else "")
        lines = [
            "Batch summary",
            "=============",
            f"Items:     {self.total_items} total — {self.succeeded} succeeded, {self.failed} failed",
            f"Stopped:   {stopped}",
            f"Retries:   {sum(extra)} extra attempt(s) across {len(extra)} item(s)",
            f"Tokens:    in {self.total_input_tokens} (cached {self.total_cached_tokens}) · out {self.total_output_tokens}",
        ]
        lines.append("Wall time: n/a" if self.wall_time_seconds is None else f"Wall time: {self.wall_time_seconds:.2f}s")
        if self.results:
            waits = [one.admission_wait_seconds for one in self.results]
            lines.append(f"  admission wait  {_percentiles(waits)}")
            lines.append(f"  execution       {_percentiles([one.timing.execution_seconds for one in self.results])}")
        return "\n".join(lines)

    def to_dict(self, *, encoder: Callable[[Any], Any] | None = None) -> dict[str, Any]:
        """Return it as values of JSON; ``encoder`` turns others into such."""
        ending = _ending_of(self.termination)
        results = [one.to_dict(encoder=encoder) for one in self.results]
        return {**_SCHEMA, "record_type": "batch_result", "results": results, "termination": ending, "wall_time_seconds": self.wall_time_seconds}

    @classmethod
    def from_dict(
        cls,
        data: Mapping[str, Any],
        *,
        output_decoder: Callable[[Any], Any] | None = None,
        context_decoder: Callable[[Any], Any] | None = None,
    ) -> BatchResult[Any, Any]:
        """Return the batch that ``to_dict`` wrote."""
        _check_record(data, "batch_result")
        decoders = {"output_decoder": output_decoder, "context_decoder": context_decoder}
        results = [WorkItemResult.from_dict(one, **decoders) for one in data.get("results", ())]
        try:
            termination = BatchTermination(**(data.get("termination") or {}))
        except TypeError as error:
            raise ResultSerializationError(f"no batch_result: {error}") from None
        return BatchResult(results, termination, data.get("wall_time_seconds"))

    def to_json(self, *, encoder: Callable[[Any], Any] | None = None, indent: int | None = 2) -> str:
        """Return it as JSON."""
        return json.dumps(self.to_dict(encoder=encoder), indent=indent, sort_keys=True, ensure_ascii=False)

    @classmethod
    def from_json(
        cls,
        value: str | bytes,
        *,
        output_decoder: Callable[[Any], Any] | None = None,
        context_decoder: Callable[[Any], Any] | None = None,
    ) -> BatchResult[Any, Any]:
        """Return the batch that ``to_json`` wrote."""
        return cls.from_dict(_parsed(value), output_decoder=output_decoder, context_decoder=context_decoder)

    def to_jsonl(self, path: str | PathLike[str], *, encoder: Callable[[Any], Any] | None = None) -> None:
        """Write a line of JSON for each result."""
        ending = {"batch_termination": _ending_of(self.termination), "batch_wall_time_seconds": self.wall_time_seconds}
        lines = [json.dumps({**one.to_dict(encoder=encoder), **ending}, sort_keys=True, ensure_ascii=False) for one in self.results]
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)

    @classmethod
    def from_jsonl(
        cls,
        path: str | PathLike[str],
        *,
        output_decoder: Callable[[Any], Any] | None = None,
        context_decoder: Callable[[Any], Any] | None = None,
    ) -> BatchResult[Any, Any]:
        """Return the batch that ``to_jsonl`` wrote."""
        with open(path, encoding="utf-8") as file:
            lines = [_parsed(line) for line in file if line.strip()]
        decoders = {"output_decoder": output_decoder, "context_decoder": context_decoder}
        results = [WorkItemResult.from_dict(line, **decoders) for line in lines]
        if not lines:
            return BatchResult([])
        return BatchResult(results, BatchTermination(**(lines[0].get("batch_termination") or {})), lines[0].get("batch_wall_time_seconds"))


def _ending_of(termination: BatchTermination) -> dict[str, str | None]:
    return {name: None if value is None else str(value) for name, value in asdict(termination).items()}


def _parsed(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ResultSerializationError(f"no JSON: {error}") from None


def _percentiles(values: list[float]) -> str:
    ordered = sorted(values)
    at = {name: ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)] for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))}
    return "  ".join(f"{name} {value:.2f}s" for name, value in at.items())
