# SPDX-License-Identifier: MIT
"""Services as users of systemd know them: notifications, failures, and how they are stopped."""
import contextlib
import os
import signal
import socket
import sys
import threading
import unittest

from troupe import ACTOR, TestCase, ini, service

ROOT = os.geteuid() == 0

CONNECT = ("import os, signal, socket, sys, time\n"
           "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
           "def tell(text): s.sendto(text, os.environ['NOTIFY_SOCKET'])\n")


class Services(TestCase):
    def program(self, s, name, body):
        """A service in Python, and the words that start it."""
        return f"{sys.executable} {s.write(name + '.py', CONNECT + body)}"

    def one(self, body, name="a", **sections):
        """A supervisor with one service, which need not come up."""
        s = self.supervisor()
        s.write(name + ".group", service(self.program(s, name, body), **sections))
        s.start()
        return s

    def state(self, s, name="a/0"):
        return s.worker(name)["state"]


class Notifications(Services):
    NOTIFY = {"Type": "notify"}

    def test_a_service_that_needs_more_time_to_start_gets_it(self):
        s = self.one("for i in range(60):\n"
                     "    tell(b'STATUS=%d\\nEXTEND_TIMEOUT_USEC=60000000' % i)\n"
                     "    time.sleep(0.1)\n"
                     "tell(b'READY=1')\n"
                     "time.sleep(10000)\n",
                     Group=self.NOTIFY, Worker={"TimeoutStartSec": "5s"})
        s.wait_for(lambda: self.state(s) == "idle")
        self.assertEqual(s.deaths(), [])

    def test_a_service_that_needs_more_time_to_stop_gets_it(self):
        s = self.one("def end(*_):\n"
                     "    for i in range(40):\n"
                     "        tell(b'EXTEND_TIMEOUT_USEC=60000000')\n"
                     "        time.sleep(0.1)\n"
                     "    sys.exit(7)\n"
                     "signal.signal(signal.SIGTERM, end)\n"
                     "tell(b'READY=1')\n"
                     "time.sleep(10000)\n",
                     Group=self.NOTIFY, Worker={"TimeoutStopSec": "3s"})
        s.wait_for(lambda: self.state(s) == "idle")
        s.call("Stop", target="a")
        s.wait_for(lambda: self.state(s) == "stopped")
        self.assertEqual(s.deaths()[0]["exit_status"], 7)

    @unittest.skipUnless(ROOT, "needs root")
    def test_a_service_that_gives_up_root_by_itself_can_say_that_it_is_ready(self):
        s = self.one("os.setgid(65534)\n"
                     "os.setuid(65534)\n"
                     "tell(b'READY=1\\nSTATUS=as nobody')\n"
                     "time.sleep(10000)\n",
                     Group=self.NOTIFY)
        s.wait_for(lambda: self.state(s) == "idle")
        self.assertEqual(s.worker("a/0")["status"], "as nobody")

    def test_a_notification_that_is_too_long_is_named_in_the_log(self):
        s = self.one("tell(b'STATUS=' + b'x' * 5000)\n"
                     "tell(b'READY=1')\n"
                     "time.sleep(10000)\n",
                     Group=self.NOTIFY)
        s.wait_for(lambda: self.state(s) == "idle")
        self.assertIn("it is longer than 4096 bytes", s.log())


