# SPDX-License-Identifier: MIT
"""Durable jobs: many in flight, long ones, one at a time, and what they cost others."""
import shutil
import signal

import programs
from loads import DISK_SERVERS, Creating, Durable, RoundTrips, Troupe, Windows
from measures.store import Store
from rounds import Measure, System

IN_HAND = 64
LONG_WORKERS = 16
SLOW_US = 50  # as long as it takes until a job is on disk, with what it takes to fall asleep and to wake up


class OnDisk(System):
    def __enter__(self):
        self.directory = programs.directory_on_disk()
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.directory, ignore_errors=True)


class Sync(OnDisk):
    """The floor of one job at a time: a record written and synced, `pause_us` after the one before."""

    def __init__(self, pause_us=0):
        self.pause_us = pause_us

    def load(self, *arguments):
        return [programs.ours("floors/sync"), str(self.pause_us), self.directory, *map(str, arguments)]


class Rows(OnDisk):
    """The floor of one job at a time with SQLite: a row written and committed."""
    n_runs = 0

    def load(self, _what, count, size, _result):
        self.n_runs += 1
        return [programs.ours("floors/store"), "one", f"{self.directory}/db{self.n_runs}", str(count), str(size), "1"]


class Beside(RoundTrips):
    """One job at a time in a group that is not durable; `other` is a load that is stopped while others have their turn."""

    def __init__(self, name, other, role="troupe"):
        super().__init__(name, Durable(beside={"plain": Troupe().groups["echo"], "slow": Troupe(job_us=SLOW_US).groups["echo"]}), role)
        self.other, self.process = other, None

    def __enter__(self):
        super().__enter__()
        self.directory = programs.directory_on_disk()
        command = self.other(self)
        if command:
            self.process = programs.start(command)
            self.process.send_signal(signal.SIGSTOP)
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)
        super().__exit__()

    def load(self, *arguments):
        return [programs.ours("troupe/jobs"), f"plain@{self.system.socket}", *map(str, arguments)]

    def turn(self, point):
        if not self.process:
            return super().turn(point)
        self.process.send_signal(signal.SIGCONT)
        try:
            return super().turn(point)
        finally:
            self.process.send_signal(signal.SIGSTOP)


def busy_store(beside):
    """Always writing, with little to do for the loop: one job after the other."""
    return [programs.ours("troupe/jobs"), f"create:echo@{beside.system.socket}", "round-trip", str(1 << 22), "64", "64"]


def busy_loop(beside):
    """As busy_store(), with jobs that are not durable and take about as long."""
    return [programs.ours("troupe/jobs"), f"slow@{beside.system.socket}", "round-trip", str(1 << 22), "64", "64"]


def busy_other(beside):
    """The same disk and the same CPUs, in a process of its own."""
    return [programs.ours("floors/store"), "bare", f"{beside.directory}/db", str(1 << 40), "64", "1"]


def measures(quick):
    window = [
        Store("floor: SQLite alone", "create", "floor"),
        Windows("Troupe, create", Creating(1, IN_HAND), "troupe"),
        Windows("Troupe, do", Durable(1, IN_HAND), "troupe"),
        *(Windows(name, server(1, IN_HAND)) for name, server in DISK_SERVERS.items()),
    ]
    long = [Windows(f"Troupe{name}, {n} workers", make(n, job_us=1000), "troupe")
            for n in ((LONG_WORKERS,) if quick else (LONG_WORKERS, 64))
            for name, make in ((", not durable", Troupe), (", durable", Durable))]
    one = [
        RoundTrips("floor: one sync", Sync(), "floor"),
        RoundTrips("floor: one sync after a pause", Sync(pause_us=50), "floor"),
        RoundTrips("floor: SQLite alone, one row", Rows(), "floor"),
        RoundTrips("Troupe, not durable", Troupe(), "troupe"),
        RoundTrips("Troupe, create", Creating(), "troupe"),
        RoundTrips("Troupe, do", Durable(), "troupe"),
        *(RoundTrips(name, server()) for name, server in DISK_SERVERS.items()),
    ]
    beside = [
        Beside("Troupe, the store idle", lambda beside: None),
        Beside("Troupe, the store busy", busy_store),
        Beside("Troupe, other jobs instead", busy_loop),
        Beside("Troupe, another process's SQLite busy", busy_other),
    ]
    trip = {"p50_us": "p50", "p99_us": "p99", "server_cpu_us_per_job": "server CPU"}
    return [
        Measure("durable-window", "Durable jobs: many in flight, to their ends", window, "jobs_per_s", "jobs/s",
                [256] if quick else [64, 256, 1024], False, "window",
                {"jobs_per_s": "", "server_cpu_us_per_job": "the server's CPU time, µs/job"}),
        Measure("durable-long", "Durable jobs of 1 ms", long, "jobs_per_s", "jobs/s", [256], False, "window"),
        Measure("durable-one", "Durable jobs: one at a time", one, "p50_us", "µs", shown=trip),
        Measure("durable-beside", "A job that is not durable, beside a busy store", beside, "p50_us", "µs", shown=trip),
    ]
