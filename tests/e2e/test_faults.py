# SPDX-License-Identifier: MIT
"""A mistake in one group stops that group alone: the configuration names what this machine lacks."""
import os
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

from troupe import ACTOR, LIMIT, SANITIZED, Bell, TestCase, VarlinkError, ini, text


class Faults(TestCase):
    def setUp(self):
        self.s = self.supervisor({"good": ini(ACTOR)})
        self.program = self.s.path("program")

    def install(self):
        shutil.copy(ACTOR, self.program + ".new")
        os.rename(self.program + ".new", self.program)

    def state(self, group):
        group = self.s.group(group)
        return group["state"], group.get("fault")

    def assert_blocked(self, group, fault):
        state, told = self.state(group)
        self.assertEqual(state, "failed")
        self.assertIn(fault, told)

    def assert_works(self, group):
        self.assertEqual(self.s.do(group, "echo fine")["result"], text("fine"))
        self.assertEqual(self.state(group), ("running", None))


class Starts(Faults):
    def test_what_is_missing_stops_its_own_group_alone(self):
        self.s.write("program.group", ini("/no/such"))
        self.s.write("path.group", ini("no-such-program"))
        self.s.write("executable.group", ini("/etc/passwd"))
        self.s.write("user.group", ini(ACTOR, Group={"User": "nobody-there"}))
        self.s.write("gid.group", ini(ACTOR, Group={"Group": "nobody-there"}))
        self.s.write("directory.group", ini(ACTOR, Group={"WorkingDirectory": "/no/such"}))
        self.s.write("environment.group", ini(ACTOR, Group={"EnvironmentFile": "/no/such"}))
        self.s.write("cpus.group", ini(ACTOR, Resources={"AllowedCPUs": "0 8000-8191"}))
        self.s.write("after.group", ini(ACTOR, Group={"After": "program"}))
        self.s.start()
        self.assert_works("good")
        self.assert_works("after")
        for group, fault in {"program": "/no/such", "path": "no-such-program", "executable": "/etc/passwd",
                             "user": "User=nobody-there", "gid": "Group=nobody-there",
                             "directory": "WorkingDirectory=/no/such", "cpus": "no CPU 8191; allowed: up to ",
                             "environment": "EnvironmentFile=/no/such"}.items():
            with self.subTest(group=group):
                self.assert_blocked(group, fault)
                self.assertEqual({w["generation"] for w in self.s.group(group)["workers"]}, {0})
                status = self.s.ctl("status", group)
                self.assertEqual(status.returncode, 1)
                self.assertRegex(status.stdout, rf"^! {group}: cannot start – .*{fault}")
        self.assertIn("Trouble: 8 cannot start\n", self.s.ctl("status").stdout)
        self.assertIn("program cannot start: ExecStart=", self.s.log())

    def test_the_service_manager_is_told_which_group_cannot_start(self):
        self.s.write("program.group", ini("/no/such/program", Pool={"Size": 3}))
        self.s.start()
        self.s.wait_told("STATUS=1 of 4 workers up in 2 groups; program cannot start, see troupectl status")

    def test_a_group_recovers_by_itself(self):
        self.s.write("late.group", ini(self.program))
        self.s.start()
        self.assert_blocked("late", self.program)
        job = self.s.create("late", "echo waited")
        self.install()
        self.assertEqual(self.s.wait_job(job)["result"], text("waited"))
        self.assert_works("late")
        self.s.wait_event("group.mended", "late")

    def test_a_group_recovers_by_a_verb(self):
        for verb in ("start", "late", "--wait"), ("restart", "late", "--wait"), ("reset", "late"), ("reload",):
            with self.subTest(verb=verb):
                self.setUp()
                self.s.write("late.group", ini(self.program))
                self.s.start()
                self.assert_blocked("late", self.program)
                self.install()
                self.s.ctl(*verb, check=True)
                self.s.wait_event("worker.ready", "late")
                self.assert_works("late")

    def test_a_start_that_waits_says_what_is_missing(self):
        self.s.write("late.group", ini(self.program))
        self.s.start()
        refused = self.s.ctl("start", "late", "--wait")
        self.assertEqual(refused.returncode, 1)
        self.assertIn(f"program '{self.program}': no such file", refused.stderr)

    def test_a_group_that_was_stopped_meanwhile_stays_so(self):
        self.s.write("late.group", ini(self.program))
        self.s.start()
        self.s.ctl("stop", "late", check=True)
        self.install()
        self.s.wait_event("group.mended", "late")
        self.assertEqual(self.state("late"), ("stopped", None))
        self.s.ctl("start", "late", "--wait", check=True)
        self.assert_works("late")

    def test_variables_of_files_are_those_of_the_last_try(self):
        file = self.s.path("variables")
        self.s.write("late.group", ini(ACTOR, Group={"EnvironmentFile": [file, self.s.path("more")]}))
        for name, lines in ("variables", "OLD=1\n"), ("more.new", "A=2\n"):
            Path(self.s.path(name)).write_text(lines, encoding="ascii")
        self.s.start()
        self.assert_blocked("late", "more")
        Path(file).write_text("NEW=1\n", encoding="ascii")
        os.rename(self.s.path("more.new"), self.s.path("more"))
        self.s.ctl("start", "late", "--wait", check=True)
        self.assertEqual([self.s.do("late", f"environment {n}")["result"] for n in ("OLD", "NEW", "A")],
                         [text(""), text("1"), text("2")])

    def test_cells_begin_when_their_group_can(self):
        self.s.write("keyed.group", ini(self.program, Pool={"Cells": "by-key"}))
        self.s.start()
        job = self.s.create("keyed", "echo mine", key="a")
        self.assert_blocked("keyed", self.program)
        self.install()
        self.assertEqual(self.s.wait_job(job)["result"], text("mine"))


