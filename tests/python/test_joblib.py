# SPDX-License-Identifier: MIT
"""The back end of joblib: what joblib's own tests of back ends expect, and what becomes of tasks whose process dies."""
import os
import subprocess
import tempfile
import textwrap
import unittest

import troupe_python

PRELUDE = '''
import os, signal, sys, time
import joblib
import troupe.joblib
from troupe import WorkerDied

def run(function, *items, **options):
    with joblib.parallel_backend("troupe", n_jobs=2, **options):
        return joblib.Parallel()(joblib.delayed(function)(item) for item in items)
'''


def has(module, python="/usr/bin/python3"):
    """Whether Debian's Python has the module; the one that runs this test may be another."""
    return subprocess.run([python, "-c", f"import {module}"], stderr=subprocess.DEVNULL, check=False).returncode == 0


@troupe_python.needed
@unittest.skipUnless(os.path.exists("/usr/bin/python3") and has("joblib"), "python3-joblib is not installed")
class Backend(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def python(self, *arguments):
        environment = {**os.environ, **troupe_python.ENVIRONMENT, "PATH": f"{troupe_python.e2e.BUILD}:{os.environ['PATH']}"}
        return subprocess.run(["/usr/bin/python3", *arguments], cwd=self.directory.name, env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)

    def program(self, functions, body):
        path = os.path.join(self.directory.name, "program.py")
        with open(path, "w", encoding="ascii") as file:
            file.write(PRELUDE + textwrap.dedent(functions) +
                       "\nif __name__ == '__main__':\n" + textwrap.indent(textwrap.dedent(body), "    "))
        ended = self.python(path)
        self.assertEqual(ended.returncode, 0, ended.stdout)
        return ended.stdout

    def test_tasks_run_in_workers_that_stay(self):
        self.program("""
            def work(n):
                return n * n, os.getpid(), os.environ["OMP_NUM_THREADS"]
            """, """
            with joblib.parallel_backend("troupe", n_jobs=2, inner_max_num_threads=3):
                first, second = (joblib.Parallel()(joblib.delayed(work)(n) for n in range(100)) for _ in range(2))
            assert [n for n, _, _ in first] == [n * n for n in range(100)]
            workers = {pid for _, pid, _ in first + second}
            assert os.getpid() not in workers and len(workers) <= 2, workers
            assert {threads for _, _, threads in first} == {"3"}
            """)

    def test_a_death_fails_its_task_or_is_tried_again_and_the_back_end_goes_on(self):
        self.program("""
            def die_once(path):
                if not os.path.exists(path):
                    open(path, "w").close()
                    os.kill(os.getpid(), signal.SIGSEGV)
                return path
            """, """
            try:
                run(die_once, "one")
                sys.exit("it did not die")
            except WorkerDied as error:
                assert "SIGSEGV" in str(error), error
            assert run(die_once, "one", "two", "three", retries=1) == ["one", "two", "three"]
            """)

    def test_a_task_that_takes_too_long_is_ended(self):
        self.program("""
            def sleep(seconds):
                time.sleep(seconds)
            """, """
            try:
                run(sleep, 1000, timeout=0.2)
                sys.exit("it was not ended")
            except TimeoutError:
                pass
            assert run(sleep, 0) == [None]
            """)

    @unittest.skipUnless(has("pytest"), "python3-pytest is not installed")
    @unittest.skipIf(troupe_python.e2e.SANITIZED, "takes minutes with sanitizers")
    def test_joblibs_own_tests_of_back_ends_pass(self):
        """Without those in which a process of another back end, which has not loaded this one, uses it."""
        [where] = self.python("-c", "import joblib.test as tests; print(tests.__path__[0])").stdout.split()
        ended = self.python("-m", "pytest", "-q", "-p", "troupe.joblib", "-p", "no:cacheprovider", "-k",
                            "troupe and not (loky-troupe or multiprocessing-troupe or compat_backend-troupe)",
                            os.path.join(where, "test_parallel.py"))
        self.assertEqual(ended.returncode, 0, ended.stdout)
        self.assertRegex(ended.stdout, r"[1-9]\d passed")


if __name__ == "__main__":
    unittest.main()
