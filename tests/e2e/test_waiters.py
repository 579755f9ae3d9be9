# SPDX-License-Identifier: MIT
"""Peers at whose sockets half a million entries of epoll(7) wait, all of which each system call at the other end wakes."""
import os
import resource
import select
import sys
import unittest
from pathlib import Path

from troupe import QUICK, TestCase, ini, user

STRANGER = 65534
NUMBER = 700  # of duplicates of the socket and of epoll instances, each with all of these

WORKER = f"""
import os, select
sockets = [os.dup(1) for _ in range({NUMBER})]
epolls = [select.epoll() for _ in range({NUMBER})]
for epoll in epolls:
    for socket in sockets:
        epoll.register(socket)
while True:
    print("a line", flush=True)
"""


class Waiters(TestCase):
    def wait_often(self, fd):
        """Lets many wait at the socket until the end of the test."""
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, before)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], min(before[1], 3 * NUMBER)), before[1]))
        duplicates = [os.dup(fd) for _ in range(NUMBER)]
        for duplicate in duplicates:
            self.addCleanup(os.close, duplicate)
        for _ in range(NUMBER):
            epoll = select.epoll()
            self.addCleanup(epoll.close)
            for duplicate in duplicates:
                epoll.register(duplicate)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_a_client_is_cut_off_and_its_user_barred(self):
        s = self.started()
        with user(STRANGER):
            greedy = s.connect()
        self.wait_often(greedy.socket.fileno())
        with self.assertRaises((EOFError, OSError)):
            for _ in range(100):
                greedy.call("GetInfo")
        self.assertIn("is cut off: too much waits at its socket", s.log())
        with user(STRANGER), self.assertRaises((EOFError, OSError)):
            s.call("GetInfo")
        self.assertEqual(s.call("GetInfo")["state"], "running")

    def test_the_output_of_a_worker_is_no_longer_read_and_its_group_gets_no_other(self):
        s = self.supervisor()
        worker = s.path("worker.py")
        Path(worker).write_text(WORKER, encoding="ascii")
        s.write("greedy.group", ini(f"{sys.executable} {worker}", Worker={"TimeoutStartSec": "infinity"}, Restart=QUICK,
                                    Resources={"LimitNOFILE": 3 * NUMBER}))
        s.spawn()
        self.wait_logged(s, "output is no longer read: too much waits at its socket")
        s.ctl("restart", "greedy", check=True)
        self.wait_logged(s, "could not be started: mailbox, as too much waited at sockets of its workers")


if __name__ == "__main__":
    unittest.main()
