# SPDX-License-Identifier: MIT
"""The longest time without an end that a client sees while another supervisor takes over."""
import json
import os
import signal
import time

import programs
import troupe_daemon
from loads import Durable
from rounds import Measure, Subject

ECHO = programs.ours("troupe/echo")
FILLERS = 32


class Gap(Subject):
    """Each turn has a supervisor of its own, with idle workers and jobs that wait in a paused group."""
    role = "troupe"

    def __init__(self, name, take_over, workers=1, jobs=0, durable=False):
        self.name, self.take_over, self.workers, self.jobs = name, take_over, workers, jobs
        self.durable = durable

    def daemon(self):
        jobs = {"Durable": "yes" if self.durable else "no", "QueueMax": self.jobs + 1, "QueueMemoryMax": "8G"}
        return Durable(Jobs={"Durable": "no"}, beside={
            "idle": troupe_daemon.group(ECHO, Pool={"Size": self.workers}),
            "waiting": troupe_daemon.group(ECHO, Jobs=jobs)})

    def turn(self, _point):
        with self.daemon() as daemon:
            control(daemon, "pause", "waiting")
            if self.jobs:
                fill(daemon, self.jobs)
            client = programs.start_ready([programs.ours("troupe/gap"), daemon.socket, "echo"])
            try:
                before = daemon.supervisor_pid
                self.take_over(daemon)
                wait_next(daemon, before)
                time.sleep(0.5)  # what comes after it counts, too
            finally:
                client.terminate()
                answer = client.communicate(timeout=programs.LIMIT)[0]
            return json.loads(answer)


def fill(daemon, count, group="waiting"):
    """Many clients at the same time, since each waits for the disk."""
    clients = [programs.start([programs.ours("troupe/backlog"), daemon.socket, group, str(count // FILLERS), "64"])
               for _ in range(FILLERS)]
    if any([client.wait() for client in clients]):
        raise programs.Failed("the queue cannot be filled: " + daemon.last_words())


def control(daemon, *arguments):
    return programs.run(programs.product("troupectl"), "--socket", daemon.socket, *arguments)


def wait_next(daemon, before):
    """Until another supervisor answers."""
    until = time.monotonic() + programs.LIMIT
    while daemon.supervisor_pid in (before, None):
        if time.monotonic() > until:
            raise programs.Failed("no other supervisor has taken over: " + daemon.last_words())
        time.sleep(0.01)
    control(daemon, "info")  # status fails until all groups are up


def upgrade(daemon):
    control(daemon, "upgrade")


def crash(daemon):
    os.kill(daemon.supervisor_pid, signal.SIGKILL)


def measures(quick):
    many = 20_000 if quick else 100_000
    subjects = [
        Gap("Troupe, upgrade, 1000 workers", upgrade, workers=1000, jobs=10_000),
        Gap("Troupe, upgrade, durable jobs waiting", upgrade, jobs=many, durable=True),
        Gap("Troupe, kill -9, 1000 workers", crash, workers=1000, jobs=10_000),
        Gap("Troupe, kill -9, durable jobs waiting", crash, jobs=many, durable=True),
    ]
    return [Measure("gap", f"The longest gap that a client sees when another supervisor takes over; {many} durable jobs",
                    subjects, "gap_ms", "ms", shown={"gap_ms": "", "again": "jobs done again"})]
