# SPDX-License-Identifier: MIT
"""Runs the tasks of Celery in supervised processes: worker_pool = "troupe.celery:Pool"."""
import bisect
import collections
import contextlib
import functools
import os
import pickle
import select
import signal
import struct
import sys
import threading
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
from celery.utils.log import get_logger
from celery.worker import state
from kombu.utils.imports import symbol_by_name

from troupe._troupe import Result
from troupe.client import Ids
from troupe.executor import ends
from troupe.executor.bell import Bell
from troupe.executor.private import Supervisor
from troupe.executor.starts import Starts
from troupe.executor.tasks import PROTOCOL, TaskTimeout, WorkerDied, dumps

LOGGER = get_logger(__name__)
BEGUN, SOFT = 0, 1  # what a worker reports: its task has begun, or has reached its soft time limit
WORD = struct.Struct("=iqid")  # one of these, the task's number, the pid, and the time or the soft time limit
LOOK_SEC = 0.01  # between looks for tasks that have begun, or for room in the ring: the start of a short task wakes nobody
SHORT_SEC = 0.02  # after a task that took less than this, each worker's next task is sent ahead
STUCK_SEC = 0.05  # until tasks that were sent ahead are taken back when none ends
EX_FAILURE = 1  # Celery's exit status

# In a worker: the pipe to the program, and what is left to do before the first task.
begun: Connection
initialize: Callable[[], None] | None = None


def name_of(app: Any) -> str | None:
    """Returns where workers can import the application from, or None."""
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "celery").partition(".")[0] == "celery":  # it refers to the current application
            continue
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if value is app and name.isidentifier():
                return f"{'__mp_main__' if module.__name__ == '__main__' else module.__name__}:{name}"
    return None


def begin(app: Any, hostname: str) -> None:
    """Prepares a worker like Celery's own pool prepares a process that is not a fork of the program."""
    os.environ["FORKED_BY_MULTIPROCESSING"] = "1"
    process_initializer(app, hostname)
    del os.environ["FORKED_BY_MULTIPROCESSING"]


def enter(connection: Connection, name: str | None, app: Any, hostname: str, path: list[str]) -> None:
    """Loads the application, in a worker or its template. begin(), which may open connections, runs before the first task."""
    global begun, initialize  # pylint: disable=global-statement
    begun = connection
    sys.path[:0] = [directory for directory in path if directory not in sys.path]
    if name is not None:
        app = symbol_by_name(name)
    app.loader.init_worker()
    initialize = functools.partial(begin, app, hostname)


def tell(what: int, number: int, value: float) -> None:
    """Reports to the pool, in one write: a kill cannot leave half of a report."""
    os.write(begun.fileno(), WORD.pack(what, number, os.getpid(), value))


