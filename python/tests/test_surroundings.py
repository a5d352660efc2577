"""What is around a program: greenlets, second interpreters, copies of the package, containers, replaced clocks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import tollgate as tg

PACKAGE = Path(tg.__file__).parent

# The imports of ``import tollgate``.


def test_p56_an_import_needs_little_of_the_standard_library(run_python):
    program = """
        import sys
        import tollgate
        # Each of them takes milliseconds, and commands start with this import.
        costly = {"ast", "asyncio", "concurrent", "dataclasses", "decimal", "inspect", "json", "multiprocessing", "socket", "subprocess"}
        print(sorted(costly & sys.modules.keys()))
    """
    assert run_python(program) == "[]"


def test_p56_a_look_for_event_loops_imports_nothing(run_python):
    program = """
        import sys, types
        import tollgate as tg
        limits = tg.LimitSet([tg.resource("slots", 1)])
        held = limits.acquire()

        # As they are while another thread imports them, or did so when this process was forked.
        for name in ("asyncio", "trio", "gevent", "eventlet", "asyncio.events", "trio.lowlevel", "gevent._hub_local", "eventlet.hubs"):
            sys.modules[name] = types.ModuleType(name)

        class Finder:
            def find_spec(self, name, *_):
                raise SystemExit(f"imports {name}")

        sys.meta_path.insert(0, Finder())
        try:
            limits.acquire(timeout=0.01)
        except tg.TimedOut:
            print("timed out")
    """
    assert run_python(program) == "timed out"


# Greenlets.

GEVENT = """
    from gevent import monkey
    monkey.patch_all()
    from gevent import Timeout, get_hub, sleep, spawn
"""

EVENTLET = """
    import warnings
    warnings.simplefilter("ignore")
    import eventlet
    eventlet.monkey_patch()
    from eventlet import Timeout, sleep, spawn
"""

GREENLETS = """
    import sys
    import tollgate as tg
    from tollgate import greenlets

    made = [tg.resource("slots", 1), tg.per_day("tpm", 1_000)]
    limits, order = greenlets.wait(tg.LimitSet.open_async(made, store=sys.argv[1] or None, name="a")), []

    def work(number):
        with greenlets.hold(limits.acquire_async(tpm=100, timeout=60)) as lease:
            order.append(number)
            lease.report(tpm=1)

    def queued(count):
        while greenlets.wait(limits.peek_async()).waiting != count:
            sleep(0.001)

    held = greenlets.wait(limits.acquire_async(tpm=100))
    for number in range(3):
        spawn(work, number)
        queued(number + 1)
    killed = spawn(work, 3)
    queued(4)
    killed.kill()
    queued(3)
    try:
        with Timeout(0.05):
            greenlets.wait(limits.acquire_async(tpm=100))
    except Timeout:
        queued(3)
    try:
        limits.acquire(tpm=100)
    except tg.WouldBlockLoop as error:
        assert "tollgate.greenlets" in str(error), error
    else:
        raise SystemExit("it has waited")
    greenlets.wait(held.commit_async())
    while len(order) < 3:
        sleep(0.001)
    try:
        with greenlets.hold(limits.acquire_async(tpm=100)):
            raise KeyError("mine")
    except KeyError:
        pass
    status = greenlets.wait(limits.peek_async())
    print(order, status["slots"].available, status["tpm"].available, status.waiting)
