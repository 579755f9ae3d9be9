# SPDX-License-Identifier: MIT
"""What a job costs in a pool of many workers, beside many that have nothing to do with it, and in one of many cells."""
import contextlib

import programs
import troupe_daemon
from loads import Celled, RoundTrips, Troupe
from rounds import Measure


class Sizes(RoundTrips):
    """A point is the number of workers; a daemon for each, all up at the same time."""

    def __init__(self, name, make, **options):
        super().__init__(name, None, "troupe", **options)
        self.make, self.systems = make, {}

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def arguments(self, point, count):
        return super().arguments(None, count)

    def turn(self, point):
        if point not in self.systems:
            self.systems[point] = self.stack.enter_context(self.make(point))
        self.system = self.systems[point]
        return super().turn(point)

    def cpu(self):
        """Of the supervisor alone: adding up a thousand workers would disturb more than it tells."""
        return {"server_cpu_us_per_job": super().cpu()["server_cpu_us_per_job"]}


def beside(n):
    worker = programs.ours("troupe/echo")
    return Troupe(beside={"idle": troupe_daemon.group(worker, Pool={"Size": n - 1})} if n > 1 else {})


def asleep_beside(n):
    """Sleeps at once: looking is CPU time, and how long it lasts depends on the CPUs that the kernel chooses."""
    system = beside(n)
    system.conf = "[Supervisor]\nSpinUsec=0\n"
    return system


def measures(quick):
    points = [1, 1000] if quick else [1, 10, 100, 1000]
    subjects = [Sizes("Troupe, in a pool of N", Troupe), Sizes("Troupe, N idle beside it", beside),
                Sizes("Troupe, N idle beside it, SpinUsec=0", asleep_beside, skips=(10, 100))]
    cells = [Sizes("Troupe, the same cell beside idle ones", lambda n: Celled(n, False)),
             Sizes("Troupe, round all cells", Celled)]
    return [Measure("workers", "One job at a time, by the number of workers", subjects, "p50_us", "µs", points,
                    axis="workers"),
            Measure("cells", "One job at a time, by the number of cells", cells, "p50_us", "µs", points,
                    axis="cells")]
