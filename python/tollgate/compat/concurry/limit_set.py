"""Sets: limits that are taken together or not at all."""

from __future__ import annotations

import importlib
import logging
import os
import uuid
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..._core import LimitSetAcquisition, SharedLimits
from ._limits import Limit
from .constants import ExecutionMode

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "BaseLimitSet",
    "InMemorySharedLimitSet",
    "LimitSet",
    "MultiprocessSharedLimitSet",
    "NoOpLimitSet",
    "RaySharedLimitSet",
]

logger = logging.getLogger(__name__)


class BaseLimitSet(SharedLimits):
    """What all sets have in common. ``acquire``, ``async_acquire`` and ``try_acquire`` are those of the extension module."""

    limits: list[Limit]
    shared: bool
    _limits_by_key: dict[str, Limit]
    _warned_keys: set[Any]

    @classmethod
    def _of(
        cls, given: Iterable[Limit], shared: bool, config: dict[Any, Any] | None, store: tuple[str, str] | None = None
    ) -> Self:
        limits = list(given)
        by_key: dict[str, Limit] = {}
        for limit in limits:
            if not isinstance(limit, Limit):
                raise TypeError(f"a LimitSet has limits, not {limit!r}")
            if limit.key in by_key:
                raise ValueError(f"Duplicate limit key: '{limit.key}'")
            by_key[limit.key] = limit
        specs = [limit._spec() for limit in limits]
        self = SharedLimits.__new__(cls, specs, dict(config or {}), store)
        self.limits, self.shared = limits, shared
        self._limits_by_key = by_key
        self._warned_keys = set()
        for index, limit in enumerate(limits):
            limit._bind(self, index)
        return self

    @property
    def _lock(self) -> Any:
        """The set itself, which needs no other lock."""
        return self

    def __getitem__(self, key: str) -> Limit:
        try:
            return self._limits_by_key[key]
        except KeyError:
            raise KeyError(f"the LimitSet has no limit with key {key!r}") from None

    def get_stats(self) -> dict[str, dict[str, Any]]:
        """Return how each limit stands, by key."""
        return {limit.key: limit._stats_in(self, index) for index, limit in enumerate(self.limits)}

    def release_limit_set_acquisition(self, acquisition: LimitSetAcquisition) -> None:
        """Release an acquisition, whatever was reported."""
        acquisition._end()

    def _warn_of_unknown_key(self, key: Any) -> None:
        if key not in self._warned_keys:
            self._warned_keys.add(key)
            logger.warning(
                "Unknown limit key %r is skipped; Available limit keys: %s", key, list(self._limits_by_key)
            )

    def _warn_of_unacquired_key(self, key: Any, acquired: list[str]) -> None:
        logger.warning("Cannot update limit %r: not acquired here, so it is skipped; Available keys: %s", key, acquired)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {list(self._limits_by_key)}>"


class NoOpLimitSet(BaseLimitSet):
    """A set without limits, which admits everything."""

    def __new__(cls, shared: bool = True, config: dict[Any, Any] | None = None) -> Self:
        return cls._of([], shared, config)

    def _warn_of_unknown_key(self, key: Any) -> None:
        """Say nothing: it has no keys."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_no_op, (self.shared, self.config)


class InMemorySharedLimitSet(BaseLimitSet):
    """A set for the threads and tasks of this process."""

    def __new__(
        cls, limits: Iterable[Limit], shared: bool = False, config: dict[Any, Any] | None = None
    ) -> Self:
        return cls._of(limits, shared, config)

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(
            "a set in the memory of this process cannot be pickled, because the copy would limit apart from it; make it with mode='process'"
        )


class _StoredLimitSet(BaseLimitSet):
    """A set in a store that processes share. It is pickled by its place there."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_stored, (type(self), self.limits, self.config, self._address)


class MultiprocessSharedLimitSet(_StoredLimitSet):
    """A set for processes of this host: in anonymous shared memory, or in the store that a URL names."""

    def __new__(
        cls,
        limits: Iterable[Limit],
        shared: bool = True,
        config: dict[Any, Any] | None = None,
        mp_context: Any = None,
        store: str | None = None,
    ) -> Self:
        return cls._of(limits, shared, config, _new_place(store))


class RaySharedLimitSet(_StoredLimitSet):
    """A set for workers of Ray: in anonymous shared memory, for those of this host, or in the store that a URL names."""

    def __new__(
        cls,
        limits: Iterable[Limit],
        shared: bool = True,
        config: dict[Any, Any] | None = None,
        store: str | None = None,
    ) -> Self:
        try:
            # By name: type checkers need not have ray.
            ray: Any = importlib.import_module("ray")
        except ImportError as error:
            raise ImportError("a RaySharedLimitSet requires ray: pip install ray") from error
        if not ray.is_initialized():
            raise RuntimeError("Ray is not initialized: call ray.init() before a RaySharedLimitSet is made")
        return cls._of(limits, shared, config, _new_place(store))


#: The process and the URL of its anonymous store, which all its sets use.
_anonymous: tuple[int, str] = (0, "")


def _new_place(url: str | None) -> tuple[str, str]:
    """Return a URL, and a name there that no other set has."""
    global _anonymous
    name = f"concurry-{uuid.uuid4().hex}"
    if url is not None:
        return url, name
    if _anonymous[0] != os.getpid():
        # A set without limits makes none; the first that has some does.
        _anonymous = (os.getpid(), SharedLimits._anonymous_store())
    return _anonymous[1], name


def _restore_no_op(shared: bool, config: dict[Any, Any]) -> NoOpLimitSet:
    return NoOpLimitSet(shared, config)


def _restore_stored(
    cls: type[_StoredLimitSet], limits: list[Limit], config: dict[Any, Any], address: tuple[str, str]
) -> _StoredLimitSet:
    return cls._of(limits, True, config, address)


def LimitSet(
    limits: Sequence[Limit],
    shared: bool = False,
    mode: Any = "sync",
    config: dict[Any, Any] | None = None,
    mp_context: Any = None,
    *,
    store: str | None = None,
) -> BaseLimitSet:
    """Make the set that workers of a mode share.

    ``store`` is the URL of a store for processes and Ray, such as ``redis://host``, if they are not all on this host.
    """
    mode = ExecutionMode(mode)
    if mode in (ExecutionMode.Processes, ExecutionMode.Ray) and not shared:
        name = "process" if mode is ExecutionMode.Processes else "ray"
        raise ValueError(f"Non-shared LimitSets cannot use mode='{name}': give shared=True")
    if mode is ExecutionMode.Auto:
        raise ValueError("Unknown execution mode 'auto': a set is for sync, asyncio, thread, process or ray")
    if not limits:
        return NoOpLimitSet(shared, config)
    if mode is ExecutionMode.Processes:
        return MultiprocessSharedLimitSet(limits, True, config, mp_context, store)
    if mode is ExecutionMode.Ray:
        return RaySharedLimitSet(limits, True, config, store)
    return InMemorySharedLimitSet(limits, shared, config)
