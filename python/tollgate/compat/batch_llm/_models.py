"""Strategies for providers that speak OpenAI's API, by a text such as ``openai:gpt-4o-mini``."""

from __future__ import annotations

import os
from typing import Any

from ._errors import EmptyResponseError
from ._results import no_usage
from ._strategies import ArtifactIdentity, LLMCallStrategy, RetryState

#: The address of a provider, and the variable with its key.
_PROVIDERS: dict[str, tuple[str | None, str]] = {
    "openai": (None, "OPENAI_API_KEY"),
    "openai-compatible": (None, "OPENAI_API_KEY"),
    "openrouter": ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "deepseek": ("https://api.deepseek.com", "DEEPSEEK_API_KEY"),
}


class _ModelCalls(LLMCallStrategy[str]):
    """Calls of one model, by the SDK of OpenAI, whose retries are off: they would hide 429s."""

    def __init__(self, provider: str, model: str, uses_responses: bool, client: Any, system: str | None, options: dict[str, Any]) -> None:
        self.artifact_identity = ArtifactIdentity(provider=provider, model=model)
        self._model, self._uses_responses, self._client = model, uses_responses, client
        self._system, self._options = system, options

    async def execute(self, prompt: str, attempt: int, timeout: float, state: RetryState | None = None) -> Any:
        if self._uses_responses:
            options = self._options if self._system is None else {"instructions": self._system, **self._options}
            reply = await self._client.responses.create(model=self._model, input=prompt, timeout=timeout, **options)
            text, usage = reply.output_text, _usage_of(reply.usage, "input_tokens", "output_tokens")
        else:
            messages = [] if self._system is None else [{"role": "system", "content": self._system}]
            messages.append({"role": "user", "content": prompt})
            reply = await self._client.chat.completions.create(model=self._model, messages=messages, timeout=timeout, **self._options)
            text = reply.choices[0].message.content if reply.choices else None
            usage = _usage_of(reply.usage, "prompt_tokens", "completion_tokens")
        if not text:
            raise EmptyResponseError(f"{self._model} has answered without a text", token_usage=usage)
        return text, usage, None

    async def cleanup(self) -> None:
        await self._client.close()


def _usage_of(usage: Any, inputs: str, outputs: str) -> dict[str, int]:
    if usage is None:
        return {}
    details = getattr(usage, f"{inputs}_details", None)
    found = {"input_tokens": getattr(usage, inputs), "output_tokens": getattr(usage, outputs), "total_tokens": usage.total_tokens}
    return {**no_usage(), **found, "cached_input_tokens": getattr(details, "cached_tokens", None) or 0}


def llm(
    model: str,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    api_surface: str | None = None,
    system_instruction: str | None = None,
    **options: Any,
) -> LLMCallStrategy[str]:
    """Return a strategy for ``"provider:model"``: openai, openai-compatible, openrouter or deepseek, with the package ``openai``.

    OpenAI's own models are called by the Responses API, unless ``api_surface="chat_completions"``. Other options go with each request.

    >>> from tollgate.compat.batch_llm import llm
    >>> llm("openai:gpt-4o-mini", api_key="any").artifact_identity.model
    'gpt-4o-mini'
    """
    provider, colon, name = model.partition(":")
    if not colon or not name:
        raise ValueError(f"model must be 'provider:model', such as 'openai:gpt-4o-mini' (got {model!r})")
    if provider not in _PROVIDERS:
        text = f"tollgate.compat.batch_llm has no provider {provider!r}: wrap your client with CallableStrategy. It has {', '.join(_PROVIDERS)}."
        raise ValueError(text)
    if provider == "openai-compatible" and base_url is None:
        raise ValueError("openai-compatible needs base_url")
    if api_surface not in (None, "responses", "chat_completions"):
        raise ValueError(f"api_surface must be 'responses' or 'chat_completions' (got {api_surface!r})")
    import openai

    own_url, variable = _PROVIDERS[provider]
    client = openai.AsyncOpenAI(api_key=api_key or os.environ.get(variable), base_url=base_url or own_url, max_retries=0)
    uses_responses = api_surface == "responses" or (api_surface is None and provider == "openai")
    return _ModelCalls(provider, name, uses_responses, client, system_instruction, options)
