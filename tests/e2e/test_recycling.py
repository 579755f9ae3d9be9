# SPDX-License-Identifier: MIT
"""Replacement of workers by others that are ready: after enough work, and for another program."""
import json
import os
import signal
import subprocess

from troupe import ACTOR, LIMIT, QUICK, SANITIZED, Bell, TestCase, Varlink, actor, helper, ini, text


def workers(s, role=None, group="actor"):
    return [w for w in s.group(group)["workers"] if w.get("replacement") == role]


def generations(s, group="actor"):
    return [w["generation"] for w in workers(s, None, group)]


class Gate:
    """A program that becomes a worker while its gate is open; otherwise it fails, or hangs."""

    def __init__(self, s, name="gate"):
        self.open_path, self.hang_path = s.path(name + "-open"), s.path(name + "-hang")
        self.bell = Bell(s, name + "-bell")
        self.hung = Bell(s, name + "-hung")  # rung by processes that hang
        self.program = (f"/bin/sh -c '[ -e {self.hang_path} ] && echo >{self.hung.path} && read line <{self.bell.path}; "
                        f"[ -e {self.open_path} ] || exit 3; exec {ACTOR}'")
        self.open()

    def open(self):
        open(self.open_path, "w", encoding="ascii").close()

    def shut(self):
        os.unlink(self.open_path)

    def hang(self):
        open(self.hang_path, "w", encoding="ascii").close()

    def let_go(self, times=1):
        os.unlink(self.hang_path)
        self.bell.ring(times)


class Case(TestCase):
    def events(self, s, target="actor"):
        """All processes so far."""
        return s.call("Watch", target=target)["events"]

    def check_never_without(self, s, size, group="actor"):
        """Checks by the events that each place always had a ready worker, once it had one, and that the pool
        never had more than one process above its size."""
        ready, alive, seen = {}, 0, set()
        for event in self.events(s, group):
            worker, generation = event.get("worker"), event.get("generation")
            if event["type"] == "worker.ready":
                ready.setdefault(worker, set()).add(generation)
                seen.add(worker)
            elif event["type"] in ("worker.recycled", "worker.died"):
                ready[worker].discard(generation)
            alive += {"worker.started": 1, "worker.died": -1}.get(event["type"], 0)
            self.assertLessEqual(alive, size + 1, event)
            for name in seen:
                self.assertTrue(ready[name], f"{name} has no worker after {event}")
        self.assertEqual(len(seen), size)

    def recycled(self, s, count=1, group="actor"):
        return s.wait_event("worker.recycled", group, count)

    def settled(self, s, group="actor"):
        """Waits until the pool has no extra process."""
        s.until(lambda: all("replacement" not in w for w in s.group(group)["workers"]))


