# SPDX-License-Identifier: MIT
"""`troupectl backup`: a copy of the databases that another machine goes on from."""
import os
import shutil
import sqlite3
import tempfile

from troupe import TestCase, actor


class Backup(TestCase):
    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.copy = directory.name
        self.groups = {"kept": actor(Jobs={"Durable": "yes", "History": "1h", "ResultTTLSec": "1h"})}

    def backup(self, s, **options):
        return s.ctl("backup", self.copy, "--config", s.path("etc"), **options)

    def ended(self, s):
        return [job["id"] for job in s.pages("io.troupe.Jobs.History", "jobs", group="kept")[0]]

    def test_another_machine_goes_on_from_a_copy_made_while_jobs_are_accepted(self):
        s = self.started(self.groups, state=True)
        done = s.do("kept")["id"]
        s.until(lambda: self.ended(s) == [done])
        s.call("Pause", target="kept")
        before = [s.call("Create", group="kept")["id"] for _ in range(20)]
        self.backup(s, check=True)
        s.call("Create", group="kept")
        s.stop()
        other = self.supervisor(self.groups, state=True)
        os.mkdir(other.path("state"), 0o700)
        for name in "troupe.db", "history.db":
            self.assertEqual(os.stat(os.path.join(self.copy, name)).st_mode & 0o777, 0o600)
            shutil.copy(os.path.join(self.copy, name), other.path("state"))
        other.start()
        for id in before:
            self.assertEqual(other.call("Wait", id=id)["job"]["state"], "succeeded")
        other.until(lambda: set(self.ended(other)) == {done, *before})

    def test_a_copy_is_whole_while_others_write_and_replaces_the_last_one(self):
        s = self.started(self.groups, state=True)
        for n in range(1, 4):
            for _ in range(10):
                s.do("kept")
            self.backup(s, check=True)
            database = sqlite3.connect(os.path.join(self.copy, "troupe.db"))
            self.assertEqual(database.execute("PRAGMA integrity_check").fetchone(), ("ok",))
            database.close()
        self.assertEqual(sorted(os.listdir(self.copy)), ["history.db", "troupe.db"])

    def test_a_backup_that_fails_leaves_the_last_one(self):
        s = self.started(self.groups, state=True)
        s.do("kept")
        s.until(lambda: os.path.exists(s.path("state/history.db")))
        self.backup(s, check=True)
        with open(os.path.join(self.copy, "troupe.db"), "rb") as file:
            before = file.read()
        s.stop()
        with open(s.path("state/troupe.db"), "wb") as file:
            file.write(b"no database" * 1000)
        failed = self.backup(s)
        self.assertEqual(failed.returncode, 1)
        self.assertIn("not a database", failed.stderr)
        with open(os.path.join(self.copy, "troupe.db"), "rb") as file:
            self.assertEqual(file.read(), before)
        self.assertEqual(sorted(os.listdir(self.copy)), ["history.db", "troupe.db"])

    def test_a_directory_without_a_database_is_named(self):
        s = self.supervisor(self.groups, state=True)
        failed = self.backup(s)
        self.assertEqual(failed.returncode, 1)
        self.assertIn("there is no database", failed.stderr)
