"""What the transports of httpx and httpx2 share: what a call asks for, and what its reply means for the limits.

Neither is imported here.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

from ._core import Estimate, Estimator, Hint, LimitReading, ReplyReader, Tokens
from ._errors import Error, InvalidValue
from ._settings import check_wait

_logger = logging.getLogger("tollgate")

#: Held for moments, so that one is enough for all transports.
_lock = threading.Lock()


def _forget_lock() -> None:
    """Make a new lock in a forked child, where a thread that held it is gone."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_lock)

#: What a limit may count of a call.
_UNITS = ("requests", "tokens", "input_tokens", "output_tokens")

#: The first letters of names such as `rpm` and `itpd`.
_LETTERS = {"r": "requests", "t": "tokens", "it": "input_tokens", "ot": "output_tokens"}

#: The last letters: per second, minute, hour, day.
_PERIODS = ("ps", "pm", "ph", "pd")

#: The cooldown in seconds after the first reply in a row that names none, and how much longer each further one gets.
_COOLDOWN, _GROWTH = 1.0, 2.0

#: The encodings of bodies that can be undone while they arrive.
_ENCODINGS = "gzip, deflate"


def unit_of(name: str) -> str | None:
    """Return what the limit with this name counts, by its name; ``None`` if that cannot be known."""
    name = name.lower()
    if name[-2:] in _PERIODS and name[:-2] in _LETTERS:
        return _LETTERS[name[:-2]]
    if "token" in name:
        if "input" in name or "prompt" in name:
            return "input_tokens"
        return "output_tokens" if "output" in name or "completion" in name else "tokens"
    return "requests" if "request" in name else None


def limits_of(limits: Any) -> Iterable[Any]:
    """Return the limits of a set, or of the first set of a pool."""
    own = getattr(limits, "limits", None)
    if own is not None:
        return tuple(own)
    for name in ("sets", "limit_sets"):
        members = getattr(limits, name, None)
        if members:
            return limits_of(members[0])
    raise InvalidValue(f"limits is {limits!r}, whose limits are not known; pass a LimitSet, a LimitPool, or a Limiter with entity and resource")


def _known_unit(name: str, unit: str) -> str:
    if unit not in _UNITS:
        raise InvalidValue(f'counts of "{name}" is {unit!r}, but must be one of {", ".join(_UNITS)}, or None')
    return unit


class Amounts:
    """What each limit of a set counts, and so what a call asks for."""

    def __init__(self, limits: Any, counts: Mapping[str, str | None] | None, is_stored: bool) -> None:
        given = dict(counts or {})
        self._units: list[tuple[str, str, float]] = []
        if is_stored:
            # The limits of an entity are in its store, and may change at any time.
            self._units = [(name, _known_unit(name, unit), float("inf")) for name, unit in given.items() if unit is not None]
            if not self._units:
                raise InvalidValue('a limiter needs counts, such as {"rpm": "requests", "tpm": "tokens"}')
            return
        for limit in limits_of(limits):
            unit = given.pop(limit.name) if limit.name in given else unit_of(limit.name)
            if unit is None:
                if limit.kind in ("rate", "quota") and limit.name not in (counts or {}):
                    raise InvalidValue(
                        f'it is not known what the limit "{limit.name}" counts; say so with counts={{"{limit.name}": "requests"}}, '
                        f"one of {', '.join(_UNITS)}, or None to leave it out"
                    )
                continue
            self._units.append((limit.name, _known_unit(limit.name, unit), limit.capacity))
        if given:
            raise InvalidValue(f'counts names "{next(iter(given))}", which is no limit here')

    def asked(self, estimate: Estimate | int | None) -> dict[str, int]:
        """Return what a call asks for. An estimate may be wrong, so it never makes a call impossible."""
        amounts = {
            "requests": 1,
            "tokens": estimate if isinstance(estimate, int) else estimate.total if estimate else 0,
            "input_tokens": estimate if isinstance(estimate, int) else estimate.input if estimate else 0,
            "output_tokens": estimate if isinstance(estimate, int) else estimate.output if estimate else 0,
        }
        return {name: int(min(amounts[unit], capacity)) for name, unit, capacity in self._units}

    def used(self, tokens: Tokens, at_least: Mapping[str, int] | None = None) -> dict[str, int]:
        """Return what a call has used, and not less than was reserved if the reply is not complete."""
        amounts = {"tokens": tokens.total, "input_tokens": tokens.input, "output_tokens": tokens.output}
        used = {name: amounts[unit] for name, unit, _ in self._units if unit in amounts}
        if at_least is not None:
            used = {name: max(amount, at_least.get(name, 0)) for name, amount in used.items()}
        return used

    def unused(self) -> dict[str, int]:
        """Return what a call has used that the provider refused: no tokens."""
        return self.used(Tokens(0, 0))


