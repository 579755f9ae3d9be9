# SPDX-License-Identifier: MIT
"""A client for asyncio, without a thread: the event loop waits on the client's descriptor."""
from __future__ import annotations

import asyncio
import collections
import contextlib
import errno
import itertools
import json
from collections.abc import AsyncIterator, Coroutine, Iterable
from types import TracebackType
from typing import Any, Unpack

from troupe import _troupe
from troupe._troupe import Result
from troupe.actor import Messages, Reply, Target
from troupe.client import Ids, find_group
from troupe.data import Buffer, Options, encode
from troupe.errors import checked, is_own, refused
from troupe.questions import Questions, Record, explained
from troupe.workflow import Batch, Creator


class Client(Messages, Creator, Questions[AsyncIterator[Record], Coroutine[Any, Any, Record]]):
    """
    A connection to the supervisor, for one event loop. Jobs take the options in troupe.Options. Connecting, and methods that
    are not coroutines, except tell(), block the loop for a round trip; and for longer while a job with `wait` waits for room.
    """

    def __init__(self, socket_path: str | None = None) -> None:
        self._path = socket_path
        self._loop = asyncio.get_running_loop()
        self._client = _troupe.Client(socket_path)
        self._fd = self._client.fd()
        self._groups: dict[str, int] = {}
        self._cookies = itertools.count(1)
        self._ids = Ids()
        self._open: dict[int, asyncio.Future[Result]] = {}
        self._asked: dict[_troupe.Future, asyncio.Future[Reply]] = {}
        self._unsent: collections.deque[str] = collections.deque()  # ids of jobs to cancel
        self._moved = asyncio.Event()  # a result has come, so there may be room in the ring
        self._timer: asyncio.TimerHandle | None = None
        self._planned = False
        self._loop.add_reader(self._fd, self._turn)
        self._plan()

    def _low(self) -> _troupe.Actor:
        self._plan()
        return self._client.actor()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Disconnects. Jobs continue; tasks that await one get ConnectionError. Idempotent."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                self._cancel_unsent()
            self._lose(ConnectionError("the client is closed"))
            self._client.close()

    def _lose(self, error: OSError) -> None:
        fd, self._fd = self._fd, -1
        if self._loop.is_closed():  # no task awaits anything any more
            return
        self._loop.remove_reader(fd)
        if self._timer:
            self._timer.cancel()
        for future in self._open.values():
            if not future.done():
                future.set_exception(error)
        for asked, reply in self._asked.items():
            asked.drop()
            if not reply.done():
                reply.set_exception(error)
        self._open.clear()
        self._moved.set()

    def _plan(self) -> None:
        """Makes the loop process once more, so that messages of several tasks are published together."""
        if not self._planned:
            self._planned = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._planned = False
        if self._fd < 0:
            return
        try:
            self._cancel_unsent()
            while self._process():
                while result := self._client.next(0):
                    self._end(result)
                self._cancel_unsent()
        except OSError as error:
            self._lose(error)
            return
        except BaseException:
            self._plan()
            raise
        if self._timer:
            self._timer.cancel()
        when = self._client.timeout()
        self._timer = self._loop.call_at(when, self._turn) if when is not None else None

    def _process(self) -> bool:
        """Passes exceptions of callbacks, such as that of on_silence(), to the loop's handler; the next turn continues."""
        try:
            return self._client.process()
        except Exception as error:  # pylint: disable=broad-except
            if isinstance(error, OSError) and is_own(error):
                raise
            self._loop.call_exception_handler({"message": "exception in a callback of a troupe client", "exception": error})
            self._plan()
            return False

    def _end(self, result: Result) -> None:
        self._moved.set()
        future = self._open.pop(result.cookie, None)
        if future and not future.done():
            future.set_result(result)

    def _group(self, name: str) -> int:
        if name not in self._groups:
            self._groups[name] = find_group(self._client, self._path, name)
            self._plan()
        return self._groups[name]

    def _future(self) -> tuple[int, asyncio.Future[Result]]:
        if self._fd < 0:
            raise ConnectionError("the client is closed, or has lost its connection")
        cookie = next(self._cookies)
        self._open[cookie] = self._loop.create_future()
        return cookie, self._open[cookie]

    async def _room(self) -> None:
        self._plan()
        self._moved.clear()
        try:
            await asyncio.wait_for(self._moved.wait(), 0.1)  # no result may be to come
        except asyncio.TimeoutError:
            pass

    async def do(self, group: str, data: object = None, **options: Unpack[Options]) -> Result:
        """
        Does a job. Raises JobError if it does not succeed. Cancelling the task cancels the job. Options: troupe.Options.
        """
        id = options.get("id") or self._ids.next()
        given = options.copy()
        given["id"] = id
        cookie, future = self._future()
        sent = False
        try:
            reference = self._group(group)
            while not sent:
                try:
                    self._client.submit(reference, encode(data), cookie, **given)
                    sent = True
                except BlockingIOError:
                    await self._room()
                except OSError as error:
                    raise refused(error.errno, group, self._client.refusal()) from None
            self._plan()
            return checked(await future, group)
        except asyncio.CancelledError:
            if sent and not (future.done() and not future.cancelled()):
                self._give_up(id, bool(options.get("wait")))
            raise
        finally:
            self._open.pop(cookie, None)

    def _give_up(self, id: str, waits: bool) -> None:
        """Cancels a job without waiting for the answer, which would come after a wait for room."""
        if waits:
            self._unsent.append(id)
            self._plan()
            return
        try:
            self.cancel(id)
        except OSError:
            pass  # it has ended

    def _cancel_unsent(self) -> None:
        try:
            while self._unsent:
                self._client.abandon(self._unsent[0])
                self._unsent.popleft()
        except BlockingIOError:
            pass  # until there is room

    async def map(self, group: str, items: Iterable[object], *, window: int = 1000, **options: Unpack[Options]) -> AsyncIterator[Result]:
        """
        Does a job for each item, up to `window` at a time, and yields their results in the same order. Raises JobError for
        the first job that does not succeed; then, and when the iterator is closed, cancels the jobs that have not ended.
        """
        if options.get("id") is not None:
            raise ValueError("map() chooses the ids of its jobs")
        source, tasks = iter(items), list[asyncio.Task[Result]]()
        try:
            while True:
                for item in itertools.islice(source, max(1, window) - len(tasks)):
                    tasks.append(asyncio.create_task(self.do(group, item, **options)))
                if not tasks:
                    return
                result = await tasks[0]
                tasks.pop(0)
                yield result
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def ask(  # type: ignore[override]
        self, to: Target, type: str, data: object = None, *, key: str | Buffer | None = None, timeout: float | None = None,
        reply_type: str | None = None
    ) -> Reply:
        """Sends a message and waits for its reply. Raises the handler's error as OSError. Cancelling ends the ask."""
        return await self._ended(
            self._low().ask(self.find(to), type, encode(data), key=key, timeout=timeout, reply_type=reply_type))

    async def monitor(self, who: Target) -> str:  # type: ignore[override]
        """Waits until that actor is permanently gone or has failed. Returns the cause. Cancelling ends the monitor."""
        return (await self._ended(self._low().monitor(self.find(who)))).data.decode()

    async def _ended(self, asked: _troupe.Future) -> Reply:
        future: asyncio.Future[Reply] = self._loop.create_future()

        def end(asked: _troupe.Future) -> None:
            if future.done():
                return
            try:
                future.set_result(Reply(*asked.result()))
            except Exception as error:  # pylint: disable=broad-except
                future.set_exception(error)
        self._asked[asked] = future
        asked.then(end)
        try:
            return await future
        finally:
            del self._asked[asked]
            asked.drop()

    async def wait(self, id: str) -> Result:
        """Waits for the end of any job. Raises ProcessLookupError if there is no such job."""
        cookie, future = self._future()
        try:
            while True:
                try:
                    self._client.wait(id, cookie)
                    break
                except BlockingIOError:
                    await self._room()
            self._plan()
            result = await future
        finally:
            self._open.pop(cookie, None)
        if result.error == errno.ESRCH:
            raise explained(ProcessLookupError(errno.ESRCH, f"job {id}"), self._path, "Jobs.Get", id=id)
        return checked(result)

    def create(self, group: str, data: object = None, **options: Unpack[Options]) -> str:
        """Returns the id of a new job when it is accepted. Options: troupe.Options."""
        if options.get("wait"):
            raise ValueError("create() must not wait for room: use do()")
        self._plan()
        reference = self._group(group)
        try:
            return self._client.create(reference, encode(data), **options)
        except OSError as error:
            raise (refused(error.errno, group, self._client.refusal()) if is_own(error) else error) from None

    def cancel(self, id: str) -> None:
        """Requests the cancellation of a job. ProcessLookupError: it has ended, or there is none."""
        self._plan()
        try:
            self._client.cancel(id)
        except OSError as error:
            raise (explained(error, self._path, "Jobs.Cancel", id=id) if is_own(error) else error) from None

    @contextlib.asynccontextmanager
    async def batch(self, group: str, *, id: str | None = None, tags: str | None = None) -> AsyncIterator[Batch]:
        """
        Opens a batch, which `async with` closes. Jobs that are to follow wait `after` its id. An exception cancels the batch,
        but not its members.
        """
        options = {name: value for name, value in (("id", id), ("tags", tags)) if value is not None}
        batch = Batch(self, (await self.call("Jobs.OpenBatch", group=group, options=options))["id"])
        try:
            yield batch
        except BaseException:
            with contextlib.suppress(OSError):
                self.cancel(batch.id)
            raise
        await self.call("Jobs.CloseBatch", id=batch.id)

    def _many(self, query: _troupe.Query) -> AsyncIterator[Record]:
        return records(query)

    async def _one(self, query: _troupe.Query) -> Record:
        return await anext(records(query))


async def readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()
    loop.add_reader(fd, lambda: None if future.done() else future.set_result(None))
    try:
        await future
    finally:
        loop.remove_reader(fd)


async def records(query: _troupe.Query) -> AsyncIterator[Record]:
    while True:
        try:
            text = query.next(0)
        except BlockingIOError:
            await readable(query.fd())
            continue
        if text is None:
            return
        yield json.loads(text)
