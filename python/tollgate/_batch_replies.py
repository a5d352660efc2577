"""What the function of a batch returns and raises, and what that means for the batch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from ._core import BatchCall
from ._errors import Error, RateLimited

#: The longest text of an exception that becomes a reason.
_REASON_MAX = 300


@dataclass(frozen=True)
class Done:
    """An output, with the tokens that the call used and the headers of the reply, from which the pace learns.

    >>> from tollgate import batch
    >>> batch.Done("text", tokens=31).tokens
    31
    """

    output: Any
    tokens: int | None = None
    headers: Mapping[str, str] | Iterable[tuple[str, str]] = ()


class _Failure(Error):
    kind = "transient"


class Throttled(_Failure):
    """The provider said "not now": the items of the account wait, and this counts as no attempt.

    >>> from tollgate import batch
    >>> batch.Throttled("too many", retry_after=20).retry_after
    20
    """

    kind = "throttled"

    def __init__(self, reason: str = "throttled", retry_after: float | timedelta | None = None) -> None:
        super().__init__(reason, retry_after)
        self.retry_after = retry_after

    def __str__(self) -> str:
        return str(self.args[0])


class Overloaded(Throttled):
    """The provider has too much to do, whatever the account.

    >>> from tollgate import batch
    >>> str(batch.Overloaded("busy"))
    'busy'
    """

    kind = "overloaded"


class Transient(_Failure):
    """The call failed, and may succeed when it is tried again.

    >>> from tollgate import batch
    >>> str(batch.Transient("connection lost"))
    'connection lost'
    """


class Invalid(_Failure):
    """The provider answered, and the output cannot be used.

    >>> from tollgate import batch
    >>> batch.Invalid("not JSON", tokens=31).tokens
    31
    """

    kind = "invalid"

    def __init__(self, reason: str = "invalid", tokens: int | None = None) -> None:
        super().__init__(reason, tokens)
        self.tokens = tokens

    def __str__(self) -> str:
        return str(self.args[0])


class Fatal(_Failure):
    """No retry of this item helps.

    >>> from tollgate import batch
    >>> str(batch.Fatal("no such model"))
    'no such model'
    """

    kind = "fatal"


for _public in (Done, Throttled, Overloaded, Transient, Invalid, Fatal):
    _public.__module__ = "tollgate.batch"


def headers_of(headers: Any) -> list[tuple[str, str]]:
    """Return headers as a list of pairs of texts."""
    pairs = headers.items() if hasattr(headers, "items") else headers
    return [(str(name), str(value)) for name, value in pairs]


def answer(call: BatchCall, error: Exception) -> None:
    """Reply with what an exception means."""
    reason = (str(error) or type(error).__name__)[:_REASON_MAX]
    if isinstance(error, Invalid):
        call.invalid(reason, error.tokens)
    elif isinstance(error, Throttled):
        call.failed(error.kind, reason, error.retry_after)
    elif isinstance(error, _Failure):
        call.failed(error.kind, reason)
    elif isinstance(error, RateLimited):
        call.failed("throttled", reason, error.retry_after)
    elif (reply := _reply_of(error)) is not None:
        call.refused(*reply)
    else:
        call.failed(_kind_of(error), reason)


def _reply_of(error: Exception) -> tuple[int, list[tuple[str, str]], bytes] | None:
    """Return status, headers and body of the reply in an error of an SDK."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        # botocore
        facts = response.get("ResponseMetadata", {})
        status, headers = facts.get("HTTPStatusCode"), facts.get("HTTPHeaders", {})
        body = json.dumps({"__type": response.get("Error", {}).get("Code"), "message": response.get("Error", {}).get("Message")}).encode()
    else:
        status = getattr(response, "status_code", None) or getattr(error, "status_code", None)
        headers = getattr(response, "headers", None) or {}
        try:
            body = bytes(getattr(response, "content", b""))
        except Exception:
            # A stream whose body was not read.
            body = b""
    if isinstance(status, bool) or not isinstance(status, int) or not 100 <= status <= 999:
        return None
    return status, headers_of(headers), body


def _kind_of(error: Exception) -> str:
    name = type(error).__name__
    if isinstance(error, TimeoutError) or "Timeout" in name:
        return "timeout"
    if isinstance(error, (ConnectionError, OSError)) or "Connection" in name or "ConnectError" in name:
        return "connection"
    return "transient"
