# SPDX-License-Identifier: MIT
"""Hands the tasks of one executor to a supervisor, and their ends to its futures.

Any thread may do this, one at a time: the one that submits, the one that waits for a result, and, when neither is there,
a background thread that sleeps until the supervisor has something to say. So a short task wakes no thread but its own.

To have the background thread told costs system calls on both sides. While threads wait for results anyway, tasks are sent
without that, and the background thread looks now and then whether somebody has been forgotten.
"""
import collections
import concurrent.futures
import contextlib
import errno
import itertools
import os
import select
import socket
import threading
import weakref
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import Any, Protocol

from troupe._troupe import Client, Result
from troupe.executor.tasks import TIRED, UNFIT, WorkerDied, loads

PATIENCE = 0.001  # seconds for which a thread that waits for a result does the work of the background thread
WINDOW_MAX = 1024  # tasks given to the supervisor, which the executor can no longer cancel
RETRY_SEC = 0.001
FULL_MS = 10  # until the next try when the ring is full
# A task that several workers in a row were given when they had done their last one counts as tried. It has not begun.
TIRED_REASON, TIRED_MAX = f"exited with status {TIRED}", 20
LOOK_MS, LOOKS = 1, 20  # between looks, and how many after the last thread that has waited


class Future(concurrent.futures.Future[Any]):
    """Waits like any other, and for a moment works for its executor itself."""

    def __init__(self, dispatcher: "Dispatcher") -> None:
        super().__init__()
        self.dispatcher = dispatcher

    def result(self, timeout: float | None = None) -> Any:
        if self._state != "FINISHED" and (timeout is None or timeout >= PATIENCE):  # type: ignore[attr-defined]
            self.dispatcher.attend(self)
        return super().result(timeout)

    def _invoke_callbacks(self) -> None:
        """Callbacks may want locks that the thread which happens to be here holds: the background thread runs them."""
        if self.cancelled():
            super()._invoke_callbacks()  # type: ignore[misc]
        elif self._done_callbacks:  # type: ignore[attr-defined]
            self.dispatcher.call_back(super()._invoke_callbacks)  # type: ignore[misc]


Task = tuple[int, Future, bytes, int]  # cookie, its end, pickle, how often workers were tired of it

dispatchers: "weakref.WeakSet[Dispatcher]" = weakref.WeakSet()


def broken_by(error: BaseException) -> BrokenProcessPool:
    broken = BrokenProcessPool(f"the executor cannot go on: {error}")
    broken.__cause__ = error
    return broken


class Place(Protocol):
    """Where the workers are."""

    def start(self) -> None: ...
    def connect(self) -> tuple[Client, int]: ...
    def close(self) -> None: ...
    def abandon(self) -> None:
        """In a child of fork(), instead of close()."""


