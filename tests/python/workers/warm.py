# SPDX-License-Identifier: MIT
"""A worker whose template loads: its job answers with what it drew and where it was loaded."""
import atexit
import contextlib
import json
import os
import random
import secrets
import sys
import uuid

with contextlib.suppress(ImportError):
    import numpy
    import numpy.random

import troupe

loaded: list[int] = []
hooked: list[int] = []
done: list[str] = []
os.register_at_fork(after_in_child=lambda: hooked.append(os.getpid()))


@troupe.warm
def load() -> None:
    loaded.append(os.getpid())


@atexit.register
def note() -> None:
    if "NOTES" in os.environ:
        with open(os.environ["NOTES"], "a", encoding="ascii") as notes:
            print(os.getpid(), file=notes)


@troupe.job
def warm(job: troupe.Job) -> object:
    done.append(job.id)
    drawn = [random.getrandbits(64), uuid.uuid4().int, secrets.randbits(64)]
    threads = len(os.listdir("/proc/self/task"))
    if "numpy" in sys.modules:
        drawn.append(int(numpy.random.randint(1 << 62)))
    return json.dumps({"pid": os.getpid(), "loaded": loaded, "hooked": hooked, "drawn": drawn, "jobs": len(done), "threads": threads,
                       "variables": sorted(name for name in os.environ if name.startswith(("TROUPE", "OPENBLAS")))})


troupe.run()
print("after", os.getpid())
