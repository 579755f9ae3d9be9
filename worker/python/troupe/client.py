# SPDX-License-Identifier: MIT
"""A client whose calls wait."""
from __future__ import annotations

import itertools
import json
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Unpack

from troupe import _troupe
from troupe._troupe import Result
from troupe.actor import Messages
from troupe.data import Buffer, Options, encode
from troupe.errors import checked

Record = dict[str, Any]


class Ids:
    """Ids of jobs that nobody else makes: so a job can be cancelled before its sender has heard of it."""

    def __init__(self) -> None:
        self.prefix = secrets.token_hex(8)
        self.numbers = itertools.count(1)

    def next(self) -> str:
        return f"{self.prefix}-{next(self.numbers)}"


class Client(Messages):
    """A connection to the supervisor, for one thread at a time."""

    def __init__(self, socket_path: str | None = None) -> None:
        self._path = socket_path
        self._client = _troupe.Client(socket_path)
        self._groups: dict[str, int] = {}
        self._cookies = itertools.count(1)
        self._ended: dict[int, Result] = {}  # by cookie
        self._unwanted: set[int] = set()  # cookies
        self._ids = Ids()

    def _low(self) -> _troupe.Actor:
        return self._client.actor()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Disconnects. Jobs go on."""
        self._client.close()

    def _group(self, name: str) -> int:
        if name not in self._groups:
            self._groups[name] = self._client.group(name)
        return self._groups[name]

    def create(self, group: str, data: object = None, **options: Unpack[Options]) -> str:
        """Returns the id of a new job when it is accepted. An exception meanwhile cancels it."""
        given = options.copy()
        given["id"] = id = options.get("id") or self._ids.next()
        try:
            return self._client.create(self._group(group), encode(data), **given)
        except OSError:
            raise
        except BaseException:
            self._give_up(id, True)
            raise

    def do(self, group: str, data: object = None, **options: Unpack[Options]) -> Result:
        """Does a job. Raises JobError if it does not succeed. An exception meanwhile cancels it."""
        cookie, id = self._submit(self._group(group), encode(data), options)
        try:
            result = self._end(cookie)
        except BaseException:
            self._abandon(cookie, id, options)
            raise
        return checked(result)

    def _abandon(self, cookie: int, id: str, options: Options) -> None:
        """Cancels a job whose end nobody wants to know any more."""
        if self._ended.pop(cookie, None):
            return
        self._unwanted.add(cookie)
        self._give_up(id, bool(options.get("wait")))

    def _give_up(self, id: str, waits: bool) -> None:
        """Cancels a job. If that may wait for room, the answer would come after that."""
        try:
            if waits:
                self._send(lambda: self._client.abandon(id))
            else:
                self._client.cancel(id)
        except (OSError, RuntimeError):
            pass  # it has ended, or the connection is over

    def map(self, group: str, items: Iterable[object], *, window: int = 1000, **options: Unpack[Options]) -> Iterator[Result]:
        """
        Does a job for each item, up to `window` at a time, and yields their results in the same order. Raises JobError
        at the first that does not succeed; then, and when the iterator is closed, cancels those that have not ended.
        """
        if options.get("id") is not None:
            raise ValueError("each job of map() has an id of its own")
        reference, source = self._group(group), iter(items)
        open_jobs: deque[tuple[int, str]] = deque()  # cookies and ids
        try:
            while True:
                for item in itertools.islice(source, max(1, window) - len(open_jobs)):
                    open_jobs.append(self._submit(reference, encode(item), options))
                if not open_jobs:
                    return
                result = self._end(open_jobs[0][0])
                open_jobs.popleft()
                yield checked(result)
        finally:
            for cookie, id in open_jobs:
                self._abandon(cookie, id, options)

    def _submit(self, group: int, data: Buffer, options: Options) -> tuple[int, str]:
        cookie, id = next(self._cookies), options.get("id") or self._ids.next()
        given = options.copy()
        given["id"] = id
        self._send(lambda: self._client.submit(group, data, cookie, **given))
        return cookie, id

    def _send(self, request: Callable[[], None]) -> None:
        """Takes results while there is no room in the ring."""
        while True:
            try:
                return request()
            except BlockingIOError:
                self._receive(0.1)

    def _receive(self, timeout: float | None) -> None:
        result = self._client.next(timeout)
        if result and result.cookie in self._unwanted:
            self._unwanted.remove(result.cookie)
        elif result:
            self._ended[result.cookie] = result

    def _end(self, cookie: int) -> Result:
        while cookie not in self._ended:
            self._receive(None)
        return self._ended.pop(cookie)

    def wait(self, id: str, timeout: float | None = None) -> Result:
        """Waits for the end of any job. Raises TimeoutError, or ProcessLookupError if there is no such job."""
        cookie = next(self._cookies)
        deadline = None if timeout is None else time.monotonic() + timeout
        self._send(lambda: self._client.wait(id, cookie))
        try:
            while cookie not in self._ended:
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                self._receive(left)
                if left == 0.0 and cookie not in self._ended:
                    raise TimeoutError(f"job {id} has not ended")
        except BaseException:
            if not self._ended.pop(cookie, None):
                self._unwanted.add(cookie)
            raise
        return checked(self._ended.pop(cookie))

    def cancel(self, id: str) -> None:
        """Requests the cancellation of a job. ProcessLookupError: it has ended, or there is none."""
        self._client.cancel(id)

    # What the supervisor knows comes by a connection of its own.

    def job(self, id: str) -> Record:
        """A job with its state: a record of type Job in troupe-varlink(7)."""
        query = _troupe.Query(self._path)
        query.job(id)
        return next(records(query))

    def jobs(self, group: str | None = None, *, ended: bool = False) -> Iterator[Record]:
        """Live jobs of a group, a cell, or all; also those that have ended and whose results are kept."""
        query = _troupe.Query(self._path)
        query.jobs(group, ended)
        return records(query)

    def dead_letters(self, recipient: str | None = None) -> Iterator[Record]:
        """Jobs and messages that were not handled, the newest first."""
        query = _troupe.Query(self._path)
        query.dead_letters(recipient)
        return records(query)

    def deaths(self, target: str | None = None, *, job: str | None = None) -> Iterator[Record]:
        """How workers of a group, a cell, or all died, the newest first; with `job` only those that had it in hand."""
        query = _troupe.Query(self._path)
        query.deaths(target, job)
        return records(query)

    def watch(self, target: str | None = None, *, jobs: bool = False) -> Iterator[Record]:
        """Events of a group, a cell, a worker, or all as they happen; also those of every job."""
        query = _troupe.Query(self._path)
        query.events(target, jobs)
        return records(query)


def records(query: _troupe.Query) -> Iterator[Record]:
    while (text := query.next()) is not None:
        yield json.loads(text)
