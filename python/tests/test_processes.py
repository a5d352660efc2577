"""Fork, forkserver, spawn, and pickles between them."""

from __future__ import annotations

import copy
import pickle

import cloudpickle
import pytest
import tollgate as tg
import tollgate.testing


def test_p31_a_lease_that_fork_copied_does_nothing_in_the_child(run_python, tmp_path):
    program = """
        import os, sys
        import tollgate as tg

        def in_child(check):
            pid = os.fork()
            if pid == 0:
                try:
                    check()
                    os._exit(0)
                except BaseException as error:
                    print(repr(error), file=sys.stderr, flush=True)
                    os._exit(1)
            assert os.waitpid(pid, 0)[1] == 0

        def ends(how):
            def check():
                global lease
                try:
                    how()
                except tg.LeaseEnded:
                    pass
                lease = None
            return check

        for store in ("shm:", "file:" + sys.argv[1] + "/limits.db"):
            limits = tg.LimitSet([tg.resource("slots", 1), tg.per_day("rpm", 100)], store=store, name="a")
            for turn in range(4):
                lease = limits.acquire(rpm=10)
                in_child(ends(lambda: None))
                in_child(ends(lambda: lease.settle(rpm=1)))
                in_child(ends(lambda: lease.__exit__(None, None, None)))
                in_child(ends(lambda: lease.cancel()))
                assert not limits.try_acquire(rpm=1), store
                def refused():
                    assert not limits.try_acquire(rpm=1)
                in_child(refused)
                lease.settle(rpm=1)
                status = limits.peek()
                assert status["slots"].available == 1 and status["rpm"].available == 99 - turn, status
            del lease
    """
    run_python(program, str(tmp_path))


def test_p32_a_set_in_memory_that_was_forked_while_a_thread_waited_has_an_empty_queue(run_python):
    program = """
        import os, threading, time
        import tollgate as tg

        for made in (lambda: tg.LimitSet([tg.per_second("rps", 10, burst=1)]), lambda: tg.LimitSet([tg.resource("slots", 1)])):
            limits = made()
            held = limits.acquire({name: 1 for name in [limits.limits[0].name]})
            if limits.limits[0].name == "rps":
                for _ in range(3):
                    threading.Thread(target=lambda: limits.acquire(rps=1), daemon=True).start()
            else:
                threading.Thread(target=lambda: limits.acquire(timeout=5), daemon=True).start()
            while limits.peek().waiting == 0:
                time.sleep(0.0001)
            pid = os.fork()
            if pid == 0:
                assert limits.peek().waiting == 0
                if "rps" in limits:
                    limits.acquire(rps=1, timeout=60)
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0
            held.commit()
    """
    run_python(program)


def test_p33_a_store_is_used_on_both_sides_of_a_fork(run_python, store):
    program = """
        import os, sys, threading
        import tollgate as tg

        limits = tg.LimitSet([tg.resource("slots", 2), tg.per_day("rpm", 10_000)], store=sys.argv[1], name="p33")
        limits.acquire(rpm=1).commit()
        turns = 20
        for turn in range(turns):
            pid = os.fork()
            if pid == 0:
                with limits.acquire(rpm=1, timeout=100):
                    pass
                again = tg.LimitSet([tg.resource("slots", 2), tg.per_day("rpm", 10_000)], store=limits.store, name="p33")
                again.acquire(rpm=1, timeout=100).commit()
                os._exit(0)
            with limits.acquire(rpm=1, timeout=100):
                pass
            assert os.waitpid(pid, 0)[1] == 0
        status = limits.peek()
        assert status["rpm"].available == 10_000 - 1 - 3 * turns and status["slots"].available == 2, status
    """
    run_python(program, store)


def test_p33_a_child_has_connections_of_its_own(run_python, redis):
    program = """
        import os, sys
        import tollgate as tg

        def limits():
            return tg.LimitSet([tg.per_day("rpm", 100)], store=sys.argv[1], name="a")

        mine = limits()
        mine.acquire(rpm=1).commit()
        print("ready", flush=True)
        sys.stdin.readline()
        pid = os.fork()
        if pid == 0:
            mine.acquire(rpm=1).commit()
            # The handle that it has inherited and one that it opens are one.
            limits().acquire(rpm=1).commit()
            print("forked", flush=True)
            sys.stdin.readline()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        mine.acquire(rpm=1).commit()
    """
    import subprocess
    import sys
    import textwrap

    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), redis.url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        alone = redis.clients()
        process.stdin.write("\n")
        assert process.stdout.readline() == "forked\n"
        assert redis.clients() == 2 * alone
        process.stdin.write("\n")
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()


