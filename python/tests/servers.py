"""Servers of tests: Redis as ``cargo xtask servers`` installs it, DynamoDB from the command ``tollgate``."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class RedisServer:
    """A running server."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self.process, self.port = process, port
        self.url = f"redis://127.0.0.1:{port}"

    def stop(self) -> None:
        """Stop it, so that it accepts connections and answers nothing."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def command(self, *words: str) -> bytes:
        """Send a command and return the reply as it comes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            connection.sendall(f"*{len(words)}\r\n".encode() + b"".join(_bulk(word) for word in words))
            reply = connection.makefile("rb")
            head = reply.readline()
            return reply.read(int(head[1:])) if head.startswith(b"$") else head

    def clients(self) -> int:
        """Return how many connections others have."""
        return len(self.command("CLIENT", "LIST").splitlines()) - 1


def _bulk(word: str) -> bytes:
    return f"${len(word)}\r\n{word}\r\n".encode()


def _target_folders() -> Iterator[Path]:
    """Where cargo may have put programs: above the interpreter, beside the sources, or where it was told to."""
    if "CARGO_TARGET_DIR" in os.environ:
        yield Path(os.environ["CARGO_TARGET_DIR"])
    yield from Path(sys.prefix).resolve().parents
    for folder in Path(__file__).resolve().parents:
        yield folder / "target"


def _installed(*places: str) -> Path | None:
    found = (folder / place for folder in _target_folders() for place in places)
    return next((program for program in found if program.is_file()), None)


def _redis_program() -> Path:
    named = os.environ.get("TOLLGATE_REDIS_SERVER") or _installed("redis/usr/bin/redis-server") or shutil.which("redis-server")
    if named is None:
        pytest.fail("there is no redis-server; install it with `cargo xtask servers`, or name it in TOLLGATE_REDIS_SERVER")
    return Path(named)


@contextmanager
def redis() -> Iterator[RedisServer]:
    program = _redis_program()
    libraries = [str(folder) for folder in program.parents[1].glob("lib/*") if folder.is_dir()]
    with tempfile.TemporaryDirectory() as folder, socket.socket() as place:
        # A port that nobody else is given while the server starts.
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        place.bind(("127.0.0.1", 0))
        port = place.getsockname()[1]
        place.close()
        process = subprocess.Popen(
            [str(program), "--port", str(port), "--bind", "127.0.0.1", "--dir", folder, "--save", "", "--appendonly", "no"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(libraries)},
        )
        server = RedisServer(process, port)
        try:
            _wait_for(server)
            yield server
        finally:
            process.kill()
            process.wait()


def _wait_for(server: RedisServer) -> None:
    # A program does not notify when it is ready.
    for _ in range(1_200):
        try:
            if server.command("PING").startswith(b"+PONG"):
                return
        except OSError:
            time.sleep(0.025)
    pytest.fail("redis-server did not start")


@contextmanager
def dynamodb() -> Iterator[str]:
    command = os.environ.get("TOLLGATE_COMMAND") or _installed("debug/tollgate", "release/tollgate")
    has_engine = command and subprocess.run([str(command), "local", "--help"], capture_output=True).returncode == 0
    if not has_engine:
        pytest.skip("there is no command `tollgate` with the feature `local`; build it, or name it in TOLLGATE_COMMAND")
    process = subprocess.Popen(
        [str(command), "local", "up", "--port", "0", "--seconds", "1800"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        words = (word for line in process.stdout for word in line.replace("'", " ").split())
        yield next(word for word in words if word.startswith("dynamodb:"))
    finally:
        process.terminate()
        process.wait()
