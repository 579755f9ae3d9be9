# SPDX-License-Identifier: MIT
"""cancel, move, set and run-now take the same filters, and change exactly the jobs that a dry run has counted."""
import os
import unittest

import test_access
import test_backlog
import test_durable
from test_backlog import IN_MEMORY
from test_durable import HOUR, actor
from troupe import ACTOR, QUICK, Bell, TestCase, ini

JOBS = "io.troupe.Jobs."


def group(**jobs):
    return ini(ACTOR, Restart=QUICK, Jobs={"MaxRetries": 3, "BackoffMinSec": "1h", "BackoffMaxSec": "1h", **jobs})


def changed(s, *arguments):
    """How many jobs a verb changes, which is what it has counted before."""
    counted = s.ctl_json(*arguments, "--dry-run")
    done = s.ctl_json(*arguments)
    assert (done["changed"], done["failed"]) == (counted["changed"], counted["failed"]), (counted, done)
    return done["changed"]


class InMemory(TestCase):
    def begin(self, **groups):
        s = self.started({"a": group(), "b": group(), **groups})
        for name in ("a", "b", *groups):
            s.call("Pause", target=name)
        return s

    def states(self, s, name):
        jobs = s.call(JOBS + "List", group=name)["jobs"]
        return {state: sum(job["state"] == state for job in jobs) for state in {job["state"] for job in jobs}}

    def test_Q15_move_takes_jobs_that_wait_with_what_they_wait_for(self):
        s = self.begin()
        for key in "x", "x", "y":
            s.create("a", "echo", key=key, max_retries=7)
        s.create("a", "echo", delay_usec=HOUR)
        self.assertEqual(changed(s, "move", "b", "--all", "a", "--key", "x"), 2)
        self.assertEqual(self.states(s, "b"), {"queued": 2})
        self.assertEqual(changed(s, "move", "b", "--all", "a", "--state", "delayed"), 1)
        self.assertEqual(changed(s, "move", "b", "--all", "a", "--older-than", "1h"), 0)
        self.assertEqual([changed(s, "set", "priority=9", "--all", "b", "--text", text) for text in ("x", "X")], [2, 0])
        s.create("b", "echo", id="as-named", delay_usec=HOUR, key="y")
        self.assertEqual(s.ctl_json("cancel", "--all", "b", "--text", "-named")["cancelled"], 1)
        self.assertEqual(s.ctl("move", "b", "--all", "a", check=True).stdout, "a: 1 job moved\n")
        self.assertEqual((self.states(s, "a"), self.states(s, "b")), ({}, {"queued": 3, "delayed": 1}))
        self.assertEqual({name: s.group(name)["queued"] for name in "ab"}, {"a": 0, "b": 3})
        self.assertEqual({job["max_attempts"] for job in s.call(JOBS + "List", group="b")["jobs"]}, {4, 8})
        s.call("Resume", target="b")
        s.until(lambda: s.group("b")["succeeded"] == 3)
        self.assertEqual(s.group("a")["succeeded"], 0)

    def test_Q9_Q15_jobs_that_wait_for_others_move_and_wait_on(self):
        s = self.begin()
        s.create("a", "echo", id="first", delay_usec=HOUR)
        for id in "second", "third":
            s.create("a", "echo", id=id, after="first")
        self.assertEqual(changed(s, "move", "b", "--all", "a", "--state", "pending"), 2)
        self.assertEqual(s.call(JOBS + "Set", id="second", priority=3)["changed"], 1)
        self.refused("NotWaiting", s.call, JOBS + "Set", id="second", delay_usec=HOUR)
        self.refused("NotWaiting", s.call, JOBS + "RunNow", id="third")
        self.assertEqual((self.states(s, "a"), self.states(s, "b")), ({"delayed": 1}, {"pending": 2}))
        self.assertEqual((s.group("a").get("pending", 0), s.group("b")["pending"]), (0, 2))
        for name in "ab":
            s.call("Resume", target=name)
        s.call(JOBS + "RunNow", id="first")
        s.until(lambda: (s.group("a")["succeeded"], s.group("b")["succeeded"]) == (1, 2))

    def test_Q15_move_leaves_running_jobs_and_refuses_what_cannot_be(self):
        s = self.started({"a": group(), "b": group(), "keyed": ini(ACTOR, Pool={"Cells": "by-key"}),
                          "small": group(QueueMax=1), "service": ini(ACTOR, Group={"Type": "service"})})
        s.busy("a", id="held")
        waiting = s.create("a", "echo")
        s.create("a", "echo", key="k")
        self.assertEqual(self.refused("NotWaiting", s.call, JOBS + "Move", id="held", to="b")["state"], "running")
        for to, error in ("nobody", "NoSuchGroup"), ("service", "NotAnActor"):
            self.refused(error, s.call, JOBS + "Move", id=waiting, to=to)
        self.assertIn("key", self.refused("NotChanged", s.call, JOBS + "Move", id=waiting, to="keyed")["problem"])
        s.call("Pause", target="small")
        self.assertEqual(s.ctl_json("move", "small", "--all", "a", "--dry-run")["changed"], 2)
        process = s.ctl("move", "small", "--all", "a")
        self.assertEqual((process.returncode, process.stdout), (1, "a: 1 job moved\n"))
        self.assertIn("QueueMax=", process.stderr)
        s.call("Drain", target="b")
        self.refused("Draining", s.call, JOBS + "Move", filter={"group": "a"}, to="b")
        self.refused("BadOption", s.call, JOBS + "Move", to="small")
        self.refused("BadOption", s.call, JOBS + "Move", filter={"group": "a", "state": "running"}, to="small")
        self.assertEqual(s.job("held")["state"], "running")

    def test_Q15_move_keeps_limits_and_unique_keys_right(self):
        limited = {"Limits": {"Running": "1", "RunningPer": "key"}}
        s = self.begin(limited=ini(ACTOR, Pool={"Size": 4}, **limited), free=ini(ACTOR, Pool={"Size": 4}))
        s.call("Resume", target="limited")
        go = Bell(s, "go")
        for number in range(3):
            s.create("limited", f"wait {go.path}", key="k", id=f"job-{number}")
        s.until(lambda: s.group("limited")["running"] == 1)
        self.assertEqual(changed(s, "move", "free", "--all", "limited"), 2)
        s.call("Resume", target="free")
        s.until(lambda: s.group("free")["running"] == 2)
        go.ring(3)
        s.until(lambda: (s.group("free")["succeeded"], s.group("limited")["succeeded"]) == (2, 1))
        first = s.create("a", "echo", unique="u")
        s.call(JOBS + "Move", id=first, to="b")
        self.assertEqual(self.refused("UniqueTaken", s.create, "a", "echo", unique="u", on_conflict="reject"), {"holder": first})
        s.create("b", "echo", unique="u", on_conflict="reject")
        s.call("Resume", target="b")
        s.until(lambda: s.group("b")["succeeded"] == 2)
        s.create("a", "echo", unique="u", on_conflict="reject")

    def test_Q15_set_and_run_now_change_when_jobs_begin(self):
        s = self.begin()
        for number in range(4):
            s.create("a", f"note {s.path('notes')} {number}", key=str(number % 2))
        self.assertEqual(changed(s, "set", "priority=1", "--all", "a", "--key", "1"), 2)
        self.assertEqual(s.ctl("set", "priority=64", "--all", "a").returncode, 2)
        self.refused("BadOption", s.call, JOBS + "Set", filter={"group": "a"}, priority=64)
        self.assertEqual(changed(s, "set", "delay=1h", "--all", "a", "--key", "0"), 2)
        self.assertEqual(self.states(s, "a"), {"queued": 2, "delayed": 2})
        s.call("Resume", target="a")
        s.until(lambda: s.group("a")["succeeded"] == 2)
        failed = s.create("a", "retry 1 no")
        s.wait_job_state(failed, "backoff")
        self.assertEqual(changed(s, "run-now", "--all", "a", "--state", "delayed"), 2)
        s.until(lambda: s.group("a")["succeeded"] == 4)
        self.assertEqual(self.notes(s), [1, 3, 0, 2])
        self.assertEqual(changed(s, "run-now", "--all", "a"), 1)
        s.until(lambda: s.job(failed)["attempt"] == 2)
        self.assertEqual(changed(s, "run-now", "--all", "b"), 0)

    notes = staticmethod(test_backlog.Backlog.notes)


