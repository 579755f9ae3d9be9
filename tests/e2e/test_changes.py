# SPDX-License-Identifier: MIT
"""Changes at run time: sizes, configuration, stops, and their combinations."""
import contextlib
import os
import resource
import unittest

from troupe import ACTOR, QUICK, SANITIZED, Bell, TestCase, Varlink, VarlinkError, actor, helper, ini, service, text


def states(s, group):
    return [(w["state"], w["generation"]) for w in s.group(group)["workers"]]


def remove(s, group):
    os.unlink(os.path.join(s.config, group + ".group"))
    return s.call("Reload", allow_empty=True)


def gone(s, group):
    return lambda: group not in [g["name"] for g in s.call("GetStatus")["groups"]]


class Sizes(TestCase):
    def busy(self, s, size):
        """Gives each worker a job. Returns the bells that end the jobs, by worker."""
        started = Bell(s, "started")
        bells = {}
        for i in range(size):
            bells[f"job-{i}"] = Bell(s, f"bell-{i}")
            s.create("actor", f"ring {started.path}\nwait {bells[f'job-{i}'].path}\nname", id=f"job-{i}")
        started.wait(size)
        return {w["name"]: bells[w["job"]] for w in s.group("actor")["workers"]}

    def finish(self, s, bells, *workers):
        for worker in workers:
            job = s.worker(worker)["job"]
            bells[worker].ring()
            self.assertEqual(s.wait_job(job)["result"], text(worker))

    def test_retired_workers_cannot_be_started_and_the_pool_ends_at_its_size(self):
        s = self.started({"actor": actor(3)})
        bells = self.busy(s, 3)
        self.finish(s, bells, "actor/0", "actor/1")
        s.wait_worker("actor/1", "idle")
        self.assertEqual(s.call("Resize", target="actor", size=1), {"old_size": 3})
        s.wait_worker("actor/1", "stopped")
        for method in "Start", "Restart", "Reset":
            for target in "actor/1", "actor/2":
                self.refused("NoSuchTarget", s.call, method, target=target)
        for method in "Start", "Reset":
            s.call(method, target="actor")
        self.assertEqual(states(s, "actor"), [("idle", 1), ("stopped", 1), ("stopping", 1)])
        bells["actor/2"].ring()
        s.wait_for(lambda: len(s.group("actor")["workers"]) == 1, "actor")
        self.assertEqual(states(s, "actor"), [("idle", 1)])
        self.assertEqual({s.do("actor", "name")["result"]["data"] for _ in range(5)}, {"actor/0"})

    def test_growing_again_before_the_retired_have_finished_brings_all_of_them_back(self):
        s = self.started({"actor": actor(3)})
        bells = self.busy(s, 3)
        self.finish(s, bells, "actor/0", "actor/1")
        s.call("Resize", target="actor", size=1)
        s.wait_worker("actor/1", "stopped")
        s.call("Resize", target="actor", size=3)
        bells["actor/2"].ring()
        s.wait_for(lambda: states(s, "actor") == [("idle", 1), ("idle", 2), ("idle", 2)], "actor")
        self.assertEqual(s.wait_job("job-2")["state"], "succeeded")

    def test_a_group_that_is_stopped_grows_without_starting_anything(self):
        s = self.started({"actor": actor(1)})
        s.call("Stop", target="actor", wait=True)
        s.call("Resize", target="actor", size=3, wait=True)
        self.assertEqual(states(s, "actor"), [("stopped", 1), ("stopped", 0), ("stopped", 0)])
        s.call("Start", target="actor", wait=True)
        self.assertEqual(states(s, "actor"), [("idle", 2), ("idle", 1), ("idle", 1)])


