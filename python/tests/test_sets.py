"""Limit sets in one process: what they take, what they give back, what they say."""

from __future__ import annotations

import datetime
import gc
import math
import pickle
import threading
import warnings
from decimal import Decimal
from fractions import Fraction

import pytest

import tollgate as tg


def three() -> tg.LimitSet:
    return tg.LimitSet([tg.per_day("rpm", 100), tg.per_day("tpm", 1_000), tg.resource("slots", 2)])


def left(limits: tg.LimitSet, name: str) -> int:
    return limits.peek()[name].available


def test_a_block_holds_and_settles():
    limits = three()
    with limits.acquire({"rpm": 1, "tpm": 400}) as lease:
        assert (left(limits, "rpm"), left(limits, "tpm"), left(limits, "slots")) == (99, 600, 1)
        assert lease.reserved == {"rpm": 1, "tpm": 400, "slots": 1}
        lease.settle(tpm=150)
    assert (left(limits, "rpm"), left(limits, "tpm"), left(limits, "slots")) == (99, 850, 2)


def test_a_block_without_a_report_commits_what_was_reserved():
    limits = three()
    with limits.acquire(rpm=1, tpm=400):
        pass
    assert (left(limits, "tpm"), left(limits, "slots")) == (600, 2)


def test_p25_an_exception_gives_everything_back_and_is_what_the_caller_sees():
    limits = three()
    with pytest.raises(KeyError, match="mine"), limits.acquire(rpm=1, tpm=400) as lease:
        lease.report(tpm=100)
        raise KeyError("mine")
    assert (left(limits, "rpm"), left(limits, "tpm"), left(limits, "slots")) == (100, 1_000, 2)


def test_p54_a_denial_is_a_value_and_says_when():
    limits = three()
    assert limits.try_acquire(rpm=1, tpm=800)
    denial = limits.try_acquire(rpm=1, tpm=800)
    assert not denial
    assert denial.limited_by.name == "tpm"
    assert 51_830 < denial.retry_after <= 51_840
    assert denial.retry_after_header == "51840"
    assert [status.name for status in denial.violations] == ["tpm"]
    assert str(denial).startswith("tpm has 200 of the 800 asked; retry in 518")
    assert denial.as_dict()["limits"][1]["requested"] == 800
    with pytest.raises(tg.RateLimited) as raised:
        denial.raise_()
    assert raised.value.retry_after == denial.retry_after


def test_a_wait_that_cannot_fit_is_refused_at_once():
    limits = tg.LimitSet([tg.per_hour("jobs", 1)])
    limits.acquire(jobs=1)
    with pytest.raises(tg.TimedOut) as raised:
        limits.acquire({"jobs": 1}, timeout=10)
    assert raised.value.waited == 0.0
    assert isinstance(raised.value, TimeoutError)
    assert 3_500 < raised.value.retry_after <= 3_600


def test_over_use_is_debt():
    limits = tg.LimitSet([tg.per_day("tpm", 1_000)])
    limits.acquire(tpm=500).settle(tpm=2_000)
    assert left(limits, "tpm") == -1_000


def test_a_lease_can_be_adjusted_and_consume_more():
    limits = three()
    lease = limits.acquire(rpm=1, tpm=100)
    lease.adjust(tpm=+120)
    lease.adjust({"tpm": -20})
    assert lease.reported == {"tpm": 200}
    lease.consume(tpm=300)
    assert lease.reserved["tpm"] == 400
    with pytest.raises(tg.RateLimited):
        lease.consume(tpm=900)
    lease.commit()
    assert left(limits, "tpm") == 500


def test_p26_a_denied_try_as_a_context_manager_gives_nothing_back():
    limits = tg.LimitSet([tg.resource("slots", 1)])
    held = limits.acquire()
    denial = limits.try_acquire()
    with pytest.raises(AttributeError if not hasattr(denial, "__enter__") else TypeError):
        denial.__enter__()
    assert not limits.try_acquire()
    held.commit()


