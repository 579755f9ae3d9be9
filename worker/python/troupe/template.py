# SPDX-License-Identifier: MIT
"""Templates: processes that load once, and fork workers (Template= of troupe.group(5))."""
from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from troupe import _troupe

Warmer = Callable[[], object]
warmers: list[Warmer] = []


def warm(function: Warmer) -> Warmer:
    """Decorates a function without parameters that loads what jobs need. Runs once before the first job, and with
    Template=slot in the template, so that all workers share what it has loaded."""
    warmers.append(function)
    return function


def blas_setters() -> list[Callable[[int], object]]:
    """The functions of each OpenBLAS in this process that set its number of threads."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        paths = {line.split(maxsplit=5)[5].rstrip() for line in maps if "openblas" in line}
    if not paths:
        return []
    import ctypes
    names = [prefix + "openblas_set_num_threads" + suffix for prefix in ("", "scipy_") for suffix in ("", "64_")]
    libraries = [ctypes.CDLL(path) for path in paths if ".so" in path]
    return [getattr(library, name) for library in libraries for name in names if hasattr(library, name)]


def end(status: int = 0) -> NoReturn:
    """Ends a forked worker without freeing its objects, which would copy the pages of all of them. Runs before what was
    registered at the exit earlier."""
    atexit.unregister(end)
    try:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except Exception:
        sys.excepthook(*sys.exc_info())
    os._exit(status or hasattr(sys, "last_value"))


def fork() -> None:
    """Returns in each worker that this template forks."""
    setters = blas_setters()
    _, *only_here = os.environ["TROUPE_TEMPLATE"].split()
    gc.collect()
    gc.freeze()  # collections would copy the pages of all objects
    socket = _troupe.template_run()
    if socket is None:
        sys.exit()
    if socket:
        os.environ["TROUPE_SOCKET"] = socket
    for name in ("TROUPE_TEMPLATE", *only_here):
        os.environ.pop(name, None)
    if "OPENBLAS_NUM_THREADS" in only_here:
        for set_threads in setters:
            set_threads(len(os.sched_getaffinity(0)))
    # Python itself seeds the generator of its module random.
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()


def load() -> bool:
    """Runs the functions marked @warm, and returns in a worker: whether it is forked."""
    for function in warmers:
        function()
    forked = "TROUPE_TEMPLATE" in os.environ
    if forked:
        fork()
    return forked
