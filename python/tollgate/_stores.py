"""What the extension module needs of Python for its stores."""

from __future__ import annotations

import atexit
import os
import sys

from . import _core

#: The process whose anonymous stores are removed when it ends.
_registered = 0


def remove_at_exit() -> None:
    """Remove the anonymous stores of this process when it ends, and when its children have ended that it waits for."""
    global _registered
    if _registered == os.getpid():
        return
    _registered = os.getpid()
    atexit.register(_remove)
    # A child of multiprocessing runs these and not what atexit has.
    _remove_after_children()


def _remove() -> None:
    if not _remove_after_children():
        _core._remove_anonymous_stores()


def _remove_after_children() -> bool:
    """Leave it to multiprocessing if that waits for children yet: one that has just begun opens the store late."""
    util = sys.modules.get("multiprocessing.util")
    # It has no such function yet while another thread imports it.
    is_exiting = getattr(util, "is_exiting", None)
    if util is None or is_exiting is None or is_exiting():
        return False
    util.Finalize(None, _core._remove_anonymous_stores, exitpriority=-1_000)
    return True
