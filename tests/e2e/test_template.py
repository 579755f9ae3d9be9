# SPDX-License-Identifier: MIT
"""Template=slot: a process that has loaded everything forks the slot's workers."""
import os
import pwd
import signal
import unittest
from pathlib import Path

from test_sandbox import landlock_abi
from troupe import LIMIT, QUICK, Cgroup, TestCase, can_mount, ended, example, helper, ini

WARM = helper("workers/warm")


class Case(TestCase):
    def setUp(self):
        self.cgroup = Cgroup(self) if Cgroup.available() else None

    def warm(self, mode="well", cgroups=True, groups=None, faults=None, wait="template.ready", **sections):
        """Starts a supervisor whose group has a template that does this when it loads."""
        s = self.supervisor(wrapper=self.cgroup.wrapper if self.cgroup and cgroups else ())
        if faults:
            s.with_faults()
            s.environment["TROUPE_FAULT_POINT"] = "@" + s.write("point", faults)
        self.mode = s.write("mode", mode)
        sections["Group"] = {"Environment": f"WARM={self.mode}", **sections.get("Group", {})}
        sections["Pool"] = {"Size": 1, "Template": "slot", **sections.get("Pool", {})}
        s.write("warm.group", ini(WARM, **{"Restart": QUICK, "Jobs": {"BackoffMinSec": "1ms"}, **sections}))
        s.start()
        if wait:
            s.wait_event(wait, "warm")
        return s

    def ask(self, s, what):
        return s.do("warm", what)["result"]["data"]

    def replace(self, s):
        """Kills the worker, and returns the pid of the next one."""
        old = s.worker("warm/0")
        os.kill(old["pid"], signal.SIGKILL)
        s.until(lambda: s.worker("warm/0")["generation"] > old["generation"] and s.worker("warm/0")["state"] == "idle")
        return s.worker("warm/0")["pid"]

    def template(self, s):
        """Returns the pid of the process in which the present worker, a forked one, has its memory from."""
        return int(self.ask(s, "warmed"))

    def forked(self, s):
        pid = self.replace(s)
        template = self.template(s)
        self.assertNotEqual(template, pid)
        return template

    def executed(self, s):
        pid = self.replace(s)
        self.assertEqual(self.template(s), pid)

    def parent(self, pid):
        return int(Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[1])


