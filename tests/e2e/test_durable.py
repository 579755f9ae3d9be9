# SPDX-License-Identifier: MIT
"""Durable jobs, with the real database in a directory of its own."""
import base64
import contextlib
import errno
import json
import os
import pwd
import re
import select
import shutil
import signal
import socket
import sqlite3
import subprocess
import time
import unittest
from pathlib import Path

from test_cells import keyed, plain
from troupe import (ACTOR, LIMIT, QUICK, SANITIZED, TOP, TROUPECTL, TROUPE_EXEC, Bell, TestCase, Varlink, VarlinkError, ended, helper, ini,
                    text, user)

HOUR = 3600 * 1000000


def actor(size=1, **jobs):
    return ini(ACTOR, Pool={"Size": size}, Restart=QUICK, Jobs={"BackoffMinSec": "1ms", **jobs})


class Case(TestCase):
    def durable(self, groups=None, size=1, conf="", **jobs):
        """A supervisor with a durable group "kept"."""
        s = self.supervisor({"kept": actor(size, Durable="yes", **jobs), **(groups or {})})
        s.write("troupe.conf", f"[Supervisor]\nStateDirectory={s.path('state')}\n{conf}")
        s.database = s.path("state/troupe.db")
        return s

    @staticmethod
    def rows(s, what="*", table="job"):
        with sqlite3.connect(f"file:{s.database}?mode=ro", uri=True) as connection:
            return connection.execute(f"SELECT {what} FROM {table}").fetchall()

    @contextlib.contextmanager
    def blocked(self, s):
        """Keeps the store from writing within the block, for less than the minute that it waits."""
        if s.process and s.process.poll() is None:
            s.until_restored()
        connection = sqlite3.connect(s.database, isolation_level=None, timeout=LIMIT)
        try:
            connection.execute("BEGIN IMMEDIATE")
            yield
            connection.execute("ROLLBACK")
        finally:
            connection.close()

    @staticmethod
    def endless(s):
        """A job that waits until the test ends."""
        if not os.path.exists(s.path("never")):
            Bell(s, "never")
        return f"wait {s.path('never')}\necho"

    @staticmethod
    def restart(s):
        """Kills everything, and starts it again on the same state."""
        s.kill()
        s.start()


class Reading(Case):
    @staticmethod
    def waiting(s):
        """Tasks of the store."""
        return s.call("GetMetrics")["store"]["waiting"]

    def test_the_list_of_jobs_does_not_wait_for_another_programs_lock(self):
        s = self.durable().start()
        s.call("Pause", target="kept")
        for number in range(300):
            s.create("kept", "echo", id=f"job-{number}")
        with self.blocked(s), Varlink(s.socket_path) as sender:
            sender.send("Create", {"group": "kept", "payload": text("echo"), "options": {"id": "late"}})
            s.until(lambda: self.waiting(s) > 0)
            listed = s.call("io.troupe.Jobs.List", group="kept")["jobs"]
            self.assertEqual({job["id"] for job in listed}, {f"job-{number}" for number in range(300)})

    def test_a_list_without_its_client_leaves_the_store(self):
        s = self.durable().start()
        s.call("Pause", target="kept")
        for number in range(1000):
            s.create("kept", "echo", id=f"job-{number}")
        for _ in range(2000):
            with contextlib.suppress(BlockingIOError), socket.socket(socket.AF_UNIX) as client:
                client.setblocking(False)
                client.connect(s.socket_path)
                client.sendall(b'{"method":"io.troupe.Jobs.List","parameters":{"limit":1000}}\0')
        # The queries that were given up stand before nothing.
        self.assertEqual(s.create("kept", "echo", id="last"), "last")
        self.assertLessEqual(self.waiting(s), 2)


class Damaged(Case):
    def test_jobs_run_whose_priority_on_disk_is_none(self):
        s = self.durable().start()
        s.call("Pause", target="kept")
        for id in ("one", "two"):
            s.create("kept", "echo a", id=id)
        s.kill()
        with contextlib.closing(sqlite3.connect(s.database, timeout=LIMIT)) as connection, connection:
            connection.execute("UPDATE job SET priority = 200, asked_priority = 200 WHERE name = 'one'")
            connection.execute("UPDATE job SET priority = 200, asked_priority = 200, state = 1 WHERE name = 'two'")
        s.start()
        for id in ("one", "two"):
            self.assertEqual(s.wait_job(id)["state"], "succeeded")


    def test_jobs_whose_keys_name_no_cell_any_more_are_not_said_to_be_unknown(self):
        s = self.durable().start()
        s.call("Pause", target="kept")
        for id, key in ("odd", "a b"), ("none", None), ("even", "a"):
            s.create("kept", "echo a", id=id, **({"key": key} if key else {}))
        s.kill()
        plain = Path(s.path("etc/kept.group")).read_text(encoding="ascii")
        s.write("kept.group", ini(ACTOR, Pool={"Cells": "by-key"}, Jobs={"Durable": "yes"}))
        s.start()
        self.assertEqual(s.wait_job("even")["state"], "succeeded")
        self.wait_logged(s, "has no key that can name a cell")
        for id in "odd", "none":
            self.refused("StoreFailed", s.job, id)
        s.kill()
        s.write("kept.group", plain)
        s.start()
        for id in "odd", "none":
            self.assertEqual(s.wait_job(id)["state"], "succeeded")

    def test_jobs_whose_rows_are_damaged_are_dead_and_those_behind_them_run(self):
        s = self.durable().start()
        s.call("Pause", target="kept")
        first = s.create("kept", "echo a", id="first", delay_usec=HOUR)
        for id in "tied", "long", "late", "last":
            s.create("kept", "echo a", id=id, **({"after": first} if id == "tied" else {"delay_usec": HOUR} if id == "late" else {}))
        s.kill()
        with contextlib.closing(sqlite3.connect(s.database, timeout=LIMIT)) as connection, connection:
            connection.execute("UPDATE job SET ties = 'nonsense' WHERE name = 'tied'")
            connection.execute("UPDATE job SET key = zeroblob(300) WHERE name IN ('long', 'late')")
        s.start()
        self.assertEqual(s.wait_job("last")["state"], "succeeded")
        s.job("late")  # reads it by its id
        for id, what in ("tied", "what it waits for"), ("long", "its key"), ("late", "its key"):
            job = s.wait_job(id)
            self.assertEqual((job["state"], job["reason"]), ("dead", f"{what} is damaged on disk"))
        self.assertEqual({letter["job"] for letter in s.ctl_json("dead-letters")["letters"]}, {"tied", "long", "late"})


class Cancelled(Case):
    def test_D5_a_job_that_was_cancelled_does_not_wait_for_its_date(self):
        s = self.durable().start()
        id = s.create("kept", "echo", delay_usec=HOUR)
        s.kill()
        with contextlib.closing(sqlite3.connect(s.database, timeout=LIMIT)) as connection, connection:
            connection.execute("UPDATE job SET cancel = 1")  # as after a cancellation that a worker was told of
        s.start()
        self.assertEqual(s.wait_job(id)["state"], "cancelled")