class Stopped(TestCase):
    """What was stopped on purpose, or has ended for good, stays down."""

    def test_a_stopped_worker_stays_stopped_when_its_group_grows(self):
        s = self.started({"actor": actor(2)})
        s.call("Stop", target="actor/1", wait=True)
        s.call("Resize", target="actor", size=3, wait=True)
        self.assertEqual(states(s, "actor"), [("idle", 1), ("stopped", 1), ("idle", 1)])
        s.write("actor.group", actor(4))
        s.call("Reload")
        s.wait_for(lambda: states(s, "actor") == [("idle", 1), ("stopped", 1), ("idle", 1), ("idle", 1)], "actor")

    def test_a_stopped_worker_stays_stopped_over_a_reload_that_restarts_the_others(self):
        s = self.started({"actor": actor(2)})
        s.call("Stop", target="actor/1", wait=True)
        s.write("actor.group", actor(2, Group={"Environment": "NEW=1"}))
        s.call("Reload")
        s.wait_for(lambda: states(s, "actor") == [("idle", 2), ("stopped", 1)], "actor")
        self.assertEqual(s.do("actor", "environment NEW")["result"], text("1"))
        s.call("Start", target="actor/1", wait=True)
        self.assertEqual(states(s, "actor"), [("idle", 2), ("idle", 2)])

    def test_a_stopped_group_stays_stopped_over_a_reload_that_changes_its_program_and_size(self):
        s = self.started({"actor": actor(1)})
        s.call("Stop", target="actor", wait=True)
        s.write("actor.group", actor(2, Group={"Environment": "NEW=1"}))
        self.assertEqual(s.call("Reload")["changed"], ["actor"])
        self.assertEqual(states(s, "actor"), [("stopped", 1), ("stopped", 0)])

    def test_a_service_that_has_ended_well_is_not_started_by_a_resize_of_its_group(self):
        s = self.started({"once": service("/bin/true", Pool={"Size": 2}, Restart={**QUICK, "Restart": "on-failure"})})
        s.wait_for(lambda: states(s, "once") == [("stopped", 1)] * 2, "once")
        s.call("Resize", target="once", size=3)
        s.wait_for(lambda: states(s, "once") == [("stopped", 1)] * 3, "once")

    def test_a_worker_started_alone_follows_a_reload_like_the_others(self):
        s = self.started({"actor": actor(2)})
        s.call("Stop", target="actor", wait=True)
        s.call("Start", target="actor/0", wait=True)
        s.write("actor.group", actor(2, Worker={"InlineMax": 1024}))
        s.call("Reload")
        job = s.do("actor", "sum\n\n" + "x" * 5000, max_retries=0)
        self.assertEqual((job["state"], job["attempt"]), ("succeeded", 1))
        s.wait_for(lambda: s.worker("actor/0")["generation"] == 3, "actor")
        self.assertEqual(s.worker("actor/1")["state"], "stopped")


class Reloads(TestCase):
    def test_the_type_of_a_group_cannot_change_and_its_jobs_go_on(self):
        s = self.started({"actor": actor(), "sleeper": service("/bin/sleep infinity")})
        running, bell = s.busy("actor", "echo first")
        queued = s.create("actor", "echo second")
        s.write("actor.group", service("/bin/sleep infinity"))
        s.write("sleeper.group", actor())
        s.write("new.group", actor())
        problems = self.refused("BadConfiguration", s.call, "Reload")["problems"]
        self.assertEqual(["actor.group" in problems[0], "sleeper.group" in problems[1], len(problems)],
                         [True, True, 2])
        self.assertIn("Type=", problems[0])
        groups = s.call("GetStatus")["groups"]
        self.assertEqual([(g["name"], g["type"]) for g in groups], [("actor", "actor"), ("sleeper", "service")])
        bell.ring()
        self.assertEqual(s.wait_job(running)["result"], text("first"))
        self.assertEqual(s.wait_job(queued)["result"], text("second"))
        self.assertEqual([s.worker("actor/0")["generation"], s.worker("sleeper/0")["generation"]], [1, 1])

    def test_the_type_can_change_once_the_group_has_gone(self):
        s = self.started({"actor": actor(), "changing": actor()})
        remove(s, "changing")
        s.until(gone(s, "changing"))
        s.write("changing.group", service("/bin/sleep infinity"))
        self.assertEqual(s.call("Reload")["added"], ["changing"])
        self.assertEqual(s.group("changing")["type"], "service")

    @unittest.skipIf(SANITIZED, "a sanitizer needs more address space than the limit leaves")
    def test_one_that_runs_out_of_memory_half_way_leaves_a_configuration_to_work_with(self):
        s = self.started({"actor": actor()}, conf="[Supervisor]\nDeathsMax=50\nClientsMax=50\n")
        s.write("troupe.conf", "[Supervisor]\nDeathsMax=50\nClientsMax=4\n")
        s.write("actor.group", actor(2))
        s.write("huge.group", actor(4096))
        vm = s.status_field("VmSize") * 1024
        for room in range(1, 32):  # MiB; without the memory to read the files, nothing is applied
            unlimited = resource.prlimit(s.supervisor_pid, resource.RLIMIT_AS, (vm + (room << 20), resource.RLIM_INFINITY))
            self.assertRaises(VarlinkError, s.call, "Reload")
            resource.prlimit(s.supervisor_pid, resource.RLIMIT_AS, unlimited)
            if "could not be applied whole" in s.log():
                break
        self.assertIn("could not be applied whole", s.log())
        s.call("Pause", target="actor")
        s.call("Resume", target="actor")
        self.assertEqual(s.do("actor", "echo on")["result"], text("on"))
        first = s.connect()
        self.assertEqual(self.clients_taken(s, first, 10), 4)  # the bound of the new file
        s.write("huge.group", actor(1))
        self.assertEqual(first.call("Reload")["added"], ["huge"])
        self.assertEqual(s.group("actor")["size"], 2)
        self.assertEqual(first.call("Do", group="huge", payload=text("echo"))["job"]["state"], "succeeded")

    def alone(self, connection):
        while connection.call("GetInfo")["clients"] > 1:
            pass

    def clients_taken(self, s, first, count):
        """The number of clients that are served at the same time, of so many that try."""
        self.alone(first)
        taken = 1
        with contextlib.ExitStack() as connections:
            for _ in range(count - 1):
                try:
                    connections.enter_context(Varlink(s.socket_path)).call("GetInfo")
                    taken += 1
                except (EOFError, ConnectionError, VarlinkError):
                    pass
        self.alone(first)
        return taken

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_a_service_whose_user_has_changed_is_heard_as_the_new_one(self):
        def notifier(user):
            return service(helper("workers/notifier"), Group={"User": user}, Worker={"WatchdogSec": "1s"})

        def says(uid, at_least):
            words = (s.worker("n/0").get("status") or "uid -1, 0 signs of life").split()
            return words[1] == f"{uid}," and int(words[2]) >= at_least
        s = self.started({"n": notifier("nobody")})
        s.until(lambda: says(65534, 1))
        s.write("n.group", notifier("daemon"))
        s.call("Reload")
        s.until(lambda: says(1, 50))  # twice its WatchdogSec=, and more
        self.assertEqual(s.worker("n/0")["generation"], 2)
        self.assertEqual([death["cause"] for death in s.deaths()], ["stop"])

    def test_less_Prefetch_holds_for_workers_that_are_at_work(self):
        s = self.started({"actor": ini(ACTOR, Pool={"Prefetch": 3})})
        bell = Bell(s, "bell")
        jobs = [s.create("actor", f"wait {bell.path}") for _ in range(2)]
        s.until(lambda: s.group("actor")["running"] == 2)
        s.write("actor.group", ini(ACTOR, Pool={"Prefetch": 1}))
        s.call("Reload")
        jobs.append(s.create("actor", "echo"))
        s.call("GetInfo")
        self.assertEqual((s.group("actor")["running"], s.group("actor")["queued"]), (2, 1))
        bell.ring(2)
        for job in jobs:
            self.assertEqual(s.wait_job(job)["state"], "succeeded")

    def test_a_resize_outlives_reloads_that_change_something_else(self):
        s = self.started({"actor": actor(2)})
        s.call("Resize", target="actor", size=3, wait=True)
        s.write("actor.group", actor(2, Jobs={"MaxRetries": 1}))
        self.assertEqual(s.call("Reload")["changed"], ["actor"])
        self.assertEqual(s.group("actor")["size"], 3)
        s.write("actor.group", actor(1))
        s.call("Reload")
        s.until(lambda: len(s.group("actor")["workers"]) == 1)


