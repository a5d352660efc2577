"""Worker pools: threads, tasks and processes."""

from __future__ import annotations

import asyncio
import copy
import pickle
import subprocess
import sys
import textwrap
import threading

import pytest

import tollgate as tg

MONTH = 30 * 86_400


def test_threads_return_results_in_the_order_of_their_items():
    with tg.WorkerPool(lambda item: item * 2, threads=8) as pool:
        assert pool.map(range(1_000)) == [2 * n for n in range(1_000)]
        assert pool.submit(21).result() == 42
        assert repr(pool) == "<WorkerPool threads=8>"


def test_threads_share_limits():
    limits = tg.LimitSet([tg.resource("slots", 3), tg.fixed_window("calls", 100, MONTH)])
    running, most, lock = [0], [0], threading.Lock()

    def work(worker, item):
        with worker.limits.acquire(calls=1):
            with lock:
                running[0] += 1
                most[0] = max(most[0], running[0])
            with lock:
                running[0] -= 1
        return worker.index

    with tg.WorkerPool(work, threads=8, limits=limits) as pool:
        indices = pool.map(range(60))
    assert set(indices) <= set(range(8)) and most[0] <= 3
    assert limits.peek()["calls"].available == 40


def test_items_are_taken_as_workers_come_free():
    taken, done = [], []

    def items():
        for number in range(100):
            taken.append(number)
            assert len(taken) - len(done) <= 5, "two for each worker, and the next"
            yield number

    with tg.WorkerPool(done.append, threads=2) as pool:
        pool.map(items())
    assert sorted(done) == list(range(100))


def test_a_job_is_tried_again_and_the_last_error_comes_out():
    tries = []

    def work(item):
        tries.append(item)
        if tries.count(item) <= item:
            raise KeyError(item)
        return item

    with tg.WorkerPool(work, threads=1, retries=2) as pool:
        assert pool.map([0, 1, 2]) == [0, 1, 2]
        with pytest.raises(KeyError):
            pool.map([3])
    assert [tries.count(n) for n in range(4)] == [1, 2, 3, 3]


def test_a_denied_job_is_tried_again_when_it_may_be_admitted():
    limits = tg.LimitSet([tg.per_second("rps", 50, burst=1)])

    def work(item):
        lease = limits.try_acquire(rps=1)
        if not lease:
            lease.raise_()
        lease.commit()

    with tg.WorkerPool(work, threads=1, retries=10_000) as pool:
        pool.map(range(3))


def test_a_demand_that_can_never_fit_is_not_tried_again():
    limits, tries = tg.LimitSet([tg.per_second("rps", 5)]), []

    def work(item):
        tries.append(item)
        limits.acquire(rps=6)

    with tg.WorkerPool(work, threads=1, retries=5) as pool:
        with pytest.raises(tg.Impossible):
            pool.map([1])
    assert tries == [1]


def test_an_exception_in_the_block_cancels_what_has_not_begun():
    go, begun = threading.Event(), threading.Event()

    def work(item):
        begun.set()
        go.wait(60)
        return item

    with pytest.raises(ZeroDivisionError):
        with tg.WorkerPool(work, threads=1) as pool:
            first, second = pool.submit(1), pool.submit(2)
            begun.wait(60)
            go.set() if second.cancel() else None
            third = pool.submit(3)
            1 / 0
    assert first.result() == 1 and second.cancelled()
    assert third.cancelled() or third.result() == 3
    with pytest.raises(tg.Error, match="closed"):
        pool.submit(4)


