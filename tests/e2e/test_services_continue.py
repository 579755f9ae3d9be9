# SPDX-License-Identifier: MIT
"""Services outlive a supervisor that crashes, with their output and their notify sockets."""
import os
import signal
import unittest

from troupe import Bell, Cgroup, LIMIT, TestCase, Varlink, ended, ini

PLAYER = """
import os, socket, sys
def tell(message):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.sendto(message.encode(), os.environ["NOTIFY_SOCKET"])
orders = os.fdopen(os.open(sys.argv[1], os.O_RDWR))  # always has a writer
for line in orders:
    order, _, text = line.rstrip("\\n").partition(" ")
    if order == "print":
        print(text, flush=True)
    elif order == "begin":
        print(text, end="", flush=True)
    elif order == "tell":
        tell(text)
    elif order == "exit":
        os._exit(int(text))
    elif order == "done":
        os.mknod(text)
"""


class Player:
    """A service that does what the test orders."""

    def __init__(self, s, name, kind="service", **sections):
        self.s = s
        self.name = name
        self.orders = s.path(name + ".orders")
        os.mkfifo(self.orders)
        script = s.write("player.py", PLAYER)
        group = {"Type": kind, **sections.pop("Group", {})}
        s.write(name + ".group", ini(f"/usr/bin/python3 {script} {self.orders}", Group=group, **sections))

    def order(self, *lines):
        """Returns once all is done."""
        done = self.s.path("done")
        self.give(*lines, "done " + done)
        while not os.path.exists(done):
            os.sched_yield()
        os.unlink(done)

    def give(self, *lines):
        with open(self.orders, "w", encoding="ascii") as file:
            file.writelines(line + "\n" for line in lines)

    @property
    def worker(self):
        return self.s.worker(self.name + "/0")


