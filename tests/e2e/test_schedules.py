# SPDX-License-Identifier: MIT
"""Schedules: Q1 to Q4. Slots come each second, or at dates that a shifted clock reaches."""
import sqlite3
import unittest

from troupe import ACTOR, QUICK, TestCase, VarlinkError, ini, text


def actor(**jobs):
    return ini(ACTOR, Pool={"Size": 1}, Restart=QUICK, Jobs=jobs)


class Schedules(TestCase):
    def schedules(self, durable=False, **files):
        """A supervisor with a group "work" and these schedules, of which each is a list of lines of [Schedule]."""
        s = self.supervisor({"work": actor(Durable="yes" if durable else "no")}, state=True)
        for name, lines in files.items():
            self.schedule(s, name, *lines)
        return s

    @staticmethod
    def schedule(s, name, *lines, group="work", data="echo"):
        s.write(f"{name}.schedule", "\n".join(["[Schedule]", *lines, "[Job]", f"Group={group}", f"Data={data}", ""]))

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
            s.call("io.troupe.Jobs.Create", group="work", payload=text("echo"), options={"id": "x@2026-11-22T02:00:00Z"})
        self.assertEqual(caught.exception.name, "BadId")
        self.assertIn("for schedules", caught.exception.parameters["allowed"])
        s.create("work", "echo", id="x@2026-11-22T02:00:00")


if __name__ == "__main__":
    unittest.main()
