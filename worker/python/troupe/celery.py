# SPDX-License-Identifier: MIT
"""Runs the tasks of Celery in supervised processes: worker_pool = "troupe.celery:Pool"."""
import collections
import functools
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from billiard.einfo import ExceptionInfo
from billiard.exceptions import SoftTimeLimitExceeded, Terminated, WorkerLostError
from celery import signals
from celery.concurrency.base import BasePool
from celery.concurrency.prefork import process_initializer
from kombu.utils.imports import symbol_by_name

from troupe.executor import Executor, TaskTimeout, WorkerDied
from troupe.executor.private import Supervisor

BEGUN, SOFT = 0, 1  # what a worker tells about its task

# In a worker: the end of the pipe to the program, and what is left to do before the first task.
begun: Connection
initialize: Callable[[], None] | None = None


def name_of(app: Any) -> str | None:
    """Where the application is defined, for workers, which import it; None if that is nowhere."""
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "celery").partition(".")[0] == "celery":  # which knows the current one
            continue
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if value is app and name.isidentifier():
                return f"{'__mp_main__' if module.__name__ == '__main__' else module.__name__}:{name}"
    return None


def begin(app: Any, hostname: str) -> None:
    """Makes a worker what a process of Celery's own pool is that was not forked from the program."""
    os.environ["FORKED_BY_MULTIPROCESSING"] = "1"
    process_initializer(app, hostname)
    del os.environ["FORKED_BY_MULTIPROCESSING"]


def enter(connection: Connection, name: str | None, app: Any, hostname: str, path: list[str]) -> None:
    """Loads the application, in a worker or its template. What opens connections waits for the worker's first task."""
    global begun, initialize  # pylint: disable=global-statement
    begun = connection
    sys.path[:0] = [directory for directory in path if directory not in sys.path]
    if name is not None:
        app = symbol_by_name(name)
    app.loader.init_worker()
    initialize = functools.partial(begin, app, hostname)