class Accepted(Case):
    def test_D1_a_job_is_on_disk_when_its_id_is_told(self):
        s = self.durable().start()
        s.call("Pause", target="kept")
        s.create("kept", "echo", id="one")
        self.assertEqual(self.rows(s, "name"), [("one",)])
        self.assertEqual(s.job("one")["state"], "queued")

    def test_a_store_that_cannot_be_opened_for_a_while_delays_readiness_for_seconds_only(self):
        s = self.durable({"actor": actor()}).start()
        s.stop()
        with self.blocked(s):
            s.start()
            self.assertIn("the store of durable jobs is being opened", s.group("kept")["store_problem"])
            s.wait_told("STATUS=2 of 2 workers up in 2 groups; the store of durable jobs is still being opened, "
                        "see troupectl status")
            self.assertEqual(s.do("actor", "echo a")["result"], text("a"))
        s.wait_told("STATUS=2 of 2 workers up in 2 groups")
        self.assertEqual(s.do("kept", "echo a")["result"], text("a"))

    def test_jobs_that_a_stopped_group_leaves_on_disk_come_back_with_its_file(self):
        for key, target in ({}, "mail"), ({"key": "a"}, "mail/a"):
            with self.subTest(target=target):
                content = (keyed if key else plain)(Jobs={"Durable": "yes"}, Worker={"TimeoutStopSec": "1h"})
                s = self.started({"mail": content, "other": actor()}, state=True)
                [busy], go = s.busy("mail", n=1, **key)
                ids = [s.create("mail", f"echo {n}", id=f"job-{n}", **key) for n in range(3)]
                for _ in range(2):
                    s.call("Stop", target=target)
                    os.unlink(os.path.join(s.config, "mail.group"))
                    s.call("Reload")
                    s.until(lambda: s.group("mail")["queued"] == 0)
                    s.write("mail.group", content)
                    s.call("Reload")
                    s.until(lambda: s.group("mail")["queued"] == 3)
                go.ring()
                for n, id in enumerate(ids):
                    self.assertEqual(s.wait_job(id)["result"]["data"], str(n))
                self.assertEqual(s.wait_job(busy)["state"], "succeeded")
                self.assertEqual(s.group("mail")["queued"], 0)
                s.stop()

    def test_a_group_whose_mended_file_is_of_another_kind_is_removed_once_its_jobs_are_written(self):
        s = self.durable().start()
        job = s.create("kept", "echo", delay_usec=10**12)
        s.stop()
        s.write("kept.group", "[Pool]\nSize=x\n[Jobs]\nDurable=yes\n")
        s.start()
        s.until_restored()
        lock = sqlite3.connect(s.database, isolation_level=None)
        self.addCleanup(lock.close)
        lock.execute("BEGIN IMMEDIATE")
        with s.connect() as connection:
            connection.send("io.troupe.Jobs.Cancel", {"id": job})
            s.until(lambda: s.call("io.troupe.Jobs.Explain", id=job)["waits"][0]["cause"] == "writing")
            s.write("kept.group", ini(ACTOR, Pool={"Cells": "by-key"}, Jobs={"Durable": "yes"}))
            self.refused("Internal", s.call, "Reload")
            lock.execute("ROLLBACK")
            connection.reply()
        s.until(lambda: not s.call("GetStatus")["groups"])
        self.assertEqual(s.call("Reload")["added"], ["kept"])
        self.assertEqual(s.do("kept", "echo", key="a")["state"], "succeeded")

    def test_a_group_that_stays_stopped_starts_when_the_store_cannot_be_opened_and_stops_once_it_is(self):
        s = self.durable({"actor": actor()}).start()
        s.ctl("stop", "--keep", "--wait", "actor", check=True)
        s.stop()
        with self.blocked(s):
            s.spawn()
            while not os.path.exists(s.socket_path):
                time.sleep(0.01)
            self.assertIn("actor waits for the database", s.ctl("why", "actor", check=True).stdout)
            s.wait_for(lambda: s.group("actor")["up"] == 1)
        s.wait_for(lambda: s.group("actor")["up"] == 0 and s.group("actor")["stays_stopped"])

    def test_D1_an_id_is_told_only_when_the_job_is_on_disk(self):
        s = self.durable().start()
        with Varlink(s.socket_path) as connection:
            with self.blocked(s):
                connection.send("Create", {"group": "kept", "payload": text("echo")})
                s.until(lambda: s.group("kept").get("ending") == 1)  # it has run, and nobody hears of it
                self.assertFalse(select.select([connection.socket], [], [], 0)[0])
            id = connection.reply()[0]["id"]
        self.assertEqual(s.wait_job(id)["state"], "succeeded")

    def test_D1_a_job_with_a_chosen_id_runs_only_when_it_is_on_disk(self):
        s = self.durable().start()
        with Varlink(s.socket_path) as connection:
            with self.blocked(s):
                connection.send("Create", {"group": "kept", "payload": text("echo"), "options": {"id": "one"}})
                s.until(lambda: s.group("kept")["queued"] == 1)
                self.assertEqual(s.job("one")["state"], "queued")
                self.assertFalse(select.select([connection.socket], [], [], 0)[0])
            self.assertEqual(connection.reply()[0]["id"], "one")
        self.assertEqual(s.wait_job("one")["state"], "succeeded")

    def twice(self, s, during):
        """Calls it while a job "one" is being written, and others that want its id wait: sockets, and a ring client."""
        first, *others = (s.connect() for _ in range(4))
        calls = [("Create", "kept"), ("Do", "kept"), ("Create", "other")]
        s.call("Pause", target="kept")
        with self.blocked(s):
            first.send("Create", {"group": "kept", "payload": text("echo"), "options": {"id": "one"}})
            s.until(lambda: s.group("kept")["queued"] == 1)
            for connection, (method, group) in zip(others, calls):
                connection.send(method, {"group": group, "payload": text("echo"), "options": {"id": "one"}})
            ring = subprocess.Popen([helper("client"), s.socket_path, "create", "kept", "one"],
                                    stdout=subprocess.PIPE, text=True)
            self.addCleanup(ring.communicate)
            self.assertEqual(ring.stdout.readline(), "begins\n")
            for _ in range(10):
                s.call("GetInfo")
            self.assertFalse(select.select([first.socket, *(c.socket for c in others), ring.stdout], [], [], 0)[0])
            during([first, *others], ring)
        return first, others, ring

    def test_D1_an_id_is_said_to_exist_only_when_its_job_is_on_disk(self):
        s = self.durable({"other": actor()}).start()
        first, others, ring = self.twice(s, lambda *_: None)
        for connection in others:
            self.assertEqual(self.refused("JobExists", connection.reply), {"id": "one"})
            self.assertEqual(self.rows(s, "name"), [("one",)])
        self.assertEqual(ring.stdout.read(), f"{errno.EEXIST}\n")
        self.assertEqual(first.reply()[0]["id"], "one")
        s.call("Resume", target="kept")
        self.assertEqual(s.wait_job("one")["state"], "succeeded")
        self.assertEqual(s.group("other")["succeeded"], 0)

    def test_D1_nobody_is_told_that_an_id_exists_whose_job_could_not_be_written(self):
        s = self.durable({"other": actor()}).with_failing_syncs().start()
        first, others, ring = self.twice(s, lambda *_: Path(s.path("fails")).touch())
        for connection in first, *others[:2]:
            self.refused("StoreFailed", connection.reply)
        self.assertEqual(ring.stdout.read(), f"{errno.EIO}\n")
        self.assertEqual(others[2].reply()[0]["id"], "one")  # the id is free, and that job is not durable
        self.assertEqual(s.wait_job("one")["group"], "other")
        os.unlink(s.path("fails"))
        s.wait_event("store.open", count=2)
        self.refused("JobExists", s.create, "kept", "echo", id="one")

    def test_D1_clients_that_want_the_id_of_a_job_go_away(self):
        s = self.durable({"other": actor()}).start()

        def leave(connections, ring):
            for connection in connections:
                connection.socket.close()
            ring.kill()
            ring.wait()
            s.until(lambda: s.call("GetInfo")["clients"] == 1)

        self.twice(s, leave)
        s.call("Resume", target="kept")
        self.assertEqual(s.wait_job("one")["state"], "succeeded")
        self.assertEqual([s.group(group)["succeeded"] for group in ("kept", "other")], [1, 0])

    def test_D1_no_job_takes_the_id_of_one_that_comes_from_disk(self):
        s = self.durable({"other": actor()}).start()
        s.call("Pause", target="kept")
        s.create("kept", "echo", id="one")
        s.crash()
        s.until(lambda: s.group("kept")["queued"] == 1)
        for group in "kept", "other":
            self.refused("JobExists", s.create, group, "echo", id="one")
        self.assertEqual(s.job("one")["group"], "kept")
        self.refused("JobExists", s.create, "other", "echo", id="one")  # it is in memory now
        s.write("kept.group", actor(Durable="yes", ResultsMax=0))
        s.call("Reload")
        s.call("Resume", target="kept")
        s.until(lambda: s.call("List")["jobs"] == [])  # the loop hears of the end when it is on disk
        self.assertEqual(self.rows(s), [])
        s.create("other", "echo", id="one")

    def test_D1_jobs_survive_and_each_ends_once(self):
        s = self.durable(size=2).start()
        s.call("Pause", target="kept")
        ids = [s.create("kept", f"echo {n}") for n in range(100)] + [s.create("kept", "echo x", id="chosen")]
        self.restart(s)
        for id in ids:
            self.assertEqual(s.wait_job(id)["state"], "succeeded")
        self.assertEqual(s.group("kept")["succeeded"], 101)
        self.assertEqual(self.rows(s), [])

    @contextlib.contextmanager
    def waiting(self, s):
        """Four jobs that are sent within the block, and that are accepted after it."""
        first, second = s.connect(), s.connect()
        first.send("Create", {"group": "kept", "payload": text("echo")})
        second.send("Do", {"group": "kept", "payload": text("echo")})
        with subprocess.Popen([helper("client"), s.socket_path, "push", "kept", "2", "8", "0"], stdout=subprocess.PIPE) as push:
            s.until(lambda: s.group("kept").get("senders") == 3)
            yield
            self.assertEqual(json.loads(push.stdout.read()), {"accepted": 2, "busy": 0, "others": 0})
        self.assertIn("id", first.reply()[0])
        self.assertEqual(second.reply()[0]["job"]["state"], "succeeded")

    def test_D1_jobs_wait_for_a_store_that_is_being_opened(self):
        s = self.durable({"other": actor()}).start()
        s.stop()
        os.unlink(s.path("etc/kept.group"))
        with contextlib.ExitStack() as stack:
            with self.blocked(s):
                s.start()  # opens the database, as it may have jobs of a group that is gone
                s.write("kept.group", actor(Durable="yes"))
                s.call("io.troupe.Supervisor.Reload")
                stack.enter_context(self.waiting(s))
        with contextlib.ExitStack() as stack:
            with self.blocked(s):
                s.crash()
                s.do("other", "echo")
                stack.enter_context(self.waiting(s))

class Ends(Case):
    def test_D2_an_end_is_on_disk_when_it_is_told(self):
        s = self.durable(MaxRetries=0).start()
        s.create("kept", "echo hello", id="good")
        self.assertEqual(s.wait_job("good")["state"], "succeeded")
        self.assertEqual(self.rows(s, "name"), [])
        self.assertEqual(self.rows(s, "name, result", "ended"), [("good", b"hello")])
        s.create("kept", "exit 1", id="bad")
        self.assertEqual(s.wait_job("bad")["state"], "dead")
        self.assertEqual(self.rows(s, "name"), [])
        self.assertEqual(self.rows(s, "name, payload", "dead"), [("bad", b"exit 1")])

    def test_D3_a_job_that_ends_before_it_was_written_is_not_written(self):
        s = self.durable().start()

        def ending():
            return s.group("kept").get("ending", 0)

        def is_taken():
            """Sends a job. It is answered, unless the storage thread takes it before it ends."""
            first.send("Do", {"group": "kept", "payload": text("sleep 0.05\necho")})
            s.until(lambda: ending() > 0 or select.select([first.socket], [], [], 0)[0])
            return ending() > 0 or not first.reply()

        with Varlink(s.socket_path) as first, self.blocked(s):
            s.until(is_taken)  # from now on the thread waits for the lock, and takes no more
            self.assertEqual(s.do("kept", "echo hello")["result"], text("hello"))
            self.assertEqual(ending(), 1)


