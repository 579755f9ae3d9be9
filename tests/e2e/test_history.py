# SPDX-License-Identifier: MIT
"""Ended jobs of groups with History= are kept on disk, and found again."""
import contextlib
import os
import sqlite3
import unittest
from pathlib import Path

from test_durable import HOUR, Case, actor
from troupe import SANITIZED, helper, user

READER, SUBMITTER = 2003, 2002
JOBS = "io.troupe.Jobs."


class History(Case):
    def with_history(self, groups=None, **jobs):
        """A supervisor with a group "past", and a durable one "kept"."""
        s = self.durable({"past": actor(History="30d", **jobs), **(groups or {})}, History="30d", **jobs)
        s.history = s.path("state/history.db")
        return s.start()

    def found(self, s, **filters):
        """The ids that a search finds, newest first."""
        return [job["id"] for job in s.pages(JOBS + "History", "jobs", **filters)[0]]

    def rows(self, s, sql="SELECT count(*) FROM job"):  # pylint: disable=arguments-renamed
        with contextlib.closing(sqlite3.connect(f"file:{s.history}?mode=ro", uri=True)) as connection:
            return connection.execute(sql).fetchall()

    def metric(self, s, name):
        return s.call("GetMetrics")["history"][name]

    # ---- what is kept

    def test_Q14_ended_jobs_are_kept_and_found_newest_first(self):
        s = self.with_history({"without": actor()})
        for group in "past", "kept":
            with self.subTest(group=group):
                ids = [s.create(group, f"echo {i}", id=f"{group}-{i}") for i in range(5)]
                for id in ids:
                    s.wait_job(id)
                self.assertEqual(self.found(s, group=group), ids[::-1])
        s.wait_job(s.create("without", "echo"))
        self.assertEqual(self.found(s, group="without"), [])
        self.assertEqual(len(self.found(s)), 10)

    def test_Q14_a_page_of_jobs_with_long_reasons_has_fewer_jobs(self):
        s = self.with_history(MaxRetries=0)
        ids = [s.create("past", "retry 1 " + 1000 * "\x01") for _ in range(1000)]  # six bytes each in JSON
        for id in ids:
            self.assertEqual(s.wait_job(id)["state"], "dead")
        jobs, n = s.pages(JOBS + "History", "jobs", group="past")
        self.assertEqual(sorted(job["id"] for job in jobs), sorted(ids))
        self.assertGreater(n, 4)

    def test_Q14_a_row_says_what_the_job_was(self):
        s = self.with_history()
        for group in "past", "kept":
            with self.subTest(group=group):
                id = s.create(group, "reject 7", key="a key", priority=40, max_retries=2)
                job = s.wait_job(id)
                [past] = s.call(JOBS + "History", group=group)["jobs"]
                self.assertTrue(past["from_history"])
                for field in "id", "group", "key", "state", "attempt", "priority", "created_at", "started_at", "ended_at", "code", \
                        "failed_attempts", "max_attempts":
                    self.assertEqual(past[field], job[field], field)
                self.assertEqual((past["worker"], past["submitter"]), (f"{group}/0", os.getuid()))
                self.assertNotIn("payload_start", past)
                dead = s.create(group, "crash abort", max_retries=0)
                reason = s.wait_job(dead)["reason"]
                past = s.call(JOBS + "History", group=group)["jobs"][0]
                self.assertEqual((past["id"], past["state"], past["cause"], past["last_failure"], past["reason"], past["worker"]),
                                 (dead, "dead", "attempts", "signal", reason, f"{group}/0"))
                cancelled = s.create(group, "echo", delay_usec=HOUR)
                s.call("Cancel", id=cancelled)
                past = s.call(JOBS + "History", group=group)["jobs"][0]
                self.assertEqual((past["id"], past["state"], past["cause"]), (cancelled, "cancelled", "requested"))
                self.assertIn("cancelled by uid", past["reason"])

    def test_Q14_the_beginning_of_the_payload_is_kept_only_if_the_group_says_so(self):
        s = self.with_history(HistoryPayload="yes", MaxRetries=0)
        large = "echo " + "é" * 60000
        for group in "past", "kept":
            for payload in "echo small", "reject 1\nno", "crash abort", large:
                with self.subTest(group=group, payload=payload[:20]):
                    id = s.create(group, payload)
                    s.wait_job(id)
                    past = s.call(JOBS + "History", group=group)["jobs"][0]
                    start = past["payload_start"]["data"]
                    self.assertEqual((past["id"], past["payload_bytes"]), (id, len(payload.encode())))
                    self.assertTrue(payload.startswith(start) and len(start.encode()) >= min(199, len(payload.encode())))

    def test_Q14_a_refused_job_and_a_live_one_are_not_in_it(self):
        s = self.with_history(QueueMax=1)
        s.call("Pause", target="past")
        s.create("past", "echo")
        self.refused("Busy", s.create, "past", "echo")
        self.assertEqual(self.found(s), [])

    # ---- searches

    def test_Q14_searches_find_by_each_property(self):
        s = self.with_history(HistoryPayload="yes", MaxRetries=0)
        one = s.create("past", "echo Needle", key="blue")
        two = s.create("kept", "reject 1", key="blue")
        three = s.create("past", "crash abort", key="red")
        four = s.create("kept", "echo", delay_usec=HOUR)
        s.call("Cancel", id=four)
        for id in one, two, three:
            s.wait_job(id)
        for filters, expected in (
                ({"key": "blue"}, {one, two}), ({"key": "blue", "group": "past"}, {one}), ({"key": "blu"}, set()),
                ({"group": "past/red"}, {three}), ({"state": "succeeded"}, {one}), ({"state": "rejected"}, {two}),
                ({"state": "cancelled", "group": "kept"}, {four}), ({"state": "cancelled", "group": "past"}, set()),
                ({"cause": "signal"}, {three}), ({"cause": "requested"}, {four}), ({"cause": "oom"}, set()),
                ({"text": "Needle"}, {one}), ({"text": "needle, ECHO"}, {one}), ({"text": "need"}, set()), ({"text": "cancelled by"}, {four}),
                ({"text": three}, {three}), ({"text": "red"}, {three}), ({"text": " ?"}, {one, two, three, four}), ({"group": "nothing"}, set()),
                ({"since_at": 1}, {one, two, three, four}), ({"until_at": 1}, set())):
            with self.subTest(filters=filters):
                self.assertEqual(set(self.found(s, **filters)), expected)
        ends = {job["id"]: job["ended_at"] for job in s.call(JOBS + "History")["jobs"]}
        self.assertEqual(set(self.found(s, since_at=ends[one])), {id for id in ends if ends[id] >= ends[one]})
        self.assertEqual(set(self.found(s, until_at=ends[one])), {id for id in ends if ends[id] <= ends[one]})

    def test_Q14_jobs_are_found_by_their_tags(self):
        s = self.with_history()
        for group in "past", "kept":
            with self.subTest(group=group):
                s.call("Pause", target=group)
                waiting = s.create(group, "echo", tags="nightly mail")
                self.assertEqual(s.job(waiting)["tags"], "nightly mail")
                other = s.create(group, "echo", tags="nightly")
                s.ctl("upgrade", check=True)
                s.until(lambda: s.group(group)["queued"] == 2)  # pylint: disable=cell-var-from-loop
                if group == "kept":
                    s.stop()
                    s.start()
                    s.call("Pause", target=group)
                s.call("Resume", target=group)
                for id in waiting, other:
                    s.wait_job(id)
                self.assertEqual(set(self.found(s, group=group, tag="nightly")), {waiting, other})
                self.assertEqual(self.found(s, group=group, tag="mail"), [waiting])
                self.assertEqual(self.found(s, group=group, tag="night"), [])
        by_ctl = s.ctl("create", "past", "--tag", "a b", "-d", "echo", check=True).stdout.strip()
        s.wait_job(by_ctl)
        self.assertEqual([job["tags"] for job in s.ctl_json("history", "--tag", "b")["jobs"]], ["a b"])
        s.ctl("map", "past", "--tag", "lines", input="echo\necho\n", check=True)
        self.assertEqual([job["tags"] for job in s.ctl_json("history", "--tag", "lines")["jobs"]], ["lines", "lines"])
        batch = s.ctl("batch", "create", "past", "--tag", "all", check=True).stdout.strip()
        self.assertEqual(s.job(batch)["tags"], "all")
        for bad in "a  b", " a", "a ", "ä", "1 2 3 4 5 6 7 8 9", "x" * 65:
            self.assertEqual(self.refused("BadOption", s.create, "past", "echo", tags=bad)["option"], "tags")

    def test_Q14_a_search_for_very_many_words_takes_little_memory(self):
        s = self.with_history()
        for n in range(1, 16):  # each search has them written: so the index has many segments
            s.wait_job(s.create("past", "echo", tags="echo"))
            self.assertEqual(len(self.found(s, tag="echo")), n)
        before = s.status_field("VmHWM", s.supervisor_pid)
        self.assertEqual(self.found(s, tag=40000 * "echo "), [])
        self.assertLess(s.status_field("VmHWM", s.supervisor_pid) - before, 30000)

    def test_Q14_pages_have_each_job_once_while_others_end(self):
        s = self.with_history()
        for i in range(30):
            s.do("past", "echo", id=f"job-{i}")
        seen, answer = [], {"next": None}
        while "next" in answer:
            answer = s.call(JOBS + "History", limit=4, **({"cursor": answer["next"]} if answer["next"] else {}))
            seen += [job["id"] for job in answer["jobs"]]
            s.do("past", "echo")
        self.assertEqual(seen, [f"job-{i}" for i in range(29, -1, -1)])

    def test_Q14_a_user_has_a_bounded_number_of_searches(self):
        s = self.with_history()
        s.do("past", "echo")
        connections = [s.connect() for _ in range(20)]
        for connection in connections:
            connection.send(JOBS + "History", {})
        errors = {connection.receive().get("error") for connection in connections}
        self.assertLessEqual(errors, {None, JOBS + "TooManySearches"})
        self.assertEqual(len(self.found(s)), 1, "and they can search again")

    def test_Q14_a_job_that_is_not_known_otherwise_comes_from_the_history(self):
        s = self.with_history(ResultTTLSec=0, MaxRetries=0)
        for group in "past", "kept":
            with self.subTest(group=group):
                ended = s.do(group, "reject 3", id=f"old-{group}")
                past = s.job(ended["id"])
                self.assertEqual((past["state"], past["from_history"], past["code"]), ("rejected", True, ended["code"]))
                shown = s.ctl("job", ended["id"])
                self.assertEqual(shown.returncode, 1, shown.stderr)
                self.assertIn("from the history", shown.stdout)
                waited = s.call(JOBS + "Wait", id=ended["id"])["job"]
                self.assertEqual((waited["state"], waited["from_history"]), ("rejected", True))
                self.assertEqual(s.call(JOBS + "Explain", id=ended["id"]), {"state": "rejected", "waits": []})
                self.assertIn("rejected", s.ctl("why", ended["id"], check=True).stdout)
                self.assertEqual(s.ctl("wait", ended["id"]).returncode, 1)
                self.assertEqual(s.call(JOBS + "Stream", id=ended["id"]), {"items": [], "job": past})
                for method, parameters in (("Cancel", {}), ("Set", {"priority": 1}), ("RunNow", {}), ("Move", {"to": group})):
                    refusal = self.refused("AlreadyEnded", s.call, JOBS + method, id=ended["id"], **parameters)
                    self.assertEqual(refusal["state"], "rejected")
        self.refused("NoSuchJob", s.job, "never-was")
        self.assertEqual(s.ctl("job", "never-was").returncode, 5)

    # ---- it outlives the supervisor

    def test_Q14_it_outlives_a_restart_an_upgrade_and_a_crash(self):
        s = self.with_history()
        ids = [s.do("past", "echo", id="first")["id"]]
        s.stop()
        s.start()
        self.assertEqual(self.found(s), ids[::-1])
        ids.append(s.do("past", "echo", id="second")["id"])
        s.ctl("upgrade", check=True)
        ids.append(s.do("past", "echo", id="third")["id"])
        self.assertEqual(self.found(s), ids[::-1])  # a search writes what waits
        s.crash()
        s.until(lambda: self.found(s) == ids[::-1])

    def test_Q14_rows_of_a_group_that_has_gone_stay_until_they_are_purged(self):
        s = self.with_history({"other": actor(History="1h")})
        s.do("past", "echo", id="one")
        s.do("other", "echo", id="two")
        os.unlink(s.path("etc/past.group"))
        s.write("other.group", actor())
        s.call("Reload")
        s.do("other", "echo", id="three")
        self.assertEqual(self.found(s), ["two", "one"])
        self.assertEqual(s.ctl("history", "past", "--purge", check=True).stdout, "1 removed from the history\n")
        self.assertEqual(self.found(s), ["two"])
        self.assertEqual(s.ctl("history", "--purge").returncode, 2)

    # ---- bounds

    def test_Q14_old_rows_go_with_time(self):
        s = self.with_history({"short": actor(History="1s")})
        for i in range(300):
            s.create("short", "echo", id=f"s-{i}")
        s.wait_job("s-299")
        s.do("past", "echo", id="stays")
        s.until(lambda: self.found(s, group="short") == [] and self.metric(s, "rows") == 1)
        self.assertEqual(self.found(s), ["stays"])
        self.assertEqual(self.rows(s, "SELECT count(*) FROM word WHERE word MATCH 's'"), [(0,)], "no entry is left")

    def test_Q14_the_oldest_rows_go_when_there_are_too_many(self):
        s = self.with_history({"small": actor(History="infinity", HistoryMax="1M", HistoryPayload="yes")})
        payload = "echo\n" + "x" * 200
        s.call("Resize", target="small", size=2)
        with s.connect() as connection:
            for i in range(4000):
                connection.call("Create", group="small", payload={"encoding": "utf8", "data": payload})
        s.until(lambda: s.group("small")["queued"] + s.group("small")["running"] == 0)
        last = s.do("small", payload)["id"]
        s.until(lambda: self.found(s, limit=1000)[0] == last)
        s.until(lambda: 1500 < self.metric(s, "rows") < 3500)
        self.assertEqual(self.metric(s, "dropped"), 0)

    # ---- problems

    def test_Q14_a_damaged_or_newer_history_is_off_and_jobs_run_on(self):
        s = self.with_history()
        s.do("past", "echo", id="one")
        s.stop()
        good = Path(s.history).read_bytes()

        def newer(path):
            with contextlib.closing(sqlite3.connect(path)) as connection:
                connection.execute("PRAGMA user_version = 99")
        for spoil, words in ((lambda path: Path(path).write_bytes(b"x" * 5000), "not a database"),
                             (lambda path: Path(path).write_bytes(good[:4096] + b"\xff" * (len(good) - 4096)), "malformed"),
                             (newer, "a newer trouped has written it")):
            with self.subTest(words=words):
                spoil(s.history)
                s.start()
                s.do("past", "echo")
                s.do("kept", "echo")
                s.until(lambda: words in s.group("past").get("history_problem", ""))  # pylint: disable=cell-var-from-loop
                self.assertIn(words, self.refused("HistoryOff", s.call, JOBS + "History")["problem"])
                self.assertIn(words, s.ctl("status", "past").stdout)
                s.wait_event("history.failed")
                s.until(lambda: self.metric(s, "dropped") == 2 and self.metric(s, "problem") is True)
                self.refused("NoSuchJob", s.job, "nothing")
                s.stop()
                Path(s.history).write_bytes(good)
        s.start()
        self.assertEqual(self.found(s), ["one"])

    def test_Q14_on_a_full_disk_jobs_run_on_and_are_missing_in_the_history(self):
        s = self.durable({"past": actor(History="30d")}, History="30d")
        self.mount_state(s, "-o", "size=100m")
        s.start()
        s.do("past", "echo", id="before")
        self.assertEqual(self.found(s), ["before"])
        filler = Path(s.path("state/filler"))
        filler.write_bytes(b"x" * (40 << 20))
        for group in "past", "kept":
            self.assertEqual(s.do(group, "echo")["state"], "succeeded")
        s.until(lambda: "has less than 64 MiB free" in s.group("past").get("history_problem", ""))
        s.until(lambda: self.metric(s, "dropped") == 2)
        self.assertEqual(self.found(s), ["before"])
        filler.unlink()
        s.do("past", "echo", id="after")
        self.assertEqual(self.found(s), ["after", "before"])
        s.until(lambda: "history_problem" not in s.group("past"))

    def test_Q14_a_locked_history_delays_no_job(self):
        s = self.with_history()
        s.do("past", "echo", id="before")
        self.assertEqual(self.found(s), ["before"])
        with contextlib.closing(sqlite3.connect(s.history, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            ids = [s.do(group, "echo")["id"] for group in ("past", "kept") * 20]
            self.assertEqual(connection.execute("SELECT count(*) FROM job").fetchall(), [(1,)])
            connection.execute("ROLLBACK")
        s.until(lambda: self.metric(s, "rows") == 41)
        self.assertEqual(self.found(s), [*ids[::-1], "before"])

    @contextlib.contextmanager
    def hanging(self):
        """A supervisor whose history hangs within the block; a job has ended."""
        s = self.durable({"past": actor(History="30d"), "other": actor()}, History="30d")
        if SANITIZED:
            self.skipTest("needs a library before all others")
        s.history, hangs = s.path("state/history.db"), Path(s.path("hangs"))
        s.environment.update(LD_PRELOAD=helper("preload/hanging-history.so"), HANGING_HISTORY=str(hangs))
        s.start()
        s.do("past", "echo", id="before")
        self.assertEqual(self.found(s), ["before"])
        hangs.touch()
        s.do("past", "echo", id="late")
        s.until(lambda: os.path.exists(s.path("hangs-hangs")))
        try:
            yield s
        finally:
            with contextlib.suppress(FileNotFoundError):
                hangs.unlink()

    def test_Q14_an_upgrade_waits_for_a_slow_history_while_jobs_run_on(self):
        with self.hanging() as s:
            upgrade = s.connect()
            upgrade.send("io.troupe.Supervisor.Upgrade", {})
            s.until(lambda: "upgrading to" in s.log())
            pid = s.supervisor_pid
            for _ in range(3):
                s.do("other", "echo")
                s.do("past", "echo")
            self.assertEqual(s.supervisor_pid, pid)
        self.refused("Restarting", upgrade.reply)
        s.until(lambda: s.supervisor_pid != pid)
        s.do("past", "echo", id="after")
        self.assertEqual(len(self.found(s)), 6)

    def test_Q14_an_upgrade_is_refused_while_the_history_hangs(self):
        with self.hanging() as s:
            self.assertIn("the disk does not answer", self.refused("NotUpgraded", s.call, "Upgrade")["reason"])
            s.do("past", "echo", id="after")
        s.until(lambda: self.found(s) == ["after", "late", "before"])
        s.ctl("upgrade", check=True)

    def test_Q14_searches_that_were_ended_for_an_upgrade_are_answered_if_it_is_refused(self):
        with self.hanging() as s:
            calls = [s.connect() for _ in range(3)]
            calls[0].send(JOBS + "History", {})
            calls[1].send(JOBS + "Get", {"id": "unknown"})
            calls[2].send(JOBS + "PurgeHistory", {"group": "past"})
            self.refused("NotUpgraded", s.call, "Upgrade")
        for call in calls:
            self.refused("Restarting", call.reply)
        self.assertEqual(self.found(s), ["late", "before"])

    def test_Q14_a_stop_waits_for_a_slow_history_and_answers(self):
        with self.hanging() as s:
            s.terminate()
            s.until(lambda: s.call("GetInfo")["state"] == "stopping")
            s.until(lambda: not s.children())
            self.assertEqual(s.call("GetInfo")["state"], "stopping")
        self.assertEqual(s.wait_end(), 0)
        s.start()
        self.assertEqual(self.found(s), ["late", "before"])

    def test_Q14_a_stop_ends_though_the_history_hangs(self):
        with self.hanging() as s:
            s.stop()
            self.assertIn("what was not written yet is lost", s.log())

    def test_Q14_without_a_history_a_search_says_so(self):
        s = self.supervisor({"actor": actor()}, state=True).start()
        self.assertIn("no group has History=", self.refused("HistoryOff", s.call, JOBS + "History")["problem"])
        self.assertFalse(os.path.exists(s.path("state/history.db")))

    # ---- who may read it

    @unittest.skipIf(os.geteuid() != 0, "needs root to be several users")
    def test_Q14_contents_are_for_those_who_may_read_the_job(self):
        s = self.durable({"past": actor(History="1d", HistoryPayload="yes", MaxRetries=0)}, conf="AdminGroup=daemon\n")
        s.start()
        mine, other = "mine", "other"
        with user(SUBMITTER, 1):
            s.create("past", "retry 1 SECRET", id=mine, key="SECRET-key")
            s.wait_job(mine)
        s.create("past", "retry 1 SECRET", id=other, key="SECRET-key")
        s.wait_job(other)
        for uid, expected in (READER, set()), (SUBMITTER, {mine}):
            with self.subTest(uid=uid), user(uid):
                jobs = s.call(JOBS + "History", group="past")["jobs"]
                self.assertEqual({job["id"] for job in jobs}, {mine, other})
                self.assertEqual({job["id"] for job in jobs if "SECRET" in str(job)}, expected)
                self.assertEqual({job["id"] for job in jobs if "restricted" not in job}, expected)
                for filters in {"key": "SECRET-key"}, {"text": "SECRET"}, {"group": "past/SECRET-key"}:
                    self.assertEqual(set(self.found(s, **filters)), expected, filters)
                self.refused("NotPermitted", s.call, JOBS + "PurgeHistory", group="past")

    # ---- the command line

    def test_Q14_troupectl_shows_and_filters_it(self):
        s = self.with_history(MaxRetries=0)
        s.do("past", "echo", id="good", key="k")
        s.do("past", "crash abort", id="bad")
        shown = s.ctl("history", "past", check=True).stdout
        self.assertRegex(shown, r"(?s)bad .*dead.*signal.*good ")
        for arguments, expected in ((("--state", "dead"), ["bad"]), (("--cause", "signal"), ["bad"]), (("--key", "k"), ["good"]),
                                    (("--since", "1h"), ["bad", "good"]), (("--until", "1h"), []),
                                    (("--until", "2001-01-01"), []), (("--text", "Good"), ["good"]), (("--limit", "1"), ["bad"])):
            with self.subTest(arguments=arguments):
                self.assertEqual([job["id"] for job in s.ctl_json("history", *arguments)["jobs"]], expected)
        self.assertEqual(s.ctl("history", "--text", "nothing", check=True).stdout, "No jobs.\n")
        self.assertEqual(s.ctl("history", "--since", "soon").returncode, 2)
        self.assertEqual(s.ctl("history", "--state", "queued").returncode, 2)
        self.assertEqual(self.refused("BadOption", s.call, JOBS + "History", text="a " * 129)["option"], "text")
        self.assertEqual(self.found(s, text="good " * 51), ["good"])