def perform(number: int, soft_timeout: float | None, target: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Runs in a worker. What it tells is short enough to be written in one piece, even if the process is being killed."""
    global initialize  # pylint: disable=global-statement
    if initialize is not None:
        initialize()
        initialize = None

    def end_soon(*_: Any) -> None:
        begun.send((SOFT, number, os.getpid(), soft_timeout))
        raise SoftTimeLimitExceeded()

    begun.send((BEGUN, number, os.getpid(), time.monotonic()))
    if not soft_timeout:
        return target(*args, **kwargs)
    signal.signal(signal.SIGALRM, end_soon)
    signal.setitimer(signal.ITIMER_REAL, soft_timeout)
    try:
        return target(*args, **kwargs)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def info_of(error: BaseException) -> ExceptionInfo:
    try:
        raise error
    except BaseException:  # pylint: disable=broad-except
        return ExceptionInfo()


class Task:
    """What Celery expects of a task that it has given to a pool."""

    def __init__(self, callbacks: dict[str, Any], timeout: float | None) -> None:
        self.callbacks, self.timeout = callbacks, timeout
        self.pid: int | None = None
        self.ended_by: int | None = None  # signal of terminate()

    def call(self, name: str, *arguments: Any) -> None:
        if self.callbacks.get(name) is not None:
            self.callbacks[name](*arguments)

    def terminate(self, number: int) -> None:
        self.ended_by = number
        if self.pid is not None:
            os.kill(self.pid, number)

    def end(self, future: Any) -> None:
        error = future.exception()
        if error is None:
            self.call("callback", future.result())
        elif isinstance(error, TaskTimeout):
            self.call("timeout_callback", False, self.timeout)
        elif self.ended_by is not None and isinstance(error, WorkerDied):
            self.call("error_callback", info_of(Terminated(self.ended_by)))
        elif isinstance(error, WorkerDied):
            self.call("error_callback", info_of(WorkerLostError(str(error))))
        else:
            self.call("error_callback", info_of(error))


class Pool(BasePool):  # type: ignore[misc]
    """A pool of Celery whose processes are supervised: one that dies, hangs or grows takes nothing else with it.

    Concurrency, time limits, revoke with terminate, maxtasksperchild, autoscale, acks_late and remote control work as with prefork.
    max_memory_per_child limits how much a process grows. A task whose process dies fails with WorkerLostError and the cause."""
    uses_semaphore = True

    def on_start(self) -> None:
        receiving, sending = Pipe(duplex=False)
        self._begun = receiving
        app, hostname = self.options["initargs"]
        name = name_of(app)
        self._executor = Executor(
            self.limit, initializer=enter, initargs=(sending, name, None if name else app, hostname, list(sys.path)),
            max_tasks_per_child=self.options.get("maxtasksperchild") or None, template=True)
        place = self._executor._dispatcher.place
        assert isinstance(place, Supervisor)
        self._place = place
        if self.options.get("max_memory_per_child"):
            place.max_memory = f"{self.options['max_memory_per_child']}K"
        self._tasks: dict[int, Task] = {}
        self._n = 0
        self._ended: collections.deque[tuple[int, Any]] = collections.deque()
        self._bell, self._button = socket.socketpair()
        for end in (self._bell, self._button):
            end.setblocking(False)
        self._has_loop = False

    def register_with_event_loop(self, loop: Any) -> None:
        """All callbacks are then called by the loop, as Celery's connections belong to its thread."""
        self._has_loop = True
        loop.add_reader(self._begun.fileno(), self._read_begun)
        loop.add_reader(self._bell, self._read_ended)

    def on_apply(self, target: Callable[..., Any], args: Any = (), kwargs: Any = None, soft_timeout: float | None = None,
                 timeout: float | None = None, **callbacks: Any) -> Task:
        self._n += 1
        number = self._n
        timeout = timeout or self.options.get("timeout") or None
        soft_timeout = soft_timeout or self.options.get("soft_timeout") or None
        task = self._tasks[number] = Task(callbacks, timeout)
        future = self._executor.submit_within(timeout, perform, number, soft_timeout, target, args, kwargs or {})
        future.add_done_callback(lambda future: self._note_end(number, future))
        return task

    def _note_end(self, number: int, future: Any) -> None:
        self._ended.append((number, future))
        if not self._has_loop:
            self._take_ended()
            return
        try:
            self._button.send(b"\0")
        except BlockingIOError:  # it is ringing
            pass

    def _read_ended(self, *_: Any) -> None:
        try:
            while self._bell.recv(4096):
                pass
        except BlockingIOError:
            pass
        self._take_ended()

    def _read_begun(self, *_: Any) -> None:
        while self._begun.poll():
            what, number, pid, value = self._begun.recv()
            task = self._tasks.get(number)
            if task is None:
                continue
            if what == SOFT:
                task.call("timeout_callback", True, value)
                continue
            task.pid = pid
            task.call("accept_callback", pid, value)

    def _take_ended(self) -> None:
        self._read_begun()  # a task has begun before it ends
        while self._ended:
            number, future = self._ended.popleft()
            task = self._tasks.pop(number)
            try:
                task.end(future)
            finally:
                if self.options.get("semaphore") is not None:
                    self.options["semaphore"].release()

    def terminate_job(self, pid: int, signal: int | None = None) -> None:  # pylint: disable=redefined-outer-name
        for task in list(self._tasks.values()):
            if task.pid == pid:
                task.terminate(signal or 15)

    def grow(self, n: int = 1) -> None:
        self._resize(self.limit + n)
        for _ in range(n):
            if self.options.get("semaphore") is not None:
                self.options["semaphore"].grow()

    def shrink(self, n: int = 1) -> None:
        """Workers end after their tasks."""
        n = min(n, self.limit - 1)
        self._resize(self.limit - n)
        for _ in range(n):
            if self.options.get("semaphore") is not None:
                self.options["semaphore"].shrink()

    def _resize(self, size: int) -> None:
        self.limit = size
        self._place.resize(size)

    def restart(self) -> None:
        self.on_stop()
        self.on_start()

    def on_stop(self) -> None:
        self._executor.shutdown()
        signals.worker_process_shutdown.send(sender=None, pid=None, exitcode=0)

    def on_terminate(self) -> None:
        self._executor.kill_workers()

    def _get_info(self) -> dict[str, Any]:
        return {"max-concurrency": self.limit, "processes": self._place.workers() if self._place.socket else [],
                "max-tasks-per-child": self.options.get("maxtasksperchild") or "N/A",
                "timeouts": (self.options.get("soft_timeout") or 0, self.options.get("timeout") or 0)}

    @property
    def num_processes(self) -> int:
        return self.limit
