"""Tokens: leases that another process ends."""

from __future__ import annotations

import asyncio
import random

import pytest

import tollgate as tg


@pytest.fixture(params=["memory", "file", "shm"])
def limiter(request, tmp_path):
    url = {"memory": "memory", "file": f"file:{tmp_path}/limits.db", "shm": "shm:"}[request.param]
    limiter = tg.Limiter(url)
    limiter.catalog.set_limits([tg.per_hour("rpm", 10), tg.per_day("tpm", 1_000)])
    return limiter


def left(limiter: tg.Limiter, name: str) -> int:
    return limiter.peek("bob", "gpt-4")[name].available


def test_a_token_is_settled_once_with_what_was_used(limiter):
    lease = limiter.acquire("bob", "gpt-4", {"rpm": 1, "tpm": 0})
    token = lease.into_token()
    with pytest.raises(tg.LeaseEnded):
        lease.commit()
    again = limiter.resume(token)
    assert again.reserved == {"rpm": 1, "tpm": 0}
    again.settle(tpm=300)
    assert (left(limiter, "rpm"), left(limiter, "tpm")) == (9, 700)
    assert limiter.resume(token).end_once() is False
    assert limiter.resume(token).end_once(cancel=True) is False
    limiter.resume(token).settle(tpm=999)
    assert (left(limiter, "rpm"), left(limiter, "tpm")) == (9, 700)


@pytest.mark.filterwarnings("ignore:.*never awaited")
def test_a_resumed_lease_that_is_dropped_or_cancelled_while_it_is_awaited_leaves_its_token(limiter):
    token = limiter.acquire("bob", "gpt-4", {"rpm": 4}).into_token()
    limiter.resume(token)

    async def main() -> None:
        await limiter.resume_async(token)
        for _ in range(50):
            task = asyncio.ensure_future(limiter.resume_async(token))
            for _ in range(random.randrange(4)):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())
    assert left(limiter, "rpm") == 6
    assert limiter.resume(token).end_once(cancel=True) is True
    assert left(limiter, "rpm") == 10


def test_a_token_that_was_changed_in_any_byte_is_refused_and_nothing_changes(limiter):
    token = limiter.acquire("bob", "gpt-4", {"rpm": 4}).into_token()
    for index in range(0, len(token), 3):
        other = "A" if token[index] != "A" else "B"
        changed = token[:index] + other + token[index + 1 :]
        with pytest.raises(tg.TokenError) as caught:
            limiter.resume(changed)
        assert changed not in str(caught.value) and "ticket" not in str(caught.value)
    assert left(limiter, "rpm") == 6


@pytest.mark.parametrize("token", ["", "x", "tg1+abc", "\0", "x" * 100_000, "é", "a" * 63 + "="])
def test_texts_that_are_no_tokens_are_refused(token):
    limiter = tg.Limiter("memory")
    with pytest.raises(tg.TokenError) as caught:
        limiter.resume(token)
    assert len(str(caught.value)) < 300


def test_p46_a_surrogate_is_no_token():
    with pytest.raises(tg.InvalidValue):
        tg.Limiter("memory").resume("\ud800")


def test_a_token_of_another_namespace_is_refused(tmp_path):
    url = f"file:{tmp_path}/limits.db"
    one, two = tg.Limiter(url, namespace="one"), tg.Limiter(url, namespace="two")
    one.catalog.set_limits([tg.per_hour("rpm", 10)])
    token = one.acquire("bob", "gpt-4", rpm=1).into_token()
    with pytest.raises(tg.TokenError, match="two"):
        two.resume(token)
    one.resume(token).cancel()


def test_a_lease_with_resources_is_handed_on_only_if_it_was_detached(limiter):
    limiter.catalog.set_limits([tg.per_hour("rpm", 10), tg.resource("slots", 1)])
    with pytest.raises(tg.TokenError, match="detached=seconds"):
        limiter.acquire("bob", "gpt-4", rpm=1).into_token()
    token = limiter.acquire("bob", "gpt-4", {"rpm": 1}, detached=600).into_token()
    assert not limiter.try_acquire("bob", "gpt-4", rpm=1)
    limiter.resume(token).commit()
    limiter.try_acquire("bob", "gpt-4", rpm=1).cancel()


@pytest.mark.parametrize("detached", [-1, float("nan"), float("inf"), True, "5", 10**400])
def test_detached_wants_a_time(detached):
    limiter = tg.Limiter("memory")
    limiter.catalog.set_limits([tg.per_hour("rpm", 10)])
    with pytest.raises((tg.InvalidValue, TypeError)):
        limiter.acquire("bob", "gpt-4", {"rpm": 1}, detached=detached)


def test_a_lease_of_a_set_has_no_token_and_stays():
    lease = tg.LimitSet([tg.per_hour("rpm", 10)]).acquire(rpm=1)
    with pytest.raises(tg.TokenError, match="Limiter"):
        lease.into_token()
    assert lease.end_once() is True
    with pytest.raises(tg.LeaseEnded):
        lease.end_once()


def test_tokens_in_an_event_loop(limiter):
    async def main() -> None:
        lease = await limiter.acquire_async("bob", "gpt-4", {"rpm": 4})
        token = await lease.into_token_async()
        with pytest.raises(tg.LeaseEnded):
            await lease.commit_async()
        async with await limiter.resume_async(token) as again:
            again.adjust(rpm=-3)
        assert await (await limiter.resume_async(token)).end_once_async() is False

    asyncio.run(main())
    assert left(limiter, "rpm") == 9


def test_another_process_ends_a_token(run_python, tmp_path):
    url = f"file:{tmp_path}/limits.db"
    limiter = tg.Limiter(url)
    limiter.catalog.set_limits([tg.per_hour("rpm", 10)])
    token = limiter.acquire("bob", "gpt-4", rpm=4).into_token()
    program = """
        import sys
        import tollgate as tg
        print(tg.Limiter(sys.argv[1]).resume(sys.argv[2]).end_once(cancel=True))
    """
    assert [run_python(program, url, token) for _ in range(2)] == ["True", "False"]
    assert left(limiter, "rpm") == 10


def test_p40_a_token_error_pickles():
    import pickle

    error = pickle.loads(pickle.dumps(tg.TokenError("why")))
    assert isinstance(error, ValueError) and str(error) == "why"