class Mistakes(Faults):
    """A file that cannot be understood is a fault of its group, too."""

    WRONG = ini(ACTOR, Group={"Sise": "3"})
    FAULT = r"typo\.group:\d+: unknown key 'Sise'"

    def assert_kept_back(self, group="typo"):
        state, told = self.state(group)
        self.assertEqual(state, "failed")
        self.assertRegex(told, self.FAULT)

    def test_a_mistake_in_a_file_stops_its_own_group_alone(self):
        self.s.write("typo.group", self.WRONG)
        self.s.write("odd.exchange", "[Exchange]\nType=nonsense\n")
        self.s.start()
        self.assert_works("good")
        self.assert_kept_back()
        status = self.s.ctl("status", "typo")
        self.assertEqual(status.returncode, 1)
        self.assertRegex(status.stdout, rf"^! typo: cannot start – .*{self.FAULT}")
        self.assertIn("odd.exchange:2", self.s.log())
        # Whether it would be durable is not known.
        self.assertIn("its file has a mistake", self.s.ctl("do", "typo").stderr)
        self.assertRaisesRegex(VarlinkError, "BadGroup", self.s.create, "typo", "echo")

    def test_a_file_that_is_mended_is_read_at_a_reload_and_at_a_start(self):
        for verb in ("reload",), ("start", "typo", "--wait"):
            with self.subTest(verb=verb):
                s = self.s = self.supervisor({"good": ini(ACTOR), "typo": self.WRONG})
                s.start()
                s.write("typo.group", ini(ACTOR))
                s.ctl(*verb, check=True)
                s.wait_event("worker.ready", "typo")
                self.assert_works("typo")

    def test_a_file_that_is_mended_is_found(self):
        self.s.write("typo.group", self.WRONG)
        self.s.start()
        self.s.write("typo.group", ini(ACTOR, Pool={"Size": 2}))
        self.s.wait_event("group.mended", "typo")
        self.assertEqual(self.s.do("typo", "echo")["state"], "succeeded")
        self.assertEqual(len(self.s.group("typo")["workers"]), 2)

    def test_a_mended_file_may_describe_another_kind_of_group(self):
        self.s.write("typo.group", "[Group]\nExecStart=/bin/sleep 1000\nType=servise\n")
        self.s.write("keyed.group", ini(ACTOR, Pool={"Cells": "by-kay"}))
        self.s.start()
        self.s.write("typo.group", "[Group]\nExecStart=/bin/sleep 1000\nType=service\n")
        self.s.write("keyed.group", ini(ACTOR, Pool={"Cells": "by-key"}))
        self.s.ctl("reload", check=True)
        self.s.wait_for(lambda: self.state("typo") == ("running", None))
        self.assertEqual(self.s.do("keyed", "echo", key="a")["state"], "succeeded")

    def test_a_reload_leaves_a_mistake_of_the_start_alone(self):
        self.s.write("typo.group", self.WRONG)
        self.s.start()
        self.refused("BadConfiguration", self.s.call, "Reload")
        self.assert_kept_back()

    def test_after_a_crash_a_group_with_a_mistake_goes_on_with_what_its_files_said_before(self):
        s = self.s
        s.write("typo.group", ini(ACTOR, Pool={"Size": 2}, Group={"Environment": "OLD=1"}))
        s.write("typo.group.d/more.conf", "[Group]\nEnvironment=MORE=2\n")
        s.start()
        workers = s.children()
        s.write("typo.group", self.WRONG)
        for _ in range(2):
            s.crash()
            s.until(lambda: s.call("GetInfo")["state"] == "running")
            s.wait_for(lambda: self.state("typo")[0] == "degraded")
            self.assertRegex(self.state("typo")[1], self.FAULT)
            self.assertEqual(s.children(), workers)
        pid = s.worker("typo/0")["pid"]
        os.kill(pid, signal.SIGKILL)
        s.wait_for(lambda: s.worker("typo/0").get("pid", pid) != pid)
        self.assertEqual([s.do("typo", f"environment {n}")["result"] for n in ("OLD", "MORE")], [text("1"), text("2")])
        s.write("typo.group", ini(ACTOR, Group={"Environment": "OLD=3"}))
        s.ctl("reload", check=True)
        s.wait_event("group.rolled", "typo")
        s.until(lambda: self.state("typo") == ("running", None))  # a worker that died before may still start
        self.assertEqual(s.do("typo", "environment OLD")["result"], text("3"))


