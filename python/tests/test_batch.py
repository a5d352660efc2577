"""Batches over a provider that throttles: exactly one outcome for each item."""

from __future__ import annotations

import asyncio
import json
import pickle
import threading

import anthropic
import openai
import pytest
from mock_provider import mock_provider

import tollgate as tg
from tollgate import batch


def collect(items, function, **options):
    return asyncio.run(batch.run(items, function, **options).collect())


def test_every_item_has_one_outcome_through_429s():
    async def main(url):
        client = openai.AsyncOpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0)

        async def ask(call):
            reply = await client.chat.completions.with_raw_response.create(
                model="m", messages=[{"role": "user", "content": call.payload}]
            )
            parsed = reply.parse()
            return batch.Done(call.payload, tokens=parsed.usage.total_tokens, headers=reply.headers)

        run = batch.run([(f"id-{n}", f"question {n}") for n in range(80)], ask, workers=20)
        outcomes = [outcome async for outcome in run]
        return outcomes, run.summary

    with mock_provider("--rps", "40", "--burst", "4") as provider:
        outcomes, summary = asyncio.run(main(provider.url))
        stats = provider.stats()
    assert sorted(outcome.id for outcome in outcomes) == sorted(f"id-{n}" for n in range(80))
    assert all(outcomes) and all(outcome.output == f"question {outcome.index}" for outcome in outcomes)
    assert (stats["ok"], stats["calls"], stats["tokens"]) == (80, summary.calls, summary.tokens)
    assert (summary.done, summary.failed, summary.stopped) == (80, 0, None)
    assert sum(outcome.throttles for outcome in outcomes) == stats["rejected"] == summary.rejected


def test_what_sdks_raise_is_read_as_the_reply_that_it_was():
    async def main(url, make):
        client = make(url)

        async def ask(call):
            await client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}])

        return await batch.run(["x"], ask, attempts=2).collect()

    def make(url):
        return anthropic.AsyncAnthropic(api_key="wrong", base_url=url, max_retries=0)

    with mock_provider("--style", "anthropic", "--key", "right") as provider:
        [outcome] = asyncio.run(main(provider.url, make))
    assert not outcome and outcome.calls == 1, "a wrong key is not tried again"
    with mock_provider("--style", "anthropic", "--outage", "429/2", "--no-advice") as provider:
        [outcome] = asyncio.run(main(provider.url, make))
    assert outcome.kind == "done"


def test_exceptions_are_replies():
    seen = {}

    async def ask(call):
        seen.setdefault(call.id, []).append((call.attempt, call.number))
        if call.payload == "invalid" and call.attempt == 1:
            raise batch.Invalid("not JSON", tokens=5)
        if call.payload == "throttled" and call.number <= 2:
            raise batch.Throttled(retry_after=0.001)
        if call.payload == "fatal":
            raise batch.Fatal("no such model")
        if call.payload == "mine":
            raise KeyError("mine")
        return call.payload

    names = ["fine", "invalid", "throttled", "fatal", "mine"]
    outcomes = collect([(name, name) for name in names], ask, attempts=2, classify=lambda error: batch.Fatal("mine, too") if isinstance(error, KeyError) else None)
    by_id = {outcome.id: outcome for outcome in outcomes}
    assert len(outcomes) == 5
    assert (by_id["fine"].kind, by_id["fine"].output, by_id["fine"].calls) == ("done", "fine", 1)
    assert (by_id["invalid"].kind, by_id["invalid"].attempts) == ("done", 2)
    assert (by_id["throttled"].kind, by_id["throttled"].throttles) == ("done", 2)
    assert [attempt for attempt, _ in seen["throttled"]] == [1, 1, 1], "a 429 is no attempt"
    assert (by_id["fatal"].kind, by_id["fatal"].error) == ("fatal", "no such model")
    assert (by_id["mine"].kind, by_id["mine"].error) == ("fatal", "mine, too")


def test_a_call_that_takes_too_long_is_tried_again():
    async def ask(call):
        if call.attempt == 1:
            await asyncio.Event().wait()
        return call.timeout

    [outcome] = collect(["x"], ask, attempt_deadline=0.05)
    assert (outcome.output, outcome.attempts) == (0.05, 2)


def test_a_journal_makes_a_later_run_call_only_what_is_missing(tmp_path):
    journal, calls = tmp_path / "out.jsonl", []

    async def ask(call):
        calls.append(call.id)
        return {"text": call.payload}

    first = batch.run([("a", "A"), ("b", "B")], ask, journal=journal)
    assert len(first.wait()) == 2
    second = batch.run([("a", "A"), ("b", "B"), ("c", "C")], ask, journal=journal)
    assert [outcome.output for outcome in second.wait()] == [{"text": "C"}]
    assert sorted(calls) == ["a", "b", "c"] and second.summary.skipped == 2
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert {line["id"]: line["output"] for line in lines if "output" in line} == {name: {"text": name.upper()} for name in "abc"}
    foreign = tmp_path / "notes.txt"
    foreign.write_text("my notes\n")
    with pytest.raises(tg.StoreRefused):
        batch.run(["x"], ask, journal=foreign).wait()


