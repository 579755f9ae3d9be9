# SPDX-License-Identifier: MIT
"""Workers: start, supervision, end, restart."""
import os
import tempfile
import shutil
import signal
import sys
import unittest
from pathlib import Path

from troupe import QUICK, SANITIZED, TROUPE_EXEC, Bell, TestCase, VarlinkError, actor, ini, service, text


class Restarts(TestCase):
    def generation(self, s, name, number):
        worker = s.worker(name)
        return worker if worker["generation"] == number and worker["state"] == "idle" else None

    def test_the_second_restart_in_a_row_waits_for_its_back_off(self):
        s = self.started({"actor": actor(Restart={"MinSec": "10min", "MaxSec": "10min", "Random": 0})})
        os.kill(s.worker("actor/0")["pid"], signal.SIGKILL)
        os.kill(s.wait_for(lambda: self.generation(s, "actor/0", 2), "actor")["pid"], signal.SIGKILL)
        worker = s.wait_worker("actor/0", "backoff")
        died_at = s.deaths()[0]["at"]
        self.assertAlmostEqual((worker["restart_at"] - died_at) / 1e6, 600, delta=5)
        s.call("Reset", target="actor/0")
        s.wait_for(lambda: self.generation(s, "actor/0", 3), "actor")

    def test_a_dependency_that_is_away_for_long_needs_no_reset_and_is_not_silent(self):
        """With the default settings: pauses that grow, and no limit."""
        s = self.supervisor()
        gate = s.path("dependency")
        s.write("web.group", service(f"/bin/sh -c 'test -e {gate} || exit 1; exec sleep infinity'",
                                     Restart={"MaxSec": "200ms", "ResetAfterSec": "3s"}))
        s.start()
        message = s.wait_event("worker.failing", "web")["message"]
        self.assertIn("web/0 is failing: 3 times in a row", message)
        s.wait_event("worker.died", "web", 10)
        worker = s.worker("web/0")
        self.assertGreaterEqual(worker["failures"], 10)
        self.assertLess(worker["failing_since_at"], worker["since_at"])
        self.assertEqual(s.group("web")["state"], "degraded")
        open(gate, "w", encoding="ascii").close()
        s.wait_event("worker.recovered", "web")
        self.assertEqual(s.group("web")["state"], "running")
        self.assertNotIn("failures", s.worker("web/0"))
        self.assertEqual(s.log().count("is failing"), 1)

    def test_messages_count_towards_health_as_jobs_do(self):
        s = self.started({"actor": actor(Restart={"MinSec": "10min", "MaxSec": "10min"})})
        for generation in range(1, 4):
            worker = s.wait_for(lambda: self.generation(s, "actor/0", generation), "actor")
            for _ in range(2):  # the worker ends the first one before it begins the second
                self.assertRaises(VarlinkError, s.call, "io.troupe.Actors.Ask", to="actor/0", type="unknown")
            os.kill(worker["pid"], signal.SIGKILL)
        self.assertEqual(s.wait_for(lambda: self.generation(s, "actor/0", 4), "actor")["restarts"], 3)

    def test_a_worker_that_leaves_by_itself_is_restarted_only_under_restart_always(self):
        s = self.started({"always": service("/bin/sh -c 'exit 0'", Restart={**QUICK, "Restart": "always"}),
                          "failing": service("/bin/sh -c 'exit 3'", Restart={**QUICK, "Restart": "on-failure"}),
                          "once": service("/bin/sh -c 'exit 0'", Restart={**QUICK, "Restart": "on-failure"}),
                          "never": service("/bin/sh -c 'exit 3'", Restart={**QUICK, "Restart": "no"})})
        s.wait_event("worker.died", "always", 3)
        s.wait_event("worker.died", "failing", 3)
        for group, state in ("once", "stopped"), ("never", "failed"):
            self.assertEqual(s.wait_worker(f"{group}/0", state)["generation"], 1)

    def test_an_idle_actor_that_crashes_loses_no_job(self):
        s = self.started({"actor": actor()})
        for i in range(20):
            os.kill(s.wait_worker("actor/0", "idle")["pid"], signal.SIGKILL)
            self.assertEqual(s.do("actor", f"echo {i}")["result"], text(str(i)))


