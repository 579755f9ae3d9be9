# SPDX-License-Identifier: MIT
"""The daemon: start, reload, end, and errors around it."""
import os
import select
import signal
import socket
import subprocess
import sys
import time
import unittest
from pathlib import Path

from troupe import FAULTY_TROUPED, HAS_IO_URING, LIMIT, SANITIZED, TROUPE_EXEC, TROUPED, Bell, Cgroup, TestCase, Varlink, \
    actor, ended, helper, ini, text


class Ends(TestCase):
    def test_sigterm_ends_it_with_0_and_nothing_is_left(self):
        s = self.started({"actor": actor(3)})
        s.stop()
        self.assertIn("STOPPING=1", self.drain(s))
        self.assertFalse(os.path.exists(s.socket_path))

    def drain(self, s):
        s.notify.setblocking(False)
        while True:
            try:
                s.told += s.notify.recv(65536).decode().split("\n")
            except BlockingIOError:
                return s.told

    def test_running_jobs_finish_and_everyone_who_waits_is_answered(self):
        s = self.started({"actor": actor()})
        started, bell = Bell(s, "started"), Bell(s, "bell")
        with Varlink(s.socket_path) as running, Varlink(s.socket_path) as queued:
            running.send("Do", {"group": "actor", "payload": text(f"ring {started.path}\nwait {bell.path}\necho ok")})
            started.wait()
            queued.send("Do", {"group": "actor", "payload": text("echo never")})
            queued.send("GetInfo")
            s.call("List")
            s.terminate()
            s.wait_told("STOPPING=1")
            bell.ring()
            self.assertEqual(running.reply()[0]["job"]["result"], text("ok"))
            answer = queued.receive()
            self.assertTrue(answer.get("error") or answer["parameters"]["job"]["state"] in ("cancelled", "dead"), answer)
        self.assertEqual(s.wait_end(), 0)

    def test_jobs_are_refused_while_it_stops(self):
        s = self.started({"actor": actor()})
        _, bell = s.busy("actor", "")
        with Varlink(s.socket_path) as connection:
            s.terminate()
            s.wait_told("STOPPING=1")
            try:
                self.refused("Stopping", connection.call, "Create", group="actor")
            except (EOFError, ConnectionError):
                pass
            bell.ring()
        self.assertEqual(s.wait_end(), 0)

    def test_workers_that_do_not_stop_are_killed_within_the_time(self):
        s = self.started({"actor": actor(Worker={"TimeoutStopSec": "100ms"})})
        s.busy("actor", "", first="deaf\n")
        s.stop()

    def test_a_second_sigterm_ends_it_at_once(self):
        s = self.started({"actor": actor(Worker={"TimeoutStopSec": "10min"})}, conf="[Supervisor]\nTimeoutStopSec=10min\n")
        s.busy("actor", "", first="deaf\n")
        pid = s.worker("actor/0")["pid"]
        s.terminate()
        s.wait_told("STOPPING=1")
        s.terminate()
        s.wait_end()
        self.assertFalse(os.path.exists(f"/proc/{pid}"))

    def test_sigterm_during_start_ends_it_cleanly(self):
        s = self.supervisor({"never": actor(3, Group={"Environment": "ACTOR_NEVER_READY=1"})})
        s.spawn()
        self.wait_children(s, 3)
        s.stop()

    def wait_children(self, s, count):
        while len(s.children()) < count:
            self.assertIsNone(s.process.poll())
            os.sched_yield()


