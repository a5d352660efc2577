"""Results on disk: the journal of a batch, by the names of async-batch-llm."""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import asdict
from os import PathLike, fspath
from typing import Any

from ._errors import ArtifactFormatError, ArtifactIdentityError, ArtifactSerializationError, ResultSerializationError
from ._results import BatchResult, WorkItemResult, json_value, no_usage
from ._strategies import ArtifactIdentity, LLMWorkItem


class ResumePolicy(str, enum.Enum):
    """Which results of earlier runs are used again.

    >>> from tollgate.compat.batch_llm import ResumePolicy
    >>> ResumePolicy("reuse_successes").name
    'REUSE_SUCCESSES'
    """

    NONE = "none"
    REUSE_SUCCESSES = "reuse_successes"
    REUSE_ALL = "reuse_all"


class JsonlArtifactStore:
    """Results in a file, on disk before they are returned: a journal of ``tollgate.batch``, whose lines have its format.

    >>> import asyncio, os, tempfile
    >>> from tollgate.compat.batch_llm import ArtifactIdentity, CallableStrategy, CallOutcome, JsonlArtifactStore, ResumePolicy, process_prompts
    >>> async def invoke(prompt, *, attempt, timeout, state):
    ...     return CallOutcome(prompt.upper())
    >>> async def main(path):
    ...     store = JsonlArtifactStore(path, identity=ArtifactIdentity(model="m"))
    ...     return await process_prompts(CallableStrategy(invoke), ["a"], artifact_store=store, resume=ResumePolicy.REUSE_SUCCESSES)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for _ in range(2):
    ...         [result] = asyncio.run(main(os.path.join(folder, "a.jsonl"))).results
    ...         print(result.output, result.replayed_from_artifact)
    A False
    A True
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        identity: ArtifactIdentity | None = None,
        user_metadata: Mapping[str, Any] | None = None,
        include_output: bool = True,
        include_metadata: bool = True,
        include_prompt: bool = False,
        include_context: bool = False,
        context_in_identity: bool = True,
        encoder: Callable[[Any], Any] | None = None,
        output_decoder: Callable[[Any], Any] | None = None,
        context_decoder: Callable[[Any], Any] | None = None,
        context_fingerprinter: Callable[[Any], Any] | None = None,
        cost_calculator: Callable[..., Any] | None = None,
        fsync: bool = False,
    ) -> None:
        # A journal is always synced, and has no place for facts about the whole file.
        del user_metadata, cost_calculator, fsync, context_decoder
        self.path = fspath(path)
        self.identity = identity
        self._has = {"output": include_output, "metadata": include_metadata, "prompt": include_prompt, "context": include_context}
        self._context_in_identity, self._fingerprinter = context_in_identity, context_fingerprinter
        self._encoder, self._decoder = encoder, output_decoder
        self._lines: dict[str, dict[str, Any]] = {}
        self._runs: dict[str, int] = {}

    def begin(self) -> None:
        """Read what is there, before a batch."""
        self._lines = {line["id"]: line for line in _lines_of(self.path)}
        self._runs = {}

    def key_of(self, item: LLMWorkItem[Any, Any, Any], policy: ResumePolicy) -> str:
        """Return the id of an item in the journal: it is another one if the prompt, the context or the identity is."""
        identity = self.identity or getattr(item.strategy, "artifact_identity", None)
        if identity is None:
            kind = type(item.strategy).__name__
            text = f"{kind} cannot safely infer artifact identity. Pass identity=ArtifactIdentity(...) to {kind} or JsonlArtifactStore."
            raise ArtifactIdentityError(text)
        facts: dict[str, Any] = {"identity": asdict(identity), "prompt": item.prompt}
        if self._context_in_identity and item.context is not None:
            facts["context"] = item.context if self._fingerprinter is None else self._fingerprinter(item.context)
        try:
            text = json.dumps(json_value(facts, self._encoder, "$"), sort_keys=True)
        except ResultSerializationError as error:
            raise ArtifactIdentityError(f"The identity of item {item.item_id!r} is not known: {error}") from None
        key = f"{item.item_id}#{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        # The same item again, in this run or in one that uses nothing again, gets a line of its own.
        place = self._runs.get(key, 0)
        while policy is ResumePolicy.NONE and _numbered(key, place) in self._lines:
            place += 1
        self._runs[key] = place + 1
        return _numbered(key, place)

    def lookup(self, item: LLMWorkItem[Any, Any, Any], key: str, policy: ResumePolicy) -> WorkItemResult[Any, Any] | None:
        """Return the result of an earlier run."""
        line = self._lines.get(key)
        if line is None or policy is ResumePolicy.NONE:
            return None
        if line["status"] != "done" and policy is not ResumePolicy.REUSE_ALL:
            return None
        result = self._result_of(line, item.item_id)
        if result is not None:
            result.context = item.context
        return result

    def record_of(self, item: LLMWorkItem[Any, Any, Any], output: Any, usage: Mapping[str, int], metadata: Any) -> dict[str, Any]:
        """Return what the journal has of a result."""
        facts = {"output": output, "metadata": metadata, "prompt": item.prompt, "context": item.context}
        record = {"item_id": item.item_id, "token_usage": dict(usage), **{name: facts[name] for name, has in self._has.items() if has}}
        try:
            found = json_value(record, self._encoder, "$")
        except ResultSerializationError as error:
            text = f"Could not serialize artifact result for item {item.item_id!r}: {error}"
            raise ArtifactSerializationError(text) from None
        assert isinstance(found, dict)
        return found

    def _result_of(self, line: dict[str, Any], item_id: str) -> WorkItemResult[Any, Any] | None:
        if line["status"] != "done":
            category, _, error = str(line.get("reason", "")).partition("|")
            return WorkItemResult(item_id, False, error=error, token_usage=no_usage(), error_category=category, replayed_from_artifact=True)
        record = line.get("output")
        if not isinstance(record, dict) or "output" not in record:
            return None
        output = record["output"] if self._decoder is None else self._decoder(record["output"])
        usage = dict(record.get("token_usage") or {})
        return WorkItemResult(item_id, True, output=output, token_usage=usage, metadata=record.get("metadata"), replayed_from_artifact=True)

    def _results(self, successes_only: bool) -> list[WorkItemResult[Any, Any]]:
        lines = [line for line in _lines_of(self.path) if line["status"] == "done" or not successes_only]
        found = [self._result_of(line, line["id"].rpartition("#")[0]) for line in lines]
        return [result for result in found if result is not None]

    async def iter_results(self, *, successes_only: bool = False) -> AsyncIterator[WorkItemResult[Any, Any]]:
        """Return the results in the file."""
        for result in self._results(successes_only):
            yield result

    @classmethod
    def read_results(
        cls,
        path: str | PathLike[str],
        *,
        successes_only: bool = False,
        output_decoder: Callable[[Any], Any] | None = None,
        context_decoder: Callable[[Any], Any] | None = None,
    ) -> BatchResult[Any, Any]:
        """Return the results in a file."""
        del context_decoder
        return BatchResult(cls(path, output_decoder=output_decoder)._results(successes_only))

    async def close(self) -> None:
        """Do nothing: the file is open only while a batch runs."""


def _numbered(key: str, place: int) -> str:
    return key if place == 0 else f"{key}.{place + 1}"


def _lines_of(path: str) -> list[dict[str, Any]]:
    """Return the whole lines of a journal. Those that are torn are no results; the journal drops them when it is opened."""
    try:
        with open(path, "rb") as file:
            texts = file.read().split(b"\n")
    except FileNotFoundError:
        return []
    found = []
    for number, text in enumerate(texts):
        try:
            line = json.loads(text)
        except ValueError:
            line = None
        if isinstance(line, dict) and isinstance(line.get("id"), str) and line.get("status") in ("done", "failed"):
            found.append(line)
        elif number == 0 and text.strip() and (len(texts) > 1 or line is not None):
            raise ArtifactFormatError(f"{path} is no file of results of tollgate.compat.batch_llm")
    return found