class Dispatcher:
    interpreter_ends = False

    def __init__(self, place: Place, size: int, retries: int) -> None:
        self.place, self.retries = place, retries
        self.gate = threading.Lock()  # of `closing` and additions to `waiting`
        self.using = threading.Lock()  # of the client
        self.settling = threading.Lock()
        self.cookies = itertools.count(1)
        self.waiting: collections.deque[Task] = collections.deque()
        self.running: dict[int, Task] = {}
        self.arrived: collections.deque[Result] = collections.deque()
        self.callbacks: collections.deque[Any] = collections.deque()
        self.window = self.window_min = size + 1
        self.client: Client | None = None
        self.attended = self.closing = False
        self.bell: socket.socket | None = None
        self.looks = 0  # that are left; 0 = the background thread is told of every end
        self.broken: BaseException | None = None
        self.thread: threading.Thread | None = None

    # ---- any thread ----

    def __del__(self) -> None:
        if self.bell is not None:
            self.bell.close()
            self.ear.close()

    def hang_bell(self) -> None:
        """The background thread hears it with `ear`."""
        bell, self.ear = socket.socketpair()
        bell.setblocking(False)
        self.ear.setblocking(False)
        self.bell = bell

    def begin(self) -> None:
        """Before each task, with the gate locked. The first one starts everything, while __main__ is still complete."""
        if self.broken is not None:
            raise broken_by(self.broken)
        if self.closing:
            raise RuntimeError("cannot schedule new futures after " +
                               ("interpreter shutdown" if Dispatcher.interpreter_ends else "shutdown"))
        if self.thread is None:
            self.hang_bell()
            self.place.start()
            dispatchers.add(self)
            self.thread = threading.Thread(target=self.run, name="troupe-executor")
            try:
                self.thread.start()
            except (RuntimeError, MemoryError):
                self.thread = None
                self.place.close()
                raise

    def submit(self, future: Future, packed: bytes) -> None:
        with self.gate:
            self.begin()
            self.waiting.append((next(self.cookies), future, packed, 0))
        client = self.client
        if client is not None and self.flying() < self.window:
            if self.attended:
                client.wake()  # whoever waits for a result lets go
            self.turn(self.hand_over)

    def refuse(self, future: Future, error: BaseException) -> None:
        with self.gate:
            self.begin()
        future.set_exception(error)

    def close(self) -> None:
        """No task follows. Takes no lock: the garbage collector may call it anywhere."""
        self.closing = True
        self.wake()

    def cancel(self) -> None:
        """What has not been sent, nor would have been if workers had been there."""
        for _, future, _, _ in list(self.waiting)[max(self.window - self.flying(), 0):]:
            future.cancel()
        self.wake()

    def join(self) -> None:
        if self.thread is not None:
            self.thread.join()

    def abandon(self) -> None:
        """In a child of fork(). Nothing of the parent's is touched."""
        self.gate, self.using, self.settling = threading.Lock(), threading.Lock(), threading.Lock()
        self.client = self.thread = None
        self.__del__()  # the bell is the parent's
        self.hang_bell()
        self.broken = RuntimeError("it belongs to the process that this one was forked from")
        self.waiting.clear()
        self.running.clear()
        self.place.abandon()

    def flying(self) -> int:
        return len(self.running) - len(self.arrived)

    def wake(self) -> None:
        """The background thread. Not by the client: that tells a descriptor only between process() and next()."""
        if self.bell is not None:
            with contextlib.suppress(BlockingIOError):
                self.bell.send(b"\0")

    def attend(self, future: Future) -> None:
        """Waits a moment for the end of a task. Not when others wait to be sent, which takes longer than that."""
        came = True
        while came and not self.waiting and not future.done() and not self.using.locked():
            with self.using:
                try:
                    self.attended = True
                    came = self.attempt(self.take_one)
                finally:
                    self.attended = False
                if came:
                    asleep, self.looks = self.looks == 0, LOOKS
                    if asleep:
                        self.wake()  # the background thread, to look
            self.settle()

    def turn(self, use: Callable[[Client], bool]) -> None:
        with self.using:
            self.attempt(use)
        self.settle()

    def hand_over(self, client: Client) -> bool:
        if self.looks == 0:
            return self.exchange(client)
        self.send(client)
        client.flush()
        return True

    def attempt(self, use: Callable[[Client], bool]) -> bool:
        try:
            return self.client is not None and use(self.client)
        except OSError as error:
            self.fail(error)
            return False
        except BaseException:  # Ctrl-C: the background thread goes on
            self.wake()
            raise

    def take_one(self, client: Client) -> bool:
        before = len(self.arrived)
        # Without a Python instruction between, after which Ctrl-C could lose the result.
        self.arrived.extend(itertools.islice(iter(partial(client.next, PATIENCE), None), 1))
        came = len(self.arrived) > before
        if not came:
            self.exchange(client)
        return came

    def exchange(self, client: Client) -> bool:
        """Takes all ends, sends what fits, and has the background thread woken when more comes."""
        while True:
            before = len(self.arrived)
            self.arrived.extend(iter(partial(client.next, 0), None))
            self.adapt(len(self.arrived) - before)
            self.send(client)
            if not client.process():
                return True

    def adapt(self, taken: int) -> None:
        """So many tasks are sent ahead that workers need not wait for this program, and no more: they run when it wants
        to cancel them."""
        if taken > 0 and self.waiting:
            if self.flying() == 0:
                self.window = min(2 * self.window, WINDOW_MAX)
            elif taken < self.window // 8:
                self.window = max(self.window - 1, self.window_min)

    def send(self, client: Client) -> None:
        while self.waiting and self.flying() < self.window:
            cookie, future, packed, _ = self.waiting[0]
            if cookie not in self.running:
                if not (future.running() or future.set_running_or_notify_cancel()):
                    del self.waiting[0]
                    continue
                self.running[cookie] = self.waiting[0]
                try:
                    client.submit(self.group, packed, cookie, max_retries=self.retries, wait=None, backoff_min=RETRY_SEC)
                except BlockingIOError:
                    del self.running[cookie]
                    return
                except (OSError, ValueError, MemoryError) as error:
                    del self.running[cookie]
                    future.set_exception(error)
            del self.waiting[0]

    def settle(self) -> None:
        """One thread at a time; the next one goes on where Ctrl-C has stopped it."""
        try:
            while self.arrived and not self.settling.locked():
                with self.settling:
                    while self.arrived:
                        self.end(self.arrived[0])
                        del self.arrived[0]
        except BaseException:
            self.wake()
            raise

    def end(self, result: Result) -> None:
        task = self.running.get(result.cookie)
        if task is None:
            return
        _, future, packed, tired = task
        if result.end == "dead" and result.reason == TIRED_REASON and tired < TIRED_MAX:
            self.waiting.append((next(self.cookies), future, packed, tired + 1))
            self.running.pop(result.cookie, None)
            self.wake()
            return
        try:
            value, error = self.outcome(result)
        except BaseException as unfit:  # pylint: disable=broad-except
            if isinstance(unfit, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
                raise
            value, error = None, unfit  # its pickle
        if result.end == "rejected" and result.code == UNFIT and error is not None:
            self.fail(error)
        elif future.done():
            pass  # Ctrl-C came after this
        elif error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)
        self.running.pop(result.cookie, None)
        if (self.closing or self.broken is not None) and not self.running:
            self.wake()  # the background thread, which may wait for this alone

    @staticmethod
    def outcome(result: Result) -> tuple[Any, BaseException | None]:
        if result.error not in (0, errno.ECONNRESET):
            return None, OSError(result.error, result.reason or os.strerror(result.error))
        if result.error or result.end in ("dead", "cancelled"):
            return None, WorkerDied(result.reason, result.attempts)
        value = loads(result.data)
        return (None, value) if result.end == "rejected" else (value, None)

    def call_back(self, callback: Any) -> None:
        """Later, also in the background thread, which may hold locks here that a callback wants when it submits."""
        if self.thread is None or not self.thread.is_alive():
            callback()
        else:
            self.callbacks.append(callback)
            if self.thread is not threading.current_thread():
                self.wake()

    def fail(self, error: BaseException) -> None:
        """The end of all tasks."""
        with self.gate:
            self.broken = self.broken or error
        waiting, running = list(self.waiting), list(self.running.values())
        self.waiting.clear()
        self.running.clear()
        for _, future, _, _ in waiting + running:
            if not future.done() and (future.running() or future.set_running_or_notify_cancel()):
                future.set_exception(broken_by(error))
        self.wake()

    # ---- the background thread ----

    def run(self) -> None:
        try:
            client, self.group = self.place.connect()
            self.attend_all(client)
        except BaseException as error:  # pylint: disable=broad-except
            self.fail(error)
            self.call_all()
        finally:
            self.place.close()

    def attend_all(self, client: Client) -> None:
        poll = select.poll()
        poll.register(client.fd(), select.POLLIN)
        poll.register(self.ear, select.POLLIN)
        self.client = client
        try:
            self.turn(self.exchange)
            self.call_all()
            while not self.is_over():
                full = self.waiting and self.flying() < self.window
                told = bool(poll.poll(FULL_MS if full else LOOK_MS if self.looks > 0 else None))
                with contextlib.suppress(BlockingIOError):
                    self.ear.recv(4096)
                if told or not self.attended:
                    self.turn(partial(self.look, told))
                self.call_all()
        finally:
            with self.using:
                self.client = None
                client.close()

    def call_all(self) -> None:
        while self.callbacks:
            self.callbacks.popleft()()

    def look(self, told: bool, client: Client) -> bool:
        """The last look has the background thread told from then on. With the client locked, as whoever adds looks."""
        self.looks = max(self.looks - 1, 0)
        if told or self.looks == 0 or self.waiting or self.flying() > 0:
            return self.exchange(client)
        return True

    def is_over(self) -> bool:
        with self.gate:
            idle = not self.waiting and not self.running and not self.callbacks
            return idle and (self.closing or self.broken is not None)


def end_all() -> None:
    """At the end of the interpreter: what was submitted is done."""
    Dispatcher.interpreter_ends = True
    for dispatcher in list(dispatchers):
        dispatcher.close()
    for dispatcher in list(dispatchers):
        dispatcher.join()


def abandon_all() -> None:
    for dispatcher in list(dispatchers):
        dispatcher.abandon()
    dispatchers.clear()


threading._register_atexit(end_all)  # type: ignore[attr-defined]
os.register_at_fork(after_in_child=abandon_all)
