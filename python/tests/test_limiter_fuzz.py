"""Whatever arguments a call has, it answers or raises an exception of ours, and never panics."""

from __future__ import annotations

import asyncio
import datetime
import decimal
import fractions
import inspect
import random

import pytest

import tollgate as tg
from tollgate.testing import ManualClock


class Indexed:
    def __index__(self) -> int:
        return 3


class Raising:
    def __index__(self) -> int:
        raise KeyError("mine")

    def __repr__(self) -> str:
        raise KeyError("mine")


LIMIT = tg.per_hour("rpm", 10)
NAMES = ["bob", "gpt-4", "team", "rpm", "_default_", "$SYSTEM", "default"]
TEXTS = [*NAMES, "", " ", "\0", "\ud800", "a#b", "x" * 300, "é", "模型", "hour", "day", "allow", "local", "2:ab", "-1", "None"]
NUMBERS = [0, 1, 5, -1, True, False, 2**63, 2**64, -(2**70), 10**400, 0.0, 0.5, 5.0, -0.0, 1e300, float("nan"), float("inf"), -float("inf")]
ODD = [decimal.Decimal("NaN"), decimal.Decimal(5), fractions.Fraction(1, 3), Indexed(), Raising(), b"x", object(), None, ..., int, datetime.timedelta(days=-1)]
TIMES = [datetime.datetime(2020, 1, 1), datetime.datetime.max.replace(tzinfo=datetime.timezone.utc), datetime.timedelta(seconds=1)]
LISTS: list[object] = [[], [LIMIT], [LIMIT, LIMIT], (LIMIT,), [1], {}, {"rpm": 1}, {"rpm": -1}, {1: 1}, {"rpm": Raising()}, {"\ud800": 1}]
CHANGES: list[object] = [{"rpm": {"rpm": 1}}, [{"limits": None}], [{"limits": [LIMIT]}], [{}], tg.Limiter.demand(rpm=1), LIMIT, {"a": "b"}]
VALUES = [*TEXTS, *NUMBERS, *ODD, *TIMES, *LISTS, *CHANGES]

#: What a call may raise: ours, or what Python raises for the wrong kind of argument.
FINE = (tg.Error, TypeError)


def argument(random: random.Random) -> object:
    # Half of the names are good, so that calls come further.
    return random.choice(NAMES) if random.random() < 0.5 else random.choice(VALUES)


def arguments_of(method: object, random: random.Random) -> tuple[list[object], dict[str, object]]:
    positional, named = [], {}
    for parameter in inspect.signature(method).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            if random.random() < 0.3:
                named[parameter.name] = argument(random)
        elif parameter.kind is parameter.VAR_KEYWORD:
            if random.random() < 0.3:
                named[random.choice(["rpm", "tpm", "x"])] = argument(random)
        elif parameter.default is parameter.empty or random.random() < 0.6:
            positional.append(argument(random))
    return positional, named


def call(method: object, seed: str, random: random.Random) -> None:
    positional, named = arguments_of(method, random)
    try:
        result = method(*positional, **named)
        if isinstance(result, tg.Pending):
            result = asyncio.run(_awaited(result))
        if isinstance(result, tg.Lease):
            result.cancel()
    except FINE as error:
        # Each has a text.
        str(error)
    except KeyError as error:
        # What the argument itself raised reaches the caller as it is.
        assert error.args == ("mine",), seed
    except BaseException as error:
        pytest.fail(f"seed {seed}: {method.__name__} raised {error!r}")


async def _awaited(pending: tg.Pending) -> object:
    return await pending


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore:.*never awaited")
@pytest.mark.parametrize("cls", ["limiter", "catalog", "namespaces", "lease"])
def test_p30_no_argument_makes_a_call_panic(cls):
    for run in range(12):
        seed = f"{cls}-{run}"
        chosen = random.Random(seed)
        limiter = tg.Limiter("memory", clock=ManualClock())
        limiter.catalog.set_limits([LIMIT, tg.per_hour("tpm", 10)])
        targets = {"limiter": limiter, "catalog": limiter.catalog, "namespaces": limiter.catalog.namespaces}
        names = [name for name in dir(targets.get(cls, tg.Lease)) if not name.startswith("_")]
        for _ in range(200):
            target = targets[cls] if cls != "lease" else limiter.acquire("ann", "gpt-4", rpm=0, limits=[LIMIT])
            name = chosen.choice(names)
            method = getattr(target, name)
            if not callable(method) or name in ("acquire", "acquire_async") and cls == "limiter":
                continue
            call(method, seed, chosen)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_p30_no_argument_makes_acquire_panic():
    limiter = tg.Limiter("memory")
    limiter.catalog.set_limits([tg.quota("rpm", 10**12, after=86_400)])
    for run in range(2_000):
        seed = f"acquire-{run}"
        chosen = random.Random(seed)
        method = chosen.choice([limiter.acquire, limiter.acquire_async])
        positional, named = arguments_of(method, chosen)
        # No call waits: there is nothing to wait for, and none is ever freed.
        named.setdefault("timeout", 0)
        try:
            result = method(*positional, **named)
            if isinstance(result, tg.Pending):
                result = asyncio.run(_awaited(result))
            result.cancel()
        except FINE:
            pass
        except KeyError as error:
            assert error.args == ("mine",), seed
        except BaseException as error:
            pytest.fail(f"seed {seed}: {positional!r} {error!r}")


def test_p30_no_setting_makes_the_constructor_panic():
    names = inspect.signature(tg.Limiter).parameters
    settings = [name for name in names if name != "url"]
    assert len(settings) > 10
    for run in range(2_000):
        chosen = random.Random(run)
        given = {name: argument(chosen) for name in chosen.sample(settings, chosen.randrange(3))}
        url = "memory" if chosen.random() < 0.8 else argument(chosen)
        if url in NAMES:
            url = "memory"
        try:
            tg.Limiter(url, **given)
        except FINE:
            pass
        except KeyError as error:
            assert error.args == ("mine",), run
        except BaseException as error:
            pytest.fail(f"seed {run}: {given!r} {error!r}")