class Recycling(Case):
    def test_recycling_without_a_dip(self):
        s = self.started({"actor": actor(Pool={"Size": 1, "MaxJobs": 5})})
        pids = set()
        with Varlink(s.socket_path) as connection:
            while len(pids) < 8:
                job = connection.call("Do", group="actor", payload=text("pid"))["job"]
                self.assertEqual((job["state"], job["attempt"]), ("succeeded", 1))
                pids.add(job["result"]["data"])
        self.settled(s)
        self.check_never_without(s, 1)
        worker = s.worker("actor/0")
        self.assertEqual(worker["recycled"], worker["generation"] - 1)
        self.assertEqual((worker["restarts"], s.group("actor")["deaths"]), (0, 0))
        self.assertIn("MaxJobs", self.recycled(s)["message"])

    def test_MaxJobs_1_is_one_job_per_process_exactly(self):
        for pool in {}, {"Prefetch": 8}, {"Spare": 2}:
            with self.subTest(pool=pool):
                s = self.started({"actor": actor(Pool={"Size": 3, "MaxJobs": 1, **pool})})
                jobs = [s.create("actor", f"before {1 + i % 2} retry 1 again\npid") for i in range(60)]
                pids = [s.wait_job(job)["result"]["data"] for job in jobs]
                self.assertEqual(len(set(pids)), len(pids))
                self.assertLessEqual(max(death["jobs_done"] for death in s.deaths("actor")), 1)
                s.stop()

    def test_a_reload_to_MaxJobs_1_replaces_who_has_done_a_job(self):
        s = self.started({"actor": actor()})
        pid = s.do("actor", "pid")["result"]
        s.write("actor.group", actor(Pool={"Size": 1, "MaxJobs": 1}))
        s.call("Reload")
        self.assertNotEqual(s.do("actor", "pid")["result"], pid)

    def test_a_pool_is_recycled_slot_by_slot(self):
        s = self.started({"actor": actor(Pool={"Size": 4, "MaxJobs": 20})})
        client = subprocess.run([helper("chaos"), s.socket_path, "actor", "2000", "16"], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, text=True, timeout=LIMIT, check=True)
        counts = json.loads(client.stdout)
        self.assertEqual((counts["accepted"], counts["succeeded"]), (2000, 2000), counts)
        self.assertEqual(counts["retried"], 0, counts)
        s.until(lambda: s.do("actor", "echo") and sum(w["recycled"] for w in workers(s)) > 4)
        self.settled(s)
        self.check_never_without(s, 4)

    def test_a_worker_whose_memory_grows_is_replaced(self):
        s = self.started({"actor": actor(Pool={"Size": 1, "MaxMemory": "16M"})})
        s.do("actor", "leak 50000000\necho what it begins with is no growth")
        first = s.do("actor", "pid")["result"]
        with Varlink(s.socket_path) as connection:
            while connection.call("Do", group="actor", payload=text("pid"))["job"]["result"] == first:
                if generations(s) != [1]:
                    break
                connection.call("Do", group="actor", payload=text("leak 1000000\necho"))
        self.assertIn("MaxMemory", self.recycled(s)["message"])
        self.settled(s)
        self.check_never_without(s, 1)

    def test_an_idle_worker_is_replaced_at_its_age(self):
        s = self.started({"actor": actor(Pool={"Size": 2, "MaxAgeSec": "100ms"})})
        self.recycled(s, 6)
        s.write("actor.group", actor(Pool={"Size": 2}))
        s.call("Reload")
        self.settled(s)
        self.check_never_without(s, 2)

    def test_the_old_worker_finishes_its_job_while_its_successor_works(self):
        s = self.started({"actor": actor(Pool={"Size": 1, "MaxAgeSec": "100ms"})})
        job, bell = s.busy("actor", "pid")
        pid = s.job(job)["worker"] and next(w["pid"] for w in s.group("actor")["workers"] if w.get("job") == job)
        s.wait_for(lambda: workers(s, "predecessor"), "actor")
        self.assertNotEqual(s.do("actor", "pid")["result"], text(str(pid)))
        [old] = workers(s, "predecessor")
        self.assertEqual((old["name"], old["pid"], old["job"], old["state"]), ("actor/0", pid, job, "stopping"))
        self.assertIn(job, [j["id"] for j in s.call("List", group="actor")["jobs"]])
        bell.ring()
        ended = s.wait_job(job)
        self.assertEqual((ended["state"], ended["attempt"], ended["result"]), ("succeeded", 1, text(str(pid))))
        s.until(lambda: pid not in [w.get("pid") for w in s.group("actor")["workers"]])


