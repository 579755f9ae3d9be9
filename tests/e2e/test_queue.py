# SPDX-License-Identifier: MIT
"""Order, delay and room: priorities, delayed jobs, and senders that wait."""
import errno
import json
import os
import subprocess
import time
import unittest

from troupe import ACTOR, Bell, LIMIT, QUICK, SANITIZED, TROUPECTL, TestCase, Varlink, end_process, helper, ini, limit, text

HOUR = 3600 * 1000000
KIB, MIB = 1024, 1024 * 1024
JOB_OVERHEAD = 2 * KIB  # of a queued job beside its payload, as troupe.group(5) says


def actor(size=1, **sections):
    return ini(ACTOR, Pool={"Size": size}, **{"Restart": QUICK, **sections})


class Case(TestCase):
    def client(self, s, command, *arguments):
        process = subprocess.Popen([helper("client"), s.socket_path, command, "actor", *map(str, arguments)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(end_process, process)
        return process

    def answers(self, process):
        out, error = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 0, error)
        return json.loads(out)

    def wait_senders(self, s, count):
        s.until(lambda: s.group("actor")["senders"] == count)


class Order(Case):
    def setUp(self):
        self.s = self.started({"actor": actor()})

    def test_what_cannot_be_is_refused(self):
        far = int(time.time() * 1e6) + 400 * 24 * HOUR
        for options in ({"priority": 64}, {"priority": -1}, {"delay_usec": -1}, {"delay_usec": 400 * 24 * HOUR},
                        {"at": far}, {"at": -5}, {"wait_usec": -2}, {"at": 1, "delay_usec": 1}):
            wrong = self.refused("BadOption", self.s.create, "actor", "echo", **options)
            self.assertIn(wrong["option"], options)
            self.assertTrue(wrong["allowed"])
        for options in (["--priority=64"], ["--delay=soon"], ["--at=25:00"], ["--at", "2026-02-30 10:00"], ["--wait=x"],
                        ["--delay=1h", "--at=12:00"]):
            for verb in "create", "do":
                answer = self.s.ctl(verb, "actor", "-d", "echo", *options)
                self.assertEqual((answer.returncode, answer.stdout), (2, ""), (options, answer.stderr))
        self.assertEqual(self.s.group("actor")["refused"], 0)
        self.assertEqual(self.s.call("List", group="actor", ended=True)["jobs"], [])


class Later(Case):
    def setUp(self):
        self.s = self.started({"actor": actor(Jobs={"QueueMax": 3})})

    def test_a_delayed_job_is_begun_when_its_time_has_come(self):
        before = time.time() * 1e6
        job = self.s.do("actor", "echo later", delay_usec=50000)
        self.assertEqual((job["state"], job["attempt"]), ("succeeded", 1))
        self.assertGreaterEqual(job["started_at"], before + 50000)
        self.assertNotIn("p99_usec", self.s.group("actor"), "the delay was the sender's")
        self.s.do("actor", "echo now")
        self.assertGreater(self.s.group("actor")["p99_usec"], 0)

    def test_it_shows_as_delayed_until_then_and_can_be_cancelled(self):
        date = int(time.time() * 1e6) + HOUR
        for name in "a", "b":
            self.s.create("actor", "echo", id=name, at=date)
        self.assertEqual((self.s.job("a")["state"], self.s.job("a")["next_attempt_at"]), ("delayed", date))
        self.assertEqual(self.s.group("actor")["waiting"], 2)
        self.s.call("Cancel", id="a")
        self.assertEqual(self.s.wait_job("a")["state"], "cancelled")
        self.assertIn("delayed", self.s.ctl("jobs", "actor", check=True).stdout)

    def test_a_stopping_supervisor_cancels_them(self):
        with Varlink(self.s.socket_path) as waiting:
            waiting.send("Do", {"group": "actor", "payload": text("echo"), "options": {"delay_usec": HOUR}}, more=True)
            self.assertEqual(waiting.reply()[0]["job"]["state"], "delayed")
            self.s.stop()
            self.assertEqual(waiting.reply()[0]["job"]["state"], "cancelled")
        self.assertIn("actor: 1 job that waited is cancelled", self.s.log())

    def in_hand_at_a_stop(self, count, **pool):
        """The log of a supervisor that stopped with so many jobs in hand and two waiting."""
        s = self.started({"actor": ini(ACTOR, Pool=pool, Jobs={"TimeoutSec": "1h"}, Worker={"TimeoutStopSec": "100ms"})})
        never = Bell(s, "never")
        for i in range(count):
            s.create("actor", f"wait {never.path}", id=f"hand-{i}")
        s.until(lambda: s.group("actor")["running"] == count)
        for i in range(2):
            s.create("actor", "echo", id=f"queued-{i}")
        s.stop()
        return s.log()

    def test_a_stop_logs_which_jobs_are_in_hand_and_how_many_waited(self):
        log = self.in_hand_at_a_stop(2, Size=2)
        self.assertIn("actor: 2 jobs that waited are cancelled: the supervisor is stopping", log)
        in_hand = [line for line in log.splitlines() if "actor: in hand; not retried" in line]
        self.assertEqual([set(line.split()[-2:]) for line in in_hand], [{"hand-0", "hand-1"}])
        cut_off = [line for line in log.splitlines() if "actor: cancelled: the attempt failed" in line]
        self.assertEqual([set(line.split()[-2:]) for line in cut_off], [{"hand-0", "hand-1"}])

    def test_a_stop_with_very_many_jobs_in_hand_is_a_few_lines(self):
        log = self.in_hand_at_a_stop(192, Size=3, Prefetch=64)
        for what in "in hand; not retried", "cancelled: the attempt failed":
            lines = [line for line in log.splitlines() if "actor: " + what in line]
            self.assertEqual(len(lines), 9)
            self.assertEqual(sum(line.count(" hand-") for line in lines), 128)
            self.assertTrue(lines[-1].endswith(": 64 more"), lines[-1])

    def test_jobs_of_a_group_that_a_reload_removes_end_with_that_reason(self):
        s = self.started({"actor": actor(), "other": actor()})
        s.call("Stop", target="actor", wait=True)
        with Varlink(s.socket_path) as waiting:
            waiting.send("Do", {"group": "actor", "payload": text("echo")}, more=True)
            self.assertEqual(waiting.reply()[0]["job"]["state"], "queued")
            os.unlink(os.path.join(s.config, "actor.group"))
            s.call("Reload")
            job = waiting.reply()[0]["job"]
        self.assertEqual((job["state"], job["reason"]), ("cancelled", "the group was removed by a reload"))
        self.assertEqual((job["cause"], job["cancel_requested"]), ("group", False))
        s.until(lambda: "actor: 1 job that waited is cancelled: the group was removed by a reload" in s.log())

    def test_a_reload_brings_a_group_back_once_the_jobs_of_the_removed_one_have_ended(self):
        s = self.supervisor({"actor": actor(), "other": actor()})
        fault = s.write("../fault", "closing:1+")  # while it exists, no job is ended
        s.with_faults(f"@{fault}").start()
        s.call("Stop", target="actor", wait=True)
        id = s.create("actor", "echo")
        os.unlink(os.path.join(s.config, "actor.group"))
        s.call("Reload")
        s.write("actor.group", actor())
        with Varlink(s.socket_path) as reload:
            reload.send("Reload")
            s.call("GetInfo")
            self.assertEqual((s.group("actor")["state"], s.job(id)["state"]), ("draining", "queued"))
            os.unlink(fault)
            reload.reply()
        self.assertEqual(s.do("actor", "echo")["state"], "succeeded")
        s.until(lambda: "actor: 1 job that waited is cancelled: the group was removed by a reload" in s.log())

    def test_troupectl_takes_all_of_it(self):
        create = ["create", "actor", "-d", "echo"]
        self.s.ctl(*create, "--id=a", "--delay=1h", "--priority", "5", check=True)
        self.s.ctl(*create, "--id=b", "--at", f"@{int(time.time()) + 3600}", check=True)
        self.s.ctl(*create, "--id=c", "--at=23:59:59", "-p0", check=True)
        self.assertEqual({self.s.job(name)["state"] for name in "abc"}, {"delayed"})
        answer = self.s.ctl(*create, "--wait=10ms")
        self.assertEqual(answer.returncode, 6, answer.stderr)
        self.s.call("Cancel", id="a")
        self.s.ctl(*create, "--wait", "--id=d", check=True)
        self.assertEqual(self.s.wait_job("d")["state"], "succeeded")


class Room(Case):
    """QueueMax=2, with no job at work until the group is resumed."""

    def setUp(self):
        self.s = self.started({"actor": actor(Jobs={"QueueMax": 2})})
        self.s.call("Pause", target="actor")
        self.s.create("actor", "echo", id="x")
        self.s.create("actor", "echo", id="y")

    def waiting(self, **options):
        """A connection whose Create waits for room."""
        before = self.s.group("actor")["senders"]
        connection = self.s.connect()
        connection.send("Create", {"group": "actor", "payload": text("echo"),
                                   "options": {"wait_usec": HOUR, **options}})
        self.wait_senders(self.s, before + 1)
        return connection

    def test_a_sender_that_does_not_wait_is_told_busy(self):
        self.refused("Busy", self.s.create, "actor", "echo")
        self.assertEqual(self.answers(self.client(self.s, "push", 3, 8, 0)), {"accepted": 0, "busy": 3, "others": 0})
        self.assertEqual(self.s.group("actor")["refused"], 4)

    def test_who_can_never_fit_any_more_is_told_at_once_and_holds_up_nobody(self):
        s = self.started({"actor": actor(Jobs={"QueueMax": 2, "QueueMemoryMax": "100K"})})
        s.call("Pause", target="actor")
        for id in "x", "y":
            s.create("actor", "echo", id=id)
        connections = [s.connect() for _ in range(2)]
        for number, (connection, payload) in enumerate(zip(connections, (text("x" * 60000), text("echo")))):
            connection.send("Create", {"group": "actor", "payload": payload, "options": {"wait_usec": HOUR}})
            self.wait_senders(s, number + 1)
        s.write("actor.group", actor(Jobs={"QueueMax": 3, "QueueMemoryMax": "50K"}))
        s.call("Reload")
        self.refused("BadPayload", connections[0].reply)
        self.assertIn("id", connections[1].reply()[0])

    def test_senders_of_either_kind_get_the_room_in_the_order_they_came(self):
        first = self.waiting(id="first")
        second = self.client(self.s, "push", 1, 8, -1)
        self.wait_senders(self.s, 2)
        third = self.waiting(id="third")
        self.s.call("Cancel", id="x")
        self.assertEqual(first.reply()[0]["id"], "first")
        self.assertIsNone(second.poll())
        self.s.call("Cancel", id="y")
        self.assertEqual(self.answers(second)["accepted"], 1)
        self.s.call("Cancel", id="first")
        self.assertEqual(third.reply()[0]["id"], "third")
        self.wait_senders(self.s, 0)

    def test_large_payloads_wait_as_well(self):
        sender = self.client(self.s, "push", 3, 200000, -1)
        self.wait_senders(self.s, 1)
        self.s.call("Resume", target="actor")
        self.assertEqual(self.answers(sender), {"accepted": 3, "busy": 0, "others": 0})

    def test_a_stopping_supervisor_lets_them_go(self):
        connection, sender = self.waiting(), self.client(self.s, "push", 1, 8, -1)
        self.wait_senders(self.s, 2)
        self.s.stop()
        self.assertEqual(connection.receive()["error"].rpartition(".")[2], "Stopping")
        self.assertEqual(self.answers(sender)["others"], 1)

    def test_a_cancel_passes_the_submits_that_wait_before_it(self):
        process = self.client(self.s, "recall", "-", "x", "nobody")
        self.assertEqual(process.communicate(timeout=LIMIT)[0].split(), ["0", str(errno.ESRCH)])
        self.assertEqual(self.s.job("x")["state"], "cancelled")

    def test_a_cancel_does_not_pass_the_submit_of_its_own_job(self):
        process = self.client(self.s, "recall", "late", "late")
        self.wait_senders(self.s, 1)
        for name in "x", "y":
            self.s.call("Cancel", id=name)
        self.s.until(lambda: self.s.group("actor")["queued"] == 2 and self.s.group("actor")["senders"] == 1)
        self.assertIsNone(process.poll())
        self.s.call("Cancel", id=self.s.call("List", group="actor")["jobs"][0]["id"])
        self.assertEqual(process.communicate(timeout=LIMIT)[0].split(), ["0"])

    def test_map_waits_for_room(self):
        self.s.call("Resume", target="actor")
        lines = "".join(f"echo {i}\n" for i in range(500))
        answer = self.s.ctl("map", "actor", "--wait", "--window=64", input=lines, check=True)
        self.assertEqual(answer.stdout.split(), [str(i) for i in range(500)])

    def test_do_waits_for_room_and_then_for_the_end(self):
        process = subprocess.Popen([TROUPECTL, "--socket", self.s.socket_path, "do", "actor", "--wait", "-d", "echo z"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(end_process, process)
        self.wait_senders(self.s, 1)
        self.s.call("Resume", target="actor")
        out, error = process.communicate(timeout=LIMIT)
        self.assertEqual((process.returncode, out), (0, "z"), error)


class Memory(Case):
    """The bound: QueueMemoryMax=, JOB_OVERHEAD for each of QueueMax=, and the daemon's own memory."""
    QUEUE, SIZE, SLACK = 4000, 2000, 4 * MIB

    def bounded(self, s, before):
        growth = (s.status_field("VmRSS") - before) * KIB
        self.assertLess(growth, 8 * MIB + self.QUEUE * JOB_OVERHEAD + self.SLACK)

    def start_it(self):
        s = self.started({"actor": actor(Jobs={"QueueMax": self.QUEUE, "QueueMemoryMax": "8M", "ResultsMax": 0})})
        return s, s.status_field("VmRSS")

    @limit(180)
    @unittest.skipIf(SANITIZED, "a sanitizer keeps what was freed")
    def test_a_client_that_pushes_on_though_told_busy_costs_no_more_than_the_bound(self):
        s, before = self.start_it()
        s.call("Pause", target="actor")
        answers = self.answers(self.client(s, "push", 50000, self.SIZE, 0))
        self.assertEqual((answers["accepted"], answers["busy"]), (self.QUEUE, 50000 - self.QUEUE))
        self.bounded(s, before)

    @limit(180)
    @unittest.skipIf(SANITIZED, "a sanitizer keeps what was freed")
    def test_a_client_that_waits_for_room_costs_no_more_than_the_bound(self):
        s, before = self.start_it()
        s.call("Pause", target="actor")
        sender = self.client(s, "push", 50000, self.SIZE, -1)
        self.wait_senders(s, 1)
        self.assertEqual(s.group("actor")["queued"], self.QUEUE)
        self.bounded(s, before)
        s.call("Resume", target="actor")
        self.assertEqual(self.answers(sender), {"accepted": 50000, "busy": 0, "others": 0})
        self.bounded(s, before)
