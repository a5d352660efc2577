"""Fixtures of all tests. What can hang runs in a process of its own, with a time limit."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator

import pytest
import servers
from servers import RedisServer

#: No test process takes longer, however busy the machine is.
LIMIT = 120


def _run(command: list[str], limit: float, environment: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", *command],
        capture_output=True,
        text=True,
        timeout=limit,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "panicked" not in done.stderr, done.stderr
    return done.stdout.strip()


@pytest.fixture
def run_python() -> Callable[..., str]:
    """Runs a program in a fresh interpreter and returns what it printed; fails if it fails or hangs."""

    def run(program: str, *arguments: str, limit: float = LIMIT, **environment: str) -> str:
        return _run(["-c", textwrap.dedent(program), *arguments], limit, environment)

    return run


@pytest.fixture
def run_script(tmp_path) -> Callable[..., str]:
    """As ``run_python``, from a file, so that spawned processes can import it; ``main()`` is called in the first process."""

    def run(program: str, *arguments: str, limit: float = LIMIT, **environment: str) -> str:
        script = tmp_path / "script.py"
        script.write_text(textwrap.dedent(program) + '\n\nif __name__ == "__main__":\n    main()\n')
        return _run([str(script), *arguments], limit, environment)

    return run


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    """A Redis server of this test's own."""
    with servers.redis() as server:
        yield server


@pytest.fixture(scope="session")
def dynamodb() -> Iterator[str]:
    """The URL of a table in the local engine of the command ``tollgate``, where that was built with it."""
    with servers.dynamodb() as url:
        yield url


@pytest.fixture(params=["shm", "file", "redis", "dynamodb"])
def store(request, tmp_path) -> str:
    """The URL of a new store of each kind."""
    if request.param == "shm":
        return "shm:"
    if request.param == "file":
        return f"file:{tmp_path}/limits.db"
    if request.param == "redis":
        return request.getfixturevalue("redis").url
    return request.getfixturevalue("dynamodb")


@pytest.fixture
def name(request) -> str:
    """A name for a set that no other test has."""
    return f"{request.node.name[:100]}-{os.getpid()}-{time.monotonic_ns()}"
