"""Objects that cannot be changed."""

from __future__ import annotations

import dataclasses
from typing import Any, NoReturn


def refuse_change(owner: object, name: str, value: Any) -> NoReturn:
    """Raise what Concurry raises: pydantic's error, where pydantic is installed."""
    try:
        from pydantic_core import ValidationError
    except ImportError:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}") from None
    error: Any = {"type": "frozen_instance", "loc": (name,), "input": value}
    raise ValidationError.from_exception_data(type(owner).__name__, [error])


class Frozen:
    """Has fields that are set once. Names with an underscore are private and stay open."""

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            refuse_change(self, name, value)
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        if not name.startswith("_"):
            refuse_change(self, name, None)
        object.__delattr__(self, name)