def test_an_output_that_is_not_json_fails_its_item_with_a_journal(tmp_path):
    async def ask(call):
        return object() if call.payload else 1

    outcomes = collect([0, 1], ask, journal=tmp_path / "out.jsonl")
    assert sorted(outcome.kind for outcome in outcomes) == ["done", "fatal"]


def test_items_come_from_async_iterables_and_are_taken_as_there_is_room():
    taken = []

    async def items():
        for number in range(200):
            taken.append(number)
            yield number

    async def ask(call):
        return call.payload

    async def main():
        outcomes = []
        async for outcome in batch.run(items(), ask, workers=2, buffer=4, in_order=True):
            outcomes.append(outcome.output)
            if len(outcomes) == 1:
                await asyncio.sleep(0.2)
                assert len(taken) < 100, "the rest waits until outcomes are read"
        return outcomes

    assert asyncio.run(main()) == list(range(200))


def test_functions_run_in_threads():
    names = set()

    def ask(call):
        names.add(threading.current_thread().name)
        return call.payload + 1

    outcomes = batch.run(range(50), ask, workers=4, in_order=True).wait()
    assert [outcome.output for outcome in outcomes] == list(range(1, 51))
    assert len(names) <= 4 and threading.main_thread().name not in names


def test_p23_a_batch_that_is_cancelled_ends_its_calls():
    begun, ended = [], []

    async def ask(call):
        begun.append(call.id)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(call.id)

    async def main():
        task = asyncio.create_task(batch.run(range(30), ask, workers=10).collect())
        while len(begun) < 10:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(begun) == 10 and sorted(begun) == sorted(ended)

    asyncio.run(main())


def test_an_error_of_the_input_ends_the_batch_and_comes_out():
    async def ask(call):
        return call.payload

    def items():
        yield 1
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        collect(items(), ask)
    for bad, text in [((1, 2), "a tuple is"), (("a", 1, {"token": 1}), '"token"'), (("a", 1, {"tokens": -1}), "tokens -1")]:
        with pytest.raises(tg.InvalidValue, match=text):
            collect([bad], ask)


def test_wrong_use_is_reported():
    async def ask(call):
        return call.payload

    for options in [{"workers": 0}, {"attempts": True}, {"buffer": 1.5}, {"attempt_deadline": -1}, {"attempt_deadline": float("nan")}]:
        with pytest.raises(tg.InvalidValue, match=next(iter(options))):
            batch.run([1], ask, **options)
    with pytest.raises(tg.InvalidValue, match="max_tokens is -1"):
        collect([1], ask, max_tokens=-1)
    with pytest.raises(ValueError, match="deadline"):
        collect([1], ask, deadline=-1)
    with pytest.raises(tg.InvalidValue, match="must be a function"):
        batch.run([1], None)

    async def twice():
        run = batch.run([1], ask)
        with pytest.raises(tg.InvalidValue, match="has not ended"):
            print(run.summary)
        await run.collect()
        with pytest.raises(tg.InvalidValue, match="runs once"):
            await run.collect()

    asyncio.run(twice())


def test_p40_the_exceptions_of_a_batch_pickle():
    for error in [batch.Throttled("a", 3), batch.Overloaded("b"), batch.Transient("c"), batch.Invalid("d", 5), batch.Fatal("e")]:
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy), copy.args) == (type(error), str(error), error.args)


def test_p29_a_batch_that_is_left_does_not_keep_the_interpreter(run_python):
    out = run_python(
        """
        import asyncio, sys
        from tollgate import batch

        async def ask(call):
            await asyncio.Event().wait()

        async def main():
            run = batch.run(range(10), ask).__aiter__()
            try:
                await asyncio.wait_for(anext(run), 0.2)
            except asyncio.TimeoutError:
                print("left")

        asyncio.run(main())
        """
    )
    assert out == "left"


def test_p1_an_interrupt_ends_a_batch_in_threads_and_the_interpreter(run_python):
    out = run_python(
        """
        import os, signal, threading
        from tollgate import batch

        begun = threading.Event()

        def ask(call):
            begun.set()
            threading.Event().wait()

        def interrupt():
            begun.wait()
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt).start()
        try:
            batch.run(range(10), ask, workers=2).wait()
        except KeyboardInterrupt:
            # The two threads are in their calls yet, and must not keep the interpreter.
            print("interrupted")
        """
    )
    assert out == "interrupted"


def test_threads_of_a_batch_are_reused_and_end_with_it():
    names, before = set(), threading.active_count()

    def ask(call):
        names.add(threading.current_thread().name)
        return call.payload

    outcomes = batch.run(range(200), ask, workers=3, in_order=True).wait()
    assert [outcome.output for outcome in outcomes] == list(range(200))
    assert 1 <= len(names) <= 3
    for thread in threading.enumerate():
        if thread.name.startswith("tollgate-batch"):
            thread.join(60)
    assert threading.active_count() <= before


def test_what_is_not_iterable_is_refused_at_once():
    with pytest.raises(tg.InvalidValue, match="items is None"):
        batch.run(None, len)


def test_p9_a_batch_that_would_stop_the_event_loop_names_what_to_await():
    async def main():
        with pytest.raises(tg.WouldBlockLoop, match="await run.collect"):
            batch.run([1], len).wait()

    asyncio.run(main())
