"""Fixtures of all tests. What can hang runs in a process of its own, with a time limit."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable

import pytest

#: No test process takes longer, however busy the machine is.
LIMIT = 120


@pytest.fixture
def run_python() -> Callable[..., str]:
    """Runs a program in a fresh interpreter and returns what it printed; fails if it fails or hangs."""

    def run(program: str, *arguments: str, limit: float = LIMIT, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(program), *arguments],
            capture_output=True,
            text=True,
            timeout=limit,
            env={**os.environ, **environment},
        )
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "panicked" not in done.stderr, done.stderr
        return done.stdout.strip()

    return run