class Failures(Services):
    def test_a_service_that_is_not_restarted_has_failed_unless_it_was_ready_and_exits_with_0(self):
        for end, kind, state in (("os.kill(os.getpid(), signal.SIGSEGV)\n", "service", "failed"), ("", "service", "stopped"),
                                 ("", "notify", "failed")):
            s = self.one(end, Group={"Type": kind}, Restart={"Restart": "no"})
            s.wait_for(lambda s=s, state=state: self.state(s) == state)
            self.assertEqual(s.group("a")["state"], state)

    def test_a_program_that_cannot_be_executed_counts_towards_the_start_limit(self):
        s = self.supervisor()
        program = s.write("program", "no program\n")
        os.chmod(program, 0o755)
        s.write("a.group", service(program, Restart={"StartLimitBurst": "2", "StartLimitIntervalSec": "1h", "MinSec": "1ms", "MaxSec": "1ms"}))
        s.start()
        s.wait_for(lambda: self.state(s) == "failed")

    def test_a_worker_that_dies_at_once_is_restarted_after_a_pause_however_short_a_healthy_life_may_be(self):
        s = self.supervisor()
        s.write("a.group", service("/bin/false", Restart={"ResetAfterSec": "0", "MinSec": "1h", "MaxSec": "1h"}))
        s.start()
        s.wait_for(lambda: self.state(s) == "backoff")

    def test_a_reload_may_change_when_a_service_is_ready(self):
        s = self.one("tell(b'READY=1')\ntime.sleep(10000)\n")
        s.wait_for(lambda: self.state(s) == "idle")
        s.write("a.group", service(self.program(s, "b", "tell(b'READY=1')\ntime.sleep(10000)\n"), Group={"Type": "notify"}))
        s.call("Reload")
        s.wait_for(lambda: s.worker("a/0")["generation"] == 2 and self.state(s) == "idle")

    def test_a_service_whose_new_program_does_not_come_up_is_not_said_to_continue(self):
        s = self.one("time.sleep(10000)\n")
        s.wait_for(lambda: self.state(s) == "idle")
        s.write("a.group", service("/bin/false", Group={"Type": "notify"}, Restart={"MinSec": "1h", "MaxSec": "1h"}))
        s.call("Reload")
        s.wait_for(lambda: s.group("a").get("behind"))
        said = s.ctl("status", "a").stdout
        self.assertIn("the new program did not come up; see", said)
        self.assertNotIn("continue", said)


