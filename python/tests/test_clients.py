"""Transports under the SDKs of OpenAI and Anthropic, against a provider over TCP."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

import anthropic
import httpx
import httpx2
import openai
import pytest
from mock_provider import mock_provider

import tollgate as tg
import tollgate.httpx
import tollgate.httpx2

MONTH = 30 * 86_400
REQUESTS, TOKENS = 100_000, 10_000_000
PROMPT = [{"role": "user", "content": "How far is it?"}]


def books(slots: int = 4) -> tg.LimitSet:
    """Returns a set whose amounts do not come back during a test, so that they tell what was used."""
    return tg.LimitSet([tg.fixed_window("rpd", REQUESTS, MONTH), tg.fixed_window("tpd", TOKENS, MONTH), tg.resource("slots", slots)])


def used(limits: tg.LimitSet) -> tuple[int, int, int]:
    status = limits.peek()
    free = limits["slots"].capacity
    return REQUESTS - status["rpd"].available, TOKENS - status["tpd"].available, free - status["slots"].available


def openai_client(url, limits, **options):
    transport = tollgate.httpx2.Transport(limits, **options)
    return openai.OpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0, http_client=httpx2.Client(transport=transport))


def openai_async_client(url, limits, **options):
    transport = tollgate.httpx2.AsyncTransport(limits, **options)
    return openai.AsyncOpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0, http_client=httpx2.AsyncClient(transport=transport))


def anthropic_client(url, limits, **options):
    transport = tollgate.httpx2.Transport(limits, **options)
    return anthropic.Anthropic(api_key="k", base_url=url, max_retries=0, http_client=httpx2.Client(transport=transport))


def anthropic_async_client(url, limits, **options):
    transport = tollgate.httpx2.AsyncTransport(limits, **options)
    return anthropic.AsyncAnthropic(api_key="k", base_url=url, max_retries=0, http_client=httpx2.AsyncClient(transport=transport))


def chat(client, number):
    client.chat.completions.create(model="m", messages=[{"role": "user", "content": f"question {number}"}])


def chat_stream(client, number):
    messages = [{"role": "user", "content": f"question {number}"}]
    chunks = list(client.chat.completions.create(model="m", messages=messages, stream=True, stream_options={"include_usage": True}))
    assert chunks[-1].usage.total_tokens > 0


def responses(client, number):
    client.responses.create(model="m", input=f"question {number}")


def responses_stream(client, number):
    events = list(client.responses.create(model="m", input=f"question {number}", stream=True))
    assert events[-1].type == "response.completed"


def messages(client, number):
    client.messages.create(model="m", max_tokens=200, messages=[{"role": "user", "content": f"question {number}"}])


def messages_stream(client, number):
    asked = [{"role": "user", "content": f"question {number}"}]
    events = list(client.messages.create(model="m", max_tokens=200, messages=asked, stream=True))
    assert events[-1].type == "message_stop"


async def chat_async(client, number):
    await client.chat.completions.create(model="m", messages=[{"role": "user", "content": f"question {number}"}])


async def chat_stream_async(client, number):
    asked = [{"role": "user", "content": f"question {number}"}]
    stream = await client.chat.completions.create(model="m", messages=asked, stream=True, stream_options={"include_usage": True})
    assert [chunk async for chunk in stream][-1].usage.total_tokens > 0


async def responses_stream_async(client, number):
    stream = await client.responses.create(model="m", input=f"question {number}", stream=True)
    assert [event async for event in stream][-1].type == "response.completed"


async def messages_async(client, number):
    await client.messages.create(model="m", max_tokens=200, messages=[{"role": "user", "content": f"question {number}"}])


async def messages_stream_async(client, number):
    asked = [{"role": "user", "content": f"question {number}"}]
    stream = await client.messages.create(model="m", max_tokens=200, messages=asked, stream=True)
    assert [event async for event in stream][-1].type == "message_stop"


SYNC = {
    "openai": (openai_client, [chat, chat_stream, responses, responses_stream]),
    "anthropic": (anthropic_client, [messages, messages_stream]),
}
ASYNC = {
    "openai": (openai_async_client, [chat_async, chat_stream_async, responses_stream_async]),
    "anthropic": (anthropic_async_client, [messages_async, messages_stream_async]),
}


def run_all(style, kind, url, limits, count, **options):
    """Makes calls of every form, eight at a time."""
    if kind == "sync":
        make, forms = SYNC[style]
        client = make(url, limits, **options)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda number: forms[number % len(forms)](client, number), range(count)))
        return

    async def main():
        make, forms = ASYNC[style]
        client = make(url, limits, **options)
        free = asyncio.Semaphore(8)

        async def call(number):
            async with free:
                await forms[number % len(forms)](client, number)

        await asyncio.gather(*(call(number) for number in range(count)))

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("style", ["openai", "anthropic"])
def test_p59_usage_is_settled_to_the_token_through_429s(style, kind):
    limits = books()
    with mock_provider("--style", style, "--outage", "429/4", "--no-advice", "--no-headers") as provider:
        # Advice of whole seconds would take a minute; without it the first cooldown is shortened here.
        run_all(style, kind, provider.url, limits, 24, retries=50, cooldown_max=0.02)
        stats = provider.stats()
    assert stats["ok"] == 24, "nothing is lost, nothing is doubled"
    assert stats["calls"] > 24, "the provider refused some"
    assert stats["concurrent_max"] <= 4, "the limits hold"
    assert used(limits) == (stats["calls"], stats["tokens"], 0)


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_the_provider_refuses_none_under_limits_that_are_right(kind):
    limits = tg.LimitSet([tg.per_second("rps", 20, burst=5), tg.fixed_window("tpd", TOKENS, MONTH), tg.resource("slots", 8)])
    # At most 8 calls are on the way, so that no delay makes more than 8 + 5 + 20/s arrive.
    with mock_provider("--rps", "25", "--burst", "20") as provider:
        run_all("openai", kind, provider.url, limits, 60)
        stats = provider.stats()
    assert (stats["ok"], stats["rejected"], stats["calls"]) == (60, 0, 60)
    assert TOKENS - limits.peek()["tpd"].available == stats["tokens"]


def test_a_provider_with_a_rate_of_its_own_is_learned_from_its_replies():
    limits = books(slots=2)
    with mock_provider("--rps", "10", "--burst", "2") as provider:
        run_all("openai", "sync", provider.url, limits, 20, retries=50)
        stats = provider.stats()
    assert stats["ok"] == 20
    assert used(limits) == (stats["calls"], stats["tokens"], 0)


@pytest.mark.parametrize(("style", "status"), [("openai", "429"), ("anthropic", "429"), ("anthropic", "529")])
def test_p59_a_refusal_cools_down_all_callers_and_uses_no_tokens(style, status):
    limits = books()
    with mock_provider("--style", style, "--outage", f"{status}/1") as provider:
        client = SYNC[style][0](provider.url, limits)
        with pytest.raises((openai.APIStatusError, anthropic.APIStatusError)) as refused:
            SYNC[style][1][0](client, 1)
    assert str(refused.value.status_code) == status
    assert limits.peek().cooling_for > 0
    assert used(limits) == (1, 0, 0)


def test_p59_a_refusal_cools_down_in_an_event_loop():
    limits = books()

    async def main(url):
        client = openai_async_client(url, limits)
        with pytest.raises(openai.RateLimitError):
            await chat_async(client, 1)

    with mock_provider("--outage", "429/1") as provider:
        asyncio.run(main(provider.url))
    assert limits.peek().cooling_for > 0
    assert used(limits) == (1, 0, 0)


def test_a_call_waits_within_the_timeout_of_its_client():
    limits = books(slots=1)
    with mock_provider() as provider, limits.acquire(rpd=1):
        client = openai_client(provider.url, limits)
        with pytest.raises(openai.APITimeoutError) as late:
            client.with_options(timeout=0.05).responses.create(model="m", input="x")
        cause = late.value.__cause__
        assert isinstance(cause, tollgate.httpx2.AcquireTimeout) and isinstance(cause, tg.TimedOut)
        assert cause.limited_by.name == "slots"

        async def main():
            client = openai_async_client(provider.url, limits, timeout=0.05)
            with pytest.raises(openai.APITimeoutError):
                await responses_stream_async(client, 1)

        asyncio.run(main())
        assert provider.stats()["calls"] == 0
    assert used(limits) == (1, 0, 0)


def test_p59_a_stream_that_is_closed_early_counts_as_it_was_reserved():
    limits = books()
    with mock_provider("--style", "anthropic") as provider:
        stream = anthropic_client(provider.url, limits).messages.create(model="m", max_tokens=200, messages=PROMPT, stream=True)
        assert next(iter(stream)).type == "message_start"
        stream.close()

        async def main():
            client = anthropic_async_client(provider.url, limits)
            async with await client.messages.create(model="m", max_tokens=200, messages=PROMPT, stream=True) as stream:
                await anext(stream.__aiter__())

        asyncio.run(main())
    requests, tokens, slots = used(limits)
    # The whole stream may have arrived in one piece, and then its usage is known.
    assert requests == 2 and slots == 0 and 22 <= tokens <= 2 * 211


def test_p59_a_stream_that_breaks_is_read_to_its_error():
    limits = books()
    with mock_provider("--style", "anthropic", "--outage", "midway/1") as provider:
        with pytest.raises(anthropic.APIStatusError):
            messages_stream(anthropic_client(provider.url, limits), 1)
    assert used(limits)[0::2] == (1, 0)
    assert limits.peek().cooling_for > 0, "it said that it is overloaded"


def test_p59_a_connection_that_is_lost_keeps_the_reservation_and_one_that_never_was_does_not():
    limits = books()
    with mock_provider("--outage", "reset/1") as provider:
        with pytest.raises(openai.APIConnectionError):
            responses(openai_client(provider.url, limits), 1)
    requests, tokens, slots = used(limits)
    assert requests == 1 and tokens > 500 and slots == 0
    with pytest.raises(openai.APIConnectionError):
        responses(openai_client("http://127.0.0.1:1", limits), 1)
    assert used(limits) == (requests, tokens, 0)


def test_p59_retries_of_the_sdk_are_reported_once(caplog):
    limits = books()
    with mock_provider("--outage", "429/2", "--no-advice", "--no-headers") as provider:
        client = openai_client(provider.url, limits, cooldown_max=0.01).with_options(max_retries=3)
        with caplog.at_level(logging.WARNING, logger="tollgate"):
            for number in range(4):
                responses(client, number)
        stats = provider.stats()
    assert [record.message[:28] for record in caplog.records if record.name == "tollgate"] == ["the client retries by itself"]
    assert used(limits) == (stats["calls"], stats["tokens"], 0)


def test_openai_with_a_client_of_httpx():
    limits = books()
    with mock_provider() as provider:
        transport = tollgate.httpx.Transport(limits)
        client = openai.OpenAI(api_key="k", base_url=f"{provider.url}/v1", max_retries=0, http_client=httpx.Client(transport=transport))
        chat(client, 1)
        chat_stream(client, 2)
        assert used(limits) == (2, provider.stats()["tokens"], 0)
