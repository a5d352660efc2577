"""Decorators: functions, coroutine functions, generators, methods."""

from __future__ import annotations

import asyncio
import functools
import inspect
import pickle

import pytest

import tollgate as tg

MONTH = 30 * 86_400


def books() -> tg.LimitSet:
    """Returns a set whose amounts do not come back during a test."""
    return tg.LimitSet([tg.fixed_window("calls", 100, period=MONTH), tg.fixed_window("tokens", 1_000, period=MONTH), tg.resource("slots", 1)])


def used(limits: tg.LimitSet) -> tuple[int, int, int]:
    status = limits.peek()
    return 100 - status["calls"].available, 1_000 - status["tokens"].available, 1 - status["slots"].available


ONE = {"calls": 1, "tokens": 50}


def test_a_function_settles_with_its_result():
    limits = books()

    @limits.limit(ONE, settle=lambda result: {"tokens": len(result)})
    def ask(prompt: str, *, twice: bool = False) -> str:
        """Asks."""
        assert used(limits) == (1, 50, 1)
        return prompt * (2 if twice else 1)

    assert ask("abc", twice=True) == "abcabc"
    assert used(limits) == (1, 6, 0)
    assert (ask.__name__, ask.__doc__) == ("ask", "Asks.")
    assert str(inspect.signature(ask)) == "(prompt: 'str', *, twice: 'bool' = False) -> 'str'"


def test_a_coroutine_function_stays_one():
    limits = books()

    @limits.limit(ONE, settle=lambda result: {"tokens": result})
    async def ask(tokens):
        await asyncio.sleep(0)
        assert used(limits)[2] == 1
        return tokens

    async def main():
        return await asyncio.gather(*(ask(n) for n in range(5)))

    assert inspect.iscoroutinefunction(ask)
    assert asyncio.run(main()) == [0, 1, 2, 3, 4]
    assert used(limits) == (5, 10, 0)


@pytest.mark.parametrize(("on_error", "after"), [("cancel", (0, 0, 0)), ("commit", (1, 50, 0))])
def test_p25_an_exception_of_the_call_comes_out_and_ends_the_lease(on_error, after):
    limits, others = books(), books()

    @limits.limit(ONE, on_error=on_error)
    def fail():
        raise KeyError("mine")

    @others.limit(ONE, on_error=on_error)
    async def fail_later():
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fail()
    with pytest.raises(KeyError, match="mine"):
        asyncio.run(fail_later())
    assert used(limits) == used(others) == after


def test_p23_a_cancelled_task_gives_everything_back():
    limits = books()

    @limits.limit(ONE)
    async def hang():
        await asyncio.Event().wait()

    async def main():
        task = asyncio.create_task(hang())
        while used(limits)[2] == 0:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert used(limits) == (0, 0, 0)


def test_a_settle_that_raises_leaves_what_was_taken():
    limits = books()

    @limits.limit(ONE, settle=lambda result: {"tokens": result.usage})
    def ask():
        return "no usage here"

    with pytest.raises(AttributeError):
        ask()
    assert used(limits) == (1, 50, 0)


def test_p58_a_generator_holds_the_lease_until_it_ends():
    limits = books()

    @limits.limit(ONE, settle=lambda last: {"tokens": last})
    def stream(most):
        for number in range(most):
            assert used(limits)[2] == 1
            yield number
        return "all"

    assert inspect.isgeneratorfunction(stream)
    generator = stream(4)
    assert used(limits) == (0, 0, 0), "nothing happens before the first value"
    assert [next(generator), next(generator)] == [0, 1]
    assert used(limits) == (1, 50, 1)
    assert list(generator) == [2, 3]
    assert used(limits) == (1, 3, 0)
    closed = stream(4)
    next(closed)
    closed.close()
    assert used(limits) == (2, 53, 0), "a closed one counts as it was taken"


def test_a_generator_gets_what_is_sent_and_thrown():
    limits = books()

    @limits.limit(ONE)
    def echo():
        got = yield "ready"
        while True:
            try:
                got = yield got
            except ValueError as error:
                got = f"caught {error}"

    generator = echo()
    assert next(generator) == "ready"
    assert generator.send("a") == "a"
    assert generator.throw(ValueError("b")) == "caught b"
    with pytest.raises(KeyError):
        generator.throw(KeyError("c"))
    assert used(limits) == (0, 0, 0), "an exception gave everything back"

    def outer():
        result = yield from limits.limit(ONE)(one)()
        yield result

    def one():
        yield 1
        return "returned"

    assert list(outer()) == [1, "returned"]


def test_p58_an_async_generator_holds_the_lease_until_it_is_closed():
    limits = books()

    @limits.limit(ONE, settle=lambda last: {"tokens": last})
    async def stream(most):
        for number in range(most):
            yield number

    async def main():
        assert [number async for number in stream(3)] == [0, 1, 2]
        assert used(limits) == (1, 2, 0)
        generator = stream(3)
        assert await anext(generator) == 0
        assert used(limits) == (2, 52, 1)
        await generator.aclose()
        assert used(limits) == (2, 52, 0)
        failing = stream(3)
        await anext(failing)
        with pytest.raises(KeyError):
            await failing.athrow(KeyError("x"))
        assert used(limits) == (2, 52, 0)

    assert inspect.isasyncgenfunction(stream)
    asyncio.run(main())


