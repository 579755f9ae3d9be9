# SPDX-License-Identifier: MIT
"""Metrics: each number is compared with what the test has counted itself."""
import collections
import json
import os
import re
import signal
import time
import unittest
from pathlib import Path

from test_cells import keyed
from troupe import ACTOR, SANITIZED, TOP, Bell, TestCase, Varlink, actor, dice, ini, limit, service

SAMPLE = re.compile(r'(\w+)(?:\{(.*)\})? (-?[0-9.]+)')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


# Jobs, and of how many workers each is the death.
KINDS = {
    "echo fine": {},
    "reject 3 no": {},
    "retry 4 no": {},
    "before 2 crash abort\necho": {"signal": 1},
    "before 3 exit 3\necho": {"exit": 2},
    "crash segv": {"signal": 3},
    "exit 0": {"exit": 3},
}


def parse(output):
    """Maps a sample's name and the values of its labels, in their order, to its value."""
    samples = {}
    for line in output.splitlines():
        if line.startswith("#"):
            continue
        name, labels, value = SAMPLE.fullmatch(line).groups()
        key = (name, *(value for _, value in LABEL.findall(labels or "")))
        assert key not in samples, f"{key} comes twice"
        samples[key] = float(value)
    return samples


def tough(size, **jobs):
    """Crashing is what its workers are for."""
    return ini(ACTOR, Pool={"Size": size}, Resources={"LimitCORE": 0},
               Restart={"MinSec": "1ms", "MaxSec": "5ms", "StartLimitBurst": 0},
               Jobs={"BackoffMinSec": "1ms", "BackoffMaxSec": "2ms", "MaxRetries": 2, **jobs})


def families():
    """The names of all samples that there can be."""
    with open(os.path.join(TOP, "supervisor", "metrics", "family.c"), encoding="utf-8") as file:
        rows = re.findall(r'ROW\(\w+, "(\w+)", (\w+),', file.read())
    endings = {"GAUGE": [""], "COUNTER": ["_total"], "HISTOGRAM": ["_bucket", "_sum", "_count"]}
    return {f"troupe_{name}{ending}" for name, kind in rows for ending in endings[kind]}


class Counted:
    """What a test counts of the jobs that it sends and of the deaths that it is told."""

    def __init__(self):
        self.ended, self.deaths = collections.Counter(), collections.Counter()
        self.accepted = self.retries = self.measured = self.wait = self.run = 0

    def job(self, job):
        self.accepted += 1
        self.ended[job["state"]] += 1
        self.retries += max(0, job["attempt"] - 1)
        if job["state"] in ("succeeded", "rejected"):
            self.measured += 1
            self.run += job["ended_at"] - job["started_at"]
            self.wait += job["started_at"] - job["created_at"]


class Chaos(TestCase):
    def chaos(self, s, group, n):
        """Sends jobs of all kinds, kills workers, and counts what comes of it."""
        rng, counted = dice(), Counted()
        sent = []
        for _ in range(n):
            kind = rng.choice(list(KINDS))
            sent.append(s.create(group, kind))
            counted.deaths.update(KINDS[kind])
        for id in sent:
            counted.job(s.wait_job(id))
        s.call("Pause", target=group)
        for _ in range(3):
            id = s.create(group, "echo")
            s.call("Cancel", id=id)
            counted.job(s.wait_job(id))
        s.call("Resume", target=group)
        for _ in range(5):
            [victim] = rng.sample(self.settled(s, group), 1)
            os.kill(victim["pid"], signal.SIGKILL)
            counted.deaths["signal"] += 1
            s.wait_for(lambda: s.worker(victim["name"])["generation"] > victim["generation"], group)
        self.settled(s, group)
        return counted

    def settled(self, s, group):
        """Returns the workers once all are idle."""
        return s.wait_for(lambda: (lambda workers: workers if {w["state"] for w in workers} == {"idle"} else None)
                          (s.workers(group)), group)