class Output(Services):
    @unittest.skipUnless(ROOT, "needs root")
    def test_a_service_of_another_user_can_open_its_output_by_name(self):
        s = self.started({"a": service("/bin/sh -c 'echo out >/dev/stdout; echo error >/dev/stderr; exec sleep 10000'",
                                       Group={"User": "nobody"})})
        s.until(lambda: "[a/0] out\n" in s.log() and "[a/0] error\n" in s.log())

    def test_a_death_report_waits_for_the_last_words(self):
        s = self.one("tell(b'READY=1')\n"
                     "time.sleep(10000)\n", Group={"Type": "notify"}, Restart={"Restart": "no"})
        s.wait_for(lambda: self.state(s) == "idle")
        pid, pump = s.worker("a/0")["pid"], s.pumps()[0]
        os.kill(pump, signal.SIGSTOP)
        with open(f"/proc/{pid}/fd/2", "w", encoding="ascii") as file:
            file.write("last words\n")
        os.kill(pid, signal.SIGKILL)
        s.until(lambda: not os.path.exists(f"/proc/{pid}"))
        os.kill(pump, signal.SIGCONT)
        s.wait_for(lambda: self.state(s) == "failed")
        self.assertEqual(s.deaths()[0]["stderr"], "last words\n")
        s.until(lambda: not s.pumps())

    def test_a_stranger_who_has_the_output_of_a_service_that_ended_does_not_keep_its_pump(self):
        s = self.supervisor()
        path = os.path.join(s.directory, "stranger")
        stranger = socket.socket(socket.AF_UNIX)
        self.addCleanup(stranger.close)
        stranger.bind(path)
        stranger.listen()
        body = f"t = socket.socket(socket.AF_UNIX)\nt.connect({path!r})\nsocket.send_fds(t, [b'x'], [1])\n"
        s.write("a.group", service(self.program(s, "a", body), Restart={"Restart": "no"}))
        s.start()
        _, fds, _, _ = socket.recv_fds(stranger.accept()[0], 1, 1)
        self.addCleanup(os.close, fds[0])
        s.wait_for(lambda: self.state(s) == "stopped")
        s.until(lambda: not s.pumps())

    def test_a_service_that_locks_its_output_is_stopped_and_started_again(self):
        s = self.one("import threading\n"
                     "empty = socket.socketpair()\n"
                     "threading.Thread(target=os.splice, args=(empty[0].fileno(), 1, 4096), daemon=True).start()\n"
                     "time.sleep(0.1)\n"
                     "tell(b'READY=1')\n"
                     "time.sleep(10000)\n", Group={"Type": "notify"})
        for generation in 1, 2:
            s.wait_for(lambda: self.state(s) == "idle" and s.worker("a/0")["generation"] == generation)
            s.call("Restart", target="a")

    def test_a_group_whose_outputs_a_stranger_locks_gets_no_further_service_until_it_lets_go(self):
        s = self.supervisor()
        path, empty = os.path.join(s.directory, "stranger"), socket.socketpair()
        stranger = socket.socket(socket.AF_UNIX)
        self.addCleanup(stranger.close)
        stranger.bind(path)
        stranger.listen()

        def lock():
            while True:
                try:
                    connection = stranger.accept()[0]
                except OSError:
                    return
                _, (fd,), _, _ = socket.recv_fds(connection, 1, 1)
                thread = threading.Thread(target=hold, args=(fd,))
                thread.start()
                while str(thread.native_id) not in waiting(fd):
                    pass
                connection.send(b"x")
                connection.close()

        def hold(fd):
            with contextlib.suppress(OSError):
                os.splice(empty[0].fileno(), fd, 4096)
            os.close(fd)

        def waiting(fd):
            for thread in os.listdir("/proc/self/task"):
                with contextlib.suppress(OSError), open(f"/proc/self/task/{thread}/syscall", encoding="ascii") as file:
                    if file.read().split()[1:4:2] == [hex(empty[0].fileno()), hex(fd)]:
                        yield thread

        body = f"t = socket.socket(socket.AF_UNIX)\nt.connect({path!r})\nsocket.send_fds(t, [b'x'], [1])\nt.recv(1)\n"
        s.write("a.group", service(self.program(s, "a", body), Pool={"Size": 4},
                                   Restart={"Restart": "always", "MinSec": "1ms", "MaxSec": "1ms", "StartLimitBurst": 0}))
        locker = threading.Thread(target=lock)
        locker.start()
        try:
            s.start()
            s.until(lambda: "no service is started while the output of its last processes cannot be closed" in s.log())
            self.assertLess(len(s.pumps()), 30)
            s.write("b.group", service("/bin/sleep 10000"))
            s.call("Reload")
            s.wait_for(lambda: self.state(s, "b/0") == "idle")
        finally:
            stranger.shutdown(socket.SHUT_RDWR)
            locker.join()
            empty[1].close()
        s.until(lambda: len(s.pumps()) <= 5)

    def test_its_output_goes_on_across_a_crash_and_an_upgrade(self):
        s = self.one("signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b'asked\\n'))\n"
                     "tell(b'READY=1')\n"
                     "while True: time.sleep(10000)\n", Group={"Type": "notify"})
        s.wait_for(lambda: self.state(s) == "idle")
        for n, change in enumerate((lambda: None, s.crash, lambda: s.ctl("upgrade", check=True))):
            change()
            os.kill(s.wait_worker("a/0", "idle")["pid"], signal.SIGUSR1)
            s.until(lambda: s.log().count("[a/0] asked\n") == n + 1)


