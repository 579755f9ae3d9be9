# SPDX-License-Identifier: MIT
"""The data that a worker needs about the program whose tasks it does."""
import os
from collections.abc import Callable
from multiprocessing import process, spawn
from typing import Any

from troupe.executor.tasks import dumps, pack_call


def pack_program(initializer: Callable[..., object] | None, initargs: tuple[Any, ...], max_tasks: int | None = None) -> bytes:
    """The initializer is a separate pickle, which is unpickled once the worker has the program's modules. Without
    `max_tasks`, it is also for workers that serve other programs, which get no secret and keep their directory."""
    preparation = spawn.get_preparation_data("worker")
    preparation["parent"] = (process.current_process().name, os.getpid())
    preparation["authkey"] = bytes(process.current_process().authkey)
    for key in ["name"] if max_tasks is not None else ["name", "authkey", "dir", "parent"]:
        del preparation[key]
    return dumps((preparation, max_tasks or 0, pack_call((initializer, initargs))))
