# SPDX-License-Identifier: MIT
"""Kills the supervisor of services again and again, at every step and at random moments, and accounts for what it had."""
import collections
import contextlib
import os
import re
import time
from pathlib import Path

from troupe import Cgroup, FAULTY_TROUPED, LIMIT, TestCase, dice, ini, limit

KILLS = int(os.environ.get("TESTS_CHAOS_KILLS", "0"))

STEADY = "i=0; while :; do i=$((i+1)); echo line $i; sleep .02; done"
# Its last line before it dies is "line 10".
CRASHING = "for i in 1 2 3 4 5 6 7 8 9 10; do echo life $TROUPE_GENERATION line $i; sleep .005; done; exit 3"
RESTART = {"MinSec": "1ms", "MaxSec": "10ms", "StartLimitBurst": 0}


class Chaos(TestCase):
    """A supervisor that is killed again and again, and what it leaves."""

    def begin(self, s):
        """Starts it; the groups whose processes must stay are in `steady`."""
        self.rng = dice()
        self.point = s.path("point")
        s.environment["TROUPE_FAULT_POINT"] = "@" + self.point
        self.s = s.start()
        self.kills = 0
        self.pids = self.steady_pids()
        self.kill()
        self.s.until(lambda: self.s.call("GetInfo")["state"] == "running")  # with the store's descriptors
        self.before = self.measures()

    def faulty(self, groups=None, **options):
        self.cgroup = Cgroup(self) if Cgroup.available() else None
        return self.supervisor(groups, program=FAULTY_TROUPED, environment={"TROUPE_FAULT": "safe-mode:1+"},
                               wrapper=self.cgroup.wrapper if self.cgroup else (), **options)

    def again(self, function):
        """Calls it until there is a supervisor that answers: a connection to a dying one is reset."""
        while True:
            with contextlib.suppress(ConnectionError, EOFError):
                return function()

    def steady_pids(self):
        return {w["name"]: w.get("pid") for group in self.steady for w in self.again(lambda g=group: self.s.workers(g))}

    def kill(self):
        self.s.crash()
        self.kills += 1
        self.again(lambda: self.s.call("GetInfo"))

    def kill_at(self, passage):
        """Kills the supervisor, and the next one at this passage of a fault point: the one after that lives on."""
        Path(self.point + ".new").write_text(passage, encoding="ascii")
        os.rename(self.point + ".new", self.point)
        self.kill()
        self.kills += 1
        limit_at = time.monotonic() + LIMIT
        while os.path.exists(self.point):
            time.sleep(.001)
            self.assertLess(time.monotonic(), limit_at, f"{passage} was not reached")
        self.again(lambda: self.s.call("GetInfo"))

    def kill_at_every_step(self, steps):
        for n in range(1, steps + 1):
            self.kill_at(f"any:{n}")
            self.assertEqual(self.steady_pids(), self.pids, f"after a kill at any:{n}")

    def kill_at_random(self, kills):
        for _ in range(kills):
            time.sleep(self.rng.choice((0, .001, .01, .05)) * self.rng.random())  # any moment will do
            self.kill()
            self.assertEqual(self.steady_pids(), self.pids)

    def measures(self):
        """Its descriptors, but those of processes, and the timer that the first pause of a job makes."""
        self.again(lambda: self.s.call("GetInfo"))
        keeper = f"/proc/{self.s.process.pid}/fd"
        return {"descriptors": len([fd for fd in self.s.fds() if not any(kind in fd for kind in ("pidfd", "pipe", "timerfd"))]),
                "keeper": len(os.listdir(keeper)) if os.geteuid() == 0 else 0}

    def end(self, others):
        """Stops everything: nothing is left."""
        s = self.s
        self.assertEqual(self.steady_pids(), self.pids)
        for group in others:
            s.ctl("stop", group, check=True)
        s.until(lambda: self.measures()["descriptors"] <= self.before["descriptors"])
        s.stop()
        self.assertEqual([name for name in os.listdir(s.directory) if name.endswith(".sock")], [])
        if self.cgroup:
            self.assertEqual(self.cgroup.slots(), [])


class Services(Chaos):
    """The supervisor is killed while services write and die."""

    steady = ("steady",)

    def setUp(self):
        s = self.faulty()
        for name, script in ("steady", STEADY), ("crashing", CRASHING):
            path = s.write(name + ".sh", script)
            s.write(name + ".group", ini(f"/bin/sh {path}", Group={"Type": "service"}, Pool={"Size": 2}, Restart=RESTART))
        self.begin(s)

    def lines(self, worker):
        """How often each line of this worker is in the log."""
        return collections.Counter(re.findall(rf"^trouped: info: \[{worker}\] (.*)$", self.s.log(), re.M))

    def account(self):
        crashing = self.s.workers("crashing")
        self.end(["crashing"])
        doubled = 0
        for worker in "steady/0", "steady/1":
            lines = self.lines(worker)
            last = max(int(line.split()[1]) for line in lines)
            self.assertEqual([n for n in range(1, last + 1) if f"line {n}" not in lines], [], worker)
            doubled += sum(lines.values()) - last
        deaths = 0
        for worker in crashing:
            # A kill may come before a new process is held, or after a death is reported and before it is counted.
            uncounted = worker["generation"] - (worker["state"] != "backoff") - worker["restarts"]
            self.assertIn(uncounted, range(self.kills + 1), worker)
            deaths += worker["restarts"]
        print(f"{self.kills} kills, {deaths} deaths, {doubled} lines doubled")
        self.assertLessEqual(doubled, self.kills)

    @limit(3600 if KILLS else 300)
    def test_services_outlive_a_kill_at_every_step(self):
        self.kill_at_every_step(min(KILLS, 400) or 25)
        self.account()

    @limit(3600 if KILLS else 300)
    def test_services_outlive_kills_at_random_moments(self):
        self.kill_at_random(KILLS or 30)
        self.account()