class Template(Case):
    def test_it_forks_the_workers_after_the_first(self):
        for cgroups in (True, False):
            with self.subTest(cgroups=cgroups):
                s = self.warm(cgroups=cgroups)
                self.assertEqual(self.ask(s, "warmed"), self.ask(s, "pid"))
                template = self.forked(s)
                self.assertEqual(self.forked(s), template)
                worker = s.worker("warm/0")
                self.assertEqual(self.parent(worker["pid"]), s.process.pid)
                self.assertEqual(self.parent(template), s.process.pid)
                self.assertEqual(self.ask(s, "atfork"), "2 1")
                self.assertEqual(self.ask(s, "cpu"), "1")
                shown = s.worker("warm/0")["template"]
                self.assertEqual((shown["state"], shown["pid"]), ("ready", template))
                self.assertGreater(shown["exec_usec"], 0)
                self.assertGreater(shown["fork_usec"], 0)
                self.assertRegex(s.ctl("status", "warm/0", check=True).stdout, rf"Template: ready for .*pid {template}; .* by exec, .* by fork")
                self.assertEqual(s.call("GetMetrics")["groups"][0]["forks"], 2)
                s.stop()

    def test_the_example_loads_once_for_all_workers_of_a_slot(self):
        s = self.started({"primes": ini(example("primes"), Pool={"Size": "0..4", "Template": "slot", "MaxJobs": 1}, Restart=QUICK)})
        self.assertEqual(s.do("primes", "4999999")["result"]["data"], "prime")
        s.wait_event("template.ready", "primes")
        for number, answer in ("4999997", "43"), ("2", "prime"), ("4", "2"):
            self.assertEqual(s.do("primes", number)["result"]["data"], answer)
        self.assertEqual(s.do("primes", "1")["state"], "rejected")
        self.assertGreater(s.call("GetMetrics")["groups"][0]["forks"], 0)

    def test_a_forked_worker_inherits_what_an_executed_one_does(self):
        sandboxes = {}, {"Profile": "basic"}, {"Profile": "strict", "PrivatePIDs": "no"}
        for cgroups in (True, False):
            for sandbox in sandboxes if can_mount() else sandboxes[:1]:
                with self.subTest(cgroups=cgroups, sandbox=sandbox):
                    group = {"User": "nobody"} if sandbox else {}
                    s = self.warm("well", cgroups, Group={**group, "WorkingDirectory": "/tmp"}, Sandbox=sandbox,
                                  Resources={"Nice": 3, "OOMScoreAdjust": 77, "LimitNOFILE": 300, "LimitCORE": 0})
                    executed = self.ask(s, "facts")
                    self.forked(s)
                    self.maxDiff = None
                    self.assertEqual(self.ask(s, "facts"), executed)
                    self.assertIn("\n77\n", executed)
                    s.stop()

    def test_W5_no_job_reaches_it_under_any_profile(self):
        """It has no memory or socket of a worker, but the socket by which it is asked to fork."""
        for profile in ("none", "basic", "strict") if can_mount() else ("none",):
            with self.subTest(profile=profile):
                group = {"User": "nobody"} if profile != "none" else {}
                s = self.warm(Group=group, Pool={"MaxJobs": 1}, Sandbox={"Profile": profile, "PrivatePIDs": "no"} if group else {})
                template = self.forked(s)
                answers = {int(self.ask(s, "pid")) for _ in range(20)}
                self.assertEqual(len(answers), 20)
                self.assertNotIn(template, answers)
                sockets = {os.readlink(f"/proc/{template}/fd/{fd}") for fd in os.listdir(f"/proc/{template}/fd") if int(fd) > 2}
                self.assertEqual(len(sockets), 1, sockets)
                self.assertNotIn("memfd:", Path(f"/proc/{template}/maps").read_text(encoding="utf-8"))
                s.stop()

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_workers_cannot_reach_its_memory(self):
        """Files in /proc of a process that others may not trace belong to root."""
        s = self.warm(Group={"User": "nobody"})
        template = self.forked(s)
        self.assertEqual(os.stat(f"/proc/{template}/mem").st_uid, 0)
        self.assertEqual(os.stat(f"/proc/{s.worker('warm/0')['pid']}/mem").st_uid, pwd.getpwnam("nobody").pw_uid)

    @unittest.skipUnless(os.geteuid() == 0 and landlock_abi() >= 6, "needs root and Linux 6.12")
    def test_workers_cannot_reach_the_memory_of_one_that_loads(self):
        s = self.warm("hang", wait=None, Group={"User": "nobody"})
        self.assertEqual(self.ask(s, f"reach {self.ask(s, 'pid')}"), "1")
        template = s.until(lambda: s.worker("warm/0").get("template", {}).get("pid"))
        self.assertEqual(self.ask(s, f"reach {template}"), "0")
        os.kill(template, signal.SIGKILL)

    def test_its_death_ends_no_worker(self):
        s = self.warm()
        template = self.forked(s)
        worker = s.worker("warm/0")
        os.kill(template, signal.SIGKILL)
        s.wait_event("template.died", "warm")
        s.wait_event("template.ready", "warm", 2)
        for name in ("pid", "generation", "state", "restarts"):
            self.assertEqual(s.worker("warm/0")[name], worker[name])
        self.assertNotEqual(self.forked(s), template)
        s.stop()

    def test_the_death_of_a_worker_ends_what_it_has_left_but_not_the_template(self):
        s = self.warm()
        template = self.forked(s)
        left = os.pidfd_open(int(self.ask(s, "leave")))
        self.addCleanup(os.close, left)
        self.assertEqual(self.forked(s), template)
        self.assertTrue(ended(left, LIMIT))
        s.stop()

    def test_what_cannot_be_forked_is_not(self):
        reasons = {"threads": "it has 2 threads", "socket": "descriptor 9 is a socket",
                   "epoll": "descriptor 9 is an epoll instance", "child": "it has child processes"}
        for mode, reason in reasons.items():
            with self.subTest(mode=mode):
                s = self.warm(mode, wait="template.unsafe")
                self.assertIn(f"cannot be forked: {reason}", s.wait_event("template.unsafe", "warm")["message"])
                self.executed(s)
                template = s.worker("warm/0")["template"]
                self.assertEqual((template["state"], template["reason"]), ("unsafe", f"cannot be forked: {reason}"))
                for arguments in (("status", "warm"), ("status", "warm/0"), ("why", "warm")):
                    self.assertIn(f"cannot be forked: {reason}", s.ctl(*arguments, check=True).stdout)
                s.stop()

    def test_one_that_ends_at_its_start_is_tried_again(self):
        s = self.warm("die", wait="template.died")
        self.executed(s)
        Path(self.mode).write_text("well", encoding="ascii")
        s.wait_event("template.ready", "warm")
        self.forked(s)
        s.stop()

    def test_one_that_never_gets_ready_is_given_up(self):
        s = self.warm("hang", wait=None, Worker={"TimeoutStartSec": "1s"})
        self.assertIn("within TimeoutStartSec=", s.wait_event("template.died", "warm")["message"])
        self.executed(s)
        Path(self.mode).write_text("well", encoding="ascii")
        s.wait_event("template.ready", "warm")
        s.stop()

    def test_one_that_hangs_costs_seconds_once(self):
        s = self.warm("deaf")
        Path(self.mode).write_text("well", encoding="ascii")
        pid = self.replace(s)
        self.assertEqual(self.template(s), pid)
        self.assertIn("its template did not fork in time", s.wait_event("template.died", "warm")["message"])
        s.wait_event("template.ready", "warm", 2)
        self.forked(s)
        s.stop()

    def test_a_fork_that_fails_is_an_exec_and_no_failed_start(self):
        for mode, type, reason in (("full", "template.unsafe", "could not fork: Too many open files"),
                                   ("mortal", "template.died", "was killed by signal 9")):
            with self.subTest(mode=mode):
                s = self.warm(mode)
                Path(self.mode).write_text("well", encoding="ascii")
                self.executed(s)
                self.assertIn(f"its template {reason}", s.wait_event(type, "warm")["message"])
                events = s.call("Watch", target="warm")["events"]
                self.assertNotIn("worker.spawn-failed", {event["type"] for event in events})
                self.assertEqual(s.worker("warm/0")["restarts"], 1)
                s.wait_event("template.ready", "warm", 2)
                self.forked(s)
                s.stop()

    def test_a_restart_loads_again_and_a_stop_leaves_nothing(self):
        s = self.warm()
        template = self.forked(s)
        s.ctl("restart", "warm", check=True)
        s.wait_event("template.ready", "warm", 2)
        self.assertNotEqual(self.forked(s), template)
        s.ctl("stop", "warm", check=True)
        s.until(lambda: not s.children())
        if self.cgroup:
            s.until(lambda: not self.cgroup.slots())
        s.ctl("start", "warm", check=True)
        s.wait_event("template.ready", "warm", 3)
        self.forked(s)
        s.stop()

    def resting(self, **pool):
        """Starts a supervisor whose pool has no worker any more, but a template, whose pid is also returned."""
        s = self.warm(wait=None, Pool={"Size": "0..2", "TargetWaitSec": "1ms", "IdleSec": "50ms", **pool})
        key = {"key": "a"} if "Cells" in pool else {}
        s.do("warm", "pid", **key)
        s.wait_event("template.ready", "warm")
        group = s.until(lambda: (lambda g: g if g["members"] == g["up"] == 0 and len(s.children()) == 1 else None)(s.group("warm")))
        [template] = s.children()
        self.assertEqual(group["state"], "running")
        return s, template

    def test_a_pool_without_workers_keeps_a_template(self):
        s, template = self.resting()
        for _ in range(3):
            self.assertEqual(self.template(s), template)
            s.until(lambda: s.children() == [template])
        self.assertEqual(s.group("warm")["workers"][0]["template"]["pid"], template)
        s.ctl("restart", "warm", check=True)
        s.until(lambda: not s.children())
        s.do("warm", "pid")
        s.wait_event("template.ready", "warm", 2)
        s.until(lambda: len(s.children()) == 1)
        self.assertNotEqual(self.template(s), template)
        s.ctl("stop", "warm", check=True)
        s.until(lambda: not s.children())
        s.stop()

    def test_the_template_of_a_pool_without_workers_ends_with_it(self):
        s, _ = self.resting()
        s.ctl("upgrade", check=True)
        s.until(lambda: not s.children())
        s.do("warm", "pid")
        s.stop()
        s, _ = self.resting()
        s.write("warm.group", ini(WARM, Pool={"Size": "0..2"}, Restart=QUICK))
        s.ctl("reload", check=True)
        s.until(lambda: not s.children())
        s.do("warm", "pid")
        s.stop()
        s, _ = self.resting(Cells="by-key", PoolMax=1, CellIdleSec="1s")
        s.do("warm", "pid", key="b")  # it is no worker
        s.until(lambda: not s.group("warm").get("cells"))
        s.until(lambda: not s.children())
        if self.cgroup:
            self.assertEqual(self.cgroup.slots(), [])
        s.stop()

    def test_a_cell_that_retires_leaves_no_cgroup(self):
        s = self.warm(wait=None, Pool={"Cells": "by-key", "CellIdleSec": "10ms"})
        for key in range(60):
            s.do("warm", "pid", key=f"key-{key}")
        s.until(lambda: not s.children())
        s.until(lambda: not s.group("warm").get("cells"))
        if self.cgroup:
            self.assertEqual(self.cgroup.slots(), [])
        s.stop()

    def test_a_reload_may_begin_and_end_it(self):
        s = self.warm()
        self.forked(s)
        body = Path(s.config, "warm.group").read_text(encoding="utf-8")
        s.write("warm.group", body.replace("Template=slot", "Template=no"))
        s.ctl("reload", check=True)
        s.until(lambda: len(s.children()) == 1)
        self.executed(s)
        s.write("warm.group", body.replace("Template=slot", "Template=slot\nMaxJobs=1"))
        s.ctl("reload", check=True)
        s.wait_event("template.ready", "warm", 2)
        self.template(s)  # perhaps by the worker that was executed
        self.assertEqual(len({self.template(s) for _ in range(20)}), 1)
        s.stop()

    def test_it_is_renewed_when_it_is_too_old(self):
        s = self.warm(Pool={"TemplateMaxAgeSec": "500ms"})
        templates = set()
        for n in range(2, 5):
            templates.add(s.worker("warm/0")["template"].get("pid"))
            s.wait_event("template.ready", "warm", n)
        self.assertGreater(len(templates - {None}), 1)
        self.assertEqual(s.group("warm")["deaths"], 0)
        s.stop()

    def test_it_is_not_inherited_by_the_next_supervisor(self):
        for crash in (True, False):
            with self.subTest(crash=crash):
                s = self.warm()
                template = self.forked(s)
                worker = s.worker("warm/0")
                if crash:
                    s.crash()
                else:
                    s.ctl("upgrade", check=True)
                s.wait_event("template.ready", "warm")
                self.assertEqual(s.worker("warm/0")["pid"], worker["pid"])
                self.assertNotEqual(self.forked(s), template)
                s.until(lambda: len(s.children()) == 2)
                s.stop()

    def test_a_crash_in_the_middle_of_a_fork_leaves_nothing(self):
        for point in ("fork.requested", "fork.reported", "fork.adopted", "fork.passed"):
            with self.subTest(point=point):
                s = self.warm(faults=f"{point}:1")
                crashed = os.pidfd_open(s.supervisor_pid)
                self.addCleanup(os.close, crashed)
                os.kill(s.worker("warm/0")["pid"], signal.SIGKILL)
                self.assertTrue(ended(crashed, LIMIT))
                s.crashed = True
                s.wait_event("template.ready", "warm")
                self.forked(s)
                s.until(lambda: len(s.children()) == 2)
                s.stop()

    def test_an_upgrade_in_the_middle_of_a_fork_leaves_nothing(self):
        s = self.warm("deaf")
        template = s.worker("warm/0")["template"]["pid"]
        Path(self.mode).write_text("well", encoding="ascii")
        os.kill(s.worker("warm/0")["pid"], signal.SIGKILL)
        s.until(lambda: s.status_field("State", template) == "T")
        s.ctl("upgrade", check=True)
        s.wait_event("template.ready", "warm")
        self.assertNotEqual(self.forked(s), template)
        s.until(lambda: len(s.children()) == 2)
        s.stop()

    def test_the_end_of_the_main_process_ends_it_and_its_worker(self):
        s = self.warm()
        both = [os.pidfd_open(pid) for pid in (self.forked(s), s.worker("warm/0")["pid"])]
        s.kill()
        for pidfd in both:
            self.assertTrue(ended(pidfd, LIMIT))
            os.close(pidfd)

    def test_what_it_cannot_do_is_refused(self):
        s = self.supervisor()
        for pool, group, sandbox, words in (
                ({"Spare": 1}, {}, {}, "needs no spare"), ({}, {"Type": "service"}, {}, "needs jobs"),
                ({}, {}, {"PrivatePIDs": "yes"}, "PID namespace"),
                ({}, {}, {"Profile": "strict"}, "or PrivatePIDs=no"), ({"Template": "group"}, {}, {}, "no, slot")):
            s.write("warm.group", ini(WARM, Group=group, Pool={"Template": "slot", **pool}, Sandbox=sandbox))
            self.assertIn(words, s.ctl("verify", s.config).stdout)


if __name__ == "__main__":
    import unittest
    unittest.main()
