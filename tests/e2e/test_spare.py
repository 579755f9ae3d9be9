# SPDX-License-Identifier: MIT
"""Spare=: a standby takes the place of a worker that dies, at once, and nothing is lost or done twice."""
import contextlib
import os
import signal

from troupe import QUICK, SANITIZED, Bell, TestCase, Varlink, actor, dice, ini, limit, text
from test_actors import PLAYER, read_notes
from test_recycling import Gate, workers

KILLS = 150 if SANITIZED else 1000


def ready_spares(s, group="actor"):
    return [w for w in workers(s, "spare", group) if w["state"] == "idle"]


class Case(TestCase):
    def spared(self, pool=None, options=(), **sections):
        pool = {"Size": 1, "Spare": 1, **(pool or {})}
        s = self.started({"actor": actor(**{"Pool": pool, **sections})}, options=options)
        self.stand_by(s, min(pool["Size"], pool["Spare"]))
        return s

    def stand_by(self, s, count=1, group="actor"):
        """Waits until so many spares are ready, and the pool has no other extra process."""
        s.until(lambda: len(ready_spares(s, group)) == count and not workers(s, "predecessor", group)
                and not workers(s, "successor", group))
        return ready_spares(s, group)

    def kill(self, pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def events(self, s, kind, target="actor"):
        return [e for e in s.call("Watch", target=target)["events"] if e["type"] == kind]


class Spare(Case):
    def test_a_spare_stands_by_and_gets_no_job(self):
        s = self.spared({"Size": 2, "Spare": 5})
        spares = self.stand_by(s, 2)
        self.assertEqual(sorted((w["name"], w["generation"]) for w in spares), [("actor/0", 2), ("actor/1", 2)])
        self.assertEqual(len(s.children()), 4)
        pids = {int(s.do("actor", "pid")["result"]["data"]) for _ in range(50)}
        self.assertFalse(pids & {w["pid"] for w in spares})
        self.assertEqual([w["jobs_done"] for w in ready_spares(s)], [0, 0])
        shown = s.ctl("status", "actor", check=True).stdout
        self.assertIn("2 of 2 up: 2 idle, 2 standing by\n", shown)
        self.assertEqual(shown.count("spare"), 2)
        self.assertIn("Spare: it stands by", s.ctl("status", "actor/1", check=True).stdout)

    def test_it_takes_the_place_of_one_that_dies(self):
        for wake in "futex", "eventfd":
            with self.subTest(wake=wake):
                s = self.spared(options=("--wake", wake))
                old, [spare] = s.worker("actor/0"), ready_spares(s)
                s.do("actor", "echo")
                self.kill(old["pid"])
                s.wait_event("worker.spare-used", "actor")
                self.assertEqual(s.do("actor", "pid")["result"], text(str(spare["pid"])))
                worker = s.worker("actor/0")
                self.assertEqual((worker["pid"], worker["generation"], worker["restarts"]), (spare["pid"], 2, 1))
                [after] = self.stand_by(s)
                self.assertEqual(after["generation"], 3)
                self.assertEqual(s.worker("actor/0")["last_death"]["pid"], old["pid"])
                self.assertEqual(s.group("actor")["deaths"], 1)
                s.stop()

    def test_jobs_taken_ahead_go_back_in_order(self):
        s = self.spared({"Prefetch": 8})
        started, bell = Bell(s, "started"), Bell(s, "bell")
        first = s.create("actor", f"before 2 ring {started.path}\nbefore 2 wait {bell.path}\necho 0")
        started.wait()
        rest = [s.create("actor", "pid") for _ in range(5)]
        [spare] = ready_spares(s)
        self.kill(s.worker("actor/0")["pid"])
        ended = [s.wait_job(job) for job in rest]
        self.assertEqual({(e["attempt"], e["result"]["data"]) for e in ended}, {(1, str(spare["pid"]))})
        self.assertEqual(s.wait_job(first)["attempt"], 2)

    def test_it_is_the_successor_of_one_that_is_recycled(self):
        s = self.spared({"MaxJobs": 1})
        seen = []
        for _ in range(6):
            [spare] = self.stand_by(s)
            s.do("actor", "echo")
            s.until(lambda spare=spare: s.worker("actor/0")["pid"] == spare["pid"])
            seen.append(spare["pid"])
        self.assertEqual(len(set(seen)), 6)
        worker = s.worker("actor/0")
        self.assertEqual((worker["restarts"], s.group("actor")["deaths"]), (0, 0))
        self.assertGreaterEqual(worker["recycled"], 6)

    def test_messages_wait_for_the_end_of_the_one_before_and_keep_their_order(self):
        for wake in "futex", "eventfd":
            with self.subTest(wake=wake):
                s = self.supervisor(options=("--wake", wake))
                talk = s.path("talk")
                environment = {"Environment": f"PLAYER_NOTES={talk}"}
                s.write("driver.group", ini(PLAYER, Group=environment))
                s.write("actor.group", ini(PLAYER, Group=environment, Restart=QUICK, Pool={"Spare": 1},
                                           Worker={"MessageRetries": 1000, "MailboxMax": 100000}))
                s.start()
                self.stand_by(s)
                job = s.create("driver", "burst actor/0 20000 note")
                for i in range(20):
                    s.until(lambda i=i: len(read_notes(talk, "actor/0")) >= 800 * (i + 1))
                    s.wait_worker("actor/0", "idle")
                    self.stand_by(s)
                    self.kill(s.worker("actor/0")["pid"])
                    s.until(lambda i=i: s.group("actor")["deaths"] == i + 1)
                s.wait_job(job)
                s.until(lambda: read_notes(talk, "actor/0")[-1].text == "19999")
                last, again = -1, 0
                for note in read_notes(talk, "actor/0"):
                    n = int(note.text)
                    self.assertIn(n, (last, last + 1), note)  # in hand at its death: once more, marked
                    again += n == last
                    self.assertTrue(n != last or "r" in note.flags, note)
                    last = n
                self.assertEqual(last, 19999)
                self.assertLessEqual(again, 20)
                s.wait_worker("actor/0", "idle")
                self.assertEqual(len(self.events(s, "worker.spare-used")), 20)
                s.stop()


class Trouble(Case):
    def test_a_spare_that_dies_comes_back(self):
        s = self.spared()
        [spare] = ready_spares(s)
        pid = s.worker("actor/0")["pid"]
        self.kill(spare["pid"])
        s.until(lambda: [w["generation"] for w in ready_spares(s)] == [3])
        self.assertEqual(s.worker("actor/0")["pid"], pid)
        self.assertEqual([(d["worker"], d["generation"]) for d in s.deaths("actor")], [("actor/0", 2)])
        self.assertEqual(s.worker("actor/0")["restarts"], 0)

    def test_a_spare_that_does_not_get_ready_holds_nobody_up(self):
        s = self.supervisor()
        gate = Gate(s)
        s.write("actor.group", actor(program=gate.program))
        s.start()
        gate.hang()
        s.write("actor.group", actor(program=gate.program, Pool={"Spare": 1}))
        s.call("Reload")
        gate.hung.wait()
        self.assertEqual([w["state"] for w in workers(s, "spare")], ["starting"])
        os.unlink(gate.hang_path)
        for _ in range(3):
            s.do("actor", "echo")
            pid = s.worker("actor/0")["pid"]
            self.kill(pid)
            s.until(lambda pid=pid: s.worker("actor/0").get("pid") not in (None, pid))
            self.assertEqual(s.do("actor", "echo on")["result"], text("on"))
        self.assertEqual(self.events(s, "worker.spare-used"), [])
        gate.bell.ring()
        [spare] = self.stand_by(s)
        self.kill(s.worker("actor/0")["pid"])
        s.wait_event("worker.spare-used", "actor")
        self.assertEqual(s.do("actor", "pid")["result"], text(str(spare["pid"])))
        self.stand_by(s)
        seen = [d["generation"] for d in s.deaths("actor")] + [w["generation"] for w in s.group("actor")["workers"]]
        self.assertEqual(len(set(seen)), len(seen), seen)

    def test_a_spare_that_never_comes_up_is_given_up_by_the_start_limit(self):
        s = self.supervisor()
        gate = Gate(s)
        s.write("actor.group", actor(program=gate.program, Restart={**QUICK, "StartLimitBurst": 3}))
        s.start()
        gate.shut()
        s.write("actor.group", actor(program=gate.program, Pool={"Spare": 1}, Restart={**QUICK, "StartLimitBurst": 3}))
        s.call("Reload")
        s.until(lambda: [w["state"] for w in workers(s, "spare")] == ["failed"])
        self.assertEqual((s.worker("actor/0")["state"], s.group("actor")["state"]), ("idle", "degraded"))
        self.assertEqual(s.do("actor", "echo on")["result"], text("on"))
        gate.open()
        s.call("Reset", target="actor")
        self.stand_by(s)
        self.assertEqual(s.group("actor")["state"], "running")

    def test_a_crash_loop_backs_off_and_ends(self):
        burst = 4
        s = self.spared(Restart={"MinSec": "50ms", "MaxSec": "50ms", "StartLimitBurst": burst,
                                 "ResetAfterSec": "1h"})
        for n in range(1, burst + 2):
            self.stand_by(s)
            worker = s.worker("actor/0")
            self.assertEqual(worker["state"], "idle")
            self.kill(worker["pid"])
            s.until(lambda n=n: s.group("actor")["deaths"] == n)
            s.until(lambda pid=worker["pid"]: s.worker("actor/0").get("pid") != pid)
            if n <= burst:
                s.until(lambda: s.worker("actor/0")["state"] == "idle")
        self.assertEqual(s.worker("actor/0")["state"], "failed")
        s.until(lambda: len(s.children()) == 0 and len(s.group("actor")["workers"]) == 1)
        died = [e["at"] for e in self.events(s, "worker.died") if e["death"]["cause"] != "stop"]
        used = [e["at"] for e in self.events(s, "worker.spare-used")]
        self.assertEqual((len(died), len(used)), (burst + 1, burst))
        for death, use in list(zip(died, used))[1:]:
            self.assertGreaterEqual(use - death, 45000)  # all but the first, which is immediate
        s.call("Reset", target="actor")
        self.stand_by(s)

    def test_who_only_says_that_it_is_dead_is_killed_and_succeeded(self):
        s = self.spared({"Size": 1})
        s.do("actor", "echo")
        for _ in range(5):
            [spare] = self.stand_by(s)
            job = s.create("actor", "crash segv", max_retries=0)
            self.assertEqual(s.wait_job(job)["state"], "dead")
            s.until(lambda spare=spare: s.worker("actor/0")["pid"] == spare["pid"])
            s.do("actor", "echo")


class Changes(Case):
    def test_resizing(self):
        s = self.spared({"Size": 1, "Spare": 2})
        s.call("Resize", target="actor", size=4, wait=True)
        self.assertEqual(sorted(w["slot"] for w in self.stand_by(s, 2)), [0, 1])
        s.call("Resize", target="actor", size=1, wait=True)
        self.stand_by(s, 1)
        s.until(lambda: len(s.children()) == 2)

    def test_another_number_of_spares(self):
        s = self.spared({"Size": 3, "Spare": 1})
        pids = [w["pid"] for w in workers(s)]
        for n in 3, 0, 2:
            s.write("actor.group", actor(Pool={"Size": 3, "Spare": n}))
            s.call("Reload")
            self.stand_by(s, n)
            s.until(lambda n=n: len(s.children()) == 3 + n)
        self.assertEqual([w["pid"] for w in workers(s)], pids)

    def test_another_program_has_spares_of_its_own(self):
        s = self.spared({"Size": 2, "Spare": 2}, Group={"Environment": "ROUND=1"})
        self.stand_by(s, 2)
        s.write("actor.group", actor(Pool={"Size": 2, "Spare": 2}, Group={"Environment": "ROUND=2"}))
        s.call("Reload")
        s.wait_event("group.rolled", "actor")
        self.stand_by(s, 2)
        s.do("actor", "echo")
        for pid in [w["pid"] for w in workers(s)]:
            self.kill(pid)
        s.wait_event("worker.spare-used", "actor", 2)
        self.assertEqual({s.do("actor", "environment ROUND")["result"]["data"] for _ in range(8)}, {"2"})

    def test_a_stopped_group_has_none(self):
        s = self.spared()
        s.call("Stop", target="actor", wait=True)
        s.until(lambda: [w["state"] for w in s.group("actor")["workers"]] == ["stopped"])
        self.assertEqual(s.children(), [])
        s.call("Start", target="actor", wait=True)
        self.stand_by(s)
        s.call("Restart", target="actor/0", wait=True)
        self.stand_by(s)
        self.assertEqual(len(s.children()), 2)

    def test_the_supervisor_takes_them_along(self):
        s = self.spared({"Size": 3, "Spare": 3})
        self.stand_by(s, 3)
        self.assertEqual(len(s.children()), 6)
        s.stop()

    def test_each_cell_has_its_own(self):
        s = self.started({"actor": actor(Pool={"Cells": "by-key", "Spare": 1, "CellIdleSec": "200ms"})})
        s.do("actor", "echo", key="acme")
        s.until(lambda: not s.cell("actor/acme") or
                [w["name"] for w in s.cell("actor/acme")["workers"] if w.get("replacement") == "spare"])
        s.until(lambda: s.group("actor")["cells"] == [] and s.children() == [])


class Chaos(Case):
    def run_chaos(self, wake, **pool):
        rng = dice()
        size = 3
        s = self.started({"actor": actor(Pool={"Size": size, "Spare": size, **pool}, Resources={"LimitCORE": 0},
                                         Jobs={"BackoffMinSec": "1ms", "BackoffMaxSec": "5ms", "MaxRetries": 100000})},
                         options=("--wake", wake))
        kills, killed, due = KILLS, set(), 0
        with self.chaos(s, "actor", "0", "64") as counts, Varlink(s.socket_path) as watch:
            while kills:
                group = watch.call("GetStatus", target="actor")["groups"][0]
                alive = [w for w in group["workers"] if w.get("pid") and w["pid"] not in killed]
                places = {w["name"] for w in group["workers"]}  # one that was killed as it left is stopped for a moment
                self.assertLessEqual(len(alive), 2 * size + (1 if pool else 0), group["workers"])
                self.assertEqual(len(places), size)
                if group["succeeded"] < due:
                    continue
                for worker in rng.sample(alive, min(len(alive), kills, 1 + rng.randrange(3))):
                    self.kill(worker["pid"])
                    killed.add(worker["pid"])
                    kills -= 1
                due = group["succeeded"] + rng.choice((0, 3, 10, 30))
        self.assertEqual(counts["accepted"], counts["succeeded"], counts)
        self.stand_by(s, size)
        used = sum(1 for _ in self.events(s, "worker.spare-used"))
        print(f"{used} of the last thousand events: a spare was used")
        self.assertGreater(used, 0)
        self.assertEqual(len(s.children()), 2 * size)
        s.stop()

    @limit(200)
    def test_a_thousand_kills_lose_nothing(self):
        self.run_chaos("futex")

    @limit(200)
    def test_a_thousand_kills_lose_nothing_by_eventfd_while_recycling(self):
        self.run_chaos("eventfd", MaxJobs=50)