class Sockets(TestCase):
    def await_answer(self, s):
        end = time.monotonic() + LIMIT
        while s.ctl("status").returncode != 0:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def test_a_socket_that_is_removed_is_made_again(self):
        s = self.started({"actor": actor()})
        pid = s.worker("actor/0")["pid"]
        for remove in os.unlink, lambda path: os.rename(path, path + ".away"), \
                lambda path: (os.unlink(path), os.unlink(path + ".lock")), lambda path: os.unlink(path + ".lock"):
            remove(s.socket_path)
            self.await_answer(s)
            s.until(lambda: os.path.exists(s.socket_path + ".lock"))
            self.assertEqual(s.do("actor", "echo a")["result"], text("a"))
            second = subprocess.run([TROUPED, "--config", s.config, "--socket", s.socket_path], capture_output=True, text=True,
                                    timeout=LIMIT, check=False)
            self.assertNotEqual(second.returncode, 0)
            self.assertIn("in use by process", second.stderr)
        s.crash()  # the next supervisor serves the same one
        self.await_answer(s)
        self.assertEqual(s.worker("actor/0")["pid"], pid)

    def test_a_socket_that_is_removed_between_two_supervisors_is_made_again(self):
        s = self.started({"actor": actor()})
        os.kill(s.process.pid, signal.SIGSTOP)  # the keeper starts no other one yet
        os.kill(s.supervisor_pid, signal.SIGKILL)
        os.unlink(s.socket_path)
        second = subprocess.run([TROUPED, "--config", s.config, "--socket", s.socket_path], capture_output=True, text=True,
                                timeout=LIMIT, check=False)
        self.assertNotEqual(second.returncode, 0)
        self.assertIn("is another trouped running?", second.stderr)
        os.kill(s.process.pid, signal.SIGCONT)
        self.await_answer(s)

    def test_a_directory_that_does_not_exist_or_is_not_writable_is_named(self):
        s = self.supervisor({"actor": actor()})
        s.command[s.command.index("--socket") + 1] = "/proc/nowhere/troupe.sock"
        s.spawn()
        self.assertNotEqual(s.wait_end(), 0)
        self.assertIn("/proc/nowhere", s.log())


@unittest.skipIf(SANITIZED, "leak checking does not work under the filter")
class Forbidden(TestCase):
    def start_without(self, call, error):
        """The one line that trouped prints."""
        s = self.supervisor({"actor": actor()}, wrapper=[helper("forbid"), call, error], options=["--loop", "io_uring"])
        s.spawn()
        self.assertNotEqual(s.wait_end(), 0)
        [line] = s.log().splitlines()
        return line

    def test_a_call_that_a_filter_or_the_kernel_refuses_is_said_in_one_line(self):
        for call, error, said in (("io_uring_setup", "EPERM", "io_uring.*(seccomp|io_uring_disabled)"),
                                  ("io_uring_setup", "ENOSYS", "io_uring.*([Kk]ernel|Linux)"),
                                  ("signalfd", "EPERM", "cannot start the supervisor: signalfd: .*; allowed: .*SystemCallFilter=")):
            with self.subTest(call=call, error=error):
                self.assertRegex(self.start_without(call, error), said)

    def test_a_call_that_an_old_filter_refuses_is_named_in_one_line(self):
        for call in "clone3", "memfd_create", "pidfd_open", "pidfd_send_signal", "faccessat2":
            for error, reason in ("EPERM", "Operation not permitted"), ("ENOSYS", "Function not implemented"):
                with self.subTest(call=call, error=error):
                    if error == "ENOSYS" and call in ("clone3", "faccessat2"):
                        continue  # the C library does without
                    self.assertRegex(self.start_without(call, error), f"cannot start.*{call}.*{reason}; allowed: a seccomp filter")

    def test_calls_that_it_can_do_without_are_not_missed(self):
        for call, error in ("close_range", "EPERM"), ("close_range", "ENOSYS"), ("clone3", "ENOSYS"), ("faccessat2", "ENOSYS"):
            with self.subTest(call=call, error=error):
                groups = {"actor": actor(), "exec": ini(f"{TROUPE_EXEC} -- cat")}
                s = self.started(groups, wrapper=[helper("forbid"), call, error])
                self.assertEqual(s.do("actor", "echo hello")["result"], text("hello"))
                self.assertEqual(s.do("exec", "hello")["result"], text("hello"))
                s.stop()

    def test_without_io_uring_it_uses_epoll_and_says_why_in_one_line(self):
        for error, reason in ("EPERM", "seccomp"), ("ENOSYS", "this kernel has no io_uring"):
            with self.subTest(error=error):
                s = self.started({"actor": actor(2)}, wrapper=[helper("forbid"), "io_uring_setup", error],
                                 environment={"TROUPE_LOOP": ""})
                [line] = [line for line in s.log().splitlines() if "epoll" in line]
                self.assertRegex(line, f"notice: the event loop uses epoll.*{reason}")
                info = s.call("GetInfo")
                self.assertEqual((info["loop"], info["wake"]), ("epoll", "eventfd"))
                self.assertIn("epoll", s.ctl("info").stdout)
                self.assertEqual(s.do("actor", "before 2 crash kill\nattempt")["result"], text("2"))
                s.stop()

    def test_without_io_uring_and_aio_workers_and_clients_are_woken_through_pipes(self):
        s = self.started({"actor": actor(2)}, wrapper=[helper("forbid"), "io_setup", "ENOSYS"], options=["--loop", "epoll"])
        self.assertIn("info: the event loop uses epoll, as asked for\n", s.log())
        self.assertEqual(s.do("actor", "before 2 crash kill\nattempt")["result"], text("2"))
        self.assertEqual(sorted(s.ctl("map", "actor", input="".join(f"echo {i}\n" for i in range(100))).stdout.split(), key=int),
                         [str(i) for i in range(100)])


