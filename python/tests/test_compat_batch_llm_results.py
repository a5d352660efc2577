"""The names of async-batch-llm: results on disk and as JSON, exceptions, and what is public."""

from __future__ import annotations

import doctest
import importlib
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import warnings

import pytest
from batch_llm_calls import OURS, THEIRS, ours, upper

from tollgate.compat import batch_llm as bl
from tollgate.compat.batch_llm import testing


@pytest.mark.filterwarnings("ignore:Duplicate item ID")
def test_a_store_replays_what_is_the_same(tmp_path):
    calls = []

    async def ask(prompt, attempt, state):
        calls.append(prompt)
        if prompt == "bad":
            raise ValueError("bad")
        return {"text": prompt}

    def run(prompts, resume, model="m"):
        calls.clear()
        store = bl.JsonlArtifactStore(tmp_path / "a.jsonl", identity=bl.ArtifactIdentity(provider="p", model=model))
        batch = ours(ask, prompts, artifact_store=store, resume=resume, preserve_order=True)
        return [(one.success, one.output, one.error, one.context, one.replayed_from_artifact) for one in batch.results], sorted(calls)

    prompts = [("a", "one"), ("b", "two", {"n": 1}), ("c", "bad")]
    fresh = [(True, {"text": "one"}, None, None, False), (True, {"text": "two"}, None, {"n": 1}, False), (False, None, "ValueError: bad", None, False)]
    replayed = [(*one[:4], True) for one in fresh]
    policy = bl.ResumePolicy
    assert run(prompts, policy.NONE) == (fresh, ["bad", "one", "two"])
    assert run(prompts, policy.REUSE_SUCCESSES) == ([*replayed[:2], fresh[2]], ["bad"])
    assert run(prompts, policy.REUSE_ALL) == (replayed, [])
    assert run([("a", "other"), *prompts[1:2]], policy.REUSE_SUCCESSES)[1] == ["other"], "another prompt"
    assert run([("b", "two", {"n": 2})], policy.REUSE_SUCCESSES)[1] == ["two"], "another context"
    assert run(prompts[:1], policy.REUSE_SUCCESSES, model="n")[1] == ["one"], "another identity"
    assert run(prompts[:1], policy.NONE)[1] == ["one"], "nothing is used again"
    assert run(prompts[:1] * 2, policy.REUSE_SUCCESSES) == (replayed[:1] * 2, []), "both lines of the same item"
    kept = bl.JsonlArtifactStore.read_results(tmp_path / "a.jsonl", successes_only=True)
    assert sorted(one.item_id for one in kept.results) == ["a", "a", "a", "a", "b", "b"]


def test_a_store_refuses_what_it_cannot_keep(tmp_path):
    identity = bl.ArtifactIdentity(model="m")
    notes = tmp_path / "notes.txt"
    notes.write_text("my notes\n")
    with pytest.raises(bl.ArtifactFormatError, match=r"notes\.txt"):
        ours(upper, ["a"], artifact_store=bl.JsonlArtifactStore(notes, identity=identity))
    assert notes.read_text() == "my notes\n"

    async def odd(prompt, attempt, state):
        return object()

    [result] = ours(odd, ["a"], artifact_store=bl.JsonlArtifactStore(tmp_path / "b.jsonl", identity=identity)).results
    assert result.error_category == "artifact_serialization_error" and "builtins.object at $.output" in result.error
    [result] = ours(upper, ["a"], artifact_store=bl.JsonlArtifactStore(tmp_path / "c.jsonl")).results
    assert isinstance(result.exception, bl.ArtifactIdentityError) and result.error_category == "artifact_preparation_error"


PROGRAM = """
import asyncio, sys
from tollgate.compat.batch_llm import *

async def invoke(prompt, *, attempt, timeout, state):
    number = int(prompt)
    if sys.argv[2] == "first" and number >= 40:
        await asyncio.Event().wait()
    print(number, flush=True)
    return CallOutcome(number * 2)

async def main():
    store = JsonlArtifactStore(sys.argv[1], identity=ArtifactIdentity(model="m"), fsync=True)
    prompts = [(f"id-{n}", str(n)) for n in range(60)]
    batch = await process_prompts(
        CallableStrategy(invoke), prompts, concurrency=8, artifact_store=store, resume=ResumePolicy.REUSE_SUCCESSES, preserve_order=True,
        progress=lambda done, total, name: print("done", done, flush=True),
    )
    assert list(batch.outputs()) == [n * 2 for n in range(60)]
    print("replayed", sum(result.replayed_from_artifact for result in batch.results))

asyncio.run(main())
"""


def test_a_run_after_kill_9_calls_only_what_is_missing(tmp_path, run_python):
    path = str(tmp_path / "a.jsonl")
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), path, "first"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line == "done 40\n":
                os.kill(process.pid, signal.SIGKILL)
                break
        assert process.wait(60) == -signal.SIGKILL
    with open(path, "ab") as file:
        file.write(b'{"id":"id-41#')  # torn, as by a crash of the host
    lines = run_python(PROGRAM, path, "second").splitlines()
    called = sorted(int(line) for line in lines if line.isdigit())
    assert called == list(range(40, 60)) and lines[-1] == "replayed 40"


