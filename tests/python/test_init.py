# SPDX-License-Identifier: MIT
"""troupectl init python NAME, and the examples of the manual page."""
import os
import re
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import troupe_python
from troupe_python import ENVIRONMENT, e2e, needed

MANUAL = os.path.join(troupe_python.TOP, "worker", "python", "troupe-python.7")


class Files(troupe_python.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory(prefix="troupe-init-")
        self.addCleanup(self.directory.cleanup)
        os.chmod(self.directory.name, 0o755)

    def init(self, *arguments):
        return subprocess.run([e2e.TROUPECTL, "init", *arguments], cwd=self.directory.name, text=True, capture_output=True)

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def read(self, name):
        return Path(self.path(name)).read_text(encoding="utf-8")


def without_user(body):
    """The directory of the test is for its own user only."""
    return re.sub(r"^User=.*\n", "", body, flags=re.M)


class Init(Files):
    def test_what_it_writes_is_valid(self):
        ended = self.init("python", "thumb-nails")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertIn("troupectl do thumb-nails --data hello", ended.stdout)
        self.assertTrue(os.stat(self.path("thumb-nails.py")).st_mode & stat.S_IXUSR)
        self.assertIn(f"ExecStart=/usr/bin/python3 {self.path('thumb-nails.py')}\n", self.read("thumb-nails.group"))
        self.assertIn("[Sandbox]\n# For ordinary programs.", self.read("thumb-nails.group"))
        self.assertIn("\nProfile=basic\n", self.read("thumb-nails.group"))
        verified = subprocess.run([e2e.TROUPECTL, "verify", self.path("thumb-nails.group")], capture_output=True, text=True)
        self.assertEqual((verified.returncode, verified.stdout), (0, "no problems\n"))

    def test_what_it_writes_of_each_kind_is_valid(self):
        self.addCleanup(setattr, self.directory, "name", self.directory.name)
        for kind, names in (("command", ["x.group"]), ("service", ["x.group"]), ("c", ["x.c", "x.group"])):
            with self.subTest(kind), tempfile.TemporaryDirectory() as self.directory.name:
                os.chmod(self.directory.name, 0o755)
                self.assertEqual(self.init(kind, "x").returncode, 0)
                self.assertEqual(sorted(os.listdir(self.directory.name)), names)
                if kind == "c":
                    Path(self.path("x")).touch(0o755)  # what the compiler makes
                body = re.sub(r"ExecStart=.*/troupe-exec", f"ExecStart={e2e.TROUPE_EXEC}", self.read("x.group"))
                Path(self.path("x.group")).write_text(body, encoding="utf-8")
                verified = subprocess.run([e2e.TROUPECTL, "verify", self.path("x.group")], capture_output=True, text=True)
                self.assertEqual(verified.stdout, "no problems\n")

    def test_it_changes_no_file(self):
        Path(self.path("mine.py")).write_text("precious", encoding="utf-8")
        ended = self.init("python", "mine")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("cannot write mine.py: File exists", ended.stderr)
        self.assertEqual(self.read("mine.py"), "precious")
        self.assertEqual(os.listdir(self.directory.name), ["mine.py"])

    @unittest.skipIf(os.geteuid() != 0, "an ordinary user's workers run as that user")
    def test_it_refuses_a_directory_that_the_workers_user_cannot_enter(self):
        os.chmod(self.directory.name, 0o700)
        ended = self.init("python", "mine")
        self.assertEqual((ended.returncode, os.listdir(self.directory.name)), (1, []))
        self.assertTrue(ended.stderr.endswith(f"or run 'chmod o+x {self.directory.name}'\n"), ended.stderr)
        self.assertEqual(self.init("command", "mine").returncode, 0)

    def test_the_workers_user_can_read_the_files_whatever_the_umask_is(self):
        before = os.umask(0o077)
        self.addCleanup(os.umask, before)
        self.assertEqual(self.init("python", "mine").returncode, 0)
        self.assertEqual([stat.S_IMODE(os.stat(self.path(f"mine{ending}")).st_mode) for ending in (".py", ".group")], [0o755, 0o644])

    def test_it_says_what_is_allowed(self):
        self.assertIn("allowed: command, python, c, service, schedule", self.init("perl", "x").stderr)
        self.assertIn("not a possible name", self.init("python", "a/b").stderr)
        self.assertEqual(self.init("python", "a/b").returncode, 2)


@needed
class Programs(Files):
    def started_from(self, name):
        """A supervisor with that group, whose workers find the package of this tree, as an installed one does not need."""
        body = without_user(self.read(name + ".group")).replace("/usr/bin/python3", sys.executable)
        if not e2e.can_mount():
            body = body.replace("Profile=basic\n", "")
        environment = "".join(f"Environment={key}={value}\n" for key, value in ENVIRONMENT.items())
        self.server = self.started({name: body.replace("[Group]\n", "[Group]\n" + environment)})
        return self.server

    def test_what_it_writes_runs(self):
        self.init("python", "first")
        server = self.started_from("first")
        done = server.ctl("do", "first", "--data", "hello", check=True)
        self.assertEqual(done.stdout.strip(), "HELLO")
        self.assertEqual(server.ctl("do", "first").returncode, 1)
        self.assertEqual(server.worker("first/0")["state"], "idle")

    def examples(self):
        """The literal displays of the manual page, by the name that follows the comment sign in their first line."""
        displays = re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed$", Path(MANUAL).read_text(encoding="utf-8"), re.M | re.S)
        texts = [display.replace("\\&", "").replace("\\e", "\\") for display in displays]
        return {text.split("\n")[0].lstrip("# "): text for text in texts if text.startswith("# ")}

    def test_the_examples_of_the_manual_run(self):
        examples = self.examples()
        for name in ("digest.py", "digest.group", "client.py", "loop.py", "threads.py", "desk.py", "ask.py"):
            Path(self.path(name)).write_text(examples[name].replace("/srv", self.directory.name), encoding="utf-8")
        with open(self.path("desk.group"), "w", encoding="utf-8") as file:
            file.write(without_user(self.read("digest.group")).replace("digest", "desk"))
        server = self.started_from("digest")
        environment = "".join(f"Environment={key}={value}\n" for key, value in ENVIRONMENT.items())
        server.write("desk.group", self.read("desk.group").replace("/usr/bin/python3", sys.executable)
                     .replace("[Group]\n", "[Group]\n" + environment))
        server.call("Reload")
        server.until(lambda: server.group("desk")["state"] == "running")
        server.wait_worker("desk/0", "idle")
        for name, expected in (("client.py", "2cf24dba"), ("loop.py", "2cf24dba"), ("threads.py", "ca978112"), ("ask.py", "hello you")):
            ended = subprocess.run([sys.executable, self.path(name)], text=True, capture_output=True, timeout=e2e.LIMIT,
                                   env={**os.environ, **ENVIRONMENT, "TROUPE_SOCKET": server.socket_path})
            self.assertEqual((ended.returncode, ended.stderr), (0, ""), name)
            self.assertIn(expected, ended.stdout)