class Trouble(Case):
    """Events that interrupt a replacement."""

    def gated(self, size=1, **sections):
        s = self.supervisor()
        gate = Gate(s)
        s.write("actor.group", actor(program=gate.program, Pool={"Size": size, "MaxJobs": 2}, **sections))
        return s.start(), gate

    def wear_out(self, s):
        for _ in range(2):
            s.do("actor", "echo")

    def replacing(self, s, gate):
        """Starts a successor that does not get ready."""
        gate.hang()
        self.wear_out(s)
        s.wait_for(lambda: [w for w in workers(s, "successor") if w.get("pid")], "actor")
        return workers(s)[0]

    def test_the_old_one_goes_on_while_no_successor_comes_up(self):
        s, gate = self.gated()
        gate.shut()
        self.wear_out(s)
        pids = {s.do("actor", "pid")["result"]["data"]}
        s.wait_event("worker.not-recycled", "actor", 3)
        pids.add(s.do("actor", "pid")["result"]["data"])
        self.assertEqual((len(pids), generations(s)), (1, [1]))
        gate.open()
        self.recycled(s)
        s.until(lambda: s.do("actor", "pid")["result"]["data"] not in pids)
        self.assertEqual(s.group("actor")["state"], "running")

    def test_when_the_old_one_dies_its_successor_takes_over_at_once(self):
        s, gate = self.gated()
        old = self.replacing(s, gate)
        os.kill(old["pid"], signal.SIGKILL)
        s.wait_for(lambda: generations(s) == [2], "actor")
        job = s.create("actor", "pid")
        s.until(lambda: len(s.group("actor")["workers"]) == 1)
        self.assertEqual(s.worker("actor/0")["state"], "starting")
        gate.let_go()
        self.assertEqual((s.wait_job(job)["state"], s.worker("actor/0")["restarts"]), ("succeeded", 1))

    def test_a_stop_meanwhile_stops_both(self):
        s, gate = self.gated()
        self.replacing(s, gate)
        s.call("Stop", target="actor", wait=True)
        self.assertEqual([(w["state"], w["generation"]) for w in s.group("actor")["workers"]], [("stopped", 1)])
        s.until(lambda: not s.children())  # reaped
        gate.let_go(0)
        s.call("Start", target="actor", wait=True)
        self.assertEqual(s.do("actor", "echo back")["result"], text("back"))

    def test_a_restart_meanwhile_needs_no_successor(self):
        s, gate = self.gated()
        self.replacing(s, gate)
        os.unlink(gate.hang_path)
        s.call("Restart", target="actor/0", wait=True)
        self.settled(s)
        self.assertEqual(generations(s), [3])
        self.assertEqual(len(s.children()), 1)

    def test_resizes_meanwhile(self):
        s, gate = self.gated(2)
        gate.hang()
        self.wear_out(s)
        s.wait_for(lambda: workers(s, "successor"), "actor")
        s.call("Resize", target="actor", size=1, wait=True)
        os.unlink(gate.hang_path)
        s.call("Resize", target="actor", size=3, wait=True)
        gate.bell.ring(9)
        self.settled(s)
        self.assertEqual({w["state"] for w in workers(s)}, {"idle"})
        self.assertEqual(len(workers(s)), 3)

    def test_no_namesake_of_a_worker_that_still_has_a_job(self):
        s = self.started({"actor": actor(Pool={"Size": 2, "MaxAgeSec": "100ms"})})
        job, bell = s.busy("actor", "echo")
        [old] = s.wait_for(lambda: [w for w in workers(s, "predecessor") if w.get("job")], "actor")
        s.call("Resize", target="actor", size=1)
        s.call("Resize", target="actor", size=2, wait=True)
        self.assertIn(old["pid"], [w.get("pid") for w in s.group("actor")["workers"]])
        bell.ring()
        self.assertEqual(s.wait_job(job)["attempt"], 1)

    def test_a_pause_meanwhile_hands_nothing_out(self):
        s, gate = self.gated()
        self.replacing(s, gate)
        s.call("Pause", target="actor")
        job = s.create("actor", "echo")
        gate.let_go()
        self.recycled(s)
        self.assertEqual(s.job(job)["state"], "queued")
        s.call("Resume", target="actor")
        self.assertEqual(s.wait_job(job)["state"], "succeeded")

    def test_the_supervisor_stops_meanwhile(self):
        s, gate = self.gated()
        self.replacing(s, gate)
        self.assertEqual(len(s.children()), 2)
        s.stop()

    def test_a_removed_group_goes_whole(self):
        s, gate = self.gated()
        self.replacing(s, gate)
        os.unlink(os.path.join(s.config, "actor.group"))
        s.call("Reload", allow_empty=True)
        s.until(lambda: s.call("GetStatus")["groups"] == [])
        self.assertEqual(s.children(), [])


