# SPDX-License-Identifier: MIT
"""troupectl backup: a copy of the database of durable jobs while jobs go on."""
import os
import shutil
import sqlite3

from troupe import ACTOR, TestCase, ini


LARGE = "echo done\n\n".ljust(512 << 10, "x")  # a file of its own: supervisor/store/database-files.h


class Backup(TestCase):
    def durable(self):
        s = self.supervisor({"kept": ini(ACTOR, Pool={"Size": 1}, Jobs={"Durable": "yes"})}, state=True)
        return s.start()

    def test_jobs_of_a_backup_run_once_it_is_restored(self):
        s = self.durable()
        s.call("Pause", target="kept")
        for id in ("one", "two"):
            s.create("kept", "echo", id=id)
        copy = s.path("copy.db")
        self.assertEqual(s.call("Backup", path=copy)["size"], os.path.getsize(copy))
        self.assertEqual(os.stat(copy).st_mode & 0o777, 0o600)
        with sqlite3.connect(copy) as connection:
            self.assertEqual(connection.execute("SELECT name FROM job ORDER BY number").fetchall(), [("one",), ("two",)])
            self.assertEqual(connection.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
        s.kill()
        shutil.rmtree(s.path("state"))
        os.mkdir(s.path("state"))
        shutil.copy(copy, s.path("state/troupe.db"))
        s.start()
        for id in ("one", "two"):
            self.assertEqual(s.call("io.troupe.Jobs.Wait", id=id)["job"]["state"], "succeeded")

    def test_a_backup_holds_payloads_that_are_files(self):
        s = self.durable()
        s.call("Pause", target="kept")
        id = s.create("kept", LARGE)
        files = s.path("state/troupe.db-blobs")
        self.assertEqual([os.path.getsize(os.path.join(files, name)) for name in os.listdir(files)], [len(LARGE)])
        copy = s.path("copy.db")
        s.call("Backup", path=copy)
        s.kill()
        shutil.rmtree(s.path("state"))
        os.mkdir(s.path("state"))
        shutil.copy(copy, s.path("state/troupe.db"))
        with sqlite3.connect(copy) as connection:
            self.assertEqual(connection.execute("SELECT CAST(payload AS TEXT) FROM job").fetchall(), [(LARGE,)])
        s.start()
        self.assertEqual(s.call("io.troupe.Jobs.Wait", id=id)["job"]["state"], "succeeded")

    def test_a_payload_that_is_a_file_survives_a_crash_and_goes_with_its_job(self):
        s = self.durable()
        s.call("Pause", target="kept")
        id = s.create("kept", LARGE)
        s.kill()
        s.start()
        s.call("Resume", target="kept")
        self.assertEqual(s.call("io.troupe.Jobs.Wait", id=id)["job"]["state"], "succeeded")
        s.until(lambda: os.listdir(s.path("state/troupe.db-blobs")) == [])

    def test_the_tool_makes_a_backup_beside_the_caller_and_overwrites_nothing(self):
        s = self.durable()
        done = s.ctl("backup", "copy.db", cwd=s.directory)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("copy.db: ", done.stdout)
        before = os.stat(s.path("copy.db"))
        done = s.ctl("backup", "copy.db", cwd=s.directory)
        self.assertEqual(done.returncode, 1)
        self.assertIn("File exists", done.stderr)
        self.assertEqual(os.stat(s.path("copy.db")).st_mtime_ns, before.st_mtime_ns)

    def test_without_durable_groups_there_is_nothing_to_back_up(self):
        s = self.supervisor({"plain": ini(ACTOR)}).start()
        self.refused("NoStore", s.call, "Backup", path=s.path("copy.db"))
        self.refused("BadOption", s.call, "Backup", path="copy.db")
        self.assertIn("no group has Durable=yes", s.ctl("backup", s.path("copy.db")).stderr)
