"""Clients with limits, for type checkers."""

from __future__ import annotations

import anthropic
import httpx
import httpx2
import openai

import tollgate as tg
import tollgate.httpx
import tollgate.httpx2

limits = tg.LimitSet([tg.per_minute("rpm", 500), tg.per_minute("tpm", 200_000)])
transport = tollgate.httpx2.Transport(limits, estimate=tg.estimate_tokens, timeout=30, retries=3)
client = openai.OpenAI(max_retries=0, http_client=httpx2.Client(transport=transport))
later = anthropic.AsyncAnthropic(max_retries=0, http_client=httpx2.AsyncClient(transport=tollgate.httpx2.AsyncTransport(limits)))
plain = httpx.Client(transport=tollgate.httpx.Transport(limits, counts={"spend": None}))
plain_later = httpx.AsyncClient(transport=tollgate.httpx.AsyncTransport(limits, estimate=tg.Estimator(cover=0.95)))
