# SPDX-License-Identifier: MIT
"""Nothing is kept of what is over: references are counted by a debug build of Python, memory by the kernel."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import troupe_python
from troupe_python import ENVIRONMENT, WORKERS, e2e, group, needed

DEBUG = shutil.which("python3-dbg", path="/usr/bin")
counts_references = unittest.skipUnless(DEBUG and not e2e.SANITIZED, "there is no debug build of Python: install python3-dbg")


@needed
class Leaks(troupe_python.TestCase):
    def set_up(self, python, packages=troupe_python.PACKAGES):
        self.environment = {**ENVIRONMENT, "PYTHONPATH": packages}
        self.server = self.started({"counted": group("counted.py", python=python, Jobs={"MaxRetries": 0},
                                                     environment=self.environment)})

    def set_up_counted(self):
        """With an extension all of whose references a debug build of Python counts."""
        directory = tempfile.mkdtemp(prefix="troupe-counted-")
        self.addCleanup(shutil.rmtree, directory)
        shutil.copytree(os.path.join(troupe_python.PACKAGES, "troupe"), os.path.join(directory, "troupe"))
        shutil.copy(os.path.join(e2e.BUILD, "tests", "python", "_troupe.abi3.so"), os.path.join(directory, "troupe"))
        self.set_up(DEBUG, directory)

    def rounds(self, python):
        ended = subprocess.run([python, os.path.join(WORKERS, "rounds.py"), self.server.socket_path], text=True,
                               capture_output=True, timeout=2 * e2e.LIMIT, env={**os.environ, **self.environment})
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        return json.loads(ended.stdout)

    @counts_references
    @e2e.limit(300)
    def test_clients_keep_no_references(self):
        self.set_up_counted()
        grown = self.rounds(DEBUG)
        # One for each round would be a leak; caches of the interpreter grow by a few.
        self.assertLess(grown["references"], grown["rounds"])

    @counts_references
    def test_workers_keep_no_references(self):
        import troupe
        self.set_up_counted()
        with troupe.Client(self.server.socket_path) as client:
            def one_round():
                for verb in ("work", "fail", "reject"):
                    try:
                        client.do("counted", verb, key="k")
                    except troupe.JobError:
                        pass
                client.ask("counted", "echo", "data")
                try:
                    client.ask("counted", "fail", "why")
                except OSError:
                    pass

            def count():
                return int(client.do("counted", "count").data)
            for _ in range(20):
                one_round()
            count()
            before = count()
            for _ in range(100):
                one_round()
            self.assertLess(count() - before, 50)

    @unittest.skipIf(e2e.SANITIZED, "a sanitizer keeps what was freed")
    @e2e.limit(300)
    def test_clients_do_not_grow(self):
        self.set_up(sys.executable)
        self.assertLess(self.rounds(sys.executable)["bytes"], 4 << 20)

    @unittest.skipUnless(e2e.SANITIZED, "only a sanitizer sees it")
    @e2e.limit(300)
    def test_a_sanitizer_finds_nothing_wrong(self):
        self.set_up(sys.executable)
        self.rounds(sys.executable)