class Reloads(Faults):
    def test_a_new_group_with_a_fault_does_not_keep_the_others_from_changing(self):
        self.s.start()
        self.s.write("bad.group", ini("/no/such"))
        self.s.write("new.group", ini(ACTOR))
        reply = self.s.call("Reload")
        self.assertEqual((reply["added"], len(reply["faults"])), (["bad", "new"], 1))
        self.assertIn("bad.group:2: ExecStart=", reply["faults"][0])
        self.assert_blocked("bad", "/no/such")
        self.assert_works("new")
        self.assertIn("bad.group:2: ", self.s.ctl("reload", check=True).stderr)
        os.unlink(os.path.join(self.s.config, "bad.group"))
        self.s.ctl("reload", check=True)
        self.s.wait_for(lambda: [g["name"] for g in self.s.call("GetStatus")["groups"]] == ["good", "new"])

    def test_a_group_that_runs_goes_on_as_before_and_changes_when_it_can(self):
        self.s.start()
        pid = self.s.worker("good/0")["pid"]
        self.s.write("good.group", ini(self.program, Group={"Environment": "NEW=1"}))
        self.assertEqual(len(self.s.call("Reload")["faults"]), 1)
        state, fault = self.state("good")
        self.assertEqual((state, self.s.worker("good/0")["pid"]), ("degraded", pid))
        self.assertIn(self.program, fault)
        self.assertRegex(self.s.ctl("status", "good").stdout,
                         r"^! good: degraded – still runs its previous configuration: ExecStart=")
        self.assertEqual(self.s.do("good", "echo")["state"], "succeeded")
        self.install()
        self.s.wait_event("group.rolled", "good")
        self.assertEqual(self.s.do("good", "environment NEW")["result"], text("1"))
        self.assertEqual(self.state("good"), ("running", None))

    def test_a_reload_that_finds_something_missing_says_that_all_else_is_in_force(self):
        self.s.start()
        self.s.write("program.group", ini("/no/such/program"))
        reload = self.s.ctl("reload")
        self.assertEqual((reload.returncode, reload.stdout), (0, "added program\n"))
        self.assertRegex(reload.stderr, r"^/.*/program.group:\d+: ExecStart=.*\ntroupectl: 1 thing is missing: "
                                        r"the groups concerned stay as they were, .*; all else is in force\n$")
        self.assertEqual(self.s.ctl("reload", "--json").returncode, 0)
        self.assertEqual(self.s.ctl("status", "program").returncode, 1)
        self.assertEqual(self.s.ctl("verify", "--config", self.s.config).returncode, 7)

    def test_an_empty_directory_is_no_wish_to_end_everything(self):
        self.s.start()
        os.unlink(os.path.join(self.s.config, "good.group"))
        refused = self.s.ctl("reload")
        self.assertEqual(refused.returncode, 7)
        self.assertIn("has no NAME.group any more, and 1 group runs", refused.stderr)
        self.assert_works("good")
        self.assertEqual(self.s.ctl("reload", "--allow-empty", check=True).stdout, "removed good\n")

    def test_a_problem_is_in_the_log_once(self):
        self.s.start()
        self.s.write("wrong.group", ini(ACTOR, Pool={"Sise": "3"}))
        self.assertEqual(self.s.ctl("reload").stderr.count("Sise"), 1)
        self.assertEqual(self.s.log().count("Sise"), 0)
        self.s.process.send_signal(signal.SIGHUP)
        self.s.until(lambda: self.s.log().count("Sise") == 1)

    def test_a_hangup_while_it_starts_is_not_lost(self):
        bell = Bell(self.s, "bell")
        self.s.write("slow.group", ini(f"/bin/sh -c 'read line < {bell.path}; exec {ACTOR}'"))
        self.s.spawn()
        self.s.wait_told("STATUS=1 of 2 workers up in 2 groups; slow is starting, see troupectl status")
        self.s.write("new.group", ini(ACTOR))
        self.s.process.send_signal(signal.SIGHUP)
        self.s.until(lambda: "SIGHUP received" in self.s.log())
        self.assertEqual(self.s.call("GetInfo")["state"], "starting")
        bell.ring()
        self.s.wait_for(lambda: len(self.s.call("GetStatus")["groups"]) == 3)
        self.assert_works("new")


