"""Observers, warnings in ``logging``, and the clock for tests."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import time
import weakref
from datetime import timedelta

import pytest
import tollgate as tg
from tollgate.testing import ManualClock


def test_an_observer_is_told_of_all_that_happens(store, name):
    events = []
    limits = [tg.per_day("rpm", 5), tg.per_day("tpm", 100), tg.resource("slots", 1), tg.per_day("soft", 1, shadow=True)]
    made = tg.LimitSet(limits, store=store, name=name, observer=events.append, skip_unknown=True)
    lease = made.acquire(rpm=1, tpm=50, soft=2, nonesuch=1)
    kinds = [(event.kind, event.limit) for event in events]
    assert {("allowed", None), ("would_deny", "soft"), ("unknown_limit", "nonesuch")} <= set(kinds), kinds
    assert {event.set for event in events} == {name}
    events.clear()
    assert not made.try_acquire(rpm=1)
    assert [(event.kind, event.limit) for event in events] == [("denied", "slots")]
    events.clear()
    lease.settle(tpm=20, rpm=2)
    assert {("refunded", "tpm", 30), ("over_used", "rpm", 1)} <= {(e.kind, e.limit, e.amount) for e in events}
    events.clear()
    made.cool_down(5)
    assert [(event.kind, event.seconds) for event in events] == [("cooldown", 5.0)]


def test_an_observer_in_an_event_loop_is_told_before_the_call_returns():
    events, clock = [], ManualClock()
    made = tg.LimitSet([tg.per_minute("rpm", 1)], observer=events.append, clock=clock)

    async def main():
        await made.acquire_async(rpm=1)
        assert [event.kind for event in events] == ["allowed"]
        waiting = asyncio.create_task(_acquired(made))
        while made.peek().waiting == 0:
            await asyncio.sleep(0)
        clock.advance(60)
        await waiting
        assert ("waited", "rpm", 60.0) in [(event.kind, event.limit, event.seconds) for event in events]

    asyncio.run(main())


async def _acquired(limits):
    return await limits.acquire_async(rpm=1)


def test_an_object_is_told_of_what_it_has_methods_for():
    class Metrics:
        def __init__(self):
            self.denied, self.allowed = [], 0

        def on_denied(self, event):
            self.denied.append(event.limit)

        def on_allowed(self, event):
            self.allowed += 1

    metrics = Metrics()
    made = tg.LimitSet([tg.per_minute("rpm", 1)], observer=metrics)
    for _ in range(3):
        made.try_acquire(rpm=1)
    made.cool_down(1)
    assert (metrics.allowed, metrics.denied) == (1, ["rpm", "rpm"])


@pytest.mark.parametrize("error", [ValueError("broken"), SystemExit(3), asyncio.CancelledError(), GeneratorExit()])
def test_p50_what_an_observer_raises_is_logged_and_breaks_no_call(error, caplog):
    def fail(event):
        raise error

    made = tg.LimitSet([tg.resource("slots", 1)], observer=fail)
    with made.acquire() as lease:
        assert lease.reserved == {"slots": 1}
        assert not made.try_acquire()
    assert made.peek()["slots"].available == 1
    assert {record.name for record in caplog.records} == {"tollgate"}
    assert "an observer raised" in caplog.text and type(error).__name__ in caplog.text


def test_p3_an_interrupt_in_an_observer_comes_after_the_call(run_python):
    program = """
        import signal, time
        import tollgate as tg

        def observe(event):
            if event.kind == "allowed" and not seen:
                seen.append(event)
                signal.raise_signal(signal.SIGINT)

        seen = []
        limits = tg.LimitSet([tg.resource("slots", 1)], observer=observe)
        lease = None
        try:
            lease = limits.acquire()
            time.sleep(60)
        except KeyboardInterrupt:
            # Either it came before the name was bound, and then the lease was dropped, or after it.
            if lease is not None:
                lease.commit()
            assert limits.peek()["slots"].available == 1
        else:
            raise SystemExit("not interrupted")
    """
    run_python(program)


def test_p7_an_observer_may_use_its_set_while_threads_use_it_too():
    count = 0

    def observe(event):
        nonlocal count
        count += 1
        made.peek()
        made.try_acquire(rpm=1)

    made = tg.LimitSet([tg.resource("slots", 3), tg.per_day("rpm", 10**9)], observer=observe)

    def work():
        for _ in range(500):
            with made.acquire(rpm=1, timeout=100):
                pass

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    made.peek()
    assert count >= 4_000
    assert made.peek()["slots"].available == 3


def test_p28_an_observer_that_has_its_set_is_collected():
    class Observer:
        def __call__(self, event):
            pass

    for store in (None, "shm:"):
        observer = Observer()
        observer.limits = made = tg.LimitSet([tg.per_minute("rpm", 5)], observer=observer, store=store)
        observer.lease = made.acquire(rpm=1)
        watch = weakref.ref(observer)
        del observer, made
        gc.collect()
        assert watch() is None


def test_events_of_a_lease_that_is_dropped_are_told():
    events = []
    made = tg.LimitSet([tg.per_minute("rpm", 5)], observer=events.append, on_drop="refund")
    lease = made.acquire(rpm=2)
    events.clear()
    del lease
    gc.collect()
    assert [(event.kind, event.amount) for event in events] == [("refunded", 2)]


def test_an_event_says_what_it_is():
    events = []
    made = tg.LimitSet([tg.per_minute("rpm", 5)], observer=events.append)
    made.acquire(rpm=2).settle(rpm=5)
    made.cool_down(1.5)
    assert [repr(event) for event in events] == ["<Event allowed>", "<Event over_used rpm 3>", "<Event cooldown 1.5 s>"]


# logging


def test_p50_an_unknown_limit_is_one_warning_and_then_none(caplog):
    made = tg.LimitSet([tg.per_minute("rpm", 50)], skip_unknown=True)
    for _ in range(3):
        made.acquire(rpm=1, nonesuch=1)
        made.try_acquire(rpm=1, nonesuch=1)
    asyncio.run(_awaited(made.acquire_async(rpm=1, nonesuch=2)))
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("tollgate", "WARNING")
    assert "nonesuch" in record.getMessage()


async def _awaited(pending):
    return await pending


def test_p50_over_use_is_one_warning_and_logging_silences_it(caplog):
    logging.disable(logging.WARNING)
    try:
        tg.LimitSet([tg.per_minute("rpm", 50)]).acquire(rpm=1).settle(rpm=5)
        assert not caplog.records
    finally:
        logging.disable(logging.NOTSET)
    made = tg.LimitSet([tg.per_minute("rpm", 50)])
    for _ in range(3):
        made.acquire(rpm=1).settle(rpm=5)
    (record,) = caplog.records
    assert "rpm" in record.getMessage() and "4" in record.getMessage()


def test_p50_a_handler_that_raises_loses_no_lease():
    class Broken(logging.Handler):
        def handle(self, record):
            raise RuntimeError("broken handler")

    logger, handler = logging.getLogger("tollgate"), Broken()
    logger.addHandler(handler)
    try:
        made = tg.LimitSet([tg.resource("slots", 1), tg.per_minute("rpm", 5)], skip_unknown=True)
        with made.acquire(nonesuch=1, rpm=1) as lease:
            lease.settle(rpm=3)
        assert made.peek()["slots"].available == 1
    finally:
        logger.removeHandler(handler)


def test_p50_a_warning_reaches_a_handler_that_uses_the_set():
    class Peek(logging.Handler):
        def emit(self, record):
            seen.append((record.getMessage(), made.peek()["rpm"].available))

    seen, logger, handler = [], logging.getLogger("tollgate"), Peek()
    logger.addHandler(handler)
    try:
        made = tg.LimitSet([tg.per_minute("rpm", 5)], skip_unknown=True)
        made.acquire(nonesuch=1, rpm=1)
    finally:
        logger.removeHandler(handler)
    assert [available for _, available in seen] == [4]


# The clock.


def test_p49_a_manual_clock_admits_waiters_at_their_instants():
    clock = ManualClock()
    made = tg.LimitSet([tg.per_minute("rpm", 1)], clock=clock)
    made.acquire(rpm=1)
    order, threads = [], []
    for number in range(3):

        def work(number=number):
            lease = made.acquire(rpm=1)
            order.append((number, lease.waited))

        threads.append(threading.Thread(target=work))
        threads[-1].start()
        while made.peek().waiting != number + 1:
            time.sleep(0.001)
    clock.advance(59.999)
    assert made.peek().waiting == 3
    clock.advance(0.001)
    # It was admitted before the clock returned.
    assert made.peek().waiting == 2
    clock.advance(timedelta(minutes=2))
    assert made.peek().waiting == 0
    for thread in threads:
        thread.join(60)
    assert sorted(order) == [(0, 60.0), (1, 120.0), (2, 180.0)]
    assert clock.elapsed == 180 and "180" in repr(clock)


def test_p49_time_outs_go_by_a_manual_clock():
    clock, errors = ManualClock(), []
    made = tg.LimitSet([tg.resource("slots", 1)], clock=clock)
    held = made.acquire()

    def work():
        try:
            made.acquire(timeout=1_000)
        except tg.TimedOut as error:
            errors.append(error.waited)

    thread = threading.Thread(target=work)
    thread.start()
    while made.peek().waiting == 0:
        time.sleep(0.001)
    clock.advance(999)
    assert made.peek().waiting == 1
    clock.advance(1)
    thread.join(60)
    assert errors == [1_000.0]
    held.commit()


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), 2**70, True, "5", None, b"1", timedelta(seconds=-1)])
def test_a_clock_goes_forward_by_seconds_only(seconds):
    clock = ManualClock()
    with pytest.raises((tg.InvalidValue, TypeError), match="seconds"):
        clock.advance(seconds)
    assert clock.elapsed == 0
