# SPDX-License-Identifier: MIT
"""Hands the tasks of one executor to a supervisor, and their ends to its futures.

Any thread may do this, one at a time: a thread that submits, a thread that waits for a result, or, if there is neither, a
background thread that sleeps until the supervisor sends something. So a short task wakes no thread except its own.

The background thread needs Python's lock for all of its work, and then the other threads do not have it. So while threads
collect results anyway, the supervisor does not wake the background thread, which only checks from time to time, without the
lock, whether they still do.
"""
import collections
import contextlib
import os
import select
import signal
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Protocol

from troupe._troupe import Client, Query, Result
from troupe.executor import ends
from troupe.executor.bell import Bell
from troupe.executor.future import PATIENCE, Future
from troupe.executor.starts import Starts
from troupe.executor.traffic import Task, Traffic

FULL_MS = 10  # until the next try when the ring is full
LOOK_MS = 1  # between looks; threads that come for results more often are left alone
CROWD = 32  # tasks that wait, before a thread that adds more sees whether others have ended

dispatchers: "weakref.WeakSet[Dispatcher]" = weakref.WeakSet()


class Place(Protocol):
    """The supervisor and group of the workers."""
    socket: str | None  # of the supervisor, once it is connected
    name: str  # of the group

    def start(self) -> None: ...
    def connect(self) -> tuple[Client, int]: ...
    def watch(self) -> Query | None:
        """Events of the workers; None if they are not this executor's own."""
    def workers(self) -> list[int]:
        """The pids of this executor's own workers."""
    def close(self, kill: bool = False) -> None: ...
    def abandon(self) -> None:
        """Call it in a child of fork(), instead of close()."""


