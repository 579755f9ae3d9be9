#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Prints how many empty tasks Celery does per second with each pool, and the CPU time that each takes.

    tests/python/celery_rate.py [--first] [POOL...]    prefork, troupe, nothing (a pool that only answers); by default each twice

--first, for root: in front of all else that runs on the machine, as on one with nothing else to do; for seconds, that stands still.
TESTS_BUILD: where the program and the package are, by default build. TASKS: how many, by default 12000. The first 2000 do not count.
"""
import contextlib
import os
import sys
import time

from celery_kills import start_celery

POOLS = {"prefork": "prefork", "troupe": "troupe.celery:Pool", "nothing": "project:Nothing"}
TASKS, FIRST = int(os.environ.get("TASKS", "12000")), 2000

PROJECT = '''
import os, time
from celery import Celery
from celery.concurrency.base import BasePool

app = Celery("project", broker=os.environ["REDIS"], backend=os.environ["REDIS"])
app.conf.worker_pool = os.environ["POOL"]

class Nothing(BasePool):
    def on_apply(self, target, args, kwargs, callback=None, accept_callback=None, **_):
        accept_callback(os.getpid(), time.monotonic())
        callback((0, "None", 0.0))

@app.task
def add(a, b):
    return a + b
'''

SEND = '''
import sys
from project import add, app
with app.producer_pool.acquire() as producer:
    for i in range(int(sys.argv[1])):
        add.apply_async((i, 1), producer=producer)
'''


def processes():
    """Each process's parent and CPU time in microseconds."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            fields = stat.read().rpartition(")")[2].split()
            found[int(pid)] = int(fields[1]), (int(fields[11]) + int(fields[12])) * 1e6 / os.sysconf("SC_CLK_TCK")
    return found


def below(main, found):
    inside, new = set(), {main}
    while new:
        new = {pid for pid, (parent, _) in found.items() if parent in new} - inside
        inside |= new
    return inside


def cpu_time(main):
    """That of the process, and of those below it."""
    found = processes()
    return found[main][1], sum(found[pid][1] for pid in below(main, found))


def put_first(*mains):
    """With all threads, and all processes below."""
    for pid in set(mains).union(*(below(main, processes()) for main in mains)):
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                os.sched_setscheduler(int(thread), os.SCHED_RR, os.sched_param(1))


def measure(pool, first):
    """Returns the rate, and per task the CPU time of Celery's process and of all processes below it."""
    with contextlib.ExitStack() as stack:
        server, broker, worker = start_celery(stack, PROJECT, SEND, TASKS, 2, POOL=POOLS[pool])
        while broker.llen("celery") > TASKS - 100:
            time.sleep(0.005)
        if first:
            put_first(os.getpid(), server.pid, worker.pid)
        while broker.llen("celery") > TASKS - FIRST:
            time.sleep(0.005)
        begin, left, before = time.monotonic(), broker.llen("celery"), cpu_time(worker.pid)
        while broker.llen("celery") > 0:
            time.sleep(0.005)
        seconds, after = time.monotonic() - begin, cpu_time(worker.pid)
        return left / seconds, *((now - then) / left for now, then in zip(after, before))


if __name__ == "__main__":
    pools = [word for word in sys.argv[1:] if word != "--first"] or [*POOLS, *POOLS]
    for one in pools:
        print("{:10}{:6.0f} tasks/s, CPU time per task: {:4.0f} us in Celery's process, {:4.0f} us below it".format(
            one, *measure(one, "--first" in sys.argv)), flush=True)
