#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Kills processes of Celery's pool troupe.celery:Pool while they do tasks, and checks what becomes of each task.

    tests/python/celery_kills.py [TASKS [SECONDS]]    100,000 tasks, a kill each second

Every task must end once: as done, after one run, or with WorkerLostError and the cause. Only tasks with acks_late and
reject_on_worker_lost may run again, and these must be done. Prints numbers as JSON; the status is 1 if a promise is broken.
TESTS_BUILD: where the program and the package are, by default build.
"""
import collections
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import redis

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("TESTS_BUILD", os.path.join(TOP, "build")))
META = "celery-task-meta-"
CAUSE = "the worker process ended: killed by SIGKILL"

PROJECT = '''
import os
import redis
from celery import Celery

app = Celery("project", broker=os.environ["REDIS"], backend=os.environ["REDIS"])
app.conf.worker_pool = "troupe.celery:Pool"
app.conf.result_extended = True
notes = redis.Redis(unix_socket_path=os.environ["REDIS"].partition("//")[2])

def run(task):
    with notes.pipeline() as together:
        together.hincrby("begun", task.request.id).set("worker", os.getpid()).execute()
    notes.hincrby("done", task.request.id)

@app.task(bind=True)
def once(self):
    run(self)

@app.task(bind=True, acks_late=True, reject_on_worker_lost=True)
def again(self):
    run(self)
'''

SEND = '''
import sys
from project import again, app, once
with app.producer_pool.acquire() as producer:
    for i in range(int(sys.argv[1])):
        (again if i % 4 == 0 else once).apply_async(producer=producer)
'''


@contextlib.contextmanager
def running(command, **options):
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, **options) as process:
        try:
            yield process
        finally:
            process.terminate()


def kill_one(notes, killed):
    """Kills the process that has begun a task last."""
    pid = int(notes.get("worker") or 0)
    if pid and pid not in killed:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            killed.add(pid)


def is_over(notes, n):
    return (notes.dbsize() >= n and notes.llen("celery") == notes.hlen("unacked") == 0
            and sum(1 for _ in notes.scan_iter(META + "*", count=10000)) == n)


def problem_of(meta, n_begun, n_done):
    """What is wrong with a task, or None."""
    late = meta["name"] == "project.again"
    if meta["status"] == "SUCCESS":
        return None if n_done >= 1 and (late or n_begun == n_done == 1) else "succeeded without a run, or ran again"
    if late:
        return "is lost although it may run again"
    if meta["result"].get("exc_type") != "WorkerLostError" or CAUSE not in str(meta["result"].get("exc_message")):
        return f"failed with {meta['result']}"
    return None if n_begun <= 1 else "ran again"


def check(notes, n_killed):
    begun, done = notes.hgetall("begun"), notes.hgetall("done")
    numbers = collections.Counter(killed=n_killed)
    problems = []
    for key in notes.scan_iter(META + "*", count=10000):
        meta = json.loads(notes.get(key))
        task = meta["task_id"].encode()
        runs = int(begun.get(task, 0)), int(done.get(task, 0))
        numbers[meta["status"].lower()] += 1
        numbers["repeated"] += runs[0] > 1
        if problem := problem_of(meta, *runs):
            problems.append(f"{meta['task_id']} ({meta['name']}, begun and done {runs}): {problem}")
    return numbers, problems


def start_celery(stack, project, send, tasks, concurrency, **environment):
    """Sends the tasks of a project, and starts a worker for them. Returns redis, its client, and the worker."""
    directory = stack.enter_context(tempfile.TemporaryDirectory())
    with open(os.path.join(directory, "project.py"), "w", encoding="ascii") as file:
        file.write(project)
    path = os.path.join(directory, "redis")
    environment = {**os.environ, "REDIS": "redis+socket://" + path, "PYTHONPATH": f"{BUILD}/python:{directory}",
                   "PATH": f"{BUILD}:{os.environ['PATH']}", "C_FORCE_ROOT": "1", **environment}
    server = stack.enter_context(running(["redis-server", "--port", "0", "--unixsocket", path, "--save", ""], cwd=directory))
    while not os.path.exists(path):
        time.sleep(0.01)
    subprocess.run([sys.executable, "-c", send, str(tasks)], env=environment, check=True)
    worker = stack.enter_context(running([sys.executable, "-m", "celery", "-A", "project", "worker", "--concurrency", str(concurrency),
                                          "--loglevel", "critical"], env=environment, cwd=directory, stderr=subprocess.DEVNULL))
    return server, redis.Redis(unix_socket_path=path), worker


def main(n=100000, pause=1.0):
    with contextlib.ExitStack() as stack:
        _, notes, worker = start_celery(stack, PROJECT, SEND, n, 3)
        killed = set()
        begin = time.monotonic()
        while not is_over(notes, n):
            if worker.poll() is not None:
                sys.exit("the worker of Celery has ended")
            kill_one(notes, killed)
            time.sleep(pause)
        numbers, problems = check(notes, len(killed))
        print(json.dumps({**numbers, "seconds": round(time.monotonic() - begin)}), *problems[:20], sep="\n")
        return 1 if problems or numbers["success"] + numbers["failure"] != n else 0


if __name__ == "__main__":
    sys.exit(main(*(kind(word) for kind, word in zip((int, float), sys.argv[1:]))))
