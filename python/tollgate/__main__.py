"""The command ``tollgate``, which the extension module contains: ``python -m tollgate --help``."""

from __future__ import annotations

import signal
import sys

from ._core import _run_command


def main() -> int:
    """Run the command line of this process, and return its exit code."""
    # Python's handler would only note a Ctrl-C, and the command never returns to it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stdout.flush()
    return _run_command(["tollgate", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
