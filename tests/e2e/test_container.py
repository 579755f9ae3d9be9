# SPDX-License-Identifier: MIT
"""In a container: a filter for system calls, no systemd, trouped as PID 1 with a read-only root."""
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

from troupe import LIMIT, SANITIZED, Bell, TestCase, actor, helper, service, text

# $1: what stays writable. PID 1 of the new namespaces runs this, then the rest of the arguments. What is mounted by then ends
# with the namespace.
ENTER = """
set -e
mount --make-rprivate /
mount -t proc proc /proc
mount --bind "$1" "$1"
mount -o remount,bind,ro /
for path in /tmp /sys/fs/cgroup; do
    if [ "$(stat -c %m "$path")" = "$path" ]; then mount -o remount,bind,ro "$path"; fi
done
shift
exec "$@"
"""


@unittest.skipIf(SANITIZED, "leak checking does not work under the filter")
class Filter(TestCase):
    def test_all_works_under_the_filters_of_container_engines(self):
        for kind in "container", "old-container":
            with self.subTest(filter=kind):
                s = self.started({"actor": actor(2), "daemon": service("/bin/sleep infinity")}, wrapper=[helper("forbid"), kind])
                self.assertEqual(s.call("GetInfo")["loop"], "epoll")
                self.assertIn("running, waits with epoll, up", s.ctl("status").stdout.splitlines()[0])
                self.assertEqual(s.do("actor", "echo hello")["result"], text("hello"))
                self.assertEqual(s.do("actor", "before 2 crash kill\nattempt")["result"], text("2"))
                daemon = s.worker("daemon/0")["pid"]
                s.crash()
                self.assertEqual(s.do("actor", "echo again")["result"], text("again"))
                self.assertEqual(s.worker("daemon/0")["pid"], daemon)
                s.ctl("restart", "actor", check=True)
                self.assertEqual(s.do("actor", "echo anew")["result"], text("anew"))
                s.stop()


@unittest.skipIf(SANITIZED, "leak checking does not work under the filter")
@unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare") and shutil.which("nsenter"), "needs root, unshare and nsenter")
class PidOne(TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as directory:
            made = subprocess.run(cls.container(directory, "true"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  timeout=LIMIT, check=False)
        if made.returncode != 0:
            raise unittest.SkipTest(f"no container can be made here: {' '.join(made.stdout.split())}")

    @staticmethod
    def container(writable, *command):
        return ["unshare", "--pid", "--mount", "--fork", "--kill-child", "sh", "-c", ENTER, "sh", writable, *command]

    def contained(self, groups):
        """A supervisor that is PID 1. `init` is its pid outside."""
        s = self.supervisor(groups)
        s.command = self.container(s.directory, helper("forbid"), "container", *s.command)
        s.spawn()
        self.addCleanup(self.end, s)
        s.wait_told("READY=1")
        [self.init] = self.children(s.process.pid)
        self.assertRegex(Path(f"/proc/{self.init}/status").read_text(encoding="ascii"), f"NSpid:\t.*\\b{self.init}\t1\n")
        return s

    def end(self, s):
        with contextlib.suppress(OSError):
            for pid in self.children(s.process.pid):
                os.kill(pid, signal.SIGKILL)

    @staticmethod
    def children(pid):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]

    def stop(self, s, signo=signal.SIGTERM):
        os.kill(self.init, signo)
        self.assertEqual(s.wait_end(), 0)

    def inside(self, script, *arguments):
        """Runs a shell in the container, as `docker exec` does. Its children become those of PID 1."""
        subprocess.run(["nsenter", "--target", str(self.init), "--pid", "--mount", "sh", "-c", script, "sh", *arguments],
                       check=True, timeout=LIMIT)

    def test_it_works_as_pid_1_with_a_read_only_root_and_a_stop_signal_ends_it(self):
        for signo in signal.SIGTERM, signal.SIGINT:
            with self.subTest(signal=signo):
                s = self.contained({"actor": actor()})
                self.assertRaises(subprocess.CalledProcessError, self.inside, "echo >/etc/troupe-e2e-test 2>/dev/null")
                info = s.call("GetInfo")
                self.assertEqual((info["pid"], info["loop"]), (1, "epoll"))
                self.assertEqual(s.do("actor", "echo hello")["result"], text("hello"))
                self.stop(s, signo)
                self.assertIn("stop signal received", s.log())

    def test_it_reloads_as_pid_1(self):
        s = self.contained({"actor": actor()})
        s.write("second.group", actor())
        os.kill(self.init, signal.SIGHUP)
        s.wait_told("RELOADING=1")
        s.until(lambda: "configuration reloaded" in s.log())
        self.assertEqual(s.do("second", "echo hello")["result"], text("hello"))
        self.stop(s)

    def test_orphans_are_reaped_as_pid_1_whoever_left_them(self):
        s = self.contained({"actor": actor(), "daemon": service("/bin/sleep infinity")})
        n, daemon, go = len(self.children(self.init)), s.worker("daemon/0")["pid"], Bell(s, "go")
        self.inside("""
            for i in $(seq 50); do
                (exit 3) &
                sh -c 'kill -9 $$' &
                (read x <"$1") &
            done""", go.path)
        s.until(lambda: len(self.children(self.init)) == n + 50)  # those that still read
        self.assertEqual(s.do("actor", "echo hello")["result"], text("hello"))
        go.ring(50)
        s.until(lambda: len(self.children(self.init)) == n)
        self.assertEqual(s.do("actor", "before 2 crash kill\nattempt")["result"], text("2"))
        s.until(lambda: not any(self.is_zombie(pid) for pid in self.children(self.init)))
        self.assertEqual(s.worker("daemon/0")["pid"], daemon)
        self.stop(s)

    @staticmethod
    def is_zombie(pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0] == "Z"
        return False

    def test_a_crash_of_the_supervisor_below_pid_1_loses_no_worker(self):
        s = self.contained({"actor": actor(), "daemon": service("/bin/sleep infinity")})
        daemon, supervisor = s.worker("daemon/0")["pid"], s.call("GetInfo")["supervisor_pid"]
        self.inside('kill -9 "$1"', str(supervisor))
        s.wait_for(lambda: s.call("GetInfo")["supervisor_pid"] != supervisor)
        self.assertEqual(s.worker("daemon/0")["pid"], daemon)
        self.assertEqual(s.do("actor", "echo hello")["result"], text("hello"))
        self.stop(s)