#: A line that async-batch-llm 0.28.0 wrote.
THEIR_LINE = (
    '{"admission_wait_seconds":1.2e-06,"batch_termination":{"error_category":null,"kind":"completed","reason":null,"triggering_item_id":null},'
    '"batch_wall_time_seconds":0.5,"context":null,"context_included":true,"error":null,"error_category":null,"exception":null,"item_id":"item_0",'
    '"metadata":{"a":1},"metadata_included":true,"output":"Q","output_included":true,"record_type":"work_item_result","replayed_from_artifact":false,'
    '"schema":"async-batch-llm-result","schema_version":1,"submission_index":0,"success":true,"timing":{"attempts":[{"admission_wait_seconds":1.2e-06,'
    '"attempt":1,"cooldown_wait_seconds":8.8e-05,"error_category":null,"error_type":null,"estimated_input_tokens":null,"estimated_output_tokens":null,'
    '"execution_seconds":0.0001,"provider_seconds":9.1e-06,"quota_scope_id":null,"quota_wait_seconds":0.0,"reconciliation_delta_tokens":null,'
    '"reported_tokens":null,"reserved_tokens":0,"retry_backoff_seconds":0.0,"startup_ramp_wait_seconds":0.0,"success":true,"timeout_category":null,'
    '"total_seconds":0.0004,"try_number":1}],"timeout_category":null,"total_seconds":0.0011},'
    '"token_usage":{"input_tokens":3,"output_tokens":2,"total_tokens":5}}'
)


def test_results_are_json_in_the_format_of_async_batch_llm(tmp_path):
    path = tmp_path / "o.jsonl"
    path.write_text(THEIR_LINE + "\n")
    batch = bl.BatchResult.from_jsonl(path)
    assert (batch.results[0].output, batch.total_input_tokens, batch.wall_time_seconds) == ("Q", 3, 0.5)
    batch.to_jsonl(path)
    assert json.loads(path.read_text()) == json.loads(THEIR_LINE)
    batch = ours(upper, ["a", ("b", "c", {"n": [1, None]})])
    assert bl.BatchResult.from_json(batch.to_json()) == batch
    with pytest.raises(bl.ResultSerializationError, match=r"builtins\.object at \$\.output\[1\]"):
        bl.BatchResult([bl.WorkItemResult("a", True, output=[1, object()])]).to_json()


def test_costs_are_those_of_async_batch_llm():
    batch = bl.BatchResult([bl.WorkItemResult("a", True, token_usage={"input_tokens": 10, "output_tokens": 4, "cached_input_tokens": 6})])
    assert (batch.cache_hit_rate, batch.effective_input_tokens(), batch.effective_input_tokens(0.5)) == (60.0, 5, 7)
    assert batch.estimated_cost(1, 2) == pytest.approx(1.3e-05) and batch.estimated_cost(1, 2, 0.5) == pytest.approx(1.5e-05)


@pytest.mark.parametrize("name", [name for name in bl.__all__ if isinstance(getattr(bl, name), type) and issubclass(getattr(bl, name), Exception)])
def test_exceptions_have_the_bases_of_async_batch_llm_and_pickle(name):
    kind = getattr(bl, name)
    error = kind("text")
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (kind, "text", vars(error)) and isinstance(error, bl.AsyncBatchLLMError)
    theirs = getattr(pytest.importorskip(THEIRS), name)
    ignored = {"BatchAbortedError", "TokenEstimationError"}
    builtin = {one for one in theirs.__mro__ if one.__module__ == "builtins"}
    assert builtin <= set(kind.__mro__) and {one.__name__ for one in kind.__mro__} & ignored <= {one.__name__ for one in theirs.__mro__}


def test_our_names_are_among_theirs():
    theirs = pytest.importorskip(THEIRS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert set(bl.__all__) <= set(theirs.__all__)
    for kind in ("ErrorCategory", "TimeoutCategory", "ResumePolicy", "AbortMode"):
        assert {one.name: one.value for one in getattr(bl, kind)} == {one.name: one.value for one in getattr(theirs, kind)}


def test_the_examples_of_docstrings_are_right():
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    documented = {"__init__": bl, "FakeStrategy": testing.FakeStrategy, **{name: getattr(bl, name) for name in bl.__all__}}
    for name, one in documented.items():
        tests = [test for test in finder.find(one, name, module=False, globs={}) if test.examples]
        assert tests, f"{name} has no example"
        for test in tests:
            runner.run(test)
    assert runner.summarize().failed == 0


def test_the_package_needs_no_other():
    blocked = "import sys; sys.modules.update(dict.fromkeys(['openai', 'pydantic', 'async_batch_llm', 'tqdm']))"
    subprocess.run([sys.executable, "-c", f"{blocked}; import {OURS}.testing"], check=True, timeout=60)
    assert importlib.import_module(OURS) is bl
