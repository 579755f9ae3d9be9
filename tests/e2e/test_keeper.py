# SPDX-License-Identifier: MIT
"""The main process, which starts and reaps everything: no start blocks the supervisor, and no process outlives it."""
import contextlib
import ctypes
import errno
import fcntl
import os
import pty
import resource
import shutil
import signal
import socket
import struct
import sys
import tempfile
import termios
import time
import unittest
from pathlib import Path

from troupe import ACTOR, FAULTY_TROUPED, LIMIT, TROUPED, VERSION, Bell, TestCase, VarlinkError, actor, ended, helper, ini, service, text

PTRACE_SEIZE = 0x4206
ROOT = os.geteuid() == 0
NOBODY = 65534


def status_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def read(path):
    return Path(path).read_text(encoding="ascii")


class Lease:
    """A file that cannot be executed for a while, as on a slow file server."""

    def __init__(self, s, path):
        previous = signal.signal(signal.SIGIO, signal.SIG_IGN)  # the kernel signals that somebody opens it
        self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        fcntl.fcntl(self.fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        s.connections.callback(signal.signal, signal.SIGIO, previous)
        s.connections.callback(os.close, self.fd)

    def end(self):
        fcntl.fcntl(self.fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)


class Starting(TestCase):
    def leased(self):
        """A supervisor with a working group, and one whose program takes long to open."""
        s = self.started({"fast": actor()})
        path = s.path("actor")
        shutil.copy(ACTOR, path)
        lease = Lease(s, path)
        s.write("slow.group", ini(path, Worker={"TimeoutStartSec": "1h"}))
        s.call("Reload")
        s.until(lambda: "pid" in s.worker("slow/0"))
        self.assertEqual(s.worker("slow/0")["state"], "starting")
        return s, lease

    def test_a_program_that_takes_long_to_open_holds_nobody_up(self):
        s, lease = self.leased()
        self.assertEqual(s.do("fast", "echo a")["result"], text("a"))
        os.kill(s.worker("fast/0")["pid"], signal.SIGKILL)  # another process is started meanwhile
        s.wait_for(lambda: s.worker("fast/0")["generation"] == 2 and s.worker("fast/0")["state"] == "idle")
        self.assertEqual(s.worker("slow/0")["state"], "starting")
        lease.end()
        s.wait_worker("slow/0", "idle")
        self.assertEqual(s.do("slow", "echo b")["result"], text("b"))

    def test_a_worker_whose_program_is_being_opened_can_be_stopped(self):
        s, _ = self.leased()
        s.call("Stop", target="slow", wait=True)
        self.assertEqual(s.worker("slow/0")["state"], "stopped")
        self.assertEqual(len(s.children()), 1)

    @unittest.skipUnless(ROOT, "needs root")
    def test_a_process_has_only_its_own_descriptors_before_its_program_runs(self):
        s, _ = self.leased()
        pid = s.worker("slow/0")["pid"]
        self.assertEqual(os.readlink(f"/proc/{pid}/exe"), os.path.realpath(TROUPED))
        variables = read(f"/proc/{s.worker('fast/0')['pid']}/environ")
        own = 8 if "TROUPE_WAKE=" in variables else 7
        # and the report pipe
        s.until(lambda: sorted(int(n) for n in os.listdir(f"/proc/{pid}/fd")) == list(range(own + 1)))

    def test_a_stop_overtakes_starts_that_the_keeper_has_not_begun(self):
        s = self.started({"fast": actor(), "many": actor(200)})
        s.call("Stop", target="many", wait=True)
        os.kill(s.process.pid, signal.SIGSTOP)
        try:
            s.call("Start", target="many")
            s.until(lambda: "starting" in [w["state"] for w in s.workers("many")])
            self.assertEqual(s.do("fast", "echo a")["result"], text("a"))  # the loop is not held up
            s.call("Stop", target="many")
            self.assertIn("killing", [w["state"] for w in s.workers("many")])
        finally:
            os.kill(s.process.pid, signal.SIGCONT)
        s.wait_for(lambda: {w["state"] for w in s.workers("many")} == {"stopped"})
        self.assertEqual(len(s.children()), 1)
        s.call("Start", target="many", wait=True)

    def test_arguments_and_environment_beyond_the_bound_are_told_and_harm_nobody(self):
        s = self.started({"actor": actor()})
        variables = s.path("variables")
        with open(variables, "w", encoding="ascii") as file:
            file.writelines(f"V{i}={'x' * 1000}\n" for i in range(150))
        s.write("large.group", actor(Group={"EnvironmentFile": variables}))
        s.call("Reload")
        s.wait_not_started("large/0", "arguments and environment: Argument list too long")
        self.assertEqual(s.do("actor", "echo a")["result"], text("a"))

    def test_spawning_changes_nothing_in_keeper_and_supervisor(self):
        self.changes_nothing(self.started({"a": actor()}), {"User": "nobody"} if ROOT else {})

    @unittest.skipUnless(ROOT, "needs root")
    def test_spawning_changes_nothing_without_privileges(self):
        """As root's, the files in /proc of a process belong to root whether or not it is dumpable."""
        s = self.supervisor({"a": actor()})
        os.chown(s.directory, NOBODY, NOBODY)
        os.chmod(s.path("notify"), 0o666)
        s.start(user=NOBODY, group=NOBODY, extra_groups=[])
        for pid in s.process.pid, s.supervisor_pid:
            self.assertEqual(os.stat(f"/proc/{pid}/stat").st_uid, 0)
        self.assertEqual(os.stat(f"/proc/{s.worker('a/0')['pid']}/stat").st_uid, NOBODY)
        self.changes_nothing(s, {})

    def changes_nothing(self, s, settings):
        pids = s.process.pid, s.supervisor_pid

        def described(pid):
            status = status_of(pid)
            fields = {name: status.get(name) for name in
                      ("Umask", "Uid", "Gid", "Groups", "NSpgid", "NSsid", "Threads", "SigBlk", "SigIgn", "SigCgt", "CapInh",
                       "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")}
            cwd = os.readlink(f"/proc/{pid}/cwd") if ROOT else None
            owner = os.stat(f"/proc/{pid}/stat").st_uid  # root's as long as it is not dumpable, whoever runs it
            return (fields, cwd, owner, read(f"/proc/{pid}/oom_score_adj"), read(f"/proc/{pid}/limits"),
                    read(f"/proc/{pid}/cgroup"), os.getpriority(os.PRIO_PROCESS, pid), os.sched_getaffinity(pid))

        before = [described(pid) for pid in pids]
        plain = read(f"/proc/{s.worker('a/0')['pid']}/oom_score_adj")
        resources = {"OOMScoreAdjust": 777, "Nice": max(7, os.nice(0)), "LimitNOFILE": 99, "LimitCORE": 0}
        s.write("b.group", actor(2, Group={"WorkingDirectory": "/tmp", **settings}, Resources=resources))
        s.write("c.group", actor())
        s.call("Reload")
        s.wait_for(lambda: all(w["state"] == "idle" for name in "bc" for w in s.workers(name)))
        self.assertEqual(read(f"/proc/{s.worker('b/1')['pid']}/oom_score_adj"), "777\n")
        self.assertEqual(read(f"/proc/{s.worker('c/0')['pid']}/oom_score_adj"), plain)
        self.assertEqual([described(pid) for pid in pids], before)


class Rights(TestCase):
    @unittest.skipUnless(ROOT and shutil.which("setpriv"), "needs root and setpriv")
    def test_ambient_capabilities_of_the_unit_are_not_handed_on(self):
        """As with User=nobody and AmbientCapabilities= in a unit."""
        wrapper = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=+setuid,+setgid,+kill",
                   "--ambient-caps=+setuid,+setgid,+kill"]
        s = self.supervisor({"own": actor(), "other": actor(Group={"User": "games"})}, wrapper=wrapper)
        os.chown(s.directory, 65534, 65534)
        os.chmod(s.path("notify"), 0o666)
        s.start()
        self.assertNotEqual(int(status_of(s.supervisor_pid)["CapAmb"], 16), 0)
        for name in "own/0", "other/0":
            status = status_of(s.worker(name)["pid"])
            for field in "CapInh", "CapPrm", "CapEff", "CapAmb":
                self.assertEqual(int(status[field], 16), 0, (name, field))

    def test_a_worker_cannot_reach_the_terminal_of_its_supervisor(self):
        script = 'echo looking; (exec 3<>/dev/tty) && echo found || echo none; exec sleep infinity'
        s = self.supervisor()
        s.write("looker.group", service(f"/bin/sh -c '{script}'"))
        pid, terminal = pty.fork()
        if pid == 0:
            with contextlib.suppress(Exception), open(s.log_path, "ab") as log:
                os.close(os.open("/dev/tty", os.O_RDWR))  # without a terminal this test shows nothing
                os.dup2(log.fileno(), 1)
                os.dup2(log.fileno(), 2)
                os.execve(TROUPED, s.command, s.environment)
            os._exit(99)
        self.addCleanup(os.close, terminal)
        pidfd = os.pidfd_open(pid)
        self.addCleanup(os.close, pidfd)
        s.pidfd = pidfd
        s.wait_told("READY=1")
        s.until(lambda: "[looker/0] none" in s.log() or "[looker/0] found" in s.log())
        self.assertIn("[looker/0] none", s.log())
        os.write(terminal, termios.tcgetattr(terminal)[6][termios.VINTR])  # ^C: one signal, not two
        self.assertTrue(ended(pidfd, LIMIT))
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertNotIn("a second time", s.log())


