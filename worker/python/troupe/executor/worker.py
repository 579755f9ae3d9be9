# SPDX-License-Identifier: MIT
"""The program of the workers of an executor: `python3 -m troupe.executor.worker`.

As the command of a group of a running trouped it takes tasks from any executor; each task carries the data of its program.
With a directory as argument it belongs to the executor whose private supervisor uses that directory.
"""
import collections
import contextlib
import faulthandler
import hashlib
import logging
import mmap
import os
import socket
import sys
from collections.abc import Callable
from multiprocessing import process, resource_tracker, spawn
from typing import Any

from troupe import template
from troupe._troupe import Job, Worker
from troupe.executor import inherited
from troupe.executor.guardian import near
from troupe.executor.tasks import RAISED, TIRED, UNFIT, VALUE, dumps, loads, pack_exception

PROGRAMS_MAX = 8


class Program:
    """The environment of a task: the modules of the program that sent it, and the effects of its initializer."""

    def __init__(self, packed: Any) -> None:
        self.problem = b""
        self.max_tasks = 0
        try:
            self.enter(packed)
        except BaseException as error:  # pylint: disable=broad-except
            logging.getLogger("concurrent.futures").critical("Exception in initializer:", exc_info=True)
            self.problem = pack_exception(error)
        self.main, self.path = sys.modules["__main__"], sys.path

    def resume(self) -> None:
        """Call it after tasks of another program."""
        sys.modules["__main__"] = sys.modules["__mp_main__"] = self.main
        sys.path = self.path

    def enter(self, packed: Any) -> None:
        preparation, self.max_tasks, initializer = loads(packed)
        if "parent" in preparation:
            adopt(*preparation.pop("parent"))
        current = process.current_process()
        current._inheriting = True  # type: ignore[attr-defined]
        try:
            spawn.prepare(preparation)
            function, arguments = loads(initializer)
        finally:
            del current._inheriting  # type: ignore[attr-defined]
        if function is not None:
            function(*arguments)


def adopt(name: str, pid: int) -> None:
    """Makes multiprocessing.parent_process() return the program, like in its own children."""
    process._parent_process = process._ParentProcess(name, pid, os.pidfd_open(pid))  # type: ignore[attr-defined]


def perform(job: Job, packed: Any) -> None:
    try:
        function, arguments, keywords = loads(packed)
        value = dumps(function(*arguments, **keywords))
    except BaseException as error:  # pylint: disable=broad-except
        job.reject(RAISED, pack_exception(error))
    else:
        job.succeed(VALUE + value)


def shared() -> Callable[[Job], None]:
    """For tasks of many programs. Each worker remembers the last PROGRAMS_MAX of them, and enters others again."""
    programs: collections.OrderedDict[bytes, Program] = collections.OrderedDict()
    current: Program | None = None

    def handle(job: Job) -> None:
        nonlocal current
        packed, call = loads(job.payload)
        digest = hashlib.sha256(packed).digest()
        program = programs.get(digest)
        if program is None:
            if len(programs) == PROGRAMS_MAX:
                programs.popitem(last=False)
            program = programs[digest] = Program(packed)
        elif program is not current:
            programs.move_to_end(digest)
            program.resume()
        current = program
        if program.problem:
            job.reject(UNFIT, program.problem)
        else:
            perform(job, call)

    return handle


def take_output(standard_output: int, standard_error: int, *others: int) -> None:
    """Makes the task's output that of the program."""
    faulthandler.enable(os.dup(2))  # the supervisor reads this one, for the death report
    for fd, standard in ((standard_output, 1), (standard_error, 2)):
        os.dup2(fd, standard)
    for fd in (standard_output, standard_error, *others):
        os.close(fd)


def close_output(standard_output: int, standard_error: int) -> None:
    """In a template, which cannot be forked with open sockets, and they may be some. Each worker gets its own."""
    os.close(standard_output)
    os.close(standard_error)


def private(directory: str, take: Callable[[int, int], None]) -> tuple[Callable[[Job], None], int]:
    """For one program, which is entered before the first task. Also returns the maximum number of tasks."""
    standard_output, standard_error, program_file, tracker, *others = receive(directory)
    take(standard_output, standard_error)
    resource_tracker._resource_tracker._fd = tracker  # type: ignore[attr-defined]
    inherited.received[:] = others
    inherited.directory = directory
    with mmap.mmap(program_file, 0, access=mmap.ACCESS_READ) as packed:
        program = Program(packed)
    os.close(program_file)

    def refuse(job: Job) -> None:
        job.reject(UNFIT, program.problem)

    def handle(job: Job) -> None:
        perform(job, job.payload)

    return refuse if program.problem else handle, program.max_tasks


def receive(directory: str) -> list[int]:
    inside = os.open(directory, os.O_PATH)
    with socket.socket(socket.AF_UNIX) as doorway:
        doorway.connect(near(inside, "descriptors"))
        os.close(inside)
        _, descriptors, _, _ = socket.recv_fds(doorway, 1, inherited.DESCRIPTORS_MAX)
    for fd in descriptors:
        os.set_inheritable(fd, False)
    return descriptors


def work(worker: Worker, handle: Callable[[Job], None], max_tasks: int) -> int:
    """Does tasks until it must stop or has done as many as it may. Returns the exit status."""
    process.current_process().name = worker.name
    if max_tasks == 0:
        worker.run(handle)
        return 0
    worker.on_job(handle)
    with contextlib.suppress(OSError):  # it must stop
        while max_tasks > 0:
            max_tasks -= worker.turn()
        return TIRED
    return 0


def fork_workers(arguments: list[str]) -> None:
    """In a template: enters the program once, and forks the workers."""
    handle, max_tasks = private(arguments[0], close_output) if arguments else (shared(), 0)
    template.fork()
    worker = Worker()
    faulthandler.enable()
    if arguments:
        take_output(*receive(arguments[0]))
    template.end(work(worker, handle, max_tasks))


def main(arguments: list[str]) -> None:
    if "TROUPE_TEMPLATE" in os.environ:
        fork_workers(arguments)
    worker = Worker()
    faulthandler.enable()
    handle, max_tasks = private(arguments[0], take_output) if arguments else (shared(), 0)
    sys.exit(work(worker, handle, max_tasks))


if __name__ == "__main__":
    main(sys.argv[1:])