class Metrics(Chaos):
    def metrics(self, s, *arguments):
        return parse(s.ctl("metrics", *arguments, check=True).stdout)

    def compare(self, s, group, size, counted):
        m = self.metrics(s)
        for state in "succeeded", "rejected", "cancelled", "dead":
            self.assertEqual(m["troupe_jobs_total", group, state], counted.ended[state], state)
        for name, value in (("jobs_accepted_total", counted.accepted), ("jobs_retried_total", counted.retries),
                            ("jobs_refused_total", 0), ("jobs_running", 0), ("jobs_waiting", 0), ("queue_jobs", 0),
                            ("queue_oldest_seconds", 0), ("queue_bytes", 0), ("queue_senders", 0), ("group_size", size),
                            ("job_wait_seconds_count", counted.measured), ("job_run_seconds_count", counted.measured)):
            self.assertEqual(m["troupe_" + name, group], value, name)
        self.assertEqual(round(m["troupe_job_run_seconds_sum", group] * 1e6), counted.run)
        self.assertEqual(round(m["troupe_job_wait_seconds_sum", group] * 1e6), counted.wait)
        deaths = {key[2]: value for key, value in m.items() if key[:2] == ("troupe_worker_deaths_total", group) and value}
        self.assertEqual(deaths, dict(counted.deaths))
        self.assertEqual(m["troupe_worker_restarts_total", group], sum(counted.deaths.values()) - counted.deaths["stop"])
        workers = {key[2]: value for key, value in m.items() if key[:2] == ("troupe_workers", group) and value}
        self.assertEqual(workers, {"idle": size})
        self.assertEqual(m["troupe_dead_letters_added_total", "job"], counted.ended["dead"])
        self.assertEqual(m["troupe_dead_letters", "dead_letters"], counted.ended["dead"])
        return m

    @limit(300)
    def test_M1_numbers_equal_an_outside_count_also_after_an_upgrade(self):
        s = self.started({"tough": tough(3)})
        counted = self.chaos(s, "tough", 80)
        before = self.compare(s, "tough", 3, counted)
        self.assertEqual(before["troupe_upgrades_total",], 0)
        s.ctl("upgrade", check=True)
        self.settled(s, "tough")
        after = self.compare(s, "tough", 3, counted)
        self.assertEqual(after["troupe_upgrades_total",], 1)
        buckets = {key for key in before if key[0].endswith("_bucket")}
        self.assertEqual({key: before[key] for key in buckets}, {key: after[key] for key in buckets})

    def test_M1_workers_deaths_and_commands_are_counted_by_state_and_cause(self):
        s = self.started({"a": actor(3), "d": service("/bin/sleep infinity")})
        s.call("Stop", target="a/2", wait=True)
        job, go = s.busy("a", "echo")
        m = self.metrics(s)
        self.assertEqual([m["troupe_workers", "a", state] for state in ("idle", "busy", "stopped", "starting", "failed")],
                         [1, 1, 1, 0, 0])
        self.assertEqual(m["troupe_workers", "d", "idle"], 1)
        self.assertEqual(m["troupe_worker_deaths_total", "a", "stop"], 1)
        self.assertEqual((m["troupe_jobs_running", "a"], m["troupe_group_state", "d", "running"]), (1, 1))
        self.assertNotIn(("troupe_queue_jobs", "d"), m, "a service has no jobs")
        go.ring()
        s.wait_job(job)
        os.kill(s.worker("d/0")["pid"], signal.SIGKILL)
        s.wait_event("worker.died", "d")
        self.assertEqual(self.metrics(s)["troupe_worker_deaths_total", "d", "signal"], 1)

    def test_M1_queues_results_and_limits(self):
        s = self.started({"a": tough(1, QueueMax=4, QueueMemoryMax="1M", ResultsMax=7), "b": actor()})
        s.wait_job(s.create("a", "echo 12345"))
        s.call("Pause", target="a")
        oldest = s.job(s.create("a", "x" * 100))["created_at"]
        for _ in range(3):
            s.create("a", "x" * 100)
        self.assertEqual(s.ctl("create", "a", "--data", "x").returncode, 6)
        before = self.metrics(s)
        self.assertEqual([before["troupe_" + name, "a"] for name in
                          ("queue_jobs", "queue_jobs_max", "queue_bytes", "queue_max_bytes", "results", "results_max",
                           "results_bytes", "jobs_refused_total")], [4, 4, 400, 1 << 20, 1, 7, 5, 1])
        after = s.job(s.create("b", "echo"))["created_at"]
        waited = round(before["troupe_queue_oldest_seconds", "a"] * 1e6)
        self.assertGreater(waited, 0)
        self.assertLessEqual(waited, after - oldest, "the other job was created after the numbers were read")

    def test_M1_a_delayed_job_is_as_old_as_the_end_of_its_delay(self):
        s = self.started({"a": actor()})
        s.call("Pause", target="a")
        delay = 300000
        job = s.create("a", "echo", delay_usec=delay)
        s.until(lambda: s.job(job)["state"] == "queued")
        waited, due = self.metrics(s)["troupe_queue_oldest_seconds", "a"], s.job(job)["created_at"] + delay
        self.assertLessEqual(waited, time.time() - due / 1e6 + 0.001)
        self.assertGreaterEqual(s.group("a")["oldest_queued_at"], due - 1000)

    def test_M1_the_jobs_of_all_cells_are_counted_together(self):
        s = self.started({"mail": keyed(), "web": keyed()})
        for group in "mail", "web":
            s.call("Pause", target=group)
        for i in range(30):
            for _ in range(1 + i):
                s.create("mail" if i % 2 else "web", "echo", key=f"k{i}")
        m = self.metrics(s)
        self.assertEqual((m["troupe_cells", "mail"], m["troupe_cells_max", "mail"]), (15, 1000))
        self.assertEqual(m["troupe_queue_jobs", "mail"], sum(range(2, 31, 2)))
        self.assertGreater(m["troupe_queue_oldest_seconds", "web"], 0)
        for group in "mail", "web":
            s.call("Resume", target=group)
        s.until(lambda: s.group("mail")["succeeded"] + s.group("web")["succeeded"] == sum(range(31)))
        m = self.metrics(s)
        self.assertEqual(m["troupe_queue_oldest_seconds", "web"], 0)
        self.assertEqual(m["troupe_job_run_seconds_count", "mail"], sum(range(2, 31, 2)))

    def test_M1_the_oldest_job_is_known_whatever_leaves_the_queues(self):
        s = self.started({"mail": keyed()})
        s.call("Pause", target="mail")
        rng, waiting = dice(), {}
        for _ in range(20):
            for _ in range(rng.randrange(1, 15)):
                key = f"k{rng.randrange(30)}"
                job = s.create("mail", "echo", key=key, priority=rng.randrange(64))
                waiting[job] = (key, s.job(job)["created_at"])
            for job in rng.sample(sorted(waiting), rng.randrange(len(waiting))):
                s.call("Cancel", id=job)
                del waiting[job]
            self.compare_queues(s, waiting)
        s.ctl("upgrade", check=True)
        self.compare_queues(s, waiting)
        s.ctl("cancel", "--all", "mail", check=True)
        self.compare_queues(s, {})

    def compare_queues(self, s, waiting):
        """`waiting`: jobs by their id, as key and time of creation."""
        before, m, after = time.time(), self.metrics(s), time.time()
        oldest = m["troupe_queue_oldest_seconds", "mail"]
        if not waiting:
            self.assertEqual(oldest, 0)
            return
        created = min(at for _, at in waiting.values()) / 1e6
        self.assertTrue(before - created - 0.001 <= oldest <= after - created + 0.001, (before - created, oldest))

    def test_M1_the_store_counts_its_commits_also_after_an_upgrade(self):
        s = self.started({"kept": tough(1, Durable="yes")}, state=True)
        s.wait_for(lambda: "store_problem" not in s.group("kept"))
        for _ in range(5):
            s.wait_job(s.create("kept", "echo"))
        m = self.metrics(s)
        self.assertEqual(m["troupe_store_state", "open"], 1)
        self.assertGreaterEqual(m["troupe_store_commits_total",], 5)
        self.assertGreater(m["troupe_store_sync_seconds_sum",], 0)
        self.assertGreater(m["troupe_store_free_bytes",], 0)
        self.assertGreater(m["troupe_store_bytes",], 0)
        s.ctl("upgrade", check=True)
        self.assertGreaterEqual(self.metrics(s)["troupe_store_commits_total",], m["troupe_store_commits_total",])

    def test_M1_the_supervisor_tells_about_itself(self):
        s = self.started({"a": actor()})
        m, info = self.metrics(s), s.call("GetInfo")
        self.assertEqual(m["troupe_build_info", info["version"]], 1)
        self.assertEqual(m["troupe_start_time_seconds",] * 1e6, info["started_at"])
        self.assertEqual([m["troupe_" + name,] for name in ("safe_mode", "config_problem", "crashes_total", "clients")],
                         [0, 0, 0, 1])
        self.assertEqual(m["troupe_state", "running"], 1)
        self.assertGreater(m["troupe_resident_memory_bytes",], 1 << 20)
        self.assertGreater(m["troupe_loop_turns_total",], 0)
        s.crash()
        self.assertEqual(self.metrics(s)["troupe_crashes_total",], 1)

    def test_M1_metrics_come_also_without_any_group(self):
        self.assertEqual(self.metrics(self.started({}))["troupe_clients",], 1)

    def test_U8_the_last_seconds_are_remembered(self):
        s = self.started({"a": actor(1, Jobs={"MaxRetries": 0}), "b": actor(1)})
        go = Bell(s, "go")
        running = s.create("a", f"wait {go.path}\ncrash kill")
        s.wait_job_state(running, "running")
        second = s.call("GetHistory")["groups"][0]["samples"][-1]["second"]
        s.until(lambda: time.time() >= second + 1)
        s.create("a", "echo")
        go.ring()
        s.wait_job(running)
        first, other = s.call("GetHistory")["groups"]
        self.assertEqual((first["name"], other), ("a", {"name": "b", "samples": []}))
        self.assertEqual(first["samples"][0], {"second": first["samples"][0]["second"], "ended": 0, "dead": 0, "waiting": 0, "running": 0})
        self.assertEqual([first["samples"][1][key] for key in ("ended", "dead", "waiting", "running")], [0, 0, 0, 1])

    def test_M2_a_scrape_wakes_no_worker(self):
        s = self.started({"a": actor(4)})
        pids = [worker["pid"] for worker in s.group("a")["workers"]]

        def wakes():
            return sum(int(s.status_field("voluntary_ctxt_switches", pid)) for pid in pids)
        before = wakes()
        for _ in range(50):
            s.call("GetMetrics")
        # One that has just become ready goes to sleep now, after some waits of its own.
        self.assertLess(wakes() - before, 50)

    def test_M2_an_answer_with_more_has_the_same_groups_and_the_rest_once(self):
        # A program that is missing: these have no processes.
        s = self.started({f"g{i:03}": ini("/nonexistent") for i in range(100)})
        with Varlink(s.socket_path) as connection:
            parts = list(connection.more("GetMetrics"))
        self.assertGreater(len(parts), 1)
        self.assertEqual([g["name"] for part in parts for g in part["groups"]], [f"g{i:03}" for i in range(100)])
        self.assertEqual(["supervisor" in part for part in parts], [False] * (len(parts) - 1) + [True])
        self.assertEqual(len(s.call("GetMetrics")["groups"]), 100)
        m = self.metrics(s)
        self.assertEqual(sum(value for key, value in m.items() if key[0] == "troupe_group_state"), 100)

    @unittest.skipIf(SANITIZED, "a sanitizer takes the time")
    @limit(300)
    def test_M2_numbers_of_1000_groups_take_10_ms_of_the_supervisor(self):
        s = self.started({f"g{i:03}": ini("/nonexistent") for i in range(1000)})

        def cpu():
            return int(Path(f"/proc/{s.supervisor_pid}/task/{s.supervisor_pid}/schedstat").read_text(encoding="ascii").split()[0])
        spent = []
        with Varlink(s.socket_path) as connection:
            for _ in range(20):
                before = cpu()
                self.assertEqual(sum(len(part["groups"]) for part in connection.more("GetMetrics")), 1000)
                spent.append(cpu() - before)
        print(f"ms of CPU time: {[round(ns / 1e6, 1) for ns in sorted(spent)]}")
        self.assertLess(min(spent), 10e6)

    @limit(300)
    def test_M2_a_scrape_looks_through_no_cells(self):
        count = 10000
        s = self.started({"mail": keyed(Pool={"CellsMax": count})})
        s.call("Stop", target="mail")  # no worker comes up meanwhile
        with Varlink(s.socket_path) as connection:
            without = self.cost(connection)
            for i in range(count):
                connection.send("Create", {"group": "mail", "options": {"key": f"k{i}"}}, oneway=True)
            self.assertEqual(connection.call("GetMetrics")["groups"][0]["cells"], count)
            # A look at each cell is twenty times as much.
            self.assertLess(self.cost(connection), 5 * without)

    def cost(self, connection):
        """CPU time of the supervisor for so many scrapes, without what else it had to do then."""
        used = []
        for _ in range(6):
            for _ in range(100):
                reply = connection.call("GetMetrics")
            used.append(reply["supervisor"]["cpu_usec"])
        return min(after - before for before, after in zip(used, used[1:]))

    def test_M1_a_file_is_replaced_as_a_whole(self):
        s = self.started({"a": actor()})
        path = s.path("troupe.prom")
        Path(path).write_text("old", encoding="utf-8")
        with open(path, encoding="utf-8") as old:
            self.assertEqual(s.ctl("metrics", "--output", path, check=True).stdout, "")
            self.assertEqual(old.read(), "old", "it is another file")
        self.assertEqual(parse(Path(path).read_text(encoding="utf-8"))["troupe_clients",], 1)
        self.assertEqual(os.stat(path).st_mode & 0o444, 0o444)
        self.assertEqual([name for name in os.listdir(s.directory) if name.startswith("troupe.prom")], ["troupe.prom"])
        failed = s.ctl("metrics", "--output", s.path("missing/troupe.prom"))
        self.assertEqual((failed.returncode, failed.stderr.count("No such file or directory")), (1, 1), failed.stderr)

    def test_M3_dashboard_and_alerts_use_names_that_exist_and_the_manual_has_all(self):
        def read(*path):
            return Path(os.path.join(TOP, *path)).read_text(encoding="utf-8")
        for name in "troupe-dashboard.json", "troupe-alerts.yml":
            content = read("units", "monitoring", name)
            self.assertEqual(set(re.findall(r"\btroupe_\w+", content)) - families(), set(), name)
        json.loads(read("units", "monitoring", "troupe-dashboard.json"))
        listed = re.findall(r"^\.It Va (\w+)$", read("supervisor", "metrics", "troupe-metrics.7"), re.M)
        histograms = {name[:-len("_sum")] for name in families() if name.endswith("_sum")}
        plain = {name for name in families() if re.sub("_(bucket|sum|count)$", "", name) not in histograms}
        self.assertEqual(sorted(listed), sorted(plain | histograms))
