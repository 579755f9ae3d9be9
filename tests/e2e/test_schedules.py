# SPDX-License-Identifier: MIT
"""Schedules. Slots come each second, or at dates that a shifted clock reaches."""
import datetime
import os
import sqlite3
import time
import unittest

from troupe import ACTOR, QUICK, SANITIZED, TestCase, VarlinkError, helper, ini, text

SCHEDULES = "io.troupe.Schedules."
YEARLY = "OnCalendar=*-01-01 00:00 UTC"


def actor(**jobs):
    return ini(ACTOR, Pool={"Size": 1}, Restart=QUICK, Jobs=jobs)


class Case(TestCase):
    def schedules(self, durable=False, **files):
        """A supervisor with a group "work" and these schedules, of which each is a list of lines of [Schedule]."""
        s = self.supervisor({"work": actor(Durable="yes" if durable else "no")}, state=True)
        for name, lines in files.items():
            self.schedule(s, name, *lines)
        return s

    @staticmethod
    def schedule(s, name, *lines, group="work", data="echo"):
        return s.write(f"{name}.schedule", "\n".join(["[Schedule]", *lines, "[Job]", f"Group={group}", f"Data={data}", ""]))

    @staticmethod
    def get(s, name):
        return s.call(SCHEDULES + "Get", name=name)

    def counts(self, s, name):
        schedule = self.get(s, name)["schedule"]
        return {outcome: schedule[outcome] for outcome in ("fired", "skipped", "missed", "paused", "refused") if schedule[outcome]}

    def until_counts(self, s, name, **expected):
        s.until(lambda: self.counts(s, name) == expected)

    @staticmethod
    def year(n):
        return int(datetime.datetime(n, 1, 1, tzinfo=datetime.timezone.utc).timestamp())

    def shifted(self, s):
        """The clock of the supervisor shows what set_clock() says from the next start on."""
        if SANITIZED:
            self.skipTest("needs a library before all others")
        s.environment.update(LD_PRELOAD=helper("preload/shifted-clock.so"), CLOCK_SHIFT=s.path("shift"))
        return s

    @staticmethod
    def set_clock(s, seconds):
        with open(s.path("shift.new"), "w", encoding="ascii") as file:
            file.write(str(int(seconds - time.time())))
        os.rename(s.path("shift.new"), s.path("shift"))


