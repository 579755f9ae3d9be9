# SPDX-License-Identifier: MIT
"""Draining for maintenance: it ends with nothing running and nothing lost."""
from troupe import QUICK, TestCase, actor, ini


class Drain(TestCase):
    def held(self, s, group="actor", **options):
        """A job that waits for a bell."""
        return s.busy(group, "echo", id="held", **options)[1]

    def drained(self, s, group="actor"):
        return s.wait_for(lambda: s.group(group).get("drained"), group)

    def test_M9_what_is_there_is_worked_off_and_nothing_else_begins(self):
        s = self.started({"actor": actor()})
        bell = self.held(s)
        queued = [s.create("actor", "echo") for _ in range(50)]
        later = s.create("actor", "echo", delay_usec=3600 * 10**6)
        self.assertEqual(s.call("Drain", target="actor"), {"left": 52})
        self.assertEqual((s.group("actor")["state"], s.group("actor")["drained"]), ("draining", False))
        self.assertEqual(self.refused("Draining", s.create, "actor", "echo"), {"group": "actor"})
        bell.ring()
        with s.connect() as connection:
            self.assertEqual(connection.call("Drain", target="actor", wait=True), {"left": 1})
        self.assertEqual([s.job(id)["state"] for id in ["held", *queued]], ["succeeded"] * 51)
        self.assertEqual(s.job(later)["state"], "delayed")
        self.assertEqual((s.group("actor")["running"], s.group("actor")["queued"]), (0, 0))
        s.call("Resume", target="actor")
        self.assertNotIn("drained", s.group("actor"))
        self.assertEqual(s.do("actor", "echo again")["state"], "succeeded")

    def test_M9_a_job_whose_time_comes_while_it_is_drained_begins_when_it_is_resumed(self):
        s = self.started({"actor": actor()})
        s.call("Pause", target="actor")
        s.create("actor", "echo", id="soon", delay_usec=1000)
        s.call("Drain", target="actor")
        self.assertEqual(s.wait_job_state("soon", "queued")["state"], "queued")
        self.drained(s)
        s.call("Resume", target="actor")
        self.assertEqual(s.wait_job("soon")["state"], "succeeded")

    def test_M9_cells_and_senders_that_wait_for_room(self):
        s = self.started({"mail": actor(Pool={"Cells": "by-key"}, Jobs={"QueueMax": 1})})
        bell = self.held(s, "mail", key="a")
        s.create("mail", "echo", key="a", id="queued")
        sender = s.connect()
        sender.send("io.troupe.Jobs.Create", {"group": "mail", "options": {"key": "a", "wait_usec": 3600 * 10**6}})
        s.until(lambda: s.group("mail")["senders"] == 1)
        s.call("Drain", target="mail")
        self.refused("Draining", sender.reply)
        self.refused("Draining", s.create, "mail", "echo", key="b")
        self.assertEqual(self.refused("BadOption", s.call, "Drain", target="mail/a")["option"], "target")
        bell.ring()
        self.drained(s, "mail")
        self.assertEqual(s.wait_job("queued")["state"], "succeeded")

    def test_M9_jobs_in_a_paused_or_stopped_cell_wait_until_it_is_resumed(self):
        s = self.started({"mail": actor(Pool={"Cells": "by-key"})})
        for key in "a", "b", "c":
            s.do("mail", "echo", key=key)
        s.call("Pause", target="mail/a")
        s.create("mail", "echo", key="a", id="paused")
        bell = self.held(s, "mail", key="b")
        s.create("mail", "echo", key="b", id="queued")
        s.call("Stop", target="mail/c", wait=True)
        s.create("mail", "echo", key="c", id="stopped")
        with s.connect() as waiting:
            waiting.send("Drain", {"target": "mail", "wait": True})
            s.until(lambda: "drained" in s.group("mail"))
            self.assertIs(s.group("mail")["drained"], False)
            bell.ring()
            self.assertEqual(waiting.reply()[0], {"left": 2})
        self.assertEqual([s.job(id)["state"] for id in ("paused", "queued", "stopped")], ["queued", "succeeded", "queued"])
        self.assertIn("mail: drained; 2 jobs wait until it is resumed", s.ctl("drain", "mail", check=True).stdout)
        s.call("Resume", target="mail")
        self.assertEqual(s.wait_job("paused")["state"], "succeeded")
        s.call("Start", target="mail/c")
        self.assertEqual(s.wait_job("stopped")["state"], "succeeded")

    def test_M9_a_cell_that_is_paused_or_stopped_while_it_is_drained_does_not_hold_it_up(self):
        s = self.started({"mail": actor(Pool={"Cells": "by-key"}, Restart={**QUICK, "MinSec": "1h", "MaxSec": "1h"},
                                        Resources={"LimitCORE": 0}, Jobs={"MaxRetries": 0})})
        for command, key in ("Pause", "a"), ("Stop", "b"):
            s.do("mail", "crash kill", key=key)
            s.wait_job(s.create("mail", "crash kill", key=key))
            s.wait_worker(f"mail/{key}/0", "backoff")
            id = s.create("mail", "echo", key=key)
            self.assertIs(s.call("Drain", target="mail") and s.group("mail")["drained"], False)
            late = s.ctl("drain", "mail", "--timeout", "1ms")
            self.assertEqual(late.returncode, 8)
            self.assertIn("mail: not complete yet; it continues", late.stderr)
            self.assertIn("a worker of mail dies or does not get ready", s.ctl("why", "mail", check=True).stdout)
            with s.connect() as waiting:
                waiting.send("Drain", {"target": "mail", "wait": True})
                s.call(command, target=f"mail/{key}")
                self.assertEqual(waiting.reply()[0], {"left": 1})
            s.call("Cancel", id=id)
            s.call("Resume", target="mail")
            s.call("Stop", target=f"mail/{key}", wait=True)

    def test_M9_it_outlives_a_crash_and_an_upgrade(self):
        s = self.started({"actor": actor(), "kept": actor(Jobs={"Durable": "yes"})}, state=True)
        bell = self.held(s, "kept")
        s.create("kept", "echo", id="queued")
        for name in "actor", "kept":
            s.call("Drain", target=name)
        s.crash()
        self.assertEqual(s.group("actor")["state"], "draining")
        self.refused("Draining", s.create, "kept", "echo")
        self.assertEqual(s.ctl("upgrade").returncode, 0)
        self.refused("Draining", s.create, "actor", "echo")
        bell.ring()
        for name in "actor", "kept":
            self.drained(s, name)
        self.assertEqual([s.wait_job(id)["state"] for id in ("held", "queued")], ["succeeded"] * 2)
        s.call("Resume", target="kept")
        s.crash()
        self.assertEqual(s.do("kept", "echo")["state"], "succeeded")

    def test_M9_a_keyed_group_without_cells_is_drained_also_after_a_crash_and_an_upgrade(self):
        s = self.started({"mail": actor(Pool={"Cells": "by-key"})})
        self.assertEqual(s.call("Drain", target="mail", wait=True), {"left": 0})
        s.crash()
        self.assertIs(s.group("mail")["drained"], True)
        s.ctl("upgrade", check=True)
        self.assertIs(s.group("mail")["drained"], True)
        self.assertEqual(s.call("Drain", target="mail", wait=True), {"left": 0})

    def test_M9_a_job_that_waits_for_its_next_attempt_does_not_hold_it_up_without_workers(self):
        s = self.started({"actor": actor(Restart={**QUICK, "MinSec": "1h", "MaxSec": "1h"}, Resources={"LimitCORE": 0},
                                         Jobs={"BackoffMinSec": "1h", "BackoffMaxSec": "1h"})})
        s.wait_job_state(s.create("actor", "crash kill"), "backoff")  # after the next death, the worker is not back for an hour
        _, bell = s.busy("actor", "crash kill")
        s.call("Drain", target="actor")
        bell.ring()
        self.assertEqual(s.call("Drain", target="actor", wait=True), {"left": 2})

    def test_M9_a_job_on_disk_is_worked_off_although_it_is_read_after_the_start(self):
        s = self.started({"kept": actor(Restart={**QUICK, "MinSec": "1h", "MaxSec": "1h"}, Resources={"LimitCORE": 0},
                                        Jobs={"Durable": "yes", "MaxRetries": 0})}, state=True)
        for _ in range(2):  # after the second death, the worker is not back for an hour
            s.do("kept", "crash kill")
        s.wait_worker("kept/0", "backoff")
        s.create("kept", "echo", id="job")
        s.call("Drain", target="kept")
        s.crash()
        s.until(lambda: s.group("kept")["queued"] == 1)
        self.assertIs(s.group("kept")["drained"], False)
        s.call("Restart", target="kept")
        self.drained(s, "kept")
        self.assertEqual(s.wait_job("job")["state"], "succeeded")

    def test_M9_troupectl_waits_for_all_groups(self):
        s = self.started({"actor": actor(), "other": actor(), "service": ini("/bin/sleep infinity", Group={"Type": "service"})})
        bell = self.held(s)
        late = s.ctl("drain", "--timeout", "100ms")
        self.assertEqual((late.returncode, late.stdout), (8, "other: drained\n"))
        self.assertIn("actor: not complete yet; it continues", late.stderr)
        self.assertIn("takes no new jobs, 1 job left", s.ctl("status", "actor").stdout)
        bell.ring()
        done = s.ctl("drain", check=True)
        self.assertEqual(done.stdout, "actor: drained\nother: drained\n")
        self.assertIn("drained: nothing runs", s.ctl("status", "actor").stdout)
        self.assertIn("no new job is accepted", s.ctl("why", "actor", check=True).stdout)
        refused = s.ctl("do", "actor")
        self.assertEqual(refused.returncode, 6, refused.stderr)
        self.assertIn("it is drained and takes no new jobs", refused.stderr)
        self.assertEqual(s.ctl("drain", "service").returncode, 1)
        s.ctl("resume", "actor", check=True)
        s.ctl("do", "actor", check=True)

    def test_M9_resume_without_a_name_ends_the_draining_of_all_groups(self):
        s = self.started({name: actor() for name in ("actor", "other", "paused")} |
                         {"service": ini("/bin/sleep infinity", Group={"Type": "service"})})
        s.call("Pause", target="paused")
        s.ctl("drain", "actor", "other", check=True)
        s.ctl("resume", check=True)
        self.assertEqual([s.group(name)["state"] for name in ("actor", "other", "paused")], ["running", "running", "paused"])
        self.assertEqual(s.ctl("resume", check=True).stdout, "")
        refused = s.ctl("resume", "--actor")
        self.assertEqual((refused.returncode, refused.stderr), (2, "troupectl: --actor needs the name of an actor\n"))

    def test_M9_the_help_says_how_long_it_waits(self):
        s = self.started({})
        for verb, text in ("drain", "how long to wait (default: for ever)"), ("wait", "how long to wait (default: for ever)"), \
                ("pause", "how long an answer may take (default: 30s)"):
            self.assertIn(text, s.ctl(verb, "--help", check=True).stdout, verb)