def test_p27_of_threads_that_end_one_lease_one_succeeds():
    limits = three()
    for _ in range(50):
        lease, ended = limits.acquire(rpm=1, tpm=100), []
        barrier = threading.Barrier(8)

        def end(lease=lease, ended=ended, barrier=barrier):
            barrier.wait()
            try:
                lease.settle(tpm=0)
                ended.append(True)
            except tg.LeaseEnded:
                ended.append(False)

        threads = [threading.Thread(target=end) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(ended) == [False] * 7 + [True]
        assert (left(limits, "tpm"), left(limits, "slots")) == (1_000, 2)
        limits.cool_down(0)
        limits = three()


def test_p24_a_lease_that_nothing_ends_frees_its_resources_and_warns():
    limits = three()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        limits.acquire(rpm=1, tpm=100)
        gc.collect()
    assert [str(one.category.__name__) for one in caught] == ["ResourceWarning"]
    assert (left(limits, "tpm"), left(limits, "slots")) == (900, 2)
    cycle: dict[str, object] = {"lease": limits.acquire(rpm=1, tpm=100)}
    cycle["self"] = cycle
    assert left(limits, "slots") == 1
    del cycle
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()
    assert left(limits, "slots") == 2


def test_on_drop_refund_gives_back_what_was_reserved():
    limits = tg.LimitSet([tg.per_day("tpm", 1_000)], on_drop="refund")
    limits.acquire(tpm=400)
    gc.collect()
    assert left(limits, "tpm") == 1_000


@pytest.mark.parametrize("value", [5, 5.0, Decimal("5"), Decimal("5.0"), Fraction(5), Fraction(10, 2)])
def test_p43_whole_numbers_of_any_kind_are_amounts(value):
    limits = tg.LimitSet([tg.per_day("tpm", 1_000)])
    limits.acquire({"tpm": value})
    assert left(limits, "tpm") == 995


def test_p43_integers_of_other_libraries_are_amounts():
    class Integer:
        def __index__(self):
            return 5

    limits = tg.LimitSet([tg.per_day("tpm", 1_000)])
    limits.acquire({"tpm": Integer()})
    numpy = pytest.importorskip("numpy")
    limits.acquire({"tpm": numpy.int64(5)})
    limits.acquire({"tpm": numpy.float64(5.0)})
    assert left(limits, "tpm") == 985


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "True is a bool"),
        (-1, "-1 is negative"),
        (2**70, "1180591620717411303424 is too large"),
        (-(2**70), "is negative"),
        (10**15 + 1, "is too large"),
        (0.5, "0.5 is not a whole number"),
        (math.nan, "nan is not a whole number"),
        (math.inf, "inf is not a whole number"),
        (1e300, "is too large"),
        (Decimal("0.5"), "is not a whole number"),
        (Decimal("NaN"), "is not a whole number"),
        ("5", "'5' is a text"),
        (None, "None is not a number"),
        ([1], "is not a number"),
        (2**5_000, "..."),
    ],
)
def test_p43_anything_else_is_refused_with_its_value(value, text):
    limits = tg.LimitSet([tg.per_day("tpm", 1_000)])
    with pytest.raises(tg.InvalidDemand) as raised:
        limits.acquire({"tpm": value})
    assert text in str(raised.value)
    assert isinstance(raised.value, ValueError)
    assert left(limits, "tpm") == 1_000


@pytest.mark.parametrize("demand", [{5: 1}, {"\ud800": 1}, {None: 1}, 5, "rpm", ["rpm"], {"": 1}, {"x y": 1}])
def test_p45_p46_what_is_no_name_is_refused_with_a_text(demand):
    limits = tg.LimitSet([tg.per_day("tpm", 1_000)])
    with pytest.raises(tg.InvalidDemand):
        limits.acquire(demand)
    with pytest.raises(tg.InvalidDemand):
        limits.demand(demand)


def test_p47_a_dict_that_changes_while_it_is_read_does_no_harm():
    limits = tg.LimitSet([tg.per_day("tpm", 1_000), tg.per_minute("rpm", 10)])
    demand: dict[str, object] = {}

    class Meddles:
        def __index__(self):
            demand.clear()
            demand.update({f"n{i}": i for i in range(100)})
            return 5

    demand.update({"tpm": Meddles(), "rpm": 1})
    limits.acquire(demand)
    assert (left(limits, "tpm"), left(limits, "rpm")) == (995, 9)


