"""The workers of a pool as processes. A thread of the parent serves each, so that one that dies fails only its own job."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from typing import Any

from ._errors import InvalidValue
from ._worker_threads import Doer, call_with_retries
from ._workers import Work, Worker, WorkerDied

#: What ends a process.
_END = b""

#: How long a process that was told to end may take, in seconds.
_END_MAX = 10.0


#: Starting a process polls all others, and the exit code of a process can be read once: one thread at a time does either.
_lock = threading.Lock()


def _forget_lock() -> None:
    """Make a new lock in a forked child: a worker that is forked begins while it is held."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_lock)


def _end_of(process: Any) -> int | None:
    """Wait until a process has ended, by force after a while. Return its exit code."""
    for kill in (process.terminate, process.kill, lambda: None):
        is_over = wait([process.sentinel], _END_MAX)
        with _lock:
            # What is watched closes a moment before the process can be waited for.
            process.join(_END_MAX if is_over else 0)
            code: int | None = process.exitcode
            if code is not None:
                break
            kill()
    return code


class _RemoteTraceback(Exception):
    """Where in the worker process an exception was raised."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return f"\n{self.text}"


class _InProcess:
    """Does the jobs of one worker in a process, and replaces it when it dies."""

    def __init__(self, context: Any, prepared: bytes, index: int) -> None:
        self._context, self._prepared, self._index = context, prepared, index
        self._process: Any = None
        self._jobs: Any = None
        self._has_replied = False

    def do(self, item: Any) -> Any:
        job = bytes(ForkingPickler.dumps(item))
        jobs, process = self._started()
        try:
            jobs.send_bytes(job)
            # A copy of the other end may live on in a forked process, so the process is watched, too.
            ready = wait([jobs, process.sentinel])
            reply = jobs.recv_bytes() if jobs in ready or jobs.poll() else None
        except (EOFError, OSError):
            reply = None
        if reply is None:
            raise self._died()
        self._has_replied = True
        return _result_of(reply)

    def end(self, at_once: bool) -> None:
        if self._process is None:
            return
        try:
            if at_once:
                self._process.terminate()
            else:
                self._jobs.send_bytes(_END)
        except OSError:
            pass
        self._jobs.close()
        _end_of(self._process)

    def _started(self) -> tuple[Any, Any]:
        if self._process is not None:
            with _lock:
                is_alive = self._process.is_alive()
            if is_alive:
                return self._jobs, self._process
            self._jobs.close()
            self._process = None
        jobs, other = self._context.Pipe()
        arguments = (other, self._prepared, self._index)
        process = self._context.Process(target=serve, args=arguments, name=f"tollgate-worker-{self._index}", daemon=True)
        try:
            with _lock:
                process.start()
        except BaseException:
            # Such as in a process of another pool, which may have no children.
            jobs.close()
            raise
        finally:
            other.close()
        self._jobs, self._process, self._has_replied = jobs, process, False
        return jobs, process

    def _died(self) -> WorkerDied:
        self._jobs.close()
        code, self._process = _end_of(self._process), None
        ended = f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"
        if code == 1 and not self._has_replied:
            # How an interpreter ends that fails while it imports the main module.
            hint = 'its traceback is in the standard error; a script that makes a pool does so below if __name__ == "__main__":'
            return WorkerDied(f"worker process {self._index} {ended} before it returned anything; {hint}")
        return WorkerDied(f"worker process {self._index} {ended} in the middle of a job")


def doers_in_processes(work: Work, limits: Any, context: Any) -> Callable[[int], Doer]:
    """Return what makes the doers of processes."""
    if context is None or isinstance(context, str):
        try:
            context = multiprocessing.get_context(context or ("forkserver" if sys.platform == "linux" else "spawn"))
        except ValueError as error:
            raise InvalidValue(f"mp_context is {context!r}: {error}") from None
    # A copy of a set in memory would limit apart from the others: pickling refuses it, also where nothing had to be pickled.
    try:
        prepared = bytes(ForkingPickler.dumps((work, limits)))
    except (pickle.PicklingError, AttributeError) as error:
        raise InvalidValue(f"work is {work.function!r}, which processes cannot import; define it at the top of a module: {error}") from error
    return lambda index: _InProcess(context, prepared, index)


def _result_of(reply: bytes) -> Any:
    try:
        is_good, value, where = pickle.loads(reply)
    except Exception as error:
        raise WorkerDied(f"the result of a job cannot be unpickled: {error}") from error
    if is_good:
        return value
    value.__cause__ = _RemoteTraceback(where)
    raise value


def _reply_of(is_good: bool, value: Any, where: str) -> bytes:
    try:
        reply = bytes(ForkingPickler.dumps((is_good, value, where)))
        pickle.loads(reply)
    except Exception as error:
        what = "the result" if is_good else "the exception"
        text = f"{what} of a job cannot be pickled: {error}; it was {value!r}"
        return bytes(ForkingPickler.dumps((False, TypeError(text), where)))
    return reply


def serve(jobs: Connection, prepared: bytes, index: int) -> None:
    """Do jobs in a worker process until the parent ends it, or has ended."""
    # Ctrl-C goes to all processes of a terminal; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    work, limits = pickle.loads(prepared)
    worker = Worker(index, limits)
    while True:
        try:
            job = jobs.recv_bytes()
        except (EOFError, OSError):
            return
        if job == _END:
            return
        try:
            reply = _reply_of(True, call_with_retries(work, worker, pickle.loads(job)), "")
        except Exception as error:
            reply = _reply_of(False, error, traceback.format_exc())
        try:
            jobs.send_bytes(reply)
        except OSError:
            return