def test_p34_children_that_were_forked_while_threads_work_go_on(run_python):
    program = """
        import gc, os, signal, threading
        import tollgate as tg

        shared = tg.LimitSet([tg.per_day("rpm", 10**9)], store="shm:")
        memory = tg.LimitSet([tg.per_day("rpm", 10**9)], observer=lambda event: None)
        stop = False

        def hammer():
            while not stop:
                shared.acquire(rpm=1)
                memory.acquire(rpm=1)
                tg.LimitSet([tg.per_day("rpm", 5)], store=shared.store, name="other").acquire(rpm=1, slots=0) if False else None
                tg.LimitSet([tg.per_day("rpm", 10**9)], store=shared.store, name="other").acquire(rpm=1)

        threads = [threading.Thread(target=hammer, daemon=True) for _ in range(8)]
        for thread in threads:
            thread.start()
        for turn in range(200):
            pid = os.fork()
            if pid == 0:
                signal.alarm(60)
                shared.acquire(rpm=1)
                memory.acquire(rpm=1)
                tg.LimitSet([tg.per_day("rpm", 10**9)], store=shared.store, name="other").acquire(rpm=1)
                tg.LimitSet([tg.per_day("rpm", 10)], store="shm:").acquire(rpm=1)
                os._exit(0)
            status = os.waitpid(pid, 0)[1]
            assert status == 0, (turn, status)
        stop = True
        for thread in threads:
            thread.join(60)
    """
    run_python(program)


def test_p34_a_child_that_was_forked_under_a_lock_of_the_package_goes_on(run_python):
    program = """
        import asyncio, os, signal
        import tollgate as tg
        from tollgate import _awaiting, _http, _worker_processes

        async def wait_in_loop():
            limits = tg.LimitSet([tg.resource("slots", 1)])
            async with limits.acquire_async():
                try:
                    await limits.acquire_async(timeout=0.01)
                except tg.TimedOut:
                    return

        # As it is for a child while another thread of its parent is in one of them.
        with _awaiting._lock, _http._lock, _worker_processes._lock:
            pid = os.fork()
            if pid == 0:
                signal.alarm(60)
                asyncio.run(wait_in_loop())
                with _http._lock, _worker_processes._lock:
                    os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    """
    run_python(program)


METHODS = ["fork", "forkserver", "spawn"]


@pytest.mark.parametrize("method", METHODS)
def test_p37_processes_share_a_set_and_no_child_that_ends_takes_it_along(run_script, method):
    program = """
        import multiprocessing, os, sys
        import tollgate as tg

        def work(limits, held, worst, turns):
            for _ in range(turns):
                with limits.acquire(rpm=1, timeout=100):
                    with held.get_lock():
                        held.value += 1
                        worst.value = max(worst.value, held.value)
                    with held.get_lock():
                        held.value -= 1

        def main():
            context = multiprocessing.get_context(sys.argv[1])
            limits = tg.LimitSet([tg.resource("slots", 2), tg.per_day("rpm", 1_000)], store="shm:")
            held, worst = context.Value("i", 0), context.Value("i", 0)
            children = [context.Process(target=work, args=(limits, held, worst, 10)) for _ in range(4)]
            for child in children:
                child.start()
            for child in children:
                child.join(100)
            assert [child.exitcode for child in children] == [0] * 4
            assert 1 <= worst.value <= 2
            assert limits.peek()["rpm"].available == 960
            # The children have ended, and a late one still finds the same set.
            late = context.Process(target=work, args=(limits, held, worst, 1))
            late.start()
            late.join(100)
            assert late.exitcode == 0 and limits.peek()["rpm"].available == 959
    """
    run_script(program, method)


