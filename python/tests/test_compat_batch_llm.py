"""The names of async-batch-llm: what its users write, with the import changed.

The facts of `test_results_are_those_of_async_batch_llm` were recorded from async-batch-llm 0.28.0. Where that is installed, it is tested beside ours.
"""

from __future__ import annotations

import asyncio
import re
import time
import warnings

import pytest
from batch_llm_calls import NO_WAIT, OURS, THEIRS, StatusError, ours, strategy_of, upper
from mock_provider import mock_provider

import tollgate as tg
from tollgate.compat import batch_llm as bl


async def hang(prompt, attempt, state):
    await asyncio.Event().wait()


def untimed(text):
    return None if text is None else re.sub(r"after [0-9.]+s", "after Xs", text)


# Each scenario: a function, the settings, the prompts, and for each item (success, output, error, category, attempts, timeout category).


async def bad(prompt, attempt, state):
    raise ValueError(f"bad {prompt}")


async def boom(prompt, attempt, state):
    raise RuntimeError("boom")


async def second(prompt, attempt, state):
    seen = state.get("seen", 0)
    state.set("seen", seen + 1)
    if attempt == 1:
        raise RuntimeError("first")
    return f"{prompt}{attempt}{seen}"


def throttled_once():
    calls = []

    async def call(prompt, attempt, state):
        calls.append(attempt)
        if len(calls) == 1:
            raise StatusError(429)
        return calls

    return call


async def broken(prompt, attempt, state):
    raise ConnectionError("broken")


async def empty(prompt, attempt, state):
    raise TypeError("wrong")


SCENARIOS = {
    "done": (lambda: upper, {}, ["a"], [(True, "A", None, None, 1, None)]),
    "ids": (lambda: upper, {}, [("x", "b"), ("y", "c", {"n": 1})], [(True, "B", None, None, 1, None), (True, "C", None, None, 1, None)]),
    "program error": (lambda: bad, {}, ["a"], [(False, None, "ValueError: bad a", "logic_error", 1, None)]),
    "type error": (lambda: empty, {}, ["a"], [(False, None, "TypeError: wrong", "logic_error", 1, None)]),
    "unknown": (lambda: boom, {}, ["a"], [(False, None, "RuntimeError: boom", "unknown", 3, None)]),
    "many unknown": (lambda: boom, {}, list("abcdefghij"), [(False, None, "RuntimeError: boom", "unknown", 3, None)] * 10),
    "connection": (lambda: broken, {}, list("abcdefghij"), [(False, None, "ConnectionError: broken", "connection_error", 3, None)] * 10),
    "second attempt": (lambda: second, {}, ["a"], [(True, "a21", None, None, 2, None)]),
    "429 is no attempt": (throttled_once, {}, ["a"], [(True, [1, 1], None, None, 2, None)]),
    "timeout": (
        lambda: hang,
        {"attempt_timeout": 0.1},
        ["a"],
        [(False, None, "FrameworkTimeoutError: Framework timeout after Xs (limit: 0.1s)", "framework_timeout", 3, "framework_execution_timeout")],
    ),
    "item deadline": (
        lambda: hang,
        {"guardrails": {"total_timeout_per_item": 0.5}},
        ["a"],
        [(False, None, "ItemDeadlineExceeded: End-to-end item deadline exceeded", "framework_total_item_timeout", 1, "framework_total_item_timeout")],
    ),
}