class _Decoder:
    """Undoes the content encoding of a body that arrives in pieces. An encoding that is not known makes it blind."""

    def __init__(self, encoding: str) -> None:
        encoding = encoding.strip().lower()
        self._plain = encoding in ("", "identity")
        self._zlib = zlib.decompressobj(wbits=47) if encoding in ("gzip", "x-gzip", "deflate") else None

    def decode(self, piece: bytes) -> bytes:
        if self._plain:
            return piece
        if self._zlib is None:
            return b""
        try:
            return self._zlib.decompress(piece)
        except zlib.error:
            self._zlib = None
            return b""


class Metering:
    """The limits of one transport, and what it has learned."""

    def __init__(
        self,
        limits: Any,
        *,
        estimate: Estimator | Callable[[bytes], Estimate | int] | None,
        counts: Mapping[str, str | None] | None,
        timeout: float | timedelta | None,
        priority: str | None,
        applies: Callable[[Any], bool] | None,
        retries: int,
        cooldown_max: float,
        entity: str | Callable[[Any], str] | None,
        resource: str | Callable[[Any], str] | None,
    ) -> None:
        if not hasattr(limits, "acquire") or not hasattr(limits, "acquire_async"):
            raise InvalidValue(f"limits is {limits!r}, which has no acquire and acquire_async; pass a LimitSet or a LimitPool")
        if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
            raise InvalidValue(f"retries is {retries!r}, but must be a number of retries, or 0")
        check_wait(timeout, priority)
        if applies is not None and not callable(applies):
            raise InvalidValue(f"applies is {applies!r}, but must be a function of the request")
        if not 0 <= cooldown_max < float("inf"):
            raise InvalidValue(f"cooldown_max is {cooldown_max!r}, but must be a number of seconds")
        if estimate is not None and not callable(estimate) and not isinstance(estimate, Estimator):
            raise InvalidValue(f"estimate is {estimate!r}, but must be an Estimator, or a function of the body")
        self.limits = limits
        self.retries = retries
        if (entity is None) != (resource is None):
            raise InvalidValue("a limiter needs both, entity and resource")
        self._keys: tuple[Any, ...] = () if entity is None else (entity, resource)
        self.amounts = Amounts(limits, counts, bool(self._keys))
        self.readings: dict[str, LimitReading] = {}
        self._estimate = Estimator() if estimate is None else estimate
        self._timeout = timeout
        self._priority = priority
        self._applies = applies
        self._cooldown_max = cooldown_max
        self._cooled_at = float("-inf")
        self._in_a_row = 0
        self._has_warned = False

    def applies(self, request: Any) -> bool:
        """Return whether a request counts."""
        if self._applies is not None:
            return bool(self._applies(request))
        return bool(request.method == "POST")

    def estimated(self, request: Any, body: bytes | None) -> Estimate | int | None:
        """Return what a request is expected to use."""
        if body is None:
            return None
        if isinstance(self._estimate, Estimator):
            return self._estimate.estimate(body)
        estimate = self._estimate(body)
        if isinstance(estimate, Estimate) or (isinstance(estimate, int) and not isinstance(estimate, bool)):
            return estimate
        raise InvalidValue(f"estimate returned {estimate!r}, but must return an Estimate or a number of tokens")

    def options(self, request: Any) -> dict[str, Any]:
        """Return how the call waits: as long as the client would wait for a connection."""
        options: dict[str, Any] = {}
        timeout = self._timeout
        if timeout is None:
            timeout = request.extensions.get("timeout", {}).get("pool")
        if timeout is not None:
            options["timeout"] = timeout
        if self._priority is not None:
            options["priority"] = self._priority
        return options

    def keys(self, request: Any) -> list[Any]:
        """Return the entity and the resource of a request, for a limiter."""
        return [key(request) if callable(key) else key for key in self._keys]

    def prepare(self, request: Any) -> None:
        """Ask for encodings that can be undone, and report clients that retry by themselves."""
        accepted = request.headers.get("accept-encoding", "")
        if "br" in accepted or "zstd" in accepted:
            request.headers["accept-encoding"] = _ENCODINGS
        retried = request.headers.get("x-stainless-retry-count", "0")
        if retried not in ("", "0") and not self._has_warned:
            self._has_warned = True
            _logger.warning(
                "the client retries by itself, and each try counts as a call; set its max_retries to 0, and retries of the transport"
            )

    def learn(self, estimate: Estimate | int | None, tokens: Tokens) -> None:
        """Learn what a request has used, for the estimates of the next."""
        if isinstance(self._estimate, Estimator) and isinstance(estimate, Estimate):
            self._estimate.learn(estimate, tokens)

    def cooldown(self, hint: Hint, started: float) -> float | None:
        """Return for how many seconds the account has to cool down after a reply to a call that started then."""
        for reading in hint.limits:
            self.readings[reading.unit] = reading
        with _lock:
            if hint.kind == "ok":
                if started > self._cooled_at:
                    self._in_a_row = 0
                return self._exhausted(hint)
            if hint.kind == "exhausted":
                wait = hint.retry_after
            elif hint.kind in ("throttled", "overloaded"):
                # Replies to calls that were under way when the cooldown began say nothing new, unless they name a time.
                is_new = started > self._cooled_at
                wait = hint.retry_after
                if wait is None and is_new:
                    wait = _COOLDOWN * _GROWTH ** min(self._in_a_row, 10) * (1 + random.random() / 4)
                if is_new:
                    self._cooled_at = time.monotonic()
                    self._in_a_row += 1
            else:
                wait = None
        return None if wait is None else min(wait, self._cooldown_max)

    def _exhausted(self, hint: Hint) -> float | None:
        """Return the time until one more fits, if the provider reports that none is left: what refills it at a steady rate."""
        waits = [
            reading.reset / max(reading.limit or 1, 1)
            for reading in hint.limits
            if reading.remaining == 0 and reading.reset and reading.unit == "requests"
        ]
        return min(max(waits), self._cooldown_max) if waits else None


