# SPDX-License-Identifier: MIT
"""A client whose calls wait."""
from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import secrets
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Unpack

from troupe import _troupe
from troupe._troupe import Result
from troupe.actor import Messages
from troupe.data import Buffer, Options, encode
from troupe.errors import checked, is_own, refused
from troupe.questions import Questions, Record, explained
from troupe.workflow import Batch, Creator


class Ids:
    """Unique ids of jobs: with these, a job can be cancelled before its sender gets an answer."""

    def __init__(self) -> None:
        self.prefix = secrets.token_hex(8)
        self.numbers = itertools.count(1)

    def next(self) -> str:
        return f"{self.prefix}-{next(self.numbers)}"


def find_group(client: _troupe.Client, path: str | None, name: str) -> int:
    try:
        return client.group(name)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.EOPNOTSUPP):
            raise
        missing = error.errno == errno.ENOENT
        raise (explained(error, path, "Supervisor.GetStatus", target=name) if missing else refused(error.errno, name)) from None


class Client(Messages, Creator, Questions[Iterator[Record], Record]):
    """
    A connection to the supervisor, for one thread at a time; a ClientPool has clients for several threads. Jobs take the
    options in troupe.Options. Calls raise OSError with the text that troupectl prints.
    """

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
        """Disconnects. Jobs continue."""
        self._client.close()

    def _group(self, name: str) -> int:
        if name not in self._groups:
            self._groups[name] = find_group(self._client, self._path, name)
        return self._groups[name]

    def is_connected(self) -> bool:
        """Whether calls can succeed: the client is open and belongs to this process, and its supervisor has not ended."""
        try:
            while self._client.process():
                self._receive(0)
        except (OSError, RuntimeError):
            return False
        return True

    def create(self, group: str, data: object = None, **options: Unpack[Options]) -> str:
        """Returns the id of a new job when it is accepted. An exception during the call cancels it. Options: troupe.Options."""
        given = options.copy()
        given["id"] = id = options.get("id") or self._ids.next()
        reference = self._group(group)
        try:
            return self._client.create(reference, encode(data), **given)
        except OSError as error:
            raise (refused(error.errno, group, self._client.refusal()) if is_own(error) else error) from None
        except BaseException:
            self._give_up(id, True)
            raise

    def do(self, group: str, data: object = None, **options: Unpack[Options]) -> Result:
        """
        Does a job. Raises JobError if it does not succeed. An exception during the call cancels it. Options: troupe.Options.
        """
        cookie, id = self._submit(group, encode(data), options)
        try:
            result = self._end(cookie)
        except BaseException:
            self._abandon(cookie, id, options)
            raise
        return checked(result, group)

    def _abandon(self, cookie: int, id: str, options: Options) -> None:
        """Cancels a job whose end is no longer awaited."""
        if self._ended.pop(cookie, None):
            return
        self._unwanted.add(cookie)
        self._give_up(id, bool(options.get("wait")))

    def _give_up(self, id: str, waits: bool) -> None:
        """Cancels a job without waiting for the answer, which would come after a wait for room."""
        try:
            if waits:
                self._send(lambda: self._client.abandon(id))
            else:
                self._client.cancel(id)
        except (OSError, RuntimeError):
            pass  # it has ended, or the connection is over

    def map(self, group: str, items: Iterable[object], *, window: int = 1000, **options: Unpack[Options]) -> Iterator[Result]:
        """
        Does a job for each item, up to `window` at a time, and yields their results in the same order. Raises JobError for
        the first job that does not succeed; then, and when the iterator is closed, cancels the jobs that have not ended.
        """
        if options.get("id") is not None:
            raise ValueError("map() chooses the ids of its jobs")
        source = iter(items)
        open_jobs: deque[tuple[int, str]] = deque()  # cookies and ids
        try:
            while True:
                for item in itertools.islice(source, max(1, window) - len(open_jobs)):
                    open_jobs.append(self._submit(group, encode(item), options))
                if not open_jobs:
                    return
                result = self._end(open_jobs[0][0])
                open_jobs.popleft()
                yield checked(result, group)
        finally:
            for cookie, id in open_jobs:
                self._abandon(cookie, id, options)

    def _submit(self, group: str, data: Buffer, options: Options) -> tuple[int, str]:
        reference = self._group(group)
        cookie, id = next(self._cookies), options.get("id") or self._ids.next()
        given = options.copy()
        given["id"] = id

        def submit() -> None:
            try:
                self._client.submit(reference, data, cookie, **given)
            except BlockingIOError:
                raise
            except OSError as error:
                raise refused(error.errno, group, self._client.refusal()) from None
        self._send(submit)
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
        result = self._ended.pop(cookie)
        if result.error == errno.ESRCH:
            raise explained(ProcessLookupError(errno.ESRCH, f"job {id}"), self._path, "Jobs.Get", id=id)
        return checked(result)

    def cancel(self, id: str) -> None:
        """Requests the cancellation of a job. ProcessLookupError: it has ended, or there is none."""
        try:
            self._client.cancel(id)
        except OSError as error:
            raise (explained(error, self._path, "Jobs.Cancel", id=id) if is_own(error) else error) from None

    @contextlib.contextmanager
    def batch(self, group: str, *, id: str | None = None, tags: str | None = None) -> Iterator[Batch]:
        """
        Opens a batch, which `with` closes. Jobs that are to follow wait `after` its id. An exception cancels the batch, but not
        its members.
        """
        options = {name: value for name, value in (("id", id), ("tags", tags)) if value is not None}
        batch = Batch(self, self.call("Jobs.OpenBatch", group=group, options=options)["id"])
        try:
            yield batch
        except BaseException:
            with contextlib.suppress(OSError):
                self.cancel(batch.id)
            raise
        self.call("Jobs.CloseBatch", id=batch.id)

    def _many(self, query: _troupe.Query) -> Iterator[Record]:
        return records(query)

    def _one(self, query: _troupe.Query) -> Record:
        return next(records(query))


def records(query: _troupe.Query) -> Iterator[Record]:
    while (text := query.next()) is not None:
        yield json.loads(text)


class ClientPool:
    """
    Lends clients to threads, as each client is for one thread at a time:

        pool = troupe.ClientPool()

        def work(word: str) -> bytes:
            with pool.client() as client:
                return client.do("digest", word).data

    Connects when a client is requested and none is idle. A client that has lost its connection is not lent again. `size`: how
    many clients may be lent at the same time; further threads wait. In a child of fork() the pool is empty.
    """

    def __init__(self, socket_path: str | None = None, *, size: int | None = None) -> None:
        self._path = socket_path
        self._places = threading.Semaphore(sys.maxsize if size is None else size)
        self._idle: list[Client] = []
        self._pid = os.getpid()

    @contextlib.contextmanager
    def client(self) -> Iterator[Client]:
        """Lends a client to this thread until the end of the `with` block."""
        with self._places:
            client = self._take()
            try:
                yield client
            finally:
                if client.is_connected():
                    self._idle.append(client)
                else:
                    client.close()

    def _take(self) -> Client:
        if self._pid != os.getpid():
            self._idle, self._pid = [], os.getpid()
        while self._idle:
            try:
                client = self._idle.pop()
            except IndexError:
                break  # another thread has taken it
            if client.is_connected():
                return client
            client.close()
        return Client(self._path)

    def close(self) -> None:
        """Disconnects idle clients."""
        while self._idle:
            self._idle.pop().close()

    def __enter__(self) -> ClientPool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
