# SPDX-License-Identifier: MIT
"""The example of a binding in another language, which troupe-binding(7) describes."""
import os
import shutil
import subprocess
import tempfile
import unittest

import troupe_python
from troupe_python import TOP, e2e

PATH = "/usr/bin:/usr/local/bin:/usr/local/go/bin"


def found():
    """How to build with Go's own compiler, or else with GCC's, whose `go` has the number of its version in its name."""
    if go := shutil.which("go", path=PATH):
        return [go, "build"]
    gcc = os.path.basename(os.path.realpath(shutil.which("gccgo", path=PATH) or ""))  # gccgo-12
    go = shutil.which("go-" + gcc.rpartition("-")[2], path=PATH)
    return [go, "build", "-compiler", "gccgo"] if go else None


GO = found()


@unittest.skipUnless(GO, "there is no Go here: install gccgo or golang-go")
@unittest.skipIf(e2e.SANITIZED, "Go's linker knows no sanitizer")
class Go(troupe_python.TestCase):
    def built(self):
        directory = tempfile.mkdtemp(prefix="troupe-go-")
        self.addCleanup(shutil.rmtree, directory)
        program = os.path.join(directory, "upper")
        environment = {**os.environ, "CGO_ENABLED": "1", "CGO_CFLAGS": "-I" + os.path.join(TOP, "worker"),
                       "CGO_LDFLAGS": os.path.join(e2e.BUILD, "libtroupe.a"), "GO111MODULE": "off",
                       "GOCACHE": os.path.join(e2e.BUILD, "go")}
        environment.pop("CC", None)  # of make; Go asks its own for what it can do
        ended = subprocess.run([*GO, "-o", program, os.path.join(TOP, "worker", "examples", "go", "upper.go")],
                               env=environment, capture_output=True, text=True)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        return program

    @e2e.limit(600)
    def test_a_worker_and_a_client_in_go_work_together(self):
        program = self.built()
        server = self.started({"upper": e2e.ini(program, Jobs={"MaxRetries": 0})})

        def client(text):
            return subprocess.run([program, "upper", text], text=True, capture_output=True, timeout=e2e.LIMIT,
                                  env={**os.environ, "TROUPE_SOCKET": server.socket_path})
        self.assertEqual((client("hello").stdout, client("").stdout), ("HELLO\n", "\n"))
        failed = client("panic")
        self.assertEqual((failed.returncode, failed.stderr), (1, "upper: dead: asked to\n"))
        self.assertEqual(client("on").stdout, "ON\n")