class Traced(TestCase):
    def test_a_worker_that_its_own_child_traces_is_buried_with_it(self):
        s = self.supervisor()
        bell = Bell(s, "bell")
        s.write("traced.group", service(f"{helper('workers/traced')} {s.path('tracer')} {bell.path}",
                                          Worker={"TimeoutStopSec": "100ms"}))
        s.start()
        for generation in 2, 3:
            s.until(lambda: os.path.exists(s.path("tracer")) and read(s.path("tracer")).endswith("\n"))
            tracer = os.pidfd_open(int(read(s.path("tracer"))))
            self.addCleanup(os.close, tracer)
            os.unlink(s.path("tracer"))
            bell.ring()
            s.wait_for(lambda g=generation: s.worker("traced/0")["generation"] == g)
            self.assertTrue(ended(tracer, LIMIT))
        self.assertEqual({d["exit_status"] for d in s.deaths()}, {1})

    @unittest.skipUnless(ROOT, "needs root")
    def test_a_worker_that_a_stranger_traces_gives_its_slot_and_its_job_back(self):
        s = self.started({"actor": actor()})
        started, bell = Bell(s, "started"), Bell(s, "bell")
        job = s.create("actor", f"ring {started.path}\nbefore 2 wait {bell.path}\necho done")
        started.wait()
        libc = ctypes.CDLL(None, use_errno=True)
        old = s.worker("actor/0")["pid"]
        self.assertEqual(libc.ptrace(PTRACE_SEIZE, old, None, None), 0, os.strerror(ctypes.get_errno()))
        os.kill(old, signal.SIGKILL)
        self.assertEqual(s.wait_job(job)["result"], text("done"))
        self.assertEqual(s.worker("actor/0")["generation"], 2)
        self.assertEqual(read(f"/proc/{old}/stat").split()[2], "Z")  # a zombie as long as this test traces it
        [death] = s.deaths()
        self.assertNotIn("exit_status", death)
        self.assertIn("traces it", death["detail"])
        self.assertEqual(s.do("actor", "echo on")["result"], text("on"))
        self.assert_idle(s, s.process.pid, s.supervisor_pid)
        os.waitpid(old, 0)  # ends the tracing
        s.until(lambda: not os.path.exists(f"/proc/{old}"))

    def test_how_a_worker_has_ended_is_known_once_a_paused_main_process_goes_on(self):
        s = self.started({"actor": actor()})
        s.process.send_signal(signal.SIGSTOP)
        try:
            os.kill(s.worker("actor/0")["pid"], signal.SIGKILL)
            s.until(lambda: "the main process does not run and cannot reap it" in s.log())
        finally:
            s.process.send_signal(signal.SIGCONT)
        s.wait_for(lambda: s.worker("actor/0")["generation"] == 2)
        [death] = s.deaths()
        self.assertEqual(death["signal"], "SIGKILL")