class Continuity(TestCase):
    def player(self, name="web", kind="service", **sections):
        s = self.supervisor()
        player = Player(s, name, kind, **sections)
        s.start()
        return s, player

    def test_a_service_runs_on_and_what_it_wrote_meanwhile_arrives_once(self):
        s, player = self.player()
        before = player.worker
        player.order("print before", "begin half a")
        s.until(lambda: "[web/0] before" in s.log())
        with self.without_supervisor(s):
            player.order("print  line", "print meanwhile", "tell STATUS=said meanwhile")
        s.until(lambda: player.worker["state"] == "idle")
        after = player.worker
        for key in "pid", "generation", "restarts", "since_at":
            self.assertEqual(after[key], before[key], key)
        s.until(lambda: player.worker.get("status") == "said meanwhile")
        player.order("print after", "tell STATUS=said after")
        s.until(lambda: player.worker.get("status") == "said after")
        s.until(lambda: "[web/0] after" in s.log())
        for line in "before", "half a line", "meanwhile", "after":
            self.assertEqual(s.log().count(f"[web/0] {line}\n"), 1, line)
        self.assertEqual(s.deaths(), [])

    def test_what_a_removed_service_wrote_does_not_arrive_again_as_that_of_another(self):
        s, first = self.player("first")
        first.order("print of the first")
        s.until(lambda: "[first/0] of the first" in s.log())
        os.unlink(os.path.join(s.config, "first.group"))
        s.ctl("reload", "--allow-empty", check=True)
        s.until(lambda: "group first is gone" in s.log())
        second = Player(s, "second")
        s.ctl("reload", check=True)
        s.wait_worker("second/0", "idle")
        s.crash()
        s.wait_worker("second/0", "idle")
        second.order("print of the second")
        s.until(lambda: "[second/0] of the second" in s.log())
        self.assertNotIn("[second/0] of the first", s.log())

    def test_half_a_line_of_a_service_that_was_down_at_an_earlier_crash_is_kept(self):
        s, player = self.player()
        player.order("print before the stop")
        s.until(lambda: "[web/0] before the stop" in s.log())
        s.ctl("stop", "web", "--wait", check=True)
        s.crash()
        s.ctl("start", "web", "--wait", check=True)
        player.order("begin half a")
        s.until(lambda: s.ctl("logs", "web/0").stdout.endswith("half a\n"))
        s.crash()
        s.wait_worker("web/0", "idle")
        player.order("print  line")
        s.until(lambda: " line\n" in s.log())
        self.assertIn("[web/0] half a line\n", s.log())

    def test_its_status_is_known_after_a_crash(self):
        s, player = self.player()
        player.order("tell STATUS=busy with it")
        s.until(lambda: player.worker.get("status") == "busy with it")
        s.crash()
        s.wait_worker("web/0", "idle")
        self.assertEqual(player.worker["status"], "busy with it")

    def test_it_can_be_stopped_restarted_and_reloaded_after_a_crash(self):
        s, player = self.player()
        first = os.pidfd_open(player.worker["pid"])
        self.addCleanup(os.close, first)
        s.crash()
        s.wait_worker("web/0", "idle")
        s.call("Reload")
        self.assertFalse(ended(first, 0))
        s.ctl("stop", "web", check=True)
        self.assertTrue(ended(first, LIMIT))
        s.ctl("start", "web", check=True)
        self.assertEqual(player.worker["generation"], 2)
        player.order("print on")
        s.until(lambda: "[web/0] on" in s.log())
        s.stop()
        self.assertFalse(os.path.exists(s.path("notify-web-0.sock")))

    def test_a_service_that_ended_without_a_supervisor_is_reported_and_restarted(self):
        s, player = self.player(Restart={"Restart": "on-failure", "MinSec": "1ms", "MaxSec": "1ms"})
        process = os.pidfd_open(player.worker["pid"])
        self.addCleanup(os.close, process)
        with self.without_supervisor(s):
            player.give("print last words", "exit 7")
            self.assertTrue(ended(process, LIMIT))
        s.wait_for(lambda: player.worker["generation"] == 2 and player.worker["state"] == "idle")
        [death] = s.deaths()
        self.assertEqual((death["worker"], death["generation"], death["exit_status"]), ("web/0", 1, 7))
        self.assertIn("last words", str(death))
        self.assertEqual(s.log().count("[web/0] last words\n"), 1)

    def test_a_stop_or_restart_on_request_that_falls_into_a_crash_is_no_death(self):
        """The service ends of the signal, or after it, while there is no supervisor."""
        for verb, end in ("stop", "TERM"), ("stop", "exit"), ("restart", "TERM"), ("restart", "exit"):
            with self.subTest(verb=verb, end=end):
                s = self.supervisor()
                told, bell = Bell(s, "told"), Bell(s, "bell")
                on_term = f"echo >{told.path}; read x <{bell.path}; " + ("exit 0" if end == "exit" else "trap - TERM; kill -TERM $$")
                script = s.write("slow.sh", f"trap '{on_term}' TERM; echo >{told.path}; while :; do sleep 1000 & wait; done")
                s.write("web.group", ini(f"/bin/sh {script}", Group={"Type": "service"}, Restart={"MinSec": "1h", "MaxSec": "1h"}))
                s.start()
                told.wait()
                pid = s.worker("web/0")["pid"]
                process = os.pidfd_open(pid)
                self.addCleanup(os.close, process)
                with Varlink(s.socket_path) as client:
                    client.send("Stop" if verb == "stop" else "Restart", {"target": "web"})
                    told.wait()
                    with self.without_supervisor(s):
                        bell.ring()
                        self.assertTrue(ended(process, LIMIT))
                if verb == "stop":
                    s.wait_worker("web/0", "stopped")
                else:
                    s.until(lambda: s.worker("web/0")["state"] == "idle" and s.worker("web/0")["pid"] != pid)
                self.assertEqual([death for death in s.deaths() if death["cause"] != "stop"], [])
                self.assertEqual(s.group("web")["deaths"], 0)

    def test_a_service_that_was_not_ready_yet_becomes_so_under_the_next_supervisor(self):
        s = self.supervisor()
        quick = Player(s, "quick")
        slow = Player(s, "slow", "notify", Worker={"TimeoutStartSec": "1h"})
        s.spawn()
        quick.order()
        slow.order("tell READY=1")
        s.wait_told("READY=1")
        s.call("Restart", target="slow")
        s.wait_for(lambda: slow.worker["generation"] == 2 and slow.worker["state"] == "starting")
        slow.order()
        pid = slow.worker["pid"]
        with self.without_supervisor(s):
            slow.order("tell READY=1")
        s.wait_worker("slow/0", "idle")
        self.assertEqual((slow.worker["pid"], slow.worker["generation"]), (pid, 2))

    def test_what_was_stopped_ended_or_failed_stays_so(self):
        s = self.supervisor()
        once = Player(s, "once", Restart={"Restart": "no"})
        stopped = Player(s, "stopped")
        failing = Player(s, "failing", Restart={"MinSec": "0", "MaxSec": "0", "StartLimitBurst": 1})
        s.start()
        s.ctl("stop", "stopped", check=True)
        once.give("exit 0")
        s.wait_worker("once/0", "stopped")
        for generation in 1, 2:
            s.wait_for(lambda g=generation: failing.worker["generation"] == g and failing.worker["state"] == "idle")
            failing.give("exit 1")
        s.wait_worker("failing/0", "failed")
        before = [(p.worker["state"], p.worker["generation"]) for p in (once, stopped, failing)]
        self.assertEqual([state for state, _ in before], ["stopped", "stopped", "failed"])
        s.crash()
        s.wait_event("supervisor.ready")
        self.assertEqual([(p.worker["state"], p.worker["generation"]) for p in (once, stopped, failing)], before)
        s.ctl("start", "stopped", check=True)
        self.assertEqual(stopped.worker["generation"], before[1][1] + 1)

    def test_the_pause_before_a_restart_goes_on_and_restarts_are_counted(self):
        s, player = self.player(Restart={"Restart": "always", "MinSec": "1h", "MaxSec": "1h"})
        player.give("exit 1")
        s.wait_event("worker.died")
        if player.worker["state"] != "backoff":  # the first restart after a healthy life is immediate
            s.wait_for(lambda: player.worker["generation"] == 2 and player.worker["state"] == "idle")
            player.give("exit 1")
        before = s.wait_worker("web/0", "backoff")
        s.crash()
        s.wait_event("supervisor.ready")
        for key in "state", "generation", "restarts", "restart_at", "failures", "since_at":
            self.assertEqual(player.worker[key], before[key], key)
        s.ctl("restart", "web", check=True)
        self.assertEqual(player.worker["generation"], before["generation"] + 1)

    def test_its_watchdog_goes_on(self):
        s, player = self.player(Worker={"WatchdogSec": "1s"}, Restart={"MinSec": "1ms", "MaxSec": "1ms", "StartLimitBurst": 0})
        while True:  # on a slow machine, the watchdog may bite before the crash
            before = player.worker
            s.crash()
            s.wait_for(s.deaths)
            first = s.deaths()[-1]
            self.assertEqual((first["worker"], first["cause"]), ("web/0", "watchdog"))
            if first["pid"] == before.get("pid"):
                break

    def test_a_size_that_was_asked_for_stays(self):
        s, player = self.player()
        s.ctl("resize", "web", "3", check=True)
        s.wait_for(lambda: [w["state"] for w in s.workers("web")] == ["idle"] * 3)
        pids = [w["pid"] for w in s.workers("web")]
        s.crash()
        s.wait_for(lambda: [w["state"] for w in s.workers("web")] == ["idle"] * 3)
        self.assertEqual([w["pid"] for w in s.workers("web")], pids)

    def test_nothing_is_left_after_many_crashes(self):
        s, player = self.player()
        s.crash()
        s.wait_worker("web/0", "idle")
        before, pid = s.n_fds_between_turns(), player.worker["pid"]
        keeper = len(os.listdir(f"/proc/{s.process.pid}/fd")) if os.geteuid() == 0 else 0
        s.crash()
        s.wait_worker("web/0", "idle")
        s.until(lambda: s.n_fds_between_turns() <= before)  # the last connection is being closed
        if keeper:
            s.until(lambda: len(os.listdir(f"/proc/{s.process.pid}/fd")) <= keeper)
        self.assertEqual(s.children(), [pid])
        s.stop()