class Stopping(Services):
    FLUSHING = ("signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.5), open(sys.argv[1], 'w').write('flushed'), sys.exit(0)))\n"
                "tell(b'READY=1')\n"
                "time.sleep(10000)\n")

    def shell(self, s, mode):
        """A service of a shell, which ends at once, and a program that takes its time. Returns what the program writes."""
        file = s.path("flushed")
        s.write("a.group", service(f"/bin/sh -c '{self.program(s, 'a', self.FLUSHING)} {file}; exit 3'",
                                   Group={"Type": "notify"}, Worker={"KillMode": mode, "TimeoutStopSec": "infinity"}))
        s.start()
        s.wait_for(lambda: self.state(s) == "idle")
        return file

    def test_all_processes_of_a_service_get_the_signal_and_the_time_to_end(self):
        s = self.supervisor()
        file = self.shell(s, "control-group")
        s.call("Stop", target="a")
        s.wait_for(lambda: self.state(s) == "stopped")
        self.assertTrue(os.path.exists(file))

    def test_with_mixed_only_the_main_process_gets_the_signal(self):
        s = self.supervisor()
        file = self.shell(s, "mixed")
        s.call("Stop", target="a")
        s.wait_for(lambda: self.state(s) == "stopped")
        self.assertFalse(os.path.exists(file))

    def test_processes_that_do_not_end_are_killed_after_the_time_to_stop(self):
        s = self.supervisor()
        program = self.program(s, "a", "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntell(b'READY=1')\ntime.sleep(10000)\n")
        s.write("a.group", service(f"/bin/sh -c '{program}; exit 3'", Group={"Type": "notify"}, Worker={"TimeoutStopSec": "1s"}))
        s.start()
        s.wait_for(lambda: self.state(s) == "idle")
        s.call("Stop", target="a")
        s.wait_for(lambda: self.state(s) == "stopped")
        s.until(lambda: len(s.children()) == 0)

    def test_a_stopped_service_handles_the_signal_that_ends_it(self):
        s = self.one("signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
                     "tell(b'READY=1')\n"
                     "time.sleep(10000)\n",
                     Group={"Type": "notify"}, Worker={"TimeoutStopSec": "infinity"})
        s.wait_for(lambda: self.state(s) == "idle")
        os.kill(s.worker("a/0")["pid"], signal.SIGSTOP)
        s.call("Stop", target="a")
        s.wait_for(lambda: self.state(s) == "stopped")
        self.assertEqual(s.deaths()[0]["exit_status"], 7)


class Autostart(Services):
    def test_a_group_that_does_not_start_by_itself_is_stopped_until_it_is_started(self):
        s = self.one("time.sleep(10000)\n", Group={"Autostart": "no"})
        s.write("b.group", service("/bin/sleep 1000000", Group={"After": "a"}))
        s.call("Reload")
        s.wait_for(lambda: self.state(s, "b/0") == "idle")
        self.assertEqual(s.group("a")["state"], "stopped")
        self.assertIn("troupectl start a", s.ctl("why", "a", check=True).stdout)
        s.call("Start", target="a", wait=True)
        generation = s.worker("a/0")["generation"]
        s.ctl("upgrade", check=True)
        self.assertEqual((self.state(s), s.worker("a/0")["generation"]), ("idle", generation))
        s.call("Stop", target="a", wait=True)
        s.ctl("upgrade", check=True)
        self.assertEqual(s.group("a")["state"], "stopped")


class KeptStops(Services):
    """stop --keep."""

    def restart(self, s):
        s.stop()
        s.start()

    def every_start(self, s):
        return s.crash, lambda: s.ctl("upgrade", check=True), lambda: self.restart(s)

    def kept(self, name="a"):
        s = self.supervisor({"a": ini(ACTOR), "b": service("/bin/sleep 1000000")}, state=True)
        s.start()
        s.ctl("stop", "--keep", "--wait", name, check=True)
        return s

    def test_a_stop_that_is_kept_lasts_until_the_group_is_started(self):
        for name in "a", "b":
            s = self.kept(name)
            other = "b" if name == "a" else "a"
            for happens in self.every_start(s):
                with self.subTest(name=name):
                    happens()
                    s.wait_for(lambda: self.state(s, other + "/0") == "idle")
                    s.until(lambda: s.group(name).get("stays_stopped"))  # read from disk: no event tells it
                    self.assertEqual((s.group(name)["state"], self.state(s, name + "/0")), ("stopped", "stopped"))
                    self.assertIn("stopped, also after a restart of trouped", s.ctl("why", name, check=True).stdout)
                    self.assertIn("also after a restart of trouped", s.ctl("status", name).stdout)
            s.ctl("start", "--wait", name, check=True)
            self.assertNotIn("stays_stopped", s.group(name))
            for happens in self.every_start(s):
                happens()
                s.wait_for(lambda: self.state(s, name + "/0") == "idle")

    def test_a_start_ends_one_whose_store_was_opened_for_it(self):
        s = self.kept()
        s.wait_event("store.open")
        s.ctl("start", "--wait", "a", check=True)
        self.assertNotIn("stays_stopped", s.group("a"))

    def test_a_restart_on_request_ends_it(self):
        s = self.kept()
        s.ctl("restart", "--wait", "a", check=True)
        self.restart(s)
        s.wait_for(lambda: self.state(s) == "idle")

    def test_a_file_that_comes_back_describes_a_group_that_is_still_stopped(self):
        s = self.kept()
        path = os.path.join(s.config, "a.group")
        text = open(path, encoding="utf-8").read()
        os.unlink(path)
        s.call("Reload")
        s.write("a.group", text)
        s.call("Reload")
        self.assertEqual((s.group("a")["state"], s.group("a")["stays_stopped"]), ("stopped", True))

    def test_jobs_wait_while_the_group_stays_stopped(self):
        s = self.kept()
        job = s.create("a", "echo")
        s.ctl("start", "a", check=True)
        self.assertEqual(s.wait_job(job)["state"], "succeeded")

    def test_only_a_group_can_stay_stopped_and_only_where_this_can_be_written(self):
        s = self.kept("b")
        self.assertIn("with a group as target", s.ctl("stop", "--keep", "a/0").stderr)
        self.assertEqual(self.state(s), "idle")
        s = self.supervisor({"a": ini(ACTOR)})
        s.environment.pop("STATE_DIRECTORY", None)
        s.start()
        self.assertIn("cannot be kept on disk: it would not survive", s.ctl("stop", "--keep", "a").stderr)
        self.assertEqual(s.group("a")["state"], "running")