@unittest.skipUnless(os.path.exists("/proc/self/task/%d/children" % os.getpid()), "no list of children in this kernel")
class Orphans(TestCase):
    def deserting(self, s, name, count=100):
        """A service whose children have sessions of their own, half of them below another child. Returns the file of their pids."""
        pids = s.path(name + ".pids")
        one = s.path("one.sh")
        Path(one).write_text(f"sleep 10000 & echo $! >>{pids}; exec sleep 10000\n", encoding="ascii")
        program = s.path(name + ".sh")
        with open(program, "w", encoding="ascii") as file:
            file.write(f"for i in $(seq {count // 2}); do setsid sh {one} & echo $! >>{pids}; done\n"
                       "exec sleep infinity\n")
        s.write(name + ".group", service(f"/bin/sh {program}", Restart={"Restart": "no"}))
        return pids

    def pidfds(self, s, path, count=100):
        s.until(lambda: os.path.exists(path) and read(path).count("\n") == count)
        found = [os.pidfd_open(int(line)) for line in read(path).split()]
        for fd in found:
            s.connections.callback(os.close, fd)
        return found

    def test_what_a_worker_left_in_sessions_of_its_own_ends_with_it(self):
        s = self.supervisor({"actor": actor()})
        path = self.deserting(s, "deserter", 400)
        s.start()
        fds = self.pidfds(s, path, 400)
        os.kill(s.worker("deserter/0")["pid"], signal.SIGKILL)
        self.assertEqual(s.do("actor", "echo on")["result"], text("on"))
        for fd in fds:
            self.assertTrue(ended(fd, LIMIT))
        self.assertEqual(s.worker("actor/0")["generation"], 1)
        s.until(lambda: len(s.children()) == 1)

    def test_helpers_of_living_workers_and_earlier_children_outlive_a_worker(self):
        files = [tempfile.NamedTemporaryFile(mode="r") for _ in range(2)]  # pylint: disable=consider-using-with
        for file in files:
            self.addCleanup(file.close)
        wrapper = ["/bin/sh", "-c", f'sleep 10000 & echo $! >{files[0].name}; exec "$@"', "sh"]
        s = self.supervisor(wrapper=wrapper)
        script = s.write("owner.sh", f"(sleep 10000 & echo $! >{files[1].name}); exec sleep infinity\n")
        s.write("owner.group", service(f"/bin/sh {script}"))
        s.start()
        fds = [fd for file in files for fd in self.pidfds(s, file.name, 1)]
        for round_number in range(2):  # the first search has ended when the second one kills
            name = f"deserter{round_number}"
            path = self.deserting(s, name, 2)
            s.call("Reload")
            [first, second] = self.pidfds(s, path, 2)
            os.kill(s.worker(name + "/0")["pid"], signal.SIGKILL)
            self.assertTrue(ended(first, LIMIT) and ended(second, LIMIT))
        for fd in fds:
            self.assertFalse(ended(fd, 0))
        s.stop()
        for fd in fds:
            self.assertTrue(ended(fd, 0), "something is left when the main process has ended")

    def test_no_process_hides_in_the_process_group_of_another_worker(self):
        hide = ("import os, sys\n"
                "group, file = int(open(sys.argv[1]).read()), sys.argv[2]\n"
                "reading, writing = os.pipe()\n"
                "if os.fork() == 0:\n"
                "    try: os.setpgid(0, group)\n"
                "    except OSError: pass\n"
                "    print(os.getpid(), file=open(file, 'w'))\n"
                "    os.close(writing)\n"
                "    os.execvp('sleep', ['sleep', '10000'])\n"
                "os.close(writing)\n"
                "os.read(reading, 1)\n")
        s = self.started({"honest": service("/bin/sleep infinity")})
        group = s.write("honest.pid", f"{s.worker('honest/0')['pid']}\n")
        file, program = s.path("hidden"), s.write("hide.py", hide)
        s.write("bad.group", service(f"{sys.executable} {program} {group} {file}", Restart={"Restart": "no"}))
        s.call("Reload")
        self.assertTrue(all(ended(fd, LIMIT) for fd in self.pidfds(s, file, 1)))
        self.assertEqual(s.worker("honest/0")["generation"], 1)

    def test_nothing_outlives_the_main_process(self):
        for how in "stop", "supervisor aborted", "main process killed":
            with self.subTest(how=how):
                s = self.supervisor({"actor": actor()})
                path = self.deserting(s, "deserter")
                s.start()
                fds = self.pidfds(s, path) + [os.pidfd_open(s.worker("actor/0")["pid"])]
                if how == "stop":
                    s.stop()
                elif how == "main process killed":
                    s.kill()
                else:
                    s.process.send_signal(signal.SIGABRT)
                    self.assertEqual(s.wait_end(), 1)
                    self.assertIn("the supervisor was killed by signal 6", s.log())
                for fd in fds:
                    self.assertTrue(ended(fd, 0), "something is left when the main process has ended")


