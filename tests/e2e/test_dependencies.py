# SPDX-License-Identifier: MIT
"""Jobs that wait for other jobs, and batches."""
import os
import signal
from pathlib import Path

from test_access import user
from test_durable import HOUR, Case, actor
from troupe import ACTOR, LIMIT, TROUPE_EXEC, Bell, VarlinkError, ended, ini, text

JOBS = "io.troupe.Jobs."


class Ties(Case):
    def both(self, **jobs):
        """A supervisor with a group of each kind; yields their names."""
        s = self.durable({"actor": actor(2, **jobs)}, 2, **jobs).start()
        for group in "actor", "kept":
            with self.subTest(group=group):
                yield s, group

    def after(self, s, group, parents, condition="success", payload="echo child", **options):
        parents = parents if isinstance(parents, str) else ",".join(parents)
        return s.create(group, payload, after=parents, condition=condition, **options)

    @staticmethod
    def is_unknown(s, id):
        try:
            return not s.job(id)
        except VarlinkError as error:
            return error.name.endswith("NoSuchJob")

    def disasters(self, s, group):
        return [lambda: s.ctl("upgrade", check=True)] + ([s.crash, lambda: self.restart(s)] if group == "kept" else [])


class Dependencies(Ties):
    def test_Q9_a_child_begins_when_all_parents_have_ended(self):
        for s, group in self.both():
            (one, go), two = s.busy(group), s.create(group, "echo two", delay_usec=HOUR)
            three = s.create(group, "echo three")
            s.wait_job(three)
            child = self.after(s, group, [one, two, three])
            s.until(lambda: s.job(child).get("waits_for") == 2)  # pylint: disable=cell-var-from-loop
            self.assertEqual(s.job(child)["state"], "pending")
            self.assertEqual([parent["id"] for parent in s.job(child)["after"]], [one, two, three])
            wait = s.call(JOBS + "Explain", id=child)["waits"][0]
            self.assertEqual((wait["cause"], wait["target"], wait["count"], wait["text"]), ("dependency", one, 2, "3"))
            self.assertIn("waits for 2 of 3 jobs", s.ctl("why", child, check=True).stdout)
            self.assertIn("waits for 2 of 3 jobs", s.ctl("jobs", group, check=True).stdout)
            self.assertIn(f"{one}", s.ctl("job", child, check=True).stdout)
            self.assertEqual((s.group(group)["pending"], s.group(group)["queued"]), (1, 0))
            self.assertIn("1 wait for other jobs", s.ctl("status", group).stdout)
            s.call("Cancel", id=two)
            self.assertEqual(s.wait_job(child)["cause"], "dependency")
            go.ring()
            end = self.after(s, group, [one, two, three], "end")
            self.assertEqual(s.wait_job(end)["result"], text("child"))
            self.assertGreaterEqual(s.job(end)["started_at"], s.wait_job(one)["ended_at"])
            self.assertEqual(s.group(group).get("pending", 0), 0)

    def test_Q9_tree_draws_parents_below_their_children(self):
        s = self.durable().start()
        s.call("Pause", target="kept")
        for id, after in (("a", ""), ("b", "a"), ("c", "a"), ("d", "b,c")):
            s.create("kept", "echo", id=id, **({"after": after} if after else {}))
        self.assertEqual(s.ctl("tree", "d", check=True).stdout.split("\n"), [
            "○ d  pending  kept",
            "├─ ○ b  pending  kept",
            "│  └─ ○ a  queued  kept",
            "└─ ○ c  pending  kept",
            "   └─ ○ a  queued", ""])
        self.assertEqual([job["id"] for job in s.ctl_json("tree", "d")["jobs"]], list("dbaca"))
        unknown = s.ctl("tree", "nothing")
        self.assertEqual(unknown.returncode, 5)
        self.assertIn("nothing", unknown.stderr)

    def test_Q9_whatever_ends_a_parent_decides_its_children(self):
        for s, group in self.both():
            def killed():
                id, _ = s.busy(group, max_retries=0)  # pylint: disable=cell-var-from-loop
                return id, lambda: os.kill(s.worker(s.job(id)["worker"])["pid"], signal.SIGKILL), "dead"

            def cancelled():
                id, go = s.busy(group)  # pylint: disable=cell-var-from-loop
                return id, lambda: (s.call("Cancel", id=id), go.ring()), "cancelled"

            def late():
                id = s.create(group, "echo", delay_usec=HOUR, deadline_usec=300000)  # pylint: disable=cell-var-from-loop
                return id, lambda: None, "cancelled"

            def waiting():
                id = s.create(group, "echo", delay_usec=HOUR)  # pylint: disable=cell-var-from-loop
                return id, lambda: s.call("Cancel", id=id), "cancelled"

            for make in killed, cancelled, late, waiting:
                with self.subTest(how=make.__name__):
                    parent, end, state = make()
                    children = [self.after(s, group, parent, condition) for condition in ("success", "failure", "end")]
                    grandchild = self.after(s, group, children[0])
                    other = self.after(s, group, children[0], "failure")
                    end()
                    self.assertEqual(s.wait_job(parent)["state"], state)
                    first = s.wait_job(children[0])
                    self.assertEqual((first["state"], first["cause"]), ("cancelled", "dependency"))
                    self.assertEqual(first["reason"], f"job {parent}, which it waited for, has ended: {state}")
                    self.assertEqual([s.wait_job(child)["state"] for child in children[1:]], ["succeeded", "succeeded"])
                    self.assertEqual(s.wait_job(grandchild)["cause"], "dependency")
                    self.assertEqual(s.wait_job(other)["state"], "succeeded")

    def test_Q9_ended_parents_count_as_long_as_they_are_known(self):
        for s, group in self.both():
            done, rejected = s.create(group, "echo"), s.create(group, "reject no")
            dead = s.create(group, "retry no", max_retries=0)
            ends = [s.wait_job(id)["state"] for id in (done, rejected, dead)]
            self.assertEqual(ends, ["succeeded", "rejected", "dead"])
            for parent in done, rejected, dead:
                for condition in "success", "failure", "end":
                    holds = condition == "end" or (condition == "success") == (parent == done)
                    job = s.wait_job(self.after(s, group, parent, condition))
                    self.assertEqual(job["state"], "succeeded" if holds else "cancelled")
            self.assertEqual(self.refused("NoSuchJob", self.after, s, group, [done, "nobody"])["id"], "nobody")
            for wrong in "", "a,,b", ",", ",".join(f"job-{n}" for n in range(65)), "a b":
                self.refused("BadOption", self.after, s, group, wrong)
            self.refused("BadOption", s.create, group, "echo", condition="end")
            refused = s.ctl("create", group, "--after", "nobody")
            self.assertEqual((refused.returncode, "there is no job 'nobody'" in refused.stderr), (5, True), refused.stderr)
            refused = s.ctl("do", group, "--after", f"{done},nobody")
            self.assertEqual((refused.returncode, "nobody" in refused.stderr), (5, True), refused.stderr)
            self.assertEqual(s.ctl("do", group, "-d", "echo yes", "--after", rejected, "--if", "failure", check=True).stdout, "yes")
            self.assertEqual(s.ctl("do", group, "--after", rejected).returncode, 1)

    def test_Q9_a_dead_letter_is_an_end_and_its_retry_revives_nobody(self):
        for s, group in self.both(ResultTTLSec="1ms"):
            dead = s.create(group, "retry no", max_retries=0)
            s.until(lambda: s.group(group)["dead"] == 1)  # pylint: disable=cell-var-from-loop
            self.after(s, group, dead)
            s.until(lambda: s.group(group)["cancelled"] == 1)  # pylint: disable=cell-var-from-loop
            s.until(lambda: s.group(group)["results"] == 0)  # pylint: disable=cell-var-from-loop
            for _ in range(2):
                late = self.after(s, group, dead, "failure", delay_usec=HOUR)
                self.assertEqual(s.job(late)["after"], [{"id": dead, "condition": "failure", "state": "dead"}])
                s.ctl("upgrade", check=True)
                self.assertEqual(s.job(late)["after"][0]["id"], dead)
            s.ctl("retry", dead, check=True)
            s.until(lambda: s.group(group)["dead"] == 2)  # pylint: disable=cell-var-from-loop
            self.assertEqual((s.group(group)["cancelled"], s.group(group)["succeeded"]), (1, 0))

    def test_Q9_a_job_waits_for_many_dead_letters(self):
        for s, group in self.both(ResultTTLSec="1ms"):
            dead = [s.create(group, "retry no", max_retries=0) for _ in range(3)]
            s.until(lambda: s.group(group)["dead"] == 3)  # pylint: disable=cell-var-from-loop
            s.until(lambda: s.group(group)["results"] == 0)  # pylint: disable=cell-var-from-loop
            self.assertEqual(s.do(group, "echo child", after=",".join(dead), condition="failure")["state"], "succeeded")
            self.assertEqual(self.refused("NoSuchJob", self.after, s, group, [*dead, "nobody"])["id"], "nobody")

    def test_Q9_a_durable_job_waits_for_durable_jobs_only(self):
        s = self.durable({"actor": ini(ACTOR)}).start()
        lost, kept = s.create("actor", self.endless(s)), s.create("kept", self.endless(s))
        self.assertEqual(self.refused("NotDurable", self.after, s, "kept", lost)["id"], lost)
        self.assertEqual(s.job(self.after(s, "actor", kept))["state"], "pending")

    def test_Q9_children_wait_across_a_crash_an_upgrade_and_a_restart(self):
        for s, group in self.both():
            for happens in self.disasters(s, group):
                parent = s.create(group, "echo first", delay_usec=HOUR)
                second = s.create(group, "echo second")
                s.wait_job(second)
                child = self.after(s, group, [parent, second], "end")
                grandchild = self.after(s, group, child, "success", id="chosen-" + child[:8])
                happens()
                s.until_restored()
                self.assertEqual(s.job(child)["state"], "pending")
                self.assertEqual(s.job(child)["waits_for"], 1)
                self.assertEqual(s.job(grandchild)["after"][0]["id"], child)
                s.call("Cancel", id=parent)
                self.assertEqual(s.wait_job(child)["state"], "succeeded")
                self.assertEqual(s.wait_job(grandchild)["state"], "succeeded")

    def test_Q9_a_parent_in_hand_decides_after_a_disaster(self):
        for s, group in self.both():
            for happens in self.disasters(s, group)[:2]:
                parent, go = s.busy(group)
                child, other = self.after(s, group, parent), self.after(s, group, parent, "failure")
                happens()
                go.ring()
                self.assertEqual(s.wait_job(child)["state"], "succeeded")
                self.assertEqual(s.wait_job(other)["cause"], "dependency")

    def test_Q9_the_bytes_of_a_child_in_hand_are_counted_once(self):
        for s, group in self.both():
            for happens in self.disasters(s, group)[:2]:
                parent = s.create(group, "echo")
                s.wait_job(parent)
                child, go = s.busy(group, after=parent, condition="end")
                happens()
                s.until_restored()
                self.assertLess(s.group(group)["queue_bytes"], 10000)
                go.ring()
                s.wait_job(child)
                self.assertEqual(s.group(group)["queue_bytes"], 0)

    def test_Q9_the_bytes_of_a_cancelled_child_whose_worker_died_in_a_crash_are_counted_once(self):
        s = self.supervisor({"kept": ini(ACTOR, Jobs={"Durable": "yes"}, Worker={"TimeoutStopSec": "1h"})}, state=True)
        s.start()
        parent = s.create("kept", "echo")
        s.wait_job(parent)
        child, _ = s.busy("kept", after=parent, condition="end")
        s.call("Cancel", id=child)
        worker = s.worker("kept/0")["pid"]
        os.kill(s.supervisor_pid, signal.SIGSTOP)
        os.kill(worker, signal.SIGKILL)
        s.crash()
        s.until_restored()
        self.assertEqual(s.wait_job(child)["state"], "cancelled")
        s.until(lambda: s.group("kept")["queue_bytes"] == 0)

    def test_Q9_an_upgrade_without_memory_for_what_a_job_waits_for_is_refused(self):
        s = self.supervisor({"actor": actor(2)})
        fault = Path(s.path("fault"))
        fault.write_text("tie-text:1", encoding="ascii")
        s.with_faults(f"@{fault}").start()
        parent, go = s.busy("actor")
        child = self.after(s, "actor", parent)
        self.assertIn("Cannot allocate memory", s.ctl("upgrade").stderr)
        s.ctl("upgrade", check=True)
        self.assertEqual(s.job(child)["state"], "pending")
        go.ring()
        self.assertEqual(s.wait_job(child)["state"], "succeeded")

    def test_Q9_a_crash_after_the_end_of_a_parent_leaves_no_child_undecided(self):
        for point in "job.end-given", "job.end-written", "job.end-told", "ties.decide":
            with self.subTest(point=point):
                s = self.durable(size=2).with_faults()
                s.environment["TROUPE_FAULT_POINT"] = f"@{s.path('point')}"
                with open(s.path("point"), "w", encoding="ascii") as file:
                    file.write(f"{point}:1")
                s.start()
                parent, go = s.busy("kept")
                children = [self.after(s, "kept", parent) for _ in range(3)] + [self.after(s, "kept", parent, "failure")]
                grandchild = self.after(s, "kept", children[3], "failure")
                with open(os.pidfd_open(s.supervisor_pid), "rb") as supervisor:
                    go.ring()
                    self.assertTrue(ended(supervisor.fileno(), LIMIT), "it has not crashed")
                s.crashed = True
                go.ring()  # in case it runs again
                self.assertEqual(s.wait_job(parent)["state"], "succeeded")
                self.assertEqual([s.wait_job(child)["state"] for child in children], 3 * ["succeeded"] + ["cancelled"])
                self.assertEqual(s.wait_job(grandchild)["state"], "succeeded")
                s.until(lambda s=s: self.rows(s, table="fate") == [])

    def test_Q9_a_parent_that_stays_on_disk_without_its_group_has_not_ended(self):
        s = self.durable().start()
        s.call("Stop", target="kept", wait=True)
        parent = s.create("kept", "echo", delay_usec=HOUR)
        child = self.after(s, "kept", parent, "end")
        file = os.path.join(s.config, "kept.group")
        os.rename(file, file + ".away")
        s.crash()
        s.until(lambda: "no file describes it any more" in s.log())
        os.rename(file + ".away", file)
        s.call("Reload")
        s.until_restored()
        self.assertEqual(s.job(child)["state"], "pending")
        s.call("Cancel", id=parent)
        self.assertEqual(s.wait_job(child)["state"], "succeeded")

    def test_Q9_an_ended_job_shows_what_it_waited_for(self):
        for s, group in self.both():
            done, late = s.create(group, "echo"), s.create(group, "echo", delay_usec=HOUR)
            s.wait_job(done)
            batch = s.call(JOBS + "OpenBatch", group=group)["id"]
            child = self.after(s, group, [done, late], "end", batch=batch)
            s.call("Cancel", id=late)
            s.wait_job(child)
            after = [{"id": done, "condition": "end", "state": "succeeded"}, {"id": late, "condition": "end", "state": "cancelled"}]
            for happens in [lambda: None] + self.disasters(s, group):
                happens()
                s.until_restored()
                self.assertEqual((s.job(child)["after"], s.job(child)["batch"]), (after, batch))

    def test_Q9_a_worker_learns_the_parents_of_its_job(self):
        s = self.supervisor({"actor": ini(ACTOR), "sh": ini(f"{TROUPE_EXEC} -- /bin/sh -c {{}}")}).start()
        parents = [s.create("actor", "echo"), s.create("actor", "echo", id="chosen")]
        show = "printf %s \"$TROUPE_JOB_PARENTS\""
        self.assertEqual(s.wait_job(self.after(s, "sh", parents, payload=show))["result"], text(",".join(parents)))
        self.assertEqual(s.do("sh", show)["result"], text(""))

    def test_Q9_edges_count_as_bytes_of_the_queue(self):
        s = self.supervisor({"actor": ini(ACTOR, Jobs={"QueueMemoryMax": "64K"})}).start()
        parents = [s.create("actor", self.endless(s)) for _ in range(50)]
        accepted = 0
        with self.assertRaises(VarlinkError) as raised:
            while True:
                self.after(s, "actor", parents)
                accepted += 1
        self.assertEqual((raised.exception.name, accepted < 10), ("Busy", True))

    def test_Q9_results_of_parents_are_kept_until_the_children_have_ended(self):
        for s, group in self.both(ResultTTLSec="1ms", ResultsMax=1):
            begun, go = Bell(s, f"begun-{group}"), Bell(s, f"go-{group}")
            s.call("Pause", target=group)
            parents = [s.create(group, f"echo {n}") for n in range(3)]
            self.after(s, group, parents, payload=f"ring {begun.path}\nwait {go.path}\necho")
            s.call("Resume", target=group)
            begun.wait()
            for happens in [lambda: None] + self.disasters(s, group)[:2]:
                happens()
                s.until_restored()
                self.assertEqual([s.job(parent)["result"] for parent in parents], [text(str(n)) for n in range(3)])
            go.ring()
            s.until(lambda: s.group(group)["running"] == 0)  # pylint: disable=cell-var-from-loop
            for parent in parents:
                s.until(lambda: self.is_unknown(s, parent))  # pylint: disable=cell-var-from-loop

    def test_Q17_only_readers_of_a_job_may_wait_for_it(self):
        s = self.supervisor({"actor": ini(ACTOR, Group={"SubmitUser": "nobody"})}).start()
        os.chmod(s.socket_path, 0o666)
        parent = s.create("actor", self.endless(s))
        with user(65534):
            self.assertEqual(s.ctl("create", "actor", "--after", parent).returncode, 4)
            self.assertEqual(s.ctl("do", "actor", "--after", parent).returncode, 4)
            own = s.ctl("create", "actor", "-d", "echo", check=True).stdout.strip()
            s.ctl("create", "actor", "--after", own, check=True)
            batch = s.ctl("batch", "create", "actor", check=True).stdout.strip()
        s.create("actor", "echo", batch=batch)
        root = s.call(JOBS + "OpenBatch", group="actor")["id"]
        with user(65534):
            self.assertEqual(s.ctl("create", "actor", "--batch", root).returncode, 4)
            self.assertEqual(s.ctl("batch", "close", root).returncode, 4)
            s.ctl("batch", "close", batch, check=True)


