# SPDX-License-Identifier: MIT
"""Workers and clients that misuse shared memory end; everything else continues."""
import ctypes
import mmap
import os
import random
import socket
import unittest

from troupe import ACTOR, HAS_IO_URING, QUICK, TestCase, VERSION, Varlink, helper, ini, text

VIOLATIONS = ("scribble", "wild-tail", "crooked-tail", "long-record", "huge-record", "unknown-kind",
              "short-record", "ready-twice", "crash-twice", "odd-signal", "stray-blob", "odd-descriptor", "soft-blob", "two-descriptors")


def hostile(how, **sections):
    return ini(f"{helper('hostile')} {how}", **{"Restart": QUICK, "Jobs": {"BackoffMinSec": "1ms"}, **sections})


class Workers(TestCase):
    def beside(self, how, wake, **sections):
        """A supervisor with the culprit and an honest group."""
        return self.started({"culprit": hostile(how, **sections), "honest": ini(ACTOR, Pool={"Size": 2})},
                            options=["--wake", wake])

    def honest_work(self, s):
        for i in range(20):
            self.assertEqual(s.do("honest", f"echo {i}")["result"], text(str(i)))
        self.assertEqual([w["generation"] for w in s.group("honest")["workers"]], [1, 1])

    def is_ended(self, how, wake):
        s = self.beside(how, wake)
        fds = s.n_fds_between_turns()
        job = s.do("culprit", "x", max_retries=1)
        self.assertEqual((job["state"], job["attempt"]), ("dead", 2))
        self.honest_work(s)
        causes = {(death["worker"], death["cause"]) for death in s.deaths() if "command" not in death}
        self.assertEqual(causes, {("culprit/0", "violation")})
        lines = [line for line in s.log().splitlines() if "culprit/0" in line and "violat" in line.lower()]
        self.assertTrue(lines, s.log())
        s.wait_worker("culprit/0", "idle")
        s.until(lambda: len(s.fds()) <= fds)
        s.stop()

    def test_an_answer_of_the_past_is_dropped_and_counted_not_punished(self):
        s = self.beside("stale", "futex")
        for _ in range(3):
            self.assertEqual(s.do("culprit", "x")["result"], text("right"))
        self.assertEqual(s.worker("culprit/0")["generation"], 1)
        self.honest_work(s)

    def test_a_torn_state_page_is_told_as_missing(self):
        s = self.beside("torn-state", "futex")
        self.assertEqual(s.do("culprit", "x")["result"], text("torn"))
        self.assertEqual(s.worker("culprit/0")["generation"], 1)
        s.call("GetStatus")
        self.honest_work(s)

    def test_a_flood_starves_nobody_and_ends_with_its_job(self):
        for wake in "futex", "eventfd":
            with self.subTest(wake=wake):
                s = self.beside("flood", wake)
                with Varlink(s.socket_path) as asker:
                    asker.send("Do", {"group": "culprit", "options": {"id": "f", "max_retries": 0,
                                                                      "timeout_usec": 500000}})
                    self.honest_work(s)
                    self.assertEqual(asker.reply()[0]["job"]["state"], "dead")
                self.honest_work(s)
                s.stop()

    def test_one_that_reads_nothing_is_ended_by_its_time_out(self):
        s = self.beside("mute", "futex")
        job = s.do("culprit", "x", timeout_usec=50000, max_retries=1)
        self.assertEqual((job["state"], job["attempt"]), ("dead", 2))
        self.honest_work(s)

    def test_one_that_lies_about_what_it_has_read_is_ended_when_its_inbox_seems_full(self):
        for how in "wild-head", "hoard":
            with self.subTest(how=how):
                s = self.beside(how, "futex", Worker={"MailboxSize": "16K", "InlineMax": "4K"})
                for _ in range(20):
                    s.do("culprit", "x" * 1000)
                self.assertIn("violation", [death["cause"] for death in s.deaths()])
                self.honest_work(s)
                s.stop()

    def test_one_that_plays_dead_is_killed_and_reported_as_a_violation(self):
        s = self.beside("play-dead", "futex")
        if s.call("GetInfo")["wake"] != "futex":
            self.skipTest("without futex operations in io_uring a death is known by the end of the process alone")
        job = s.do("culprit", "x", max_retries=1)
        self.assertEqual((job["state"], job["attempt"]), ("dead", 2))
        event = s.wait_event("worker.lost", "culprit/0", 2)
        self.assertEqual(event["job"], job["id"])
        self.assertEqual([(death["cause"], death["detail"]) for death in s.deaths()],
                         [("violation", "broke the protocol: marked itself as dead while it ran")] * 2)
        self.honest_work(s)

    def test_what_wakes_for_one_that_is_gone_finds_nobody(self):
        keyed = {"Pool": {"Cells": "by-key", "CellIdleSec": "1ms"}}
        for sections, wake in ({}, "futex"), (keyed, "futex"), ({}, "eventfd"):
            with self.subTest(sections=sections, wake=wake):
                s = self.beside("haunt", wake, **sections)
                for i in range(5):
                    key = {"key": f"k{i}"} if sections else {}
                    job = s.do("culprit", "x", max_retries=1, **key)
                    self.assertEqual((job["state"], job["attempt"]), ("dead", 2))
                    self.honest_work(s)
                s.stop()

    def test_one_that_only_tugs_at_its_lifeline_goes_on(self):
        s = self.beside("nervous", "futex")
        for _ in range(3):
            self.assertEqual(s.do("culprit", "x")["result"], text("alive"))
        self.assertEqual(s.worker("culprit/0")["generation"], 1)
        self.honest_work(s)

    def swallows(self, loop, wake):
        s = self.started({"culprit": hostile("swallow", Jobs={"MaxRetries": 0}), "honest": ini(ACTOR, Pool={"Size": 2})},
                         options=["--loop", loop, "--wake", wake])
        if s.do("culprit", "x")["result"] != text("swallows"):
            self.skipTest("userfaultfd is not allowed")
        job = s.create("culprit", "x", timeout_usec=1000000)
        self.honest_work(s)
        self.assertEqual(s.wait_job(job)["state"], "dead")
        self.honest_work(s)
        s.stop()

    def test_one_whose_read_of_a_wake_up_never_ends_delays_nobody_epoll(self):
        self.swallows("epoll", "eventfd")

    @unittest.skipUnless(HAS_IO_URING, "io_uring is not available here")
    def test_one_whose_read_of_a_wake_up_never_ends_delays_nobody_io_uring(self):
        for wake in "futex", "eventfd":
            with self.subTest(wake=wake):
                self.swallows("io_uring", wake)

    def test_one_that_closes_its_control_socket_harms_itself_only(self):
        s = self.beside("hang-up", "futex", Worker={"InlineMax": "4K"})
        s.do("culprit", "x", max_retries=1)
        s.do("culprit", "x" * 100000, max_retries=1)
        self.honest_work(s)