class Dispatcher:
    interpreter_ends = False

    def __init__(self, place: Place, size: int, retries: int) -> None:
        self.place, self.traffic = place, Traffic(size, retries)
        self.gate = threading.RLock()  # of `closing` and additions to the tasks that wait
        self.using = threading.RLock()  # of the client
        self.settling = threading.Lock()
        self.callbacks: collections.deque[Any] = collections.deque()
        self.client: Client | None = None
        self.attended = False  # by a thread that waits with the client locked
        self.visited = 0.0  # when a thread last came for results
        self.looking = False  # the background thread looks whether threads come, and sees to a client that is not armed
        self.closing = False
        self.killing = False
        self.taking_back = 0  # threads
        self.bell: Bell | None = None
        self.broken: BaseException | None = None
        self.thread: threading.Thread | None = None
        self.over = False  # the background thread calls no callback that comes now

    # ---- any thread ----

    def begin(self) -> None:
        """Call it before each task, with the gate locked. The first call starts everything, while __main__ is still complete."""
        if self.broken is not None:
            raise ends.broken_by(self.broken)
        if self.closing:
            raise RuntimeError("cannot schedule new futures after " +
                               ("interpreter shutdown" if Dispatcher.interpreter_ends else "shutdown"))
        if self.thread is None:
            self.bell = Bell()
            self.place.start()
            dispatchers.add(self)
            self.thread = threading.Thread(target=self.run, args=(self.bell,), name="troupe-executor")
            try:
                self.thread.start()
            except (RuntimeError, MemoryError):
                self.thread = None
                self.place.close()
                raise

    def submit(self, future: Future, packed: bytes) -> None:
        traffic = self.traffic
        with self.gate:
            if self.thread is None or self.closing or self.broken is not None:
                self.begin()
            traffic.add(future, packed)
        if self.client is None:
            return
        if traffic.flying() >= traffic.window:
            if len(traffic.waiting) % CROWD == 0 and not self.attended:
                self.turn(self.refill)
        elif self.attended:
            self.pass_on()
        else:
            self.turn(self.hand_over)

    def pass_on(self) -> None:
        """The attending thread sends waiting tasks. If it is just about to stop, it checks again before it does."""
        client = self.client
        if client is not None:
            with contextlib.suppress(RuntimeError):  # just closed: the executor has ended, and with it the task
                client.wake()

    def refuse(self, future: Future, error: BaseException) -> None:
        with self.gate:
            self.begin()
        future.set_exception(error)

    def close(self) -> None:
        """No task follows. Takes no lock: the garbage collector may call it anywhere."""
        self.closing = True
        self.ring()

    def cancel(self) -> None:
        """Cancels all tasks except those that workers have, or would have if there were workers."""
        traffic = self.traffic
        for _, future, _, _ in list(traffic.waiting)[max(traffic.window_min - traffic.flying(), 0):]:
            future.cancel()
        self.take_back([future for _, future, _, _ in list(traffic.running.values())[traffic.window_min:]])
        self.ring()

    def take_back(self, futures: list[Future]) -> None:
        """Withdraws the tasks that no worker has. Does nothing if this thread already uses the client (in a signal handler,
        or during garbage collection): the tasks then continue."""
        def use(client: Client) -> bool:
            self.traffic.take_back(client, self.place.name, futures)
            return self.exchange(client)

        if not futures or self.client is None or self.using._is_owned():  # type: ignore[attr-defined]
            return
        self.taking_back += 1
        try:
            self.turn(use)
        finally:
            self.taking_back -= 1

    def end_workers(self, number: signal.Signals) -> None:
        """Sends the signal to the workers. Their tasks fail, and all others are cancelled."""
        self.close()
        self.killing = number == signal.SIGKILL
        for _, future, _, _ in list(self.traffic.waiting):
            future.cancel()
        if self.client is not None:
            self.take_back([future for _, future, _, _ in list(self.traffic.running.values())])
            with contextlib.suppress(OSError):  # the supervisor has ended, or a worker
                for pid in self.place.workers():
                    os.kill(pid, number)
        self.fail(RuntimeError(f"its workers were ended by {number.name}"))

    def join(self) -> None:
        if self.thread is not None:
            self.thread.join()

    def abandon(self) -> None:
        """Call it in a child of fork(). It does not touch the parent's objects."""
        self.gate, self.using, self.settling = threading.RLock(), threading.RLock(), threading.Lock()
        self.client = self.thread = None
        if self.bell is not None:
            self.bell.close()  # the copy of the parent's
        self.bell = Bell()
        self.broken = RuntimeError("it belongs to the process that this one was forked from")
        self.traffic.waiting.clear()
        self.traffic.running.clear()
        self.place.abandon()

    def ring(self) -> None:
        """Wakes the background thread, not through the client, whose descriptor works only between process() and next()."""
        if self.bell is not None:
            self.bell.ring()

    def attend(self, future: Future, deadline: float | None) -> None:
        """Waits for the end of a task, as long as others end."""
        try:
            self.attend_while(future, deadline)
        except BaseException:  # Ctrl-C: the background thread continues
            self.ring()
            raise

    def attend_while(self, future: Future, deadline: float | None) -> None:
        came = True
        while (came and not future.is_over() and not self.attended and not self.taking_back
               and (deadline is None or time.monotonic() < deadline)):
            with self.using:
                try:
                    self.attended = True
                    came = self.attempt(self.wait_for_ends)
                finally:
                    self.attended = False
            self.settle()
        if self.traffic.may_send() and not self.attended:  # added by a thread that has seen this one attend
            self.turn(self.hand_over)

    def wait_for_ends(self, client: Client) -> bool:
        traffic = self.traffic
        if traffic.may_send():
            traffic.send(client)
        if traffic.flying() == 0:  # another thread is about to settle
            return False
        came = traffic.receive(client, PATIENCE)
        if not came:
            self.looking = False
            traffic.arm(client)
        elif not self.looking and (traffic.flying() > 0 or self.is_visited_often()):
            self.looking = True
            self.ring()
        return came

    def is_visited_often(self) -> bool:
        before, self.visited = self.visited, time.monotonic()
        return self.visited - before < LOOK_MS / 1000

    def turn(self, use: Callable[[Client], bool]) -> None:
        try:
            with self.using:
                self.attempt(use)
            self.settle()
        except BaseException:  # as above
            self.ring()
            raise

    def hand_over(self, client: Client) -> bool:
        """Sends tasks, and makes sure that a thread notices their ends."""
        self.traffic.send(client)
        if not self.looking and not self.traffic.armed:
            self.traffic.arm(client)
        return True

    def refill(self, client: Client) -> bool:
        return self.traffic.receive(client, 0) and self.hand_over(client)

    def attempt(self, use: Callable[[Client], bool]) -> bool:
        try:
            return self.client is not None and use(self.client)
        except OSError as error:
            self.fail(error)
            return False

    def settle(self) -> None:
        """For one thread at a time; the next one continues where Ctrl-C has stopped the previous one."""
        arrived = self.traffic.arrived
        while arrived and not self.settling.locked():
            with self.settling:
                while arrived:
                    self.end(arrived[0])
                    del arrived[0]

    def end(self, result: Result) -> None:
        running = self.traffic.running
        task = running.get(result.cookie)
        if task is None:
            return
        _, future, _, tired = task
        if ends.is_tired(result, tired) and self.begin_again(task):
            return
        if ends.is_withdrawn(result):
            future.withdraw()
        else:
            value, error = ends.outcome(result, self.place.socket)
            if error is not None and ends.is_unfit(result):
                self.fail(error)
            else:
                future.end(value, error)
        running.pop(result.cookie, None)
        if (self.closing or self.broken is not None) and not running:
            self.ring()  # the background thread, which may wait for this alone

    def begin_again(self, task: Task) -> bool:
        with self.gate:
            if self.broken is not None:
                return False
            self.traffic.add_again(task)
        self.ring()
        return True

    def call_back(self, callback: Callable[[], object]) -> None:
        """Callbacks run later, even in the background thread, which may hold locks here that a submitting callback needs."""
        self.callbacks.append(callback)
        if self.thread is None or self.over:
            self.call_all()
        elif self.thread is not threading.current_thread():
            self.ring()

    def fail(self, error: BaseException) -> None:
        """The end of all tasks."""
        with self.gate:
            self.broken = self.broken or error
        traffic = self.traffic
        tasks = list(traffic.waiting)  # first: nothing is added now, but another thread may move some to those that run
        tasks += traffic.running.values()
        for _, future, _, _ in tasks:
            if future.take():
                future.end(None, ends.broken_by(error))
        traffic.waiting.clear()
        traffic.running.clear()
        self.ring()

    # ---- the background thread ----

    def run(self, bell: Bell) -> None:
        try:
            client, self.traffic.group = self.place.connect()
            self.attend_all(client, bell)
        except BaseException as error:  # pylint: disable=broad-except
            self.fail(error)
        finally:
            self.end_thread()

    def end_thread(self) -> None:
        try:
            self.over = True
            self.call_all()
        finally:
            self.place.close(self.killing)

    def attend_all(self, client: Client, bell: Bell) -> None:
        both = select.poll()
        both.register(client.fd(), select.POLLIN)
        both.register(bell.ear, select.POLLIN)
        starts = Starts(self.place.watch, both)
        self.client = client
        try:
            self.turn(self.exchange)
            self.call_all()
            while not self.is_over():
                idle = self.looking and client.await_idle(bell.ear.fileno(), LOOK_MS)
                if not idle and not self.looking:
                    both.poll(self.pause())
                bell.heard()
                if self.attended and self.is_used():
                    self.looking = True
                elif idle or not self.looking:
                    self.turn(self.exchange)
                if reason := starts.look():
                    raise RuntimeError(f"a worker process ended before it was ready: {reason}")
                self.call_all()
        finally:
            with self.using:
                self.client = None
                client.close()

    def pause(self) -> int | None:
        """Milliseconds until the next try, unless the supervisor sends something before."""
        return FULL_MS if self.traffic.may_send() else None

    def is_used(self) -> bool:
        """Whether another thread uses the client."""
        free = self.using.acquire(blocking=False)
        if free:
            self.using.release()
        return not free

    def exchange(self, client: Client) -> bool:
        """Takes all ends, sends as many tasks as fit, and arms the descriptor for more."""
        self.looking = False
        self.traffic.receive(client, 0)
        self.traffic.arm(client)
        return True

    def call_all(self) -> None:
        with contextlib.suppress(IndexError):  # which no callback raises: the future catches it
            while True:
                self.callbacks.popleft()()

    def is_over(self) -> bool:
        with self.gate:
            idle = not self.traffic.waiting and not self.traffic.running and not self.callbacks
            return idle and (self.closing or self.broken is not None)


def end_all() -> None:
    """Called at the end of the interpreter: submitted tasks are finished."""
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