def test_p8_timeouts_of_every_kind():
    limits = tg.LimitSet([tg.resource("slots", 1)])
    for timeout in [0, 0.0, 1, 1e300, math.inf, None, datetime.timedelta(seconds=1)]:
        limits.acquire(timeout=timeout).commit()
    held = limits.acquire()
    for timeout in [0, 1e-300, datetime.timedelta(0)]:
        with pytest.raises(tg.TimedOut):
            limits.acquire(timeout=timeout)
    for timeout in [-1, math.nan, datetime.timedelta(seconds=-1)]:
        with pytest.raises(ValueError, match="timeout"):
            limits.acquire(timeout=timeout)
    for timeout in ["1", True, [1]]:
        with pytest.raises(TypeError, match="timeout"):
            limits.acquire(timeout=timeout)
    held.commit()


def test_p48_a_config_is_a_copy():
    config = {"region": "eu", "nested": {"tier": 1}}
    limits = tg.LimitSet([tg.per_minute("rpm", 10)], config=config)
    config["region"] = "us"
    lease = limits.acquire(rpm=1)
    assert lease.config == {"region": "eu", "nested": {"tier": 1}}
    lease.config["region"] = "asia"
    limits.config["region"] = "asia"
    assert limits.acquire(rpm=1).config["region"] == "eu"


def test_money_has_a_unit():
    usd = tg.Unit("USD", 6)
    limits = tg.LimitSet([tg.per_day("spend", "12.50", unit=usd)])
    assert limits["spend"].capacity == 12_500_000
    limits.acquire(spend=Decimal("2.5"))
    limits.acquire({"spend": "1.25"})
    assert usd.show(left(limits, "spend")) == "8.75 USD"
    with pytest.raises(tg.InvalidDemand, match="at most 6 decimals"):
        limits.acquire(spend="0.0000001")
    assert pickle.loads(pickle.dumps(usd)) == usd


@pytest.mark.parametrize(
    "make",
    [
        lambda: tg.per_minute("rpm", 0),
        lambda: tg.per_minute("rpm", -1),
        lambda: tg.per_minute("", 1),
        lambda: tg.per_minute("wcu", 1),
        lambda: tg.per_minute("\ud800", 1),
        lambda: tg.per_minute("a b", 1),
        lambda: tg.per_minute("rpm", 1, algorithm="leaky"),
        lambda: tg.per_minute("rpm", 1, soft=1),
        lambda: tg.rate("rpm", 1, 0),
        lambda: tg.rate("rpm", 1, math.nan),
        lambda: tg.rate("rpm", 1, math.inf),
        lambda: tg.quota("q", 1),
        lambda: tg.quota("q", 1, cron="nonsense"),
        lambda: tg.quota("q", 1, cron="0 0 * * *", tz="Nowhere/Land"),
        lambda: tg.quota("q", 1, cron="0 0 * * *", after=5),
        lambda: tg.sliding_window("w", 1, 10, resolution=20),
        lambda: tg.LimitSet([tg.per_minute("a", 1), tg.per_minute("a", 2)]),
        lambda: tg.LimitSet([tg.per_minute("a", 1)], on_drop="explode"),
        lambda: tg.LimitSet([tg.per_minute("a", 1)], lease_ttl=0),
    ],
)
def test_what_is_not_valid_is_refused_when_it_is_made(make):
    with pytest.raises(tg.Error) as raised:
        make()
    assert isinstance(raised.value, ValueError)


LIMITS = [
    tg.per_second("a", 1),
    tg.per_minute("a", 500, burst=50, soft=20),
    tg.per_hour("a", math.inf),
    tg.per_day("a", "1.5", unit=tg.Unit("USD", 2)),
    tg.rate("a", 5, datetime.timedelta(milliseconds=1.5), algorithm="gcra"),
    tg.fixed_window("a", 5, 60),
    tg.sliding_window("a", 5, 60, resolution=1),
    tg.calls(5, 60, name="calls"),
    tg.resource("a", 5, shadow=True),
    tg.quota("a", 5, cron="0 8 * * 1", tz="Europe/Berlin"),
    tg.quota("a", 5, after=3_600),
]


@pytest.mark.parametrize("limit", LIMITS, ids=str)
def test_p39_limits_pickle_and_compare(limit):
    copy = pickle.loads(pickle.dumps(limit))
    assert copy == limit
    assert hash(copy) == hash(limit)
    assert str(copy) == str(limit)
    assert copy != tg.per_second("b", 1)