class Client:
    limits = books()

    def __init__(self, weight):
        self.weight = weight

    @limits.limit(lambda self, prompt: {"calls": 1, "tokens": self.weight * len(prompt)})
    def ask(self, prompt):
        return f"{self.weight} {prompt}"

    @limits.limit({"calls": 1})
    @classmethod
    def of_class(cls):
        return cls.__name__

    @limits.limit({"calls": 1})
    @staticmethod
    def of_nothing():
        return "static"


def test_p58_methods_get_their_object_and_the_demand_its_arguments():
    assert Client(3).ask("abcd") == "3 abcd"
    assert Client.ask(Client(2), prompt="abc") == "2 abc"
    assert used(Client.limits)[1] == 18
    assert (Client.of_class(), Client(1).of_class(), Client.of_nothing()) == ("Client", "Client", "static")


ONE_SET = books()


@ONE_SET.limit({"calls": 1})
def by_name(value):
    return value + 1


def test_p58_a_decorated_function_pickles_by_its_name():
    assert pickle.loads(pickle.dumps(by_name)) is by_name


def test_objects_that_can_be_called_are_limited():
    limits = books()

    class Answer:
        def __call__(self, value):
            return value

    class LaterAnswer:
        async def __call__(self, value):
            return value

    assert limits.limit(ONE)(Answer())(7) == 7
    assert limits.limit(ONE)(functools.partial(Answer(), 8))() == 8
    assert asyncio.run(limits.limit(ONE)(LaterAnswer())(9)) == 9
    assert used(limits) == (3, 150, 0)


def test_wrong_use_is_reported_when_the_function_is_decorated():
    limits = books()
    with pytest.raises(tg.InvalidDemand, match='"tpm", which is no limit here'):
        limits.limit({"tpm": 1})
    with pytest.raises(tg.Impossible):
        limits.limit({"tokens": 1_001})
    with pytest.raises(tg.InvalidValue, match="on_error"):
        limits.limit(ONE, on_error="ignore")
    with pytest.raises(tg.InvalidValue, match="settle"):
        limits.limit(ONE, settle={"tokens": 1})
    with pytest.raises(tg.InvalidValue, match="cannot be limited"):
        limits.limit(ONE)(Client)
    with pytest.raises(tg.InvalidValue, match="has no acquire"):
        tg.limit({"rpm": 1}, ONE)
    with pytest.raises(TypeError):
        limits.limit(ONE, retries=3)


def test_a_timeout_ends_a_call_before_it_begins():
    limits, calls = books(), []

    @limits.limit(ONE, timeout=0, priority="batch")
    def ask():
        calls.append(1)

    with limits.acquire(ONE):
        with pytest.raises(tg.TimedOut):
            ask()
    ask()
    assert calls == [1]


def test_a_pool_can_be_the_limits():
    pool = tg.LimitPool([books(), books()], spread="round_robin")

    @tg.limit(pool, ONE, settle=lambda result: {"tokens": result})
    async def ask(tokens):
        return tokens

    async def main():
        return [await ask(n) for n in range(4)]

    assert asyncio.run(main()) == [0, 1, 2, 3]
    assert sorted(used(one)[:2] for one in pool.sets) == [(2, 2), (2, 4)]


def test_a_limiter_gets_entity_and_resource():
    limiter = tg.Limiter("memory")
    limiter.catalog.set_limits([tg.fixed_window("calls", 100, MONTH)])

    @tg.limit(limiter, {"calls": 1}, entity=lambda user: user, resource="gpt-4", timeout=3)
    def ask(user):
        return user

    @tg.limit(limiter, {"calls": 1}, entity=lambda user: user, resource="gpt-4", settle=lambda result: {"calls": 5})
    async def ask_later(user):
        return user

    assert ask("key-1") == "key-1"
    assert asyncio.run(ask_later("key-2")) == "key-2"
    assert [limiter.peek(user, "gpt-4")["calls"].available for user in ("key-1", "key-2")] == [99, 95]


def test_p58_mocks_partials_and_objects_are_what_calling_them_returns():
    import functools
    from unittest.mock import AsyncMock, Mock

    class Object:
        async def __call__(self, value):
            return value

        async def method(self, value):
            return value

    async def function(first, value):
        return value

    limits = tg.LimitSet([tg.resource("slots", 1)])
    assert limits.limit()(Mock(return_value=5))(5) == 5
    assert limits.limit()(len)([1] * 5) == 5
    assert limits.limit()(functools.partial(max, 1))(5) == 5
    waits = [AsyncMock(return_value=5), Object(), Object().method, functools.partial(function, 1), functools.partial(Object().method)]
    if hasattr(inspect, "markcoroutinefunction"):
        waits.append(inspect.markcoroutinefunction(lambda value: Object()(value)))
    for one in waits:
        limited = limits.limit()(one)
        assert inspect.iscoroutinefunction(limited)
        assert asyncio.run(limited(5)) == 5
    assert limits.peek()["slots"].available == 1


def test_a_decorator_without_parentheses_is_reported_by_the_first_call():
    limits = tg.LimitSet([tg.resource("slots", 1)])

    @limits.limit
    def work(*arguments, **named):
        return arguments

    for call in (work, lambda: work("text"), lambda: work(1, 2), lambda: work(key=1)):
        with pytest.raises(tg.InvalidValue, match=r"@limits.limit\(\)"):
            call()