class Call:
    """One request: what it is expected to use, what it asks for, and when it was sent."""

    def __init__(self, metering: Metering, request: Any, body: bytes | None) -> None:
        self.estimate = metering.estimated(request, body)
        self.asked = metering.amounts.asked(self.estimate)
        self.demand = (*metering.keys(request), self.asked)
        self.options = metering.options(request)
        self.started = float("-inf")

    def start(self) -> None:
        self.started = time.monotonic()


class MeteredReply:
    """One reply whose body is on its way to the caller, and the lease of its call."""

    def __init__(self, metering: Metering, lease: Any, response: Any, call: Call) -> None:
        self._metering = metering
        self._call = call
        self._decoder = _Decoder(response.headers.get("content-encoding", ""))
        self._reader = ReplyReader(response.status_code, response.headers)
        self._has_ended = False
        self.lease = lease

    def add(self, piece: bytes) -> bool:
        """Read a piece of the body. Return whether it was the last that matters."""
        if not self._has_ended:
            self._reader.feed(self._decoder.decode(piece))
        return self._reader.is_complete

    def end(self, is_complete: bool) -> tuple[dict[str, int] | None, float | None] | None:
        """Return how the lease ends: with this usage, or as it was taken; and the cooldown. ``None`` if it has ended already."""
        if self._has_ended:
            return None
        self._has_ended = True
        hint = self._reader.hint()
        wait = self._metering.cooldown(hint, self._call.started)
        if hint.usage is None:
            return None, wait
        if not is_complete:
            return self._metering.amounts.used(hint.usage, self._call.asked), wait
        self._metering.learn(self._call.estimate, hint.usage)
        return self._metering.amounts.used(hint.usage), wait


def refused(metering: Metering, hint: Hint) -> dict[str, int] | None:
    """Return what a call has used that failed: nothing that the provider did not answer, or as much as was taken if that is open."""
    if hint.usage is not None:
        return metering.amounts.used(hint.usage)
    return None if hint.kind == "transient" else metering.amounts.unused()


def report_failure(error: Exception) -> None:
    """Log that a lease could not be ended: the reply is there all the same, and counts more."""
    _logger.warning("a lease could not be settled: %s", error)


def give_back(lease: Any) -> None:
    """Give everything back that a lease holds: for calls that were never made."""
    try:
        lease.cancel()
    except Error as error:
        report_failure(error)


async def give_back_async(lease: Any) -> None:
    """As ``give_back``, in an event loop."""
    try:
        await lease.cancel_async()
    except Error as error:
        report_failure(error)


def set_of(limits: Any, lease: Any) -> Any:
    """Return the set that cools down: of a pool, the one that the lease was taken from."""
    owner = getattr(lease, "set", limits)
    return owner if hasattr(owner, "cool_down") else None


def end_lease(limits: Any, lease: Any, usage: Mapping[str, int] | None, wait: float | None) -> None:
    """End a lease and cool down its set, in this thread."""
    try:
        owner = set_of(limits, lease)
        if wait and owner is not None:
            owner.cool_down(wait)
        if usage is None:
            lease.commit()
        else:
            lease.settle(usage)
    except Error as error:
        report_failure(error)


async def end_lease_async(limits: Any, lease: Any, usage: Mapping[str, int] | None, wait: float | None) -> None:
    """As ``end_lease``, in an event loop."""
    try:
        owner = set_of(limits, lease)
        if wait and owner is not None:
            await owner.cool_down_async(wait)
        if usage is None:
            await lease.commit_async()
        else:
            await lease.settle_async(usage)
    except Error as error:
        report_failure(error)
