"""Transports for httpx2: limits for every SDK that is built on it, as those of OpenAI and Anthropic.

```python
import httpx2, openai, tollgate as tg
from tollgate.httpx2 import Transport

limits = tg.LimitSet([tg.per_minute("rpm", 500), tg.per_minute("tpm", 200_000)])
client = openai.OpenAI(max_retries=0, http_client=httpx2.Client(transport=Transport(limits)))
```
"""

from __future__ import annotations

from typing import Any

import httpx2

from ._core import Denial
from ._errors import TimedOut
from ._transports import AsyncStream, MeteredAsyncTransport, MeteredSyncTransport, SyncStream

__all__ = ["AcquireTimeout", "AsyncTransport", "Transport"]


class AcquireTimeout(TimedOut, httpx2.PoolTimeout):
    """A request was not admitted within the client's timeout. It was not sent.

    >>> import httpx2, tollgate as tg
    >>> from tollgate.httpx2 import AcquireTimeout
    >>> issubclass(AcquireTimeout, tg.TimedOut), issubclass(AcquireTimeout, httpx2.TimeoutException)
    (True, True)
    """

    def __init__(self, denial: Denial, waited: float, *, request: httpx2.Request | None = None) -> None:
        TimedOut.__init__(self, denial, waited)
        self._request = request


class _Stream(SyncStream, httpx2.SyncByteStream):
    pass


class _AsyncStream(AsyncStream, httpx2.AsyncByteStream):
    pass


class Transport(MeteredSyncTransport, httpx2.BaseTransport):
    """Acquires before each request, and settles with the usage in its reply, of streams too.

    A request waits as long as the client would wait for a connection, or for ``timeout``; then it fails with ``AcquireTimeout``. It
    reserves what ``estimate`` expects, an ``Estimator`` of its own by default, which learns. Limits count requests, tokens, input
    tokens or output tokens by their names, such as ``rpm`` and ``tpm``, or by ``counts``. A reply that says "not now" cools down the set
    for all callers. Requests that were refused are sent again up to ``retries`` times; clients may do that themselves. A ``Limiter`` also
    needs ``entity`` and ``resource``, which may be functions of the request, and ``counts``.

    >>> import httpx2, tollgate as tg
    >>> from tollgate.httpx2 import Transport
    >>> limits = tg.LimitSet([tg.per_minute("rpm", 500), tg.per_minute("tpm", 200_000)])
    >>> client = httpx2.Client(transport=Transport(limits))
    """

    _module: Any = httpx2
    _stream = _Stream
    _timed_out = AcquireTimeout


class AsyncTransport(MeteredAsyncTransport, httpx2.AsyncBaseTransport):
    """As ``Transport``, for clients in an event loop.

    >>> import httpx2, tollgate as tg
    >>> from tollgate.httpx2 import AsyncTransport
    >>> limits = tg.LimitSet([tg.per_minute("rpm", 500), tg.per_minute("tpm", 200_000)])
    >>> client = httpx2.AsyncClient(transport=AsyncTransport(limits))
    """

    _module: Any = httpx2
    _stream = _AsyncStream
    _timed_out = AcquireTimeout
