# SPDX-License-Identifier: MIT
"""X1, X2, X3: where workers are, and were when they died."""
import fcntl
import os
import select
import struct
import subprocess
import sys
import unittest

from troupe import BUILD, LIMIT, TestCase, helper

TRACE = os.path.join(BUILD, "troupe-trace")
CRASHER = helper("workers/crasher")
OUTPUT = 65536


def threads(text):
    """What troupe-trace has written, as a list of (thread id, name, state, frames)."""
    ret = []
    for line in text.splitlines():
        kind, *fields = line.split("\t")
        if kind == "T":
            ret.append((int(fields[0]), fields[1], fields[2], []))
        else:
            ret[-1][3].append(dict(zip(("language", "module", "function", "offset", "file", "line"), fields)))
    return ret


def functions(thread):
    return [frame["function"] for frame in thread[3]]


@unittest.skipUnless(os.path.exists(TRACE), "needs libdw")
class Program(TestCase):
    def trace(self, pid, pidfd=None):
        """Runs troupe-trace as the supervisor does. Returns its error and its text."""
        process, release = pidfd or os.pidfd_open(pid), os.eventfd(0)
        output = os.memfd_create("output")
        os.ftruncate(output, OUTPUT)
        fds = {3: process, 4: release, 5: output}
        above = {number: fcntl.fcntl(fd, fcntl.F_DUPFD, 100) for number, fd in fds.items()}

        def inherit():
            for number, fd in above.items():
                os.dup2(fd, number)

        traced = subprocess.Popen([TRACE, str(pid), "0", "0", "0", "0"], preexec_fn=inherit, close_fds=False, env={})
        self.assertTrue(select.select([release], [], [], LIMIT)[0], "the process is never let go")
        traced.wait(LIMIT)
        error, size = struct.unpack("iI", os.pread(output, 8, 0))
        text = os.pread(output, size, 8).decode()
        for fd in [*fds.values(), *above.values()]:
            os.close(fd)
        return error, text

    def run_and_trace(self, *argv):
        process = subprocess.Popen(argv, stdout=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        process.stdout.readline()
        return process, *self.trace(process.pid)

    def test_X2_a_thread_that_waits_computes_or_holds_a_lock_is_found_with_its_function(self):
        for how in ("call", "lock", "loop"):
            with self.subTest(how=how):
                process, error, text = self.run_and_trace(CRASHER, how)
                self.assertEqual(error, 0)
                [thread] = threads(text)
                self.assertEqual(thread[:2], (process.pid, "crasher"))
                self.assertIn(f"planted_{how}", functions(thread))
                frame = next(frame for frame in thread[3] if frame["function"] == "main")
                self.assertTrue(frame["file"].endswith("crasher.c"), frame)
                self.assertGreater(int(frame["line"]), 0)
                self.assertIsNone(process.poll())

    def test_X2_the_number_of_another_process_is_refused(self):
        process = subprocess.Popen([CRASHER, "call"], stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        process.stdout.readline()
        process.kill()
        pidfd = os.pidfd_open(process.pid)
        process.wait()
        error, text = self.trace(os.getpid(), pidfd)
        self.assertEqual((error < 0, text), (True, ""))

    def test_X2_children_are_traced_as_well(self):
        script = f"import subprocess; subprocess.run([{CRASHER!r}, 'call'])"
        _, error, text = self.run_and_trace(sys.executable, "-c", script)
        self.assertEqual(error, 0)
        self.assertTrue(any("planted_call" in functions(thread) for thread in threads(text)), text)


if __name__ == "__main__":
    unittest.main()