class Ends(Services):
    """Which ends of a service count as failures."""
    STAYS_DOWN = "stopped", "failed"

    def end_of(self, body, **restart):
        s = self.one(body, Restart={"MinSec": "1ms", "MaxSec": "1ms", "Restart": "always", **restart})
        s.wait_for(lambda: self.state(s) in self.STAYS_DOWN)
        return self.state(s)

    def test_a_listed_end_is_a_success(self):
        for body in "sys.exit(3)\n", "os.kill(os.getpid(), signal.SIGINT)\ntime.sleep(10000)\n":
            with self.subTest(body=body):
                body = "signal.signal(signal.SIGINT, signal.SIG_DFL)\n" + body
                self.assertEqual(self.end_of(body, Restart="on-failure", SuccessExitStatus="3 SIGINT"), "stopped")

    def test_a_listed_end_is_not_followed_by_a_restart(self):
        self.assertEqual(self.end_of("sys.exit(64)\n", RestartPreventExitStatus="64"), "failed")
        self.assertEqual(self.end_of("sys.exit(0)\n", RestartPreventExitStatus="0"), "stopped")

    def test_one_that_is_as_old_as_it_may_be_restarts_in_its_place(self):
        s = self.one("time.sleep(10000)\n", Pool={"MaxAgeSec": "50ms"})
        s.wait_event("worker.recycled", "a")
        s.wait_for(lambda: s.worker("a/0")["generation"] > 2)
        self.assertEqual({death["cause"] for death in s.deaths()}, {"stop"})


class Signals(Services):
    BODY = ("def say(number, _): tell(b'STATUS=%d' % number)\n"
            "for number in signal.SIGHUP, signal.SIGUSR1:\n"
            "    signal.signal(number, say)\n"
            "tell(b'READY=1\\nSTATUS=0')\n"
            "while True: signal.pause()\n")

    def got(self, s, number):
        s.until(lambda: s.worker("a/0").get("status") == str(int(number)))

    def test_the_main_process_gets_the_signal_of_the_group_or_another_one(self):
        s = self.one(self.BODY, Group={"Type": "notify"}, Worker={"ReloadSignal": "SIGHUP"})
        self.got(s, 0)
        self.assertEqual(s.ctl("signal", "a", check=True).stdout, "sent to 1 worker\n")
        self.got(s, signal.SIGHUP)
        s.ctl("signal", "a/0", "USR1", check=True)
        self.got(s, signal.SIGUSR1)
        s.call("Stop", target="a", wait=True)
        self.assertEqual(s.call("Signal", target="a"), {"workers": 0})

    def test_a_signal_that_is_none_is_refused(self):
        s = self.one(self.BODY, Group={"Type": "notify"})
        self.got(s, 0)
        self.assertIn("ReloadSignal=", s.ctl("signal", "a").stderr)
        self.assertIn("such as SIGUSR1", s.ctl("signal", "a", "USR9").stderr)
        self.assertIn("no group", s.ctl("signal", "b", "USR1").stderr)
