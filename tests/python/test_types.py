# SPDX-License-Identifier: MIT
"""The package's types are complete: mypy --strict finds nothing in it."""
import os
import shutil
import subprocess
import tempfile
import unittest

import troupe_python

MYPY = shutil.which("mypy", path="/usr/bin:/usr/local/bin")


@unittest.skipUnless(MYPY, "mypy is missing: install the package mypy")
class Types(unittest.TestCase):
    def mypy(self, *arguments):
        with tempfile.TemporaryDirectory() as cache:
            return subprocess.run([MYPY, "--strict", "--no-warn-unused-ignores", "--no-color-output",
                                   "--enable-incomplete-feature=Unpack", "--cache-dir", cache, "--python-version", "3.11",
                                   *arguments], cwd=os.path.join(troupe_python.TOP, "worker", "python"),
                                  capture_output=True, text=True)

    def test_the_package_is_strictly_typed(self):
        # The modules for joblib, RQ and Celery: these have no types.
        ended = self.mypy("--ignore-missing-imports", "-p", "troupe")
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
