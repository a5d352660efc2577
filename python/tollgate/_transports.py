"""Transports that acquire before a request is sent, and settle with what its reply reports: for httpx and for httpx2 alike."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from ._core import Estimate, Estimator, Hint, LimitReading, read_reply
from ._errors import InvalidValue, TimedOut
from ._http import Call, MeteredReply, Metering, end_lease, end_lease_async, give_back, give_back_async, refused

#: How long an account that is exhausted or advises long waits cools down at most, in seconds.
COOLDOWN_MAX = 600.0


class SyncStream:
    """A body on its way to the caller, which is read along."""

    def __init__(self, inner: Any, limits: Any, reply: MeteredReply) -> None:
        self._inner, self._limits, self._reply = inner, limits, reply

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._inner:
            if self._reply.add(piece):
                self._end(True)
            yield piece
        self._end(True)

    def close(self) -> None:
        try:
            self._inner.close()
        finally:
            self._end(False)

    def _end(self, is_complete: bool) -> None:
        end = self._reply.end(is_complete)
        if end is not None:
            end_lease(self._limits, self._reply.lease, *end)


class AsyncStream:
    """As ``SyncStream``, in an event loop."""

    def __init__(self, inner: Any, limits: Any, reply: MeteredReply) -> None:
        self._inner, self._limits, self._reply = inner, limits, reply

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._inner:
            if self._reply.add(piece):
                await self._end(True)
            yield piece
        await self._end(True)

    async def aclose(self) -> None:
        try:
            await self._inner.aclose()
        finally:
            await self._end(False)

    async def _end(self, is_complete: bool) -> None:
        end = self._reply.end(is_complete)
        if end is not None:
            await end_lease_async(self._limits, self._reply.lease, *end)


class MeteredTransport:
    """What both kinds of transports have. A subclass names the module, and its own classes."""

    _module: Any
    _stream: Any
    _timed_out: Any
    _inner_class: Any

    def __init__(
        self,
        limits: Any,
        *,
        transport: Any = None,
        estimate: Estimator | Callable[[bytes], Estimate | int] | None = None,
        counts: Mapping[str, str | None] | None = None,
        timeout: float | timedelta | None = None,
        priority: str | None = None,
        applies: Callable[[Any], bool] | None = None,
        retries: int = 0,
        cooldown_max: float = COOLDOWN_MAX,
        entity: str | Callable[[Any], str] | None = None,
        resource: str | Callable[[Any], str] | None = None,
    ) -> None:
        self._metering = Metering(
            limits,
            estimate=estimate,
            counts=counts,
            timeout=timeout,
            priority=priority,
            applies=applies,
            retries=retries,
            cooldown_max=cooldown_max,
            entity=entity,
            resource=resource,
        )
        self._inner = getattr(self._module, self._inner_class)() if transport is None else transport

    @property
    def provider_limits(self) -> dict[str, LimitReading]:
        """How the provider's own limits stood in the last reply that had them, by what they count."""
        return dict(self._metering.readings)

    def _is_json(self, request: Any) -> bool:
        return "json" in request.headers.get("content-type", "")

    def _is_unsent(self, error: BaseException) -> bool:
        """Return whether a request that failed so never reached the provider."""
        names = ("ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "UnsupportedProtocol", "LocalProtocolError")
        return isinstance(error, tuple(getattr(self._module, name) for name in names))

    def _may_resend(self, request: Any) -> bool:
        return isinstance(request.stream, self._module.ByteStream)

    def _hint(self, response: Any, body: bytes) -> Hint:
        """Read an error, whose body has arrived."""
        try:
            body = self._module.Response(response.status_code, headers=response.headers, content=body).content
        except self._module.DecodingError:
            body = b""
        return read_reply(response.status_code, response.headers, body)

    def _timeout_of(self, error: TimedOut, request: Any) -> Exception:
        timed_out: Exception = self._timed_out(error.denial, error.waited, request=request)
        return timed_out


class MeteredSyncTransport(MeteredTransport):
    """Acquires in the thread of the caller."""

    _inner_class = "HTTPTransport"

    def handle_request(self, request: Any) -> Any:
        metering = self._metering
        if not metering.applies(request):
            return self._inner.handle_request(request)
        call = Call(metering, request, request.read() if self._is_json(request) else None)
        metering.prepare(request)
        last = None
        for tries_left in range(metering.retries, -1, -1):
            try:
                lease = metering.limits.acquire(*call.demand, **call.options)
            except TimedOut as error:
                if last is not None:
                    return last
                raise self._timeout_of(error, request) from error
            response = self._send(request, lease, call)
            if response.status_code < 400:
                return response
            hint = self._refused(response, lease, call)
            if not tries_left or hint.kind not in ("throttled", "overloaded") or not self._may_resend(request):
                return response
            last = response
        return last

    async def __aenter__(self) -> Any:
        raise self._wrong_client()

    async def handle_async_request(self, request: Any) -> Any:
        """Refuse: an ``AsyncClient`` calls this."""
        raise self._wrong_client()

    def _wrong_client(self) -> InvalidValue:
        return InvalidValue("Transport is for Client; give AsyncClient an AsyncTransport")

    def _send(self, request: Any, lease: Any, call: Call) -> Any:
        call.start()
        try:
            response = self._inner.handle_request(request)
            reply = MeteredReply(self._metering, lease, response, call) if response.status_code < 300 else None
        except BaseException as error:
            if self._is_unsent(error):
                give_back(lease)
            else:
                end_lease(self._metering.limits, lease, None, None)
            raise
        if 300 <= response.status_code < 400:
            # The call is made where it leads.
            give_back(lease)
        elif reply is not None:
            response.stream = self._stream(response.stream, self._metering.limits, reply)
        return response

    def _refused(self, response: Any, lease: Any, call: Call) -> Hint:
        try:
            body = b"".join(response.stream)
            response.stream.close()
            response.stream = self._module.ByteStream(body)
            hint = self._hint(response, body)
            wait = self._metering.cooldown(hint, call.started)
        except BaseException:
            end_lease(self._metering.limits, lease, None, None)
            raise
        end_lease(self._metering.limits, lease, refused(self._metering, hint), wait)
        return hint

    def close(self) -> None:
        self._inner.close()


class MeteredAsyncTransport(MeteredTransport):
    """Acquires in the event loop of the caller."""

    _inner_class = "AsyncHTTPTransport"

    async def handle_async_request(self, request: Any) -> Any:
        metering = self._metering
        if not metering.applies(request):
            return await self._inner.handle_async_request(request)
        call = Call(metering, request, await request.aread() if self._is_json(request) else None)
        metering.prepare(request)
        last = None
        for tries_left in range(metering.retries, -1, -1):
            try:
                lease = await metering.limits.acquire_async(*call.demand, **call.options)
            except TimedOut as error:
                if last is not None:
                    return last
                raise self._timeout_of(error, request) from error
            response = await self._send(request, lease, call)
            if response.status_code < 400:
                return response
            hint = await self._refused(response, lease, call)
            if not tries_left or hint.kind not in ("throttled", "overloaded") or not self._may_resend(request):
                return response
            last = response
        return last

    def __enter__(self) -> Any:
        raise self._wrong_client()

    def handle_request(self, request: Any) -> Any:
        """Refuse: a ``Client`` calls this."""
        raise self._wrong_client()

    def _wrong_client(self) -> InvalidValue:
        return InvalidValue("AsyncTransport is for AsyncClient; give Client a Transport")

    async def _send(self, request: Any, lease: Any, call: Call) -> Any:
        call.start()
        try:
            response = await self._inner.handle_async_request(request)
            reply = MeteredReply(self._metering, lease, response, call) if response.status_code < 300 else None
        except BaseException as error:
            if self._is_unsent(error):
                await give_back_async(lease)
            else:
                await end_lease_async(self._metering.limits, lease, None, None)
            raise
        if 300 <= response.status_code < 400:
            await give_back_async(lease)
        elif reply is not None:
            response.stream = self._stream(response.stream, self._metering.limits, reply)
        return response

    async def _refused(self, response: Any, lease: Any, call: Call) -> Hint:
        try:
            body = b"".join([piece async for piece in response.stream])
            await response.stream.aclose()
            response.stream = self._module.ByteStream(body)
            hint = self._hint(response, body)
            wait = self._metering.cooldown(hint, call.started)
        except BaseException:
            await end_lease_async(self._metering.limits, lease, None, None)
            raise
        await end_lease_async(self._metering.limits, lease, refused(self._metering, hint), wait)
        return hint

    async def aclose(self) -> None:
        await self._inner.aclose()
