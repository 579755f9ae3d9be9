# SPDX-License-Identifier: MIT
"""The loop waits with io_uring or epoll, and a successor may choose differently."""
import os
import signal
import unittest

from test_in_flight import copy_programs
from test_upgrade import install_script
from troupe import HAS_IO_URING, TestCase, actor, text


@unittest.skipUnless(HAS_IO_URING, "io_uring is not available here")
class Successors(TestCase):
    def with_loop(self, loop):
        """A supervisor with this loop, and the pid of its worker."""
        s = self.supervisor({"actor": actor()})
        s.environment["TROUPE_LOOP"] = loop
        copy_programs(s)
        s.start()
        self.assertEqual(s.call("GetInfo")["loop"], loop)
        return s, s.worker("actor/0")["pid"]

    def test_D10_workers_of_a_supervisor_with_epoll_go_on_under_one_with_io_uring(self):
        s, worker = self.with_loop("epoll")
        job, go = s.busy("actor")
        install_script(s, "export TROUPE_LOOP=io_uring")
        s.ctl("upgrade", check=True)
        info = s.call("GetInfo")
        self.assertEqual((info["loop"], info["wake"]), ("io_uring", "eventfd"))
        go.ring()
        self.assertEqual(s.wait_job(job)["result"], text("done"))
        self.assertEqual(s.do("actor", "echo a")["result"], text("a"))
        self.assertEqual(s.worker("actor/0")["pid"], worker)
        os.rename(s.path("real"), s.path("trouped-supervisor"))
        install_script(s, "export TROUPE_LOOP=epoll")  # and back
        s.ctl("upgrade", check=True)
        self.assertEqual(s.do("actor", "echo b")["result"], text("b"))
        self.assertEqual(s.worker("actor/0")["pid"], worker)
        self.assertEqual(s.call("GetInfo")["loop"], "epoll")

    def test_D11_an_upgrade_to_epoll_that_would_lose_workers_does_not_happen(self):
        s, worker = self.with_loop("io_uring")
        if s.call("GetInfo")["wake"] != "futex":
            self.skipTest("without futex operations in io_uring no worker would be lost")
        install_script(s, "export TROUPE_LOOP=epoll")
        self.assertEqual(s.ctl("upgrade").returncode, 1)
        self.assertIn("the workers are woken by futexes, which only io_uring can wait for", s.log())
        os.rename(s.path("real"), s.path("trouped-supervisor"))
        info = s.call("GetInfo")
        self.assertEqual((info["loop"], info["failed_upgrades"]), ("io_uring", 1))
        self.assertEqual(s.do("actor", "echo a")["result"], text("a"))
        self.assertEqual(s.worker("actor/0")["pid"], worker)

    def test_after_a_crash_epoll_replaces_the_workers_that_only_io_uring_can_wake(self):
        s = self.supervisor({"actor": actor()})
        copy_programs(s)
        install_script(s, f"[ -e {s.path('forbidden')} ] && export TROUPE_LOOP=epoll || export TROUPE_LOOP=io_uring")
        s.start()
        worker, futex = s.worker("actor/0")["pid"], s.call("GetInfo")["wake"] == "futex"
        with open(s.path("forbidden"), "wb"):
            pass
        os.kill(s.supervisor_pid, signal.SIGKILL)
        self.assertEqual(s.do("actor", "echo a")["result"], text("a"))
        self.assertEqual(s.call("GetInfo")["loop"], "epoll")
        self.assertEqual(s.worker("actor/0")["pid"] != worker, futex)