@pytest.mark.parametrize("module_name", [OURS, THEIRS])
@pytest.mark.parametrize("name", SCENARIOS)
def test_results_are_those_of_async_batch_llm(name, module_name):
    module = pytest.importorskip(module_name)
    make, settings, prompts, expected = SCENARIOS[name]
    settings = dict(settings)
    if "guardrails" in settings:
        settings["guardrails"] = module.GuardrailConfig(**settings["guardrails"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rate_limit = module.RateLimitConfig(cooldown_seconds=0.01, slow_start_items=0)
        config = module.ProcessorConfig(concurrency=2, retry=module.RetryConfig(**NO_WAIT), rate_limit=rate_limit, **settings)
        running = module.process_prompts(strategy_of(module, make()), prompts, config=config, preserve_order=True)
        batch = asyncio.run(asyncio.wait_for(running, 60))
    found = [
        (one.success, one.output, untimed(one.error), one.error_category, len(one.timing.attempts), one.timing.timeout_category)
        for one in batch.results
    ]
    assert found == expected
    assert [one.submission_index for one in batch.results] == list(range(len(prompts)))
    assert (batch.succeeded, batch.failed) == (sum(one[0] for one in expected), sum(not one[0] for one in expected))
    assert batch.total_input_tokens == 3 * batch.succeeded and batch.termination.kind == "completed"
    for prompt, one in zip(prompts, batch.results):
        assert one.context == (prompt[2] if len(prompt) == 3 else None)
        assert (one.exception is None) == one.success


def test_the_quickstart_runs_with_the_import_changed():
    from tollgate.compat.batch_llm import llm, process_prompts

    async def main(url):
        batch = await process_prompts(
            llm("openai:gpt-4o-mini", base_url=f"{url}/v1", api_key="any"), ["Summarize A", "Summarize B"], concurrency=10, progress=True
        )
        chat = await process_prompts(llm("openai-compatible:m", base_url=f"{url}/v1", api_key="any"), ["Summarize C"])
        return batch, chat

    with mock_provider() as provider:
        batch, chat = asyncio.run(main(provider.url))
        stats = provider.stats()
    lines = batch.summary().splitlines()
    assert lines[2:5] == ["Items:     2 total — 2 succeeded, 0 failed", "Stopped:   completed", "Retries:   0 extra attempt(s) across 0 item(s)"]
    assert all(isinstance(text, str) and text for text in [*batch.outputs(), *chat.outputs()])
    used = sum(one.total_input_tokens + one.total_output_tokens for one in (batch, chat))
    assert (stats["ok"], stats["tokens"]) == (3, used)


def test_429s_of_a_provider_fail_no_item():
    config = bl.ProcessorConfig(concurrency=20)
    finished = []

    async def main(url):
        strategy = bl.llm("openai:m", base_url=f"{url}/v1", api_key="any")
        prompts = [(f"id-{n}", f"question {n}", n) for n in range(60)]
        return await bl.process_prompts(strategy, prompts, config=config, progress=lambda *facts: finished.append(facts))

    with mock_provider("--rps", "40", "--burst", "4") as provider:
        batch = asyncio.run(main(provider.url))
        stats = provider.stats()
    assert (batch.succeeded, batch.total_items, stats["ok"]) == (60, 60, 60)
    assert sorted(one.context for one in batch.results) == list(range(60))
    calls = [attempt for one in batch.results for attempt in one.timing.attempts]
    throttled = [attempt for attempt in calls if attempt.error_category == "rate_limit"]
    assert len(calls) == stats["calls"] and len(throttled) == stats["rejected"] > 0
    assert {attempt.attempt for attempt in calls} == {1}, "a 429 is no attempt"
    assert [done for done, _, _ in finished] == list(range(1, 61)) and {total for _, total, _ in finished} == {60}


def test_an_item_that_is_throttled_too_often_fails():
    async def throttled(prompt, attempt, state):
        raise StatusError(429)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = bl.ProcessorConfig(retry=bl.RetryConfig(max_rate_limit_retries=2), rate_limit=bl.RateLimitConfig(cooldown_seconds=0))
    [result] = ours(throttled, ["a"], config).results
    assert isinstance(result.exception, bl.RateLimitRetriesExceeded)
    text = "RateLimitRetriesExceeded: Exceeded 2 rate-limit retries for item_0 (last error: StatusError: status 429)"
    assert (result.error, result.error_category, len(result.timing.attempts)) == (text, "rate_limit_retries_exceeded", 3)


def test_statuses_that_stay_are_not_tried_again():
    async def refuse(prompt, attempt, state):
        raise StatusError(int(prompt))

    config = bl.ProcessorConfig(retry=bl.RetryConfig(max_attempts=2, **NO_WAIT))
    batch = ours(refuse, ["400", "401", "403", "404", "500"], config, preserve_order=True)
    assert [(one.error_category, len(one.timing.attempts)) for one in batch.results] == [
        ("client_error", 1),
        ("authentication", 1),
        ("permission_denied", 1),
        ("client_error", 1),
        ("server_error", 2),
    ]


def test_limits_of_tollgate_in_a_call_are_rate_limits():
    limits = tg.LimitSet([tg.per_second("rpm", 20, burst=1)])

    async def limited(prompt, attempt, state):
        with limits.acquire({"rpm": 1}, timeout=0):
            return prompt

    batch = ours(limited, list("abcd"), bl.ProcessorConfig(concurrency=4, retry=bl.RetryConfig(max_attempts=1)))
    assert batch.succeeded == 4 and any(len(one.timing.attempts) > 1 for one in batch.results)


def test_an_outage_can_be_waited_for():
    calls = []

    async def down(prompt, attempt, state):
        calls.append(prompt)
        if len(calls) <= 12:
            raise StatusError(503)
        return prompt

    batch = ours(down, list("abcdef"), bl.ProcessorConfig(wait_for_outages=True, retry=bl.RetryConfig(max_attempts=2, **NO_WAIT)))
    assert batch.succeeded == 6 and len(calls) == 18


def test_results_come_in_the_order_of_the_input_if_asked():
    async def later(prompt, attempt, state):
        gates[prompt].set()
        if prompt == "0":
            await gates["9"].wait()
        return int(prompt)

    gates = {str(number): asyncio.Event() for number in range(10)}
    batch = ours(later, [str(number) for number in range(10)], concurrency=3, preserve_order=True)
    assert list(batch.outputs()) == list(range(10))


def test_a_stream_takes_prompts_as_there_is_room_and_can_be_left():
    taken = []

    async def source():
        for number in range(100_000):
            taken.append(number)
            yield f"p{number}"

    async def main():
        config = bl.ProcessorConfig(concurrency=2, max_queue_size=4, max_result_queue_size=4)
        stream = bl.process_stream(strategy_of(bl, upper), source(), config=config)
        seen = []
        async for result in stream:
            seen.append(result.output)
            if len(seen) == 5:
                break
        await stream.aclose()
        return seen

    assert len(asyncio.run(main())) == 5 and len(taken) < 1_000


def test_lifecycle_and_usage_of_failed_attempts():
    class Escalating(bl.LLMCallStrategy[str]):
        def __init__(self):
            self.log = []

        async def prepare(self):
            self.log.append("prepare")

        async def cleanup(self):
            self.log.append("cleanup")

        async def on_error(self, exception, attempt, state=None):
            self.log.append((str(exception), attempt))
            state.set("model", "large")

        async def execute(self, prompt, attempt, timeout, state=None):
            if state.get("model", "small") == "small":
                raise bl.TokenTrackingError("not JSON", token_usage={"input_tokens": 4, "total_tokens": 4})
            return state.get("model"), {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}, {"attempt": attempt, "timeout": timeout}

    strategy = Escalating()
    config = bl.ProcessorConfig(attempt_timeout=30, retry=bl.RetryConfig(**NO_WAIT))
    result = asyncio.run(bl.call_result(strategy, "a prompt", config=config))
    assert strategy.log == ["prepare", ("not JSON", 1), "cleanup"]
    assert (result.output, result.metadata) == ("large", {"attempt": 2, "timeout": 30})
    assert result.token_usage == {"input_tokens": 7, "output_tokens": 2, "total_tokens": 9}


def test_a_classifier_of_the_program_decides():
    class Mine(bl.ErrorClassifier):
        def classify(self, exception):
            is_throttled = "slow down" in str(exception)
            return bl.ErrorInfo(is_throttled, is_throttled, False, "mine", suggested_wait=0.001 if is_throttled else None)

    calls = []

    async def mixed(prompt, attempt, state):
        calls.append(prompt)
        if prompt == "fail" or calls.count(prompt) == 1:
            raise RuntimeError("slow down" if prompt == "wait" else "no")
        return prompt

    batch = ours(mixed, ["wait", "fail"], error_classifier=Mine(), preserve_order=True)
    assert [(one.success, one.error_category, len(one.timing.attempts)) for one in batch.results] == [(True, None, 2), (False, "mine", 1)]


def test_guardrails_end_a_batch_with_a_result_for_each_item():
    async def refuse_first(prompt, attempt, state):
        if prompt == "bad":
            raise StatusError(401)
        return prompt

    guards = bl.GuardrailConfig(abort_on_error_categories=frozenset({bl.ErrorCategory.AUTHENTICATION}))
    prompts = ["bad", *(f"p{n}" for n in range(2_000))]
    batch = ours(refuse_first, prompts, bl.ProcessorConfig(concurrency=1, guardrails=guards, max_queue_size=8))
    assert (batch.termination.kind, batch.termination.triggering_item_id, batch.total_items) == ("fail_fast", "item_0", 2_001)
    assert batch.in_input_order().results[0].error_category == "authentication"
    assert {one.error_category for one in batch.failures} == {"authentication", "batch_aborted"} and batch.failed > 1_900

    guards = bl.GuardrailConfig(max_total_tokens=8)
    batch = ours(upper, list("abcdef"), bl.ProcessorConfig(concurrency=1, guardrails=guards))
    assert (batch.termination.kind, batch.termination.reason) == ("budget_exceeded", "Token budget reached: 10 of 8 tokens used")
    assert (batch.succeeded, {type(one.exception) for one in batch.failures}) == (2, {bl.BatchBudgetExceeded})

    # Items that wait, in a cooldown or for a quota, do not hold up the end.
    async def throttle(prompt, attempt, state):
        if prompt == "a":
            await waits.wait()
            return prompt
        waits.set()
        raise bl.ProviderResponseError("slow down", code=502)

    class Slow(bl.ErrorClassifier):
        def classify(self, exception):
            return bl.ErrorInfo(True, True, False, "rate_limit", suggested_wait=3_600)

    waits = asyncio.Event()
    guards = bl.GuardrailConfig(max_total_tokens=5)
    batch = ours(throttle, ["a", "b", "c"], bl.ProcessorConfig(concurrency=2, guardrails=guards), error_classifier=Slow())
    assert (batch.succeeded, batch.termination.kind) == (1, "budget_exceeded")
    batch = ours(upper, list("abc"), bl.ProcessorConfig(concurrency=3, max_requests_per_minute=1 / 60, guardrails=guards))
    assert (batch.succeeded, batch.termination.kind) == (1, "budget_exceeded")
    guards = bl.GuardrailConfig(total_timeout_per_item=0.2)
    batch = ours(upper, list("abc"), bl.ProcessorConfig(concurrency=3, max_requests_per_minute=1 / 60, guardrails=guards))
    assert batch.succeeded == 1 and {type(one.exception) for one in batch.failures} == {bl.ItemDeadlineExceeded}

    guards = bl.GuardrailConfig(max_total_cost=0.02, cost_function=lambda used: used.usage["total_tokens"] / 1_000)
    assert ours(upper, list("abcdef"), bl.ProcessorConfig(concurrency=1, guardrails=guards)).succeeded == 4

    guards = bl.GuardrailConfig(batch_timeout=0.1)
    batch = ours(hang, list("abc"), bl.ProcessorConfig(concurrency=1, guardrails=guards))
    assert (batch.termination.kind, batch.failed) == ("batch_timeout", 3)
    assert all(isinstance(one.exception, bl.BatchDeadlineExceeded) for one in batch.results)


def test_a_batch_that_is_cancelled_ends_its_calls():
    begun, ended = [], []

    async def track(prompt, attempt, state):
        begun.append(prompt)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(prompt)

    async def main():
        task = asyncio.create_task(bl.process_prompts(strategy_of(bl, track), [str(n) for n in range(30)], concurrency=10))
        while len(begun) < 10:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert sorted(begun) == sorted(ended) and len(begun) == 10

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_pool_shares_one_pace_and_loses_no_call():
    begun, ended, asked = asyncio.Event(), [], []

    async def ask(prompt, attempt, state):
        asked.append(prompt)
        if prompt == "hang":
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(prompt)
        if prompt == "bad":
            raise ValueError("bad")
        return prompt.upper()

    async def main():
        config = bl.ProcessorConfig(concurrency=1)
        async with bl.LLMCallPool(strategy_of(bl, ask), config=config, max_pending=5) as pool:
            assert await asyncio.gather(*(pool.submit(name) for name in "abcdefgh")) == list("ABCDEFGH")
            with pytest.raises(ValueError, match="bad"):
                await pool.submit("bad")
            result = await pool.submit_result("x")
            assert (result.item_id, result.output, result.submission_index) == ("req-10", "X", None)
            left = asyncio.create_task(pool.submit("hang"))
            await begun.wait()
            with pytest.raises(bl.LLMCallError, match="submit timed out"):
                await pool.submit("late", timeout=0.05)
            left.cancel()
            with pytest.raises(asyncio.CancelledError):
                await left
            assert await pool.submit("after") == "AFTER", "a caller that has gone holds no place"
        assert ended == ["hang"] and "late" not in asked
        with pytest.raises(RuntimeError, match="Shared call pool is closed"):
            await pool.submit("a")

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_quota_that_is_spent_ends_a_batch_and_not_a_pool():
    class Response:
        status_code, headers, content = 429, {}, b'{"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}'

    class QuotaError(Exception):
        response = Response()

    async def ask(prompt, attempt, state):
        if prompt == "5":
            raise QuotaError("no")
        return prompt

    batch = ours(ask, [str(number) for number in range(50)], bl.ProcessorConfig(concurrency=1))
    assert (batch.termination.kind, batch.termination.error_category, batch.total_items) == ("fail_fast", "quota_exhausted", 50)
    assert "You exceeded your current quota" in batch.termination.reason
    result = batch.by_id()["item_5"]
    assert isinstance(result.exception, QuotaError) and result.error_category == "quota_exhausted"
    assert batch.succeeded == 5 and {one.error_category for one in batch.failures} == {"quota_exhausted", "batch_aborted"}

    async def main():
        async with bl.LLMCallPool(strategy_of(bl, ask)) as pool:
            with pytest.raises(QuotaError):
                await pool.submit("5")
            return await pool.submit("6")

    assert asyncio.run(asyncio.wait_for(main(), 60)) == "6"


def test_a_processor_takes_items_with_strategies_of_their_own():
    async def lower(prompt, attempt, state):
        return prompt.lower()

    async def main():
        seen = []
        config = bl.ProcessorConfig(concurrency=2, max_queue_size=2)
        first, second = strategy_of(bl, upper), strategy_of(bl, lower, max_concurrency=1)

        def note(result):
            seen.append(result.item_id)
            raise LookupError("a fault of the program")

        async with bl.ParallelBatchProcessor(config=config, post_processor=note) as processor:
            for number in range(20):
                await processor.add_work(bl.LLMWorkItem(f"id-{number}", first if number % 2 else second, f"Text {number}", context=number))
            batch = await processor.process_all()
            stats = await processor.get_stats()
        with pytest.raises(bl.BatchAdmissionClosedError):
            await processor.add_work(bl.LLMWorkItem("a", first, "b"))
        return batch, stats, seen

    batch, stats, seen = asyncio.run(asyncio.wait_for(main(), 60))
    assert {one.item_id: one.output for one in batch.results} == {f"id-{n}": f"TEXT {n}" if n % 2 else f"text {n}" for n in range(20)}
    assert sorted(seen) == sorted(one.item_id for one in batch.results)
    assert (stats["total"], stats["succeeded"], stats["failed"], stats["total_tokens"]) == (20, 20, 0, 100)


def test_quotas_of_the_settings_are_kept():
    config = bl.ProcessorConfig(
        concurrency=10, max_requests_per_minute=600, max_tokens_per_minute=60_000, quota_burst_seconds=0.2, token_estimator=bl.CharacterTokenEstimator(expected_output_tokens=100)
    )
    begun = time.monotonic()
    batch = ours(upper, [str(n) for n in range(7)], config)
    # A burst of 2 requests, and 10 a second for the other 5.
    assert batch.succeeded == 7 and time.monotonic() - begun >= 0.45
    assert all(one.timing.attempts[0].reserved_tokens == 101 for one in batch.results)
    [result] = ours(upper, ["a"], bl.ProcessorConfig(max_tokens_per_minute=100)).results
    assert result.error_category == "token_estimator_required"


def test_settings_that_are_learned_are_ignored_with_one_warning():
    from tollgate.compat.batch_llm import _config

    _config._warned.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            bl.RateLimitConfig(cooldown_seconds=1.0)
        bl.ProcessorConfig()
    assert [str(one.message).split(" is ignored")[0] for one in caught] == ["RateLimitConfig"]


def test_bad_input_is_refused():
    async def function(prompt, *, attempt, timeout, state):
        return bl.CallOutcome(prompt)

    strategy = bl.CallableStrategy(function)
    for prompts, error, text in [
        ("abc", TypeError, "not a string, bytes, or mapping"),
        ({"a": 1}, TypeError, "not a string, bytes, or mapping"),
        (5, TypeError, "must be an iterable"),
        ([("a", "b", "c", "d")], TypeError, "got a tuple of length 4 at index 0"),
        ([None], TypeError, "must be a string; got NoneType at index 0"),
        ([("", "b")], ValueError, "item_id must be a non-empty string"),
    ]:
        with pytest.raises(error, match=text):
            asyncio.run(bl.process_prompts(strategy, prompts))
    for options, error, text in [
        ({"concurrency": 0}, ValueError, "concurrency must be >= 1"),
        ({"config": bl.ProcessorConfig(concurrency=2), "concurrency": 5}, ValueError, "Conflicting concurrency"),
        ({"bogus": 5}, TypeError, "Unexpected processor keyword 'bogus'"),
        ({"observers": [object()]}, NotImplementedError, "no observers"),
        ({"resume": "sometimes"}, ValueError, "sometimes"),
    ]:
        with pytest.raises(error, match=text):
            asyncio.run(bl.process_prompts(strategy, ["a"], **options))
    for make, error in [
        (lambda: bl.CallableStrategy(None), TypeError),
        (lambda: bl.CallableStrategy(lambda prompt: prompt), TypeError),
        (lambda: bl.LLMWorkItem("a", None, "b"), TypeError),
        (lambda: bl.RetryConfig(max_attempts=0), ValueError),
        (lambda: bl.RetryConfig(max_wait=0.1), ValueError),
        (lambda: bl.RateLimitConfig(backoff_multiplier=0.5), ValueError),
        (lambda: bl.ProcessorConfig(attempt_timeout=0), ValueError),
        (lambda: bl.ProcessorConfig(attempt_timeout=float("nan")), ValueError),
        (lambda: bl.GuardrailConfig(max_total_cost=1.0), ValueError),
        (lambda: bl.llm("gemini:m"), ValueError),
        (lambda: bl.LLMCallPool(strategy, max_pending=0), ValueError),
        (lambda: bl.BatchResult.from_json("[]"), bl.ResultSerializationError),
    ]:
        with pytest.raises(error):
            make()
    with pytest.raises(TypeError, match="must be an LLMCallStrategy"):
        asyncio.run(bl.process_prompts("x", ["a"]))
    with pytest.warns(UserWarning, match="Duplicate item ID 'a'"):
        batch = asyncio.run(bl.process_prompts(strategy, [("a", "1"), ("a", "2")]))
    assert sorted(batch.outputs()) == ["1", "2"]


def test_an_error_of_the_input_comes_out():
    def prompts():
        yield "a"
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        ours(upper, prompts())
