# SPDX-License-Identifier: MIT
"""Unique jobs: no two live jobs of a group have the same unique key, whatever ends the one that holds it."""
import contextlib
import os
import signal
import sqlite3
import subprocess

import test_backlog
from test_access import user
from test_backlog import IN_MEMORY
from test_durable import HOUR, Case
from troupe import ACTOR, QUICK, TROUPECTL, ini, text

JOBS = "io.troupe.Jobs."


class Unique(Case):
    def both(self, **jobs):
        """A supervisor with a group of each kind; yields their names."""
        s = self.durable({"actor": ini(ACTOR, Restart=QUICK, Jobs={"BackoffMinSec": "1ms", **jobs})}, **jobs).start()
        for group in "actor", "kept":
            with self.subTest(group=group):
                yield s, group

    def holder(self, function, /, *arguments, **options):
        """The job that is named when a job is refused."""
        return self.refused("UniqueTaken", function, *arguments, **options)["holder"]

    def waits(self, s, id):
        return [(wait["cause"], wait["target"]) for wait in s.call(JOBS + "Explain", id=id)["waits"]]

    def conflict(self, s, group, **options):
        return s.call("Create", group=group, payload=text("echo new"), options=options)

    def test_Q5_a_live_job_holds_its_key_until_it_ends(self):
        for s, group in self.both():
            held, go = s.busy(group, unique="k")
            self.assertEqual(self.holder(s.create, group, "echo", unique="k"), held)
            other = s.create(group, "echo", unique="another")
            go.ring()
            self.assertEqual(s.wait_job(held)["state"], "succeeded")
            self.assertEqual(s.wait_job(s.create(group, "echo", unique="k"))["state"], "succeeded")
            self.assertEqual(s.wait_job(other)["state"], "succeeded")

    def test_Q5_keys_of_two_groups_are_different(self):
        s = self.durable({"actor": ini(ACTOR)}).start()
        for group in "actor", "kept":
            s.call("Pause", target=group)
            s.create(group, "echo", unique="k")

    def test_Q5_whatever_ends_the_holder_releases_the_key(self):
        for s, group in self.both():
            held, go = s.busy(group, unique="k", max_retries=0)
            os.kill(s.worker(f"{group}/0")["pid"], signal.SIGKILL)
            self.assertEqual(s.wait_job(held)["state"], "dead")
            held, go = s.busy(group, unique="k")
            s.call("Cancel", id=held)
            go.ring()
            self.assertEqual(s.wait_job(held)["state"], "cancelled")
            late = s.create(group, "echo", unique="k", delay_usec=3600 * 1000000, deadline_usec=1000)
            self.assertEqual(s.wait_job(late)["cause"], "deadline")
            self.assertEqual(s.do(group, "reject no", unique="k")["state"], "rejected")
            self.assertEqual(s.do(group, "echo", unique="k")["state"], "succeeded")

    def test_Q5_a_job_between_two_attempts_holds_its_key(self):
        for s, group in self.both():
            held = s.create(group, "retry later", unique="k", backoff_min_usec=3600 * 1000000)
            s.wait_job_state(held, "backoff")
            self.assertEqual(self.holder(s.create, group, "echo", unique="k"), held)

    def test_Q5_existing_answers_with_the_holder(self):
        for s, group in self.both():
            held, go = s.busy(group, unique="k")
            self.assertEqual(self.conflict(s, group, unique="k", on_conflict="existing"), {"id": held, "existing": True})
            with s.connect() as connection:
                connection.send("Do", {"group": group, "options": {"unique": "k", "on_conflict": "existing"}})
                s.until(lambda: s.group(group)["running"] == 1)
                go.ring()
                job = connection.reply()[0]["job"]
            self.assertEqual((job["id"], job["result"]), (held, text("done")))

    def test_Q5_replace_takes_the_place_of_a_job_that_waits(self):
        for s, group in self.both():
            s.call("Pause", target=group)
            old = s.create(group, "echo old", unique="k")
            new = s.create(group, "echo new", unique="k", on_conflict="replace")
            ended = s.wait_job(old)
            self.assertEqual((ended["state"], ended["cause"], ended["reason"]), ("cancelled", "requested", f"replaced by job {new}"))
            self.assertEqual(self.holder(s.create, group, "echo", unique="k"), new)
            s.call("Resume", target=group)
            self.assertEqual(s.wait_job(new)["result"], text("new"))

    def test_Q5_replace_and_requeue_run_after_the_running_one(self):
        for s, group in self.both():
            for conflict in "replace", "requeue":
                held, go = s.busy(group, unique="k")
                second = s.create(group, "echo second", unique="k", on_conflict=conflict)
                s.until(lambda: ("unique", held) in self.waits(s, second))  # pylint: disable=cell-var-from-loop
                self.assertIn(f"job {held} has the same unique key", s.ctl("why", second, check=True).stdout)
                third = s.call("Create", group=group, payload=text("echo third"),
                               options={"unique": "k", "on_conflict": conflict})
                self.assertEqual(third.get("existing", False), conflict == "requeue")
                self.assertEqual(s.job(held)["state"], "running")
                go.ring()
                last = s.wait_job(third["id"])
                self.assertEqual(last["result"], text("third" if conflict == "replace" else "second"))
                self.assertGreaterEqual(last["started_at"], s.job(held)["ended_at"])
                if conflict == "replace":
                    self.assertEqual(s.wait_job(second)["state"], "cancelled")

    def test_Q5_a_job_that_waits_for_a_key_lets_others_pass(self):
        for s, group in self.both():
            s.call("Resize", target=group, size=2)
            held, go = s.busy(group, unique="k")
            waiting = s.create(group, "echo", unique="k", on_conflict="requeue")
            self.assertEqual(s.do(group, "echo")["state"], "succeeded")
            self.assertEqual(s.job(waiting)["state"], "queued")
            go.ring()
            self.assertEqual(s.wait_job(waiting)["state"], "succeeded")
            self.assertEqual(s.wait_job(held)["state"], "succeeded")

    def test_Q5_the_payload_or_the_routing_key_can_be_the_key(self):
        s = self.supervisor({"payload": ini(ACTOR, Jobs={"Unique": "payload"}),
                             "key": ini(ACTOR, Jobs={"Unique": "key", "OnConflict": "existing"})}).start()
        for group in "payload", "key":
            s.call("Pause", target=group)
        one = s.create("payload", "echo one")
        s.create("payload", "echo two")
        self.assertEqual(self.holder(s.create, "payload", "echo one"), one)
        large = "x" * 100000
        command = [TROUPECTL, "--socket", s.socket_path, "create", "payload", "-f", "-"]
        first = subprocess.run(command, input=large, capture_output=True, text=True, check=True).stdout.strip()
        again = subprocess.run(command, input=large, capture_output=True, text=True)
        self.assertEqual((again.returncode, first in again.stderr), (10, True))
        one = s.create("key", "echo one", key="a")
        self.assertEqual(s.create("key", "echo two", key="a"), one)
        self.assertNotEqual(s.create("key", "echo one", key="b"), one)
        self.assertNotEqual(s.create("key", "echo one"), s.create("key", "echo one"))

    def test_Q5_a_key_until_the_start_is_free_when_the_job_has_begun(self):
        for s, group in self.both(UniqueUntil="start"):
            s.call("Resize", target=group, size=2)
            held, go = s.busy(group, unique="k")
            s.call("Pause", target=group)
            second = s.create(group, "echo", unique="k")
            self.assertEqual(self.holder(s.create, group, "echo", unique="k"), second)
            for happens in [s.crash] * (group == "kept") + [lambda: s.ctl("upgrade", check=True)]:
                happens()
                s.until_restored()
                self.assertEqual(self.holder(s.create, group, "echo", unique="k"), second)
            s.call("Resume", target=group)
            self.assertEqual(s.wait_job(second)["state"], "succeeded")
            go.ring()
            self.assertEqual(s.wait_job(held)["state"], "succeeded")

    def test_Q5_keys_are_held_across_a_crash_and_an_upgrade(self):
        for s, group in self.both():
            for happens in s.crash, lambda: s.ctl("upgrade", check=True):
                held, go = s.busy(group, unique="k")
                happens()
                self.assertEqual(self.holder(s.create, group, "echo", unique="k"), held)
                go.ring()
                s.wait_job(held)
                self.assertEqual(s.do(group, "echo", unique="k")["state"], "succeeded")

    def test_Q5_a_job_that_waits_for_a_key_survives_an_upgrade(self):
        for s, group in self.both():
            held, go = s.busy(group, unique="k")
            waiting = s.create(group, "echo", unique="k", on_conflict="requeue")
            s.call("Resize", target=group, size=2)  # there is a worker for it
            s.until(lambda: ("unique", held) in self.waits(s, waiting))  # pylint: disable=cell-var-from-loop
            s.ctl("upgrade", check=True)
            self.assertEqual(s.job(waiting)["state"], "queued")
            go.ring()
            self.assertEqual(s.wait_job(waiting)["state"], "succeeded")

    def test_Q5_a_job_between_two_attempts_holds_its_key_across_an_upgrade(self):
        for s, group in self.both():
            held, go = s.busy(group, unique="k", backoff_min_usec=HOUR)
            waiting = s.create(group, "echo", unique="k", on_conflict="requeue")
            os.kill(s.worker(f"{group}/0")["pid"], signal.SIGKILL)
            s.wait_job_state(held, "backoff")
            s.ctl("upgrade", check=True)
            s.until_restored()
            self.assertEqual(self.waits(s, waiting)[0], ("unique", held))
            s.call("Cancel", id=held)
            self.assertEqual(s.wait_job(waiting)["state"], "succeeded")
            go.ring()

    def test_Q5_keys_are_held_across_a_restart(self):
        s = self.durable().start()
        held = {"k": s.create("kept", self.endless(s), unique="k"), "l": s.create("kept", "echo", unique="l", delay_usec=HOUR),
                "m": s.create("kept", "echo", unique="m", delay_usec=HOUR, id="chosen")}
        for happens in lambda: self.restart(s), s.crash, lambda: s.ctl("upgrade", check=True):
            happens()
            for unique, id in held.items():
                self.assertEqual(self.holder(s.create, "kept", "echo", unique=unique), id)
                self.assertEqual(s.create("kept", "echo", unique=unique, on_conflict="existing"), id)

    def test_Q5_a_key_waits_for_jobs_that_are_being_read(self):
        s = self.durable()
        s.with_faults("@" + s.path("fault")).start()
        held = s.create("kept", "echo", unique="k", delay_usec=HOUR)
        s.kill()
        with open(s.path("fault"), "w", encoding="ascii") as file:
            file.write("restore:1+=11")
        s.start()
        with s.connect() as connection:
            connection.send("Create", {"group": "kept", "options": {"unique": "k", "on_conflict": "existing"}})
            s.until(lambda: s.group("kept").get("restoring"))
            os.unlink(s.path("fault"))
            self.assertEqual(connection.reply()[0]["id"], held)

    def test_Q5_a_job_that_replaces_another_survives_alone(self):
        s = self.durable().start()
        s.call("Pause", target="kept")
        old = s.create("kept", "echo old", unique="k")
        new = s.create("kept", "echo new", unique="k", on_conflict="replace")
        self.restart(s)
        self.assertEqual(s.wait_job(new)["result"], text("new"))
        self.assertEqual(s.wait_job(old)["state"], "cancelled")

    def test_Q5_a_job_that_was_being_replaced_in_a_crash_does_not_hold_its_key(self):
        s = self.durable().start()
        replaced = s.create("kept", unique="other", delay_usec=HOUR)
        held, _ = s.busy("kept", unique="k", backoff_min_usec=HOUR)
        waiting = s.create("kept", "echo", unique="k", on_conflict="requeue")
        s.kill()
        with contextlib.closing(sqlite3.connect(s.database)) as database, database:
            database.execute("UPDATE job SET cancel = 1, (unique_high, unique_low) = (SELECT unique_high, unique_low FROM job"
                             " ORDER BY number DESC) WHERE number = (SELECT min(number) FROM job)")
        s.start()
        self.assertEqual(s.wait_job(replaced)["state"], "cancelled")
        s.until(lambda: ("unique", held) in self.waits(s, waiting))

    def test_Q17_jobs_of_other_users_are_not_replaced(self):
        s = self.durable({"actor": ini(ACTOR, Group={"SubmitUser": "nobody"})}).start()
        s.call("Pause", target="actor")
        os.chmod(s.socket_path, 0o666)
        held = s.create("actor", "echo", unique="k")
        for conflict in "replace", "requeue":
            with user(65534):
                refused = s.ctl("create", "actor", "--unique", "k", "--on-conflict", conflict)
            self.assertEqual((refused.returncode, f"job {held} has the same unique key" in refused.stderr), (10, True), refused.stderr)
        with user(65534):
            self.assertEqual(s.ctl("do", "actor", "--unique", "k", "--on-conflict", "existing").returncode, 10)
            self.assertEqual(s.ctl("create", "actor", "--unique", "k", "--on-conflict", "existing").stdout.strip(), held)

    def test_Q5_troupectl_names_the_holder(self):
        for s, group in self.both(QueueMax=1):
            s.call("Pause", target=group)
            held = s.create(group, "echo", unique="k")
            for verb in "create", "do", "map":
                refused = s.ctl(verb, group, "--unique", "k", input="echo\n")
                self.assertEqual((refused.returncode, f"job {held} has the same unique key" in refused.stderr), (10, True), refused.stderr)
            self.assertEqual(s.ctl("create", group).returncode, 6)
            self.assertEqual(s.ctl("create", group, "--unique", "k", "--on-conflict", "existing", check=True).stdout, held + "\n")

    def test_Q6_the_last_of_several_jobs_in_a_row_is_done(self):
        for s, group in self.both():
            ids = [s.create(group, f"echo {n}", unique="k", debounce_usec=HOUR if n < 4 else 300000) for n in range(5)]
            last = s.wait_job(ids[-1])
            self.assertEqual(last["result"], text("4"))
            self.assertGreaterEqual(last["started_at"] - last["created_at"], 300000)
            self.assertEqual([s.job(id)["state"] for id in ids[:-1]], 4 * ["cancelled"])

    def test_Q6_a_job_is_debounced_for_a_bounded_time(self):
        for s, group in self.both():
            options = {"unique": "k", "debounce_usec": HOUR, "debounce_max_usec": 700000}
            first = s.create(group, "echo first", **options)
            happens = [s.crash] * (group == "kept") + [lambda: s.ctl("upgrade", check=True)]
            for act in happens:
                act()
            s.until_restored()
            last = s.wait_job(s.create(group, "echo last", **options))
            self.assertEqual(last["result"], text("last"))
            self.assertGreaterEqual(last["started_at"] - s.job(first)["created_at"], 700000)

    def test_Q6_a_debounced_job_waits_for_the_running_one(self):
        for s, group in self.both():
            s.call("Resize", target=group, size=2)
            held, go = s.busy(group, unique="k")
            next = s.create(group, "echo", unique="k", debounce_usec=1000)
            s.until(lambda: ("unique", held) in self.waits(s, next))  # pylint: disable=cell-var-from-loop
            go.ring()
            self.assertGreaterEqual(s.wait_job(next)["started_at"], s.wait_job(held)["ended_at"])

    def test_Q6_debounce_needs_a_unique_key(self):
        s = self.durable().start()
        self.refused("BadOption", s.create, "kept", debounce_usec=1)
        self.refused("BadOption", s.create, "kept", unique="k", debounce_usec=1, delay_usec=1)
        self.refused("BadOption", s.create, "kept", unique="k", debounce_max_usec=1)
        self.assertEqual(s.ctl("do", "kept", "--debounce", "1s").returncode, 2)
        s.ctl("do", "kept", "--unique", "k", "--debounce", "1ms", "--within", "1s", check=True)


