# SPDX-License-Identifier: MIT
"""The status calls running what works, and gives the reason for everything else."""
import os

from troupe import ACTOR, TestCase, helper, ini

ONCE = {"MaxRetries": 0}
FOREVER = {"StartLimitBurst": 0, "MinSec": "10ms", "MaxSec": "20ms"}


class Green(TestCase):
    def status(self, supervisor, expected, *targets):
        process = supervisor.ctl("status", *targets)
        self.assertEqual(process.returncode, expected, process.stdout + process.stderr)
        return process.stdout

    def test_a_service_that_does_not_say_ready_is_starting(self):
        s = self.supervisor({"hung": ini("/bin/sleep infinity", Group={"Type": "notify"},
                                         Worker={"TimeoutStartSec": "infinity"})}).spawn()
        s.wait_told("STATUS=0 of 1 workers up in 1 group; hung is starting, see troupectl status")
        self.assertEqual(s.group("hung")["state"], "starting")
        self.assertRegex(self.status(s, 1, "hung"), r"● hung: starting \(service\) – 0 of 1 up")
        self.assertIn("Trouble: 1 starting\n", self.status(s, 1))

    def test_a_service_that_is_killed_because_it_never_says_ready_is_degraded(self):
        s = self.started({"hung": ini("/bin/sleep infinity", Group={"Type": "notify"}, Restart=FOREVER,
                                      Worker={"TimeoutStartSec": "100ms", "TimeoutStopSec": "10s"})})
        s.wait_event("worker.died", "hung")
        for count in range(2, 5):
            with self.subTest(death=count):
                self.assertEqual(s.group("hung")["state"], "degraded")
                s.wait_event("worker.died", "hung", count)
        out = self.status(s, 1, "hung")
        self.assertRegex(out, r"! hung: degraded \(service\) – 1 (does not become ready|to be restarted later)\n")
        self.assertRegex(out, r"      Last: .*TimeoutStartSec.* \(hung/0, .*\)\n            more: troupectl deaths hung\n")

    def test_why_a_program_does_not_start_is_shown(self):
        s = self.supervisor()
        script = s.write("script", "true\n")
        os.chmod(script, 0o755)
        s.write("plain.group", ini(script, Group={"Type": "service"}, Restart={"Restart": "no"}))
        s.start()
        s.wait_worker("plain/0", "failed")
        why = "could not be started: exec: Exec format error"
        self.assertRegex(self.status(s, 1), f"plain +failed .*, {why}\n")
        for verb in "status", "why":
            self.assertIn(f"      Last: {why} (plain/0)\n", s.ctl(verb, "plain").stdout)

    def test_a_program_that_is_no_actor_is_told(self):
        s = self.started({"g": ini("/bin/true", Restart={"Restart": "no"})})
        s.wait_event("worker.died", "g")
        self.assertEqual(s.deaths("g")[0]["detail"], "exited with status 0 before it was ready; is it a program of "
                                                     "libtroupe, or troupe-exec?")

    def test_a_group_whose_jobs_die_is_failing(self):
        s = self.started({"fast": ini(ACTOR, Pool={"Size": 2}, Jobs=ONCE, Restart={**FOREVER, "ResetAfterSec": "0"},
                                      Resources={"LimitCORE": 0})})
        self.assertEqual(self.status(s, 0, "fast").split("\n")[0], "● fast: running")
        for _ in range(6):
            self.assertEqual(s.do("fast", "complain the last words\ncrash abort")["state"], "dead")
        group = s.group("fast")
        self.assertEqual((group["state"], group["last_jobs"], group["last_jobs_dead"]), ("failing", 6, 6))
        out = self.status(s, 1, "fast")
        self.assertRegex(out, r"^! fast: failing – 100 % of the last 6 jobs dead \(since .*\d\d:\d\d\)\n")
        self.assertRegex(out, r"      Last: killed by SIGABRT.*: the last words \(fast/\d, .*\)\n"
                              r"            more: troupectl deaths fast\n")
        self.assertIn("Trouble: 1 failing\n", self.status(s, 1))
        s.wait_told("STATUS=2 of 2 workers up in 1 group; fast is failing, see troupectl status")

        while s.group("fast")["state"] == "failing":  # at most the jobs that it judges by
            self.assertEqual(s.do("fast", "echo")["state"], "succeeded")
        self.assertLessEqual(s.group("fast")["succeeded"], 7)
        s.wait_for(lambda: s.group("fast")["state"] == "running", "fast")
        self.status(s, 0, "fast")

    def test_jobs_that_fail_without_a_death_make_a_group_fail_too(self):
        s = self.started({"g": ini(ACTOR, Jobs=ONCE)})
        for _ in range(3):
            self.assertEqual(s.do("g", "retry 7 the handler says no")["state"], "dead")
        out = self.status(s, 1, "g")
        self.assertRegex(out, r"^! g: failing – 100 % of the last 3 jobs dead")
        self.assertRegex(out, r"      Last: the handler says no \(job .*\)\n"
                              r"            more: troupectl dead-letters --reason job --to g\n")
        self.assertEqual(s.do("g", "complain the last words\ncrash abort")["state"], "dead")
        self.assertEqual(s.do("g", "retry 7 the handler says no")["state"], "dead")
        self.assertRegex(self.status(s, 1, "g"), r"      Last: the handler says no \(job .*\)\n")
        s.ctl("reset", "g", check=True)
        self.status(s, 0, "g")

    def test_cells_fail_on_their_own(self):
        s = self.started({"mail": ini(ACTOR, Pool={"Cells": "by-key"}, Jobs=ONCE)})
        for _ in range(12):
            self.assertEqual(s.do("mail", "echo", key="good")["state"], "succeeded")
        for _ in range(3):
            self.assertEqual(s.do("mail", "retry 7 no", key="bad")["state"], "dead")
        self.assertEqual(s.cell("mail/bad")["state"], "failing")
        self.assertEqual(s.cell("mail/good")["state"], "running")
        self.assertEqual(s.group("mail")["state"], "running")
        self.assertRegex(self.status(s, 1, "mail"), r"^! mail: running – 1 of 2 cells failing \(bad\)\n")
        self.assertIn("Trouble: 1 with failing cells\n", self.status(s, 1))
        self.assertRegex(self.status(s, 1, "mail/bad"), r"^! mail/bad: failing – 100 % of the last 3 jobs dead")
        self.status(s, 0, "mail/good")
        s.ctl("reset", "mail", check=True)
        self.status(s, 0, "mail")

    def test_a_group_that_stops_is_stopping_until_it_is_stopped(self):
        s = self.started({"big": ini(ACTOR, Pool={"Size": 3})})
        _, go = s.busy("big", n=2)
        s.ctl("stop", "big", check=True)
        self.assertEqual(s.group("big")["state"], "stopping")
        self.assertRegex(self.status(s, 1, "big"), r"^● big: stopping – [23] of 3 workers not ended yet\n")
        go.ring(2)
        s.wait_for(lambda: s.group("big")["state"] == "stopped", "big")
        self.assertRegex(self.status(s, 1, "big"), r"^○ big: stopped\n")
        self.status(s, 1)

    def test_a_group_that_a_reload_removed_is_draining(self):
        s = self.started({"old": ini(ACTOR), "other": ini(ACTOR)})
        _, go = s.busy("old")
        os.unlink(os.path.join(s.config, "old.group"))
        s.ctl("reload", check=True)
        self.assertEqual(s.group("old")["state"], "draining")
        self.assertRegex(self.status(s, 1, "old"), r"^● old: draining – removed by a reload, 1 job left\n")
        go.ring()
        s.wait_for(lambda: "old" not in [g["name"] for g in s.call("GetStatus")["groups"]])

    def test_a_worker_that_somebody_stopped_degrades_its_group(self):
        s = self.started({"g": ini(ACTOR, Pool={"Size": 2})})
        s.ctl("stop", "g/1", "--wait", check=True)
        self.assertRegex(self.status(s, 1, "g"), r"^! g: degraded – 1 stopped\n")
        s.ctl("start", "g/1", "--wait", check=True)
        self.status(s, 0, "g")


class Services(TestCase):
    def test_a_service_is_up_and_has_no_jobs(self):
        s = self.started({"web": ini("/bin/sleep infinity", Group={"Type": "service"})})
        out = s.ctl("status", "web/0").stdout
        self.assertRegex(out, r"^● web/0: up for ")
        self.assertNotIn("job", out)
        self.assertNotIn("idle", out)

    def test_what_a_service_said_of_itself_ends_with_it(self):
        s = self.started({"web": ini(helper("workers/notifier"), Group={"Type": "service"})})
        s.until(lambda: "signs of life" in s.worker("web/0").get("status", ""))
        s.ctl("stop", "web", "--wait", check=True)
        self.assertNotIn("status", s.worker("web/0"))

    def test_a_brief_status_has_no_cells_and_no_workers(self):
        s = self.started({"g": ini(ACTOR), "keyed": ini(ACTOR, Pool={"Cells": "by-key"})})
        s.do("keyed", "echo", key="x")
        groups = s.call("GetStatus", brief=True)["groups"]
        self.assertEqual([(group["name"], group["workers"]) for group in groups], [("g", []), ("keyed", [])])
        self.assertEqual((groups[1]["cells"], groups[1]["cells_total"]), ([], 1))
