"""Every sample runs: of the pages, and of the docstrings. Every public name has one."""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from mock_provider import mock_provider

import tollgate as tg
from tollgate import batch

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "python/README.md", *sorted((ROOT / "docs/python").glob("*.md"))]


def blocks_of(text: str) -> list[str]:
    return [textwrap.dedent(block) for block in re.findall(r"^[ ]*```python\n(.*?)^[ ]*```", text, re.MULTILINE | re.DOTALL)]


def samples() -> list[object]:
    found = []
    for page in PAGES:
        blocks = blocks_of(page.read_text())
        assert blocks, f"{page.name} has no sample"
        found += [pytest.param(block, id=f"{page.name}-{number}") for number, block in enumerate(blocks, 1)]
    for name in sorted(tg.__all__):
        blocks = blocks_of(inspect.getdoc(getattr(tg, name)) or "")
        found += [pytest.param(block, id=f"{name}-{number}") for number, block in enumerate(blocks, 1)]
    return found


@pytest.fixture(scope="module")
def provider():
    with mock_provider() as running:
        yield running


@pytest.mark.parametrize("sample", samples())
def test_a_sample_runs(sample, tmp_path, provider):
    program = tmp_path / "sample.py"
    program.write_text(sample)
    addresses = {"OPENAI_BASE_URL": f"{provider.url}/v1", "ANTHROPIC_BASE_URL": provider.url}
    keys = {"OPENAI_API_KEY": "any", "ANTHROPIC_API_KEY": "any"}
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning:tollgate", str(program)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
        env={**os.environ, **addresses, **keys},
    )
    assert done.returncode == 0, f"{sample}\n{done.stdout}\n{done.stderr}"


def documented() -> list[object]:
    objects = [tg, *(getattr(tg, name) for name in sorted(tg.__all__) if name != "__version__")]
    for module in ("tollgate.httpx", "tollgate.httpx2"):
        objects += [getattr(importlib.import_module(module), name) for name in ("AcquireTimeout", "AsyncTransport", "Transport")]
    greenlets = importlib.import_module("tollgate.greenlets")
    objects += [greenlets, greenlets.hold, greenlets.wait]
    return [*objects, batch, *(getattr(batch, name) for name in batch.__all__)]


def test_the_examples_of_docstrings_are_right(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    finder, runner = doctest.DocTestFinder(recurse=True), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for one in documented():
        # Classes say that they are in the package, whatever module they are written in.
        for test in finder.find(one, getattr(one, "__qualname__", "tollgate"), module=False, globs={}):
            runner.run(test)
    assert runner.summarize().failed == 0
    assert runner.tries > 40


def test_every_public_name_has_an_example():
    without = [name for name in tg.__all__ if name != "__version__" and not re.search(r">>> |```python", inspect.getdoc(getattr(tg, name)) or "")]
    without += [name for name in batch.__all__ if ">>> " not in (inspect.getdoc(getattr(batch, name)) or "")]
    assert without == []