"""


@pytest.mark.parametrize("kind", ["gevent", "eventlet"])
@pytest.mark.parametrize("place", ["memory", "shm", "redis"])
def test_p60_greenlets_wait_while_others_go_on(run_python, request, kind, place):
    pytest.importorskip(kind)
    url = {"memory": "", "shm": "shm:"}.get(place) or (request.getfixturevalue("redis").url if place == "redis" else "")
    program = textwrap.dedent(GEVENT if kind == "gevent" else EVENTLET) + textwrap.dedent(GREENLETS)
    assert run_python(program, url) == "[0, 1, 2] 1 897 0"


def test_p60_native_threads_of_gevent_may_wait(run_python):
    program = """
        import tollgate as tg

        limits = tg.LimitSet([tg.resource("slots", 1)])
        held = limits.acquire()
        waiting = get_hub().threadpool.spawn(limits.acquire)
        while limits.peek().waiting == 0:
            sleep(0.001)
        held.commit()
        waiting.get(timeout=60).commit()
        print(limits.peek()["slots"].available)
    """
    pytest.importorskip("gevent")
    assert run_python(textwrap.dedent(GEVENT) + textwrap.dedent(program)) == "1"


# Interpreters and copies.


def test_p52_a_second_interpreter_of_a_process_is_refused(run_python):
    program = """
        try:
            import _interpreters as interpreters
            run = interpreters.exec
        except ImportError:
            import _xxsubinterpreters as interpreters
            run = interpreters.run_string
        second = interpreters.create()
        script = '''try:
            import tollgate
        except ImportError as error:
            assert "interpreter" in str(error), error
        else:
            raise SystemError("it was imported")
        '''
        import textwrap
        # Before and after the import in the first one.
        assert run(second, script) is None
        import tollgate as tg
        assert run(second, script) is None
        assert tg.LimitSet([tg.per_minute("rpm", 1)]).acquire(rpm=1)
    """
    run_python(program)


def test_p57_two_copies_of_the_package_share_a_store_and_mix_no_objects(run_python, tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "vendored", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    for module in PACKAGE.glob("_core*.so"):
        shutil.copy(module, tmp_path / "vendored" / module.name)
    program = """
        import sys
        import tollgate as tg
        sys.path.insert(0, sys.argv[1])
        import vendored

        assert vendored._core is not tg._core
        for url in ("shm:" + sys.argv[2], "file:" + sys.argv[1] + "/limits.db"):
            ours = tg.LimitSet([tg.resource("slots", 1), tg.per_day("rpm", 10)], store=url, name="a")
            theirs = vendored.LimitSet([vendored.resource("slots", 1), vendored.per_day("rpm", 10)], store=url, name="a")
            held = ours.acquire(rpm=1)
            assert not theirs.try_acquire(rpm=1)
            held.commit()
            theirs.acquire(rpm=1, timeout=60).commit()
            assert ours.peek()["rpm"].available == theirs.peek()["rpm"].available == 8
        # Each raises its own exceptions, and takes its own objects.
        try:
            vendored.per_minute("rpm", 0)
        except vendored.Error as error:
            assert not isinstance(error, tg.Error)
        for use in (lambda: vendored.LimitSet([tg.per_minute("rpm", 1)]), lambda: theirs.acquire(ours.demand(rpm=1))):
            try:
                use()
            except (TypeError, vendored.InvalidDemand):
                pass
            else:
                raise SystemExit("it was taken")
    """
    place = f"p57-{os.getpid()}"
    try:
        run_python(program, str(tmp_path), place)
    finally:
        for left in Path("/dev/shm").glob(f"tollgate-*-{place}"):
            left.unlink()


# Containers.


def in_own_pids(command: list[str]) -> list[str]:
    """Return a command that runs in a namespace of process ids of its own, or skip the test where the system forbids that."""
    unshare = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.getuid() != 0:
        unshare.append("--map-root-user")
    try:
        is_allowed = subprocess.run([*unshare, "true"], capture_output=True, timeout=60).returncode == 0
    except FileNotFoundError:
        is_allowed = False
    if not is_allowed:
        pytest.skip("namespaces of process ids are not allowed here")
    return [*unshare, *command]


JOINS = """
import os, sys
import tollgate as tg
assert os.getpid() < 10
try:
    limits = tg.LimitSet([tg.resource("slots", 1)], store=sys.argv[1], name="a")
except tg.StoreRefused as error:
    print("refused", "process ids of its own" in str(error))
else:
    print("denied" if not limits.try_acquire() else "admitted")
"""


@pytest.mark.parametrize(("place", "answer"), [("shm", "refused True"), ("file", "denied")])
def test_p42_a_holder_in_another_container_is_not_taken_for_dead(tmp_path, place, answer):
    url = "shm:" if place == "shm" else f"file:{tmp_path}/limits.db"
    limits = tg.LimitSet([tg.resource("slots", 1)], store=url, name="a")
    with limits.acquire() as lease:
        command = in_own_pids([sys.executable, "-c", JOINS, limits.store])
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert (done.stdout.strip(), done.stderr) == (answer, "")
        assert not lease.lost and not limits.try_acquire()
    assert limits.try_acquire()


# Clocks of other libraries.

REPLACED = """
    import datetime, time
    import tollgate as tg

    def check(forward):
        limits = tg.LimitSet([tg.per_second("rps", 20, burst=1), tg.per_day("rpd", 100)])
        for _ in range(4):
            limits.acquire(rps=1, rpd=1, timeout=60)
        daily = tg.LimitSet([tg.per_day("rpd", 1)])
        daily.acquire(rpd=1)
        forward()
        assert time.time() < 10**9, "the clock is not replaced"
        # Neither does the jump mint anything, nor does a clock that stands still keep waiters.
        assert not daily.try_acquire(rpd=1)
        limits.acquire(rps=1, rpd=1, timeout=60)
        try:
            daily.acquire(rpd=1, timeout=0.01)
        except tg.TimedOut:
            print("good")
"""


def test_p49_freezegun_changes_nothing(run_python):
    pytest.importorskip("freezegun")
    program = """
        import freezegun
        with freezegun.freeze_time("2000-01-01") as clock:
            check(lambda: clock.tick(datetime.timedelta(days=2)))
    """
    assert run_python(textwrap.dedent(REPLACED) + textwrap.dedent(program)) == "good"


def test_p49_time_machine_changes_nothing(run_python):
    pytest.importorskip("time_machine")
    program = """
        import time_machine
        with time_machine.travel(datetime.datetime(2000, 1, 1), tick=False) as clock:
            check(lambda: clock.shift(datetime.timedelta(days=2)))
    """
    assert run_python(textwrap.dedent(REPLACED) + textwrap.dedent(program)) == "good"