class Environments(TestCase):
    """What the service manager passes is used, or refused in one line."""

    def start_with(self, sockets, s=None, **environment):
        """Starts it as a service manager does: descriptors from 3 on, and the pid of the new process."""
        s = s or self.supervisor({"actor": actor()})
        inherit = "import os, sys; os.environ['LISTEN_PID'] = str(os.getpid()); os.execv(sys.argv[1], sys.argv[1:])"
        s.command = [sys.executable, "-c", inherit, *s.command]
        s.environment.update(LISTEN_FDS=str(len(sockets)), **environment)
        place = {3 + i: one.fileno() for i, one in enumerate(sockets)}

        def prepare():
            spare = {to: os.dup2(fd, 100 + to) for to, fd in place.items()}
            for to, fd in spare.items():
                os.dup2(fd, to)
                os.set_inheritable(to, True)
        return s.spawn(preexec_fn=prepare, close_fds=False)

    def refused_start(self, sockets, **environment):
        s = self.start_with(sockets, **environment)
        self.assertEqual(s.wait_end(), 1)
        [line] = [line for line in s.log().split("\n") if "error" in line]
        return line

    def test_a_socket_of_the_service_manager_is_served(self):
        listener = self.listening(socket.AF_UNIX, socket.SOCK_STREAM)
        s = self.start_with([listener], LISTEN_PIDFDID="1")
        s.wait_told("READY=1")
        with open(f"/proc/{s.supervisor_pid}/environ", encoding="utf-8") as file:
            variables = dict(line.split("=", 1) for line in file.read().split("\0") if line)
        self.assertEqual(variables["LISTEN_PID"], str(s.supervisor_pid))
        self.assertIsNone(variables.get("LISTEN_PIDFDID"))  # it would name the main process
        with Varlink(listener.getsockname()) as client:
            self.assertEqual(client.call("GetInfo")["state"], "running")

    def started_with_its_path(self):
        s = self.supervisor({"actor": actor()})
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(listener.close)
        listener.bind(s.socket_path)
        listener.listen()
        self.start_with([listener], s)
        s.wait_told("READY=1")
        return s, listener

    def still_listens(self, listener):
        """It was not shut down, which poll() tells by POLLHUP."""
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        self.assertEqual(poll.poll(0), [])

    def test_the_path_of_the_service_managers_socket_stays(self):
        s, listener = self.started_with_its_path()
        s.crash()
        s.ctl("upgrade", check=True)
        s.stop()
        self.assertTrue(os.path.exists(s.socket_path))
        self.still_listens(listener)

    def test_the_service_managers_socket_is_made_again_if_it_was_removed(self):
        s, listener = self.started_with_its_path()
        os.unlink(s.socket_path)
        other = subprocess.run([TROUPED, "--config", s.config, "--socket", s.socket_path], capture_output=True, text=True,
                               timeout=LIMIT)
        self.assertEqual(other.returncode, 1)
        self.assertIn("is another trouped running?", other.stderr)
        s.process.send_signal(signal.SIGHUP)
        self.wait_logged(s, "making it again")
        limit_at = time.monotonic() + LIMIT
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            while client.connect_ex(s.socket_path) != 0:
                self.assertLess(time.monotonic(), limit_at, "the socket was not made again")
                os.sched_yield()
        s.do("actor", "echo")
        s.crash()
        s.do("actor", "echo")
        s.ctl("upgrade", check=True)
        s.do("actor", "echo")
        s.stop()
        self.assertFalse(os.path.exists(s.socket_path))
        self.still_listens(listener)

    def test_what_the_service_manager_says_wrongly_is_told_with_what_is_allowed(self):
        for name, value, allowed in (("NOTIFY_SOCKET", "vsock:2:1", "; allowed: the absolute path of a socket, or @NAME"),
                                     ("WATCHDOG_USEC", "soon", "; allowed: a number of microseconds")):
            with self.subTest(variable=name):
                line = self.refused_start([], **{name: value})
                self.assertIn(f"{name}={value}: ", line)
                self.assertIn(allowed, line)

    def listening(self, family, kind):
        one = socket.socket(family, kind)
        self.addCleanup(one.close)
        if family == socket.AF_UNIX:
            one.bind("\0troupe-test-%d-%d" % (os.getpid(), one.fileno()))
        else:
            one.bind(("127.0.0.1", 0))
        if kind == socket.SOCK_STREAM:
            one.listen()
        return one

    def test_a_socket_of_another_kind_is_refused(self):
        for family, kind in (socket.AF_UNIX, socket.SOCK_DGRAM), (socket.AF_INET, socket.SOCK_STREAM):
            with self.subTest(family=family, kind=kind):
                self.assertIn("not a listening Unix stream socket", self.refused_start([self.listening(family, kind)]))

    def test_more_than_one_socket_is_refused(self):
        both = [self.listening(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(2)]
        self.assertIn("LISTEN_FDS=2: trouped serves one socket", self.refused_start(both))


class Limits(TestCase):
    def test_a_limit_on_the_size_of_files_is_named(self):
        s = self.supervisor({"actor": actor()}, wrapper=["prlimit", "--fsize=1048576"])
        s.spawn()
        self.assertNotEqual(s.wait_end(), 0)
        self.assertRegex(s.log(), r"LimitFSIZE= \(ulimit -f\) must be infinity or at least [0-9]+ MiB")

    @unittest.skipUnless(Cgroup.available(), "no cgroup v2 that can be changed")
    def test_no_helper_process_keeps_the_kernel_from_enabling_controllers(self):
        cgroup = Cgroup(self)
        self.started({"a": actor()}, wrapper=cgroup.wrapper)
        self.assertEqual(Path(cgroup.path, "cgroup.procs").read_text("ascii"), "")
        self.assertNotEqual(Path(cgroup.path, "supervisor/cgroup.procs").read_text("ascii"), "")

    def test_limits_without_effect_are_told(self):
        s = self.started({"a": actor(Resources={"MemoryMax": "64M"}), "b": actor(Resources={"MemoryMax": "64M", "TasksMax": 5}),
                          "c": actor()})
        cgroups = s.call("GetInfo")["cgroups"]
        if "no_effect" not in s.group("b"):
            self.skipTest("here they have an effect: " + cgroups)
        self.assertEqual([s.group(g).get("no_effect") for g in "abc"], ["MemoryMax=", "MemoryMax=, TasksMax=", None])
        self.assertIn("Limits: MemoryMax=, TasksMax= without effect here", s.ctl("status", "b").stdout)

    def test_verify_warns_of_limits_that_this_machine_does_not_have(self):
        if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
            self.skipTest("this machine has controllers")
        s = self.started({"a": actor(Resources={"MemoryMax": "64M"})})
        verified = s.ctl("verify", "--config", s.config)
        warnings = "2 warnings" if os.geteuid() == 0 else "1 warning"  # also of a group that runs as root
        self.assertEqual((verified.returncode, verified.stdout), (0, f"no errors, {warnings}\n"))
        self.assertIn("a.group: MemoryMax= without effect on this machine", verified.stderr)


class Configurations(TestCase):
    def test_a_job_is_refused_with_the_reason_if_the_supervisor_starts_without_a_valid_configuration(self):
        s = self.supervisor({"a": actor()})
        s.write("troupe.conf", "[Supervisor]\nNope=1\n")
        s.start()
        self.assertIn("the configuration has a problem: see 'troupectl status'", s.ctl("do", "a").stderr)

    def test_a_missing_directory_and_an_unknown_option_are_told(self):
        for arguments, told in (["--config", "/no/such", "--socket", "/tmp/never"], "/no/such"), (["--nonsense"], "nonsense"):
            process = subprocess.run([TROUPED, *arguments], capture_output=True, text=True, timeout=LIMIT, check=False)
            self.assertNotEqual(process.returncode, 0)
            self.assertIn(told, process.stderr)

    def test_help_and_version_need_nothing(self):
        environment = {**os.environ, "NOTIFY_SOCKET": "vsock:2:1", "WATCHDOG_USEC": "soon"}
        for option, expected in ("--help", "(?i)usage"), ("--version", r"^trouped \d+\.\d+\.\d+\n$"):
            process = subprocess.run([TROUPED, option], env=environment, capture_output=True, text=True, timeout=LIMIT, check=False)
            self.assertEqual((process.returncode, process.stderr), (0, ""))
            self.assertRegex(process.stdout, expected)


class Reloads(TestCase):
    def test_groups_are_added_removed_and_changed_and_the_others_do_not_notice(self):
        s = self.started({"same": actor(), "gone": actor(), "grown": actor(1)})
        before = s.worker("same/0")["pid"], s.worker("grown/0")["pid"]
        os.unlink(os.path.join(s.config, "gone.group"))
        s.write("new.group", actor())
        s.write("grown.group", actor(2))
        self.assertEqual(s.call("Reload"), {"added": ["new"], "removed": ["gone"], "changed": ["grown"]})
        self.assertEqual((s.worker("same/0")["pid"], s.worker("grown/0")["pid"]), before)
        self.assertEqual(s.do("new", "echo")["state"], "succeeded")
        s.wait_for(lambda: len(s.group("grown")["workers"]) == 2)
        self.refused("NoSuchGroup", s.create, "gone", "echo")

    def command_of(self, pid):
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="ascii").split("\0")[0]

    def test_the_process_that_looks_up_names_is_reaped_when_it_has_ended(self):
        s = self.started({"actor": actor()})
        pid = s.supervisor_pid

        def has_no_children():  # but those that take descriptors
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
            return all(self.command_of(child) == "trouped-taker" for child in children)
        s.until(has_no_children)
        s.write("actor.group", actor(2))
        s.call("Reload")
        s.until(has_no_children)


