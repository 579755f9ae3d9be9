# SPDX-License-Identifier: MIT
"""Pools as a whole: workers that die together (Strategy=), and stalled pools."""
import os
import signal

from troupe import ACTOR, LIMIT, Bell, TestCase, ended, helper, ini, text

QUICK = {"MinSec": "1ms", "MaxSec": "5ms", "StartLimitBurst": 0}


def actor(size=1, program=ACTOR, strategy="one-for-one", **sections):
    return ini(program, **{"Pool": {"Size": size}, "Jobs": {"BackoffMinSec": "1ms"}, **sections,
                           "Restart": {**QUICK, "Strategy": strategy, **sections.get("Restart", {})}})


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


class Strategies(Case):
    def test_P8_one_for_one_restarts_the_dead_one_alone(self):
        s = self.started({"actor": actor(3)})
        self.kill(s, "actor/1")
        self.reach(s, 1, 2, 1)

    def test_P8_one_for_all_restarts_the_whole_pool(self):
        s = self.started({"actor": actor(3, strategy="one-for-all"), "other": actor()})
        self.kill(s, "actor/1")
        self.reach(s, 2, 2, 2)
        self.assertEqual(self.generations(s, "other"), [1])
        self.assertEqual(len(self.events(s, "worker.takes-along")), 1)
        self.assertEqual(s.group("actor")["deaths"], 1)

    def test_P8_one_that_was_ready_for_a_moment_takes_the_others_along(self):
        s = self.supervisor()
        bell = Bell(s, "bell")
        s.write("actor.group", actor(2, f"{helper('hostile')} brief", "one-for-all",
                                     Group={"Environment": f"BRIEF_BELL={bell.path}"}))
        s.start()
        self.kill(s, "actor/0")
        s.until(lambda: [(w["state"], w["generation"]) for w in s.group("actor")["workers"]]
                == [("starting", 2), ("idle", 2)])
        brief = os.pidfd_open(s.worker("actor/0")["pid"])
        self.addCleanup(os.close, brief)
        with s.stopped():  # reads its READY and its end together
            bell.ring()
            self.assertTrue(ended(brief, LIMIT))
        self.reach(s, 3, 3)
        self.assertEqual(len(self.events(s, "worker.takes-along")), 2)
        s.stop()

    def test_P8_rest_for_one_restarts_those_above_in_their_order(self):
        s = self.started({"actor": actor(4, strategy="rest-for-one")})
        self.kill(s, "actor/1")
        self.reach(s, 1, 2, 2, 2)
        names = {w["pid"]: w["name"] for w in s.workers("actor")}
        self.assertEqual([names[pid] for pid in s.children()], ["actor/0", "actor/1", "actor/2", "actor/3"])  # oldest first

    def test_P8_rest_for_one_restarts_the_groups_that_come_after_once_it_is_up_again(self):
        s = self.supervisor({"actor": actor(strategy="rest-for-one"),
                             "second": actor(2, Group={"After": "actor"}),
                             "third": actor(Group={"After": "second"}), "before": actor()})
        s.start()
        self.kill(s, "actor/0")
        self.reach(s, 2)
        self.reach(s, 2, 2, group="second")
        self.reach(s, 2, group="third")
        self.assertEqual(self.generations(s, "before"), [1])
        order = [(e["type"], e["worker"]) for e in self.events(s, "worker.started", "worker.ready")
                 if e["generation"] == 2]
        self.assertLess(order.index(("worker.ready", "actor/0")), order.index(("worker.started", "second/0")))
        self.assertLess(order.index(("worker.ready", "second/1")), order.index(("worker.started", "third/0")))

    def test_what_is_stopped_is_not_started_by_the_death_of_another(self):
        s = self.started({"actor": actor(3, strategy="one-for-all"), })
        s.call("Stop", target="actor/2", wait=True)
        self.kill(s, "actor/0")
        s.until(lambda: [(w["state"], w["generation"]) for w in s.group("actor")["workers"]]
                == [("idle", 2), ("idle", 2), ("stopped", 1)])

    def test_the_jobs_of_those_taken_along_use_up_no_attempt(self):
        s = self.started({"actor": actor(2, strategy="one-for-all")})
        started, bell = Bell(s, "started"), Bell(s, "bell")
        culprit = s.create("actor", f"ring {started.path}\nbefore 2 wait {bell.path}\nbefore 2 crash kill\necho c")
        innocent = s.create("actor", f"ring {started.path}\nbefore 2 wait {bell.path}-never\necho i", max_retries=0)
        os.mkfifo(bell.path + "-never")
        started.wait(2)
        bell.ring()
        self.assertEqual(s.wait_job(innocent)["result"], text("i"))
        self.assertEqual(s.wait_job(culprit)["result"], text("c"))
        self.assertEqual(s.job(innocent).get("attempts", []), [])
        self.assertEqual(s.group("actor")["retries"], 1)

    def test_simultaneous_deaths_are_one(self):
        s = self.started({"actor": actor(4, strategy="one-for-all", Restart={"StartLimitBurst": 2,
                                                                            "StartLimitIntervalSec": "1h"})})
        for generation in 2, 3:
            with s.stopped():
                for worker in s.children():
                    os.kill(worker, signal.SIGKILL)
            self.reach(s, *[generation] * 4)
        self.assertEqual(len(self.events(s, "worker.takes-along")), 2)

    def test_the_others_wait_for_the_back_off_and_stop_and_start_need_not(self):
        s = self.started({"actor": actor(3, strategy="one-for-all",
                                         Restart={"MinSec": "10min", "MaxSec": "10min"})})
        self.kill(s, "actor/0")
        self.reach(s, 2, 2, 2)
        self.kill(s, "actor/0")
        s.until(lambda: [w["state"] for w in s.group("actor")["workers"]] == ["backoff"] * 3)
        s.call("Stop", target="actor/0", wait=True)
        s.until(lambda: [w["state"] for w in s.group("actor")["workers"]] == ["stopped", "idle", "idle"])
        s.call("Start", target="actor", wait=True)
        self.reach(s, 3, 3, 3)

    def test_starting_the_dead_one_starts_those_that_wait_for_it(self):
        s = self.started({"actor": actor(3, strategy="one-for-all",
                                         Restart={"MinSec": "10min", "MaxSec": "10min"})})
        self.kill(s, "actor/1")
        self.reach(s, 2, 2, 2)
        self.kill(s, "actor/1")
        s.until(lambda: [w["state"] for w in s.group("actor")["workers"]] == ["backoff"] * 3)
        s.call("Start", target="actor/1", wait=True)
        self.reach(s, 3, 3, 3)

    def test_what_is_stopped_while_its_group_waits_for_another_stays_so(self):
        s = self.started({"actor": actor(strategy="rest-for-one", Restart={"MinSec": "10min", "MaxSec": "10min"}),
                          "after": actor(2, Group={"After": "actor"})})
        self.kill(s, "actor/0")
        self.reach(s, 2, 2, group="after")
        self.kill(s, "actor/0")
        s.until(lambda: [w["state"] for w in s.group("after")["workers"]] == ["backoff"] * 2)
        s.call("Stop", target="after/0", wait=True)
        s.call("Stop", target="after/1", wait=True)
        s.call("Start", target="actor", wait=True)
        s.write("last.group", actor(Group={"After": "actor after"}))
        s.call("Reload")
        s.wait_worker("last/0", "idle")
        self.assertEqual([w["state"] for w in s.group("after")["workers"]], ["stopped"] * 2)

    def test_groups_that_follow_by_a_million_ways_are_found_as_fast(self):
        groups, before = {"actor": actor(strategy="rest-for-one"), "root": actor()}, "root"
        for i in range(20):
            groups.update({f"{i}a": actor(Group={"After": before}), f"{i}b": actor(Group={"After": before})})
            before = f"{i}a {i}b"
        groups["last"] = actor(Group={"After": before + " actor"})
        s = self.started(groups)
        self.kill(s, "actor/0")
        self.reach(s, 2, group="last")
        self.assertEqual(self.generations(s, "19b"), [1])

    def test_a_pool_whose_deaths_are_too_many_leaves_the_dead_one_down_and_the_others_alone(self):
        s = self.started({"actor": actor(2, strategy="one-for-all", Restart={"StartLimitBurst": 1,
                                                                            "StartLimitIntervalSec": "1h"})})
        self.kill(s, "actor/0")
        self.reach(s, 2, 2)
        self.kill(s, "actor/1")
        s.wait_worker("actor/1", "failed")
        self.assertEqual(s.worker("actor/0")["state"], "idle")
        s.call("Reset", target="actor")
        self.reach(s, 2, 3)

    def test_a_shutdown_in_the_middle_ends(self):
        s = self.started({"actor": actor(3, strategy="rest-for-one",
                                         Restart={"MinSec": "10min", "MaxSec": "10min"}),
                          "after": actor(Group={"After": "actor"})})
        self.kill(s, "actor/0")
        self.reach(s, 2, 2, 2)
        self.reach(s, 2, group="after")
        self.kill(s, "actor/0")
        s.wait_worker("after/0", "backoff")
        s.stop()


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