class Deaths(TestCase):
    def setUp(self):
        self.s = self.started({"actor": actor(Resources={"LimitCORE": 0})})

    def test_the_report_says_what_happened(self):
        self.s.do("actor", "state counting 7\ncomplain it hurts here\ncrash segv", id="j", max_retries=0)
        [death] = self.s.deaths()
        self.assertEqual((death["worker"], death["generation"], death["cause"], death["signal"]),
                         ("actor/0", 1, "signal", "SIGSEGV"))
        self.assertIn("SIGSEGV", death["detail"])
        self.assertEqual((death["job"], death["attempt"], death["jobs_done"]), ("j", 1, 0))
        self.assertEqual(death["state"], text("counting 7"))
        self.assertIn("it hurts here", death["stderr"])
        self.assertIsNone(death.get("exit_status"))
        self.assertGreater(death["max_rss_bytes"], 10000)
        self.assertGreater(death["uptime_usec"], 0)
        self.assertFalse(death["core_dumped"])

    def test_an_exit_is_told_from_a_signal(self):
        self.s.do("actor", "exit 7", max_retries=0)
        [death] = self.s.deaths()
        self.assertEqual((death["cause"], death["exit_status"], death.get("signal")), ("exit", 7, None))

    def test_a_signal_from_outside_names_its_sender(self):
        s = self.started({"exec": ini(f"{TROUPE_EXEC} -- /bin/sh -c {{}}", Restart=QUICK)})
        job = s.do("exec", "kill -TERM $PPID; while :; do sleep 1; done", max_retries=0)
        self.assertRegex(job["reason"], rf"got SIGTERM, sent by process \d+ of uid {os.getuid()}$")

    def test_the_last_lines_of_standard_error_are_kept_up_to_4_kib(self):
        lines = "\n".join(f"complain line {i} {'x' * 80}" for i in range(200))
        self.s.do("actor", lines + "\ncrash kill", max_retries=0)
        [death] = self.s.deaths()
        self.assertIn("line 199 ", death["stderr"])
        self.assertLessEqual(len(death["stderr"]), 4096)
        self.assertGreater(len(death["stderr"]), 3000)

    @unittest.skipIf(SANITIZED, "a sanitizer needs more address space than the limit leaves")
    def test_a_runaway_allocation_ends_at_its_limit_and_hurts_nobody_else(self):
        s = self.started({"greedy": actor(Resources={"LimitAS": "64M", "LimitCORE": 0}), "actor": actor()})
        job = s.do("greedy", "before 2 allocate\necho fine")
        self.assertEqual((job["state"], job["attempt"]), ("succeeded", 2))
        self.assertEqual(s.worker("actor/0")["generation"], 1)


class Watchdogs(TestCase):
    def test_a_busy_worker_without_a_sign_of_life_is_aborted(self):
        s = self.started({"actor": actor(Worker={"WatchdogSec": "500ms"}, Resources={"LimitCORE": 0})})
        bell = Bell(s, "bell")
        job = s.do("actor", f"before 2 wait {bell.path}\nattempt")
        self.assertEqual(job["result"], text("2"))
        [death] = s.deaths()
        self.assertEqual((death["cause"], death["signal"]), ("watchdog", "SIGABRT"))

    def test_a_busy_worker_that_gives_signs_of_life_goes_on(self):
        s = self.started({"actor": actor(2, Worker={"WatchdogSec": "1s"}, Resources={"LimitCORE": 0})})
        s.create("actor", "until-cancelled", id="lively")
        bell = Bell(s, "bell")
        s.do("actor", f"before 2 wait {bell.path}\nattempt")  # its watchdog expires after a second
        self.assertEqual(s.job("lively")["attempt"], 1)
        s.call("Cancel", id="lively")
        self.assertEqual(s.wait_job("lively")["state"], "cancelled")

    def test_an_idle_worker_needs_none(self):
        s = self.started({"quiet": actor(Worker={"WatchdogSec": "50ms"}), "actor": actor()})
        s.do("actor", "before 5 retry 1 later", backoff_min_usec=50000, max_retries=4)  # takes 200 ms
        self.assertEqual(s.worker("quiet/0")["generation"], 1)


