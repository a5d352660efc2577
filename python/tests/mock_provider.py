"""An LLM provider in a process of its own: ``tollgate mock-provider``."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from typing import Any


class Provider:
    """A provider that runs."""

    def __init__(self, url: str) -> None:
        self.url = url

    def stats(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.url}/stats", timeout=30) as reply:
            return json.load(reply)


@contextlib.contextmanager
def mock_provider(*options: str) -> Iterator[Provider]:
    """Runs a provider until the block ends. ``TOLLGATE_COMMAND`` names another command than that of the package."""
    own = [sys.executable, "-m", "tollgate"]
    command = os.environ.get("TOLLGATE_COMMAND", "").split() or own
    # It ends by itself if the tests are killed.
    words = [*command, "mock-provider", "--seconds", "300", *options]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = None
            while found is None:
                line = process.stdout.readline()
                assert line, "the provider did not start"
                found = re.search(r"http://[0-9.:]+", line)
            yield Provider(found[0])
        finally:
            process.terminate()
            process.stdout.close()
