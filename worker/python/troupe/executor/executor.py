# SPDX-License-Identifier: MIT
"""troupe.Executor: a ProcessPoolExecutor whose workers are supervised by trouped."""
import concurrent.futures
import functools
import itertools
import multiprocessing
import os
import signal
import weakref
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.context import BaseContext
from typing import Any, ParamSpec, TypeVar

from troupe._troupe import Client
from troupe.client import find_group
from troupe.executor.dispatcher import Dispatcher, Place
from troupe.executor.future import Future
from troupe.executor.private import Supervisor
from troupe.executor.program import pack_program
from troupe.executor.tasks import dumps, pack_call

P = ParamSpec("P")
T = TypeVar("T")


def apply_chunk(function: Callable[..., T], chunk: list[tuple[Any, ...]]) -> list[T]:
    return [function(*arguments) for arguments in chunk]


def chunks(arguments: Iterator[tuple[Any, ...]], size: int) -> Iterator[list[tuple[Any, ...]]]:
    while chunk := list(itertools.islice(arguments, size)):
        yield chunk


def flatten(results: Iterator[list[T]]) -> Iterator[T]:
    """Keeps no reference to yielded results."""
    for chunk in results:
        chunk.reverse()
        while chunk:
            yield chunk.pop()


def check_timeout(timeout: float | None) -> None:
    if timeout is not None and not timeout > 0:
        raise ValueError("a time-out must be greater than 0")


class Group:
    """A group of a trouped that runs independently of executors."""

    def __init__(self, socket: str | None, name: str) -> None:
        self.socket, self.name = socket, name

    def connect(self) -> tuple[Client, int]:
        client = Client(self.socket)
        return client, find_group(client, self.socket, self.name)

    def watch(self) -> None:
        """The workers are not this program's: if one dies before it is ready, its task goes to another one."""

    def workers(self) -> list[int]:
        return []

    def start(self) -> None:
        pass

    abandon = start

    def close(self, kill: bool = False) -> None:
        pass


class Executor(concurrent.futures.Executor):
    """Like concurrent.futures.ProcessPoolExecutor, but the death of a process fails only its task: the task's future raises
    WorkerDied, or the task is tried again up to `retries` times. All other tasks continue.

    Without `group`, the executor starts a supervisor of its own, which ends with the program. With it, tasks go to that group
    of a running trouped (`socket`: its socket, by default $TROUPE_SOCKET or /run/troupe/troupe.sock), whose command is
    `python3 -m troupe.executor.worker`; the group says how many workers there are, and `max_tasks_per_child` is its MaxJobs=.

    With `template`, the initializer runs once in a template beside each worker, from which the workers that follow are forked:
    a new process after a death, or for each task with max_tasks_per_child=1, then costs milliseconds.

    Workers are fresh interpreters, so `mp_context` is one of the start methods "spawn" and "forkserver".

    `timeout` is the time limit of each task, in seconds from when a worker begins it. After that the worker's process is ended,
    and the future raises TaskTimeout, which is a WorkerDied and a TimeoutError. submit_within() sets it for a single task.

    If the initializer or the main module ends the process, the executor breaks: all futures raise BrokenProcessPool.
    """

    def __init__(self, max_workers: int | None = None, mp_context: BaseContext | None = None,
                 initializer: Callable[..., object] | None = None, initargs: tuple[Any, ...] = (), *,
                 max_tasks_per_child: int | None = None, retries: int = 0, timeout: float | None = None,
                 group: str | None = None, socket: str | None = None, template: bool = False) -> None:
        if max_workers is not None and max_workers <= 0:
            raise ValueError("max_workers must be greater than 0")
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        if max_tasks_per_child is not None and not isinstance(max_tasks_per_child, int):
            raise TypeError("max_tasks_per_child must be an integer")
        if max_tasks_per_child is not None and max_tasks_per_child <= 0:
            raise ValueError("max_tasks_per_child must be >= 1")
        if retries < 0:
            raise ValueError("retries must be >= 0")
        check_timeout(timeout)
        if mp_context is not None and mp_context.get_start_method() == "fork":
            raise ValueError('workers are fresh interpreters, never copies of this process: use the start method "spawn"')
        if socket is not None and group is None:
            raise ValueError("a socket needs the group that does the tasks there")
        if group is not None and max_tasks_per_child is not None:
            raise ValueError("set MaxJobs= of the group instead of max_tasks_per_child")
        if group is not None and template:
            raise ValueError("set Template= of the group instead of template")
        self._mp_context = mp_context or multiprocessing.get_context("spawn")
        self._max_workers = max_workers or len(os.sched_getaffinity(0))
        self._timeout = timeout
        self._program = b""
        if group is None:
            max_tasks = max_tasks_per_child or 0
            place: Place = Supervisor(self._max_workers, initializer, initargs, max_tasks=max_tasks,
                                      max_jobs=int(max_tasks == 1), template=template)
        else:
            place = Group(socket, group)
            self._program = pack_program(initializer, initargs)
        self._dispatcher = Dispatcher(place, self._max_workers, retries)
        weakref.finalize(self, self._dispatcher.close).atexit = False

    @property
    def _broken(self) -> BaseException | None:
        return self._dispatcher.broken

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "concurrent.futures.Future[T]":
        return self._submit(self._timeout, fn, args, kwargs)

    def submit_within(self, timeout: float | None, fn: Callable[P, T], /, *args: P.args,
                      **kwargs: P.kwargs) -> "concurrent.futures.Future[T]":
        """Like submit(), but with a time limit for this task only. None: no limit."""
        check_timeout(timeout)
        return self._submit(timeout, fn, args, kwargs)

    def _submit(self, timeout: float | None, *call: Any) -> Future:
        dispatcher = self._dispatcher
        future = Future(dispatcher, timeout)
        try:
            packed = pack_call(call)
            if self._program:
                packed = dumps((self._program, packed))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # pylint: disable=broad-except  # also sys.exit()
            dispatcher.refuse(future, error)
        else:
            dispatcher.submit(future, packed)
        return future

    def map(self, fn: Callable[..., T], *iterables: Iterable[Any], timeout: float | None = None,
            chunksize: int = 1) -> Iterator[T]:
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        if chunksize == 1:
            return super().map(fn, *iterables, timeout=timeout)
        parts = chunks(zip(*iterables), chunksize)
        return flatten(super().map(functools.partial(apply_chunk, fn), parts, timeout=timeout))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with self._dispatcher.gate:
            self._dispatcher.close()
        if cancel_futures:
            self._dispatcher.cancel()
        if wait:
            self._dispatcher.join()

    def terminate_workers(self) -> None:
        """Ends the workers with SIGTERM and shuts down without waiting: their tasks fail with BrokenProcessPool, and all
        others are cancelled. Like Python 3.14's."""
        self._end_workers(signal.SIGTERM)

    def kill_workers(self) -> None:
        """Like terminate_workers(), but with SIGKILL."""
        self._end_workers(signal.SIGKILL)

    def _end_workers(self, number: signal.Signals) -> None:
        if self._program:
            raise RuntimeError("the workers of a group are not this executor's: see 'troupectl restart'")
        self._dispatcher.end_workers(number)
