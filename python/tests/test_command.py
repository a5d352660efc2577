"""The command that the package contains."""

from __future__ import annotations

import signal
import subprocess
import sys


def run(*words, **options):
    return subprocess.run([sys.executable, "-m", "tollgate", *words], capture_output=True, text=True, timeout=120, **options)


def test_the_command_runs_in_the_process_of_the_interpreter():
    done = run("--version")
    assert (done.returncode, done.stdout.split()[0], done.stderr) == (0, "tollgate", "")
    done = run("explain", "no such demand")
    assert done.returncode != 0 and done.stdout == "" and done.stderr.startswith("error")


def test_what_the_command_stores_limits_later_commands(tmp_path):
    store = ["--store", f"file:{tmp_path}/limits.db"]
    assert run(*store, "system", "set-defaults", "-l", "rpm:1/hour").returncode == 0
    codes = [run(*store, "acquire", "user-1", "gpt-4", "rpm=1").returncode for _ in range(2)]
    assert codes == [0, 3], "the second is denied"


def test_what_python_wrote_before_comes_before():
    program = "import sys\nfrom tollgate.__main__ import main\nsys.argv = ['x', '--version']\nprint('first')\nsys.exit(main())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.split()[:2] == ["first", "tollgate"]


INTERRUPTED = """
import os, signal, sys, threading
from tollgate.__main__ import main

def interrupt():
    while signal.getsignal(signal.SIGINT) != signal.SIG_DFL:
        pass
    os.kill(os.getpid(), signal.SIGINT)

sys.argv = ["tollgate", "--store", sys.argv[1], "acquire", "user-1", "gpt-4", "rpm=1", "--wait"]
threading.Thread(target=interrupt, daemon=True).start()
sys.exit(main())
"""


def test_p1_an_interrupt_ends_a_command_that_waits(tmp_path):
    store = f"file:{tmp_path}/limits.db"
    assert run("--store", store, "system", "set-defaults", "-l", "rpm:1/hour").returncode == 0
    assert run("--store", store, "acquire", "user-1", "gpt-4", "rpm=1").returncode == 0
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, store], capture_output=True, text=True, timeout=120)
    assert done.returncode == -signal.SIGINT and "Traceback" not in done.stderr, done


def test_a_closed_pipe_is_no_traceback():
    with subprocess.Popen([sys.executable, "-m", "tollgate", "man"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
        process.wait(60)