class Batches(Ties):
    def open(self, s, group, **options):
        return s.call(JOBS + "OpenBatch", group=group, options=options)["id"]

    def close(self, s, id):
        s.call(JOBS + "CloseBatch", id=id)

    def test_Q10_a_batch_ends_when_it_is_closed_and_its_members_have_ended(self):
        for s, group in self.both():
            batch = self.open(s, group)
            child = self.after(s, group, batch)
            self.assertIn("open for more members", s.ctl("why", batch, check=True).stdout)
            held, go = s.busy(group, batch=batch)
            s.wait_job(s.create(group, "echo", batch=batch))
            self.close(s, batch)
            self.close(s, batch)
            self.assertEqual(s.job(batch)["members"], {"open": False, "live": 1, "succeeded": 1, "failed": 0})
            self.assertEqual((s.job(batch)["state"], s.job(child)["state"], s.job(held)["batch"]), ("pending", "pending", batch))
            self.assertIn("a member of the batch has not ended", s.ctl("why", batch, check=True).stdout)
            late = s.create(group, "echo", batch=batch)
            go.ring()
            job = s.wait_job(batch)
            self.assertEqual((job["state"], job["attempt"], job["code"]), ("succeeded", 0, 0))
            self.assertEqual(s.job(late)["state"], "succeeded")
            self.assertEqual(s.wait_job(child)["state"], "succeeded")
            self.assertEqual(self.refused("BatchOver", s.create, group, "echo", batch=batch)["id"], batch)
            self.assertEqual(self.refused("NotABatch", s.create, group, "echo", batch=held)["id"], held)
            self.refused("NotABatch", self.close, s, held)
            self.refused("NoSuchJob", self.close, s, "nobody")

    def test_Q10_a_batch_fails_with_a_member(self):
        for s, group in self.both():
            batch = self.open(s, group, id="batch-" + group)
            ids = [s.create(group, what, batch=batch, max_retries=0) for what in ("echo", "reject no", "retry no")]
            ids.append(s.create(group, "echo", batch=batch, delay_usec=HOUR))
            s.call("Cancel", id=ids[-1])
            child, cleanup = self.after(s, group, batch), self.after(s, group, batch, "failure")
            self.close(s, batch)
            job = s.wait_job(batch)
            self.assertEqual((job["state"], job["code"], job["reason"]), ("rejected", 1, "3 of 4 members did not succeed"))
            self.assertEqual(s.wait_job(child)["cause"], "dependency")
            self.assertEqual(s.wait_job(cleanup)["state"], "succeeded")
            letters = s.call("io.troupe.Actors.ListDeadLetters")["letters"]
            self.assertNotIn(batch, [letter.get("job") for letter in letters])

    def test_Q10_a_batch_without_members_ends_when_it_is_closed(self):
        for s, group in self.both():
            batch = s.ctl("batch", "create", group, check=True).stdout.strip()
            s.ctl("batch", "close", batch, check=True)
            self.assertEqual(s.wait_job(batch)["state"], "succeeded")
            batch = self.open(s, group)
            s.call("Cancel", id=batch)
            self.assertEqual(s.wait_job(batch)["cause"], "requested")

    def test_Q10_a_batch_survives(self):
        for s, group in self.both():
            for happens in self.disasters(s, group):
                batch = self.open(s, group)
                s.wait_job(s.create(group, "echo", batch=batch))
                s.wait_job(s.create(group, "reject no", batch=batch))
                held, go = s.busy(group, batch=batch)
                late = self.after(s, group, held, batch=batch, delay_usec=HOUR)
                happens()
                s.until_restored()
                self.assertEqual(s.job(batch)["members"], {"open": True, "live": 2, "succeeded": 1, "failed": 1})
                self.close(s, batch)
                happens()
                s.until_restored()
                self.assertEqual(s.job(batch)["members"], {"open": False, "live": 2, "succeeded": 1, "failed": 1})
                go.ring()
                self.assertEqual(s.wait_job(held)["state"], "succeeded")
                s.call("Cancel", id=late)
                self.assertEqual(s.wait_job(batch)["reason"], "2 of 4 members did not succeed")

    def test_Q10_a_group_of_unique_payloads_has_many_batches(self):
        for s, group in self.both(Unique="payload"):
            batch, other = self.open(s, group), self.open(s, group)
            self.assertNotEqual(batch, other)
            self.assertEqual(self.open(s, group, unique="one", on_conflict="existing"),
                             self.open(s, group, unique="one", on_conflict="existing"))

    def test_Q10_a_batch_that_was_closed_before_its_date_ends_then(self):
        for s, group in self.both():
            batch = self.open(s, group, delay_usec=HOUR)
            self.close(s, batch)
            self.assertEqual(s.job(batch)["state"], "delayed")
            s.call(JOBS + "RunNow", id=batch)
            self.assertEqual(s.wait_job(batch)["state"], "succeeded")

    def test_Q10_a_member_does_not_wait_for_its_batch(self):
        for s, group in self.both():
            batch = self.open(s, group)
            self.assertEqual(self.refused("WaitsForItself", self.after, s, group, batch, batch=batch)["id"], batch)
            last = self.after(s, group, self.after(s, group, batch))
            self.assertEqual(self.refused("WaitsForItself", self.after, s, group, last, batch=batch)["id"], batch)
            within = self.open(s, group)
            inner = self.after(s, group, self.after(s, group, batch), batch=within)
            self.assertEqual(self.refused("WaitsForItself", self.after, s, group, within, batch=batch)["id"], batch)
            member = self.after(s, group, s.create(group, "echo"), batch=batch)
            self.close(s, batch)
            self.close(s, within)
            for id in batch, member, last, inner, within:
                self.assertEqual(s.wait_job(id)["state"], "succeeded")
            self.assertEqual(self.refused("BadOption", self.open, s, group, batch=batch)["option"], "batch")

    def test_Q10_a_batch_and_its_members_are_durable_or_not(self):
        s = self.durable({"actor": ini(ACTOR)}).start()
        for group, other in ("actor", "kept"), ("kept", "actor"):
            batch = self.open(s, group)
            self.assertEqual(self.refused("NotDurable", s.create, other, "echo", batch=batch)["id"], batch)

    def test_Q10_map_in_the_background_makes_a_batch(self):
        for s, group in self.both():
            lines = "".join(f"echo {n}\n" for n in range(20)) + "reject no\n"
            batch = s.ctl("map", group, "--background", input=lines, check=True).stdout.strip()
            self.assertEqual(s.wait_job(batch)["reason"], "1 of 21 members did not succeed")


del Case, Ties
