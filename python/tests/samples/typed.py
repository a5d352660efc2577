"""What users write, for type checkers: `mypy --strict` and pyright accept it, and what each expression is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

from typing_extensions import assert_type

import tollgate as tg
from tollgate import batch

limits = tg.LimitSet([tg.per_minute("rpm", 500), tg.per_minute("tpm", 200_000, burst=50_000), tg.resource("connections", 16)])


def in_a_thread() -> None:
    with limits.acquire({"rpm": 1, "tpm": 1_500}, timeout=30, priority="batch") as lease:
        assert_type(lease, tg.Lease)
        lease.settle(tpm=1_180)
    attempt = limits.try_acquire(rpm=1)
    if not attempt:
        assert_type(attempt, tg.Denial)
        assert_type(attempt.retry_after, float | None)
        return
    assert_type(attempt, tg.Lease)
    attempt.commit()
    assert_type(limits.peek()["tpm"].available, int)
    prepared = limits.demand(rpm=1)
    limits.acquire(prepared, timeout=timedelta(seconds=3)).cancel()


async def in_a_loop() -> None:
    async with limits.acquire_async({"rpm": 1}) as lease:
        assert_type(lease, tg.Lease)
        await lease.settle_async(rpm=1)
    task = asyncio.create_task(limits.acquire_async(rpm=1))
    assert_type(await task, tg.Lease)
    other = await limits.try_acquire_async(rpm=1)
    assert_type(other, tg.Lease | tg.Denial)


@limits.limit({"rpm": 1}, settle=lambda reply: {"tpm": len(reply)})
def ask(prompt: str) -> str:
    return prompt


@limits.limit(lambda prompt: {"rpm": 1, "tpm": len(prompt)})
async def ask_later(prompt: str) -> str:
    return prompt


@limits.limit({"rpm": 1}, timeout=5)
def stream(prompt: str) -> Iterator[str]:
    yield prompt


@limits.limit({"rpm": 1})
async def stream_later(prompt: str) -> AsyncIterator[str]:
    yield prompt


def decorated() -> None:
    assert_type(ask("x"), str)
    assert_type(next(stream("x")), str)


def work(worker: tg.Worker, item: str) -> int:
    with worker.limits.acquire(rpm=1):
        return len(item)


def pools() -> None:
    with tg.WorkerPool(work, threads=8, limits=limits, retries=3) as pool:
        assert_type(pool.map(["a", "b"]), list[Any])


def errors() -> None:
    try:
        limits.acquire(rpm=1, timeout=0)
    except tg.TimedOut as error:
        assert_type(error.waited, float)
        assert_type(error.limited_by, tg.Status | None)


def providers() -> None:
    hint = tg.read_reply(429, [("Retry-After", "7")])
    assert_type(hint.retry_after, float | None)
    assert_type(tg.estimate_tokens({"prompt": "x"}).total, int)


def places() -> None:
    shared = tg.LimitSet([tg.per_minute("rpm", 500)], store="shm:jobs", name="openai/blue", on_unavailable="local")
    pool = tg.LimitPool([shared, limits], spread="round_robin")
    with pool.acquire(rpm=1, timeout=5) as lease:
        assert_type(lease.set, tg.LimitSet | None)
    assert_type(pool.peek()[0]["rpm"].available, int)


async def batches() -> None:
    async def work(call: batch.Call) -> batch.Done:
        return batch.Done(call.payload, tokens=7)

    run = batch.run(["a", ("id", "b"), ("other", "c", {"tokens": 3})], work, workers=4, attempt_deadline=30)
    async for outcome in run:
        assert_type(outcome, batch.Outcome)
    assert_type(run.summary.done, int)