class Slots(Case):
    def test_a_slot_is_a_job_with_an_id_of_its_own(self):
        for durable in False, True:
            with self.subTest(durable=durable):
                s = self.schedules(durable, tick=["OnUnitActiveSec=1s"]).start()
                event = s.wait_event("schedule.fired", "work", count=3)
                self.assertRegex(event["job"], r"^tick@\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
                self.assertEqual(s.wait_job(event["job"])["state"], "succeeded")
                s.stop()
                with sqlite3.connect(f"file:{s.path('state/troupe.db')}?mode=ro", uri=True) as connection:
                    self.assertEqual(connection.execute("SELECT name FROM schedule").fetchall(), [("tick",)])

    def test_nobody_else_can_take_the_id_of_a_slot(self):
        s = self.schedules().start()
        with self.assertRaises(VarlinkError) as caught:
            s.call("Create", group="work", payload=text("echo"), options={"id": "x@2026-11-22T02:00:00Z"})
        self.assertEqual(caught.exception.name, "BadId")
        self.assertIn("for schedules", caught.exception.parameters["allowed"])
        s.create("work", "echo", id="x@2026-11-22T02:00:00")

    def test_a_slot_that_the_group_refuses_says_why(self):
        s = self.schedules(tick=["OnUnitActiveSec=1s"]).start()
        s.call("Drain", target="work")
        s.until(lambda: self.counts(s, "tick").get("refused"))
        last = next(slot for slot in self.get(s, "tick")["decided"] if slot["outcome"] == "refused")
        self.assertIn("drained", last["cause"])
        self.assertIn("drained", s.ctl("schedule", "show", "tick", check=True).stdout)
        self.assertIn("drained", s.wait_event("schedule.refused", "work")["message"])

    def test_a_slot_is_skipped_while_a_job_is_live(self):
        s = self.schedules(tick=["OnUnitActiveSec=1s"]).start()
        s.call("Pause", target="work")
        s.until(lambda: self.counts(s, "tick").get("skipped", 0) >= 2)
        self.assertEqual(self.counts(s, "tick")["fired"], 1)

    def test_failures_in_a_row_pause_the_schedule(self):
        s = self.schedules()
        self.schedule(s, "tick", "OnUnitActiveSec=1s", "PauseOnFailure=2", data="crash kill")
        s.write("work.group", actor(MaxRetries=0))
        s.start()
        s.until(lambda: self.get(s, "tick")["schedule"]["state"] == "failed")
        self.assertEqual(self.counts(s, "tick")["fired"], 2)
        self.assertIn("fired, 2 failed in a row", s.ctl("schedule", check=True).stdout)
        s.ctl("schedule", "resume", "tick", check=True)
        self.assertEqual(self.get(s, "tick")["schedule"]["state"], "active")


class Continuity(Case):
    def each_second_once(self, s, name):
        """Every slot between the first and the last was fired once, by the jobs that ended."""
        ids = [job["id"] for job in s.pages("List", "jobs", ended=True)[0] if job["id"].startswith(name + "@")]
        self.assertEqual(len(ids), len(set(ids)))
        times = sorted(datetime.datetime.fromisoformat(id.partition("@")[2].replace("Z", "+00:00")) for id in ids)
        gaps = {(after - before).seconds for before, after in zip(times, times[1:])}
        self.assertEqual(gaps, {1})
        self.assertEqual(len(ids), self.counts(s, name)["fired"])

    def fires_through(self, durable, interrupt, times=3):
        s = self.schedules(durable, tick=["OnUnitActiveSec=1s", "CatchUp=all", "Overlap=allow"]).start()
        for n in range(1, times + 1):
            s.until(lambda: self.counts(s, "tick").get("fired", 0) >= 2 * n)
            interrupt(s)
        s.until(lambda: self.counts(s, "tick").get("fired", 0) >= 8)
        s.call(SCHEDULES + "Pause", name="tick")
        self.assertEqual(self.counts(s, "tick").keys(), {"fired"})
        s.until(lambda: not s.call("List")["jobs"])
        return s

    def test_no_slot_is_lost_or_fired_twice_by_a_crash(self):
        for durable in False, True:
            with self.subTest(durable=durable):
                s = self.fires_through(durable, lambda s: s.crash(), times=2)
                if durable:
                    self.each_second_once(s, "tick")

    def test_no_slot_is_lost_or_fired_twice_by_an_upgrade(self):
        for durable in False, True:
            with self.subTest(durable=durable):
                s = self.fires_through(durable, lambda s: s.ctl("upgrade", check=True))
                self.each_second_once(s, "tick")

    def test_no_slot_is_lost_or_fired_twice_by_a_restart(self):
        def restart(s):
            s.stop()
            s.start()
        s = self.fires_through(True, restart)
        self.each_second_once(s, "tick")

    def test_no_slot_is_lost_or_fired_twice_when_all_is_killed(self):
        def restart(s):
            s.kill()
            s.start()
        s = self.fires_through(True, restart)
        self.each_second_once(s, "tick")

    def test_late_slots_are_caught_up_with_after_a_time_without_supervisor(self):
        s = self.shifted(self.schedules(True, last=[YEARLY, "CatchUpWithinSec=infinity"], none=[YEARLY, "CatchUp=none"],
                                        all=[YEARLY, "CatchUp=all", "CatchUpWithinSec=infinity", "Overlap=buffer"]))
        self.set_clock(s, self.year(2030) - 5000)
        s.start()
        s.until(lambda: self.get(s, "none")["schedule"]["state"] == "active")
        s.stop()
        self.set_clock(s, self.year(2033) + 5000)
        s.start()
        self.until_counts(s, "last", fired=1, missed=3)
        self.until_counts(s, "none", missed=4)
        self.until_counts(s, "all", fired=4)
        self.assertEqual(s.wait_job("last@2033-01-01T00:00:00Z")["state"], "succeeded")
        s.wait_event("schedule.missed", "work", count=2)

    def test_a_clock_that_is_set_fires_no_slot_twice(self):
        s = self.shifted(self.schedules(True, tick=[YEARLY]))
        self.set_clock(s, self.year(2030) - 5000)
        s.start()
        s.until(lambda: self.get(s, "tick")["schedule"]["state"] == "active")
        for seconds in (10, -1000, 10, -40000, 100):
            s.stop()
            self.set_clock(s, self.year(2030) + seconds)
            s.start()
            s.until(lambda: self.get(s, "tick")["schedule"]["state"] == "active")
        self.until_counts(s, "tick", fired=1)


class Configuration(Case):
    def test_a_reload_adds_changes_and_removes(self):
        s = self.schedules(tick=[YEARLY]).start()
        self.schedule(s, "tock", YEARLY)
        self.assertEqual(s.call("Reload")["added"], ["tock.schedule"])
        path = self.schedule(s, "tick", "OnUnitActiveSec=1s")
        self.assertEqual(s.call("Reload")["changed"], ["tick.schedule"])
        s.wait_event("schedule.fired", "work")
        os.unlink(path)
        self.assertEqual(s.call("Reload")["removed"], ["tick.schedule"])
        self.assertEqual([schedule["name"] for schedule in s.call(SCHEDULES + "List")["schedules"]], ["tock"])

    def test_a_bad_file_fails_a_reload_and_keeps_back_itself_only_at_a_start(self):
        s = self.schedules(True, tick=[YEARLY]).start()
        self.schedule(s, "bad", "OnCalendar=never")
        self.assertEqual(s.ctl("reload").returncode, 7)
        self.assertIn("bad.schedule:2: OnCalendar=never", s.ctl("verify", "--config", s.config).stdout)
        s.stop()
        s.start()
        self.check_kept_back(s, "bad.schedule:2: OnCalendar=never")
        s.crash()
        self.check_kept_back(s, "bad.schedule:2: OnCalendar=never")
        self.schedule(s, "bad", YEARLY)
        s.ctl("reload", check=True)
        self.assertEqual(s.ctl("status").returncode, 0)
        self.assertEqual(self.get(s, "bad")["schedule"]["state"], "active")

    def check_kept_back(self, s, mistake):
        self.assertEqual([schedule["name"] for schedule in s.call(SCHEDULES + "List")["schedules"]], ["tick"])
        for verb in ("schedule",), ("status",), ("info",):
            self.assertRegex(s.ctl(*verb).stdout, rf"(?m)^ *(Trouble: )?cannot start: .*{mistake}")
        self.assertEqual(s.ctl("status").returncode, 1)
        process = s.ctl("schedule", "show", "bad")
        self.assertRegex(process.stderr, f"schedule 'bad' cannot start: .*{mistake}")
        self.assertEqual(process.returncode, 5)

    def test_an_exchange_with_a_mistake_is_named_by_status(self):
        s = self.schedules()
        s.write("news.exchange", "[Exchange]\nType=loud\n")
        s.start()
        self.assertRegex(s.ctl("status").stdout, r"(?m)^  Trouble: cannot start: .*news.exchange:2: ")

    def test_one_that_was_removed_begins_anew_when_it_comes_back(self):
        s = self.schedules(tick=["OnUnitActiveSec=1s"]).start()
        s.until(lambda: self.counts(s, "tick"))
        s.stop()
        path = self.schedule(s, "tick", YEARLY)
        s.start()
        s.until(lambda: self.counts(s, "tick"))  # from disk
        os.unlink(path)
        self.assertEqual(s.call("Reload")["removed"], ["tick.schedule"])
        self.schedule(s, "tick", YEARLY)
        self.assertEqual(s.call("Reload")["added"], ["tick.schedule"])
        self.assertEqual((self.counts(s, "tick"), self.get(s, "tick")["decided"]), ({}, []))

    def test_a_group_cannot_be_removed_under_a_schedule(self):
        s = self.schedules(tick=[YEARLY])
        path = s.write("other.group", actor())
        self.schedule(s, "tock", YEARLY, group="other")
        s.start()
        os.unlink(path)
        self.assertIn("Group=other: unknown group", s.ctl("reload").stderr)


class Verbs(Case):
    def setUp(self):
        self.s = self.schedules(True, nightly=["Description=A report", "OnCalendar=02:00 UTC"]).start()
        self.s.until(lambda: self.get(self.s, "nightly")["schedule"]["state"] == "active")

    def ctl(self, *arguments):
        return self.s.ctl("schedule", *arguments)

    def test_list_and_show(self):
        lines = self.ctl().stdout.splitlines()
        self.assertRegex(lines[0], "^SCHEDULE +STATE +NEXT +IN")
        self.assertRegex(lines[1], "^nightly +active .* never ")
        shown = self.ctl("show", "nightly").stdout
        self.assertIn("nightly: A report", shown)
        self.assertEqual(len(self.get(self.s, "nightly")["coming"]), 10)
        missing = self.ctl("show", "nightl")
        self.assertEqual(missing.returncode, 5)
        self.assertIn("did you mean 'nightly'?", missing.stderr)

    def test_pause_is_kept(self):
        self.assertEqual(self.ctl("pause", "nightly").returncode, 0)
        self.s.crash()
        self.assertEqual(self.get(self.s, "nightly")["schedule"]["state"], "paused")
        self.s.stop()
        self.s.start()
        self.s.until(lambda: self.get(self.s, "nightly")["schedule"]["state"] == "paused")
        self.assertEqual(self.ctl("resume", "nightly").returncode, 0)
        self.s.until(lambda: self.get(self.s, "nightly")["schedule"]["state"] == "active")

    def test_run_creates_a_job_now(self):
        id = self.ctl("run", "nightly").stdout.strip()
        self.assertRegex(id, "^nightly@")
        self.assertEqual(self.s.wait_job(id)["state"], "succeeded")
        [decided] = self.get(self.s, "nightly")["decided"]
        self.assertEqual((decided["id"], decided["cause"]), (id, "on request"))

    def test_metrics_count_slots_by_what_became_of_them(self):
        self.ctl("run", "nightly")
        lines = self.s.ctl("metrics", check=True).stdout.splitlines()
        self.assertIn('troupe_schedule_slots_total{schedule="nightly",outcome="fired"} 1', lines)
        self.assertIn('troupe_schedule_slots_total{schedule="nightly",outcome="missed"} 0', lines)
        self.assertIn('troupe_schedule_state{schedule="nightly",state="active"} 1', lines)

    def test_backfill_creates_each_job_once(self):
        period = "2026-01-01", "2026-01-31"
        self.assertRegex(self.ctl("backfill", "nightly", *period, "--dry-run").stdout, "^30 slots; ")
        self.assertEqual(self.ctl("backfill", "nightly", *period).stdout, "30 created, 0 existed\n")
        self.assertEqual(self.s.wait_job("nightly@2026-01-30T02:00:00Z")["state"], "succeeded")
        self.assertEqual(self.ctl("backfill", "nightly", *period).stdout, "0 created, 30 existed\n")
        many = self.ctl("backfill", "nightly", "2020-01-01", "2026-01-31")
        self.assertIn("allowed: up to 1,000", many.stderr)

    def test_skip_names_a_slot_to_come(self):
        id = self.get(self.s, "nightly")["coming"][0]["id"]
        self.assertEqual(self.ctl("skip", "nightly", id).returncode, 0)
        self.assertTrue(self.get(self.s, "nightly")["coming"][0]["skip"])
        self.assertIn("to be skipped", self.ctl("show", "nightly").stdout)
        refused = self.ctl("skip", "nightly", "2020-01-01")
        self.assertEqual(refused.returncode, 5)
        self.assertIn("no such slot to come", refused.stderr)
        for arguments in ("skip", "nightly"), ("skip", "nightly", "noon"), ("show",), ("frob", "nightly"):
            self.assertEqual(self.ctl(*arguments).returncode, 2, arguments)

    def test_a_negative_time_is_refused(self):
        for method, times in ("Backfill", {"from": -1, "to": 1}), ("Skip", {"slot": -1}):
            self.refused("BadOption", self.s.call, f"io.troupe.Schedules.{method}", name="nightly", **times)


if __name__ == "__main__":
    unittest.main()
