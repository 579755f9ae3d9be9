# SPDX-License-Identifier: MIT
"""The pool for Celery, with a redis and a worker of its own for each test: every option of a pool, and what becomes of tasks
whose process dies."""
import json
import os
import shutil
import subprocess
import tempfile
import textwrap
import unittest

import troupe_python

PYTHON = "/usr/bin/python3"  # Debian's, for which Celery is packaged

PROJECT = '''
import os, signal, time
from celery import Celery, signals

app = Celery("project", broker="redis+socket://{directory}/redis.sock", backend="redis+socket://{directory}/redis.sock")
app.conf.worker_pool = "troupe.celery:Pool"
app.conf.broker_connection_retry_on_startup = True
prepared = []

@signals.worker_process_init.connect
def prepare(**_):
    prepared.append(os.getpid())

@app.task
def add(a, b):
    return a + b

@app.task
def pid():
    assert prepared == [os.getpid()], prepared
    return os.getpid()

@app.task
def die():
    os.kill(os.getpid(), signal.SIGSEGV)

@app.task
def fail():
    raise ValueError("no such luck")

@app.task
def sleep(seconds=1000000):
    time.sleep(seconds)

@app.task(time_limit=1)
def sleep_for_a_second():
    time.sleep(1000000)

@app.task(soft_time_limit=1)
def clean_up_after_a_second():
    from celery.exceptions import SoftTimeLimitExceeded
    try:
        time.sleep(1000000)
    except SoftTimeLimitExceeded:
        return "cleaned up"

@app.task(acks_late=True, reject_on_worker_lost=True)
def die_once(path):
    if not os.path.exists(path):
        open(path, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"

@app.task
def eat():
    global eaten
    eaten = b"x" * (64 << 20)
    return os.getpid()
'''

PRELUDE = '''
import json, os, time
from celery.exceptions import TimeLimitExceeded
from project import *

def ends(*results):
    """What became of tasks."""
    found = []
    for result in results:
        try:
            found.append(result.get(timeout=60))
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")
    return found

def pool():
    [stats] = app.control.inspect(timeout=10, limit=1).stats().values()
    return stats["pool"]

def until(condition):
    while not condition():
        time.sleep(0.05)
'''


def has(module):
    return os.path.exists(PYTHON) and subprocess.run([PYTHON, "-c", f"import {module}"], stderr=subprocess.DEVNULL,
                                                     check=False).returncode == 0


@troupe_python.needed
@unittest.skipUnless(shutil.which("redis-server") and has("celery") and has("redis"),
                     "python3-celery, python3-redis or redis-server is not installed")
class Pool(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        with open(os.path.join(self.directory, "project.py"), "w", encoding="ascii") as file:
            file.write(PROJECT.replace("{directory}", self.directory))
        self.environment = {**os.environ, **troupe_python.ENVIRONMENT,
                            "PATH": f"{troupe_python.e2e.BUILD}:{os.environ['PATH']}",
                            "PYTHONPATH": f"{troupe_python.PACKAGES}:{self.directory}"}
        self.redis = self.begin("redis-server", "--port", "0", "--unixsocket", "redis.sock", "--save", "",
                                ready="eady to accept connections")

    def begin(self, *command, ready):
        log = os.path.join(self.directory, "log-" + os.path.basename(command[0]))
        with open(log, "w", encoding="utf-8") as output:
            process = subprocess.Popen(command, cwd=self.directory, env=self.environment, stdout=output, stderr=output)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        with open(log, encoding="utf-8") as lines:
            text = ""
            while ready not in text:
                self.assertIsNone(process.poll(), text)
                text += lines.read(1) or ""
        return process

    def run_with(self, body, *options):
        """Returns what the program writes as JSON while a worker with these options does its tasks."""
        self.begin(PYTHON, "-m", "celery", "-A", "project", "worker", "--concurrency", "1", "--loglevel", "info", *options,
                   ready="ready.")
        ended = subprocess.run([PYTHON, "-c", PRELUDE + "print(json.dumps(" + textwrap.dedent(body).strip() + "))"],
                               cwd=self.directory, env=self.environment, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, check=False, timeout=600)
        with open(os.path.join(self.directory, "log-python3"), encoding="utf-8") as log:
            self.assertEqual(ended.returncode, 0, ended.stdout + log.read())
        return json.loads(ended.stdout)

    def test_tasks_end_as_with_celerys_own_pool_also_when_their_process_dies(self):
        done, died, failed, late, cleaned, again, pids = self.run_with("""
            ends(add.delay(1, 2), die.delay(), fail.delay(), sleep_for_a_second.delay(), clean_up_after_a_second.delay(),
                 die_once.delay("here")) + [ends(*[pid.delay() for _ in range(10)])]
            """)
        self.assertEqual(done, 3)
        self.assertEqual(died, "WorkerLostError: the worker process ended: killed by SIGSEGV")
        self.assertEqual(failed, "ValueError: no such luck")
        self.assertTrue(late.startswith("TimeLimitExceeded"), late)
        self.assertEqual((cleaned, again), ("cleaned up", "done"))
        self.assertEqual(len(set(pids)), 1)

    def test_a_task_that_is_revoked_ends_whether_it_has_begun_or_waits(self):
        stopped, waited, done = self.run_with("""
            (first := sleep.delay(), second := sleep.delay(), third := add.delay(1, 2),
             until(lambda: any(app.control.inspect(timeout=10, limit=1).active().values())),
             second.revoke(), first.revoke(terminate=True), ends(first, second, third))[-1]
            """)
        self.assertEqual((stopped, waited, done), ("TaskRevokedError: terminated", "TaskRevokedError: revoked", 3))

    def test_the_pool_grows_and_shrinks_on_request(self):
        sizes = self.run_with("""
            (ends(pid.delay()), one := pool(), app.control.pool_grow(2), until(lambda: len(pool()["processes"]) == 3), three := pool(),
             app.control.pool_shrink(2), until(lambda: len(pool()["processes"]) == 1),
             [one["max-concurrency"], three["max-concurrency"], pool()["max-concurrency"]])[-1]
            """)
        self.assertEqual(sizes, [1, 3, 1])

    def test_autoscale_follows_the_tasks(self):
        self.run_with("""
            (tasks := [sleep.delay(2) for _ in range(6)], until(lambda: pool()["max-concurrency"] == 3), ends(*tasks))[0]
            and None
            """, "--autoscale", "3,1")

    def test_limits_of_the_pool(self):
        pids, late = self.run_with("(ends(*[pid.delay() for _ in range(6)]), ends(sleep.delay())[0])",
                                   "--max-tasks-per-child", "2", "--time-limit", "2")
        self.assertEqual(len(set(pids)), 3)
        self.assertTrue(late.startswith("TimeLimitExceeded"), late)

    def test_a_process_that_grows_too_much_is_replaced(self):
        before, now = self.run_with(
            "(pids := ends(pid.delay(), eat.delay()), until(lambda: ends(pid.delay())[0] not in pids) or 0)",
            "--max-memory-per-child", "20000")
        self.assertEqual((len(set(before)), now), (1, 0))


if __name__ == "__main__":
    unittest.main()
