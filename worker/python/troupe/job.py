# SPDX-License-Identifier: MIT
"""Workers: functions that handle jobs, and run()."""
from __future__ import annotations

import errno
import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

from troupe import _troupe
from troupe.data import encode
from troupe.errors import Cancelled, Reject

REASON_SIZE = 1023  # what is kept of a reason
SUMMARY_SIZE = 150
INHERITED = ("INBOX", "OUTBOX", "CONTROL", "WAIT", "WAKE", "WORKER", "GENERATION")


class Job:
    """The job in hand, until its handler returns."""

    __slots__ = ("_job", "_worker")

    def __init__(self, job: _troupe.Job, worker: _troupe.Worker) -> None:
        self._job = job
        self._worker = worker

    @property
    def id(self) -> str:
        return self._job.id

    @property
    def key(self) -> bytes:
        """The routing key, or b""."""
        return self._job.key

    @property
    def attempt(self) -> int:
        """Counts from 1."""
        return self._job.attempt

    @property
    def max_attempts(self) -> int:
        """1 + the retries allowed."""
        return self._job.max_attempts

    @property
    def payload(self) -> bytes:
        """A new copy with each call."""
        return self._job.payload

    @property
    def text(self) -> str:
        """The payload as text."""
        return self.payload.decode()

    def json(self) -> Any:
        """The payload, which is JSON."""
        return json.loads(self.payload)

    @property
    def cancelled(self) -> bool:
        """Whether the job is to be cancelled. Any thread may look."""
        return self._job.cancelled

    def check(self) -> None:
        """Raises Cancelled if the job is to be cancelled. Also a heartbeat."""
        if self._job.cancelled:
            raise Cancelled
        self._worker.heartbeat()

    def publish(self, state: object) -> None:
        """Shows up to 4096 bytes to everybody, after check()."""
        self.check()
        self._worker.publish(encode(state))


Handler = Callable[[Job], object]
handlers: dict[str, Handler] = {}


def job(function: Handler) -> Handler:
    """Decorates a function that handles jobs: what it returns is the result, an exception means another attempt."""
    handlers[function.__name__] = function
    return function


def fit(text: str, size: int, keep_end: bool = False) -> str:
    """The text within so many bytes of UTF-8; what a C string cannot have is escaped."""
    data = text.replace("\0", "\\0").encode(errors="backslashreplace")
    if len(data) > size:
        data = b"..." + data[3 - size:] if keep_end else data[:size - 3] + b"..."
    return data.decode(errors="ignore")


def reason_of(error: Exception) -> str:
    """The exception in a line, which is all that lists show, and the traceback below this package."""
    head = fit(" ".join(traceback.format_exception_only(type(error), error)).strip(), SUMMARY_SIZE)
    frames = error.__traceback__.tb_next if error.__traceback__ else None
    text = "".join(traceback.format_exception(type(error), error, frames)).rstrip()
    return head + "\n" + fit(text, REASON_SIZE - SUMMARY_SIZE - 1, keep_end=True)


def handle(function: Handler, job: _troupe.Job, worker: _troupe.Worker) -> None:
    """Ends the job by what the function returns or raises."""
    try:
        data = encode(function(Job(job, worker)))
    except Cancelled:
        job.cancel()
    except Reject as final:
        job.reject(final.code, encode(final.data))
    except Exception as error:
        job.retry(error.errno or 1 if isinstance(error, OSError) else 1, reason_of(error))
    else:
        job.succeed(data)


def attach() -> _troupe.Worker:
    """The worker that this process is. Ends the process with a hint if trouped has not started it."""
    try:
        worker = _troupe.Worker()
    except OSError as error:
        if error.errno != errno.ENOTCONN:
            raise
        sys.exit(f"{sys.argv[0]}: not started by trouped: put this program into the ExecStart= of a group")
    for name in INHERITED:
        os.environ.pop("TROUPE_" + name, None)
    return worker


def choose(name: str) -> Handler:
    """The only function, or the one that has the name of the group."""
    if len(handlers) == 1:
        return next(iter(handlers.values()))
    wanted = name.partition("/")[0].replace("-", "_")
    if wanted not in handlers:
        sys.exit(f"{sys.argv[0]}: no @troupe.job function is named {wanted}: " + (", ".join(handlers) or "there is none"))
    return handlers[wanted]


def run(function: Handler | None = None) -> None:
    """
    Handles jobs until the worker is to stop. Without a function: by the only one that is decorated with @job, or by the
    one that is named as the group, with _ for -. What is set up before is set up before the worker counts as ready.
    """
    worker = attach()
    chosen = function or choose(worker.name)
    worker.run(lambda job: handle(chosen, job, worker))
