# SPDX-License-Identifier: MIT
"""Where workers in Python were when they died."""
import collections
import os
import sys
import unittest

import troupe_python
from troupe_python import e2e, group, needed

EXTENSION = os.path.join(e2e.BUILD, "tests", "e2e", "preload", "planted.so")
# Beside this one, the versions whose frames are known. TESTS_PYTHONS may list more, by path.
PYTHONS = [sys.executable, *filter(os.path.exists, ("/usr/bin/python3.11", "/usr/bin/python3.13")),
           *filter(None, os.environ.get("TESTS_PYTHONS", "").split(":"))]
COUNT = int(os.environ.get("TESTS_STACKS", 0))
TRACE = os.path.join(e2e.BUILD, "troupe-trace")


@needed
@unittest.skipUnless(os.path.exists(TRACE), "needs libdw")
@unittest.skipIf(e2e.SANITIZED, "the sanitizer handles these signals")
class Stacks(troupe_python.TestCase):
    def death(self, server, how, **options):
        """With stacks: a machine under load may be too slow for the time that a worker waits."""
        return server.until(lambda: (lambda death: death if death.get("top") else None)(self.report(server, how, **options)))

    def report(self, server, how, **options):
        job = server.create("planted", how, **options)
        server.until(lambda: server.job(job)["state"] == "dead")

        def find():
            [death] = [death for death in server.call("ListDeaths")["deaths"] if death.get("job") == job]
            return death if "stack" in death or "stack_missing" in death else None

        return server.until(find)

    def begin(self, *arguments, python=sys.executable):
        environment = {**troupe_python.ENVIRONMENT, "PLANTED": EXTENSION}
        return self.started({"planted": group("planted.py", *arguments, python=python, environment=environment,
                                              Jobs={"MaxRetries": 0})})

    def frames(self, death):
        return [frame for frame in death["stack"][0]["frames"] if "function" in frame]

    def test_X1_a_crash_in_an_extension_shows_its_function_and_its_callers_in_Python(self):
        for python in PYTHONS:
            with self.subTest(python=python):
                death = self.death(self.begin(python=python), "extension")
                self.assertEqual(death["signal"], "SIGSEGV")
                self.assertRegex(death["top"], r"^planted_extension, planted\.c:\d+$")
                frames = [frame for frame in self.frames(death) if frame["language"] == "python"]
                names = [frame["function"] for frame in frames]
                self.assertEqual(names[:6], ["planted_caller", "deep", "deep", "deep", "deep", "planted"])
                with open(os.path.join(troupe_python.WORKERS, "planted.py"), encoding="utf-8") as file:
                    lines = file.read().splitlines()
                self.assertEqual([lines[frame["line"] - 1].strip() for frame in frames[:2]],
                                 ["extension.planted_extension(None)", "return deep(n - 1, end) if n else end()"])

    def test_X1_faulthandler_still_writes_what_it_knows(self):
        death = self.death(self.begin("faulthandler"), "extension")
        self.assertRegex(death["top"], r"^planted_extension, planted\.c:\d+$")
        self.assertIn("Fatal Python error: Segmentation fault", death["stderr"])
        self.assertEqual(death["signal"], "SIGSEGV")

    def test_X1_abort_and_time_outs_show_the_function_in_Python(self):
        server = self.begin()
        for how, cause in ("abort", "signal"), ("call", "job_timeout"), ("loop", "job_timeout"):
            with self.subTest(how=how):
                death = self.death(server, how, **({"timeout_usec": 300_000} if how != "abort" else {}))
                self.assertEqual(death["cause"], cause)
                self.assertRegex(death.get("top", ""), rf"^planted_{how}, planted\.py:\d+$", death)

    def test_X3_a_profile_shows_the_functions_in_Python(self):
        for python in PYTHONS:
            for how, waits in ("loop", False), ("call", True):
                with self.subTest(python=python, how=how):
                    server = self.begin(python=python)
                    job = server.create("planted", how)
                    server.until(lambda: server.job(job).get("started_at"))
                    stack = server.until(lambda: next((stack for stack in server.call(
                        "io.troupe.Supervisor.Profile", job=job, for_usec=300_000).get("stacks", ())
                        if f"planted_{how} (planted.py)" in stack["functions"]), None))
                    names = stack["functions"]
                    self.assertEqual(stack["waits"], waits)
                    self.assertEqual(names.count("deep (planted.py)"), 4)
                    self.assertLess(names.index("planted (planted.py)"), names.index(f"planted_{how} (planted.py)"))

    @unittest.skipUnless(COUNT, "only with TESTS_STACKS=N, for N deaths of each kind")
    def test_X1_the_rate(self):
        right = collections.Counter()
        for python in PYTHONS:
            server = self.begin(python=python)
            for how in ("extension", "abort", "call", "loop") * COUNT:
                options = {} if how in ("extension", "abort") else {"timeout_usec": 300_000}
                right[how] += self.report(server, how, **options).get("top", "").startswith(f"planted_{how},")
        print(right, file=sys.stderr)
        self.assertGreaterEqual(right.total(), 0.99 * 4 * COUNT * len(PYTHONS))


if __name__ == "__main__":
    unittest.main()
