"""A strategy for tests, which calls no provider."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from ._results import TOutput
from ._strategies import ArtifactIdentity, LLMCallStrategy, RetryState


class FakeStrategy(LLMCallStrategy[TOutput]):
    """Answers by a function of the prompt, or with a fixed value.

    >>> import asyncio
    >>> from tollgate.compat.batch_llm import process_prompts
    >>> from tollgate.compat.batch_llm.testing import FakeStrategy
    >>> strategy = FakeStrategy(lambda prompt: prompt.upper(), token_usage={"input_tokens": 2, "output_tokens": 1})
    >>> batch = asyncio.run(process_prompts(strategy, ["hello", "world"]))
    >>> list(batch.in_input_order().outputs())
    ['HELLO', 'WORLD']
    """

    def __init__(self, response: Callable[[str], TOutput] | TOutput, *, token_usage: Mapping[str, int] | None = None, latency: float = 0.0) -> None:
        self.artifact_identity = ArtifactIdentity(provider="fake")
        self._response, self._usage, self._latency = response, dict(token_usage or {}), latency

    async def execute(self, prompt: str, attempt: int, timeout: float, state: RetryState | None = None) -> Any:
        if self._latency:
            await asyncio.sleep(self._latency)
        output = self._response(prompt) if callable(self._response) else self._response
        return output, dict(self._usage)
