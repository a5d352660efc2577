"""The stubs: what they say is what the package has, and what users write passes type checkers."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import tollgate

SAMPLES = [str(path) for path in sorted((Path(__file__).parent / "samples").glob("*.py"))]

#: Where the package is: a folder of sources, or an environment that it is installed in.
ROOT = Path(tollgate.__file__).parent.parent


def check(folder: Path, *words: str) -> None:
    environment = {**os.environ}
    if ROOT.name != "site-packages":
        environment |= {"MYPYPATH": str(ROOT), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, timeout=600, cwd=folder, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


def test_p55_the_stubs_are_those_of_the_module(tmp_path):
    # The names of Concurry are partly made when they are imported; they have no stubs of their own.
    made = tmp_path / "allowed.txt"
    # It takes an alias of a Literal in a source file for a Union.
    literals = ["tollgate\\.compat\\.zae\\.ConfigSource", "tollgate\\.compat\\.zae\\._repository\\._Policy"]
    # The constructor of an enumeration is made at run time.
    enumerations = ["tollgate\\.compat\\.batch_llm\\._[a-z]+\\.(AbortMode|ErrorCategory|ResumePolicy|TimeoutCategory)\\.__new__"]
    made.write_text("\n".join(["tollgate\\.compat\\.concurry.*", *literals, *enumerations]))
    check(tmp_path, "mypy.stubtest", "tollgate", "--concise", "--allowlist", str(made), "--ignore-unused-allowlist")


def test_p55_the_package_and_the_samples_pass_mypy_strict(tmp_path):
    check(tmp_path, "mypy", "--strict", "--package", "tollgate")
    check(tmp_path, "mypy", "--strict", *SAMPLES)


def test_p55_a_wrong_use_does_not_pass_mypy(tmp_path):
    (tmp_path / "wrong.py").write_text("import tollgate as tg\ntg.per_minute('rpm')\ntg.LimitSet([]).acquire(rpm=1, timeout='soon')\n")
    with pytest.raises(AssertionError, match="Found 2 errors"):
        check(tmp_path, "mypy", "--strict", "wrong.py")


def test_a_wrong_use_of_the_names_of_zae_limiter_does_not_pass_mypy(tmp_path):
    program = """
        from tollgate.compat.zae import RateLimiter, SyncRateLimiter

        async def awaited(limiter: RateLimiter) -> None:
            limiter.delete_entity("key-1")
            await limiter.create_entity(5)

        def blocking(limiter: SyncRateLimiter) -> int:
            limiter.acquire("key-1", "gpt-4", {"rpm": "1"})
            return limiter.available("key-1", "gpt-4", wrong=1)
    """
    (tmp_path / "wrong.py").write_text(textwrap.dedent(program))
    with pytest.raises(AssertionError, match="Found 5 errors"):
        check(tmp_path, "mypy", "--strict", "wrong.py")


def test_p55_the_package_and_the_samples_pass_pyright(tmp_path):
    pytest.importorskip("pyright")
    check(tmp_path, "pyright", "--pythonpath", sys.executable, str(ROOT / "tollgate"), *SAMPLES)
