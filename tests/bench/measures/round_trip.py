# SPDX-License-Identifier: MIT
"""One job at a time."""
from loads import JOB_SERVERS, PYTHON_POOLS, Hops, PythonPool, RoundTrips, Troupe
from rounds import Measure

SHOWN = {"p50_us": "p50", "p99_us": "p99", "p999_us": "p99.9", "server_cpu_us_per_job": "server CPU",
         "workers_cpu_us_per_job": "worker CPU"}


def measures(_quick):
    subjects = [
        RoundTrips("floor: two hops", Hops("2"), "floor"),
        RoundTrips("floor: four hops", Hops("4"), "floor"),
        RoundTrips("Troupe", Troupe(), "troupe"),
        *(RoundTrips(name, server()) for name, server in JOB_SERVERS.items()),
        *(RoundTrips(name, PythonPool(kind)) for name, kind in PYTHON_POOLS.items()),
    ]
    return [Measure("round-trip", "One job at a time: round trip", subjects, "p50_us", "µs", shown=SHOWN)]
