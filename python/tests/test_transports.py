"""Transports without an SDK: encodings, redirects, estimates, wrong use; the same for httpx and httpx2."""

from __future__ import annotations

import asyncio
import gzip
import json
import pickle
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import httpx2
import pytest

import tollgate as tg
import tollgate.httpx
import tollgate.httpx2

MONTH = 30 * 86_400
USAGE = json.dumps({"usage": {"prompt_tokens": 30, "completion_tokens": 12, "total_tokens": 42}}).encode()


class Handler(BaseHTTPRequestHandler):
    """Answers with usage, in the encoding that the path names; leads `/moved` elsewhere."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.seen.append((self.path, self.headers.get("accept-encoding"), body))
        name = self.path.strip("/")
        if name == "moved":
            return self.reply(307, b"", location="/plain")
        if name == "broken":
            return self.reply(200, b"not gzip at all", **{"content-encoding": "gzip"})
        encode = {"gzip": gzip.compress, "deflate": zlib.compress}.get(name)
        if encode is None:
            return self.reply(200, USAGE)
        self.reply(200, encode(USAGE), **{"content-encoding": name})

    def do_GET(self):
        self.reply(200, USAGE)

    def reply(self, status, body, **headers):
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.seen = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()


@pytest.fixture(params=[(httpx, tollgate.httpx), (httpx2, tollgate.httpx2)], ids=["httpx", "httpx2"])
def modules(request):
    return request.param


def books(**more) -> tg.LimitSet:
    return tg.LimitSet([tg.fixed_window("rpd", 1_000, MONTH), tg.fixed_window("tpd", 1_000, MONTH)], **more)


def used(limits):
    status = limits.peek()
    return 1_000 - status["rpd"].available, 1_000 - status["tpd"].available


def client_of(modules, server, limits, **options):
    library, ours = modules
    url = f"http://127.0.0.1:{server.server_address[1]}"
    return library.Client(transport=ours.Transport(limits, **options), base_url=url)


@pytest.mark.parametrize("encoding", ["plain", "gzip", "deflate"])
def test_usage_is_read_in_every_encoding(modules, server, encoding):
    limits = books()
    reply = client_of(modules, server, limits).post(f"/{encoding}", json={"prompt": "x"})
    assert reply.content == USAGE
    assert used(limits) == (1, 42)
    assert "br" not in server.seen[-1][1] and "zstd" not in server.seen[-1][1]


def test_a_body_that_cannot_be_decoded_counts_as_it_was_reserved(modules, server):
    limits = books()
    with pytest.raises(modules[0].DecodingError):
        client_of(modules, server, limits, estimate=lambda body: 77).post("/broken", json={"prompt": "x"})
    assert used(limits) == (1, 77)


def test_p59_a_redirect_counts_once(modules, server):
    limits = books()
    reply = client_of(modules, server, limits).post("/moved", json={"prompt": "x"}, follow_redirects=True)
    assert (reply.status_code, len(reply.history), used(limits)) == (200, 1, (1, 42))


def test_only_calls_count(modules, server):
    limits = books()
    client = client_of(modules, server, limits)
    assert client.get("/models").status_code == 200
    assert used(limits) == (0, 0)
    everything = client_of(modules, server, limits, applies=lambda request: True)
    everything.get("/models")
    assert used(limits) == (1, 42)


def test_an_estimate_is_reserved_and_never_makes_a_call_impossible(modules, server):
    limits, reserved = books(), []

    def estimate(body):
        assert json.loads(body) == {"prompt": "x"}
        reserved.append(used(limits))
        return 5_000

    with client_of(modules, server, limits, estimate=estimate).stream("POST", "/plain", json={"prompt": "x"}) as reply:
        assert used(limits) == (1, 1_000)
        reply.read()
    assert reserved == [(0, 0)] and used(limits) == (1, 42)


def test_a_body_that_is_no_json_reserves_no_tokens_and_is_settled_all_the_same(modules, server):
    limits = books()
    reply = client_of(modules, server, limits).post("/plain", files={"file": b"sound"}, data={"model": "whisper"})
    assert reply.status_code == 200 and b"whisper" in server.seen[-1][2]
    assert used(limits) == (1, 42)


def test_the_store_of_a_lease_that_fails_does_not_cost_the_reply(modules, server, caplog):
    class Failing:
        """A set whose leases cannot be ended, as those of a store that is gone."""

        limits = books().limits

        def acquire(self, *asked, **options):
            return self

        acquire_async = acquire

        def settle(self, usage):
            raise tg.Unavailable("the store did not answer")

    assert client_of(modules, server, Failing()).post("/plain", json={"prompt": "x"}).content == USAGE
    assert [record.message for record in caplog.records if record.name == "tollgate"] == ["a lease could not be settled: the store did not answer"]


@pytest.mark.parametrize("status", [-1, 70_000])
def test_a_reply_that_cannot_be_read_leaves_nothing_held(modules, status):
    client_module, transports = modules
    limits = tg.LimitSet([tg.resource("slots", 1)])

    def reply(request):
        return client_module.Response(status, content=b"")

    transport = transports.Transport(limits, transport=client_module.MockTransport(reply))
    with pytest.raises(Exception), client_module.Client(transport=transport) as client:
        client.post("http://provider.test/v1/chat/completions", json={"model": "m"})
    assert limits.peek()["slots"].available == 1

    async def main():
        transport = transports.AsyncTransport(limits, transport=client_module.MockTransport(reply))
        async with client_module.AsyncClient(transport=transport) as client:
            await client.post("http://provider.test/v1/chat/completions", json={"model": "m"})

    with pytest.raises(Exception):
        asyncio.run(main())
    assert limits.peek()["slots"].available == 1


def test_a_pool_and_a_set_in_a_store_are_limits_too(modules, server, tmp_path):
    stored = tg.LimitSet([tg.fixed_window("rpd", 1_000, MONTH), tg.fixed_window("tpd", 1_000, MONTH)], store=f"file:{tmp_path}/limits.db", name="blue")
    pool = tg.LimitPool([books(), stored], spread="round_robin")
    client = client_of(modules, server, pool)
    for _ in range(4):
        client.post("/plain", json={"prompt": "x"})
    assert [used(one) for one in pool.sets] == [(2, 84), (2, 84)]


def test_a_limiter_needs_an_entity_and_a_resource(modules, server):
    limiter = tg.Limiter("memory")
    limiter.catalog.set_limits([tg.fixed_window("rpd", 1_000, MONTH), tg.fixed_window("tpd", 1_000, MONTH)])
    options = {"counts": {"rpd": "requests", "tpd": "tokens"}, "resource": lambda request: json.loads(request.content)["model"]}
    client = client_of(modules, server, limiter, entity="user-1", **options)
    client.post("/plain", json={"prompt": "x", "model": "gpt-4"})
    assert [limiter.peek("user-1", "gpt-4")[name].available for name in ("rpd", "tpd")] == [999, 958]
    for wrong, text in [({}, "entity and resource"), ({"entity": "a"}, "both"), ({"entity": "a", "resource": "b"}, "counts")]:
        with pytest.raises(tg.InvalidValue, match=text):
            client_of(modules, server, limiter, **wrong)


def test_an_estimator_learns(modules, server):
    estimator = tg.Estimator()
    client = client_of(modules, server, books(), estimate=estimator)
    for _ in range(20):
        client.post("/plain", json={"model": "m", "prompt": "x"})
    assert estimator.estimate({"model": "m", "prompt": "x"}).output < 100 < tg.estimate_tokens({"model": "m", "prompt": "x"}).output
    assert repr(estimator) == "<Estimator calls=20>"


def test_names_say_what_a_limit_counts(modules, server):
    limits = tg.LimitSet(
        [
            tg.fixed_window("itpd", 1_000, MONTH),
            tg.fixed_window("output_tokens", 1_000, MONTH),
            tg.fixed_window("spend", 1_000, MONTH),
            tg.fixed_window("mine", 1_000, MONTH),
        ]
    )
    client = client_of(modules, server, limits, counts={"mine": "tokens", "spend": None})
    client.post("/plain", json={"prompt": "x"})
    assert [1_000 - status.available for status in limits.peek().limits] == [30, 12, 0, 42]


def test_wrong_use_is_reported_when_a_transport_is_made(modules):
    transport = modules[1].Transport
    with pytest.raises(tg.InvalidValue, match='what the limit "spend" counts'):
        transport(tg.LimitSet([tg.per_day("spend", 5)]))
    with pytest.raises(tg.InvalidValue, match="must be one of requests"):
        transport(books(), counts={"rpd": "calls"})
    with pytest.raises(tg.InvalidValue, match='"rpm", which is no limit here'):
        transport(books(), counts={"rpm": "requests"})
    for options in [{"retries": -1}, {"retries": True}, {"cooldown_max": -1}, {"cooldown_max": float("nan")}, {"estimate": 7}]:
        with pytest.raises(tg.InvalidValue, match=next(iter(options))):
            transport(books(), **options)
    with pytest.raises(tg.InvalidValue, match="has no acquire"):
        transport({"rpm": 5})


def test_an_estimate_that_is_none_is_an_error_of_ours(modules, server):
    with pytest.raises(tg.InvalidValue, match="estimate returned 'many'"):
        client_of(modules, server, books(), estimate=lambda body: "many").post("/plain", json={})


def test_p40_the_timeout_of_a_transport_pickles(modules, server):
    limits = tg.LimitSet([tg.resource("slots", 1), tg.per_day("rpd", 1_000)])
    with limits.acquire(rpd=1), pytest.raises(modules[0].PoolTimeout) as late:
        client_of(modules, server, limits, timeout=0).post("/plain", json={})
    copy = pickle.loads(pickle.dumps(late.value))
    assert type(copy) is modules[1].AcquireTimeout and copy.limited_by.name == "slots" and str(copy) == str(late.value)


def test_p56_the_package_imports_no_client(run_python):
    loaded = run_python("import sys, tollgate; print(sorted({'httpx', 'httpx2', 'asyncio', 'multiprocessing'} & set(sys.modules)))")
    assert loaded == "[]"


def test_a_stream_is_read_in_any_pieces():
    events = b'event: message_start\r\ndata: {"message":{"usage":{"input_tokens":25,"output_tokens":1}}}\r\n\r\n' + b"data: x\n" * 100
    events += b'event: message_delta\ndata: {"usage":{"output_tokens":15}}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n'
    kept = sum(len(line.strip()) + 1 for line in events.split(b"\n") if b"usage" in line)
    for size in range(1, 40):
        reader = tg.ReplyReader(200, [("content-type", "text/event-stream; charset=utf-8")])
        pieces = [events[at : at + size] for at in range(0, len(events), size)]
        for at, piece in enumerate(pieces):
            reader.feed(piece)
            assert reader.is_complete <= (b"message_stop" in b"".join(pieces[: at + 1]))
        assert reader.is_complete
        assert (reader.hint().usage.input, reader.hint().usage.output) == (25, 15)
        # What is not about the call is not kept.
        assert repr(reader) == f"<ReplyReader 200 kept={kept}>"


@pytest.mark.parametrize(
    ("setting", "value"),
    [("timeout", -1), ("timeout", "5"), ("timeout", float("nan")), ("timeout", True), ("priority", "high"), ("applies", 5)],
)
def test_settings_that_no_request_could_use_are_refused_when_they_are_given(modules, setting, value):
    with pytest.raises(tg.InvalidValue, match=setting):
        modules[1].Transport(books(), **{setting: value})
    if setting != "applies":
        with pytest.raises(tg.InvalidValue, match=setting):
            books().limit(**{setting: value})


def test_a_transport_in_the_wrong_client_names_the_right_one(modules):
    import asyncio

    client, ours = modules

    async def main():
        with pytest.raises(tg.InvalidValue, match="AsyncTransport"):
            async with client.AsyncClient(transport=ours.Transport(books())):
                pass
        with pytest.raises(tg.InvalidValue, match="AsyncTransport"):
            await client.AsyncClient(transport=ours.Transport(books())).post("http://127.0.0.1")

    asyncio.run(main())
    with pytest.raises(tg.InvalidValue, match="give Client a Transport"):
        client.Client(transport=ours.AsyncTransport(books())).post("http://127.0.0.1")