def add_violations():
    for how in VIOLATIONS:
        for wake in "futex", "eventfd":
            def test(self, how=how, wake=wake):
                self.is_ended(how, wake)
            setattr(Workers, f"test_{how.replace('-', '_')}_ends_the_culprit_alone_{wake}", test)


add_violations()


# Offsets in the outbox: shared/ring/memory.h.
TAIL, HEAD, BELL, RING = 64, 384, 704, 16384


def futex_wake(buffer, offset):
    word = ctypes.addressof(ctypes.c_char.from_buffer(buffer, offset))
    ctypes.CDLL(None, use_errno=True).syscall(202, ctypes.c_void_p(word), 1, 2147483647, None, None, 0)


class Clients(TestCase):
    """The same for clients, through the rings of the fast path."""

    def attach(self, s):
        """The connection and its descriptors: inbox, outbox, control, the socket that wakes it, and with that back end an eventfd."""
        connection = Varlink(s.socket_path)
        connection.send("Attach", {"version": VERSION})
        fds = []
        while b"\0" not in connection.buffer:
            data, new, _, _ = socket.recv_fds(connection.socket, 65536, 8)
            fds += new
            if not data:
                break
            connection.buffer += data
        connection.reply()
        return connection, fds

    def scribble(self, s, seed):
        random_bytes = random.Random(seed)
        connection, fds = self.attach(s)
        try:
            size = os.fstat(fds[1]).st_size
            with mmap.mmap(fds[1], size) as outbox:
                if seed == 0:
                    outbox[64:size] = b"\xff" * (size - 64)
                else:
                    for offset in TAIL, HEAD:
                        outbox[offset:offset + 4] = random_bytes.randbytes(4)
                    outbox[RING:RING + 512] = random_bytes.randbytes(512)
                outbox[BELL:BELL + 4] = b"\1\2\3\4"
                futex_wake(outbox, BELL)
            for fd in fds[4:]:
                os.eventfd_write(fd, 1)
            with self.assertRaises((EOFError, ConnectionError)):
                while True:
                    connection.receive()
        finally:
            connection.close()
            for fd in fds:
                os.close(fd)

    def test_a_client_that_scribbles_is_cut_off_and_nobody_else_notices(self):
        s = self.started({"actor": ini(ACTOR)})
        s.do("actor", "echo")
        before = s.n_fds_between_turns()
        for seed in range(10):
            with self.subTest(seed=seed):
                self.scribble(s, seed)
                self.assertEqual(s.do("actor", "echo on")["result"], text("on"))
        s.until(lambda: len(s.fds()) <= before)

    def test_clients_that_attach_and_vanish_leave_nothing(self):
        s = self.started({"actor": ini(ACTOR)})
        s.do("actor", "echo")
        before = s.n_fds_between_turns()
        for _ in range(30):
            connection, fds = self.attach(s)
            connection.close()
            for fd in fds:
                os.close(fd)
        s.until(lambda: len(s.fds()) <= before)

    def test_a_version_that_is_not_known_is_refused(self):
        s = self.started({"actor": ini(ACTOR)})
        self.refused("BadVersion", s.call, "Attach", version=999)