def perform(number: int, soft_timeout: float | None, target: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Runs in a worker."""
    global initialize  # pylint: disable=global-statement
    if initialize is not None:
        initialize()
        initialize = None

    def end_soon(*_: Any) -> None:
        tell(SOFT, number, soft_timeout or 0)
        raise SoftTimeLimitExceeded()

    tell(BEGUN, number, time.monotonic())
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
    __slots__ = "__weakref__", "callbacks", "timeout", "hold", "packed", "pid", "begun", "ended_by", "held"

    def __init__(self, callbacks: dict[str, Any], timeout: float | None, hold: Callable[[], None]) -> None:
        self.callbacks, self.timeout, self.hold = callbacks, timeout, hold
        self.packed = b""
        self.pid: int | None = None
        self.begun = 0.0
        self.ended_by: int | None = None  # signal of terminate()
        self.held = False  # it has waited in the pool

    def is_revoked(self) -> bool:
        """Whether it was revoked, or has expired, while it waited here. Then Celery has been told."""
        request = getattr(self.callbacks.get("accept_callback"), "__self__", None)
        return self.held and request is not None and bool(request.revoked())

    def call(self, name: str, *arguments: Any) -> None:
        callback = self.callbacks.get(name)
        if callback is not None:
            callback(*arguments)

    def terminate(self, number: int) -> None:
        self.ended_by = number
        if self.pid is not None:
            self.hold()
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def end(self, value: Any, error: BaseException | None) -> None:
        if error is None:
            self.call("callback", value)
        elif isinstance(error, TaskTimeout):
            self.call("timeout_callback", False, self.timeout)
        elif self.ended_by is not None and isinstance(error, WorkerDied):
            self.call("error_callback", info_of(Terminated(self.ended_by)))
        elif isinstance(error, WorkerDied):
            self.call("error_callback", info_of(WorkerLostError(str(error))))
        else:
            self.call("error_callback", info_of(error))


class Descriptors:
    """Looks like a poll object to Starts; the loop or the thread of the pool waits for its descriptors."""

    def __init__(self, changed: Callable[[int, bool], None]) -> None:
        self.changed = changed

    def register(self, fd: int, _: int) -> None:
        self.changed(fd, True)

    def unregister(self, fd: int) -> None:
        self.changed(fd, False)


class Pool(BasePool):  # type: ignore[misc]
    """A pool of Celery whose processes are supervised: one that dies, hangs or grows does not harm other tasks.

    Concurrency, time limits, revoke with terminate, maxtasksperchild, autoscale, acks_late and remote control work as with prefork.
    max_memory_per_child limits how much a process grows. A task whose process dies fails with WorkerLostError and the cause.

    Celery's event loop waits for the ends of tasks, so no other thread is woken. If the broker has no event loop, a thread
    of the pool waits."""
    uses_semaphore = True

    def on_start(self) -> None:
        receiving, sending = Pipe(duplex=False)
        os.set_blocking(receiving.fileno(), False)
        self._begun = receiving
        app, hostname = self.options["initargs"]
        name = name_of(app)
        memory = self.options.get("max_memory_per_child")
        self._place = Supervisor(
            self.limit, enter, (sending, name, None if name else app, hostname, list(sys.path)), template=True,
            max_jobs=self.options.get("maxtasksperchild") or 0, max_memory=f"{memory}K" if memory else "infinity")
        self._lock = threading.RLock()  # of everything below
        self._loop: Any = None
        self._fds: set[int] = set()
        self._n, self._prefix = 0, Ids().prefix + "-"
        self._tasks: dict[int, Task] = {}
        self._waiting: collections.deque[int] = collections.deque()
        self._sent: dict[int, Task] = {}
        self._short = True  # the last task took less than SHORT_SEC
        self._stuck_at = 0.0  # when to take back tasks that were sent ahead; 0: there are none
        self._looks = False  # the loop is to look after LOOK_SEC
        self._forgotten: set[int] = set()  # taken back, to be redelivered by the broker
        self._arrived: collections.deque[Result] = collections.deque()
        self._taking = self._broken = self._closing = False
        self._place.start()
        self._client, self._group = self._place.connect()
        self._starts = Starts(self._place.watch, Descriptors(self._follow))  # type: ignore[arg-type]
        self._follow(self._client.fd(), True)
        self._take()
        self._thread: threading.Thread | None = None
        if self.options.get("semaphore") is not None:
            self.options["semaphore"].grow(self.limit)  # for the tasks that are sent ahead
        if self.options.get("threads", True):
            self._bell = Bell()
            self._thread = threading.Thread(target=self._attend, name="troupe-celery")
            self._thread.start()

    def _follow(self, fd: int, wanted: bool) -> None:
        (self._fds.add if wanted else self._fds.discard)(fd)
        if self._loop is not None and wanted:
            self._loop.add_reader(fd, self._take)
        elif self._loop is not None:
            self._loop.remove_reader(fd)

    def register_with_event_loop(self, loop: Any) -> None:
        """From now on the loop calls all callbacks, as Celery's connections belong to its thread."""
        if self._thread is None:
            self._loop = loop
            for fd in self._fds:
                loop.add_reader(fd, self._take)
            self._looks = False
            self._take()

    def on_apply(self, target: Callable[..., Any], args: Any = (), kwargs: Any = None, soft_timeout: float | None = None,
                 timeout: float | None = None, **callbacks: Any) -> Task:
        task = Task(callbacks, timeout or self.options.get("timeout") or None, self._hold)
        soft_timeout = soft_timeout or self.options.get("soft_timeout") or None
        with self._lock:
            self._n = number = self._n + 1
            self._tasks[number] = task
            call: Any = perform, (number, soft_timeout, target, args, kwargs or {}), {}
            try:
                try:
                    task.packed = pickle.dumps(call, PROTOCOL)
                except (pickle.PicklingError, AttributeError, TypeError):
                    task.packed = dumps(call)
            except Exception as error:  # pylint: disable=broad-except
                self._end(number, None, error)
                return task
            self._waiting.append(number)
            if not self._taking:
                self._send()
            if self._thread is not None:
                self._bell.ring()
            task.held = number in self._waiting
        return task

    def _send(self) -> None:
        """Sends one waiting task to each worker. As long as tasks are short, sends each worker another one ahead, so that no
        worker waits for this process. Celery cannot revoke a task that was sent ahead, so long tasks are not."""
        n_sent = len(self._sent)
        while self._waiting and len(self._sent) < (2 * self.limit if self._short else self.limit) and not self._broken:
            number = self._waiting[0]
            task = self._tasks[number]
            if task.is_revoked():
                self._waiting.popleft()
                self._drop(number)
                continue
            try:
                self._client.submit(self._group, task.packed, number, id=self._prefix + str(number), max_retries=0,
                                    timeout=task.timeout, wait=None)
            except BlockingIOError:
                break
            except OSError as error:
                self._break(error)
                return
            self._waiting.popleft()
            self._sent[number] = task
        if len(self._sent) > n_sent:
            self._client.flush()
        if self._stuck_at == 0 and len(self._sent) > self.limit:
            self._stuck_at = time.monotonic() + STUCK_SEC
        if self._loop is not None and not self._looks and self._has_to_look():
            self._looks = True
            self._loop.call_later(LOOK_SEC, self._look)

    def _has_to_look(self) -> bool:
        return bool(self._waiting) or any(task.pid is None for task in self._sent.values())

    def _look(self) -> None:
        self._looks = False
        self._take()

    def _take_back(self, n: int) -> None:
        """Takes back at most n tasks that no worker has begun, as they may have to wait for long: the last first, so that
        none begins before an earlier one."""
        self._stuck_at, self._short = 0, False
        for number in [number for number, task in self._sent.items() if task.pid is None][::-1][:max(n, 0)]:
            with contextlib.suppress(OSError):  # then it stays sent
                self._client.withdraw(self._prefix + str(number))

    def _hold(self) -> None:
        """Called before a process is killed: otherwise a task that was sent ahead would begin, even if it was revoked since."""
        with self._lock:
            self._take_back(len(self._sent))

    def flush(self) -> None:
        """The connection to the broker is closed: drops the tasks that have not begun, as the broker delivers them again."""
        with self._lock:
            self._forgotten.update(number for number, task in self._sent.items() if task.pid is None)
            self._take_back(len(self._sent))
            while self._waiting:
                self._drop(self._waiting.popleft())

    def _take(self, *_: Any) -> None:
        """Handles what the descriptors report, until the next event makes one of them readable."""
        with self._lock:
            if self._taking or self._broken:
                return
            self._taking = True
            try:
                self._collect()
                self._read_begun()  # a task has begun before it ends
                while self._arrived:
                    self._settle(self._arrived.popleft())
                if reason := self._starts.look():
                    raise RuntimeError(f"a worker process ended before it was ready: {reason}")
                if 0 < self._stuck_at <= time.monotonic():
                    self._take_back(len(self._sent) - self.limit)
                self._send()
            except (OSError, RuntimeError) as error:
                self._break(error)
            finally:
                self._taking = False

    def _collect(self) -> None:
        more = True
        while more:
            self._client.collect(self._arrived.append, sys.maxsize, 0)
            more = self._client.process()

    def _read_begun(self) -> None:
        try:
            words = os.read(self._begun.fileno(), WORD.size * 2048)
        except BlockingIOError:
            return
        for what, number, pid, value in WORD.iter_unpack(words):
            task = self._tasks.get(number)
            if task is not None and what == BEGUN:
                task.pid, task.begun = pid, value
            if task is not None:
                self._call(task.call, *(("accept_callback", pid, value) if what == BEGUN else ("timeout_callback", True, value)))

    def _settle(self, result: Result) -> None:
        number = result.cookie
        task = self._sent.pop(number, None)
        if task is None:
            return
        if not ends.is_withdrawn(result):
            self._stuck_at, self._short = 0, time.monotonic() - task.begun < SHORT_SEC
            self._end(number, *ends.outcome(result, self._place.socket))
        elif number in self._forgotten:
            self._drop(number)
        else:
            task.held = True
            self._waiting.insert(bisect.bisect(self._waiting, number), number)  # they begin in their order
        self._forgotten.discard(number)

    def _end(self, number: int, value: Any, error: BaseException | None) -> None:
        task = self._tasks.get(number)
        if task is not None:
            self._call(task.end, value, error)
            self._drop(number)

    def _drop(self, number: int) -> None:
        del self._tasks[number]
        if self.options.get("semaphore") is not None:
            self.options["semaphore"].release()

    def _call(self, function: Callable[..., None], *arguments: Any) -> None:
        try:
            function(*arguments)
        except Exception:  # pylint: disable=broad-except
            LOGGER.exception("a callback of a task has failed")

    def _break(self, error: BaseException) -> None:
        """The supervisor has ended: so does Celery's worker, with an error."""
        LOGGER.critical("the pool cannot continue: %s", error)
        self._broken = True
        self._waiting.clear()
        self._sent.clear()
        for number in list(self._tasks):
            self._end(number, None, WorkerLostError(str(error)))
        state.should_stop = EX_FAILURE

    def _attend(self) -> None:
        """The thread of the pool."""
        while not (self._closing and not self._tasks) and not self._broken:
            self._await(self._bell)
            self._take()

    def _await(self, bell: Bell | None = None) -> None:
        poll = select.poll()
        with self._lock:
            timeout = LOOK_SEC * 1000 if self._has_to_look() else None
            for fd in [*self._fds, *([bell.ear.fileno()] if bell else [])]:
                poll.register(fd, select.POLLIN)
        poll.poll(timeout)
        if bell is not None:
            bell.heard()

    def terminate_job(self, pid: int, signal: int | None = None) -> None:  # pylint: disable=redefined-outer-name
        for task in list(self._tasks.values()):
            if task.pid == pid:
                task.terminate(signal or 15)

    def grow(self, n: int = 1) -> None:
        self._resize(self.limit + n)
        for _ in range(n):
            if self.options.get("semaphore") is not None:
                self.options["semaphore"].grow(2)

    def shrink(self, n: int = 1) -> None:
        """Workers end after their tasks."""
        n = min(n, self.limit - 1)
        self._resize(self.limit - n)
        for _ in range(n):
            if self.options.get("semaphore") is not None:
                self.options["semaphore"].shrink(2)

    def _resize(self, size: int) -> None:
        self.limit = size
        self._place.resize(size)
        self._take()

    def restart(self) -> None:
        loop = self._loop
        self.on_stop()
        self.on_start()
        if loop is not None:
            self.register_with_event_loop(loop)

    def on_stop(self) -> None:
        """Waits for the tasks' ends."""
        self._closing = True
        if self._thread is not None:
            self._bell.ring()
            self._thread.join()
            self._thread = None
        while self._tasks and not self._broken:
            self._await()
            self._take()
        self._close(kill=False)

    def on_terminate(self) -> None:
        with self._lock:
            self._broken = True
            for pid in self._place.workers():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._close(kill=True)

    def _close(self, kill: bool) -> None:
        if self._begun.closed:
            return
        for fd in list(self._fds):
            self._follow(fd, False)
        self._client.close()
        self._begun.close()
        self._place.close(kill)
        signals.worker_process_shutdown.send(sender=None, pid=None, exitcode=0)

    def _get_info(self) -> dict[str, Any]:
        return {"max-concurrency": self.limit, "processes": self._place.workers(),
                "max-tasks-per-child": self.options.get("maxtasksperchild") or "N/A",
                "timeouts": (self.options.get("soft_timeout") or 0, self.options.get("timeout") or 0)}

    @property
    def num_processes(self) -> int:
        return self.limit
