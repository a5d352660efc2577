"""What the extension module calls when something has happened: observers, and ``logging``.

No handler is installed. Silence the warnings with ``logging.getLogger("tollgate").setLevel(logging.ERROR)``.
"""

from __future__ import annotations

import logging
from _thread import interrupt_main as interrupt_main
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._core import Event

_logger = logging.getLogger("tollgate")


def deliver(observer: Any, event: Event) -> None:
    """Call an observer. What it raises is logged; only an interrupt is not its own, and is raised."""
    try:
        method = getattr(observer, f"on_{event.kind}", None)
        if method is not None:
            method(event)
        elif callable(observer):
            observer(event)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        _log(logging.ERROR, "an observer raised", error)


def log(level: int, text: str) -> None:
    """Log a warning of the library."""
    _log(level, text, None)


def _log(level: int, text: str, error: BaseException | None) -> None:
    try:
        _logger.log(level, text, exc_info=error)
    except KeyboardInterrupt:
        raise
    except BaseException:
        # A handler that raises must not break a call either.
        pass