SLOW_NAMES = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
struct passwd *getpwnam(const char *name)
{
    struct passwd *(*next)(const char *) = dlsym(RTLD_NEXT, "getpwnam");

    while (strcmp(name, "slow") == 0)
        pause();
    if (strcmp(name, "crash") == 0)
        raise(SIGSEGV);
    return next(name);
}
int stat(const char *path, struct stat *status)
{
    while (strncmp(path, "/slow/", 6) == 0)
        pause();
    return fstatat(AT_FDCWD, path, status, 0);
}
int open(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    mode_t mode = va_arg(list, mode_t);
    va_end(list);
    while (strncmp(path, "/slow/", 6) == 0)
        pause();
    return openat(AT_FDCWD, path, flags, mode);
}
"""


@unittest.skipIf(SANITIZED or os.geteuid() != 0, "needs a library before all others, and root to change users")
class NameService(Faults):
    """A name service that does not answer, or crashes its callers; and a file server that does not answer."""

    def setUp(self):
        super().setUp()
        source, library = self.s.path("slow.c"), self.s.path("slow.so")
        Path(source).write_text(SLOW_NAMES, encoding="ascii")
        try:
            subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        except (OSError, subprocess.CalledProcessError):
            self.skipTest("no compiler")
        self.s.environment["LD_PRELOAD"] = library

    def works_while_reloading(self):
        longest = 0
        while self.s.call("GetInfo")["state"] == "reloading":
            begun = time.monotonic()
            self.assertEqual(self.s.do("good", "echo")["state"], "succeeded")
            longest = max(longest, time.monotonic() - begun)
        self.assertLess(longest, LIMIT / 10)

    def test_no_answer_delays_a_reload_and_nothing_else(self):
        self.s.start()
        self.s.write("slow.group", ini(ACTOR, Group={"User": "slow"}))
        self.s.write("crash.group", ini(ACTOR, Group={"User": "crash"}))
        self.s.write("other.group", ini(ACTOR, Group={"User": "nobody"}))
        connection = self.s.connect()
        connection.send("Reload")
        self.works_while_reloading()
        reply = connection.reply()[0]
        self.assertEqual((reply["added"], len(reply["faults"])), (["crash", "other", "slow"], 2))
        self.assert_blocked("slow", "User=slow: user cannot be looked up: no answer from the name service in time")
        self.assert_blocked("crash", "User=crash: user cannot be looked up: Input/output error")
        self.assert_works("other")

    def test_a_file_server_without_an_answer_delays_a_reload_and_nothing_else(self):
        self.s.start()
        for key, path in ("ExecStart", "/slow/program"), ("WorkingDirectory", "/slow/"), ("EnvironmentFile", "/slow/file"):
            self.s.write(key.lower() + ".group", ini(ACTOR, Group={key: path}))
        self.s.write("other.group", ini(ACTOR, Group={"WorkingDirectory": "/tmp"}))
        connection = self.s.connect()
        connection.send("Reload")
        self.works_while_reloading()
        reply = connection.reply()[0]
        self.assertEqual(len(reply["faults"]), 3)
        for group in "execstart", "workingdirectory", "environmentfile":
            self.assert_blocked(group, "no answer from the file system in time")
        self.assert_works("other")

    def schedule(self, path):
        return f"[Schedule]\nOnCalendar=Mon 03:00 UTC\n[Job]\nGroup=good\nDataFile={path}\n"

    def test_the_data_of_a_schedule_without_an_answer_refuses_a_reload_and_delays_nothing_else(self):
        data = self.s.write("data", "ping")
        self.s.write("weekly.schedule", self.schedule(data))
        self.s.start()
        self.s.write("weekly.schedule", self.schedule("/slow/file"))
        connection = self.s.connect()
        connection.send("Reload")
        self.works_while_reloading()
        with self.assertRaises(VarlinkError) as refused:
            connection.reply()
        self.assertIn("DataFile=/slow/file cannot be read: no answer from the file system in time", str(refused.exception))
        self.assertIn("weekly", self.s.ctl("schedule", "list", check=True).stdout)

    def test_the_data_of_a_schedule_without_an_answer_at_the_start_keeps_it_back_alone(self):
        self.s.write("slow.schedule", self.schedule("/slow/file"))
        self.s.write("weekly.schedule", self.schedule(self.s.write("data", "ping")))
        self.s.start()
        self.assert_works("good")
        self.assertIn("slow.schedule:5: DataFile=/slow/file cannot be read", self.s.log())
        self.assertIn("DataFile=/slow/file", self.s.ctl("status").stdout)
        listed = self.s.ctl("schedule", "list", check=True).stdout
        self.assertRegex(listed, r"(?m)^weekly ")
        self.assertNotRegex(listed, r"(?m)^slow ")

    def test_no_answer_at_the_start_stops_its_own_group_alone(self):
        self.s.write("slow.group", ini(ACTOR, Group={"User": "slow"}))
        self.s.start()
        self.assert_blocked("slow", "no answer from the name service")
        self.assert_works("good")

    def test_a_group_recovers_although_another_has_no_answer(self):
        self.s.write("late.group", ini(self.program))
        self.s.write("slow.group", ini(ACTOR, Group={"User": "slow"}))
        self.s.start()
        self.assert_blocked("late", self.program)
        self.install()
        self.s.wait_event("group.mended", "late")
        self.assert_works("late")

    def test_a_group_recovers_although_many_others_have_no_answer(self):
        for i in range(4):  # they take all the time that a lookup has
            self.s.write(f"a{i}.group", ini(ACTOR, Group={"WorkingDirectory": f"/slow/{i}"}))
        self.s.write("late.group", ini(self.program))
        self.s.start()
        self.assert_blocked("late", "")
        self.install()
        self.s.wait_event("group.mended", "late")
        self.assert_works("late")

    def test_a_stop_does_not_wait_for_the_answer(self):
        self.s.start()
        self.s.write("slow.group", ini(ACTOR, Group={"User": "slow"}))
        connection = self.s.connect()
        connection.send("Reload")
        self.s.until(lambda: self.s.call("GetInfo")["state"] == "reloading")
        self.s.terminate()
        self.refused("Stopping", connection.reply)
        self.assertEqual(self.s.wait_end(), 0)
