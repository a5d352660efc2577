"""Refuses to be imported in a second interpreter of a process, as the extension module is there once for all of them.

From Python 3.12 on the import of the extension module does that itself.
"""

from __future__ import annotations

import sys


def _is_first() -> bool:
    try:
        # By its name, because type checkers do not know it.
        interpreters = __import__("_xxsubinterpreters")
    except ImportError:
        return True
    return bool(interpreters.get_current() == interpreters.get_main())


if sys.version_info < (3, 12) and not _is_first():
    raise ImportError("tollgate can be used in the first interpreter of a process only; under mod_wsgi: WSGIApplicationGroup %{GLOBAL}")
