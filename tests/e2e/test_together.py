# SPDX-License-Identifier: MIT
"""Pools as a whole: a worker that dies, and stalled pools."""
import os
import signal

from troupe import ACTOR, QUICK, Bell, TestCase, ended, ini, text


def actor(size=1, program=ACTOR, **sections):
    return ini(program, **{"Pool": {"Size": size}, "Jobs": {"BackoffMinSec": "1ms"}, **sections,
                           "Restart": {**QUICK, **sections.get("Restart", {})}})


class Case(TestCase):
    def generations(self, s, group="actor"):
        return [w["generation"] for w in s.group(group)["workers"]]

    def reach(self, s, *expected, group="actor"):
        """Waits until all workers are up, in these generations."""
        s.until(lambda: [(w["state"], w["generation"]) for w in s.group(group)["workers"]]
                == [("idle", g) for g in expected])

    def kill(self, s, name):
        os.kill(s.worker(name)["pid"], signal.SIGKILL)

    def events(self, s, *types, target=None):
        found = s.call("Watch", **({"target": target} if target else {}))["events"]
        return [e for e in found if e["type"] in types]


class Restarts(Case):
    def test_P8_a_death_restarts_the_dead_one_alone(self):
        s = self.started({"actor": actor(3)})
        self.kill(s, "actor/1")
        self.reach(s, 1, 2, 1)


class Progress(Case):
    def stuck(self, size=1, period="200ms", **sections):
        return actor(size, Jobs={"NoProgressSec": period, "BackoffMinSec": "1ms", "MaxRetries": 1}, **sections)

    def test_O5_a_stuck_group_is_restarted_and_its_jobs_follow_their_policies(self):
        s = self.started({"actor": self.stuck(2)})
        never = Bell(s, "never")
        jobs = [s.create("actor", f"before 2 wait {never.path}\nattempt") for _ in range(2)]
        queued = s.create("actor", "echo queued")
        event = s.wait_event("group.stalled", "actor")
        self.assertIn("no progress being made: 2 running, 1 queued", event["message"])
        for job in jobs:
            ended = s.wait_job(job)
            self.assertEqual((ended["result"], ended["attempts"][0]["cause"]), (text("2"), "no_progress"))
        self.assertEqual(s.wait_job(queued)["attempt"], 1)
        self.assertEqual(s.deaths("actor")[0]["cause"], "no_progress")

    def test_O5_a_stuck_worker_that_was_to_restart_restarts(self):
        s = self.started({"actor": self.stuck()})
        never = Bell(s, "never")
        job = s.create("actor", f"before 2 wait {never.path}\nattempt")
        s.until(lambda: s.worker("actor/0")["state"] == "busy")
        s.call("Restart", target="actor")
        self.assertEqual(s.wait_job(job)["result"], text("2"))

    def test_O5_a_job_that_is_always_stuck_dies(self):
        s = self.started({"actor": self.stuck()})
        never = Bell(s, "never")
        ended = s.do("actor", f"wait {never.path}")
        self.assertEqual((ended["state"], ended["attempt"]), ("dead", 2))
        self.assertIn("NoProgressSec", ended["reason"])

    def test_O5_neither_an_idle_nor_a_paused_group_has_stalled(self):
        s = self.started({"actor": self.stuck(period="1h"), "other": actor()})
        s.do("actor", "echo")
        s.call("Pause", target="actor")
        s.write("actor.group", self.stuck(period="1ms"))
        s.call("Reload")
        s.create("actor", "echo")
        for _ in range(300):
            s.do("other", "echo")
        self.assertEqual(self.events(s, "group.stalled"), [])

    def test_O5_a_published_state_is_progress_and_so_is_a_job_that_ends(self):
        s = self.started({"actor": self.stuck(2, period="1s")})
        bell = Bell(s, "bell")
        job = s.create("actor", "\n".join(f"wait {bell.path}\nstate {i}" for i in range(40)) + "\necho done")
        for _ in range(40):
            s.do("actor", "echo")
            bell.ring()
        self.assertEqual(s.wait_job(job)["result"], text("done"))
        self.assertEqual(self.events(s, "group.stalled"), [])

    def test_O5_a_new_period_holds_for_what_is_stuck_already(self):
        s = self.started({"actor": self.stuck(period="1h")})
        never = Bell(s, "never")
        job = s.create("actor", f"wait {never.path}")
        s.write("actor.group", self.stuck(period="100ms"))
        s.call("Reload")
        self.assertEqual(s.wait_job(job)["state"], "dead")