def test_p40_exceptions_and_denials_pickle_with_all_they_say():
    limits = three()
    limits.acquire(rpm=1, tpm=800)
    denial = limits.try_acquire(rpm=1, tpm=800)
    copy = pickle.loads(pickle.dumps(denial))
    assert not copy
    assert (copy.retry_after, copy.ahead, str(copy)) == (denial.retry_after, denial.ahead, str(denial))
    assert copy.as_dict() == denial.as_dict()
    with pytest.raises(tg.TimedOut) as raised:
        limits.acquire(rpm=1, tpm=800, timeout=0)
    copy = pickle.loads(pickle.dumps(raised.value))
    assert type(copy) is tg.TimedOut
    assert (copy.waited, copy.retry_after, str(copy)) == (
        raised.value.waited,
        raised.value.retry_after,
        str(raised.value),
    )
    for cls in [tg.InvalidDemand, tg.Impossible, tg.QueueFull, tg.Unavailable, tg.LeaseEnded, tg.StoreRefused]:
        copy = pickle.loads(pickle.dumps(cls("why")))
        assert (type(copy), str(copy)) == (cls, "why")


def test_p35_a_set_in_memory_and_a_lease_do_not_pickle():
    limits = three()
    with pytest.raises(TypeError, match="store="):
        pickle.dumps(limits)
    with pytest.raises(TypeError, match="process"):
        pickle.dumps(limits.acquire(rpm=1))


def test_p39_every_public_class_is_found_by_its_name():
    for name in tg.__all__:
        cls = getattr(tg, name)
        if isinstance(cls, type):
            assert (cls.__module__, cls.__qualname__) == ("tollgate", name), cls


def test_an_unknown_name_is_an_error_unless_it_is_skipped():
    with pytest.raises(tg.InvalidDemand, match="known limits: rpm, tpm, slots"):
        three().acquire(rpm=1, typo=1)
    limits = tg.LimitSet([tg.per_minute("rpm", 5)], skip_unknown=True)
    limits.acquire(rpm=1, typo=1).settle(typo=5)
    assert left(limits, "rpm") == 4


def test_a_limit_can_be_replaced_and_removed():
    limits = three()
    limits.replace(tg.per_minute("rpm", 10))
    assert limits["rpm"].capacity == 10
    with pytest.raises(tg.Error):
        limits.replace(tg.per_minute("other", 10))
    limits.remove("tpm")
    limits.acquire(rpm=1, tpm=10**9)


def test_a_cooldown_denies_until_it_ends():
    limits = three()
    limits.cool_down(60)
    assert 59 < limits.peek().cooling_for <= 60
    denial = limits.try_acquire(rpm=1)
    assert not denial
    assert 59 < denial.retry_after <= 60
    assert denial.limited_by is None
    limits.end_cool_down()
    assert limits.try_acquire(rpm=1)


def test_a_prepared_demand_is_used_again_and_again():
    limits = three()
    demand = limits.demand(rpm=1, tpm=100)
    assert demand.as_dict() == {"rpm": 1, "tpm": 100}
    for _ in range(3):
        limits.acquire(demand).commit()
    assert left(limits, "tpm") == 700
    with pytest.raises(tg.Impossible):
        limits.demand(tpm=1_001)


def test_p30_random_input_never_panics():
    hypothesis = pytest.importorskip("hypothesis")
    from hypothesis import strategies as st

    limits = three()
    numbers = st.one_of(st.integers(), st.floats(), st.booleans(), st.none(), st.text(), st.decimals())
    names = st.one_of(st.sampled_from(["rpm", "tpm", "slots"]), st.text(), st.integers())

    @hypothesis.settings(max_examples=2_000, deadline=None)
    @hypothesis.given(st.dictionaries(names, numbers), numbers, st.one_of(st.none(), st.text()))
    def check(demand, timeout, priority):
        try:
            limits.acquire(demand, timeout=timeout if timeout is not None else 0, priority=priority).settle(demand)
        except (ValueError, TypeError, TimeoutError, tg.Error):
            pass
        try:
            tg.LimitSet([tg.rate("x", timeout, timeout), tg.resource("y", timeout)])
        except (ValueError, TypeError, OverflowError, tg.Error):
            pass

    check()