@pytest.mark.parametrize("method", METHODS)
def test_p37_a_child_that_opens_the_store_after_the_end_of_the_main_module_finds_it(run_script, method):
    program = """
        import multiprocessing, multiprocessing.util, sys
        import tollgate as tg

        def work(pickled, gate):
            import pickle
            # The main module has ended, and waits for its children.
            gate.recv()
            pickle.loads(pickled).acquire(rpm=1).commit()
            print("joined", flush=True)

        def main():
            import pickle
            context = multiprocessing.get_context(sys.argv[1])
            limits = tg.LimitSet([tg.per_day("rpm", 1_000)], store="shm:")
            mine, theirs = context.Pipe()
            context.Process(target=work, args=(pickle.dumps(limits), theirs)).start()
            # Sent when the handlers of atexit that came later have run.
            multiprocessing.util.Finalize(None, mine.send, args=(1,), exitpriority=10)
    """
    assert run_script(program, method) == "joined"


def test_p37_anonymous_memory_of_a_child_ends_with_the_child(run_script):
    program = """
        import glob, multiprocessing, os
        import tollgate as tg

        def work(urls):
            urls.put(tg.LimitSet([tg.per_day("rpm", 5)], store="shm:").store)

        def main():
            for method in ("fork", "spawn"):
                context = multiprocessing.get_context(method)
                urls = context.Queue()
                child = context.Process(target=work, args=(urls,))
                child.start()
                url = urls.get(timeout=60)
                child.join(60)
                assert child.exitcode == 0
                assert not glob.glob("/dev/shm/*" + url.removeprefix("shm:")), method
    """
    run_script(program)


def test_p36_workers_of_executors_share_a_set(run_script, tmp_path):
    program = """
        import concurrent.futures, multiprocessing, sys
        import tollgate as tg

        def work(limits):
            with limits.acquire(rpm=1, timeout=100) as lease:
                return lease.config["region"], limits.store, limits.limits[0].name

        def main():
            url = "file:" + sys.argv[1] + "/limits.db"
            limits = tg.LimitSet([tg.per_day("rpm", 100), tg.resource("slots", 1)], store=url, name="a", config={"region": "blue"})
            pool = tg.LimitPool([limits, tg.LimitSet([tg.per_day("rpm", 5)], store=url, name="b")], spread="round_robin")
            context = multiprocessing.get_context("spawn")
            with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as executor:
                assert list(executor.map(work, [limits] * 10)) == [("blue", url, "rpm")] * 10
                assert list(executor.map(len, [pool] * 2)) == [2, 2]
            assert limits.peek()["rpm"].available == 90
    """
    run_script(program, str(tmp_path))


# Pickles.


def test_p35_a_set_that_others_cannot_reach_does_not_pickle():
    for made in (
        tg.LimitSet([tg.per_minute("rpm", 5)]),
        tg.LimitSet([tg.per_minute("rpm", 5)], store="memory", name="a"),
        tg.LimitPool([tg.LimitSet([tg.per_minute("rpm", 5)])]),
    ):
        for dumps in (pickle.dumps, cloudpickle.dumps):
            with pytest.raises(TypeError, match="store="):
                dumps(made)


def test_p35_a_lease_never_pickles():
    for store in (None, "shm:"):
        lease = tg.LimitSet([tg.per_minute("rpm", 5)], store=store).acquire(rpm=1)
        with pytest.raises(TypeError, match="belongs to the process"):
            pickle.dumps(lease)


def test_p39_public_classes_are_found_where_users_import_them():
    for name in tg.__all__:
        thing = getattr(tg, name)
        if isinstance(thing, type):
            assert (thing.__module__, thing.__qualname__) == ("tollgate", name)
            assert pickle.loads(pickle.dumps(thing)) is cloudpickle.loads(cloudpickle.dumps(thing)) is copy.copy(thing) is thing
    assert tollgate.testing.ManualClock.__module__ == "tollgate.testing"