class OnDisk(Case):
    def test_Q5_jobs_that_wait_on_disk_only_hold_their_keys(self):
        s = self.durable(QueueMax=100000).start()
        s.call("Pause", target="kept")
        test_backlog.Backlog.fill(s, test_backlog.Backlog.noted(None, s, range(IN_MEMORY)))
        test_backlog.Backlog.fill(s, [(f"note {s.path('notes')} {n}", {"unique": str(n), **({"id": f"job-{n}"} if n % 2 else {})})
                      for n in range(IN_MEMORY, IN_MEMORY + 10)], connections=1)
        self.assertEqual(self.refused("UniqueTaken", s.create, "kept", unique="1001")["holder"], "job-1001")
        other = s.create("kept", f"note {s.path('notes')} 9999", unique="1002", on_conflict="replace")
        existing = s.create("kept", unique="1004", on_conflict="existing")
        self.assertEqual(self.refused("UniqueTaken", s.create, "kept", unique="1004")["holder"], existing)
        s.kill()
        s.start()
        s.until_restored()
        s.wait_job(other)
        s.until(lambda: s.group("kept")["queued"] + s.group("kept")["running"] == 0)
        self.assertEqual(sorted(test_backlog.Backlog.notes(s)), [n for n in range(IN_MEMORY + 10) if n != 1002] + [9999])
        self.assertEqual(self.rows(s), [])


del Case
