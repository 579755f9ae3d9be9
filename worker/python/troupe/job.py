# SPDX-License-Identifier: MIT
"""Workers: functions that handle jobs, and run()."""
from __future__ import annotations

import atexit
import errno
import json
import os
import sys
from collections.abc import Callable
from typing import Any

from troupe import _troupe, template
from troupe.actor import Actor
from troupe.data import Content, encode
from troupe.errors import Cancelled, Reject, Retry
from troupe.reason import REASON_SIZE, code_of, fit, reason_of

INHERITED = ("INBOX", "OUTBOX", "CONTROL", "WAIT", "WAKE", "WORKER", "GENERATION")


class Job(Content):
    """The current job, until its handler returns."""

    __slots__ = ("_job", "_steps", "_worker")

    def __init__(self, job: _troupe.Job, worker: _troupe.Worker) -> None:
        self._job = job
        self._steps: dict[str, Any] | None = None
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
        """1 + the number of retries."""
        return self._job.max_attempts

    @property
    def payload(self) -> bytes:
        return self._job.payload

    @property
    def cancelled(self) -> bool:
        """Whether cancellation was requested. Any thread may read it."""
        return self._job.cancelled

    def check(self) -> None:
        """Raises Cancelled if cancellation was requested. Also a heartbeat."""
        if self._job.cancelled:
            raise Cancelled
        self._worker.heartbeat()

    def crashed(self, pid: int, signal: int, *, core_dumped: bool = False, command: str | None = None) -> None:
        """Reports that a process run by this job was killed, like the death of a worker. Once per job."""
        self._job.crashed(pid, signal, core_dumped, command)

    @property
    def last_checkpoint(self) -> bytes:
        """The last checkpoint of an earlier attempt, or b""."""
        return self._job.last_checkpoint

    @property
    def parents(self) -> list[str]:
        """The ids of the jobs that this one has waited for.

        If the group has MaySubmit=, Client.wait() gets their results until this job has ended.
        """
        return [id for id in self._job.parents.split(",") if id]

    @property
    def traceparent(self) -> str | None:
        """The span of this attempt as a header traceparent of W3C Trace Context, or None: the submitter gave none."""
        return self._job.traceparent

    def checkpoint(self, data: object) -> None:
        """Keeps up to 64 KiB from which the next attempt is to continue, after check()."""
        self.check()
        self._job.checkpoint(encode(data))

    def step(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """
        Calls the function, unless an earlier attempt has done so, and returns its result, which must be representable in
        JSON. The results of all steps are the job's checkpoint, so do not call checkpoint() too.
        """
        if self._steps is None:
            self._steps = json.loads(self.last_checkpoint or b"{}")
        if name not in self._steps:
            self._steps[name] = json.loads(json.dumps(function(*arguments)))
            self.checkpoint(json.dumps(self._steps))
        return self._steps[name]

    def emit(self, item: object) -> None:
        """Emits an item of up to 4096 bytes for clients that watch the job: Client.stream(), 'troupectl watch'."""
        self._job.emit(encode(item))

    def publish(self, state: object) -> None:
        """Publishes up to 4096 bytes, after check()."""
        self.check()
        self._worker.publish(encode(state))


Handler = Callable[[Job], object]
handlers: dict[str, Handler] = {}


def job(function: Handler) -> Handler:
    """Decorates a function that handles jobs: its return value is the result, an exception means another attempt."""
    handlers[function.__name__] = function
    return function


def handle(function: Handler, job: _troupe.Job, worker: _troupe.Worker) -> None:
    """Ends the job according to the function's return value or exception."""
    try:
        data = encode(function(Job(job, worker)))
    except Cancelled:
        job.cancel()
    except Reject as final:
        job.reject(final.code, encode(final.data))
    except Retry as again:
        job.retry(again.code, fit(again.reason, REASON_SIZE), again.after)
    except Exception as error:
        job.retry(code_of(error), reason_of(error))
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
    """The only function, or the one with the name of the group."""
    if len(handlers) == 1:
        return next(iter(handlers.values()))
    wanted = name.partition("/")[0].replace("-", "_")
    if wanted not in handlers:
        sys.exit(f"{sys.argv[0]}: no @troupe.job function is named {wanted}: " + (", ".join(handlers) or "there is none"))
    return handlers[wanted]


def run(function: Handler | None = None, *, actor: Actor | None = None) -> None:
    """
    Handles jobs until the worker must stop. Without `function`, uses the only one that is decorated with @job, or the one
    with the name of the group, with _ for -. `actor` handles messages; it may be given without a function. Code before the
    call, and functions marked @warm, run before the worker counts as ready; with Template=slot they run in the template.
    """
    forked = template.load()
    worker = attach()
    if actor:
        actor.begin(worker.actor())
    if function or handlers or not actor:
        chosen = function or choose(worker.name)
        worker.on_job(lambda job: handle(chosen, job, worker))
    worker.run()
    if forked:
        atexit.register(template.end)
