# SPDX-License-Identifier: MIT
"""The worker for RQ, with a redis of its own: each test enqueues jobs, lets a worker do them all, and looks at the jobs."""
import json
import os
import shutil
import subprocess
import tempfile
import textwrap
import unittest

import troupe_python

PYTHON = "/usr/bin/python3"  # Debian's, for which RQ is packaged

JOBS = '''
import os, signal, sys, time

def pid():
    return os.getpid()

def add(a, b):
    return a + b

def die():
    os.kill(os.getpid(), signal.SIGSEGV)

def fail():
    raise ValueError("no such luck")

def sleep(seconds):
    time.sleep(seconds)

def die_once(path):
    if not os.path.exists(path):
        open(path, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"

def stop_me():
    import redis, rq.command, rq
    connection = rq.get_current_job().connection
    rq.command.send_stop_job_command(connection, rq.get_current_job().id)
    time.sleep(1000000)

def handled(job, kind, value, traceback):
    open("handled", "w").write(str(value))
    return True
'''

PRELUDE = '''
import json, sys
import redis, rq
from rq.job import Job
import jobs
connection = redis.Redis(unix_socket_path="redis.sock")
queue = rq.Queue(connection=connection)
'''


def has(module):
    return os.path.exists(PYTHON) and subprocess.run([PYTHON, "-c", f"import {module}"], stderr=subprocess.DEVNULL,
                                                     check=False).returncode == 0


@troupe_python.needed
@unittest.skipUnless(shutil.which("redis-server") and has("rq"), "python3-rq or redis-server is not installed")
class Worker(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.write("jobs.py", JOBS)
        self.redis = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", "redis.sock", "--save", ""],
                                      cwd=self.directory, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.end_redis)
        self.assertTrue(any("eady to accept connections" in line for line in self.redis.stdout))

    def end_redis(self):
        self.redis.terminate()
        self.redis.stdout.close()
        self.redis.wait()

    def write(self, name, text):
        with open(os.path.join(self.directory, name), "w", encoding="ascii") as file:
            file.write(textwrap.dedent(text))

    def python(self, *arguments):
        environment = {**os.environ, **troupe_python.ENVIRONMENT, "PATH": f"{troupe_python.e2e.BUILD}:{os.environ['PATH']}",
                       "PYTHONPATH": f"{troupe_python.PACKAGES}:{self.directory}"}
        ended = subprocess.run([PYTHON, *arguments], cwd=self.directory, env=environment, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, check=False)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended.stdout

    def work(self, *calls, options=()):
        """Enqueues calls, and returns the status, result and last line of error of each after a worker did them."""
        ids = json.loads(self.python("-c", PRELUDE + f"print(json.dumps([{', '.join(f'queue.enqueue({call}).id' for call in calls)}]))"))
        self.python("/usr/bin/rq", "worker", "--url", f"unix://{self.directory}/redis.sock", "--worker-class", "troupe.rq.Worker",
                    "--burst", *options)
        return json.loads(self.python("-c", PRELUDE + f"""
done = [Job.fetch(id, connection=connection) for id in {ids}]
print(json.dumps([(job.get_status(), job.result, (job.exc_info or '').strip().rpartition('\\n')[2]) for job in done]))
"""))

    def test_each_job_has_a_process_of_its_own_and_a_result(self):
        ends = self.work("jobs.add, 1, 2", "jobs.pid", "jobs.pid")
        self.assertEqual({status for status, _, _ in ends}, {"finished"})
        self.assertEqual(ends[0][1], 3)
        self.assertNotEqual(ends[1][1], ends[2][1])

    def test_a_job_whose_process_dies_fails_with_the_cause_and_the_next_one_runs(self):
        died, done = self.work("jobs.die", "jobs.add, 1, 2")
        self.assertEqual(died, ["failed", None, "the worker process ended: killed by SIGSEGV"])
        self.assertEqual(done[:2], ["finished", 3])

    def test_a_job_with_retries_runs_again_after_the_death_of_its_process(self):
        [end] = self.work("jobs.die_once, 'here', retry=rq.Retry(max=1)")
        self.assertEqual(end[:2], ["finished", "done"])

    def test_exceptions_time_outs_and_handlers_are_those_of_rq(self):
        failed, late = self.work("jobs.fail", "jobs.sleep, 1000000, job_timeout=1", options=("--exception-handler", "jobs.handled"))
        self.assertEqual(failed, ["failed", None, "ValueError: no such luck"])
        self.assertEqual(late[0], "failed")
        self.assertIn("JobTimeoutException", late[2])
        with open(os.path.join(self.directory, "handled"), encoding="ascii") as file:
            self.assertIn("maximum timeout", file.read())

    def test_a_job_that_is_stopped_ends_and_the_next_one_runs(self):
        stopped, done = self.work("jobs.stop_me", "jobs.add, 1, 2")
        self.assertEqual(stopped[0], "stopped")
        self.assertEqual(done[:2], ["finished", 3])

    def test_a_class_of_ones_own_changes_the_options(self):
        self.write("mine.py", """
            import os
            import troupe.rq

            def begin():
                os.environ["PREPARED"] = "yes"

            class Worker(troupe.rq.Worker):
                executor_options = {"initializer": begin}
            """)
        self.write("jobs.py", JOBS + "\ndef prepared():\n    return os.environ['PREPARED'], os.getpid()\n")
        ids = json.loads(self.python("-c", PRELUDE + "print(json.dumps([queue.enqueue(jobs.prepared).id for _ in range(2)]))"))
        self.python("/usr/bin/rq", "worker", "--url", f"unix://{self.directory}/redis.sock", "--worker-class", "mine.Worker", "--burst")
        first, second = json.loads(self.python(
            "-c", PRELUDE + f"print(json.dumps([Job.fetch(id, connection=connection).result for id in {ids}]))"))
        self.assertEqual(first[0], "yes")
        self.assertEqual(first, second)  # one process


if __name__ == "__main__":
    unittest.main()
