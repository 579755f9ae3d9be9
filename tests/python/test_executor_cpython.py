# SPDX-License-Identifier: MIT
"""CPython's own tests of process executors, with troupe.Executor: see cpython_cases.py.

They are run by a Python that has its `test` package, which Debian 12 has in libpython3.11-testsuite, and Debian 13 in
libpython3.13-testsuite. Other versions of Python have other tests.
"""
import functools
import os
import subprocess
import sys
import tempfile
import unittest

import troupe_python

CASES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cpython_cases.py")
PROBE = ("import sys, test.support.script_helper, test.test_concurrent_futures, _testcapi; "
         "sys.exit(sys.version_info[:2] not in ((3, 11), (3, 13)))")


@functools.cache
def complete_python():
    for python in dict.fromkeys((sys.executable, "/usr/bin/python3")):
        try:
            if subprocess.run([python, "-c", PROBE], capture_output=True).returncode == 0:
                return python
        except FileNotFoundError:
            pass
    return None


@troupe_python.needed
class CPython(unittest.TestCase):
    def passes(self, case):
        python = complete_python()
        if not python:
            self.skipTest("no Python 3.11 or 3.13 here has its test package: install libpython3.11-testsuite, or 3.13")
        with tempfile.TemporaryDirectory(prefix="troupe-python-") as directory:
            environment = {**os.environ, **troupe_python.ENVIRONMENT, "TMPDIR": directory, "PYTHONDONTWRITEBYTECODE": "1",
                           "PATH": troupe_python.e2e.BUILD + ":" + os.environ.get("PATH", os.defpath)}
            ended = subprocess.run([python, CASES, "-v", case], env=environment, cwd=directory, capture_output=True, text=True)
            self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
            self.assertNotIn("Ran 0 tests", ended.stderr)
            self.assertEqual(os.listdir(directory), [])


def passing(case):
    return troupe_python.e2e.limit(900)(lambda self: self.passes(case))


for name in ("Initializer", "FailingInitializer", "Shutdown", "Wait", "AsCompleted", "ProcessPoolExecutorTest", "Deadlock"):
    setattr(CPython, "test_" + name, passing("Troupe" + name))