class Survives(Case):
    def test_D4_kept_results_survive_that_their_ids_are_chosen_again_while_they_are_read(self):
        s = self.durable().start()
        ids = [f"chosen-{n}" for n in range(8)]
        for id in ids:
            s.create("kept", "echo", id=id)
            s.wait_job(id)
        for _ in range(3):
            with self.blocked(s):
                s.crash()
                client = s.connect()
                for id in ids:
                    client.send("Create", {"group": "kept", "payload": text("echo"), "options": {"id": id}})
                s.until(lambda: s.group("kept").get("senders") == 1)
            for _ in ids:
                self.refused("JobExists", client.reply)
            for id in ids:
                self.assertEqual(s.job(id)["state"], "succeeded")

    def test_D4_delay_priority_key_and_retries_survive(self):
        s = self.durable(MaxRetries=5, BackoffMinSec="1h", BackoffMaxSec="1h").start()
        at = int(time.time() * 1000000) + HOUR
        s.create("kept", "echo", id="at", at=at, deadline_usec=2 * HOUR)
        s.create("kept", "exit 1", id="failed", key="some key", max_retries=7)
        s.wait_job_state("failed", "backoff")
        s.call("Pause", target="kept")
        for name, priority in ("last", 63), ("middle", 32), ("first", 0):
            s.create("kept", f"note {s.path('notes')} {name}", id=name, priority=priority)
        before = {name: s.job(name) for name in ("at", "failed", "first")}
        self.restart(s)
        for name in "first", "middle", "last":
            self.assertEqual(s.wait_job(name)["state"], "succeeded")
        self.assertEqual(Path(s.path("notes")).read_text(encoding="ascii").split(), ["first", "middle", "last"])
        for name in "at", "failed":
            job = s.job(name)
            for member in ("state", "failed_attempts", "max_attempts", "priority", "created_at", "next_attempt_at", "key"):
                self.assertEqual(job.get(member), before[name].get(member), (name, member))
            # For all that is known, the next attempt has begun.
            self.assertEqual(job["attempt"], before[name]["attempt"] + 1)

    def test_D4_the_database_of_version_1_0_0_is_migrated(self):
        s = self.supervisor({"mail": ini(f"{TROUPE_EXEC} -- sh", Restart=QUICK, Jobs={"Durable": "yes", "ResultTTLSec": "1d"})})
        s.write("troupe.conf", f"[Supervisor]\nStateDirectory={s.path('state')}\n")
        s.database = s.path("state/troupe.db")
        os.mkdir(s.path("state"))
        passed = int(time.time() * 1000000) - 1796070434000000  # since then
        dump = Path(TOP, "tests", "e2e", "old", "troupe-1.0.0.sql").read_text(encoding="ascii")
        with contextlib.closing(sqlite3.connect(s.database)) as connection:
            connection.executescript(re.sub(r"\b17960\d{11}\b", lambda time: str(int(time[0]) + passed), dump))
        for _ in range(2):  # the second time it is migrated already
            s.start()
            for name in "waits", "later", "big", "kept":
                self.assertEqual((s.wait_job(name)["state"], s.job(name)["result"]), ("succeeded", text(name + "\n")))
            self.assertEqual(s.job("gone")["state"], "cancelled")
            self.assertEqual((s.job("long")["state"], s.job("dies")["state"]), ("delayed", "dead"))
            s.stop()
        self.assertEqual(self.rows(s, "name, due IS NOT NULL"), [("long", 1)])
        self.assertEqual(self.rows(s, "name, letter", "dead"), [("dies", 1)])
        with contextlib.closing(sqlite3.connect(s.database)) as connection:
            self.assertEqual(connection.execute("PRAGMA user_version").fetchone(), (7,))

    def test_D4_delayed_jobs_are_listed_with_their_dates_while_they_are_loaded(self):
        s = self.durable().start()
        ids = [s.create("kept", "echo", delay_usec=3600000000) for _ in range(20)]
        dates = {id: s.job(id)["next_attempt_at"] for id in ids}
        for _ in range(5):
            self.restart(s)
            listed = s.call("List")["jobs"]
            self.assertEqual({job["id"]: job["next_attempt_at"] for job in listed}, dates)

    def test_D4_a_crash_between_the_turns_that_take_rows_loses_no_job(self):
        s = self.durable(QueueMax=1000).with_faults()
        s.environment["TROUPE_FAULT_POINT"] = f"@{s.path('point')}"
        s.start()
        first = s.create("kept", "echo", delay_usec=HOUR)
        for _ in range(3):  # of what is read twice, once, and before all others
            for options in {"delay_usec": HOUR, "deadline_usec": 2 * HOUR}, {"delay_usec": HOUR}, {"after": first}:
                for _ in range(100):
                    s.create("kept", "echo", **options)
        for n in range(1, 4):
            Path(s.path("point")).write_text(f"restore.part:{n}", encoding="ascii")
            s.crash()
            limit = time.monotonic() + LIMIT
            while os.path.exists(s.path("point")):  # the next supervisor removes it, and kills itself
                self.assertLess(time.monotonic(), limit, "all rows were taken in one turn")
                os.sched_yield()
            with contextlib.suppress(OSError, EOFError):  # of a connection to it
                s.call("GetInfo")
            s.until(lambda: [s.group("kept").get(jobs) for jobs in ("waiting", "pending")] == [601, 300])
            s.call("Reload")  # leaves safe mode

    def test_D4_an_attempt_that_the_supervisor_took_along_has_failed(self):
        s = self.durable(MaxRetries=1).start()
        for id in "once", "twice":
            s.create("kept", self.endless(s) if id == "twice" else "echo", id=id)
        s.wait_job_state("twice", "running")
        s.until(lambda: (1,) in self.rows(s, "attempt"))
        self.restart(s)
        job = s.wait_job_state("twice", "running")
        self.assertEqual((job["attempt"], job["attempts"][0]["cause"]), (2, "supervisor"))
        s.until(lambda: (2,) in self.rows(s, "attempt"))
        self.restart(s)
        s.wait_job("twice")
        self.assertNotIn("last on", s.ctl("job", "twice").stdout)
        for _ in range(2):
            job = s.job("twice")
            self.assertEqual((job["state"], job["failed_attempts"], job["max_attempts"]), ("dead", 2, 2))
            self.restart(s)
        self.assertEqual(s.job("once")["state"], "succeeded")

    def test_D4_a_job_that_ends_everything_whenever_it_runs_is_dead_in_the_end(self):
        s = self.durable(MaxRetries=2).start()
        s.call("Pause", target="kept")
        s.create("kept", f"fell {s.path('runs')}", id="fatal")
        s.kill()
        limit = time.monotonic() + LIMIT
        s.spawn()
        while not self.rows(s, "number", "dead"):
            self.assertLess(time.monotonic(), limit, "the job is still being tried")
            if ended(s.pidfd, 0.01):
                s.spawn()
        job = s.job("fatal")
        self.assertEqual((job["state"], job["failed_attempts"]), ("dead", 3))
        numbers = [int(line) for line in Path(s.path("runs")).read_text(encoding="ascii").split()]
        self.assertEqual(numbers, sorted(set(numbers)), "the numbers of the attempts")
        self.assertLessEqual(len(numbers), 3 + 2)  # two runs before it is suspected

    def test_D4_a_job_in_the_inbox_of_a_worker_that_ends_everything_has_only_waited(self):
        jobs = {"Durable": "yes", "MaxRetries": 0, "BackoffMinSec": "1ms"}
        group = ini(ACTOR, Pool={"Size": 1, "Prefetch": 2}, Restart=QUICK, Jobs=jobs)
        s = self.durable({"kept": group}).start()
        s.call("Pause", target="kept")
        s.create("kept", self.endless(s), id="runs", priority=0, max_retries=9)
        s.create("kept", "echo", id="waits")
        s.kill()
        for _ in range(4):
            s.write("kept.group", ini("/bin/false", Restart={"StartLimitBurst": 1}, Jobs=jobs))
            s.start().until_restored()
            s.until(lambda: s.job("runs")["state"] == "queued")
            s.write("kept.group", group)
            s.ctl("reload", check=True)
            s.until(lambda: ("runs", 3, s.job("runs")["attempt"]) in self.rows(s, "name, state, attempt"))
            s.kill()
        s.start().until_restored()
        self.assertEqual(s.job("waits")["failed_attempts"], 0)

    def test_D4_a_job_that_only_waited_has_all_its_attempts_after_power_cuts(self):
        s = self.durable(MaxRetries=0).start()
        s.call("Pause", target="kept")
        ids = [s.create("kept", "echo") for _ in range(3)]
        s.kill()
        s.write("kept.group", ini("/bin/false", Restart={"StartLimitBurst": 1}, Jobs={"Durable": "yes"}))
        for _ in range(10):
            s.start()
            s.until_restored()
            s.kill()
        s.write("kept.group", actor(2, Durable="yes", MaxRetries=0))
        s.start()
        for id in ids:
            self.assertEqual(s.wait_job(id)["state"], "succeeded")
        self.assertEqual({s.job(id)["failed_attempts"] for id in ids}, {0})

    def test_D4_attempts_are_counted_without_gaps_over_stops_crashes_and_upgrades(self):
        s = self.durable(MaxRetries=0).start()
        s.call("Pause", target="kept")
        ids = [s.create("kept", "attempt") for _ in range(3)]
        s.stop()
        s.write("kept.group", ini("/bin/false", Restart={"StartLimitBurst": 1}, Jobs={"Durable": "yes"}))
        s.start()
        s.crash()
        s.ctl("upgrade", check=True)
        s.stop()
        s.write("kept.group", actor(2, Durable="yes", MaxRetries=0))
        s.start()
        self.assertEqual([s.wait_job(id)["result"] for id in ids], [text("1")] * 3)

    def test_D4_a_request_to_cancel_survives(self):
        s = self.durable().start()
        s.create("kept", self.endless(s), id="one")
        s.until(lambda: s.job("one").get("started_at"))
        s.call("Cancel", id="one")
        self.assertEqual(self.rows(s, "cancel, canceller"), [(1, os.geteuid())])
        self.restart(s)
        job = s.wait_job("one")
        self.assertEqual((job["state"], job["cause"], job["reason"]),
                         ("cancelled", "requested", f"cancelled by uid {os.geteuid()}"))

    def test_D4_that_a_deadline_is_over_survives(self):
        s = self.durable().start()
        options = {"deadline_usec": 1000}
        s.call("Pause", target="kept")
        s.create("kept", "echo", id="ended", **options)
        self.assertEqual(s.wait_job("ended")["cause"], "deadline")
        s.call("Resume", target="kept")
        s.create("kept", self.endless(s), id="in-hand", deadline_usec=200000)
        s.until(lambda: self.rows(s, "cancel") == [(3,)])
        s.crash()
        s.until(lambda: s.job("in-hand").get("cancel_requested"))
        os.kill(s.worker("kept/0")["pid"], signal.SIGKILL)
        for id in "ended", "in-hand":
            s.until(lambda: any(job["id"] == id for job in s.call("List", ended=True)["jobs"]))
            job = s.wait_job(id)
            self.assertEqual((job["state"], job["cause"], job["reason"]), ("cancelled", "deadline", "its deadline is over"))

    def test_D4_ended_jobs_are_shown_as_before_a_crash_an_upgrade_and_a_restart(self):
        s = self.durable(MaxRetries=0).start()
        for payload in "echo a", "reject 7 no", "retry 3 bad":
            s.wait_job(s.create("kept", payload, priority=3, key="key"))
        s.wait_job(s.create("kept", "echo", delay_usec=HOUR, deadline_usec=1000))
        for how in "cancel", "withdraw":
            s.create("kept", "echo", id=how, delay_usec=HOUR)
            subprocess.run([helper("client"), s.socket_path, how, how], check=True, stdout=subprocess.DEVNULL)
        bell = Bell(s, "begun")
        s.create("kept", f"ring {bell.path}\nuntil-cancelled", id="running")
        bell.wait()
        s.call("Cancel", id="running")
        s.wait_job("running")

        def shown():
            s.until(lambda: len(s.call("List", ended=True)["jobs"]) == 7)
            jobs = s.call("List", ended=True)["jobs"]
            return {job["id"]: {**job, "attempts": None, "worker": None} for job in jobs}  # lost in a crash
        before = shown()
        for again in lambda: s.ctl("upgrade", check=True), s.crash, lambda: self.restart(s):
            again()
            self.assertEqual(shown(), before)

    def test_D4_jobs_on_disk_are_cancelled_though_the_client_leaves_at_once(self):
        s = self.durable().start()
        s.call("Pause", target="kept")
        ids = [s.create("kept", "echo", delay_usec=HOUR) for _ in range(1500)]
        self.restart(s)
        subprocess.run([helper("client"), s.socket_path, "leave", *ids], check=True)
        s.until(lambda: s.group("kept")["cancelled"] == 1500)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_D4_clients_that_leave_while_their_jobs_are_looked_for_have_no_more_places_than_others(self):
        s = self.durable(conf="ClientsMax=16\n")
        s.write("kept.group", ini(ACTOR, Group={"SubmitUser": "nobody"}, Jobs={"Durable": "yes"}))
        s.start()
        nobody = pwd.getpwnam("nobody").pw_uid
        with self.blocked(s):
            s.crash()
            s.group("kept")
            ends = [subprocess.run([helper("client"), s.socket_path, "leave", "gone"], user=nobody, group=nobody,
                                   extra_groups=[], capture_output=True, check=False).returncode for _ in range(16)]
            with user(nobody - 1):
                crowd = [s.connect() for _ in range(6)]
            self.assertEqual({client.call("GetInfo")["state"] for client in crowd}, {"starting"})
        self.assertEqual(ends, [0] * 7 + [1] * 9)

    @unittest.skipIf(SANITIZED, "measures memory")
    def test_D4_few_jobs_of_a_client_that_has_left_are_looked_for_at_a_time(self):
        s = self.durable().start()
        with self.blocked(s):
            s.crash()
            s.group("kept")
            before = s.status_field("VmRSS")
            subprocess.run([helper("client"), s.socket_path, "leave", *map(str, range(12000))], check=True)
            s.until(lambda: s.call("GetInfo")["clients"] == 2)
            self.assertLess(s.status_field("VmRSS") - before, 2560)
        s.until(lambda: s.call("GetInfo")["clients"] == 1)

    def test_D4_dead_letters_survive_and_go_when_they_are_purged_or_sent_again(self):
        s, _ = self.dead("a", "b", "c")
        before = s.ctl_json("dead-letters")["letters"]
        self.restart(s)
        after = s.ctl_json("dead-letters")["letters"]
        self.assertEqual(after, [{**letter, "n_deaths": 0} for letter in before])
        s.call("io.troupe.Actors.Purge", id=before[0]["id"])
        self.assertEqual(len(self.rows(s, "number", "dead")), 2)
        s.call("Pause", target="kept")
        s.call("io.troupe.Actors.Requeue", id=before[1]["id"])
        s.until(lambda: len(self.rows(s, "number", "dead")) == 1)
        self.restart(s)
        jobs = s.until(lambda: [letter["job"] for letter in s.ctl_json("dead-letters")["letters"]])
        self.assertEqual(set(jobs) & {letter["job"] for letter in before}, {before[2]["job"]})

    def dead(self, *ids, fault=None):
        """A supervisor with these dead jobs, and the ids of their dead letters."""
        s = self.durable(MaxRetries=0)
        if fault:
            s.with_faults(fault)
        s.start()
        for id in ids:
            s.create("kept", "exit 1", id=id)
            s.wait_job(id)
        return s, [letter["id"] for letter in s.ctl_json("dead-letters")["letters"]][::-1]

    def test_D4_a_purge_is_answered_when_the_rows_are_removed_from_disk(self):
        s, ids = self.dead("a", "b", "c")
        calls = {"id": ids[0]}, {"filter": {}}
        with self.blocked(s):
            clients = [s.connect() for _ in calls]
            for client, parameters, left in zip(clients, calls, (2, 0)):
                client.send("io.troupe.Actors.Purge", parameters)
                s.until(lambda: s.call("GetMetrics")["dead_letters"]["kept"]["dead_letters"] == left)
            self.assertEqual(select.select([client.socket for client in clients], [], [], 0)[0], [])
        self.assertEqual([client.reply()[0] for client in clients], [{"purged": 1}, {"purged": 2}])
        self.assertEqual(self.rows(s, "number", "dead"), [])

    def test_D4_calls_for_dead_letters_wait_until_those_on_disk_are_read(self):
        s, ids = self.dead("a", "b", "c")
        calls = [("GetDeadLetter", {"id": ids[0]}), ("Requeue", {"id": ids[1], "to": "kept"}), ("Purge", {"id": ids[2]}),
                 ("ListDeadLetters", {}), ("Purge", {"filter": {}, "dry_run": True}), ("GetDeadLetter", {"id": 1000})]
        with self.blocked(s):
            s.crash()
            s.group("kept")
            clients = [s.connect() for _ in calls]
            for client, (method, parameters) in zip(clients, calls):
                client.send("io.troupe.Actors." + method, parameters)
            s.group("kept")
            self.assertEqual(select.select([client.socket for client in clients], [], [], 0)[0], [])
        got, requeued, purged, listed, counted = (client.reply()[0] for client in clients[:-1])
        self.assertEqual(got["letter"]["job"], "a")
        self.assertEqual(requeued["requeued"], 1)
        self.assertEqual(purged, {"purged": 1})
        self.assertIn("a", [letter["job"] for letter in listed["letters"]])
        self.assertGreater(counted["purged"], 0)
        self.refused("NoSuchDeadLetter", clients[-1].reply)

    def test_D4_dead_letters_in_memory_are_listed_while_the_disk_does_not_answer(self):
        s, _ = self.dead("a")
        with self.blocked(s):
            s.crash()
            s.group("kept")
            self.assertEqual(s.ctl("dead-letters", "--timeout", "200ms").returncode, 8)
            s.until(lambda: s.ctl("dead-letters", "--timeout", "200ms").returncode == 0)
            listed = s.ctl("dead-letters")
        self.assertIn("those on disk are not shown: the store of durable jobs is being opened", listed.stderr)

    def test_D4_a_call_for_dead_letters_that_are_not_read_yet_ends_when_the_client_goes_or_the_supervisor_stops(self):
        s, _ = self.dead("a", fault="settle:1+")  # the stop does not wait for the disk
        with self.blocked(s):
            s.crash()
            s.group("kept")
            with s.connect() as gone:
                gone.send("io.troupe.Actors.ListDeadLetters", {})
            waits = s.connect()
            waits.send("io.troupe.Actors.ListDeadLetters", {})
            s.group("kept")
            s.terminate()
            self.wait_logged(s, "kept/0 stopped")
        self.refused("Stopping", waits.reply)
        self.assertEqual(s.wait_end(), 0)

    def test_D4_dead_letters_that_could_not_be_read_are_not_said_to_be_none(self):
        s, ids = self.dead("a")
        s.kill()
        s.with_faults(f"restore:3={errno.EUCLEAN}").start()  # two of ties, dead letters
        why = "the next start reads them again"
        self.assertIn(why, s.call("io.troupe.Actors.ListDeadLetters")["store_problem"])
        self.assertIn(why, s.call("io.troupe.Actors.Purge", filter={})["store_problem"])
        for method in "GetDeadLetter", "Requeue", "Purge":
            self.assertIn(why, self.refused("StoreFailed", s.call, "io.troupe.Actors." + method, id=ids[0])["problem"])
        listed = s.ctl("dead-letters")
        self.assertEqual((listed.returncode, listed.stdout.startswith("None.")), (0, False))
        self.assertIn("those on disk are not shown", listed.stderr)
        purged = s.ctl("purge", "--all")
        self.assertEqual((purged.returncode, "those on disk stay" in purged.stderr), (1, True))


