# SPDX-License-Identifier: MIT
"""What is known of jobs outlives the supervisor, in each way of taking over: after a crash, and by an upgrade."""
import contextlib
import os
import signal
import unittest
from pathlib import Path

from test_life import actor
from troupe import Bell, FAULTY_TROUPED, LIMIT, TestCase, VarlinkError, ended

HOUR = 3600000000


def upgrade(s):
    s.ctl("upgrade", check=True)


def crash(s):
    s.crash()
    s.call("Reload")  # so that three crashes do not lead to safe mode


class JobsInHand(TestCase):
    def started_job(self, s, group="actor", first="", **options):
        """A job that a worker has begun, and that goes on until its bell rings; it ignores a request to cancel it."""
        begun, self.go = Bell(s, "begun"), Bell(s, "go")
        id = s.create(group, f"{first}ring {begun.path}\nwait {self.go.path}\necho done", **options)
        begun.wait()
        s.until(lambda: s.job(id).get("started_at"))
        return id

    def shown(self, s, id):
        """What outlives a crash, which loses the payload."""
        job = s.job(id)
        for field in "payload_start", "payload_bytes":
            job.pop(field, None)
        return job

    def test_all_that_is_shown_of_a_job_in_hand_stays_as_it_is(self):
        group = actor(Jobs={"MaxRetries": 3, "BackoffMinSec": "1ms"})
        for takeover in upgrade, crash:
            s = self.started({"actor": group})
            id = self.started_job(s, priority=7, key="some key", max_retries=4, deadline_usec=HOUR, timeout_usec=HOUR)
            before = self.shown(s, id)
            for next_takeover in takeover, takeover, upgrade, crash, upgrade:
                next_takeover(s)
                self.assertEqual(self.shown(s, id), before)
            self.go.ring()
            after = s.wait_job(id)
            self.assertEqual(after["state"], "succeeded")
            for field in "created_at", "started_at", "priority", "key", "max_attempts", "attempt":
                self.assertEqual(after[field], before[field])

    def test_an_attempt_that_failed_before_a_crash_still_counts(self):
        s = self.started({"actor": actor(Jobs={"MaxRetries": 1, "BackoffMinSec": "1ms"})})
        id = self.started_job(s, first="before 2 exit 1\n")
        s.crash()
        self.assertEqual((s.job(id)["attempt"], s.job(id)["failed_attempts"]), (2, 1))
        self.go.ring()
        self.assertEqual(s.wait_job(id)["failed_attempts"], 1)

    def test_a_request_to_cancel_is_enforced_by_the_next_supervisor(self):
        group = actor(Worker={"TimeoutStopSec": "1s"})
        for takeover in upgrade, crash:
            s = self.started({"actor": group})
            id = self.started_job(s)
            s.call("Cancel", id=id)
            takeover(s)
            self.assertTrue(s.job(id)["cancel_requested"])
            self.refused("CancelAlreadyRequested", s.call, "Cancel", id=id)
            ended = s.wait_job(id)
            self.assertEqual((ended["state"], ended["cause"]), ("cancelled", "requested"))

    def test_so_is_a_deadline_that_is_over(self):
        group = actor(Worker={"TimeoutStopSec": "1s"})
        for takeover in upgrade, crash:
            s = self.started({"actor": group})
            id = self.started_job(s, deadline_usec=300000)
            s.until(lambda: s.job(id)["cancel_requested"])
            takeover(s)
            ended = s.wait_job(id)
            self.assertEqual((ended["state"], ended["cause"]), ("cancelled", "deadline"))

    def test_and_one_that_was_not_over_yet(self):
        group = actor(Worker={"TimeoutStopSec": "1s"})
        for takeover in upgrade, crash:
            s = self.started({"actor": group})
            id = self.started_job(s, deadline_usec=1000000)
            takeover(s)
            ended = s.wait_job(id)
            self.assertEqual((ended["state"], ended["cause"]), ("cancelled", "deadline"))

    def test_a_time_out_goes_on_across_takeovers(self):
        for takeover in upgrade, crash:
            s = self.started({"actor": actor(Jobs={"MaxRetries": 0})})
            id = self.started_job(s, timeout_usec=1500000)
            while s.job(id)["state"] == "running":
                takeover(s)
            ended = s.wait_job(id)
            self.assertEqual((ended["state"], ended["attempts"][-1]["cause"]), ("dead", "job_timeout"))
            self.assertLess(ended["ended_at"] - ended["started_at"], 5000000)

    def test_a_group_whose_jobs_make_no_progress_is_watched_by_the_next_supervisor(self):
        group = actor(Jobs={"NoProgressSec": "1s", "MaxRetries": 0})
        for takeover in upgrade, crash:
            s = self.started({"actor": group})
            id = self.started_job(s)
            takeover(s)
            ended = s.wait_job(id)
            self.assertEqual((ended["state"], ended["attempts"][-1]["cause"]), ("dead", "no_progress"))

    def test_a_plain_job_whose_worker_dies_after_a_crash_is_dead_and_not_tried_again_without_its_payload(self):
        s = self.started({"actor": actor(Jobs={"MaxRetries": 5, "BackoffMinSec": "1ms"})})
        id = self.started_job(s)
        s.crash()
        os.kill(s.worker("actor/0")["pid"], signal.SIGKILL)
        ended = s.wait_job(id)
        self.assertEqual((ended["state"], ended["cause"], ended["attempt"]), ("dead", "payload_lost", 1))

    @unittest.skipUnless(os.path.exists(FAULTY_TROUPED), "no build with fault points")
    def test_D4_the_number_of_an_attempt_is_not_used_again_if_supervisor_and_worker_die_before_its_start_is_on_disk(self):
        s = self.supervisor({"actor": actor(Jobs={"Durable": "yes"}, Worker={"TimeoutStopSec": "1h"})},
                            program=FAULTY_TROUPED, state=True)
        s.environment["TROUPE_FAULT_POINT"] = "@" + s.path("point")
        s.start()
        begun, go = Bell(s, "begun"), Bell(s, "go")
        Path(s.path("point")).write_text("job.started:1", encoding="ascii")
        crash(s)
        supervisor = os.pidfd_open(s.supervisor_pid)
        with contextlib.suppress(ConnectionError, EOFError, VarlinkError):  # the call is repeated
            s.create("actor", f"ring {begun.path}\nwait {go.path}\necho done", id="mine")
        begun.wait()
        self.assertTrue(ended(supervisor, LIMIT))
        worker = os.pidfd_open(s.worker("actor/0")["pid"])
        s.call("Restart", target="actor")
        s.until(lambda: s.worker("actor/0")["state"] == "stopping")
        with self.without_supervisor(s):
            signal.pidfd_send_signal(worker, signal.SIGKILL)
            self.assertTrue(ended(worker, LIMIT))
        for fd in supervisor, worker:
            os.close(fd)
        go.ring()
        job = s.wait_job("mine")
        # Whether the first one counts as failed depends on whether its start came to the disk in time.
        self.assertEqual((job["state"], job["attempt"]), ("succeeded", 2))