class StoppedTakers(TestCase):
    """The processes that receive descriptors do not run. Nothing waits for them but large payloads."""

    def setUp(self):
        self.s = self.started({"actor": actor(), "other": actor()})
        self.s.do("actor", "blob 100000")

    def takers(self):
        pid = self.s.supervisor_pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        return [int(child) for child in children if Path(f"/proc/{child}/cmdline").read_bytes().startswith(b"trouped-taker\0")]

    def stop(self):
        self.stopped = self.takers()
        self.assertGreater(len(self.stopped), 0)
        self.s.until(lambda: all(Path(f"/proc/{pid}/comm").read_bytes() == b"trouped-taker\n" for pid in self.stopped))
        for pid in self.stopped:
            os.kill(pid, signal.SIGSTOP)

    def go_on(self):
        for pid in self.stopped:
            os.kill(pid, signal.SIGCONT)

    def answered(self, command="blob 200000"):
        """Creates a job whose answer is in the ring, and waits for its blob."""
        id = self.s.create("actor", command)
        self.s.wait_for(lambda: self.s.job(id)["state"] == "running")
        worker = self.s.worker("actor/0")["pid"]
        self.s.until(lambda: Path(f"/proc/{worker}/stat").read_text(encoding="ascii").split()[2] == "S")
        return id

    def test_others_go_on_meanwhile(self):
        self.stop()
        id = self.answered()
        for i in range(20):
            self.s.do("other", f"echo {i}")
        self.assertLess(self.s.call("GetInfo")["longest_turn_usec"], 1000 * 1000)
        self.assertEqual(self.s.job(id)["state"], "running")
        self.go_on()
        self.assertEqual(self.s.wait_job(id)["state"], "succeeded")

    def test_an_answer_from_before_a_death_counts(self):
        self.stop()
        id = self.answered()
        os.kill(self.s.worker("actor/0")["pid"], signal.SIGKILL)
        for i in range(20):
            self.s.do("other", f"echo {i}")
        self.go_on()
        job = self.s.wait_job(id)
        self.assertEqual((job["state"], job["attempt"]), ("succeeded", 1))
        self.s.wait_worker("actor/0", "idle")
        self.assertEqual(len(self.s.deaths("actor")), 1)

    def test_an_answer_in_time_counts(self):
        self.s.write("actor.group", actor(Jobs={"TimeoutSec": "300ms"}))
        self.s.call("Reload")
        self.stop()
        id = self.answered()
        time.sleep(0.6)
        self.go_on()
        job = self.s.wait_job(id)
        self.assertEqual((job["state"], job["attempt"]), ("succeeded", 1))

    def test_a_client_that_has_left_is_waited_for_asleep(self):
        def cpu():
            return int(Path(f"/proc/{self.s.supervisor_pid}/schedstat").read_text(encoding="ascii").split()[0])
        self.stop()
        subprocess.run([helper("client"), self.s.socket_path, "keep", "actor", "late", "sum\n\n" + "x" * 100000, "vanish"],
                       stdin=subprocess.DEVNULL, check=True, timeout=60)
        before = cpu()
        time.sleep(1)
        self.assertLess(cpu() - before, 200e6)
        self.go_on()
        self.s.until(lambda: self.s.group("actor")["succeeded"] == 2)

    def test_they_are_replaced(self):
        self.stop()
        id = self.answered()
        job = self.s.wait_job(id)  # the second attempt succeeds
        self.assertEqual((job["state"], job["attempt"]), ("succeeded", 2))
        self.assertEqual(self.s.do("actor", "blob 100000")["state"], "succeeded")
        self.assertEqual(self.s.deaths("actor"), [])

    def test_an_upgrade_goes_on(self):
        self.stop()
        id = self.answered()
        self.refused("Restarting", self.s.call, "Upgrade")
        job = self.s.wait_job(id)
        self.assertEqual((job["state"], job["attempt"]), ("succeeded", 1))


