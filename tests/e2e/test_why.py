# SPDX-License-Identifier: MIT
"""Why something waits: a test for each cause there is."""
import contextlib
import os
import re
import signal
import sqlite3
import unittest
from pathlib import Path

from troupe import ACTOR, LIMIT, QUICK, Bell, TestCase, Varlink, VarlinkError, actor, ini, text

# A worker that is asked to end is not killed before the test has looked at it.
PATIENT = {"TimeoutStopSec": "infinity"}
SLOW = {"MinSec": "1h", "MaxSec": "1h", "Random": 0}


class Why(TestCase):
    JOBS = "io.troupe.Jobs."

    def waits(self, s, target=None, job=None):
        """(cause, target) of each reason."""
        waits = s.call("Explain", target=target)["waits"] if target else s.call(self.JOBS + "Explain", id=job)["waits"]
        return [(wait["cause"], wait["target"]) for wait in waits]

    def causes(self, s, target=None, job=None):
        """The same of a state that lasts; and what troupectl says of them."""
        waits = self.waits(s, target, job)
        self.said = s.ctl("why", target or job, check=True).stdout
        # Below the reasons stands the last failure of a group in trouble.
        self.assertEqual(len(re.findall(r"(?m)^\S", self.said)), max(1, len(waits)))
        self.assertNotIn("{", self.said)
        return waits

    def endless(self, s):
        if not os.path.exists(s.path("never")):
            Bell(s, "never")
        return f"wait {s.path('never')}\necho"

    def busy(self, s, group="actor", **options):
        """A job in a worker's hand that does not end."""
        id = s.create(group, self.endless(s), **options)
        s.until(lambda: s.job(id).get("started_at"))
        return id

    def test_M7_nothing_waits(self):
        s = self.started({"actor": actor()})
        self.assertEqual(self.causes(s, "actor"), [])
        self.assertEqual(self.said, "nothing: it is up\n")
        s.create("actor", "echo", id="done")
        s.wait_job("done")
        self.assertEqual(self.causes(s, job="done"), [])
        self.assertEqual(self.said, "● done: succeeded\n")
        self.assertEqual(s.ctl("why", "nobody").returncode, 5)
        self.assertEqual(s.ctl("why", "actor/7").returncode, 5)

    def test_M7_a_service_that_is_up_says_what_it_waits_for(self):
        speak = "import os, signal, socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(" \
                "b'READY=1\\nSTATUS=waits for the mains', os.environ['NOTIFY_SOCKET']); signal.pause()"
        s = self.supervisor()
        s.write("web.group", ini(f"/usr/bin/python3 {s.write('speak.py', speak)}", Group={"Type": "notify"}))
        s.start()
        s.until(lambda: s.worker("web/0").get("status"))
        for target in "web", "web/0":
            self.assertEqual(s.ctl("why", target).stdout, "nothing: it is up\nweb/0 says: waits for the mains\n")

    def test_M7_paused(self):
        s = self.started({"actor": actor(), "mail": actor(Pool={"Cells": "by-key"})})
        s.call("Pause", target="actor")
        s.create("actor", "echo", id="job")
        self.assertEqual(self.causes(s, "actor"), [("paused", "actor")])
        self.assertEqual(self.causes(s, "actor/0"), [("paused", "actor")])
        self.assertEqual(self.causes(s, job="job"), [("paused", "actor")])
        self.assertEqual(self.said, "actor is paused: 'troupectl resume actor' ends the pause\n")
        s.do("mail", "echo", key="acme")
        s.call("Pause", target="mail/acme")
        s.create("mail", "echo", key="acme", id="mailed")
        self.assertEqual(self.causes(s, "mail/acme"), [("paused", "mail/acme")])
        self.assertEqual(self.causes(s, job="mailed"), [("paused", "mail/acme")])
        self.assertEqual(self.causes(s, "mail"), [])

    def test_M7_busy_running_and_the_others_in_the_queue(self):
        s = self.started({"actor": actor(Pool={"Size": 2})})
        first = self.busy(s)
        self.assertEqual(self.causes(s, job=first)[0][0], "running")
        self.busy(s)
        s.create("actor", "echo", id="job")
        self.assertEqual(self.causes(s, job="job"), [("busy", "actor")])
        s.create("actor", "echo", id="next")
        self.assertEqual(self.causes(s, job="next"), [("busy", "actor"), ("queue", "actor")])
        self.assertIn("all 2 workers of actor that are up are busy\n", self.said)
        self.assertEqual(self.causes(s, "actor"), [("busy", "actor")])

    def test_M7_handed_over_and_cancelling(self):
        s = self.started({"actor": actor(Pool={"Prefetch": 2}, Worker=PATIENT)})
        first = self.busy(s)
        s.create("actor", "echo", id="second")
        self.assertEqual(self.causes(s, job="second"), [("handed_over", "actor/0")])
        s.call("Cancel", id=first)
        self.assertEqual(self.causes(s, job=first), [("cancelling", "actor/0"), ("running", "actor/0")])

    def test_M7_out_of_time_with_a_worker_that_does_not_end(self):
        s = self.started({"actor": actor(Worker=PATIENT, Jobs={"MaxRetries": 0})})
        s.do("actor", "deaf")
        id = s.create("actor", self.endless(s), timeout_usec=1000)
        s.until(lambda: s.worker("actor/0")["state"] == "killing")
        self.assertEqual(self.causes(s, job=id), [("ending", "actor/0")])
        self.assertEqual(self.said, "its worker actor/0 is being ended: its job ran out of time\n")
        os.kill(s.worker("actor/0")["pid"], signal.SIGKILL)
        s.wait_job(id)
        s.do("actor", "deaf")
        id = self.busy(s)
        s.call("Stop", target="actor", within_usec=1)
        s.until(lambda: s.worker("actor/0")["state"] == "killing")
        self.assertEqual(self.causes(s, job=id), [("ending", "actor/0")])
        self.assertEqual(self.said, "its worker actor/0 is being ended: it is to stop\n")
        os.kill(s.worker("actor/0")["pid"], signal.SIGKILL)

    def test_M7_delayed_and_between_attempts(self):
        s = self.started({"actor": actor(Jobs={"BackoffMinSec": "1h", "BackoffMaxSec": "1h"})})
        s.create("actor", "echo", id="later", delay_usec=3600 * 10**6)
        self.assertEqual(self.causes(s, job="later"), [("delayed", "actor")])
        self.assertRegex(self.said, r"^it begins in (1h|59min .*) \(")
        s.create("actor", "retry 1 no", id="again")
        s.wait_job_state("again", "backoff")
        self.assertEqual(self.causes(s, job="again"), [("retry", "actor")])
        self.assertIn("its last attempt failed, and the next begins in", self.said)

    def test_M7_no_worker_because_of_back_off(self):
        s = self.started({"actor": actor(Restart=SLOW)})
        for generation in 1, 2:
            os.kill(s.wait_for(lambda: (lambda w: w["generation"] == generation and w["state"] == "idle" and w)(
                s.worker("actor/0")), "actor")["pid"], signal.SIGKILL)
        s.wait_worker("actor/0", "backoff")
        s.create("actor", "echo", id="job")
        self.assertEqual(self.causes(s, job="job"), [("backoff", "actor")])
        self.assertRegex(self.said, r"a worker of actor died or did not start, and is started again in (1h|59min)")
        self.assertEqual(self.causes(s, "actor/0"), [("backoff", "actor/0")])
        self.assertRegex(self.said, r"^actor/0 died or did not start, and is started again in (1h|59min)")

    def test_M7_given_up(self):
        s = self.started({"actor": actor(Restart={**QUICK, "StartLimitBurst": 1, "StartLimitIntervalSec": "1h"})})
        for generation in 1, 2:
            os.kill(s.wait_for(lambda: (lambda w: w["generation"] == generation and w["state"] == "idle" and w)(
                s.worker("actor/0")), "actor")["pid"], signal.SIGKILL)
        s.wait_worker("actor/0", "failed")
        s.create("actor", "echo", id="job")
        self.assertEqual(self.causes(s, job="job"), [("failed", "actor")])
        self.assertIn("'troupectl reset actor'", self.said)
        self.assertEqual(self.causes(s, "actor/0"), [("failed", "actor/0")])
        self.assertEqual(self.causes(s, "actor"), [("failed", "actor")])
        self.assertRegex(self.said, r"has failed and is not restarted .*\n +Last: killed by SIGKILL .*\n +more: troupectl deaths actor\n")

    def test_M7_stopped_and_stopping(self):
        s = self.started({"actor": actor(Worker=PATIENT)})
        self.busy(s)
        s.call("Stop", target="actor/0")
        self.assertEqual(self.causes(s, "actor"), [("stopping", "actor")])
        self.assertEqual(self.causes(s, "actor/0"), [("stopping", "actor/0")])
        s.call("Stop", target="actor", within_usec=1, wait=True)
        s.create("actor", "echo", id="job")
        self.assertIn(("stopped", "actor"), self.causes(s, job="job"))
        self.assertEqual(self.causes(s, "actor"), [("stopped", "actor")])

    def test_M7_starting_and_after(self):
        s = self.started({"actor": actor()})
        s.write("never.group", ini(ACTOR, Group={"Environment": "ACTOR_NEVER_READY=1"}, Worker={"TimeoutStartSec": "infinity",
                                                                                               "TimeoutStopSec": "1ms"}))
        s.write("next.group", actor(Group={"After": "never"}))
        s.call("Reload")
        s.wait_worker("never/0", "starting")
        self.assertEqual(self.causes(s, "never"), [("starting", "never")])
        self.assertEqual(self.causes(s, "next"), [("after", "never")])
        s.create("next", "echo", id="job")
        self.assertEqual(self.causes(s, job="job"), [("after", "never")])
        self.assertEqual(self.said, "it starts after the group never (After=), which is not up yet\n")

    def test_M7_a_fault_of_the_configuration(self):
        s = self.started({"broken": ini("/nowhere/program"), "actor": actor()})
        s.create("broken", "echo", id="job")
        self.assertEqual(self.causes(s, job="job"), [("fault", "broken")])
        self.assertRegex(self.said, r"^broken cannot start: .*/nowhere/program")

    def test_M7_safe_mode(self):
        s = self.started({"actor": actor()})
        s.crash_into_safe_mode()
        s.create("actor", "echo", id="job")
        self.assertEqual(self.causes(s, job="job"), [("safe_mode", "actor")])
        self.assertIn("'troupectl reload'", self.said)

    def test_M7_removed_by_a_reload(self):
        s = self.started({"actor": actor(), "other": actor()})
        job = self.busy(s)
        os.unlink(os.path.join(s.config, "actor.group"))
        s.call("Reload")
        self.assertEqual(self.causes(s, "actor")[0], ("removed", "actor"))
        self.assertEqual(self.causes(s, job=job), [("running", "actor/0"), ("unlimited", job)])
        self.assertIn(f"it has no time limit (TimeoutSec=): 'troupectl cancel {job}' ends it\n", self.said)

    def test_M7_limits(self):
        s = self.started({"mail": actor(Pool={"Cells": "by-key", "CellsMax": 1}),
                          "actor": actor(Jobs={"QueueMax": 1})})
        s.do("mail", "echo", key="acme")
        self.assertEqual(self.causes(s, "mail"), [("cells_max", "mail")])
        s.call("Pause", target="actor")
        s.create("actor", "echo")
        waiting = s.connect()
        waiting.send(self.JOBS + "Create", {"group": "actor", "options": {"wait_usec": 3600 * 10**6}})
        s.until(lambda: s.group("actor")["senders"] == 1)
        self.assertEqual(self.causes(s, "actor"), [("paused", "actor"), ("queue_full", "actor")])

    def test_M7_workers_of_cells_that_die(self):
        s = self.started({"mail": actor(Pool={"Cells": "by-key"}, Restart=SLOW, Resources={"LimitCORE": 0})})
        s.create("mail", "crash kill", key="acme")
        s.wait_for(lambda: any(w["state"] == "backoff" for w in s.workers("mail")), "mail")
        self.assertEqual(self.causes(s, "mail"), [("trouble", "mail")])
        self.assertEqual(self.causes(s, "mail/acme"), [("backoff", "mail/acme")])

    def test_M7_the_store_of_durable_jobs(self):
        s = self.started({"kept": actor(Jobs={"Durable": "yes"})}, state=True)
        s.stop()
        with contextlib.closing(sqlite3.connect(s.path("state/troupe.db"), isolation_level=None, timeout=LIMIT)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            s.start()
            self.assertEqual(self.causes(s, "kept"), [("store_opening", "kept")])
            self.assertIn("is being opened", self.said)
            connection.execute("ROLLBACK")
        s.wait_told("STATUS=1 of 1 workers up in 1 group")

    def test_M7_a_database_that_another_program_locks(self):
        s = self.started({"kept": actor(Jobs={"Durable": "yes"})}, state=True)
        s.until_restored()
        with Varlink(s.socket_path) as sender, \
                contextlib.closing(sqlite3.connect(s.path("state/troupe.db"), isolation_level=None, timeout=LIMIT)) as locks:
            locks.execute("BEGIN IMMEDIATE")
            sender.send("Create", {"group": "kept", "payload": text("echo"), "options": {"id": "one"}})
            s.until(lambda: self.waits(s, "kept") == [("store_slow", "kept")])
            self.assertEqual(self.causes(s, "kept"), [("store_slow", "kept")])
            self.assertIn(("store_slow", "kept"), self.causes(s, job="one"))
            self.assertIn("another program locks the database", self.said)
            self.assertEqual(s.group("kept")["state"], "degraded")
            locks.execute("ROLLBACK")
            self.assertEqual(sender.reply()[0]["id"], "one")
        s.until(lambda: self.waits(s, "kept") == [])
        self.assertEqual(self.causes(s, "kept"), [])

    def test_M7_a_store_that_has_failed(self):
        s = self.supervisor({"kept": actor(Jobs={"Durable": "yes"})}, state=True).with_failing_syncs().start()
        self.assertEqual(self.causes(s, "kept"), [])
        Path(s.path("fails")).touch()
        self.refused("StoreFailed", s.create, "kept", "echo")
        self.assertEqual(self.causes(s, "kept"), [("store_failed", "kept")])
        self.assertIn(s.path("state/troupe.db"), self.said)
        os.unlink(s.path("fails"))
        s.wait_event("store.open", count=2)
        self.assertEqual(self.causes(s, "kept"), [])

    @unittest.skipIf(os.geteuid() != 0, "mounting needs root")
    def test_M7_a_disk_that_is_full(self):
        s = self.supervisor({"kept": actor(Jobs={"Durable": "yes", "QueueMemoryMax": "1G"})}, state=True)
        self.mount_state(s, "-o", "size=40m")
        s.start()
        s.call("Pause", target="kept")
        with self.assertRaisesRegex(VarlinkError, "StoreFull"):
            while True:
                s.create("kept", "echo\n\n" + "x" * 500000)
        self.assertEqual(self.causes(s, "kept"), [("paused", "kept"), ("store_full", "kept")])
        self.assertIn("is full", self.said)

    def test_M7_a_job_whose_end_is_being_written(self):
        s = self.supervisor({"kept": actor(Jobs={"Durable": "yes"})}, state=True)
        s.start().until_restored()
        bell = Bell(s, "bell")
        s.create("kept", f"wait {bell.path}\necho", id="job")
        with contextlib.closing(sqlite3.connect(s.path("state/troupe.db"), isolation_level=None, timeout=LIMIT)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            bell.ring()
            s.until(lambda: self.waits(s, job="job") == [("writing", "kept")])
            self.assertEqual(self.causes(s, job="job"), [("writing", "kept")])
            connection.execute("ROLLBACK")
        self.assertEqual(s.wait_job("job")["state"], "succeeded")