class Removals(TestCase):
    def test_a_removed_group_goes_when_its_last_job_is_cancelled_though_its_workers_are_stopped(self):
        s = self.started({"actor": actor(), "other": actor()})
        s.call("Pause", target="actor")
        s.create("actor", "echo", id="last")
        remove(s, "actor")
        s.call("Stop", target="actor", wait=True)
        self.assertEqual(s.job("last")["state"], "queued")
        s.call("Cancel", id="last")
        s.until(gone(s, "actor"))

    def test_a_shorter_time_to_keep_results_holds_for_those_that_are_kept(self):
        s = self.started({"actor": actor()})
        old = [s.create("actor", "echo", id=f"job-{i}") for i in range(3)]
        for job in old:
            s.wait_job(job)
        s.write("actor.group", actor(Jobs={"ResultsMax": 2}))
        s.call("Reload")
        self.refused("NoSuchJob", s.job, old[0])
        self.assertEqual(s.job(old[2])["state"], "succeeded")
        s.write("actor.group", actor(Jobs={"ResultTTLSec": "1ms"}))
        s.call("Reload")
        s.until(lambda: s.group("actor")["results"] == 0)
        s.create("actor", "echo")
        s.until(lambda: (lambda g: g["succeeded"] == 4 and g["results"] == 0)(s.group("actor")))

    def test_a_removed_group_that_comes_back_while_it_drains_takes_jobs_again(self):
        s = self.started({"actor": actor()})
        job, bell = s.busy("actor", "echo old")
        remove(s, "actor")
        s.write("actor.group", actor())
        s.call("Reload")
        new = s.create("actor", "echo new")
        bell.ring()
        self.assertEqual(s.wait_job(job)["result"], text("old"))
        self.assertEqual(s.wait_job(new)["result"], text("new"))
        self.assertEqual(states(s, "actor"), [("idle", 1)])