@unittest.skipUnless(Cgroup.available(), "no cgroup v2 that can be changed")
class Cgroups(TestCase):
    """A service has a child in a session of its own: only its cgroup tells that it belongs to it."""

    def setUp(self):
        self.cgroup = Cgroup(self)
        self.s = self.supervisor(wrapper=self.cgroup.wrapper)
        child = self.s.write("child.sh", f"setsid sleep 10000 & echo $! >{self.s.path('child')}; exec sleep 10000")
        self.file = self.s.write("web.group", ini(f"/bin/sh {child}", Group={"Type": "service"}))
        self.s.start()
        self.s.until(lambda: os.path.exists(self.s.path("child")) and os.path.getsize(self.s.path("child")) > 0)
        with open(self.s.path("child"), encoding="ascii") as file:
            self.child = os.pidfd_open(int(file.readline()))
        self.addCleanup(os.close, self.child)

    def test_a_service_is_stopped_with_all_of_its_cgroup_after_a_crash(self):
        pid = self.s.worker("web/0")["pid"]
        self.s.crash()
        self.s.wait_worker("web/0", "idle")
        self.assertEqual((self.s.worker("web/0")["pid"], self.cgroup.slots()), (pid, ["web:0"]))
        self.assertFalse(ended(self.child, 0))
        self.s.ctl("stop", "web", check=True)
        self.assertTrue(ended(self.child, LIMIT))
        self.s.stop()
        self.assertEqual(self.cgroup.slots(), [])

    def test_a_service_that_the_next_supervisor_does_not_have_ends_with_all_of_its_cgroup(self):
        keeper = self.s.process.pid
        os.kill(keeper, signal.SIGSTOP)
        try:
            self.s.crash()
            os.rename(self.file, os.path.join(os.path.dirname(self.file), "other.group"))
        finally:
            os.kill(keeper, signal.SIGCONT)
        self.assertTrue(ended(self.child, LIMIT))
        self.s.stop()
        self.assertEqual(self.cgroup.slots(), [])
