# SPDX-License-Identifier: MIT
"""Bounds on descriptors, waiters and attempts, and what happens there."""
import array
import contextlib
import errno
import json
import os
import pwd
import resource
import socket
import subprocess
import unittest

from troupe import FAULTY_TROUPED, LIMIT, QUICK, SANITIZED, VERSION, TestCase, VarlinkError, actor, helper, ini, text, user

DESCRIPTORS = 256
LARGE = 40000  # above InlineMax: a descriptor each
HUGE = 300000  # too large to be kept without a descriptor
WAITERS_MAX = 65536


class Flood:
    """A client that sends many requests before it reads an answer."""

    def __init__(self, s, *arguments, **options):
        self.test = s.test
        self.process = subprocess.Popen([helper("flood"), s.socket_path, *map(str, arguments)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)
        s.test.addCleanup(self.end)
        self.answers = self.read()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            self.test.fail(f"flood ended with {self.process.wait()}")
        return json.loads(line)

    def take_ends(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        answers = self.read()
        self.test.assertEqual(self.process.wait(LIMIT), 0)
        return answers

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(LIMIT)


class Descriptors(TestCase):
    """Large payloads and results hold a descriptor each."""

    def few(self):
        resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))

    def with_few(self, groups):
        return self.supervisor(groups).start(preexec_fn=self.few)

    def finished(self, s):
        group = s.group("actor")
        return group if group["running"] + group["queued"] + group["waiting"] == 0 else None

    def kept(self, s, ids):
        kept = []
        for id in ids:
            try:
                s.job(id)
                kept.append(id)
            except VarlinkError as error:
                self.assertEqual(error.name, "NoSuchJob")
        return kept

    def test_large_results_beyond_the_limit_are_kept_as_bytes_and_cost_no_worker(self):
        s = self.with_few({"actor": actor(), "other": actor()})
        ids = [s.create("actor", f"blob {LARGE}") for _ in range(400)]
        self.assertEqual(len(s.wait_job(ids[-1])["result"]["data"]) * 3 // 4 // 100, LARGE // 100)
        group = s.until(lambda: self.finished(s))
        self.assertEqual((group["succeeded"], group["deaths"], group["retries"]), (400, 0, 0))
        self.assertEqual(s.worker("actor/0")["generation"], 1)
        kept = self.kept(s, ids)
        self.assertEqual(kept, ids[-len(kept):])
        self.assertEqual(len(kept), 400)  # beyond the limit their bytes are kept instead
        self.assertLess(len(s.fds()), DESCRIPTORS // 2)
        s.call("Restart", target="actor", wait=True)
        self.assertEqual(s.do("other", f"blob {LARGE}")["state"], "succeeded")

    def test_kept_results_make_room_for_new_large_payloads(self):
        s = self.with_few({"actor": actor()})
        ids = [s.create("actor", f"blob {LARGE}") for _ in range(200)]
        s.wait_job(ids[-1])
        self.assertEqual(Flood(s, "submit", "actor", 10, LARGE).take_ends()["succeeded"], 10)

    def test_huge_results_beyond_the_limit_cost_the_oldest_of_them(self):
        s = self.with_few({"actor": actor(Jobs={"ResultsMemoryMax": "1G"})})
        ids = [s.create("actor", f"blob {HUGE}") for _ in range(150)]
        s.wait_job(ids[-1])
        group = s.until(lambda: self.finished(s))
        self.assertEqual((group["succeeded"], group["deaths"], group["retries"]), (150, 0, 0))
        kept = self.kept(s, ids)
        self.assertEqual(kept, ids[-len(kept):])
        self.assertEqual(len(kept), DESCRIPTORS // 4)

    def test_huge_payloads_beyond_the_limit_are_refused_as_busy_and_the_others_are_done(self):
        s = self.with_few({"actor": actor(Jobs={"QueueMemoryMax": "1G"})})
        s.call("Pause", target="actor")
        flood = Flood(s, "submit", "actor", 150, HUGE)
        self.assertEqual((flood.answers["others"], flood.answers["busy"]), (0, 150 - DESCRIPTORS // 4))
        small = Flood(s, "submit", "actor", 150, LARGE)
        self.assertEqual((small.answers["others"], small.answers["busy"]), (0, 0))
        s.call("Resume", target="actor")
        self.assertEqual(flood.take_ends()["succeeded"], DESCRIPTORS // 4)
        self.assertEqual(small.take_ends()["succeeded"], 150)
        self.assertEqual(s.deaths(), [])

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_strangers_leave_descriptors_to_workers_and_to_who_may_change_something(self):
        s = self.supervisor({"actor": actor()}, conf="[Supervisor]\nClientsMax=10000\n").start(preexec_fn=self.few)
        crowd = []
        with user(65534):
            for _ in range(2 * DESCRIPTORS):
                crowd.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
                crowd[-1].connect(s.socket_path)
        try:
            self.assertEqual(s.call("GetInfo")["state"], "running")
            s.call("Restart", target="actor", wait=True)
            self.assertEqual(s.do("actor", "echo on")["result"], text("on"))
            self.assertIn("a client is turned away: Too many open files", s.log())
        finally:
            for stranger in crowd:
                stranger.close()

    def test_blobs_of_one_byte_in_eight_mailboxes_leave_descriptors_to_all_others(self):
        s = self.with_few({"culprit": ini(f"{helper('hostile')} blob-flood"), "neighbour": actor(),
                           "victim": ini(helper("workers/player"), Pool={"Size": 8})})
        before = len(s.fds())
        victims = [f"victim/{n}" for n in range(8)]
        for name in victims:
            s.call("io.troupe.Actors.Pause", actor=name)
        s.call("io.troupe.Actors.Ask", to="culprit/0", type="begin", timeout_usec=int(LIMIT * 1e6))
        waiting = [s.call("io.troupe.Actors.Lookup", name=name)["actor"]["waiting"] for name in victims]
        self.assertGreater(sum(waiting), DESCRIPTORS)
        self.assertEqual(s.worker("culprit/0")["generation"], 1)
        self.assertLess(len(s.fds()) - before, DESCRIPTORS // 2)
        os.kill(s.worker("neighbour/0")["pid"], 9)
        s.until(lambda: s.worker("neighbour/0")["generation"] == 2)
        self.assertEqual(s.do("neighbour", f"blob {LARGE}")["state"], "succeeded")
        crowd = [s.connect() for _ in range(DESCRIPTORS // 8)]
        self.assertEqual({client.call("GetInfo")["state"] for client in crowd}, {"running"})
        s.connect().call("Attach", version=VERSION)


@unittest.skipUnless(os.geteuid() == 0, "needs root")
class DescriptorsOnTheirWay(TestCase):
    """The kernel counts descriptors that a user's processes have sent and nobody has received."""

    USER = 10000 + os.getpid() % 50000  # its own: tests beside it would be counted, too

    def start_as_user(self):
        s = self.supervisor({"actor": actor()})
        os.chown(s.directory, self.USER, self.USER)
        os.chmod(os.path.join(s.directory, "notify"), 0o666)
        s.start(user=self.USER, group=self.USER, extra_groups=[],
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS)))
        return s

    @contextlib.contextmanager
    def too_many(self):
        """Within the block, another process of the user has as many in flight as the supervisor may have."""
        pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # No socket: the last close of a queue that holds itself leaves it to the kernel's collector, at some later time.
        null = os.open("/dev/null", os.O_RDONLY)
        rights = array.array("i", [null] * 200)
        os.setresuid(self.USER, self.USER, 0)
        try:
            for _ in range(DESCRIPTORS // len(rights) + 1):
                pair[1].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        finally:
            os.setresuid(0, 0, 0)
            os.close(null)
        try:
            yield
        finally:
            for one in pair:
                one.close()

    def test_an_attach_beyond_the_limit_says_why_and_the_next_one_succeeds(self):
        s = self.start_as_user()
        with self.too_many():
            message = self.refused("Internal", s.connect().call, "Attach", version=VERSION)["message"]
            self.assertIn("RLIMIT_NOFILE", message)
            with self.assertRaises(subprocess.CalledProcessError) as client:
                subprocess.run([helper("client"), s.socket_path, "large", "actor", "9"], capture_output=True, text=True,
                               timeout=LIMIT, check=True)
            self.assertEqual(client.exception.stderr, os.strerror(errno.EAGAIN) + "\n")
            map = s.ctl("map", "actor", input="echo x\n")
            self.assertEqual((map.returncode, map.stderr), (
                6, "troupectl: the supervisor is short of memory or descriptors (LimitNOFILE=), try again\n"))
        s.connect().call("Attach", version=VERSION)

    def test_a_worker_that_cannot_be_started_then_is_started_later(self):
        s = self.start_as_user()
        with self.too_many():
            os.kill(s.worker("actor/0")["pid"], 9)
            s.until(lambda: s.worker("actor/0")["generation"] == 2)
            self.assertEqual(s.worker("actor/0")["state"], "starting")
        self.assertEqual(s.do("actor", "echo on")["result"], text("on"))
        self.assertEqual((s.worker("actor/0")["generation"], len(s.deaths())), (2, 1))

    def test_a_large_payload_reaches_its_worker_later(self):
        s = self.start_as_user()
        with self.too_many():
            id = s.create("actor", "attempt\n\n" + "x" * LARGE)
            s.until(lambda: "handing over a job failed" in s.log())
        job = s.wait_job(id)
        self.assertEqual((job["state"], job["attempt"]), ("succeeded", 1))
        self.assertEqual(s.worker("actor/0")["generation"], 1)


class Waiters(TestCase):
    def test_a_client_that_watches_without_end_is_refused_as_busy_and_takes_no_more_memory(self):
        s = self.started({"actor": actor()})
        s.create("actor", "until-cancelled", id="long")
        before = s.status_field("VmRSS")
        flood = Flood(s, "watch", "long", 3 * WAITERS_MAX)
        self.assertEqual((flood.answers["busy"], flood.answers["others"]), (2 * WAITERS_MAX, 0))
        if not SANITIZED:
            self.assertLess(s.status_field("VmRSS") - before, WAITERS_MAX * 160 // 1024 + 2048)
        other = Flood(s, "watch", "long", 1)
        self.assertEqual(other.answers["busy"], 0)
        s.call("Cancel", id="long")
        self.assertEqual(flood.take_ends()["cancelled"], WAITERS_MAX)
        self.assertEqual(other.take_ends()["cancelled"], 1)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_all_clients_of_a_submitter_wait_for_as_many_jobs_as_four(self):
        s = self.started({"actor": actor(Group={"SubmitUser": "nobody"})})
        nobody = pwd.getpwnam("nobody").pw_uid
        with user(nobody):
            s.create("actor", "until-cancelled", id="long")
        before = s.status_field("VmRSS")
        floods = [Flood(s, "watch", "long", WAITERS_MAX, user=nobody, group=nobody, extra_groups=[]) for _ in range(5)]
        self.assertEqual([flood.answers["busy"] for flood in floods], [0] * 4 + [WAITERS_MAX])
        if not SANITIZED:
            self.assertLess(s.status_field("VmRSS") - before, 4 * WAITERS_MAX * 160 // 1024 + 8192)
        self.assertEqual(Flood(s, "watch", "long", 10).answers["busy"], 0)
        floods[0].end()
        s.until(lambda: Flood(s, "watch", "long", 10, user=nobody, group=nobody, extra_groups=[]).answers["busy"] == 0)

    def test_a_client_that_submits_without_taking_an_end_is_refused_as_busy(self):
        s = self.started({"actor": actor(Jobs={"QueueMax": 2 * WAITERS_MAX})})
        s.call("Pause", target="actor")
        flood = Flood(s, "submit", "actor", WAITERS_MAX + 1000, 8)
        self.assertEqual((flood.answers["busy"], flood.answers["others"]), (1000, 0))
        self.assertEqual(s.group("actor")["queued"], WAITERS_MAX)

    @unittest.skipIf(SANITIZED, "takes too long there")
    def test_a_client_that_takes_its_ends_may_go_on_for_ever(self):
        s = self.started({"actor": actor()})
        count = WAITERS_MAX + 5000
        process = subprocess.run([helper("chaos"), s.socket_path, "actor", str(count), "200"], capture_output=True,
                                 text=True, timeout=LIMIT, check=True)
        answers = json.loads(process.stdout)
        self.assertEqual((answers["succeeded"], answers["refused"]), (count, 0))


class HandOvers(TestCase):
    def test_a_hand_over_that_fails_is_no_attempt(self):
        # Two memories for the worker; then the payload's memory, which fails three times.
        s = self.started({"actor": actor()}, program=FAULTY_TROUPED,
                         environment={"TROUPE_FAULT": "memfd:3,memfd:3,memfd:3"})
        job = s.do("actor", "attempt\n\n" + "x" * LARGE, max_retries=0)
        self.assertEqual((job["state"], job["attempt"], job["result"]), ("succeeded", 1, text("1")))
        self.assertEqual(s.log().count("handing over a job failed"), 3)
        self.assertEqual(s.worker("actor/0")["generation"], 1)

    def test_a_result_that_cannot_be_received_is_lost_and_the_next_one_comes(self):
        s = self.started({"actor": actor()}, program=FAULTY_TROUPED, environment={"TROUPE_FAULT": "receive:1"})
        job = s.do("actor", f"blob {LARGE}", max_retries=1)
        self.assertEqual((job["state"], job["attempt"]), ("succeeded", 2))
        self.assertEqual(s.worker("actor/0")["generation"], 1)

    def test_a_job_for_which_a_hoarder_has_no_room_has_its_first_attempt_elsewhere(self):
        s = self.started({"culprit": ini(f"{helper('hostile')} hoard", Restart=QUICK,
                                         Worker={"MailboxSize": "16K", "InlineMax": "4K"})})
        for _ in range(30):
            job = s.do("culprit", "x" * 1000, max_retries=0)
            self.assertEqual((job["state"], job["attempt"]), ("succeeded", 1))
        self.assertIn("violation", [death["cause"] for death in s.deaths()])


class Ends(TestCase):
    """Many calls that wait for the end of a job have large answers."""

    def waiting(self, s, n, size):
        id, go = s.busy("actor", f"blob {size}")
        waiting = [s.connect() for _ in range(n)]
        for connection in waiting:
            connection.send("Wait", {"id": id})
        s.call("GetInfo")
        return waiting, go

    def assert_told(self, connections, size):
        for connection in connections:
            job = connection.reply()[0]["job"]
            self.assertEqual((job["state"], job["group"], len(job["result"]["data"])), ("succeeded", "actor", (size + 2) // 3 * 4))

    def test_they_are_answered_one_after_the_other(self):
        s = self.started({"actor": actor()})
        waiting, go = self.waiting(s, 150, 500000)
        go.ring()
        self.assert_told(waiting, 500000)
        self.assertLess(s.call("GetInfo")["longest_turn_usec"], 1000000)  # all at once take several times as long

    def test_they_are_all_answered_when_the_supervisor_ends(self):
        s = self.started({"actor": actor()})
        waiting, go = self.waiting(s, 30, 500000)
        go.ring()
        self.assert_told(waiting[:1], 500000)
        s.terminate()
        self.assert_told(waiting[1:], 500000)
        self.assertEqual(s.wait_end(), 0)