class Shortages(TestCase):
    """The Nth call fails: it reports that, or continues, and loses no accepted job."""

    def with_faults(self, fault, groups=None):
        return self.supervisor(groups or {"actor": actor(2)}, program=FAULTY_TROUPED,
                               environment={"TROUPE_FAULT": fault})

    def work(self, s):
        for i in range(3):
            self.assertEqual(s.do("actor", f"echo {i}")["result"], text(str(i)))

    def test_a_failed_spawn_is_a_retry(self):
        for kind in "clone", "memfd", "pipe":
            with self.subTest(kind=kind):
                s = self.with_faults(f"{kind}:1").start()
                self.work(s)
                s.stop()

    def test_out_of_descriptors_while_accepting_is_survived(self):
        s = self.with_faults("accept:2")
        s.start()
        for _ in range(4):
            try:
                s.call("GetInfo")
            except (EOFError, ConnectionError):
                pass
        self.work(s)

    def test_out_of_memory_never_ends_it_without_a_word(self):
        for nth in range(1, 400, 21):
            with self.subTest(nth=nth):
                s = self.with_faults(f"alloc:{nth}")
                s.spawn()
                try:
                    self.survive(s)
                finally:
                    if s.process.poll() is None:
                        s.terminate()
                    status = s.wait_end()
                self.assertIn(status, (0, 1), f"allocation {nth}: ended with {status}\n{s.log()}")
                if status == 1:
                    self.assertRegex(s.log(), "(?i)memory")

    def survive(self, s):
        """Makes a few requests, any of which may be refused."""
        while s.process.poll() is None and not os.path.exists(s.socket_path):
            os.sched_yield()
        for _ in range(5):
            try:
                with Varlink(s.socket_path, limit=5) as connection:
                    connection.call("Do", group="actor", payload=text("echo 1"))
            except (Exception,):  # pylint: disable=broad-except
                pass


