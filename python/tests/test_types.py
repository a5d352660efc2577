"""The stubs: what they say is what the package has, and what users write passes type checkers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent
SAMPLES = ["tests/samples/typed.py", "tests/samples/clients.py"]


def check(*words: str) -> None:
    environment = {**os.environ, "MYPYPATH": str(PACKAGE), "PYTHONPATH": str(PACKAGE)}
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, timeout=600, cwd=PACKAGE, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


def test_p55_the_stubs_are_those_of_the_module(tmp_path):
    check("mypy.stubtest", "tollgate", "--concise")


def test_p55_the_package_passes_mypy_strict(tmp_path):
    check("mypy", "--strict", "--cache-dir", str(tmp_path), "tollgate")


def test_p55_the_samples_pass_mypy_strict(tmp_path):
    check("mypy", "--strict", "--cache-dir", str(tmp_path), *SAMPLES)


def test_p55_a_wrong_use_does_not_pass_mypy(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import tollgate as tg\ntg.per_minute('rpm')\ntg.LimitSet([]).acquire(rpm=1, timeout='soon')\n")
    with pytest.raises(AssertionError, match="Found 2 errors"):
        check("mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(wrong))


def test_p55_the_package_and_the_samples_pass_pyright():
    pytest.importorskip("pyright")
    check("pyright", "--pythonpath", sys.executable, "tollgate", *SAMPLES)