def test_an_error_of_one_is_a_result_if_asked_for():
    with tg.WorkerPool(lambda item: 6 // item, threads=2) as pool:
        results = pool.map([1, 0, 3], return_exceptions=True)
        assert [results[0], type(results[1]), results[2]] == [6, ZeroDivisionError, 2]
        with pytest.raises(ZeroDivisionError):
            pool.map([0, 1])


def test_threads_serve_an_event_loop():
    async def main():
        async with tg.WorkerPool(lambda item: item + 1, threads=4) as pool:
            return await pool.map_async(range(50))

    assert asyncio.run(main()) == list(range(1, 51))


def test_tasks_share_limits_and_keep_the_order():
    limits = tg.LimitSet([tg.resource("slots", 5), tg.fixed_window("calls", 1_000, MONTH)])
    running, most, indices = [0], [0], set()

    async def work(worker, item):
        async with worker.limits.acquire_async(calls=1):
            indices.add(worker.index)
            running[0] += 1
            most[0] = max(most[0], running[0])
            await asyncio.sleep(0)
            running[0] -= 1
        return item

    async def main():
        async with tg.WorkerPool(work, tasks=20, limits=limits) as pool:
            assert await pool.map_async(range(300)) == list(range(300))
            assert await pool.submit(7) == 7

    asyncio.run(main())
    assert most[0] == 5 and indices == set(range(20))
    status = limits.peek()
    assert (status["slots"].available, status["calls"].available) == (5, 699)


def test_p23_tasks_that_are_cancelled_give_everything_back():
    limits = tg.LimitSet([tg.resource("slots", 5)])

    async def work(worker, item):
        async with worker.limits.acquire_async():
            await asyncio.Event().wait()

    async def main():
        with pytest.raises(ZeroDivisionError):
            async with tg.WorkerPool(work, tasks=20, limits=limits) as pool:
                futures = [pool.submit(n) for n in range(50)]
                while limits.peek()["slots"].available:
                    await asyncio.sleep(0)
                1 / 0
        assert all(future.cancelled() for future in futures)

    asyncio.run(main())
    status = limits.peek()
    assert (status["slots"].available, status.waiting) == (5, 0)


def test_tasks_are_tried_again():
    tries = []

    async def work(item):
        tries.append(item)
        if len(tries) < 3:
            raise KeyError(item)
        return item

    async def main():
        async with tg.WorkerPool(work, tasks=2, retries=3) as pool:
            assert await pool.map_async([1]) == [1]
            with pytest.raises(tg.InvalidValue, match="await map_async"):
                pool.map([1])

    asyncio.run(main())
    assert len(tries) == 3


def test_wrong_use_is_reported_when_a_pool_is_made():
    async def later(item):
        return item

    for options, text in [
        ({}, "one of them"),
        ({"threads": 1, "tasks": 1}, "one of them"),
        ({"threads": 0}, "threads is 0"),
        ({"threads": True}, "threads is True"),
        ({"threads": 1.5}, "threads is 1.5"),
        ({"threads": 1, "retries": -1}, "retries is -1"),
        ({"threads": 1, "mp_context": "spawn"}, "for processes"),
        ({"tasks": 1}, "no coroutine function"),
        ({"processes": 1, "mp_context": "teleport"}, "teleport"),
    ]:
        with pytest.raises(tg.InvalidValue, match=text):
            tg.WorkerPool(str.upper, **options)
    with pytest.raises(tg.InvalidValue, match="is a coroutine function"):
        tg.WorkerPool(later, threads=1)
    with pytest.raises(tg.InvalidValue, match="a function of an item"):
        tg.WorkerPool(lambda a, b, c: a, threads=1)
    with pytest.raises(tg.InvalidValue, match="must be a function"):
        tg.WorkerPool(7, threads=1)
    with pytest.raises(tg.Error, match="async with"):
        tg.WorkerPool(later, tasks=1).submit(1)


def test_processes_refuse_a_function_that_they_cannot_import():
    with pytest.raises(tg.InvalidValue, match="at the top of a module"):
        tg.WorkerPool(lambda item: item, processes=1)


def test_p35_processes_refuse_a_set_in_memory():
    for context in ["fork", "spawn", "forkserver"]:
        with pytest.raises(TypeError, match="give the set a store"):
            tg.WorkerPool(str.upper, processes=2, limits=tg.LimitSet([tg.resource("slots", 1)]), mp_context=context)


def run_file(folder, program, *arguments):
    """Runs a program from a file, which its processes import again, and returns what it printed."""
    path = folder / "program.py"
    path.write_text(textwrap.dedent(program))
    done = subprocess.run([sys.executable, str(path), *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout.strip()


PROCESSES = """
    import os, signal, sys, threading
    import tollgate as tg

    def work(worker, item):
        if item == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if item == "exit":
            os._exit(3)
        if item == "raise":
            raise OSError(17, "mine")
        if item == "odd":
            class Odd(Exception):
                pass
            raise Odd("local")
        if item == "unpicklable":
            return threading.Lock()
        return os.getpid(), worker.index, item

    if __name__ == "__main__":
        context = sys.argv[1]
        with tg.WorkerPool(work, processes=3, mp_context=context) as pool:
            pids = {pid for pid, _, _ in pool.map(range(30))}
            assert os.getpid() not in pids and 1 <= len(pids) <= 3, pids
            results = pool.map(["a", "die", "b", "exit", "c", "raise", "odd", "unpicklable", "d"] + list(range(20)), return_exceptions=True)
            assert [value[2] for value in results if isinstance(value, tuple)] == ["a", "b", "c", "d", *range(20)], results
            died, ended, raised, odd, lock = [value for value in results if not isinstance(value, tuple)]
            assert isinstance(died, tg.WorkerDied) and "was killed by signal 9" in str(died), died
            assert isinstance(ended, tg.WorkerDied) and "ended with exit code 3" in str(ended), ended
            assert isinstance(raised, OSError) and raised.errno == 17 and "in work" in str(raised.__cause__), raised
            assert isinstance(odd, TypeError) and "cannot be pickled" in str(odd), odd
            assert isinstance(lock, TypeError) and "the result" in str(lock), lock
        print("fine")
"""


@pytest.mark.parametrize("context", ["forkserver", "spawn", "fork"])
def test_a_worker_process_that_dies_fails_its_own_job_and_no_other(tmp_path, context):
    assert run_file(tmp_path, PROCESSES, context) == "fine"


SHARED = """
    import sys
    import tollgate as tg

    def work(worker, item):
        with worker.limits.acquire(calls=1, timeout=60):
            return item

    if __name__ == "__main__":
        limits = tg.LimitSet([tg.fixed_window("calls", 100, 30 * 86_400), tg.resource("slots", 2)], store="shm:", name="jobs")
        with tg.WorkerPool(work, processes=3, limits=limits, mp_context=sys.argv[1]) as pool:
            assert pool.map(range(40)) == list(range(40))
        status = limits.peek()
        print(status["calls"].available, status["slots"].available)
"""


@pytest.mark.parametrize("context", ["forkserver", "spawn", "fork"])
def test_processes_share_a_set_in_a_store(tmp_path, context):
    assert run_file(tmp_path, SHARED, context) == "60 2"


INTERRUPTED = """
    import signal, time
    import tollgate as tg

    def work(item):
        time.sleep(3_600)

    if __name__ == "__main__":
        try:
            with tg.WorkerPool(work, processes=2) as pool:
                futures = [pool.submit(n) for n in range(10)]
                while not futures[0].running():
                    time.sleep(0.01)
                signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            print("interrupted", all(future.cancelled() for future in futures[2:]))
"""


def test_an_interrupt_ends_a_pool_of_processes(tmp_path):
    assert run_file(tmp_path, INTERRUPTED) == "interrupted True"


def test_a_pool_is_not_copied_and_its_function_takes_an_item():
    with tg.WorkerPool(str.upper, threads=1) as pool:
        for copied in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="belongs to the process"):
                copied(pool)
    for function in (lambda: None, lambda *, item: None):
        with pytest.raises(tg.InvalidValue, match="a function of an item"):
            tg.WorkerPool(function, threads=1)
    with tg.WorkerPool(lambda *items: items, threads=1) as pool:
        assert pool.map([5]) == [(5,)]


def test_a_script_without_a_guard_reads_what_it_lacks(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import tollgate as tg

            def work(item):
                return item

            with tg.WorkerPool(work, processes=2) as pool:
                pool.map(range(3))
            """
        )
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert 'below if __name__ == "__main__":' in done.stderr.splitlines()[-1]
    # The pools of the workers, which must not start processes, fail by themselves.
    assert "Exception in thread" not in done.stderr


def test_a_pool_of_processes_in_a_worker_process_fails_with_the_reason(run_script):
    program = """
        import tollgate as tg

        def inner(item):
            return item

        def work(item):
            with tg.WorkerPool(inner, processes=1) as pool:
                return pool.map([item])

        def main():
            with tg.WorkerPool(work, processes=1) as pool:
                print(pool.map([1], return_exceptions=True))
    """
    assert "daemonic processes are not allowed to have children" in run_script(program)


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_a_forked_child_raises_for_the_pool_of_its_parent(run_script, kind):
    program = """
        import os, signal, sys
        import tollgate as tg

        def work(item):
            return item

        def main():
            with tg.WorkerPool(work, **{sys.argv[1]: 1}) as pool:
                assert pool.map([1]) == [1]
                pid = os.fork()
                if pid == 0:
                    signal.alarm(60)
                    try:
                        pool.map([2])
                    except tg.Error as error:
                        pool.close()
                        os._exit(0 if "make one here" in str(error) else 1)
                    os._exit(2)
                assert os.waitpid(pid, 0)[1] == 0
                print(pool.map([3]))
    """
    assert run_script(program, kind) == "[3]"
