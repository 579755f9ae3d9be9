# SPDX-License-Identifier: MIT
"""What the features of a queue cost: unique keys, limits, dependencies, jobs for later."""
import processes
import programs
from loads import Celery, Durable, Rq, Troupe, Unique, Windows
from rounds import Measure, Subject

IN_HAND = 64
MEMBERS = 64


class Chords(Subject):
    """A chord of a peer: MEMBERS tasks and one that waits for all of them; one chord after the other."""
    skips = (MEMBERS,)

    def __init__(self, name, system, count):
        self.name, self.system, self.count = name, system, count

    def turn(self, _point):
        return programs.measure(*self.system.load("chords", self.count, MEMBERS, 0))


class Edges(Subject):
    """A point is the number of jobs that wait for the same MEMBERS jobs."""
    role = "troupe"

    def __init__(self, name, system):
        self.name, self.system = name, system

    def turn(self, point):
        return programs.measure(programs.ours("troupe/edges"), self.system.socket, "echo", 16384 // point // 4, point)


class Future(Subject):
    """So many jobs that are due in an hour, and 1000 that are due within two seconds."""
    role = "troupe"

    def __init__(self, name, kind, count, memory):
        self.name, self.kind, self.count, self.memory = name, kind, count, memory

    def turn(self, _point):
        with self.kind(Jobs={"QueueMax": 2 * self.count + 1000, "QueueMemoryMax": self.memory}) as daemon:
            before = processes.memory(daemon.supervisor_pid)["private"]
            found = programs.measure(programs.ours("troupe/future"), daemon.socket, "echo", self.count, 1000)
            after = processes.memory(daemon.supervisor_pid)["private"]
        return {"late_p50_us": found["late_p50_us"], "late_p99_us": found["late_p99_us"],
                "bytes_per_job": (after - before) / self.count}


def measures(quick):
    free = {"Rate": "1000000/1ms", "Burst": 100000}
    window = [Windows("Troupe", Troupe(2, IN_HAND), "troupe"),
              Windows("Troupe, a unique key each", Unique(2, IN_HAND), "troupe"),
              Windows("Troupe, a rate limit", Troupe(2, IN_HAND, Limits=free), "troupe"),
              Windows("Troupe, a limit of running jobs", Troupe(2, IN_HAND, Limits={"Running": 1000}), "troupe")]
    chords = [Edges("Troupe", Troupe(2, IN_HAND)),
              Chords("Celery", Celery(workers=2), 5 if quick else 20), Chords("RQ", Rq(workers=2), 2 if quick else 5)]
    future = [Future(name, kind, 100_000 if quick else 1_000_000, memory)
              for name, kind, memory in (("Troupe", Troupe, "8G"), ("Troupe, durable", Durable, "4M"))]
    return [Measure("queue-features", "Many jobs in flight, with unique keys and limits", window, "jobs_per_s", "jobs/s", [256],
                    False, "window"),
            Measure("edges", f"Jobs that wait for {MEMBERS} others", chords, "edges_per_s", "edges/s", [1, MEMBERS], False,
                    "jobs that wait"),
            Measure("future", "Jobs for later", future, "late_p99_us", "µs",
                    shown={"late_p50_us": "late, p50", "late_p99_us": "late, p99", "bytes_per_job": "memory, bytes"})]
