"""Checks of settings that the extension module sees only when they are first used."""

from __future__ import annotations

from typing import Any

from ._errors import InvalidValue

_PRIORITIES = ("interactive", "normal", "batch")


def check_wait(timeout: Any, priority: Any) -> None:
    """Refuse a timeout and a priority that no call could use."""
    if timeout is not None and not _is_duration(timeout):
        raise InvalidValue(f"timeout is {timeout!r}, but must be 0 or more seconds, or a timedelta")
    if priority is not None and priority not in _PRIORITIES:
        raise InvalidValue(f"priority is {priority!r}, but must be one of {', '.join(_PRIORITIES)}")


def _is_duration(value: Any) -> bool:
    if isinstance(value, (bool, str, bytes)):
        return False
    seconds = value.total_seconds() if hasattr(value, "total_seconds") else value
    try:
        return float(seconds) >= 0
    except (TypeError, ValueError, OverflowError):
        return False
