# SPDX-License-Identifier: MIT
"""Descriptors that workers of a private supervisor get from the program, in the order in which they were given."""
import contextlib
import os
from collections.abc import Iterator
from multiprocessing import context
from typing import Any

DESCRIPTORS_MAX = 253  # the kernel's SCM_MAX_FD
received: list[int] = []  # in a worker
directory: str | None = None  # in a worker: that of its supervisor


class Inherited:
    """A descriptor in a pickle, like multiprocessing.reduction.DupFd()."""

    def __init__(self, index: int) -> None:
        self.index = index

    def detach(self) -> int:
        return os.dup(received[self.index])


class Collection:
    """Collects the descriptors of locks, queues and connections, in the place of multiprocessing's Popen."""

    def __init__(self) -> None:
        self.descriptors: list[int] = []

    def duplicate_for_child(self, fd: int) -> int:
        self.descriptors.append(os.dup(fd))
        return len(self.descriptors) - 1

    def DupFd(self, index: int) -> Inherited:  # pylint: disable=invalid-name
        return Inherited(index)


@contextlib.contextmanager
def collect() -> Iterator[list[int]]:
    """Within it, pickles may contain objects that only a child process can inherit. Closes the descriptors."""
    collection = Collection()
    stand_in: Any = collection
    context.set_spawning_popen(stand_in)
    try:
        yield collection.descriptors
    finally:
        context.set_spawning_popen(None)
        for fd in collection.descriptors:
            os.close(fd)
