# SPDX-License-Identifier: MIT
"""Kills workers at random while thousands of jobs run, and accounts for every job."""
import os
import signal
import unittest

from troupe import ACTOR, SANITIZED, TestCase, Varlink, dice, ini, limit

KILLS = int(os.environ.get("TESTS_CHAOS_KILLS", "0"))


def group(size):
    return ini(ACTOR, Pool={"Size": size}, Resources={"LimitCORE": 0},
               Restart={"MinSec": "1ms", "MaxSec": "10ms", "StartLimitBurst": 0},
               Jobs={"BackoffMinSec": "1ms", "BackoffMaxSec": "5ms", "MaxRetries": 100000})


class Chaos(TestCase):
    def measures(self, s):
        """Figures that must not grow."""
        return {"descriptors": s.n_fds_between_turns(), "children": len(s.children()),
                "memory in KiB": s.status_field("VmRSS")}

    def kill_some(self, s, watch, rng, kills, working=True):
        """Kills so many workers. Asks for the status before each, and lets a few jobs end in between."""
        due, killed = 0, set()
        while kills:
            watch.send("GetStatus", {"target": "actor"})
            group = watch.reply()[0]["groups"][0]
            if working and group["succeeded"] < due:
                continue
            workers = [w for w in group["workers"] if w.get("pid") and (w["pid"], w["generation"]) not in killed]
            for worker in rng.sample(workers, min(len(workers), kills, 1 + rng.randrange(3))):
                try:
                    os.kill(worker["pid"], signal.SIGKILL)
                except ProcessLookupError:
                    continue
                killed.add((worker["pid"], worker["generation"]))
                kills -= 1
            due = group["succeeded"] + rng.choice((0, 3, 10, 30))

    def run_chaos(self, kills, size=6):
        rng = dice()
        s = self.started({"actor": group(size)})
        with Varlink(s.socket_path) as watch:
            self.kill_some(s, watch, rng, 20, working=False)  # what grows once has grown
            s.wait_for(lambda: all(w["state"] == "idle" for w in s.group("actor")["workers"]))
            before = self.measures(s)
            with self.chaos(s, "actor", "0", "64") as counts:
                self.kill_some(s, watch, rng, kills)
        self.assertEqual(counts["error"], "")
        self.assertGreater(counts["accepted"], kills)
        self.assertEqual(counts["accepted"], counts["succeeded"])
        status = s.wait_for(lambda: (lambda g: g if all(w["state"] == "idle" for w in g["workers"]) else None)
                            (s.group("actor")))
        self.assertEqual(status["succeeded"], counts["accepted"])
        self.assertEqual((status["queued"], status["running"], status["waiting"], status["dead"]), (0, 0, 0, 0))
        self.assertGreaterEqual(status["deaths"], kills)
        print(before, s.fds())
        # The last connections are being closed, and seven descriptors are ready for the next worker.
        s.until(lambda: len(s.fds()) <= before["descriptors"] + 9)
        after = self.measures(s)
        print(before, after)
        self.assertEqual(after["children"], size)
        if not SANITIZED:
            self.assertLess(after["memory in KiB"], before["memory in KiB"] + 16384)
        s.stop()

    @limit(300)
    def test_chaos_loses_nothing_doubles_nothing_and_leaks_nothing(self):
        self.run_chaos(300)

    @unittest.skipUnless(KILLS, "`make check-chaos` runs it")
    @limit(3600)
    def test_chaos_for_long(self):
        self.run_chaos(KILLS)