class Idle(TestCase):
    def wake_ups(self, s, pids, seconds):
        def count():
            return sum(s.status_field("voluntary_ctxt_switches", pid) for pid in pids)
        before = count()
        ended(s.pidfd, seconds)  # nothing is expected to happen for so long
        return count() - before

    def quiet(self, s, pids):
        """All are asleep and stay so, longer than the status line for systemd lags behind (0.2 s). Not being woken alone may
        mean waiting for a CPU."""
        def asleep():
            return all(s.status_field("State", pid) == "S" for pid in pids)
        return asleep() and self.wake_ups(s, pids, 0.5) == 0 and asleep()

    def test_an_idle_supervisor_with_its_workers_is_never_woken(self):
        for options in ["--wake", "futex"], ["--wake", "eventfd"], ["--loop", "epoll"]:
            with self.subTest(options=options):
                s = self.started({"actor": actor(5)}, options=options)
                s.do("actor", "echo")
                s.wait_for(lambda: all(w["state"] == "idle" for w in s.group("actor")["workers"]))
                pids = [s.process.pid, s.supervisor_pid] + [w["pid"] for w in s.group("actor")["workers"]]
                while not self.quiet(s, pids):
                    pass
                self.assertEqual(self.wake_ups(s, pids, 3), 0)


@unittest.skipUnless(HAS_IO_URING, "io_uring is not available here")
class BackEnds(TestCase):
    def test_the_loop_can_be_chosen_and_is_told(self):
        for loop in "io_uring", "epoll":
            with self.subTest(loop=loop):
                s = self.started({"actor": actor()}, options=["--loop", loop])
                self.assertEqual(s.call("GetInfo")["loop"], loop)
                self.assertEqual(s.log().count("info: the event loop uses epoll, as asked for\n"), loop == "epoll")
                self.assertEqual(s.do("actor", "echo hello")["result"], text("hello"))

    def test_both_ways_of_waking_do_the_same_work(self):
        for wake in "futex", "eventfd":
            with self.subTest(wake=wake):
                s = self.started({"actor": actor(2)}, options=["--loop", "io_uring", "--wake", wake])
                self.assertEqual(s.call("GetInfo")["wake"], wake)
                for i in range(200):
                    self.assertEqual(s.do("actor", f"echo {i}")["result"], text(str(i)))
                self.assertEqual(s.do("actor", "before 2 crash kill\nattempt")["result"], text("2"))
                s.stop()
