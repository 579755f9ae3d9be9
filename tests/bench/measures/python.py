# SPDX-License-Identifier: MIT
"""Python: troupe.Executor beside Python's own pools and the queues that are built for it; workers in Python and in C."""
from loads import PYTHON_POOLS, Celery, PythonPool, PythonWorker, Rq, RoundTrips, Troupe, TroupeExecutor, Windows
from rounds import Measure


def subjects(load, workers):
    return [load("troupe.Executor", TroupeExecutor(workers), "troupe"),
            *(load(name, PythonPool(kind, workers)) for name, kind in PYTHON_POOLS.items()),
            load("Celery", Celery(workers=workers)), load("RQ", Rq(workers=workers))]


def measures(_quick):
    workers = [Windows("worker in C", Troupe(), "troupe"), Windows("worker in Python", PythonWorker(), "troupe"),
               Windows("worker in C, 64 in hand", Troupe(depth=64), "troupe"),
               Windows("worker in Python, 64 in hand", PythonWorker(depth=64), "troupe")]
    return [Measure("python-round-trip", "Python, one task at a time: round trip", subjects(RoundTrips, 1), "p50_us", "µs",
                    shown={"p50_us": "p50", "p99_us": "p99"}),
            Measure("python-window", "Python, tasks with 256 in flight, two workers", subjects(Windows, 2), "jobs_per_s",
                    "jobs/s", [256], less_is_better=False, axis="window"),
            Measure("python-worker", "One worker, 256 jobs in flight", workers, "jobs_per_s", "jobs/s", [256],
                    less_is_better=False, axis="window", shown={"jobs_per_s": "", "workers_cpu_us_per_job": "worker CPU, µs"})]
