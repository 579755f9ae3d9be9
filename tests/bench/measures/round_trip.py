# SPDX-License-Identifier: MIT
"""One job at a time: where the kernel puts the processes; and, for it puts them together or apart as it likes, which
makes a difference of several times, with the server on a CPU of its own."""
import os

from loads import JOB_SERVERS, PYTHON_POOLS, Hops, PythonPool, RoundTrips, Troupe
from rounds import Measure

SHOWN = {"p50_us": "p50", "p99_us": "p99", "p999_us": "p99.9", "server_cpu_us_per_job": "server CPU",
         "workers_cpu_us_per_job": "worker CPU"}


class Asleep(Troupe):
    """Everyone sleeps at once when there is nothing, as the floor does."""

    def __init__(self):
        super().__init__(Worker={"SpinUsec": 0})
        self.conf = "[Supervisor]\nSpinUsec=0\n"


class Apart(RoundTrips):
    """The server on the last CPU, all others on the first."""

    def missing(self):
        return super().missing() or (None if len(os.sched_getaffinity(0)) > 1 else "it takes two CPUs")

    def __enter__(self):
        super().__enter__()
        first, last = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
        self.command = ["env", f"BENCH_BROKER_CPU={last}", "taskset", "-c", str(first)]
        if hasattr(self.system, "server_pid"):
            for cpu, pids in ((last, [self.system.server_pid]), (first, self.system.worker_pids)):
                for pid in pids:
                    for task in os.listdir(f"/proc/{pid}/task"):
                        os.sched_setaffinity(int(task), {cpu})
        return self

    def load(self, *arguments):
        return [*self.command, *super().load(*arguments)]


def measures(_quick):
    subjects = [
        RoundTrips("floor: two hops", Hops("2"), "floor"),
        RoundTrips("floor: four hops", Hops("4"), "floor"),
        RoundTrips("Troupe", Troupe(), "troupe"),
        RoundTrips("Troupe, SpinUsec=0", Asleep(), "troupe"),
        *(RoundTrips(name, server()) for name, server in JOB_SERVERS.items()),
        *(RoundTrips(name, PythonPool(kind)) for name, kind in PYTHON_POOLS.items()),
    ]
    apart = [
        Apart("floor: four hops", Hops("4"), "floor"),
        Apart("Troupe", Troupe(), "troupe"),
        Apart("Troupe, SpinUsec=0", Asleep(), "troupe"),
        *(Apart(name, server()) for name, server in JOB_SERVERS.items()),
    ]
    return [Measure("round-trip", "One job at a time: round trip", subjects, "p50_us", "µs", shown=SHOWN),
            Measure("round-trip-apart", "One job at a time, the server on a CPU of its own", apart, "p50_us", "µs",
                    shown=SHOWN)]