class OnDisk(test_durable.Case):
    fill, notes = (staticmethod(function) for function in (test_backlog.Backlog.fill, test_backlog.Backlog.notes))
    noted, run_all = test_backlog.Backlog.noted, test_backlog.Backlog.run_all

    def begin(self, **groups):
        s = self.durable({"other": actor(1, Durable="yes", QueueMax=100000), "volatile": ini(ACTOR), **groups},
                         QueueMax=100000).start()
        for name in "kept", "other":
            s.call("Pause", target=name)
        return s

    def test_Q15_jobs_on_disk_move_and_run_once_in_their_order(self):
        s = self.begin()
        count = 3 * IN_MEMORY
        self.fill(s, self.noted(s, range(count)), connections=1)
        self.assertEqual(changed(s, "move", "other", "--all", "kept"), count)
        self.assertEqual({name: s.group(name)["queued"] for name in ("kept", "other")}, {"kept": 0, "other": count})
        self.assertEqual(self.rows(s, "DISTINCT grp, moved"), [("other", None)])
        self.restart(s)
        s.until(lambda: s.group("other")["succeeded"] == count)
        self.assertEqual(self.notes(s), list(range(count)))

    def test_Q15_jobs_that_move_to_and_fro_run_once(self):
        s = self.begin()
        count = 2 * IN_MEMORY + 10
        self.fill(s, self.noted(s, range(count)))
        for source, target in ("kept", "other"), ("other", "kept"), ("kept", "other"):
            self.assertEqual(changed(s, "move", target, "--all", source), count)
        s.call("Resume", target="other")  # the other group, which is paused, hands out none of them
        s.until(lambda: s.group("other")["succeeded"] == count)
        self.assertEqual(sorted(self.notes(s)), list(range(count)))
        self.assertEqual(s.group("kept")["succeeded"], 0)

    def test_Q15_a_group_does_not_read_jobs_that_have_left_it(self):
        s = self.begin()
        count, others = 2 * IN_MEMORY, IN_MEMORY + 10
        self.fill(s, [("echo", {})] * others, group="other")
        for key, numbers in ("early", range(count - 10)), ("late", range(count - 10, count)):
            self.fill(s, self.noted(s, numbers, key=key))
        self.assertEqual(changed(s, "move", "other", "--all", "kept", "--key", "late"), 10)
        self.run_all(s, count - 10)
        self.assertEqual((s.group("kept")["queued"], s.group("other")["queued"]), (0, others + 10))
        s.call("Resume", target="other")
        s.until(lambda: s.group("other")["succeeded"] == others + 10)
        self.assertEqual(sorted(self.notes(s)), [*range(count)])

    def test_Q15_durable_jobs_do_not_move_to_a_group_that_is_not(self):
        s = self.begin()
        job = s.create("kept", "echo")
        self.assertEqual(self.refused("OtherDurability", s.call, JOBS + "Move", filter={"group": "kept"}, to="volatile"),
                         {"group": "kept", "to": "volatile"})
        self.assertIn("durable", self.refused("NotChanged", s.call, JOBS + "Move", id=job, to="volatile")["problem"])
        self.assertEqual(s.job(job)["group"], "kept")

    def test_Q15_a_change_survives_a_crash(self):
        s = self.begin()
        first, second, third = (s.create("kept", "echo", delay_usec=HOUR) for _ in range(3))
        s.call(JOBS + "Set", id=first, priority=5)
        s.call(JOBS + "Set", id=second, delay_usec=5 * HOUR)
        s.call(JOBS + "Move", id=third, to="other")
        before = s.job(second)["next_attempt_at"]
        self.restart(s)
        self.assertEqual(s.job(third)["group"], "other")
        self.assertEqual(s.job(first)["priority"], 5)
        self.assertAlmostEqual(s.job(second)["next_attempt_at"], before, delta=HOUR)
        s.call("Pause", target="kept")
        s.call(JOBS + "RunNow", id=second)
        self.assertEqual(s.job(second)["state"], "queued")
        self.restart(s)
        self.assertEqual(s.wait_job(second)["state"], "succeeded")

    def test_Q15_urgent_jobs_overtake_those_on_disk(self):
        s = self.begin()
        count = 3 * IN_MEMORY
        self.fill(s, [(data, {"key": "late" if n >= count - 5 else "early"}) for n, (data, _) in enumerate(self.noted(s, range(count)))],
                  connections=1)
        self.assertEqual(changed(s, "set", "priority=0", "--all", "kept", "--key", "late"), 5)
        self.run_all(s, count)
        self.assertEqual(self.notes(s), [*range(count - 5, count), *range(count - 5)])

    def test_U4_Q15_jobs_move_from_a_group_that_no_file_describes(self):
        s = self.begin()
        for _ in range(3):
            s.create("kept", "echo")
        s.stop()
        os.unlink(f"{s.config}/kept.group")
        s.start()
        s.until_restored()
        self.assertEqual(s.group("kept")["queued"], 3)
        self.assertEqual(changed(s, "move", "other", "--all", "kept"), 3)
        s.call("Resume", target="other")
        s.until(lambda: s.group("other")["succeeded"] == 3)

    def test_Q15_a_crash_in_the_middle_leaves_each_job_in_one_of_the_groups(self):
        s = self.begin()
        count = 2 * IN_MEMORY
        self.fill(s, self.noted(s, range(count)))
        with s.connect() as connection:
            connection.send(JOBS + "Move", {"filter": {"group": "kept"}, "to": "other"})
            s.until(lambda: s.group("other")["queued"] > 100)
            self.restart(s)
        s.until(lambda: s.group("other")["succeeded"] + s.group("kept")["succeeded"] == count)
        self.assertEqual(sorted(self.notes(s)), list(range(count)))