@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps])
def test_p39_a_set_survives_a_pickle_with_all_that_it_is(dumps):
    made = tg.LimitSet(
        [tg.per_minute("rpm", 5, burst=2), tg.quota("calls", 3, cron="0 0 * * *", tz="Europe/Berlin"), tg.resource("slots", 1)],
        store="shm:",
        name="a",
        config={"region": "blue"},
        skip_unknown=True,
        on_drop="refund",
        lease_ttl=30,
        version=2,
        without=["budget"],
        observer=print,
    )
    again = pickle.loads(dumps(made))
    assert (again.name, again.store, again.config, again.limits) == (made.name, made.store, made.config, made.limits)
    with again.acquire(rpm=1, nonesuch=1):
        assert not made.try_acquire(rpm=1)


def test_p39_a_pool_survives_a_pickle():
    sets = [tg.LimitSet([tg.per_minute("rpm", 5)], store="shm:", config={"n": n}) for n in range(3)]
    for spread in ("soonest", "round_robin", "random", len):
        pool = tg.LimitPool(sets, spread=spread).for_worker(2)
        again = pickle.loads(pickle.dumps(pool))
        assert (len(again), again.spread, again.index) == (3, spread, 2)
        assert [one.store for one in again.sets] == [one.store for one in sets]


def test_p40_exceptions_come_back_from_other_processes(run_script):
    program = """
        import concurrent.futures, multiprocessing
        import tollgate as tg

        def work(case):
            limits = tg.LimitSet([tg.per_hour("jobs", 1)], store="shm:")
            limits.acquire(jobs=1)
            if case == "denied":
                limits.try_acquire(jobs=1).raise_()
            elif case == "timeout":
                limits.acquire(jobs=1, timeout=0)
            elif case == "impossible":
                limits.acquire(jobs=5)
            elif case == "unknown":
                limits.acquire(nonesuch=5)
            elif case == "value":
                tg.LimitSet([tg.per_hour("jobs", 1)], store="nonsense")
            elif case == "unavailable":
                tg.LimitSet([tg.per_hour("jobs", 1)], store="redis://127.0.0.1:1", name="a", connect_within=0)
            elif case == "refused":
                tg.LimitSet([tg.per_hour("jobs", 1)], store="file:/no/such/folder/limits.db", name="a")

        def main():
            cases = dict(denied=tg.RateLimited, timeout=tg.TimedOut, impossible=tg.Impossible, unknown=tg.InvalidDemand,
                         value=tg.InvalidValue, unavailable=tg.Unavailable, refused=tg.StoreRefused)
            with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
                for case, kind in cases.items():
                    error = executor.submit(work, case).exception(timeout=100)
                    assert type(error) is kind, (case, error)
                    assert str(error)
                    if issubclass(kind, tg.RateLimited):
                        assert error.limited_by.name == "jobs" and error.retry_after > 3_000, error
                    if kind is tg.TimedOut:
                        assert error.waited >= 0
    """
    run_script(program)


def test_p29_an_interpreter_ends_with_leases_alive_in_stores(run_python, store):
    program = """
        import os, sys, threading
        import tollgate as tg

        limits = tg.LimitSet([tg.resource("slots", 100), tg.per_day("rpm", 10**6)], store=sys.argv[1], name="p29" + sys.argv[2], observer=lambda event: None)
        leases = [limits.acquire(rpm=1) for _ in range(100)]
        waiting = [threading.Thread(target=lambda: limits.acquire(rpm=1), daemon=True) for _ in range(4)]
        for thread in waiting:
            thread.start()
        if sys.argv[2] == "thread":
            threading.Thread(target=sys.exit).start()
        if sys.argv[2] == "_exit":
            os._exit(0)
    """
    import os
    import subprocess
    import sys
    import textwrap

    for way in ("end", "thread", "_exit"):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program), store, way],
            capture_output=True,
            text=True,
            timeout=100,
            env={**os.environ},
        )
        assert (done.returncode, done.stderr) == (0, ""), (way, done.stderr)


def test_p56_an_import_starts_no_thread(run_python):
    program = """
        import os, sys
        import tollgate, tollgate.testing
        assert len(os.listdir("/proc/self/task")) == 1
        assert not {"asyncio", "multiprocessing", "concurrent.futures", "httpx"} & set(sys.modules), sys.modules.keys()
        import logging
        assert logging.getLogger("tollgate").handlers == [] and logging.getLogger().handlers == []
    """
    run_python(program)