@unittest.skipIf(SANITIZED, "needs a library before all others")
class Clock(Case):
    """The clock is set while jobs and workers wait: spans stay, and dates follow it."""

    HOUR = 3600

    def begin(self):
        pause = {"MaxRetries": "9", "BackoffMinSec": "2s", "BackoffMaxSec": "2s"}
        s = self.durable({"service": ini("/bin/false", Group={"Type": "service"}, Restart={"MinSec": "2s", "MaxSec": "2s"}),
                          "plain": actor(1, **pause)}, **pause)
        self.shift = Path(s.path("shift"))
        s.environment.update(LD_PRELOAD=helper("preload/shifted-clock.so"), CLOCK_SHIFT=str(self.shift))
        s.start()
        for group in "kept", "plain":
            s.create(group, "retry", id=f"{group}-retried")
            s.create(group, "echo", id=f"{group}-delayed", delay_usec=2000000)
            s.create(group, "echo", id=f"{group}-later", delay_usec=self.HOUR * 1000000 // 2)
            s.create(group, "echo", id=f"{group}-at", at=int((time.time() + self.HOUR // 2) * 1000000))
            s.until(lambda group=group: s.call("Get", id=f"{group}-retried")["job"].get("attempt") == 1)
        s.create("kept", "echo", id="deadline", delay_usec=self.HOUR * 1000000, deadline_usec=3000000)
        return s

    def set_clock(self, seconds):
        self.shift.write_text(str(seconds), encoding="ascii")

    def assert_spans_stay(self, s, groups):
        for group in groups:
            s.until(lambda group=group: s.call("Get", id=f"{group}-delayed")["job"]["state"] == "succeeded")
            s.until(lambda group=group: s.call("Get", id=f"{group}-retried")["job"]["attempt"] >= 2)
            self.assertEqual(s.call("Get", id=f"{group}-later")["job"]["state"], "delayed")
        self.assertEqual(s.wait_job("deadline")["state"], "cancelled")
        s.until(lambda: s.group("service")["workers"][0]["restarts"] >= 2)

    def test_U_spans_stay_across_a_crash_and_an_upgrade_whatever_the_clock_is_set_to(self):
        for take_over, groups in (lambda s: s.crash(), ["kept"]), (lambda s: s.ctl("upgrade", check=True), ["kept", "plain"]):
            for hours in -1, 1:
                with self.subTest(groups=groups, hours=hours):
                    s = self.begin()
                    self.set_clock(hours * self.HOUR)
                    take_over(s)
                    self.assert_spans_stay(s, groups)
                    self.assertEqual(s.job(groups[-1] + "-at")["state"], "delayed" if hours < 0 else "succeeded")

    def test_U_after_a_restart_no_job_waits_for_longer_than_was_asked_for(self):
        s = self.begin()
        s.stop()
        self.set_clock(-self.HOUR)
        s.start()
        self.assert_spans_stay(s, ["kept"])


class Failures(Case):
    def fill(self, s):
        """Pauses the group and creates jobs until the disk is full. Returns their ids, and the problem."""
        s.call("Pause", target="kept")
        accepted = []

        def create():
            while len(accepted) < 1000:
                accepted.append(s.create("kept", "echo\n\n" + "x" * 500000))
        return accepted, self.refused("StoreFull", create)["problem"]

    def test_D5_a_full_disk_refuses_jobs_lets_ends_through_and_goes_on(self):
        s = self.durable({"other": actor()}, QueueMemoryMax="1G")
        self.mount_state(s, "-o", "size=48m")
        s.start()
        Path(s.path("state/ballast")).write_bytes(bytes(24 << 20))
        accepted, problem = self.fill(s)
        self.assertTrue(accepted)
        self.assertIn(s.database, problem)
        self.assertEqual(s.group("kept")["state"], "degraded")
        self.assertIn("full", s.ctl("status", "kept").stdout)
        create = s.ctl("create", "kept", "--data", "echo")
        self.assertIn("(Durable=yes), which is full", create.stderr)
        self.assertEqual(s.do("other", "echo fine")["state"], "succeeded")
        s.call("Resume", target="kept")
        for id in accepted:
            self.assertEqual(s.wait_job(id)["state"], "succeeded")
        os.unlink(s.path("state/ballast"))
        s.wait_event("store.open", count=2)
        s.create("kept", "echo", id="again")
        self.assertEqual(s.wait_job("again")["state"], "succeeded")

    def test_D5_an_upgrade_is_refused_while_a_full_disk_keeps_ends_from_being_written(self):
        s = self.durable({"other": actor()}).with_full_disk().start()
        id, go = s.busy("kept")
        Path(s.path("full")).touch()
        go.ring()
        s.wait_event("store.full")
        for _ in range(2):
            upgrade = s.ctl("upgrade")
            self.assertEqual(upgrade.returncode, 1)
            self.assertIn("what has ended is not written yet: " + s.database, upgrade.stderr)
            self.assertIn("the disk is full", upgrade.stderr)
            self.assertEqual(s.do("other", "echo fine")["state"], "succeeded")
        os.unlink(s.path("full"))
        self.assertEqual(s.wait_job(id)["state"], "succeeded")
        s.ctl("upgrade", check=True)
        self.assertEqual((s.job(id)["state"], s.job(id)["attempt"], s.call("GetInfo")["upgrades"]), ("succeeded", 1, 1))

    def mounted(self, s, *options, size):
        """A small file system for the state of the supervisor."""
        if os.geteuid() != 0:
            self.skipTest("mounting needs root")
        os.mkdir(s.path("state"))
        image = s.path("image")
        with open(image, "wb") as file:
            file.truncate(size)
        if subprocess.run(["mkfs.ext4", "-q", "-m", "0", *options, image], check=False).returncode or \
                subprocess.run(["mount", "-o", "loop", image, s.path("state")], check=False).returncode:
            self.skipTest("mounting does not work here")
        self.addCleanup(subprocess.run, ["umount", "-l", s.path("state")], check=False)

    @unittest.skipUnless(shutil.which("mkfs.ext4"), "mkfs.ext4 is not installed")
    def test_D5_a_disk_of_small_blocks_that_is_nearly_full_ends_no_supervisor(self):
        s = self.durable({"other": actor()})
        self.mounted(s, "-b", "1024", size=24 << 20)
        for free in range(4, 52, 8):
            s.start().until_restored()
            s.do("kept", "echo")
            s.stop()
            os.unlink(s.path("state/troupe.db-reserve"))
            with open(s.path("state/ballast"), "wb", buffering=0) as ballast:
                with contextlib.suppress(OSError):
                    while True:
                        ballast.write(bytes(1024))
                ballast.truncate(ballast.tell() - (free << 10))
            s.start()
            pid = s.supervisor_pid
            self.assertEqual(s.do("other", "echo fine")["state"], "succeeded")
            with contextlib.suppress(VarlinkError):
                s.do("kept", "echo")
            self.assertEqual(s.do("other", "echo fine")["state"], "succeeded")
            self.assertEqual(s.supervisor_pid, pid)
            os.unlink(s.path("state/ballast"))
            s.until(lambda: not s.group("kept").get("store_problem"))
            self.assertEqual(s.do("kept", "echo")["state"], "succeeded")
            s.stop()

    @unittest.skipUnless(shutil.which("mkfs.ext4"), "mkfs.ext4 is not installed")
    def test_a_result_that_would_fill_the_disk_is_not_kept_and_its_job_says_so(self):
        s = self.durable({"other": actor(Durable="yes")}, ResultMax="1G", ResultsMemoryMax="1G")
        self.mounted(s, size=64 << 20)
        s.start().until_restored()
        s.create("kept", f"blob {100 << 20}", id="large")
        s.create("kept", f"blob {2 << 20}", id="small")
        for restarted in False, True:
            job = s.wait_job("large")
            self.assertEqual(job["state"], "succeeded")
            self.assertIn("its result is not kept: 104857600 bytes: the disk has too little space left", job["reason"])
            self.assertEqual(job.get("result", {}).get("data", ""), "")
            self.assertEqual(len(base64.b64decode(s.wait_job("small")["result"]["data"])), 2 << 20)
            if not restarted:
                self.assertEqual(s.do("other", "echo fine")["state"], "succeeded")
                self.assertIn("job large: its result is not kept", s.log())
                s.stop()
                s.start()

    def test_a_result_above_its_limit_ends_the_job_at_once_and_says_so(self):
        for durable in "yes", "no":
            s = self.supervisor({"kept": actor(Durable=durable, ResultMax="1M", ResultTTLSec="1h")}, state=True)
            s.start().until_restored()
            s.create("kept", f"blob {(1 << 20) + 1}", id="large")
            job = s.wait_job("large")
            reason = "its result of 1048577 bytes is above ResultMax=1048576 of the group; it is not tried again"
            self.assertEqual((job["state"], job["failed_attempts"], job["reason"]), ("dead", 1, reason))
            self.assertEqual([a["cause"] for a in job["attempts"]], ["result_too_large"])
            letter, = s.call("io.troupe.Actors.ListDeadLetters")["letters"]
            self.assertEqual((letter["job"], letter["text"]), ("large", reason))
            self.assertEqual(s.group("kept")["dead"], 1)
            s.create("kept", f"blob {1 << 20}", id="fits")
            self.assertEqual(s.wait_job("fits")["state"], "succeeded")
            s.stop()

    def test_D2_large_payloads_and_results_pass_the_log_in_pieces(self):
        def ctl(*words, input=None):
            return subprocess.run([TROUPECTL, "--socket", s.socket_path, *words], input=input, check=True, capture_output=True,
                                  timeout=LIMIT).stdout

        def log_size():
            return os.path.getsize(s.path("state/troupe.db-wal"))

        payload = os.urandom(40 << 20)
        s = self.durable({"big": ini(f"{TROUPE_EXEC} -- cat", Jobs={"Durable": "yes"})}).start()
        s.until_restored()
        s.call("Pause", target="big")
        ctl("create", "big", "-", "--id", "large", input=payload)
        self.assertLess(log_size(), len(payload), "one commit for all")
        s.stop()
        s.start().until_restored()
        s.call("Resume", target="big")
        self.assertEqual(ctl("wait", "large"), payload)
        self.assertLess(log_size(), len(payload), "one commit for all")
        s.stop()
        s.start().until_restored()
        self.assertEqual(ctl("wait", "large"), payload)
        s.until(lambda: self.rows(s, "kind, count(*), sum(length(bytes))", "piece") == [(1, 40, len(payload))])

    def test_a_result_that_memory_does_not_keep_is_not_written(self):
        s = self.durable(ResultMax="64M", ResultsMemoryMax="1M").start()
        s.until_restored()
        s.create("kept", f"blob {8 << 20}", id="large")
        s.wait_job("large")
        self.assertIn("8388608 bytes are more than ResultsMemoryMax= allows", s.job("large")["reason"])
        self.assertEqual(self.rows(s, "state, reason, length(result)", "ended"),
                         [(4, "its result is not kept: 8388608 bytes are more than ResultsMemoryMax= allows", None)])

    def test_D5_a_disk_that_the_database_has_filled_takes_jobs_again_when_its_own_have_ended(self):
        s = self.durable(QueueMemoryMax="1G")
        self.mount_state(s, "-o", "size=40m")
        s.start()
        for count in 2, 3:
            accepted, _ = self.fill(s)
            self.assertGreater(len(accepted), 20)
            s.call("Resume", target="kept")
            for id in accepted:
                self.assertEqual(s.wait_job(id)["state"], "succeeded")
            s.wait_event("store.open", count=count)
        s.create("kept", "echo", id="again")
        self.assertEqual(s.wait_job("again")["state"], "succeeded")

    def test_D6_a_failed_sync_refuses_jobs_and_is_never_taken_for_success(self):
        s = self.durable({"other": actor()}, size=2).with_failing_syncs().start()
        bell = Bell(s, "bell")
        s.create("kept", f"wait {bell.path}\necho", id="runs")
        s.until(lambda: s.job("runs").get("started_at"))
        Path(s.path("fails")).touch()
        error = self.refused("StoreFailed", s.create, "kept", "echo", id="refused")
        self.assertIn(s.database, error["problem"])
        self.refused("StoreFailed", s.create, "kept", "echo")
        self.assertEqual(s.group("kept")["state"], "degraded")
        self.assertIn("accepts no jobs", s.ctl("status", "kept").stdout)
        s.wait_event("store.failed")
        self.assertEqual(s.do("other", "echo fine")["state"], "succeeded")
        bell.ring()
        s.until(lambda: s.group("kept").get("ending") == 1)
        self.assertEqual(s.job("runs")["state"], "running")
        os.unlink(s.path("fails"))
        self.assertEqual(s.wait_job("runs")["state"], "succeeded")
        self.assertEqual(s.wait_job(s.create("kept", "echo"))["state"], "succeeded")
        self.restart(s)
        self.refused("NoSuchJob", s.job, "refused")

    def test_D6_a_job_that_is_refused_while_it_runs_counts_as_refused_only(self):
        s = self.durable().with_failing_syncs().start()
        begun, bell = Bell(s, "begun"), Bell(s, "bell")
        with Varlink(s.socket_path) as client:
            with self.blocked(s):
                client.send("io.troupe.Jobs.Create", {"group": "kept", "payload": text(f"ring {begun.path}\nwait {bell.path}\necho")})
                begun.wait()
                Path(s.path("fails")).touch()
            s.until(lambda: s.group("kept").get("refused") == 1)
            bell.ring()
            self.assertRaisesRegex(VarlinkError, "StoreFailed", client.reply)
        s.wait_worker("kept/0", "idle")
        group = s.group("kept")
        self.assertEqual([group.get(count, 0) for count in ("refused", "cancelled", "succeeded", "dead", "running")], [1, 0, 0, 0, 0])

    def test_D6_who_waits_for_a_job_is_told_that_the_disk_failed(self):
        s = self.durable().with_failing_syncs().start()
        with self.blocked(s):
            client = subprocess.Popen([TROUPECTL, "--socket", s.socket_path, "do", "kept", "-d", "echo"], stderr=subprocess.PIPE, text=True)
            self.addCleanup(client.communicate)
            self.addCleanup(client.kill)
            s.until(lambda: s.call("GetMetrics")["store"]["waiting"] > 0)
            Path(s.path("fails")).touch()
        self.assertRegex(client.stderr.readline(), "is not known: the (disk failed|store that keeps)")

    def test_D6_a_job_that_is_refused_when_it_has_run_counts_as_refused(self):
        s = self.durable().with_failing_syncs().start()
        with Varlink(s.socket_path) as client:
            with self.blocked(s):
                client.send("io.troupe.Jobs.Create", {"group": "kept", "payload": text("echo")})
                s.until(lambda: s.group("kept").get("ending") == 1)
                Path(s.path("fails")).touch()
            self.assertRaisesRegex(VarlinkError, "StoreFailed", client.reply)
        self.assertEqual([s.group("kept").get(count, 0) for count in ("refused", "succeeded")], [1, 0])

    def test_D10_who_waits_for_an_end_that_cannot_be_written_hears_it_once_after_an_upgrade(self):
        s = self.durable().with_failing_syncs().start()
        bell = Bell(s, "bell")
        s.create("kept", f"before 2 wait {bell.path}\necho", id="one")
        s.until(lambda: (1, 3) in self.rows(s, "attempt, state"))
        client = subprocess.Popen([helper("client"), s.socket_path, "wait", "one"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(client.communicate)
        self.addCleanup(client.kill)
        s.until(lambda: s.call("GetInfo")["clients"] == 2)
        Path(s.path("fails")).touch()
        bell.ring()
        s.wait_event("store.failed")
        s.until(lambda: s.group("kept").get("ending") == 1)
        s.ctl("upgrade", check=True)
        self.assertFalse(select.select([client.stdout], [], [], 0)[0])
        os.unlink(s.path("fails"))
        self.assertEqual(client.communicate(timeout=LIMIT)[0], "0\n")

    def test_D10_a_failed_attempt_that_cannot_be_written_counts_once_after_an_upgrade(self):
        s = self.durable(MaxRetries=1).with_failing_syncs().start()
        bell = Bell(s, "bell")
        s.create("kept", f"before 2 wait {bell.path}\nbefore 2 exit 1\necho", id="one")
        s.until(lambda: (1, 3) in self.rows(s, "attempt, state"))
        Path(s.path("fails")).touch()
        bell.ring()
        s.wait_event("store.failed")
        s.until(lambda: s.job("one")["failed_attempts"] == 1)
        s.ctl("upgrade", check=True)
        os.unlink(s.path("fails"))
        s.until(lambda: not self.rows(s))
        s.until(lambda: s.job("one")["state"] == "succeeded")  # is told after the commit
        job = s.job("one")
        self.assertEqual((job["attempt"], job["failed_attempts"]), (2, 1))

    def test_D6_a_stop_takes_an_end_along_that_waits_behind_another_failed_change(self):
        s = self.durable(MaxRetries=3).with_failing_syncs().start()
        s.create("kept", self.endless(s), id="one")
        s.until(lambda: (1, 3) in self.rows(s, "attempt, state"))
        client = s.connect()
        with self.blocked(s):
            client.send("Cancel", {"id": "one"})
            s.until(lambda: s.job("one").get("cancel_requested"))
            Path(s.path("fails")).touch()
        s.wait_event("store.failed")
        self.assertFalse(select.select([client.socket], [], [], 0)[0])
        os.kill(s.worker("kept/0")["pid"], signal.SIGKILL)
        s.until(lambda: s.group("kept").get("ending") == 1)
        s.stop()
        self.assertNotIn("was killed", s.log())
        self.assertRaises((VarlinkError, EOFError, ConnectionError), client.reply)
        os.unlink(s.path("fails"))
        s.start()
        self.assertEqual(s.job("one")["id"], "one")

    def test_D6_a_dead_letter_goes_only_when_its_new_job_is_on_disk(self):
        s = self.durable(MaxRetries=0).with_failing_syncs().start()
        for id in "a", "b", "c":
            s.create("kept", "exit 1", id=id)
            s.wait_job(id)
        letters = [letter["id"] for letter in s.ctl_json("dead-letters")["letters"]]
        s.call("Pause", target="kept")
        with Varlink(s.socket_path) as one, Varlink(s.socket_path) as all:
            with self.blocked(s):
                one.send("io.troupe.Actors.Requeue", {"id": letters[0]})
                s.until(lambda: len(s.ctl_json("dead-letters")["letters"]) == 2)
                all.send("io.troupe.Actors.Requeue", {"filter": {}})
                s.until(lambda: not s.ctl_json("dead-letters")["letters"])
                Path(s.path("fails")).touch()
            s.wait_event("store.failed")
            self.assertFalse(select.select([one.socket, all.socket], [], [], 0)[0])
            error = self.refused("NoSuchDeadLetter", s.call, "io.troupe.Actors.Requeue", id=letters[0])
            self.assertEqual(error["id"], letters[0])
            os.unlink(s.path("fails"))
            self.assertEqual(one.reply()[0]["requeued"], 1)
            self.assertEqual(all.reply()[0]["requeued"], 2)
        self.assertEqual(self.rows(s, "payload"), [(b"exit 1",)] * 3)
        self.assertEqual(self.rows(s, "number", "dead"), [])
        self.restart(s)
        s.until(lambda: s.group("kept")["dead"] == 3)
        self.assertEqual(len(self.rows(s, "number", "dead")), 3)

    def test_D6_a_client_that_leaves_does_not_take_a_dead_letter_along(self):
        s = self.durable(MaxRetries=0).start()
        s.create("kept", "exit 1", id="a")
        s.wait_job("a")
        s.call("Pause", target="kept")
        letter = s.ctl_json("dead-letters")["letters"][0]["id"]
        with self.blocked(s), Varlink(s.socket_path) as client:
            client.send("io.troupe.Actors.Requeue", {"id": letter})
            s.until(lambda: not s.ctl_json("dead-letters")["letters"])
        s.until(lambda: self.rows(s, "payload"))
        self.assertEqual(self.rows(s, "number", "dead"), [])

    def test_D7_a_damaged_store_is_refused_with_a_remedy_and_left_alone(self):
        s = self.durable({"other": actor()})
        os.mkdir(s.path("state"))
        Path(s.database).write_bytes(b"this is no database" * 1000)
        s.start()
        error = self.refused("StoreFailed", s.create, "kept", "echo")
        self.assertIn(s.database, error["problem"])
        self.assertIn("restore a backup", error["problem"])
        self.assertIn("restore a backup", s.log())
        self.assertEqual(s.do("other", "echo fine")["state"], "succeeded")
        s.stop()
        self.assertEqual(Path(s.database).read_bytes(), b"this is no database" * 1000)

    def test_D7_a_store_that_is_moved_away_takes_nothing_and_goes_on_when_it_is_back(self):
        s = self.durable({"other": actor()}).start()
        s.call("Pause", target="kept")
        s.create("kept", "echo one", id="one")
        os.rename(s.path("state"), s.path("aside"))
        error = self.refused("StoreFailed", s.create, "kept", "echo", id="two")
        self.assertIn("removed or replaced", error["problem"])
        self.assertIn("removed or replaced", s.group("kept")["store_problem"])
        self.assertEqual(s.do("other", "echo fine")["state"], "succeeded")
        os.rename(s.path("aside"), s.path("state"))
        s.wait_event("store.open", count=2)
        s.call("Resume", target="kept")
        self.assertEqual(s.wait_job("one")["result"], text("one"))

    def test_a_store_on_a_read_only_file_system_says_so(self):
        s = self.durable()
        self.mount_state(s)
        s.start()
        s.stop()
        subprocess.run(["mount", "-o", "remount,ro", s.path("state")], check=True)
        s.start()
        s.until(lambda: "Read-only file system" in s.group("kept")["store_problem"])


class Lookups(Case):
    """A job that may exist is never said not to."""

    def waiting(self, count=3):
        s = self.durable({"other": actor()}).start()
        s.call("Pause", target="kept")
        s.create("kept", "echo", id="one")
        for _ in range(count - 1):
            s.create("kept", "echo")
        s.kill()
        return s

    def damaged(self):
        s = self.waiting()
        for name in os.listdir(s.path("state")):
            os.unlink(os.path.join(s.path("state"), name))
        Path(s.database).write_bytes(b"this is no database" * 1000)
        return s.start()

    def unknown(self, s, problem):
        for id in "one", "never":
            for method in "Get", "Wait", "Cancel":
                error = self.refused("StoreFailed", s.call, method, id=id)
                self.assertNotIn("group", error)
                self.assertIn(problem, error["problem"])
            self.assertIn(problem, s.ctl("job", id).stderr)
        for verb in "wait", "cancel":
            ring = subprocess.run([helper("client"), s.socket_path, verb, "one", "never"], capture_output=True, text=True,
                                  check=False, timeout=LIMIT)
            self.assertEqual(ring.stdout.split(), [str(errno.EIO)] * 2)
        mine = s.create("other", "echo mine")
        self.assertEqual(s.wait_job(mine)["result"], text("mine"))

    def test_jobs_on_disk_are_not_said_to_be_none_while_their_store_is_being_opened(self):
        s = self.durable({"other": actor()}).start()
        s.call("Pause", target="kept")
        s.create("kept", "echo")
        with self.blocked(s):
            s.crash()
            listed = s.call("List")
            self.assertIn("is being opened", listed["store_problem"])
            shown = s.ctl("jobs", "kept")
            self.assertIn("those on disk are not shown: the store of durable jobs is being opened", shown.stderr)
            self.assertEqual((shown.stdout, shown.returncode), ("", 0))
            self.assertEqual(s.ctl("jobs", "other").stdout, "No jobs.\n")
            cancels = s.connect()
            cancels.send("io.troupe.Jobs.CancelAll", {"group": "kept"})
            s.call("GetInfo")
        self.assertEqual(cancels.reply()[0]["cancelled"], 1)
        self.assertNotIn("store_problem", s.call("List"))
        self.assertEqual(s.ctl("jobs", "kept").stdout, "No jobs.\n")

    def test_jobs_in_a_store_that_is_damaged_are_not_said_to_be_unknown_or_none(self):
        s = self.damaged()
        self.unknown(s, "restore a backup")
        self.assertIn("restore a backup", s.call("List")["store_problem"])
        self.assertIn("restore a backup", self.refused("StoreFailed", s.call, "io.troupe.Jobs.CancelAll", group="kept")["problem"])

    def test_a_job_is_not_said_to_be_unknown_while_the_disk_fails(self):
        s = self.durable().with_failing_syncs().start()
        Path(s.path("fails")).touch()
        self.refused("StoreFailed", s.create, "kept", "echo")
        s.wait_event("store.failed")  # a slow disk also refuses, before it fails
        self.refused("StoreFailed", s.job, "never")
        os.unlink(s.path("fails"))
        s.wait_event("store.open", count=2)
        self.refused("NoSuchJob", s.job, "never")

    def test_a_job_is_not_said_to_be_unknown_when_not_all_could_be_read(self):
        s = self.waiting().with_faults(f"restore:5={errno.EUCLEAN}").start()  # two of ties, dead letters, results, jobs
        self.unknown(s, "the next start reads them again")

    def test_a_transaction_that_is_repeated_or_lacks_memory_leaves_no_job_out_and_questions_wait(self):
        for error, passages in (errno.ENOMEM, (1, 5, 8)), (errno.EAGAIN, (1, 3, 5, 7, 9)):
            s = self.waiting(5).with_faults(",".join(f"restore:{n}={error}" for n in passages)).start()
            self.refused("NoSuchJob", s.job, "never")
            s.until(lambda s=s: s.group("kept")["succeeded"] == 5)

    def test_D5_jobs_on_a_full_disk_run_after_a_start(self):
        s = self.durable()
        self.mount_state(s, "-o", "size=48m")
        s.start()
        s.call("Pause", target="kept")
        for id in "one", "two":
            s.create("kept", "echo", id=id)
        s.kill()
        os.unlink(s.database + "-reserve")
        with open(s.path("state/ballast"), "wb") as ballast, contextlib.suppress(OSError):
            while True:
                ballast.write(bytes(1 << 16))
                ballast.flush()
        os.truncate(s.path("state/ballast"), os.path.getsize(s.path("state/ballast")) - (2 << 20))
        s.start()
        self.refused("StoreFull", s.create, "kept", "echo")
        for id in "one", "two":
            self.assertEqual(s.wait_job(id)["state"], "succeeded")
        self.refused("NoSuchJob", s.job, "never")


class Undescribed(Case):
    """The file of a group goes while no supervisor runs."""
    FAULT = "no file describes it any more: put kept.group back, or cancel or move its jobs, and reload"

    def left(self, groups=None, **options):
        """Two jobs of "kept" wait and one has a kept result when its file goes."""
        s = self.durable(groups, **options).start()
        s.create("kept", "echo a", id="done")
        s.wait_job("done")
        for id in "one", "two":
            s.create("kept", "echo", id=id, delay_usec=HOUR)
        s.stop()
        os.rename(f"{s.config}/kept.group", s.path("away"))
        s.start()
        s.until(lambda: [g["name"] for g in s.call("GetStatus")["groups"] if g["name"] == "kept"])
        s.until_restored()
        return s

    @staticmethod
    def is_gone(s):
        return "kept" not in [g["name"] for g in s.call("GetStatus")["groups"]]

    def test_jobs_of_a_group_without_a_file_are_listed_explained_and_cancelled(self):
        s = self.left({"other": actor(Durable="yes")})
        group = s.group("kept")
        self.assertEqual((group["state"], group["fault"], group["waiting"], group["results"]), ("failed", self.FAULT, 2, 1))
        self.assertIn(f"kept cannot start: {self.FAULT}; on disk: 2 jobs, 1 kept result", s.log())
        self.assertEqual({job["id"] for job in s.call("io.troupe.Jobs.List", group="kept")["jobs"]}, {"one", "two"})
        self.assertEqual((s.job("one")["group"], s.job("done")["state"]), ("kept", "succeeded"))
        self.assertIn(f"kept cannot start: {self.FAULT}", s.ctl("why", "one", check=True).stdout)
        self.refused("NoSuchGroup", s.create, "kept", "echo")
        self.refused("JobExists", s.create, "other", "echo", id="one")
        s.call("Reset", target="kept")
        s.ctl("cancel", "--all", "kept", check=True)
        self.assertEqual(s.job("one")["state"], "cancelled")
        self.assertEqual(self.rows(s), [])
        s.ctl("reload", check=True)
        s.until(lambda: self.is_gone(s))
        self.assertIn("kept drops 3 kept results: no file describes it", s.log())
        s.until(lambda: self.rows(s, table="ended") == [])

    def test_a_group_takes_its_jobs_over_when_its_file_is_back(self):
        s = self.left()  # no other group has durable jobs
        os.rename(s.path("away"), f"{s.config}/kept.group")
        s.ctl("reload", check=True)
        self.assertEqual(s.job("done")["state"], "succeeded")
        s.until(lambda: s.group("kept")["state"] == "running")
        s.create("kept", "echo", id="new")
        self.assertEqual(s.wait_job("new")["state"], "succeeded")
        self.assertEqual({s.job(id)["state"] for id in ("one", "two")}, {"delayed"})

    def test_a_group_takes_its_jobs_over_when_its_file_is_back_with_cells(self):
        s = self.left()
        s.write("kept.group", ini(ACTOR, Pool={"Cells": "by-key"}, Jobs={"Durable": "yes"}))
        s.ctl("reload", check=True)
        s.until(lambda: s.group("kept")["state"] == "running")
        s.create("kept", "echo", id="new", key="a")
        self.assertEqual(s.wait_job("new")["state"], "succeeded")

    def test_a_group_without_a_file_is_left_by_stops_crashes_and_upgrades_as_it_is(self):
        s = self.left()
        for again in s.crash, lambda: (s.stop(), s.start()), lambda: s.ctl("upgrade", check=True):
            again()
            s.until(lambda: not self.is_gone(s) and s.group("kept")["waiting"] == 2)
            s.until_restored()
            self.assertEqual((s.group("kept")["fault"], s.group("kept")["results"]), (self.FAULT, 1))

    def test_jobs_that_a_reload_leaves_on_disk_are_those_of_a_group_without_a_file(self):
        s = self.durable({"other": actor()}).start()
        s.ctl("stop", "kept", check=True)
        s.create("kept", "echo", id="one")
        os.rename(f"{s.config}/kept.group", s.path("away"))
        s.ctl("reload", check=True)
        s.until(lambda: not self.is_gone(s) and s.group("kept").get("fault") == self.FAULT)
        s.until_restored()
        self.assertEqual(s.job("one")["state"], "queued")
        s.call("io.troupe.Jobs.Cancel", id="one")
        s.call("Reset", target="other")
        s.ctl("reload", check=True)
        s.until(lambda: self.is_gone(s))

    def test_a_removed_group_without_jobs_is_gone(self):
        s = self.durable({"other": actor()}).start()
        os.rename(f"{s.config}/kept.group", s.path("away"))
        s.ctl("reload", check=True)
        s.until(lambda: self.is_gone(s))
        s.until_restored()
        self.assertTrue(self.is_gone(s))


class Stops(Case):
    def test_a_stop_names_what_it_loses_of_each_kind(self):
        s = self.durable({"plain": actor(MaxRetries=0), "idle": actor()}).start()
        for group in "kept", "plain":
            s.create(group, "echo a", id=f"{group}-result")
            self.assertEqual(s.wait_job(f"{group}-result")["state"], "succeeded")
            s.create(group, "exit 1", id=f"{group}-dead", max_retries=0)
            s.until(lambda group=group: s.call("io.troupe.Actors.ListDeadLetters", filter={"job": f"{group}-dead"})["letters"])
        s.call("io.troupe.Actors.Pause", actor="plain/0")
        for _ in range(2):
            s.call("io.troupe.Actors.Tell", to="plain/0", type="t")
        s.call("io.troupe.Actors.Schedule", to="plain/0", type="t", delay_usec=HOUR)
        s.stop()
        self.assertIn("plain: lost by the stop: 2 kept results, 1 dead letter, 2 waiting messages, 1 timer\n", s.log())
        self.assertEqual(s.log().count("lost by the stop"), 1)

    def test_D13_a_stop_keeps_durable_jobs_and_names_what_it_drops_of_others(self):
        s = self.durable({"other": actor()}, conf="TimeoutStopSec=100ms\n").start()
        for group in "kept", "other":
            s.create(group, self.endless(s), id=f"hand-{group}")
            s.until(lambda group=group: s.job(f"hand-{group}").get("started_at"))
            for n in range(3):
                s.create(group, "echo", id=f"{group}-{n}")
        s.stop()
        log = s.log()
        self.assertIn("other: 3 jobs that waited are cancelled", log)
        self.assertIn("hand-other", log)
        self.assertIn("kept: 3 jobs that wait stay on disk", log)
        self.assertNotIn("kept: 3 jobs that waited are cancelled", log)
        s.start()
        s.until(lambda: s.job("hand-kept")["state"] == "running")
        for n in range(3):
            self.assertEqual(s.job(f"kept-{n}")["state"], "queued")
        self.refused("NoSuchJob", s.job, "other-0")

    def test_D13_jobs_that_are_read_from_disk_while_the_supervisor_stops_stay_there(self):
        s = self.durable().start()
        go = Bell(s, "go")
        s.create("kept", f"wait {go.path}\necho", id="hand")
        s.until(lambda: s.job("hand").get("started_at"))
        s.create("kept", "echo", id="one")
        s.create("kept", "echo", id="two", deadline_usec=HOUR)
        with self.blocked(s):
            s.crash()
            self.assertEqual(s.group("kept")["running"], 1)
            s.terminate()
            s.wait_told("STOPPING=1")
        s.until(lambda: s.log().count("the store of durable jobs is open") == 2)
        s.until_restored()
        go.ring()
        self.assertEqual(s.wait_end(), 0)
        s.start()
        for id in "hand", "one", "two":
            self.assertEqual(s.wait_job(id)["state"], "succeeded")

    def test_D13_a_stop_writes_the_end_of_a_job_in_hand_whose_row_is_still_to_be_read(self):
        s = self.durable()
        s.with_faults(f"@{s.path('slow')}").start()
        go = Bell(s, "go")
        s.create("kept", f"wait {go.path}\necho", id="hand")
        s.until(lambda: s.job("hand").get("started_at"))
        Path(s.path("slow")).write_text(f"restore:1+={errno.EAGAIN}", encoding="ascii")  # reads the same again and again
        s.crash()
        go.ring()
        s.until(lambda: s.group("kept").get("ending") == 1)
        s.terminate()
        self.wait_logged(s, "kept/0 stopped")
        os.unlink(s.path("slow"))
        self.assertEqual(s.wait_end(), 0)
        self.assertEqual((self.rows(s), self.rows(s, "name", "ended")), ([], [("hand",)]))

    def test_D13_a_job_on_disk_is_asked_for_while_the_supervisor_stops(self):
        s = self.durable({"other": actor()}).start()
        s.call("Pause", target="kept")
        s.create("other", self.endless(s), id="hand")
        s.until(lambda: s.job("hand").get("started_at"))
        s.create("kept", "echo", id="one")
        with Varlink(s.socket_path) as client:
            s.terminate()
            s.wait_told("STOPPING=1")
            client.send("Get", {"id": "one"})
            self.refused("Stopping", client.reply)
        s.terminate()
        self.assertEqual(s.wait_end(), 0)

    def test_D13_a_job_on_disk_whose_cell_is_gone_is_asked_for_while_the_supervisor_stops(self):
        cells = ini(ACTOR, Pool={"Cells": "by-key", "CellIdleSec": "1ms"}, Jobs={"Durable": "yes"})
        s = self.durable({"cells": cells, "other": actor()}).start()
        s.create("other", self.endless(s), id="hand")
        s.until(lambda: s.job("hand").get("started_at"))
        s.create("cells", "echo", id="one", key="a", delay_usec=HOUR)
        s.terminate()
        s.until(lambda: not s.group("cells")["cells"])
        self.refused("Stopping", s.job, "one")
        s.terminate()
        self.assertEqual(s.wait_end(), 0)

    def test_D13_a_job_is_not_said_to_be_unknown_when_the_supervisor_stops_before_the_store_is_open(self):
        s = self.durable().with_faults("settle:1+").start()  # the stop does not wait for the disk
        s.create("kept", "echo", id="one")
        s.wait_job("one")
        with self.blocked(s):
            s.crash()
            waits = s.connect()
            waits.send("Wait", {"id": "one"})
            s.group("kept")
            s.terminate()
            self.wait_logged(s, "kept/0 stopped")
        self.refused("Stopping", waits.reply)
        self.assertEqual(s.wait_end(), 0)


class Hands(Case):
    """The supervisor crashes, and the workers go on with the jobs that they have in hand."""

    def in_hand(self, **options):
        s = self.durable(MaxRetries=3).start()
        begun, bell = Bell(s, "begun"), Bell(s, "bell")
        id = s.create("kept", f"ring {begun.path}\nwait {bell.path}\nattempt", **options)
        begun.wait()
        s.until(lambda: (1, 3) in self.rows(s, "attempt, state"))
        return s, id, begun, bell

    def test_D9_a_durable_job_in_hand_goes_on_and_ends_once(self):
        for options in {}, {"id": "chosen"}:
            with self.subTest(options):
                s, id, _, bell = self.in_hand(**options)
                pid, started_at = s.worker("kept/0")["pid"], s.job(id)["started_at"]
                s.crash()
                job = s.job(id)
                self.assertEqual((job["state"], job["attempt"]), ("running", 1))
                bell.ring()
                job = s.wait_job(id)
                self.assertEqual((job["state"], job["result"]), ("succeeded", text("1")))
                self.assertEqual(s.worker("kept/0")["pid"], pid)
                self.assertEqual(self.rows(s), [])
                self.restart(s)
                job = s.job(id)
                self.assertEqual((job["result"], job["started_at"]), (text("1"), started_at))

    def test_D4_the_result_of_a_job_that_was_not_written_before_a_crash_is_kept(self):
        s = self.durable().start()
        begun, bell = Bell(s, "begun"), Bell(s, "bell")
        client = s.connect()
        with self.blocked(s):
            client.send("Create", {"group": "kept", "payload": text(f"ring {begun.path}\nwait {bell.path}\nattempt")})
            begun.wait()
            s.crash()
            bell.ring()
            s.until(lambda: s.group("kept").get("ending") == 1)
            id = s.call("List")["jobs"][0]["id"]
        self.assertEqual(s.wait_job(id)["result"], text("1"))
        self.restart(s)
        self.assertEqual(s.job(id)["result"], text("1"))

    def test_D4_a_request_to_cancel_a_job_in_hand_is_on_disk_when_it_is_answered(self):
        s, id, _, _ = self.in_hand()
        with self.blocked(s):
            s.crash()  # the next one cannot read the row yet
            client = s.connect()
            client.send("Cancel", {"id": id})
            s.until(lambda: s.job(id).get("cancel_requested"))
            self.assertFalse(select.select([client.socket], [], [], 0)[0])
        client.reply()
        self.assertIn(self.rows(s, "cancel"), ([(1,)], []))  # it may have ended since
        self.restart(s)
        self.assertEqual(s.wait_job(id)["state"], "cancelled")

    def test_D4_a_second_request_to_cancel_is_refused_only_when_the_first_is_on_disk(self):
        s, id, _, _ = self.in_hand()
        with self.blocked(s):
            s.crash()  # the next one cannot read the row yet
            clients = [s.connect() for _ in range(2)]
            for client in clients:
                client.send("Cancel", {"id": id})
                s.until(lambda: s.job(id).get("cancel_requested"))
            ring = subprocess.Popen([helper("client"), s.socket_path, "cancel", id], stdout=subprocess.PIPE, text=True)
            s.connections.enter_context(ring)
            s.until(lambda: s.job(id).get("cancel_requested"))
            self.assertFalse(select.select([client.socket for client in clients] + [ring.stdout], [], [], 0)[0])
        clients[0].reply()
        with self.assertRaises(VarlinkError) as caught:
            clients[1].reply()
        self.assertIn(caught.exception.name, ("CancelAlreadyRequested", "AlreadyEnded"))
        self.assertIn(self.rows(s, "cancel"), ([(1,)], []))
        self.assertIn(ring.stdout.read().strip(), (str(errno.EALREADY), str(errno.ESRCH)))

    def test_D4_a_result_that_memory_is_too_short_for_stays_on_disk(self):
        s = self.durable().with_faults("kept-result:1").start()
        s.create("kept", "echo mine", id="one")
        s.until(lambda: s.group("kept")["succeeded"] == 1)
        self.refused("StoreFailed", s.job, "one")
        self.wait_logged(s, "kept: memory is short: the results of some jobs stay on disk")
        self.refused("NoSuchJob", s.job, "another")
        self.refused("JobExists", s.create, "kept", "echo", id="one")
        del s.environment["TROUPE_FAULT"]
        self.restart(s)
        self.assertEqual(s.wait_job("one")["result"], text("mine"))

    def test_D4_a_job_in_hand_whose_worker_dies_before_its_row_is_read_is_cancelled(self):
        s, id, _, _ = self.in_hand()
        with self.blocked(s):
            s.crash()
            client = s.connect()
            client.send("Cancel", {"id": id})
            s.until(lambda: s.job(id).get("cancel_requested"))
            os.kill(s.worker("kept/0")["pid"], signal.SIGKILL)
            s.until(lambda: s.group("kept").get("ending") == 1)
        client.reply()
        self.assertEqual(s.wait_job(id)["state"], "cancelled")
        self.assertEqual(self.rows(s), [])

    def test_D9_who_waits_for_a_job_that_is_to_be_read_again_is_told_to_ask_again(self):
        s, id, begun, bell = self.in_hand()
        with self.blocked(s):
            s.crash()
            client = s.connect()
            client.send("Wait", {"id": id})
            with subprocess.Popen([helper("client"), s.socket_path, "wait", id], stdout=subprocess.PIPE, text=True) as ring:
                s.until(lambda: s.job(id)["state"] == "running")
                os.kill(s.worker("kept/0")["pid"], signal.SIGKILL)
                self.refused("Restarting", client.reply)
                ring.terminate()
        begun.wait()
        bell.ring()
        self.assertEqual(s.wait_job(id)["result"], text("2"))