@unittest.skipIf(os.geteuid() != 0, "needs root to be several users")
class OfSubmitters(TestCase):
    begin = test_access.Submitters.begin

    def test_Q15_Q17_a_submitter_changes_its_own_jobs_only(self):
        s = self.begin()
        s.call("Pause", target="mail")
        s.create("mail", "echo")
        with test_access.user(test_access.SUBMITTER_ID):
            own = s.create("mail", "echo")
            later = s.create("mail", "echo", delay_usec=HOUR)
            everything = {"group": "mail"}
            self.assertEqual(s.call(JOBS + "Set", filter=everything, priority=40)["changed"], 2)
            self.assertEqual(self.refused("BadOption", s.call, JOBS + "Set", filter=everything, priority=31)["option"], "priority")
            self.assertEqual(s.call(JOBS + "RunNow", filter=everything)["changed"], 1)
            self.assertEqual(s.job(later)["state"], "queued")
            self.refused("NotPermitted", s.call, JOBS + "Move", filter=everything, to="other")
            self.refused("NotPermitted", s.call, JOBS + "CancelAll", group="other")
            self.assertEqual(s.call(JOBS + "CancelAll", group="mail")["cancelled"], 2)
            self.assertEqual(s.job(own)["state"], "cancelled")
        self.assertEqual(s.group("mail")["queued"], 1)