class Restart(TestCase):
    def test_after_a_crash_of_the_supervisor_the_socket_answers_again_and_groups_come_up(self):
        s = self.started({"actor": actor(2)})
        keeper, supervisor, socket_file = s.process.pid, s.supervisor_pid, os.stat(s.socket_path).st_ino
        s.crash()
        self.assertEqual(s.call("GetInfo")["pid"], keeper)  # waits in the queue of the same socket
        self.assertNotEqual(s.supervisor_pid, supervisor)
        s.wait_for(lambda: {w["state"] for w in s.workers("actor")} == {"idle"})
        self.assertEqual(s.do("actor", "echo a")["result"], text("a"))
        self.assertEqual(len(s.children()), 2)
        self.assertIsNone(s.process.poll())
        self.assertEqual(os.stat(s.socket_path).st_ino, socket_file)
        s.stop()
        self.assertFalse(os.path.exists(s.socket_path))

    def test_clients_leave_the_keeper_enough_descriptors_to_start_workers(self):
        s = self.supervisor({"actor": actor()})
        s.start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300)))
        with self.assertRaises(VarlinkError):
            for _ in range(300):
                s.connect().call("Attach", version=VERSION)
        os.kill(s.children()[0], signal.SIGKILL)
        self.wait_logged(s, "actor/0 is ready", 2)
        worker = s.children()
        s.crash()
        self.wait_logged(s, "clients of the former supervisor continue")
        self.assertEqual(s.children(), worker)

    def test_D12_after_three_crashes_everything_runs_and_nothing_is_handed_out_until_a_reload(self):
        s = self.started({"actor": actor(), "daemon": service("/bin/sleep infinity")})
        n_crashes = s.crash_into_safe_mode()
        s.wait_worker("actor/0", "idle")
        s.wait_worker("daemon/0", "idle")
        job = s.create("actor", "echo a")
        self.assertEqual(s.group("actor")["state"], "paused")
        self.assertEqual(s.job(job)["state"], "queued")
        status = s.ctl("status")
        self.assertEqual(status.returncode, 1)
        self.assertIn(f"safe mode, the supervisor has crashed {n_crashes} times: all groups are paused until troupectl reload",
                      status.stdout)
        s.wait_told("STATUS=2 of 2 workers up in 2 groups; safe mode, all groups are paused, see troupectl status")
        self.assertEqual(s.ctl("reload", check=True).stdout,
                         "no group has changed\nsafe mode has ended: all groups are resumed\n")
        self.assertEqual(s.wait_job(job)["result"], text("a"))
        self.assertFalse(s.call("GetInfo")["safe_mode"])
        self.assertEqual(s.ctl("status").returncode, 0)
        s.crash()  # the earlier ones do not count any more
        self.assertFalse(s.call("GetInfo")["safe_mode"])

    def test_a_cell_that_is_paused_in_safe_mode_stays_paused(self):
        s = self.started({"mail": ini(ACTOR, Pool={"Cells": "by-key", "CellIdleSec": "1ms"})})
        s.crash_into_safe_mode()
        jobs = {key: s.create("mail", "echo", key=key) for key in ("a", "b")}
        s.ctl("pause", "mail/a", check=True)
        s.call("Reload")
        self.assertEqual(s.wait_job(jobs["b"])["state"], "succeeded")
        s.until(lambda: s.cell("mail/a")["state"] != "starting")
        self.assertEqual((s.cell("mail/a")["state"], s.job(jobs["a"])["state"]), ("paused", "queued"))
        s.ctl("resume", "mail/a", check=True)
        self.assertEqual(s.wait_job(jobs["a"])["state"], "succeeded")

    def test_the_end_of_safe_mode_resumes_only_what_it_has_paused(self):
        s = self.started({name: actor() for name in ("running", "paused", "later")})
        s.call("Pause", target="paused")
        s.crash_into_safe_mode()
        s.call("Pause", target="later")
        s.call("Reload")
        self.assertEqual({name: s.group(name)["state"] for name in ("running", "paused", "later")},
                         {"running": "running", "paused": "paused", "later": "paused"})

    def between_two_supervisors(self):
        """After the fourth crash the next supervisor is started a second later."""
        s = self.started({"actor": actor()})
        for _ in range(4):
            s.call("GetInfo")
            s.crash()
        while s.log().count("was killed by signal 9") < 4:
            os.sched_yield()
        return s

    def test_a_stop_between_two_supervisors_ends_all(self):
        s = self.between_two_supervisors()
        s.stop()

    def test_a_reload_between_two_supervisors_starts_the_next_one(self):
        s = self.between_two_supervisors()
        s.write("other.group", actor())
        s.process.send_signal(signal.SIGHUP)
        s.wait_worker("other/0", "idle")

    def test_the_service_manager_hears_between_two_supervisors_that_all_is_alive(self):
        s = self.between_two_supervisors()
        s.call("GetInfo")
        s.crash()  # followed by a pause of two seconds
        s.wait_told("STATUS=the supervisor has crashed and is started again, see the log; workers keep running")
        for _ in range(5):  # with the one before: each of five crashes, and within the last pause
            s.told.clear()
            s.wait_told("WATCHDOG=1")
        s.wait_worker("actor/0", "idle")

    def test_a_crash_while_it_stops_is_the_end(self):
        s = self.supervisor(conf="[Supervisor]\nTimeoutStopSec=1h\n")
        deaf = Bell(s, "deaf")
        script = s.write("deaf.sh", f'trap "" TERM; echo >{deaf.path}; while :; do sleep 1000; done')
        s.write("daemon.group", service(f"/bin/sh {script}", Worker={"TimeoutStopSec": "1h"}))
        s.start()
        deaf.wait()
        worker = os.pidfd_open(s.worker("daemon/0")["pid"])
        self.addCleanup(os.close, worker)
        s.terminate()
        s.wait_told("STOPPING=1")
        os.kill(s.supervisor_pid, signal.SIGKILL)
        self.assertEqual(s.wait_end(), 1)
        self.assertTrue(ended(worker, 0))

    def test_a_crash_before_it_was_ready_is_the_end(self):
        s = self.supervisor()
        s.write("slow.group", ini("/bin/sleep 10000", Worker={"TimeoutStartSec": "1h"}))
        s.spawn()
        os.kill(s.supervisor_pid, signal.SIGKILL)
        self.assertEqual(s.wait_end(), 1)

    def test_a_mistake_in_troupe_conf_is_told_over_the_socket_and_all_starts_once_it_is_mended(self):
        s = self.supervisor({"actor": actor()}, conf="[Nonsense]\n")
        s.start()
        s.wait_told("READY=1")
        self.assertIn("troupe.conf:1: unknown section", s.call("GetInfo")["config_problem"])
        for verb in ("status",), ("start", "actor"):
            told = s.ctl(*verb)
            self.assertEqual(told.returncode, 1)
            self.assertIn("troupe.conf:1", told.stdout + told.stderr)
        s.write("troupe.conf", "")
        s.ctl("reload", check=True)
        s.until(lambda: s.group("actor")["state"] == "running")
        self.assert_goes_on(s, s.children(), restarts=0)

    def unconfigured(self, **options):
        """A supervisor that has crashed while the configuration has a mistake, and its workers."""
        s = self.started({"actor": actor(2), "daemon": service("/bin/sleep infinity")}, **options)
        workers = s.children()
        s.write("troupe.conf", "[Nonsense]\n")
        s.crash()
        self.wait_logged(s, "no group can be taken over until the configuration is valid")
        return s, workers

    def mend(self, s):
        os.unlink(os.path.join(s.config, "troupe.conf"))

    def assert_goes_on(self, s, workers, restarts=1):
        s.until(lambda: s.call("GetInfo")["state"] == "running")
        self.assertNotIn("config_problem", s.call("GetInfo"))
        s.until(lambda: s.children() == workers)  # helpers of a former supervisor end a moment later
        self.assertEqual(s.do("actor", "echo a")["result"], text("a"))
        self.assertEqual(s.call("GetInfo")["restarts"], restarts)

    def test_after_a_crash_a_mistake_in_the_configuration_is_told_over_the_socket(self):
        s, workers = self.unconfigured()
        self.assertIn("troupe.conf:", s.call("GetInfo")["config_problem"])
        status = s.ctl("status")
        self.assertEqual(status.returncode, 1)
        self.assertIn("troupe.conf:", status.stdout)
        refused = s.ctl("start", "actor")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("troupe.conf:", refused.stderr)
        self.assertRaisesRegex(VarlinkError, "BadConfiguration", s.call, "Reload")
        self.assertEqual(s.children(), workers)
        self.mend(s)
        self.assertEqual(s.call("Reload")["added"], ["actor", "daemon"])
        self.assert_goes_on(s, workers)

    def test_after_a_crash_a_late_start_without_memory_ends_no_worker(self):
        with tempfile.TemporaryDirectory() as directory:
            fault = Path(directory, "fault")
            s, workers = self.unconfigured(program=FAULTY_TROUPED, environment={"TROUPE_FAULT": f"@{fault}"})
            fault.write_text(f"groups:1={errno.ENOMEM}", encoding="ascii")
            s.crash()
            s.until(lambda: "config_problem" in s.call("GetInfo"))
            self.mend(s)
            self.assertNotEqual(s.ctl("reload").returncode, 0)
            self.wait_logged(s, "cannot take over all groups: Cannot allocate memory; starting again")
            s.until(lambda: s.ctl("reload").returncode == 0)  # out of safe mode
            self.assert_goes_on(s, workers, restarts=3)

    def test_after_a_crash_a_corrected_configuration_is_found_without_a_reload(self):
        s, workers = self.unconfigured()
        self.mend(s)
        self.assert_goes_on(s, workers)

    def test_after_a_crash_SIGHUP_reads_the_corrected_configuration(self):
        s, workers = self.unconfigured()
        os.rename(s.config, s.path("gone"))
        s.process.send_signal(signal.SIGHUP)
        self.wait_logged(s, "cannot read the configuration: No such file")
        os.rename(s.path("gone"), s.config)
        self.mend(s)
        s.process.send_signal(signal.SIGHUP)
        self.assert_goes_on(s, workers)

    def test_after_a_crash_a_worker_that_dies_while_the_configuration_is_wrong_is_replaced(self):
        s, workers = self.unconfigured()
        fd = os.pidfd_open(workers[0])
        os.kill(workers[0], signal.SIGKILL)
        self.assertTrue(ended(fd, LIMIT))
        os.close(fd)
        self.mend(s)
        s.call("Reload")
        s.until(lambda: len(s.children()) == 3 and s.call("GetInfo")["state"] == "running")
        self.assertEqual(len(set(s.children()) & set(workers)), 2)
        self.assertEqual(s.do("actor", "echo a")["result"], text("a"))

    def emptied(self):
        """A supervisor that has crashed while the directory has no group, and its workers."""
        s = self.started({"actor": actor(2), "daemon": service("/bin/sleep infinity")})
        workers = s.children()
        os.rename(s.config, s.path("gone"))
        os.mkdir(s.config)
        s.crash()
        self.wait_logged(s, "no group can be taken over until the configuration is valid")
        return s, workers

    def test_D9_a_directory_that_is_empty_after_a_crash_ends_no_worker(self):
        s, workers = self.emptied()
        self.assertIn("has no NAME.group any more, and 3 workers run", s.call("GetInfo")["config_problem"])
        self.assertRaisesRegex(VarlinkError, "BadConfiguration", s.call, "Reload")
        s.process.send_signal(signal.SIGHUP)
        self.wait_logged(s, "3 workers run; to remove all of them: troupectl reload --allow-empty")
        self.assertEqual(s.children(), workers)
        os.rmdir(s.config)
        os.rename(s.path("gone"), s.config)
        self.assert_goes_on(s, workers)

    def test_a_directory_that_shall_be_empty_after_a_crash_ends_all_workers(self):
        s, workers = self.emptied()
        s.ctl("reload", "--allow-empty", check=True)
        s.until(lambda: s.call("GetInfo")["state"] == "running" and not s.children() and not s.call("GetStatus")["groups"])

    def test_a_supervisor_without_a_configuration_can_be_stopped(self):
        s, _ = self.unconfigured()
        s.stop()

    def processes_of(self, s):
        """Pidfds of all processes that have its configuration among their arguments."""
        found = []
        for name in os.listdir("/proc"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                if name.isdigit() and s.config.encode() in open(f"/proc/{name}/cmdline", "rb").read():
                    found.append(os.pidfd_open(int(name)))
                    s.connections.callback(os.close, found[-1])
        return found

    def test_D12_the_end_of_the_main_process_at_any_step_of_a_restart_leaves_nothing_behind(self):
        for point in "restart-planned:1", "restart-started:1", "hand-over:2", "handed-over:2":
            with self.subTest(point=point):
                s = self.supervisor({"actor": actor(3)}, program=FAULTY_TROUPED, environment={"TROUPE_FAULT_POINT": point})
                s.start()
                workers = [os.pidfd_open(worker["pid"]) for worker in s.workers("actor")]
                for fd in workers:
                    s.connections.callback(os.close, fd)
                os.kill(s.supervisor_pid, signal.SIGKILL)
                self.assertEqual(s.wait_end(), -signal.SIGKILL)
                for fd in workers + self.processes_of(s):
                    self.assertTrue(ended(fd, LIMIT))


class Main(TestCase):
    def test_the_log_names_who_sent_a_signal_to_the_main_process(self):
        s = self.started({"actor": actor()})
        s.stop()
        self.assertIn(f"stop signal received from process {os.getpid()}", s.log())

    def test_sigquit_ends_a_supervisor_that_hangs(self):
        s = self.started({"actor": actor()})
        os.kill(s.supervisor_pid, signal.SIGSTOP)
        s.process.send_signal(signal.SIGQUIT)
        self.assertEqual(s.wait_end(), 1)

    def test_the_manager_hears_the_main_process_only(self):
        s = self.supervisor({"actor": actor()})
        s.notify.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        s.spawn()
        told = b""
        while b"READY=1" not in told:
            told, ancillary, _, _ = s.notify.recvmsg(4096, 1024)
            [sender] = [struct.unpack("iII", data)[0] for _, kind, data in ancillary if kind == socket.SCM_CREDENTIALS]
            self.assertEqual(sender, s.process.pid)

    def test_the_manager_hears_of_many_starts_in_few_texts(self):
        s = self.supervisor({"actor": ini(ACTOR, Pool={"Size": 150})})
        begin = time.monotonic()
        s.start()
        n = sum(line.startswith("STATUS=") for line in s.told)
        self.assertIn("STATUS=150 of 150 workers up in 1 group", s.told)
        self.assertLessEqual(n, 2 + (time.monotonic() - begin) / 0.2)

    def test_it_reaps_whatever_it_inherits(self):
        script = "for i in 1 2 3 4 5; do (true & exec sleep 0.01) & done; wait; exec sleep infinity"
        s = self.supervisor()
        s.write("runner.sh", script)
        s.write("runner.group", service(f"/bin/sh {s.config}/runner.sh"))
        s.start()
        s.until(lambda: len(s.children()) == 1)
