# SPDX-License-Identifier: MIT
"""With a filter, cancel, retry and purge change exactly what a dry run has counted."""
import contextlib
import os

import test_backlog
from test_durable import Case
from troupe import ACTOR, QUICK, Bell, TestCase, Varlink, ini, text

ACTORS = "io.troupe.Actors."
JOBS = "io.troupe.Jobs."


def actor(**sections):
    return ini(ACTOR, **{"Restart": QUICK, "Jobs": {"BackoffMinSec": "1ms", "MaxRetries": 0},
                         "Resources": {"LimitCORE": 0}, **sections})


class Filters(TestCase):
    def dead(self, s, group, n, key=None):
        for _ in range(n):
            self.assertEqual(s.do(group, "retry 1 no", **({"key": key} if key else {}))["state"], "dead")

    def letters(self, s, **filters):
        return [letter["id"] for letter in s.call(ACTORS + "ListDeadLetters", filter=filters)["letters"]]

    def test_M8_purge_and_retry_touch_what_a_filter_chooses(self):
        s = self.started({"a": actor(), "b": actor()})
        self.dead(s, "a", 3, key="x")
        self.dead(s, "a", 2, key="y")
        self.dead(s, "b", 1)
        counted = s.ctl_json("purge", "--to", "a", "--key", "x", "--dry-run")
        self.assertEqual(counted["purged"], 3)
        self.assertEqual(len(self.letters(s)), 6)
        self.assertEqual(s.ctl_json("purge", "--to", "a", "--key", "x"), {"purged": 3})
        self.assertEqual(len(self.letters(s, recipient="a")), 2)
        self.assertEqual(len(self.letters(s, recipient="a", key="x")), 0)
        self.assertEqual(self.letters(s, until_at=1), [])
        self.assertEqual([len(self.letters(s, recipient="a", text=text)) for text in ("no", "y", "nobody")], [2, 2, 0])
        self.assertEqual(s.ctl_json("purge", "--text", "nobody", "--dry-run")["purged"], 0)
        counted = s.ctl_json("retry", "--to", "a", "--reason", "job", "--dry-run")
        self.assertEqual((counted["requeued"], counted["failed"]), (2, 0))
        self.assertEqual(s.ctl_json("retry", "--to", "a", "--reason", "job")["requeued"], 2)
        self.assertEqual(s.ctl("purge", "--all", "--dry-run", "--older-than", "1h").returncode, 2)
        self.assertRegex(s.ctl("purge", "--all", "--dry-run", check=True).stdout, r"^\d+ would be purged\n$")
        for span in "1h", "100y":
            self.assertEqual(s.ctl("purge", "--older-than", span, check=True).stdout, "0 purged\n")
        self.refused("BadOption", s.call, ACTORS + "Purge", id=1, dry_run=True)

    def test_M8_purge_and_retry_choose_by_why_the_last_attempt_failed(self):
        s = self.started({"a": actor(Jobs={"MaxRetries": 1}), "strict": actor(Sandbox={"SystemCallFilter": "~getcwd"})})
        for script in "retry 1 no", "retry 1 no", "before 2 retry 1 no\ncrash abort", "before 2 crash abort\nretry 1 no", "exit 3":
            self.assertEqual(s.do("a", script)["state"], "dead")
        self.assertEqual(s.do("strict", "directory")["state"], "dead")

        def purged(cause):
            counted = s.ctl_json("purge", "--cause", cause, "--dry-run")["purged"]
            self.assertEqual(s.ctl_json("purge", "--cause", cause), {"purged": counted})
            return counted
        self.assertEqual(s.ctl_json("retry", "--to", "a", "--cause", "exit")["requeued"], 1)
        self.assertEqual({cause: purged(cause) for cause in ("oom", "supervisor", "system-call", "signal", "retry")},
                         {"oom": 0, "supervisor": 0, "system-call": 1, "signal": 1, "retry": 3})
        self.assertIn("'cause' is missing or wrong; allowed: retry, exit", s.ctl("purge", "--cause", "bad").stderr)

    def test_M8_cancel_touches_what_a_dry_run_has_counted(self):
        s = self.started({"a": actor(Jobs={"MaxRetries": 3, "BackoffMinSec": "1h", "BackoffMaxSec": "1h"}), "b": actor()})
        for data in "retry 1 no", "crash abort", "retry 1 no":
            s.wait_job_state(s.create("a", data), "backoff")
        s.call("Pause", target="a")
        for key in "x", "x", "y":
            s.create("a", "echo", key=key)
        s.call("Pause", target="b")
        s.create("b", "echo")

        def cancel(target, *filters):
            counted = s.ctl_json("cancel", "--all", target, "--dry-run", *filters)["cancelled"]
            before = s.group("a")["cancelled"]
            self.assertEqual(s.ctl_json("cancel", "--all", target, *filters)["cancelled"], counted)
            self.assertEqual(s.group("a")["cancelled"] - before, counted)
            return counted
        self.assertEqual(cancel("a", "--older-than", "1h"), 0)
        self.assertEqual(cancel("a", "--cause", "signal"), 1)
        self.assertEqual(cancel("a", "--key", "x"), 2)
        self.assertEqual(cancel("a", "--state", "queued"), 1)
        self.assertEqual(cancel("a"), 2)
        self.assertEqual(s.group("b")["queued"], 1)
        self.assertEqual(s.ctl("cancel", "some-id", "--dry-run").returncode, 2)

    def test_M8_cancel_reports_its_filter_and_what_is_wrong_with_it(self):
        s = self.started({"mail": actor(Pool={"Cells": "by-key"})})
        s.call("Pause", target="mail")
        for key in "x", "x", "y":
            s.create("mail", "echo", key=key)
        self.assertEqual(s.call(JOBS + "CancelAll", group="mail/y", dry_run=True)["cancelled"], 1)
        self.assertEqual(self.refused("BadOption", s.call, JOBS + "CancelAll", group="mail/y", key="x")["option"], "key")
        self.assertEqual(self.refused("BadOption", s.call, JOBS + "CancelAll", group="mail", state="dead")["option"], "state")
        self.assertEqual(self.refused("NoSuchGroup", s.call, JOBS + "CancelAll", group="nobody"), {"group": "nobody"})
        counted = s.call(JOBS + "CancelAll", group="mail", dry_run=True)
        self.assertEqual((counted["cancelled"], counted["failed"]), (3, 0))
        s.until(lambda: s.call(JOBS + "CancelAll", group="mail", dry_run=True)["until_at"] > counted["until_at"])
        s.create("mail", "echo", key="x", id="late")
        self.assertEqual(s.call(JOBS + "CancelAll", group="mail", until_at=counted["until_at"]), {"cancelled": 3, "failed": 0})
        self.assertEqual(s.job("late")["state"], "queued")

    def test_M8_cancel_ends_waiting_jobs_before_running_ones(self):
        s = self.started({"a": actor(Worker={"TimeoutStopSec": "1ms"})})
        s.busy("a", id="held")
        waiting = [s.create("a", f"note {s.path('notes')} {n}") for n in range(50)]
        self.assertEqual(s.ctl("cancel", "--all", "a", check=True).stdout, "a: 51 jobs cancelled\n")
        for id in ("held", *waiting):
            self.assertEqual(s.wait_job(id)["state"], "cancelled")
        self.assertFalse(os.path.exists(s.path("notes")))

    @staticmethod
    def flood(s, count, data=""):
        """Creates very many jobs of "a"."""
        with contextlib.ExitStack() as stack:
            free = [stack.enter_context(Varlink(s.socket_path)) for _ in range(64)]
            for connection in free:
                for _ in range(count // 64):
                    connection.send("Create", {"group": "a", "payload": text(data)}, oneway=True)
            for connection in free:
                connection.call("GetInfo")

    def test_M8_others_are_served_while_very_many_are_cancelled(self):
        s = self.started({"a": actor(Jobs={"QueueMax": 100000}), "b": actor()})
        s.call("Pause", target="a")
        count = 32000
        self.flood(s, count)
        s.until(lambda: s.group("a")["queued"] == count)
        with Varlink(s.socket_path) as canceller, Varlink(s.socket_path) as other:
            for connection in canceller, other:
                connection.call("GetInfo")
            with s.stopped():
                canceller.send(JOBS + "CancelAll", {"group": "a"})
                other.send("GetStatus", {"target": "a"})
            self.assertGreater(other.reply()[0]["groups"][0]["queued"], count // 2)
            self.assertEqual(canceller.reply()[0], {"cancelled": count, "failed": 0})


class OnDisk(Case):
    def cancelled(self, s, cause):
        """How many jobs a dry run counts, which are then cancelled."""
        counted = s.ctl_json("cancel", "--all", "kept", "--cause", cause, "--dry-run")["cancelled"]
        before = s.group("kept")["cancelled"]
        self.assertEqual(s.ctl_json("cancel", "--all", "kept", "--cause", cause)["cancelled"], counted)
        self.assertEqual(s.group("kept")["cancelled"] - before, counted)
        return counted

    def test_M8_cancel_knows_why_jobs_failed_that_wait_on_disk_only(self):
        s = self.durable(size=2, QueueMax=100000, MaxRetries=3).start()
        bell = Bell(s, "go")
        for end in "crash abort", "retry 1 no":
            s.create("kept", f"wait {bell.path}\n{end}", priority=63)
        s.until(lambda: s.group("kept")["running"] == 2)
        s.call("Pause", target="kept")
        test_backlog.Backlog.fill(s, [("echo", {})] * (test_backlog.IN_MEMORY + 10))
        bell.ring(2)
        s.until(lambda: s.group("kept")["queued"] == test_backlog.IN_MEMORY + 12)
        s.until(lambda: sorted(cause for cause, in self.rows(s, "cause") if cause) == [1, 3])
        self.assertEqual([self.cancelled(s, cause) for cause in ("exit", "signal", "retry", "signal")], [0, 1, 1, 0])

    def test_M8_cancel_knows_after_a_restart_why_jobs_failed(self):
        s = self.durable(MaxRetries=3, BackoffMinSec="1h", BackoffMaxSec="1h").start()
        for data in "retry 1 no", "crash abort", "retry 1 no":
            s.wait_job_state(s.create("kept", data), "backoff")
        s.stop()
        s.start()
        self.assertEqual([self.cancelled(s, cause) for cause in ("exit", "signal", "retry")], [0, 1, 2])

    def test_M8_purge_knows_after_a_restart_why_jobs_died(self):
        s = self.durable(MaxRetries=0).start()
        for data in "retry 1 no", "crash abort", "retry 1 no":
            self.assertEqual(s.wait_job(s.create("kept", data))["state"], "dead")
        s.stop()
        s.start()
        s.until(lambda: len(s.ctl_json("dead-letters")["letters"]) == 3)
        self.assertEqual([s.ctl_json("purge", "--cause", cause)["purged"] for cause in ("exit", "signal", "retry")], [0, 1, 2])
