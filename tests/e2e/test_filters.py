# SPDX-License-Identifier: MIT
"""Filters of cancel, retry and purge touch exactly what a dry run has counted (M8)."""
from troupe import ACTOR, TestCase, ini

ACTORS = "io.troupe.Actors."
QUICK = {"MinSec": "1ms", "MaxSec": "5ms", "StartLimitBurst": 0}


def actor(**sections):
    return ini(ACTOR, **{"Restart": QUICK, "Jobs": {"BackoffMinSec": "1ms", "MaxRetries": 0},
                         "Resources": {"LimitCORE": 0}, **sections})


class Filters(TestCase):
    def dead(self, s, group, n, key=None):
        for _ in range(n):
            self.assertEqual(s.do(group, "retry 1 no", **({"key": key} if key else {}))["state"], "dead")

    def letters(self, s, **filters):
        return [letter["id"] for letter in s.call(ACTORS + "ListDeadLetters", filter=filters)["letters"]]

    def test_M8_purge_and_retry_touch_what_a_dry_run_has_counted(self):
        s = self.started({"a": actor(), "b": actor()})
        self.dead(s, "a", 3, key="x")
        self.dead(s, "a", 2, key="y")
        self.dead(s, "b", 1)
        counted = s.ctl_json("purge", "--group", "a", "--key", "x", "--dry-run")
        self.assertEqual(counted["purged"], 3)
        self.assertEqual(len(self.letters(s)), 6)
        self.dead(s, "a", 4, key="x")
        self.assertEqual(s.ctl_json("purge", "--group", "a", "--key", "x", "--up-to", str(counted["up_to"])), {"purged": 3})
        self.assertEqual(len(self.letters(s, recipient="a")), 6)
        self.assertEqual(len(self.letters(s, recipient="a", key="x")), 4)
        self.assertEqual(self.letters(s, until_at=1), [])
        counted = s.ctl_json("retry", "--group", "a", "--reason", "job", "--dry-run")
        self.assertEqual((counted["requeued"], counted["failed"]), (6, 0))
        self.assertEqual(s.ctl_json("retry", "--group", "a", "--reason", "job", "--up-to", str(counted["up_to"]))["requeued"], 6)
        self.assertEqual(s.ctl("purge", "--all", "--dry-run", "--older-than", "1h").returncode, 2)
        self.assertRegex(s.ctl("purge", "--all", "--dry-run", check=True).stdout, r"^\d+ would be purged; --up-to \d+ makes it these\n$")
        self.assertEqual(s.ctl("purge", "--older-than", "1h", check=True).stdout, "0 purged\n")
        self.refused("BadOption", s.call, ACTORS + "Purge", id=1, dry_run=True)

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
