# SPDX-License-Identifier: MIT
"""Sends the tasks of an executor to the supervisor, and receives their ends."""
import collections
import itertools

from collections.abc import Iterable

from troupe._troupe import Client, Result
from troupe.client import Ids
from troupe.executor.future import Future

WINDOW_MAX = 1024  # tasks given to the supervisor
RETRY_SEC = 0.001

Task = tuple[int, Future, bytes, int]  # cookie, its end, pickle, how often workers were tired of it


class Traffic:
    """For one thread at a time, but any thread may add tasks and read attributes."""

    def __init__(self, size: int, retries: int) -> None:
        self.retries = retries
        self.cookies = itertools.count(1)
        self.prefix = Ids().prefix + "-"  # of the ids of jobs, before the cookie
        self.group = 0
        self.waiting: collections.deque[Task] = collections.deque()
        self.running: dict[int, Task] = {}
        self.arrived: collections.deque[Result] = collections.deque()  # ends of running tasks
        self.window = self.window_min = size + 1
        self.armed = False  # the supervisor tells the client's descriptor of the next end

    def add(self, future: Future, packed: bytes) -> None:
        self.waiting.append((next(self.cookies), future, packed, 0))

    def add_again(self, task: Task) -> None:
        """Sends a running task again that a worker refused because of max_tasks_per_child."""
        cookie, future, packed, tired = task
        renewed = next(self.cookies), future, packed, tired + 1
        del self.running[cookie]  # Python looks for no signal between this and the next: Ctrl-C finds the task in one place
        self.waiting.append(renewed)

    def flying(self) -> int:
        return len(self.running) - len(self.arrived)

    def may_send(self) -> bool:
        return len(self.waiting) > 0 and self.flying() < self.window

    def receive(self, client: Client, timeout: float) -> bool:
        """Waits for an end, takes all that have arrived, then sends as many tasks as fit. Returns whether it did anything."""
        if timeout > 0:
            self.armed = False
        taken = client.collect(self.arrived.append, max(self.flying(), 1), timeout)
        if taken > 0:
            self.armed = False
            self.adapt(taken)
        if not self.may_send():
            return taken > 0
        self.send(client)
        return True

    def adapt(self, taken: int) -> None:
        """Adapts how many tasks are sent ahead: enough that workers need not wait for this program, but no more, as taking
        them back costs a round trip."""
        if self.waiting:
            if self.flying() == 0:
                self.window = min(2 * self.window, WINDOW_MAX)
            elif taken < self.window // 8:
                self.window = max(self.window - 1, self.window_min)

    def arm(self, client: Client) -> None:
        """Arms the client's descriptor for the next end. Takes those that have arrived."""
        while client.process():
            self.receive(client, 0)
        self.armed = True

    def take_back(self, client: Client, group: str, futures: Iterable[Future]) -> None:
        """Withdraws the tasks that no worker has. Their ends have arrived when this returns."""
        wanted = set(map(id, futures))
        for cookie, future, _, _ in list(self.running.values()):
            if id(future) in wanted:
                self.withdraw(client, self.prefix + str(cookie))
        client.group(group)  # the answer comes after those ends
        self.receive(client, 0)

    def withdraw(self, client: Client, job: str) -> None:
        while True:
            try:
                return client.withdraw(job)
            except BlockingIOError:
                client.collect(self.arrived.append, len(self.running), RETRY_SEC)

    def send(self, client: Client) -> None:
        """Sends as many tasks as fit."""
        try:
            self.send_each(client)
        except IndexError:
            pass  # another thread has given up all tasks
        client.flush()

    def send_each(self, client: Client) -> None:
        waiting, running = self.waiting, self.running
        while waiting and len(running) - len(self.arrived) < self.window:
            task = waiting[0]
            cookie, future, packed, _ = task
            if cookie not in running and future.take():
                running[cookie] = task
                try:
                    client.submit(self.group, packed, cookie, id=self.prefix + str(cookie), max_retries=self.retries,
                                  timeout=future.timeout, wait=None, backoff_min=RETRY_SEC)
                except BlockingIOError:
                    del running[cookie]
                    return
                except (OSError, ValueError, MemoryError) as error:
                    del running[cookie]
                    future.end(None, error)
            del waiting[0]
