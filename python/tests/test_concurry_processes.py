"""Limits of Concurry over processes: forked, spawned, killed, and by pickle. Each test runs in a process of its own."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

#: No test process takes longer, however busy the machine is.
LIMIT = 180

COMMON = """
import multiprocessing, os, pickle, signal, sys, threading, time
from tollgate.compat.concurry import CallLimit, LimitPool, LimitSet, RateLimit, ResourceLimit

def shared(slots=2, tokens=100):
    return LimitSet(limits=[
        RateLimit(key="tokens", window=100_000_000, capacity=tokens, algorithm="TokenBucket"),
        ResourceLimit(key="slots", capacity=slots),
    ], shared=True, mode="process", config={"region": "blue"})

def left(limits):
    return round(limits._available(0), 2), limits._available(1)
"""


@pytest.fixture
def run_file(tmp_path: pathlib.Path):
    """Run a program from a file, which children of every start method can import."""

    def run(program: str, *arguments: str, **environment: str) -> str:
        file = tmp_path / "program.py"
        file.write_text(COMMON + textwrap.dedent(program))
        done = subprocess.run(
            [sys.executable, "-X", "faulthandler", str(file), *arguments],
            capture_output=True,
            text=True,
            timeout=LIMIT,
            env={**os.environ, **environment},
        )
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "panicked" not in done.stderr, done.stderr
        return done.stdout.strip()

    return run


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_processes_share_one_budget_and_one_resource(run_file, method: str) -> None:
    program = """
    def work(limits, holding, most, admitted):
        for _ in range(20):
            with limits.acquire({"tokens": 0}) as acquisition:
                with holding.get_lock():
                    holding.value += 1
                    most.value = max(most.value, holding.value)
                with holding.get_lock():
                    holding.value -= 1
                acquisition.update({"tokens": 0})
        taken = 0
        while True:
            acquisition = limits.try_acquire({"tokens": 5, "slots": 0})
            if not acquisition.successful:
                break
            acquisition.update({"tokens": 5})
            acquisition.release()
            taken += 5
        with admitted.get_lock():
            admitted.value += taken

    if __name__ == "__main__":
        context = multiprocessing.get_context(sys.argv[1])
        limits = shared(slots=2, tokens=1_000)
        holding, most, admitted = (context.Value("i", 0) for _ in range(3))
        children = [context.Process(target=work, args=(limits, holding, most, admitted)) for _ in range(4)]
        for child in children:
            child.start()
        for child in children:
            child.join()
        print([child.exitcode for child in children], most.value <= 2, admitted.value, left(limits))
    """
    assert run_file(program, method) == "[0, 0, 0, 0] True 1000 (0.0, 2.0)"


def test_p36_a_set_is_pickled_by_its_place(run_file) -> None:
    program = """
    if __name__ == "__main__":
        limits = shared()
        copies = [pickle.loads(pickle.dumps(limits)) for _ in range(3)]
        pool = pickle.loads(pickle.dumps(LimitPool(limit_sets=[limits, copies[0]])))
        held = copies[1].acquire({"tokens": 30})
        print(left(limits), left(pool[0]), left(pool[1]), held.config, copies[2].shared, type(copies[0]).__name__)
        held.update({"tokens": 10})
        held.release()
        print(left(limits), limits.get_stats() == copies[2].get_stats() or "differ", left(shared()))
        for thing in (held,):
            try:
                pickle.dumps(thing)
            except TypeError:
                print("not pickled")
    """
    lines = run_file(program).splitlines()
    assert lines[0] == "(70.0, 1.0) (70.0, 1.0) (70.0, 1.0) {'region': 'blue'} True MultiprocessSharedLimitSet"
    assert lines[1].startswith("(90.0, 2.0)") and lines[1].endswith("(100.0, 2.0)") and lines[2] == "not pickled"


def test_p31_a_child_that_releases_its_copy_frees_nothing_of_its_parent(run_file) -> None:
    program = """
    if __name__ == "__main__":
        limits = shared(slots=1)
        held = limits.acquire({"tokens": 10})
        for end in ("release", "drop"):
            pid = os.fork()
            if pid == 0:
                if end == "release":
                    held.update({"tokens": 0})
                    held.release()
                else:
                    del held
                os._exit(0 if not limits.try_acquire({"tokens": 1}).successful else 1)
            print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), left(limits))
        held.update({"tokens": 4})
        held.release()
        print(left(limits))
    """
    assert run_file(program) == "0 (90.0, 0.0)\n0 (90.0, 0.0)\n(96.0, 1.0)"


def test_resources_of_a_killed_process_come_back(run_file) -> None:
    program = """
    def hold(limits, connection):
        held = limits.acquire({"tokens": 1})
        connection.send("held")
        time.sleep(600)

    if __name__ == "__main__":
        context = multiprocessing.get_context("spawn")
        limits = shared(slots=1)
        here, there = context.Pipe()
        child = context.Process(target=hold, args=(limits, there))
        child.start()
        print(here.recv(), limits.try_acquire({"tokens": 1}).successful)
        os.kill(child.pid, signal.SIGKILL)
        with limits.acquire({"tokens": 1}, timeout=60) as acquisition:
            acquisition.update({"tokens": 1})
        child.join()
        print(left(limits)[1])
    """
    assert run_file(program) == "held False\n1.0"


@pytest.mark.parametrize("mode", ["thread", "process"])
def test_p32_a_child_forked_while_a_thread_waits_acquires(run_file, mode: str) -> None:
    program = """
    if __name__ == "__main__":
        limits = LimitSet(limits=[RateLimit(key="tokens", window=1, capacity=10, algorithm="TokenBucket")],
                          shared=True, mode=sys.argv[1])
        limits.acquire({"tokens": 10})._end()

        def wait():
            for _ in range(30):
                limits.acquire({"tokens": 2})._end()

        thread = threading.Thread(target=wait)
        thread.start()
        codes = []
        for _ in range(5):
            while limits._waiting() == 0 and thread.is_alive():
                time.sleep(0.001)
            pid = os.fork()
            if pid == 0:
                # Its own copy in memory, or in turns with its parent.
                limits.acquire({"tokens": 2}, timeout=60)._end()
                os._exit(0)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        thread.join()
        print(codes)
    """
    assert run_file(program, mode) == "[0, 0, 0, 0, 0]"


def test_sets_are_made_and_awaited_in_an_event_loop(run_file) -> None:
    program = """
    import asyncio

    async def main():
        limits = shared(slots=1)
        held = await limits.async_acquire({"tokens": 10})
        async def wait():
            async with await limits.async_acquire({"tokens": 10}, timeout=60) as acquisition:
                acquisition.update({"tokens": 5})
        tasks = [asyncio.create_task(wait()) for _ in range(20)]
        await asyncio.sleep(0.01)
        for task in tasks[:10]:
            task.cancel()
        held.update({"tokens": 0})
        held.release()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        print(sum(result is None for result in results))
        # What a cancelled task took is given back a moment later.
        while left(limits) != (50.0, 1.0):
            await asyncio.sleep(0.01)
        print(left(limits))
        for raised in (None, ZeroDivisionError()):
            try:
                async with await limits.async_acquire({"tokens": 5}):
                    if raised:
                        raise raised
            except (RuntimeError, ZeroDivisionError) as error:
                print(type(error).__name__, left(limits))

    if __name__ == "__main__":
        asyncio.run(main())
    """
    assert run_file(program).splitlines() == [
        "10",
        "(50.0, 1.0)",
        "RuntimeError (45.0, 1.0)",
        "ZeroDivisionError (40.0, 1.0)",
    ]


def test_p37_the_shared_memory_is_removed_with_its_maker_and_no_child(run_file) -> None:
    program = """
    def use(limits):
        limits.acquire({"tokens": 1})._end()

    def files():
        return sorted(name for name in os.listdir("/dev/shm") if f"-{os.getpid():x}-" in name)

    if __name__ == "__main__":
        limits, other = shared(), shared()
        for method in ("fork", "spawn"):
            child = multiprocessing.get_context(method).Process(target=use, args=(limits,))
            child.start()
            child.join()
        limits.acquire({"tokens": 1})._end()
        print(left(limits), left(other), len(files()), *files())
    """
    shown = run_file(program).split()
    assert shown[:5] == ["(97.0,", "2.0)", "(100.0,", "2.0)", "1"]
    assert not any(name in os.listdir("/dev/shm") for name in shown[5:])


def test_a_set_of_several_hosts_is_in_the_store_of_its_url(run_file, tmp_path: pathlib.Path) -> None:
    program = """
    if __name__ == "__main__":
        limits = LimitSet(limits=[RateLimit(key="tokens", window="day", capacity=5)], shared=True, mode="process",
                          store=sys.argv[1])
        limits.acquire({"tokens": 4})._end()
        print(pickle.loads(pickle.dumps(limits)).try_acquire({"tokens": 2}).successful, os.path.exists(sys.argv[2]))
    """
    file = tmp_path / "limits.db"
    assert run_file(program, f"file:{file}", str(file)) == "False True"


def test_what_is_refused_without_ray(run_file) -> None:
    program = """
    from tollgate.compat.concurry import RaySharedLimitSet
    sys.modules["ray"] = None
    limits = [ResourceLimit(key="slots", capacity=1)]
    for make in (lambda: RaySharedLimitSet(limits), lambda: LimitSet(limits, shared=True, mode="ray"),
                 lambda: LimitSet(limits, mode="ray"), lambda: LimitSet(limits, mode="process")):
        try:
            make()
        except (ImportError, ValueError) as error:
            print(type(error).__name__, error)
    print(type(LimitSet([], shared=True, mode="ray")).__name__)
    """
    lines = run_file(program).splitlines()
    assert lines[:2] == ["ImportError a RaySharedLimitSet requires ray: pip install ray"] * 2
    assert lines[2].startswith("ValueError Non-shared LimitSets cannot use mode='ray'")
    assert lines[3].startswith("ValueError Non-shared LimitSets cannot use mode='process'")
    assert lines[4] == "NoOpLimitSet"
