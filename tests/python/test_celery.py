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
if os.environ.get("POLLED"):  # a broker without an event loop
    app.conf.broker_url = "filesystem://"
    app.conf.broker_transport_options = {"data_folder_in": "{directory}", "data_folder_out": "{directory}"}
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
def supervisor():
    return os.getppid()

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
        self.begin("redis-server", "--port", "0", "--unixsocket", "redis.sock", "--save", "",
                                ready="eady to accept connections")

    def begin(self, *command, ready):
        handle, log = tempfile.mkstemp(prefix="log-" + os.path.basename(command[0]), dir=self.directory)
        with open(handle, "w", encoding="utf-8") as output:
            process = subprocess.Popen(command, cwd=self.directory, env=self.environment, stdout=output, stderr=output)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        with open(log, encoding="utf-8") as lines:
            text = ""
            while ready not in text:
                self.assertIsNone(process.poll(), text)
                text += lines.read(1) or ""
        return process, log

    def run_with(self, body, *options):
        """Returns what the program writes as JSON while a worker with these options does its tasks."""
        self.worker, log = self.begin(PYTHON, "-m", "celery", "-A", "project", "worker", "--concurrency", "1",
                                      "--loglevel", "info", *options, ready="ready.")
        ended = subprocess.run([PYTHON, "-c", PRELUDE + "print(json.dumps(" + textwrap.dedent(body).strip() + "))"],
                               cwd=self.directory, env=self.environment, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, check=False, timeout=600)
        with open(log, encoding="utf-8") as lines:
            self.assertEqual(ended.returncode, 0, ended.stdout + lines.read())
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

    def test_a_task_that_expires_while_it_waits_does_not_begin(self):
        first, late, last = self.run_with("ends(sleep.delay(3), add.apply_async((1, 2), expires=1), add.delay(1, 2))")
        self.assertEqual((first, late, last), (None, "TaskRevokedError: expired", 3))

    def test_a_worker_that_must_stop_finishes_what_it_has_begun_and_leaves_the_rest_to_others(self):
        self.assertEqual(self.run_with("""
            (first := sleep.delay(3), rest := [add.delay(i, 1) for i in range(20)],
             until(lambda: any(app.control.inspect(timeout=10, limit=1).active().values())),
             app.control.shutdown(), ends(first))[-1]
            """), [None])
        self.assertEqual(self.worker.wait(), 0)
        self.assertEqual(self.run_with("ends(*[add.delay(i, 1) for i in range(20)])"), list(range(1, 21)))

    def test_a_worker_whose_supervisor_is_killed_ends(self):
        lost, = self.run_with("""
            (pid := supervisor.delay().get(timeout=60), task := sleep.delay(),
             until(lambda: any(app.control.inspect(timeout=10, limit=1).active().values())), os.kill(pid, 9), ends(task))[-1]
            """)
        self.assertTrue(lost.startswith("WorkerLostError"), lost)
        self.assertIn(self.worker.wait(), (0, 1))  # Celery 5.2 drops the status

    def test_a_broker_without_an_event_loop(self):
        self.environment["POLLED"] = "1"
        done, died, late, again, pids = self.run_with("""
            ends(add.delay(1, 2), die.delay(), sleep_for_a_second.delay(), die_once.delay("here")) +
            [ends(*[pid.delay() for _ in range(5)])]
            """)
        self.assertEqual((done, died, again, len(set(pids))),
                         (3, "WorkerLostError: the worker process ended: killed by SIGSEGV", "done", 1))
        self.assertTrue(late.startswith("TimeLimitExceeded"), late)

    def test_each_task_ends_once_while_processes_are_killed(self):
        """The whole of it: tests/python/celery_kills.py."""
        ended = subprocess.run([PYTHON, os.path.join(troupe_python.TOP, "tests", "python", "celery_kills.py"), "1000", "0.2"],
                               env=self.environment | {"TESTS_BUILD": troupe_python.e2e.BUILD}, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, check=False, timeout=600)
        self.assertEqual(ended.returncode, 0, ended.stdout)
        self.assertGreater(json.loads(ended.stdout)["killed"], 1)

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
        # A process goes on until its successor is up.
        pids, late = self.run_with("""
            (pids := {}, until(lambda: pids.update({ends(pid.delay())[0]: True}) or len(pids) == 3), list(pids), ends(sleep.delay())[0])[-2:]
            """, "--max-tasks-per-child", "2", "--time-limit", "2")
        self.assertEqual(len(pids), 3)
        self.assertTrue(late.startswith("TimeLimitExceeded"), late)

    def test_a_process_that_grows_too_much_is_replaced(self):
        before, now = self.run_with(
            "(pids := ends(pid.delay(), eat.delay()), until(lambda: ends(pid.delay())[0] not in pids) or 0)",
            "--max-memory-per-child", "20000")
        self.assertEqual((len(set(before)), now), (1, 0))


if __name__ == "__main__":
    unittest.main()
