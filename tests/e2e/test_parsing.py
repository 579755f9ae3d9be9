# SPDX-License-Identifier: MIT
"""The cost of reading a configuration, in instructions, which do not depend on the machine."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from troupe import LIMIT, SANITIZED, TROUPECTL, TestCase, limit

GROUP = "[Group]\nExecStart=/bin/true\n"
N = 2000  # lines; a tenth as many groups


def one_file(lines):
    return {"a.group": GROUP + lines}


CASES = {
    "keys": lambda n: one_file("Description=x\n" * n),
    "sections": lambda n: one_file("[Pool]\nSize=1\n" * n),
    "comments": lambda n: one_file("# x\n" * n),
    "one continued line": lambda n: one_file("Description=" + "x\\\n" * n + "\n"),
    "unknown keys": lambda n: one_file("Sise=1\n" * n),
    "variables": lambda n: one_file("".join(f"Environment=A{i}=1\n" for i in range(n))),
    "variables of a file": lambda n: {**one_file("EnvironmentFile=@/env\n"), "env": "".join(f"A{i}=1\n" for i in range(n))},
    "words": lambda n: one_file("ExecStart=/bin/true" + " x" * n + "\n"),
    "files": lambda n: one_file("EnvironmentFile=-/x\n" * n),
    "groups to start after": lambda n: one_file("After=" + " ".join(f"g{i}" for i in range(n)) + "\n"),
    "groups": lambda n: {f"g{i}.group": GROUP for i in range(n // 10)},
    "groups with a problem": lambda n: {f"g{i}.group": GROUP + "Sise=1\n" for i in range(n // 10)},
}


@unittest.skipIf(SANITIZED, "a sanitizer does not run under valgrind")
@unittest.skipIf(shutil.which("valgrind") is None, "valgrind is missing")
class Parsing(TestCase):
    def instructions(self, files):
        """The instructions that troupectl verify executes."""
        with tempfile.TemporaryDirectory(prefix="troupe-e2e-") as directory:
            for name, text in files.items():
                Path(os.path.join(directory, name)).write_text(text.replace("@", directory), encoding="utf-8")
            counts = os.path.join(directory, "counts")
            subprocess.run(["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={counts}",
                            TROUPECTL, "verify", directory], capture_output=True, timeout=LIMIT, check=False)
            return int(re.search(r"^(?:summary|totals): (\d+)", Path(counts).read_text(encoding="utf-8"), re.M)[1])

    @limit(300)
    def test_twice_the_configuration_is_twice_the_work(self):
        start = self.instructions(one_file(""))
        for name, files in CASES.items():
            with self.subTest(of=name):
                once, twice = (self.instructions(files(n)) - start for n in (N, 2 * N))
                self.assertLess(twice, 2.5 * once)
