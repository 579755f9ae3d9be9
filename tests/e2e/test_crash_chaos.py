# SPDX-License-Identifier: MIT
"""Kills the supervisor again and again, at every step of its work and at random moments, and accounts for what it had."""
import collections
import contextlib
import glob
import os
import re
import sqlite3
import subprocess
import threading
import time
import unittest
from pathlib import Path

from troupe import ACTOR, BUILD, Cgroup, FAULTY_TROUPED, LIMIT, TOP, TestCase, VarlinkError, dice, ini, limit

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


def actor(size, **jobs):
    return ini(ACTOR, Pool={"Size": size}, Resources={"LimitCORE": 0}, Restart=RESTART,
               Jobs={"BackoffMinSec": "1ms", "BackoffMaxSec": "5ms", "MaxRetries": 100000, **jobs})


class Load(Chaos):
    """Threads that submit jobs until the end."""

    def load(self, *functions):
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.repeat, args=[function]) for function in functions]
        for thread in self.threads:
            thread.start()
        self.addCleanup(self.join)

    def repeat(self, function):
        while not self.over.is_set():
            function()

    def join(self):
        self.over.set()
        for thread in self.threads:
            thread.join()

    def map(self, group):
        """Feeds jobs to `troupectl map` until `over`. Returns a function that returns (jobs, results, status, what it said)."""
        command = [os.path.join(BUILD, "troupectl"), "--socket", self.s.socket_path, "map", group, "--keep-going", "--window", "16"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        n, results, said = [0], [], []

        def feed():
            try:
                while not self.over.is_set():
                    print(f"note {self.s.path(group)} {n[0]}", file=process.stdin, flush=True)
                    n[0] += 1
                process.stdin.close()
            except BrokenPipeError:
                threads[-1].join()
                print("troupectl map has ended:", process.wait(), said[0][-2000:])
                raise

        threads = [threading.Thread(target=feed), threading.Thread(target=lambda: results.extend(process.stdout)),
                   threading.Thread(target=lambda: said.append(process.stderr.read()))]
        for thread in threads:
            thread.start()

        def finish():
            for thread in threads:
                thread.join()
            process.stdout.close()
            process.stderr.close()
            return n[0], len(results), process.wait(), said[0]
        return finish

    def account_map(self, group, jobs, results, status, said):
        """Every job of a map has ended."""
        summary = said.splitlines()[-1].replace(",", "")
        outcomes = collections.Counter({what: int(n) for n, what in re.findall(r"(\d+) (succeeded|unknown)", summary)})
        self.assertEqual((results, outcomes.total()), (jobs, jobs), said[-2000:])
        self.assertEqual(status, 9 if outcomes["unknown"] else 0, said[-2000:])
        with open(self.s.path(group), encoding="ascii") as file:
            runs = {int(line.split()[0]) for line in file}
        self.assertIn(len(runs), range(outcomes["succeeded"], jobs + 1))

    def do(self, group, *payloads):
        """The answer may be lost with the supervisor."""
        with contextlib.suppress(ConnectionError, EOFError):
            self.s.do(group, self.rng.choice(payloads))


class Workers(Load):
    """The supervisor is killed while jobs run in workers of which some die."""

    steady = ("steady",)

    def setUp(self):
        self.begin(self.faulty({"steady": actor(3), "rough": actor(2)}))
        self.load(lambda: self.do("steady", "echo fine"),
                  lambda: self.do("rough", "echo fine", "before 2 crash kill\necho x", "before 2 exit 3\necho x"))

    def account(self):
        self.join()
        for group in "steady", "rough":
            self.assertEqual(self.again(lambda g=group: self.s.do(g, "echo fine"))["state"], "succeeded")
        self.end(["rough"])

    @limit(3600 if KILLS else 300)
    def test_D9_workers_outlive_a_kill_at_every_step(self):
        self.kill_at_every_step(KILLS or 60)
        self.account()

    @limit(3600 if KILLS else 300)
    def test_D9_workers_outlive_kills_at_random_moments(self):
        self.kill_at_random(KILLS or 30)
        self.account()


# The fault points on the way of a durable job, in the loop's code.
POINTS = (
    "client.submit", "job.accepted", "job.given", "job.started", "job.written", "job.written-told",
    "control.accepted", "control.accepted-told", "job.end-taken", "job.attempt-failed", "durable.attempt-kept",
    "job.end-given", "job.end-written", "job.end-told", "client.done", "job.adopted", "job.row-found", "job.restored",
)


class Points(Load):
    """Durable jobs are created and run while the supervisor is killed at each point of their way: each ends once."""

    steady = ("kept",)

    def setUp(self):
        s = self.faulty({"kept": actor(2, Durable="yes", ResultsMax=1000000, ResultTTLSec="1h")})
        s.write("troupe.conf", f"[Supervisor]\nStateDirectory={s.path('state')}\n")
        self.begin(s)
        self.notes = s.path("notes")
        self.accepted = []
        self.answers = {}
        self.load(self.submit)
        self.held = s.path("held")
        os.mkfifo(self.held)
        self.again(lambda: s.create("kept", f"wait {self.held}\necho went on", id="held"))  # to be adopted
        self.again(lambda: s.create("kept", "echo", id="later", delay_usec=3600 * 10**6))  # to be restored
        self.map_ends = self.map("kept")

    def measures(self):
        self.again(lambda: self.s.do("kept", "echo"))  # the store is open
        return super().measures()

    def submit(self):
        """A job whose answer is lost is created again: its id exists, or does not."""
        id = f"kept-{len(self.accepted) + 1}"
        try:
            self.again(lambda: self.s.create("kept", f"before 2 retry 1 again\nnote {self.notes} {id}", id=id))
            self.answers[id] = "accepted"
        except VarlinkError as error:
            self.answers[id] = error.name
            if error.name != "JobExists":
                raise
        self.accepted.append(id)

    def account(self):
        Path(self.held).write_text("\n", encoding="ascii")
        self.assertEqual(self.again(lambda: self.s.wait_job("held"))["attempt"], 1)
        self.s.call("Cancel", id="later")
        self.join()
        self.account_map("kept", *self.map_ends())
        jobs = {id: self.outcome(id) for id in self.accepted}
        runs = collections.Counter(Path(self.notes).read_text(encoding="ascii").split())
        self.assertEqual(set(runs), set(self.accepted))
        print(f"{self.kills} kills, {len(self.accepted)} durable jobs, {sum(runs.values()) - len(runs)} run again")
        for id, job in jobs.items():
            # A result that was read, and not written before the kill, is a failed attempt.
            self.assertEqual(job["state"], "succeeded", id)
            self.assertGreaterEqual(job["attempt"], runs[id], job)
            self.assertEqual(job["failed_attempts"], job["attempt"] - 1, job)
        self.assertEqual(self.ends(), {id: 1 for id in self.accepted})
        self.end([])

    def outcome(self, id):
        """What has become of it; what there is of a job that cannot be asked for."""
        try:
            return self.again(lambda: self.s.wait_job(id))
        except VarlinkError as error:
            self.fail(f"{id}, which was {self.answers[id]}: {error}; its rows: {self.rows(id)}; {self.s.ctl('status').stdout}")

    def rows(self, id):
        with self.database() as connection:
            return {table: connection.execute(f"SELECT * FROM {table} WHERE name = ?", (id,)).fetchall()
                    for table in ("job", "ended", "dead")}

    def database(self):
        return contextlib.closing(sqlite3.connect(f"file:{self.s.path('state/troupe.db')}?mode=ro", uri=True))

    def ends(self):
        """How often each submitted job is in the database, live or ended."""
        with self.database() as connection:
            rows = connection.execute("SELECT name FROM job UNION ALL SELECT name FROM ended").fetchall()
        return collections.Counter(id for id, in rows if id in self.answers)

    def test_D9_durable_jobs_outlive_a_kill_at_each_point_of_their_way(self):
        for point in POINTS:
            self.kill_at(f"{point}:1")
            self.assertEqual(self.steady_pids(), self.pids, f"after a kill at {point}")
        self.account()


class ListOfPoints(unittest.TestCase):
    def test_the_points_are_those_of_the_code(self):
        folders = [os.path.join(TOP, "supervisor", folder) for folder in ("job", "group", "client", "control", "store")]
        points = set()
        for path in (path for folder in folders for path in glob.glob(folder + "/**/*.c", recursive=True)):
            points.update(re.findall(r'FAULT_POINT\("(.*)"\)', Path(path).read_text(encoding="utf-8")))
        self.assertEqual(points, set(POINTS))
