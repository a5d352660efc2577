"""Transports for httpx: limits for every SDK that is built on it, as those of OpenAI and Anthropic were before httpx2.

```python
import httpx, tollgate as tg
from tollgate.httpx import Transport

limits = tg.LimitSet([tg.per_minute("rpm", 500), tg.per_minute("tpm", 200_000)])
client = httpx.Client(transport=Transport(limits))
```
"""

from __future__ import annotations

from typing import Any

import httpx

from ._core import Denial
from ._errors import TimedOut
from ._transports import AsyncStream, MeteredAsyncTransport, MeteredSyncTransport, SyncStream

__all__ = ["AcquireTimeout", "AsyncTransport", "Transport"]


class AcquireTimeout(TimedOut, httpx.PoolTimeout):
    """A request was not admitted within the client's timeout. It was not sent.

    >>> import httpx, tollgate as tg
    >>> from tollgate.httpx import AcquireTimeout
    >>> issubclass(AcquireTimeout, tg.TimedOut), issubclass(AcquireTimeout, httpx.TimeoutException)
    (True, True)
    """

    def __init__(self, denial: Denial, waited: float, *, request: httpx.Request | None = None) -> None:
        TimedOut.__init__(self, denial, waited)
        self._request = request


class _Stream(SyncStream, httpx.SyncByteStream):
    pass


class _AsyncStream(AsyncStream, httpx.AsyncByteStream):
    pass


class Transport(MeteredSyncTransport, httpx.BaseTransport):
    """Acquires before each request, and settles with the usage in its reply, of streams too.

    A request waits as long as the client would wait for a connection, or for ``timeout``; then it fails with ``AcquireTimeout``. It
    reserves what ``estimate`` expects, an ``Estimator`` of its own by default, which learns. Limits count requests, tokens, input
    tokens or output tokens by their names, such as ``rpm`` and ``tpm``, or by ``counts``. A reply that says "not now" cools down the set
    for all callers. Requests that were refused are sent again up to ``retries`` times; clients may do that themselves. A ``Limiter`` also
    needs ``entity`` and ``resource``, which may be functions of the request, and ``counts``.

    >>> import httpx, tollgate as tg
    >>> from tollgate.httpx import Transport
    >>> limits = tg.LimitSet([tg.per_minute("rpm", 500), tg.per_minute("tpm", 200_000)])
    >>> client = httpx.Client(transport=Transport(limits))
    """

    _module: Any = httpx
    _stream = _Stream
    _timed_out = AcquireTimeout


class AsyncTransport(MeteredAsyncTransport, httpx.AsyncBaseTransport):
    """As ``Transport``, for clients in an event loop.

    >>> import httpx, tollgate as tg
    >>> from tollgate.httpx import AsyncTransport
    >>> limits = tg.LimitSet([tg.per_minute("rpm", 500), tg.per_minute("tpm", 200_000)])
    >>> client = httpx.AsyncClient(transport=AsyncTransport(limits))
    """

    _module: Any = httpx
    _stream = _AsyncStream
    _timed_out = AcquireTimeout
