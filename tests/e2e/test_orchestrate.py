# SPDX-License-Identifier: MIT
"""The example orchestrate: any number of items with much data each, in bounded memory."""
import json
import os
import subprocess
import threading
from pathlib import Path

from troupe import LIMIT, QUICK, SANITIZED, TOP, Bell, Stopwatch, TestCase, Varlink, end_process, example, ini, limit

KIB, MIB = 1024, 1024 * 1024
N = 2000 if SANITIZED else 100000
QUEUE = {"QueueMax": N, "QueueMemoryMax": "64M", "MaxRetries": 1, "BackoffMinSec": "1ms"}
ANSWER_MAX = 1.0  # seconds until a query is answered
BASE = 6 * MIB  # of a worker without data, with its source
ITEM = 1000
SUPERVISOR, JOB = 12 * MIB, 2 * KIB  # without jobs; a queued one, as troupe.group(5) says


def orchestrate(work="", size=2, **jobs):
    return {"batch": ini(f"{example('orchestrate')} work {work}", Pool={"Size": size}, Restart=QUICK,
                         Jobs={**QUEUE, **jobs}, Resources={"LimitCORE": 0})}


class Checker:
    """Queries (running, queued) continuously, over one connection, until the end."""

    def __init__(self, s):
        self.s, self.over = s, threading.Event()
        self.slowest, self.count, self.most_running = 0.0, 0, 0
        self.first = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        with Varlink(self.s.socket_path) as connection:
            watch = Stopwatch(self.s)
            while not self.over.is_set():
                watch.begin()
                [group] = connection.call("GetStatus", target="batch")["groups"]
                self.slowest = max(self.slowest, watch.seconds())
                self.count += 1
                self.most_running = max(self.most_running, group["running"])
                self.first.set()
                self.over.wait(0.005)

    def stop(self):
        self.over.set()
        self.thread.join(LIMIT)
        return self


class Orchestrate(TestCase):
    def start(self, s, count, *options):
        process = subprocess.Popen([example("orchestrate"), "start", "batch", str(count), *options], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env={**os.environ, "TROUPE_SOCKET": s.socket_path})
        self.addCleanup(end_process, process)
        return process

    def ends(self, process, limit_seconds=LIMIT):
        out, error = process.communicate(timeout=limit_seconds)
        self.assertEqual(process.returncode, 0, error)
        return json.loads(out)

    def checked(self, checker):
        checker.stop()
        self.assertGreater(checker.count, 0)
        self.assertLess(checker.slowest, ANSWER_MAX)

    def idle(self, s, size):
        """Every slot is free again."""
        group = s.group("batch")
        self.assertEqual((group["running"], group["queued"]), (0, 0))
        s.until(lambda: [w["state"] for w in s.workers("batch")] == ["idle"] * size)

    @limit(400)
    def test_O1_O2_all_items_are_done_by_at_most_Size_workers(self):
        s = self.started(orchestrate(size=3))
        checker = Checker(s)
        answers = self.ends(self.start(s, N, f"--size={ITEM}", "--fail-every=10"), 300)
        self.checked(checker)
        self.assertEqual((answers["succeeded"], answers["rejected"]), (N - N // 10, N // 10))
        self.assertEqual(answers["dead"] + answers["cancelled"] + answers["busy"], 0)
        self.assertLessEqual(checker.most_running, 3)
        self.idle(s, 3)
        if not SANITIZED:  # a sanitizer has memory of its own
            peak = sum(s.status_field("VmHWM", pid) for pid in self.processes(s)) * KIB
            self.assertLess(peak, 3 * (ITEM + BASE))
            self.assertLess(s.status_field("VmHWM") * KIB, SUPERVISOR + N * JOB)
            print(f"{N} items of {ITEM} bytes: peak of the pool {peak // KIB} KiB, of the supervisor "
                  f"{s.status_field('VmHWM')} KiB; checks {checker.count}, the slowest {checker.slowest * 1e3:.1f} ms")

    def processes(self, s):
        """The workers and their sources."""
        found = {w["pid"] for w in s.workers("batch")}
        for pid in list(found):
            found |= {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()}
        return found

    def test_O1_by_default_half_of_the_processors_are_used_and_at_least_one(self):
        self.assertIn("\nSize=50%\n", Path(os.path.join(TOP, "worker/examples/orchestrate.group.in")).read_text(encoding="utf-8"))
        s = self.started(orchestrate(size="50%"))
        self.assertEqual(len(s.workers("batch")), max(1, len(os.sched_getaffinity(0)) // 2))
        self.assertEqual(self.ends(self.start(s, 10, "--size=10"))["succeeded"], 10)

    @limit(400)
    def test_O3_a_check_is_answered_during_the_bulk_start_and_while_all_workers_are_blocked(self):
        s = self.supervisor(orchestrate())
        bell = Bell(s, "bell")
        blocked = f"--bell={bell.path}"
        # There is room for half of the items: the start waits in the middle for more room.
        s.write("batch.group", orchestrate(blocked, QueueMax=N // 2)["batch"])
        s.start()
        checker = Checker(s)
        checker.first.wait(LIMIT)
        process = self.start(s, N, "--size=10")
        for queued in N // 2, N - 2:
            s.until(lambda queued=queued: s.group("batch")["queued"] == queued)
            watch = Stopwatch(s)
            for _ in range(100):
                watch.begin()
                group = s.group("batch")
                self.assertLess(watch.seconds(), ANSWER_MAX)
                self.assertEqual((group["running"], group["queued"]), (2, queued))
            s.write("batch.group", orchestrate(blocked)["batch"])
            s.call("Reload")
        self.checked(checker)
        process.kill()

    def test_O4_a_source_that_fails_or_is_gone_or_never_answers_costs_its_item_and_no_more(self):
        s = self.started(orchestrate("--source-timeout=300"))
        answers = self.ends(self.start(s, 30, "--size=100", "--fail-every=5", "--crash-every=7", "--hang-every=11"))
        self.assertEqual((answers["rejected"], answers["succeeded"]), (6 + 4 + 2, 30 - 12))
        self.idle(s, 2)
        self.assertEqual(s.group("batch")["deaths"], 0)
        log = "\n".join(s.call("GetLog", target="batch")["lines"])
        for reason in "there is no data for item-5", "the data source is gone", "has not answered in time":
            self.assertIn(reason, log)
        job = s.do("batch", "x 1 hang")
        self.assertEqual((job["state"], job["attempt"]), ("rejected", 1))
        self.assertIn("not answered in time", job["result"]["data"])

    def test_O6_a_sender_that_runs_ahead_waits_or_is_told_so(self):
        s = self.started(orchestrate(QueueMax=10))
        s.call("Pause", target="batch")
        patient = self.start(s, 100, "--size=10")
        s.until(lambda: s.group("batch")["senders"] == 1)
        self.assertEqual(s.group("batch")["queued"], 10)
        s.call("Resume", target="batch")
        self.assertEqual(self.ends(patient)["succeeded"], 100)
        s.call("Pause", target="batch")
        impatient = self.start(s, 100, "--size=10", "--impatient")
        s.until(lambda: s.group("batch")["refused"] == 90)
        s.call("Resume", target="batch")
        answers = self.ends(impatient)
        self.assertEqual((answers["succeeded"], answers["busy"]), (10, 90))