class Stops(TestCase):
    def test_P9_a_stop_within_a_time_ends_what_is_still_at_work_and_its_job_is_queued_again(self):
        s = self.started({"actor": actor(Worker={"TimeoutStopSec": "100ms"})})
        started = Bell(s, "started")
        job = s.create("actor", f"ring {started.path}\nwait {Bell(s, 'never').path}", max_retries=0)
        started.wait()
        s.call("Stop", target="actor")
        s.wait_worker("actor/0", "stopping")
        s.ctl("stop", "actor", "--within", "50ms", "--wait", check=True)
        self.assertEqual(s.worker("actor/0")["state"], "stopped")
        self.assertEqual((s.job(job)["state"], s.job(job)["attempts"]), ("queued", []))
        self.assertEqual(s.deaths()[0]["cause"], "stop")
        self.refused("BadOption", s.call, "Stop", target="actor", within_usec=-1)

    def test_P9_a_stop_within_a_time_is_no_attempt_of_the_job_of_a_command(self):
        s = self.started({"web": ini(f"{TROUPE_EXEC} -- /bin/sh -c {{}}")})
        started = Bell(s, "started")
        job = s.create("web", f"echo > {started.path}; exec sleep infinity", max_retries=0)
        started.wait()
        s.ctl("stop", "web", "--within", "50ms", "--wait", check=True)
        self.assertEqual((s.job(job)["state"], s.job(job)["attempts"]), ("queued", []))

    def test_a_deaf_worker_whose_job_is_cancelled_goes_up_the_ladder(self):
        s = self.started({"actor": actor(Worker={"TimeoutStopSec": "100ms"})})
        s.busy("actor", "", first="deaf\n", id="c")
        s.call("Cancel", id="c")
        self.assertEqual(s.wait_job("c")["state"], "cancelled")
        s.wait_for(lambda: s.worker("actor/0")["generation"] == 2)
        self.assertEqual(s.deaths()[0]["signal"], "SIGKILL")

    def test_what_a_worker_left_behind_is_killed_with_it(self):
        s = self.started({"actor": actor()})
        os.mkfifo(s.path("held"))
        fd = os.open(s.path("held"), os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, fd)
        s.do("actor", f"orphan {s.path('held')}\nring {Bell(s, 'bell').path}\necho")
        os.set_blocking(fd, True)
        s.call("Stop", target="actor", wait=True)
        self.assertEqual(os.read(fd, 1), b"")  # the last writer is gone: end of file

    def test_I6_what_the_command_of_a_job_left_behind_ends_with_the_job(self):
        """A daemon: orphaned, in a session of its own, deaf. Its worker lives on."""
        s = self.started({"exec": ini(f"{TROUPE_EXEC} -- /bin/sh -c {{}}")})
        held, worker = s.path("held"), s.workers("exec")[0]["pid"]
        os.mkfifo(held)
        fd = os.open(held, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, fd)
        daemon = f"trap '' TERM HUP INT; exec 3>{held}; echo >&3; exec sleep 1000"
        job = s.do("exec", f"(setsid sh -c \"({daemon}) &\" &); read line <{held}; echo done")
        self.assertEqual(job["result"]["data"], "done\n")
        self.assertEqual(os.read(fd, 1), b"")  # the last writer is gone, and its line was read
        self.assertEqual(s.workers("exec")[0]["pid"], worker)

    def test_the_kill_signal_is_the_configured_one(self):
        script = "trap 'exit 0' USR1; while :; do read x < \"$0\"; done"
        s = self.supervisor()
        os.mkfifo(s.path("pipe"))
        s.write("s.group", service(f"/bin/sh -c {quoted(script)} {s.path('pipe')}", Worker={"KillSignal": "SIGUSR1"}))
        s.start()
        s.call("Stop", target="s", wait=True)
        self.assertEqual(s.deaths()[0]["cause"], "stop")


def quoted(argument):
    return '"' + argument.replace("\\", "\\\\").replace('"', '\\"') + '"'


class Starts(TestCase):
    def test_a_worker_that_never_gets_ready_is_killed_after_its_time(self):
        s = self.supervisor({"never": actor(Group={"Environment": "ACTOR_NEVER_READY=1"},
                                            Worker={"TimeoutStartSec": "50ms"},
                                            Restart={**QUICK, "StartLimitBurst": 2}), "actor": actor()})
        s.start()
        s.wait_worker("never/0", "failed")
        self.assertEqual({d["cause"] for d in s.deaths("never")}, {"start_timeout"})
        self.assertEqual(s.do("actor", "echo")["state"], "succeeded")

    def test_the_environment_is_the_configured_one_and_nothing_else_leaks(self):
        s = self.supervisor({"actor": actor(Group={"Environment": ["A=1", '"B=two words"'],
                                                   "WorkingDirectory": "/tmp"})},
                            environment={"SECRET": "leak"})
        s.start()
        for name, value in {"A": "1", "B": "two words", "SECRET": ""}.items():
            self.assertEqual(s.do("actor", f"environment {name}")["result"], text(value))
        self.assertEqual(s.do("actor", "directory")["result"], text("/tmp"))

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_why_a_worker_cannot_be_started_stands_in_the_status(self):
        directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, directory)
        s = self.started({"actor": actor(Group={"User": "nobody", "WorkingDirectory": directory})})
        s.wait_not_started("actor/0", "chdir: Permission denied")
        os.chmod(directory, 0o755)
        s.wait_worker("actor/0", "idle")
        self.assertNotIn("status", s.worker("actor/0"))

    def test_limits_are_set(self):
        s = self.started({"actor": actor(Resources={"LimitNOFILE": 77, "LimitCORE": 0, "Nice": 5})})
        pid = s.worker("actor/0")["pid"]
        limits = Path(f"/proc/{pid}/limits").read_text(encoding="ascii")
        self.assertRegex(limits, r"Max open files +77 ")
        self.assertEqual(os.getpriority(os.PRIO_PROCESS, pid), 5)


