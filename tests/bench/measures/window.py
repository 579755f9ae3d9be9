# SPDX-License-Identifier: MIT
"""Many jobs in flight. "N in hand": how many a worker is handed before it answers; without, one."""
from loads import JOB_SERVERS, PYTHON_POOLS, Hops, PythonPool, Troupe, Windows
from rounds import Measure

IN_HAND = 64
SHOWN = {"jobs_per_s": "", "server_cpu_us_per_job": "the server's CPU time, µs/job",
         "workers_cpu_us_per_job": "the workers' CPU time, µs/job"}


def measures(quick):
    points = [1, 256] if quick else [1, 4, 16, 64, 256, 1024]
    found = []
    for workers in (1, 2)[quick:]:
        subjects = [Windows("floor: four hops", Hops(f"4:{workers}"), "floor"),
                    Windows("Troupe", Troupe(workers), "troupe"),
                    Windows(f"Troupe, {IN_HAND} in hand", Troupe(workers, IN_HAND), "troupe")]
        for name, server in JOB_SERVERS.items():
            subjects.append(Windows(name, server(workers)))
            if name != "beanstalkd":  # has one reservation per connection
                subjects.append(Windows(f"{name}, {IN_HAND} in hand", server(workers, IN_HAND)))
        subjects += [Windows(name, PythonPool(kind, workers)) for name, kind in PYTHON_POOLS.items()]
        found.append(Measure(f"window-{workers}", f"Many jobs in flight, {workers} worker{'s' * (workers > 1)}",
                             subjects, "jobs_per_s", "jobs/s", points, False, "window", SHOWN))
    return found
