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


def test_a_store_of_the_command_is_one_of_the_stores(tmp_path):
    store = f"file:{tmp_path}/limits.db"
    assert run("resource", "set", "gpt-4", "--limit", "rpm=50/min", "--store", store).returncode in (0, 2)
    done = run("store", "status", "--store", store)
    assert done.returncode in (0, 1, 2) and "Traceback" not in done.stderr


def test_what_python_wrote_before_comes_before():
    program = "import sys\nfrom tollgate.__main__ import main\nsys.argv = ['x', '--version']\nprint('first')\nsys.exit(main())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.split()[:2] == ["first", "tollgate"]


def test_p1_an_interrupt_ends_a_command(tmp_path):
    words = [sys.executable, "-m", "tollgate", "acquire", "--help"]
    assert subprocess.run(words, capture_output=True, timeout=120).returncode == 0
    # A command without handlers of its own, which reads from a pipe that stays silent.
    words = [sys.executable, "-m", "tollgate", "mock-provider"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert "http://" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) in (0, 130, -signal.SIGINT)


def test_a_closed_pipe_is_no_traceback():
    with subprocess.Popen([sys.executable, "-m", "tollgate", "man"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
        process.wait(60)