class Services(TestCase):
    def test_a_service_is_ready_when_started_and_kept_alive(self):
        s = self.started({"sleeper": service("/bin/sleep infinity", Pool={"Size": 2})})
        os.kill(s.worker("sleeper/0")["pid"], signal.SIGKILL)
        s.wait_for(lambda: s.worker("sleeper/0")["generation"] == 2 and s.worker("sleeper/0")["state"] in ("idle", "busy"),
                   "sleeper")
        self.assertEqual(s.worker("sleeper/1")["generation"], 1)

    def test_a_service_that_notifies_is_ready_when_it_says_so(self):
        s = self.supervisor()
        bell = Bell(s, "bell")
        path = s.path("service.py")
        Path(path).write_text(NOTIFYING, encoding="ascii")
        go = s.path("go")
        os.mkfifo(go)
        s.write("n.group", service(f"{sys.executable} {path} {bell.path} {go}", Group={"Type": "notify"}))
        s.spawn()
        bell.wait()
        self.assertEqual(s.worker("n/0")["state"], "starting")
        self.assertNotIn("READY=1", s.told)
        with open(go, "w", encoding="ascii"):
            pass
        s.wait_told("READY=1")
        s.wait_for(lambda: s.worker("n/0")["status"] == "serving 7", "n")
        self.assertEqual(s.worker("n/0")["state"], "idle")

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_its_environment_is_its_users_its_configured_and_the_supervisors_own(self):
        s = self.started({"e": service("/usr/bin/env", Group={"User": "nobody", "Environment": ["HOME=/somewhere", "TROUPE_WORKER=liar"]},
                                       Restart={"Restart": "no"})})
        s.wait_worker("e/0", "stopped")
        lines = [line.removeprefix("e/0: ") for line in s.call("GetLog", target="e")["lines"]]
        self.assertEqual([line for line in lines if line.startswith("USER=")], ["USER=nobody"])
        self.assertEqual([line for line in lines if line.startswith("HOME=")], ["HOME=/somewhere"])
        self.assertEqual([line for line in lines if line.startswith("TROUPE_WORKER=")], ["TROUPE_WORKER=e/0"])

    def test_what_a_service_writes_is_kept_with_its_death(self):
        s = self.started({"s": service("/bin/sh -c 'echo out; echo err >&2; exit 4'",
                                       Restart={"Restart": "no"})})
        s.wait_worker("s/0", "failed")
        [death] = s.deaths()
        self.assertEqual(death["exit_status"], 4)
        self.assertIn("err", death["stderr"])
        self.assertIn("err", "\n".join(s.call("GetLog", target="s")["lines"]))


class Order(TestCase):
    def events(self, s):
        return [(e["type"], e.get("worker")) for e in s.call("Watch")["events"]]

    def test_groups_start_after_those_they_name_and_stop_before_them(self):
        s = self.started({"a": actor(2, Group={"After": "z"}), "m": actor(Group={"After": "a"}), "z": actor()})
        events = self.events(s)
        for earlier, later in (("z/0", "a/0"), ("z/0", "a/1"), ("a/0", "m/0"), ("a/1", "m/0")):
            self.assertLess(events.index(("worker.ready", earlier)), events.index(("worker.started", later)))
        s.stop()
        ends = [line.split()[2] for line in s.log().splitlines() if " stopped: " in line]
        self.assertEqual(ends[0], "m/0")
        self.assertEqual(sorted(ends[1:3]), ["a/0", "a/1"])
        self.assertEqual(ends[3], "z/0")

    def test_a_group_that_fails_holds_nobody_up(self):
        s = self.started({"broken": service("/bin/sh -c 'exit 1'", Restart={**QUICK, "Restart": "no"}),
                          "next": actor(Group={"After": "broken"})})
        self.assertEqual(s.worker("next/0")["state"], "idle")


NOTIFYING = """
import os, signal, socket, sys
with open(sys.argv[1], "w") as bell:
    bell.write("started\\n")
open(sys.argv[2]).read()
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.sendto(b"READY=1\\nSTATUS=serving 7", os.environ["NOTIFY_SOCKET"])
signal.pause()
"""