class Rolling(Case):
    def test_reload_rolls_slot_by_slot_under_load(self):
        rounds = 3 if SANITIZED else 8
        s = self.started({"actor": actor(Pool={"Size": 4}), "other": actor()})
        pid = s.worker("other/0")["pid"]
        with self.chaos(s, "actor", "0", "32") as counts:
            for i in range(rounds):
                s.write("actor.group", actor(Pool={"Size": 4}, Group={"Environment": f"ROUND={i}"}))
                self.assertEqual(s.call("Reload")["changed"], ["actor"])
                s.wait_event("group.rolled", "actor", i + 1)
        self.assertEqual((counts["succeeded"], counts["retried"]), (counts["accepted"], 0), counts)
        self.assertEqual(generations(s), [1 + rounds] * 4)
        self.assertEqual({s.do("actor", "environment ROUND")["result"]["data"] for _ in range(8)}, {str(rounds - 1)})
        self.check_never_without(s, 4)
        self.assertEqual((s.worker("other/0")["pid"], generations(s, "other")), (pid, [1]))

    def test_a_roll_whose_first_worker_does_not_come_up_stops_there(self):
        s = self.supervisor({"actor": actor(Pool={"Size": 3})})
        gate = Gate(s)
        s.start()
        pids = [w["pid"] for w in workers(s)]
        gate.shut()
        s.write("actor.group", actor(program=gate.program, Pool={"Size": 3}))
        s.call("Reload")
        event = s.wait_event("group.roll-stopped", "actor")
        self.assertIn("3 continue as they are", event["message"])
        self.assertEqual([w["pid"] for w in workers(s)], pids)
        self.assertEqual(s.do("actor", "echo on")["result"], text("on"))
        self.assertTrue(s.group("actor")["behind"])
        self.assertRegex(s.ctl("status", "--all").stdout, r"Trouble: 1 behind\n(.|\n)* Reload: the new program did not come up,")
        gate.open()
        self.assertEqual(s.call("Reload")["changed"], ["actor"])
        s.wait_event("group.rolled", "actor")
        self.assertNotIn("behind", s.group("actor"))
        self.assertNotIn("Trouble", s.ctl("status").stdout)
        self.assertEqual(generations(s), [3, 2, 2])
        self.assertEqual(s.call("Reload")["changed"], [])

    def test_another_change_in_the_middle_of_a_roll_wins(self):
        s = self.supervisor({"actor": actor(Pool={"Size": 2})})
        gate = Gate(s)
        s.start()
        gate.hang()
        s.write("actor.group", actor(program=gate.program, Pool={"Size": 2}))
        s.call("Reload")
        s.wait_for(lambda: workers(s, "successor"), "actor")
        s.write("actor.group", actor(Pool={"Size": 2}, Group={"Environment": "ROUND=2"}))
        s.call("Reload")
        s.wait_event("group.rolled", "actor")
        self.assertEqual({s.do("actor", "environment ROUND")["result"]["data"] for _ in range(8)}, {"2"})
        self.check_never_without(s, 2)

    def test_services_are_restarted_one_after_the_other(self):
        def service(environment):
            return ini("/bin/sleep infinity", Pool={"Size": 3}, Restart=QUICK,
                       Group={"Type": "service", "Environment": environment})
        s = self.started({"sleeper": service("A=1")})
        s.write("sleeper.group", service("A=2"))
        s.call("Reload")
        s.wait_event("group.rolled", "sleeper")
        alive = set()
        for event in self.events(s, "sleeper"):
            if event["type"] == "worker.ready":
                alive.add(event["worker"])
            elif event["type"] == "worker.died":
                alive.discard(event["worker"])
                self.assertEqual(len(alive), 2)
        self.assertEqual(generations(s, "sleeper"), [2, 2, 2])
